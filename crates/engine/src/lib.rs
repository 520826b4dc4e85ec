//! The engines: each turns an operation into system calls, all by one contract.
//!
//! Invariant: a buffer in flight cannot be touched; a `Slot` is the right to it and moves with the operation.

pub mod contract;
