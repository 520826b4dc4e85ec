//! When a job ends because a measure has become steady.
//!
//! Invariant: a window has at least one measurement, and all of them are of the same length.

pub use fiord_options::value::{SteadyCriterion, SteadyLimit, SteadyMeasure};

/// The steady state that ends a job, or all jobs of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// What must be steady.
    pub criterion: SteadyCriterion,
    /// Length of the window that is judged, in seconds.
    pub duration_s: u64,
    /// Time before the first measurement.
    pub ramp_ns: u64,
    /// Length of one measurement.
    pub interval_ns: u64,
}
