//! What follows from the end of an operation: it is recorded, checked by its source, or judged by the job's error policy.
//!
//! Invariant: each operation that was issued is recorded, skipped or ends the loop, once.

use std::path::Path;

use fiord_engine::contract::{Engine, Executed, Outcome, Slot};
use fiord_plan::Op;
use fiord_plan::shown::shown;
use fiord_stats::Capped;
use fiord_sys::clock::{self, Clock};
use fiord_sys::errno::Errno;
use fiord_workload::{OperationSource, Rejected};

use super::Work;
use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;
use crate::hot::dump::CorruptedPiece;
use crate::hot::end::End;
use crate::hot::errors::{ErrorDecision, FoundBy, errno_of};
use crate::hot::stamps::Stamps;

impl Work<'_> {
    /// Records an operation that completed in full; `op` may be its rest, and its data is in the slot's buffer.
    ///
    /// # Errors
    /// The end, if it took longer than `max_latency`, or if its source rejects it.
    #[inline(always)]
    pub(crate) fn completed<'arena, E: Engine<'arena>, C: Clock>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
        stamps: Stamps,
    ) -> Result<(), End> {
        if self.follows_completions {
            if self.is_only_paced {
                self.respond(op, stamps.end_ns);
            } else if !self.note_completion::<E, C>(engine, slot, op, stamps)? {
                return Ok(());
            }
        }
        if !C::RUNNING {
            self.recorder.counted(op);
            return Ok(());
        }
        self.recorder.timed(op, stamps);
        Ok(())
    }

    /// Compares the latency of an I/O with the job's target and its limit.
    fn check_latency(&mut self, op: &Op, took_ns: u64) -> Result<(), End> {
        if let Some(search) = &mut self.search
            && op.action.direction().is_some()
        {
            search.note(took_ns);
        }
        self.errors.check_latency(op, took_ns, &self.files)
    }

    /// Notifies the observers of a completion, and checks its latency. Returns whether it is still to be recorded as an I/O
    /// with a latency.
    #[inline(never)]
    fn note_completion<'arena, E: Engine<'arena>, C: Clock>(
        &mut self,
        engine: &mut E,
        slot: &mut Slot<'arena>,
        op: &Op,
        stamps: Stamps,
    ) -> Result<bool, End> {
        if self.observed && !self.observe_completion::<E, C>((op, stamps), engine, slot)? {
            return Ok(false);
        }
        let executed = if self.asks_engine { engine.executed() } else { Executed::Io };
        match executed {
            Executed::Io if C::RUNNING && self.errors.watches_latency => {
                self.record::<C>(op, stamps);
                self.check_latency(op, stamps.completion_ns())?;
                Ok(false)
            }
            Executed::Io => Ok(true),
            Executed::Earlier => {
                self.recorder.counted(op);
                Ok(false)
            }
            Executed::Last => {
                self.record::<C>(op, stamps);
                Err(End::Complete)
            }
        }
    }

    /// Notifies the limiter and the source of a completion. Returns whether it is to be measured.
    fn observe_completion<'arena, E: Engine<'arena>, C: Clock>(
        &mut self,
        (op, stamps): (&Op, Stamps),
        engine: &mut E,
        slot: &mut Slot<'arena>,
    ) -> Result<bool, End> {
        self.note_end_of_io(op, if C::RUNNING { stamps.end_ns } else { clock::monotonic_ns() });
        if C::RUNNING && self.limiter.is_some() && op.purpose.rules().is_paced {
            self.respond(op, stamps.end_ns);
        }
        if let Some(blocks) = &mut self.recorder.blocks {
            blocks.completed(&op.whole());
        }
        let Some(source) = self.source.observer() else { return Ok(true) };
        let whole = op.whole();
        let has_data = op.action.sends_buffer() || op.action.fills_buffer();
        let length_bytes = if has_data { usize::capped(whole.length_bytes) } else { 0 };
        let buffer = &engine.arena().bytes_mut(slot)[..length_bytes];
        if let Err(errno) = source.completed(&whole, buffer) {
            // The transfer itself was done, and counts.
            self.record::<C>(op, stamps);
            self.refuse(&whole, buffer, errno)?;
            return Ok(false);
        }
        let is_measured = op.purpose.rules().is_measured;
        if !is_measured {
            self.live.completed_unmeasured();
        }
        Ok(is_measured)
    }

    /// Records from the start that its rate intended until when `op` completed.
    // Not inlined: there is a loop for each engine and clock.
    #[inline(never)]
    fn respond(&mut self, op: &Op, end_ns: u64) {
        let Some(direction) = op.action.direction() else { return };
        let intended_ns = self.turn_intended_ns.unwrap_or(op.due_ns);
        self.recorder.responded(direction, end_ns.saturating_sub(self.began_ns + intended_ns));
    }

    /// Notifies the limiter of an I/O that completed, successfully or not.
    fn note_end_of_io(&mut self, op: &Op, end_ns: u64) {
        if let (Some(limiter), Some(_), true) =
            (&mut self.limiter, op.action.direction(), op.purpose.rules().is_paced)
        {
            limiter.completed(end_ns);
        }
    }

    /// Records an operation, whatever follows from it.
    #[cold]
    fn record<C: Clock>(&mut self, op: &Op, stamps: Stamps) {
        match op.purpose.rules().is_measured {
            false => self.live.completed_unmeasured(),
            true if C::RUNNING => self.recorder.timed(op, stamps),
            true => self.recorder.counted(op),
        }
    }

    /// Fails `op`, which the engine completed but the source rejects.
    #[cold]
    fn refuse(&mut self, op: &Op, buffer: &[u8], errno: Errno) -> Result<(), End> {
        let source = &self.source;
        let path = self.files.path(op.file);
        if let Some(corruption) = source.corruption(op) {
            let block = (op.offset_bytes, op.length_bytes);
            let dump = |directory: &Path| {
                let piece = CorruptedPiece { path, op, buffer, corruption: &corruption };
                piece.dump(directory, self.files.opener(), source.restored(op, buffer).as_deref())
            };
            // A corrupted block is reported whatever follows from it, up to a limit.
            allow_alloc(|| {
                let dumped = self.errors.dump_directory.map(dump).unwrap_or_default();
                let lines = corruption.fio_lines(&shown(path), block);
                self.errors.keep(format!("{lines}{dumped}\n       {}", corruption.explanation()));
            });
        }
        let why = || Failure::corrupted(op, path, errno, source.explain(op));
        match self.errors.fail(op, (errno, FoundBy::Verification), &mut self.recorder, why) {
            ErrorDecision::Stop(end) => Err(end),
            ErrorDecision::Skip | ErrorDecision::Continue(_) => Ok(()),
        }
    }

    /// Fails operations that the source found to be wrong since it accepted them.
    ///
    /// # Errors
    /// The end of the loop, if the error policy ends it.
    pub(crate) fn refuse_late(&mut self) -> Result<(), End> {
        while let Some(Rejected { op, buffer, errno }) =
            self.source.observer().and_then(|source| source.next_rejected())
        {
            self.refuse(&op, &buffer, errno)?;
            // Of corrupted blocks the memory is freed at once.
            allow_alloc(|| drop(buffer));
        }
        Ok(())
    }

    /// Decides about an outcome that is not the whole transfer. `rest` is what was requested of the engine.
    #[cold]
    pub(in crate::hot) fn judge(&mut self, rest: &Op, outcome: Outcome) -> ErrorDecision {
        let verdict = self.errors.judge(rest, outcome, &mut self.recorder, &self.files, self.live);
        if !matches!(verdict, ErrorDecision::Continue(_)) {
            // For the limiter an operation whose failure is ignored has completed like any other.
            self.note_end_of_io(rest, clock::monotonic_ns());
            let is_failure = matches!(verdict, ErrorDecision::Skip | ErrorDecision::Stop(End::Failed(_)));
            if let Some(blocks) = self.recorder.blocks.as_mut().filter(|_| is_failure) {
                blocks.failed(&rest.whole());
            }
            if let Some(source) = self.source.observer() {
                source.failed(&rest.whole(), errno_of(rest, outcome));
            }
        }
        verdict
    }
}
