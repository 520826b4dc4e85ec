//! A plan's job to the stream of its operations: which direction, which file, where and how long, and what the
//! buffers hold.
//!
//! Invariant: pure. No file, no clock, no system call; the whole stream follows from the plan and its seed.

mod barrier;
mod buffer;
mod direction;
mod files;
mod offset;
mod passes;
mod size;
mod stream;

pub use buffer::Filler;
pub use stream::{Stream, WorkloadError};
