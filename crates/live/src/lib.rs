//! The live views of a run and of watching: a value in, a frame of characters out.
//!
//! Invariant: pure. No clock, no file, no terminal: `fiord` reads counters into a [`Model`] and writes the frame out.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod draw;
mod heat;
mod model;
mod page;

pub use draw::draw;
pub use heat::{HeatMap, Second};
pub use model::{Cpu, DeviceRow, DirectionRow, JobRow, Model};
pub use page::{Page, draw_page};
