//! One log file while it is written.
//!
//! Invariant: it is opened when its first bytes are there, or when it is closed, and after an error it is left alone. A
//! file that an earlier log is written to as well is first written to a file without a name, and appended in the end.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use fiord_sys::errno::error_text;
use fiord_sys::file;
use fiord_worker::TargetOpener;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Takes the logs of a run instead of the file system.
pub trait LogReceiver: Send + Sync {
    /// Where to write the log at this position among those of the job of this number. It is whole when it is dropped.
    fn receive(&self, job: u32, position: usize) -> Box<dyn Write + Send>;
}

/// A log file and its state.
pub struct WrittenLog {
    path: PathBuf,
    /// Whether it is appended to what is there.
    appends: bool,
    /// Whether an earlier log is written to the same file.
    is_shared: bool,
    /// Where its bytes go instead of to a file, until it is opened.
    sent: Option<Box<dyn Write + Send>>,
    open: Option<Open>,
    failure: Option<String>,
}

impl std::fmt::Debug for WrittenLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WrittenLog").field("path", &self.path).finish_non_exhaustive()
    }
}

/// An open log.
enum Open {
    Plain(Sink),
    /// Little effort, because the job may have to wait for it.
    Compressed(ZlibEncoder<Sink>),
}

/// Where bytes go.
enum Sink {
    File(File),
    Sent(Box<dyn Write + Send>),
}

impl WrittenLog {
    /// A log at this path. `appends`: to what is there. `is_shared`: an earlier log of this run has the same path.
    pub fn new(path: &Path, appends: bool, is_shared: bool) -> WrittenLog {
        let path = path.to_path_buf();
        WrittenLog { path, appends, is_shared, sent: None, open: None, failure: None }
    }

    /// One that is written there instead.
    pub(super) fn sent(path: &Path, to: Box<dyn Write + Send>) -> WrittenLog {
        WrittenLog { sent: Some(to), ..WrittenLog::new(path, false, false) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it could not be written, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Gives it up.
    pub(super) fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Appends bytes, unless it has failed.
    pub fn append(&mut self, opener: &TargetOpener, bytes: &[u8]) {
        self.attempt(opener, |mut open| open.write_all(bytes).map(|()| open));
    }

    /// The same, to a compressed stream.
    pub(super) fn append_compressed(&mut self, opener: &TargetOpener, bytes: &[u8]) {
        self.attempt(opener, |open| {
            let mut open = open.compressed();
            open.write_all(bytes).map(|()| open)
        });
    }

    /// Ends its compressed stream; the size of that, if it has one. An error of it is that of closing.
    pub(super) fn end_stream(&mut self) -> Option<u64> {
        let Some(Open::Compressed(encoder)) = &mut self.open else { return None };
        let _ = encoder.try_finish();
        Some(encoder.total_out())
    }

    /// Nothing more comes: the file exists and is closed, unless it is to be appended to that of another.
    pub fn close(&mut self, opener: &TargetOpener) {
        if self.open.is_none() && !self.is_shared {
            self.attempt(opener, Ok);
        }
        match self.open.take().map(Open::close).transpose() {
            Ok(open) if self.is_shared => self.open = open,
            Ok(_) => {}
            Err(error) => self.fail(error_text(&error)),
        }
    }

    /// Appends it to the file that an earlier log was written to.
    pub fn append_shared(&mut self, opener: &TargetOpener) {
        let Some(Open::Plain(Sink::File(mut unnamed))) = self.open.take() else { return };
        let opened = opener.create_named(&self.path, true).map_err(|failure| failure.reason());
        let copied = opened.and_then(|mut shared| {
            let copy = unnamed.rewind().and_then(|()| io::copy(&mut unnamed, &mut shared));
            copy.map_err(|error| error_text(&error))
        });
        self.failure = copied.err().or(self.failure.take());
    }

    /// Does something with the file, which is opened first if it is not open.
    fn attempt(&mut self, opener: &TargetOpener, action: impl FnOnce(Open) -> io::Result<Open>) {
        if self.failure.is_some() {
            return;
        }
        let opened = match (self.open.take(), self.sent.take()) {
            (Some(open), _) => Ok(open),
            (None, Some(sent)) => Ok(Open::Plain(Sink::Sent(sent))),
            (None, None) if self.is_shared => {
                let unnamed = file::unnamed(self.path.parent().unwrap_or(&self.path));
                unnamed.map(Sink::File).map(Open::Plain).map_err(|error| error_text(&error))
            }
            (None, None) => opener
                .create_named(&self.path, self.appends)
                .map(Sink::File)
                .map(Open::Plain)
                .map_err(|failure| failure.reason()),
        };
        match opened.and_then(|open| action(open).map_err(|error| error_text(&error))) {
            Ok(open) => self.open = Some(open),
            Err(why) => self.fail(why),
        }
    }
}

impl Open {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Open::Plain(sink) => sink.write_all(bytes),
            Open::Compressed(encoder) => encoder.write_all(bytes),
        }
    }

    /// Begins a compressed stream, unless it has begun. A log without entries stays an empty file.
    fn compressed(self) -> Open {
        match self {
            Open::Plain(sink) => Open::Compressed(ZlibEncoder::new(sink, Compression::fast())),
            Open::Compressed(encoder) => Open::Compressed(encoder),
        }
    }

    /// Writes the end of a compressed stream.
    fn close(self) -> io::Result<Open> {
        match self {
            Open::Compressed(encoder) => encoder.finish().map(Open::Plain),
            Open::Plain(sink) => Ok(Open::Plain(sink)),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Sent(sent) => sent.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Sent(sent) => sent.flush(),
        }
    }
}
