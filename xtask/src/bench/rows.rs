//! The claims about overhead, one row each, as data.
//!
//! Invariant: both programs get the same place and the same arguments; the peak tool gets the equivalent options of its
//! own.

use std::fmt;

use super::peer::Peer;

/// Work that both programs do, and the claims about it.
#[derive(Clone)]
pub struct Row {
    /// Its name in the table.
    pub case: &'static str,
    /// Arguments for either program; `DEVICE` stands for the block device, `PEER` for the address of the peer. They may name
    /// the files `cached` and `iolog`.
    pub args: String,
    /// The other end of its connections, if it has any.
    pub peer: Option<Peer>,
    /// Where it runs.
    pub place: Location,
    /// The program fiord is compared with.
    pub against: Against,
    /// How long it runs.
    pub work: Work,
    /// The figures taken from each run, and their targets.
    pub claims: &'static [(Metric, Target)],
}

/// Where a row runs; all have a directory with the files `cached`, of 64 MiB, and `iolog`, a trace of `TRACE_IOS` reads
/// of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// On the disk.
    Directory,
    /// In memory (tmpfs).
    Memory,
    /// On a new file system over memory: the number of its kind in `FILE_SYSTEMS`.
    FileSystem(usize),
    /// A fast block device, only read.
    Device,
    /// `DEVICES` of them: `DEVICE.0` and so on.
    Devices,
}

/// Kinds of file systems of rows.
pub const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Block devices of a row on many; fio names one of its own by `$filenum` or `$jobnum`.
pub const DEVICES: usize = 64;

/// The other program of a pair.
#[derive(Clone, PartialEq, Eq)]
pub enum Against {
    Fio,
    /// fio's own peak tool, and its arguments except for the run time.
    Peak(&'static str),
}

/// How long a run takes.
#[derive(Clone, Copy)]
pub enum Work {
    /// For a number of seconds that is the same for all rows.
    Timed,
    /// Until this many I/Os are done. The seconds of a pair are an estimate for a virtual machine with two processors.
    Ios { count: u64, pair_seconds_about: f64 },
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// I/Os per second, reads, writes and trims of all jobs, as the program itself reports them.
    Iops,
    /// Time from start to end of the process.
    Time,
    /// Processor time of the process and of all that it started.
    Cpu,
    /// Peak resident memory of the process or of one of its children.
    Memory,
    /// The 99th percentile of completion latencies, as the program itself reports it.
    P99,
}

impl Metric {
    const ALL: [Metric; 5] = [Metric::Iops, Metric::Time, Metric::Cpu, Metric::Memory, Metric::P99];

    /// Its name in the raw results.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Iops => "iops",
            Metric::Time => "process_s",
            Metric::Cpu => "cpu_s",
            Metric::Memory => "memory_bytes_max",
            Metric::P99 => "p99_ns",
        }
    }

    /// The metric with this name.
    pub fn of_key(key: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.key() == key)
    }

    /// The suffix in the table for a case with more than one metric.
    pub fn word(self) -> &'static str {
        match self {
            Metric::Iops => "IOPS",
            Metric::Time => "time",
            Metric::Cpu => "CPU time",
            Metric::Memory => "memory",
            Metric::P99 => "p99",
        }
    }
}

/// The target for fiord's figure divided by the other's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// fiord does the work, whether or not the other can.
    Runs,
}

impl Target {
    /// Parses the output of `Display`.
    pub fn parse(text: &str) -> Option<Target> {
        match text.split_at_checked(2)? {
            (">=", ratio) => Some(Target::AtLeast(ratio.parse().ok()?)),
            ("<=", ratio) => Some(Target::AtMost(ratio.parse().ok()?)),
            _ => (text == "runs").then_some(Target::Runs),
        }
    }

    /// Whether a ratio meets the target.
    pub fn is_held_by(self, ratio: f64) -> bool {
        match self {
            Target::AtLeast(least) => ratio >= least,
            Target::AtMost(most) => ratio <= most,
            Target::Runs => true,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtLeast(ratio) => out.pad(&format!(">={ratio}")),
            Target::AtMost(ratio) => out.pad(&format!("<={ratio}")),
            Target::Runs => out.pad("runs"),
        }
    }
}

impl Row {
    /// The name of one claim: the case, and the metric if there are several.
    pub fn claim_name(&self, metric: Metric) -> String {
        if self.claims.len() == 1 {
            self.case.to_string()
        } else {
            format!("{}: {}", self.case, metric.word())
        }
    }

    /// Whether the row is meaningful even if the other program refuses it.
    pub fn stands_alone(&self) -> bool {
        self.claims.iter().all(|(_, target)| *target == Target::Runs)
    }

    fn to(self, peer: Peer) -> Row {
        Row { peer: Some(peer), ..self }
    }

    fn claims(self, claims: &'static [(Metric, Target)]) -> Row {
        Row { claims, ..self }
    }
}

/// I/Os of the trace `iolog`.
pub const TRACE_IOS: u64 = 262_144;

const NULL: &str = "--ioengine=null --size=1g --bs=4k";
const CACHED: &str = "--filename=cached --size=64m --bs=4k --rw=randread --invalidate=0";
const DEVICE: &str = "--filename=DEVICE --direct=1 --bs=4k --rw=randread";
const TUNED_URING: &str = "--ioengine=io_uring --iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_min=16 \
                           --fixedbufs --registerfiles";
const TUNED_AIO: &str = "--ioengine=libaio --iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_min=16";

const NOT_SLOWER: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(1.0))];
/// Of work whose speed is mostly that of a server: the rest is what the program costs.
const NOT_SLOWER_OR_DEARER: &[(Metric, Target)] =
    &[(Metric::Iops, Target::AtLeast(1.0)), (Metric::Cpu, Target::AtMost(1.0))];
/// Of a percentile: one bin of fio's histogram later is less than one reading of the clock.
const NO_LATER: Target = Target::AtMost(1.02);
const NOT_LONGER: &[(Metric, Target)] = &[(Metric::Time, Target::AtMost(1.0))];

/// Every row, in the order of the table.
pub fn rows() -> Vec<Row> {
    [
        null(),
        synchronous(),
        queued(),
        tails(),
        in_memory(),
        peak(),
        whole_processes(),
        calls(),
        peers(),
        not_slower(),
        workloads(),
        many(),
    ]
    .concat()
}

fn timed(case: &'static str, place: Location, args: &[&str], claims: &'static [(Metric, Target)]) -> Row {
    Row { case, args: args.join(" "), peer: None, place, against: Against::Fio, work: Work::Timed, claims }
}

fn counted(case: &'static str, args: &str, count: u64, pair_seconds_about: f64) -> Row {
    let work = Work::Ios { count, pair_seconds_about };
    Row { work, ..timed(case, Location::Directory, &[args], NOT_LONGER) }
}

fn null() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(10.0))];
    let row = |case, more| timed(case, Location::Directory, &[NULL, "--rw=randread", more], CLAIM);
    vec![row("null, one job", ""), row("null, depth 32", "--iodepth=32")]
}

fn synchronous() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(1.25))];
    let row = |case, engine| timed(case, Location::Directory, &[CACHED, engine], CLAIM);
    vec![row("psync, cached", "--ioengine=psync"), row("mmap, cached", "--ioengine=mmap")]
}

fn queued() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(1.3))];
    let device = |case, engine| timed(case, Location::Device, &[DEVICE, engine], CLAIM);
    let cached = |case, engine| timed(case, Location::Directory, &[CACHED, engine], CLAIM);
    let usual_uring = "--ioengine=io_uring --iodepth=32";
    let usual_aio = "--ioengine=libaio --iodepth=32";
    vec![
        device("io_uring, device", usual_uring),
        device("io_uring, device, tuned", TUNED_URING),
        cached("io_uring, cached", usual_uring),
        cached("io_uring, cached, tuned", TUNED_URING),
        device("libaio, device", usual_aio),
        device("libaio, device, tuned", TUNED_AIO),
        cached("libaio, cached", usual_aio),
        cached("libaio, cached, tuned", TUNED_AIO),
    ]
}

/// The 99th percentile, where an I/O takes little more than the program's own work between two.
fn tails() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::P99, NO_LATER)];
    let row = |case, place, args: &[&str]| timed(case, place, args, CLAIM);
    let uring = "--ioengine=io_uring --iodepth=32";
    vec![
        row("null, tail", Location::Directory, &[NULL, "--rw=randread"]),
        row("mmap, tail", Location::Directory, &[CACHED, "--ioengine=mmap"]),
        row("psync in memory, tail", Location::Memory, &[CACHED, "--ioengine=psync"]),
        row("io_uring cached, tail", Location::Directory, &[CACHED, uring]),
        row("zram, tail", Location::Device, &[DEVICE, uring]),
        row("zram tuned, tail", Location::Device, &[DEVICE, TUNED_URING]),
    ]
}

/// Where the kernel hands the requests of a ring to threads of its own.
fn in_memory() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(1.0)), (Metric::P99, NO_LATER)];
    const USUAL: &str = "--ioengine=io_uring --iodepth=32";
    let row =
        |case, ring, jobs| timed(case, Location::Memory, &[CACHED, ring, "--group_reporting", jobs], CLAIM);
    vec![
        row("tmpfs x1", USUAL, "--numjobs=1"),
        row("tmpfs x4", USUAL, "--numjobs=4"),
        row("tmpfs x8", USUAL, "--numjobs=8"),
        row("tmpfs x16", USUAL, "--numjobs=16"),
        row("tmpfs tuned x1", TUNED_URING, "--numjobs=1"),
        row("tmpfs tuned x4", TUNED_URING, "--numjobs=4"),
        row("tmpfs tuned x8", TUNED_URING, "--numjobs=8"),
        row("tmpfs tuned x16", TUNED_URING, "--numjobs=16"),
    ]
}

fn peak() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(0.95))];
    let row = |case, place, work, peak| Row {
        against: Against::Peak(peak),
        ..timed(case, place, &[work, TUNED_URING], CLAIM)
    };
    vec![
        row(
            "device, peak tool",
            Location::Device,
            DEVICE,
            "-d32 -s16 -c16 -b4096 -p0 -B1 -F1 -R1 -O1 DEVICE",
        ),
        row(
            "cached, peak tool",
            Location::Directory,
            CACHED,
            "-d32 -s16 -c16 -b4096 -p0 -B1 -F1 -R1 -O0 cached",
        ),
    ]
}

fn whole_processes() -> Vec<Row> {
    const JOBS: &str = "--ioengine=null --size=1m";
    vec![
        counted("one trivial job", "--ioengine=null --size=4k", 1, 0.4)
            .claims(&[(Metric::Time, Target::AtMost(0.1))]),
        counted("1,000 jobs", &format!("{JOBS} --numjobs=1000"), 256_000, 4.7)
            .claims(&[(Metric::Time, Target::AtMost(0.5)), (Metric::Memory, Target::AtMost(0.25))]),
        counted("1,000 threads", &format!("{JOBS} --numjobs=1000 --thread"), 256_000, 1.2)
            .claims(&[(Metric::Time, Target::AtMost(0.5)), (Metric::Memory, Target::AtMost(0.25))]),
        counted("10,000 jobs", &format!("{JOBS} --numjobs=10000"), 2_560_000, 7.0)
            .claims(&[(Metric::Time, Target::Runs)]),
        counted(
            "random over 100 TB",
            "--ioengine=null --size=100t --bs=4k --rw=randread --number_ios=1000",
            1000,
            7.0,
        )
        .claims(&[(Metric::Memory, Target::AtMost(0.01))]),
    ]
}

/// The other engines of Debian's fio that need nothing but this machine.
fn calls() -> Vec<Row> {
    const IOS: u64 = 262_144;
    let cached = |case, engine| {
        counted(case, &format!("{CACHED} --io_size=1g --ioengine={engine}"), IOS, 0.9).claims(NOT_SLOWER)
    };
    // In memory, so that no file system decides.
    let names = |case, engine| Row {
        place: Location::Memory,
        ..counted(case, &format!("--ioengine={engine} --nrfiles=10000 --size=40000k --bs=4k"), 10_000, 0.6)
            .claims(&[(Metric::Iops, Target::AtLeast(1.2))])
    };
    vec![
        cached("sync, cached", "sync"),
        cached("vsync, cached", "vsync"),
        cached("pvsync, cached", "pvsync"),
        cached("pvsync2, cached", "pvsync2"),
        cached("splice, cached", "splice"),
        cached("posixaio, cached", "posixaio --iodepth=8"),
        names("filecreate", "filecreate --rw=write --unlink=1"),
        names("filestat", "filestat --rw=read"),
        names("filedelete", "filedelete --rw=write"),
        counted("falloc", "--ioengine=falloc --rw=write --bs=4k --size=256m", 65_536, 1.0).claims(NOT_SLOWER),
        counted("ftruncate", "--ioengine=ftruncate --rw=write --bs=4k --size=256m", 65_536, 1.0)
            .claims(NOT_SLOWER),
    ]
}

/// Connections. Debian's fio has no `http`, `libiscsi` and `nfs`.
fn peers() -> Vec<Row> {
    const CLAIM: &[(Metric, Target)] = &[(Metric::Iops, Target::AtLeast(1.2))];
    // To nobody, and to a sink: fio that reads a stream sometimes waits for ever.
    const DATAGRAMS: &str = "--ioengine=net --protocol=udp --hostname=127.0.0.1 --port=18771 --rw=write";
    const STREAM: &str = "--protocol=tcp --hostname=127.0.0.1 --port=PEER --rw=write --bs=1k --size=128m";
    const NBD: &str = "--ioengine=nbd --uri=nbd+unix:///?socket=PEER --rw=randread --bs=4k --iodepth=32";
    const HTTP: &str = "--ioengine=http --http_host=127.0.0.1:PEER --filename=/cached --http_object_mode=range \
                        --rw=randread --bs=4k --numjobs=4 --thread";
    const RADOS: &str = "--ioengine=rados --pool=p --conf=PEER --rw=randwrite --bs=4k --iodepth=16";
    const RBD: &str = "--ioengine=rbd --pool=p --rbdname=image --rw=randwrite --bs=4k --iodepth=16";
    const GLUSTER: &str = "--volume=v --brick=PEER --rw=write --bs=4k --size=128m";
    let stream =
        |case, engine| counted(case, &format!("--ioengine={engine} {STREAM}"), 131_072, 1.1).to(Peer::Sink);
    let ceph = |case, args: &str| {
        counted(case, &format!("{args} --size=64m --io_size=256m"), 65_536, 8.0)
            .claims(NOT_SLOWER_OR_DEARER)
            .to(Peer::Ceph)
    };
    // Its library takes ten seconds to leave a volume.
    let gluster = |case, engine| {
        counted(case, &format!("--ioengine={engine} {GLUSTER}"), 32_768, 28.0)
            .claims(NOT_SLOWER_OR_DEARER)
            .to(Peer::Gluster)
    };
    vec![
        counted("net, datagrams", &format!("{DATAGRAMS} --bs=1k --size=64m"), 65_536, 1.2).claims(NOT_SLOWER),
        stream("net, stream", "net").claims(CLAIM),
        stream("netsplice, stream", "netsplice").claims(NOT_SLOWER),
        counted("nbd", &format!("{NBD} --size=64m --io_size=128m"), 32_768, 1.2)
            .claims(CLAIM)
            .to(Peer::Nbdkit),
        counted("http", &format!("{HTTP} --size=16m --io_size=256m"), 262_144, 2.2)
            .claims(&[(Metric::Iops, Target::Runs)])
            .to(Peer::Nginx),
        ceph("rados", RADOS),
        ceph("rbd", RBD),
        gluster("gfapi", "gfapi"),
        gluster("gfapi_async", "gfapi_async --iodepth=16"),
    ]
}

fn not_slower() -> Vec<Row> {
    let null = |case, more, claims| timed(case, Location::Directory, &[NULL, more], claims);
    const VERIFIED: &str = "--ioengine=psync --filename=verified --size=256m --bs=4k --rw=write";
    let verify = |case, method: &str| counted(case, &format!("{VERIFIED} {method}"), 131_072, 1.5);
    vec![
        counted(
            "logs of each I/O",
            &format!("{NULL} --rw=randread --write_lat_log=log --write_bw_log=log --write_iops_log=log"),
            262_144,
            0.7,
        ),
        counted(
            "logs, compressed",
            &format!("{NULL} --rw=randread --write_lat_log=log --log_compression=64k"),
            262_144,
            2.4,
        ),
        verify("verify, crc32c", "--verify=crc32c").claims(&[(Metric::Time, Target::AtMost(0.67))]),
        verify("verify, sha256", "--verify=sha256"),
        verify("verify, 2 threads", "--verify=sha256 --verify_async=2"),
        verify("verify, backlog", "--verify=crc32c --verify_backlog=256"),
        null("buffers refilled", "--rw=randwrite --refill_buffers", NOT_SLOWER),
        null("rate, never reached", "--rw=randread --rate_iops=100000000", NOT_SLOWER),
        null(
            "rate, 100,000/s: CPU",
            "--rw=randread --rate_iops=100000",
            &[(Metric::Cpu, Target::AtMost(1.0))],
        ),
        counted(
            "1,000 jobs, one group",
            "--ioengine=null --size=1m --numjobs=1000 --group_reporting",
            256_000,
            3.5,
        ),
    ]
}

/// What changes each I/O: where it goes, how long it is, what it writes, and when it is issued.
fn workloads() -> Vec<Row> {
    const TRIMMED: &str = "--ioengine=null --size=256m --bs=4k --rw=trimwrite --verify=null --trim_percentage=100 \
                           --trim_backlog=64";
    let null = |case, more| timed(case, Location::Directory, &[NULL, more], NOT_SLOWER);
    let cached =
        |case, more| timed(case, Location::Directory, &[CACHED, "--ioengine=psync", more], NOT_SLOWER);
    vec![
        null("random, zipf", "--rw=randread --random_distribution=zipf:1.2"),
        null("random, pareto", "--rw=randread --random_distribution=pareto:0.2"),
        null("random, normal", "--rw=randread --random_distribution=normal:20"),
        null("random, zoned", "--rw=randread --random_distribution=zoned:60/10:30/20:10/70"),
        null("random, tausworthe64", "--rw=randread --random_generator=tausworthe64"),
        null("random, lfsr", "--rw=randread --random_generator=lfsr"),
        // fio 3.33 has no such option.
        counted("random, sprandom", &format!("{NULL} --rw=randwrite --sprandom=1"), 301_466, 0.4)
            .claims(&[(Metric::Time, Target::Runs)]),
        null("mixed, sizes drawn", "--rw=randrw --bssplit=4k/50:64k/50"),
        null("trims", "--rw=randtrim"),
        null("trims, then writes", "--rw=randtrimwrite"),
        counted("trims of written blocks", TRIMMED, 262_144, 1.8),
        // fio 3.33 fails if there is more than one block.
        null("trims, errors by block", "--size=4k --rw=randtrim --block_error_percentiles=1"),
        null("buffers, duplicates", "--rw=write --dedupe_percentage=50"),
        null("buffers, compressible", "--rw=write --refill_buffers --buffer_compress_percentage=50"),
        null("flow, two jobs", "--rw=randread --numjobs=2 --flow_id=1 --flow=1"),
        null(
            "latency target",
            "--rw=randread --iodepth=32 --latency_target=1s --latency_window=100ms --latency_run=1",
        ),
        null("overlaps serialized", "--rw=randwrite --iodepth=32 --serialize_overlap=1"),
        null("submission offloaded", "--rw=randread --iodepth=8 --io_submit_mode=offload"),
        null("clock of one processor", "--rw=randread --gtod_cpu=1"),
        cached("file lock", "--lockfile=exclusive"),
        null("zones, strided", "--rw=randread --zonemode=strided --zonesize=1m --zoneskip=1m"),
        null("zones, zbd", "--rw=randwrite --zonemode=zbd --zonesize=64m"),
        counted("iolog recorded", &format!("{NULL} --rw=randread --write_iolog=recorded"), 262_144, 0.7),
        counted(
            "replay of an iolog",
            "--ioengine=null --read_iolog=iolog --replay_no_stall=1",
            TRACE_IOS,
            0.8,
        ),
        timed(
            "priorities of I/Os",
            Location::Device,
            &[DEVICE, "--ioengine=libaio --iodepth=32 --cmdprio_percentage=50"],
            NOT_SLOWER,
        ),
    ]
}

/// Files that are laid out, opened and closed, and devices.
fn many() -> Vec<Row> {
    const LAYOUT: &str = "--ioengine=psync --rw=read --bs=4k --number_ios=1 --unlink=1";
    // Without syncs, so that the disk decides less.
    const FILES: &str = "--filesize=4k --openfiles=100 --create_fsync=0";
    const OPENED: &str = "--ioengine=psync --rw=write --bs=4k --size=40000k --nrfiles=10000 --openfiles=100 \
                          --create_on_open=1 --fallocate=none --unlink=1";
    const READ: &str = "--ioengine=psync --rw=randread --bs=4k --direct=1 --group_reporting";
    let devices = |case, more| timed(case, Location::Devices, &[READ, more], NOT_SLOWER);
    let on = |index, case, size: &str, ios| Row {
        place: Location::FileSystem(index),
        ..counted(case, &format!("{LAYOUT} --create_fsync=0 {size}"), ios, 2.0)
    };
    const ONE: &str = "--size=1g";
    const SIXTEEN: &str = "--size=64m --numjobs=16";
    const MANY: &str = "--filesize=4k --openfiles=100 --size=40000k --nrfiles=10000";
    vec![
        on(0, "ext4, 1 GiB", ONE, 1),
        on(0, "ext4, 16 files", SIXTEEN, 16),
        on(0, "ext4, 10,000 files", MANY, 1),
        on(1, "xfs, 1 GiB", ONE, 1),
        on(1, "xfs, 16 files", SIXTEEN, 16),
        on(1, "xfs, 10,000 files", MANY, 1),
        on(2, "btrfs, 1 GiB", ONE, 1),
        on(2, "btrfs, 16 files", SIXTEEN, 16),
        on(2, "btrfs, 10,000 files", MANY, 1),
        counted("layout, 128 MiB", &format!("{LAYOUT} --size=128m"), 1, 1.8),
        counted("layout, 16 files", &format!("{LAYOUT} --size=4m --numjobs=16"), 16, 1.0),
        counted("layout, 1,000 files", &format!("{LAYOUT} {FILES} --size=4000k --nrfiles=1000"), 1, 0.5),
        counted("10,000 files", OPENED, 10_000, 2.4)
            .claims(&[(Metric::Time, Target::AtMost(1.0)), (Metric::Memory, Target::AtMost(1.0))]),
        devices("64 devices, one job", "--filename_format=DEVICE.$filenum --nrfiles=64 --size=64g"),
        devices("64 devices, 64 jobs", "--filename_format=DEVICE.$jobnum --numjobs=64 --size=1g"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::peer::PLACEHOLDER;
    use super::*;

    #[test]
    fn names_of_lines_are_unique_and_fit() {
        let rows = rows();
        let names: Vec<String> = rows
            .iter()
            .flat_map(|row| row.claims.iter().map(|(metric, _)| row.claim_name(*metric)))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        assert_eq!(
            names.iter().filter(|name| name.len() > super::super::table::CASE_WIDTH).count(),
            0,
            "{names:?}"
        );
        assert!(names.contains(&"1,000 jobs: memory".to_string()));
    }

    #[test]
    fn a_device_is_named_if_needed_and_never_written() {
        for row in rows() {
            let is_device = matches!(row.place, Location::Device | Location::Devices);
            assert_eq!(row.args.contains("DEVICE"), is_device, "{}", row.case);
            assert!(!is_device || row.args.contains("--rw=randread"), "{}", row.case);
        }
    }

    #[test]
    fn a_peer_is_named_if_there_is_one() {
        for row in rows() {
            let is_named = row.args.contains(PLACEHOLDER);
            // Ceph is found by the environment as well.
            assert!(is_named == row.peer.is_some() || row.peer == Some(Peer::Ceph), "{}", row.case);
        }
    }

    #[test]
    fn targets_are_read_as_they_are_written() {
        for target in [Target::AtLeast(1.25), Target::AtMost(0.01), Target::Runs] {
            assert_eq!(Target::parse(&target.to_string()), Some(target));
        }
        assert_eq!(Target::parse(">=x"), None);
        assert_eq!(Target::parse(""), None);
    }

    #[test]
    fn a_target_includes_its_own_value() {
        assert!(Target::AtLeast(1.3).is_held_by(1.3) && !Target::AtLeast(1.3).is_held_by(1.29));
        assert!(Target::AtMost(0.1).is_held_by(0.1) && !Target::AtMost(0.1).is_held_by(0.11));
    }

    #[test]
    fn metrics_are_found_by_their_keys() {
        assert_eq!(Metric::of_key(Metric::Memory.key()), Some(Metric::Memory));
        assert_eq!(Metric::of_key("latency"), None);
    }
}
