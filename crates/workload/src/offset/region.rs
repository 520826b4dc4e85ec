//! One file's region: the position of each direction, and the blocks left to draw.
//!
//! Invariant: positions are in `start_bytes..=end_bytes`.

use fiord_plan::Direction;

use super::order::Order;

/// The place of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
}

/// The part of one file that a job uses.
#[derive(Debug, Clone)]
pub(crate) struct FileRegion {
    start_bytes: u64,
    end_bytes: u64,
    /// Per direction, the end of its last operation. Each direction of a sequential mix has its own position.
    positions: [u64; 3],
    /// Per direction, its last operation's offset.
    last: [u64; 3],
    /// One for each of the job's `Orders`.
    pub(crate) orders: Vec<Order>,
}

impl FileRegion {
    pub(crate) fn new(start_bytes: u64, length_bytes: u64, orders: Vec<Order>) -> FileRegion {
        let end_bytes = start_bytes.saturating_add(length_bytes);
        FileRegion { start_bytes, end_bytes, positions: [start_bytes; 3], last: [start_bytes; 3], orders }
    }

    /// Moves to another part of the file, and restarts there.
    pub(crate) fn move_to(&mut self, start_bytes: u64, end_bytes: u64) {
        (self.start_bytes, self.end_bytes) = (start_bytes, end_bytes);
        self.restart();
    }

    /// Restarts at the beginning.
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

    /// The next position of a direction.
    #[inline]
    pub(crate) fn position(&self, direction: Direction) -> u64 {
        self.positions[direction.index()]
    }

    /// The last offset of a direction.
    #[inline]
    pub(crate) fn last(&self, direction: Direction) -> u64 {
        self.last[direction.index()]
    }

    /// Records an operation at this place.
    #[inline]
    pub(crate) fn advance(&mut self, direction: Direction, place: ByteRange) {
        self.last[direction.index()] = place.offset_bytes;
        self.positions[direction.index()] = place.offset_bytes + place.length_bytes;
    }

    /// Advances a direction without a single operation: for batches of consecutive operations.
    #[inline]
    pub(crate) fn set_position(&mut self, direction: Direction, position_bytes: u64) {
        self.positions[direction.index()] = position_bytes;
    }

    /// The next offset of a sequential direction; `None` at the end of the region.
    ///
    /// Only the end itself ends it. A stride that jumps beyond the end continues at the start, and one that goes below
    /// the start continues that far from the end, as in fio.
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
