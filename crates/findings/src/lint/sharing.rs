//! Jobs that work on the same bytes at the same time.
//!
//! Invariant: jobs that a stonewall keeps apart do not share anything.

use std::path::Path;

use fiord_options::job;
use fiord_plan::{Direction, Job, Pattern, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};

use crate::subject;

/// Of the clones of `job`, which begin and end together.
pub(super) fn of(plan: &Plan, job: &Job) -> Option<Finding> {
    let transfers_data = job.engine.descriptor.transfers_data();
    if transfers_data && job.verification.as_ref().is_some_and(|verification| !verification.checks) {
        let sentence =
            "other jobs change parts of the blocks that it verifies: what it reads back is not compared";
        let remedy = "give each job its own range (offset_increment), or use a single block size";
        let finding = Finding::new(Code::ConcurrentWriters, subject::job(job), sentence, remedy);
        return Some(finding.of_option(job::Verification::verify));
    }
    let clones = plan.jobs.iter().filter(|other| other.section == job.section);
    let same = clones.filter(|other| ranges(other).eq(ranges(job)) && job.schedule == other.schedule);
    let count = same.count() as u64;
    let reads_in_order = job.access.pattern == Pattern::Only(Direction::Read) && !job.access.random;
    let writes = job.access.pattern.includes(Direction::Write);
    let figures = [("jobs", Cell::Count(count))];
    if count < 2 {
        None
    } else if reads_in_order {
        let sentence =
            format!("{count} jobs read the same blocks in the same order: a cache serves all but the first");
        let remedy = "offset_increment gives each job its own range";
        let finding = Finding::new(Code::OverlappingSequential, subject::job(job), sentence, remedy);
        Some(finding.of_option(job::General::numjobs).based_on(figures))
    } else if writes {
        let sentence = format!("{count} jobs write the same range, in an undefined order");
        let remedy = "offset_increment gives each job its own range";
        let finding = Finding::new(Code::ConcurrentWriters, subject::job(job), sentence, remedy);
        Some(finding.of_option(job::General::numjobs).based_on(figures))
    } else {
        None
    }
}

/// The bytes that a job works on.
fn ranges(job: &Job) -> impl Iterator<Item = (&Path, u64, u64)> {
    job.files.list.iter().map(|file| (file.path.as_path(), file.offset_bytes, file.length_bytes))
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(options: &[(&'static str, &str)]) -> Option<Code> {
        let common = [("ioengine", "psync"), ("size", "64k")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let plan = plan(&[("a", &options)]);
        of(&plan, &plan.jobs[0]).map(|finding| finding.code)
    }

    #[test]
    fn jobs_on_the_same_bytes_are_found_and_those_apart_are_not() {
        let three = [("numjobs", "3"), ("filename", "f")];
        let with = |more: &[(&'static str, &'static str)]| found(&[&three[..], more].concat());
        assert_eq!(with(&[("rw", "read")]), Some(Code::OverlappingSequential));
        assert_eq!(with(&[("rw", "write")]), Some(Code::ConcurrentWriters));
        assert_eq!(with(&[("rw", "randwrite")]), Some(Code::ConcurrentWriters));
        let not_compared = [("rw", "write"), ("verify", "md5"), ("bsrange", "4k-8k")];
        assert_eq!(with(&not_compared), Some(Code::ConcurrentWriters));
        assert_eq!(with(&[("rw", "randread")]), None, "in another order each");
        assert_eq!(with(&[("rw", "read"), ("offset_increment", "64k")]), None);
        assert_eq!(found(&[("numjobs", "3"), ("rw", "read")]), None, "a file each");
        assert_eq!(found(&[("numjobs", "1"), ("rw", "read"), ("filename", "f")]), None);
    }
}
