//! The one room that talks to the kernel: system calls, `/proc`, `/sys` and the processor's clock, behind a safe API.
//!
//! Invariant: nothing here knows what a job is. A function takes plain values, makes one kind of call, and returns
//! plain values or the kernel's error; policy (what to try next, what to tell the user) lives with the callers.
//!
//! Where a call can only be judged by its caller (a read into a raw pointer, a buffer handed to the kernel until its
//! completion), the function is `unsafe` and its contract is written above it.

#[cfg(not(target_os = "linux"))]
compile_error!("fiord talks to the Linux kernel only");

pub mod aio;
#[cfg(feature = "watched")]
pub mod allocator;
pub mod blkdev;
pub mod clock;
pub mod errno;
pub mod file;
pub mod futex;
pub mod map;
pub mod memory;
pub mod pagecache;
pub mod process;
pub mod procfs;
pub mod reserve;
pub mod signal;
pub mod spawn;
pub mod stat;
pub mod sysfs;
pub mod thread;
pub mod transfer;
pub mod tty;
pub mod uring;
pub mod whereabouts;

#[cfg(test)]
mod testing;

pub use clock::Clock;
pub use errno::Errno;
