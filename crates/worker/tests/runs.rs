//! Whole runs of hand-made plans.
//!
//! Invariant: no assertion on a duration; what is compared are counts, bytes, reasons and errors.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;
#[path = "runs/gates.rs"]
mod gates;
#[path = "runs/logs.rs"]
mod logs;

use std::sync::Arc;
use std::time::Duration;

use common::{BLOCK_BYTES, CallCounter, SIZE_BYTES, TempFile, file_job, null_job, run};
use fiord_engine::EngineDefinition;
use fiord_engine::engines::{
    IoUring, Libaio, Mmap, Posixaio, Psync, io_uring::Settings as IoUringSettings,
    libaio::Settings as LibaioSettings,
};
use fiord_plan::job::Fill;
use fiord_plan::{BlockSizes, ClockSource, Depth, Direction, EngineName, Job, LogKind, Plan};
use fiord_stats::{DetailedProgress, DirectionProgress, RunLatencies};
use fiord_worker::{
    Counters, EndReason, Moment, PublishedProgress, State, View, Watcher, WorkerReport, WorkerView,
};
use fiord_workload::Stream;

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
    assert_eq!(worker.stats.distribution.counts().iter().sum::<u64>(), BLOCKS);
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
        [("psync", Psync::planned(()), 1), ("uring", IoUring::planned(IoUringSettings::default()), 4)]
    {
        let file = TempFile::new(name);
        let mut writer = file_job("w", engine.clone(), Direction::Write, &file);
        writer.depth = queue(depth);
        writer.buffers.fill = Fill::Pattern { bytes: vec![0x5a; 512], offset_at: vec![8] };
        let mut reader = file_job("r", engine, Direction::Read, &file);
        reader.depth = queue(depth);
        reader.schedule.stonewall = true;
        // Only the writer creates the contents: no layout is compared or read.
        writer.files.list[0].lay_out_bytes = None;
        reader.files.list[0].lay_out_bytes = None;
        let result = run(vec![writer, reader]);
        for worker in &result.workers {
            assert_eq!(worker.failure, None);
        }
        assert_eq!(result.workers[0].stats.directions[1].bytes, SIZE_BYTES);
        assert_eq!(result.workers[1].stats.directions[0].bytes, SIZE_BYTES);
        let written = std::fs::read(&file.0).unwrap();
        assert!(written == stamped_blocks(), "{name}: each block holds the pattern, and its own offset");
    }
}

/// A file of 0x5a bytes, with the offset of its block at byte 8 of every 512 bytes.
fn stamped_blocks() -> Vec<u8> {
    let mut file = vec![0x5a; SIZE_BYTES as usize];
    for (number, block) in (0_u64..).zip(file.chunks_mut(BLOCK_BYTES as usize)) {
        for sector in block.chunks_mut(512) {
            sector[8..16].copy_from_slice(&(number * BLOCK_BYTES).to_le_bytes());
        }
    }
    file
}

/// Descriptors have the same numbers in the tables of all workers, and some engines have threads that serve all of them.
#[test]
fn jobs_beside_each_other_write_their_own_files() {
    let engines = [
        Psync::planned(()),
        Mmap::planned(Default::default()),
        Posixaio::planned(()),
        Libaio::planned(LibaioSettings::default()),
        IoUring::planned(IoUringSettings::default()),
    ];
    for engine in engines {
        let name = engine.name();
        let files: Vec<TempFile> = (0..4).map(|_| TempFile::new("beside")).collect();
        let writer = |(number, file)| {
            let mut job = file_job("w", engine.clone(), Direction::Write, file);
            job.depth = queue(if job.engine.descriptor.can_queue() { 4 } else { 1 });
            job.buffers.fill = Fill::Pattern { bytes: vec![number; 512], offset_at: Vec::new() };
            job.limits.loops = 4;
            job
        };
        let result = run((1..).zip(&files).map(writer).collect());
        for worker in &result.workers {
            assert_eq!(worker.failure, None, "{name}");
        }
        for (number, file) in (1..).zip(&files) {
            let written = std::fs::read(&file.0).unwrap();
            assert!(
                written == vec![number; SIZE_BYTES as usize],
                "{name}: job {number} wrote its file alone"
            );
        }
    }
}

/// The offsets of a job's I/Os, in the order in which they were done.
fn offsets(job: Job) -> Vec<u64> {
    common::run_logged(job).1.ios.iter().map(|io| io.offset_bytes).collect()
}

#[test]
fn ios_are_done_in_the_requested_order() {
    for depth in [1, 8] {
        for random in [false, true] {
            let mut job = null_job("a");
            job.depth = queue(depth);
            job.access.random = random;
            job.logs = Some(common::logs(&[LogKind::Bandwidth], None));
            let mut stream = Stream::new(&job.access, &job.files, &job.limits).unwrap();
            let mut ops = Vec::new();
            while stream.fill(&mut ops, 64) > 0 {}
            let expected: Vec<u64> = ops.iter().map(|op| op.offset_bytes).collect();
            assert_eq!(expected.is_sorted(), !random);
            assert_eq!(offsets(job), expected, "depth {depth}, random {random}");
        }
    }
}

#[test]
fn a_file_that_shrank_fails_only_its_job_and_names_the_place() {
    let file = TempFile::new("shrunk");
    std::fs::write(&file.0, vec![1; SIZE_BYTES as usize / 2]).unwrap();
    let mut reader = file_job("r", Psync::planned(()), Direction::Read, &file);
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
    let result = run(vec![file_job("r", Psync::planned(()), Direction::Write, &file), null_job("n")]);
    let failure = result.workers[0].failure.as_ref().unwrap();
    assert_eq!(failure.errno.unwrap().name(), "ENOENT");
    assert_eq!(result.workers[1].failure, None);
}

#[test]
fn the_end_of_one_job_ends_others_with_exitall() {
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
    let file = TempFile::new("awaited");
    let mut first = file_job("first", Psync::planned(()), Direction::Write, &file);
    let mut second = file_job("second", Psync::planned(()), Direction::Read, &file);
    second.schedule.wait_for = Some(first.name.clone());
    // The second can neither open nor read what the first has not written.
    first.files.list[0].lay_out_bytes = None;
    second.files.list[0].lay_out_bytes = None;
    let result = run(vec![second, first]);
    for worker in &result.workers {
        assert_eq!(worker.failure, None);
    }
    assert_eq!(result.workers[0].stats.directions[0].ios, BLOCKS);
}

/// I/Os that a job of `passes` passes measured, after checking that all figures of its report agree.
fn measured(mut job: Job, depth: u32, passes: u64) -> u64 {
    job.depth = queue(depth);
    job.limits.loops = passes;
    let worker = run(vec![job]).workers.remove(0);
    assert_eq!((worker.reason, &worker.failure), (EndReason::Size, &None));
    let (stats, read) = (&worker.stats, &worker.stats.directions[0]);
    assert_eq!((read.bytes, read.completion.running.count), (read.ios * BLOCK_BYTES, read.ios));
    assert_eq!(stats.distribution.counts().iter().sum::<u64>(), read.ios);
    // What was in flight when the ramp ended was submitted in it.
    let submitted = stats.depth.counts.iter().sum::<u64>();
    assert!((read.ios - u64::from(depth)..=read.ios).contains(&submitted), "{submitted} {}", read.ios);
    read.ios
}

#[test]
fn the_ios_of_a_ramp_are_not_counted() {
    let mut by_size = null_job("a");
    by_size.limits.ramp_bytes = 64 * BLOCK_BYTES;
    assert_eq!(measured(by_size.clone(), 1, 2), 2 * BLOCKS - 64, "a ramp by size ends between two I/Os");
    // In a queue those in flight when it ends belong to it.
    let in_queue = measured(by_size, 8, 2);
    assert!((2 * BLOCKS - 64 - 8..=2 * BLOCKS - 64).contains(&in_queue), "{in_queue}");
    let mut by_time = null_job("a");
    by_time.limits.ramp_ns = 1_000_000;
    for depth in [1, 8] {
        // Enough passes to outlast the ramp on any machine.
        let passes = 4_000;
        let measured = measured(by_time.clone(), depth, passes);
        assert!((1..passes * BLOCKS).contains(&measured), "depth {depth}: {measured}");
    }
}

#[test]
fn an_error_is_ignored_where_the_job_allows_it() {
    let file = TempFile::new("continue");
    std::fs::write(&file.0, vec![1; SIZE_BYTES as usize]).unwrap();
    let mut job = file_job("t", Psync::planned(()), Direction::Trim, &file);
    // A hole cannot be punched in a file that is open for reading only: EBADF.
    job.files.writable = false;
    job.files.list[0].lay_out_bytes = None;
    job.errors.passed_over[2] = vec![9];
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
    let mut watcher = CallCounter { snapshot_every: every, ..CallCounter::default() };
    fiord_worker::run(
        &std::sync::Arc::new(Plan { jobs: vec![job], trigger: None }),
        fiord_worker::ENGINES,
        &mut watcher,
    );
    assert!(watcher.snapshots > 0);
}

#[test]
fn the_time_left_is_the_sum_over_stages() {
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
fn its_own_cost_is_measured_with_a_limited_number_of_ios() {
    let mut job = null_job("a");
    job.depth = queue(32);
    // A job that reads from a file is measured without it.
    job.engine = Psync::planned(());
    let cost = fiord_worker::self_cost(&job).unwrap();
    assert!(cost.sync_ns_per_io > 0.0 && cost.queued_ns_per_io > 0.0 && cost.clock_read_ns > 0.0, "{cost:?}");
    assert!((2 * BLOCKS..=1 << 17).contains(&cost.ios), "{cost:?}");
    assert_eq!(cost.queued_depth, 32);
    job.measure.clock = ClockSource::None;
    assert_eq!(fiord_worker::self_cost(&job).unwrap().clock_read_ns, 0.0);
}

/// What a job does for each I/O is in its cost; a round that its own number of I/Os ends is measured as well.
#[test]
fn the_cost_of_an_io_is_that_of_the_job_with_its_logs() {
    let mut job = null_job("a");
    job.limits.number_ios = Some(100);
    assert!(fiord_worker::cost_per_io(&job).unwrap().ns > 0.0);
    job.depth = queue(8);
    assert!(fiord_worker::cost_per_io(&job).unwrap().ns > 0.0);
}

/// Large buffers are filled in the loop, as completely as those that are filled ahead.
#[test]
fn buffers_filled_in_the_loop_hold_the_requested_contents() {
    const BLOCK: u64 = 2 << 20;
    const COUNT: u64 = 12;
    let random = |refill: bool, scramble: bool| (Fill::Random { refill, scramble }, None);
    let pattern = (Fill::Pattern { bytes: vec![0x7e], offset_at: Vec::new() }, Some(0x7e));
    for (fill, byte) in [random(false, true), random(false, false), random(true, false), pattern] {
        for engine in [Psync::planned(()), Libaio::planned(LibaioSettings::default())] {
            let file = TempFile::new("late");
            let mut job = file_job("a", engine, Direction::Write, &file);
            job.buffers.fill = fill.clone();
            job.buffers.bytes = BLOCK;
            job.access.block_sizes = [0; 3].map(|_: u8| BlockSizes::Fixed(BLOCK));
            job.access.align_bytes = [BLOCK; 3];
            job.files.list[0].length_bytes = COUNT * BLOCK;
            (job.limits.pass_bytes, job.limits.loop_bytes) = (COUNT * BLOCK, COUNT * BLOCK);
            job.depth = if job.engine.name() == EngineName::Psync { job.depth } else { queue(4) };
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

/// Follows what a run has done so far.
#[derive(Default)]
struct ProgressFollower {
    seen: Vec<(u64, DetailedProgress)>,
    latencies: Vec<RunLatencies>,
}

impl Watcher for ProgressFollower {
    fn progress_every(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }

    fn progressed(&mut self, elapsed_ns: u64, published: &PublishedProgress<'_>) {
        let (mut all, mut numbers) = (DetailedProgress::default(), Vec::new());
        let mut latencies = Some(RunLatencies::default());
        published.for_each(|job| {
            numbers.push(job.number);
            all.merge(job.so_far);
            latencies = latencies.take().zip(job.latencies).map(|(mut sum, theirs)| {
                sum.merge(theirs);
                sum
            });
        });
        assert_eq!(numbers, [0, 1]);
        self.seen.push((elapsed_ns, all));
        self.latencies.extend(latencies);
    }

    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {}
}

/// On both loops: the counts only grow, each I/O that was counted has a latency, and no more are seen than there were.
#[test]
fn what_is_done_so_far_is_published_with_its_latencies() {
    for depth in [1, 8] {
        let timed = |name, number| {
            let mut job = Job { number, ..null_job(name) };
            job.depth = queue(depth);
            job.limits.time_based = true;
            job.limits.runtime_ns = Some(300_000_000);
            job
        };
        let mut follower = ProgressFollower::default();
        let plan = Arc::new(Plan { jobs: vec![timed("a", 0), timed("b", 1)], trigger: None });
        let result = fiord_worker::run(&plan, fiord_worker::ENGINES, &mut follower);
        let read = |(_, progress): &(u64, DetailedProgress)| progress.directions[0];
        let seen: Vec<DirectionProgress> = follower.seen.iter().map(read).collect();
        assert!(seen.iter().any(|read| read.ios > 0), "{} calls", seen.len());
        assert!(seen.windows(2).all(|pair| pair[0].ios <= pair[1].ios));
        assert!(seen.iter().all(|read| read.latencies.total() == read.ios), "depth {depth}");
        assert!(follower.seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let total: u64 = result.workers.iter().map(|worker| worker.stats.directions[0].ios).sum();
        assert!(seen.last().unwrap().ios <= total);
        // At full resolution only where all jobs had answered: each copy counts all that the one before does.
        let all = RunLatencies::of(result.workers.iter().map(|worker| &*worker.stats));
        assert!(!follower.latencies.is_empty(), "{} calls", seen.len());
        assert!(follower.latencies.windows(2).all(|pair| pair[1].since(&pair[0]).is_some()), "depth {depth}");
        let part = all.since(&follower.latencies[0]).unwrap();
        let reads = |latencies: &RunLatencies| latencies.directions[0].running.count;
        assert_eq!(reads(&part) + reads(&follower.latencies[0]), total);
        assert_eq!(part.directions[0].histogram.count(), reads(&part));
    }
}
