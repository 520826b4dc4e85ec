//! Reads a trace of any form, transformed, one entry at a time.
//!
//! Invariant: the form is recognized by the first bytes; nothing else of a trace is kept but the names of its files.

use fiord_errno::error_text;
use std::io::BufRead;

use crate::blktrace::{self, Events};
use crate::error::TraceError;
use crate::iolog::{self, Lines};
use crate::recording::{self, Recorded, RecordedIo, Records};
use crate::transform::Transform;
use crate::{Entry, FileName};

/// Reads the entries of a trace.
#[derive(Debug)]
pub struct Reader<R> {
    form: TraceForm<R>,
    transform: Transform,
    files: Vec<FileName>,
}

#[derive(Debug)]
enum TraceForm<R> {
    Iolog(Lines<R>),
    Blktrace(Events<R>),
    Recording(Box<Records<R>>),
}

impl<R: BufRead> Reader<R> {
    /// Begins to read, and recognizes the form.
    ///
    /// # Errors
    /// The input cannot be read, or is not a trace.
    pub fn new(mut input: R, transform: Transform) -> Result<Reader<R>, TraceError> {
        let first_bytes = match input.fill_buf() {
            Ok(bytes) => bytes[..bytes.len().min(32)].to_vec(),
            Err(error) => {
                return Err(TraceError::byte(0, format!("it cannot be read: {}", error_text(&error))));
            }
        };
        let form = match () {
            () if recording::is_magic(&first_bytes) => TraceForm::Recording(Box::new(Records::new(input)?)),
            () if blktrace::is_magic(&first_bytes) && !iolog::is_heading(&first_bytes) => {
                TraceForm::Blktrace(Events::new(input, &first_bytes))
            }
            () => TraceForm::Iolog(Lines::new(input)?),
        };
        Ok(Reader { form, transform, files: Vec::new() })
    }

    /// The next entry as it is replayed; `None` at the end.
    ///
    /// # Errors
    /// What is wrong with the trace, and where.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            let entry = match &mut self.form {
                TraceForm::Iolog(lines) => lines.next(&mut self.files)?,
                TraceForm::Blktrace(events) => events.next(&mut self.files)?,
                TraceForm::Recording(records) => records.next(&mut self.files)?,
            };
            let Some(entry) = entry else { return Ok(None) };
            if let Some(entry) = self.transform.apply(entry) {
                return Ok(Some(entry));
            }
        }
    }

    /// Reads a recording of fiord that has no end up to its last whole record; `recorded` tells where that was.
    #[must_use]
    pub fn accepting_cut(mut self) -> Reader<R> {
        if let TraceForm::Recording(records) = &mut self.form {
            records.accept_cut();
        }
        self
    }

    /// Whether the trace is a binary one of blktrace.
    pub fn is_blktrace(&self) -> bool {
        matches!(self.form, TraceForm::Blktrace(_))
    }

    /// What a recording of fiord tells besides its entries, as far as it was read; `None` of another form.
    pub fn recorded(&self) -> Option<&Recorded> {
        match &self.form {
            TraceForm::Recording(records) => Some(records.told()),
            _ => None,
        }
    }

    /// The call of the last entry of a recording of fiord; `None` of another form.
    pub fn recorded_io(&self) -> Option<&RecordedIo> {
        match &self.form {
            TraceForm::Recording(records) => records.last(),
            _ => None,
        }
    }

    /// The process, or in a recording of fiord the thread, that issued the last entry; `None` where the trace does not tell.
    pub fn process(&self) -> Option<u32> {
        match &self.form {
            TraceForm::Iolog(_) => None,
            TraceForm::Blktrace(events) => Some(events.process()),
            TraceForm::Recording(records) => {
                let thread = records.last()?.thread;
                records.told().threads.get(thread as usize).map(|found| found.thread)
            }
        }
    }

    /// Requests in flight after the last entry, itself included; `None` where the trace has no completions (so far).
    pub fn in_flight(&self) -> Option<u32> {
        match &self.form {
            TraceForm::Iolog(_) | TraceForm::Recording(_) => None,
            TraceForm::Blktrace(events) => events.in_flight(),
        }
    }

    /// The files that were named so far, in order of their numbers.
    pub fn files(&self) -> &[FileName] {
        &self.files
    }

    /// When the last line read is due, in nanoseconds since the beginning; at the end, how long the trace is.
    pub fn now_ns(&self) -> u64 {
        self.transform.due_ns(match &self.form {
            TraceForm::Iolog(lines) => lines.now_ns(),
            TraceForm::Blktrace(events) => events.now_ns(),
            TraceForm::Recording(records) => records.now_ns(),
        })
    }
}
