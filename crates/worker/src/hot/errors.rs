//! Handles operations that did not succeed in full: continues short transfers, ignores errors by policy, or ends.
//!
//! Invariant: nothing here runs for a successful I/O within its latency limit.

use std::path::Path;

use fiord_engine::contract::Outcome;
use fiord_plan::job::ErrorPolicy;
use fiord_plan::{Action, Direction, FileKind, Job, Op, PlannedEngine};
use fiord_sys::errno::Errno;
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::zones;

use super::end::End;
use super::recorder::Recorder;
use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;
use crate::files::table::FileTable;
use crate::live::Live;

/// The decision about an operation that did not succeed in full.
pub(crate) enum ErrorDecision {
    /// Transfer the rest.
    Continue(Op),
    /// Ignore the error by policy.
    Skip,
    /// End the worker.
    Stop(End),
}

/// Who reported the failure of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// The engine.
    Engine,
    /// The source of operations, which rejects what was transferred.
    Verification,
}

/// One worker's policy for errors, short transfers and I/Os that exceed their latency limit.
pub(crate) struct ErrorHandler<'a> {
    policy: &'a ErrorPolicy,
    pub(super) engine: &'a PlannedEngine,
    fill_device: bool,
    /// Whether the job knows of the zones of a zoned device.
    knows_zones: bool,
    /// Whether any latency is limited.
    pub(super) watches_latency: bool,
    /// Where blocks that do not match are saved.
    pub(super) dump_directory: Option<&'a Path>,
    passed_over: PassedOver,
}

impl<'a> ErrorHandler<'a> {
    pub(crate) fn new(job: &'a Job) -> ErrorHandler<'a> {
        ErrorHandler {
            policy: &job.errors,
            engine: &job.engine,
            fill_device: job.files.fill_device,
            knows_zones: job.access.zoned.is_some(),
            watches_latency: job.latency_target.is_some()
                || job.errors.latency_ns_max.iter().any(Option::is_some),
            dump_directory: job.verification.as_ref().and_then(|verify| verify.dump_directory.as_deref()),
            passed_over: PassedOver::default(),
        }
    }

    /// Checks an I/O against `max_latency`.
    pub(super) fn check_latency(&self, op: &Op, took_ns: u64, files: &FileTable<'_>) -> Result<(), End> {
        let Some(direction) = op.action.direction() else { return Ok(()) };
        let limit_ns = self.policy.latency_ns_max[direction.index()].unwrap_or(u64::MAX);
        if took_ns <= limit_ns {
            return Ok(());
        }
        Err(End::failed(|| Failure {
            explanation: format!("took {} us, more than max_latency={} us", took_ns / 1000, limit_ns / 1000),
            ..Failure::io(op, files.path(op.file), Errno::ETIMEDOUT)
        }))
    }

    /// Whether a read of 0 bytes is a success: a character device (`/dev/null`) has no end of file.
    /// Only for queued engines, as in fio, where a synchronous one fails with EIO.
    pub(super) fn is_device_end(rest: &Op, outcome: Outcome, files: &FileTable<'_>) -> bool {
        rest.action.fills_buffer() && outcome == Outcome::Done(0) && files.kind(rest.file) == FileKind::Char
    }

    /// Decides about an outcome that is not the whole transfer. `rest` is what was requested of the engine.
    pub(super) fn judge(
        &mut self,
        rest: &Op,
        outcome: Outcome,
        recorder: &mut Recorder<'_>,
        files: &FileTable<'_>,
        live: &Live,
    ) -> ErrorDecision {
        if let Outcome::Done(bytes @ 1..) = outcome {
            recorder.count_short(rest);
            return ErrorDecision::Continue(rest.rest(bytes));
        }
        if outcome == Outcome::Done(0) && self.engine.descriptor.connects().is_some() {
            // The other end was closed.
            recorder.count_partial(rest);
            return ErrorDecision::Stop(End::Complete);
        }
        let errno = errno_of(rest, outcome);
        if errno == Errno::EINTR && live.is_stop_requested() {
            // A wait was interrupted by a signal.
            recorder.count_partial(rest);
            return ErrorDecision::Stop(End::StopRequested);
        }
        // `fill_device` ends at an exhausted quota as at a full file system.
        if self.fill_device && errno.is_no_space() {
            recorder.count_partial(rest);
            return ErrorDecision::Stop(End::Full);
        }
        let at_end = outcome == Outcome::Done(0) && rest.action.fills_buffer();
        let (engine, knows_zones) = (self.engine, self.knows_zones);
        self.fail(rest, (errno, FoundBy::Engine), recorder, || {
            explain((engine, knows_zones), rest, errno, at_end, files)
        })
    }

    /// Decides about an operation that failed with `errno`, by the job's policy for its purpose and direction.
    pub(super) fn fail(
        &mut self,
        op: &Op,
        (errno, cause): (Errno, FoundBy),
        recorder: &mut Recorder<'_>,
        explain: impl FnOnce() -> Failure,
    ) -> ErrorDecision {
        let stats = &mut recorder.stats;
        stats.errors_total += 1;
        if stats.first_error == 0 {
            stats.first_error = errno.0;
        }
        // A failed synchronisation counts as a failed write.
        let direction = op.action.direction().unwrap_or(Direction::Write);
        let codes = match cause {
            FoundBy::Engine => &self.policy.passed_over[direction.index()],
            FoundBy::Verification => &self.policy.passed_over_in_verification,
        };
        if op.purpose.rules().may_fail && codes.contains(&errno.0) {
            if self.policy.dump {
                // `error_dump` prints each error, up to a limit.
                allow_alloc(|| self.passed_over.push(explain().to_string()));
            }
            return ErrorDecision::Skip;
        }
        recorder.count_partial(op);
        ErrorDecision::Stop(End::failed(explain))
    }

    /// Stores the message about a corrupted block, whatever the error policy decides.
    pub(super) fn keep(&mut self, message: String) {
        self.passed_over.push(message);
    }

    /// Messages of the ignored errors.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.passed_over.into_lines()
    }
}

/// The errno of `rest`, which failed or transferred nothing.
pub(super) fn errno_of(rest: &Op, outcome: Outcome) -> Errno {
    match outcome {
        Outcome::Failed(errno) => errno,
        Outcome::Done(_) if rest.action.fills_buffer() => Errno::EIO,
        Outcome::Done(_) => Errno::ENOSPC,
        // No failure: the queued loop takes it for the whole.
        Outcome::Appended(_) => Errno::EIO,
    }
}

fn explain(
    (engine, knows_zones): (&PlannedEngine, bool),
    op: &Op,
    errno: Errno,
    at_end: bool,
    files: &FileTable<'_>,
) -> Failure {
    let path = files.path(op.file);
    if at_end {
        return Failure::end_of_file(op, path);
    }
    let failure = match engine.descriptor.name_call() {
        Some(call) => Failure::on_name(call, path, errno),
        None => Failure::io(op, path, errno),
    };
    let hint = fiord_engine::error_hint(engine, op.action, errno);
    match hint.or_else(|| zones_hint(op.action, errno, knows_zones, || is_zoned(path))) {
        Some(hint) => Failure { explanation: hint.to_string(), ..failure },
        None => failure,
    }
}

/// Why a zoned device fails a write of a job that knows nothing of its zones.
fn zones_hint(
    action: Action,
    errno: Errno,
    knows_zones: bool,
    is_zoned: impl FnOnce() -> bool,
) -> Option<&'static str> {
    (action == Action::Write && errno == Errno::EIO && !knows_zones && is_zoned()).then_some(
        "the device is zoned, and takes a write only where that of its zone before it ended; add zonemode=zbd",
    )
}

fn is_zoned(path: &Path) -> bool {
    let device = stat::stat(path).ok().filter(|found| found.kind == InodeKind::Block);
    device.and_then(|found| zones::shown_zone_bytes(found.special)).is_some()
}

/// Messages of ignored errors (`error_dump`), limited in number.
#[derive(Debug, Default)]
struct PassedOver {
    lines: Vec<String>,
    more: u64,
}

impl PassedOver {
    const LINES_MAX: usize = 1000;

    fn push(&mut self, message: String) {
        if self.lines.len() < PassedOver::LINES_MAX {
            self.lines.push(message);
        } else {
            self.more += 1;
        }
    }

    /// The lines; the last one counts the errors beyond the limit.
    fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("{} more errors ignored", self.more));
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_a_zoned_device_fails_without_zonemode_is_explained() {
        let hint = |action, errno, knows_zones, is_zoned| zones_hint(action, errno, knows_zones, || is_zoned);
        let found = hint(Action::Write, Errno::EIO, false, true);
        assert!(found.is_some_and(|hint| hint.contains("zonemode=zbd")), "{found:?}");
        for (action, errno, knows_zones, is_zoned) in [
            (Action::Read, Errno::EIO, false, true),
            (Action::Write, Errno::ENOSPC, false, true),
            (Action::Write, Errno::EIO, true, true),
            (Action::Write, Errno::EIO, false, false),
        ] {
            assert_eq!(hint(action, errno, knows_zones, is_zoned), None, "{action:?} {errno}");
        }
        assert!(!is_zoned(Path::new("/dev/null")) && !is_zoned(Path::new("/proc/self/exe")));
    }
}
