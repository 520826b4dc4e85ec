//! How fast a job may go: rates, minimum rates and think time.
//!
//! Invariant: a job without limits has `Pace::default()`, and the loop then never looks at a clock for it.

use crate::access::PerDirection;

/// When a job pauses on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Think {
    /// Pause in all.
    pub pause_us: u64,
    /// Part of it spent spinning.
    pub spin_us: u64,
    /// Work cycles of `thinkcycles` done before it.
    pub cycles: u64,
    /// I/Os between pauses; 0 when only time counts.
    pub every_ios: u32,
    /// Counted when issued (else when completed).
    pub count_issued: bool,
    /// Pause after this much I/O time too; 0 when only I/Os count.
    pub io_time_us: u64,
}

/// Rate limits of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pace {
    /// Bytes per second, per direction.
    pub bytes_per_s: PerDirection<Option<u64>>,
    /// I/Os per second, per direction.
    pub ios_per_s: PerDirection<Option<u64>>,
    /// Fail the job when slower than this over a cycle.
    pub min_bytes_per_s: PerDirection<Option<u64>>,
    /// Fail the job when slower than this over a cycle.
    pub min_ios_per_s: PerDirection<Option<u64>>,
    /// Length of that cycle.
    pub cycle_ms: u64,
    /// Arrivals drawn from a Poisson process (else evenly spaced).
    pub poisson: bool,
    /// Do not catch up for time spent thinking.
    pub ignore_think_time: bool,
    /// Think time.
    pub think: Option<Think>,
}
