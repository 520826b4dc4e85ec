//! The engines from outside, on real files and devices.
//!
//! Invariant: what this machine lacks is a skip, printed and counted; everything else fails or passes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests panic, and tell what they skip")]

mod allocations;
mod common;
mod devices;
mod files;
mod flight;
mod refusals;
