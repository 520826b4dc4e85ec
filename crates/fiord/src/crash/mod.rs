//! The crash test: synced writes whose every sector names its write, and the verdict after a cut.
//!
//! Invariant: the head of the journal determines all writes, so that the check needs nothing else.

pub(crate) mod block;
pub(crate) mod journal;
