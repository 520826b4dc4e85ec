//! When a job runs, for how long, and which clock says so.
//!
//! Invariant: every time is held in microseconds, whatever unit it was given in.

use crate::table::set::{U32, U64, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// When it runs, and for how long.
    pub struct Time, scope Scope::Job;

    "Time" {
        /// Stop the job after this time.
        ///
        /// The job ends earlier if it has transferred its `size`, unless `time_based` is set. 0 sets no limit.
        ///
        /// Example: `runtime=30` and `runtime=30s` are half a minute, `runtime=5m` five minutes.
        runtime | timeout: Seconds = 0;
        /// Run until `runtime` has elapsed, starting over each time the files have been covered.
        ///
        /// Example: `size=1g`, `runtime=60` and `time_based` cover 1 GiB repeatedly for a minute.
        time_based: Flag = 0;
        /// Wait this long before the job starts.
        ///
        /// Given a range (`5-10`), each worker waits for a random time within it.
        ///
        /// Example: `startdelay=5` waits five seconds.
        startdelay: StartDelay = 0;
        /// Run this long before anything is counted.
        ///
        /// This time is added to `runtime`. It lets caches, write buffers and rates settle.
        ///
        /// Example: `ramp_time=10` with `runtime=60` takes 70 seconds, of which the last 60 are counted.
        ramp_time: Seconds = 0;
        /// Transfer this much before anything is counted.
        ///
        /// Bytes, percent or zones. Example: `ramp_size=1g`.
        ramp_size: Size, in 1..=U64;
        /// Clock that times are read from.
        ///
        /// By default, the processor's counter (the time-stamp counter, or the generic timer of ARM) if it is stable and
        /// synchronised between CPUs, otherwise the system's monotonic clock.
        ///
        /// Example: `clocksource=clock_gettime`.
        clocksource: ClockSource;
        /// Read the clock as rarely as possible.
        ///
        /// Sets `disable_clat`, `disable_slat` and `disable_lat`, so that the report has no latencies. Bandwidth is
        /// still sampled.
        gtod_reduce: bool = 0, in 0..=1;
        /// CPU of a thread that does nothing but keep the time for the job.
        ///
        /// The job copies the time from memory instead of reading a clock. No job of the run is run on that CPU. This
        /// replaces `clocksource`. It pays only where reading a clock is slow (`clocksource=hpet` of a virtual machine);
        /// while something else runs on that CPU, the time stands still.
        ///
        /// Example: `gtod_cpu=3`.
        gtod_cpu: u32, in 0..=U32;
        /// Clock that `job_start` in the JSON report is read from, as a clock number of `clock_gettime`.
        ///
        /// Example: `job_start_clock_id=1` is the monotonic clock.
        job_start_clock_id: u32 = 0, in 0..=U32;
    }
}
