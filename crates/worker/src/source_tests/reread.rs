//! A source that writes blocks with a header and re-reads each of them as soon as it is written.
//!
//! Invariant: blocks are compared byte by byte, in the buffer that the completion hands over.

use std::collections::VecDeque;

use fiord_engine::engines::{
    Psync,
    io_uring::{IoUringEngine, Settings as IoUringSettings},
};
use fiord_engine::{EngineDefinition, ReadWriteEngine};
use fiord_plan::{Action, Direction, FileIndex, Job, Op, Purpose};
use fiord_sys::clock::OsClock;
use fiord_sys::errno::Errno;
use fiord_workload::{OperationSource, Supply};

use super::faulty::{EIO, Faulty};
use super::harness::{LOOPS, Loop, Ran, queue, run_queued, run_sync, with_arena};
use crate::hot::end::End;
use crate::test_jobs::{BLOCK_BYTES, TempFile, file_job};

/// Blocks written.
const BLOCKS: u64 = 200;

const EILSEQ: i32 = Errno::EILSEQ.0;

/// Writes blocks in a stride, and re-reads each.
struct Reread {
    written: u64,
    in_flight: u64,
    /// Blocks to be re-read. Its capacity is the number of blocks, since a source may not allocate.
    backlog: VecDeque<Op>,
    /// The number of a block that is compared with another's header.
    mistaken: Option<u64>,
}

impl Reread {
    fn new(mistaken: Option<u64>) -> Reread {
        Reread { written: 0, in_flight: 0, backlog: VecDeque::with_capacity(BLOCKS as usize), mistaken }
    }
}

/// Byte `index` of block `sequence` at `offset_bytes`.
fn byte(sequence: u64, offset_bytes: u64, index: usize) -> u8 {
    let word = ((sequence << 32) | (offset_bytes / BLOCK_BYTES)).wrapping_add(index as u64 / 8);
    word.to_le_bytes()[index % 8]
}

impl OperationSource for Reread {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        let before = ops.len();
        while ops.len() - before < room {
            if let Some(read) = self.backlog.pop_front() {
                ops.push(read);
            } else if self.written < BLOCKS && self.in_flight < 16 {
                let offset_bytes = self.written * 77 % 256 * BLOCK_BYTES;
                self.written += 1;
                let write = Op::new(Action::Write, 0, offset_bytes, BLOCK_BYTES);
                ops.push(Op { sequence: self.written, ..write });
            } else {
                break;
            }
            self.in_flight += 1;
        }
        match (ops.len() > before, self.in_flight > 0) {
            (true, _) => Supply::Ready,
            (false, true) => Supply::AfterCompletion,
            (false, false) => Supply::Ended,
        }
    }

    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        let header = (0..).map(|index| byte(op.sequence, op.offset_bytes, index));
        buffer.iter_mut().zip(header).for_each(|(there, header)| *there = header);
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        self.in_flight -= 1;
        assert_eq!((buffer.len() as u64, op.buffer_offset_bytes), (BLOCK_BYTES, 0), "not the whole block");
        let sequence = op.sequence + u64::from(self.mistaken == Some(op.sequence));
        if op.purpose != Purpose::VerifyRead {
            self.backlog.push_back(Op { action: Action::Read, purpose: Purpose::VerifyRead, ..*op });
            return Ok(());
        }
        let is_right = |(index, there): (usize, &u8)| *there == byte(sequence, op.offset_bytes, index);
        if buffer.iter().enumerate().all(is_right) { Ok(()) } else { Err(Errno::EILSEQ) }
    }

    fn failed(&mut self, _op: &Op, errno: Errno) {
        assert_eq!(errno, EIO);
        self.in_flight -= 1;
    }

    fn explain(&self, op: &Op) -> String {
        format!("block {} holds something else", op.sequence)
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

/// A job that writes 4 KiB blocks and ignores these errors.
fn job(file: &TempFile, which: Loop, errors: &[i32]) -> Job {
    let mut job = file_job("reread", Psync::planned(()), Direction::Write, file);
    std::fs::write(&file.0, vec![0; 1 << 20]).unwrap();
    job.depth = queue(if which == Loop::Sync { 1 } else { 8 });
    job.errors.passed_over = [errors.to_vec(), errors.to_vec(), Vec::new()];
    job.errors.passed_over_in_verification = errors.to_vec();
    job.errors.dump = true;
    job
}

/// Runs it on psync or io_uring, with faults or without; `None` where there is no io_uring.
fn reread(which: Loop, job: &Job, source: Reread, with_faults: bool) -> Option<Ran> {
    let source = Box::new(source);
    with_arena(job, |arena| match which {
        Loop::Sync => {
            let engine = ReadWriteEngine::<Psync>::new(&(), arena, 1).unwrap();
            Some(match with_faults {
                true => run_sync(Faulty::new(engine, 1), OsClock, job, source),
                false => run_sync(engine, OsClock, job, source),
            })
        }
        Loop::Queued => match IoUringEngine::new(&IoUringSettings::default(), arena, 1, false) {
            Ok(engine) if with_faults => Some(run_queued(Faulty::new(engine, 8), OsClock, job, source)),
            Ok(engine) => Some(run_queued(engine, OsClock, job, source)),
            Err(error) => {
                fiord_testing::skipped(error);
                None
            }
        },
    })
}

#[test]
fn blocks_are_re_read_with_several_in_flight_and_count_as_reads() {
    for which in LOOPS {
        let file = TempFile::new(&format!("reread-{which:?}"));
        let job = job(&file, which, &[]);
        let Some(ran) = reread(which, &job, Reread::new(None), false) else { continue };
        assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
        assert_eq!(ran.found, [""; 0], "{which:?}: a source makes no loop allocate");
        let [read, write, _] = &ran.stats.directions;
        assert_eq!((write.ios, write.bytes), (BLOCKS, BLOCKS * BLOCK_BYTES), "{which:?}");
        assert_eq!((read.ios, read.bytes), (BLOCKS, BLOCKS * BLOCK_BYTES), "{which:?}");
        assert_eq!((read.completion.running.count, write.completion.running.count), (BLOCKS, BLOCKS));
        assert_eq!((ran.counters.ios, ran.completions), ([BLOCKS, BLOCKS, 0], 2 * BLOCKS), "{which:?}");
        assert_eq!(ran.stats.depth.counts.iter().sum::<u64>(), 2 * BLOCKS, "{which:?}");
        assert_eq!(ran.stats.errors_total, 0);
    }
}

#[test]
fn short_transfers_are_continued_and_errors_passed_over_before_blocks_are_compared() {
    for which in LOOPS {
        let file = TempFile::new(&format!("faulty-{which:?}"));
        let job = job(&file, which, &[EIO.0]);
        let Some(ran) = reread(which, &job, Reread::new(None), true) else { continue };
        assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
        let [read, write, _] = &ran.stats.directions;
        assert!(ran.stats.errors_total > 20 && ran.stats.first_error == EIO.0, "{which:?}");
        assert_eq!(
            ran.passed_over.len() as u64,
            ran.stats.errors_total,
            "{which:?}: of reads and writes alike"
        );
        assert!(write.short_ios > 0 && read.short_ios > 0, "{which:?}: re-reads are cut short as well");
        let failed_writes = ran.passed_over.iter().filter(|line| line.starts_with("write")).count() as u64;
        assert!(failed_writes > 0 && failed_writes < ran.stats.errors_total, "{which:?}");
        let failed_reads = ran.stats.errors_total - failed_writes;
        assert_eq!((read.ios, write.ios), (write.ios - failed_reads, BLOCKS - failed_writes), "{which:?}");
        assert_eq!(ran.completions, read.ios + write.ios, "{which:?}");
    }
}

#[test]
fn a_block_with_other_contents_fails_by_the_error_policy_with_a_message() {
    for which in LOOPS {
        let file = TempFile::new(&format!("mistaken-{which:?}"));
        let strict = job(&file, which, &[]);
        let Some(ran) = reread(which, &strict, Reread::new(Some(5)), false) else { continue };
        let End::Failed(failure) = &ran.end else { panic!("{which:?}: {:?}", ran.end) };
        assert_eq!((failure.operation.as_str(), failure.code()), ("verify", EILSEQ));
        assert_eq!(failure.range, Some((4 * 77 % 256 * BLOCK_BYTES, BLOCK_BYTES)));
        assert!(failure.to_string().contains("block 5 holds something else"), "{failure}");
        assert_eq!((ran.stats.errors_total, ran.stats.first_error), (1, EILSEQ));
        let lenient = job(&file, which, &[EILSEQ]);
        let Some(ran) = reread(which, &lenient, Reread::new(Some(5)), false) else { continue };
        assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
        assert_eq!((ran.stats.errors_total, ran.stats.directions[1].ios), (1, BLOCKS), "{which:?}");
    }
}
