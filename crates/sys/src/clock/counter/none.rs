//! The counter of processors of which fiord knows none.
//!
//! Invariant: it is never warranted, so that nothing is timed by it.

use std::sync::atomic::{Ordering, fence};

use super::contract::{Counter, CounterRefusal};

/// No counter.
pub(in crate::clock) struct NoCounter;

impl Counter for NoCounter {
    const NAME: &'static str = "counter";

    fn ticks() -> u64 {
        0
    }

    fn wait_for_loads() {
        fence(Ordering::SeqCst);
    }

    fn warranted() -> Result<(), CounterRefusal> {
        Err(CounterRefusal::NoCounter)
    }

    fn stated_hz() -> Option<u64> {
        None
    }
}
