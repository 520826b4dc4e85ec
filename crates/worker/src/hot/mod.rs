//! The two I/O loops and their parts.
//!
//! Invariant: nothing here allocates while a loop runs, and a successful I/O takes no error path.

mod arrivals;
pub(crate) mod block_tracker;
pub(crate) mod depth_search;
mod dump;
pub(crate) mod end;
pub(crate) mod errors;
pub(crate) mod logging;
pub(crate) mod own_time;
mod per_io;
mod places;
mod queue;
pub(crate) mod queued;
pub(crate) mod rate_limiter;
pub(crate) mod recorder;
pub(crate) mod stamps;
pub(crate) mod sync;
mod tally;
pub(crate) mod wake;
pub(crate) mod work;
