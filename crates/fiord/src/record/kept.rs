//! The file of a recording, and what of the recording is in it.
//!
//! Invariant: the file ends with a whole record, also if its file system is full; what is counted is in the file.

use std::fs::File;
use std::io::{self, ErrorKind, Write};

use fiord_model::EntryKind;
use fiord_sys::clock;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;
/// How long records wait at most: they are lost if fiord is killed.
const WAIT_NS: u64 = 1_000_000_000;

/// What is in a recording.
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
    /// When the last call began, in nanoseconds since the recording did.
    pub(crate) last_ns: u64,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The head or the end.
    Frame,
    File {
        is_unnamed: bool,
    },
    Thread,
    Call {
        kind: EntryKind,
        bytes: u64,
        begin_ns: u64,
    },
}

/// Writes records to a file.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    buffer: Vec<u8>,
    /// Records of the buffer, each with the byte where it ends.
    records: Vec<(usize, Record)>,
    written_bytes: u64,
    written_at_ns: u64,
    totals: Totals,
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    /// Writes to this file, which is empty.
    pub(super) fn new(file: File) -> Kept {
        Kept {
            file,
            buffer: Vec::new(),
            records: Vec::new(),
            written_bytes: 0,
            written_at_ns: clock::monotonic_ns(),
            totals: Totals::default(),
        }
    }

    /// What is in the file.
    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// All bytes up to here belong to this record and those before.
    ///
    /// # Errors
    /// The file system's; the file then ends with the last record that it had room for.
    pub(super) fn ends(&mut self, record: Record) -> io::Result<()> {
        self.records.push((self.buffer.len(), record));
        if self.buffer.len() >= WRITE_BYTES { self.save() } else { Ok(()) }
    }

    /// Writes what has waited for long.
    ///
    /// # Errors
    /// As of `ends`.
    pub(super) fn save_old(&mut self, now_ns: u64) -> io::Result<()> {
        if now_ns.saturating_sub(self.written_at_ns) >= WAIT_NS { self.save() } else { Ok(()) }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// As of `ends`.
    pub(super) fn save(&mut self) -> io::Result<()> {
        let (mut taken_bytes, mut failure) = (0, None);
        while taken_bytes < self.buffer.len() && failure.is_none() {
            match self.file.write(&self.buffer[taken_bytes..]) {
                Ok(0) => failure = Some(ErrorKind::WriteZero.into()),
                Ok(bytes) => taken_bytes += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => failure = Some(error),
            }
        }
        let whole = self.records.partition_point(|(end, _)| *end <= taken_bytes);
        let whole_bytes = self.records[..whole].last().map_or(0, |(end, _)| *end);
        self.records.drain(..whole).for_each(|(_, record)| self.totals.add(record));
        self.written_bytes += whole_bytes as u64;
        self.written_at_ns = clock::monotonic_ns();
        self.buffer.clear();
        self.records.clear();
        let Some(failure) = failure else { return Ok(()) };
        // A pipe keeps what it was given.
        let _ = self.file.set_len(self.written_bytes);
        Err(failure)
    }

    /// Waits until the file is stored; where there is nothing to store, as in a pipe, that is at once.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        match self.file.sync_all() {
            Err(error) if error.kind() != ErrorKind::InvalidInput => Err(error),
            _ => Ok(()),
        }
    }
}

impl Totals {
    fn add(&mut self, record: Record) {
        match record {
            Record::Frame => {}
            Record::File { is_unnamed } => {
                self.files += 1;
                self.unnamed_files += u64::from(is_unnamed);
            }
            Record::Thread => self.threads += 1,
            Record::Call { kind, bytes, begin_ns } => {
                self.calls[kind as usize] += 1;
                self.bytes[kind as usize] += bytes;
                self.last_ns = self.last_ns.max(begin_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut kept = Kept::new(full);
        kept.write_all(b"head").unwrap();
        kept.ends(Record::Frame).unwrap();
        kept.ends(Record::Thread).unwrap();
        assert_eq!(kept.save().unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(*kept.totals(), Totals::default());
    }
}
