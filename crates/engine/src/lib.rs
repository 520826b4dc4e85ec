//! The engines: each turns an operation into system calls, all by one contract.
//!
//! Invariant: a buffer in flight cannot be touched; a `Slot` is the right to it and moves with the operation.

pub mod blocking;
pub mod contract;
pub mod hint;
pub mod io_uring;
pub mod libaio;
mod lookout;
pub mod mmap;
pub mod null;
pub mod offer;
pub mod psync;
pub mod pvsync;
pub mod pvsync2;
pub mod refused;
pub mod registry;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
pub mod sync;
pub mod vsync;

mod direct;
mod ended;
mod files;
mod sigbus;

pub use contract::{Arena, Buffers, Completion, Engine, Info, Outcome, QueuedEngine, Slot, SyncEngine, Wait};
pub use hint::hint;
pub use io_uring::IoUring;
pub use libaio::Libaio;
pub use mmap::{MapUse, Mmap};
pub use null::Null;
pub use offer::{Feature, Offer, offer};
pub use psync::Psync;
pub use pvsync::Pvsync;
pub use pvsync2::Pvsync2;
pub use refused::Refused;
pub use sync::Sync;
pub use vsync::Vsync;
