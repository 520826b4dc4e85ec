//! Tables of runs as files that databases read: Parquet, and InfluxDB's line protocol.
//!
//! Invariant: the kind of a column is declared and never guessed from its cells, so that files of different days have the same
//! columns with the same types.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod directions;
mod line;
mod parquet;
mod thrift;
mod typed;

pub use directions::{direction_cells, direction_columns, read_direction_cells};
pub use line::line_protocol;
pub use parquet::{TooLarge, parquet};
pub use typed::{Kind, TypedTable};
