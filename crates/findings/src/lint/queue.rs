//! Queue depths that are not what they seem.
//!
//! Invariant: an engine is judged by its descriptor.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use crate::subject;

/// A depth above 1 on an engine that has no queue.
pub(super) fn depth_without_a_queue(job: &Job) -> Option<Finding> {
    let (asked, engine) = (job.presentation.requested_iodepth, job.engine.descriptor);
    (asked > 1 && !engine.can_queue())
        .then(|| stays_at_one(subject::job(job), &engine.name.to_string(), asked))
}

/// The finding of a depth on a synchronous engine.
pub(crate) fn stays_at_one(subject: Subject, engine: &str, asked: u32) -> Finding {
    let sentence = format!("the engine {engine} is synchronous: the queue depth stays at 1 of {asked}");
    let remedy = "ioengine=io_uring or libaio keeps several I/Os in flight";
    Finding::new(Code::SyncEngineDepth, subject, sentence, remedy)
        .of_option(job::Queue::iodepth)
        .based_on([("iodepth", Cell::Count(u64::from(asked))), ("depth", Cell::Count(1))])
}

/// Buffered I/O on an engine that keeps only direct I/O in flight.
pub(super) fn buffered_async(job: &Job) -> Option<Finding> {
    let asked = job.presentation.requested_iodepth;
    let buffered = subject::does_io(job) && !job.files.direct;
    (buffered && asked > 1 && job.engine.descriptor.blocks_when_buffered()).then(|| {
        let engine = job.engine.name();
        let sentence =
            format!("{engine} submits buffered I/O synchronously: each submission waits for its I/O");
        let remedy = "direct=1, or ioengine=io_uring";
        Finding::new(Code::BufferedAsync, subject::job(job), sentence, remedy)
            .of_option(job::Access::direct)
            .based_on([("iodepth", Cell::Count(u64::from(asked)))])
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    #[test]
    fn a_depth_without_a_queue_is_found_and_one_with_a_queue_is_not() {
        let found = |engine: &str, depth: &str| {
            let plan = plan(&[("a", &[("ioengine", engine), ("iodepth", depth), ("filename", "f")])]);
            depth_without_a_queue(&plan.jobs[0]).map(|finding| finding.code)
        };
        assert_eq!(found("psync", "32"), Some(Code::SyncEngineDepth));
        assert_eq!(found("psync", "1"), None);
        assert_eq!(found("libaio", "32"), None);
        assert_eq!(found("null", "32"), None);
    }

    #[test]
    fn buffered_libaio_is_found_if_it_is_to_have_a_depth() {
        let found = |engine: &str, direct: &str, depth: &str| {
            let options = [("ioengine", engine), ("direct", direct), ("iodepth", depth), ("filename", "f")];
            buffered_async(&plan(&[("a", &options)]).jobs[0]).map(|finding| finding.code)
        };
        assert_eq!(found("libaio", "0", "2"), Some(Code::BufferedAsync));
        for (engine, direct, depth) in [("libaio", "1", "2"), ("libaio", "0", "1"), ("io_uring", "0", "2")] {
            assert_eq!(found(engine, direct, depth), None, "{engine} {direct} {depth}");
        }
    }
}
