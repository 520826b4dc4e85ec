//! How a loop ends.
//!
//! Invariant: a loop ends once, so a failure may allocate its text.

use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;

/// Why a loop ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All I/O was done.
    Complete,
    /// Its run time is over.
    TimeUp,
    /// The depth that meets `latency_target` is found.
    DepthFound,
    /// A stop was requested from outside (signal, `exitall`, coordinator).
    StopRequested,
    /// The device is full, as requested by `fill_device`.
    Full,
    /// It failed.
    Failed(Box<Failure>),
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        // A worker fails once.
        allow_alloc(|| End::Failed(Box::new(failure)))
    }
}

impl End {
    /// Ends the worker with this failure.
    #[cold]
    pub(super) fn failed(why: impl FnOnce() -> Failure) -> End {
        // A worker fails once.
        allow_alloc(|| why().into())
    }

    /// This end, after which something else was done that may have failed. The first failure is the one reported.
    pub(crate) fn followed_by<E: Into<End>>(self, result: Result<(), E>) -> End {
        match (self, result) {
            (End::Failed(failure), _) => End::Failed(failure),
            (_, Err(end)) => end.into(),
            (end, Ok(())) => end,
        }
    }
}
