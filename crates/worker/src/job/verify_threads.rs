//! Checks blocks on threads of their own, beside the I/O (`verify_async`).
//!
//! Invariant: a check works on a copy of the block, so that the job may overwrite the block and reuse its buffer at once;
//! the job does not end before every check has. If all copies are in use the job checks the block itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use fiord_plan::{FileIndex, Job, Op, Verification};
use fiord_stats::Capped;
use fiord_sys::channel::{Receiver, Sender, bounded};
use fiord_sys::errno::Errno;
use fiord_sys::spawn::Thread;
use fiord_sys::{spawn, thread};
use fiord_verify::{BlockFormat, CheckBuffer, Corruption, Expected};
use fiord_workload::{OperationSource, Rejected, Supply, VerifySource};

use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;

const STACK_BYTES: usize = 256 << 10;

/// Memory for copies of blocks, unless that is less than one for each thread.
const COPIES_BYTES_MAX: usize = 64 << 20;

/// Copies for each thread: one that it checks, and some that wait.
const COPIES_PER_THREAD: usize = 8;

/// A block to be checked, and the result.
struct BlockCheck {
    op: Op,
    expected: Expected,
    buffer: Vec<u8>,
    found: Option<Corruption>,
}

/// The operations of a verified job, whose blocks are checked by other threads.
pub(crate) struct ThreadedVerifySource {
    source: VerifySource,
    checks: Option<Sender<BlockCheck>>,
    /// `None` of a thread that panicked, with the check it had.
    results: Receiver<Option<BlockCheck>>,
    threads: Vec<Thread>,
    /// Copies that are not in use.
    spare: Vec<Vec<u8>>,
    /// Checks whose results have not been received.
    pending: usize,
    rejected: VecDeque<BlockCheck>,
}

impl ThreadedVerifySource {
    /// Starts the threads that check what `source` reads.
    pub(crate) fn new(
        source: VerifySource,
        job: &Job,
        verification: &Verification,
    ) -> Result<ThreadedVerifySource, Failure> {
        let block_bytes = usize::capped(job.buffers.bytes.max(1));
        let threads = verification.threads as usize;
        let copies = (threads * COPIES_PER_THREAD).min(COPIES_BYTES_MAX / block_bytes).max(threads);
        let (check, checks) = bounded(copies);
        let (report, results) = bounded(copies);
        let checks = Arc::new(Mutex::new(checks));
        let start = |_| {
            let (checks, report) = (Arc::clone(&checks), report.clone());
            let (format, cpus) = (verification.format.clone(), verification.thread_cpus.clone());
            let body = move || {
                if !cpus.is_empty() {
                    // The planner has checked the CPUs; a failure only costs time.
                    let _ = thread::set_affinity(&cpus);
                }
                check_all(&format, block_bytes, &checks, &report);
            };
            spawn::spawn("fiord-verify", STACK_BYTES, body)
                .map_err(|error| Failure::system("start a thread for verify_async", &error))
        };
        let threads = (0..threads).map(start).collect::<Result<Vec<Thread>, Failure>>()?;
        Ok(ThreadedVerifySource {
            source,
            checks: Some(check),
            results,
            threads,
            spare: (0..copies).map(|_| Vec::with_capacity(block_bytes)).collect(),
            pending: 0,
            rejected: VecDeque::with_capacity(copies),
        })
    }

    /// Receives results; with `all`, waits for all of them.
    fn collect(&mut self, all: bool) {
        while self.pending > 0 {
            let next = match all {
                true => Some(self.results.recv().unwrap_or_default()),
                false => self.results.try_recv().ok(),
            };
            let Some(result) = next else { return };
            // Its block would pass unchecked.
            assert!(result.is_some(), "a thread that checks blocks panicked");
            let Some(mut check) = result else { return };
            self.pending -= 1;
            match check.found {
                Some(_) => self.rejected.push_back(check),
                None => {
                    check.buffer.clear();
                    self.spare.push(check.buffer);
                }
            }
        }
    }

    /// Hands a copy of the block to a thread. `false`: no copy is free.
    fn hand_over(&mut self, op: &Op, expected: Expected, block: &[u8]) -> bool {
        let Some(mut buffer) = self.spare.pop() else { return false };
        buffer.extend_from_slice(block);
        let Some(checks) = &self.checks else { return false };
        let is_sent = checks.try_send(BlockCheck { op: *op, expected, buffer, found: None }).is_ok();
        self.pending += usize::from(is_sent);
        is_sent
    }
}

impl Drop for ThreadedVerifySource {
    fn drop(&mut self) {
        self.checks = None;
        // One that panicked has said so among the results.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Says among the results that its thread panicked.
struct PanicNotice<'r>(&'r Sender<Option<BlockCheck>>);

impl Drop for PanicNotice<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // If nothing receives it, the job has ended.
            let _ = self.0.send(None);
        }
    }
}

/// Checks blocks as they come, until there are no more.
fn check_all(
    format: &BlockFormat,
    block_bytes: usize,
    checks: &Mutex<Receiver<BlockCheck>>,
    report: &Sender<Option<BlockCheck>>,
) {
    let _notice = PanicNotice(report);
    let mut scratch = CheckBuffer::for_blocks_of(block_bytes);
    loop {
        let next = checks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut check) = next else { return };
        check.found = format.check(&check.buffer, &check.expected, &mut scratch).err();
        if report.send(Some(check)).is_err() {
            return;
        }
    }
}

impl OperationSource for ThreadedVerifySource {
    fiord_workload::wraps!(source);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        let supply = self.source.fill(ops, room, now_ns);
        // Waking a thread, and waiting for one, may allocate.
        allow_alloc(|| self.collect(supply == Supply::Ended));
        supply
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        let Some(expected) = self.source.settle(op)? else { return Ok(()) };
        let is_handed_over = allow_alloc(|| {
            self.collect(false);
            self.hand_over(op, expected, buffer)
        });
        if is_handed_over { Ok(()) } else { self.source.check(op, buffer, &expected) }
    }

    fn next_rejected(&mut self) -> Option<Rejected> {
        let check = self.rejected.pop_front()?;
        let errno = self.source.reject(&check.op, check.found?);
        Some(Rejected { op: check.op, buffer: check.buffer, errno })
    }

    fn finish(&mut self, at_ns: u64) -> Option<String> {
        self.collect(true);
        self.source.finish(at_ns)
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.source.for_each_open_file(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_says_so_among_the_results_and_one_that_ends_does_not() {
        let (report, results) = bounded::<Option<BlockCheck>>(1);
        let panicking = spawn::spawn("panics", STACK_BYTES, {
            let report = report.clone();
            move || {
                let _notice = PanicNotice(&report);
                panic!("at a block");
            }
        });
        panicking.unwrap().join().unwrap_err();
        assert!(results.try_recv().is_ok_and(|result| result.is_none()));
        drop(PanicNotice(&report));
        assert!(results.try_recv().is_err());
    }
}
