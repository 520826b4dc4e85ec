//! Executes jobs, and runs made of jobs. Of fiord's stages this is the only one with side effects.
//!
//! Invariant: measured results are never lost. Whatever ends a worker (its size, its time, a signal, an error, a
//! panic), it has a report that states why it ended.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]
#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "new actions must be handled wherever actions are distinguished"
)]

mod alloc_guard;
mod control_groups;
mod debug;
mod failure;
mod files;
mod flow;
mod hot;
mod job;
mod live;
mod log_sink;
mod report;
mod run;
mod run_state;
mod self_cost;
#[cfg(test)]
mod source_tests;
mod states;
#[cfg(test)]
#[allow(dead_code, reason = "shared with the tests in tests/")]
#[path = "../tests/common/mod.rs"]
mod test_jobs;
mod timekeepers;

/// Hand-made jobs, shared with the tests in `tests/`.
#[cfg(test)]
extern crate self as fiord_worker;

pub use alloc_guard::{leave_no_alloc, no_alloc};
pub use debug::DebugLog;
pub use failure::Failure;
pub use files::cache_growth::CacheGrowth;
pub use files::target_opener::{Replacement, TargetOpener};
pub use hot::own_time::OwnTime;
pub use job::engines::{ENGINES, RunnableEngine};
pub use live::{Counters, State};
pub use log_sink::LogSink;
pub use report::{EndReason, Remark, RunResult, WorkerReport};
pub use run::coordinator::run;
pub use run::progress::{View, WorkerView};
pub use run::published::{JobProgress, PublishedProgress};
pub use run::trigger::TriggerWatch;
pub use run::watcher::{Gate, Moment, Watcher};
pub use self_cost::{IoCost, SelfCost, cost_per_io, self_cost};
pub use states::States;
