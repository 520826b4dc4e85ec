//! Why something could not be done.
//!
//! Invariant: in words that say what to do; whether data would have been destroyed is known without reading them.

use fiord_worker::Failure;

/// An error of what is done before a run.
#[derive(Debug)]
pub struct SessionError {
    /// What is wrong, where, and what to do.
    pub why: String,
    /// Whether it was refused because data would be destroyed.
    pub is_refused: bool,
}

impl From<String> for SessionError {
    fn from(why: String) -> SessionError {
        SessionError { why, is_refused: false }
    }
}

impl From<Failure> for SessionError {
    fn from(failure: Failure) -> SessionError {
        SessionError { why: failure.to_string(), is_refused: failure.unsafe_target }
    }
}
