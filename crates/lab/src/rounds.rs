//! How often the steps of a study are run, and which run comes next.
//!
//! Invariant: rounds follow each other, so that a disk that changes meanwhile affects all steps alike.

use std::time::Duration;

use fiord_stats::repeats::INTERVAL_VALUES_MIN;

use crate::step::{Step, StepResult};

/// How often a study is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// As often as the noise needs, within the time of the study.
    Auto,
    /// This often, at least once.
    Times(usize),
}

/// Most rounds by default.
const AUTO_MAX: usize = 6;

/// Runs are not divided into rounds shorter than this.
const ROUND_MIN: Duration = Duration::from_millis(600);

/// How many rounds a study has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// At least.
    pub min: usize,
    /// At most.
    pub max: usize,
}

impl Rounds {
    /// A single round.
    pub const ONE: Rounds = Rounds { min: 1, max: 1 };

    /// For a step that has this time in all of its rounds. By default at least three, which is the fewest with an
    /// interval; if the time is too short for three, one.
    pub fn of(repeat: Repeat, time: Duration) -> Rounds {
        match repeat {
            Repeat::Times(times) => Rounds { min: times.max(1), max: times.max(1) },
            Repeat::Auto => match (time.as_millis() / ROUND_MIN.as_millis()) as usize {
                max if max < INTERVAL_VALUES_MIN => Rounds::ONE,
                max => Rounds { min: INTERVAL_VALUES_MIN, max: max.min(AUTO_MAX) },
            },
        }
    }

    /// The time of a run, if the step has this time in all rounds.
    pub fn each(&self, time: Duration) -> Duration {
        time / u32::try_from(self.max).unwrap_or(u32::MAX).max(1)
    }

    /// For the line that says what a study will do: `, 3 to 6 times each`; empty for one round.
    pub fn shown(&self) -> String {
        match *self {
            Rounds { max: 1, .. } => String::new(),
            Rounds { min, max } if min == max => format!(", {max} times each"),
            Rounds { min, max } => format!(", {min} to {max} times each"),
        }
    }

    /// The next run once all steps were run once: the next of a round that is not complete, else the first of another
    /// round, unless that is not needed.
    pub fn next(
        &self,
        steps: &[Step],
        results: &[StepResult],
        is_enough: impl FnOnce() -> bool,
    ) -> Option<Step> {
        let measured: Vec<usize> = (0..steps.len()).filter(|number| !steps[*number].prepares).collect();
        let round = results.len().checked_div(measured.len())?;
        let number = *measured.get(results.len() % measured.len())?;
        let begins = results.len().is_multiple_of(measured.len());
        if begins && (round >= self.max || (round >= self.min && is_enough())) {
            return None;
        }
        let step = steps[number].clone();
        Some(Step { name: format!("{}{ROUND}{}", step.name, round + 1), repeats: Some(number), ..step })
    }
}

/// Precedes the number of a round in the name of a run.
const ROUND: &str = ", round ";

/// Ends the name of the first run after an interruption.
const RESUMED: &str = ", resumed";

/// The name of a run that is the first after an interruption.
pub fn with_resumption(name: &str) -> String {
    format!("{name}{RESUMED}")
}

/// The name of a run as it would be without an interruption before it.
pub fn without_resumption(name: &str) -> &str {
    name.strip_suffix(RESUMED).unwrap_or(name)
}

/// The name of a step, from that of a run of it in any round.
pub fn without_round(name: &str) -> &str {
    let name = without_resumption(name);
    match name.rsplit_once(ROUND) {
        Some((step, round)) if round.parse::<u32>().is_ok() => step,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{direction, report, target};

    fn ran(step: usize, ios: u64) -> StepResult {
        StepResult { step, report: report(Some(direction(ios, 4096, 1000)), None) }
    }

    #[test]
    fn time_is_divided_into_rounds_that_are_long_enough() {
        let rounds = |ms| Rounds::of(Repeat::Auto, Duration::from_millis(ms));
        assert_eq!(rounds(1700), Rounds::ONE);
        assert_eq!(rounds(1800), Rounds { min: 3, max: 3 });
        assert_eq!(rounds(2500), Rounds { min: 3, max: 4 });
        assert_eq!(rounds(60_000), Rounds { min: 3, max: 6 });
        assert_eq!(rounds(4000).each(Duration::from_secs(4)), Duration::from_secs(4) / 6);
        assert_eq!(Rounds::of(Repeat::Times(4), Duration::ZERO), Rounds { min: 4, max: 4 });
    }

    #[test]
    fn rounds_follow_each_other_until_the_noise_is_small_or_the_most_were_run() {
        let run = || target().run("read", target().engine, &[], Duration::from_secs(1));
        let steps = [target().fill(), run(), run()];
        let rounds = Rounds { min: 2, max: 4 };
        let of_round = |results: &[StepResult], is_enough: bool| {
            rounds.next(&steps, results, || is_enough).map(|step| (step.repeats, step.name))
        };
        let results: Vec<StepResult> = [1, 2, 1, 2, 1, 2, 1, 2].map(|step| ran(step, 10)).to_vec();
        assert_eq!(of_round(&results[..2], true), Some((Some(1), "read, round 2".to_string())));
        assert_eq!(of_round(&results[..3], true), Some((Some(2), "read, round 2".to_string())));
        assert_eq!(without_round("read, round 2"), "read");
        assert_eq!(without_round("read, round robin"), "read, round robin");
        assert_eq!(of_round(&results[..4], true), None);
        assert_eq!(of_round(&results[..4], false), Some((Some(1), "read, round 3".to_string())));
        assert_eq!(
            of_round(&results[..5], true),
            Some((Some(2), "read, round 3".to_string())),
            "no half rounds"
        );
        assert_eq!(of_round(&results, false), None);
    }
}
