//! The jobs that change zones, and those of them that wait until a zone is closed.
//!
//! Invariant: nobody counts as waiting who has not tried since the last change.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Bits of `Counts::waiting` that count jobs.
const COUNT_BITS: u32 = 24;

/// The jobs that write to zones of some targets or reset them, and of these the number that wait until a zone is closed.
///
/// Targets that a job has in common share it, directly or through other jobs: what one job waits for at one target may be
/// held by a job that waits for the first at another.
#[derive(Debug, Clone, Default)]
pub struct ZoneWaiters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    jobs: AtomicU64,
    /// How many wait, in the low bits. The others count the changes of `jobs` and of the sets of open zones.
    waiting: AtomicU64,
}

/// Whether they are the same jobs.
impl PartialEq for ZoneWaiters {
    fn eq(&self, other: &ZoneWaiters) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ZoneWaiters {
    /// Something has changed or is about to: each job tries again before it counts as waiting.
    pub(super) fn wake(&self) {
        let next = |seen: u64| Some(((seen >> COUNT_BITS) + 1) << COUNT_BITS);
        let _ = self.0.waiting.fetch_update(AcqRel, Acquire, next);
    }
}

/// One job among those, until it ends.
pub(super) struct Waiter {
    all: ZoneWaiters,
    is_joined: bool,
    /// Since which change it counts as waiting.
    counted: Option<u64>,
}

impl Waiter {
    /// A job begins; with `changes_zones` it writes to zones or resets them.
    pub(super) fn new(all: ZoneWaiters, changes_zones: bool) -> Waiter {
        if changes_zones {
            all.0.jobs.fetch_add(1, AcqRel);
        }
        Waiter { all, is_joined: changes_zones, counted: None }
    }

    /// The job has ended.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.is_joined) {
            self.all.0.jobs.fetch_sub(1, AcqRel);
            self.all.wake();
        }
    }

    /// The number of changes so far, which the job notes before it tries to open a zone.
    pub(super) fn changes(&self) -> u64 {
        self.all.0.waiting.load(Acquire) >> COUNT_BITS
    }

    /// The job has nothing in flight and has found no zone to open on any of its targets; `changes` were noted before.
    /// `true`: all others wait as well, so that no zone will ever be closed.
    pub(super) fn waits_in_vain(&mut self, changes: u64) -> bool {
        let Counts { jobs, waiting } = &*self.all.0;
        let seen = waiting.load(Acquire);
        if seen >> COUNT_BITS != changes {
            return false;
        }
        if self.counted == Some(changes) {
            return seen & ((1 << COUNT_BITS) - 1) >= jobs.load(Acquire);
        }
        if waiting.compare_exchange(seen, seen + 1, AcqRel, Acquire).is_ok() {
            self.counted = Some(changes);
        }
        false
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_for_ever_if_all_have_tried_since_the_last_change() {
        let all = ZoneWaiters::default();
        let (mut one, mut other) = (Waiter::new(all.clone(), true), Waiter::new(all.clone(), true));
        let before = one.changes();
        // Each is counted when it has tried, and judges when it has tried again.
        assert!(!one.waits_in_vain(before) && !one.waits_in_vain(before));
        assert!(!other.waits_in_vain(before));
        assert!(one.waits_in_vain(before) && other.waits_in_vain(before));
        all.wake();
        // What was tried before the change does not count.
        assert!(!one.waits_in_vain(before) && !other.waits_in_vain(before));
        let changes = one.changes();
        assert!(!one.waits_in_vain(changes) && !one.waits_in_vain(changes) && !one.waits_in_vain(changes));
        drop(other);
        assert!(!one.waits_in_vain(changes), "it tries again");
        let changes = one.changes();
        assert!(!one.waits_in_vain(changes) && one.waits_in_vain(changes), "the only job that is left");
    }

    #[test]
    fn a_job_that_only_reads_is_waited_for_by_nobody() {
        let all = ZoneWaiters::default();
        let (mut writer, mut reader) = (Waiter::new(all.clone(), true), Waiter::new(all, false));
        let changes = writer.changes();
        reader.leave();
        assert!(!writer.waits_in_vain(changes) && writer.waits_in_vain(changes));
    }
}
