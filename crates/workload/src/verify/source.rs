//! The operations of a job whose blocks are verified: its own, with headers in what it writes, and those that read back
//! what was written.
//!
//! Invariant: no corruption is reported on a correct disk. A block is compared only if the last write to it is known,
//! and overlapping operations wait for each other.

use std::collections::VecDeque;

use fiord_errno::Errno;
use fiord_plan::{Access, Action, BlockSizes, Direction, FileIndex, Job, Op, Pattern, Purpose, Verification};
use fiord_stats::Capped;
use fiord_stats::random::Random;
use fiord_verify::{CheckBuffer, Contents, Corruption, Expected, Stamp, Trimmed, VerifyState};

use super::ledger::{Ledger, LoggedWrite, MARKS, Todo};
use super::operations::Operations;
use super::progress::{Earlier, WriteProgress};
use crate::buffer::Filler;
use crate::error::WorkloadError;
use crate::source::{OperationSource, Supply};
use crate::stream::Stream;
use crate::substream::Substream;
use crate::zoned::{Batch, ZonedSource, ZonedTarget};

/// Operations taken from the stream at once.
const BATCH: usize = 64;

/// The sequence of an operation that is not verified.
const UNVERIFIED: u64 = 0;

/// The sequence of a read whose expected write is unknown.
const OF_ANY_WRITE: u64 = u64::MAX;

/// What the source is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The job's own operations.
    Working,
    /// This many of the written blocks are read back.
    Backlog { left: u64 },
    /// This many of the written blocks are trimmed, during a pass or at its end.
    Trimming { left: u64, at_end: bool },
    /// The pass is over: waits for what is in flight.
    Draining,
    /// Reads back what the pass wrote.
    ReadingBack,
    /// All is done.
    Ended,
}

/// The operations of a verified job.
pub struct VerifySource {
    own: Operations,
    verification: Verification,
    phase: Phase,
    /// Which writes are to be read back; none for a job that never does.
    ledger: Option<Ledger>,
    /// Operations taken from the stream that have to wait for others.
    held: VecDeque<Op>,
    /// Why none could be taken.
    wait: Option<Supply>,
    /// Handed out, and neither completed nor failed.
    in_flight: u64,
    /// Of these, writes.
    writes_in_flight: u64,
    /// Writes numbered so far.
    numbers: u64,
    /// Of these, the number when blocks were last trimmed.
    trimmed_at: u64,
    seed: u64,
    thread: u16,
    /// Fills buffers whose contents a header does not determine.
    filler: Option<Filler>,
    scratch: CheckBuffer,
    reads_are_checked: ReadCheck,
    /// Whether writes are read back.
    logs: bool,
    /// Decides which of the writes are trimmed.
    trim_seed: u64,
    is_window_limited: bool,
    /// The only file that is open for reading back, if not all may be open.
    read_back_file: Option<FileIndex>,
    generation: u64,
    now_ns: u64,
    read_back_since_ns: u64,
    read_back_ns: u64,
    found: Option<(Op, Corruption)>,
    /// How far the job has written, if it saves that.
    progress: Option<WriteProgress>,
    /// How far the job had written that is verified, if its state was loaded.
    earlier: Option<Earlier>,
    /// Whether that job had issued nothing more.
    is_at_its_end: bool,
    /// Whether the passes of a job that only verifies may have written blocks of other lengths to the same places, or have
    /// trimmed others.
    passes_differ: bool,
    /// Whether the number of passes depends on the run time.
    is_time_based: bool,
}

/// Which of the job's own reads are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadCheck {
    /// All: the job verifies what an earlier job wrote.
    All,
    /// Reads of blocks that this job has written.
    Written,
    /// None: blocks that are read may be parts of blocks that were written.
    None,
}

impl VerifySource {
    /// The operations of a verified job; `zones` are those of its files, with `zonemode=zbd`, and `earlier` is the saved
    /// state of the job that wrote.
    ///
    /// # Errors
    /// Why the job has no operations.
    pub fn new(
        job: &Job,
        verification: &Verification,
        zones: Option<Vec<ZonedTarget>>,
        earlier: Option<&VerifyState>,
    ) -> Result<VerifySource, WorkloadError> {
        let (access, files) = (&job.access, &job.files);
        verification.format.prepare();
        let seed = match earlier {
            Some(VerifyState { seed: None, .. }) if access.random => return Err(WorkloadError::ForeignOrder),
            Some(VerifyState { seed: Some(seed), .. }) => *seed,
            Some(VerifyState { seed: None, .. }) | None => access.seed,
        };
        let seeded = Access { seed, ..access.clone() };
        let mut own = match (&access.zoned, zones) {
            (Some(zoned), Some(targets)) => {
                let source = ZonedSource::new(&seeded, files, &job.limits, zoned, targets)?;
                Operations::Zoned(Box::new(source))
            }
            (Some(_), None) | (None, _) => Operations::Plain(Stream::new(&seeded, files, &job.limits)?),
        };
        let writes = access.pattern.includes(Direction::Write);
        // As in fio: a job that ends only by its run time has no end of a pass at which it could read back.
        let reads_back = writes && (verification.reads_back || verification.only) && !job.limits.time_based;
        let logs = writes && (reads_back || verification.backlog.is_some());
        let reads_are_checked = match access.pattern {
            Pattern::Only(Direction::Read) if verification.compares_reads => ReadCheck::All,
            Pattern::Mixed if has_one_size(job) => ReadCheck::Written,
            Pattern::Mixed | Pattern::Only(_) | Pattern::TrimThenWrite => ReadCheck::None,
        };
        match &mut own {
            Operations::Zoned(source) if logs => source.ask_before_resets(),
            Operations::Zoned(_) | Operations::Plain(_) => {}
        }
        let needs_ledger = logs || reads_are_checked == ReadCheck::Written;
        let is_told = verification.format.contents != Contents::Given;
        let ledger = match needs_ledger {
            true => {
                let trims = verification.trims.is_some() && !verification.only;
                Some(Ledger::new(access, files, trims, own.zone_align_bytes(files))?)
            }
            false => None,
        };
        Ok(VerifySource {
            phase: Phase::Working,
            passes_differ: passes_differ(job, ledger.as_ref()),
            is_time_based: job.limits.time_based,
            ledger,
            own,
            wait: None,
            held: VecDeque::with_capacity(BATCH),
            in_flight: 0,
            writes_in_flight: 0,
            numbers: 0,
            trimmed_at: 0,
            seed: Substream::VerifySeeds.of(access.seed).next_u64(),
            thread: (job.number.wrapping_add(1) & 0xffff) as u16,
            filler: (!is_told).then(|| Filler::new(&job.buffers.fill, access.seed)),
            scratch: CheckBuffer::for_blocks_of(usize::capped(job.buffers.bytes)),
            reads_are_checked,
            logs,
            trim_seed: Substream::TrimmedBlocks.of(seed).next_u64(),
            is_window_limited: files.open_at_once > 0 && (files.open_at_once as usize) < files.list.len(),
            read_back_file: None,
            generation: 0,
            now_ns: 0,
            read_back_since_ns: 0,
            read_back_ns: 0,
            found: None,
            progress: (verification.saved_state.is_some())
                .then(|| WriteProgress::new(job.depth.max, files.list.len(), seed, verification.only_synced)),
            earlier: earlier.map(Earlier::new),
            is_at_its_end: false,
            verification: verification.clone(),
        })
    }

    /// The seed of the write of this number.
    fn seed_of(&self, number: u64) -> u64 {
        self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Whether the write of this number is trimmed before it is read back. The same for a later run, which verifies it.
    fn is_to_be_trimmed(&self, number: u64) -> bool {
        let drawn = |percent| Random::substream(self.trim_seed, number).below(100) < u64::from(percent);
        self.verification.trims.is_some_and(|trims| drawn(trims.percent))
    }

    /// What is to be done with a write of this number once it has completed.
    fn todo(&self, number: u64) -> Option<Todo> {
        let trims = self.is_to_be_trimmed(number) && !self.verification.only;
        self.logs.then_some(if trims { Todo::Trim } else { Todo::ReadBack })
    }

    /// Returns operations of the job, as many as may be issued now.
    fn work(&mut self, ops: &mut Vec<Op>, room: usize) -> Supply {
        let before = ops.len();
        let room = room.min(self.room_before_backlog()).min(self.room_before_trims());
        while ops.len() - before < room {
            if self.held.is_empty() && !self.refill(ops, before, room) {
                break;
            }
            let Some(op) = self.held.front().copied() else { break };
            if self.ledger.as_ref().is_some_and(|ledger| !ledger.is_free(&op)) {
                break;
            }
            self.held.pop_front();
            ops.push(self.begin(op));
        }
        match (ops.len() > before, self.wait.take()) {
            (true, _) => Supply::Ready,
            (false, Some(wait)) => wait,
            (false, None) => Supply::AfterCompletion,
        }
    }

    /// Takes operations from the stream, once per batch, because files are opened between batches. `false`: there are
    /// none.
    fn refill(&mut self, ops: &mut Vec<Op>, before: usize, room: usize) -> bool {
        if ops.len() > before {
            return false;
        }
        let from = ops.len();
        let batch = match self.is_at_its_end {
            true => Batch::Over,
            false => self.own.fill_pass(ops, room.min(BATCH), self.now_ns),
        };
        match batch {
            Batch::Made => {}
            Batch::Over => {
                self.phase = Phase::Draining;
                return false;
            }
            Batch::Wait(supply) => {
                self.wait = Some(supply);
                return false;
            }
            Batch::BeforeReset => {
                self.phase = Phase::Backlog { left: u64::MAX };
                return false;
            }
        }
        self.held.extend(ops.drain(from..));
        !self.stop_at_the_end_of_the_earlier()
    }

    /// Drops operations that the verified job did not issue; `true` if none is left.
    fn stop_at_the_end_of_the_earlier(&mut self) -> bool {
        let Some(earlier) = self.earlier.as_mut().filter(|_| self.reads_are_checked == ReadCheck::All) else {
            return false;
        };
        let is_issued = |op: &mut Op| {
            let is_complete = if op.action == Action::Read { earlier.next(op) } else { Some(false) };
            op.sequence = if is_complete == Some(true) { OF_ANY_WRITE } else { UNVERIFIED };
            is_complete.is_some()
        };
        let count = self.held.len();
        let issued = self.held.iter_mut().map(is_issued).take_while(|issued| *issued).count();
        self.held.truncate(issued);
        self.is_at_its_end = issued < count;
        if self.held.is_empty() {
            self.phase = Phase::Draining;
        }
        self.held.is_empty()
    }

    /// Number of operations that may be returned before blocks are read back.
    fn room_before_backlog(&self) -> usize {
        let (Some(backlog), Some(ledger)) = (self.verification.backlog, &self.ledger) else {
            return usize::MAX;
        };
        let waiting = ledger.logged() + self.writes_in_flight;
        usize::try_from(backlog.every.saturating_sub(waiting)).unwrap_or(usize::MAX)
    }

    /// Number of operations that may be returned before blocks are trimmed.
    fn room_before_trims(&self) -> usize {
        match self.verification.trims.filter(|trims| self.logs && trims.every > 0 && !self.verification.only)
        {
            Some(trims) => {
                let left = trims.every.saturating_sub(self.numbers - self.trimmed_at);
                usize::try_from(left).unwrap_or(usize::MAX)
            }
            None => usize::MAX,
        }
    }

    /// Whether blocks are waiting to be trimmed.
    fn has_blocks_to_trim(&self) -> bool {
        self.ledger.as_ref().is_some_and(Ledger::has_blocks_to_trim)
    }

    /// Numbers an operation of the job, and records that it is in flight.
    fn begin(&mut self, op: Op) -> Op {
        self.in_flight += 1;
        match op.action {
            Action::Write => {
                self.numbers += 1;
                self.writes_in_flight += 1;
                let reset = self.own.take_reset(&op);
                if let Some(ledger) = &mut self.ledger {
                    if let Some(zone) = reset {
                        ledger.empty(op.file, zone.start_bytes, zone.length_bytes);
                    }
                    ledger.begin_write(&op, self.numbers - 1);
                }
                Op { sequence: self.numbers, ..op }
            }
            Action::Read => {
                let sequence = self.read_sequence(&op);
                if let Some(ledger) = &mut self.ledger {
                    ledger.begin(&op);
                }
                Op { sequence, ..op }
            }
            Action::Trim | Action::ResetZone => {
                if let Some(ledger) = &mut self.ledger {
                    ledger.forget(&op);
                    ledger.begin(&op);
                }
                op
            }
            Action::Sync | Action::DataSync | Action::RangeSync(_) => op,
        }
    }

    /// The write that a read of the job should find.
    fn read_sequence(&self, op: &Op) -> u64 {
        match self.reads_are_checked {
            // Which operations the earlier job had completed was found when they were made.
            ReadCheck::All if self.earlier.is_some() => op.sequence,
            ReadCheck::All => OF_ANY_WRITE,
            ReadCheck::None => UNVERIFIED,
            ReadCheck::Written => {
                let mark = self.ledger.as_ref().and_then(|ledger| ledger.mark_under(op));
                match mark {
                    None => UNVERIFIED,
                    // Marks of later writes repeat those of the first.
                    Some(_) if self.numbers > MARKS => OF_ANY_WRITE,
                    Some(mark) => u64::from(mark),
                }
            }
        }
    }

    /// Returns at most `most` reads or trims of what was written.
    fn go_back(&mut self, ops: &mut Vec<Op>, most: usize, todo: Todo) -> usize {
        let before = ops.len();
        while let Some(ledger) = &mut self.ledger {
            if ops.len() - before == most {
                break;
            }
            let Some(piece) = ledger.peek(todo) else { break };
            let op = operation(&piece, todo);
            if !ledger.is_free(&op) {
                break;
            }
            if self.is_window_limited && self.read_back_file != Some(piece.file) {
                if ops.len() > before {
                    break;
                }
                self.read_back_file = Some(piece.file);
                self.generation += 1;
            }
            ledger.take(todo);
            match todo {
                Todo::ReadBack => ledger.begin(&op),
                Todo::Trim => ledger.begin_trim(&op),
            }
            self.in_flight += 1;
            ops.push(op);
        }
        ops.len() - before
    }

    /// Goes back to the job's own files.
    fn close_read_back_file(&mut self) {
        if self.read_back_file.take().is_some() {
            self.generation += 1;
        }
    }

    /// Treats a whole pass as written (`verify_only`), or all of them where a later one may have put other blocks over
    /// those of an earlier one, or has begun with new files.
    fn assume_written(&mut self, ops: &mut Vec<Op>) {
        self.assume_pass_written(ops);
        let is_followed = self.passes_differ || self.verification.has_new_files_each_pass;
        while is_followed && !self.is_at_its_end && self.own.begin_next_pass() {
            self.forget_removed_files();
            self.assume_pass_written(ops);
        }
    }

    /// Forgets what was written in earlier passes to files that are no longer there.
    fn forget_removed_files(&mut self) {
        let removed = self.verification.has_new_files_each_pass;
        if let Some(ledger) = self.ledger.as_mut().filter(|_| removed) {
            ledger.forget_all();
        }
    }

    fn assume_pass_written(&mut self, ops: &mut Vec<Op>) {
        let from = ops.len();
        while !self.is_at_its_end && self.own.fill_pass(ops, BATCH, self.now_ns) == Batch::Made {
            for op in ops.drain(from..) {
                let Some(ledger) = self.ledger.as_mut().filter(|_| op.action == Action::Write) else {
                    continue;
                };
                let is_complete = self.earlier.as_mut().map_or(Some(true), |earlier| earlier.next(&op));
                match is_complete {
                    None => {
                        self.is_at_its_end = true;
                        break;
                    }
                    Some(is_complete) => {
                        ledger.begin_write(&op, self.numbers);
                        ledger.wrote(&op, self.numbers, is_complete.then_some(Todo::ReadBack));
                        self.numbers += 1;
                    }
                }
            }
        }
    }

    /// The pass and all reading back are over: begins the next pass, or ends.
    fn end_pass(&mut self) {
        self.phase =
            if !self.is_at_its_end && self.own.begin_next_pass() { Phase::Working } else { Phase::Ended };
        self.forget_removed_files();
    }

    /// One step of `fill`; `None`: the phase has changed.
    fn step(&mut self, ops: &mut Vec<Op>, room: usize) -> Option<Supply> {
        match self.phase {
            Phase::Working if self.verification.only && self.ledger.is_some() => {
                self.assume_written(ops);
                self.phase = Phase::Draining;
                None
            }
            Phase::Working if self.room_before_backlog() == 0 && self.writes_in_flight == 0 => {
                // Blocks that are to be trimmed are read back afterwards.
                if self.has_blocks_to_trim() {
                    self.phase = Phase::Trimming { left: u64::MAX, at_end: false };
                    return None;
                }
                let left = self.verification.backlog.map_or(0, |backlog| backlog.batch);
                self.phase = Phase::Backlog { left };
                None
            }
            Phase::Working if self.room_before_trims() == 0 && self.writes_in_flight == 0 => {
                self.trimmed_at = self.numbers;
                let left = self.verification.trims.map_or(0, |trims| trims.batch);
                self.phase = Phase::Trimming { left, at_end: false };
                None
            }
            Phase::Working => {
                let supply = self.work(ops, room);
                (supply == Supply::Ready || self.phase == Phase::Working).then_some(supply)
            }
            Phase::Backlog { left } => self.go_back_for(ops, room, Todo::ReadBack, left),
            Phase::Trimming { left, .. } => self.go_back_for(ops, room, Todo::Trim, left),
            Phase::Draining if self.in_flight > 0 => Some(Supply::AfterCompletion),
            Phase::Draining if self.has_blocks_to_trim() => {
                self.phase = Phase::Trimming { left: u64::MAX, at_end: true };
                None
            }
            Phase::Draining if self.logs => {
                self.read_back_since_ns = self.now_ns;
                self.phase = Phase::ReadingBack;
                None
            }
            Phase::Draining => {
                self.end_pass();
                None
            }
            Phase::ReadingBack => {
                if self.go_back(ops, room, Todo::ReadBack) > 0 {
                    return Some(Supply::Ready);
                }
                if self.in_flight > 0 {
                    return Some(Supply::AfterCompletion);
                }
                self.read_back_ns += self.now_ns.saturating_sub(self.read_back_since_ns);
                self.close_read_back_file();
                self.end_pass();
                None
            }
            Phase::Ended => Some(Supply::Ended),
        }
    }

    /// Returns at most `left` reads or trims during a pass, then continues the pass, or ends it.
    fn go_back_for(&mut self, ops: &mut Vec<Op>, room: usize, todo: Todo, left: u64) -> Option<Supply> {
        let most = usize::try_from(left).map_or(room, |left| left.min(room));
        let count = self.go_back(ops, most, todo);
        let left = left - count as u64;
        let at_end = match &mut self.phase {
            Phase::Backlog { left: kept } => {
                *kept = left;
                false
            }
            Phase::Trimming { left: kept, at_end } => {
                *kept = left;
                *at_end
            }
            Phase::Working | Phase::Draining | Phase::ReadingBack | Phase::Ended => return None,
        };
        if count > 0 {
            return Some(Supply::Ready);
        }
        let is_done = left == 0 || self.ledger.as_mut().is_none_or(|ledger| ledger.peek(todo).is_none());
        if self.in_flight > 0 || !is_done {
            return Some(Supply::AfterCompletion);
        }
        self.close_read_back_file();
        self.phase = if at_end { Phase::Draining } else { Phase::Working };
        None
    }

    /// What is expected of the block that `op` has read; `None` if it is not checked.
    fn expected(&self, op: &Op) -> Option<Expected> {
        if !self.verification.checks || op.action != Action::Read || op.sequence == UNVERIFIED {
            return None;
        }
        if self.is_compared_by_device(op) {
            return None;
        }
        // What was there may be gone, at any moment from the beginning of the reset on.
        if self.own.reset_since(op).is_some() {
            return None;
        }
        let number = op.sequence.checked_sub(1).filter(|_| op.sequence != OF_ANY_WRITE);
        // The blocks of an earlier run have that run's numbers and seeds.
        let number = number.filter(|_| !self.verification.only);
        Some(Expected {
            offset_bytes: op.offset_bytes,
            seed: number.map(|number| self.seed_of(number)),
            checks_seed: self.verification.checks_seed,
            number,
            checks_number: self.verification.checks_number,
            trimmed: self.trimmed(op),
        })
    }

    /// Whether the device compares the block that `op` reads back.
    fn is_compared_by_device(&self, op: &Op) -> bool {
        self.verification.by_device && op.purpose == Purpose::VerifyRead
    }

    /// Whether the block that `op` has read was trimmed.
    fn trimmed(&self, op: &Op) -> Trimmed {
        let Some(_) = self.verification.trims else { return Trimmed::No };
        if self.reads_are_checked == ReadCheck::All {
            // The numbers of another job's writes are unknown.
            return Trimmed::Perhaps;
        }
        let number = op.sequence.saturating_sub(1);
        match &self.ledger {
            Some(_) if self.verification.only && (self.is_time_based || self.is_to_be_trimmed(number)) => {
                Trimmed::Perhaps
            }
            Some(ledger)
                if op.purpose == Purpose::VerifyRead && ledger.is_trimmed(&LoggedWrite::of(op, number)) =>
            {
                Trimmed::Yes
            }
            Some(_) | None => Trimmed::No,
        }
    }

    /// Records that `op` has completed, and returns what its block is to be checked for.
    ///
    /// # Errors
    /// The errno of what had to be done about its zone.
    pub fn settle(&mut self, op: &Op) -> Result<Option<Expected>, Errno> {
        self.in_flight -= 1;
        if let Some(progress) = &mut self.progress {
            progress.ended(op, false);
        }
        if op.action == Action::Write {
            self.writes_in_flight -= 1;
        }
        let todo = self.todo(op.sequence.saturating_sub(1));
        if let Some(ledger) = &mut self.ledger {
            match op.action {
                Action::Write => ledger.wrote(op, op.sequence - 1, todo),
                Action::Trim if op.purpose == Purpose::VerifyTrim => {
                    let is_logged = self.verification.trims.is_some_and(|trims| trims.reads_zeroes);
                    ledger.trimmed(op, op.sequence - 1, is_logged);
                }
                Action::Read | Action::Trim | Action::ResetZone => ledger.end(op),
                Action::Sync | Action::DataSync | Action::RangeSync(_) => {}
            }
        }
        match op.purpose {
            Purpose::VerifyRead | Purpose::VerifyTrim => {}
            Purpose::Measured | Purpose::Replay | Purpose::Layout => self.own.completed(op)?,
        }
        Ok(self.expected(op))
    }

    /// Checks a block that was read.
    ///
    /// # Errors
    /// The errno of an operation whose block is not as expected.
    pub fn check(&mut self, op: &Op, buffer: &[u8], expected: &Expected) -> Result<(), Errno> {
        match self.verification.format.check(buffer, expected, &mut self.scratch) {
            Ok(()) => Ok(()),
            Err(corruption) => Err(self.reject(op, corruption)),
        }
    }

    /// Stores the corruption of the block of `op`, to be explained later. Returns the errno that `op` fails with.
    pub fn reject(&mut self, op: &Op, corruption: Corruption) -> Errno {
        self.found = Some((*op, corruption));
        Errno::EILSEQ
    }
}

impl OperationSource for VerifySource {
    fn inner(&self) -> Option<&dyn OperationSource> {
        Some(self.own.source())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn OperationSource> {
        Some(self.own.source_mut())
    }

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        self.now_ns = now_ns;
        loop {
            if let Some(supply) = self.step(ops, room) {
                return supply;
            }
        }
    }

    fn sends_buffer(&self, op: &Op) -> bool {
        op.action.sends_buffer() || self.is_compared_by_device(op)
    }

    /// A block that the device compares has to be filled as it was when it was written.
    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        let number = op.sequence.saturating_sub(1);
        if let Some(filler) = &mut self.filler {
            filler.prime(buffer);
            filler.before_write(0, buffer, op.offset_bytes);
        }
        let stamp = Stamp {
            offset_bytes: op.offset_bytes,
            seed: self.seed_of(number),
            number,
            thread: self.thread,
            at_ns: if self.verification.by_device { 0 } else { self.now_ns },
        };
        self.verification.format.write(buffer, &stamp);
    }

    fn issued(&mut self, op: &Op, _at_ns: u64) {
        if let Some(progress) = &mut self.progress {
            progress.issued(op);
        }
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        match self.settle(op)? {
            Some(expected) => self.check(op, buffer, &expected),
            None => Ok(()),
        }
    }

    fn failed(&mut self, op: &Op, errno: Errno) {
        self.in_flight -= 1;
        match op.purpose {
            Purpose::VerifyRead | Purpose::VerifyTrim => {}
            Purpose::Measured | Purpose::Replay | Purpose::Layout => self.own.failed(op, errno),
        }
        if let Some(progress) = &mut self.progress {
            progress.ended(op, true);
        }
        self.writes_in_flight -= u64::from(op.action == Action::Write);
        let Some(ledger) = &mut self.ledger else { return };
        match op.action {
            Action::Write | Action::Trim | Action::ResetZone => ledger.forget(op),
            Action::Read => ledger.end(op),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => {}
        }
    }

    fn explain(&self, op: &Op) -> String {
        self.corruption(op).map_or_else(String::new, |corruption| corruption.explanation())
    }

    fn corruption(&self, op: &Op) -> Option<Corruption> {
        let (found, corruption) = self.found.as_ref()?;
        (found == op).then_some(*corruption)
    }

    fn restored(&self, op: &Op, buffer: &[u8]) -> Option<Vec<u8>> {
        self.verification.format.restored(buffer, op.offset_bytes, &self.corruption(op)?)
    }

    fn state(&self) -> Option<VerifyState> {
        Some(self.progress.as_ref()?.state(self.verification.format.header))
    }

    fn open_generation(&self) -> u64 {
        self.own.source().open_generation() + self.generation
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        match self.read_back_file {
            Some(file) => show(file),
            None => self.own.source().for_each_open_file(show),
        }
    }

    /// Rates do not choose the directions: a later run that only verifies could not know which blocks were written.
    fn is_mixed(&self) -> bool {
        false
    }

    fn reads_back(&self) -> bool {
        match self.phase {
            Phase::Backlog { .. } | Phase::Trimming { .. } | Phase::ReadingBack => true,
            Phase::Working | Phase::Draining | Phase::Ended => false,
        }
    }

    fn read_back_ns(&self) -> u64 {
        let running_ns = match self.phase {
            Phase::ReadingBack => self.now_ns.saturating_sub(self.read_back_since_ns),
            Phase::Working
            | Phase::Backlog { .. }
            | Phase::Trimming { .. }
            | Phase::Draining
            | Phase::Ended => 0,
        };
        self.read_back_ns + running_ns
    }
}

/// The read or trim of what was written.
fn operation(piece: &LoggedWrite, todo: Todo) -> Op {
    let (action, purpose) = match todo {
        Todo::ReadBack => (Action::Read, Purpose::VerifyRead),
        Todo::Trim => (Action::Trim, Purpose::VerifyTrim),
    };
    let op = Op::new(action, piece.file, piece.offset_bytes, u64::from(piece.length_bytes));
    Op { purpose, sequence: piece.number + 1, ..op }
}

/// Whether a pass may write blocks of other lengths to the places of an earlier one, or trim others. A job that ends by its
/// run time alone has no last pass.
fn passes_differ(job: &Job, ledger: Option<&Ledger>) -> bool {
    let trims = job.verification.as_ref().is_some_and(|verification| verification.trims.is_some());
    let repeats = |ledger: &Ledger| match job.access.block_sizes[Direction::Write.index()] {
        BlockSizes::Fixed(bytes) => ledger.replaces_whole_blocks_of(bytes),
        BlockSizes::Range { .. } | BlockSizes::Split(_) => false,
    };
    !job.limits.time_based && (trims || !ledger.is_some_and(repeats))
}

/// Whether all reads and writes of a job have one length, so that a read covers a written block in full.
fn has_one_size(job: &Job) -> bool {
    let access = &job.access;
    let [read, write, _] = &access.block_sizes;
    matches!(read, BlockSizes::Fixed(_)) && read == write && !access.sizes_by_order
}
