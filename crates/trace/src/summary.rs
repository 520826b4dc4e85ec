//! What a trace needs: its files, how far it reaches into them, and its longest I/O.
//!
//! Invariant: made from the same entries that are replayed, so that a plan that allows for it allows for the replay.

use std::io::BufRead;

use crate::error::TraceError;
use crate::reader::Reader;
use crate::transform::Transform;
use crate::{EntryKind, FileName};

/// What a trace does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedFile {
    /// Which file.
    pub name: FileName,
    /// End of what is read.
    pub read_end_bytes: u64,
    /// End of what is read, written or trimmed.
    pub end_bytes: u64,
    /// All offsets and lengths are multiples of this power of two; `1 << 63` if the file has no I/O.
    pub align_bytes: u64,
    /// Entries of each kind, in the order of [`EntryKind::ALL`].
    pub entries: [u64; EntryKind::ALL.len()],
}

/// What a trace needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Its files, in order of their numbers.
    pub files: Vec<TracedFile>,
    /// Longest read or write: a trim needs no memory.
    pub length_bytes_max: u64,
    /// Bytes of all reads, writes and trims.
    pub bytes: u64,
    /// How long it takes.
    pub length_ns: u64,
}

impl Summary {
    /// Entries of this kind, of all files.
    pub fn entries(&self, kind: EntryKind) -> u64 {
        self.files.iter().map(|file| file.entries[kind as usize]).sum()
    }
}

/// Reads a whole trace.
///
/// # Errors
/// What is wrong with it, and where.
pub fn summarize(input: impl BufRead, transform: Transform) -> Result<Summary, TraceError> {
    let mut reader = Reader::new(input, transform)?;
    let mut summary = Summary::default();
    while let Some(entry) = reader.next_entry()? {
        add_files(&mut summary, reader.files());
        let file = &mut summary.files[entry.file as usize];
        file.entries[entry.kind as usize] += 1;
        if entry.kind.has_range() {
            let end_bytes = entry.offset_bytes + entry.length_bytes;
            file.end_bytes = file.end_bytes.max(end_bytes);
            if entry.kind == EntryKind::Read {
                file.read_end_bytes = file.read_end_bytes.max(end_bytes);
            }
            let shift = (entry.offset_bytes | entry.length_bytes).trailing_zeros().min(63);
            file.align_bytes = file.align_bytes.min(1 << shift);
            if entry.kind.transfers() {
                summary.length_bytes_max = summary.length_bytes_max.max(entry.length_bytes);
            }
            summary.bytes = summary.bytes.saturating_add(entry.length_bytes);
        }
    }
    add_files(&mut summary, reader.files());
    summary.length_ns = reader.now_ns();
    Ok(summary)
}

fn add_files(summary: &mut Summary, known: &[FileName]) {
    for name in &known[summary.files.len()..] {
        summary.files.push(TracedFile {
            name: name.clone(),
            read_end_bytes: 0,
            end_bytes: 0,
            align_bytes: 1 << 63,
            entries: [0; EntryKind::ALL.len()],
        });
    }
}
