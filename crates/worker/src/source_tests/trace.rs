//! Recording in an iolog and replaying it, on both loops, against what the engine saw.
//!
//! Invariant: replay(record(x)) = x: directions, files, offsets, lengths, and times to the microsecond.

use std::fs::File;
use std::io::BufReader;

use std::fmt::Write;

use fiord_engine::scripted::Seen;
use fiord_plan::replay::{Transform, summarize};
use fiord_plan::{Action, Direction, FileKind, Job, Pattern, Replay, TraceNeed};
use fiord_workload::{Source, Stream};

use super::harness::{LOOPS, Loop, run_scripted, whole};
use crate::files::target_opener::TargetOpener;
use crate::hot::end::End;
use crate::job::record::RecordedSource;
use crate::job::replay::ReplaySource;
use crate::test_jobs::{BLOCK_BYTES, TempFile, null_job};

const IOS: u64 = 3_000;

/// A job on two files that nothing opens, with as many I/Os as several batches hold.
fn job() -> Job {
    let mut job = null_job("trace");
    job.files.list.push(job.files.list[0].clone());
    for (number, file) in job.files.list.iter_mut().enumerate() {
        file.path = format!("file {number}").into();
        (file.kind, file.length_bytes) = (FileKind::None, IOS / 2 * BLOCK_BYTES);
    }
    job.files.open_at_once = 2;
    (job.access.pattern, job.access.random) = (Pattern::Mixed, true);
    job.access.barriers.fsync_every = 7;
    (job.limits.pass_bytes, job.limits.loop_bytes) = (IOS * BLOCK_BYTES, IOS * BLOCK_BYTES);
    job
}

/// Runs the job and records it; returns what the engine saw.
fn record(which: Loop, iolog: &TempFile) -> Vec<Seen> {
    let job = job();
    let stream = Stream::new(&job.access, &job.files, &job.limits).unwrap();
    let opener = TargetOpener::default();
    let source = RecordedSource::new(Source::Generator(stream), &job, &iolog.0, &opener).unwrap();
    let (ran, seen) = run_scripted(which, &job, Box::new(source), whole(1_500));
    assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
    seen
}

fn replay(which: Loop, iolog: &TempFile, transform: Transform) -> Vec<Seen> {
    let trace = TraceNeed { path: iolog.0.clone(), parts: Vec::new(), transform };
    let summary = summarize(BufReader::new(File::open(&iolog.0).unwrap()), transform).unwrap();
    let replay = Replay {
        trace,
        inputs: vec![iolog.0.clone()],
        redirected: false,
        length_ns: summary.length_ns,
        bytes: summary.bytes,
        directions: [true, true, false],
    };
    let job = Job { replay: Some(replay.clone()), ..job() };
    let source = ReplaySource::new(&job, &replay, None).unwrap();
    let (ran, seen) = run_scripted(which, &job, Box::new(source), whole(1_500));
    assert!(matches!(ran.end, End::Complete), "{:?}", ran.end);
    seen
}

/// What is the same in a replay. An iolog has no offset for a synchronization.
fn facts(seen: &[Seen]) -> Vec<(Action, u32, u64, u64)> {
    let range = |seen: &Seen| {
        seen.op.action.direction().map_or((0, 0), |_: Direction| (seen.op.offset_bytes, seen.op.length_bytes))
    };
    seen.iter().map(|seen| (seen.op.action, seen.op.file, range(seen).0, range(seen).1)).collect()
}

#[test]
fn what_was_recorded_is_replayed() {
    for (number, which) in LOOPS.into_iter().enumerate() {
        let iolog = TempFile::new(&format!("trace-{number}"));
        // One that exists is continued.
        let _ = std::fs::remove_file(&iolog.0);
        let recorded = record(which, &iolog);
        assert!(recorded.len() as u64 > IOS, "{which:?}: with synchronizations");
        let replayed = replay(which, &iolog, Transform { no_stall: true, ..Transform::default() });
        assert_eq!(facts(&replayed), facts(&recorded), "{which:?}");
    }
}

#[test]
fn a_replay_keeps_the_times_of_the_recording_and_can_be_slower() {
    let iolog = TempFile::new("trace-times");
    let _ = std::fs::remove_file(&iolog.0);
    let recorded = record(Loop::Sync, &iolog);
    for (speed_percent, factor) in [(100, 1), (50, 2)] {
        let replayed = replay(Loop::Sync, &iolog, Transform { speed_percent, ..Transform::default() });
        for (recorded, replayed) in recorded.iter().zip(&replayed) {
            // The fake clock goes on by the time until the next batch is looked for, or until the next I/O is due.
            let due_ns = recorded.at_ns / 1_000 * 1_000 * factor;
            assert!(replayed.at_ns >= due_ns, "{recorded:?} {replayed:?}");
        }
    }
}

/// On a clock that nothing disturbs, half of the I/Os are less than 20 us late (they are not late at all).
#[test]
fn a_replay_is_on_time() {
    const GAP_US: u64 = 130;
    // One batch, which is read before the start: how fast the reader's thread is plays no part.
    let entries = 1..=1000_u64;
    let mut text =
        "fio version 3 iolog\n0 file 0 add\n0 file 1 add\n0 file 0 open\n0 file 1 open\n".to_string();
    for at in entries.clone() {
        writeln!(text, "{} file {} read {} {BLOCK_BYTES}", at * GAP_US, at % 2, at * BLOCK_BYTES).unwrap();
    }
    for (number, which) in LOOPS.into_iter().enumerate() {
        let iolog = TempFile::new(&format!("trace-on-time-{number}"));
        std::fs::write(&iolog.0, &text).unwrap();
        let seen = replay(which, &iolog, Transform::default());
        let late_ns =
            |(seen, at): (&Seen, u64)| seen.at_ns.checked_sub(at * GAP_US * 1000).expect("not early");
        let mut late_ns: Vec<u64> = seen.iter().zip(entries.clone()).map(late_ns).collect();
        late_ns.sort_unstable();
        assert_eq!(late_ns.len(), 1000);
        assert!(late_ns[500] < 20_000, "{which:?}: {}", late_ns[500]);
    }
}
