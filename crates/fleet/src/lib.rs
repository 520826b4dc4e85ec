//! Runs on many hosts as one: which hosts there are, when they start, what they did together, who is slow.
//!
//! Invariant: pure. How hosts are reached, and what clocks and sockets say, comes in as values; text and values go out.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod clock;
mod findings;
pub mod hosts;
pub mod interval;
pub mod member;
pub mod model;
pub mod order;
pub mod outliers;
pub mod over_time;
pub mod render;
pub mod report;
pub mod run;
pub mod start;
#[cfg(test)]
mod testing;
pub mod window;

pub use clock::{ClockFit, Ping};
pub use hosts::Host;
pub use interval::Interval;
pub use member::{Done, Member};
pub use model::{FleetReport, FleetSettings, Starts};
pub use order::Order;
pub use outliers::Outlier;
pub use over_time::OverTime;
pub use run::{Fate, HostFacts, HostLogs, HostRun, StageStart, TargetFacts, alike};
pub use window::CommonWindow;
