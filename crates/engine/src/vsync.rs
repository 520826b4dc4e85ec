//! vsync: `lseek`, then `readv` or `writev` of one vector.
//!
//! Invariant: see `blocking`. fio's manual speaks of gathering adjacent I/Os into one call, but its queue is one deep
//! here, so it never has two to gather; one operation is one vector.

use std::io;

use fiord_sys::transfer;

use crate::blocking::{Blocking, Calls, Part};
use crate::contract::{Arena, Info};
use crate::sync::seek;

/// The engine.
pub type Vsync = Blocking<VsyncCalls>;

/// Its calls.
#[derive(Debug)]
pub struct VsyncCalls;

impl Vsync {
    /// Over these buffers, for so many files.
    pub fn new(arena: Arena, files: usize) -> Vsync {
        Blocking::with_calls(VsyncCalls, arena, files)
    }
}

impl Calls for VsyncCalls {
    const INFO: Info = Info { name: "vsync", summary: "lseek, readv and writev", queued: false };

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        seek(&part)?;
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::readv(part.fd, &part.vector()) }
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        seek(&part)?;
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::writev(part.fd, &part.vector()) }
    }
}
