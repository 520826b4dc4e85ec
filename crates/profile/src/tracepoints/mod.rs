//! The tracepoints of the block layer: pages of the kernel's ring buffer, records in them as events, events as requests.
//!
//! Invariant: what the kernel has written is not trusted to be whole; nothing here panics on it.

pub mod event;
pub mod matching;
pub mod ring;

pub use event::{BlockEvent, EventFormats, Operation, Step};
pub use matching::{Completed, Matching};
pub use ring::Page;
