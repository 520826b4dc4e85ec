//! The stream of operations of one job.
//!
//! Invariant: the stream does not depend on its division into batches, and nothing is allocated after `new`.

// A new action has to be handled wherever actions are distinguished: no wildcard arm may cover it.
#![deny(clippy::wildcard_enum_match_arm)]

use fiord_plan::job::Limits;
use fiord_plan::{Access, Action, Direction, FileIndex, Files, Op, Pattern};
use fiord_stats::Capped;

use crate::barrier::BarrierCounter;
use crate::direction::Directions;
use crate::error::WorkloadError;
use crate::files::{Retired, Service, Turn};
use crate::offset::order::Order;
use crate::offset::placer::{NextOffset, Placer};
use crate::passes::Passes;

/// All operations of one job, in order.
#[derive(Debug, Clone)]
pub struct Stream {
    shape: StreamKind,
    pattern: Pattern,
    directions: Directions,
    placer: Placer,
    service: Service,
    barriers: BarrierCounter,
    passes: Passes,
    /// The write that follows a trim.
    owed: Option<Op>,
    /// Drawn for an operation whose file is not chosen yet.
    request: Option<(Direction, NextOffset)>,
}

/// Which loop generates the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamKind {
    /// One file, one direction, one length, sequential.
    Sequential { direction: Direction, length_bytes: u64 },
    /// One file, one length, each block once.
    Permuted { length_bytes: u64 },
    /// One file, one length, any place.
    Drawn { length_bytes: u64 },
    /// One file, lengths drawn, any place or each block once.
    Random { is_mapped: bool },
    /// All other jobs.
    General,
}

impl Stream {
    /// The stream of a job over its files' regions.
    ///
    /// # Errors
    /// The reason why the job has no stream.
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

    /// Appends at most `room` operations and returns how many; 0 only if the job has issued everything.
    ///
    /// A batch ends where a pass ends and where the set of open files changes, so that the getters are valid for all of
    /// it. Nothing is allocated while `ops` has capacity.
    pub fn fill(&mut self, ops: &mut Vec<Op>, room: usize) -> usize {
        let before = ops.len();
        while ops.len() == before && room > 0 && !self.passes.has_ended() {
            if self.fill_pass(ops, room) == 0 {
                self.end_pass();
            }
        }
        ops.len() - before
    }

    /// The same without beginning another pass: 0 when this one is over.
    pub fn fill_pass(&mut self, ops: &mut Vec<Op>, room: usize) -> usize {
        let before = ops.len();
        if room > 0 && !self.passes.has_ended() {
            match self.shape {
                StreamKind::Sequential { direction, length_bytes } => {
                    self.fill_sequential(ops, room, direction, length_bytes)
                }
                StreamKind::Permuted { length_bytes } => self.fill_permuted(ops, room, length_bytes),
                StreamKind::Drawn { length_bytes } => self.fill_drawn(ops, room, length_bytes),
                StreamKind::Random { is_mapped } => self.fill_random(ops, room, is_mapped),
                StreamKind::General => self.fill_any(ops, room),
            }
        }
        ops.len() - before
    }

    /// Begins the next pass, when `fill_pass` has ended one; `false`: that was the last.
    pub fn begin_next_pass(&mut self) -> bool {
        self.end_pass();
        !self.passes.has_ended()
    }

    /// Whether each operation's direction is drawn.
    pub fn is_mixed(&self) -> bool {
        self.directions.is_mixed()
    }

    /// Sets the directions that replace a drawn write and a drawn read, from the next `fill` on: rates may delay either.
    pub fn steer(&mut self, either: [Direction; 2]) {
        self.directions.steer(either);
    }

    /// Passes over the files begun, from 1 (`loops`, `io_size`, `time_based`).
    pub fn passes_begun(&self) -> u64 {
        self.passes.begun()
    }

    /// Changes with the set of files to have open; never, if all may be open at once.
    pub fn open_generation(&self) -> u64 {
        self.service.generation()
    }

    /// The files to have open, at most `openfiles`: to be read before the first batch, and after each that changed the
    /// generation, before its operations are issued. Other files may be closed once none of their I/O is in flight.
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
        let mut left =
            usize::capped(permutation.left().min(self.passes.ops_left(length_bytes)).min(room as u64));
        self.passes.count(left as u64, left as u64 * length_bytes);
        let mut blocks = [0; 64];
        while left > 0 {
            let batch = &mut blocks[..left.min(64)];
            left -= batch.len();
            permutation.take(batch);
            // By value: through a reference they would be loaded again after each operation stored.
            let offsets = batch.iter().map(move |block| start_bytes + *block * length_bytes);
            match self.pattern {
                Pattern::Only(direction) => {
                    ops.extend(offsets.map(move |offset| transfer(direction, 0, offset, length_bytes)));
                }
                Pattern::Mixed | Pattern::TrimThenWrite => ops
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

    fn fill_random(&mut self, ops: &mut Vec<Op>, room: usize, is_mapped: bool) {
        for _ in 0..room {
            if self.passes.is_full() {
                return;
            }
            let direction = match self.request.take() {
                Some((direction, _)) => direction,
                None => self.directions.next(),
            };
            let place = match is_mapped {
                true => self.placer.mapped_place(direction),
                false => self.placer.random_place(0, direction),
            };
            let Some(place) = place else {
                // The next pass begins with this direction.
                self.request = Some((direction, NextOffset::Random));
                return;
            };
            ops.push(transfer(direction, 0, place.offset_bytes, place.length_bytes));
            self.passes.count(1, place.length_bytes);
        }
    }

    fn fill_any(&mut self, ops: &mut Vec<Op>, room: usize) {
        for index in 0..room {
            // Other files are opened only for the next batch, or this one would use more than may be open.
            let Some(op) = self.next(index == 0) else { return };
            self.barriers.count(&op);
            ops.push(op);
        }
    }

    /// The next operation; `None` at the end of this pass, or before one to a file that must not be opened now.
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

    /// A transfer to the current file, or to the next one that is not done.
    #[inline]
    fn find_place(&mut self, direction: Direction, step: NextOffset, may_open: bool) -> Option<Op> {
        // A restarted file has a place, unless it is too small for any.
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
            self.owed = Some(Op { action: Action::Write, ..op });
        }
        self.passes.count(1, op.length_bytes);
    }

    /// Begins the next pass, from the start of all files, or ends the stream.
    ///
    /// Draws of directions, lengths and files continue: restarting them would repeat the shares of the first pass,
    /// which for a few draws are far from the requested ones.
    fn end_pass(&mut self) {
        if self.passes.begin_next() {
            self.service.restart();
            self.placer.restart();
        }
    }
}

#[inline]
fn transfer(direction: Direction, file: FileIndex, offset_bytes: u64, length_bytes: u64) -> Op {
    Op::new(direction.into(), file, offset_bytes, length_bytes)
}

/// Chooses the loop for a job.
fn shape(access: &Access, files: &Files, placer: &Placer, barriers: &BarrierCounter) -> StreamKind {
    if files.list.len() > 1 || barriers.is_used() || access.pattern == Pattern::TrimThenWrite {
        return StreamKind::General;
    }
    if let Some(length_bytes) = placer.one_block_bytes() {
        return StreamKind::Permuted { length_bytes };
    }
    if let Some(length_bytes) = placer.one_draw_bytes(access.pattern) {
        return StreamKind::Drawn { length_bytes };
    }
    if placer.is_one_file_drawn() {
        return StreamKind::Random { is_mapped: placer.is_mapped() };
    }
    let Pattern::Only(direction) = access.pattern else { return StreamKind::General };
    match placer.one_stretch_bytes(direction) {
        Some(length_bytes) => StreamKind::Sequential { direction, length_bytes },
        None => StreamKind::General,
    }
}
