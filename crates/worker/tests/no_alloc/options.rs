//! Every option of the plan that touches the loop, as a change of a job.
//!
//! Invariant: of an enumeration all variants are tried: `every!` matches them without a wildcard.

use fiord_engine::engines::{
    IoUring, Libaio, Mmap, Pvsync2, io_uring::Settings as IoUringSettings,
    libaio::Settings as LibaioSettings, mmap::Settings as MmapSettings, pvsync2::Settings as Pvsync2Settings,
};
use fiord_engine::{EngineDefinition, for_each_engine};
use fiord_plan::files::Advice;
use fiord_plan::job::{Dedupe, Fill, WorkingSet};
use fiord_plan::replay::Transform;
use fiord_plan::{
    AccessZone, Backlog, Barriers, BlockSizes, ClockSource, Depth, Direction, FileKind, FileLock,
    FileService, Flow, IoPriorities, Job, LatencyTarget, LogKind, Logs, Pattern, PlannedEngine,
    PriorityShare, RandomDistribution, Replay, Sequencer, Sprandom, Steady, SteadyCriterion, SteadyLimit,
    SteadyMeasure, StridedZones, SyncMode, Think, TraceNeed, Trims, ZoneSize, ZoneSkip, ZonedAccess,
};
use fiord_sys::errno::Errno;
use fiord_sys::thread;
use fiord_verify::{HeaderFormat, Method};

use super::common::{self, BLOCK_BYTES, SIZE_BYTES, TempFile, file_job};
use super::verified;

/// A change of a job. Its name lists the fields it covers; other fields it changes do not count as covered.
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
pub fn base(engine: PlannedEngine, file: &TempFile) -> Job {
    let mut job = file_job("sealed", engine, Direction::Write, file);
    if !job.engine.descriptor.touches_files() {
        (job.files.list[0].kind, job.files.list[0].lay_out_bytes) = (FileKind::None, None);
    }
    if job.engine.descriptor.queueing.is_queued() {
        job.depth = queue(8);
    }
    (job.access.pattern, job.access.random) = (Pattern::Mixed, true);
    job.files.create_fsync = false;
    job.access.barriers.fdatasync_every = 50;
    job
}

/// A queue of `depth` with default settings.
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
        LogKind::Response => LogKind::Response,
        LogKind::Histogram => LogKind::Histogram,
        LogKind::ResponseHistogram => LogKind::ResponseHistogram,
    );
    common::logs(&kinds, None)
}

/// Think time after some I/Os.
pub const THINK: Think =
    Think { pause_us: 10, spin_us: 0, cycles: 0, every_ios: 16, count_issued: false, io_time_us: 0 };

/// Each engine that does I/O on files or on nothing, and needs no settings, with default ones.
pub fn engines() -> Vec<PlannedEngine> {
    macro_rules! defaults {
        ($($engine:ty,)+) => { vec![$(<$engine>::planned(Default::default())),+] };
    }
    let mut engines = for_each_engine!(defaults);
    engines.retain(|engine| {
        let is_complete = (engine.descriptor.missing)(&engine.settings).is_none();
        let has_files = !engine.descriptor.names_targets() && !engine.descriptor.bypasses_cache();
        is_complete && has_files && engine.cycle().is_none()
    });
    engines
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

    /// Adds a case for these fields with `put` for each of `values`.
    fn each<T: std::fmt::Debug + 'static>(&mut self, fields: &str, values: Vec<T>, put: fn(&mut Job, &T)) {
        for value in values {
            self.add(format!("{fields}: {value:?}"), move |job| put(job, &value));
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
    priorities(&mut options);
    errors(&mut options);
    verification(&mut options);
    steady(&mut options);
    measured(&mut options);
    logged(&mut options);
    engine_settings(&mut options);
    traces(&mut options);
    options.0
}

fn order(options: &mut Options) {
    options.each("pattern", patterns(), |job, pattern| {
        (job.access.pattern, job.errors.passed_over[2]) = (*pattern, REFUSED.to_vec());
    });
    options.add("random=false", |job| job.access.random = false);
    options.add("stride_bytes", |job| {
        (job.access.random, job.access.stride_bytes) = (false, 4096);
    });
    let sequencers = every!(Sequencer:
        Sequencer::Sequential => Sequencer::Sequential,
        Sequencer::Identical => Sequencer::Identical,
    );
    options.each("sequencer, ios_per_draw", sequencers, |job, sequencer| {
        (job.access.sequencer, job.access.ios_per_draw) = (*sequencer, 4);
    });
    options.add("covers_single_size", |job| {
        (job.access.full_coverage, job.access.covers_single_size) = (false, true);
    });
    options.add("percent_random", |job| job.access.percent_random = [30; 3]);
    options.each("distribution", distributions(), |job, distribution| {
        job.access.distribution = [0; 3].map(|_: u8| distribution.clone());
    });
    options.add("strided", |job| {
        let zones = StridedZones { transfer_bytes: 8192, zone_bytes: 16384, skip_bytes: 4096 };
        job.access.strided = Some(zones);
    });
    options.add("zoned", |job| {
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
            recovers: true,
            appends: false,
            writes_remainder: true,
        });
    });
    options.add("read_percent", |job| job.access.read_percent = 90);
    options.add("full_coverage=false", |job| job.access.full_coverage = false);
    options.add("soft_map", |job| job.access.soft_map = true);
    options.add("seed", |job| job.access.seed = 7);
    options.add("repeat_order", |job| {
        (job.access.repeat_order, job.limits.loops) = (false, 3);
    });
}

fn distributions() -> Vec<RandomDistribution> {
    let zone = |access_percent, size| AccessZone { access_percent, size };
    every!(RandomDistribution:
        RandomDistribution::Uniform => RandomDistribution::Uniform,
        RandomDistribution::Zipf { .. } => RandomDistribution::Zipf { theta: 1.2, centre: None },
        RandomDistribution::Pareto { .. } => RandomDistribution::Pareto { power: 0.2, centre: Some(0.5) },
        RandomDistribution::Normal { .. } => RandomDistribution::Normal { deviation_percent: 20.0, centre: 0.5 },
        RandomDistribution::Zoned(_) => RandomDistribution::Zoned(vec![
            zone(60, ZoneSize::Percent(10.0)),
            zone(40, ZoneSize::Bytes(8192)),
        ]),
        RandomDistribution::Sequence { .. } => RandomDistribution::Sequence { blocks: vec![3, 0, 2], strides: true },
    )
}

fn sizes(options: &mut Options) {
    let sizes = every!(BlockSizes:
        BlockSizes::Fixed(_) => BlockSizes::Fixed(8192),
        BlockSizes::Range { .. } => BlockSizes::Range { min: 512, max: 16384 },
        BlockSizes::Split(_) => BlockSizes::Split(vec![(4096, 60.0), (8192, 30.0), (16384, 10.0)]),
    );
    options.each("block_sizes, align_bytes, bytes", sizes, |job, sizes| {
        job.access.block_sizes = [0; 3].map(|_: u8| sizes.clone());
        job.access.align_bytes = [sizes.min(); 3];
        job.buffers.bytes = sizes.max();
    });
    options.add("unaligned_sizes, align_bytes", |job| {
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
            options.add(
                format!("service, list, open_at_once: {service:?}, {open_at_once} open"),
                move |job| {
                    spread(job);
                    (job.access.service, job.files.open_at_once) = (service, open_at_once);
                },
            );
        }
    }
    let syncs = every!(SyncMode:
        SyncMode::None => SyncMode::None,
        SyncMode::Sync => SyncMode::Sync,
        SyncMode::DataSync => SyncMode::DataSync,
    );
    let locks = every!(FileLock:
        FileLock::Exclusive => FileLock::Exclusive,
        FileLock::ReadWrite => FileLock::ReadWrite,
    );
    options.each("lock", locks, |job, lock| job.files.lock = Some(*lock));
    options.each("sync", syncs, |job, sync| job.files.sync = *sync);
    let advice = every!(Advice:
        Advice::None => Advice::None,
        Advice::ByPattern => Advice::ByPattern,
        Advice::Random => Advice::Random,
        Advice::Sequential => Advice::Sequential,
        Advice::NoReuse => Advice::NoReuse,
    );
    options.each("advice", advice, |job, advice| (job.files.advice, job.limits.loops) = (*advice, 2));
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
    options.add("writable, may_create: read only, as it is", |job| {
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
        options.add(format!("barriers: {barriers:?}"), move |job| {
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
    options.add("offload", move |job| (job.depth, job.submission.offload) = (queue(4), true));
    options.add("serialize_overlap", move |job| {
        (job.depth, job.submission.serialize_overlap, job.access.full_coverage) = (queue(16), true, false);
    });
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
        options.each("fill", fills, |job, fill| job.buffers.fill = fill.clone());
    }
    for working_set in [None, Some(WorkingSet { contents: 7, seeds: vec![1, 2] })] {
        options.add("fill, dedupe", move |job| {
            job.buffers.fill = Fill::Random { refill: true, scramble: false };
            job.buffers.dedupe = Some(Dedupe { percent: 50, working_set: working_set.clone() });
        });
    }
}

/// I/O until its time is over.
fn time_based(job: &mut Job, runtime_ns: u64) {
    (job.limits.time_based, job.limits.runtime_ns) = (true, Some(runtime_ns));
}

fn limits(options: &mut Options) {
    options.add("pass_bytes, loop_bytes: half a pass", |job| {
        (job.limits.pass_bytes, job.limits.loop_bytes) = (SIZE_BYTES / 2, SIZE_BYTES / 2);
    });
    options.add("repeats_passes: blocks with holes between them", |job| {
        (job.limits.repeats_passes, job.access.stride_bytes) = (true, 2048);
    });
    options.add("loops", |job| job.limits.loops = 4);
    options.add("number_ios", |job| job.limits.number_ios = Some(100));
    options.add("time_based, runtime_ns: snapshots, passes", |job| time_based(job, 20_000_000));
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
    options.add("wakes_early", |job| {
        time_based(job, 50_000_000);
        (job.pace.ios_per_s, job.pace.wakes_early) = ([Some(1000), None, None], true);
    });
    options.add("poisson", |job| {
        (job.pace.ios_per_s, job.pace.poisson) = ([Some(50_000); 3], true);
    });
    options.add("open", |job| {
        (job.pace.ios_per_s, job.pace.open) = ([Some(50_000); 3], true);
    });
    options.add("logs of responses", |job| {
        (job.pace.ios_per_s, job.logs) = ([Some(50_000), None, None], Some(logs()));
        job.logs.iter_mut().for_each(|logs| logs.window_ms = Some(1));
    });
    options.add_risky("min_bytes_per_s, min_ios_per_s, cycle_ms", |job| {
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
        options.add(format!("think: {think:?}"), move |job| job.pace.think = Some(think));
    }
    for sleep_us in [0, 20] {
        options.add(format!("flow, sleep_us={sleep_us}"), move |job| {
            job.pace.flow = Some(Flow { id: 1, weight: 3, sleep_us });
        });
    }
    options.add("ignore_think_time", |job| {
        (job.pace.think, job.pace.ignore_think_time) = (Some(THINK), true);
        job.pace.ios_per_s = [Some(100_000); 3];
    });
}

fn priorities(options: &mut Options) {
    options.add("io_priorities", |job| {
        let share = |length_bytes, priority| PriorityShare { length_bytes, percent: 40, priority };
        let shares = [vec![share(None, 1)], vec![share(Some(BLOCK_BYTES), 2), share(None, 1)], Vec::new()];
        job.io_priorities = IoPriorities { values: vec![0, 2 << 13, 3 << 13 | 7], shares };
    });
}

fn errors(options: &mut Options) {
    for dump in [false, true] {
        options.add(format!("passed_over, dump={dump}"), move |job| {
            (job.errors.passed_over, job.errors.dump) = ([0; 3].map(|_: u8| REFUSED.to_vec()), dump);
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

/// Ends that depend on measures of the job, of which the loop shows latencies.
fn steady(options: &mut Options) {
    for (target_ns, continues) in [(1, false), (u64::MAX, false), (200, true)] {
        options.add(format!("latency_target: {target_ns} {continues}"), move |job| {
            let target = LatencyTarget { target_ns, window_ns: 20_000, percentile: 50.0, continues };
            job.latency_target = Some(target);
        });
    }
    for measure in [SteadyMeasure::Iops, SteadyMeasure::Bandwidth, SteadyMeasure::Latency] {
        options.add(format!("steady: {measure:?}"), move |job| {
            let criterion =
                SteadyCriterion { measure, is_slope: false, limit: SteadyLimit::Percent(f64::MAX) };
            job.steady = Some(Steady { criterion, duration_s: 9, ramp_ns: 0, interval_ns: 1_000_000_000 });
        });
    }
}

fn verification(options: &mut Options) {
    let backlogs = [None, Some(Backlog { every: 5, batch: 3 })];
    for (header, backlog) in [HeaderFormat::V3_33, HeaderFormat::V3_42].into_iter().zip(backlogs) {
        for method in verified::methods() {
            options.add(format!("verification: {method:?} {header:?} {backlog:?}"), move |job| {
                let mut verification = verified::verification(method);
                (verification.format.header, verification.backlog) = (header, backlog);
                // As the planner has it: an engine that transfers nothing returns other data than was written.
                verification.checks = job.engine.descriptor.transfers_data();
                job.verification = Some(verification);
                (job.access.pattern, job.limits.loops) = (Pattern::Only(Direction::Write), 2);
            });
        }
    }
    options.add("verification of a mix that overwrites", |job| {
        let checks = job.engine.descriptor.transfers_data();
        job.verification = Some(fiord_plan::Verification { checks, ..verified::verification(Method::Meta) });
        (job.access.full_coverage, job.limits.loops) = (false, 3);
    });
    options.add("verification with a saved state", |job| {
        let mut verification = verified::verification(Method::Null);
        (verification.saved_state, verification.only_synced) = (Some("/dev/null".into()), true);
        (verification.checks, verification.reads_back) = (false, false);
        job.verification = Some(verification);
        (job.access.pattern, job.access.barriers.fsync_every) = (Pattern::Only(Direction::Write), 10);
    });
    options.add("verification by the device", |job| {
        let verification = verified::verification(Method::Meta);
        let checks = job.engine.descriptor.transfers_data();
        job.verification = Some(fiord_plan::Verification { checks, by_device: true, ..verification });
        (job.access.pattern, job.access.random) = (Pattern::Only(Direction::Write), true);
    });
    options.add("verification with trims", |job| {
        let verification = verified::verification(Method::Meta);
        let checks = job.engine.descriptor.transfers_data();
        let trims = Some(Trims { percent: 50, every: 7, batch: 2, reads_zeroes: true });
        job.verification = Some(fiord_plan::Verification { checks, trims, ..verification });
        (job.access.pattern, job.limits.loops) = (Pattern::Only(Direction::Write), 2);
    });
    options.add("verification by threads", |job| {
        let verification = verified::verification(Method::Meta);
        let checks = job.engine.descriptor.transfers_data();
        job.verification = Some(fiord_plan::Verification { checks, threads: 2, ..verification });
        job.access.pattern = Pattern::Only(Direction::Write);
    });
    options.add("passed_over_in_verification", |job| {
        job.verification = Some(verified::verification(Method::Meta));
        (job.access.pattern, job.files.writable) = (Pattern::Only(Direction::Read), false);
        job.errors.passed_over_in_verification = vec![Errno::EILSEQ.0];
    });
}

/// The kernel's errors for a trim of a regular file, and for an unaligned transfer.
const REFUSED: [i32; 5] =
    [Errno::ENOTTY.0, Errno::EOPNOTSUPP.0, Errno::EINVAL.0, Errno::EIO.0, Errno::EBADF.0];

fn measured(options: &mut Options) {
    let clocks = every!(ClockSource:
        ClockSource::Best => ClockSource::Best,
        ClockSource::Monotonic => ClockSource::Monotonic,
        ClockSource::Microseconds => ClockSource::Microseconds,
        ClockSource::Counter => ClockSource::Counter,
        ClockSource::Kept(_) => ClockSource::Kept(thread::affinity().unwrap()[0]),
        ClockSource::None => ClockSource::None,
    );
    options.each("clock", clocks, |job, clock| job.measure.clock = *clock);
    options.add("submission, completion, total: none", |job| {
        let measure = &mut job.measure;
        (measure.submission, measure.completion, measure.total) = (false, false, false);
    });
    options.add("submission_percentiles, total_percentiles", |job| {
        let measure = &mut job.measure;
        (measure.submission_percentiles, measure.total_percentiles) = (true, true);
    });
    options.add("sprandom", |job| {
        job.access.sprandom = Some(Sprandom { regions: 7, over_provisioning: 0.5, cache_blocks: 3 });
        (job.access.pattern, job.limits.loop_bytes) = (Pattern::Only(Direction::Write), SIZE_BYTES / 2 * 3);
    });
    options.add("trim_ranges", |job| {
        (job.access.trim_ranges, job.access.pattern) = (7, Pattern::Only(Direction::Trim));
    });
    options.add("block_lifetimes", |job| {
        (job.measure.block_lifetimes, job.access.pattern) = (true, Pattern::TrimThenWrite);
    });
    options.add("completion_percentiles=false", |job| job.measure.completion_percentiles = false);
}

fn logged(options: &mut Options) {
    options.add("logs of every I/O, over several chunks", |job| {
        (job.logs, job.limits.loops, job.files.invalidate) = (Some(logs()), 400, false);
        job.access.barriers = Barriers::default();
    });
    options.add("logs, window_ms", |job| {
        time_based(job, 20_000_000);
        job.logs = Some(Logs { window_ms: Some(1), ..logs() });
    });
    options.add("window_ms, bandwidth_window_ms, iops_window_ms, histogram_window_ms, each another", |job| {
        time_based(job, 20_000_000);
        job.logs = Some(Logs {
            window_ms: Some(3),
            bandwidth_window_ms: 2,
            iops_window_ms: 5,
            histogram_window_ms: 4,
            ..logs()
        });
    });
    options.add("files, are_sent, entries_ahead, clock_id: one log, ahead, by the clock", |job| {
        let mut logs = Logs {
            are_sent: true,
            histogram_window_ms: 0,
            entries_ahead: 100_000,
            clock_id: Some(1),
            ..logs()
        };
        logs.files.truncate(1);
        job.logs = Some(logs);
    });
}

fn engine_settings(options: &mut Options) {
    let uring = IoUringSettings::default();
    let settings = [
        IoUringSettings { fixed_buffers: true, ..uring },
        IoUringSettings { registered_files: true, ..uring },
        IoUringSettings { submission_thread: true, ..uring },
        IoUringSettings { submission_thread: true, submission_thread_cpu: Some(0), ..uring },
        IoUringSettings { hipri: true, ..uring },
        IoUringSettings { nonvectored: true, ..uring },
        IoUringSettings { uncached: true, ..uring },
        IoUringSettings { nowait: true, ..uring },
        IoUringSettings { atomic: true, ..uring },
        IoUringSettings { force_async_every: 4, ..uring },
    ];
    let aio = LibaioSettings::default();
    let vectored = Pvsync2Settings::default();
    let engines = settings.map(IoUring::planned).into_iter().chain([
        Libaio::planned(LibaioSettings { nowait: true, ..aio }),
        Libaio::planned(LibaioSettings { vectored: true, ..aio }),
        Libaio::planned(LibaioSettings { atomic: true, ..aio }),
        Pvsync2::planned(Pvsync2Settings { hipri_percent: 50, ..vectored }),
        Pvsync2::planned(Pvsync2Settings { uncached: true, ..vectored }),
        Pvsync2::planned(Pvsync2Settings { nowait: true, ..vectored }),
        Pvsync2::planned(Pvsync2Settings { atomic: true, ..vectored }),
        Mmap::planned(MmapSettings { transparent_huge_pages: true }),
    ]);
    for engine in engines {
        options.add_risky(format!("{engine:?}"), move |job| {
            // These need files; null keeps its own.
            if job.engine.descriptor.touches_files() {
                job.engine = engine.clone();
                job.depth = queue(8);
            }
        });
    }
}

fn traces(options: &mut Options) {
    options.add("record", |job| job.record = Some(beside(job, "iolog")));
    options.add("replay", |job| {
        let path = beside(job, "trace");
        let file = job.files.list[0].path.display();
        let reads: String =
            (0..5_000_u64).map(|io| format!("{io} {file} read {} 4096\n", io % 64 * 4096)).collect();
        std::fs::write(&path, format!("fio version 3 iolog\n0 {file} add\n{reads}")).unwrap();
        job.replay = Some(Replay {
            inputs: vec![path.clone()],
            trace: TraceNeed { path, parts: Vec::new(), transform: Transform::default() },
            redirected: false,
            length_ns: 5_000_000,
            bytes: 5_000 * 4096,
            directions: [true, false, false],
        });
    });
}

/// A file next to the job's own.
fn beside(job: &Job, name: &str) -> std::path::PathBuf {
    job.files.list[0].path.with_extension(name)
}
