//! How a run or a study ended.
//!
//! Invariant: the worst of what happened counts. What the process exits with is up to the program.

/// How a run or a study ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As planned.
    Complete,
    /// A job failed or was not started, or something could not be written.
    Failed,
    /// Something was stopped because it would have destroyed data.
    Refused,
    /// As planned, but with strict trust a finding voids the figures.
    Void,
    /// By this signal.
    Signal(i32),
}
