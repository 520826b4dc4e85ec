//! Sources that wrap another one, around one that answers every call.
//!
//! Invariant: a wrapper passes on every call and returns the answer, also if it has no code of its own for the call.

use std::sync::{Arc, LazyLock, Mutex};

use fiord_plan::{Action, DebugChannel, Direction, FileIndex, FileLock, Op};
use fiord_stats::Latency;
use fiord_sys::errno::Errno;
use fiord_verify::{Corruption, CorruptionKind, Fault, Method, VerifyState};
use fiord_workload::{OperationSource, Rejected, Source, Supply};

use crate::debug::DebugLog;
use crate::files::locks::Locks;
use crate::files::target_opener::TargetOpener;
use crate::job::debug_source::DebugSource;
use crate::job::locked::LockedSource;
use crate::job::record::RecordedSource;
use crate::test_jobs::{BLOCK_BYTES, TempFile, null_job};

const EILSEQ: Errno = Errno::EILSEQ;

/// The calls that reached the wrapped source.
type Calls = Arc<Mutex<Vec<&'static str>>>;

/// Implements every call, with an answer that is not the default one.
struct AnswersAll(Calls);

impl AnswersAll {
    fn note(&self, call: &'static str) {
        self.0.lock().unwrap().push(call);
    }
}

impl OperationSource for AnswersAll {
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
        self.note("fill");
        ops.push(op());
        Supply::Ready
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }

    fn prepare(&mut self, _op: &Op, buffer: &mut [u8]) {
        self.note("prepare");
        buffer.fill(7);
    }

    fn issued(&mut self, _op: &Op, _at_ns: u64) {
        self.note("issued");
    }

    fn completed(&mut self, _op: &Op, _buffer: &[u8]) -> Result<(), Errno> {
        Err(EILSEQ)
    }

    fn next_rejected(&mut self) -> Option<Rejected> {
        Some(Rejected { op: op(), buffer: Vec::new(), errno: EILSEQ })
    }

    fn failed(&mut self, _op: &Op, _errno: Errno) {
        self.note("failed");
    }

    fn explain(&self, _op: &Op) -> String {
        "explained".into()
    }

    fn failure(&self) -> String {
        "failure".into()
    }

    fn finish(&mut self, _at_ns: u64) -> Option<String> {
        Some("finished".into())
    }

    fn unwritten(&self) -> Option<String> {
        Some("unwritten".into())
    }

    fn is_mixed(&self) -> bool {
        true
    }

    fn steer(&mut self, _either: [Direction; 2]) {
        self.note("steer");
    }

    fn corruption(&self, _op: &Op) -> Option<Corruption> {
        Some(corruption())
    }

    fn restored(&self, _op: &Op, buffer: &[u8]) -> Option<Vec<u8>> {
        Some(buffer.to_vec())
    }

    fn state(&self) -> Option<VerifyState> {
        Some(VerifyState { numbers: 5, ..VerifyState::default() })
    }

    fn passes_begun(&self) -> u64 {
        3
    }

    fn open_generation(&self) -> u64 {
        4
    }

    fn read_back_ns(&self) -> u64 {
        6
    }

    fn reads_back(&self) -> bool {
        true
    }

    fn zone_resets(&self) -> Option<u64> {
        Some(8)
    }

    fn lateness(&self) -> Option<&Latency> {
        static LATENESS: LazyLock<Latency> = LazyLock::new(|| {
            let mut lateness = Latency::with_histogram();
            lateness.record(9);
            lateness
        });
        Some(&LATENESS)
    }
}

fn op() -> Op {
    Op::new(Action::Write, 0, 0, BLOCK_BYTES)
}

fn corruption() -> Corruption {
    Corruption {
        fault: Fault::Magic { found: 9 },
        kind: CorruptionKind::Garbled,
        method: Method::Meta,
        piece_offset_bytes: 0,
        piece_bytes: BLOCK_BYTES,
        first_difference_bytes: None,
        differing_bytes: None,
        expected_number: None,
        found_number: None,
    }
}

/// Makes every call and compares the answers.
fn assert_passes_on(name: &str, source: &mut dyn OperationSource, calls: &Calls) {
    let (mut ops, mut buffer) = (Vec::with_capacity(1), [0; 2]);
    assert_eq!(source.fill(&mut ops, 1, 0), Supply::Ready, "{name}");
    assert_eq!(ops, [op()], "{name}");
    let op = &ops[0];
    source.prepare(op, &mut buffer);
    assert_eq!(buffer, [7, 7], "{name}");
    source.issued(op, 1);
    assert_eq!(source.completed(op, &buffer), Err(EILSEQ), "{name}");
    source.failed(op, EILSEQ);
    source.steer([Direction::Read, Direction::Write]);
    assert_eq!(source.next_rejected().map(|rejected| rejected.errno), Some(EILSEQ), "{name}");
    assert_eq!([source.explain(op), source.failure()], ["explained", "failure"], "{name}");
    assert_eq!(source.corruption(op), Some(corruption()), "{name}");
    assert_eq!(source.restored(op, &buffer), Some(vec![7, 7]), "{name}");
    assert_eq!(source.state().map(|state| state.numbers), Some(5), "{name}");
    assert!(source.is_mixed() && source.reads_back(), "{name}");
    assert_eq!((source.passes_begun(), source.open_generation(), source.read_back_ns()), (3, 4, 6), "{name}");
    assert_eq!(source.zone_resets(), Some(8), "{name}");
    assert_eq!(source.lateness().map(|lateness| lateness.running.max), Some(9), "{name}");
    let mut open = Vec::new();
    source.for_each_open_file(&mut |file| open.push(file));
    assert_eq!(open, [0], "{name}");
    assert_eq!(source.finish(2).as_deref(), Some("finished"), "{name}");
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    assert_eq!(calls, ["fill", "prepare", "issued", "failed", "steer"], "{name}");
}

/// Passes on everything, like any other wrapper that implements only what it must.
struct Bare(Source);

impl OperationSource for Bare {
    fiord_workload::wraps!(0);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        self.0.fill(ops, room, now_ns)
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.0.for_each_open_file(show);
    }
}

#[test]
fn a_wrapper_passes_on_every_call() {
    let calls = Calls::default();
    let wrapped = || Source::Other(Box::new(AnswersAll(calls.clone())));
    let mut job = null_job("wrappers");
    job.files.lock = Some(FileLock::Exclusive);
    assert_passes_on("no code of its own", &mut Bare(wrapped()), &calls);
    let locks = Locks::default().of_job(&job).expect("it takes locks");
    assert_passes_on("lockfile", &mut LockedSource::new(wrapped(), locks), &calls);
    let iolog = TempFile::new("wrappers");
    let opener = TargetOpener::default();
    let mut recorded = RecordedSource::new(wrapped(), &job, &iolog.0, &opener).unwrap();
    assert_passes_on("write_iolog", &mut recorded, &calls);
    let log = DebugLog::new(vec![DebugChannel::Io], None, |_| {});
    assert_passes_on("--debug=io", &mut DebugSource::around(wrapped(), &job, Some(&log)), &calls);
}
