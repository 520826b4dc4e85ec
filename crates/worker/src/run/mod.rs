//! A run made of jobs: stages, supervision, sampling, and its view for observers.
//!
//! Invariant: every job of the plan gets a report, including one that never started and one that hangs.

mod aggregate_sampler;
pub(crate) mod coordinator;
mod group;
#[cfg(test)]
mod group_tests;
mod io_done;
mod layout_thread;
mod minimum_rates;
mod periodic_request;
pub(crate) mod progress;
pub(crate) mod published;
mod rules;
mod sampler;
mod steady_state;
pub(crate) mod trigger;
mod watchdog;
pub(crate) mod watcher;
mod window;
