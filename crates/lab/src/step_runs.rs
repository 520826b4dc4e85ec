//! The runs of each step of a study, if it was run several times.
//!
//! Invariant: runs whose figures are void are left out as long as at least half of the runs of the step remain.

use fiord_report::RunReport;
use fiord_stats::OrderBy;
use fiord_stats::Summary;
use fiord_stats::steady::steady_from;

use crate::figures::Figures;
use crate::step::StepResult;

/// No further round is needed once no mean is off by more than this share, at 95 % confidence.
const ERROR_SHARE_ENOUGH: f64 = 0.05;

/// The runs of one step.
#[derive(Clone, Debug)]
pub(crate) struct StepRuns<'r> {
    /// In the order in which they were run, without those whose figures are void if enough others are left.
    pub runs: Vec<&'r StepResult>,
    /// How often it was run, those whose figures are void included.
    pub done: usize,
    /// How many of the first ones are left out of its figures, because throughput was not steady before.
    pub left_out: usize,
}

/// The runs by step, in the order of the first run of each.
pub(crate) fn by_step(results: &[StepResult]) -> Vec<StepRuns<'_>> {
    let mut steps: Vec<usize> = Vec::new();
    for run in results {
        if !steps.contains(&run.step) {
            steps.push(run.step);
        }
    }
    let of = |step: usize| {
        let all: Vec<&StepResult> = results.iter().filter(|run| run.step == step).collect();
        let (sound, void): (Vec<&StepResult>, Vec<&StepResult>) =
            all.iter().partition(|run| run.void_finding().is_none());
        let runs = if 2 * sound.len() >= all.len() { sound } else { void };
        let rates: Vec<f64> = runs.iter().map(|run| rate(&run.report)).collect();
        StepRuns { left_out: steady_from(&rates).unwrap_or(0), done: all.len(), runs }
    };
    steps.into_iter().map(of).collect()
}

fn rate(report: &RunReport) -> f64 {
    Figures::of_all(report).map_or(0.0, |figures| figures.bytes_per_s)
}

impl<'r> StepRuns<'r> {
    /// The runs that its figures are made of.
    pub(crate) fn used(&self) -> &[&'r StepResult] {
        &self.runs[self.left_out..]
    }

    /// The run of the median throughput.
    pub(crate) fn typical(&self) -> Option<&'r StepResult> {
        let mut runs = self.used().to_vec();
        runs.order_by(|one, other| rate(&one.report).total_cmp(&rate(&other.report)));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// A figure over its runs; `None` if none has it.
    pub(crate) fn summary(&self, figure: impl Fn(&StepResult) -> Option<f64>) -> Option<Summary> {
        let values: Vec<f64> = self.used().iter().filter_map(|run| figure(run)).collect();
        Summary::of(&values)
    }

    /// Throughput over its runs, in bytes per second.
    pub(crate) fn throughput(&self) -> Option<Summary> {
        self.summary(|run| Some(rate(&run.report)))
    }
}

/// For each step the run of the median throughput.
pub(crate) fn typical(results: &[StepResult]) -> Vec<StepResult> {
    by_step(results).iter().filter_map(StepRuns::typical).cloned().collect()
}

/// Whether throughput is known well enough in each step.
pub(crate) fn are_enough(results: &[StepResult]) -> bool {
    by_step(results).iter().all(|step| {
        let error = step.throughput().and_then(|summary| summary.error_share());
        error.is_some_and(|share| share <= ERROR_SHARE_ENOUGH)
    })
}

#[cfg(test)]
mod tests {
    use fiord_report::{Code, Finding, Subject};

    use super::*;
    use crate::testing::{direction, report};

    fn ran(step: usize, ios: u64) -> StepResult {
        StepResult { step, report: report(Some(direction(ios, 4096, 1000)), None) }
    }

    #[test]
    fn the_typical_run_is_the_median_of_the_steady_and_sound_ones() {
        let void = |mut run: StepResult| {
            let subject = Subject::Device("sda".to_string());
            run.report.findings = vec![Finding::new(Code::DiskShared, subject, "others", "")];
            run
        };
        let ios = |results: &[StepResult]| Figures::of_all(&typical(results)[0].report).unwrap().ios;
        let all = [ran(0, 500), ran(0, 1000), ran(0, 1030), ran(0, 1010)];
        assert_eq!(ios(&all), 1010, "the first is not steady");
        assert_eq!(by_step(&all)[0].left_out, 1);
        assert_eq!(ios(&[void(ran(0, 2000)), ran(0, 1000), ran(0, 1030), ran(0, 1010)]), 1010);
        let mostly = [void(ran(0, 2000)), void(ran(0, 2000)), ran(0, 1000)];
        assert!(typical(&mostly)[0].void_finding().is_some(), "too few are left");
        assert!(are_enough(&[ran(0, 1000), ran(0, 1001), ran(0, 1002)]));
        assert!(!are_enough(&[ran(0, 1000), ran(0, 1001), ran(0, 1300)]));
        assert!(!are_enough(&[ran(0, 1000)]));
    }
}
