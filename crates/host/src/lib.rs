//! Facts about this machine and its disks, as plain values.
//!
//! Invariant: probing changes nothing. Nothing is written, created or locked here, and an unknown fact is `None` or
//! absent from a list, never a guess.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod activity;
mod bmc;
pub mod claims;
pub mod device;
mod directories;
pub mod energy;
pub mod file_system;
pub mod health;
pub mod identity;
pub mod limits;
pub mod machine;
pub mod page_cache;
pub mod pci;
mod quota;
pub mod reading;
pub mod samples;
pub mod signature;
pub mod storage_stack;
pub mod target;
pub mod users;

#[cfg(test)]
mod testing;

pub use activity::DiskWatch;
pub use claims::Claim;
pub use device::{DeviceFacts, System};
pub use energy::EnergyMeter;
pub use file_system::FileSystemFacts;
pub use health::{Health, health};
pub use identity::DeviceIdentity;
pub use limits::{FrequencyLimit, IoLimit, Limits};
pub use machine::Machine;
pub use page_cache::{PageCacheUse, PageCacheWatch};
pub use pci::{PciDevice, PciLink};
pub use quota::QuotaFacts;
pub use reading::{DirtyReading, HostMeter, HostReading, HostTotals, Pressure, memory_available_bytes};
pub use samples::Samples;
pub use storage_stack::{Layer, LayerKind, StorageStack};
pub use target::{Prober, TargetFacts, TargetKind};
pub use users::Users;

// Types of other crates that are part of this crate's values.
pub use fiord_device::nvme::WRITTEN_UNIT_BYTES;
pub use fiord_device::nvme_power::PowerStates;
pub use fiord_device::{
    CounterSample, Device, DeviceUse, DiskCounters, DiskUse, EnergyUse, FailureWarning, HealthLog,
    RequestQueue,
};
pub use fiord_sys::library::CAN_LOAD;
pub use fiord_sys::library::cufile::Ways as GpuWays;
pub use fiord_sys::procfs::{CpuTicks, MachineTraffic, ProcessIo};
pub use fiord_sys::quota::QuotaOf;
pub use fiord_sys::stat::{DeviceNumber, DirectAlignment, DirectSupport};
