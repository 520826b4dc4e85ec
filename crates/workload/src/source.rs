//! The source of a job's operations: the generator of the plan's access pattern, or another implementation.
//!
//! Invariant: a source generates operations in batches, never one per I/O. Only sources other than the generator are
//! notified of single I/Os, so that an ordinary job pays for the choice with one match per batch. A source that wraps
//! another passes on whatever it does not implement itself.

use fiord_errno::Errno;
use fiord_plan::{Direction, FileIndex, Op};
use fiord_stats::Latency;
use fiord_verify::{Corruption, VerifyState};

use crate::stream::Stream;

/// The result of requesting operations from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    /// At least one operation was appended.
    Ready,
    /// No operation until one in flight has completed.
    AfterCompletion,
    /// No operation before this time, in nanoseconds since the loop began.
    NotBefore(u64),
    /// No more operations.
    Ended,
    /// No more operations, for the reason that `failure` returns.
    Failed,
}

/// An operation whose data was found to be wrong after `completed` had accepted it.
#[derive(Debug)]
pub struct Rejected {
    /// Which.
    pub op: Op,
    /// What it read.
    pub buffer: Vec<u8>,
    /// The errno it fails with.
    pub errno: Errno,
}

/// A source other than the access pattern: a verification that reads back what was written, a trace that is replayed.
///
/// All calls come from one thread, the worker's. The loop does not allocate, and neither may a source, except in
/// `explain`: what it keeps per operation has to be there before the loop begins.
///
/// A source may wrap another (`inner`), and then implements only what it changes. Each body given here passes the call on
/// to the wrapped source, and without one does nothing or gives the neutral answer.
pub trait OperationSource: Send {
    /// The source that this one wraps, if it does.
    fn inner(&self) -> Option<&dyn OperationSource> {
        None
    }

    /// The same, to call what changes it.
    fn inner_mut(&mut self) -> Option<&mut dyn OperationSource> {
        None
    }

    /// Appends at most `room` operations, `now_ns` after the loop began. The source sets their `due_ns`, `purpose` and
    /// `sequence`. After `Ended` it is called again when more operations have completed.
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply;

    /// Shows each file to have open, never more than the job may (`openfiles`).
    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex));

    /// Whether the engine sends the buffer of `op`, which `prepare` then fills: of writes, and of others if the source and
    /// the engine agree on that.
    fn sends_buffer(&self, op: &Op) -> bool {
        self.inner().map_or_else(|| op.action.sends_buffer(), |inner| inner.sends_buffer(op))
    }

    /// `op` is about to be issued, and these bytes are what it writes: the place to put a header. Only for operations
    /// whose buffer is sent; called again when the engine had no room for `op` at first.
    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        if let Some(inner) = self.inner_mut() {
            inner.prepare(op, buffer);
        }
    }

    /// `op` is issued, `at_ns` after the loop began.
    fn issued(&mut self, op: &Op, at_ns: u64) {
        if let Some(inner) = self.inner_mut() {
            inner.issued(op, at_ns);
        }
    }

    /// `op` has completed in full; `buffer` holds the data read or written, and is empty for operations without data.
    ///
    /// # Errors An errno, if the result of `op` is wrong (it did not read what was written). The operation then fails
    /// with it, and the job's error policy decides what follows.
    fn completed(&mut self, op: &Op, buffer: &[u8]) -> Result<(), Errno> {
        self.inner_mut().map_or(Ok(()), |inner| inner.completed(op, buffer))
    }

    /// The next operation that was found to be wrong since it was accepted, because its data is checked beside the loop.
    /// All have been found when `fill` has returned `Ended`, and after `finish`.
    fn next_rejected(&mut self) -> Option<Rejected> {
        self.inner_mut()?.next_rejected()
    }

    /// `op` has failed with this errno. Not called if `completed` rejected it.
    fn failed(&mut self, op: &Op, errno: Errno) {
        if let Some(inner) = self.inner_mut() {
            inner.failed(op, errno);
        }
    }

    /// What is wrong with `op`, which `completed` just rejected, for the report. May allocate.
    fn explain(&self, op: &Op) -> String {
        self.inner().map_or_else(String::new, |inner| inner.explain(op))
    }

    /// Why `fill` returned `Failed`. May allocate.
    fn failure(&self) -> String {
        self.inner().map_or_else(String::new, |inner| inner.failure())
    }

    /// The loop has ended, `at_ns` after it began, and nothing is in flight. Returns a remark for the user. May
    /// allocate, and may wait for work of the source that runs beside the loop.
    fn finish(&mut self, at_ns: u64) -> Option<String> {
        self.inner_mut()?.finish(at_ns)
    }

    /// What is missing from a file that the source writes, and why. Known after `finish`. May allocate.
    fn unwritten(&self) -> Option<String> {
        self.inner()?.unwritten()
    }

    /// Whether each operation's direction is drawn, so that `steer` has an effect.
    fn is_mixed(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_mixed())
    }

    /// Sets the directions that replace a drawn write and a drawn read, from the next `fill` on.
    fn steer(&mut self, either: [Direction; 2]) {
        if let Some(inner) = self.inner_mut() {
            inner.steer(either);
        }
    }

    /// What is wrong with the block of `op`, which `completed` just rejected.
    fn corruption(&self, op: &Op) -> Option<Corruption> {
        self.inner()?.corruption(op)
    }

    /// The corrupted piece of the block of `op` as it was written, where that is known; `buffer` is what was read. May
    /// allocate.
    fn restored(&self, op: &Op, buffer: &[u8]) -> Option<Vec<u8>> {
        self.inner()?.restored(op, buffer)
    }

    /// How far a verified job has written. May allocate.
    fn state(&self) -> Option<VerifyState> {
        self.inner()?.state()
    }

    /// Passes begun, from 1: what is done about files between two passes (`unlink_each_loop`) is done when it changes.
    fn passes_begun(&self) -> u64 {
        self.inner().map_or(1, |inner| inner.passes_begun())
    }

    /// Changes when other files are to be open than before.
    fn open_generation(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.open_generation())
    }

    /// Time spent reading back what was written, in phases of their own, until the last `fill`, in nanoseconds.
    fn read_back_ns(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.read_back_ns())
    }

    /// Whether what it generates now reads back or trims what was written, and nothing of the job's own.
    fn reads_back(&self) -> bool {
        self.inner().is_some_and(|inner| inner.reads_back())
    }

    /// Zones reset; `None` if the targets are not zoned.
    fn zone_resets(&self) -> Option<u64> {
        self.inner()?.zone_resets()
    }

    /// How late operations were issued, from the times that a trace gives them; `None` if they have none. Complete after
    /// `finish`.
    fn lateness(&self) -> Option<&Latency> {
        self.inner()?.lateness()
    }
}

/// In an `impl OperationSource`: the source wraps that of this field.
#[macro_export]
macro_rules! wraps {
    ($field:tt) => {
        fn inner(&self) -> Option<&dyn $crate::OperationSource> {
            Some(&self.$field)
        }

        fn inner_mut(&mut self) -> Option<&mut dyn $crate::OperationSource> {
            Some(&mut self.$field)
        }
    };
}

/// The generator of the access pattern, which observes no operations.
impl OperationSource for Stream {
    #[inline]
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        match Stream::fill(self, ops, room) {
            0 => Supply::Ended,
            _ => Supply::Ready,
        }
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.open_files().for_each(show);
    }

    fn is_mixed(&self) -> bool {
        Stream::is_mixed(self)
    }

    fn steer(&mut self, either: [Direction; 2]) {
        Stream::steer(self, either);
    }

    fn passes_begun(&self) -> u64 {
        Stream::passes_begun(self)
    }

    fn open_generation(&self) -> u64 {
        Stream::open_generation(self)
    }
}

/// The source of one job's operations.
#[allow(clippy::large_enum_variant, reason = "there is one per job, and nearly always it is the large one")]
pub enum Source {
    /// The generator of the plan's access pattern.
    Generator(Stream),
    /// Anything else.
    Other(Box<dyn OperationSource>),
}

impl Source {
    /// The observer of each operation; `None` for the generator.
    pub fn observer(&mut self) -> Option<&mut dyn OperationSource> {
        match self {
            Source::Generator(_) => None,
            Source::Other(source) => Some(&mut **source),
        }
    }

    /// Whether it is the generator, which observes no operations.
    pub fn is_generator(&self) -> bool {
        matches!(self, Source::Generator(_))
    }
}

/// The calls made for each batch are matched here, so that those to the generator are compiled into the loop.
impl OperationSource for Source {
    fn inner(&self) -> Option<&dyn OperationSource> {
        match self {
            Source::Generator(stream) => Some(stream),
            Source::Other(source) => Some(&**source),
        }
    }

    fn inner_mut(&mut self) -> Option<&mut dyn OperationSource> {
        match self {
            Source::Generator(stream) => Some(stream),
            Source::Other(source) => Some(&mut **source),
        }
    }

    #[inline]
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        match self {
            Source::Generator(stream) => OperationSource::fill(stream, ops, room, now_ns),
            Source::Other(source) => source.fill(ops, room, now_ns),
        }
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        match self {
            Source::Generator(stream) => stream.open_files().for_each(show),
            Source::Other(source) => source.for_each_open_file(show),
        }
    }

    #[inline]
    fn passes_begun(&self) -> u64 {
        match self {
            Source::Generator(stream) => stream.passes_begun(),
            Source::Other(source) => source.passes_begun(),
        }
    }

    #[inline]
    fn open_generation(&self) -> u64 {
        match self {
            Source::Generator(stream) => stream.open_generation(),
            Source::Other(source) => source.open_generation(),
        }
    }
}
