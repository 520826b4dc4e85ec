//! The engines: each turns operations into system calls, under one contract.
//!
//! Invariant: a buffer in flight cannot be touched; a `Slot` is the right to it and moves with the operation.

#![allow(unsafe_code, reason = "buffers are lent to the kernel; each block says why it is sound")]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(
    not(target_pointer_width = "64"),
    allow(dead_code, reason = "what only the engines over rings use")
)]
#![deny(clippy::wildcard_enum_match_arm, reason = "each engine must handle new actions and outcomes")]

pub mod boxed;
pub mod contract;
pub mod definition;
#[macro_use]
pub mod engines;
pub mod error_hint;
pub mod gpu_buffers;
pub mod offload;
pub mod read_write;
pub mod registry;
#[cfg(target_pointer_width = "64")]
pub mod ring_support;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
pub mod setup_error;

mod adaptive_poll;
mod attached_files;
mod by_name;
mod ceph;
mod connection;
mod connection_engine;
mod gluster;
mod gpu_errors;
mod library_engine;
mod local_completions;
mod name_lookup;
mod nvme_placement;
mod nvme_protection;
mod nvme_target;
mod persistent_memory;
mod priorities;
mod rdma_connection;
mod rdma_message;
mod remote;
#[cfg(target_pointer_width = "64")]
mod ring_queue;
#[cfg(target_pointer_width = "64")]
mod ring_trims;
mod scsi_command;
mod sigbus;
mod sync_and_trim;

pub use attached_files::AttachedFiles;
pub use boxed::{BoxedQueued, BoxedSync, LentQueued, LentSync};
pub use ceph::ClusterSettings;
pub use contract::{
    Arena, ArenaAccess, Completion, Engine, Executed, NamedTarget, Outcome, QueuedEngine, Slot, SyncEngine,
    Wait,
};
pub use definition::{EngineDefinition, JobOutline, Setup, Visitor};
pub use error_hint::error_hint;
pub use gpu_buffers::{GpuMemory, WithGpu};
pub use offload::offload;
pub use read_write::ReadWriteEngine;
#[cfg(target_pointer_width = "64")]
pub use ring_support::{RingFeature, RingSupport, ring_support};
pub use setup_error::SetupError;
