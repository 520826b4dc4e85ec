//! Zoned targets: their zones, which all jobs of a run share, and the operations of a job on them.
//!
//! Invariant: a zone is written at its write pointer only.

mod file;
mod source;
mod table;

pub use file::ZonedTarget;
pub(crate) use source::Batch;
pub use source::ZonedSource;
pub(crate) use table::divisor;
pub use table::{ZoneDevice, ZoneLayout, ZoneTable};
