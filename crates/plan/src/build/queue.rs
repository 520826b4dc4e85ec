//! Which engine, with which of its own options, and how deep its queue is.
//!
//! Invariant: a synchronous engine has a depth of one, whatever was asked for.

use fiord_options::job::JobOptions;

use crate::engine::{Depth, EngineSettings, IoUring, Libaio, Mmap, Pvsync2};

/// The engine of the job and its private options; `None` for one that is not built in, which `resolve` has said.
pub(crate) fn engine(options: &JobOptions) -> Option<EngineSettings> {
    Some(match options.ioengine.0 {
        "null" => EngineSettings::Null,
        "sync" => EngineSettings::Sync,
        "psync" => EngineSettings::Psync,
        "vsync" => EngineSettings::Vsync,
        "pvsync" => EngineSettings::Pvsync,
        "pvsync2" => EngineSettings::Pvsync2(pvsync2(options)),
        "mmap" => EngineSettings::Mmap(mmap(options)),
        "libaio" => EngineSettings::Libaio(libaio(options)),
        "io_uring" => EngineSettings::IoUring(io_uring(options)),
        _ => return None,
    })
}

fn pvsync2(options: &JobOptions) -> Pvsync2 {
    let own = &options.pvsync2;
    let hipri = own.hipri.is_some_and(|flag| flag.0);
    Pvsync2 {
        hipri_percent: if hipri { own.hipri_percentage.min(100) as u8 } else { 0 },
        uncached: own.uncached.is_some_and(|value| value != 0),
        nowait: own.nowait.unwrap_or(false),
    }
}

fn mmap(options: &JobOptions) -> Mmap {
    let own = &options.mmap;
    Mmap { transparent_huge_pages: own.thp.is_some_and(|value| value != 0) }
}

fn libaio(options: &JobOptions) -> Libaio {
    let own = &options.libaio;
    Libaio { nowait: own.nowait.unwrap_or(false), vectored: own.libaio_vectored.unwrap_or(false) }
}

fn io_uring(options: &JobOptions) -> IoUring {
    let own = &options.io_uring;
    IoUring {
        fixed_buffers: own.fixedbufs.is_some_and(|flag| flag.0),
        registered_files: own.registerfiles.is_some_and(|flag| flag.0),
        submission_thread: own.sqthread_poll.is_some_and(|flag| flag.0),
        submission_thread_cpu: own.sqthread_poll_cpu,
        hipri: own.hipri.is_some_and(|flag| flag.0),
        nonvectored: own.nonvectored != 0,
        uncached: own.uncached.is_some_and(|value| value != 0),
        nowait: own.nowait.unwrap_or(false),
        force_async_every: own.force_async.unwrap_or(0),
    }
}

/// What was asked about the queue; `None` where nothing was.
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

/// The queue of an engine. Unless asked for otherwise, each I/O is submitted by itself, and all completions there are
/// get taken.
pub(crate) fn depth(wanted: WantedDepth, queued: bool) -> Depth {
    if !queued {
        return Depth { max: 1, submit: 1, complete_min: 1, complete_max: None, low: 1 };
    }
    let max = wanted.depth.max(1);
    let given = |number: Option<u32>| number.filter(|number| *number > 0).map(|number| number.min(max));
    // 0 is as many as there is room for.
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
    fn each_io_is_submitted_by_itself_unless_asked_for_otherwise() {
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
