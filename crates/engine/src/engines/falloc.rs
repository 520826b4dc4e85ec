//! falloc: `fallocate` of the range of each read, write and trim, as a file system does it; no data.
//!
//! Invariant: no buffer is touched.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, Op};
use fiord_sys::resize::{Allocation, fallocate};

use crate::contract::Outcome;
use crate::read_write::{Calls, Part};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Falloc;

impl Calls for Falloc {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Resized,
        tests: Some(EngineTests::RESIZING),
        example: Some(Example::plain(
            "Space allocated for a file, 1 MiB at a time.",
            "fiord --name=example --ioengine=falloc --rw=write --bs=1m --size=256m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Falloc, "fallocate of each range, without data")
    };

    fn new((): &(), _files: usize) -> Result<Falloc, SetupError> {
        Ok(Falloc)
    }

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        allocated(&part, Allocation::KeepSize)
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        allocated(&part, Allocation::Extend)
    }

    fn trim(&mut self, fd: RawFd, op: &Op) -> Outcome {
        let done = fallocate(fd, Allocation::PunchHole, op.offset_bytes, op.length_bytes);
        done.map(|()| op.length_bytes).into()
    }
}

fn allocated(part: &Part, what: Allocation) -> io::Result<usize> {
    fallocate(part.fd, what, part.offset_bytes, part.length_bytes as u64).map(|()| part.length_bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use fiord_plan::Action;
    use fiord_sys::errno::Errno;

    use super::*;

    /// A part of 4096 bytes of this file.
    fn part(fd: RawFd, offset_bytes: u64) -> Part {
        Part { file: 0, fd, pointer: std::ptr::null_mut(), length_bytes: 4096, offset_bytes }
    }

    #[test]
    fn reads_allocate_writes_extend_and_trims_free() {
        let path = std::env::temp_dir().join(format!("fiord-falloc-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let fd = file.as_raw_fd();
        let state = || {
            let metadata = file.metadata().unwrap();
            (metadata.len(), metadata.blocks() * 512)
        };
        let mut calls = Falloc::new(&(), 1).unwrap();
        // SAFETY: the engine uses no memory.
        unsafe {
            assert_eq!(calls.read(part(fd, 0)).unwrap(), 4096);
            assert_eq!(state(), (0, 4096));
            assert_eq!(calls.write(part(fd, 4096)).unwrap(), 4096);
            assert_eq!(state(), (8192, 8192));
        }
        assert_eq!(calls.trim(fd, &Op::new(Action::Trim, 0, 0, 4096)), Outcome::Done(4096));
        assert_eq!(state(), (8192, 4096));
        assert_eq!(calls.trim(-1, &Op::new(Action::Trim, 0, 0, 4096)), Outcome::Failed(Errno(libc::EBADF)));
    }
}
