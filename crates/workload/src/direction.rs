//! The direction of each operation.
//!
//! Invariant: a stream of one direction draws no random numbers.

use fiord_plan::{Direction, Pattern};
use fiord_stats::Capped;
use fiord_stats::random::Random;

use crate::substream::Substream;

/// Draws directions by the pattern.
#[derive(Debug, Clone)]
pub(crate) struct Directions {
    pattern: Pattern,
    /// A draw of 64 bits below this is a read.
    reads_below: u64,
    always_read: bool,
    /// The directions that replace a drawn write and a drawn read.
    either: [Direction; 2],
    random: Random,
}

impl Directions {
    pub(crate) fn new(pattern: Pattern, read_percent: u8, seed: u64) -> Directions {
        Directions {
            pattern,
            reads_below: u64::capped(u128::from(read_percent.min(100)) * u128::from(u64::MAX) / 100),
            always_read: read_percent >= 100,
            either: [Direction::Write, Direction::Read],
            random: Substream::Directions.of(seed),
        }
    }

    /// Whether both directions of a mix occur. One without a share does not, whatever rates allow.
    pub(crate) fn is_mixed(&self) -> bool {
        self.pattern == Pattern::Mixed && self.reads_below > 0 && !self.always_read
    }

    /// Sets the directions that replace a drawn write and a drawn read.
    pub(crate) fn steer(&mut self, either: [Direction; 2]) {
        self.either = either;
    }

    /// The direction of the next operation. For a trim followed by its write, this is the trim.
    #[inline]
    pub(crate) fn next(&mut self) -> Direction {
        match self.pattern {
            Pattern::Only(direction) => direction,
            Pattern::Mixed => self.mixed(),
            Pattern::TrimThenWrite => Direction::Trim,
        }
    }

    /// A read or a write, for callers that know the pattern to be mixed.
    #[inline]
    pub(crate) fn mixed(&mut self) -> Direction {
        let is_read = (self.random.next_u64() < self.reads_below) | self.always_read;
        // A table instead of a branch, which could not be predicted.
        self.either[usize::from(is_read)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads among `draws` operations.
    fn reads(read_percent: u8, draws: usize) -> usize {
        let mut directions = Directions::new(Pattern::Mixed, read_percent, 7);
        (0..draws).filter(|_| directions.next() == Direction::Read).count()
    }

    #[test]
    fn a_mix_keeps_its_share() {
        for read_percent in [0_u8, 1, 30, 50, 70, 99, 100] {
            let draws = 100_000;
            let expected = f64::from(read_percent) * draws as f64 / 100.0;
            let deviation = (expected * (1.0 - f64::from(read_percent) / 100.0)).sqrt();
            let off = (reads(read_percent, draws) as f64 - expected).abs();
            assert!(off <= 6.0 * deviation, "{read_percent} %: off by {off}");
        }
    }

    #[test]
    fn a_mix_of_one_share_is_none() {
        let is_mixed = |percent| Directions::new(Pattern::Mixed, percent, 7).is_mixed();
        assert_eq!([0, 1, 99, 100].map(is_mixed), [false, true, true, false]);
        assert!(!Directions::new(Pattern::TrimThenWrite, 50, 7).is_mixed());
    }

    #[test]
    fn a_steered_mix_has_the_replaced_directions() {
        let mut directions = Directions::new(Pattern::Mixed, 50, 7);
        directions.steer([Direction::Read, Direction::Read]);
        assert!((0..64).all(|_| directions.next() == Direction::Read));
    }

    #[test]
    fn other_patterns_draw_nothing() {
        let mut only = Directions::new(Pattern::Only(Direction::Trim), 50, 3);
        let before = only.random.clone();
        assert_eq!(only.next(), Direction::Trim);
        assert_eq!(Directions::new(Pattern::TrimThenWrite, 50, 3).next(), Direction::Trim);
        assert_eq!(only.random, before);
    }
}
