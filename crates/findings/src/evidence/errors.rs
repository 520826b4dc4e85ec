//! I/Os that failed and were ignored.
//!
//! Invariant: an error that ended its job is not a finding, because the report has it.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::JobStats;

use crate::subject;

pub(super) fn continued(job: &Job, stats: &JobStats) -> Option<Finding> {
    let count = stats.errors_total;
    let passed_over = job.errors.passed_over.iter().any(|codes| !codes.is_empty());
    if passed_over { ignored(subject::job(job), count) } else { None }
}

/// The finding of a job that ignored this many errors.
pub(crate) fn ignored(subject: Subject, count: u64) -> Option<Finding> {
    (count > 0).then(|| {
        let (noun, were) = if count == 1 { ("I/O", "was") } else { ("I/Os", "were") };
        let sentence =
            format!("{count} {noun} failed and {were} ignored: the figures are those of the other I/Os");
        let remedy = "find out why they failed before using the figures";
        let finding = Finding::new(Code::ErrorContinued, subject, sentence, remedy);
        finding.of_option(job::Measure::continue_on_error).based_on([("errors", Cell::Count(count))])
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    #[test]
    fn errors_that_were_passed_over_are_found() {
        let found = |policy: &str, errors_total| {
            let plan = plan(&[("a", &[("continue_on_error", policy)])]);
            continued(&plan.jobs[0], &JobStats { errors_total, ..JobStats::default() })
        };
        assert!(found("all", 1).unwrap().sentence.starts_with("1 I/O failed and was"));
        assert!(found("io", 20).unwrap().sentence.starts_with("20 I/Os failed and were"));
        assert_eq!((found("all", 0), found("none", 1)), (None, None));
    }
}
