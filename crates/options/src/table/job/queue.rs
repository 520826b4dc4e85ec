//! How I/O is issued, and how much of it at a time.
//!
//! Invariant: an engine's private options are declared in `engine/`.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// The engine and its depth.
    pub struct Queue, scope Scope::Job;

    "Engine and depth" {
        /// Engine: the interface through which I/O is issued.
        ///
        /// `fiord --enghelp` lists the engines, `--enghelp=ENGINE` the options of one.
        ///
        /// Example: `ioengine=io_uring`.
        ioengine: EngineName = "psync";
        /// I/Os kept in flight.
        ///
        /// A synchronous engine always has one I/O in flight. The depths that were actually reached are in the report.
        ///
        /// Example: `ioengine=io_uring` with `iodepth=32`.
        iodepth: u32 = 1, in 1..=U32;
        /// Maximum number of I/Os submitted by one system call. 0 means `iodepth`.
        ///
        /// With the default of 1, each I/O is submitted by its own call, as in fio.
        ///
        /// Example: `iodepth=32` with `iodepth_batch=8`.
        iodepth_batch | iodepth_batch_submit: u32 = 1, in 0..=U32;
        /// Minimum number of completions to wait for at a time. 0 does not wait while more I/Os can be submitted.
        ///
        /// Example: `iodepth=32` with `iodepth_batch_complete_min=8`.
        iodepth_batch_complete_min | iodepth_batch_complete: u32 = 1, in 0..=U32;
        /// Maximum number of completions to reap at a time.
        ///
        /// By default, `iodepth_batch_complete_min`; if neither is given, all that have completed, while reports count
        /// depths and completions as in fio, which reaps one at a time.
        iodepth_batch_complete_max: u32, in 0..=U32;
        /// Depth the queue drains to before more I/Os are submitted; `iodepth` by default.
        ///
        /// Example: `iodepth=32` with `iodepth_low=8` lets the queue drain to 8 before it is filled again.
        iodepth_low: u32, in 0..=U32;
        /// Keep overlapping I/Os from being in flight together.
        ///
        /// An I/O that overlaps one in flight, in the same file, waits until that one has completed.
        ///
        /// Example: `rw=randwrite` with `norandommap`, `iodepth=32` and `serialize_overlap=1`.
        serialize_overlap: bool = 0, in 0..=1;
        /// Which threads execute I/O: the job's own, or a pool of `iodepth` threads.
        ///
        /// With `offload` the job's thread only generates, paces and counts I/Os, so that a slow one does not delay the
        /// next: the total latency (`lat`) begins when an I/O is due, the completion latency (`clat`) when a thread of
        /// the pool starts it. Each thread has one I/O in flight, with any engine; `sync` and `vsync`, which move the
        /// file position, have a pool of one thread.
        ///
        /// Example: `ioengine=psync` with `iodepth=16`, `rate_iops=1000` and `io_submit_mode=offload`.
        io_submit_mode: IoSubmitMode = "inline";
    }
}
