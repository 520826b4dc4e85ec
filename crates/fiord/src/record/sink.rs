//! Writes calls as a recording or an iolog: numbers files and threads, and finds where appended bytes are.
//!
//! Invariant: contents are never written; with `--anonymous` no name of a file, thread, command or machine is.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fiord_model::{
    EntryKind, IologEvent, IologWriter, LeftOut, RecordedIo, RecordingEnd, RecordingHead, RecordingWriter,
    Thread,
};

use super::tracker::{Done, Identity, Place, Task};

/// Files at most; what is done on others is counted as left out.
const FILES_MAX: usize = 1 << 18;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// fiord's own: every call with its thread, flags and duration
    Recording,
    /// fio's iolog, version 3: text that fio replays
    Iolog,
}

enum Output<W: Write> {
    Recording(RecordingWriter<W>),
    Iolog(IologWriter<W>),
}

#[derive(Debug)]
struct FileState {
    number: u32,
    /// As it is written.
    name: PathBuf,
    size_bytes: u64,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Calls of each kind, in the order of `EntryKind::ALL`.
    pub(crate) calls: [u64; EntryKind::ALL.len()],
    /// Bytes of reads, writes and trims, likewise.
    pub(crate) bytes: [u64; EntryKind::ALL.len()],
    /// Files with I/O.
    pub(crate) files: u64,
    /// Those that were closed before they could be named.
    pub(crate) unnamed_files: u64,
    /// Threads with I/O.
    pub(crate) threads: u64,
}

/// Where calls go.
pub(super) struct Sink<W: Write> {
    output: Output<W>,
    is_anonymous: bool,
    began_ns: u64,
    began: SystemTime,
    files: HashMap<PathBuf, FileState>,
    pub(super) totals: Totals,
    /// Calls on more files than are told apart.
    unknown: u64,
}

impl<W: Write> Sink<W> {
    /// Begins the output.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn new(form: Form, output: W, head: &RecordingHead) -> io::Result<Sink<W>> {
        let output = match form {
            Form::Recording => Output::Recording(RecordingWriter::new(output, head)?),
            Form::Iolog => Output::Iolog(IologWriter::new(output, true)?),
        };
        let (began, is_anonymous) = (SystemTime::now(), head.is_anonymous);
        let (files, totals) = (HashMap::new(), Totals::default());
        Ok(Sink { output, is_anonymous, began_ns: 0, began, files, totals, unknown: 0 })
    }

    /// Times count from this moment of the trace's clock. That recording has begun is seen by what is in the output.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn began(&mut self, at_ns: u64) -> io::Result<()> {
        self.began_ns = at_ns;
        match &mut self.output {
            Output::Recording(recording) => recording.flush(),
            Output::Iolog(iolog) => iolog.flush(),
        }
    }

    /// Writes a call.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn add(&mut self, done: &Done) -> io::Result<()> {
        if matches!(*done.open.identity.borrow(), Identity::Other) {
            return Ok(());
        }
        let Some((number, name, offset_bytes)) = self.place(done)? else { return Ok(()) };
        if done.place == Place::Resize {
            return Ok(());
        }
        let thread = self.thread(&done.task)?;
        let kind = done.call.entry_kind();
        let begin_ns = done.begin_ns.saturating_sub(self.began_ns);
        self.totals.calls[kind as usize] += 1;
        if kind.has_range() {
            self.totals.bytes[kind as usize] += done.length_bytes;
        }
        match &mut self.output {
            Output::Recording(recording) => recording.io(&RecordedIo {
                thread,
                file: number,
                call: done.call,
                flags: done.flags,
                offset_bytes,
                length_bytes: done.length_bytes,
                begin_ns,
                duration_ns: done.duration_ns,
            }),
            Output::Iolog(iolog) => {
                let event = IologEvent::Io { kind, offset_bytes, length_bytes: done.length_bytes };
                iolog.write(begin_ns, &name, event)
            }
        }
    }

    /// The file of a call, its name, and where in it the call worked; `None` if it is one too many.
    fn place(&mut self, done: &Done) -> io::Result<Option<(u32, PathBuf, u64)>> {
        let path = self.path(done);
        if !self.files.contains_key(&path) {
            if self.files.len() >= FILES_MAX {
                self.unknown += 1;
                return Ok(None);
            }
            self.name(&path, done)?;
        }
        let Some(file) = self.files.get_mut(&path) else { return Ok(None) };
        let offset_bytes = match done.place {
            Place::At(offset_bytes) => offset_bytes,
            Place::End => file.size_bytes,
            Place::Resize => {
                file.size_bytes = done.length_bytes;
                0
            }
        };
        if done.call.entry_kind() == EntryKind::Write {
            file.size_bytes = file.size_bytes.max(offset_bytes.saturating_add(done.length_bytes));
        }
        Ok(Some((file.number, file.name.clone(), offset_bytes)))
    }

    /// The path of a call's file, or one made up for it.
    fn path(&mut self, done: &Done) -> PathBuf {
        let mut identity = done.open.identity.borrow_mut();
        if let Identity::Known(opened) = &*identity
            && let Some(path) = &opened.path
        {
            return path.clone();
        }
        self.totals.unnamed_files += 1;
        let path = PathBuf::from(format!("unnamed-{}", self.totals.unnamed_files));
        *identity = Identity::Known(Box::new(fiord_sys::descriptors::Opened::without_name(path.clone())));
        path
    }

    fn name(&mut self, path: &Path, done: &Done) -> io::Result<()> {
        let number = self.totals.files as u32;
        self.totals.files += 1;
        let name = match self.is_anonymous {
            true => PathBuf::from(format!("file-{}", self.totals.files)),
            false => path.to_path_buf(),
        };
        match &mut self.output {
            Output::Recording(recording) => recording.file(&name)?,
            Output::Iolog(iolog) => {
                let at_ns = done.begin_ns.saturating_sub(self.began_ns);
                iolog.write(at_ns, &name, IologEvent::Add)?;
                iolog.write(at_ns, &name, IologEvent::Open)?;
            }
        }
        let size_bytes = match &*done.open.identity.borrow() {
            // One that was made meanwhile was empty, whatever it is by now.
            Identity::Known(opened) if opened.made.is_none_or(|made| made < self.began) => opened.size_bytes,
            _ => 0,
        };
        self.files.insert(path.to_path_buf(), FileState { number, name, size_bytes });
        Ok(())
    }

    fn thread(&mut self, task: &Task) -> io::Result<u32> {
        if let Some(number) = task.number.get() {
            return Ok(number);
        }
        let number = self.totals.threads as u32;
        self.totals.threads += 1;
        task.number.set(Some(number));
        if let Output::Recording(recording) = &mut self.output {
            let name = match self.is_anonymous {
                true => format!("thread-{}", self.totals.threads),
                false => task.name.to_string(),
            };
            recording.thread(&Thread {
                process: task.process.cast_unsigned(),
                thread: task.thread.cast_unsigned(),
                name,
            })?;
        }
        Ok(number)
    }

    /// Writes the end.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn finish(self, end: &RecordingEnd) -> io::Result<(Totals, LeftOut)> {
        let mut end = *end;
        end.left_out.unknown += self.unknown;
        match self.output {
            Output::Recording(recording) => recording.finish(&end)?,
            Output::Iolog(mut iolog) => iolog.flush()?,
        }
        Ok((self.totals, end.left_out))
    }
}

/// The word for a kind of call in a sentence.
pub(crate) fn words(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Read => "reads",
        EntryKind::Write => "writes",
        EntryKind::Trim => "holes punched",
        EntryKind::Sync => "fsyncs",
        EntryKind::DataSync => "fdatasyncs",
        EntryKind::RangeSync => "sync_file_ranges",
    }
}
