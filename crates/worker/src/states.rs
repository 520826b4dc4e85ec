//! Where states of verification are kept, if that is not in files of this machine.
//!
//! Invariant: one that is not taken is written to its file, so that none is lost.

use std::fmt::Debug;

use fiord_plan::Job;

/// Keeps how far the writes of jobs came. Called by their threads.
pub trait States: Debug + Send + Sync {
    /// Keeps that of this job, as its file would hold it; `false` if it cannot.
    fn save(&self, job: &Job, state: &[u8]) -> bool;
    /// That of an earlier run of this job; `None` if there is none.
    fn load(&self, job: &Job) -> Option<Vec<u8>>;
}
