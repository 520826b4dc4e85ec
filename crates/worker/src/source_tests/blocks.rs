//! Lifetimes of blocks on both loops: what the engine answers to each write and trim is in the statistics.
//!
//! Invariant: the engine's errors are those of the script, so that the state of each block is known.

use fiord_engine::contract::Outcome;
use fiord_engine::scripted::{Answer, Script};
use fiord_plan::job::ErrorPolicy;
use fiord_plan::{Action, FileIndex, Job, Op, Pattern};
use fiord_stats::BlockLifetimes;
use fiord_sys::errno::Errno;
use fiord_workload::{OperationSource, Supply};

use super::harness::{LOOPS, run_scripted};
use crate::test_jobs::{BLOCK_BYTES, null_job};

const BLOCKS: u64 = 4;
const ROUNDS: u64 = 3;

/// Trims and writes every block in turn, round by round; one operation at a time, so that both loops do the same.
struct Rounds {
    made: u64,
}

impl OperationSource for Rounds {
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
        if self.made == 2 * BLOCKS * ROUNDS {
            return Supply::Ended;
        }
        let action = if self.made.is_multiple_of(2) { Action::Trim } else { Action::Write };
        ops.push(Op::new(action, 0, self.made / 2 % BLOCKS * BLOCK_BYTES, BLOCK_BYTES));
        self.made += 1;
        Supply::Ready
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

fn job() -> Job {
    let mut job = null_job("blocks");
    let eio = vec![Errno::EIO.0];
    job.errors = ErrorPolicy { passed_over: [eio.clone(), eio.clone(), eio], ..ErrorPolicy::default() };
    (job.measure.block_lifetimes, job.access.pattern) = (true, Pattern::TrimThenWrite);
    job.files.list[0].length_bytes = (BLOCKS + 1) * BLOCK_BYTES;
    job
}

/// The trim of block 1 fails in the second round, the write of block 2 in the first.
fn two_failures() -> Script {
    Box::new(|number, op| {
        let round = number / (2 * BLOCKS);
        let fails = matches!(
            (op.action, op.offset_bytes / BLOCK_BYTES, round),
            (Action::Trim, 1, 1) | (Action::Write, 2, 0)
        );
        match fails {
            true => Answer { outcome: Outcome::Failed(Errno::EIO), delay_ns: 1 },
            false => Answer::whole(op, 1),
        }
    })
}

#[test]
fn trims_are_counted_until_the_first_failure_of_a_block() {
    for which in LOOPS {
        let (ran, _) = run_scripted(which, &job(), Box::new(Rounds { made: 0 }), two_failures());
        // Blocks 1 and 2 were trimmed once, 0 and 3 in each round; block 4 never.
        let expected = BlockLifetimes { trims: vec![(1, 2), (3, 2)], states: [1, 0, 2, 1, 1] };
        assert_eq!(ran.stats.blocks, Some(expected), "{which:?}");
    }
}

#[test]
fn a_job_that_does_not_trim_has_no_lifetimes() {
    let mut job = job();
    job.access.pattern = Pattern::Mixed;
    for which in LOOPS {
        let (ran, _) = run_scripted(which, &job, Box::new(Rounds { made: 0 }), two_failures());
        assert_eq!(ran.stats.blocks, None, "{which:?}");
    }
}
