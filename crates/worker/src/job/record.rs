//! Records the operations of any source in an iolog.
//!
//! Invariant: every operation that was issued is in the iolog, in order, with the time of its issue. Memory is bounded:
//! where the disk of the iolog cannot keep up, the job waits for it, and reports how long.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fiord_plan::shown::shown;
use fiord_plan::{Action, FileIndex, Job, Op};
use fiord_sys::channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};
use fiord_sys::errno::error_text;
use fiord_sys::spawn::Thread;
use fiord_sys::{clock, spawn};
use fiord_trace::{EntryKind, IologEvent, IologWriter};
use fiord_workload::{OperationSource, Source, Supply};

use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;
use crate::files::target_opener::TargetOpener;

/// Operations of one batch.
const BATCH: usize = 1024;
/// Batches that wait to be written: 4 MiB of operations.
const BATCHES: usize = 64;
const STACK_BYTES: usize = 256 << 10;
const WRITE_BYTES: usize = 1 << 18;

/// What happened, and when, in nanoseconds since the loop began.
type Recorded = (u64, Event);

/// A line of the iolog.
enum Event {
    Open(FileIndex),
    Close(FileIndex),
    Issue(Op),
}

/// A source whose operations are recorded.
pub(crate) struct RecordedSource {
    source: Source,
    batch: Vec<Recorded>,
    filled: Option<Sender<Vec<Recorded>>>,
    spare: Receiver<Vec<Recorded>>,
    writer: Option<Thread>,
    /// Why its writer has failed, if it has.
    failed: Arc<OnceLock<String>>,
    /// Why the iolog is incomplete, once it has ended.
    unwritten: Option<String>,
    /// The iolog, as shown to the user.
    shown: String,
    /// How long the job waited for the writer.
    waited_ns: u64,
    /// The files that the source requests to be open, and the generation of that request.
    open: Vec<FileIndex>,
    open_generation: u64,
    /// The files that are open by the lines so far, and of each whether it is one of them.
    recorded_open: Vec<FileIndex>,
    is_recorded_open: Vec<bool>,
}

impl RecordedSource {
    /// Opens the iolog and begins to record the operations of `source`.
    pub fn new(
        source: Source,
        job: &Job,
        path: &Path,
        opener: &TargetOpener,
    ) -> Result<RecordedSource, Failure> {
        let iolog = opener.create(path, true)?;
        let (fill, filled) = bounded(BATCHES);
        let (spares, spare) = bounded(BATCHES);
        for _ in 1..BATCHES {
            // There is room for all of them.
            let _ = spares.try_send(Vec::with_capacity(BATCH));
        }
        let failed = Arc::new(OnceLock::new());
        let files: Vec<PathBuf> = job.files.list.iter().map(|file| file.path.clone()).collect();
        let failure = Arc::clone(&failed);
        let write = move || {
            if let Err(error) = write_all(iolog, &files, &filled, &spares) {
                failure.get_or_init(|| error_text(&error));
            }
        };
        let writer = spawn::spawn("fiord-iolog", STACK_BYTES, write);
        let writer = writer.map_err(|error| Failure::system("start a thread", &error))?;
        let mut recorded = RecordedSource {
            source,
            batch: Vec::with_capacity(BATCH),
            filled: Some(fill),
            spare,
            writer: Some(writer),
            failed,
            unwritten: None,
            shown: shown(path),
            waited_ns: 0,
            open: Vec::with_capacity(job.files.list.len()),
            open_generation: 0,
            recorded_open: Vec::with_capacity(job.files.list.len()),
            is_recorded_open: vec![false; job.files.list.len()],
        };
        recorded.update_open_files();
        for index in 0..recorded.open.len() {
            recorded.record_opening(recorded.open[index], 0);
        }
        Ok(recorded)
    }

    /// Copies the list of files that the source requests to be open. There is room for all of them.
    fn update_open_files(&mut self) {
        self.open.clear();
        let open = &mut self.open;
        self.source.for_each_open_file(&mut |file| open.push(file));
        self.open_generation = self.source.open_generation();
    }

    fn record(&mut self, at_ns: u64, event: Event) {
        self.batch.push((at_ns, event));
        if self.batch.len() == BATCH {
            // Waking the writer may allocate.
            allow_alloc(|| self.hand_over());
        }
    }

    fn record_opening(&mut self, file: FileIndex, at_ns: u64) {
        if let Some(is_open) = self.is_recorded_open.get_mut(file as usize) {
            *is_open = true;
            self.recorded_open.push(file);
            self.record(at_ns, Event::Open(file));
        }
    }

    /// Records that a file was opened, and before it that those were closed which the source no longer requests.
    #[cold]
    fn record_change(&mut self, opened: FileIndex, at_ns: u64) {
        let mut next = 0;
        while let Some(&file) = self.recorded_open.get(next) {
            if self.open.contains(&file) {
                next += 1;
                continue;
            }
            self.recorded_open.swap_remove(next);
            self.is_recorded_open[file as usize] = false;
            self.record(at_ns, Event::Close(file));
        }
        self.record_opening(opened, at_ns);
    }

    /// Hands a full batch to the writer, and takes an empty one.
    fn hand_over(&mut self) {
        let Some(filled) = &self.filled else { return };
        let next = match self.spare.try_recv() {
            Ok(next) => next,
            Err(TryRecvError::Disconnected) => return self.batch.clear(),
            Err(TryRecvError::Empty) => {
                let began_ns = clock::monotonic_ns();
                let next = self.spare.recv();
                self.waited_ns += clock::monotonic_ns() - began_ns;
                let Ok(next) = next else { return self.batch.clear() };
                next
            }
        };
        let full = std::mem::replace(&mut self.batch, next);
        // Never full: it has room for all batches. If the writer failed, `finish` reports it.
        match filled.try_send(full) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Writes what is left and waits for the writer, once. Returns what the user should know.
    fn end_iolog(&mut self) -> Option<String> {
        let last = std::mem::take(&mut self.batch);
        if let Some(filled) = self.filled.take() {
            // If the writer failed, its result has the error.
            let _ = filled.send(last);
        }
        let panicked = self.writer.take()?.join().err().map(|panicked| panicked.to_string());
        let why = panicked.or_else(|| self.failed.get().cloned());
        self.unwritten = why.map(|why| format!("the iolog {} is incomplete: {why}", self.shown));
        (self.waited_ns > 0 && self.unwritten.is_none()).then(|| {
            format!(
                "the job waited {} ms for the iolog {} to be written",
                self.waited_ns.div_ceil(1_000_000),
                self.shown
            )
        })
    }
}

impl Drop for RecordedSource {
    /// Every issued operation is in the iolog, however the job ends.
    fn drop(&mut self) {
        let _ = self.end_iolog();
    }
}

impl OperationSource for RecordedSource {
    fiord_workload::wraps!(source);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        let supply = self.source.fill(ops, room, now_ns);
        if self.source.open_generation() != self.open_generation {
            self.update_open_files();
        }
        supply
    }

    fn issued(&mut self, op: &Op, at_ns: u64) {
        self.source.issued(op, at_ns);
        // Reading back the job's own writes is not recorded.
        if !op.purpose.rules().is_measured {
            return;
        }
        if self.is_recorded_open.get(op.file as usize) == Some(&false) {
            self.record_change(op.file, at_ns);
        }
        self.record(at_ns, Event::Issue(*op));
    }

    fn finish(&mut self, at_ns: u64) -> Option<String> {
        let of_source = self.source.finish(at_ns);
        self.end_iolog().or(of_source)
    }

    fn unwritten(&self) -> Option<String> {
        self.unwritten.clone().or_else(|| self.source.unwritten())
    }

    fn open_generation(&self) -> u64 {
        self.open_generation
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.open.iter().copied().for_each(show);
    }
}

/// Writes batches as they come, to the end.
fn write_all(
    iolog: File,
    files: &[PathBuf],
    filled: &Receiver<Vec<Recorded>>,
    spares: &Sender<Vec<Recorded>>,
) -> io::Result<()> {
    let is_new = iolog.metadata()?.len() == 0;
    let mut writer = IologWriter::new(BufWriter::with_capacity(WRITE_BYTES, iolog), is_new)?;
    files.iter().try_for_each(|file| writer.write(0, file, IologEvent::Add))?;
    let (mut last_ns, mut is_open) = (0, vec![false; files.len()]);
    while let Ok(mut batch) = filled.recv() {
        for (at_ns, event) in batch.drain(..) {
            let (file, line) = match event {
                Event::Open(file) => (file, IologEvent::Open),
                Event::Close(file) => (file, IologEvent::Close),
                Event::Issue(Op { action, file, offset_bytes, length_bytes, .. }) => {
                    (file, IologEvent::Io { kind: kind(action), offset_bytes, length_bytes })
                }
            };
            let index = file as usize;
            is_open[index] = line != IologEvent::Close;
            writer.write(at_ns, &files[index], line)?;
            last_ns = at_ns;
        }
        // If nothing receives it, the job has ended.
        let _ = spares.try_send(batch);
    }
    let left = files.iter().zip(is_open).filter(|(_, is_open)| *is_open);
    left.map(|(file, _)| file).try_for_each(|file| writer.write(last_ns, file, IologEvent::Close))?;
    writer.flush()
}

/// The name of an action in an iolog.
fn kind(action: Action) -> EntryKind {
    match action {
        Action::Read => EntryKind::Read,
        Action::Write => EntryKind::Write,
        Action::Trim | Action::ResetZone => EntryKind::Trim,
        Action::Sync => EntryKind::Sync,
        Action::DataSync => EntryKind::DataSync,
        Action::RangeSync(_) => EntryKind::RangeSync,
    }
}

#[cfg(test)]
mod tests {
    use fiord_workload::Stream;

    use super::*;
    use crate::test_jobs::{TempFile, null_job};

    #[test]
    fn an_iolog_whose_writer_panicked_is_incomplete() {
        let (job, iolog) = (null_job("a"), TempFile::new("panicking-writer"));
        let stream = Stream::new(&job.access, &job.files, &job.limits).unwrap();
        let source = Source::Generator(stream);
        let mut recorded = RecordedSource::new(source, &job, &iolog.0, &TargetOpener::default()).unwrap();
        recorded.record(0, Event::Close(99));
        assert_eq!(recorded.end_iolog(), None);
        let why = recorded.unwritten.take().unwrap_or_default();
        assert!(why.contains("is incomplete: fiord has a bug: its thread panicked"), "{why}");
    }
}
