//! ftruncate: each write sets the file's size to its offset, as a file system does it; no data.
//!
//! Invariant: no buffer is touched. A read or trim fails with `EINVAL`, as in fio.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, Op};
use fiord_sys::errno::Errno;
use fiord_sys::resize;

use crate::contract::Outcome;
use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Ftruncate;

impl Calls for Ftruncate {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Resized,
        explain: |_, errno| {
            (errno == libc::EINVAL)
                .then_some("the engine ftruncate has writes only; use rw=write or rw=randwrite")
        },
        tests: Some(EngineTests::RESIZING),
        example: Some(Example::plain(
            "A file that grows by 1 MiB at a time, without data.",
            "fiord --name=example --ioengine=ftruncate --rw=write --bs=1m --size=256m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Ftruncate, "ftruncate to the offset of each write")
    };

    fn new((): &(), _files: usize) -> Result<Ftruncate, SetupError> {
        Ok(Ftruncate)
    }

    #[inline]
    unsafe fn read(&mut self, _part: Part) -> io::Result<usize> {
        Err(Errno(libc::EINVAL).into())
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        resize::ftruncate(part.fd, part.offset_bytes).map(|()| part.length_bytes)
    }

    fn trim(&mut self, _fd: RawFd, _op: &Op) -> Outcome {
        Outcome::Failed(Errno(libc::EINVAL))
    }
}
