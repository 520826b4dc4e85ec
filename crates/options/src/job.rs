//! Job options: their declarations, and the resolving of a section into typed values.
//!
//! Invariant: one declaration per option of fio 3.42; what is not built yet is declared `pending`, never left out.

use crate::engine::{self, IoUring, Libaio, Mmap, Pvsync2};
use crate::place::Problem;
use crate::resolve::{Given, resolve_settings};
use crate::section::{Section, Setting};
use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

/// Largest value of a 32-bit count; shown as "or more".
const U32: i128 = u32::MAX as i128;
/// Largest value of a 64-bit size; shown as "or more".
const U64: i128 = u64::MAX as i128;

options! {
    /// The options of one job, resolved: what the section says, what it inherits, and defaults for the rest.
    pub struct JobOptions, scope Scope::Job, with {
        io_uring: IoUring,
        libaio: Libaio,
        pvsync2: Pvsync2,
        mmap: Mmap,
    };

    "Job" {
        /// Name of the job.
        ///
        /// In a section it replaces the section's name in the report and the logs of the first worker; files, and all
        /// other workers, go by the section. On the command line it starts a new job.
        name: Text;
        /// Free text about the job.
        ///
        /// Printed in reports and otherwise not looked at.
        description: Text;
        /// How many times the job runs.
        ///
        /// Each time over, the files are gone through again. 0 is the same as 1.
        ///
        /// Example: `loops=3`.
        loops: u32 = 1, in 0..=U32;
        /// How many workers run this job.
        ///
        /// Each is a thread with files of its own (unless `filename` says otherwise) and a report of its own (unless
        /// `group_reporting` is set).
        ///
        /// Example: `numjobs=4` with `size=1g` works on four files of 1 GiB each.
        numjobs: u32 = 1, in 0..=U32;
        /// A test written in fio itself, instead of the job's options.
        #[pending("the built-in profiles (tiobench, act) are not there")]
        profile: Text;
    }

    "Units" {
        /// What `k`, `m`, `g`, `t` and `p` mean, and the units of reports.
        ///
        /// With 1024, `4k` and `4ki` are 4096 and `4KiB` is 4000: fio's inversion of the standards, kept for old job
        /// files. With 1000, `4k` is 4000 and `4KiB` is 4096. In a job file it holds for the whole section; on the
        /// command line, for what follows.
        kb_base: KbBase = 1024;
        /// Whether bandwidth is reported in bytes or bits.
        unit_base: UnitBase = 0;
    }

    "Time" {
        /// Stop the job after this time.
        ///
        /// The job ends earlier when its `size` is done, unless `time_based` is set. 0 sets no limit.
        ///
        /// Example: `runtime=30` and `runtime=30s` are half a minute, `runtime=5m` five minutes.
        runtime | timeout: Seconds = 0;
        /// Go on until `runtime` is over, starting again when the files are done.
        ///
        /// Example: `size=1g`, `runtime=60` and `time_based` go over 1 GiB again and again for a minute.
        time_based: Flag = 0;
        /// Wait this long before the job starts.
        ///
        /// Of a range (`5-10`), each worker chooses a time at random.
        ///
        /// Example: `startdelay=5` waits five seconds.
        startdelay: StartDelay = 0;
        /// Run this long before anything is counted.
        ///
        /// The time comes on top of `runtime`. Caches, write buffers and rates settle in it.
        ///
        /// Example: `ramp_time=10` with `runtime=60` takes 70 seconds, of which the last 60 are counted.
        ramp_time: Seconds = 0;
        /// Transfer this much before anything is counted.
        ///
        /// Bytes, percent or zones. Example: `ramp_size=1g`.
        ramp_size: Size, in 1..=U64;
        /// Where time is read from.
        ///
        /// Left out, the processor's counter is used when it is steady and synchronised, and the system's monotonic
        /// clock when it is not.
        ///
        /// Example: `clocksource=clock_gettime`.
        clocksource: ClockSource;
        /// Take as few timestamps as the job can do with.
        ///
        /// Sets `disable_clat`, `disable_slat` and `disable_lat`: latencies are then missing from the report. Bandwidth
        /// is sampled all the same.
        gtod_reduce: bool = 0, in 0..=1;
        /// Dedicate a CPU to reading the clock for all jobs.
        #[pending("no thread keeps the time for others; reading the clock costs nanoseconds here")]
        gtod_cpu: u32, in 0..=U32;
        /// Clock that `job_start` of the JSON report is read from.
        #[pending("job_start is read from the real-time clock only")]
        job_start_clock_id: u32 = 0, in 0..=U32;
    }

    "Files and devices" {
        /// Directory that generated files go into.
        ///
        /// Several, separated by colons, are shared out among the workers of the job. A colon within a name is
        /// written `\:`.
        ///
        /// Example: `directory=/mnt/a:/mnt/b`.
        directory: Text;
        /// Files or devices to work on.
        ///
        /// Several are separated by colons; a colon within a name is written `\:`. Workers and jobs that name the
        /// same file share it. `-` is standard input or output.
        ///
        /// Example: `filename=/dev/nvme0n1`, or two files: `filename=a.dat:b.dat`.
        filename: Text;
        /// How generated files are named.
        ///
        /// `$jobname`, `$jobnum`, `$filenum` and `$clientuid` stand for the worker's name and number, the file's
        /// number and the client's address. Directories in the name are created.
        ///
        /// Example: `filename_format=data.$jobnum.$filenum` makes `data.0.0`, `data.0.1` and so on.
        filename_format: Text = "$jobname.$jobnum.$filenum";
        /// Prefix generated files with the client's address when a job is run for another host.
        ///
        /// Keeps clients from working on each other's files.
        #[ignored("jobs run on this host only, and their files have no prefix")]
        unique_filename: bool = 1, in 0..=1;
        /// Work on all files under this directory.
        ///
        /// Example: `opendir=/srv/data`.
        opendir: Text;
        /// Lock files around each I/O.
        #[pending("I/O is not serialised by locks on files")]
        lockfile: LockFile = "none";
        /// What the files are said to be.
        ///
        /// What is there tells; another value than `none` has to agree with it, and refuses the job otherwise.
        filetype: FileType = "none";
        /// Number of files of each worker.
        ///
        /// `size` is divided between them unless `filesize` is given. Ignored when `filename` is given.
        ///
        /// Example: `nrfiles=10` with `size=1g` makes ten files of a tenth of 1 GiB each.
        nrfiles | nr_files: u32 = 1, in 0..=U32;
        /// Number of files open at a time; all, when left out.
        ///
        /// Example: `nrfiles=1000` with `openfiles=100`.
        openfiles: u32, in 0..=U32;
        /// Which file is served next.
        ///
        /// The number after `random`, `roundrobin` and `sequential` is how many I/Os one file gets; after the skewed
        /// distributions, their parameter and then the place of the favourite file, 0 to 1.
        ///
        /// Example: `file_service_type=random:8`.
        file_service_type: FileService = "roundrobin";
        /// Switch the device to this I/O scheduler before the run.
        ioscheduler: Text;
        /// Lay out files one job after the other.
        ///
        /// Avoids files that are interleaved on the disk.
        create_serialize: bool = 1, in 0..=1;
        /// Sync files after laying them out.
        create_fsync: bool = 1, in 0..=1;
        /// Create a file when it is first opened for I/O, instead of before the run.
        create_on_open: bool = 0, in 0..=1;
        /// Lay out the files and do no I/O.
        ///
        /// Example: `create_only=1` in one run prepares the files of the next.
        create_only: bool = 0, in 0..=1;
        /// Whether missing files may be created.
        ///
        /// With 0, a file that is missing is an error: protection against a mistyped device name.
        allow_file_create: bool = 1, in 0..=1;
        /// Whether a target that somebody uses may be written to.
        ///
        /// Mounted, swap, part of another device, open exclusively, behind a loop device in use. Without it such a job is
        /// refused, and a device is claimed exclusively (`O_EXCL`) while it is written to.
        allow_mounted_write: bool = 0, in 0..=1;
        /// Read the files into the page cache before the run.
        ///
        /// Sets `invalidate` to 0. Only for engines that read through the cache.
        pre_read: bool = 0, in 0..=1;
        /// Remove the job's files when it is done.
        unlink: bool = 0, in 0..=1;
        /// Remove the job's files each time it has gone through them (`loops`).
        unlink_each_loop: bool = 0, in 0..=1;
        /// How files get their space when they are laid out.
        ///
        /// Example: `fallocate=none` for a file system that is slow at it.
        fallocate: Fallocate = "native";
        /// What the kernel is told about the order of access.
        fadvise_hint: FadviseHint = 1;
        /// Write lifetime hint for the job's files.
        write_hint: WriteHint;
        /// Start at the end of each file and extend it.
        file_append: bool = 0, in 0..=1;
        /// Write over data that is there: lay the files out in full before a job that writes.
        overwrite: bool = 0, in 0..=1;
        /// Sync the files when the job ends after writing.
        end_fsync: bool = 0, in 0..=1;
        /// Sync each file's file system when the job ends.
        end_syncfs: bool = 0, in 0..=1;
        /// Sync a file whenever it is closed.
        fsync_on_close: bool = 0, in 0..=1;
    }

    "Zones" {
        /// How zones are treated.
        ///
        /// `strided` works on `zonesize` bytes out of every `zonerange`; `zbd` follows the zones of a zoned device.
        #[pending("neither strided zones nor zoned block devices are supported")]
        zonemode: ZoneMode = "none";
        /// Bytes between the beginnings of two zones.
        #[dormant("zonemode")]
        zonerange: Bytes = 0;
        /// Bytes worked on in one zone before the next.
        #[pending("neither strided zones nor zoned block devices are supported")]
        zonesize: Bytes = 0;
        /// Bytes of a zone that can be written, when less than the zone.
        #[dormant("zonemode")]
        zonecapacity: Bytes = 0;
        /// Bytes skipped after `zonesize` bytes.
        #[dormant("zonemode")]
        zoneskip: Size = 0;
        /// Whether reads may go beyond the write pointer of a zone.
        #[dormant("zonemode")]
        read_beyond_wp: bool = 0, in 0..=1;
        /// Zones that all jobs together may have open for writing.
        #[dormant("zonemode")]
        max_open_zones: u32 = 0, in 0..=4096;
        /// Zones that one worker may have open for writing.
        #[dormant("zonemode")]
        job_max_open_zones: u32 = 0, in 0..=4096;
        /// Whether the device's own limits on open zones are passed over.
        #[dormant("zonemode")]
        ignore_zone_limits: bool = 0, in 0..=1;
        /// Share of written blocks at which zones are reset.
        #[dormant("zonemode")]
        zone_reset_threshold: FloatList, in 0..=1;
        /// How often zones are reset once the threshold is passed.
        #[dormant("zonemode")]
        zone_reset_frequency: FloatList, in 0..=1;
        /// Whether a failed write to a zone is recovered from and the job goes on.
        #[dormant("zonemode")]
        recover_zbd_write_error: bool = 0, in 0..=1;
        /// Whether the remainder at a zone's end is written instead of finishing the zone.
        #[dormant("zonemode")]
        write_zone_remainder: bool = 0, in 0..=1;
    }

    "Kind of I/O" {
        /// Bypass the page cache (O_DIRECT).
        ///
        /// Offsets, sizes and buffers must then suit the device; that is checked before the run.
        ///
        /// Example: `direct=1` with `bs=4k`.
        direct: bool = 0, in 0..=1;
        /// Go through the page cache: the opposite of `direct`.
        buffered: bool = 1, in 0..=1;
        /// Write atomically (implies direct I/O).
        #[pending("atomic writes are not issued")]
        atomic: bool = 0, in 0..=1;
        /// Directions, and whether offsets are sequential or random.
        ///
        /// A number may follow after a colon. For random modes it is the number of I/Os per random offset
        /// (`randread:8`), used as `rw_sequencer` says; for sequential modes it is added to the offset after each I/O
        /// (`write:4k` leaves holes).
        ///
        /// Example: `rw=randread`.
        rw | readwrite: RwMode = "read";
        /// What the number after `rw` does to random offsets.
        rw_sequencer: RwSequencer = "sequential";
        /// Whether directions are reported apart, summed, or both.
        unified_rw_reporting: UnifiedRwReporting = "none";
        /// Use the same random offsets in each run.
        randrepeat | allrandrepeat: bool = 1, in 0..=1;
        /// Seed of the random numbers.
        ///
        /// The same seed gives the same offsets; workers of a job still differ from each other.
        ///
        /// Example: `randseed=1234`.
        randseed: u64 = "0x89";
        /// Where in the file or device to start.
        ///
        /// Bytes, percent of the size (`50%`) or zones (`8z`).
        ///
        /// Example: `offset=1g` leaves the first GiB alone.
        offset | fileoffset: Size = 0;
        /// Round an `offset` given in percent up to a multiple of this; 0 means the smallest block size.
        offset_align: Bytes = 0, in 0..=U64;
        /// Added to `offset` once for each worker before this one.
        ///
        /// Lets the workers of a job share one file without overlap.
        ///
        /// Example: with `numjobs=4`, `size=1g` and `offset_increment=1g` four workers take four GiB of one file,
        /// one each.
        offset_increment: Size = 0;
        /// End after this many I/Os, if the size is not done before. 0 sets no limit.
        ///
        /// Example: `number_ios=1000`.
        number_ios: u64 = 0;
        /// Sync a file after this many writes to it; 0 never does.
        ///
        /// Example: `fsync=1` syncs after every write, `fsync=32` after every 32nd.
        fsync: u32 = 0, in 0..=U32;
        /// Sync a file's data after this many writes to it; 0 never does.
        ///
        /// Example: `fdatasync=1` is what a database does with its log.
        fdatasync: u32 = 0, in 0..=U32;
        /// Make every so manieth write a barrier write; 0 for none.
        #[ignored("no engine has barrier writes, in fio neither; fsync=N and fdatasync=N order writes")]
        write_barrier: u32 = 0, in 0..=U32;
        /// Call sync_file_range(2) after a number of writes.
        ///
        /// `wait_before,write:8` waits for earlier writeback and starts more after every 8 writes.
        sync_file_range: SyncFileRange;
        /// Whether each write waits until it is on the disk.
        ///
        /// Example: `sync=dsync`.
        sync: SyncMode = "none";
        /// Share of reads in a mix, in percent.
        ///
        /// Example: `rw=randrw` with `rwmixread=70` reads seven times for three writes.
        rwmixread: u32 = 50, in 0..=100;
        /// Share of writes in a mix, in percent: the rest of `rwmixread`. The last one given counts.
        rwmixwrite: u32 = 50, in 0..=100;
        /// How random offsets are spread over the file.
        ///
        /// `zipf`, `pareto`, `normal` and the zoned forms make some parts hotter than others.
        #[pending("random offsets are spread uniformly only")]
        random_distribution: Text = "random";
        /// Whether a random distribution strides through sequences of blocks.
        #[dormant("random_distribution")]
        random_sequence_stride: bool = 0, in 0..=1;
        /// Share of I/Os at random offsets, in percent; the others follow their predecessor.
        ///
        /// Example: `rw=randread` with `percentage_random=80`.
        percentage_random: PerDirection<u32> = 100, in 0..=100;
        /// Allow a block to be visited twice before all have been visited.
        ///
        /// By default a random job visits each block exactly once per pass.
        norandommap: Flag = 0;
        /// Go on without the map of visited blocks when there is no memory for it.
        ///
        /// fiord's random order needs no map, so nothing has to be given up.
        softrandommap: bool = 0, in 0..=1;
        /// Generator of random offsets.
        random_generator: RandomGenerator = "tausworthe";
        /// Precondition a flash drive into its random-write steady state in one pass.
        #[pending("the SanDisk preconditioning order is not generated")]
        sprandom: bool = 0, in 0..=1;
        /// Overprovisioning assumed by `sprandom`.
        #[dormant("sprandom")]
        spr_op: FloatList = "0.15";
        /// Regions used by `sprandom`.
        #[dormant("sprandom")]
        spr_num_regions: u32 = 100, in 0..=U32;
        /// Cache of the drive that `sprandom` takes into account.
        #[dormant("sprandom")]
        spr_cs: Bytes = 0;
        /// Ranges in one trim command.
        #[pending("a trim covers one range")]
        num_range: u32 = 1, in 1..=U32;
    }

    "Data placement" {
        /// Use flexible data placement.
        #[pending("data placement needs the NVMe passthrough engine")]
        fdp: bool = 0, in 0..=1;
        /// Data placement interface.
        #[pending("data placement needs the NVMe passthrough engine")]
        dataplacement | data_placement: DataPlacement = "none";
        /// How the next placement identifier is chosen.
        #[dormant("dataplacement")]
        plid_select | fdp_pli_select: PlidSelect = "roundrobin";
        /// Placement identifiers to use.
        #[dormant("dataplacement")]
        plids | fdp_pli: Text;
        /// File that maps offsets to placement identifiers.
        #[dormant("dataplacement")]
        dp_scheme: Text;
    }

    "Block size" {
        /// Block size of an I/O.
        ///
        /// One for all, or one each for reads, writes and trims (`4k,8k,16k`). A value that no comma follows counts
        /// for the directions after it; a part left out keeps the default (`,8k`).
        ///
        /// Example: `bs=4k` is 4096 bytes.
        bs | blocksize: PerDirection<Bytes> = 4096, in 1..=U64;
        /// Range of block sizes, chosen at random in multiples of the smallest.
        ///
        /// Example: `bsrange=4k-64k`.
        bsrange | blocksize_range: PerDirection<BlockRange> = "", in 1..=U64;
        /// Mix of block sizes.
        ///
        /// `4k/50:8k/30:64k/` is half 4k, 30 percent 8k and the rest 64k. Shares left blank divide what remains.
        bssplit: PerDirection<BlockSplit> = "";
        /// Allow any size within `bsrange`, not only multiples of the smallest.
        bs_unaligned | blocksize_unaligned: Flag = 0;
        /// Take the block size of reads for sequential I/O and that of writes for random I/O.
        bs_is_seq_rand: bool = 0, in 0..=1;
        /// Align random offsets to this instead of the block size.
        ///
        /// Example: `bs=4k` with `ba=64k`.
        ba | blockalign: PerDirection<Bytes> = "", in 1..=U64;
    }

    "Buffers" {
        /// Fill buffers with zeroes.
        zero_buffers: Flag = 0;
        /// Fill the buffer anew for every write, instead of once at the start.
        ///
        /// Example: `refill_buffers` for a drive that compresses.
        refill_buffers: Flag = 0;
        /// Change a few bytes of the buffer for every write.
        ///
        /// Cheap, and enough to keep simple deduplication from finding equal blocks.
        scramble_buffers: bool = 1, in 0..=1;
        /// How far buffers can be compressed, in percent.
        ///
        /// Random data is followed by zeroes, or by `buffer_pattern`, in that proportion.
        ///
        /// Example: `buffer_compress_percentage=50` makes blocks that compress to about half.
        buffer_compress_percentage: u32, in 0..=100;
        /// Size of one compressible region of a buffer. 0 makes the whole block one region.
        buffer_compress_chunk: Bytes = 512;
        /// Fill buffers with this pattern.
        ///
        /// Made of hexadecimal digits (`0xdeadface`), decimal numbers, strings in double quotes and files in single
        /// quotes, one after the other without anything between.
        buffer_pattern: BufferPattern;
        /// Share of blocks written that equal another block, in percent.
        #[pending("duplicate blocks are not generated")]
        dedupe_percentage: u32 = 0, in 0..=100;
        /// Where duplicates come from.
        #[dormant("dedupe_percentage")]
        dedupe_mode: DedupeMode = "repeat";
        /// Size of the working set that duplicates come from, in percent.
        #[dormant("dedupe_percentage")]
        dedupe_working_set_percentage: u32 = 5, in 0..=100;
        /// Whether jobs share the working set.
        #[dormant("dedupe_percentage")]
        dedupe_global: bool = 0, in 0..=1;
        /// Drop the files' pages from the page cache before the run.
        ///
        /// Example: `invalidate=0` to read what an earlier job left in the cache.
        invalidate: bool = 1, in 0..=1;
        /// What I/O buffers are made of.
        ///
        /// Example: `mem=mmaphuge`.
        mem | iomem: Memory = "malloc";
        /// Alignment of the I/O buffers in bytes.
        ///
        /// Example: `iomem_align=4k`.
        iomem_align | mem_align: Bytes = 0;
        /// Size of a huge page.
        hugepage_size as "hugepage-size": Bytes = 2097152;
        /// Pin this much memory, to leave less for the page cache. Counted per worker.
        ///
        /// Example: `lockmem=1g`.
        lockmem: Bytes = 0;
    }

    "Amount of I/O" {
        /// How much of the files or the device each worker covers.
        ///
        /// Also how much it transfers, unless `io_size` is given. Bytes, percent (`20%`) or zones (`10z`). Left out,
        /// files are taken whole. Divided by the number of files unless `filesize` is given.
        ///
        /// Example: `size=10g`.
        size: Size;
        /// How much each worker transfers.
        ///
        /// Less than `size` stops early; more starts again from the beginning.
        ///
        /// Example: `size=1g` with `io_size=4g` goes four times over the same GiB.
        io_size | io_limit: Size;
        /// Size of each file.
        ///
        /// Of a range, each file gets a size at random.
        ///
        /// Example: `nrfiles=100` with `filesize=4k-1m`.
        filesize: SizeRange, in 1..=U64;
        /// Write until the file system is full.
        fill_device | fill_fs: bool = 0, in 0..=1;
    }

    "Engine and depth" {
        /// How I/O is issued.
        ///
        /// `fiord --enghelp` lists the engines; `--enghelp=ENGINE` their own options.
        ///
        /// Example: `ioengine=io_uring`.
        ioengine: EngineName = "psync";
        /// I/Os kept in flight.
        ///
        /// A synchronous engine has one in flight whatever this says. What was reached is in the report's
        /// distribution of depths.
        ///
        /// Example: `ioengine=io_uring` with `iodepth=32`.
        iodepth: u32 = 1, in 1..=U32;
        /// I/Os submitted in one go. 0 means as many as `iodepth`.
        ///
        /// Left out, each I/O is submitted by itself, as in fio.
        ///
        /// Example: `iodepth=32` with `iodepth_batch=8`.
        iodepth_batch | iodepth_batch_submit: u32 = 1, in 0..=U32;
        /// Fewest completions to wait for in one go. 0 does not wait while there is room to submit.
        ///
        /// Example: `iodepth=32` with `iodepth_batch_complete_min=8`.
        iodepth_batch_complete_min | iodepth_batch_complete: u32 = 1, in 0..=U32;
        /// Most completions to take in one go.
        ///
        /// Left out, as many as `iodepth_batch_complete_min`, and without that as many as there are; reports then count
        /// depth and completions as fio does, which takes one at a time.
        iodepth_batch_complete_max: u32, in 0..=U32;
        /// Depth to fall to before more is submitted; `iodepth`, when left out.
        ///
        /// Example: `iodepth=32` with `iodepth_low=8` lets the queue drain to 8 before it is filled again.
        iodepth_low: u32, in 0..=U32;
        /// Keep overlapping I/Os from being in flight together.
        #[pending("I/Os in flight are not checked for overlap")]
        serialize_overlap: bool = 0, in 0..=1;
        /// Who submits and completes I/O.
        #[pending("I/O is submitted by the job's own thread")]
        io_submit_mode: IoSubmitMode = "inline";
    }

    "Rate" {
        /// Pause between I/Os.
        ///
        /// Example: `thinktime=500` and `thinktime=500us` are half a millisecond.
        thinktime: Micros = 0;
        /// Part of `thinktime` spent using the CPU; the rest is slept.
        thinktime_spin: Micros = 0;
        /// Iterations of a busy loop between I/Os.
        thinkcycles: u32 = 0, in 0..=U32;
        /// I/Os between two pauses.
        ///
        /// Example: `thinktime=10ms` with `thinktime_blocks=16` pauses after every 16 I/Os.
        thinktime_blocks: u32 = 1, in 0..=U32;
        /// Whether `thinktime_blocks` counts issues or completions.
        thinktime_blocks_type: ThinktimeBlocksType = "complete";
        /// Time of I/O between two pauses, instead of a number of I/Os.
        thinktime_iotime: Seconds = 0;
        /// Bandwidth limit per worker, in bytes per second; 0 for none.
        ///
        /// One for all, or one each for reads, writes and trims (`1m,500k`, `,1m`).
        ///
        /// Example: `rate=10m` is 10 MiB a second.
        rate: PerDirection<Bytes> = 0;
        /// Bandwidth below which the job is stopped, in bytes per second; 0 for none.
        ///
        /// Example: `rate=10m` with `rate_min=8m`.
        rate_min | ratemin: PerDirection<Bytes> = 0;
        /// Limit of I/Os per second and worker; 0 for none.
        ///
        /// Of blocks of several sizes, so many of the smallest: larger ones come more rarely, unless
        /// `rate_process=poisson`. Example: `rate_iops=1000`.
        rate_iops: PerDirection<u32> = 0, in 0..=U32;
        /// I/Os per second below which the job is stopped; 0 for none.
        ///
        /// Looked at once a `rate_cycle`, after the first two seconds.
        rate_iops_min: PerDirection<u32> = 0, in 0..=U32;
        /// How the I/Os of a rate are spaced.
        rate_process: RateProcess = "linear";
        /// Whether a rate makes up for time spent in `thinktime`.
        rate_ignore_thinktime: bool = 0, in 0..=1;
        /// Window over which `rate_min` and `rate_iops_min` are judged, in milliseconds.
        rate_cycle | ratecycle: u32 = 1000, in 0..=U32;
    }

    "Latency" {
        /// Stop the job when one I/O takes longer than this.
        ///
        /// Example: `max_latency=100ms`.
        max_latency: PerDirection<Micros> = "";
        /// Find the depth at which I/Os take this long.
        #[pending("the search for a depth that meets a latency is not built")]
        latency_target: Micros = 0;
        /// Time over which `latency_target` must hold.
        #[dormant("latency_target")]
        latency_window: Micros = 0;
        /// Share of I/Os that must meet `latency_target`, in percent.
        #[dormant("latency_target")]
        latency_percentile: FloatList = 100, in 0..=100;
        /// Keep searching after the depth was found.
        #[dormant("latency_target")]
        latency_run: bool = 0, in 0..=1;
    }

    "Record and replay" {
        /// Record the job's I/O pattern in this file.
        #[pending("I/O patterns are not recorded")]
        write_iolog: Text;
        /// Replay the I/O pattern of this file.
        #[pending("I/O patterns are not replayed")]
        read_iolog: Text;
        /// Read the pattern bit by bit while it is replayed.
        #[dormant("read_iolog")]
        read_iolog_chunked: bool = 0, in 0..=1;
        /// Merge several traces into this file first.
        #[pending("traces are not merged")]
        merge_blktrace_file: Text;
        /// Speed of each trace that is merged, in percent.
        #[dormant("merge_blktrace_file")]
        merge_blktrace_scalars: FloatList;
        /// How often each trace is run through when merging.
        #[dormant("merge_blktrace_file")]
        merge_blktrace_iters: FloatList;
        /// Replay without the pauses of the original.
        #[dormant("read_iolog")]
        replay_no_stall: bool = 0, in 0..=1;
        /// Speed of the replay, in percent.
        #[dormant("read_iolog")]
        replay_time_scale: u32 = 100, in 1..=U32;
        /// Replay on this device, whatever the pattern names.
        #[dormant("read_iolog")]
        replay_redirect: Text;
        /// Align replayed offsets to this.
        #[dormant("read_iolog")]
        replay_align: Bytes = 0;
        /// Divide replayed offsets by this.
        #[dormant("read_iolog")]
        replay_scale: u32 = 1, in 0..=U32;
        /// Kinds of I/O to leave out of the replay.
        #[dormant("read_iolog")]
        replay_skip: Text;
    }

    "Workers and their order" {
        /// Run workers as threads.
        ///
        /// fiord's workers are always threads, so this changes nothing but what is echoed in the report.
        thread: Flag = 0;
        /// Start when the job of this name is done.
        ///
        /// That job must be defined earlier, and in the same group.
        ///
        /// Example: `wait_for=warmup`.
        wait_for: Text;
        /// Scheduling priority of the worker.
        ///
        /// Example: `nice=10`.
        nice: i32 = 0, in -20..=19;
        /// I/O priority within the class; 0 is the highest.
        ///
        /// Example: `prioclass=2` with `prio=7` is the lowest of the best-effort class.
        prio: u32, in 0..=7;
        /// I/O priority class.
        ///
        /// 0 leaves it to the kernel, 1 is real time, 2 best effort, 3 idle.
        prioclass: u32, in 0..=3;
        /// I/O priority hint.
        #[pending("I/O priority hints are not set")]
        priohint: u32 = 0, in 0..=1023;
        /// Name of the worker as process listings show it.
        #[pending("workers are named by fiord")]
        comm: Text;
        /// CPUs the worker may run on, as the bits of a number.
        cpumask: u32, in 0..=U32;
        /// CPUs the worker may run on: `0,5,8-15`.
        cpus_allowed: CpuSet;
        /// Whether workers share the CPUs of `cpus_allowed` or get one each.
        ///
        /// Example: `numjobs=4`, `cpus_allowed=0-3` and `cpus_allowed_policy=split` give each worker a CPU.
        cpus_allowed_policy: CpusAllowedPolicy = "shared";
        /// NUMA nodes on whose CPUs the worker may run.
        ///
        /// Example: `numa_cpu_nodes=0`.
        numa_cpu_nodes: NumaNodes;
        /// NUMA nodes the worker's memory comes from.
        ///
        /// `default`, `local`, `prefer:N`, `bind:LIST` or `interleave:LIST`.
        numa_mem_policy: NumaPolicy;
        /// Control group the worker joins.
        #[pending("workers are not moved to control groups")]
        cgroup: Text;
        /// Weight of the control group.
        #[dormant("cgroup")]
        cgroup_weight: u32, in 100..=1000;
        /// Whether the control group stays after the job.
        #[dormant("cgroup")]
        cgroup_nodelete: bool = 0, in 0..=1;
        /// Identifier of the flow that `flow` belongs to.
        #[dormant("flow")]
        flow_id: u32 = 0, in 0..=U32;
        /// Weight of this job's I/Os against those of other jobs.
        #[pending("jobs are not held in proportion to each other")]
        flow: u32 = 0, in 0..=1000;
        /// How long to sleep when a job is ahead of its flow.
        #[dormant("flow")]
        flow_sleep: u32 = 0, in 0..=U32;
        /// Wait for all jobs before this one to end, and start a new group of reports.
        ///
        /// Example: `stonewall` in the second section of a job file runs it after the first.
        stonewall | wait_for_previous: Flag = 0;
        /// End all jobs when this one ends.
        exitall: Flag = 0;
        /// What `exitall` ends.
        exit_what: ExitWhat = "group";
        /// End all jobs when this one ends in error.
        exitall_on_error: Flag = 0;
        /// Command to run before the job.
        ///
        /// What it prints goes to `JOB.prerun.txt`. If it fails, a warning says so, and the job runs. Example:
        /// `exec_prerun=sync`.
        exec_prerun: Text;
        /// Command to run after the job.
        ///
        /// What it prints goes to `JOB.postrun.txt`.
        exec_postrun: Text;
        /// User the worker runs as, by number.
        uid: u32, in 0..=U32;
        /// Group the worker runs as, by number.
        gid: u32, in 0..=U32;
    }

    "Verification" {
        /// Checksum or pattern that data is written with and verified by.
        #[pending("data is not verified yet")]
        verify: Verify = 0;
        /// Whether a writing job reads back and verifies at its end.
        #[pending("data is not verified yet")]
        do_verify: bool = 1, in 0..=1;
        /// Which writes are verified after a crash.
        #[pending("data is not verified yet")]
        verify_policy: VerifyPolicy = "completed";
        /// Where in a block the header stands.
        #[pending("data is not verified yet")]
        verify_offset: Bytes, in 48..=U64;
        /// Bytes covered by one header.
        #[pending("data is not verified yet")]
        verify_interval: Bytes;
        /// Pattern to write and verify.
        #[pending("data is not verified yet")]
        verify_pattern: VerifyPattern;
        /// Bytes after which the pattern starts anew.
        #[pending("data is not verified yet")]
        verify_pattern_interval: Bytes = 0;
        /// Whether the first mismatch ends the job.
        #[pending("data is not verified yet")]
        verify_fatal: bool = 0, in 0..=1;
        /// Whether blocks that do not match are saved.
        #[pending("data is not verified yet")]
        verify_dump: bool = 0, in 0..=1;
        /// Threads that verify.
        #[pending("data is not verified yet")]
        verify_async: u32 = 0, in 0..=U32;
        /// CPUs of the threads that verify.
        #[pending("data is not verified yet")]
        verify_async_cpus: CpuSet;
        /// Blocks written before they are verified.
        #[pending("data is not verified yet")]
        verify_backlog: u64 = 0;
        /// Blocks verified in one go.
        #[pending("data is not verified yet")]
        verify_backlog_batch: u32, in 0..=U32;
        /// Save which blocks were written, for a later run.
        #[pending("data is not verified yet")]
        verify_state_save: bool = 1, in 0..=1;
        /// Load which blocks were written by an earlier run.
        #[pending("data is not verified yet")]
        verify_state_load: bool = 0, in 0..=1;
        /// Verify the sequence number of each write.
        #[pending("data is not verified yet")]
        verify_write_sequence: bool = 1, in 0..=1;
        /// Verify the seed of each block's contents.
        #[pending("data is not verified yet")]
        verify_header_seed: bool = 1, in 0..=1;
        /// Verify what an earlier run wrote, without writing.
        #[pending("data is not verified yet")]
        verify_only: Flag = 0;
        /// Verify by replaying the random numbers.
        #[pending("data is not verified yet")]
        experimental_verify: bool = 0, in 0..=1;
        /// Share of verified blocks that are trimmed, in percent.
        #[pending("blocks are not trimmed between writing and verifying")]
        trim_percentage: u32 = 0, in 0..=100;
        /// Verify that trimmed blocks read as zeroes.
        #[dormant("trim_percentage")]
        trim_verify_zero: bool = 1, in 0..=1;
        /// Blocks written before some are trimmed.
        #[dormant("trim_percentage")]
        trim_backlog: u64 = 0;
        /// Blocks trimmed in one go.
        #[dormant("trim_percentage")]
        trim_backlog_batch: u32, in 0..=U32;
        /// Verify blocks in order of offset.
        #[ignored("fio no longer looks at it either")]
        verifysort: bool = 1, in 0..=1;
        /// Blocks to sort before verifying.
        #[ignored("fio no longer looks at it either")]
        verifysort_nr: u32 = 0, in 0..=U32;
    }

    "Steady state" {
        /// End when this measure has become steady.
        ///
        /// A measure and a limit: `iops:3%`, `bw_slope:0.1%`.
        #[pending("steadiness is not watched for yet")]
        steadystate | ss: Text;
        /// Time over which the measure must be steady.
        #[dormant("steadystate")]
        steadystate_duration | ss_dur: Seconds = 0;
        /// Time before the measure is watched.
        #[dormant("steadystate")]
        steadystate_ramp_time | ss_ramp: Seconds = 0;
        /// Time between two looks at the measure.
        #[dormant("steadystate")]
        steadystate_check_interval | ss_interval: Seconds = 1;
    }

    "Logs and statistics" {
        /// Report the jobs of a group as one.
        ///
        /// Example: `numjobs=8` with `group_reporting` reports once instead of eight times.
        group_reporting: Flag = 0;
        /// Start a new group of reports.
        new_group: Flag = 0;
        /// Whether the job is in the report.
        ///
        /// With 0 its figures are left out, also of the group's sums.
        stats: bool = 1, in 0..=1;
        /// Whether log files carry the worker's number in their names.
        ///
        /// Workers are counted from 1 over the whole run. Without the number, workers whose files have the same name
        /// write one behind the other, and behind what an earlier run left there.
        per_job_logs: bool = 1, in 0..=1;
        /// Log bandwidth over time in files of this prefix.
        ///
        /// The file is `PREFIX_bw.N.log`; without a value the job's name is the prefix. A line is time in milliseconds,
        /// KiB/s, direction (0 read, 1 write, 2 trim), block size, priority. There is a line for each I/O, or with
        /// `log_avg_msec` one for each window and direction.
        write_bw_log: OptionalText;
        /// Log latencies over time in files of this prefix.
        ///
        /// The files are `PREFIX_slat.N.log`, `PREFIX_clat.N.log` and `PREFIX_lat.N.log`, in nanoseconds, otherwise
        /// like those of `write_bw_log`. A latency that is not recorded (`disable_clat`) has no file.
        write_lat_log: OptionalText;
        /// Log I/Os per second over time in files of this prefix.
        ///
        /// The file is `PREFIX_iops.N.log`, like that of `write_bw_log`. Where each I/O has a line, the value is 1.
        write_iops_log: OptionalText;
        /// Log histograms of latency over time in files of this prefix.
        ///
        /// The file is `PREFIX_clat_hist.N.log`. A line is time in milliseconds, direction, block size, and the counts
        /// of all bins. It stays empty without `log_hist_msec`.
        write_hist_log: OptionalText;
        /// Log entries to make room for at the start.
        ///
        /// fiord always makes room for 65536 at once.
        log_entries: u32 = 1024, in 1024..=1048576;
        /// Window of one log entry, in milliseconds; 0 logs every I/O.
        ///
        /// Windows of bandwidth and of I/Os per second are no longer than `bwavgtime` and `iopsavgtime`.
        ///
        /// Example: `write_bw_log=run` with `log_avg_msec=1000` writes a line a second.
        log_avg_msec: u32 = 0, in 0..=U32;
        /// Window of one histogram, in milliseconds; 0 logs none.
        log_hist_msec: u32 = 0, in 0..=U32;
        /// How far bins of logged histograms are merged: halved this many times.
        log_hist_coarseness: u32 = 0, in 0..=6;
        /// What a log entry says of its window.
        ///
        /// With `both` a line has two values, the average and then the maximum.
        log_window_value | log_max_value: LogWindowValue = "avg";
        /// Whether log entries carry the offset.
        ///
        /// It stands before the priority.
        log_offset: bool = 0, in 0..=1;
        /// Whether log entries carry the priority.
        ///
        /// In hexadecimal, class and level as the kernel packs them; otherwise the column is 1 for the real-time class
        /// and 0 for the others.
        log_prio: bool = 0, in 0..=1;
        /// Whether log entries carry the time of issue.
        #[pending("log entries carry the time of completion alone")]
        log_issue_time: bool = 0, in 0..=1;
        /// Compress the log in chunks of this size.
        #[ignored("logs are kept as they are until they are written")]
        log_compression: u32, in 1024..=536870912;
        /// CPUs that compress the log.
        #[ignored("logs are kept as they are until they are written")]
        log_compression_cpus: CpuSet;
        /// Store the log compressed.
        #[pending("logs are written as text")]
        log_store_compressed: bool = 0, in 0..=1;
        /// Log times of another clock.
        ///
        /// Instead of counting from 0 at the start of the run, times are those of the clock that
        /// `log_alternate_epoch_clock_id` names: by default the time of day, in milliseconds since 1970.
        log_alternate_epoch | log_unix_epoch: bool = 0, in 0..=1;
        /// The clock of `log_alternate_epoch`.
        ///
        /// By the kernel's number: 0 is the time of day, 1 the monotonic clock, 7 the time since boot.
        log_alternate_epoch_clock_id: u32 = 0, in 0..=U32;
        /// Window of a bandwidth sample, in milliseconds.
        ///
        /// Example: `bwavgtime=1000`.
        bwavgtime: u32 = 500, in 0..=U32;
        /// Window of a sample of I/Os per second, in milliseconds.
        iopsavgtime: u32 = 500, in 0..=U32;
        /// Report what the disks under the files did.
        disk_util: bool = 1, in 0..=1;
        /// Do not measure total latency.
        disable_lat: bool = 0, in 0..=1;
        /// Do not measure completion latency.
        disable_clat: bool = 0, in 0..=1;
        /// Do not measure submission latency.
        disable_slat: bool = 0, in 0..=1;
        /// Do not measure bandwidth over time.
        disable_bw_measurement | disable_bw: bool = 0, in 0..=1;
        /// Report percentiles of submission latency.
        slat_percentiles: bool = 0, in 0..=1;
        /// Report percentiles of completion latency.
        clat_percentiles: bool = 1, in 0..=1;
        /// Report percentiles of total latency.
        lat_percentiles: bool = 0, in 0..=1;
        /// Percentiles to report: up to twenty, separated by colons.
        ///
        /// Example: `percentile_list=50:99:99.9`.
        percentile_list: FloatList = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99", in 0..=100;
        /// Significant figures of the normal report.
        ///
        /// Example: `significant_figures=6`.
        significant_figures: u32 = 4, in 1..=10;
        /// Record errors of trimmed blocks as percentiles.
        #[pending("errors of trimmed blocks are counted, not sorted into percentiles")]
        block_error_percentiles: bool = 0, in 0..=1;
    }

    "Errors" {
        /// Errors after which the job goes on.
        ///
        /// Example: `continue_on_error=read`.
        continue_on_error: ContinueOnError = "none";
        /// Errors to pass over.
        ///
        /// Lists for reads, writes and verifying, separated by commas; errors of one list by colons, by name or
        /// number: `EAGAIN,ENOSPC:122`.
        ignore_error: IgnoreErrors = "";
        /// Print every error, also those passed over.
        error_dump: bool = 0, in 0..=1;
    }

    "Options of fio's profiles" {
        /// Block size of `profile=tiobench`, in bytes.
        #[dormant("profile")]
        block: u32 = 4096;
        /// Number of runs of `profile=tiobench`.
        #[dormant("profile")]
        numruns: u32;
        /// Directory of `profile=tiobench`.
        #[dormant("profile")]
        dir: Text;
        /// Number of threads of `profile=tiobench`.
        ///
        /// Left over in many a job file from fio's examples; the number of workers is `numjobs`.
        #[dormant("profile")]
        threads: u32;
        /// Devices of `profile=act`.
        #[dormant("profile")]
        device_names as "device-names": Text;
        /// Multiplier of the load of `profile=act`.
        #[dormant("profile")]
        load: u32 = 1;
        /// Duration of `profile=act`.
        #[dormant("profile")]
        test_duration as "test-duration": Seconds = "24h";
        /// Read threads per device of `profile=act`.
        #[dormant("profile")]
        threads_per_queue as "threads-per-queue": u32 = 8;
        /// Blocks of 512 bytes per read of `profile=act`.
        #[dormant("profile")]
        read_req_num_512_blocks as "read-req-num-512-blocks": u32 = 3;
        /// Large blocks of `profile=act`, in KiB.
        #[dormant("profile")]
        large_block_op_kbytes as "large-block-op-kbytes": u32 = 131072;
        /// Run the preparing phase of `profile=act`.
        #[dormant("profile")]
        prep: Flag;
    }

    "Old job files" {
        /// I/Os after which a mix changes direction.
        #[ignored("fio no longer looks at it either")]
        rwmixcycle: u32 = 0, in 0..=U32;
        /// Difference at which a job waits for its flow.
        #[ignored("fio no longer looks at it either")]
        flow_watermark: u32 = 1024, in 0..=U32;
    }
}

/// Resolves a section: applies what it inherits, then its own settings, on top of the defaults.
///
/// Problems come in the order of the settings; those of inherited settings are the same for every section that
/// inherits them.
pub fn resolve(section: &Section) -> (JobOptions, Given, Vec<Problem>) {
    let settings: Vec<Setting> = section.global.iter().chain(&section.own).cloned().collect();
    let (job, given, mut problems) = resolve_settings::<JobOptions>(settings);
    let engine = job.ioengine.0;
    problems.extend(section.own.iter().filter_map(|setting| foreign(setting, engine)));
    if let Some(setting) = given.get("ioengine").filter(|_| !engine::is_built(engine)) {
        let message = format!("engine {engine} not loadable: known to fio, not built into fiord yet");
        let remedy = format!("allowed: {}", engine::built().join(", "));
        problems.push(Problem::error(setting.value_place.clone(), "ioengine", message, remedy));
    }
    (job, given, problems)
}

/// A private option of another engine than the job's. Inherited ones are passed over, as the global section may have
/// an engine of its own.
fn foreign(setting: &Setting, engine: &str) -> Option<Problem> {
    match setting.spec.scope {
        Scope::Engine(engines) if !engines.contains(&engine) => {
            let message = format!("an option of {}, and the job's engine is {engine}", engines.join(" and "));
            Some(Problem::error(setting.place.clone(), setting.spec.name, message, ""))
        }
        _ => None,
    }
}
