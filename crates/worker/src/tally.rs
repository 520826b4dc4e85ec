//! Ended I/Os of one direction on their way into the statistics.
//!
//! Invariant: `note` is called with room left, and what was noted leaves once, in order, by `take`.

use crate::record::Stamps;

/// I/Os a tally holds.
const ROOM: usize = 64;

/// Latencies noted one by one, to be made statistics all at once: sums then stay in registers and are made several at
/// a time, which costs a third of what each I/O would cost alone.
#[derive(Debug)]
pub(crate) struct Tally {
    count: usize,
    bytes: u64,
    submission_ns: [u32; ROOM],
    completion_ns: [u32; ROOM],
}

/// What a tally held.
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    /// Bytes of all of them.
    pub bytes: u64,
    /// From made to issued; meaningless unless asked for when noted.
    pub submission_ns: &'a [u32],
    /// From issued to ended.
    pub completion_ns: &'a [u32],
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { count: 0, bytes: 0, submission_ns: [0; ROOM], completion_ns: [0; ROOM] }
    }
}

impl Tally {
    /// Notes an I/O, with its submission latency if it was `queued`; `false`: not noted, since it took longer than the
    /// four seconds a tally can count.
    #[inline]
    pub(crate) fn note(&mut self, length_bytes: u64, stamps: Stamps, queued: bool) -> bool {
        let index = self.count % ROOM;
        if stamps.total_ns() > u64::from(u32::MAX) {
            return false;
        }
        self.completion_ns[index] = stamps.completion_ns() as u32;
        if queued {
            self.submission_ns[index] = stamps.submission_ns() as u32;
        }
        self.bytes += length_bytes;
        self.count += 1;
        true
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count == ROOM
    }

    /// Everything noted since the last time.
    pub(crate) fn take(&mut self) -> Noted<'_> {
        let (count, bytes) = (std::mem::take(&mut self.count), std::mem::take(&mut self.bytes));
        Noted {
            bytes,
            submission_ns: &self.submission_ns[..count],
            completion_ns: &self.completion_ns[..count],
        }
    }
}
