//! How fast a job may go: rates, minimum rates and think time.
//!
//! Invariant: a job without limits has `Pace::default()`, and the loop then never reads a clock for it.

use crate::access::{Direction, PerDirection};

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

/// The latency that the queue depth is adjusted to (`latency_target`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// I/Os take at most this.
    pub target_ns: u64,
    /// Time for which a depth is tried.
    pub window_ns: u64,
    /// Share of I/Os that must meet it, in percent.
    pub percentile: f64,
    /// The job continues when the depth is found.
    pub continues: bool,
}

/// A job's share of the I/Os of a flow, which keeps jobs in proportion to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Number of the flow; jobs with the same number share it.
    pub id: u32,
    /// Weight of the job, at least 1.
    pub weight: u32,
    /// Time until a job that is ahead checks again.
    pub sleep_us: u32,
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
    /// Arrivals go on while I/Os are late, up to a bound (else they wait for the one before).
    pub open: bool,
    /// Do not catch up for time spent thinking.
    pub ignore_think_time: bool,
    /// Think time.
    pub think: Option<Think>,
    /// Share of a flow.
    pub flow: Option<Flow>,
    /// Wake before an I/O is due, and poll the clock for the rest: there is a processor for each job of the run, so that
    /// none waits while another polls.
    pub wakes_early: bool,
}

impl Pace {
    /// Whether the I/Os of a direction have intended starts, by a rate.
    pub fn has_rate(&self, direction: Direction) -> bool {
        self.bytes_per_s[direction.index()].is_some() || self.ios_per_s[direction.index()].is_some()
    }

    /// Whether any direction has a rate.
    pub fn has_rates(&self) -> bool {
        Direction::ALL.into_iter().any(|direction| self.has_rate(direction))
    }
}
