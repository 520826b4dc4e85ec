//! Hand-made plans, and a watcher that only counts.
//!
//! Invariant: a job made here runs on the null engine for 1 MiB in 4 KiB reads until a test changes that.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fiord_engine::EngineDefinition;
use fiord_engine::engines::Null;
use fiord_plan::files::{Advice, Fallocate};
use fiord_plan::job::{Buffers, ErrorPolicy, Fill, Limits, Measure, Memory, Process, Schedule, Submission};
use fiord_plan::presentation::{Presentation, RateUnit, Unified};
use fiord_plan::{
    Access, Barriers, BlockSizes, ClockSource, Depth, Direction, ExitWhat, FileKind, FilePlan, FileService,
    Files, Job, LogFile, LogKind, Logs, Pace, Pattern, Plan, PlannedEngine, Sequencer, SyncMode, WindowValue,
};
use fiord_stats::LogEntries;
use fiord_worker::{LogSink, Moment, RunResult, Watcher, WorkerReport};

/// Bytes of a job's file.
pub const SIZE_BYTES: u64 = 1 << 20;
/// Bytes of an I/O.
pub const BLOCK_BYTES: u64 = 4096;

/// A watcher that counts its calls.
#[derive(Default)]
pub struct CallCounter {
    pub layouts: usize,
    pub snapshots: usize,
    pub snapshot_every: Option<Duration>,
    /// Log entries of all jobs, in the order they were handed over.
    pub logged: Arc<Mutex<Vec<LogEntries>>>,
}

/// Keeps all entries, in blocks of a thousand I/Os.
struct KeepAll(Arc<Mutex<Vec<LogEntries>>>);

impl LogSink for KeepAll {
    fn block_ios(&self) -> usize {
        1000
    }

    fn spare(&mut self) -> Option<LogEntries> {
        Some(LogEntries::default())
    }

    fn take(&mut self, entries: LogEntries) {
        self.0.lock().unwrap().push(entries);
    }
}

impl Watcher for CallCounter {
    fn laying_out(&mut self, _job: &Job, _files: usize, _bytes: u64) {
        self.layouts += 1;
    }

    fn snapshot_every(&self) -> Option<Duration> {
        self.snapshot_every
    }

    fn log_sink(&mut self, job: &Job) -> Option<Box<dyn LogSink>> {
        job.logs.as_ref()?;
        Some(Box::new(KeepAll(self.logged.clone())))
    }

    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {
        self.snapshots += 1;
    }
}

/// Runs a job and returns its log entries as well.
pub fn run_logged(job: Job) -> (RunResult, LogEntries) {
    let mut watcher = CallCounter::default();
    let result = fiord_worker::run(
        &Arc::new(Plan { jobs: vec![job], trigger: None }),
        fiord_worker::ENGINES,
        &mut watcher,
    );
    let blocks = std::mem::take(&mut *watcher.logged.lock().unwrap());
    let join = |mut all: LogEntries, block: LogEntries| {
        all.has_submission = block.has_submission;
        all.ios.extend(block.ios);
        all.bandwidth.extend(block.bandwidth);
        all.iops.extend(block.iops);
        all.response.extend(block.response);
        all.histograms.extend(block.histograms);
        all.response_histograms.extend(block.response_histograms);
        all
    };
    (result, blocks.into_iter().fold(LogEntries::default(), join))
}

/// Runs jobs, numbering them first.
pub fn run(mut jobs: Vec<Job>) -> RunResult {
    for (number, job) in jobs.iter_mut().enumerate() {
        job.number = number as u32;
    }
    fiord_worker::run(
        &Arc::new(Plan { jobs, trigger: None }),
        fiord_worker::ENGINES,
        &mut CallCounter::default(),
    )
}

/// A file of `SIZE_BYTES` for one test, removed afterwards.
pub struct TempFile(pub PathBuf);

impl TempFile {
    pub fn new(name: &str) -> TempFile {
        // Tests of one program run side by side, and may give the same name.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        TempFile(std::env::temp_dir().join(format!("fiord-worker-{}-{number}-{name}", std::process::id())))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A job on the null engine.
pub fn null_job(name: &str) -> Job {
    Job {
        name: name.into(),
        description: None,
        number: 0,
        section: 0,
        clone: 0,
        group_id: 0,
        unplannable: None,
        engine: Null::planned(()),
        depth: Depth { max: 1, submit: 1, complete_min: 1, complete_max: None, low: 1 },
        files: files(Path::new("null"), FileKind::None),
        access: access(),
        buffers: Buffers {
            fill: Fill::Random { refill: false, scramble: false },
            memory: Memory::Malloc,
            bytes: BLOCK_BYTES,
            align_bytes: 4096,
            hugepage_bytes: 2 << 20,
            lock_bytes: 0,
            dedupe: None,
        },
        limits: Limits {
            pass_bytes: SIZE_BYTES,
            loop_bytes: SIZE_BYTES,
            repeats_passes: false,
            loops: 1,
            number_ios: None,
            runtime_ns: None,
            time_based: false,
            ramp_ns: 0,
            ramp_bytes: 0,
        },
        pace: Pace::default(),
        schedule: Schedule {
            stonewall: false,
            start_delay_ns: (0, 0),
            wait_for: None,
            exit_all: false,
            exit_all_on_error: false,
            exit_what: ExitWhat::Group,
        },
        errors: ErrorPolicy::default(),
        latency_target: None,
        steady: None,
        verification: None,
        measure: measure(),
        logs: None,
        process: Process::default(),
        submission: Submission::default(),
        presentation: presentation(),
        replay: None,
        record: None,
        io_priorities: Default::default(),
    }
}

/// A job of this engine and direction on a file.
pub fn file_job(name: &str, engine: PlannedEngine, direction: Direction, file: &TempFile) -> Job {
    let mut job = null_job(name);
    job.engine = engine;
    job.access.pattern = Pattern::Only(direction);
    job.files = files(&file.0, FileKind::Regular);
    job.files.writable = direction != Direction::Read;
    job
}

/// Logs of these kinds, with windows of `window_ms` if any.
pub fn logs(kinds: &[LogKind], window_ms: Option<u64>) -> Logs {
    let file = |kind: &LogKind| LogFile {
        kind: *kind,
        path: PathBuf::from("unwritten"),
        recorded: true,
        appends: false,
        is_compressed: false,
    };
    Logs {
        are_sent: false,
        files: kinds.iter().map(file).collect(),
        window_ms,
        bandwidth_window_ms: 1,
        iops_window_ms: 1,
        histogram_window_ms: 1,
        coarseness: 0,
        value: WindowValue::Average,
        with_offset: false,
        priority: 0,
        shows_priority: false,
        with_issue_time: false,
        held_chunk_bytes: None,
        cpus: Vec::new(),
        entries_ahead: 1024,
        clock_id: None,
    }
}

fn files(path: &Path, kind: FileKind) -> Files {
    let plan = FilePlan {
        path: path.to_path_buf(),
        kind,
        device: None,
        offset_bytes: 0,
        length_bytes: SIZE_BYTES,
        lay_out_bytes: (kind == FileKind::Regular).then_some(SIZE_BYTES),
    };
    Files {
        list: vec![plan],
        open_at_once: 1,
        direct: false,
        direct_by_engine: false,
        sync: SyncMode::None,
        lock: None,
        writable: false,
        may_create: true,
        create_on_open: false,
        create_serially: true,
        create_fsync: true,
        create_only: false,
        lay_out_contents: true,
        create_directories: Vec::new(),
        fallocate: Fallocate::Native,
        advice: Advice::ByPattern,
        write_hint: None,
        pre_read: false,
        invalidate: true,
        unlink: false,
        unlink_each_loop: false,
        end_fsync: false,
        end_syncfs: false,
        fsync_on_close: false,
        fill_device: false,
        allow_in_use: false,
    }
}

fn access() -> Access {
    Access {
        pattern: Pattern::Only(Direction::Read),
        random: false,
        stride_bytes: 0,
        ios_per_draw: 1,
        sequencer: Sequencer::Sequential,
        percent_random: [100; 3],
        distribution: [const { fiord_plan::RandomDistribution::Uniform }; 3],
        strided: None,
        zoned: None,
        sprandom: None,
        trim_ranges: 1,
        read_percent: 50,
        full_coverage: true,
        soft_map: false,
        covers_single_size: false,
        block_sizes: [0; 3].map(|_: u8| BlockSizes::Fixed(BLOCK_BYTES)),
        unaligned_sizes: false,
        sizes_by_order: false,
        align_bytes: [BLOCK_BYTES; 3],
        seed: 1,
        repeat_order: true,
        service: FileService::RoundRobin { every: 1 },
        barriers: Barriers::default(),
    }
}

fn presentation() -> Presentation {
    Presentation {
        mode: "read".to_string(),
        block_bytes: [(BLOCK_BYTES, BLOCK_BYTES); 3],
        requested_iodepth: 1,
        percentiles: vec![50.0, 99.0],
        significant_figures: 4,
        kb_base: 1024,
        rate_unit: RateUnit::Bytes,
        unified: Unified::None,
        group_reporting: false,
        options: Vec::new(),
    }
}

fn measure() -> Measure {
    Measure {
        clock: ClockSource::Best,
        submission: true,
        completion: true,
        total: true,
        bandwidth: true,
        submission_percentiles: false,
        completion_percentiles: true,
        total_percentiles: false,
        bandwidth_interval_ms: 500,
        iops_interval_ms: 500,
        reported: true,
        disk_stats: false,
        block_lifetimes: false,
        start_clock_id: 0,
    }
}
