//! Plans made by hand, and a watcher that looks on in silence.
//!
//! Invariant: a job made here runs on the null engine for 1 MiB in 4 KiB reads until a test changes that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fiord_plan::files::{Advice, Fallocate};
use fiord_plan::job::{Buffers, ErrorPolicy, Fill, Limits, Measure, Memory, Process, Schedule};
use fiord_plan::presentation::{Presentation, RateUnit, Unified};
use fiord_plan::{
    Access, Barriers, BlockSizes, ClockSource, Depth, Direction, EngineSettings, ExitWhat, FileKind,
    FilePlan, FileService, Files, Job, LogFile, LogKind, Logs, Pace, Pattern, Plan, PriorityColumn,
    Sequencer, SyncMode, WindowValue,
};
use fiord_worker::{Moment, RunResult, View, Watcher, WorkerReport};

/// Bytes of a job's file.
pub const SIZE_BYTES: u64 = 1 << 20;
/// Bytes of an I/O.
pub const BLOCK_BYTES: u64 = 4096;

/// A watcher that counts what it is shown.
#[derive(Default)]
pub struct Silent {
    pub layouts: usize,
    pub snapshots: usize,
    pub snapshot_every: Option<Duration>,
}

impl Watcher for Silent {
    fn laying_out(&mut self, _job: &Job, _files: usize, _bytes: u64) {
        self.layouts += 1;
    }
    fn laid_out(&mut self, _bytes: u64) {}
    fn look_every(&self) -> Option<Duration> {
        None
    }
    fn look(&mut self, _view: &View<'_>) {}
    fn snapshot_every(&self) -> Option<Duration> {
        self.snapshot_every
    }
    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {
        self.snapshots += 1;
    }
}

/// Runs jobs, numbering them first.
pub fn run(mut jobs: Vec<Job>) -> RunResult {
    for (number, job) in jobs.iter_mut().enumerate() {
        job.number = number as u32;
    }
    fiord_worker::run(&Arc::new(Plan { jobs }), &mut Silent::default())
}

/// A file of `SIZE_BYTES` for one test, removed afterwards.
pub struct TempFile(pub PathBuf);

impl TempFile {
    pub fn new(name: &str) -> TempFile {
        TempFile(std::env::temp_dir().join(format!("fiord-worker-{}-{name}", std::process::id())))
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
        name: name.to_string(),
        description: None,
        number: 0,
        section: 0,
        clone: 0,
        group_id: 0,
        unplannable: None,
        engine: EngineSettings::Null,
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
        },
        limits: Limits {
            pass_bytes: SIZE_BYTES,
            loop_bytes: SIZE_BYTES,
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
        measure: measure(),
        logs: None,
        process: Process::default(),
        presentation: presentation(),
    }
}

/// A job of this engine and direction on a file.
pub fn file_job(name: &str, engine: EngineSettings, direction: Direction, file: &TempFile) -> Job {
    let mut job = null_job(name);
    job.engine = engine;
    job.access.pattern = Pattern::Only(direction);
    job.files = files(&file.0, FileKind::Regular);
    job.files.writable = direction != Direction::Read;
    job
}

/// Logs of these kinds; the windows are of a millisecond, where there are any.
pub fn logs(kinds: &[LogKind], window_ms: Option<u64>) -> Logs {
    let file = |kind: &LogKind| LogFile {
        kind: *kind,
        path: PathBuf::from("unwritten"),
        recorded: true,
        appends: false,
    };
    Logs {
        files: kinds.iter().map(file).collect(),
        window_ms,
        bandwidth_window_ms: 1,
        iops_window_ms: 1,
        histogram_window_ms: 1,
        coarseness: 0,
        value: WindowValue::Average,
        with_offset: false,
        priority: PriorityColumn::Flag(false),
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
        sync: SyncMode::None,
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
        append: false,
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
    }
}
