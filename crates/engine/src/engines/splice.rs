//! splice: data moves through a pipe, by `splice` between the file and the pipe and by `vmsplice` between the pipe and
//! memory.
//!
//! Invariant: the pipe is empty between operations. An operation ends short, like a `read`, where a call moves nothing.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, Tested};
use fiord_sys::pipe::Pipe;

use crate::read_write::{Calls, Part};
use crate::setup_error::{SetupError, SetupStep};

/// The engine.
#[derive(Debug)]
pub struct Splice {
    pipe: Pipe,
}

impl Splice {
    /// Moves what the pipe holds at most, from `done` bytes into the part on, from the file to memory.
    ///
    /// # Safety
    /// What `Part` says of its memory holds.
    unsafe fn read_piece(&mut self, part: &Part, done: usize) -> io::Result<usize> {
        let wanted = (part.length_bytes - done).min(self.pipe.capacity_bytes());
        let held = self.pipe.fill_from_file(part.fd, part.offset_bytes + done as u64, wanted)?;
        self.empty(held, |pipe, moved| {
            // SAFETY: the rest of the piece is inside the part.
            unsafe { pipe.drain_to_memory(part.pointer.add(done + moved), held - moved) }
        })
    }

    /// The same from memory to the file.
    ///
    /// # Safety
    /// What `Part` says of its memory holds.
    unsafe fn write_piece(&mut self, part: &Part, done: usize) -> io::Result<usize> {
        let wanted = (part.length_bytes - done).min(self.pipe.capacity_bytes());
        // SAFETY: the piece is inside the part, and the pipe is empty again before this function returns.
        let held = unsafe { self.pipe.fill_from_memory(part.pointer.add(done), wanted)? };
        self.empty(held, |pipe, moved| {
            pipe.drain_to_file(part.fd, part.offset_bytes + (done + moved) as u64, held - moved)
        })
    }

    /// Drains the pipe, which holds this many bytes; how many were moved. What cannot be moved is dropped.
    #[inline]
    fn empty(
        &mut self,
        held: usize,
        mut drain: impl FnMut(&Pipe, usize) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut moved = 0;
        while moved < held {
            match drain(&self.pipe, moved) {
                Ok(0) => break,
                Ok(bytes) => moved += bytes,
                Err(error) => {
                    self.pipe.discard(held - moved);
                    return if moved > 0 { Ok(moved) } else { Err(error) };
                }
            }
        }
        self.pipe.discard(held - moved);
        Ok(moved)
    }
}

/// Repeats `piece`, which is given the bytes done so far, until the part is done or nothing more moves.
#[inline]
fn whole(part: &Part, mut piece: impl FnMut(usize) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < part.length_bytes {
        match piece(done) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
        }
    }
    Ok(done)
}

const TESTED: EngineTests = EngineTests {
    short: Tested::Never(
        "FUSE, which makes transfers short, takes a short read for the end of the file here",
    ),
    ..EngineTests::ON_FILES
};

impl Calls for Splice {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(TESTED),
        example: Some(Example::plain(
            "A file read into a pipe and from there into memory.",
            "fiord --name=example --ioengine=splice --rw=read --bs=64k --size=16m",
        )),
        ..EngineDescriptor::synchronous(EngineName::Splice, "splice and vmsplice, through a pipe")
    };

    fn new((): &(), _files: usize) -> Result<Splice, SetupError> {
        let pipe = Pipe::new().map_err(|error| SetupError::new(SetupStep::Pipe, &error))?;
        pipe.try_calls().map_err(|error| SetupError::new(SetupStep::Splice, &error))?;
        Ok(Splice { pipe })
    }

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        whole(&part, |done| unsafe { self.read_piece(&part, done) })
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        // SAFETY: the caller vouches for the part.
        whole(&part, |done| unsafe { self.write_piece(&part, done) })
    }
}
