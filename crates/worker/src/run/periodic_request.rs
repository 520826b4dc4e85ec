//! Requests that all workers publish something, at regular intervals.
//!
//! Invariant: waits for no worker. One that is blocked in an I/O counts with what it published last.

use std::time::Duration;

use fiord_stats::Capped;

use crate::live::Live;
use crate::run_state::RunState;

/// How long workers have to publish what is requested, and how often it is checked whether they have.
const PATIENCE_NS: u64 = 200_000_000;
const CHECK_NS: u64 = 5_000_000;

/// One request, made again and again.
#[derive(Debug)]
pub(super) struct PeriodicRequest {
    /// What is requested: a bit of `live::request`.
    what: u32,
    /// When it is made next; `u64::MAX` while it is not wanted.
    next_ns: u64,
    /// When it was made, until the workers have published.
    made_ns: Option<u64>,
}

impl PeriodicRequest {
    /// The request for `what`, for the first time at `first_ns`.
    pub(super) fn new(what: u32, first_ns: u64) -> PeriodicRequest {
        PeriodicRequest { what, next_ns: first_ns, made_ns: None }
    }

    /// When `look` has something to do next.
    pub(super) fn due_ns(&self, now_ns: u64) -> u64 {
        if self.made_ns.is_some() { now_ns + CHECK_NS } else { self.next_ns }
    }

    /// Makes the request if it is time to, which is every `period` from the release of the first workers on; without a
    /// period it is not wanted. Returns when it was made, once all have published or have taken too long.
    pub(super) fn look(&mut self, shared: &RunState, period: Option<Duration>, now_ns: u64) -> Option<u64> {
        let Some(period) = period else {
            (self.next_ns, self.made_ns) = (u64::MAX, None);
            return None;
        };
        if self.next_ns == u64::MAX {
            self.next_ns = now_ns;
        }
        let Some(made_ns) = self.made_ns else {
            if now_ns >= self.next_ns {
                self.next_ns = now_ns.saturating_add(u64::capped(period.as_nanos()));
                self.make(shared, now_ns);
            }
            return None;
        };
        let is_pending = |live: &Live| live.state().does_io() && live.owes_answers();
        if now_ns < made_ns + PATIENCE_NS && shared.live.iter().any(is_pending) {
            return None;
        }
        self.made_ns = None;
        Some(made_ns)
    }

    fn make(&mut self, shared: &RunState, now_ns: u64) {
        if shared.released_for_ns(now_ns) > 0 {
            let running = shared.live.iter().filter(|live| live.state().does_io());
            running.for_each(|live| live.request(self.what));
            self.made_ns = Some(now_ns);
        }
    }
}
