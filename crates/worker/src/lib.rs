//! One job's life, and a run made of jobs: the only impure arrow of the house.
//!
//! Invariant: results measured are never lost. Whatever ends a worker (its size, its time, a signal, an error, a
//! panic), its report is there, and says why it ended.

mod claim;
mod director;
mod door;
mod failure;
mod files;
mod gate;
mod hot;
mod layout;
mod life;
mod live;
mod monitor;
mod patience;
mod person;
mod progress;
mod record;
mod run;
mod scene;
mod seal;
mod self_cost;
mod tally;

pub use door::Door;
pub use failure::Failure;
pub use live::{Counters, State};
pub use progress::{View, WorkerView};
pub use run::{EndReason, Moment, Remark, RunResult, Watcher, WorkerReport, run};
pub use seal::{break_seal, sealed};
pub use self_cost::{IOS_MAX as SELF_COST_IOS_MAX, SelfCost, self_cost};
