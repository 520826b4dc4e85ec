//! A buffer of the latencies of completed I/Os of one direction that are not in the statistics yet.
//!
//! Invariant: every I/O from `first` on that is counted is noted, at its number modulo `ROOM`; the buffer is taken when its
//! last place is filled, so that what it holds is never in two parts.

use super::stamps::Stamps;

/// I/Os in one buffer. Two buffers and the operations generated ahead fit into the first-level cache.
const ROOM: usize = 64;

/// Latencies of one direction. The worker's live counter says how many I/Os there are: there is no count of its own, which
/// each I/O would have to load and to store.
#[derive(Debug)]
pub(crate) struct Tally {
    submission_ns: [u32; ROOM],
    completion_ns: [u32; ROOM],
    /// The number of the first I/O that is not in the statistics.
    first: u64,
}

/// The contents of a tally.
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    /// From generated to issued.
    pub submission_ns: &'a [u32],
    /// From issued to completed.
    pub completion_ns: &'a [u32],
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    Taken,
    /// It filled the last place: the tally has to be taken.
    Full,
    /// The latency does not fit; nothing is noted.
    TooLong,
}

impl Tally {
    /// Of I/Os from this number on.
    pub(crate) fn starting_at(first: u64) -> Tally {
        Tally { submission_ns: [0; ROOM], completion_ns: [0; ROOM], first }
    }

    /// Notes the I/O of this number if its total latency fits (below 4.3 s).
    ///
    /// Both latencies, whether or not the engine queues: a store costs less than asking.
    #[inline(always)]
    pub(crate) fn note(&mut self, number: u64, stamps: Stamps) -> Note {
        if stamps.total_ns() > u64::from(u32::MAX) {
            return Note::TooLong;
        }
        let index = number as usize % ROOM;
        self.completion_ns[index] = stamps.completion_ns() as u32;
        self.submission_ns[index] = stamps.submission_ns() as u32;
        if index == ROOM - 1 { Note::Full } else { Note::Taken }
    }

    /// Whether all I/Os before this number are in the statistics.
    #[inline]
    pub(crate) fn is_empty(&self, number: u64) -> bool {
        self.first == number
    }

    /// Leaves out all I/Os before this number.
    #[inline]
    pub(crate) fn skip_to(&mut self, number: u64) {
        self.first = number;
    }

    /// Takes every I/O before this number.
    pub(crate) fn take(&mut self, number: u64) -> Noted<'_> {
        let start = self.first as usize % ROOM;
        let noted = start..start + (number - self.first) as usize;
        self.first = number;
        Noted { submission_ns: &self.submission_ns[noted.clone()], completion_ns: &self.completion_ns[noted] }
    }
}
