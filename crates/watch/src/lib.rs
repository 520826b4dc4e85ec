//! What the disks of a running system do, who makes them, and what stands out, from the kernel's tracepoints and counters.
//!
//! Invariant: pure. Requests and counters in, tables and sentences out; adds no I/O.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod conclusion;
mod evidence;
pub mod figures;
pub mod issuer;
mod layers;
pub mod observation;
pub mod tables;
mod who;
mod workers;

pub use conclusion::conclusions;
pub use evidence::Conclusion;
pub use figures::{DeviceFigures, IssuerFigures, OperationFigures, ProbeFigures};
pub use issuer::{Issuer, IssuerKind, Party};
pub use observation::{Dirtier, Limit, Observation, Resync, WatchedDevice};
