//! What kind of I/O a job does: directions, order, offsets, syncs.
//!
//! Invariant: these options say where and in which order, not how large or how fast.

use crate::table::set::{U32, U64, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Directions, order and offsets.
    pub struct Access, scope Scope::Job;

    "Kind of I/O" {
        /// Bypass the page cache (O_DIRECT).
        ///
        /// Offsets, sizes and buffers must then be aligned as the device requires, which is checked before the run.
        ///
        /// Example: `direct=1` with `bs=4k`.
        direct: bool = 0, in 0..=1;
        /// Go through the page cache: the opposite of `direct`.
        buffered: bool = 1, in 0..=1;
        /// Make each write atomic: after a crash either all of it is on the medium or nothing (implies direct I/O).
        ///
        /// Needs Linux 6.11, a device or file that offers atomic writes, and `ioengine=io_uring`, `libaio` or `pvsync2`.
        /// Writes have one block size, a power of two within the limits of the device, and offsets are multiples of it.
        ///
        /// Example: `atomic=1` with `bs=16k`, as a database writes its pages without a double-write buffer.
        atomic: bool = 0, in 0..=1;
        /// Directions, and whether offsets are sequential or random.
        ///
        /// A number may follow after a colon. For random modes it is the number of I/Os per random offset
        /// (`randread:8`), which `rw_sequencer` makes sequential or identical; for sequential modes it is added to the
        /// offset after each I/O (`write:4k` leaves holes).
        ///
        /// Example: `rw=randread`.
        rw | readwrite: RwMode = "read";
        /// Effect of the number after a random `rw`.
        rw_sequencer: RwSequencer = "sequential";
        /// Whether directions are reported separately, as a sum, or both.
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
        /// Stop after this many I/Os, or earlier if `size` has been transferred. 0 sets no limit.
        ///
        /// Example: `number_ios=1000`.
        number_ios: u64 = 0;
        /// Sync a file after this many writes to it; 0 never does.
        ///
        /// Example: `fsync=1` syncs after every write, `fsync=32` after every 32nd.
        fsync: u32 = 0, in 0..=U32;
        /// Sync a file's data after this many writes to it; 0 never does.
        ///
        /// Example: `fdatasync=1` is how a database writes its log.
        fdatasync: u32 = 0, in 0..=U32;
        /// Make every Nth write a barrier write; 0 for none.
        #[ignored("neither fio nor fiord has an engine with barrier writes; fsync=N and fdatasync=N order writes")]
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
        /// Example: `rw=randrw` with `rwmixread=70` does seven reads for every three writes.
        rwmixread: u32 = 50, in 0..=100;
        /// Share of writes in a mix, in percent. If `rwmixread` is given as well, the later of the two applies.
        rwmixwrite: u32 = 50, in 0..=100;
        /// Distribution of random offsets over the file.
        ///
        /// `zipf:THETA` and `pareto:POWER` (0.2 is the 80-20 rule) concentrate I/O on a few hot blocks that are
        /// scattered over the file; `normal:DEVIATION`, in percent of the file, prefers the blocks around a centre. A
        /// second number places the hottest block, from 0 (the start of the file) to 1; by default it is at 0.5 for
        /// `normal` and anywhere for the others. `zoned:60/10:40/90` sends 60 % of the I/Os to the first 10 % of the
        /// file and 40 % to the other 90 %; `zoned_abs:60/10g:40/90g` takes sizes instead. `sequence:0,2,1,3` visits
        /// the blocks in this order, repeatedly.
        ///
        /// All but `random` may return to a block before all have been visited, as with `norandommap`. Directions may
        /// differ: in `zipf:1.2,0.8`, the first number is for reads, the second for writes and trims.
        ///
        /// Example: `rw=randread` with `random_distribution=zipf:1.2`.
        random_distribution: RandomDistributions = "random";
        /// Apply a `sequence` of blocks to each following part of the file, instead of repeating it in place.
        ///
        /// With `random_distribution=sequence:0,2,1,3` the blocks are 0, 2, 1, 3, 4, 6, 5, 7 and so on to the end of
        /// the file, and then from its start again.
        random_sequence_stride: bool = 0, in 0..=1;
        /// Share of I/Os at random offsets, in percent; the others continue where the previous one ended.
        ///
        /// Example: `rw=randread` with `percentage_random=80`.
        percentage_random: PerDirection<u32> = 100, in 0..=100;
        /// Allow blocks to be visited again before all of them have been visited.
        ///
        /// By default a random job visits each block exactly once per pass.
        norandommap: Flag = 0;
        /// Continue without the map of visited blocks when there is no memory for it.
        ///
        /// fiord's random order needs no map, so this option has no effect.
        softrandommap: bool = 0, in 0..=1;
        /// Generator of random offsets.
        random_generator: RandomGenerator = "tausworthe";
        /// Precondition a flash drive in one pass: afterwards it is as endless random overwrites would leave it.
        ///
        /// Writes as many bytes as the drive has flash, each block at least once, in an order after which flash of each
        /// age has the share of valid blocks that it has in the steady state of a drive that cleans its oldest flash under
        /// uniform random writes: `exp(-k x)` for flash that a share `x` of all was written after, where
        /// `k = (1 + op)(1 - u)` and `u = exp(-(1 + op)(1 - u))`. Needs `rw=randwrite`, one block size and one file or device.
        ///
        /// Example: `rw=randwrite`, `bs=128k`, `iodepth=32`, `direct=1`, `sprandom=1` and `spr_op=0.07`.
        sprandom: bool = 0, in 0..=1;
        /// Flash that the drive has beyond its logical size, as a share of that, for `sprandom`.
        spr_op: FloatList = "0.15";
        /// Regions of the run of `sprandom`, each with one share of blocks that are written again.
        spr_num_regions: u32 = 100, in 0..=U32;
        /// Cache of the drive: `sprandom` does not write a block again while it may be there.
        spr_cs: Bytes = 0;
        /// Ranges of one trim.
        ///
        /// Each has the length of a block and a place of its own, as `rw` says. A trim counts as one I/O, with the bytes of
        /// all its ranges; logs have the offset of the first. Needs `rw=trim` or `rw=randtrim`, and an engine whose
        /// commands take a list: io_uring_cmd, with up to 256 ranges.
        num_range: u32 = 1, in 1..=U32;
    }

    "Data placement" {
        /// Use flexible data placement, as `dataplacement=fdp`.
        fdp: bool = 0, in 0..=1;
        /// What writes tell an NVMe drive about where their data belong.
        ///
        /// The drive keeps data of different placements apart, so that data which are overwritten together are erased
        /// together. Needs an engine whose commands name a placement: io_uring_cmd, with `write_mode=write`.
        ///
        /// Example: `ioengine=io_uring_cmd`, `dataplacement=fdp` and `plids=0,2-3`.
        dataplacement | data_placement: DataPlacement = "none";
        /// How the placement of the next write is chosen.
        plid_select | fdp_pli_select: PlidSelect = "roundrobin";
        /// Placements that the job writes to.
        ///
        /// With `dataplacement=fdp` they are positions, from 0 on, in the list of placement identifiers that the namespace
        /// has (`nvme fdp status`), and all of the list if not given; with `streams` they are the streams themselves.
        plids | fdp_pli: NumberSet;
        /// File that says which offsets belong to which placement, for `plid_select=scheme`.
        ///
        /// Each line has an offset, the offset behind the last byte, and a position as in `plids`, with commas between them:
        /// `0, 1073741824, 2`. The first line that has the offset of a write counts, and placement 0 if none has. `plids` has
        /// no effect then. Empty lines are left out.
        dp_scheme: Text;
    }
}
