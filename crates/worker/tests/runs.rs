//! Whole runs of plans made by hand.
//!
//! Invariant: no assertion on a duration; what is compared are counts, bytes, reasons and errors.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;
#[path = "runs/logs.rs"]
mod logs;

use common::{BLOCK_BYTES, SIZE_BYTES, Silent, TempFile, file_job, null_job, run};
use fiord_plan::job::Fill;
use fiord_plan::{BlockSizes, ClockSource, Depth, Direction, EngineSettings, IoUring, Libaio, Plan};
use fiord_worker::{Counters, EndReason, State, View, WorkerView};

const BLOCKS: u64 = SIZE_BYTES / BLOCK_BYTES;

fn queue(depth: u32) -> Depth {
    Depth { max: depth, submit: depth, complete_min: 1, complete_max: Some(depth), low: depth }
}

#[test]
fn a_job_ends_with_its_size_and_counts_every_io() {
    let result = run(vec![null_job("a")]);
    let worker = &result.workers[0];
    assert_eq!((worker.reason, &worker.failure), (EndReason::Size, &None));
    let read = &worker.stats.directions[0];
    assert_eq!((read.ios, read.bytes), (BLOCKS, SIZE_BYTES));
    assert_eq!(read.completion.running.count, BLOCKS);
    assert_eq!(worker.stats.distribution.count(), BLOCKS);
    assert_eq!(worker.stats.depth.counts[0], BLOCKS);
}

#[test]
fn a_queue_is_filled_and_drained() {
    let mut job = null_job("a");
    job.depth = queue(8);
    let result = run(vec![job]);
    let stats = &result.workers[0].stats;
    assert_eq!((stats.directions[0].ios, stats.directions[0].bytes), (BLOCKS, SIZE_BYTES));
    assert_eq!(stats.directions[0].submission.running.count, BLOCKS);
    assert_eq!(stats.depth.counts.iter().sum::<u64>(), BLOCKS);
    assert!(stats.depth.counts[3] > 0, "depth 8 was never reached: {:?}", stats.depth);
}

#[test]
fn without_a_clock_ios_are_counted_and_nothing_is_timed() {
    let mut job = null_job("a");
    job.measure.clock = ClockSource::None;
    let result = run(vec![job]);
    let read = &result.workers[0].stats.directions[0];
    assert_eq!((read.ios, read.completion.running.count), (BLOCKS, 0));
}

#[test]
fn a_time_based_job_ends_by_its_time_with_or_without_a_clock() {
    for clock in [ClockSource::Best, ClockSource::None] {
        let mut job = null_job("a");
        job.measure.clock = clock;
        job.limits.time_based = true;
        job.limits.runtime_ns = Some(20_000_000);
        let result = run(vec![job]);
        assert_eq!(result.workers[0].reason, EndReason::Time, "{clock:?}");
        assert!(result.workers[0].stats.directions[0].ios > BLOCKS);
    }
}

#[test]
fn what_was_written_is_in_the_file_and_can_be_read() {
    for (name, engine, depth) in
        [("psync", EngineSettings::Psync, 1), ("uring", EngineSettings::IoUring(IoUring::default()), 4)]
    {
        let file = TempFile::new(name);
        let mut writer = file_job("w", engine.clone(), Direction::Write, &file);
        writer.depth = queue(depth);
        let mut reader = file_job("r", engine, Direction::Read, &file);
        reader.depth = queue(depth);
        reader.schedule.stonewall = true;
        let result = run(vec![writer, reader]);
        for worker in &result.workers {
            assert_eq!(worker.failure, None);
        }
        assert_eq!(result.workers[0].stats.directions[1].bytes, SIZE_BYTES);
        assert_eq!(result.workers[1].stats.directions[0].bytes, SIZE_BYTES);
        let written = std::fs::read(&file.0).unwrap();
        assert!(written.chunks(BLOCK_BYTES as usize).all(|block| block.iter().any(|byte| *byte != 0)));
    }
}

#[test]
fn a_file_that_shrank_ends_its_job_alone_and_says_where() {
    let file = TempFile::new("shrunk");
    std::fs::write(&file.0, vec![1; SIZE_BYTES as usize / 2]).unwrap();
    let mut reader = file_job("r", EngineSettings::Psync, Direction::Read, &file);
    reader.files.list[0].lay_out_bytes = None;
    let result = run(vec![reader, null_job("n")]);
    let failure = result.workers[0].failure.as_ref().unwrap();
    assert_eq!(failure.range, Some((SIZE_BYTES / 2, BLOCK_BYTES)));
    assert!(failure.to_string().contains("end of file"), "{failure}");
    assert_eq!(result.workers[0].stats.directions[0].bytes, SIZE_BYTES / 2);
    assert_eq!(result.workers[1].reason, EndReason::Size);
}

#[test]
fn a_missing_directory_is_a_failure_of_that_job() {
    let file = TempFile(std::env::temp_dir().join("fiord-no-such-directory/file"));
    let result = run(vec![file_job("r", EngineSettings::Psync, Direction::Write, &file), null_job("n")]);
    let failure = result.workers[0].failure.as_ref().unwrap();
    assert_eq!(failure.errno.unwrap().name(), "ENOENT");
    assert_eq!(result.workers[1].failure, None);
}

#[test]
fn the_end_of_one_job_ends_others_if_it_says_so() {
    let mut first = null_job("first");
    first.schedule.exit_all = true;
    let mut endless = null_job("endless");
    endless.limits.time_based = true;
    endless.limits.runtime_ns = Some(u64::MAX / 2);
    let result = run(vec![first, endless]);
    assert_eq!(result.workers[1].reason, EndReason::Others);
}

#[test]
fn a_waiting_job_starts_after_the_one_it_waits_for() {
    let mut second = null_job("second");
    second.schedule.wait_for = Some("first".to_string());
    let mut first = null_job("first");
    first.limits.loops = 50;
    let result = run(vec![first, second]);
    assert!(result.workers.iter().all(|worker| worker.failure.is_none()));
    assert_eq!(result.workers[1].stats.directions[0].ios, BLOCKS);
}

#[test]
fn a_ramp_is_not_counted() {
    let mut job = null_job("a");
    job.limits.time_based = true;
    job.limits.ramp_ns = 5_000_000;
    job.limits.runtime_ns = Some(5_000_000);
    let result = run(vec![job]);
    let stats = &result.workers[0].stats;
    assert_eq!(stats.directions[0].ios, stats.directions[0].completion.running.count);
    assert_eq!(result.workers[0].reason, EndReason::Time);
}

#[test]
fn an_error_is_passed_over_where_the_job_says_so() {
    let file = TempFile::new("continue");
    std::fs::write(&file.0, vec![1; SIZE_BYTES as usize]).unwrap();
    let mut job = file_job("t", EngineSettings::Psync, Direction::Trim, &file);
    job.files.writable = false;
    job.files.list[0].lay_out_bytes = None;
    job.errors.passed_over[2] = vec![25];
    let result = run(vec![job]);
    let worker = &result.workers[0];
    assert_eq!(worker.failure, None);
    assert_eq!(worker.stats.errors_total, BLOCKS);
    assert_ne!(worker.stats.first_error, 0);
    assert_eq!(worker.stats.directions[2].completion.running.count, 0, "a failed I/O has no latency");
}

#[test]
fn many_workers_start_and_their_totals_are_right() {
    let jobs: Vec<_> = (0..200).map(|number| null_job(&format!("j{number}"))).collect();
    let result = run(jobs);
    let ios: u64 = result.workers.iter().map(|worker| worker.stats.directions[0].ios).sum();
    assert_eq!(ios, 200 * BLOCKS);
}

#[test]
fn a_snapshot_shows_a_running_job() {
    let mut job = null_job("a");
    job.limits.time_based = true;
    job.limits.runtime_ns = Some(100_000_000);
    let every = Some(std::time::Duration::from_millis(20));
    let mut watcher = Silent { snapshot_every: every, ..Silent::default() };
    fiord_worker::run(&std::sync::Arc::new(Plan { jobs: vec![job] }), &mut watcher);
    assert!(watcher.snapshots > 0);
}

#[test]
fn the_time_left_is_that_of_stages_behind_each_other() {
    let jobs: Vec<_> = (0..4).map(|number| null_job(&format!("j{number}"))).collect();
    let worker = |number: usize, stage: usize, state: State, left_s: Option<f64>| WorkerView {
        job: &jobs[number],
        stage,
        state,
        counters: Counters::default(),
        files_open: 0,
        done: None,
        left_s,
    };
    let mut view = View {
        elapsed_ns: 1_000_000_000,
        workers: vec![
            worker(0, 0, State::Ended, None),
            worker(1, 0, State::Running, Some(3.0)),
            worker(2, 0, State::Running, Some(1.0)),
            worker(3, 1, State::Waiting, Some(4.0)),
        ],
    };
    assert_eq!((view.left_s(), view.done()), (Some(7.0), Some(0.125)));
    view.workers[3].left_s = None;
    assert_eq!((view.left_s(), view.done()), (None, None));
}

#[test]
fn its_own_cost_is_measured_by_so_many_ios_and_no_more() {
    let mut job = null_job("a");
    job.depth = queue(32);
    // A job that reads from a file is measured without it.
    job.engine = EngineSettings::Psync;
    let cost = fiord_worker::self_cost(&job).unwrap();
    assert!(cost.sync_ns_per_io > 0.0 && cost.queued_ns_per_io > 0.0 && cost.clock_read_ns > 0.0, "{cost:?}");
    assert!((2 * BLOCKS..=fiord_worker::SELF_COST_IOS_MAX).contains(&cost.ios), "{cost:?}");
    assert_eq!(cost.queued_depth, 32);
    job.measure.clock = ClockSource::None;
    assert_eq!(fiord_worker::self_cost(&job).unwrap().clock_read_ns, 0.0);
}

/// Large buffers are filled in the loop: as whole as those that are filled ahead.
#[test]
fn what_is_written_from_buffers_that_are_filled_late_is_what_was_asked_for() {
    const BLOCK: u64 = 2 << 20;
    const COUNT: u64 = 12;
    let random = |refill: bool, scramble: bool| (Fill::Random { refill, scramble }, None);
    let pattern = (Fill::Pattern { bytes: vec![0x7e], offset_at: Vec::new() }, Some(0x7e));
    for (fill, byte) in [random(false, true), random(false, false), random(true, false), pattern] {
        for engine in [EngineSettings::Psync, EngineSettings::Libaio(Libaio::default())] {
            let file = TempFile::new("late");
            let mut job = file_job("a", engine, Direction::Write, &file);
            job.buffers.fill = fill.clone();
            job.buffers.bytes = BLOCK;
            job.access.block_sizes = [0; 3].map(|_: u8| BlockSizes::Fixed(BLOCK));
            job.access.align_bytes = [BLOCK; 3];
            job.files.list[0].length_bytes = COUNT * BLOCK;
            (job.limits.pass_bytes, job.limits.loop_bytes) = (COUNT * BLOCK, COUNT * BLOCK);
            job.depth = if job.engine == EngineSettings::Psync { job.depth } else { queue(4) };
            let failure = run(vec![job]).workers[0].failure.clone();
            if failure.as_ref().is_some_and(|failure| failure.operation.contains("set up")) {
                continue;
            }
            assert_eq!(failure, None);
            let bytes = std::fs::read(&file.0).unwrap();
            assert_eq!(bytes.len() as u64, COUNT * BLOCK);
            let is_right = |part: &[u8]| match byte {
                Some(byte) => part.iter().all(|there| *there == byte),
                None => part.iter().any(|there| *there != 0),
            };
            assert!(bytes.chunks(512).all(is_right), "{fill:?}");
        }
    }
}
