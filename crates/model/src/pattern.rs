//! Which kinds of I/O of a stream one job can do together, and in which order they come.
//!
//! Invariant: every kind that a stream has is in exactly one part.

use fiord_stats::OrderBy;

use crate::stream::Stream;

/// Reads, writes and trims as positions in [`Stream::tracks`].
pub const READ: usize = 0;
/// See [`READ`].
pub const WRITE: usize = 1;
/// See [`READ`].
pub const TRIM: usize = 2;

/// Kinds that one job can do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// One kind.
    Only(usize),
    /// Reads and writes among each other.
    ReadsAndWrites,
    /// Each trim is followed by a write of the same block.
    TrimsThenWrites,
}

/// Switches between reads and writes below this share of those expected by chance mean that one came after the other.
const SWITCHES_MIN: f64 = 0.2;
/// With fewer switches expected nothing can be concluded.
const EXPECTED_MIN: f64 = 10.0;

impl Mix {
    /// The parts of a stream.
    pub fn parts(stream: &Stream) -> Vec<Mix> {
        let ios = |kind: usize| stream.tracks[kind].ios;
        let mut left: Vec<usize> = [READ, WRITE, TRIM].into_iter().filter(|kind| ios(*kind) > 0).collect();
        let mut parts = Vec::new();
        let trims_first = stream.rewritten_trims * 10 >= ios(TRIM) * 9 && ios(WRITE) * 10 <= ios(TRIM) * 11;
        if ios(TRIM) > 0 && trims_first {
            parts.push(Mix::TrimsThenWrites);
            left.retain(|kind| *kind == READ);
        }
        let (reads, writes) = (ios(READ) as f64, ios(WRITE) as f64);
        let expected = 2.0 * reads * writes / (reads + writes).max(1.0);
        let alternates = expected < EXPECTED_MIN || stream.switches as f64 >= expected * SWITCHES_MIN;
        if left.starts_with(&[READ, WRITE]) && alternates {
            parts.push(Mix::ReadsAndWrites);
            left.retain(|kind| *kind == TRIM);
        }
        parts.extend(left.into_iter().map(Mix::Only));
        parts.order_by_key(|mix| mix.first(stream));
        parts
    }

    /// Its kinds.
    pub fn kinds(self) -> &'static [usize] {
        match self {
            Mix::Only(READ) => &[READ],
            Mix::Only(WRITE) => &[WRITE],
            Mix::Only(_) => &[TRIM],
            Mix::ReadsAndWrites => &[READ, WRITE],
            Mix::TrimsThenWrites => &[TRIM, WRITE],
        }
    }

    /// The value of `rw` for it.
    pub fn word(self, is_random: bool) -> &'static str {
        match (self, is_random) {
            (Mix::Only(READ), false) => "read",
            (Mix::Only(READ), true) => "randread",
            (Mix::Only(WRITE), false) => "write",
            (Mix::Only(WRITE), true) => "randwrite",
            (Mix::Only(_), false) => "trim",
            (Mix::Only(_), true) => "randtrim",
            (Mix::ReadsAndWrites, false) => "rw",
            (Mix::ReadsAndWrites, true) => "randrw",
            (Mix::TrimsThenWrites, false) => "trimwrite",
            (Mix::TrimsThenWrites, true) => "randtrimwrite",
        }
    }

    /// What is added to the name of a stream's section if it has others.
    pub fn suffix(self) -> &'static str {
        match self {
            Mix::Only(READ) => "-read",
            Mix::Only(WRITE) => "-write",
            Mix::Only(_) => "-trim",
            Mix::ReadsAndWrites => "-rw",
            Mix::TrimsThenWrites => "-trimwrite",
        }
    }

    /// The first operation of the trace that belongs to it.
    pub fn first(self, stream: &Stream) -> u64 {
        self.kinds().iter().map(|kind| stream.tracks[*kind].first).min().unwrap_or(0)
    }

    /// The last operation of the trace that belongs to it.
    pub fn last(self, stream: &Stream) -> u64 {
        self.kinds().iter().map(|kind| stream.tracks[*kind].last).max().unwrap_or(0)
    }
}
