//! One file's region: where each direction got to, and which blocks are left to draw.
//!
//! Invariant: positions lie in `start_bytes..=end_bytes`.

use fiord_plan::Direction;

use super::order::Order;

/// Where one operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
}

/// The part of one file that a job works on.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    start_bytes: u64,
    end_bytes: u64,
    /// Per direction, behind its last operation. Each direction of a sequential mix goes its own way.
    positions: [u64; 3],
    /// Per direction, its last operation's offset.
    last: [u64; 3],
    /// As many as the job's `Orders`.
    pub(crate) orders: Vec<Order>,
}

impl Region {
    pub(crate) fn new(start_bytes: u64, length_bytes: u64, orders: Vec<Order>) -> Region {
        let end_bytes = start_bytes.saturating_add(length_bytes);
        Region { start_bytes, end_bytes, positions: [start_bytes; 3], last: [start_bytes; 3], orders }
    }

    /// Begins again at the start.
    pub(crate) fn restart(&mut self) {
        self.positions = [self.start_bytes; 3];
        self.last = [self.start_bytes; 3];
    }

    #[inline]
    pub(crate) fn start_bytes(&self) -> u64 {
        self.start_bytes
    }

    #[inline]
    pub(crate) fn length_bytes(&self) -> u64 {
        self.end_bytes - self.start_bytes
    }

    /// Bytes from an offset to the end of the region.
    #[inline]
    pub(crate) fn room_bytes(&self, offset_bytes: u64) -> u64 {
        self.end_bytes.saturating_sub(offset_bytes)
    }

    /// Where a direction goes on.
    #[inline]
    pub(crate) fn position(&self, direction: Direction) -> u64 {
        self.positions[direction.index()]
    }

    /// Where a direction was last.
    #[inline]
    pub(crate) fn last(&self, direction: Direction) -> u64 {
        self.last[direction.index()]
    }

    /// An operation went there.
    #[inline]
    pub(crate) fn advance(&mut self, direction: Direction, place: Place) {
        self.last[direction.index()] = place.offset_bytes;
        self.positions[direction.index()] = place.offset_bytes + place.length_bytes;
    }

    /// Moves a direction on without an operation of its own: for batches behind each other.
    #[inline]
    pub(crate) fn set_position(&mut self, direction: Direction, position_bytes: u64) {
        self.positions[direction.index()] = position_bytes;
    }

    /// The next offset of a sequential direction; `None` when it has come to the end.
    ///
    /// The end itself ends it. A stride that jumps beyond comes in again at the start, and one that goes below the
    /// start comes in again that far from the end, as fio's do.
    #[inline]
    pub(crate) fn next_sequential(&self, direction: Direction, stride_bytes: i64) -> Option<u64> {
        let position = self.position(direction);
        if position >= self.end_bytes {
            return None;
        }
        if stride_bytes == 0 || position == self.start_bytes {
            return Some(position);
        }
        let strided = match position.checked_add_signed(stride_bytes) {
            Some(strided) if strided >= self.start_bytes => strided,
            _ => self.end_bytes.saturating_add_signed(stride_bytes).max(self.start_bytes),
        };
        Some(if strided >= self.end_bytes { self.start_bytes } else { strided })
    }
}
