//! Block devices, their counters and their health, and the energy of the machine, as plain values, and the parsers of what
//! disks and the controller of the machine answer.
//!
//! Invariant: nothing here depends on how values are obtained: the crate that reads `/sys` and asks disks, those that judge
//! and those that print share one description without linking system calls.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod ata;
mod counters;
mod device;
mod energy;
mod health;
pub mod ipmi;
pub mod nested;
pub mod nvme;
pub mod nvme_namespace;
pub mod nvme_power;
pub mod scsi;
mod usage;

pub use counters::DiskCounters;
pub use device::{Device, RequestQueue};
pub use energy::{EnergyScope, EnergyUse};
pub use health::{FailureWarning, HealthLog};
pub use usage::{CounterSample, DeviceUse, DiskUse};
