//! A source that replays a list of operations, each at its due time.
//!
//! Invariant: what the engine has seen is compared with the list, operation by operation.

use fiord_engine::scripted::Seen;
use fiord_plan::{Action, FileIndex, FileKind, Job, Op, Purpose};
use fiord_workload::{OperationSource, Supply};

use super::harness::{LOOPS, Loop, run_scripted, whole};
use crate::hot::end::End;
use crate::test_jobs::{BLOCK_BYTES, null_job};

/// How the source delays an operation until its due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// It returns all operations at once, with their due times.
    ByDueTime,
    /// It returns no operation before the due time of the next.
    BySupply,
}

/// Replays a list.
struct Replay {
    list: Vec<Op>,
    next: usize,
    holds: Holds,
    files: Vec<FileIndex>,
}

impl OperationSource for Replay {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        let before = ops.len();
        while let Some(op) = self.list.get(self.next).filter(|_| ops.len() - before < room) {
            if self.holds == Holds::BySupply && op.due_ns > now_ns {
                return if ops.len() > before { Supply::Ready } else { Supply::NotBefore(op.due_ns) };
            }
            let due_ns = if self.holds == Holds::ByDueTime { op.due_ns } else { 0 };
            ops.push(Op { due_ns, ..*op });
            self.next += 1;
        }
        if ops.len() > before { Supply::Ready } else { Supply::Ended }
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.files.iter().copied().for_each(show);
    }
}

/// A trace: bursts, pauses shorter and longer than a loop's longest sleep, two files, three directions.
fn trace() -> Vec<Op> {
    let entries = [
        (0, Action::Read, 0, 4 * BLOCK_BYTES),
        (0, Action::Write, 1, 0),
        (1_000, Action::Read, 1, 8 * BLOCK_BYTES),
        (1_000, Action::Write, 0, BLOCK_BYTES),
        (1_001, Action::Trim, 0, 2 * BLOCK_BYTES),
        (2_000_000, Action::Read, 0, 0),
        (180_000_000, Action::Write, 1, 3 * BLOCK_BYTES),
    ];
    let op = |(due_ns, action, file, offset_bytes)| Op {
        purpose: Purpose::Replay,
        due_ns,
        ..Op::new(action, file, offset_bytes, BLOCK_BYTES)
    };
    entries.map(op).to_vec()
}

/// A job on two files, neither of which is opened.
fn job() -> Job {
    let mut job = null_job("replay");
    job.files.list.push(job.files.list[0].clone());
    job.files.list.iter_mut().for_each(|file| file.kind = FileKind::None);
    job.files.open_at_once = 2;
    job
}

fn replayed(which: Loop, holds: Holds, took_ns: u64) -> Vec<Seen> {
    let source = Replay { list: trace(), next: 0, holds, files: vec![0, 1] };
    let (ran, seen) = run_scripted(which, &job(), Box::new(source), whole(took_ns));
    assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
    let ios = ran.stats.directions.each_ref().map(|direction| direction.ios);
    assert_eq!(ios, [3, 3, 1], "a replayed operation is measured");
    seen
}

#[test]
fn a_trace_is_replayed_in_order_to_its_files_and_offsets() {
    for (which, holds) in
        LOOPS.iter().flat_map(|which| [(*which, Holds::ByDueTime), (*which, Holds::BySupply)])
    {
        let seen = replayed(which, holds, 10);
        let facts = |op: &Op| (op.action, op.file, op.offset_bytes, op.length_bytes, op.purpose);
        let expected: Vec<_> = trace().iter().map(facts).collect();
        assert_eq!(
            seen.iter().map(|seen| facts(&seen.op)).collect::<Vec<_>>(),
            expected,
            "{which:?} {holds:?}"
        );
    }
}

#[test]
fn each_operation_of_a_trace_is_issued_at_its_time_and_never_before() {
    for holds in [Holds::ByDueTime, Holds::BySupply] {
        let times = |which, took_ns| -> Vec<u64> {
            replayed(which, holds, took_ns).iter().map(|seen| seen.at_ns).collect()
        };
        // One after another: the second of a burst waits for the first.
        assert_eq!(times(Loop::Sync, 10), [0, 10, 1_000, 1_010, 1_020, 2_000_000, 180_000_000], "{holds:?}");
        // A late operation is issued at once; after a pause operations are on time again.
        assert_eq!(
            times(Loop::Sync, 600),
            [0, 600, 1_200, 1_800, 2_400, 2_000_000, 180_000_000],
            "{holds:?}"
        );
        // Concurrently: all operations of a burst are issued together.
        let due: Vec<u64> = trace().iter().map(|op| op.due_ns).collect();
        assert_eq!(times(Loop::Queued, 10), due, "{holds:?}");
    }
}

#[test]
fn a_slow_queue_is_filled_by_operations_that_are_due() {
    // Each takes longer than the first burst: the fifth waits for a slot, the sixth is issued when due.
    let seen = replayed(Loop::Queued, Holds::ByDueTime, 50_000);
    let times: Vec<u64> = seen.iter().map(|seen| seen.at_ns).collect();
    assert_eq!(times, [0, 0, 1_000, 1_000, 50_000, 2_000_000, 180_000_000]);
}
