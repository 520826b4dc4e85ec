//! A buffer of the latencies of completed I/Os of one direction that are not in the statistics yet.
//!
//! Invariant: `note` is called with room left, and `take` returns each noted I/O once, in order.

use super::stamps::Stamps;

/// Capacity of a tally, in I/Os.
const ROOM: usize = 64;

/// Latencies noted one by one and added to the statistics together: sums then stay in registers and are vectorised,
/// which takes a third of the time of adding each I/O alone.
#[derive(Debug)]
pub(crate) struct Tally {
    count: usize,
    submission_ns: [u32; ROOM],
    completion_ns: [u32; ROOM],
}

/// The contents of a tally.
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    /// From generated to issued.
    pub submission_ns: &'a [u32],
    /// From issued to completed.
    pub completion_ns: &'a [u32],
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { count: 0, submission_ns: [0; ROOM], completion_ns: [0; ROOM] }
    }
}

impl Tally {
    /// Notes an I/O; `false`: not noted, because it took longer than the four seconds that a tally can represent.
    ///
    /// Both latencies, whether or not the engine queues: a store costs less than asking.
    #[inline]
    pub(crate) fn note(&mut self, stamps: Stamps) -> bool {
        let index = self.count % ROOM;
        if stamps.total_ns() > u64::from(u32::MAX) {
            return false;
        }
        self.completion_ns[index] = stamps.completion_ns() as u32;
        self.submission_ns[index] = stamps.submission_ns() as u32;
        self.count += 1;
        true
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count == ROOM
    }

    /// Takes everything noted since the last call.
    pub(crate) fn take(&mut self) -> Noted<'_> {
        let count = std::mem::take(&mut self.count);
        Noted { submission_ns: &self.submission_ns[..count], completion_ns: &self.completion_ns[..count] }
    }
}
