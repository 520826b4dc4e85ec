//! The kernel's tracepoints: pages of its ring buffer, records in them; of the block layer, records as events, and events as
//! requests.
//!
//! Invariant: what the kernel has written is not trusted to be whole; nothing here panics on it.

pub mod event;
pub mod format;
pub mod matching;
pub mod queues;
pub mod quick_map;
pub mod ring;

pub use event::{BlockEvent, EventFormats, Operation, Step};
pub use matching::{Completed, Matching};
pub use queues::EventQueues;
pub use ring::Page;
