//! Ends a run or a study from outside.
//!
//! Invariant: what was measured until then is reported, as after a signal; a handle is of one run or study, and stays used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a run or a study, from any thread: one keeps a clone of the handle that is given to it.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Ends it as SIGTERM does.
    #[allow(dead_code, reason = "for programs other than the binary, which are ended by more than signals")]
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_used(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
