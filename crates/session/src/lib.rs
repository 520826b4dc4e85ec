//! Carries out plans: a plan in, a stream of events and a report out.
//!
//! Invariant: prints nothing, and knows neither terminals, nor command lines, nor exit statuses. Whoever shows a run is told
//! of it (`run::event`), and decides nothing.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]

pub mod claims;
mod error;
pub mod run;

pub use error::SessionError;
