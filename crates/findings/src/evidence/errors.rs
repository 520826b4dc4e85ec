//! I/Os that failed and were ignored, and those whose error shows a damaged disk.
//!
//! Invariant: that an error ended its job is not a finding, because the report has it; what the error shows may be one.

use fiord_errno::Errno;
use fiord_options::job;
use fiord_plan::{FileKind, Job};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::JobStats;

use crate::subject;

pub(super) fn continued(job: &Job, stats: &JobStats) -> Option<Finding> {
    let count = stats.errors_total;
    let passed_over = job.errors.passed_over.iter().any(|codes| !codes.is_empty());
    if passed_over { ignored(subject::job(job), count) } else { None }
}

/// Errors of the medium: the kernel's block layer answers an I/O with ENODATA if a disk reports one that it could not
/// correct, whatever the disk.
pub(super) fn of_medium(job: &Job, stats: &JobStats) -> Option<Finding> {
    let is_on_disk =
        || job.files.list.iter().any(|file| matches!(file.kind, FileKind::Regular | FileKind::Block));
    (stats.first_error == Errno::ENODATA.0 && is_on_disk()).then(|| {
        let sentence = "its first I/O that failed did so with an uncorrectable error of the medium (ENODATA)";
        let remedy =
            "see the kernel's log for the disk and its sectors, replace the disk, and repeat the run";
        let finding = Finding::new(Code::MediaErrors, subject::job(job), sentence, remedy);
        finding.based_on([("failed_ios", Cell::Count(stats.errors_total))])
    })
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
    fn an_error_of_the_medium_is_told_from_others() {
        let plan = plan(&[("a", &[("ioengine", "psync"), ("filename", "f"), ("rw", "write")])]);
        let found = |first_error, errors_total| {
            of_medium(&plan.jobs[0], &JobStats { errors_total, first_error, ..JobStats::default() })
        };
        let finding = found(Errno::ENODATA.0, 3).unwrap();
        assert_eq!((finding.code, &finding.figures[0].value), (Code::MediaErrors, &Cell::Count(3)));
        assert_eq!((found(Errno::EIO.0, 3), found(0, 0)), (None, None));
        let mut without_files = plan.jobs[0].clone();
        without_files.files.list.clear();
        let stats = JobStats { errors_total: 1, first_error: Errno::ENODATA.0, ..JobStats::default() };
        assert_eq!(of_medium(&without_files, &stats), None);
    }

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
