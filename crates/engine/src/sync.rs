//! sync: `lseek`, then `read` or `write`. The seek is left out where the file stands there already, so that
//! sequential I/O is one call each, and a pipe works at all.
//!
//! Invariant: see `blocking`. A position is known from attaching the file and from its last call, and forgotten after
//! an error.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::FileIndex;
use fiord_sys::errno::Errno;
use fiord_sys::transfer;

use crate::blocking::{Blocking, Calls, Part};
use crate::contract::{Arena, Info};

/// The engine.
pub type Sync = Blocking<SyncCalls>;

/// Its calls.
#[derive(Debug)]
pub struct SyncCalls {
    /// By file, in bytes from its start.
    positions: Box<[u64]>,
}

/// No file is this long, so it always means a seek.
const UNKNOWN: u64 = u64::MAX;

impl Sync {
    /// Over these buffers, for so many files.
    pub fn new(arena: Arena, files: usize) -> Sync {
        let calls = SyncCalls { positions: vec![UNKNOWN; files].into_boxed_slice() };
        Blocking::with_calls(calls, arena, files)
    }
}

impl SyncCalls {
    /// Makes sure the file stands where the part begins.
    #[inline]
    fn seek(&mut self, part: &Part) -> io::Result<()> {
        match self.positions.get(part.file as usize) {
            Some(position) if *position == part.offset_bytes => Ok(()),
            _ => seek(part),
        }
    }

    /// Notes where a transfer left the file.
    #[inline]
    fn moved(&mut self, part: &Part, result: io::Result<usize>) -> io::Result<usize> {
        if let Some(position) = self.positions.get_mut(part.file as usize) {
            *position = result.as_ref().map_or(UNKNOWN, |bytes| part.offset_bytes + *bytes as u64);
        }
        result
    }
}

impl Calls for SyncCalls {
    const INFO: Info = Info { name: "sync", summary: "lseek, read and write", queued: false };

    fn opened(&mut self, file: FileIndex, fd: RawFd) {
        // SAFETY: no memory is passed.
        let at = unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) };
        if let Some(position) = self.positions.get_mut(file as usize) {
            // A pipe has no position; what goes through it begins at 0.
            *position = u64::try_from(at).unwrap_or(0);
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

/// `lseek` to where a part begins.
#[inline]
pub(crate) fn seek(part: &Part) -> io::Result<()> {
    // SAFETY: no memory is passed; a bad descriptor is an error.
    let at = unsafe { libc::lseek64(part.fd, part.offset_bytes as libc::off64_t, libc::SEEK_SET) };
    if at < 0 { Err(Errno::last().into()) } else { Ok(()) }
}
