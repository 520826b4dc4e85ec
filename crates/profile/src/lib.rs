//! Where the time of I/O goes, from the kernel's counters, tracepoints and samples: processors per second, requests, the time
//! of the jobs' threads by part, flame graphs.
//!
//! Invariant: pure. Readings and recorded text in, values out; the parts of a time always add up to the whole.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod delay;
pub mod flame;
pub mod second;
pub mod split;
pub mod stacks;
pub mod trace;
pub mod tracepoints;

pub use delay::{DelayReading, ThreadDelays};
pub use second::{DiskTotals, ProcessorTicks, Reading, Second};
pub use split::{InFlight, OwnTimes, Part, Source, SplitInput, TimeSplit};
pub use stacks::Stacks;
pub use trace::RequestTimes;

/// What was observed of one run beside its report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The counters at the beginning, about once a second, and at the end.
    pub readings: Vec<Reading>,
    /// What of the time of the jobs' threads was no I/O; `None` if that is not known.
    pub own: Option<OwnTimes>,
    /// For how long the jobs' threads waited for a processor, in nanoseconds; `None` if that is not known.
    pub processor_wait_ns: Option<u64>,
    /// The requests to the disks; `None` if they were not traced.
    pub requests: Option<RequestTimes>,
    /// Samples of the jobs' threads; `None` if there are none.
    pub stacks: Option<Stacks>,
    /// What could not be observed, and what to do: a sentence each, without a full stop.
    pub lacking: Vec<String>,
}
