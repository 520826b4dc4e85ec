//! posixaio: `aio_read` and `aio_write` of the C library, which executes them with threads of its own.
//!
//! Invariant: a request belongs to its slot, and stays untouched while the library has it. Dropping the engine waits for
//! what is in flight before it frees requests and buffers. All jobs on it have one table of file descriptors, because the
//! library's threads serve the whole process.

use std::io;
use std::time::{Duration, Instant};

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, Op, Queueing};
use fiord_sys::errno::Errno;
use fiord_sys::posix_aio::{self, Command, Request, Transfer};
use fiord_sys::width::{to_u32, to_usize};

use crate::attached_files::AttachedFiles;
use crate::boxed::BoxedQueued;
use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::local_completions::LocalCompletions;
use crate::sync_and_trim;

/// The engine.
#[derive(Debug)]
pub struct Posixaio;

impl EngineDefinition for Posixaio {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "Random reads, four at a time, by threads of the C library.",
            "fiord --name=example --ioengine=posixaio --iodepth=4 --rw=randread --bs=4k \
             --size=16m",
        )),
        // The C library has one set of threads.
        shares_threads: true,
        ..EngineDescriptor::of(
            EngineName::Posixaio,
            "POSIX asynchronous I/O: threads of the C library",
            Queueing::Queued,
        )
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        visitor.queued(Ok(BoxedQueued::new(PosixaioEngine::new(arena, job.files))))
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct PosixaioEngine<'arena> {
    /// By slot.
    requests: Box<[Request]>,
    /// Slots not yet submitted, in order, and what their requests do.
    queued: Vec<(u32, Command)>,
    /// Slots of which the library has the request.
    in_flight: Vec<u32>,
    /// Their requests, to wait for.
    waited_for: Vec<*const Request>,
    local: LocalCompletions<'arena>,
    files: AttachedFiles,
    arena: Arena<'arena>,
}

impl<'arena> PosixaioEngine<'arena> {
    /// An engine over these buffers for this many files.
    pub fn new(arena: Arena<'arena>, files: usize) -> PosixaioEngine<'arena> {
        let depth = arena.count() as usize;
        PosixaioEngine {
            requests: (0..depth).map(|_| Request::default()).collect(),
            queued: Vec::with_capacity(depth),
            in_flight: Vec::with_capacity(depth),
            waited_for: Vec::with_capacity(depth),
            local: LocalCompletions::new(arena.count()),
            files: AttachedFiles::new(files),
            arena,
        }
    }

    /// Moves at most `max` ended operations to `done`; returns how many.
    #[inline]
    fn take_ended(&mut self, max: u32, done: &mut Vec<Completion<'arena>>) -> u32 {
        let mut taken = if self.local.len() > 0 { self.local.drain(max, done) } else { 0 };
        let mut place = 0;
        while place < self.in_flight.len() && taken < max {
            let index = self.in_flight[place];
            let Some(result) = self.requests[index as usize].result() else {
                place += 1;
                continue;
            };
            self.in_flight.swap_remove(place);
            let outcome = result.map_or_else(Outcome::Failed, Outcome::Done);
            done.push(Completion { slot: Slot::from_index(index), outcome });
            taken += 1;
        }
        taken
    }

    /// Waits until an operation in flight has ended; `false` after a signal or the time.
    ///
    /// # Errors
    /// The library's.
    fn wait_for_any(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.waited_for.clear();
        let requests = &self.requests;
        self.waited_for.extend(self.in_flight.iter().map(|index| &raw const requests[*index as usize]));
        // SAFETY: those in flight were started, and their results not taken.
        match unsafe { posix_aio::wait(&self.waited_for, timeout) } {
            Ok(()) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Ok(false),
                Some(_) | None => Err(error),
            },
        }
    }
}

impl Drop for PosixaioEngine<'_> {
    fn drop(&mut self) {
        let mut done = Vec::with_capacity(self.requests.len());
        while !self.in_flight.is_empty() {
            if self.take_ended(u32::MAX, &mut done) == 0 && self.wait_for_any(None).is_err() {
                // The library still has the buffers, and the requests.
                self.arena.leak();
                std::mem::forget(std::mem::take(&mut self.requests));
                return;
            }
        }
    }
}

impl<'arena> Engine<'arena> for PosixaioEngine<'arena> {
    fn files(&mut self) -> Option<&mut AttachedFiles> {
        Some(&mut self.files)
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for PosixaioEngine<'arena> {
    #[inline]
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        sync_and_trim::execute_unqueued(&self.files, op)
    }

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let command = if sync_and_trim::is_read(&op) { Command::Read } else { Command::Write };
        let index = slot.into_index();
        self.requests[index as usize].set(Transfer {
            fd: self.files.get(op.file),
            buffer: self.arena.part(index, &op),
            len_bytes: to_usize(op.length_bytes),
            offset_bytes: op.offset_bytes,
        });
        self.queued.push((index, command));
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while let Some((index, command)) = self.queued.get(taken).copied() {
            // SAFETY: the request and the slot's buffer belong to the engine until the result was taken; `drop` waits.
            match unsafe { self.requests[index as usize].start(command) } {
                Ok(()) => self.in_flight.push(index),
                Err(error) => match Errno::of(&error) {
                    // No resources for another request until one of those in flight has ended.
                    Some(Errno(libc::EAGAIN)) if !self.in_flight.is_empty() => break,
                    Some(Errno(libc::EAGAIN)) | None => {
                        self.queued.drain(..taken);
                        return Err(error);
                    }
                    Some(errno) => self.local.push(Slot::from_index(index), Outcome::Failed(errno)),
                },
            }
            taken += 1;
        }
        self.queued.drain(..taken);
        Ok(to_u32(taken))
    }

    #[inline]
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.submit()?;
        }
        let mut got = self.take_ended(max, done);
        let deadline = match wait {
            Wait::Poll => return Ok(()),
            Wait::Block => None,
            Wait::For(time_ns) => Some(Instant::now() + Duration::from_nanos(time_ns)),
        };
        while got < min.min(max) && !self.in_flight.is_empty() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !self.wait_for_any(left)? {
                return Ok(());
            }
            got += self.take_ended(max - got, done);
        }
        Ok(())
    }
}
