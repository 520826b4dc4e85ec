//! Failures of workers.
//!
//! Invariant: names the operation, the file, the place in it and the kernel's error, as far as each applies.

use std::fmt;
use std::path::{Path, PathBuf};

use fiord_plan::shown::shown;
use fiord_plan::{Action, NameCall, NamePurpose, Op, PlannedEngine, Unplannable};
use fiord_sys::errno::{Errno, Explained, error_text};
use fiord_sys::memory::MemoryError;

/// What stopped a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was being done: `write`, `open`, `lay out`, `io_uring_setup`.
    pub operation: String,
    /// The file it concerns, if any.
    pub path: Option<PathBuf>,
    /// The range of an I/O: (offset, length) in bytes.
    pub range: Option<(u64, u64)>,
    /// The kernel's error; `None` when it is not the kernel's (a rate not held, a file too short).
    pub errno: Option<Errno>,
    /// What it means and what to do, if that is more than the errno's name.
    pub explanation: String,
    /// Continuing would have destroyed data that something else uses.
    pub unsafe_target: bool,
}

impl Failure {
    /// A failed I/O.
    pub fn io(op: &Op, path: &Path, errno: Errno) -> Failure {
        let is_transfer = op.action.direction().is_some();
        let explanation = match errno {
            Errno::ENOSPC => "the file system or device is full",
            Errno::EINVAL if is_transfer => {
                "the kernel refuses the request: alignment, length or kind is wrong for this target"
            }
            Errno::EINVAL => "this target cannot be synchronised",
            Errno::EIO => "the device reports an error: see the kernel's log",
            Errno::ENODEV | Errno::ENXIO => "the device is gone",
            Errno::EOPNOTSUPP => "this target cannot do that",
            _ => "",
        };
        Failure {
            operation: name_of(op.action).to_string(),
            path: Some(path.to_path_buf()),
            // A synchronisation concerns the whole file.
            range: (op.length_bytes > 0).then_some((op.offset_bytes, op.length_bytes)),
            errno: Some(errno),
            explanation: explanation.to_string(),
            unsafe_target: false,
        }
    }

    /// A failed call on the name of a file or directory.
    pub(crate) fn on_name(call: NameCall, path: &Path, errno: Errno) -> Failure {
        let operation = match call.purpose {
            NamePurpose::Create => "create",
            NamePurpose::Look => "look up",
            NamePurpose::Remove => "remove",
        };
        Failure::file(operation, path, &errno.into())
    }

    /// A read that met the end of the file.
    pub fn end_of_file(op: &Op, path: &Path) -> Failure {
        Failure {
            errno: None,
            explanation: "end of file: the file is shorter than planned, or has shrunk".to_string(),
            ..Failure::io(op, path, Errno(0))
        }
    }

    /// Corrupted data.
    pub(crate) fn corrupted(op: &Op, path: &Path, errno: Errno, what: String) -> Failure {
        let explanation = format!("corrupted data ({}): {what}", errno.name());
        Failure { operation: "verify".to_string(), explanation, ..Failure::io(op, path, errno) }
    }

    /// A system call on a file, outside the loop.
    pub fn file(operation: &str, path: &Path, error: &std::io::Error) -> Failure {
        Failure { path: Some(path.to_path_buf()), ..Failure::system(operation, error) }
    }

    /// A system call that concerns no file.
    pub fn system(operation: &str, error: &std::io::Error) -> Failure {
        let explanation = match (Explained::of(error), Errno::of(error)) {
            (Some(explained), _) => explained.explanation.clone(),
            (None, Some(_)) => String::new(),
            (None, None) => error_text(error),
        };
        Failure {
            operation: operation.to_string(),
            path: None,
            range: None,
            errno: Errno::of(error),
            explanation,
            unsafe_target: false,
        }
    }

    /// A call of an engine that is not one I/O, with the usual cause of such an error there, if the error has no other.
    pub(crate) fn of_engine(engine: &PlannedEngine, operation: &str, error: &std::io::Error) -> Failure {
        let failure = Failure::system(operation, error);
        let explained =
            failure.errno.and_then(|errno| (engine.descriptor.explain)(&engine.settings, errno.0));
        match explained.filter(|_| failure.explanation.is_empty()) {
            Some(explanation) => Failure { explanation: explanation.to_string(), ..failure },
            None => failure,
        }
    }

    /// An allocation that failed.
    pub(crate) fn memory(operation: &str, short: &MemoryError) -> Failure {
        Failure { explanation: short.to_string(), ..Failure::system(operation, &short.error) }
    }

    /// A job whose targets do not meet its needs.
    pub(crate) fn planning(unplannable: &Unplannable) -> Failure {
        Failure { errno: Some(unplannable.errno), ..Failure::other("plan", unplannable.to_string()) }
    }

    /// Memory ran short during `operation`; the explanation names what to reduce.
    pub(crate) fn short_of_memory(operation: &str) -> Failure {
        let explanation = "memory is short: see ulimit -v, vm.max_map_count and vm.overcommit_memory, or run fewer \
                           jobs (numjobs) with fewer or smaller buffers (iodepth, bs) and logs (log_entries)";
        Failure { errno: Some(Errno::ENOMEM), ..Failure::other(operation, explanation) }
    }

    /// A failure without a kernel error.
    pub fn other(operation: &str, explanation: impl Into<String>) -> Failure {
        Failure {
            operation: operation.to_string(),
            path: None,
            range: None,
            errno: None,
            explanation: explanation.into(),
            unsafe_target: false,
        }
    }

    /// A refusal, because the operation would destroy data that something else uses.
    pub(crate) fn unsafe_target(operation: &str, explanation: impl Into<String>) -> Failure {
        Failure { unsafe_target: true, ..Failure::other(operation, explanation) }
    }

    /// The cause without the file: `Permission denied (EACCES)`.
    pub fn reason(&self) -> String {
        let errno = self.errno.filter(|errno| !self.explanation.contains(errno.name()));
        let errno = errno.map(|errno| errno.to_string());
        let parts = errno.into_iter().chain(Some(self.explanation.clone()).filter(|text| !text.is_empty()));
        parts.collect::<Vec<String>>().join(": ")
    }

    /// The number for `err=` in the report: errno, or EIO where there is none.
    pub fn code(&self) -> i32 {
        self.errno.map_or(5, |errno| errno.0)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.operation)?;
        if let Some(path) = &self.path {
            write!(out, " {}", shown(path))?;
        }
        if let Some((offset, length)) = self.range {
            write!(out, " at offset {offset}, {length} bytes")?;
        }
        match self.reason() {
            reason if reason.is_empty() => Ok(()),
            reason => write!(out, ": {reason}"),
        }
    }
}

/// The user-visible name of an action.
pub(crate) fn name_of(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Trim => "trim",
        Action::ResetZone => "zone reset",
        Action::Sync => "fsync",
        Action::DataSync => "fdatasync",
        Action::RangeSync(_) => "sync_file_range",
    }
}

#[cfg(test)]
mod tests {
    use fiord_plan::{EngineName, EngineSettings};

    use super::*;

    #[test]
    fn a_failed_write_says_operation_file_offset_and_errno() {
        let op = Op::new(Action::Write, 0, 8192, 4096);
        let text = Failure::io(&op, Path::new("/data/f"), Errno(28)).to_string();
        for part in ["write", "/data/f", "8192", "ENOSPC", "full"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_failed_synchronisation_is_of_the_whole_file() {
        let op = Op::new(Action::Sync, 0, 0, 0);
        let text = Failure::io(&op, Path::new("/dev/null"), Errno(22)).to_string();
        assert!(text.starts_with("fsync /dev/null: ") && text.contains("cannot be synchronised"), "{text}");
    }

    #[test]
    fn a_connection_that_is_lost_between_operations_is_explained_as_one_that_is_lost_in_one() {
        let descriptor = fiord_engine::registry::ENGINES.find(EngineName::Libiscsi).unwrap();
        let engine = PlannedEngine { descriptor, settings: EngineSettings::new(()) };
        let text = Failure::of_engine(&engine, "submit", &Errno(104).into()).to_string();
        assert!(text.starts_with("submit: ") && text.contains("closed the connection"), "{text}");
        let text = Failure::of_engine(&engine, "submit", &Errno(5).into()).to_string();
        assert_eq!(text, Failure::system("submit", &Errno(5).into()).to_string());
    }

    #[test]
    fn an_errno_named_in_the_explanation_is_not_named_again() {
        let failure = Failure { errno: Some(Errno(12)), ..Failure::other("lockmem", "no room (ENOMEM)") };
        assert_eq!(failure.to_string(), "lockmem: no room (ENOMEM)");
        assert_eq!(failure.code(), 12);
    }
}
