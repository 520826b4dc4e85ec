//! psync: one `pread` or `pwrite` per operation.
//!
//! Invariant: see `blocking`.

use std::io;

use fiord_sys::transfer;

use crate::blocking::{Blocking, Calls, Part};
use crate::contract::{Arena, Info};

/// The engine.
pub type Psync = Blocking<PsyncCalls>;

/// Its calls.
#[derive(Debug)]
pub struct PsyncCalls;

impl Psync {
    /// Over these buffers, for so many files.
    pub fn new(arena: Arena, files: usize) -> Psync {
        Blocking::with_calls(PsyncCalls, arena, files)
    }
}

impl Calls for PsyncCalls {
    const INFO: Info = Info { name: "psync", summary: "pread and pwrite", queued: false };

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::pread(part.fd, part.pointer, part.length_bytes, part.offset_bytes) }
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::pwrite(part.fd, part.pointer, part.length_bytes, part.offset_bytes) }
    }
}
