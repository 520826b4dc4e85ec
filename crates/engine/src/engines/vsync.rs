//! vsync: `lseek`, then `readv` or `writev` of one vector.
//!
//! Invariant: see `read_write`. fio's manual mentions gathering adjacent I/Os into one call, but its queue depth is 1
//! here, so there are never two to gather; one operation is one vector.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example};
use fiord_sys::transfer;

use crate::engines::sync::seek;
use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Vsync;

impl Calls for Vsync {
    type Settings = ();

    const MOVES_FILE_POSITION: bool = true;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "A file written in order, one block at a time.",
            "fiord --name=example --ioengine=vsync --rw=write --bs=64k --size=16m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Vsync, "lseek, readv and writev")
    };

    fn new((): &(), _files: usize) -> Result<Vsync, SetupError> {
        Ok(Vsync)
    }

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
