//! Jobs that work on the same bytes at the same time.
//!
//! Invariant: jobs that a stonewall keeps apart do not share anything.

use std::path::Path;

use fiord_options::job;
use fiord_plan::{Direction, Job, Pattern, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};

use crate::subject;

/// How jobs get in each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    ReadInOrder,
    WriteInOrder,
    Write,
}

/// Of a job with those that run at the same time, if it is the first of them.
pub(super) fn of(plan: &Plan, job: &Job) -> Option<Finding> {
    let transfers_data = job.engine.descriptor.transfers_data();
    if transfers_data && job.verification.as_ref().is_some_and(|verification| !verification.checks) {
        let sentence =
            "other jobs change parts of the blocks that it verifies: what it reads back is not compared";
        let remedy = "give each job its own range (offset_increment), or use a single block size";
        let finding = Finding::new(Code::ConcurrentWriters, subject::job(job), sentence, remedy);
        return Some(finding.of_option(job::Verification::verify));
    }
    let used = used_by(job)?;
    let same = |other: &&Job| {
        subject::does_io(other)
            && used_by(other) == Some(used)
            && ranges(other).eq(ranges(job))
            && run_together(plan, other, job)
    };
    let mut jobs = plan.jobs.iter().filter(same);
    let is_first = jobs.next().is_some_and(|first| first.section == job.section);
    let count = 1 + jobs.count() as u64;
    let (code, sentence) = match used {
        _ if count < 2 || !is_first => return None,
        Use::ReadInOrder => (
            Code::OverlappingSequential,
            format!("{count} jobs read the same blocks in the same order: a cache serves all but the first"),
        ),
        Use::WriteInOrder => (
            Code::OverlappingSequential,
            format!(
                "{count} jobs write the same blocks in the same order: the rate of one place is counted {count} times"
            ),
        ),
        Use::Write => {
            (Code::ConcurrentWriters, format!("{count} jobs write the same range, in an undefined order"))
        }
    };
    let remedy = "offset_increment gives each job its own range";
    let finding = Finding::new(code, subject::job(job), sentence, remedy);
    Some(finding.of_option(job::General::numjobs).based_on([("jobs", Cell::Count(count))]))
}

fn used_by(job: &Job) -> Option<Use> {
    match job.access.pattern {
        Pattern::Only(Direction::Read) if !job.access.random => Some(Use::ReadInOrder),
        // What is read back depends on the order.
        Pattern::Only(Direction::Write) if !job.access.random && job.verification.is_none() => {
            Some(Use::WriteInOrder)
        }
        pattern if pattern.includes(Direction::Write) => Some(Use::Write),
        _ => None,
    }
}

/// Whether jobs begin at the same time. Stonewalls keep those before them from those after them.
fn run_together(plan: &Plan, one: &Job, other: &Job) -> bool {
    let (first, last) = (one.number.min(other.number), one.number.max(other.number));
    let between = plan.jobs.iter().filter(|job| job.number > first && job.number <= last);
    let is_apart = between.clone().any(|job| job.clone == 0 && job.schedule.stonewall);
    let begins = |job: &Job| (job.schedule.start_delay_ns, job.schedule.wait_for.clone());
    !is_apart && begins(one) == begins(other)
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
    fn sections_that_run_together_share_as_clones_do() {
        let shared = |second: &[(&'static str, &'static str)]| -> Vec<Option<Code>> {
            let common = [("ioengine", "psync"), ("size", "64k"), ("filename", "f"), ("rw", "write")];
            let second: Vec<(&'static str, &str)> = common.iter().chain(second).copied().collect();
            let plan = plan(&[("a", &common), ("b", &second)]);
            plan.jobs.iter().map(|job| of(&plan, job).map(|finding| finding.code)).collect()
        };
        assert_eq!(shared(&[]), [Some(Code::OverlappingSequential), None], "said once");
        for apart in [("stonewall", "1"), ("startdelay", "5s"), ("offset", "64k"), ("rw", "read")] {
            assert_eq!(shared(&[apart]), [None, None], "{apart:?}");
        }
    }

    #[test]
    fn jobs_on_the_same_bytes_are_found_and_those_apart_are_not() {
        let three = [("numjobs", "3"), ("filename", "f")];
        let with = |more: &[(&'static str, &'static str)]| found(&[&three[..], more].concat());
        assert_eq!(with(&[("rw", "read")]), Some(Code::OverlappingSequential));
        assert_eq!(with(&[("rw", "write")]), Some(Code::OverlappingSequential));
        assert_eq!(with(&[("rw", "write"), ("offset_increment", "64k")]), None);
        assert_eq!(with(&[("rw", "randwrite")]), Some(Code::ConcurrentWriters));
        let not_compared = [("rw", "write"), ("verify", "md5"), ("bsrange", "4k-8k")];
        assert_eq!(with(&not_compared), Some(Code::ConcurrentWriters));
        assert_eq!(with(&[("rw", "randread")]), None, "in another order each");
        assert_eq!(with(&[("rw", "read"), ("offset_increment", "64k")]), None);
        assert_eq!(found(&[("numjobs", "3"), ("rw", "read")]), None, "a file each");
        assert_eq!(found(&[("numjobs", "1"), ("rw", "read"), ("filename", "f")]), None);
    }
}
