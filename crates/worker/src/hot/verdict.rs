//! What becomes of an operation that did not go well: the rest of a short one, an error passed over, the end.
//!
//! Invariant: nothing here runs for an I/O that went well in the time it may take.

use fiord_engine::contract::Outcome;
use fiord_plan::{Action, Direction, FileKind, Op};
use fiord_sys::clock;
use fiord_sys::errno::Errno;

use super::{End, Work};
use crate::failure::Failure;
use crate::seal::unsealed;

const EINTR: Errno = Errno(4);
const EIO: Errno = Errno(5);
const ENOSPC: Errno = Errno(28);
const EDQUOT: Errno = Errno(122);
const ETIMEDOUT: Errno = Errno(110);

/// What to do about an operation that did not simply succeed.
pub(crate) enum Verdict {
    /// Transfer the rest.
    Continue(Op),
    /// Passed over by policy.
    Skip,
    /// The worker ends.
    Stop(End),
}

impl Work<'_> {
    /// Checks an I/O against `max_latency`.
    pub(super) fn check_latency(&self, op: &Op, took_ns: u64) -> Result<(), End> {
        let Action::Transfer(direction) = op.action else { return Ok(()) };
        let limit_ns = self.errors.latency_ns_max[direction.index()].unwrap_or(u64::MAX);
        if took_ns <= limit_ns {
            return Ok(());
        }
        Err(End::failed(|| Failure {
            explanation: format!("took {} us, more than max_latency={} us", took_ns / 1000, limit_ns / 1000),
            ..Failure::io(op, self.files.path(op.file), ETIMEDOUT)
        }))
    }

    /// Whether a read that brought nothing has done all it can: a character device has no end that a file would have
    /// (`/dev/null`). For queued engines alone, as in fio, where a synchronous one fails with EIO.
    pub(super) fn is_all_there_is(&self, rest: &Op, outcome: Outcome) -> bool {
        let reading = rest.action == Action::Transfer(Direction::Read);
        reading && outcome == Outcome::Done(0) && self.files.kind(rest.file) == FileKind::Char
    }

    /// Judges an outcome that is not the whole transfer. `rest` is what the engine was asked for.
    #[cold]
    pub(crate) fn judge(&mut self, rest: &Op, outcome: Outcome) -> Verdict {
        let reading = rest.action == Action::Transfer(Direction::Read);
        let errno = match outcome {
            Outcome::Done(0) if reading => EIO,
            Outcome::Done(0) => ENOSPC,
            Outcome::Done(bytes) => {
                if let Action::Transfer(direction) = rest.action {
                    self.recorder.stats.directions[direction.index()].short_ios += 1;
                }
                return Verdict::Continue(rest.rest(bytes));
            }
            Outcome::Failed(errno) => errno,
        };
        if errno == EINTR && self.live.is_told_to_stop() {
            // Woken from a wait that might not have ended.
            self.recorder.count_partial(rest);
            return Verdict::Stop(End::Told);
        }
        // A full quota is the end of what may be filled, as a full file system is.
        if self.fill_device && [ENOSPC, EDQUOT].contains(&errno) {
            self.recorder.count_partial(rest);
            return Verdict::Stop(End::Full);
        }
        let stats = &mut self.recorder.stats;
        stats.errors_total += 1;
        if stats.first_error == 0 {
            stats.first_error = errno.0;
        }
        // A synchronisation that fails is a failed write.
        let direction = match rest.action {
            Action::Transfer(direction) => direction.index(),
            _ => Direction::Write.index(),
        };
        let passed_over = self.errors.passed_over[direction].contains(&errno.0);
        if passed_over && !self.errors.dump {
            return self.skip(rest);
        }
        let at_end = outcome == Outcome::Done(0) && reading;
        if passed_over {
            // `error_dump` asks for a text of each error, up to a number.
            unsealed(|| self.said.push(&self.explain(rest, errno, at_end)));
            return self.skip(rest);
        }
        self.recorder.count_partial(rest);
        Verdict::Stop(End::failed(|| self.explain(rest, errno, at_end)))
    }

    /// Passes over a failed operation: for the gate it has ended like any other.
    fn skip(&mut self, op: &Op) -> Verdict {
        if let (Some(gate), Action::Transfer(_)) = (&mut self.gate, op.action) {
            gate.completed(clock::monotonic_ns());
        }
        Verdict::Skip
    }

    fn explain(&self, op: &Op, errno: Errno, at_end: bool) -> Failure {
        let path = self.files.path(op.file);
        if at_end {
            return Failure::end_of_file(op, path);
        }
        let failure = Failure::io(op, path, errno);
        match fiord_engine::hint(self.settings, op.action, errno) {
            Some(hint) => Failure { explanation: hint.to_string(), ..failure },
            None => failure,
        }
    }
}

/// Errors passed over, in words (`error_dump`), as many as anybody reads.
#[derive(Debug, Default)]
pub(crate) struct Said {
    lines: Vec<String>,
    more: u64,
}

impl Said {
    const LINES_MAX: usize = 1000;

    fn push(&mut self, failure: &Failure) {
        if self.lines.len() < Said::LINES_MAX {
            self.lines.push(failure.to_string());
        } else {
            self.more += 1;
        }
    }

    /// The lines, the last of which says how many there were besides.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more errors passed over", self.more));
        }
        self.lines
    }
}
