//! pvsync: one `preadv` or `pwritev` of one vector per operation.
//!
//! Invariant: see `read_write`.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example};
use fiord_sys::transfer;

use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Pvsync;

impl Calls for Pvsync {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "A file read in order, one block at a time.",
            "fiord --name=example --ioengine=pvsync --rw=read --bs=64k --size=16m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Pvsync, "preadv and pwritev")
    };

    fn new((): &(), _files: usize) -> Result<Pvsync, SetupError> {
        Ok(Pvsync)
    }

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
