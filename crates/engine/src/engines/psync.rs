//! psync: one `pread` or `pwrite` per operation.
//!
//! Invariant: see `read_write`.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, FileUse, Queueing};
use fiord_sys::transfer;

use crate::read_write::{Calls, Part};

/// The engine.
#[derive(Debug)]
pub struct Psync;

impl Calls for Psync {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        name: EngineName::Psync,
        summary: "pread and pwrite",
        queueing: Queueing::Synchronous,
        files: FileUse::Opened,
        settings: |_| EngineSettings::new(()),
        priorities: None,
        atomic_writes: false,
        explain: |_, _| None,
    };

    fn new((): &(), _files: usize) -> Psync {
        Psync
    }

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
