//! Prints the operations of any source (`--debug=io,random,verify,rate`).
//!
//! Invariant: what the source gives and is given passes through unchanged.

use fiord_plan::shown::shown;
use fiord_plan::{Action, DebugChannel, FileIndex, Job, Op, Purpose};
use fiord_sys::errno::Errno;
use fiord_sys::thread;
use fiord_workload::{OperationSource, Source, Supply};

use crate::alloc_guard::allow_alloc;
use crate::debug::DebugLog;

/// A source whose operations are printed.
pub(crate) struct DebugSource {
    source: Source,
    log: DebugLog,
    files: Vec<String>,
    is_random: bool,
    /// The method by which blocks are verified.
    method: Option<&'static str>,
    /// Whether I/Os are handed to other threads.
    is_offloaded: bool,
}

impl DebugSource {
    /// The source itself, unless something of it is printed.
    pub fn around(source: Source, job: &Job, log: Option<&DebugLog>) -> Source {
        let channels = [DebugChannel::Io, DebugChannel::Random, DebugChannel::Verify, DebugChannel::Rate];
        match log.filter(|log| channels.into_iter().any(|channel| log.has(channel))) {
            None => source,
            Some(log) => Source::Other(Box::new(DebugSource {
                source,
                log: log.clone(),
                files: job.files.list.iter().map(|file| shown(&file.path)).collect(),
                is_random: job.access.random,
                method: job.verification.as_ref().map(|verification| verification.format.method.name()),
                is_offloaded: job.submission.offload,
            })),
        }
    }

    fn print(&self, what: &str, op: &Op) {
        let direction = match op.action {
            Action::Read => 0,
            Action::Write => 1,
            Action::Trim | Action::ResetZone => 2,
            Action::Sync => 3,
            Action::DataSync => 4,
            Action::RangeSync(_) => 5,
        };
        let file = self.files.get(op.file as usize).map_or("", String::as_str);
        let (number, offset, length) = (op.sequence, op.offset_bytes, op.length_bytes);
        self.log.line(
            DebugChannel::Io,
            format_args!(
                "{what}: io_u {number:#x}: off={offset:#x},len={length:#x},ddir={direction},file={file}"
            ),
        );
    }
}

impl OperationSource for DebugSource {
    fiord_workload::wraps!(source);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        let before = ops.len();
        let supply = self.source.fill(ops, room, now_ns);
        for op in &ops[before..] {
            if self.is_random && op.purpose == Purpose::Measured && op.action.direction().is_some() {
                self.log.line(DebugChannel::Random, format_args!("off rand {}", op.offset_bytes));
            }
            self.print("fill", op);
        }
        supply
    }

    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        if let Some(method) = self.method {
            let line = format_args!("fill {method} io_u {:#x}, len {}", op.sequence, op.length_bytes);
            self.log.line(DebugChannel::Verify, line);
        }
        self.source.prepare(op, buffer);
    }

    fn issued(&mut self, op: &Op, at_ns: u64) {
        self.print("prep", op);
        self.print("queue", op);
        if self.is_offloaded {
            let line = format_args!("io_u {:#x} queued by {}", op.sequence, thread::id());
            self.log.line(DebugChannel::Rate, line);
        }
        self.source.issued(op, at_ns);
    }

    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        self.print("complete", op);
        if self.is_offloaded {
            let line = format_args!("io_u {:#x} ret 0 by {}", op.sequence, thread::id());
            self.log.line(DebugChannel::Rate, line);
        }
        if let (Some(method), Purpose::VerifyRead) = (self.method, op.purpose) {
            let line = format_args!("{method} verify io_u {:#x}, len {}", op.sequence, op.length_bytes);
            self.log.line(DebugChannel::Verify, line);
        }
        self.source.completed(op, buffer)
    }

    fn failed(&mut self, op: &Op, errno: Errno) {
        allow_alloc(|| self.print(&format!("error {}", errno.0), op));
        self.source.failed(op, errno);
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.source.for_each_open_file(show);
    }
}
