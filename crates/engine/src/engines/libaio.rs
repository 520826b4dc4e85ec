//! libaio: `io_submit`, and completions read from the ring that the kernel maps into this process.
//!
//! Invariant: a request's `Iocb` and vector belong to its slot, and stay untouched while the slot is in the engine.
//! The context is destroyed before the arena, which waits for everything in flight.

use std::io;
use std::time::Duration;

use fiord_options::job::JobOptions;
use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, Need, Op, Queueing};
use fiord_sys::aio::{AioContext, Command, IoEvent, Iocb};
use fiord_sys::errno::Errno;
use fiord_sys::transfer::RwFlags;
use fiord_sys::width::{low_u32, to_u32, to_usize};

use crate::attached_files::AttachedFiles;
use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::error_hint::TransferFlags;
use crate::local_completions::LocalCompletions;
use crate::priorities::{self, Priorities};
use crate::setup_error::{SetupError, SetupStep};
use crate::sync_and_trim;

/// The engine.
#[derive(Debug)]
pub struct Libaio;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `preadv`/`pwritev` commands.
    pub vectored: bool,
    /// `RWF_ATOMIC` on writes.
    pub atomic: bool,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.libaio;
        Settings {
            nowait: own.nowait.unwrap_or(false),
            vectored: own.libaio_vectored.unwrap_or(false),
            atomic: options.access.atomic,
        }
    }

    /// The explanation of an errno by these settings.
    fn explain(&self, errno: i32) -> Option<&'static str> {
        TransferFlags { nowait: self.nowait, atomic: self.atomic, ..TransferFlags::default() }.explain(errno)
    }
}

impl EngineDefinition for Libaio {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |settings, errno| settings.get::<Settings>()?.explain(errno),
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example {
            text: "Random reads that bypass the page cache, 16 at a time.",
            commands: "fiord --name=example --ioengine=libaio --iodepth=16 --direct=1 --rw=randread --bs=4k \
                 --size=16m",
            needs: &[Need::DIRECT],
        }),
        ..priorities::descriptor(
            EngineName::Libaio,
            "Linux native asynchronous I/O (io_submit)",
            Queueing::QueuedIfDirect,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let engine = LibaioEngine::new(settings, arena, job.files);
        let priorities = (job.priorities.len() > 1).then(|| Priorities::new(&job.priorities));
        visitor.queued(engine.map(|mut engine| {
            engine.priorities = priorities;
            engine
        }))
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct LibaioEngine<'arena> {
    // Fields are dropped in this order: first the context, which waits, then the memory the kernel uses.
    context: AioContext,
    /// By slot.
    requests: Box<[Iocb]>,
    /// By slot; empty unless the vectored commands are used.
    vectors: Box<[libc::iovec]>,
    arena: Arena<'arena>,
    files: AttachedFiles,
    /// If I/Os have priorities of their own.
    priorities: Option<Priorities>,
    /// Requests not yet submitted, in order.
    queued: Vec<*mut Iocb>,
    /// Buffer for completions from the kernel.
    events: Box<[IoEvent]>,
    local: LocalCompletions<'arena>,
    /// Flags of reads and of writes, where they differ; otherwise each request keeps those it was made with.
    flags_by_kind: Option<[RwFlags; 2]>,
    /// Submitted and not yet reaped.
    in_flight: u32,
}

impl<'arena> LibaioEngine<'arena> {
    /// An engine with these settings over these buffers for this many files. The mapped ring is always read first; a
    /// system call is made only to wait.
    ///
    /// # Errors
    /// The call that the kernel refused, with its likely cause.
    pub fn new(
        settings: &Settings,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<LibaioEngine<'arena>, SetupError> {
        let depth = arena.count() as usize;
        let context =
            AioContext::new(arena.count()).map_err(|error| SetupError::new(SetupStep::AioSetup, &error))?;
        let flags = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
        let requests = (0..depth).map(|index| {
            let mut request = Iocb::new();
            request.user_data = index as u64;
            request.set_rw_flags(flags);
            request
        });
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Ok(LibaioEngine {
            context,
            requests: requests.collect(),
            vectors: vec![empty; if settings.vectored { depth } else { 0 }].into_boxed_slice(),
            files: AttachedFiles::new(files),
            priorities: None,
            queued: Vec::with_capacity(depth),
            events: vec![IoEvent::default(); depth].into_boxed_slice(),
            local: LocalCompletions::new(arena.count()),
            flags_by_kind: settings.atomic.then_some([flags, flags.with(RwFlags::ATOMIC)]),
            in_flight: 0,
            arena,
        })
    }

    /// Fills a slot's request with this read or write.
    #[inline]
    fn prepare(&mut self, op: &Op, index: u32, reading: bool) {
        let fd = self.files.get(op.file);
        let pointer = self.arena.part(index, op);
        let length_bytes = to_usize(op.length_bytes);
        let request = &mut self.requests[index as usize];
        if let Some(priorities) = &self.priorities {
            request.set_priority(priorities.of(op));
        }
        if let Some(flags) = self.flags_by_kind {
            request.set_rw_flags(flags[usize::from(!reading)]);
        }
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

    /// Completes the first queued request with an error of its own, such as a bad descriptor.
    #[cold]
    fn fail_first(&mut self, errno: Errno) {
        let request = self.queued.remove(0);
        // SAFETY: the queue holds pointers into `requests`, which lives as long as `self`.
        let index = low_u32(unsafe { (*request).user_data });
        self.local.push(Slot::from_index(index), Outcome::Failed(errno));
    }

    /// Moves at most `max` completions from the ring to `done`; returns how many. No system call.
    #[inline]
    fn drain(&mut self, max: u32, done: &mut Vec<Completion<'arena>>) -> u32 {
        let own = if self.local.len() > 0 { self.local.drain(max, done) } else { 0 };
        let room = self.events.len().min((max - own) as usize);
        let count = self.context.reap_ring(&mut self.events[..room]);
        self.complete(count, done);
        own + to_u32(count)
    }

    /// Turns the first `count` events into completions.
    #[inline]
    fn complete(&mut self, count: usize, done: &mut Vec<Completion<'arena>>) {
        done.extend(self.events[..count].iter().map(|event| Completion {
            slot: Slot::from_index(low_u32(event.user_data)),
            outcome: Outcome::from_result(event.result),
        }));
        self.in_flight -= to_u32(count);
    }
}

impl<'arena> Engine<'arena> for LibaioEngine<'arena> {
    fn files(&mut self) -> Option<&mut AttachedFiles> {
        Some(&mut self.files)
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for LibaioEngine<'arena> {
    /// As in fio, synchronisations are blocking calls between submissions.
    #[inline]
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        sync_and_trim::execute_unqueued(&self.files, op)
    }

    #[inline]
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let reading = sync_and_trim::is_read(&op);
        let index = slot.into_index();
        self.prepare(&op, index, reading);
        self.queued.push(&raw mut self.requests[index as usize]);
        Ok(())
    }

    #[inline]
    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while !self.queued.is_empty() {
            // SAFETY: each pointer refers to a request of this engine, which names a part of its slot's buffer (and its
            // slot's vector); the slot is in the engine until the completion is reaped, and the context is dropped
            // before all of them.
            match unsafe { self.context.submit(&mut self.queued) } {
                Ok(0) => break,
                Ok(count) => {
                    self.queued.drain(..count);
                    self.in_flight += to_u32(count);
                    taken += to_u32(count);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // No space for another request until one of those in flight has ended.
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
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
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
                    got += to_u32(count);
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
