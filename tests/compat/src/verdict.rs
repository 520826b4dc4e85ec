//! The result of a comparison.
//!
//! Invariant: `Ok` is agreement; a case that cannot run is a `drive::Unable` instead.

/// Nothing, or the difference.
pub type Verdict = Result<(), String>;
