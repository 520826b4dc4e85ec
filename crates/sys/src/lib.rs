//! System calls, `/proc`, `/sys` and the processor's clock behind a safe API. Calls that `rustix` has are made through
//! it; for others the reason for each `unsafe` block is given above it.
//!
//! Invariant: nothing here knows what a job is. A function takes plain values, makes one kind of call, and returns
//! plain values or the kernel's error; policy (what to try next, what to tell the user) lives with the callers.
//!
//! A function whose safety depends on its caller (a read into a raw pointer, a buffer that the kernel uses until its
//! completion) is `unsafe`, with its contract in its documentation.

#![allow(unsafe_code, reason = "system calls are made here; each block says why it is sound")]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

#[cfg(not(target_os = "linux"))]
compile_error!("fiord talks to the Linux kernel only");

pub mod aio;
#[cfg(feature = "observed-allocator")]
pub mod allocator;
pub mod blkdev;
pub mod cgroup;
pub mod channel;
pub mod clock;
pub mod counter_file;
mod cpu_model;
pub mod descriptors;
pub mod device_mapper;
pub mod errno;
pub mod extents;
pub mod file;
pub mod futex;
pub mod io_group;
pub mod ipmi;
pub mod landlock;
pub mod library;
pub mod map;
pub mod memory;
pub mod mtd;
pub mod names;
pub mod nvme;
pub mod open_names;
pub mod pagecache;
pub mod persistent;
pub mod pipe;
pub mod poll;
pub mod posix_aio;
pub mod process;
pub mod processes;
pub mod procfs;
pub mod quota;
pub mod reserve;
pub mod resize;
pub mod scsi;
pub mod sealed_map;
pub mod sg;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod stat;
mod stock;
pub mod sysfs;
pub mod system;
pub mod thread;
pub mod thread_activity;
pub mod tracefs;
pub mod transfer;
pub mod tty;
#[cfg(target_pointer_width = "64")]
pub mod uring;
pub mod width;
pub mod zones;

#[cfg(test)]
mod testing;

pub use clock::Clock;
pub use errno::Errno;
