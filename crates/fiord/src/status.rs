//! The exit statuses, which tell scripts how it went.
//!
//! Invariant: every status fiord ends with is named here, and each means one thing. 3 is kept for figures that are not
//! to be believed.

use fiord_lab::Verdict;

/// All went well.
pub(crate) const WELL: u8 = 0;

/// Wrong input, no permission, a job that failed, or a report that could not be written.
pub(crate) const FAILED: u8 = 1;

/// Refused because it would destroy something.
pub(crate) const REFUSED: u8 = 2;

/// A check found what was asked of a disk not to hold: FAIL.
const VERDICT_FAIL: u8 = 4;

/// A check found it to hold without reserve, MARGINAL, and was told to be strict.
const VERDICT_MARGINAL: u8 = 5;

/// More than this means the end by the signal of what is more.
const SIGNALS: u8 = 128;

/// Ended by this signal.
pub(crate) fn of_signal(signal: i32) -> u8 {
    SIGNALS.wrapping_add(signal as u8)
}

/// A verdict that is not good enough for who asked.
pub(crate) fn of_verdict(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => WELL,
        Verdict::Marginal => VERDICT_MARGINAL,
        Verdict::Fail => VERDICT_FAIL,
    }
}

/// In a word or two, for a list of runs.
pub(crate) fn words(status: Option<u8>) -> String {
    match status {
        None => "unfinished".to_string(),
        Some(WELL) => "well".to_string(),
        Some(REFUSED) => "refused".to_string(),
        Some(VERDICT_FAIL) => Verdict::Fail.word().to_string(),
        Some(VERDICT_MARGINAL) => Verdict::Marginal.word().to_string(),
        Some(signal) if signal > SIGNALS => format!("signal {}", signal - SIGNALS),
        Some(status) => format!("status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_means_one_thing() {
        let verdicts = [Verdict::Pass, Verdict::Marginal, Verdict::Fail].map(of_verdict);
        assert_eq!(verdicts, [0, 5, 4]);
        let all = [WELL, FAILED, REFUSED, VERDICT_FAIL, VERDICT_MARGINAL, of_signal(2), of_signal(15)];
        assert_eq!(all, [0, 1, 2, 4, 5, 130, 143]);
        let words: Vec<String> = all.into_iter().map(|status| words(Some(status))).collect();
        assert_eq!(words, ["well", "status 1", "refused", "FAIL", "MARGINAL", "signal 2", "signal 15"]);
    }
}
