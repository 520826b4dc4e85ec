//! Zoned targets: their zones, which all jobs of a run share, and the operations of a job on them.
//!
//! Invariant: a zone is written at its write pointer only.

mod claims;
mod file;
mod source;
mod step;
mod table;
mod waiters;

pub use file::ZonedTarget;
pub use source::ZonedSource;
pub(crate) use step::Batch;
pub(crate) use table::divisor;
pub use table::{ZoneDevice, ZoneLayout, ZoneTable};
pub use waiters::ZoneWaiters;
