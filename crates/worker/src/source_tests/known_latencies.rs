//! Every kind of stream on an engine whose latencies are known: what is recorded is what the script says, and with fiord's own
//! time it adds up to the time of the loop.
//!
//! Invariant: every call of a source takes `WORK_NS`, in comparison with which an I/O takes no time at all: one that is in a
//! latency shows in its sum.

use fiord_engine::scripted::{Answer, FakeClock, Script, Seen};
use fiord_plan::{
    BlockSizes, FileIndex, FileLock, Flow, Job, LogKind, Op, Pattern, Think, ZoneSkip, ZonedAccess,
};
use fiord_stats::Latency;
use fiord_sys::errno::Errno;
use fiord_verify::{Checksum, Method};
use fiord_workload::{OperationSource, Source, Supply};

use super::harness::{LOOPS, Loop, READING_NS, Ran, SlowSink, queue, run_timed};
use crate::files::locks::Locks;
use crate::files::target_opener::TargetOpener;
use crate::files::zones::ZoneTables;
use crate::hot::end::End;
use crate::job::assembly::{self, Common};
use crate::log_sink::LogSink;
use crate::test_jobs::{BLOCK_BYTES, logs, null_job};

#[allow(dead_code, reason = "shared with the tests in tests/")]
#[path = "../../tests/verified/mod.rs"]
mod verified;

const WORK_NS: u64 = 50_000;
const IOS: u64 = 200;

/// The source of the job, each call of which takes its time.
struct Slow {
    source: Source,
    clock: FakeClock,
    /// How long it takes to draw a batch.
    draw_ns: u64,
}

impl OperationSource for Slow {
    fiord_workload::wraps!(source);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        self.clock.advance(self.draw_ns);
        self.source.fill(ops, room, now_ns)
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.source.for_each_open_file(show);
    }

    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        self.clock.advance(WORK_NS);
        self.source.prepare(op, buffer);
    }

    fn issued(&mut self, op: &Op, at_ns: u64) {
        self.clock.advance(WORK_NS);
        self.source.issued(op, at_ns);
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        self.clock.advance(WORK_NS);
        self.source.completed(op, buffer)
    }
}

/// How long the n-th operation takes.
fn delay_ns(number: u64) -> u64 {
    100 + 37 * (number % 50)
}

/// Each kind of stream, and how a job comes to have it.
type Kind = (&'static str, fn(&mut Job));

const KINDS: [Kind; 12] = [
    ("sequential", |job| job.access.random = false),
    ("mixed, sizes drawn", |job| {
        job.access.pattern = Pattern::Mixed;
        job.access.block_sizes = [0; 3].map(|_: u8| BlockSizes::Range { min: 512, max: 4096 });
    }),
    ("logged", |job| job.logs = Some(logs(&[LogKind::Completion, LogKind::Submission], None))),
    ("logged, mixed", |job| {
        job.access.pattern = Pattern::Mixed;
        job.logs = Some(logs(&[LogKind::Total], None));
    }),
    ("a rate", |job| job.pace.ios_per_s = [Some(2_000); 3]),
    ("a rate, polled", |job| (job.pace.ios_per_s, job.pace.wakes_early) = ([Some(900); 3], true)),
    ("a rate, mixed", |job| {
        job.access.pattern = Pattern::Mixed;
        job.pace.ios_per_s = [Some(2_000); 3];
    }),
    ("pauses", |job| {
        job.pace.think = Some(Think {
            pause_us: 700,
            spin_us: 0,
            cycles: 0,
            every_ios: 3,
            count_issued: false,
            io_time_us: 0,
        });
    }),
    ("flow", |job| job.pace.flow = Some(Flow { id: 0, weight: 3, sleep_us: 1 })),
    ("zones", |job| {
        job.access.pattern = Pattern::Mixed;
        job.access.zoned = Some(ZonedAccess {
            zone_bytes: 16384,
            capacity_bytes: 12288,
            skip: ZoneSkip::NONE,
            open_max: Some(2),
            job_open_max: Some(1),
            ignores_device_limit: false,
            reads_beyond_pointer: true,
            reset_threshold: 0.1,
            reset_every: Some(2),
            recovers: false,
            appends: false,
            writes_remainder: true,
        });
    }),
    ("verified", |job| {
        job.access.pattern = Pattern::Only(fiord_plan::Direction::Write);
        // The engine transfers nothing.
        let verification = verified::verification(Method::Checksum(Checksum::Crc32c));
        job.verification = Some(fiord_plan::Verification { checks: false, ..verification });
    }),
    ("locked", |job| job.files.lock = Some(FileLock::Exclusive)),
];

/// Runs a job of this kind; the receiver of logs is slow, too.
fn run(which: Loop, (name, change): Kind, depth: u32) -> (Ran, Vec<Seen>, u64) {
    let (mut job, clock) = (null_job(name), FakeClock::default());
    job.access.random = true;
    job.limits.number_ios = Some(IOS);
    job.depth = queue(depth);
    change(&mut job);
    let (opener, zones, locks) = (TargetOpener::default(), ZoneTables::default(), Locks::default());
    let source =
        assembly::source(&job, Common { opener: &opener, zones: &zones, locks: &locks }, None).unwrap();
    // A batch is drawn while another is in flight, whose end is seen afterwards.
    let draw_ns = if job.submission.serialize_overlap { 0 } else { WORK_NS };
    let source = Source::Other(Box::new(Slow { source, clock: clock.clone(), draw_ns }));
    let sink = job.logs.as_ref().map(|_| {
        Box::new(SlowSink { clock: clock.clone(), work_ns: WORK_NS, block_ios: 7 }) as Box<dyn LogSink>
    });
    let script: Script = Box::new(|number, op| Answer::whole(op, delay_ns(number)));
    let (ran, seen) = run_timed(which, &job, (source, sink), &clock, script);
    assert!(matches!(ran.end, End::Complete), "{name}: {:?}", ran.end);
    assert!(seen.len() as u64 >= IOS / 2, "{name}: {}", seen.len());
    (ran, seen, clock.now_ns())
}

/// Asserts that latencies are these, each but for one reading of the clock.
fn assert_are(what: &str, latency: &Latency, scripted_ns: &[u64]) {
    let (running, readings_ns) = (&latency.running, READING_NS * scripted_ns.len() as u64);
    assert_eq!(running.count, scripted_ns.len() as u64, "{what}");
    let (Some(min), Some(max)) = (scripted_ns.iter().min(), scripted_ns.iter().max()) else { return };
    assert!((*min..=min + READING_NS).contains(&running.min), "{what}: {running:?}");
    assert!((*max..=max + READING_NS).contains(&running.max), "{what}: {running:?}");
    let sum: u64 = scripted_ns.iter().sum();
    assert!((u128::from(sum)..=u128::from(sum + readings_ns)).contains(&running.sum), "{what}: {running:?}");
}

/// Asserts that submission latencies are nothing but a reading of the clock.
fn assert_submitted_at_once(what: &str, latency: &Latency) {
    assert!(latency.running.max <= READING_NS, "{what}: {:?}", latency.running);
}

#[test]
fn latencies_of_every_kind_of_stream_are_those_of_the_script() {
    for which in LOOPS {
        for kind in KINDS {
            let (ran, seen, _) = run(which, kind, 1);
            for (index, stats) in ran.stats.directions.iter().enumerate() {
                let is_meant = |op: &Op| {
                    op.purpose.rules().is_measured
                        && op.action.direction().is_some_and(|of| of.index() == index)
                };
                let scripted = seen.iter().enumerate().filter(|(_, seen)| is_meant(&seen.op));
                let scripted_ns: Vec<u64> = scripted.map(|(number, _)| delay_ns(number as u64)).collect();
                let what = |latency: &str| format!("{which:?}, {}, {latency}", kind.0);
                assert_are(&what("completion"), &stats.completion, &scripted_ns);
                if which == Loop::Queued {
                    assert_submitted_at_once(&what("submission"), &stats.submission);
                    assert_eq!(
                        stats.total.running.sum,
                        stats.completion.running.sum + stats.submission.running.sum,
                        "{}",
                        what("total")
                    );
                } else {
                    assert_are(&what("total"), &stats.total, &scripted_ns);
                }
            }
        }
    }
}

/// With others in flight, the end of an I/O is seen when fiord looks; its submission is of itself alone.
#[test]
fn submission_holds_no_work_while_others_are_in_flight() {
    for kind in KINDS {
        let (ran, ..) = run(Loop::Queued, kind, 4);
        for stats in &ran.stats.directions {
            assert_submitted_at_once(kind.0, &stats.submission);
        }
    }
}

#[test]
fn latencies_own_work_and_waits_are_the_time_of_the_loop() {
    for which in LOOPS {
        for kind in KINDS.into_iter().filter(|(name, _)| *name != "verified") {
            let (ran, seen, whole_ns) = run(which, kind, 1);
            let latencies = ran.stats.directions.iter().map(|direction| direction.total.running.sum);
            let in_ios_ns = latencies.map(|sum| sum as u64).sum::<u64>();
            let unexplained_ns = whole_ns.abs_diff(in_ios_ns + ran.own.work_ns() + ran.own.waited_ns());
            let what = || format!("{which:?}, {}: {whole_ns} {in_ios_ns} {:?}", kind.0, ran.own);
            // The first and the last reading, and in the queue one each millisecond, when requests of others are looked for
            // while the I/O is in flight.
            let both_ns = READING_NS * if which == Loop::Queued { whole_ns / 1_000_000 } else { 0 };
            assert!(unexplained_ns <= 2 * READING_NS + both_ns, "{}, {unexplained_ns} are missing", what());
            let is_paced = kind.0.starts_with("a rate") || kind.0 == "pauses";
            assert_eq!(ran.own.waited_ns() > 100 * 10_000, is_paced, "{}", what());
            assert!(ran.own.work_ns() > seen.len() as u64 * WORK_NS, "{}", what());
        }
    }
}

/// Of I/Os that overlap one is in flight at a time, whatever the depth: each is issued when fiord has seen the end of the one
/// before.
#[test]
fn overlaps_that_wait_for_each_other_have_the_latencies_of_the_script() {
    let kind: Kind = ("overlaps", |job| {
        job.submission.serialize_overlap = true;
        job.files.list[0].length_bytes = BLOCK_BYTES;
        (job.access.full_coverage, job.limits.repeats_passes) = (false, true);
    });
    let (ran, seen, _) = run(Loop::Queued, kind, 4);
    let scripted_ns: Vec<u64> = (0..seen.len() as u64).map(delay_ns).collect();
    let reads = &ran.stats.directions[0];
    assert_are("completion", &reads.completion, &scripted_ns);
    assert_submitted_at_once("submission", &reads.submission);
    assert_eq!(ran.stats.depth.counts[0], IOS, "one at a time");
}
