//! Buffers of the latencies of completed I/Os that are not in the statistics yet, one for each direction.
//!
//! Invariant: every I/O from `first` on that is counted is noted, at its number modulo `ROOM`; a buffer is taken when its
//! last place is filled, so that what it holds is never in two parts.

use fiord_plan::{Direction, PerDirection};
use fiord_stats::Capped;

use super::stamps::Stamps;

/// I/Os in one buffer. Two buffers and the operations generated ahead fit into the first-level cache.
const ROOM: usize = 64;

/// Places in all buffers. With a fourth, unused one a place needs no check.
const PLACES: usize = 4 * ROOM;

/// Latencies by direction. The worker's live counters say how many I/Os there are: there is no count of their own, which
/// each I/O would have to load and to store. Buffers lie one after the other, so that both latencies have the same index.
#[derive(Debug)]
pub(crate) struct Tallies {
    completion_ns: [u32; PLACES],
    submission_ns: [u32; PLACES],
    /// The number of the first I/O that is not in the statistics.
    first: PerDirection<u64>,
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

impl Tallies {
    /// Of I/Os from these numbers on.
    pub(crate) fn starting_at(first: PerDirection<u64>) -> Tallies {
        Tallies { completion_ns: [0; PLACES], submission_ns: [0; PLACES], first }
    }

    /// Notes the I/O of this number if its total latency fits (below 4.3 s).
    ///
    /// Both latencies, whether or not the engine queues: a store costs less than asking.
    #[inline(always)]
    pub(crate) fn note(&mut self, direction: Direction, number: u64, stamps: Stamps) -> Note {
        if !stamps.are_short() {
            return Note::TooLong;
        }
        let index = usize::capped(number) % ROOM;
        let place = (direction.index() * ROOM + index) % PLACES;
        self.completion_ns[place] = (stamps.end_ns.wrapping_sub(stamps.issue_ns) & 0xffff_ffff) as u32;
        self.submission_ns[place] = (stamps.issue_ns.wrapping_sub(stamps.start_ns) & 0xffff_ffff) as u32;
        if index == ROOM - 1 { Note::Full } else { Note::Taken }
    }

    /// Whether all I/Os before this number are in the statistics.
    #[inline]
    pub(crate) fn is_empty(&self, direction: Direction, number: u64) -> bool {
        self.first[direction.index()] == number
    }

    /// Leaves out all I/Os before this number.
    #[inline]
    pub(crate) fn skip_to(&mut self, direction: Direction, number: u64) {
        self.first[direction.index()] = number;
    }

    /// Takes every I/O before this number.
    pub(crate) fn take(&mut self, direction: Direction, number: u64) -> Noted<'_> {
        let first = std::mem::replace(&mut self.first[direction.index()], number);
        let start = direction.index() * ROOM + usize::capped(first) % ROOM;
        let places = start..start + usize::capped(number - first);
        Noted {
            submission_ns: &self.submission_ns[places.clone()],
            completion_ns: &self.completion_ns[places],
        }
    }
}
