//! The engines from outside, on real files and devices.
//!
//! Invariant: a missing feature of the machine is a skip, recorded and counted; everything else fails or passes.

#![allow(unsafe_code, reason = "tests drive the engines' unsafe interface")]
#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod allocations;
mod common;
mod devices;
mod documentation;
mod files;
mod in_flight;
mod setup_errors;
