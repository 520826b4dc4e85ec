//! The table of findings on real kernels: for each code a run that must raise it, and a near neighbour that must not.
//!
//! Invariant: every code has one entry. Only the entry's own code is looked for, since others' work on this machine may
//! raise any other; what only an undisturbed machine can show is skipped while it is disturbed, and says so.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fiord_report::Code;
use fiord_testing::skip;
use serde_json::Value;

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::stalling::{Stall, Stalling};
use crate::common::{
    Dir, LoopDevice, Mount, direct_works_in, finish, fiord, helper, signal, start, until_working,
};
use crate::findings::direct::reads_of_zeros;
use crate::findings::made::{
    Zram, busy_during, hidden_overlay, hogs, overlay, pinned, private_device, processor_turn, run_as,
    shared_cpu, writer,
};
use crate::findings::{counted, has, run};

/// More of the processors' time than this in use disturbs a run that is judged by its own.
const DISTURBED_MIN: f64 = 0.6;

/// The documents of the two runs.
struct Pair {
    raises: Value,
    spares: Value,
}

/// How a code is shown.
enum Proof {
    /// Command lines of runs as fio in an empty directory.
    Lines { raises: &'static str, spares: &'static str },
    /// Runs that need more than that; the error says what is missing here.
    Runs(fn(&Dir) -> Result<Pair, String>),
    /// The kernel cannot be made to raise it by a test on this machine: why, and the file and name of the test that stands
    /// in, in the emulated machine or with made-up values.
    Elsewhere { why: &'static str, file: &'static str, test: &'static str },
}

impl Proof {
    fn check(&self, code: Code) {
        let dir = Dir::new();
        let pair = match self {
            Proof::Lines { raises, spares } => Pair { raises: run(&dir, raises), spares: run(&dir, spares) },
            Proof::Runs(runs) => match runs(&dir) {
                Ok(pair) => pair,
                Err(why) => skip!("{why}"),
            },
            Proof::Elsewhere { why, file, test } => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
                let text = fs::read_to_string(&path).unwrap_or_default();
                assert!(text.contains(&format!("fn {test}(")), "{code:?}: no {test} in {file}");
                skip!("{why}: {test} in {file} shows it");
            }
        };
        let name = code.name();
        assert!(has(&pair.raises, name), "{name} must be raised: {}", pair.raises);
        assert!(!has(&pair.spares, name), "{name} must not be raised: {}", pair.spares);
    }
}

/// What is only said of several hosts.
const fn of_hosts(test: &'static str) -> Proof {
    Proof::Elsewhere { why: "it takes several hosts", file: "crates/fleet/src/findings.rs", test }
}

macro_rules! table {
    ($($test:ident: $code:ident, $proof:expr;)+) => {
        $(#[test] fn $test() { $proof.check(Code::$code); })+

        #[test]
        fn every_code_has_one_entry() {
            let entries = [$(Code::$code),+];
            for code in Code::ALL {
                let count = entries.iter().filter(|entry| *entry == code).count();
                assert_eq!(count, 1, "entries of {}", code.name());
            }
        }
    };
}

const fn lines(raises: &'static str, spares: &'static str) -> Proof {
    Proof::Lines { raises, spares }
}

const fn elsewhere(why: &'static str, file: &'static str, test: &'static str) -> Proof {
    Proof::Elsewhere { why, file, test }
}

table! {
    option: Option, lines("--name=a --rw=write --size=64k --bs=4kx", "--name=a --rw=write --size=64k --bs=4k");
    kib_is_1000: KibIs1000,
        lines("--name=a --rw=write --bs=4KiB --size=64k", "--name=a --kb_base=1000 --rw=write --bs=4KiB --size=64KiB");
    value_cut: ValueCut, Proof::Runs(value_cut_runs);
    target_in_use: TargetInUse, Proof::Runs(target_in_use_runs);
    in_memory: InMemory, Proof::Runs(in_memory_runs);
    storage_hidden: StorageHidden, Proof::Runs(storage_hidden_runs);
    too_small: TooSmall, Proof::Runs(too_small_runs);
    nearly_full: NearlyFull, Proof::Runs(nearly_full_runs);
    copy_on_write: CopyOnWrite, Proof::Runs(copy_on_write_runs);
    thin_provisioned: ThinProvisioned, Proof::Runs(thin_provisioned_runs);
    quota_bound: QuotaBound, elsewhere(
        "the kernel of this machine may have no quotas",
        "tests/guest/cases/findings.rs", "a_project_is_bound_by_its_quota");
    cached_io: CachedIo, Proof::Runs(cached_io_runs);
    sync_engine_depth: SyncEngineDepth,
        lines("--name=a --rw=write --size=64k --ioengine=psync --iodepth=8", "--name=a --rw=write --size=64k --ioengine=psync");
    buffered_async: BufferedAsync,
        lines("--name=a --rw=write --size=64k --ioengine=libaio --iodepth=8", "--name=a --rw=write --size=64k --ioengine=libaio");
    closed_loop_rate: ClosedLoopRate,
        lines("--name=a --rw=write --size=64k --rate_iops=1000", "--name=a --rw=write --size=64k --rate_iops=1000 --rate_arrivals=open");
    name_contradicts: NameContradicts,
        lines("--name=randwrite --rw=write --size=64k", "--name=randwrite --rw=randwrite --size=64k");
    stops_early: StopsEarly,
        lines("--name=a --ioengine=null --size=1t --runtime=200ms", "--name=a --ioengine=null --size=1t --runtime=200ms --time_based");
    overlapping_sequential: OverlappingSequential,
        Proof::Runs(overlapping_sequential_runs);
    concurrent_writers: ConcurrentWriters,
        lines("--name=a --rw=randwrite --size=64k --filename=f --numjobs=3", "--name=a --rw=randwrite --size=64k --filename=f --numjobs=3 --offset_increment=64k");
    unwritten: Unwritten, Proof::Runs(unwritten_runs);
    misaligned: Misaligned, elsewhere(
        "no device here has physical blocks larger than its logical ones",
        "tests/guest/cases/findings.rs", "writes_of_less_than_a_physical_block_are_misaligned");
    compressible: Compressible, Proof::Runs(compressible_runs);
    volatile_cache: VolatileCache, Proof::Runs(volatile_cache_runs);
    sync_ignored: SyncIgnored, Proof::Runs(sync_ignored_runs);
    host_limits: HostLimits, Proof::Runs(host_limits_runs);
    logs_on_target: LogsOnTarget, Proof::Runs(logs_on_target_runs);
    ended_in_ramp: EndedInRamp,
        lines("--name=a --rw=write --size=64k --ramp_size=1m", "--name=a --rw=write --size=64k --ramp_size=16k");
    nothing_measured: NothingMeasured,
        lines("--name=a --rw=write --size=64k --ramp_size=64k", "--name=a --rw=write --size=64k --ramp_size=16k");
    interrupted: Interrupted, Proof::Runs(interrupted_runs);
    cache_served: CacheServed, Proof::Runs(cache_served_runs);
    direct_not_honoured: DirectNotHonoured, Proof::Runs(direct_not_honoured_runs);
    gds_compat: GdsCompat, elsewhere(
        "it takes libraries that stand in for those of a GPU",
        "crates/fiord/tests/gpu.rs", "bytes_that_went_through_the_memory_of_the_machine_are_found");
    not_yet_written: NotYetWritten, Proof::Runs(not_yet_written_runs);
    foreign_io: ForeignIo, Proof::Runs(foreign_io_runs);
    disk_shared: DiskShared, Proof::Runs(disk_shared_runs);
    io_pressure: IoPressure, Proof::Runs(io_pressure_runs);
    cpu_bound: CpuBound, Proof::Runs(cpu_bound_runs);
    foreign_cpu: ForeignCpu, Proof::Runs(foreign_cpu_runs);
    cpu_contended: CpuContended, Proof::Runs(cpu_contended_runs);
    cpu_throttled: CpuThrottled, Proof::Runs(cpu_throttled_runs);
    stolen_cpu: StolenCpu, elsewhere(
        "a test cannot make the hypervisor take time away",
        "crates/findings/src/evidence/processor.rs", "time_taken_by_the_hypervisor_or_a_limit_is_found");
    memory_pressure: MemoryPressure, Proof::Runs(memory_pressure_runs);
    writers_slowed: WritersSlowed, elsewhere(
        "vm.dirty_bytes is of the whole machine, and others write",
        "tests/guest/cases/findings.rs", "writers_beyond_the_dirty_limit_are_slowed_down_and_direct_ones_are_not");
    cpu_overheated: CpuOverheated, elsewhere(
        "a test cannot heat processors, and a virtual machine does not count it",
        "crates/findings/src/evidence/health.rs", "processors_that_were_slowed_down_by_heat_are_found");
    device_overheated: DeviceOverheated, elsewhere(
        "a test cannot heat a disk",
        "tests/guest/cases/findings.rs", "a_disk_is_overheated_above_its_own_limit_and_its_temperature_is_the_kernels");
    media_errors: MediaErrors, elsewhere(
        "a test cannot damage a disk",
        "tests/guest/cases/faults.rs", "an_error_of_the_medium_is_found_and_any_other_is_not");
    device_worn: DeviceWorn, elsewhere(
        "a test cannot wear out a disk",
        "tests/guest/cases/findings.rs", "a_disk_that_warns_of_its_reliability_is_worn");
    depth_not_reached: DepthNotReached, Proof::Runs(depth_not_reached_runs);
    pcie_link: PcieLink, elsewhere(
        "it takes a disk in a slot that limits it",
        "crates/findings/src/lint/pcie.rs", "a_link_that_could_be_faster_is_found");
    gpu_far: GpuFar, elsewhere(
        "it takes libraries that stand in for those of a GPU",
        "crates/fiord/tests/gpu.rs", "a_gpu_that_is_far_from_the_disk_is_found");
    trims_unqueued: TrimsUnqueued, lines(
        "--name=a --rw=trim --size=64k --bs=4k --iodepth=8 --ioengine=libaio",
        "--name=a --rw=trim --size=64k --bs=4k --iodepth=8 --ioengine=io_uring");
    stopped_by_size: StoppedBySize,
        lines("--name=a --rw=write --size=64k --runtime=1h", "--name=a --rw=write --size=64k");
    few_samples: FewSamples,
        lines("--name=a --rw=write --size=64k --bs=4k", "--name=a --rw=write --size=1m --bs=4k --percentile_list=50");
    not_steady: NotSteady, Proof::Runs(not_steady_runs);
    stalled: Stalled, Proof::Runs(|dir| stalled_runs(dir, ""));
    suspended: Suspended, Proof::Runs(suspended_runs);
    flat_at_limit: FlatAtLimit, Proof::Runs(flat_at_limit_runs);
    mix_not_reached: MixNotReached, Proof::Runs(mix_not_reached_runs);
    sync_excluded: SyncExcluded, Proof::Runs(sync_excluded_runs);
    // A job with a rate is not said to stall: it stands still on purpose.
    slow_io: SlowIo, Proof::Runs(|dir| stalled_runs(dir, "--rate_iops=500"));
    no_overlap: NoOverlap, Proof::Runs(no_overlap_runs);
    no_common_window: NoCommonWindow, of_hosts("hosts_apart_are_cautioned_of_and_void_the_sum");
    host_missing: HostMissing, of_hosts("hosts_that_are_gone_void_the_figures_unless_allowed");
    host_lost: HostLost, of_hosts("hosts_that_are_gone_void_the_figures_unless_allowed");
    fewer_hosts: FewerHosts, of_hosts("hosts_that_are_gone_void_the_figures_unless_allowed");
    start_skew: StartSkew, of_hosts("hosts_apart_are_cautioned_of_and_void_the_sum");
    clock_unsure: ClockUnsure, of_hosts("clocks_that_are_known_badly_and_starts_that_are_not_known_are_said");
    shared_target: SharedTarget, of_hosts("one_target_of_two_hosts_is_found_unless_it_is_meant");
    straggler: Straggler, of_hosts("a_straggler_has_its_cost_and_what_it_has_in_common");
    open_server: OpenServer,
        elsewhere("it takes a server", "tests/fleet/cases/server.rs", "a_server_without_a_secret_is_one_that_was_asked_for");
    mixed_hosts: MixedHosts, of_hosts("a_straggler_has_its_cost_and_what_it_has_in_common");
    omitted_waits: OmittedWaits, Proof::Runs(omitted_waits_runs);
    arrivals_lost: ArrivalsLost, Proof::Runs(arrivals_lost_runs);
    clock_steps: ClockSteps, Proof::Lines {
        raises: "--name=a --ioengine=null --rw=read --bs=4k --size=8m --clocksource=gettimeofday",
        spares: "--name=a --ioengine=psync --rw=read --bs=1m --size=8m --clocksource=cpu",
    };
    tool_overhead: ToolOverhead, Proof::Runs(tool_overhead_runs);
    error_continued: ErrorContinued, lines(
        "--name=a --rw=write --size=32k --bs=16k --ignore_error=,ENOSPC --filename=/dev/full",
        "--name=a --rw=write --size=32k --bs=16k --ignore_error=,ENOSPC --filename=/dev/null");
}

/// Two runs that differ in their last words.
fn both(dir: &Dir, line: &str, raises: &str, spares: &str) -> Pair {
    Pair { raises: run(dir, &format!("{line} {raises}")), spares: run(dir, &format!("{line} {spares}")) }
}

/// The document of a run that must show a code, or must not, in one of three runs; an error if none does on a machine where
/// others keep the processors busy.
fn undisturbed(code: Code, expected: bool, call: impl Fn() -> Value) -> Result<Value, String> {
    let mut last = busy_during(&call);
    for _ in 0..2 {
        if has(&last.0, code.name()) == expected {
            break;
        }
        last = busy_during(&call);
    }
    let (document, busy) = last;
    if has(&document, code.name()) != expected && busy > DISTURBED_MIN {
        return Err(format!("other programs use the processors ({:.0} % of their time)", 100.0 * busy));
    }
    Ok(document)
}

fn value_cut_runs(dir: &Dir) -> Result<Pair, String> {
    let of = |name: &str, value: &str| {
        dir.write(name, format!("[a]\nrw=write\nsize=64k\nfilename={value}\n"));
        run(dir, name)
    };
    Ok(Pair { raises: of("cut.fio", "disk#1"), spares: of("comment.fio", "disk #1") })
}

fn target_in_use_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let line = format!("--name=a --filename={} --rw=read --size=64k --bs=64k", device.path);
    let mount = Mount::ext4(dir, &device)?;
    let raises = run(dir, &line);
    drop(mount);
    // `--lazy` unmounts when nobody looks any more.
    Ok(Pair { raises, spares: run(dir, &line) })
}

fn in_memory_runs(dir: &Dir) -> Result<Pair, String> {
    let _tmpfs = Mount::tmpfs(dir, "size=64m")?;
    Ok(both(dir, "--name=a --rw=write --size=64k", "--directory=tmpfs", "--directory=."))
}

fn storage_hidden_runs(dir: &Dir) -> Result<Pair, String> {
    let _seen = overlay(dir, &dir.join("of-seen"), "seen", "")?;
    let _hidden = hidden_overlay(dir)?;
    Ok(both(dir, "--name=a --rw=write --size=64k", "--directory=hidden", "--directory=seen"))
}

fn too_small_runs(dir: &Dir) -> Result<Pair, String> {
    let cached = LoopDevice::new(dir, 16 << 20)?;
    fs::File::create(dir.join("direct"))
        .and_then(|file| file.set_len(16 << 20))
        .map_err(|e| e.to_string())?;
    let direct =
        helper("losetup", &["--find", "--show", "--direct-io=on", &dir.join("direct").to_string_lossy()])?;
    let direct = LoopDevice { path: direct };
    let line = "--name=a --rw=read --size=64k --bs=64k --direct=1";
    let on = |device: &LoopDevice| format!("--filename={}", device.path);
    Ok(both(dir, line, &on(&cached), &on(&direct)))
}

fn cached_io_runs(dir: &Dir) -> Result<Pair, String> {
    let _hidden = hidden_overlay(dir)?;
    let line = "--name=a --rw=read --size=256k --bs=64k --directory=hidden";
    Ok(both(dir, line, "--loops=3", "--loops=1"))
}

fn unwritten_runs(dir: &Dir) -> Result<Pair, String> {
    let sparse = fs::File::create(dir.join("sparse")).and_then(|file| file.set_len(1 << 20));
    sparse.map_err(|error| error.to_string())?;
    let whole = fs::File::create(dir.join("whole")).unwrap();
    std::io::Write::write_all(&mut &whole, &vec![1; 1 << 20]).unwrap();
    whole.sync_all().unwrap();
    Ok(both(dir, "--name=a --rw=read --size=1m --bs=64k", "--filename=sparse", "--filename=whole"))
}

fn compressible_runs(dir: &Dir) -> Result<Pair, String> {
    let zram = Zram::new()?;
    let line = format!("--name=a --filename={} --rw=write --size=256k --bs=64k", zram.path());
    Ok(both(dir, &line, "--zero_buffers", "--refill_buffers"))
}

fn volatile_cache_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let line = format!("--name=a --filename={} --rw=write --size=64k --direct=1", device.path);
    Ok(both(dir, &line, "--end_fsync=0", "--end_fsync=1"))
}

fn sync_ignored_runs(dir: &Dir) -> Result<Pair, String> {
    let _volatile = overlay(dir, &dir.join("of-volatile"), "volatile", ",volatile")?;
    let _durable = overlay(dir, &dir.join("of-durable"), "durable", "")?;
    Ok(both(
        dir,
        "--name=a --rw=write --size=64k --fdatasync=1",
        "--directory=volatile",
        "--directory=durable",
    ))
}

/// A file system with a few percent free, and the same one when the file that fills it is gone.
fn nearly_full_runs(dir: &Dir) -> Result<Pair, String> {
    let device = LoopDevice::new(dir, 64 << 20)?;
    let disk = Mount::ext4(dir, &device)?;
    disk.write("fills", &vec![0; 50 << 20]);
    let line = "--name=a --filename=ext4/f --rw=write --size=64k";
    let raises = run(dir, line);
    fs::remove_file(disk.path.join("fills")).map_err(|error| error.to_string())?;
    Ok(Pair { raises, spares: run(dir, line) })
}

fn copy_on_write_runs(dir: &Dir) -> Result<Pair, String> {
    let device = LoopDevice::new(dir, 128 << 20)?;
    helper("mkfs.btrfs", &["-q", "-f", &device.path])?;
    let _disk = Mount::new(dir, "btrfs", &[&device.path])?;
    Ok(both(dir, "--name=a --rw=write --size=64k", "--directory=btrfs", "--directory=."))
}

/// A file on a device whose own file was written in full, and then lost a block.
fn thin_provisioned_runs(dir: &Dir) -> Result<Pair, String> {
    let backing = dir.join("backing");
    fs::write(&backing, vec![7; 1 << 20]).map_err(|error| error.to_string())?;
    let device = LoopDevice::over(&backing)?;
    let line = format!("--name=a --filename={} --rw=write --size=64k --direct=1", device.path);
    let spares = run(dir, &line);
    helper("fallocate", &["--punch-hole", "--offset=512k", "--length=64k", &backing.to_string_lossy()])?;
    Ok(Pair { raises: run(dir, &line), spares })
}

/// A log of each I/O beside the file; the same on another file system.
fn logs_on_target_runs(dir: &Dir) -> Result<Pair, String> {
    counted(dir)?;
    let _elsewhere = Mount::tmpfs(dir, "size=16m")?;
    let line = "--name=a --filename=f --rw=write --bs=4k --size=64k --ioengine=psync --write_lat_log=";
    let raises = run(dir, &format!("{line}log"));
    Ok(Pair { raises, spares: run(dir, &format!("{line}tmpfs/log")) })
}

fn host_limits_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let requests = format!("{}/queue/nr_requests", device.path.replace("/dev/", "/sys/block/"));
    fs::write(&requests, "4").map_err(|error| format!("{requests}: {error}"))?;
    let line =
        format!("--name=a --filename={} --rw=read --size=1m --direct=1 --ioengine=libaio", device.path);
    Ok(both(dir, &line, "--iodepth=16", "--iodepth=4"))
}

/// The page cache has what was read before, and a direct read does not ask it.
fn cache_served_runs(dir: &Dir) -> Result<Pair, String> {
    direct_works_in(dir.path())?;
    counted(dir)?;
    let line =
        "--name=a --rw=randread --bs=64k --size=8m --loops=8 --ioengine=psync --invalidate=0 --filename=f";
    Ok(both(dir, line, "--direct=0", "--direct=1"))
}

/// btrfs does no direct I/O of what it has compressed.
fn direct_not_honoured_runs(dir: &Dir) -> Result<Pair, String> {
    let of = |options| reads_of_zeros(dir, options);
    Ok(Pair { raises: of("compress-force=zstd")?, spares: of("defaults")? })
}

fn not_yet_written_runs(dir: &Dir) -> Result<Pair, String> {
    counted(dir)?;
    let line = "--name=a --filename=f --rw=write --bs=64k --size=16m --ioengine=psync";
    Ok(both(dir, line, "--end_fsync=0", "--end_fsync=1"))
}

/// Reads of a device that is a second reader's too, which is slower.
fn foreign_io_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let reads = |rate: &str, time: &str| {
        format!(
            "--name=a --filename={} --rw=randread --bs=64k --direct=1 --rate={rate} --time_based --runtime={time}",
            device.path
        )
    };
    let spares = run(dir, &reads("24m", "1s"));
    let other = start(fiord(dir.path(), &format!("--no-history --output=other {}", reads("4m", "20s"))));
    crate::common::until_moved(&other, 1);
    Ok(Pair { raises: run(dir, &reads("24m", "1s")), spares })
}

fn disk_shared_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let line = format!(
        "--name=a --filename={} --rw=randread --bs=4k --direct=1 --rate=4m --time_based --runtime=1s \
         --allow_mounted_write=1",
        device.path
    );
    let spares = run(dir, &line);
    let _writer = writer(&device.path);
    Ok(Pair { raises: run(dir, &line), spares })
}

/// A zram device does its I/O on the processor of whoever asks.
fn cpu_bound_runs(dir: &Dir) -> Result<Pair, String> {
    let zram = Zram::new()?;
    let line = format!(
        "--name=a --filename={} --rw=randread --bs=4k --direct=1 --ioengine=psync --time_based --runtime=800ms",
        zram.path()
    );
    let raises = undisturbed(Code::CpuBound, true, || run(dir, &line))?;
    Ok(Pair { raises, spares: run(dir, &format!("{line} --rate_iops=100")) })
}

/// A study of one run, ended by a signal or not.
fn interrupted_runs(dir: &Dir) -> Result<Pair, String> {
    let matrix = |time: &str| {
        let line = "matrix --no-history --trust=on --json --bs=4k --rw=randread --size=8M --repeat=1 --time";
        start(fiord(dir.path(), &format!("{line} {time}")))
    };
    let running = matrix("50s");
    until_working(&running, "4k-randread");
    signal(running.0.id(), "INT");
    let raises = finish(running).assert_status(130).json();
    Ok(Pair { raises, spares: finish(matrix("200ms")).json() })
}

/// Its own control group reads little; a writer outside waits for a device all the time. Where the devices are seen,
/// they show whether that is the same one.
fn io_pressure_runs(dir: &Dir) -> Result<Pair, String> {
    let group = ControlGroup::new("unified", "io-pressure")?;
    let (_tmpfs, device) = private_device(dir)?;
    let _hidden = hidden_overlay(dir)?;
    let _seen = overlay(dir, &dir.join("of-seen"), "seen", "")?;
    let _writer = writer(&device.path);
    let on = |directory: &str| {
        let line = "--name=a --rw=read --bs=4k --size=64k --rate_iops=50 --time_based --runtime=1s";
        run_as(dir, |command| group.inside(command), &format!("{line} --directory={directory}"))
    };
    Ok(Pair { raises: on("hidden"), spares: on("seen") })
}

/// The processor is busy for the larger part of the run, but not for all of it.
fn foreign_cpu_runs(dir: &Dir) -> Result<Pair, String> {
    let _turn = processor_turn();
    let cpu = shared_cpu()?;
    let begin = |runtime: &str| {
        let line = "--no-history --output-format=json --name=a --ioengine=null --rate_iops=100 --size=1g --time_based";
        start(pinned(&cpu, &fiord(dir.path(), &format!("{line} --runtime={runtime}"))))
    };
    let beside = hogs(&cpu, 2);
    let running = begin("5s");
    thread::sleep(Duration::from_secs(3));
    drop(beside);
    let raises = finish(running).assert_success().json();
    if has(&raises, "cpu-contended") {
        return Err("other programs keep this processor busy all the time".to_string());
    }
    let alone = || finish(begin("2s")).assert_success().json();
    Ok(Pair { raises, spares: undisturbed(Code::ForeignCpu, false, alone)? })
}

fn cpu_contended_runs(dir: &Dir) -> Result<Pair, String> {
    let _turn = processor_turn();
    let cpu = shared_cpu()?;
    let line = "--name=a --ioengine=null --rate_iops=100 --size=1g --time_based --runtime=800ms";
    let on_it = || run_as(dir, |command| pinned(&cpu, command), line);
    let beside = hogs(&cpu, 2);
    let raises = on_it();
    drop(beside);
    // Whatever the neighbour shows on a busy machine.
    assert!(has(&raises, "cpu-contended"), "{raises}");
    Ok(Pair { raises, spares: undisturbed(Code::CpuContended, false, on_it)? })
}

/// Busy at all times: a second of work takes ten.
fn cpu_throttled_runs(dir: &Dir) -> Result<Pair, String> {
    let group = ControlGroup::new("cpu", "throttled")?;
    group.set("cpu.cfs_quota_us", "20000")?;
    let line = "--name=a --ioengine=null --rw=read --size=1g --time_based --runtime=1s";
    Ok(Pair { raises: run_as(dir, |command| group.inside(command), line), spares: run(dir, line) })
}

/// The page cache of a device that is larger than the control group may hold.
fn memory_pressure_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let group = ControlGroup::new("memory", "pressure")?;
    group.set("memory.limit_in_bytes", "40M")?;
    let line = format!(
        "--name=a --numjobs=4 --filename={} --rw=randwrite --bs=64k --size=200m --ioengine=psync --time_based \
         --runtime=1s",
        device.path
    );
    let raises = run_as(dir, |command| group.inside(command), &line);
    let spares = run(dir, "--name=a --ioengine=null --rate_iops=100 --size=1g --time_based --runtime=800ms");
    if has(&spares, "memory-pressure") && waits_for_memory()? > Duration::from_millis(20) {
        return Err("other programs of this machine wait for memory".to_string());
    }
    Ok(Pair { raises, spares })
}

/// For how long of half a second some task of the machine waits for memory without any run.
fn waits_for_memory() -> Result<Duration, String> {
    let waited_us = || -> Result<u64, String> {
        let text = fs::read_to_string("/proc/pressure/memory").map_err(|error| error.to_string())?;
        let total = text.lines().next().and_then(|line| line.rsplit_once("total="));
        total.and_then(|(_, total)| total.parse().ok()).ok_or_else(|| format!("no total: {text}"))
    };
    let before_us = waited_us()?;
    thread::sleep(Duration::from_millis(500));
    Ok(Duration::from_micros(waited_us()? - before_us))
}

/// Writes to one block wait for each other. There are enough of them that a processor taken away for some milliseconds
/// does not show in the mean depth.
fn depth_not_reached_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let line = format!(
        "--name=a --filename={} --rw=randwrite --norandommap --bs=4k --size=4k --io_size=64m --direct=1 \
         --ioengine=libaio --iodepth=8",
        device.path
    );
    Ok(both(dir, &line, "--serialize_overlap=1", "--serialize_overlap=0"))
}

/// A limit that becomes ten times lower in the middle of a run: eleven samples, one each second.
fn not_steady_runs(dir: &Dir) -> Result<Pair, String> {
    let limited = |name: &str| {
        let place = Dir::under(dir.path())?;
        let (tmpfs, device) = private_device(&place)?;
        let group = ControlGroup::for_io(name)?;
        group.limit_reads(&device.number()?, ReadLimit::BytesPerSecond(4 << 20))?;
        Ok::<_, String>((tmpfs, device, group))
    };
    let ((_one, falls, falling), (_other, stays, steady)) = (limited("falling")?, limited("steady")?);
    let begin = |device: &LoopDevice, group: &ControlGroup| {
        let line = format!(
            "--no-history --output-format=json --name=a --filename={} --rw=randread --bs=16k --direct=1 --time_based \
             --runtime=12s",
            device.path
        );
        start(group.inside(&fiord(dir.path(), &line)))
    };
    let (changed, unchanged) = (begin(&falls, &falling), begin(&stays, &steady));
    thread::sleep(Duration::from_secs(6));
    falling.limit_reads(&falls.number()?, ReadLimit::BytesPerSecond(400 << 10))?;
    let raises = finish(changed).assert_success().json();
    let spares = finish(unchanged).assert_success().json();
    if has(&spares, "not-steady") && ["stalled", "cpu-contended"].iter().any(|code| has(&spares, code)) {
        return Err("this machine is too busy for a steady run".to_string());
    }
    let of_run = |document: &Value, key: &str| document["steady_part"][key].as_f64();
    assert!(of_run(&raises, "slope_percent").unwrap() < -10.0, "{}", raises["steady_part"]);
    assert!(of_run(&raises, "run_s").unwrap() >= 10.0 && of_run(&spares, "run_s").unwrap() >= 10.0);
    Ok(Pair { raises, spares })
}

/// How long a device stands still so that two samples of a run fall into the time.
const STALL: Duration = Duration::from_millis(2500);

/// Reads a device that stands still for this long, once, with these options beside those that read it.
fn stalled_run(dir: &Dir, lasts: Duration, options: &str) -> Result<Value, String> {
    let place = Dir::under(dir.path())?;
    let _mount = Stalling::mount(&place, Stall { bytes: 200 * 4096, at_read: 100, lasts })?;
    let line = "--name=a --filename=stalling/data --rw=read --bs=4k --ioengine=psync --direct=1";
    Ok(run(&place, &format!("{line} {options}")))
}

/// Reads of a device that stands still, and of one that hesitates.
fn stalled_runs(dir: &Dir, options: &str) -> Result<Pair, String> {
    let stalled_for = |lasts: Duration| stalled_run(dir, lasts, options);
    Ok(Pair { raises: stalled_for(STALL)?, spares: stalled_for(Duration::from_millis(100))? })
}

/// Stopped by a signal, and frozen as a container that is paused, while another run lasts, which is longer than a second;
/// and a device that stands still as long.
fn suspended_runs(dir: &Dir) -> Result<Pair, String> {
    let line = "--name=stops --ioengine=null --rate_iops=1000 --size=1g --time_based --runtime=3s";
    let begin = || fiord(dir.path(), &format!("--no-history --output-format=json {line}"));
    let meanwhile = || {
        run(dir, "--name=meanwhile --ioengine=null --rate_iops=1000 --size=1g --time_based --runtime=1500ms")
    };
    let running = start(begin());
    until_working(&running, "stops");
    signal(running.0.id(), "STOP");
    meanwhile();
    signal(running.0.id(), "CONT");
    let raises = finish(running).assert_success().json();
    assert!(!has(&raises, "stalled"), "{raises}");
    let (group, file, [frozen, thawed]) = match ControlGroup::new("freezer", "frozen") {
        Ok(group) => (group, "freezer.state", ["FROZEN", "THAWED"]),
        Err(_) => (ControlGroup::for_io("frozen")?, "cgroup.freeze", ["1", "0"]),
    };
    let running = start(group.inside(&begin()));
    until_working(&running, "stops");
    group.set(file, frozen)?;
    meanwhile();
    group.set(file, thawed)?;
    let paused = finish(running).assert_success().json();
    assert!(has(&paused, "suspended"), "{paused}");
    Ok(Pair { raises, spares: stalled_run(dir, STALL, "")? })
}

/// A control group's limit, whose I/Os wait for it, and the same device without it.
fn flat_at_limit_runs(dir: &Dir) -> Result<Pair, String> {
    let (_tmpfs, device) = private_device(dir)?;
    let group = ControlGroup::for_io("flat")?;
    group.limit_reads(&device.number()?, ReadLimit::IosPerSecond(5000))?;
    let begin = |inside: bool| {
        let command = fiord(
            dir.path(),
            &format!(
                "--no-history --output-format=json --name=a --filename={} --rw=randread --bs=4k --direct=1 \
                 --ioengine=libaio --iodepth=16 --time_based --runtime=14s",
                device.path
            ),
        );
        start(if inside { group.inside(&command) } else { command })
    };
    let raises = undisturbed(Code::FlatAtLimit, true, || finish(begin(true)).assert_success().json())?;
    Ok(Pair { raises, spares: finish(begin(false)).assert_success().json() })
}

/// A rate for writes alone holds the reads back as well, or not: either way not one in ten is a write.
fn mix_not_reached_runs(dir: &Dir) -> Result<Pair, String> {
    let line =
        "--name=a --ioengine=null --rw=randrw --rwmixread=5 --bs=4k --size=1g --time_based --runtime=600ms";
    Ok(both(dir, line, "--rate_iops=,100", "--rate_iops=100,1900"))
}

/// In the page cache, with a sync at the end; with one for each write, which is included.
fn sync_excluded_runs(dir: &Dir) -> Result<Pair, String> {
    let line = "--name=a --filename=f --rw=write --bs=4k --size=256k --ioengine=psync";
    let document = run(dir, &format!("{line} --fdatasync=1"));
    assert!(has(&document, "sync-excluded"), "{document}");
    Ok(both(dir, line, "--end_fsync=1", "--end_fsync=1 --sync=1"))
}

/// Reads, and writes.
fn overlapping_sequential_runs(dir: &Dir) -> Result<Pair, String> {
    let line = "--name=a --size=64k --filename=f --numjobs=3";
    assert!(has(&run(dir, &format!("{line} --rw=write")), "overlapping-sequential"));
    Ok(both(dir, line, "--rw=read", "--rw=read --offset_increment=64k"))
}

fn no_overlap_runs(dir: &Dir) -> Result<Pair, String> {
    let jobs = |delay: &str| {
        format!(
            "--group_reporting --rw=write --size=1m --bs=4k --rate_iops=100 --time_based --runtime=600ms --name=a --name=b \
             --startdelay={delay}"
        )
    };
    Ok(Pair { raises: run(dir, &jobs("800ms")), spares: run(dir, &jobs("0")) })
}

/// 3000 reads at 2000 per second, of a file system that stands still for a second: the 0.1 % that waited longest were due
/// in its first 3/2 ms. A busy machine can only delay them more.
fn omitted_waits_runs(dir: &Dir) -> Result<Pair, String> {
    let stall = Stall { bytes: 3000 * 4096, at_read: 100, lasts: Duration::from_secs(1) };
    let reads = "--name=a --filename=stalling/data --rw=read --bs=4k --ioengine=psync --direct=1";
    let place = Dir::under(dir.path())?;
    let mount = Stalling::mount(&place, stall)?;
    let raises = run(&place, &format!("{reads} --rate_iops=2000"));
    drop(mount);
    let p999 = |latency: &Value| latency["percentile"]["99.900000"].as_u64().unwrap();
    let job = &raises["jobs"][0];
    assert!(p999(&job["response"]["read"]["lat_ns"]) > 980_000_000, "{job}");
    assert!(p999(&job["read"]["clat_ns"]) < 500_000_000, "{job}");
    // The same stall; without a rate nothing was due meanwhile.
    let place = Dir::under(dir.path())?;
    let _mount = Stalling::mount(&place, Stall { lasts: Duration::from_millis(100), ..stall })?;
    let spares = run(&place, reads);
    assert_eq!(spares["jobs"][0]["response"], Value::Null);
    Ok(Pair { raises, spares })
}

/// More I/Os a second than any device completes, and few.
fn arrivals_lost_runs(dir: &Dir) -> Result<Pair, String> {
    let line = "--name=a --rw=randread --bs=4k --size=1m --ioengine=libaio --iodepth=32 --rate_arrivals=open \
                --time_based --runtime=400ms";
    Ok(both(dir, line, "--rate_iops=50000000", "--rate_iops=50"))
}

/// Reads by an engine that does nothing, and reads of a disk: those take at least ten times as long as anything that fiord
/// does for an I/O.
fn tool_overhead_runs(dir: &Dir) -> Result<Pair, String> {
    direct_works_in(dir.path())?;
    let line = "--name=a --rw=randread --bs=4k --size=8m --time_based --runtime=700ms";
    Ok(both(dir, line, "--ioengine=null", "--ioengine=psync --direct=1 --filename=f"))
}
