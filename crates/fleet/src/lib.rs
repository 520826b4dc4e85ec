//! Runs on many hosts as one: which hosts there are, when they start, what they did together, who is slow.
//!
//! Invariant: pure. How hosts are reached, and what clocks and sockets say, comes in as values; text and values go out.

pub mod clock;
pub mod hosts;
pub mod order;
pub mod render;
pub mod report;
pub mod run;
pub mod start;

pub use clock::{ClockFit, Ping};
pub use hosts::Host;
pub use order::Order;
pub use report::{FleetReport, FleetSettings};
pub use run::{Fate, HostFacts, HostRun, StageStart, TargetFacts};
