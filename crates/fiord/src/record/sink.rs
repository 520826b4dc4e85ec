//! Writes calls as a recording or an iolog: numbers files and threads, and finds where appended bytes are.
//!
//! Invariant: contents are never written; with `--anonymous` no name of a file, thread, command or machine is.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use fiord_model::{
    EntryKind, IologEvent, IologWriter, LeftOut, RecordedIo, RecordingEnd, RecordingHead, RecordingWriter,
    Thread,
};
use fiord_stats::Capped;

use super::kept::{Kept, Record, Totals};
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

enum Output {
    Recording(RecordingWriter<Kept>),
    Iolog(IologWriter<Kept>),
}

impl Output {
    fn kept(&mut self) -> &mut Kept {
        match self {
            Output::Recording(recording) => recording.output(),
            Output::Iolog(iolog) => iolog.output(),
        }
    }
}

#[derive(Debug)]
struct FileState {
    /// As it is written.
    name: PathBuf,
    size_bytes: u64,
}

/// Where calls go.
pub(super) struct Sink {
    output: Output,
    is_anonymous: bool,
    began_ns: u64,
    began: SystemTime,
    /// In the order of their numbers.
    files: Vec<FileState>,
    numbers: HashMap<PathBuf, u32>,
    threads: u32,
    unnamed_files: u64,
    /// Calls that were given, of which the file may lack the last.
    pub(super) calls: u64,
    /// Calls on more files than are told apart.
    unknown: u64,
}

impl Sink {
    /// Begins the output.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn new(form: Form, file: File, head: &RecordingHead) -> io::Result<Sink> {
        let output = Kept::new(file);
        let mut output = match form {
            Form::Recording => Output::Recording(RecordingWriter::new(output, head)?),
            Form::Iolog => Output::Iolog(IologWriter::new(output, true)?),
        };
        output.kept().ends(Record::Frame)?;
        Ok(Sink {
            output,
            is_anonymous: head.is_anonymous,
            began_ns: 0,
            began: SystemTime::now(),
            files: Vec::new(),
            numbers: HashMap::new(),
            threads: 0,
            unnamed_files: 0,
            calls: 0,
            unknown: 0,
        })
    }

    /// Times count from this moment of the trace's clock. That recording has begun is seen by what is in the output.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn began(&mut self, at_ns: u64) -> io::Result<()> {
        self.began_ns = at_ns;
        self.output.kept().save()
    }

    /// Writes what has waited for long.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn save_old(&mut self, now_ns: u64) -> io::Result<()> {
        self.output.kept().save_old(now_ns)
    }

    /// What is in the output.
    pub(super) fn totals(&mut self) -> Totals {
        *self.output.kept().totals()
    }

    /// Writes a call.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn add(&mut self, done: &Done) -> io::Result<()> {
        if matches!(*done.open.identity.borrow(), Identity::Other) {
            return Ok(());
        }
        let Some((number, offset_bytes)) = self.place(done)? else { return Ok(()) };
        if done.place == Place::Resize {
            return Ok(());
        }
        let thread = self.thread(&done.task)?;
        let kind = done.call.entry_kind();
        let begin_ns = done.begin_ns.saturating_sub(self.began_ns);
        self.calls += 1;
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
            })?,
            Output::Iolog(iolog) => {
                let event = IologEvent::Io { kind, offset_bytes, length_bytes: done.length_bytes };
                iolog.write(begin_ns, &self.files[number as usize].name, event)?;
            }
        }
        let bytes = if kind.has_range() { done.length_bytes } else { 0 };
        self.output.kept().ends(Record::Call { kind, bytes, begin_ns })
    }

    /// The file of a call, and where in it the call worked; `None` if it is one too many.
    fn place(&mut self, done: &Done) -> io::Result<Option<(u32, u64)>> {
        let Some(number) = self.number(done)? else { return Ok(None) };
        let file = &mut self.files[number as usize];
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
        Ok(Some((number, offset_bytes)))
    }

    /// The number of a call's file.
    fn number(&mut self, done: &Done) -> io::Result<Option<u32>> {
        if let Some(number) = done.open.number.get() {
            return Ok(Some(number));
        }
        let unnamed_before = self.unnamed_files;
        let path = self.path(done);
        let is_unnamed = self.unnamed_files > unnamed_before;
        let number = match self.numbers.get(&path) {
            Some(number) => *number,
            None if self.files.len() >= FILES_MAX => {
                self.unknown += 1;
                return Ok(None);
            }
            None => self.name(path, done, is_unnamed)?,
        };
        done.open.number.set(Some(number));
        Ok(Some(number))
    }

    /// The path of a call's file, or one made up for it.
    fn path(&mut self, done: &Done) -> PathBuf {
        let mut identity = done.open.identity.borrow_mut();
        if let Identity::Known(opened) = &*identity
            && let Some(path) = &opened.path
        {
            return path.clone();
        }
        self.unnamed_files += 1;
        let path = PathBuf::from(format!("unnamed-{}", self.unnamed_files));
        *identity = Identity::Known(Box::new(fiord_sys::descriptors::Opened::without_name(path.clone())));
        path
    }

    fn name(&mut self, path: PathBuf, done: &Done, is_unnamed: bool) -> io::Result<u32> {
        let number = u32::capped(self.files.len());
        let name = match self.is_anonymous {
            true => PathBuf::from(format!("file-{}", number + 1)),
            false => path.clone(),
        };
        match &mut self.output {
            Output::Recording(recording) => recording.file(&name)?,
            Output::Iolog(iolog) => {
                let at_ns = done.begin_ns.saturating_sub(self.began_ns);
                iolog.write(at_ns, &name, IologEvent::Add)?;
                iolog.write(at_ns, &name, IologEvent::Open)?;
            }
        }
        self.output.kept().ends(Record::File { is_unnamed })?;
        let size_bytes = match &*done.open.identity.borrow() {
            // One that was made meanwhile was empty, whatever it is by now.
            Identity::Known(opened) if opened.made.is_none_or(|made| made < self.began) => opened.size_bytes,
            _ => 0,
        };
        self.files.push(FileState { name, size_bytes });
        self.numbers.insert(path, number);
        Ok(number)
    }

    fn thread(&mut self, task: &Task) -> io::Result<u32> {
        if let Some(number) = task.number.get() {
            return Ok(number);
        }
        let number = self.threads;
        self.threads += 1;
        task.number.set(Some(number));
        if let Output::Recording(recording) = &mut self.output {
            let name = match self.is_anonymous {
                true => format!("thread-{}", self.threads),
                false => task.name.to_string(),
            };
            recording.thread(&Thread {
                process: task.process.cast_unsigned(),
                thread: task.thread.cast_unsigned(),
                name,
            })?;
        }
        self.output.kept().ends(Record::Thread)?;
        Ok(number)
    }

    /// What is known at the end.
    pub(super) fn left_out(&self, left_out: LeftOut) -> LeftOut {
        LeftOut { unknown: left_out.unknown + self.unknown, ..left_out }
    }

    /// Writes the end, and waits until the output is stored.
    ///
    /// # Errors
    /// What the output returns.
    pub(super) fn finish(&mut self, end: &RecordingEnd) -> io::Result<()> {
        if let Output::Recording(recording) = &mut self.output {
            recording.finish(end)?;
        }
        let kept = self.output.kept();
        kept.ends(Record::Frame)?;
        kept.save()?;
        kept.sync()
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
