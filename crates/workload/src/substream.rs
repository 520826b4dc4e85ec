//! The uses of random numbers, each with a substream of the job's seed to itself.
//!
//! Invariant: no two uses share a number, so that no draw depends on another.

use fiord_stats::random::Random;

macro_rules! substreams {
    ($($(#[doc = $doc:literal])* $use:ident = $number:literal,)*) => {
        /// What random numbers are drawn for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u64)]
        pub(crate) enum Substream {
            $($(#[doc = $doc])* $use = $number,)*
        }

        const ALL: &[Substream] = &[$(Substream::$use,)*];
    };
}

substreams! {
    Sizes = 2,
    Files = 3,
    Offsets = 4,
    Contents = 5,
    /// The keys of the orders in which each block comes once.
    Orders = 6,
    /// Where the favoured blocks of a skewed distribution are.
    Favourites = 7,
    /// Whether a write repeats earlier contents, and which.
    Duplicates = 8,
    VerifySeeds = 9,
    /// Chosen so that short mixes of the first jobs, with the default seed, have about the share of reads they are to have.
    Directions = 10,
    TrimmedBlocks = 11,
    /// Zones, and places within them.
    Zones = 12,
    /// What the contents of one worker begin with, and those of no other.
    OwnContents = 13,
    Priorities = 14,
    /// Which writes of `sprandom` are to be overwritten.
    Rewrites = 15,
}

/// The seed of each use in a job with this seed.
pub fn random_seeds(seed: u64) -> impl Iterator<Item = u64> {
    ALL.iter().map(move |substream| Random::substream_seed(seed, *substream as u64))
}

impl Substream {
    /// The numbers drawn for this use by a job with this seed.
    pub(crate) const fn of(self, seed: u64) -> Random {
        Random::substream(seed, self as u64)
    }
}
