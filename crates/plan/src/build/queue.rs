//! Which engine, with which of its own options, and how deep its queue is.
//!
//! Invariant: a synchronous engine has a depth of one, regardless of the options.

use fiord_options::job::{self, JobOptions};
use fiord_options::value::IoSubmitMode;
use fiord_options::{Problem, ProblemKind};

use super::section::ResolvedSection;
use crate::engine::{Depth, PlannedEngine};
use crate::job::Submission;

/// The engine of the job and its private options; `None` for one that is not built in, which `resolve` has reported.
pub(crate) fn engine(section: &ResolvedSection<'_>) -> Option<PlannedEngine> {
    let descriptor = section.engine()?;
    Some(PlannedEngine { descriptor, settings: (descriptor.settings)(section.options) })
}

/// How I/Os reach the engine.
pub(crate) fn submission(options: &JobOptions) -> Submission {
    Submission {
        serialize_overlap: options.queue.serialize_overlap,
        offload: options.queue.io_submit_mode == IoSubmitMode::Offload,
    }
}

/// A rule: threads of a pool are handed descriptors, which an engine that opens its targets itself has none of.
pub(super) fn offload_needs_descriptors(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine().filter(|engine| !engine.takes_open_files())?;
    submission(section.options).offload.then(|| {
        let message =
            format!("the engine {} takes no open files, which is what a pool is handed", engine.name);
        section.error(ProblemKind::Conflict, job::Queue::io_submit_mode, message, "leave out io_submit_mode=")
    })
}

/// The options of the queue as given; `None` where one was not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedDepth {
    /// `iodepth`.
    pub depth: u32,
    /// `iodepth_batch_submit`.
    pub submit: Option<u32>,
    /// `iodepth_batch_complete_min`.
    pub complete_min: Option<u32>,
    /// `iodepth_batch_complete_max`.
    pub complete_max: Option<u32>,
    /// `iodepth_low`.
    pub low: Option<u32>,
}

/// The queue of an engine. By default each I/O is submitted by its own call, and all available completions are reaped.
pub(crate) fn depth(wanted: WantedDepth, queued: bool) -> Depth {
    if !queued {
        return Depth { max: 1, submit: 1, complete_min: 1, complete_max: None, low: 1 };
    }
    let max = wanted.depth.max(1);
    let given = |number: Option<u32>| number.filter(|number| *number > 0).map(|number| number.min(max));
    // 0 means as many as there are free slots.
    let submit = wanted.submit.unwrap_or(1);
    let complete_min = wanted.complete_min.unwrap_or(1).min(max);
    let complete_max = given(wanted.complete_max).or(given(wanted.complete_min));
    Depth {
        max,
        submit: given(Some(submit)).unwrap_or(max),
        complete_min,
        complete_max: complete_max.map(|most| most.max(complete_min)),
        low: given(wanted.low).unwrap_or(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: WantedDepth =
        WantedDepth { depth: 16, submit: None, complete_min: None, complete_max: None, low: None };

    #[test]
    fn a_synchronous_engine_has_a_depth_of_one() {
        assert_eq!(depth(NOTHING, false).max, 1);
    }

    #[test]
    fn each_io_is_submitted_by_its_own_call_by_default() {
        let all = Depth { max: 16, submit: 1, complete_min: 1, complete_max: None, low: 16 };
        assert_eq!(depth(NOTHING, true), all);
        assert_eq!(depth(WantedDepth { submit: Some(8), ..NOTHING }, true).submit, 8);
        assert_eq!(depth(WantedDepth { submit: Some(0), ..NOTHING }, true).submit, 16);
    }

    #[test]
    fn batches_never_exceed_the_queue() {
        let wanted = WantedDepth { submit: Some(99), complete_min: Some(99), low: Some(99), ..NOTHING };
        let all = Depth { max: 16, submit: 16, complete_min: 16, complete_max: Some(16), low: 16 };
        assert_eq!(depth(wanted, true), all);
    }

    #[test]
    fn the_most_taken_is_the_least_waited_for_unless_given() {
        let wanted = WantedDepth { complete_min: Some(4), ..NOTHING };
        assert_eq!(depth(wanted, true).complete_max, Some(4));
        assert_eq!(depth(WantedDepth { complete_max: Some(8), ..wanted }, true).complete_max, Some(8));
        assert_eq!(depth(WantedDepth { complete_max: Some(2), ..wanted }, true).complete_max, Some(4));
    }

    #[test]
    fn polling_waits_for_nothing_and_takes_all() {
        let polling = depth(WantedDepth { complete_min: Some(0), ..NOTHING }, true);
        assert_eq!((polling.complete_min, polling.complete_max), (0, None));
    }
}
