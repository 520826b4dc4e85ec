//! fio's iologs, versions 2 and 3: one action per line of text.
//!
//! Invariant: what `IologWriter` writes is read back as the same entries, to the microsecond, whatever bytes but line ends
//! a file's name has.

use fiord_errno::error_text;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::{Entry, EntryKind, FileName, TRANSFER_BYTES_MAX};

const NS_PER_US: u64 = 1_000;
/// Pauses of version 2 shorter than this are ignored.
const WAIT_US_MIN: u64 = 100;
/// The longest line that is read: longer than any path.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The first line of each version that is read.
const HEADINGS: [(&[u8], IologVersion); 2] =
    [(b"fio version 2 iolog", IologVersion::Two), (b"fio version 3 iolog", IologVersion::Three)];

/// Which form the lines have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IologVersion {
    /// Pauses are entries of their own.
    Two,
    /// Each line begins with its time.
    Three,
}

/// Whether a file that begins with these bytes may be an iolog.
pub(crate) fn is_heading(first_bytes: &[u8]) -> bool {
    HEADINGS.iter().any(|(heading, _)| first_bytes.starts_with(heading))
}

/// Reads the lines of an iolog.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    version: IologVersion,
    line: Vec<u8>,
    /// Number of the line in `line`, from 1.
    number: u64,
    /// The time of the last line, in microseconds since the beginning.
    now_us: u64,
    /// The file of the last line, which is most often that of the next.
    last_file: u32,
}

impl<R: BufRead> Lines<R> {
    /// Reads the heading.
    pub fn new(input: R) -> Result<Lines<R>, TraceError> {
        let mut lines =
            Lines { input, version: IologVersion::Two, line: Vec::new(), number: 0, now_us: 0, last_file: 0 };
        lines.read_line()?;
        let found = HEADINGS.iter().find(|(heading, _)| *heading == lines.line.trim_ascii());
        let (_, version) = found.ok_or_else(|| {
            lines.error(
                "it is neither an iolog of version 2 or 3, a binary blktrace, nor a recording of fiord",
            )
        })?;
        lines.version = *version;
        Ok(lines)
    }

    /// The next I/O; files that are added go to `files`.
    pub fn next(&mut self, files: &mut Vec<FileName>) -> Result<Option<Entry>, TraceError> {
        while self.read_line()? {
            let line = std::mem::take(&mut self.line);
            let parsed = self.parse(line.trim_ascii(), files);
            self.line = line;
            if let Some(entry) = parsed? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// The time of the last line.
    pub fn now_ns(&self) -> u64 {
        self.now_us.saturating_mul(NS_PER_US)
    }

    fn error(&self, message: impl Into<String>) -> TraceError {
        TraceError::line(self.number, message)
    }

    /// Reads a line; `false` at the end of the input.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        self.number += 1;
        let mut limited = io::Read::take(&mut self.input, LINE_BYTES_MAX as u64);
        let read = limited.read_until(b'\n', &mut self.line);
        match read {
            Err(error) => Err(self.error(format!("it cannot be read: {}", error_text(&error)))),
            Ok(LINE_BYTES_MAX) if !self.line.ends_with(b"\n") => {
                Err(self.error(format!("the line is longer than {LINE_BYTES_MAX} bytes")))
            }
            Ok(length) => Ok(length > 0),
        }
    }

    /// The I/O of a line; `None` for one that is not an I/O.
    fn parse(&mut self, line: &[u8], files: &mut Vec<FileName>) -> Result<Option<Entry>, TraceError> {
        if line.is_empty() {
            return Ok(None);
        }
        let rest = match self.version {
            IologVersion::Two => line,
            IologVersion::Three => {
                let (time, rest) = first_word(line);
                let time = number(time).ok_or_else(|| self.error("the line does not begin with a time"))?;
                // Lines of several files may be slightly out of order; time does not go back.
                self.now_us = self.now_us.max(time);
                rest
            }
        };
        let (before, last) = last_word(rest);
        match last {
            b"add" => {
                let name = FileName::Path(path(before));
                if !files.contains(&name) {
                    files.push(name);
                }
                Ok(None)
            }
            b"open" | b"close" => self.file(before, files).map(|_| None),
            _ => self.action(rest, files),
        }
    }

    /// `filename action offset length`, read from its end, because a name may contain spaces.
    fn action(&mut self, line: &[u8], files: &[FileName]) -> Result<Option<Entry>, TraceError> {
        let (before, length) = last_word(line);
        let (before, offset) = last_word(before);
        let (name, word) = last_word(before);
        let (Some(offset), Some(length)) = (number(offset), number(length)) else {
            return Err(
                self.error("the line is neither \"filename action\" nor \"filename action offset length\"")
            );
        };
        if word == b"wait" {
            if self.version == IologVersion::Three {
                return Err(self.error("\"wait\" is an action of version 2; version 3 has times"));
            }
            if offset >= WAIT_US_MIN {
                self.now_us = self.now_us.saturating_add(offset);
            }
            return Ok(None);
        }
        let Some(kind) = EntryKind::ALL.into_iter().find(|kind| kind.word().as_bytes() == word) else {
            let word = String::from_utf8_lossy(word);
            return Err(self.error(format!("there is no action \"{word}\"")));
        };
        let file = self.file(name, files)?;
        if offset.checked_add(length).is_none_or(|end| end > i64::MAX as u64) {
            return Err(self.error("the entry ends beyond the largest file size"));
        }
        let is_whole = matches!(kind, EntryKind::Sync | EntryKind::DataSync);
        let (offset_bytes, length_bytes) = if is_whole { (0, 0) } else { (offset, length) };
        if kind.has_range() && length == 0 {
            return Err(self.error(format!("a {} of no bytes", kind.word())));
        }
        if kind.transfers() && length > TRANSFER_BYTES_MAX {
            return Err(self.error(format!(
                "a {} of {length} bytes, and no call of Linux transfers more than {TRANSFER_BYTES_MAX}",
                kind.word()
            )));
        }
        Ok(Some(Entry { at_ns: self.now_ns(), file, kind, offset_bytes, length_bytes }))
    }

    /// The number of a file that was added.
    fn file(&mut self, name: &[u8], files: &[FileName]) -> Result<u32, TraceError> {
        let is_it = |file: &FileName| match file {
            FileName::Path(path) => path.as_os_str().as_bytes() == name,
            FileName::Device { .. } => false,
        };
        if !files.get(self.last_file as usize).is_some_and(is_it) {
            let found = files.iter().position(is_it);
            let shown = String::from_utf8_lossy(name);
            let missing =
                || TraceError::line(self.number, format!("the file \"{shown}\" was not added before"));
            self.last_file = found.and_then(|found| u32::try_from(found).ok()).ok_or_else(missing)?;
        }
        Ok(self.last_file)
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The first word of a line, and what follows it.
fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    (&line[..end], line[end..].trim_ascii_start())
}

/// What precedes the last word of a line, and the last word.
fn last_word(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (line[..start].trim_ascii_end(), &line[start..])
}

/// A line of an iolog that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IologEvent {
    /// Announces a file.
    Add,
    /// A file was opened.
    Open,
    /// A file was closed.
    Close,
    /// An I/O.
    Io {
        /// What was done.
        kind: EntryKind,
        /// First byte.
        offset_bytes: u64,
        /// Bytes.
        length_bytes: u64,
    },
}

/// Writes an iolog of version 3.
#[derive(Debug)]
pub struct IologWriter<W> {
    output: W,
}

impl<W: Write> IologWriter<W> {
    /// Begins an iolog; `with_heading` unless it continues one.
    ///
    /// # Errors
    /// What the output returns.
    pub fn new(mut output: W, with_heading: bool) -> io::Result<IologWriter<W>> {
        if with_heading {
            writeln!(output, "fio version 3 iolog")?;
        }
        Ok(IologWriter { output })
    }

    /// Writes what happened to a file, `at_ns` nanoseconds after the beginning.
    ///
    /// # Errors
    /// What the output returns.
    pub fn write(&mut self, at_ns: u64, file: &Path, event: IologEvent) -> io::Result<()> {
        let output = &mut self.output;
        write!(output, "{} ", at_ns / NS_PER_US)?;
        output.write_all(file.as_os_str().as_bytes())?;
        match event {
            IologEvent::Add => output.write_all(b" add\n"),
            IologEvent::Open => output.write_all(b" open\n"),
            IologEvent::Close => output.write_all(b" close\n"),
            IologEvent::Io { kind, offset_bytes, length_bytes } => {
                writeln!(output, " {} {offset_bytes} {length_bytes}", kind.word())
            }
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// What the output returns.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Where it is written.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }
}
