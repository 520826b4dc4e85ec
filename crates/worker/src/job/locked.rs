//! Operations of any source, each issued under the lock of its file (`lockfile`).
//!
//! Invariant: an operation holds the lock of its file from before it is issued until it has ended. A job that waits for a
//! lock holds others only for operations that are in flight, which end without it.

use fiord_plan::{Direction, FileIndex, FileLock, Op};
use fiord_sys::errno::Errno;
use fiord_workload::{OperationSource, Source, Supply};

use crate::files::locks::{Hold, JobLocks};

/// Interval between two attempts to take a lock.
const RETRY_NS: u64 = 20_000;

/// A source whose operations are issued under locks.
pub(crate) struct LockedSource {
    source: Source,
    locks: JobLocks,
    /// I/Os that hold a lock, by file.
    held: Box<[u64]>,
    /// The next operation, until its lock is taken; and what the job waits for, if that has failed.
    next: Vec<Op>,
    waits: Option<Hold>,
}

impl LockedSource {
    /// The operations of `source` under these locks.
    pub(crate) fn new(source: Source, locks: JobLocks) -> LockedSource {
        let held = vec![0; locks.files.len()].into_boxed_slice();
        LockedSource { source, locks, held, next: Vec::with_capacity(1), waits: None }
    }

    fn hold(&self, op: &Op) -> Hold {
        match (self.locks.mode, op.action.direction()) {
            (FileLock::ReadWrite, Some(Direction::Read)) => Hold::Shared,
            (FileLock::Exclusive | FileLock::ReadWrite, _) => Hold::Alone,
        }
    }

    /// Takes the lock for an operation; `false` if it is not free yet.
    fn lock(&mut self, op: &Op) -> bool {
        let hold = self.hold(op);
        let file = op.file as usize;
        let is_taken = self.locks.files[file].take(self.locks.job, hold, self.waits.take());
        match is_taken {
            true => self.held[file] += 1,
            false => self.waits = Some(hold),
        }
        is_taken
    }

    fn unlock(&mut self, op: &Op) {
        let file = op.file as usize;
        if let Some(rest) = self.held[file].checked_sub(1) {
            self.held[file] = rest;
            self.locks.files[file].release(1);
        }
    }
}

impl Drop for LockedSource {
    /// An operation that was never issued must not block other jobs.
    fn drop(&mut self) {
        if let (Some(op), Some(waited)) = (self.next.first(), self.waits) {
            self.locks.files[op.file as usize].give_up(waited);
        }
        for (held, lock) in self.held.iter().zip(&self.locks.files) {
            if *held > 0 {
                lock.release(*held);
            }
        }
    }
}

impl OperationSource for LockedSource {
    fiord_workload::wraps!(source);

    /// One operation at a time: other jobs wait for its lock, so it is issued at once.
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, now_ns: u64) -> Supply {
        if self.next.is_empty() {
            let supply = self.source.fill(&mut self.next, 1, now_ns);
            if self.next.is_empty() {
                return supply;
            }
        }
        let Some(op) = self.next.first().copied() else { return Supply::Ended };
        if !self.lock(&op) {
            return Supply::NotBefore(now_ns + RETRY_NS);
        }
        self.next.remove(0);
        ops.push(op);
        Supply::Ready
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        self.unlock(op);
        self.source.completed(op, buffer)
    }

    fn failed(&mut self, op: &Op, errno: Errno) {
        self.unlock(op);
        self.source.failed(op, errno);
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.source.for_each_open_file(show);
    }
}

#[cfg(test)]
mod tests {
    use fiord_plan::Action;
    use fiord_stats::random::Random;

    use super::*;
    use crate::files::locks::Locks;
    use crate::test_jobs::{BLOCK_BYTES, null_job};

    /// Reads and writes of two files, alternating.
    struct Mix {
        left: u64,
    }

    impl OperationSource for Mix {
        fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
            let Some(left) = self.left.checked_sub(1) else { return Supply::Ended };
            self.left = left;
            let action = if left % 3 == 0 { Action::Write } else { Action::Read };
            ops.push(Op::new(action, (left / 5 % 2) as FileIndex, left * BLOCK_BYTES, BLOCK_BYTES));
            Supply::Ready
        }

        fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
            show(0);
        }
    }

    fn sources(locks: &Locks, mode: FileLock, count: u64) -> Vec<LockedSource> {
        let source = |number: u32| {
            let mut job = null_job("locked");
            let mut second = job.files.list[0].clone();
            second.path = "second".into();
            job.files.list.push(second);
            (job.files.lock, job.number) = (Some(mode), number);
            let locks = locks.of_job(&job).expect("it takes locks");
            LockedSource::new(Source::Other(Box::new(Mix { left: count })), locks)
        };
        (0..3).map(source).collect()
    }

    /// The operations that may be in flight on one file at the same time.
    fn assert_allowed(mode: FileLock, in_flight: &[(usize, Op)]) {
        for (job, op) in in_flight {
            for (other, beside) in
                in_flight.iter().filter(|(other, beside)| other != job && beside.file == op.file)
            {
                let reads = op.action == Action::Read && beside.action == Action::Read;
                assert!(
                    mode == FileLock::ReadWrite && reads,
                    "{mode:?}: {job} {op:?} and {other} {beside:?}"
                );
            }
        }
    }

    #[test]
    fn jobs_share_files_only_as_the_lock_allows_and_all_end() {
        for (mode, seed) in [FileLock::Exclusive, FileLock::ReadWrite]
            .into_iter()
            .flat_map(|mode| (0..50).map(move |seed| (mode, seed)))
        {
            let locks = Locks::default();
            let mut sources = sources(&locks, mode, 40);
            let mut random = Random::substream(seed, 0);
            let (mut in_flight, mut done, mut shared): (Vec<(usize, Op)>, _, _) = (Vec::new(), 0, false);
            for _ in 0..20_000 {
                let job = random.below(3) as usize;
                let mut ops = Vec::new();
                if in_flight.iter().filter(|(owner, _)| *owner == job).count() < 4 {
                    sources[job].fill(&mut ops, 8, 0);
                }
                in_flight.extend(ops.into_iter().map(|op| (job, op)));
                assert_allowed(mode, &in_flight);
                shared |= in_flight.iter().any(|(owner, op)| {
                    in_flight.iter().any(|(other, beside)| owner != other && op.file == beside.file)
                });
                if !in_flight.is_empty() && random.below(2) == 0 {
                    let (job, op) = in_flight.swap_remove(random.below(in_flight.len() as u64) as usize);
                    match random.below(4) {
                        0 => sources[job].failed(&op, Errno::EIO),
                        _ => sources[job].completed(&op, &[]).expect("it accepts everything"),
                    }
                    done += 1;
                }
            }
            assert_eq!((done, shared), (120, mode == FileLock::ReadWrite), "seed {seed}");
        }
    }

    #[test]
    fn a_job_that_ends_early_leaves_no_lock() {
        let locks = Locks::default();
        let mut sources = sources(&locks, FileLock::Exclusive, 4);
        let mut ops = Vec::new();
        assert_eq!(sources[0].fill(&mut ops, 1, 0), Supply::Ready);
        assert_eq!(sources[1].fill(&mut ops, 1, 7), Supply::NotBefore(7 + RETRY_NS));
        assert_eq!(sources[2].fill(&mut ops, 1, 0), Supply::NotBefore(RETRY_NS));
        sources.drain(..2);
        assert_eq!(sources[0].fill(&mut ops, 1, 0), Supply::Ready);
    }
}
