//! libaio: `io_submit`, and completions read from the ring that the kernel maps into this process.
//!
//! Invariant: a request's `Iocb` and vector belong to its slot, and stay untouched while the slot is in the engine.
//! The context is let go before the arena, and letting it go waits for everything in flight.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use fiord_plan::{Action, Direction, FileIndex, Libaio as Settings, Op};
use fiord_sys::aio::{AioContext, Command, Event, Iocb};
use fiord_sys::errno::Errno;
use fiord_sys::transfer::RwFlags;

use crate::contract::{Arena, Buffers, Completion, Engine, Info, Outcome, QueuedEngine, Slot, Wait};
use crate::direct;
use crate::ended::Ended;
use crate::files::Descriptors;
use crate::refused::{Refused, Step};

/// The engine.
#[derive(Debug)]
pub struct Libaio {
    // Fields are dropped in this order: first the context, which waits, then what the kernel was given.
    context: AioContext,
    /// By slot.
    requests: Box<[Iocb]>,
    /// By slot; empty unless the vectored commands are used.
    vectors: Box<[libc::iovec]>,
    arena: Arena,
    files: Descriptors,
    /// Requests not yet submitted, in order.
    queued: Vec<*mut Iocb>,
    /// Where completions are copied to on their way.
    events: Box<[Event]>,
    ended: Ended,
    /// Taken by the kernel and not yet reaped.
    in_flight: u32,
}

impl Libaio {
    /// With these settings, over these buffers, for so many files. The mapped ring is always read first, and the
    /// kernel asked only when it has to wait.
    ///
    /// # Errors
    /// What the kernel refused, and why it probably did.
    pub fn new(settings: &Settings, arena: Arena, files: usize) -> Result<Libaio, Refused> {
        let depth = arena.count() as usize;
        let context = AioContext::new(arena.count()).map_err(|error| Refused::new(Step::AioSetup, &error))?;
        let flags = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
        let requests = (0..depth).map(|index| {
            let mut request = Iocb::new();
            request.user_data = index as u64;
            request.set_rw_flags(flags);
            request
        });
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(Libaio {
            context,
            requests: requests.collect(),
            vectors: vec![empty; if settings.vectored { depth } else { 0 }].into_boxed_slice(),
            files: Descriptors::new(files),
            queued: Vec::with_capacity(depth),
            events: vec![Event::default(); depth].into_boxed_slice(),
            ended: Ended::new(arena.count()),
            in_flight: 0,
            arena,
        })
    }

    /// Makes a slot's request this transfer.
    #[inline]
    fn prepare(&mut self, op: &Op, index: u32) {
        let fd = self.files.get(op.file);
        let pointer = self.arena.part(index, op);
        let length_bytes = op.length_bytes as usize;
        let reading = op.action == Action::Transfer(Direction::Read);
        let request = &mut self.requests[index as usize];
        match self.vectors.get_mut(index as usize) {
            None => {
                let command = if reading { Command::Pread } else { Command::Pwrite };
                request.transfer(command, fd, pointer, length_bytes, op.offset_bytes);
            }
            Some(vector) => {
                *vector = libc::iovec { iov_base: pointer.cast(), iov_len: length_bytes };
                let command = if reading { Command::Preadv } else { Command::Pwritev };
                request.transfer_vectors(command, fd, vector, 1, op.offset_bytes);
            }
        }
    }

    /// The kernel refused the first queued request for a fault of its own, a bad descriptor say: it ends alone.
    #[cold]
    fn fail_first(&mut self, errno: Errno) {
        let request = self.queued.remove(0);
        // SAFETY: the queue holds pointers into `requests`, which lives as long as `self`.
        let index = unsafe { (*request).user_data } as u32;
        self.ended.push(Slot::from_index(index), Outcome::Failed(errno));
    }

    /// Moves at most `max` completions that are there to `done`; returns how many. No system call.
    #[inline]
    fn drain(&mut self, max: u32, done: &mut Vec<Completion>) -> u32 {
        let own = if self.ended.len() > 0 { self.ended.drain(max, done) } else { 0 };
        let room = self.events.len().min((max - own) as usize);
        let count = self.context.reap_ring(&mut self.events[..room]);
        self.complete(count, done);
        own + count as u32
    }

    /// Turns the first `count` events into completions.
    #[inline]
    fn complete(&mut self, count: usize, done: &mut Vec<Completion>) {
        done.extend(self.events[..count].iter().map(|event| Completion {
            slot: Slot::from_index(event.user_data as u32),
            outcome: Outcome::from_result(event.result),
        }));
        self.in_flight -= count as u32;
    }
}

impl Engine for Libaio {
    const INFO: Info =
        Info { name: "libaio", summary: "Linux native asynchronous I/O (io_submit)", queued: true };

    fn attach(&mut self, file: FileIndex, fd: RawFd, _length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)
    }

    fn detach(&mut self, file: FileIndex) {
        self.files.detach(file);
    }

    fn arena(&mut self) -> Buffers<'_> {
        Buffers::of(&mut self.arena)
    }
}

impl QueuedEngine for Libaio {
    #[inline]
    fn queue(&mut self, op: Op, slot: Slot) -> Result<(), Slot> {
        let Action::Transfer(Direction::Read | Direction::Write) = op.action else {
            // fio too synchronises with a blocking call here, between submissions.
            let outcome = direct::call(self.files.get(op.file), &op);
            self.ended.push(slot, outcome);
            return Ok(());
        };
        let index = slot.into_index();
        self.prepare(&op, index);
        self.queued.push(&raw mut self.requests[index as usize]);
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while !self.queued.is_empty() {
            // SAFETY: each pointer leads to a request of ours, which names a part of its slot's buffer (and its slot's
            // vector); the slot is in the engine until the completion is reaped, and the context is dropped before
            // all of them.
            match unsafe { self.context.submit(&mut self.queued) } {
                Ok(0) => break,
                Ok(count) => {
                    self.queued.drain(..count);
                    self.in_flight += count as u32;
                    taken += count as u32;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // No room for another request until one of those in flight has ended.
                    Some(libc::EAGAIN) if self.in_flight > 0 => break,
                    Some(libc::EAGAIN) | None => return Err(error),
                    Some(errno) => {
                        self.fail_first(Errno(errno));
                        taken += 1;
                    }
                },
            }
        }
        Ok(taken)
    }

    #[inline]
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion>) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.submit()?;
        }
        let mut got = self.drain(max, done);
        let timeout = match wait {
            Wait::Poll if self.context.has_ring() => return Ok(()),
            Wait::Poll => Some(Duration::ZERO),
            Wait::Block => None,
            Wait::For(time_ns) => Some(Duration::from_nanos(time_ns)),
        };
        let wanted = if wait == Wait::Poll { max } else { min.min(max) };
        while got < wanted && self.in_flight > 0 {
            let missing = if wait == Wait::Poll { 0 } else { (wanted - got).min(self.in_flight) };
            let room = self.events.len().min((max - got) as usize);
            match self.context.get_events(missing as usize, &mut self.events[..room], timeout) {
                Ok(count) => {
                    self.complete(count, done);
                    got += count as u32;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => return Ok(()),
                Err(error) => return Err(error),
            }
            if wait != Wait::Block {
                return Ok(());
            }
        }
        Ok(())
    }
}
