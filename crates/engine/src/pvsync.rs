//! pvsync: one `preadv` or `pwritev` of one vector per operation.
//!
//! Invariant: see `blocking`.

use std::io;

use fiord_sys::transfer;

use crate::blocking::{Blocking, Calls, Part};
use crate::contract::{Arena, Info};

/// The engine.
pub type Pvsync = Blocking<PvsyncCalls>;

/// Its calls.
#[derive(Debug)]
pub struct PvsyncCalls;

impl Pvsync {
    /// Over these buffers, for so many files.
    pub fn new(arena: Arena, files: usize) -> Pvsync {
        Blocking::with_calls(PvsyncCalls, arena, files)
    }
}

impl Calls for PvsyncCalls {
    const INFO: Info = Info { name: "pvsync", summary: "preadv and pwritev", queued: false };

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::preadv(part.fd, &part.vector(), part.offset_bytes) }
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::pwritev(part.fd, &part.vector(), part.offset_bytes) }
    }
}
