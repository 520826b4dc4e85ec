//! Turns a job of the plan into its stream of operations: direction, file, offset, length, and buffer contents.
//!
//! Invariant: pure. No file, no clock, no system call; the stream depends only on the plan and its seed.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod barrier;
mod buffer;
mod cycles;
mod dedupe;
mod direction;
mod error;
mod files;
mod offset;
mod open_files;
mod passes;
mod priority;
mod ranged_trims;
mod size;
mod source;
mod sprandom;
mod stream;
mod substream;
mod verify;
mod zoned;

pub use buffer::Filler;
pub use cycles::CycleSource;
pub use error::WorkloadError;
pub use priority::PriorityDraw;
pub use ranged_trims::RangedTrims;
pub use source::{OperationSource, Rejected, Source, Supply};
pub use sprandom::SprandomSource;
pub use stream::Stream;
pub use substream::random_seeds;
pub use verify::VerifySource;
pub use zoned::{ZoneDevice, ZoneLayout, ZoneTable, ZoneWaiters, ZonedSource, ZonedTarget};
