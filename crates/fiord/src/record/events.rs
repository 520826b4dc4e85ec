//! Records of the tracepoints of system calls and of tasks as events.
//!
//! Invariant: where a field is in a record is what the kernel's `format` file says; no record is a panic.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use fiord_model::CallKind;
use fiord_profile::tracepoints::format::{Field, id, id_of};
use fiord_sys::open_names::{NamedCall, OpenName};

/// A call that matters for what is done on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// One that is recorded.
    Io(CallKind),
    /// `open`.
    Open,
    /// `openat`.
    OpenAt,
    /// `openat2`.
    OpenAt2,
    /// `creat`.
    Create,
    /// `close`.
    Close,
    /// `close_range`.
    CloseRange,
    /// `lseek`.
    Seek,
    /// `dup`.
    Duplicate,
    /// `dup2` and `dup3`.
    DuplicateTo,
    /// `fcntl` that duplicates, or sets whether a file closes on exec.
    Control,
    /// `ftruncate`.
    Truncate,
    /// `copy_file_range`.
    CopyRange,
    /// `sendfile`.
    SendFile,
    /// `io_uring_enter`.
    UringEnter,
    /// `io_submit`.
    Submit,
    /// `mmap` of a file, shared.
    Map,
    /// `unshare` of the table of descriptors.
    Unshare,
    /// `chdir` and `fchdir`.
    Directory,
}

impl Call {
    /// Whether it has the name of a file.
    pub(super) fn has_name(self) -> bool {
        matches!(self, Call::Open | Call::OpenAt | Call::OpenAt2 | Call::Create | Call::Directory)
    }
}

/// A call as the kernel names it, what of it is recorded, and whether its end is.
pub(super) struct TracedCall {
    pub(super) name: &'static str,
    pub(super) call: Call,
    pub(super) filter: &'static str,
    pub(super) has_end: bool,
}

const fn traced(name: &'static str, call: Call) -> TracedCall {
    TracedCall { name, call, filter: "0", has_end: true }
}

const fn begun(name: &'static str, call: Call, filter: &'static str) -> TracedCall {
    TracedCall { name, call, filter, has_end: false }
}

/// All calls that are traced, where the kernel has them.
pub(super) const CALLS: [TracedCall; 35] = [
    traced("read", Call::Io(CallKind::Read)),
    traced("write", Call::Io(CallKind::Write)),
    traced("pread64", Call::Io(CallKind::Pread)),
    traced("pwrite64", Call::Io(CallKind::Pwrite)),
    traced("readv", Call::Io(CallKind::Readv)),
    traced("writev", Call::Io(CallKind::Writev)),
    traced("preadv", Call::Io(CallKind::Preadv)),
    traced("pwritev", Call::Io(CallKind::Pwritev)),
    traced("preadv2", Call::Io(CallKind::Preadv2)),
    traced("pwritev2", Call::Io(CallKind::Pwritev2)),
    traced("fsync", Call::Io(CallKind::Fsync)),
    traced("fdatasync", Call::Io(CallKind::Fdatasync)),
    traced("sync_file_range", Call::Io(CallKind::SyncFileRange)),
    traced("fallocate", Call::Io(CallKind::PunchHole)),
    traced("open", Call::Open),
    traced("openat", Call::OpenAt),
    traced("openat2", Call::OpenAt2),
    traced("creat", Call::Create),
    begun("close", Call::Close, "0"),
    begun("close_range", Call::CloseRange, "0"),
    traced("lseek", Call::Seek),
    traced("dup", Call::Duplicate),
    traced("dup2", Call::DuplicateTo),
    traced("dup3", Call::DuplicateTo),
    // Locks are set by it too, and often.
    TracedCall {
        name: "fcntl",
        call: Call::Control,
        filter: "cmd == 0 || cmd == 2 || cmd == 1030",
        has_end: true,
    },
    traced("ftruncate", Call::Truncate),
    traced("copy_file_range", Call::CopyRange),
    traced("sendfile64", Call::SendFile),
    traced("io_uring_enter", Call::UringEnter),
    traced("io_submit", Call::Submit),
    // The C library shares small tables of its own.
    begun("mmap", Call::Map, "flags & 1 && (prot & 2 || len >= 1048576)"),
    TracedCall { name: "unshare", call: Call::Unshare, filter: "unshare_flags & 1024", has_end: true },
    traced("sendfile", Call::SendFile),
    traced("chdir", Call::Directory),
    traced("fchdir", Call::Directory),
];

/// What the end of a call must be to be recorded, where most of its calls do not matter.
pub(super) fn end_filter(call: Call) -> &'static str {
    if call == Call::Control { "ret > 0 && ret < 1048576" } else { "0" }
}

/// The tracepoints of tasks, with their systems.
pub(super) const TASKS: [(&str, &str, Kind); 3] = [
    ("task", "task_newtask", Kind::NewTask),
    ("sched", "sched_process_exec", Kind::Executed),
    ("sched", "sched_process_exit", Kind::Ended),
];

/// What a tracepoint tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call begins.
    Begin(Call),
    /// A call has ended.
    End(Call),
    /// A thread or process was made.
    NewTask,
    /// A program was executed.
    Executed,
    /// A thread has ended.
    Ended,
}

/// The kernel's `int` in a register, or in a field that was widened: its low half, whatever is in the high one.
pub(super) fn int(register: u64) -> i32 {
    ((register & 0xffff_ffff) as u32).cast_signed()
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It begins a call with these arguments.
    Begin(Call, [u64; 6]),
    /// The call has ended with this result.
    End(Call, i64),
    /// It is about to open the file, or enter the directory, of this name.
    Names(PathBuf),
    /// It made this thread or process, with the flags of `clone`.
    NewTask { task: i32, flags: u64 },
    /// It executed this program; it had this number before.
    Executed { before: i32, program: String },
    /// It has ended.
    Ended,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// When, in nanoseconds of the trace's clock.
    pub(super) at_ns: u64,
    /// The thread.
    pub(super) thread: i32,
    /// What it did.
    pub(super) what: What,
}

impl Event {
    /// A thread is about to open the file, or enter the directory, of a name; `None` if the kernel could not read it.
    pub(super) fn of_name(told: OpenName<'_>) -> Option<Event> {
        let name = PathBuf::from(OsStr::from_bytes(told.name?));
        Some(Event { at_ns: told.at_ns, thread: told.thread, what: What::Names(name) })
    }
}

struct Format {
    kind: Kind,
    thread: Field,
    fields: Vec<Field>,
}

/// Where the fields of all tracepoints are, by their numbers.
#[derive(Default)]
pub(super) struct Formats(Vec<Option<Format>>);

impl Formats {
    /// Adds a tracepoint by its `format` file.
    ///
    /// # Errors
    /// The name of a field that is not there.
    pub(super) fn add(&mut self, kind: Kind, text: &str) -> Result<(), &'static str> {
        let needed = |name: &'static str| Field::named(text, name).ok_or(name);
        let fields = match kind {
            Kind::Begin(_) => {
                let behind = Field::all(text).skip_while(|(name, _)| !name.ends_with("syscall_nr")).skip(1);
                behind.map(|(_, field)| field).take(6).collect()
            }
            Kind::End(_) => vec![needed("ret")?],
            Kind::NewTask => vec![needed("pid")?, needed("clone_flags")?],
            Kind::Executed => vec![needed("old_pid")?, needed("filename")?],
            Kind::Ended => Vec::new(),
        };
        let at = usize::from(id(text).ok_or("ID")?);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(Format { kind, thread: needed("common_pid")?, fields });
        Ok(())
    }

    /// A record as an event; `None` for that of another tracepoint.
    pub(super) fn event(&self, at_ns: u64, record: &[u8]) -> Option<Event> {
        let Format { kind, thread, fields } = self.0.get(usize::from(id_of(record)?))?.as_ref()?;
        let number = |at: usize| fields.get(at)?.number(record);
        let what = match *kind {
            Kind::Begin(call) => What::Begin(call, std::array::from_fn(|at| number(at).unwrap_or(0))),
            Kind::End(call) => What::End(call, number(0)?.cast_signed()),
            Kind::NewTask => What::NewTask { task: int(number(0)?), flags: number(1)? },
            Kind::Executed => {
                let program = fields.get(1)?.text(record).unwrap_or_default();
                What::Executed { before: int(number(0)?), program }
            }
            Kind::Ended => What::Ended,
        };
        Some(Event { at_ns, thread: int(thread.number(record)?), what })
    }
}

/// Where a call has the name of a file, if this tracepoint is of one.
pub(super) fn named_call(call: Call, text: &str) -> Option<NamedCall> {
    let field = match call {
        Call::Open | Call::OpenAt | Call::OpenAt2 | Call::Directory => "filename",
        Call::Create => "pathname",
        _ => return None,
    };
    Some(NamedCall { event: id(text)?, name_at: u16::try_from(Field::named(text, field)?.at()).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 prints it.
    const PREAD: &str = "\
name: sys_enter_pread64
ID: 838
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char * buf;\toffset:24;\tsize:8;\tsigned:0;
\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;
\tfield:loff_t pos;\toffset:40;\tsize:8;\tsigned:0;
";

    #[test]
    fn a_call_has_its_arguments_in_order() {
        let mut formats = Formats::default();
        let call = Call::Io(CallKind::Pread);
        formats.add(Kind::Begin(call), PREAD).unwrap();
        let mut record = vec![0; 48];
        record[..2].copy_from_slice(&838_u16.to_ne_bytes());
        record[4..8].copy_from_slice(&77_i32.to_ne_bytes());
        record[16] = 3;
        record[32] = 9;
        record[41] = 1;
        let expected = Event { at_ns: 5, thread: 77, what: What::Begin(call, [3, 0, 9, 256, 0, 0]) };
        assert_eq!(formats.event(5, &record), Some(expected));
        assert_eq!(formats.event(5, &record[..6]), None);
        assert_eq!(formats.event(5, &[1, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(formats.add(Kind::End(call), PREAD), Err("ret"));
    }
}
