//! Response latencies of jobs with a rate: from the intended start of each I/O, on both loops.
//!
//! Invariant: the clock is the test's, so every latency is known to the nanosecond.

use fiord_engine::scripted::{Answer, Script};
use fiord_plan::{Action, FileIndex, Job, Op, Pace, Purpose, Think};
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};
use fiord_stats::{DirectionStats, Latency};
use fiord_workload::{OperationSource, Supply};

use super::harness::{LOOPS, Loop, run_scripted, run_scripted_late, whole};
use crate::hot::end::End;
use crate::test_jobs::{BLOCK_BYTES, null_job};

const MS: u64 = 1_000_000;

/// Operations that alternate between these actions.
struct Alternating {
    actions: Vec<Action>,
    purpose: Purpose,
    made: u64,
    count: u64,
}

impl OperationSource for Alternating {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        let until = self.count.min(self.made + room as u64);
        for number in self.made..until {
            let action = self.actions[number as usize % self.actions.len()];
            ops.push(Op { purpose: self.purpose, ..Op::new(action, 0, 0, BLOCK_BYTES) });
        }
        let supply = if until > self.made { Supply::Ready } else { Supply::Ended };
        self.made = until;
        supply
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

/// A job of 1000 reads per second.
fn paced_job() -> Job {
    let mut job = null_job("response");
    job.pace = Pace { ios_per_s: [Some(1000), None, None], wakes_early: true, ..Pace::default() };
    job
}

fn measured(which: Loop, job: &Job, purpose: Purpose, count: u64, script: Script) -> [DirectionStats; 3] {
    let actions = if job.pace.has_rate(fiord_plan::Direction::Write) {
        vec![Action::Read, Action::Write]
    } else {
        vec![Action::Read]
    };
    let source = Alternating { actions, purpose, made: 0, count };
    let (ran, _) = run_scripted(which, job, Box::new(source), script);
    assert_eq!(matches!(ran.end, End::Complete), job.limits.runtime_ns.is_none(), "{:?}", ran.end);
    ran.stats.directions
}

fn p999(latency: &Latency) -> u64 {
    latency.percentiles(&[99.9])[0]
}

/// Every I/O takes 10 us, but those that are in flight in the first millisecond of the second second take a second.
fn stalling(which: Loop) -> Script {
    let in_flight = if which == Loop::Sync { 1 } else { 4 };
    Box::new(move |number, op| {
        let is_stalled = (1000..1000 + in_flight).contains(&number);
        // Those in flight begin a millisecond apart, and end together.
        let took_ns = if is_stalled { 1000 * MS - (number - 1000) * MS } else { 10_000 };
        Answer::whole(op, took_ns)
    })
}

#[test]
fn a_stall_of_a_second_is_in_the_response_latency_and_hidden_from_the_issue() {
    for which in LOOPS {
        let [reads, ..] = measured(which, &paced_job(), Purpose::Measured, 5000, stalling(which));
        assert_eq!((reads.response.running.count, reads.completion.running.count), (5000, 5000));
        // At 1000 I/Os per second 0.1 % of 5000 are the first five milliseconds of the stall.
        let response_ms = p999(&reads.response) / MS;
        assert!((980..=1000).contains(&response_ms), "{which:?}: {response_ms} ms");
        assert!(p999(&reads.total) < 20_000, "{which:?}: {:?}", reads.total.running);
        assert_eq!(reads.response.running.max, 1000 * MS, "{which:?}");
        assert_eq!(reads.response.running.min(), 10_000, "{which:?}: on time before and after it");
        // Those that were due in the stall waited for its end: about 1 + 2 + … + 1000 ms in all.
        let late_ms = (reads.response.running.sum - 5000 * 10_000) / u128::from(MS);
        assert!((490_000..=510_000).contains(&late_ms), "{which:?}: {late_ms} ms");
    }
}

#[test]
fn an_io_that_is_on_time_has_its_total_latency_as_response() {
    for which in LOOPS {
        let [reads, ..] = measured(which, &paced_job(), Purpose::Measured, 100, whole(10_000));
        assert_eq!(reads.response.running, reads.total.running, "{which:?}");
        assert_eq!(reads.response.percentiles(&[1.0, 99.9]), [10_000, 10_000], "{which:?}");
    }
}

#[test]
fn how_late_the_system_wakes_the_worker_is_not_in_the_response_latency() {
    // Alone in the queue, and with the one before still in flight when the next is due.
    for (which, took_ns) in [(Loop::Sync, 10_000), (Loop::Queued, 10_000), (Loop::Queued, 1_500_000)] {
        for late_ns in [0, 45_000, 100_000] {
            let job = paced_job();
            let source =
                Alternating { actions: vec![Action::Read], purpose: Purpose::Measured, made: 0, count: 500 };
            let (ran, seen) = run_scripted_late(which, &job, Box::new(source), whole(took_ns), late_ns);
            assert!(matches!(ran.end, End::Complete));
            let late = seen.iter().enumerate().filter(|(number, seen)| seen.at_ns != *number as u64 * MS);
            let late = late.count();
            // Until it has learned how late, and where it tries whether less will do.
            assert!(late < 50, "{which:?}, woken {late_ns} ns late: {late} of 500 are late");
            let response = ran.stats.directions[0].response.percentiles(&[90.0])[0];
            assert!(response.abs_diff(took_ns) <= took_ns / 64 + 1_000, "{which:?} {late_ns}: {response}");
        }
    }
}

#[test]
fn each_direction_has_intended_starts_by_its_own_rate() {
    for which in LOOPS {
        let mut job = paced_job();
        // The writes are held back, and the reads between them with them: a stream has one order.
        job.pace.ios_per_s = [Some(1000), Some(100), None];
        job.access.pattern = fiord_plan::Pattern::Mixed;
        let [reads, writes, _] = measured(which, &job, Purpose::Measured, 100, whole(10_000));
        // One at a time, an I/O waits for the one before it.
        let pair_ns = if which == Loop::Sync { 20_000 } else { 10_000 };
        assert_eq!(writes.response.running.max, pair_ns, "{which:?}: writes are on time");
        // The last read, due after 49 ms, follows the write due after 480 ms.
        assert_eq!(reads.response.running.max, (480 - 49) * MS + pair_ns, "{which:?}");
    }
}

#[test]
fn a_pause_on_purpose_is_no_wait() {
    let think =
        Think { pause_us: 50_000, spin_us: 0, cycles: 0, every_ios: 10, count_issued: false, io_time_us: 0 };
    for which in LOOPS {
        let mut job = paced_job();
        job.pace.think = Some(think);
        let [reads, ..] = measured(which, &job, Purpose::Measured, 100, whole(10_000));
        let slowest_ns = reads.response.running.max;
        assert!(slowest_ns < MS, "{which:?}: {slowest_ns} ns, of a pause of 50 ms");
    }
}

#[test]
fn without_a_rate_and_for_what_is_not_paced_there_is_no_response_latency() {
    for which in LOOPS {
        let [reads, ..] = measured(which, &paced_job(), Purpose::VerifyRead, 10, whole(10));
        assert_eq!((reads.ios, reads.response.running.count), (10, 0), "{which:?}");
        let [reads, ..] = measured(which, &null_job("plain"), Purpose::Measured, 10, whole(10));
        assert!(!reads.response.histogram.is_allocated(), "{which:?}");
        let mut job = paced_job();
        job.measure.total = false;
        let [reads, ..] = measured(which, &job, Purpose::Measured, 10, whole(10));
        assert_eq!(reads.response, Latency::default(), "{which:?}");
    }
}

#[test]
fn open_arrivals_respond_as_closed_ones_and_those_that_never_got_in_are_counted() {
    for which in LOOPS {
        let mut job = paced_job();
        let closed = measured(which, &job, Purpose::Measured, 5000, stalling(which));
        job.pace.open = true;
        let open = measured(which, &job, Purpose::Measured, 5000, stalling(which));
        assert_eq!(open[0].response.running, closed[0].response.running, "{which:?}");
        assert_eq!(open[0].never_issued(), Some(0), "{which:?}: all I/O was done");
        assert_eq!(closed[0].never_issued(), None);
        // The device stands still from the second second on: what arrived until the run's end is counted.
        job.limits.runtime_ns = Some(2000 * MS);
        let script: Script =
            Box::new(|number, op| Answer::whole(op, if number >= 1000 { 5000 * MS } else { 10_000 }));
        let [reads, ..] = measured(which, &job, Purpose::Measured, 5000, script);
        let in_flight = if which == Loop::Sync { 1 } else { 4 };
        assert_eq!(reads.ios, 1000 + in_flight, "{which:?}");
        let waiting = 1001 - in_flight;
        let counts = [&DROPPED_ARRIVALS, &WAITING_ARRIVALS].map(|count| reads.counts.get(count));
        assert_eq!(counts, [Some(0), Some(waiting)], "{which:?}");
    }
}
