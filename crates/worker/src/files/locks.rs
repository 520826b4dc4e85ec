//! `lockfile`: locks on files, which the jobs of a run share.
//!
//! Invariant: a file is locked by no job, by one job that writes, or by jobs that only read; a waiting job is not
//! overtaken by one that came later, so that none waits forever.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fiord_plan::{FileLock, Job};

/// The locks of a run, one per path. Jobs that name a file differently do not exclude each other.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<BTreeMap<PathBuf, Arc<Lock>>>);

impl Locks {
    /// The lock of each of a job's files; `None` if the job takes no locks.
    pub(crate) fn of_job(&self, job: &Job) -> Option<JobLocks> {
        let mode = job.files.lock?;
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = |path: &PathBuf| locks.entry(path.clone()).or_default().clone();
        let files = job.files.list.iter().map(|file| &file.path).map(lock).collect();
        Some(JobLocks { mode, job: job.number, files })
    }
}

/// The locks of a job's files.
#[derive(Debug)]
pub(crate) struct JobLocks {
    pub mode: FileLock,
    /// The number of the job.
    pub job: u32,
    /// By file.
    pub files: Vec<Arc<Lock>>,
}

/// The lock of one file.
#[derive(Debug, Default)]
pub(crate) struct Lock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    holder: Holder,
    /// Waiting jobs, and whether each wants to write.
    waiting: u32,
    waiting_writers: u32,
}

/// Who holds a lock, and for how many I/Os.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    Readers(u64),
    Job {
        job: u32,
        ios: u64,
    },
}

/// For which kind of I/O a lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// With others that read.
    Shared,
    /// Alone.
    Alone,
}

impl Lock {
    /// Takes the lock for one I/O more; `waited`: what this job has been waiting for. If the lock is not free the job
    /// waits from now on, until it takes the lock or calls `give_up`.
    pub(crate) fn take(&self, job: u32, hold: Hold, waited: Option<Hold>) -> bool {
        let mut state = self.state();
        if let Some(waited) = waited {
            state.count_waiting(waited, u32::wrapping_sub);
        }
        let next = match (state.holder, hold) {
            // The job that has waited longest goes first.
            (Holder::Nobody, _) if state.waiting > 0 && waited.is_none() => None,
            (Holder::Nobody, Hold::Shared) => Some(Holder::Readers(1)),
            (Holder::Nobody, Hold::Alone) => Some(Holder::Job { job, ios: 1 }),
            (Holder::Readers(ios), Hold::Shared) if state.waiting_writers == 0 => {
                Some(Holder::Readers(ios + 1))
            }
            (Holder::Job { job: holder, ios }, _) if holder == job && state.waiting == 0 => {
                Some(Holder::Job { job, ios: ios + 1 })
            }
            (Holder::Readers(_) | Holder::Job { .. }, _) => None,
        };
        match next {
            Some(next) => state.holder = next,
            None => state.count_waiting(hold, u32::wrapping_add),
        }
        next.is_some()
    }

    /// Ends `ios` I/Os of a job that holds the lock.
    pub(crate) fn release(&self, ios: u64) {
        let mut state = self.state();
        state.holder = match state.holder {
            Holder::Readers(held) if held > ios => Holder::Readers(held - ios),
            Holder::Job { job, ios: held } if held > ios => Holder::Job { job, ios: held - ios },
            Holder::Nobody | Holder::Readers(_) | Holder::Job { .. } => Holder::Nobody,
        };
    }

    /// A waiting job no longer needs the lock.
    pub(crate) fn give_up(&self, waited: Hold) {
        self.state().count_waiting(waited, u32::wrapping_sub);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count_waiting(&mut self, hold: Hold, change: fn(u32, u32) -> u32) {
        self.waiting = change(self.waiting, 1);
        if hold == Hold::Alone {
            self.waiting_writers = change(self.waiting_writers, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_writes_at_a_time_and_the_next_goes_first() {
        let lock = Lock::default();
        assert!(lock.take(1, Hold::Alone, None));
        assert!(lock.take(1, Hold::Alone, None), "several I/Os of one job");
        assert!(!lock.take(2, Hold::Alone, None));
        assert!(!lock.take(1, Hold::Alone, None), "another job waits");
        lock.release(2);
        assert!(lock.take(2, Hold::Alone, Some(Hold::Alone)));
        assert!(!lock.take(1, Hold::Alone, Some(Hold::Alone)));
        lock.release(1);
        assert!(!lock.take(2, Hold::Alone, None), "it is the other's turn");
        assert!(lock.take(1, Hold::Alone, Some(Hold::Alone)));
    }

    #[test]
    fn readers_share_a_lock_and_yield_to_a_writer() {
        let lock = Lock::default();
        assert!(lock.take(1, Hold::Shared, None) && lock.take(2, Hold::Shared, None));
        assert!(!lock.take(3, Hold::Alone, None));
        assert!(!lock.take(1, Hold::Shared, None), "a writer waits");
        lock.release(1);
        assert!(!lock.take(3, Hold::Alone, Some(Hold::Alone)), "one still reads");
        lock.release(1);
        assert!(lock.take(3, Hold::Alone, Some(Hold::Alone)));
        assert!(!lock.take(1, Hold::Shared, Some(Hold::Shared)));
    }

    #[test]
    fn a_job_that_stops_waiting_blocks_no_other() {
        let lock = Lock::default();
        assert!(lock.take(1, Hold::Shared, None));
        assert!(!lock.take(2, Hold::Alone, None));
        lock.give_up(Hold::Alone);
        assert!(lock.take(3, Hold::Shared, None));
    }
}
