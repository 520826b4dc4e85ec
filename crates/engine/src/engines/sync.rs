//! sync: `lseek`, then `read` or `write`. The seek is omitted if the file is already at the offset, so that
//! sequential I/O is one call each, and pipes work.
//!
//! Invariant: see `read_write`. A position is known from attaching the file and from its last call, and unknown after
//! an error.

use std::io;
use std::os::fd::BorrowedFd;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileIndex};
use fiord_sys::errno::Errno;
use fiord_sys::transfer;

use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Sync {
    /// By file, in bytes from its start.
    positions: Box<[u64]>,
}

/// No file is this long, so it always means a seek.
const UNKNOWN: u64 = u64::MAX;

impl Sync {
    /// Makes sure the file is at the offset of the part.
    #[inline]
    fn seek(&mut self, part: &Part) -> io::Result<()> {
        match self.positions.get(part.file as usize) {
            Some(position) if *position == part.offset_bytes => Ok(()),
            _ => seek(part),
        }
    }

    /// Records the position after a transfer.
    #[inline]
    fn moved(&mut self, part: &Part, result: io::Result<usize>) -> io::Result<usize> {
        if let Some(position) = self.positions.get_mut(part.file as usize) {
            *position = result.as_ref().map_or(UNKNOWN, |bytes| part.offset_bytes + *bytes as u64);
        }
        result
    }
}

impl Calls for Sync {
    type Settings = ();

    const MOVES_FILE_POSITION: bool = true;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "Random reads of a file, one at a time.",
            "fiord --name=example --ioengine=sync --rw=randread --bs=4k --size=16m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Sync, "lseek, read and write")
    };

    fn new((): &(), files: usize) -> Result<Sync, SetupError> {
        Ok(Sync { positions: vec![UNKNOWN; files].into_boxed_slice() })
    }

    fn opened(&mut self, file: FileIndex, fd: BorrowedFd<'_>) {
        if let Some(position) = self.positions.get_mut(file as usize) {
            // A pipe has no position, and counts from 0.
            *position = fiord_sys::file::position(fd).unwrap_or(0);
        }
    }

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        self.seek(&part)?;
        // SAFETY: the caller vouches for the part.
        let result = unsafe { transfer::read(part.fd, part.pointer, part.length_bytes) };
        self.moved(&part, result)
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        self.seek(&part)?;
        // SAFETY: the caller vouches for the part.
        let result = unsafe { transfer::write(part.fd, part.pointer, part.length_bytes) };
        self.moved(&part, result)
    }
}

/// `lseek` to the offset of a part.
#[inline]
pub(crate) fn seek(part: &Part) -> io::Result<()> {
    // SAFETY: no memory is passed; a bad descriptor is an error.
    let at = unsafe { libc::lseek64(part.fd, part.offset_bytes.cast_signed(), libc::SEEK_SET) };
    if at < 0 { Err(Errno::last().into()) } else { Ok(()) }
}
