//! The offsets of operations: one file per kind of order.
//!
//! Invariant: every operation is within its file's region.

mod map;
pub(crate) mod order;
pub(crate) mod permutation;
pub(crate) mod placer;
mod region;
mod spread;
mod strided;
