//! Effects of an operation's purpose, and sources that end early or never continue.
//!
//! Invariant: expectations are written out here, not derived from the table under test.

use fiord_engine::contract::Outcome;
use fiord_engine::scripted::{Answer, Script};
use fiord_plan::{Action, FileIndex, Job, Op, Pace, Purpose};
use fiord_workload::{OperationSource, Supply};

use super::faulty::EIO;
use super::harness::{LOOPS, Loop, Ran, run_scripted, whole};
use crate::hot::end::End;
use crate::test_jobs::{BLOCK_BYTES, null_job};

/// Returns a list at once, and then `last` for every further call.
struct List {
    ops: Vec<Op>,
    last: Supply,
}

impl OperationSource for List {
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
        if self.ops.is_empty() {
            return self.last;
        }
        ops.append(&mut self.ops);
        Supply::Ready
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

fn reads(purpose: Purpose, count: u64) -> Box<List> {
    let read = |index| Op { purpose, ..Op::new(Action::Read, 0, index * BLOCK_BYTES, BLOCK_BYTES) };
    Box::new(List { ops: (0..count).map(read).collect(), last: Supply::Ended })
}

/// A job that ignores EIO.
fn lenient_job() -> Job {
    let mut job = null_job("rules");
    job.errors.passed_over[0] = vec![EIO.0];
    job
}

fn is_complete(ran: &Ran) -> bool {
    matches!(ran.end, End::Complete)
}

#[test]
fn what_is_not_measured_is_neither_counted_nor_timed() {
    let expected = [
        (Purpose::Measured, 6),
        (Purpose::VerifyRead, 6),
        (Purpose::VerifyTrim, 6),
        (Purpose::Replay, 6),
        (Purpose::Layout, 0),
    ];
    for (which, (purpose, count)) in LOOPS.into_iter().flat_map(|which| expected.map(|one| (which, one))) {
        let (ran, seen) = run_scripted(which, &null_job("rules"), reads(purpose, 6), whole(10));
        let read = &ran.stats.directions[0];
        assert!(is_complete(&ran) && seen.len() == 6, "{which:?} {purpose:?}");
        assert_eq!((read.ios, read.completion.running.count), (count, count), "{which:?} {purpose:?}");
        let calls = [ran.stats.submit, ran.stats.complete].map(|map| map.calls());
        let counts = ran.stats.depth.counts.iter().sum::<u64>();
        // The scripted engine could queue: run one by one it submits nothing in fio's sense.
        let expected_calls = if which == Loop::Queued { [count; 2] } else { [0; 2] };
        assert_eq!((counts, calls), (count, expected_calls), "{which:?} {purpose:?}");
        assert_eq!((ran.counters.ios[0], ran.completions), (count, 6), "{which:?} {purpose:?}");
    }
}

#[test]
fn a_rate_holds_the_jobs_own_operations_and_no_others() {
    let mut job = null_job("rules");
    job.pace = Pace { ios_per_s: [Some(1000), None, None], ..Pace::default() };
    for (which, (purpose, apart_ns)) in LOOPS
        .into_iter()
        .flat_map(|which| [(Purpose::Measured, 1_000_000), (Purpose::VerifyRead, 0)].map(|one| (which, one)))
    {
        let (ran, seen) = run_scripted(which, &job, reads(purpose, 4), whole(0));
        let times: Vec<u64> = seen.iter().map(|seen| seen.at_ns).collect();
        assert!(is_complete(&ran));
        assert_eq!(times, [0, 1, 2, 3].map(|number| number * apart_ns), "{which:?} {purpose:?}");
    }
}

#[test]
fn an_error_is_passed_over_by_purpose() {
    let second_fails = || -> Script {
        Box::new(|number, op| match number {
            1 => Answer { outcome: Outcome::Failed(EIO), delay_ns: 1 },
            _ => Answer::whole(op, 1),
        })
    };
    let passed_over = [Purpose::Measured, Purpose::VerifyRead, Purpose::VerifyTrim, Purpose::Replay];
    for which in LOOPS {
        for purpose in passed_over {
            let (ran, seen) = run_scripted(which, &lenient_job(), reads(purpose, 3), second_fails());
            assert!(is_complete(&ran), "{which:?} {purpose:?}: {:?}", ran.end);
            assert_eq!((ran.stats.errors_total, seen.len()), (1, 3));
        }
        // What a job is to read later has to be there: no policy passes over that.
        let (ran, _) = run_scripted(which, &lenient_job(), reads(Purpose::Layout, 3), second_fails());
        assert!(
            matches!(&ran.end, End::Failed(failure) if failure.code() == EIO.0),
            "{which:?}: {:?}",
            ran.end
        );
    }
}

#[test]
fn a_source_that_cannot_go_on_fails_its_job_and_hangs_nothing() {
    let cases = [(Supply::AfterCompletion, "nothing in flight"), (Supply::Ready, "no operation")];
    for (which, (last, why)) in LOOPS.into_iter().flat_map(|which| cases.map(|one| (which, one))) {
        let mut source = reads(Purpose::Measured, 2);
        source.last = last;
        let (ran, seen) = run_scripted(which, &null_job("rules"), source, whole(10));
        let End::Failed(failure) = &ran.end else { panic!("{which:?}: {:?}", ran.end) };
        assert!(failure.to_string().contains(why), "{failure}");
        assert_eq!((seen.len(), ran.stats.directions[0].ios), (2, 2), "what was done is in the report");
    }
}
