//! psync: one `pread` or `pwrite` per operation.
//!
//! Invariant: see `read_write`.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example};
use fiord_sys::transfer;

use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Psync;

impl Calls for Psync {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "Random reads and writes of a file through the page cache, one at a time, for a second.",
            "fiord --name=example --ioengine=psync --rw=randrw --bs=4k --size=16m --runtime=1s \
             --time_based",
        )),
        ..EngineDescriptor::synchronous(EngineName::Psync, "pread and pwrite")
    };

    fn new((): &(), _files: usize) -> Result<Psync, SetupError> {
        Ok(Psync)
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
