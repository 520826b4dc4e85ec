//! Where the time of I/O goes, from the kernel's counters: processors per second, and the time of the jobs' threads by
//! part.
//!
//! Invariant: pure. Readings and recorded text in, values out; the parts of a time always add up to the whole.

pub mod delay;
pub mod second;
pub mod split;

pub use delay::{DelayReading, ThreadDelays};
pub use second::{DiskTotals, ProcessorTicks, Reading, Second};
pub use split::{InFlight, Part, Source, SplitInput, TimeSplit};

/// What was observed of one run beside its report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The counters at the beginning, about once a second, and at the end.
    pub readings: Vec<Reading>,
    /// For how long the jobs' threads waited for a processor, in nanoseconds; `None` if that is not known.
    pub processor_wait_ns: Option<u64>,
    /// What could not be observed, and what to do: a sentence each, without a full stop.
    pub lacking: Vec<String>,
}
