//! Every option of the plan that touches the loop, as a change of a job.
//!
//! Invariant: of an enumeration all variants are tried: `every!` matches them without a wildcard.

use fiord_plan::files::Advice;
use fiord_plan::job::Fill;
use fiord_plan::{
    Barriers, BlockSizes, ClockSource, Depth, Direction, EngineSettings, FileKind, FileService, IoUring, Job,
    Libaio, LogKind, Logs, Mmap, Pattern, Pvsync2, Sequencer, SyncMode, Think,
};

use super::common::{self, SIZE_BYTES, TempFile, file_job};

/// An option and what it does to a job.
pub struct Tried {
    pub name: String,
    pub change: Box<dyn Fn(&mut Job)>,
    /// The kernel or the job itself may end the run.
    pub may_fail: bool,
}

/// A value of each variant of an enumeration.
macro_rules! every {
    ($type:ty: $($pattern:pat => $value:expr),* $(,)?) => {{
        let _exhaustive = |value: $type| match value { $($pattern => ()),* };
        vec![$($value),*]
    }};
}

/// A mixed random job on a file, or on none for the null engine.
pub fn base(engine: EngineSettings, file: &TempFile) -> Job {
    let mut job = file_job("sealed", engine, Direction::Write, file);
    if job.engine == EngineSettings::Null {
        (job.files.list[0].kind, job.files.list[0].lay_out_bytes) = (FileKind::None, None);
    }
    if matches!(job.engine, EngineSettings::Libaio(_) | EngineSettings::IoUring(_)) {
        job.depth = queue(8);
    }
    (job.access.pattern, job.access.random) = (Pattern::Mixed, true);
    job.files.create_fsync = false;
    job.access.barriers.fdatasync_every = 50;
    job
}

/// A queue of `depth`, as it is when nothing more is said of it.
pub fn queue(depth: u32) -> Depth {
    Depth { max: depth, submit: depth, complete_min: 1, complete_max: Some(depth), low: depth }
}

/// Logs of every kind, of every I/O.
pub fn logs() -> Logs {
    let kinds = every!(LogKind:
        LogKind::Bandwidth => LogKind::Bandwidth,
        LogKind::Iops => LogKind::Iops,
        LogKind::Submission => LogKind::Submission,
        LogKind::Completion => LogKind::Completion,
        LogKind::Total => LogKind::Total,
        LogKind::Histogram => LogKind::Histogram,
    );
    common::logs(&kinds, None)
}

/// A pause now and then.
pub const THINK: Think =
    Think { pause_us: 10, spin_us: 0, cycles: 0, every_ios: 16, count_issued: false, io_time_us: 0 };

/// Each engine, with the settings nobody gave.
pub fn engines() -> Vec<EngineSettings> {
    every!(EngineSettings:
        EngineSettings::Null => EngineSettings::Null,
        EngineSettings::Sync => EngineSettings::Sync,
        EngineSettings::Psync => EngineSettings::Psync,
        EngineSettings::Vsync => EngineSettings::Vsync,
        EngineSettings::Pvsync => EngineSettings::Pvsync,
        EngineSettings::Pvsync2(_) => EngineSettings::Pvsync2(Pvsync2::default()),
        EngineSettings::Mmap(_) => EngineSettings::Mmap(Mmap::default()),
        EngineSettings::Libaio(_) => EngineSettings::Libaio(Libaio::default()),
        EngineSettings::IoUring(_) => EngineSettings::IoUring(IoUring::default()),
    )
}

pub fn patterns() -> Vec<Pattern> {
    use Direction::{Read, Trim, Write};
    every!(Pattern:
        Pattern::Only(Read) => Pattern::Only(Read),
        Pattern::Only(Write) => Pattern::Only(Write),
        Pattern::Only(Trim) => Pattern::Only(Trim),
        Pattern::Mixed => Pattern::Mixed,
        Pattern::TrimThenWrite => Pattern::TrimThenWrite,
    )
}

/// Options, being collected.
#[derive(Default)]
struct Options(Vec<Tried>);

impl Options {
    fn add(&mut self, name: impl Into<String>, change: impl Fn(&mut Job) + 'static) {
        self.0.push(Tried { name: name.into(), change: Box::new(change), may_fail: false });
    }

    /// One that may end the run.
    fn add_risky(&mut self, name: impl Into<String>, change: impl Fn(&mut Job) + 'static) {
        self.0.push(Tried { name: name.into(), change: Box::new(change), may_fail: true });
    }

    /// Tries `put` with each of `values`.
    fn each<T: std::fmt::Debug + 'static>(&mut self, values: Vec<T>, put: fn(&mut Job, &T)) {
        for value in values {
            self.add(format!("{value:?}"), move |job| put(job, &value));
        }
    }
}

/// Every option.
pub fn all() -> Vec<Tried> {
    let mut options = Options::default();
    order(&mut options);
    sizes(&mut options);
    files(&mut options);
    barriers(&mut options);
    depth(&mut options);
    contents(&mut options);
    limits(&mut options);
    pace(&mut options);
    errors(&mut options);
    measured(&mut options);
    logged(&mut options);
    engine_settings(&mut options);
    options.0
}

fn order(options: &mut Options) {
    options.add("sequential", |job| job.access.random = false);
    options.add("stride_bytes", |job| {
        (job.access.random, job.access.stride_bytes) = (false, 4096);
    });
    let sequencers = every!(Sequencer:
        Sequencer::Sequential => Sequencer::Sequential,
        Sequencer::Identical => Sequencer::Identical,
    );
    options.each(sequencers, |job, sequencer| {
        (job.access.sequencer, job.access.ios_per_draw) = (*sequencer, 4);
    });
    options.add("covers_single_size", |job| {
        (job.access.full_coverage, job.access.covers_single_size) = (false, true);
    });
    options.add("percent_random", |job| job.access.percent_random = [30; 3]);
    options.add("read_percent", |job| job.access.read_percent = 90);
    options.add("no map", |job| job.access.full_coverage = false);
    options.add("soft_map", |job| job.access.soft_map = true);
    options.add("seed", |job| job.access.seed = 7);
    options.add("repeat_order", |job| {
        (job.access.repeat_order, job.limits.loops) = (false, 3);
    });
}

fn sizes(options: &mut Options) {
    let sizes = every!(BlockSizes:
        BlockSizes::Fixed(_) => BlockSizes::Fixed(8192),
        BlockSizes::Range { .. } => BlockSizes::Range { min: 512, max: 16384 },
        BlockSizes::Split(_) => BlockSizes::Split(vec![(4096, 60.0), (8192, 30.0), (16384, 10.0)]),
    );
    options.each(sizes, |job, sizes| {
        job.access.block_sizes = [0; 3].map(|_: u8| sizes.clone());
        job.access.align_bytes = [sizes.min(); 3];
        job.buffers.bytes = sizes.max();
    });
    options.add("unaligned_sizes", |job| {
        job.access.block_sizes = [0; 3].map(|_: u8| BlockSizes::Range { min: 512, max: 16384 });
        (job.access.unaligned_sizes, job.access.align_bytes) = (true, [512; 3]);
        (job.buffers.bytes, job.buffers.align_bytes) = (16384, 512);
    });
    options.add("sizes_by_order", |job| {
        job.access.block_sizes[1] = BlockSizes::Fixed(8192);
        (job.access.sizes_by_order, job.access.percent_random) = (true, [50; 3]);
        job.buffers.bytes = 8192;
    });
}

/// Spreads the job over eight files.
fn spread(job: &mut Job) {
    let whole = job.files.list[0].clone();
    let part = |number: u64| {
        let mut file = whole.clone();
        file.path.as_mut_os_string().push(format!(".{number}"));
        file.length_bytes = SIZE_BYTES / 8;
        file.lay_out_bytes = whole.lay_out_bytes.map(|_| SIZE_BYTES / 8);
        file
    };
    job.files.list = (0..8).map(part).collect();
}

fn files(options: &mut Options) {
    let services = || {
        every!(FileService:
            FileService::RoundRobin { .. } => FileService::RoundRobin { every: 3 },
            FileService::Sequential => FileService::Sequential,
            FileService::Random { .. } => FileService::Random { every: 2 },
            FileService::Zipf { .. } => FileService::Zipf { theta: 1.2, centre: 0.0 },
            FileService::Pareto { .. } => FileService::Pareto { power: 0.3, centre: 0.5 },
            FileService::Normal { .. } => FileService::Normal { deviation: 20.0, centre: 0.5 },
        )
    };
    for open_at_once in [2, 8] {
        for service in services() {
            options.add(format!("{service:?}, {open_at_once} open"), move |job| {
                spread(job);
                (job.access.service, job.files.open_at_once) = (service, open_at_once);
            });
        }
    }
    let syncs = every!(SyncMode:
        SyncMode::None => SyncMode::None,
        SyncMode::Sync => SyncMode::Sync,
        SyncMode::DataSync => SyncMode::DataSync,
    );
    options.each(syncs, |job, sync| job.files.sync = *sync);
    let advice = every!(Advice:
        Advice::None => Advice::None,
        Advice::ByPattern => Advice::ByPattern,
        Advice::Random => Advice::Random,
        Advice::Sequential => Advice::Sequential,
        Advice::NoReuse => Advice::NoReuse,
    );
    options.each(advice, |job, advice| (job.files.advice, job.limits.loops) = (*advice, 2));
    options.add_risky("direct", |job| job.files.direct = true);
    options.add_risky("write_hint", |job| job.files.write_hint = Some(3));
    options.add("pre_read", |job| (job.files.pre_read, job.limits.loops) = (true, 2));
    options.add("invalidate", |job| (job.files.invalidate, job.limits.loops) = (false, 2));
    options.add("unlink_each_loop", |job| {
        (job.files.unlink_each_loop, job.limits.loops) = (true, 2);
        job.access.pattern = Pattern::Only(Direction::Write);
    });
    options.add("end_fsync", |job| (job.files.end_fsync, job.limits.loops) = (true, 2));
    options.add("end_syncfs", |job| (job.files.end_syncfs, job.limits.loops) = (true, 2));
    options.add("fsync_on_close", |job| (job.files.fsync_on_close, job.limits.loops) = (true, 2));
    options.add("fill_device", |job| job.files.fill_device = true);
    options.add("read only, as it is", |job| {
        (job.access.pattern, job.files.writable) = (Pattern::Only(Direction::Read), false);
        job.files.may_create = false;
    });
}

fn barriers(options: &mut Options) {
    let none = Barriers::default();
    for barriers in [
        none,
        Barriers { fsync_every: 20, ..none },
        Barriers { fdatasync_every: 20, ..none },
        Barriers { range_every: 20, range_flags: 7, ..none },
        Barriers { fsync_every: 20, range_every: 7, range_flags: 2, fdatasync_every: 9 },
    ] {
        options.add(format!("{barriers:?}"), move |job| {
            (job.access.barriers, job.access.pattern) = (barriers, Pattern::Only(Direction::Write));
        });
    }
}

fn depth(options: &mut Options) {
    let depth = queue(16);
    for depth in [
        depth,
        Depth { submit: 4, ..depth },
        Depth { complete_min: 0, ..depth },
        Depth { complete_min: 4, complete_max: Some(8), ..depth },
        Depth { complete_max: None, ..depth },
        Depth { low: 2, ..depth },
        Depth { submit: 4, complete_min: 2, complete_max: Some(3), low: 5, ..depth },
    ] {
        options.add(format!("{depth:?}"), move |job| job.depth = depth);
    }
}

fn contents(options: &mut Options) {
    for (refill, scramble) in [(false, false), (true, false), (false, true)] {
        let fills = every!(Fill:
            Fill::Zero => Fill::Zero,
            Fill::Random { .. } => Fill::Random { refill, scramble },
            Fill::Compressible { .. } => {
                Fill::Compressible { percent: 50, chunk_bytes: 512, pattern: b"abc".to_vec(), refill, scramble }
            },
            Fill::Pattern { .. } => Fill::Pattern { bytes: vec![1; 32], offset_at: vec![8] },
        );
        options.each(fills, |job, fill| job.buffers.fill = fill.clone());
    }
}

/// I/O until its time is over.
fn time_based(job: &mut Job, runtime_ns: u64) {
    (job.limits.time_based, job.limits.runtime_ns) = (true, Some(runtime_ns));
}

fn limits(options: &mut Options) {
    options.add("half a pass", |job| {
        (job.limits.pass_bytes, job.limits.loop_bytes) = (SIZE_BYTES / 2, SIZE_BYTES / 2);
    });
    options.add("loops", |job| job.limits.loops = 4);
    options.add("number_ios", |job| job.limits.number_ios = Some(100));
    options.add("time, snapshots, passes", |job| time_based(job, 20_000_000));
    options.add("time, without a clock", |job| {
        time_based(job, 5_000_000);
        job.measure.clock = ClockSource::None;
    });
    options.add("ramp_ns", |job| {
        time_based(job, 5_000_000);
        (job.limits.ramp_ns, job.logs) = (3_000_000, Some(logs()));
    });
    options.add("ramp_bytes", |job| {
        (job.limits.ramp_bytes, job.logs) = (SIZE_BYTES / 2, Some(logs()));
    });
}

fn pace(options: &mut Options) {
    options.add("bytes_per_s", |job| job.pace.bytes_per_s = [Some(500 << 20), Some(200 << 20), None]);
    options.add("ios_per_s", |job| job.pace.ios_per_s = [Some(50_000), None, None]);
    options.add("poisson", |job| {
        (job.pace.ios_per_s, job.pace.poisson) = ([Some(50_000); 3], true);
    });
    options.add_risky("minimum rates", |job| {
        time_based(job, 50_000_000);
        (job.pace.min_bytes_per_s, job.pace.min_ios_per_s) = ([Some(1 << 50); 3], [Some(1 << 40); 3]);
        job.pace.cycle_ms = 5;
    });
    for think in [
        THINK,
        Think { pause_us: 20, spin_us: 10, ..THINK },
        Think { cycles: 10, every_ios: 4, ..THINK },
        Think { count_issued: true, ..THINK },
        Think { every_ios: 0, io_time_us: 50, ..THINK },
    ] {
        options.add(format!("{think:?}"), move |job| job.pace.think = Some(think));
    }
    options.add("ignore_think_time", |job| {
        (job.pace.think, job.pace.ignore_think_time) = (Some(THINK), true);
        job.pace.ios_per_s = [Some(100_000); 3];
    });
}

fn errors(options: &mut Options) {
    // What the kernel says to a trim of a regular file, and to a transfer at a place that is not aligned.
    let refused =
        [libc_errno::ENOTTY, libc_errno::EOPNOTSUPP, libc_errno::EINVAL, libc_errno::EIO, libc_errno::EBADF];
    for dump in [false, true] {
        options.add(format!("errors passed over, dump={dump}"), move |job| {
            (job.errors.passed_over, job.errors.dump) = ([0; 3].map(|_: u8| refused.to_vec()), dump);
            job.access.pattern = Pattern::TrimThenWrite;
        });
    }
    options.add_risky("an error that ends the job", |job| {
        job.access.pattern = Pattern::Only(Direction::Trim);
    });
    options.add_risky("the end of a file", |job| {
        job.access.pattern = Pattern::Only(Direction::Read);
        job.files.list[0].offset_bytes += 64 * SIZE_BYTES;
    });
    options.add("latency_ns_max", |job| job.errors.latency_ns_max = [Some(u64::MAX); 3]);
    options.add_risky("an I/O too slow", |job| job.errors.latency_ns_max = [Some(1); 3]);
}

/// The kernel's numbers.
mod libc_errno {
    pub const EIO: i32 = 5;
    pub const EBADF: i32 = 9;
    pub const EINVAL: i32 = 22;
    pub const ENOTTY: i32 = 25;
    pub const EOPNOTSUPP: i32 = 95;
}

fn measured(options: &mut Options) {
    let clocks = every!(ClockSource:
        ClockSource::Best => ClockSource::Best,
        ClockSource::Monotonic => ClockSource::Monotonic,
        ClockSource::TimeOfDay => ClockSource::TimeOfDay,
        ClockSource::Tsc => ClockSource::Tsc,
        ClockSource::None => ClockSource::None,
    );
    options.each(clocks, |job, clock| job.measure.clock = *clock);
    options.add("no latencies", |job| {
        let measure = &mut job.measure;
        (measure.submission, measure.completion, measure.total) = (false, false, false);
    });
    options.add("every percentile", |job| {
        let measure = &mut job.measure;
        (measure.submission_percentiles, measure.total_percentiles) = (true, true);
    });
    options.add("no percentile", |job| job.measure.completion_percentiles = false);
}

fn logged(options: &mut Options) {
    options.add("a log of every I/O, over several chunks", |job| {
        (job.logs, job.limits.loops, job.files.invalidate) = (Some(logs()), 400, false);
        job.access.barriers = Barriers::default();
    });
    options.add("logs of windows", |job| {
        time_based(job, 20_000_000);
        job.logs = Some(Logs { window_ms: Some(1), ..logs() });
    });
    options.add("logs of longer windows", |job| {
        time_based(job, 20_000_000);
        job.logs = Some(Logs {
            window_ms: Some(3),
            bandwidth_window_ms: 2,
            iops_window_ms: 5,
            histogram_window_ms: 4,
            ..logs()
        });
    });
    options.add("one log, ahead, by the clock", |job| {
        let mut logs = Logs { histogram_window_ms: 0, entries_ahead: 100_000, clock_id: Some(1), ..logs() };
        logs.files.truncate(1);
        job.logs = Some(logs);
    });
}

fn engine_settings(options: &mut Options) {
    let uring = IoUring::default();
    let settings = [
        IoUring { fixed_buffers: true, ..uring },
        IoUring { registered_files: true, ..uring },
        IoUring { submission_thread: true, ..uring },
        IoUring { submission_thread: true, submission_thread_cpu: Some(0), ..uring },
        IoUring { hipri: true, ..uring },
        IoUring { nonvectored: true, ..uring },
        IoUring { uncached: true, ..uring },
        IoUring { nowait: true, ..uring },
        IoUring { force_async_every: 4, ..uring },
    ];
    let aio = Libaio::default();
    let vectored = Pvsync2::default();
    let engines = settings.map(EngineSettings::IoUring).into_iter().chain([
        EngineSettings::Libaio(Libaio { nowait: true, ..aio }),
        EngineSettings::Libaio(Libaio { vectored: true, ..aio }),
        EngineSettings::Pvsync2(Pvsync2 { hipri_percent: 50, ..vectored }),
        EngineSettings::Pvsync2(Pvsync2 { uncached: true, ..vectored }),
        EngineSettings::Pvsync2(Pvsync2 { nowait: true, ..vectored }),
        EngineSettings::Mmap(Mmap { transparent_huge_pages: true }),
    ]);
    for engine in engines {
        options.add_risky(format!("{engine:?}"), move |job| {
            // These are for files; what null is given instead stays as it is.
            if job.engine != EngineSettings::Null {
                job.engine = engine.clone();
                job.depth = queue(8);
            }
        });
    }
}
