//! What fiord itself does between two I/Os is in no latency, on both loops, for each kind of stream.
//!
//! Invariant: the clock is the test's: an I/O takes `IO_NS`, a reading of the clock `READING_NS`, other work `WORK_NS`.

use fiord_engine::scripted::FakeClock;
use fiord_plan::{Action, FileIndex, Job, LogKind, Op};
use fiord_stats::DirectionStats;
use fiord_workload::{OperationSource, Source, Stream, Supply};

use super::harness::{LOOPS, Loop, READING_NS, SlowSink, run_timed, whole};
use crate::hot::end::End;
use crate::log_sink::LogSink;
use crate::test_jobs::{BLOCK_BYTES, logs, null_job};

const IO_NS: u64 = 100;
const WORK_NS: u64 = 50_000;
const IOS: u64 = 256;
/// I/Os generated at once, and added to the statistics at once.
const BATCH: usize = 64;

fn generated(job: &Job) -> Source {
    Source::Generator(Stream::new(&job.access, &job.files, &job.limits).unwrap())
}

fn job() -> Job {
    let mut job = null_job("own work");
    job.limits.number_ios = Some(IOS);
    job
}

/// Each latency is that of the I/O, but for one reading of the clock.
fn assert_exact(which: Loop, stats: &[DirectionStats; 3]) {
    assert_eq!(stats.iter().map(|direction| direction.completion.running.count).sum::<u64>(), IOS);
    for direction in stats.iter().filter(|direction| direction.ios > 0) {
        let completion = &direction.completion.running;
        let exact = IO_NS..=IO_NS + READING_NS;
        assert!(
            exact.contains(&completion.min) && exact.contains(&completion.max),
            "{which:?}: {completion:?}"
        );
        if which == Loop::Queued {
            assert!(direction.submission.running.max <= READING_NS, "{:?}", direction.submission.running);
        }
    }
}

#[test]
fn the_clock_is_read_again_after_operations_were_generated_and_statistics_updated() {
    for which in LOOPS {
        let job = job();
        let (ran, seen) =
            run_timed(which, &job, (generated(&job), None), &FakeClock::default(), whole(IO_NS));
        assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
        assert_exact(which, &ran.stats.directions);
        let gaps: Vec<u64> = seen.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns - IO_NS).collect();
        let (own, none): (Vec<_>, Vec<_>) =
            gaps.iter().enumerate().partition(|(number, _)| (number + 1) % BATCH == 0);
        assert!(own.iter().all(|(_, gap)| **gap > READING_NS), "{which:?}: {own:?}");
        let readings = none.iter().filter(|(_, gap)| **gap > 2 * READING_NS).count();
        assert!(readings <= 2, "{which:?}: the clock is read too often: {none:?}");
    }
}

#[test]
fn no_latency_contains_the_time_of_logs() {
    for which in LOOPS {
        let (mut job, clock) = (job(), FakeClock::default());
        job.logs = Some(logs(&[LogKind::Completion], None));
        let sink: Box<dyn LogSink> =
            Box::new(SlowSink { clock: clock.clone(), work_ns: WORK_NS, block_ios: 10 });
        let (ran, _) = run_timed(which, &job, (generated(&job), Some(sink)), &clock, whole(IO_NS));
        assert_exact(which, &ran.stats.directions);
        assert!(clock.now_ns() > 20 * WORK_NS, "the logs took no time");
    }
}

/// A mixed source that takes its time for everything it is asked.
struct SlowSource {
    clock: FakeClock,
    made: u64,
}

impl OperationSource for SlowSource {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        self.clock.advance(WORK_NS);
        let until = IOS.min(self.made + room as u64);
        let action = |number: u64| if number.is_multiple_of(3) { Action::Write } else { Action::Read };
        ops.extend((self.made..until).map(|number| Op::new(action(number), 0, 0, BLOCK_BYTES)));
        let supply = if until > self.made { Supply::Ready } else { Supply::Ended };
        self.made = until;
        supply
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }

    fn prepare(&mut self, _op: &Op, _buffer: &mut [u8]) {
        self.clock.advance(WORK_NS);
    }

    fn completed(&mut self, _op: &Op, _buffer: &[u8]) -> Result<(), fiord_sys::errno::Errno> {
        self.clock.advance(WORK_NS);
        Ok(())
    }
}

#[test]
fn no_latency_contains_the_time_of_a_source_that_verifies() {
    for which in LOOPS {
        for paced in [false, true] {
            let (mut job, clock) = (job(), FakeClock::default());
            job.access.pattern = fiord_plan::Pattern::Mixed;
            if paced {
                job.pace.ios_per_s = [Some(1_000_000_000), Some(1_000_000_000), None];
            }
            let source = SlowSource { clock: clock.clone(), made: 0 };
            let source = Source::Other(Box::new(source));
            let (ran, _) = run_timed(which, &job, (source, None), &clock, whole(IO_NS));
            let longest = |direction: &DirectionStats| direction.completion.running.max;
            assert!(
                ran.stats.directions.iter().all(|direction| longest(direction) <= IO_NS + 2 * READING_NS)
            );
        }
    }
}

/// Readings of the clock for each I/O of one job, whose I/Os are never held back: what is left of the time.
fn readings_per_io(which: Loop, change: impl Fn(&mut Job), source: impl Fn(&Job) -> Source) -> f64 {
    let (mut job, clock) = (job(), FakeClock::default());
    change(&mut job);
    let (ran, _) = run_timed(which, &job, (source(&job), None), &clock, whole(IO_NS));
    assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
    assert_exact(which, &ran.stats.directions);
    (clock.now_ns() - IOS * IO_NS) as f64 / (READING_NS * IOS) as f64
}

/// A reading costs as much as all other work of a fast I/O: what is known of the time is not asked again.
#[test]
fn the_clock_is_read_as_often_as_documented() {
    let unlimited = [Some(1_000_000_000); 3];
    for (which, plain, observed) in [(Loop::Sync, 1.0, 2.0), (Loop::Queued, 2.0, 3.0)] {
        // One reading more in 64 I/Os after work that is not an I/O, one after each check of the time.
        let assert_most = |name: &str, most: f64, change: &dyn Fn(&mut Job)| {
            let readings = readings_per_io(which, change, generated);
            assert!(readings <= most + 0.1, "{which:?}, {name}: {readings} readings an I/O, {most} expected");
        };
        let mixed = |job: &mut Job| job.access.pattern = fiord_plan::Pattern::Mixed;
        assert_most("reads", plain, &|_| {});
        assert_most("mixed", plain, &mixed);
        assert_most("a rate", observed, &|job| job.pace.ios_per_s = unlimited);
        assert_most("mixed with a rate, one drawn at a time", observed + 1.0, &|job| {
            mixed(job);
            job.pace.ios_per_s = unlimited;
        });
        // Its work is on a clock of its own; the reading before the next operation is issued follows it.
        let source = |_: &Job| Source::Other(Box::new(SlowSource { clock: FakeClock::default(), made: 0 }));
        let readings = readings_per_io(which, mixed, source);
        assert!(readings <= observed + 0.1, "{which:?}, a source that is shown completions: {readings}");
    }
}
