//! A finding: a reason why a figure may not mean what its reader thinks.
//!
//! Invariant: a code has one severity and one meaning, both in the table below. How findings are made is not known
//! here: the crate `findings` makes them, studies and reports carry them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;

use fiord_options::Spec;
use fiord_stats::OrderBy;
use serde::{Deserialize, Serialize};

use crate::path;
use crate::table::Cell;

/// How much a finding reduces the value of a figure; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the figure stands.
    Note,
    /// To be read before the figure is quoted.
    Caution,
    /// The figure does not measure what the job specifies.
    Void,
}

impl Severity {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Caution => "caution",
            Severity::Void => "void",
        }
    }
}

/// Declares every code once: its name for programs, its severity, what it means, how to see it without fiord, and what
/// to do about it.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $name:literal, $severity:ident, see $see:literal, fix $fix:literal;)+) => {
        /// What a finding reports, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "&'static str", try_from = "String")]
        pub enum Code {
            $($(#[doc = $doc])+ $code,)+
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$code),+];

            /// The code of this name.
            pub fn from_name(name: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// The name in output for programs; it never changes.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name,)+ }
            }

            /// Whether it is a warning about an option as typed, which is known before there is a plan.
            pub fn is_about_text(self) -> bool {
                matches!(self, Code::Option | Code::KibIs1000 | Code::ValueCut)
            }

            /// Its severity.
            pub fn severity(self) -> Severity {
                match self { $(Code::$code => Severity::$severity,)+ }
            }

            /// What it means, for people: its doc comment in the table.
            pub fn meaning(self) -> String {
                let lines: &[&str] = match self { $(Code::$code => &[$($doc),+],)+ };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }

            /// How to see it without fiord.
            pub fn see(self) -> &'static str {
                match self { $(Code::$code => $see,)+ }
            }

            /// What to do about it.
            pub fn fix(self) -> &'static str {
                match self { $(Code::$code => $fix,)+ }
            }
        }
    };
}

// Stored by its name: a new code may stand anywhere in the table.
impl From<Code> for &'static str {
    fn from(code: Code) -> &'static str {
        code.name()
    }
}

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(name: String) -> Result<Code, String> {
        Code::from_name(&name).ok_or(name)
    }
}

codes! {
    /// An option does not do what its spelling or place suggests, or has no effect; or a command given by an option
    /// failed. `option` is the name of the option.
    Option = "option", Caution,
        see "`fiord --parse-only JOBFILE` prints every such warning with its place.",
        fix "Change the option as the remedy says. `--strict` turns it into an error.";
    /// A unit such as `KiB` stands for powers of 1000 here, as it does in fio with `kb_base=1024`: `4KiB` is 4000 bytes.
    KibIs1000 = "kib-is-1000", Caution,
        see "`bs=` in the line of the job above the report: `4000B` instead of `4096B`.",
        fix "Write `4k`, `1m`, `2g` for powers of 1024; or set `kb_base=1000`, with which `4KiB` is 4096.";
    /// A `;` or `#` within a value of a job file began a comment, so that the value ends before it. Neither quotes nor
    /// a backslash prevent it, as in fio.
    ValueCut = "value-cut", Caution,
        see "`fiord --parse-only --showcmd JOBFILE` prints the values as they were read.",
        fix "Choose a value without these characters; put a blank before a comment.";
    /// Something else uses the target while it is measured: a mounted file system, swap, a device built on it, another
    /// program. Its I/O is in the device's figures, and slows down the run.
    TargetInUse = "target-in-use", Caution,
        see "`findmnt`, `swapon --show`, `lsblk`, and `fuser -v DEVICE`.",
        fix "Unmount it or stop what uses it, or measure when it is idle.";
    /// The target is in memory, with no disk below: the figures are those of memory.
    InMemory = "in-memory", Void,
        see "`fiord devices DIRECTORY` or `findmnt -T DIRECTORY` shows tmpfs, or a zram or ram device.",
        fix "Name a file or directory on a disk.";
    /// The target is on an overlay whose layers cannot be seen from here, as in most containers: no counter shows which
    /// device did the I/O, or whether one did.
    StorageHidden = "storage-hidden", Void,
        see "`fiord devices DIRECTORY` ends at the overlay; `findmnt -T DIRECTORY` names layers that are not there.",
        fix "Name a directory on a volume of its own, or run outside the container.";
    /// The working set fits into the cache of a device below: all I/O to a loop device without direct I/O goes through
    /// the page cache of its backing file. Where the size of a device's cache is not known, there is no finding.
    TooSmall = "too-small", Void,
        see "`losetup --list` shows `DIO` 0; compare `size` with `MemAvailable` in `/proc/meminfo`.",
        fix "`losetup --direct-io=on`, or a size well above the machine's memory.";
    /// The file system was nearly full before the run: less than a tenth was free. Files are then laid out in many pieces, and a
    /// flash device has little room to collect garbage in, so that writes are slower than on an emptier one.
    NearlyFull = "nearly-full", Caution,
        see "`df DIRECTORY`; `filefrag FILE` shows the pieces of a file.",
        fix "Free some space, or measure on an emptier file system, unless this is what you want to know.";
    /// The job writes on a file system that never overwrites in place (btrfs, bcachefs, ZFS): each write goes to a new place and
    /// changes metadata too, so that later sequential reads become random ones, and figures depend on snapshots, compression and
    /// the age of the file system.
    CopyOnWrite = "copy-on-write", Note,
        see "`findmnt -o FSTYPE,OPTIONS -T DIRECTORY`; on btrfs `lsattr FILE` shows `C` where it is off.",
        fix "`chattr +C DIRECTORY` on btrfs before files are made, or a file system that overwrites, unless this is what you use.";
    /// What is written has no place on the disks below before it is written for the first time: a volume of a thin pool (one
    /// that is not LVM's is known to root alone), or a loop device whose file has holes. First writes allocate their place, which later ones do not, and reads of what was never
    /// written reach no disk; the space itself may end before that of the file system does.
    ThinProvisioned = "thin-provisioned", Note,
        see "`lsblk -s DEVICE` shows the pool, and `lvs` or `dmsetup status` how full it is; `losetup -l` the file, and `du FILE` what it takes.",
        fix "Write all of the target before what is measured (`--overwrite=1`, or a job before it), unless first writes are what you use.";
    /// A quota limits what may be written to less than the file system has free: writes beyond it fail with EDQUOT before
    /// the file system is full. The quota of a project is told to root alone. To others its directory shows what the quota leaves
    /// as the size and the free space of the file system, so that they get no finding, and what is too large is refused.
    QuotaBound = "quota-bound", Note,
        see "`quota -s`, `repquota`, or on XFS `xfs_quota -x -c report MOUNTPOINT`; `df DIRECTORY` for a project.",
        fix "Measure within the quota, as its user does, or have it raised.";
    /// A job reads data that fits into memory through the page cache, more than once or after writing it, and the
    /// kernel does not count how much of it came from a device.
    CachedIo = "cached-io", Caution,
        see "Compare `size` with `MemAvailable` in `/proc/meminfo`.",
        fix "`direct=1`, or a size well above the machine's memory.";
    /// The engine is synchronous: it has one I/O in flight, whatever `iodepth` says.
    SyncEngineDepth = "sync-engine-depth", Caution,
        see "The line `IO depths` of the report has everything at depth 1.",
        fix "Use `ioengine=io_uring` or `ioengine=libaio`, or `numjobs` for several I/Os at a time.";
    /// libaio submits buffered I/O synchronously: each submission waits for its I/O, so that `iodepth` is not reached.
    BufferedAsync = "buffered-async", Caution,
        see "`slat` is about as long as the I/O itself, and `clat` is nearly nothing.",
        fix "`direct=1`, or `ioengine=io_uring`, which submits buffered I/O in the background.";
    /// The job has a rate and issues no I/O while it waits for another: the latency from the issue (`slat`, `clat`,
    /// `lat`) hides the delay of I/Os that are due meanwhile.
    ClosedLoopRate = "closed-loop-rate", Note,
        see "`max` of `clat` is much longer than the time between two I/Os of the rate.",
        fix "Read the response latency, after the report.";
    /// The job has a `runtime` without `time_based`: it ends as soon as it has transferred its `size`, which may be before.
    StopsEarly = "stops-early", Note,
        see "`runtime` and `size` of the job; `run=` of the report is less than `runtime` if it did.",
        fix "`time_based=1`.";
    /// The name of the job suggests another access pattern, block size, queue depth or kind of I/O than its `rw`, `bs`,
    /// `iodepth` and `direct`.
    NameContradicts = "name-contradicts", Caution,
        see "Compare the names of the sections with their `rw`, `bs`, `iodepth` and `direct`.",
        fix "Correct the option, or rename the job.";
    /// Several jobs read the same blocks in the same order, so that all but the first are served by a cache; or they write
    /// them, so that the rate of one place is counted several times.
    OverlappingSequential = "overlapping-sequential", Caution,
        see "The sum of the jobs' bytes is several times what `iostat` shows for the device.",
        fix "Give each job its own range, with `offset_increment`, or its own file.";
    /// Several jobs write the same range of one file or device at random, in an undefined order.
    ConcurrentWriters = "concurrent-writers", Note,
        see "`numjobs` is above 1, and there is no `offset_increment`; or several jobs have the same `filename`.",
        fix "If the contents matter, give each job its own range, with `offset_increment`, or its own file.";
    /// Parts of the file were never written: it has holes, or blocks that were only allocated (`fallocate`). Reading them
    /// returns zeros and does not reach the disk.
    Unwritten = "unwritten", Caution,
        see "`du FILE` is less than `du --apparent-size FILE`; or `filefrag -v FILE` names extents that are `unwritten`.",
        fix "Write all of the file before it is read.";
    /// Direct writes are not multiples of the device's physical block: the device reads each such block, changes part
    /// of it, and writes it back.
    Misaligned = "misaligned", Caution,
        see "Compare `bs` and `offset` with `/sys/block/DISK/queue/physical_block_size`.",
        fix "Use multiples of the physical block.";
    /// The buffers are zeros or repeat, and the target compresses or deduplicates: it stores less than is written.
    Compressible = "compressible", Caution,
        see "`zramctl`, `compsize FILE`, or `zfs get compressratio`.",
        fix "`refill_buffers=1`, without `zero_buffers`, `buffer_pattern` or `buffer_compress_percentage`.";
    /// Writes completed when they were in the device's volatile cache, and the job did not flush it.
    VolatileCache = "volatile-cache", Note,
        see "`/sys/block/DISK/queue/write_cache` contains `write back`.",
        fix "`end_fsync=1`, `fdatasync=N` or `sync=1` if the writes must survive a power failure.";
    /// The job flushes what it writes, and the file system is mounted to ignore that: an overlay with `volatile`, or a
    /// file system with `nobarrier`. The figures are those of writes that a power failure loses.
    SyncIgnored = "sync-ignored", Void,
        see "`findmnt -o OPTIONS -T DIRECTORY` shows `volatile`, `nobarrier` or `barrier=0`.",
        fix "Mount it without that option, or name a directory elsewhere.";
    /// The host limits what the job could do: a control group limits I/O to the device, or processor time to less than
    /// the jobs could use; the device's queue holds fewer direct I/Os than the jobs may have in flight, and was filled, or
    /// its scheduler is bfq; processors may not run as fast as they can, or were slowed down during the run. A limit that makes a job fail
    /// (locked memory, io_uring forbidden) is reported as the job's error, and not as a finding.
    HostLimits = "host-limits", Caution,
        see "`io.max` and `cpu.max` in the control group (`/proc/self/cgroup`), or `blkio.throttle.*` and \
             `cpu.cfs_quota_us` in version 1; `nr_requests` and `scheduler` in `/sys/block/DISK/queue`; `cpupower \
             frequency-info`.",
        fix "Raise the limit, or run outside the group, if the disk and not the limit is to be measured.";
    /// A log with a line for each I/O is written to a device that the job measures: its writes are in the device's
    /// figures, and slow the job's own I/O.
    LogsOnTarget = "logs-on-target", Caution,
        see "`findmnt -T` names the same device for the directory of the log and for the target.",
        fix "Write the log to another disk, or average it: `log_avg_msec=1000`.";
    /// The job ended before its ramp was over, so that its figures are those of the ramp, which should have been left
    /// out.
    EndedInRamp = "ended-in-ramp", Void,
        see "The run is shorter than `ramp_time`, or moves less than `ramp_size`.",
        fix "A shorter ramp, or a longer run.";
    /// The job ended together with its ramp, and measured nothing.
    NothingMeasured = "nothing-measured", Void,
        see "All figures are 0.",
        fix "A shorter ramp, or a longer run.";
    /// A run of a study was ended by a signal (Ctrl-C) before its time was over: its figures are those of a part of the run,
    /// and nothing is concluded from them.
    Interrupted = "interrupted", Void,
        see "The last line on standard error names the signal; the exit status is 128 plus its number.",
        fix "Run the study again; a shorter `--time` makes all of its runs shorter.";
    /// A large part of the bytes read did not come from a device: they were in the page cache, or had never been
    /// written.
    CacheServed = "cache-served", Void,
        see "`iostat` shows fewer bytes than the report; so does `read_bytes` of `/proc/PID/io`.",
        fix "`direct=1`, or a size well above the machine's memory; write all of the file first.";
    /// Direct I/O was not direct: the page cache had pages of the file that only buffered I/O leaves there; or, where no
    /// device is seen (FUSE), hardly any of the bytes came from a disk or a network, because what serves the file system has
    /// a cache. File systems do so without an error: btrfs for files with checksums (Linux 6.15 and newer) or compression, ext4
    /// with `data=journal`, ZFS before 2.3, servers of FUSE, and overlays on these.
    DirectNotHonoured = "direct-not-honoured", Void,
        see "`fincore FILE`, or `cachestat`, during the run; `iostat` shows fewer bytes than the report.",
        fix "On btrfs `chattr +C` on an empty file or its directory; otherwise another file system, or the device below.";
    /// cuFile moved bytes between files and memory of a GPU through the memory of this machine (compatibility mode), by its
    /// own account: it says that nothing can be reached directly here, or its statistics count such I/Os, where it keeps
    /// them (`cufile_stats` 3). Without these, a part of the I/Os and `force_compat_mode` are not found.
    GdsCompat = "gds-compat", Caution,
        see "`gdscheck -p`; with `cufile_stats` 3 in `/etc/cufile.json`, `gds_stats -p PID -l 3`.",
        fix "Load nvidia-fs, or use storage that `gdscheck -p` calls supported. With `CUFILE_ALLOW_COMPAT_MODE=false` such \
             I/O fails instead.";
    /// A large part of the bytes written had not reached a device at the end of the run: they were in the page cache,
    /// or overwritten there.
    NotYetWritten = "not-yet-written", Void,
        see "`Dirty` in `/proc/meminfo`, and `iostat`, which shows writes after the run.",
        fix "`direct=1`, or `end_fsync=1` and a size well above the machine's memory.";
    /// The device did I/O that did not come from this run. The figures are lower than those of an idle device.
    ForeignIo = "foreign-io", Caution,
        see "`pidstat -d 1`, or `iotop`, beside the run.",
        fix "Stop the other programs, and repeat the run.";
    /// Other programs transferred at least half as much as this run to or from the device. The figures are those of a
    /// shared device.
    DiskShared = "disk-shared", Void,
        see "`pidstat -d 1`, or `iotop`, beside the run.",
        fix "Stop the other programs, and repeat the run.";
    /// Other programs waited for I/O while the run is on storage of which no device is seen (an overlay whose layers are
    /// hidden, FUSE): they may use the same disk. Only the time is counted during which nothing in the run's own control
    /// group waited.
    IoPressure = "io-pressure", Caution,
        see "`some` in `/proc/pressure/io`, against `io.pressure` of the run's control group.",
        fix "Stop the other programs, or measure where the device can be seen.";
    /// Workers used a whole processor each: the figures are limited by the host, not by the device.
    CpuBound = "cpu-bound", Caution,
        see "`top -H`: the threads of the jobs are at 100 %.",
        fix "More jobs, larger blocks, or an engine with a lower cost per I/O.";
    /// Other programs kept all processors busy during a part of the run. Meanwhile workers waited for a processor as
    /// well as for the device, which may explain the highest latencies.
    ForeignCpu = "foreign-cpu", Caution,
        see "`vmstat 1` beside the run; `/proc/pressure/cpu`.",
        fix "Stop the other programs, and repeat the run.";
    /// Other programs kept all processors busy. Workers waited for a processor as well as for the device.
    CpuContended = "cpu-contended", Void,
        see "`vmstat 1`: no idle time, and more running threads than processors; `/proc/pressure/cpu`.",
        fix "Stop the other programs, and repeat the run.";
    /// The control group's limit on processor time stopped the workers.
    CpuThrottled = "cpu-throttled", Void,
        see "`throttled_usec` or `throttled_time` in the group's `cpu.stat` grows.",
        fix "Raise `cpu.max`, or run outside the group.";
    /// The hypervisor gave processor time to other virtual machines.
    StolenCpu = "stolen-cpu", Caution,
        see "`st` in `top` or `vmstat 1`.",
        fix "Repeat the run when the host is idle, or on a dedicated machine.";
    /// Tasks waited for memory, because there was little of it (of the control group, or of the machine): the page cache was
    /// reclaimed while it was used.
    MemoryPressure = "memory-pressure", Caution,
        see "`some` in `/proc/pressure/memory`, or in `memory.pressure` of the control group.",
        fix "`direct=1`, stop what needs the memory, or raise the limit of the control group.";
    /// The page cache held more unwritten data than the kernel allows, so that it slowed down those who write: before,
    /// they ran at the speed of memory.
    WritersSlowed = "writers-slowed", Caution,
        see "`Dirty` and `Writeback` in `/proc/meminfo`, against `nr_dirty_threshold` in `/proc/vmstat` (in pages).",
        fix "`direct=1`, or leave out the first part with `ramp_time`.";
    /// Processors slowed down because they were too hot, or the kernel slowed them down in order to cool them.
    CpuOverheated = "cpu-overheated", Caution,
        see "`/sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count` grows; `cur_state` of the processors' devices \
             in `/sys/class/thermal` is above 0.",
        fix "Cool the machine, and repeat the run.";
    /// A disk slowed down because of its temperature, or reports that it is too hot: an NVMe disk by its health log, a
    /// SCSI disk by its log pages.
    DeviceOverheated = "device-overheated", Caution,
        see "`nvme smart-log DISK`: `Thermal Management T1 Trans Count` grows, or bit 1 of `critical_warning`; `sg_logs -a \
             DISK`: the current temperature is above the reference temperature.",
        fix "Cool the disk, and repeat the run.";
    /// A disk reported uncorrectable errors of its medium during the run: its health log counts them, or the kernel answered
    /// an I/O with ENODATA.
    MediaErrors = "media-errors", Caution,
        see "`nvme smart-log DISK`: `media_errors` grows; `smartctl -a DISK`: attribute 187 or 197 of an ATA disk, the \
             uncorrected errors of a SCSI disk; the kernel's log.",
        fix "Replace the disk, and repeat the run.";
    /// A disk warns that it has failed or is about to fail, or has used all of its rated life.
    DeviceWorn = "device-worn", Caution,
        see "`nvme smart-log DISK`: `critical_warning` and `percentage_used`; `smartctl -H DISK` of an ATA or SCSI disk.",
        fix "Measure a disk in good condition.";
    /// On average, fewer I/Os and syncs were in flight than `iodepth` (their rate times their mean latency).
    DepthNotReached = "depth-not-reached", Caution,
        see "`aqu-sz` of `iostat -x`.",
        fix "Look for what delays submission: buffered I/O, a small `nr_requests`, a busy processor.";
    /// The PCIe link of an NVMe disk has fewer lanes or a lower rate than the disk itself could do, or that of a GPU fewer
    /// lanes than the GPU: the slot, the firmware or a bad contact limits it, and possibly the figures.
    PcieLink = "pcie-link", Note,
        see "`LnkSta` beside `LnkCap` in `lspci -vv`; `current_link_speed` and `max_link_speed` in the PCI device's directory \
             in `/sys`.",
        fix "A slot of that rate and width; its setting in the firmware; seating the disk again.";
    /// The disk and a GPU that its bytes go to are on different NUMA nodes, or not behind one PCIe switch: bytes between
    /// them pass processors.
    GpuFar = "gpu-far", Note,
        see "`nvidia-smi topo -m`; `lspci -tv`.",
        fix "A disk near the GPU, or a GPU near the disk (`gpu_dev_ids`).";
    /// Trims of a job with `iodepth` above 1 were made one at a time: the engine, the kernel or the target does not queue
    /// them. The job waited for each, its other I/Os too.
    TrimsUnqueued = "trims-unqueued", Caution,
        see "`strace -f -c`: a call of `ioctl` (`BLKDISCARD`) or `fallocate` for each trim.",
        fix "Block devices: `ioengine=io_uring` on Linux 6.12 or newer, without `hipri`; several jobs trim beside each \
             other anywhere.";
    /// The job ended before its `runtime`, because it had transferred all of its `size`.
    StoppedBySize = "stopped-by-size", Note,
        see "`run=` of the report is less than `runtime`.",
        fix "`time_based=1`.";
    /// The highest percentiles are based on so few I/Os that another run would have different ones.
    FewSamples = "few-samples", Note,
        see "`issued rwts` in the report, multiplied by one minus the percentile.",
        fix "A longer run, or fewer percentiles.";
    /// Throughput was not steady, as SNIA's Performance Test Specification defines it: over five equal parts of the
    /// run, a slope of more than 10 % of the mean, or an excursion of more than 20 %. If it settled, the part from then to
    /// the end is named with its throughput. A report that was read back is judged by its samples of IOPS or bandwidth: a
    /// standard deviation of at least 30 % of their mean.
    NotSteady = "not-steady", Caution,
        see "`write_bw_log`, drawn over time; `steady_part` in JSON, with the rates and latencies of that part.",
        fix "`ramp_time` until throughput is steady, and a longer run.";
    /// For a second or more no I/O completed, while the run went on waiting for it.
    Stalled = "stalled", Caution,
        see "`write_iops_log`, or the largest latency.",
        fix "Look in the kernel's log at that time; flushes, garbage collection and resets do this.";
    /// The run itself stood still for a second or more: a signal stopped it (SIGSTOP, Ctrl-Z, a debugger), its control group
    /// or container was frozen, its virtual machine paused, or the machine slept. That time is in its figures.
    Suspended = "suspended", Void,
        see "A gap in `write_iops_log`; `cgroup.events` of a frozen control group; `journalctl -k` for a sleep.",
        fix "Repeat the run.";
    /// Throughput hardly varied, at a number that limits have, while the fastest I/O shows that the device can do more: as a
    /// limit of a cloud's volume, of an instance or of a hypervisor makes it.
    FlatAtLimit = "flat-at-limit", Note,
        see "`write_iops_log` and `write_bw_log` are a straight line; it is the other one with another block size.",
        fix "Compare with the limits of the volume and of the instance.";
    /// Reads and writes were not in the proportion that `rwmixread` asks for: a rate or think time of one direction held the
    /// other back, for example.
    MixNotReached = "mix-not-reached", Caution,
        see "`total_ios` of reads and of writes.",
        fix "Give both directions rates in the proportion of the mix, or each direction a job of its own.";
    /// The latency of writes is that of writes alone, and the sync that makes them durable takes longer: it has a latency of
    /// its own (`fsync`, `fdatasync`), or none (`end_fsync`, with which buffered writes are those of memory).
    SyncExcluded = "sync-excluded", Note,
        see "`sync` of the job, below its latencies, against `clat`.",
        fix "Read the latency of the syncs as well, or use `sync=1`, with which a write includes its sync.";
    /// One I/O took a second or longer, and at least ten times the mean of its job: it waited for something that the mean
    /// and the percentiles do not show.
    SlowIo = "slow-io", Caution,
        see "`max=` of `clat` against `avg=`.",
        fix "Look in the kernel's log; flushes, garbage collection, resets and other programs do this. Repeat the run.";
    /// Jobs or hosts that are reported as one did not run at the same time, or only for a part of it: the sum of their
    /// rates was not reached at any time.
    NoOverlap = "no-overlap", Caution,
        see "`job_start` and `elapsed` of the jobs without `group_reporting`; of hosts, `job_start` by synchronised clocks.",
        fix "`time_based=1` with the same `runtime` for all, files laid out before, or report them separately.";
    /// All hosts together ran for less than half of the shortest run: a sum over them is not of one load.
    NoCommonWindow = "no-common-window", Void,
        see "`job_start` and `elapsed` of each host, by synchronised clocks.",
        fix "Start all at once (`fiord JOBFILE --hosts=…`), with `time_based=1` and the same `runtime` for all.";
    /// Hosts that were asked for never started, and are in no figure.
    HostMissing = "host-missing", Void,
        see "Reach each host by the same command that fiord uses (`ssh HOST true`).",
        fix "Make them reachable, leave them out of the list, or allow it: `--allow-missing=N`.";
    /// A host started and its report never came: its I/O was part of the load, and is in no figure.
    HostLost = "host-lost", Void,
        see "The host's row in the table; its kernel's log, and whether it can be reached.",
        fix "Fetch what it kept, or run again.";
    /// Hosts that were asked for are in no figure, and that many were allowed to be missing.
    FewerHosts = "fewer-hosts", Caution,
        see "The rows of the table that are not `complete`.",
        fix "Quote the figures with the number of hosts they are of.";
    /// Hosts started further apart than is accepted: 10 ms, or a thousandth of the run.
    StartSkew = "start-skew", Caution,
        see "The column `start` of the table of hosts.",
        fix "Look for hosts whose processors are busy, or a slow way to them; a longer run makes it matter less.";
    /// How the clocks of hosts belong together is known worse than the starts may be apart.
    ClockUnsure = "clock-unsure", Caution,
        see "`clocks` in the JSON of the run: the error and the round trips of each host.",
        fix "A quicker way to the hosts, or a longer run.";
    /// Several hosts used one disk or one export: what it can do is shared among them, and it is counted once for each.
    SharedTarget = "shared-target", Caution,
        see "The WWID or serial number of the disks (`lsblk -o NAME,WWN,SERIAL`), or the source of the mount (`findmnt -T`).",
        fix "Give each host a target of its own, or say that it is meant: `--shared`.";
    /// A host is far slower than the others: more than 5 % from the median, and beyond what their spread explains.
    Straggler = "straggler", Caution,
        see "The first rows of the table of hosts, which has the worst first.",
        fix "Compare its disk, kernel and load with those of the others; run on it alone.";
    /// The hosts differ in kernel, processor, disks or version of fiord.
    MixedHosts = "mixed-hosts", Note,
        see "`uname -r`, `lscpu`, `lsblk -o MODEL` on each; or `fiord hosts LIST`.",
        fix "Group them by what differs, or compare like with like.";
    /// A server that asks for no secret ran the jobs: whoever reaches it may have run others beside them.
    OpenServer = "open-server", Caution,
        see "The log of the server, which has a line for each client.",
        fix "Give it a secret (`fiord agent --new-secret=FILE`), or have it listen at `sock:PATH`.";
    /// The job has a rate, and its latency from the issue hides waits: I/Os that were due during a stall were issued
    /// after it. Their latency from the start that the rate intended, the response latency, is at least twice as long.
    OmittedWaits = "omitted-waits", Caution,
        see "The section `Response latency` after the report, against `clat percentiles`.",
        fix "Quote the response latency, or use a deeper queue, so that an I/O does not wait for others.";
    /// I/Os of an open loop (`rate_arrivals=open`) arrived and were never issued: the queue was full, or the job ended.
    /// No latency includes them; with them, latencies would be longer.
    ArrivalsLost = "arrivals-lost", Caution,
        see "the section `Counts` after the report, or `counts` in JSON.",
        fix "A lower rate, or a deeper queue.";
    /// fiord's own work is at least 5 % of the mean latency of an I/O, or of the time per I/O of the job's thread:
    /// the figures are partly those of the tool. Its cost is calibrated on this machine (`fiord calibrate`).
    ToolOverhead = "tool-overhead", Caution,
        see "Run the same job with `ioengine=null`: its I/Os per second are those of the tool alone.",
        fix "Larger blocks, cheaper verification, averaged logs; compare such figures only with those of the same tool.";
    /// I/Os failed and were ignored: the figures are those of the other I/Os.
    ErrorContinued = "error-continued", Caution,
        see "`total_err` of the report, and the kernel's log.",
        fix "Find out why they failed before using the figures.";
    /// The clock of a job counts in steps of at least 5 % of the mean latency: the generic timer of ARM processors in 1 to 42 ns,
    /// `clocksource=gettimeofday` in microseconds. Means are right; a percentile, minimum or maximum may be wrong by a step.
    ClockSteps = "clock-steps", Caution,
        see "`fiord --cpuclock-test` says the steps of the processor's counter.",
        fix "`clocksource=cpu` instead of microseconds; of such short latencies quote the mean.";
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// The run as a whole.
    Run,
    /// A file, directory or device that is measured, by its path; not a `PathBuf`, which is stored only if it is UTF-8.
    Target(OsString),
    /// A job, by its name.
    Job(String),
    /// A place in a job file or on the command line: `job.fio:3:1`.
    Place(String),
    /// A block device, by the kernel's name.
    Device(String),
    /// The machine: its processors and its memory.
    Machine,
    /// A host of several, by its name.
    Host(String),
}

impl fmt::Display for Subject {
    /// `/dev/sda`, `job a`, `job "4k randread"`: a name of several words would otherwise be read as part of the sentence.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Run => out.write_str("this run"),
            Subject::Target(target) => out.write_str(&path::shown(target)),
            Subject::Job(name) if name.contains(' ') => write!(out, "job \"{}\"", path::shown(name)),
            Subject::Job(name) => write!(out, "job {}", path::shown(name)),
            Subject::Place(place) => out.write_str(place),
            Subject::Device(name) => write!(out, "device {name}"),
            Subject::Machine => out.write_str("this machine"),
            Subject::Host(name) => write!(out, "host {}", path::shown(name)),
        }
    }
}

/// One figure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name for programs: lower case, unit last.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: Cell,
}

/// Something that a reader of the figures must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its code, for programs.
    pub code: Code,
    /// What it is about.
    pub subject: Subject,
    /// The option that the remedy would change; empty if there is none.
    pub option: Cow<'static, str>,
    /// The figures it is based on.
    pub figures: Vec<Figure>,
    /// What is wrong, with these figures: one sentence without a full stop.
    pub sentence: String,
    /// What to do about it: one sentence without a full stop. Empty if the sentence says it.
    pub remedy: Cow<'static, str>,
}

impl Finding {
    /// A finding without figures, about no option.
    pub fn new(
        code: Code,
        subject: Subject,
        sentence: impl Into<String>,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Finding {
        let (sentence, remedy) = (sentence.into(), remedy.into());
        Finding { code, subject, option: Cow::Borrowed(""), figures: Vec::new(), sentence, remedy }
    }

    /// With the option that the remedy would change.
    #[must_use]
    pub fn of_option(mut self, option: &'static Spec) -> Finding {
        self.option = Cow::Borrowed(option.name);
        self
    }

    /// With the figures it is based on.
    #[must_use]
    pub fn based_on(mut self, figures: impl IntoIterator<Item = (&'static str, Cell)>) -> Finding {
        let figure = |(name, value)| Figure { name: Cow::Borrowed(name), value };
        self.figures.extend(figures.into_iter().map(figure));
        self
    }

    /// Its severity.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// One line: how severe, its code, or the option it is about; its subject and its sentence. Line feeds of the
    /// sentence are kept.
    pub fn line(&self) -> String {
        let Finding { code, subject, option, sentence, .. } = self;
        let severity = self.severity().name();
        let code = match (*code, option.as_ref()) {
            (Code::Option, option) if !option.is_empty() => option,
            _ => code.name(),
        };
        format!("{severity}: {subject}: {code}: {sentence}")
    }

    /// As text for people: its line, and below it the remedy, indented by this many columns. Without a line feed at the
    /// end.
    pub fn text(&self, indent: usize) -> String {
        let below = format!("\n{:indent$}", "");
        let remedy = self.remedy.as_ref();
        let all = if remedy.is_empty() { self.line() } else { format!("{}\n{remedy}", self.line()) };
        all.replace('\n', &below)
    }
}

/// The shares of the shortest run below which hosts that ran together are cautioned of, and below which their sum is void.
const TOGETHER_MIN: f64 = 0.9;
const TOGETHER_VOID: f64 = 0.5;

/// What there is to say of hosts that ran together for this part of the shortest run of one, both in seconds.
pub fn of_hosts_together(hosts: usize, together_s: f64, shortest_s: f64) -> Vec<Finding> {
    let share = if shortest_s > 0.0 { together_s / shortest_s } else { 0.0 };
    let figures = || {
        [
            ("together_s", Cell::Number(together_s, 3)),
            ("shortest_s", Cell::Number(shortest_s, 3)),
            ("together_percent", Cell::Number(share * 100.0, 1)),
        ]
    };
    let mut found = Vec::new();
    if hosts > 1 && share < TOGETHER_MIN {
        let sentence = format!(
            "the {hosts} hosts ran together for {together_s:.1} s of the shortest run, which took {shortest_s:.1} s ({:.0} %)",
            share * 100.0
        );
        let remedy = "time_based=1 with the same runtime for all, and files laid out before";
        found.push(Finding::new(Code::NoOverlap, Subject::Run, sentence, remedy).based_on(figures()));
    }
    if hosts > 1 && share < TOGETHER_VOID {
        let sentence = "the sum over all hosts is of loads that were mostly not there at the same time";
        let remedy = "start all at once, or read the figures of each host";
        found.push(Finding::new(Code::NoCommonWindow, Subject::Run, sentence, remedy).based_on(figures()));
    }
    found
}

/// Whether one of them voids the figures.
pub fn any_void(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity() == Severity::Void)
}

/// The worst first; of equal severity in the order in which they were found.
pub fn ordered(findings: &mut [Finding]) {
    findings.order_by_key(|finding| std::cmp::Reverse(finding.severity()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_options::job;

    #[test]
    fn every_code_has_its_own_name_and_texts() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert!(Code::ALL[..index].iter().all(|other| other.name() != code.name()), "{code:?}");
            assert!(
                code.name()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{code:?}"
            );
            for text in [&code.meaning(), code.see(), code.fix()] {
                assert!(text.ends_with('.') && !text.contains("  "), "{text}");
            }
            assert_eq!(Code::from_name(code.name()), Some(*code));
        }
    }

    #[test]
    fn a_finding_is_a_line_and_its_remedy_below_it() {
        let option =
            Finding::new(Code::Option, Subject::Place("a.fio:3:9".into()), "stays at 1\nreally", "raise it");
        let option = option.of_option(job::Queue::iodepth);
        assert_eq!(option.text(4), "caution: a.fio:3:9: iodepth: stays at 1\n    really\n    raise it");
        let ramp = Finding::new(Code::EndedInRamp, Subject::Job("a".into()), "ended", "")
            .of_option(job::Time::ramp_time);
        assert_eq!(ramp.text(4), "void: job a: ended-in-ramp: ended");
        let mut both = [option.clone(), ramp.clone(), option.clone()];
        ordered(&mut both);
        assert_eq!(both, [ramp, option.clone(), option]);
    }

    #[test]
    fn the_worst_severity_is_the_greatest() {
        let worst = [Severity::Caution, Severity::Void, Severity::Note].into_iter().max();
        assert_eq!(worst.map(Severity::name), Some("void"));
    }

    #[test]
    fn a_subject_does_not_steer_a_terminal() {
        assert_eq!(Subject::Target("/a\x1b[2J".into()).to_string(), "/a\\u{1b}[2J");
        assert_eq!(Subject::Job("a".into()).to_string(), "job a");
        assert_eq!(Subject::Job("without a rate".into()).to_string(), "job \"without a rate\"");
    }
}
