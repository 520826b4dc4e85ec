//! The ledger of a verified job: what has been written and is still to be read back.
//!
//! Invariant: a piece is returned for reading only if the last write of every byte of it was its own, has completed,
//! and no other is in flight there. Nothing is allocated after `new`.

use std::collections::VecDeque;

use fiord_plan::{Access, BlockSizes, Direction, FileIndex, Files, Op};
use fiord_stats::Capped;

use crate::error::WorkloadError;
use crate::zoned::divisor;

/// Set in a cell while an operation to it is in flight.
const BUSY: u32 = 1 << 31;

/// Set in a cell that was trimmed since its last write.
const TRIMMED: u32 = 1 << 30;

/// Number of different marks. A mark is the number of a write plus 1, modulo this number.
pub(super) const MARKS: u64 = TRIMMED as u64 - 1;

/// Value of a cell whose contents are unknown.
const UNKNOWN: u32 = 0;

/// The length of units that blocks may share, unless blocks are shorter.
const SHARED_UNIT_BYTES: u64 = 512;

/// Entries of the log beyond one for each unit, so that it is seldom compacted.
const SLACK: usize = 1024;

/// A write to be read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoggedWrite {
    pub offset_bytes: u64,
    /// Number of the write.
    pub number: u64,
    pub length_bytes: u32,
    pub file: FileIndex,
}

impl LoggedWrite {
    pub(super) fn of(op: &Op, number: u64) -> LoggedWrite {
        debug_assert!(u32::try_from(op.length_bytes).is_ok(), "the plan refuses to verify longer blocks");
        let length_bytes = u32::capped(op.length_bytes);
        LoggedWrite { offset_bytes: op.offset_bytes, number, length_bytes, file: op.file }
    }
}

/// What is to be done about writes that have completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Todo {
    /// To be read back.
    ReadBack,
    /// To be trimmed first.
    Trim,
}

/// Where the cells of a file are.
#[derive(Debug, Clone, Copy)]
struct Span {
    first_cell: usize,
    start_bytes: u64,
    length_bytes: u64,
}

/// What is known of the front of a unit that two blocks may share. No block is shorter than a unit, so each covers the
/// first or the last byte of every unit that it touches.
#[derive(Debug, Clone, Copy, Default)]
struct Front {
    /// The mark of the last write of the unit's first byte, and whether it was trimmed since.
    mark: u32,
    /// Where the bytes of that write end in the unit.
    end_bytes: u16,
    /// Where those of the write that covers the last byte begin.
    back_bytes: u16,
}

/// The part of a unit that an operation covers.
#[derive(Debug, Clone, Copy)]
struct Part {
    unit: usize,
    start_bytes: u64,
    end_bytes: u64,
}

/// The last write of each unit of the files, and the log of writes to be read back.
#[derive(Debug)]
pub(super) struct Ledger {
    spans: Vec<Span>,
    unit_bytes: u64,
    has_zones: bool,
    /// By unit: the mark of the last write of its last byte, whether it was trimmed since, and whether an operation to
    /// the unit is in flight.
    cells: Box<[u32]>,
    /// By unit, its front; none if no two blocks share a unit.
    fronts: Box<[Front]>,
    log: VecDeque<LoggedWrite>,
    /// Writes to be trimmed, and then to be read back; never any if no job trims.
    to_trim: VecDeque<LoggedWrite>,
}

impl Ledger {
    /// Over the regions of these files, with room for writes that are to be trimmed if the job `trims`. Where blocks
    /// begin in zones, these are written from multiples of `zone_align_bytes` on.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn new(
        access: &Access,
        files: &Files,
        trims: bool,
        zone_align_bytes: u64,
    ) -> Result<Ledger, WorkloadError> {
        let (unit_bytes, is_shared) = unit_bytes(access, zone_align_bytes);
        let mut spans = Vec::with_capacity(files.list.len());
        let mut count = 0;
        for file in &files.list {
            let (start_bytes, length_bytes) = (file.offset_bytes, file.length_bytes);
            spans.push(Span { first_cell: count, start_bytes, length_bytes });
            count += usize::capped(length_bytes.div_ceil(unit_bytes));
        }
        let no_room = || WorkloadError::LedgerTooLarge { blocks: count as u64 };
        // A reservation that fails is an error here; zeroed memory is taken from the system page by page as it is used.
        Vec::<u32>::new().try_reserve_exact(count).map_err(|_| no_room())?;
        let cells = vec![UNKNOWN; count].into_boxed_slice();
        let fronts = if is_shared { count } else { 0 };
        Vec::<Front>::new().try_reserve_exact(fronts).map_err(|_| no_room())?;
        let fronts = vec![Front::default(); fronts].into_boxed_slice();
        let (mut log, mut to_trim) = (VecDeque::new(), VecDeque::new());
        let length = count + count / 8 + SLACK;
        log.try_reserve_exact(length).map_err(|_| no_room())?;
        to_trim.try_reserve_exact(if trims { length } else { 0 }).map_err(|_| no_room())?;
        Ok(Ledger { spans, unit_bytes, has_zones: zone_align_bytes > 0, cells, fronts, log, to_trim })
    }

    /// Whether every write of this length replaces one of the same length, or none.
    pub(super) fn replaces_whole_blocks_of(&self, bytes: u64) -> bool {
        self.fronts.is_empty() && self.unit_bytes == bytes
    }

    /// Whether `op` may be issued: no operation in flight overlaps it.
    pub(super) fn is_free(&self, op: &Op) -> bool {
        self.cells[self.range(op)].iter().all(|cell| cell & BUSY == 0)
    }

    /// The mark of the write to the range of `op`, where both have one length, if it has completed and was not trimmed since.
    pub(super) fn mark_under(&self, op: &Op) -> Option<u32> {
        let mut parts = self.parts(op.file, op.offset_bytes, op.length_bytes);
        let mark = self.marks(parts.clone().next()?).into_iter().flatten().next()? & !BUSY;
        let is_written = mark != UNKNOWN && mark & TRIMMED == 0;
        (is_written && parts.all(|part| self.is_marked(part, mark, BUSY) && self.is_all_of_it(part)))
            .then_some(mark)
    }

    /// A write of this number is about to be issued. In zones, one that shares units with others is not read back:
    /// another job may have left the write pointer of a zone anywhere.
    pub(super) fn begin_write(&mut self, op: &Op, number: u64) {
        let mark = if self.is_of_whole_units(op) { mark_of(number) } else { UNKNOWN };
        self.set(op, mark | BUSY);
    }

    /// Sets the mark of a range, and forgets blocks of which it covers a part.
    fn set(&mut self, op: &Op, mark: u32) {
        if self.fronts.is_empty() {
            let range = self.range(op);
            return self.cells[range].fill(mark);
        }
        for part in self.parts(op.file, op.offset_bytes, op.length_bytes) {
            let (has_first, has_last) = self.unit_ends(part);
            let (front, cell) = (&mut self.fronts[part.unit], &mut self.cells[part.unit]);
            // Of a unit that blocks share: at most `SHARED_UNIT_BYTES`.
            let (start_bytes, end_bytes) = (u16::capped(part.start_bytes), u16::capped(part.end_bytes));
            let (old_end_bytes, old_back_bytes) = (front.end_bytes, front.back_bytes);
            if has_first {
                (front.mark, front.end_bytes) = (mark & !BUSY, end_bytes);
            } else if old_end_bytes > start_bytes {
                front.mark = UNKNOWN;
            }
            if has_last {
                (*cell, front.back_bytes) = (mark, start_bytes);
            } else {
                let kept = if has_first && old_back_bytes >= end_bytes { *cell & !BUSY } else { UNKNOWN };
                *cell = kept | (mark & BUSY);
            }
        }
    }

    /// Whether no other operation can share a unit with this one.
    fn is_of_whole_units(&self, op: &Op) -> bool {
        let Some(span) = self.spans.get(op.file as usize) else { return true };
        let first_bytes = op.offset_bytes.saturating_sub(span.start_bytes);
        let end_bytes = first_bytes + op.length_bytes;
        let is_whole = |bytes: u64| bytes.is_multiple_of(self.unit_bytes);
        !self.has_zones || is_whole(first_bytes) && is_whole(end_bytes)
    }

    /// A range was emptied under the job, such as a zone by a reset: nothing is known of it any more, but operations to
    /// it may be in flight.
    pub(super) fn empty(&mut self, file: FileIndex, offset_bytes: u64, length_bytes: u64) {
        let range = self.range_of(file, offset_bytes, length_bytes);
        self.cells[range].iter_mut().for_each(|cell| *cell &= BUSY);
    }

    /// An operation other than a write is about to be issued.
    pub(super) fn begin(&mut self, op: &Op) {
        let range = self.range(op);
        self.cells[range].iter_mut().for_each(|cell| *cell |= BUSY);
    }

    /// What `begin` began has completed or failed.
    pub(super) fn end(&mut self, op: &Op) {
        let range = self.range(op);
        self.cells[range].iter_mut().for_each(|cell| *cell &= !BUSY);
    }

    /// A write has completed, with which this is to be done.
    pub(super) fn wrote(&mut self, op: &Op, number: u64, todo: Option<Todo>) {
        self.end(op);
        if let Some(todo) = todo {
            self.note(LoggedWrite::of(op, number), todo);
        }
    }

    /// The range of the write of this number is about to be trimmed.
    pub(super) fn begin_trim(&mut self, op: &Op) {
        self.begin(op);
        for part in self.parts(op.file, op.offset_bytes, op.length_bytes) {
            let (has_first, has_last) = self.unit_ends(part);
            if has_last {
                self.cells[part.unit] |= TRIMMED;
            }
            if let Some(front) = self.fronts.get_mut(part.unit).filter(|_| has_first) {
                front.mark |= TRIMMED;
            }
        }
    }

    /// That trim has completed; its range is to be read back if `is_logged`.
    pub(super) fn trimmed(&mut self, op: &Op, number: u64, is_logged: bool) {
        self.end(op);
        if is_logged {
            self.note(LoggedWrite::of(op, number), Todo::ReadBack);
        }
    }

    /// Whether a piece was trimmed since it was written.
    pub(super) fn is_trimmed(&self, piece: &LoggedWrite) -> bool {
        let mut parts = self.parts(piece.file, piece.offset_bytes, u64::from(piece.length_bytes));
        parts.any(|part| self.marks(part).into_iter().flatten().any(|mark| mark & TRIMMED != 0))
    }

    fn note(&mut self, piece: LoggedWrite, todo: Todo) {
        if self.list(todo).len() == self.list(todo).capacity() {
            self.compact(todo);
        }
        // Each remaining piece owns a unit, so there is room now.
        let list = self.list(todo);
        if list.len() < list.capacity() {
            list.push_back(piece);
        }
    }

    fn list(&mut self, todo: Todo) -> &mut VecDeque<LoggedWrite> {
        match todo {
            Todo::ReadBack => &mut self.log,
            Todo::Trim => &mut self.to_trim,
        }
    }

    /// A write or a trim has failed, or the job's own trim has covered a range: its contents are unknown.
    pub(super) fn forget(&mut self, op: &Op) {
        self.set(op, UNKNOWN);
    }

    /// The files were removed, with nothing in flight.
    pub(super) fn forget_all(&mut self) {
        self.cells.fill(UNKNOWN);
        self.fronts.fill(Front::default());
        self.log.clear();
        self.to_trim.clear();
    }

    /// Writes to be read back, now or after they are trimmed; among them some that were overwritten since.
    pub(super) fn logged(&self) -> u64 {
        (self.log.len() + self.to_trim.len()) as u64
    }

    /// Whether writes wait to be trimmed; perhaps all of them were overwritten since.
    pub(super) fn has_blocks_to_trim(&self) -> bool {
        !self.to_trim.is_empty()
    }

    /// The next piece about which this is to be done, without taking it. Those that were overwritten are dropped.
    pub(super) fn peek(&mut self, todo: Todo) -> Option<LoggedWrite> {
        while let Some(piece) = self.list(todo).front().copied() {
            if self.is_last(&piece) {
                return Some(piece);
            }
            self.list(todo).pop_front();
        }
        None
    }

    /// Removes the piece that `peek` returned.
    pub(super) fn take(&mut self, todo: Todo) {
        self.list(todo).pop_front();
    }

    /// Whether no later write went to this piece.
    fn is_last(&self, piece: &LoggedWrite) -> bool {
        let mark = mark_of(piece.number);
        let mut parts = self.parts(piece.file, piece.offset_bytes, u64::from(piece.length_bytes));
        parts.all(|part| self.is_marked(part, mark, BUSY | TRIMMED))
    }

    /// The marks of the first and the last byte of a unit, of those that this part covers.
    fn marks(&self, part: Part) -> [Option<u32>; 2] {
        let (has_first, has_last) = self.unit_ends(part);
        let front = self.fronts.get(part.unit).filter(|_| has_first).map(|front| front.mark);
        [front, has_last.then(|| self.cells[part.unit])]
    }

    /// Whether the bytes of this part have this mark, apart from these flags.
    fn is_marked(&self, part: Part, mark: u32, flags: u32) -> bool {
        let [front, back] = self.marks(part);
        let is_mark = |found: u32| found & !flags == mark;
        (front.is_some() || back.is_some()) && front.is_none_or(is_mark) && back.is_none_or(is_mark)
    }

    /// Whether the write of this part's mark covers no more of the unit than the part.
    fn is_all_of_it(&self, part: Part) -> bool {
        let Some(front) = self.fronts.get(part.unit) else { return true };
        match self.unit_ends(part) {
            (true, false) => u64::from(front.end_bytes) == part.end_bytes,
            (false, true) => u64::from(front.back_bytes) == part.start_bytes,
            (true, true) | (false, false) => true,
        }
    }

    /// Whether a part covers the first and the last byte of its unit.
    fn unit_ends(&self, part: Part) -> (bool, bool) {
        match self.fronts.is_empty() {
            true => (true, true),
            false => (part.start_bytes == 0, part.end_bytes == self.unit_bytes),
        }
    }

    /// The units of a range of a file, with what it covers of each.
    fn parts(
        &self,
        file: FileIndex,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> impl Iterator<Item = Part> + Clone + use<> {
        let unit_bytes = self.unit_bytes;
        let span = self.spans.get(file as usize).copied();
        let span = span.unwrap_or(Span { first_cell: 0, start_bytes: 0, length_bytes: 0 });
        let first_bytes = offset_bytes.saturating_sub(span.start_bytes).min(span.length_bytes);
        let end_bytes = (first_bytes + length_bytes).min(span.length_bytes);
        // Nothing follows the end of the file's region, so that what reaches it covers its last unit to the end.
        let end_bytes =
            if end_bytes == span.length_bytes { end_bytes.next_multiple_of(unit_bytes) } else { end_bytes };
        (first_bytes / unit_bytes..end_bytes.div_ceil(unit_bytes)).map(move |index| {
            let at_bytes = index * unit_bytes;
            Part {
                unit: span.first_cell + usize::capped(index),
                start_bytes: first_bytes.saturating_sub(at_bytes),
                end_bytes: (end_bytes - at_bytes).min(unit_bytes),
            }
        })
    }

    /// Drops pieces that were overwritten.
    fn compact(&mut self, todo: Todo) {
        let mut list = std::mem::take(self.list(todo));
        list.retain(|piece| self.is_last(piece));
        *self.list(todo) = list;
    }

    fn range(&self, op: &Op) -> std::ops::Range<usize> {
        self.range_of(op.file, op.offset_bytes, op.length_bytes)
    }

    /// The cells of a range of a file.
    fn range_of(&self, file: FileIndex, offset_bytes: u64, length_bytes: u64) -> std::ops::Range<usize> {
        let Some(span) = self.spans.get(file as usize) else { return 0..0 };
        let first_bytes = offset_bytes.saturating_sub(span.start_bytes).min(span.length_bytes);
        let end_bytes = (first_bytes + length_bytes).min(span.length_bytes);
        let cell = |bytes: u64| span.first_cell + usize::capped(bytes);
        cell(first_bytes / self.unit_bytes)..cell(end_bytes.div_ceil(self.unit_bytes))
    }
}

/// What a cell holds for a write of this number: never `UNKNOWN`, never `BUSY`, never `TRIMMED`.
fn mark_of(number: u64) -> u32 {
    (number % MARKS) as u32 + 1
}

/// The length of units, and whether blocks may share them: the length that divides the place and the length of every
/// operation, where that is no less than a sector or a block. Blocks in zones that share a unit count as overlapping.
fn unit_bytes(access: &Access, zone_align_bytes: u64) -> (u64, bool) {
    let used = Direction::ALL.into_iter().filter(|direction| access.pattern.includes(*direction));
    let mut unit = divisor(access.stride_bytes.unsigned_abs(), zone_align_bytes);
    let mut least_bytes = SHARED_UNIT_BYTES;
    for direction in used {
        let sizes = &access.block_sizes[direction.index()];
        let step = match sizes {
            BlockSizes::Range { .. } if access.unaligned_sizes => 1,
            BlockSizes::Fixed(bytes) | BlockSizes::Range { min: bytes, .. } => *bytes,
            BlockSizes::Split(shares) => shares.iter().fold(0, |unit, share| divisor(unit, share.0)),
        };
        least_bytes = least_bytes.min(sizes.min());
        unit = divisor(unit, step);
        if access.random {
            unit = divisor(unit, access.align_bytes[direction.index()]);
        }
    }
    match unit >= least_bytes {
        true => (unit, false),
        false if zone_align_bytes > 0 => (SHARED_UNIT_BYTES, false),
        false => (least_bytes.max(1), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Action;
    use proptest::prelude::*;

    const LENGTH_BYTES: u64 = 5_000;

    /// A ledger of one file, whose blocks may share units of 512 bytes.
    fn shared() -> Ledger {
        let count = LENGTH_BYTES.div_ceil(512) as usize;
        Ledger {
            spans: vec![Span { first_cell: 0, start_bytes: 0, length_bytes: LENGTH_BYTES }],
            unit_bytes: 512,
            has_zones: false,
            cells: vec![UNKNOWN; count].into(),
            fronts: vec![Front::default(); count].into(),
            log: VecDeque::with_capacity(SLACK),
            to_trim: VecDeque::new(),
        }
    }

    fn write(offset_bytes: u64, length_bytes: u64) -> Op {
        Op::new(Action::Write, 0, offset_bytes, length_bytes.min(LENGTH_BYTES - offset_bytes))
    }

    #[test]
    fn blocks_that_share_a_unit_are_all_read_back() {
        let mut ledger = shared();
        for (number, offset_bytes) in [(0, 0), (1, 1002), (2, 2004), (3, 3006)] {
            let op = write(offset_bytes, 1000);
            assert!(ledger.is_free(&op));
            ledger.begin_write(&op, number);
            assert!(!ledger.is_free(&op));
            ledger.wrote(&op, number, Some(Todo::ReadBack));
        }
        for number in 0..4 {
            assert_eq!(ledger.peek(Todo::ReadBack).map(|piece| piece.number), Some(number));
            ledger.take(Todo::ReadBack);
        }
    }

    #[test]
    fn nothing_is_read_back_from_files_that_were_removed() {
        let mut ledger = shared();
        let op = write(0, 1000);
        ledger.begin_write(&op, 7);
        ledger.wrote(&op, 7, Some(Todo::ReadBack));
        let piece = LoggedWrite::of(&op, 7);
        assert!(ledger.is_last(&piece) && ledger.logged() == 1);
        ledger.forget_all();
        assert!(!ledger.is_last(&piece) && ledger.logged() == 0 && ledger.is_free(&op));
    }

    proptest! {
        /// Against the last write of each byte: a block is read back if all of its bytes are its own, and no other is.
        #[test]
        fn the_last_write_of_every_byte_is_known(
            steps in prop::collection::vec((0..LENGTH_BYTES - 512, 512..1_600_u64, 0..8_u8), 1..60),
        ) {
            let mut ledger = shared();
            let mut model = vec![None; LENGTH_BYTES as usize];
            let mut trimmed = vec![false; LENGTH_BYTES as usize];
            let mut pieces = Vec::new();
            for (number, (offset_bytes, length_bytes, kind)) in steps.into_iter().enumerate() {
                let op = write(offset_bytes, length_bytes);
                let range = op.offset_bytes as usize..(op.offset_bytes + op.length_bytes) as usize;
                prop_assert!(ledger.is_free(&op));
                let is_forgotten = kind == 0;
                ledger.begin_write(&op, number as u64);
                if is_forgotten {
                    ledger.forget(&op);
                } else {
                    ledger.end(&op);
                }
                model[range.clone()].fill((!is_forgotten).then_some(number));
                trimmed[range.clone()].fill(false);
                let piece = LoggedWrite::of(&op, number as u64);
                if kind == 1 {
                    ledger.begin_trim(&op);
                    ledger.end(&op);
                    trimmed[range.clone()].fill(true);
                }
                pieces.push((piece, range, number));
                for (piece, range, number) in &pieces {
                    let is_own = model[range.clone()].iter().all(|last| *last == Some(*number));
                    prop_assert_eq!(ledger.is_last(piece), is_own, "write {} after write {}", number, op.sequence);
                    if is_own {
                        let is_trimmed = trimmed[range.start];
                        prop_assert_eq!(ledger.is_trimmed(piece), is_trimmed);
                        let read = Op::new(Action::Read, 0, piece.offset_bytes, u64::from(piece.length_bytes));
                        let mark = (!is_trimmed).then(|| mark_of(*number as u64));
                        prop_assert_eq!(ledger.mark_under(&read), mark);
                        // A read of the same length from the next byte on covers bytes of another write.
                        let next = Op { offset_bytes: read.offset_bytes + 1, ..read };
                        if next.offset_bytes + next.length_bytes <= LENGTH_BYTES {
                            prop_assert_eq!(ledger.mark_under(&next), None);
                        }
                    }
                }
            }
        }
    }
}
