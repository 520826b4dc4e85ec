//! The parts of the compat suite: cases, runs of the two programs, comparisons, and the runner.
//!
//! Invariant: fio and fiord are only run as programs; nothing here links a crate of fiord.

pub mod case;
pub mod compare;
pub mod drive;
pub mod pending;
pub mod program;
pub mod raw;
pub mod runner;
pub mod shape;
pub mod verdict;
pub mod versions;

pub use case::{Case, Contents, Needs, case};
pub use program::{Pair, Ran};
