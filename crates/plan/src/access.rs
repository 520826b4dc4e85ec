//! What a job does to its files: directions, order, sizes, seeds. The crate `workload` turns this into operations.
//!
//! Invariant: every length here is in bytes and every block size is at least 1.

use fiord_stats::Capped;

use crate::zoned::ZonedAccess;

/// Which way an I/O goes. The order is the order of every per-direction array: read, write, trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From the target.
    Read = 0,
    /// To the target.
    Write = 1,
    /// Discard of a range.
    Trim = 2,
}

impl Direction {
    /// All three, in array order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// Position in a per-direction array.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// fio's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Trim => "trim",
        }
    }
}

/// One value for each direction: read, write, trim.
pub type PerDirection<T> = [T; 3];

/// Which directions a job's stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One direction only.
    Only(Direction),
    /// Reads and writes, mixed by `Access::read_percent`.
    Mixed,
    /// Each block is trimmed, then written.
    TrimThenWrite,
}

impl Pattern {
    /// Whether an operation of this direction can occur.
    pub fn includes(self, direction: Direction) -> bool {
        match self {
            Pattern::Only(only) => only == direction,
            Pattern::Mixed => direction != Direction::Trim,
            Pattern::TrimThenWrite => direction != Direction::Read,
        }
    }

    /// Whether a run of it changes the target.
    pub fn modifies(self) -> bool {
        self != Pattern::Only(Direction::Read)
    }
}

/// fio's `rw_sequencer`: what `rw=randread:N` does between new random offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequencer {
    /// The following I/Os are sequential.
    Sequential,
    /// The following I/Os use the same offset.
    Identical,
}

/// How long the I/Os of one direction are.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSizes {
    /// All the same.
    Fixed(u64),
    /// Drawn evenly from `min..=max`; a multiple of `min` unless `Access::unaligned_sizes`.
    Range {
        /// Shortest.
        min: u64,
        /// Longest.
        max: u64,
    },
    /// Sizes with their shares; the shares sum to 100.
    Split(Vec<(u64, f64)>),
}

impl BlockSizes {
    /// The shortest length that can occur.
    pub fn min(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { min, .. } => *min,
            BlockSizes::Split(shares) => shares.iter().map(|share| share.0).min().unwrap_or(1),
        }
    }

    /// The longest length that can occur.
    pub fn max(&self) -> u64 {
        match self {
            BlockSizes::Fixed(bytes) => *bytes,
            BlockSizes::Range { max, .. } => *max,
            BlockSizes::Split(shares) => shares.iter().map(|share| share.0).max().unwrap_or(1),
        }
    }
}

/// fio's `file_service_type`: which of several files the next I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileService {
    /// Each file in turn, `every` I/Os at a time.
    RoundRobin {
        /// I/Os before the next file.
        every: u32,
    },
    /// A file until it is done, then the next.
    Sequential,
    /// Drawn evenly, `every` I/Os at a time.
    Random {
        /// I/Os before the next draw.
        every: u32,
    },
    /// From a Zipf distribution with this theta.
    Zipf {
        /// Skew.
        theta: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
    /// From a Pareto distribution with this power.
    Pareto {
        /// Skew, 0..1.
        power: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
    /// From a normal distribution with this deviation, in percent of the files.
    Normal {
        /// Standard deviation in percent.
        deviation: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
}

/// How random offsets are spread over a file.
#[derive(Debug, Clone, PartialEq)]
pub enum RandomDistribution {
    /// All places are equally likely.
    Uniform,
    /// A zipf distribution: the hottest place, and the others by their rank scattered over the file.
    Zipf {
        /// Skew.
        theta: f64,
        /// Where the hottest place is, from 0 (the start) to 1; `None` draws one for each file.
        centre: Option<f64>,
    },
    /// A pareto distribution, scattered in the same way.
    Pareto {
        /// Skew, 0..1.
        power: f64,
        /// As above.
        centre: Option<f64>,
    },
    /// A normal distribution around a place.
    Normal {
        /// Standard deviation in percent of the file.
        deviation_percent: f64,
        /// Where the hottest place is, from 0 (the start) to 1.
        centre: f64,
    },
    /// Consecutive zones from the start of the file; the shares of access add up to 100.
    Zoned(Vec<AccessZone>),
    /// These blocks in this order, repeatedly.
    Sequence {
        /// Numbers of blocks.
        blocks: Vec<u64>,
        /// Each repetition starts where the previous one ended, instead of in place.
        strides: bool,
    },
}

/// A zone of a random distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccessZone {
    /// Share of the I/Os in percent.
    pub access_percent: u8,
    /// How long it is.
    pub size: ZoneSize,
}

/// How long a zone of a random distribution is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ZoneSize {
    /// A part of the file, in percent.
    Percent(f64),
    /// Bytes.
    Bytes(u64),
}

/// fio's `zonemode=strided`: one zone at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedZones {
    /// Bytes transferred in a zone before the next (`zonesize`).
    pub transfer_bytes: u64,
    /// Length of a zone (`zonerange`); at least the shortest block.
    pub zone_bytes: u64,
    /// Bytes between the end of a zone and the next (`zoneskip`).
    pub skip_bytes: u64,
}

/// Barriers between writes, counted in writes issued; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Barriers {
    /// `fsync` after this many writes.
    pub fsync_every: u32,
    /// `fdatasync` after this many writes.
    pub fdatasync_every: u32,
    /// `sync_file_range` after this many writes.
    pub range_every: u32,
    /// Flags of that call (`SYNC_FILE_RANGE_WAIT_BEFORE` and so on, the kernel's values).
    pub range_flags: u8,
}

/// One pass that leaves a flash drive as endless random overwrites would (`sprandom`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprandom {
    /// Parts of the run with one share of blocks each that are written again (`spr_num_regions`), at least 1.
    pub regions: u32,
    /// Flash that the drive has beyond its logical size, as a share of that (`spr_op`).
    pub over_provisioning: f64,
    /// Blocks that the drive's cache holds (`spr_cs`): none is written again while it may still be in there.
    pub cache_blocks: u64,
}

impl Sprandom {
    /// Writes of a pass over this many logical blocks: as many blocks as the drive has physically.
    pub fn writes(&self, blocks: u64) -> u64 {
        u64::capped((blocks as f64 * (1.0 + self.over_provisioning)).round())
    }
}

/// Everything that decides the stream of operations, but for the files.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Directions.
    pub pattern: Pattern,
    /// Whether offsets are random (subject to `percent_random`).
    pub random: bool,
    /// For a sequential job: bytes added to each next offset (`rw=read:8k`; may be negative).
    pub stride_bytes: i64,
    /// For a random job: I/Os done at one drawn place before the next draw (`rw=randread:8`), at least 1.
    pub ios_per_draw: u32,
    /// What those I/Os do.
    pub sequencer: Sequencer,
    /// Share of I/Os of a random job that are random, per direction.
    pub percent_random: PerDirection<u8>,
    /// Share of reads in `Pattern::Mixed`.
    pub read_percent: u8,
    /// How random offsets are spread; anything but uniform is without coverage.
    pub distribution: PerDirection<RandomDistribution>,
    /// Zones that are worked on one at a time.
    pub strided: Option<StridedZones>,
    /// Zones that are written in sequence (`zonemode=zbd`).
    pub zoned: Option<ZonedAccess>,
    /// Preconditioning of a flash drive.
    pub sprandom: Option<Sprandom>,
    /// Ranges of one trim (`num_range`), at least 1.
    pub trim_ranges: u32,
    /// Whether a random pass covers each block exactly once (`norandommap=0`).
    pub full_coverage: bool,
    /// `softrandommap`: go on without a map where one cannot be allocated.
    pub soft_map: bool,
    /// Whether it does so even with `norandommap`, if all blocks have one length (`random_generator=lfsr`, whose
    /// sequence does not repeat a block before it has covered all of them).
    pub covers_single_size: bool,
    /// Lengths.
    pub block_sizes: PerDirection<BlockSizes>,
    /// Drawn lengths need not be multiples of the shortest.
    pub unaligned_sizes: bool,
    /// `bs_is_seq_rand`: `block_sizes[0]` is for sequential I/Os and `[1]` for random ones.
    pub sizes_by_order: bool,
    /// Random offsets are multiples of this, per direction (`blockalign`; the shortest block by default).
    pub align_bytes: PerDirection<u64>,
    /// Seed of everything this worker draws.
    pub seed: u64,
    /// Whether each pass of `loops` and `io_size` covers the blocks in the order of the first (blocks of one length,
    /// each once). Directions, lengths and files continue their random sequence nevertheless, because a short pass
    /// would otherwise repeat its accidental shares.
    pub repeat_order: bool,
    /// Which file next.
    pub service: FileService,
    /// Barriers between writes.
    pub barriers: Barriers,
}

impl Access {
    /// Whether an operation of this direction is ever drawn: one direction of a mix may have no share.
    pub fn draws(&self, direction: Direction) -> bool {
        let has_share = match direction {
            Direction::Read => self.read_percent > 0,
            Direction::Write => self.read_percent < 100,
            Direction::Trim => true,
        };
        self.pattern.includes(direction) && (self.pattern != Pattern::Mixed || has_share)
    }
}
