//! Whether trims were in flight beside each other, as `iodepth` says.
//!
//! Invariant: what is judged is what happened: no kernel and no engine is named that might not queue them.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};
use fiord_stats::JobStats;
use fiord_stats::count::UNQUEUED_TRIMS;

use crate::subject;

/// Trims of a queued job that ended one by one.
pub(super) fn unqueued(job: &Job, stats: &JobStats) -> Option<Finding> {
    let (depth, trims) = (job.depth.max, stats.counts.get(&UNQUEUED_TRIMS)?);
    if depth < 2 || trims < 2 {
        return None;
    }
    let engine = job.engine.descriptor.name.word();
    let sentence = format!(
        "{trims} trims were made one at a time, of the {depth} that iodepth allows: ioengine={engine} did not queue them"
    );
    let remedy = "use ioengine=io_uring on a block device with Linux 6.12 or newer, without hipri, or several jobs (numjobs)";
    let finding = Finding::new(Code::TrimsUnqueued, subject::job(job), sentence, remedy);
    Some(
        finding
            .of_option(job::Queue::iodepth)
            .based_on([("trims_unqueued", Cell::Count(trims)), ("iodepth", Cell::Count(u64::from(depth)))]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    #[test]
    fn trims_that_ended_one_by_one_are_found_in_a_job_that_queues() {
        let found = |depth: &'static str, trims: u64| {
            let options =
                [("ioengine", "libaio"), ("iodepth", depth), ("filename", "/dev/x"), ("rw", "trim")];
            let plan = plan(&[("a", &options)]);
            let mut stats = JobStats::default();
            stats.counts.add(&UNQUEUED_TRIMS, trims);
            unqueued(&plan.jobs[0], &stats)
        };
        let finding = found("8", 100).unwrap();
        let sentence = "100 trims were made one at a time, of the 8 that iodepth allows: ioengine=libaio did not queue them";
        assert_eq!((finding.code, finding.sentence.as_str()), (Code::TrimsUnqueued, sentence));
        assert!([found("1", 100), found("8", 0), found("8", 1)].iter().all(Option::is_none));
    }
}
