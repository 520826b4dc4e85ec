//! What a run measures: counters, latencies, histograms, samples, and the random sources the workload draws from.
//!
//! Invariant: every accumulator has a zero (`Default`) and a `merge` that is associative and commutative, so that
//! the order in which workers finish never shows in a result.

pub mod depth;
pub mod distribution;
pub mod histogram;
pub mod job;
pub mod latency;
pub mod log;
pub mod random;
pub mod running;
pub mod series;

pub use depth::{BatchMap, DepthMap};
pub use distribution::Distribution;
pub use histogram::Histogram;
pub use job::{DirectionStats, JobStats, SyncStats, Usage};
pub use latency::Latency;
pub use log::{JobLogs, LogSettings, LoggedIo};
pub use random::Random;
pub use running::Running;
pub use series::{SampleFigures, Samples};
