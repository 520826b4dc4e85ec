//! What this machine and its disks are, as plain values for those who plan, judge and report.
//!
//! Invariant: looking changes nothing. Nothing is written, created or locked here, and what cannot be found out is
//! `None` or absent from a list, never a guess.

pub mod activity;
pub mod chain;
pub mod claims;
pub mod device;
pub mod machine;
pub mod signature;
pub mod target;
pub mod users;

#[cfg(test)]
mod testing;

pub use activity::{DiskCounters, DiskFigures, DiskUse, DiskWatch};
pub use chain::{Chain, Link, Stage};
pub use claims::Claim;
pub use device::{DeviceFacts, System};
pub use machine::Machine;
pub use target::{FileSystemFacts, Prober, TargetFacts, TargetKind};
pub use users::Users;

// Values of sys that stand in ours.
pub use fiord_sys::stat::{DeviceNumber, DirectAlignment, DirectSupport};
pub use fiord_sys::sysfs::{IoCounters, Queue};
