//! Where the operations of a queue lie, to find those that the next one may overlap.
//!
//! Invariant: a place counts in the cell of its first byte and in that of its last, or as wide if there are others between
//! them. So two that overlap share a cell, unless one is wide.

use fiord_plan::{FileIndex, Op};

/// Cells per slot: one in so many operations shares a cell with another that it does not overlap.
const CELLS_PER_SLOT: usize = 16;

/// The shortest cell is one of 4 KiB.
const CELL_BITS_MIN: u32 = 12;

/// Where an operation lies: all that is looked at of most others in flight before one that may not overlap them.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    file: FileIndex,
    start_bytes: u64,
    end_bytes: u64,
    cells: Cells,
}

/// The cells that a place touches, by their numbers in the table.
#[derive(Debug, Clone, Copy, Default)]
enum Cells {
    /// None: it ends at 0, and meets no other.
    #[default]
    None,
    /// Those of its first and its last byte, which may be one.
    Two([usize; 2]),
    /// Others between them.
    Many,
}

impl Place {
    /// Whether the operations may overlap. All is compared, because a branch for each takes longer.
    #[inline]
    fn may_meet(&self, other: &Place) -> bool {
        (self.start_bytes < other.end_bytes)
            & (other.start_bytes < self.end_bytes)
            & (self.file == other.file)
    }
}

/// Of each slot, where the last operation lies that was not to overlap others: also after that has completed.
pub(super) struct Places {
    of_slots: Box<[Place]>,
    /// How many places touch each cell of the files, by a hash. A power of two.
    cells: Box<[u32]>,
    /// Length of a cell, as a power of two: that of the first operation. 0 before that.
    cell_bits: u32,
    /// Places that touch more than two cells.
    wide: u32,
}

impl Places {
    /// Of `depth` slots that had no operation yet.
    pub(super) fn new(depth: usize) -> Places {
        Places {
            of_slots: vec![Place::default(); depth].into(),
            cells: vec![0; (depth * CELLS_PER_SLOT).next_power_of_two()].into(),
            cell_bits: 0,
            wide: 0,
        }
    }

    /// Puts `op` into a slot, whose last operation has completed; `false`, with the slot empty: it overlaps the operation of
    /// another slot, of those for which `overlaps` is true.
    pub(super) fn enter(&mut self, index: usize, op: &Op, overlaps: impl Fn(usize) -> bool) -> bool {
        if self.cell_bits == 0 {
            self.cell_bits = op.length_bytes.clamp(1, 1 << 40).next_power_of_two().ilog2().max(CELL_BITS_MIN);
        }
        let left = std::mem::take(&mut self.of_slots[index]);
        self.count(&left, u32::wrapping_sub);
        let place = self.place_of(op);
        let is_alone = self.wide == 0
            && match place.cells {
                Cells::None => true,
                Cells::Two([first, last]) => self.cells[first] | self.cells[last] == 0,
                Cells::Many => false,
            };
        let meets = |(other, it): (usize, &Place)| it.may_meet(&place) && overlaps(other);
        if !is_alone && self.of_slots.iter().enumerate().any(meets) {
            return false;
        }
        self.of_slots[index] = place;
        self.count(&place, u32::wrapping_add);
        true
    }

    /// Adds a place to what is counted, or takes it away.
    #[inline]
    fn count(&mut self, place: &Place, change: fn(u32, u32) -> u32) {
        match place.cells {
            Cells::None => {}
            Cells::Two([first, last]) => {
                self.cells[first] = change(self.cells[first], 1);
                self.cells[last] = change(self.cells[last], 1);
            }
            Cells::Many => self.wide = change(self.wide, 1),
        }
    }

    #[inline]
    fn place_of(&self, op: &Op) -> Place {
        let (start_bytes, file) = (op.offset_bytes, op.file);
        let end_bytes = start_bytes.saturating_add(op.length_bytes);
        let last_byte = end_bytes.saturating_sub(1).max(start_bytes);
        let numbers = [start_bytes >> self.cell_bits, last_byte >> self.cell_bits];
        let hash = |number: u64| {
            let mixed = (number ^ (u64::from(file) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 32) as usize & (self.cells.len() - 1)
        };
        let cells = match numbers[1] - numbers[0] {
            _ if end_bytes == 0 => Cells::None,
            0 => Cells::Two([hash(numbers[0]); 2]),
            1 => Cells::Two(numbers.map(hash)),
            2.. => Cells::Many,
        };
        Place { file, start_bytes, end_bytes, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Action;
    use fiord_stats::Random;

    #[test]
    fn it_finds_what_a_comparison_with_each_operation_finds() {
        const DEPTH: usize = 8;
        // Lengths of the first operation and of the others, and where they may begin: of less than a cell to many.
        for (first_bytes, most_bytes, room_bytes) in [
            (4096, 4096, 1 << 17),
            (4096, 9000, 1 << 20),
            (512, 1 << 16, 1 << 21),
            (1 << 16, 1 << 17, 1 << 23),
        ] {
            let (mut places, mut random) = (Places::new(DEPTH), Random::new(first_bytes));
            let mut flights: [Option<Op>; DEPTH] = [None; DEPTH];
            let mut found = [0; 2];
            for step in 0..20_000 {
                let index = random.below(DEPTH as u64) as usize;
                // Others may have completed as well, and keep their places.
                flights[index] = None;
                flights[random.below(DEPTH as u64) as usize] = None;
                let length_bytes = if step == 0 { first_bytes } else { random.below(most_bytes + 1) };
                let file = random.below(2) as FileIndex;
                let op = Op::new(Action::Write, file, random.below(room_bytes), length_bytes);
                let overlaps = |other: usize| flights[other].is_some_and(|other| other.overlaps(&op));
                let expected = (0..DEPTH).any(overlaps);
                assert_eq!(places.enter(index, &op, overlaps), !expected, "{op:?} {flights:?}");
                found[usize::from(expected)] += 1;
                if !expected {
                    flights[index] = Some(op);
                }
            }
            assert!(found.iter().all(|count| *count > 100), "{found:?} of {most_bytes}");
        }
    }

    #[test]
    fn nothing_is_left_in_the_cells_when_places_are_given_up() {
        let mut places = Places::new(4);
        for offset_bytes in [0, 5000, u64::MAX - 10, 1 << 30] {
            for (index, length_bytes) in [4096, 4097, 1 << 20, 0].into_iter().enumerate() {
                places.enter(index, &Op::new(Action::Write, 0, offset_bytes, length_bytes), |_| false);
            }
        }
        (0..4).for_each(|index| assert!(places.enter(index, &Op::new(Action::Sync, 0, 0, 0), |_| true)));
        assert_eq!((places.cells.iter().sum::<u32>(), places.wide), (0, 0));
    }
}
