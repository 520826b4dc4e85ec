//! Operations that a queued engine cannot queue: they block between submissions.
//!
//! Invariant: the clock is the test's, so every latency is known to the nanosecond.

use fiord_engine::contract::Outcome;
use fiord_engine::scripted::{Answer, Script};
use fiord_plan::{Action, Depth, FileIndex, Op};
use fiord_workload::{OperationSource, Supply};

use super::harness::{queue, run_blocking};
use crate::hot::end::End;
use crate::test_jobs::{BLOCK_BYTES, null_job};

const WRITE_NS: u64 = 1_000_000;
const BLOCKED_NS: u64 = 5_000_000;

/// Writes, each followed by one operation of another kind.
struct Pairs {
    second: Action,
    left: u64,
}

impl OperationSource for Pairs {
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
        if self.left == 0 {
            return Supply::Ended;
        }
        self.left -= 1;
        ops.extend([Action::Write, self.second].map(|action| Op::new(action, 0, 0, BLOCK_BYTES)));
        Supply::Ready
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

fn script() -> Script {
    Box::new(|_, op| match op.action {
        Action::DataSync => Answer { outcome: Outcome::Done(0), delay_ns: BLOCKED_NS },
        Action::Trim | Action::ResetZone => Answer::whole(op, BLOCKED_NS),
        Action::Read | Action::Write | Action::Sync | Action::RangeSync(_) => Answer::whole(op, WRITE_NS),
    })
}

#[test]
fn the_latency_of_a_call_that_blocks_is_its_own_at_every_depth() {
    let batched = Depth { submit: 4, ..queue(8) };
    for depth in [queue(1), queue(4), batched] {
        for second in [Action::DataSync, Action::Trim] {
            let mut job = null_job("unqueued");
            job.depth = depth;
            let ran = run_blocking(&job, Box::new(Pairs { second, left: 10 }), script());
            assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
            let [_, writes, trims] = &ran.stats.directions;
            assert_eq!(writes.total.running.count, 10, "{depth:?}");
            let blocked = match second.direction() {
                Some(_) => trims.completion.running,
                None => ran.stats.sync.latency.running,
            };
            assert_eq!(
                (blocked.count, blocked.min(), blocked.max),
                (10, BLOCKED_NS, BLOCKED_NS),
                "{depth:?}"
            );
            assert_eq!(trims.submission.running.max, 0, "{depth:?}: nothing was submitted");
            assert_eq!(
                ran.stats.depth.counts.iter().sum::<u64>(),
                20,
                "{depth:?}: each counts in the depths"
            );
        }
    }
}
