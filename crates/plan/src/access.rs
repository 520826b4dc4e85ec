//! What a job does to its files: directions, order, sizes, seeds. The workload room turns this into operations.
//!
//! Invariant: every length here is in bytes and every block size is at least 1.

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
    /// The following I/Os go on behind each other.
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
    /// Drawn by a zipf law with this theta.
    Zipf {
        /// Skew.
        theta: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
    /// Drawn by a pareto law with this power.
    Pareto {
        /// Skew, 0..1.
        power: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
    /// Drawn by a normal law with this deviation, in percent of the files.
    Normal {
        /// Standard deviation in percent.
        deviation: f64,
        /// Where the favourite is, from 0 (the first file) to 1.
        centre: f64,
    },
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
    pub range_flags: u32,
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
    /// Whether a random pass covers each block exactly once (`norandommap=0`).
    pub full_coverage: bool,
    /// `softrandommap`: go on without a map where one cannot be allocated.
    pub soft_map: bool,
    /// Whether it does so without that, too, where all blocks are of one length (`random_generator=lfsr`, whose sequence
    /// returns to no block before it has been to all).
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
    /// Whether each pass of `loops` and `io_size` takes the blocks in the order of the first (blocks of one length, each
    /// once). Directions, lengths and files are drawn on all the same, or a short pass would keep its accidental shares.
    pub repeat_order: bool,
    /// Which file next.
    pub service: FileService,
    /// Barriers between writes.
    pub barriers: Barriers,
}
