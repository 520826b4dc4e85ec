//! The stream of operations of one job.
//!
//! Invariant: the stream does not depend on how it is cut into batches, and after `new` nothing is allocated.

use std::fmt;

use fiord_plan::job::Limits;
use fiord_plan::{Access, Action, Direction, FileIndex, Files, Op, Pattern};

use crate::barrier::BarrierCounter;
use crate::direction::Directions;
use crate::files::{Retired, Service, Turn};
use crate::offset::order::Order;
use crate::offset::{Placer, Step};
use crate::passes::Passes;

/// Why there is no stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadError {
    /// The job has no file.
    NoFiles,
    /// A block size is 0.
    EmptyBlock(Direction),
    /// The map of blocks does not fit into memory.
    MapTooLarge {
        /// The file it is for.
        file: FileIndex,
        /// Blocks of the file.
        blocks: u64,
    },
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::NoFiles => write!(f, "the job has no file"),
            WorkloadError::EmptyBlock(direction) => {
                write!(f, "the block size for {}s is 0", direction.name())
            }
            WorkloadError::MapTooLarge { file, blocks } => {
                write!(f, "no memory for the map of the {blocks} blocks of file {file}; see softrandommap")
            }
        }
    }
}

impl std::error::Error for WorkloadError {}

/// All operations of one job, in order.
#[derive(Debug, Clone)]
pub struct Stream {
    shape: Shape,
    pattern: Pattern,
    directions: Directions,
    placer: Placer,
    service: Service,
    barriers: BarrierCounter,
    passes: Passes,
    /// The write that a trim is followed by.
    owed: Option<Op>,
    /// Drawn for an operation that has not found its file yet.
    request: Option<(Direction, Step)>,
}

/// Which loop makes the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One file, one direction, one length, behind each other.
    Sequential { direction: Direction, length_bytes: u64 },
    /// One file, one length, each block once.
    Permuted { length_bytes: u64 },
    /// One file, one length, anywhere.
    Drawn { length_bytes: u64 },
    /// Anything.
    General,
}

impl Stream {
    /// The stream of a job over its files' regions.
    ///
    /// # Errors
    /// What keeps it from having one.
    pub fn new(access: &Access, files: &Files, limits: &Limits) -> Result<Stream, WorkloadError> {
        if files.list.is_empty() {
            return Err(WorkloadError::NoFiles);
        }
        let used = |direction: &Direction| access.pattern.includes(*direction);
        let shortest = |direction: Direction| access.block_sizes[direction.index()].min();
        if let Some(direction) =
            Direction::ALL.into_iter().filter(used).find(|direction| shortest(*direction) == 0)
        {
            return Err(WorkloadError::EmptyBlock(direction));
        }
        let shortest_bytes = Direction::ALL.into_iter().filter(used).map(shortest).min().unwrap_or(1);
        let barriers = BarrierCounter::new(access.barriers, files.list.len());
        let placer = Placer::new(access, files)?;
        Ok(Stream {
            shape: shape(access, files, &placer, &barriers),
            pattern: access.pattern,
            directions: Directions::new(access.pattern, access.read_percent, access.seed),
            placer,
            service: Service::new(access.service, files.list.len(), files.open_at_once, access.seed),
            barriers,
            passes: Passes::new(*limits, access.pattern == Pattern::TrimThenWrite, shortest_bytes),
            owed: None,
            request: None,
        })
    }

    /// Appends at most `room` operations and returns how many; 0 only when the job has issued all it should.
    ///
    /// A batch ends where a pass ends and where the set of open files changes, so that what the getters say holds
    /// for all of it. Nothing is allocated while `ops` has capacity.
    pub fn fill(&mut self, ops: &mut Vec<Op>, room: usize) -> usize {
        let before = ops.len();
        while ops.len() == before && room > 0 && !self.passes.has_ended() {
            match self.shape {
                Shape::Sequential { direction, length_bytes } => {
                    self.fill_sequential(ops, room, direction, length_bytes)
                }
                Shape::Permuted { length_bytes } => self.fill_permuted(ops, room, length_bytes),
                Shape::Drawn { length_bytes } => self.fill_drawn(ops, room, length_bytes),
                Shape::General => self.fill_any(ops, room),
            }
            if ops.len() == before {
                self.end_pass();
            }
        }
        ops.len() - before
    }

    /// Whether each operation's direction is drawn.
    pub fn is_mixed(&self) -> bool {
        self.pattern == Pattern::Mixed
    }

    /// From the next `fill` on, what stands for a write and for a read that is drawn: rates may hold one of them back.
    pub fn steer(&mut self, either: [Direction; 2]) {
        self.directions.steer(either);
    }

    /// Passes begun, from 1: how often the files are gone through (`loops`, `io_size`, `time_based`).
    pub fn passes_begun(&self) -> u64 {
        self.passes.begun()
    }

    /// Bytes of all operations so far.
    pub fn issued_bytes(&self) -> u64 {
        self.passes.issued_bytes()
    }

    /// Bytes the job transfers in the end if its files have room for them; `None` when only time ends it.
    pub fn total_bytes(&self) -> Option<u64> {
        self.passes.total_bytes()
    }

    /// Changes when other files are to be open than before; never, when all may be open at once.
    pub fn open_generation(&self) -> u64 {
        self.service.generation()
    }

    /// The files to have open, never more than may be: to be looked at before the first batch, and after each that
    /// changed the generation, before its operations are issued. The others may be closed once nothing of them is
    /// in flight.
    pub fn open_files(&self) -> impl Iterator<Item = FileIndex> + '_ {
        self.service.open()
    }

    fn fill_sequential(&mut self, ops: &mut Vec<Op>, room: usize, direction: Direction, length_bytes: u64) {
        let region = self.placer.region_mut(0);
        let first = region.position(direction);
        let count = (region.room_bytes(first) / length_bytes)
            .min(self.passes.ops_left(length_bytes))
            .min(room as u64);
        ops.extend(
            (0..count).map(|index| transfer(direction, 0, first + index * length_bytes, length_bytes)),
        );
        region.set_position(direction, first + count * length_bytes);
        self.passes.count(count, count * length_bytes);
    }

    fn fill_permuted(&mut self, ops: &mut Vec<Op>, room: usize, length_bytes: u64) {
        let region = self.placer.region_mut(0);
        let start_bytes = region.start_bytes();
        let [Order::Permutation(permutation)] = &mut region.orders[..] else { return };
        let mut left = permutation.left().min(self.passes.ops_left(length_bytes)).min(room as u64) as usize;
        self.passes.count(left as u64, left as u64 * length_bytes);
        let mut blocks = [0; 64];
        while left > 0 {
            let batch = &mut blocks[..left.min(64)];
            left -= batch.len();
            permutation.take(batch);
            // By value: what is behind a reference is loaded again after each operation that is stored.
            let offsets = batch.iter().map(move |block| start_bytes + *block * length_bytes);
            match self.pattern {
                Pattern::Only(direction) => {
                    ops.extend(offsets.map(move |offset| transfer(direction, 0, offset, length_bytes)));
                }
                _ => ops
                    .extend(offsets.map(|offset| transfer(self.directions.mixed(), 0, offset, length_bytes))),
            }
        }
    }

    fn fill_drawn(&mut self, ops: &mut Vec<Op>, room: usize, length_bytes: u64) {
        let count = self.passes.ops_left(length_bytes).min(room as u64);
        for _ in 0..count {
            let direction = self.directions.next();
            ops.push(transfer(direction, 0, self.placer.draw(direction), length_bytes));
        }
        self.passes.count(count, count * length_bytes);
    }

    fn fill_any(&mut self, ops: &mut Vec<Op>, room: usize) {
        for index in 0..room {
            // Other files are opened for the next batch only, or this one would go to more than may be open.
            let Some(op) = self.next(index == 0) else { return };
            self.barriers.count(&op);
            ops.push(op);
        }
    }

    /// The next operation; `None` at the end of this pass, or before one to a file that may not be opened now.
    fn next(&mut self, may_open: bool) -> Option<Op> {
        if let Some(op) = self.owed.take() {
            return Some(op);
        }
        if self.passes.is_full() {
            return None;
        }
        if let Some(op) = self.barriers.take_due() {
            return Some(op);
        }
        let (direction, step) = self.request.take().unwrap_or_else(|| {
            let direction = self.directions.next();
            (direction, self.placer.step(direction))
        });
        let op = self.find_place(direction, step, may_open);
        match op {
            Some(op) => self.count(op),
            None => self.request = Some((direction, step)),
        }
        op
    }

    /// A transfer to the file whose turn it is, or to the next that is not done.
    #[inline]
    fn find_place(&mut self, direction: Direction, step: Step, may_open: bool) -> Option<Op> {
        // A file that begins again has a place, or it is too small for any.
        let mut has_begun_again = false;
        loop {
            let Turn::File(file) = self.service.turn(may_open) else { return None };
            if let Some(place) = self.placer.place(file as usize, direction, step) {
                self.service.count();
                return Some(transfer(direction, file, place.offset_bytes, place.length_bytes));
            }
            match self.service.retire(may_open) {
                Retired::Left => {}
                Retired::BeginsAgain if !has_begun_again => {
                    has_begun_again = true;
                    self.placer.restart_file(file as usize);
                }
                Retired::BeginsAgain | Retired::Unopened => return None,
            }
        }
    }

    #[inline]
    fn count(&mut self, op: Op) {
        if self.pattern == Pattern::TrimThenWrite {
            self.owed = Some(Op { action: Action::Transfer(Direction::Write), ..op });
        }
        self.passes.count(1, op.length_bytes);
    }

    /// Begins the next pass, from the start of all files, or ends the stream.
    ///
    /// What is drawn (directions, lengths, files) is drawn on: a pass that began its draws again would have the shares
    /// of the first for ever, and those of a few draws are far from what was asked for.
    fn end_pass(&mut self) {
        if self.passes.begin_next() {
            self.service.restart();
            self.placer.restart();
        }
    }
}

#[inline]
fn transfer(direction: Direction, file: FileIndex, offset_bytes: u64, length_bytes: u64) -> Op {
    Op { action: Action::Transfer(direction), file, offset_bytes, length_bytes, buffer_offset_bytes: 0 }
}

/// The loop for a job.
fn shape(access: &Access, files: &Files, placer: &Placer, barriers: &BarrierCounter) -> Shape {
    if files.list.len() > 1 || barriers.is_used() || access.pattern == Pattern::TrimThenWrite {
        return Shape::General;
    }
    if let Some(length_bytes) = placer.one_block_bytes() {
        return Shape::Permuted { length_bytes };
    }
    if let Some(length_bytes) = placer.one_draw_bytes(access.pattern) {
        return Shape::Drawn { length_bytes };
    }
    let Pattern::Only(direction) = access.pattern else { return Shape::General };
    match placer.one_stretch_bytes(direction) {
        Some(length_bytes) => Shape::Sequential { direction, length_bytes },
        None => Shape::General,
    }
}
