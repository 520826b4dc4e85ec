//! The exit statuses.
//!
//! Invariant: every status fiord exits with is named here, and each has one meaning.

use fiord_compare::Decision;
use fiord_lab::Verdict;
use fiord_options::value::Undecided;
use fiord_session::Ending;

/// Success.
pub(crate) const SUCCESS: u8 = 0;

/// Invalid input, missing permission, a failed job, or a report that could not be written.
pub(crate) const FAILED: u8 = 1;

/// Refused because data would be destroyed.
pub(crate) const REFUSED: u8 = 2;

/// `--trust=strict`: according to a finding, the figures do not measure what the job specifies.
pub(crate) const VOID: u8 = 3;

/// A study found a figure beyond its limit: FAIL; or `fiord capacity` no rate within its bound.
const VERDICT_FAIL: u8 = 4;

/// `fiord check --strict` found a figure within its limit but without headroom: MARGINAL.
const VERDICT_MARGINAL: u8 = 5;

/// A study is inconclusive: a finding voids its figures, or they lie on both sides of a limit; or no condition of
/// `--fail-if` holds, but one cannot be decided.
const VERDICT_UNDECIDED: u8 = 6;

/// `fiord crash-test check` found that synced data was lost.
pub(crate) const LOST: u8 = 7;

/// A condition of `--fail-if` holds.
pub(crate) const CONDITION_HOLDS: u8 = 8;

/// What each of them means, as manual pages and README.md say it.
pub(crate) const MEANINGS: [(&str, &str); 10] = [
    ("0", "success"),
    (
        "1",
        "invalid input, missing permission, output that could not be written, or a failed job (called as `fio`: the number of \
         failed jobs, at most 255)",
    ),
    ("2", "refused, because data would be destroyed"),
    ("3", "with `--trust=strict`: according to a finding, the figures do not measure what the job specifies"),
    ("4", "`fiord check`: FAIL; `fiord capacity`: no rate stays within its bound"),
    ("5", "`fiord check --strict`: MARGINAL"),
    (
        "6",
        "a study is inconclusive: a finding voids its figures, they lie on both sides of a limit, or did not become steady; \
         `--fail-if`: no condition holds, but one cannot be decided; `--undecided=pass` or `fail` has the status of that instead",
    ),
    ("7", "`fiord crash-test check`: synced data was lost"),
    ("8", "`--fail-if`: a condition holds"),
    ("128 + N", "ended by signal N"),
];

/// Added to a signal number: ended by that signal.
pub(crate) const SIGNALS: u8 = 128;

/// Ended by this signal.
pub(crate) fn of_signal(signal: i32) -> u8 {
    SIGNALS.saturating_add(u8::try_from(signal).unwrap_or(0))
}

/// The status for how a run or a study ended.
pub(crate) fn of_ending(ending: Ending) -> u8 {
    match ending {
        Ending::Complete => SUCCESS,
        Ending::Failed => FAILED,
        Ending::Refused => REFUSED,
        Ending::Void => VOID,
        Ending::Signal(signal) => of_signal(signal),
    }
}

/// The status for a verdict that was not accepted.
pub(crate) fn of_verdict(verdict: Verdict, undecided: Undecided) -> u8 {
    match verdict {
        Verdict::Pass => SUCCESS,
        Verdict::Marginal => VERDICT_MARGINAL,
        Verdict::Fail => VERDICT_FAIL,
        Verdict::Undecided => match undecided {
            Undecided::Tell => VERDICT_UNDECIDED,
            Undecided::Pass => SUCCESS,
            Undecided::Fail => VERDICT_FAIL,
        },
    }
}

/// Whether a status other than success says that something is wrong, whatever else is found out.
pub(crate) fn is_certain(status: u8) -> bool {
    !matches!(status, SUCCESS | VERDICT_MARGINAL | VERDICT_UNDECIDED)
}

/// The status for the worst of the conditions on a result; `None`: there is none.
pub(crate) fn of_decision(decision: Option<Decision>, undecided: Undecided) -> u8 {
    match decision {
        None | Some(Decision::Clear) => SUCCESS,
        Some(Decision::Undecided) => match undecided {
            Undecided::Tell => VERDICT_UNDECIDED,
            Undecided::Pass => SUCCESS,
            Undecided::Fail => CONDITION_HOLDS,
        },
        Some(Decision::Holds) => CONDITION_HOLDS,
    }
}

/// A word or two for the list of runs. `is_void`: according to a finding, the figures do not measure what was asked for.
pub(crate) fn words(status: Option<u8>, is_void: bool) -> String {
    match status {
        None => "unfinished".to_string(),
        Some(SUCCESS) if is_void => words(Some(VOID), true),
        Some(SUCCESS) => "ok".to_string(),
        Some(REFUSED) => "refused".to_string(),
        Some(VOID) => "void".to_string(),
        Some(VERDICT_FAIL) => Verdict::Fail.word().to_string(),
        Some(VERDICT_MARGINAL) => Verdict::Marginal.word().to_string(),
        Some(VERDICT_UNDECIDED) => Verdict::Undecided.word().to_string(),
        Some(signal) if signal > SIGNALS => format!("signal {}", signal - SIGNALS),
        Some(status) => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_means_one_thing() {
        let verdicts = [Verdict::Pass, Verdict::Marginal, Verdict::Fail, Verdict::Undecided];
        let verdicts = verdicts.map(|verdict| of_verdict(verdict, Undecided::Tell));
        assert_eq!(verdicts, [0, 5, 4, 6]);
        let decisions = [None, Some(Decision::Clear), Some(Decision::Undecided), Some(Decision::Holds)];
        let both = [Undecided::Pass, Undecided::Fail];
        assert_eq!(both.map(|as_if| of_verdict(Verdict::Undecided, as_if)), [0, 4]);
        assert_eq!(both.map(|as_if| of_decision(Some(Decision::Undecided), as_if)), [0, 8]);
        assert_eq!(decisions.map(|decision| of_decision(decision, Undecided::Tell)), [0, 0, 6, 8]);
        let all =
            [SUCCESS, FAILED, REFUSED, VOID, 4, 5, 6, LOST, CONDITION_HOLDS, of_signal(2), of_signal(15)];
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7, 8, 130, 143]);
        let words: Vec<String> = all.into_iter().map(|status| words(Some(status), false)).collect();
        let expected = [
            "ok",
            "status 1",
            "refused",
            "void",
            "FAIL",
            "MARGINAL",
            "CANNOT TELL",
            "status 7",
            "status 8",
            "signal 2",
            "signal 15",
        ];
        assert_eq!(words, expected);
        assert_eq!(super::words(Some(SUCCESS), true), "void");
    }

    #[test]
    fn each_status_is_documented() {
        let readme = include_str!("../../../README.md");
        for (status, meaning) in MEANINGS {
            assert!(readme.contains(&format!("| {status} | {meaning} |\n")), "{status} in README.md");
        }
        let documented: Vec<&str> = MEANINGS.iter().map(|(status, _)| *status).collect();
        let all: Vec<String> = (SUCCESS..=CONDITION_HOLDS).map(|status| status.to_string()).collect();
        assert_eq!(documented[..documented.len() - 1], all);
    }
}
