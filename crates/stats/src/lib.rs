//! The measurements of a run: counters, latencies, histograms, samples; and the random sources of the workload.
//!
//! Invariant: every accumulator has a zero (`Default`) and a `merge` that is associative and commutative, so that
//! the order in which workers finish never shows in a result.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod block_lifetimes;
pub mod capped;
pub mod count;
pub mod depth;
pub mod gather;
pub mod histogram;
pub mod job;
pub mod job_timeline;
pub mod latency;
pub mod latency_distribution;
pub mod log;
pub mod moments;
pub mod order_by;
pub mod progress;
pub mod random;
pub mod ranks;
pub mod repeats;
pub mod run_latencies;
pub mod series;
pub mod steady;
pub mod steady_part;
pub mod student;
pub mod timeline;
pub mod windows;

pub use block_lifetimes::{BlockLifetimes, BlockState};
pub use capped::Capped;
pub use count::{Count, Counts};
pub use depth::{BatchMap, DepthMap};
pub use gather::Gather;
pub use histogram::Histogram;
pub use job::{DirectionStats, JobStats, PriorityLatency, RampEnd, SyncStats, Usage, syncs_each_write};
pub use job_timeline::{DirectionTotals, JobTimeline, JobTotals};
pub use latency::Latency;
pub use latency_distribution::LatencyDistribution;
pub use log::{JobLogs, LogEntries, LogSettings, LoggedIo};
pub use moments::Moments;
pub use order_by::OrderBy;
pub use progress::{CoarseHistogram, DetailedProgress, DirectionProgress};
pub use random::Random;
pub use ranks::Ranks;
pub use repeats::{Difference, Summary};
pub use run_latencies::{JobPart, PartLatencies, RunLatencies};
pub use series::{SampleFigures, Samples};
pub use steady::{Steadiness, SteadyMeasure, SteadyRule, SteadySample, SteadyState, SteadyWindow};
pub use steady_part::{ProgressSample, RunSteadiness, SteadyPart};
pub use timeline::{MachineWindow, ProcessorShares, Timeline, TimelineRecorder, TimelineWindow};
pub use windows::{MeanError, Window};
