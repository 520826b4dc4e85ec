//! How fast a job goes: pauses, rates, and limits of latency.
//!
//! Invariant: rates are per worker.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Rates, pauses and limits of latency.
    pub struct Pace, scope Scope::Job;

    "Rate" {
        /// Pause between I/Os.
        ///
        /// Example: `thinktime=500` and `thinktime=500us` are half a millisecond.
        thinktime: Micros = 0;
        /// Part of `thinktime` spent in a busy loop; the worker sleeps for the rest.
        thinktime_spin: Micros = 0;
        /// Iterations of a busy loop between I/Os.
        thinkcycles: u32 = 0, in 0..=U32;
        /// I/Os between two pauses.
        ///
        /// Example: `thinktime=10ms` with `thinktime_blocks=16` pauses after every 16 I/Os.
        thinktime_blocks: u32 = 1, in 0..=U32;
        /// Whether `thinktime_blocks` counts issues or completions.
        thinktime_blocks_type: ThinktimeBlocksType = "complete";
        /// Time between two pauses, instead of a number of I/Os.
        thinktime_iotime: Seconds = 0;
        /// Bandwidth limit per worker, in bytes per second; 0 for none.
        ///
        /// One for all, or one each for reads, writes and trims (`1m,500k`, `,1m`).
        ///
        /// Example: `rate=10m` is 10 MiB a second.
        rate: PerDirection<Bytes> = 0;
        /// Bandwidth below which the job is stopped, in bytes per second; 0 for none.
        ///
        /// Example: `rate=10m` with `rate_min=8m`.
        rate_min | ratemin: PerDirection<Bytes> = 0;
        /// Limit of I/Os per second, per worker; 0 for none.
        ///
        /// Blocks of all sizes count alike. Example: `rate_iops=1000`.
        rate_iops: PerDirection<u32> = 0, in 0..=U32;
        /// I/Os per second below which the job is stopped; 0 for none.
        ///
        /// Checked once every `rate_cycle`, after the first two seconds.
        rate_iops_min: PerDirection<u32> = 0, in 0..=U32;
        /// How the I/Os of a rate are spaced.
        rate_process: RateProcess = "linear";
        /// What happens to I/Os that are due while others are late. Not an option of fio.
        ///
        /// `closed`: an I/O is due one interval after the one before it, and the job catches up. `open`: I/Os arrive
        /// whatever the device does, and wait in a queue of 65536 per direction. The report counts the I/Os that were
        /// never issued: those that arrived when the queue was full, and those still waiting at the end. A synchronous
        /// engine issues one at a time, and a queued one up to `iodepth`; the others wait.
        ///
        /// Example: `rate_iops=1000` with `rate_process=poisson` and `rate_arrivals=open`.
        rate_arrivals: RateArrivals = "closed";
        /// Whether time spent in `thinktime` is left out of the rate.
        ///
        /// By default, the job catches up with its rate after a pause.
        rate_ignore_thinktime: bool = 0, in 0..=1;
        /// Window over which `rate_min` and `rate_iops_min` are checked, in milliseconds.
        rate_cycle | ratecycle: u32 = 1000, in 0..=U32;
    }

    "Latency" {
        /// Stop the job when an I/O takes longer than this.
        ///
        /// Example: `max_latency=100ms`.
        max_latency: PerDirection<Micros> = "";
        /// Find the highest depth, up to `iodepth`, at which I/Os take no longer than this.
        ///
        /// The job begins at depth 1 and doubles it after each `latency_window` in which `latency_percentile` of its
        /// I/Os met the target, then halves the gap to the lowest depth that missed it. It ends when the depth is found,
        /// and reports what was measured at that depth, or at the end of `runtime`. With `latency_percentile=100` an
        /// I/O that takes longer fails the job, as under `max_latency`.
        latency_target: Micros = 0;
        /// Time for which each depth is tried.
        latency_window: Micros = 0;
        /// Share of I/Os that must meet `latency_target`, in percent.
        latency_percentile: FloatList = 100, in 0..=100;
        /// Continue after the depth was found, and lower it when `latency_target` is missed.
        latency_run: bool = 0, in 0..=1;
    }
}
