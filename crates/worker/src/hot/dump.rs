//! Saves blocks that do not match (`verify_dump`), as files named like fio's.
//!
//! Invariant: a file that cannot be written is reported, and never fails the job.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fiord_plan::Op;
use fiord_plan::shown::shown;
use fiord_stats::Capped;
use fiord_verify::Corruption;

use crate::failure::Failure;
use crate::files::target_opener::TargetOpener;

/// A corrupted piece of a block that was read.
pub(super) struct CorruptedPiece<'a> {
    /// The file it was read from.
    pub path: &'a Path,
    pub op: &'a Op,
    /// The whole block.
    pub buffer: &'a [u8],
    pub corruption: &'a Corruption,
}

impl CorruptedPiece<'_> {
    /// Writes the piece as received, and as `restored` if its data differs rather than its header, to files in
    /// `directory`. Returns the lines about them, each after a line break.
    pub(super) fn dump(&self, directory: &Path, opener: &TargetOpener, restored: Option<&[u8]>) -> String {
        let from = usize::capped(self.corruption.piece_offset_bytes.saturating_sub(self.op.offset_bytes));
        let received = self.buffer.get(from..);
        debug_assert!(received.is_some(), "the piece at {from} lies in a block of {}", self.buffer.len());
        let received = received.unwrap_or_default();
        let received = &received[..received.len().min(usize::capped(self.corruption.piece_bytes))];
        let line = |kind: &str, bytes: &[u8]| {
            let path = directory.join(self.file_name(kind));
            match write(opener, &path, bytes) {
                Ok(()) => format!("\n       {kind} data dumped as {}", shown(&path)),
                Err(failure) => format!("\n       {kind} data not dumped: {failure}"),
            }
        };
        if self.corruption.fault.is_of_header() {
            return line("hdr_fail", received);
        }
        let expected = restored.map_or_else(
            || "\n       expected data not dumped: it does not follow from the header".to_string(),
            |restored| line("expected", restored),
        );
        line("received", received) + &expected
    }

    /// fio's name: that of the file without its directory, where the piece is in it, and what this is.
    fn file_name(&self, kind: &str) -> PathBuf {
        let mut name: OsString = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.{kind}", self.corruption.piece_offset_bytes));
        PathBuf::from(name)
    }
}

fn write(opener: &TargetOpener, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = opener.create_named(path, false)?;
    file.write_all(bytes).map_err(|error| Failure::file("write", path, &error))
}
