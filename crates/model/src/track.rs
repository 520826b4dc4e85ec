//! What the I/Os of one kind in one stream do: how many, how long, and whether each begins where the one before ended.
//!
//! Invariant: bounded memory, whatever the I/Os are.

use crate::counted::Counted;

/// I/Os of one kind, in the order of a stream.
#[derive(Debug, Clone, Default)]
pub struct Track {
    /// How many.
    pub ios: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// How long each is, in bytes.
    pub lengths: Counted,
    /// First byte of all; meaningless without any.
    pub begin_bytes: u64,
    /// End of all.
    pub end_bytes: u64,
    /// Greatest common divisor of the offsets jumped to; 0 if there is none but 0.
    pub grain_bytes: u64,
    /// I/Os that begin where the one before ended.
    pub sequential: u64,
    /// I/Os that begin at the beginning again after one that ended at the end.
    pub wraps: u64,
    /// I/Os from one jump to the next, of each such run.
    pub runs: Counted,
    /// Which operation of the trace was the first and the last, from 0.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    gap: MajorityGap,
    run: u64,
    previous_end: Option<u64>,
}

/// The distance from the end of an I/O to the next that most have, by Boyer and Moore's vote.
#[derive(Debug, Clone, Copy, Default)]
struct MajorityGap {
    gap_bytes: i64,
    votes: u64,
    /// Times that the candidate occurred since it became one.
    seen: u64,
}

impl MajorityGap {
    fn add(&mut self, gap_bytes: i64) {
        if self.votes == 0 {
            *self = MajorityGap { gap_bytes, votes: 1, seen: 1 };
        } else if self.gap_bytes == gap_bytes {
            self.votes += 1;
            self.seen += 1;
        } else {
            self.votes -= 1;
        }
    }
}

impl Track {
    /// Adds an I/O, operation `number` of the trace; whether it is a jump.
    pub fn add(&mut self, number: u64, offset_bytes: u64, length_bytes: u64) -> bool {
        let end_bytes = offset_bytes.saturating_add(length_bytes);
        let follows = self.previous_end == Some(offset_bytes);
        let wraps = self.ios > 0
            && !follows
            && offset_bytes == self.begin_bytes
            && self.previous_end == Some(self.end_bytes);
        if self.ios == 0 {
            (self.begin_bytes, self.first) = (offset_bytes, number);
        }
        if let Some(previous_end) = self.previous_end.filter(|_| !wraps) {
            self.gap.add(offset_bytes.wrapping_sub(previous_end).cast_signed());
        }
        self.ios += 1;
        self.bytes = self.bytes.saturating_add(length_bytes);
        self.lengths.add(length_bytes);
        self.begin_bytes = self.begin_bytes.min(offset_bytes);
        self.end_bytes = self.end_bytes.max(end_bytes);
        self.last = number;
        self.sequential += u64::from(follows);
        self.wraps += u64::from(wraps);
        self.previous_end = Some(end_bytes);
        let is_jump = !follows && !wraps;
        if is_jump {
            self.grain_bytes = divisor(self.grain_bytes, offset_bytes);
            if self.run > 0 {
                self.runs.add(self.run);
            }
            self.run = 0;
        }
        self.run += 1;
        is_jump
    }

    /// Adds the I/Os of another file, which the stream serves beside this one.
    pub fn absorb(&mut self, other: &Track) {
        if other.ios == 0 {
            return;
        }
        if self.ios == 0 {
            *self = other.clone();
            return;
        }
        self.ios += other.ios;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.lengths.absorb(&other.lengths);
        self.begin_bytes = self.begin_bytes.min(other.begin_bytes);
        self.end_bytes = self.end_bytes.max(other.end_bytes);
        self.grain_bytes = divisor(self.grain_bytes, other.grain_bytes);
        self.sequential += other.sequential;
        self.wraps += other.wraps;
        self.runs.absorb(&other.runs);
        (self.first, self.last) = (self.first.min(other.first), self.last.max(other.last));
    }

    /// The share (0 to 1) of I/Os that begin where the one before ended, or at the beginning again after the end; the
    /// first, which has none before it, does not count. `None` with fewer than two.
    pub fn sequential_share(&self) -> Option<f64> {
        let counted = self.ios.saturating_sub(1);
        (counted > 0).then(|| (self.sequential + self.wraps).min(counted) as f64 / counted as f64)
    }

    /// The distance from the end of an I/O to the next, in bytes, if nine in ten have it and it is not 0.
    pub fn constant_gap(&self) -> Option<i64> {
        let followed = self.ios.saturating_sub(1 + self.wraps);
        let most = self.gap.seen as f64 >= 0.9 * followed as f64 && followed >= 2;
        (most && self.gap.gap_bytes != 0).then_some(self.gap.gap_bytes)
    }

    /// The length of sequential runs, in I/Os, if nine in ten are of that one.
    pub fn constant_run(&self) -> Option<u64> {
        let (ios, share) = self.runs.mode()?;
        (ios > 1 && share >= 0.9 && self.runs.total() >= 3).then_some(ios)
    }
}

/// The greatest common divisor; of 0 and a number, that number.
pub(crate) fn divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { divisor(right, left % right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(ios: &[(u64, u64)]) -> Track {
        let mut track = Track::default();
        for (number, (offset_bytes, length_bytes)) in ios.iter().enumerate() {
            track.add(number as u64, *offset_bytes, *length_bytes);
        }
        track
    }

    #[test]
    fn a_file_read_twice_is_sequential_throughout() {
        let twice = track(&[(0, 8), (8, 8), (16, 4), (0, 8), (8, 8), (16, 4)]);
        assert_eq!((twice.sequential, twice.wraps, twice.sequential_share()), (4, 1, Some(1.0)));
        assert_eq!((twice.begin_bytes, twice.end_bytes, twice.grain_bytes), (0, 20, 0));
        assert_eq!(track(&[(0, 8)]).sequential_share(), None);
    }

    #[test]
    fn holes_and_backward_steps_are_gaps() {
        assert_eq!(track(&[(0, 4), (6, 4), (12, 4), (18, 4)]).constant_gap(), Some(2));
        assert_eq!(track(&[(12, 4), (8, 4), (4, 4), (0, 4)]).constant_gap(), Some(-8));
        assert_eq!(track(&[(0, 4), (4, 4), (8, 4)]).constant_gap(), None);
        assert_eq!(track(&[(0, 4), (40, 4), (8, 4), (16, 4)]).constant_gap(), None);
    }

    #[test]
    fn runs_of_one_length_are_found() {
        let place = |number: u64| number / 4 * 37 % 11 * 100 + number % 4 * 8;
        let ios: Vec<(u64, u64)> = (0..40).map(|number| (place(number), 8)).collect();
        assert_eq!(track(&ios).constant_run(), Some(4));
        assert_eq!(track(&[(0, 8), (80, 8), (40, 8), (160, 8)]).constant_run(), None);
    }
}
