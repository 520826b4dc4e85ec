//! The common part of engines over C libraries that execute operations asynchronously: Ceph's, GlusterFS's,
//! libiscsi.
//!
//! Invariant: a buffer belongs to the library from the start of its operation until the library has ended it. An engine
//! that is dropped before leaves the connection as it is and never frees its buffers, because the library may still write
//! to them.

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fiord_plan::{Action, EngineDescriptor, EngineName, EngineSettings, FileIndex, FileUse, Op, Queueing};
use fiord_sys::errno::Errno;
use fiord_sys::library::{HandOver, LibraryError, TRANSFER_BYTES_MAX, Unavailable};
use fiord_sys::signal;
use fiord_sys::width::{to_u32, to_usize};

use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, NamedTarget, Outcome, QueuedEngine, Slot, Wait,
};
use crate::definition::JobOutline;
use crate::local_completions::LocalCompletions;
use crate::setup_error::SetupError;

/// How long operations in flight may make no progress after a signal requested the run to stop, before the engine gives
/// them up: a user who pressed Ctrl-C gets the prompt back although the server has stopped.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The longest wait for a completion before the engine looks for a request to stop.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Of an engine over a library: its targets are names to the library, and `explain` knows its errors.
pub(crate) const fn descriptor(
    name: EngineName,
    summary: &'static str,
    queueing: Queueing,
    explain: fn(&EngineSettings, i32) -> Option<&'static str>,
) -> EngineDescriptor {
    EngineDescriptor { files: FileUse::Named, explain, ..EngineDescriptor::of(name, summary, queueing) }
}

/// Whether a job can use a library that takes or returns the bytes of a transfer as an `int`.
///
/// # Errors
/// Its blocks are longer, or why the library cannot be used.
pub(crate) fn usable(
    job: &JobOutline,
    is_available: fn() -> Result<(), Unavailable>,
) -> Result<(), SetupError> {
    if job.block_bytes_max > TRANSFER_BYTES_MAX {
        return Err(SetupError {
            call: "a transfer of the largest block",
            errno: Errno(libc::EFBIG),
            cause: "the library counts the bytes of one call in 31 bits",
            remedy: "use blocks below 2 GiB (bs=1g), or another ioengine",
        });
    }
    Ok(is_available()?)
}

/// What an engine does by its library: one connection, and the targets that are open.
pub(crate) trait Session {
    /// Opens a target.
    ///
    /// # Errors
    /// A sentence that says what to do.
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()>;

    /// Closes it. Nothing is in flight.
    fn close(&mut self, file: FileIndex);

    /// Starts an operation, and has `HandOver::end` called with the ticket when it has ended.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket`. Until the operation has ended nobody uses the memory, which has the bytes of
    /// the operation; the session is then neither dropped nor the target closed.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back by `HandOver::cancel`.
    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno>;

    /// How an operation ended, with its part of the buffer and the library's result.
    fn outcome(&mut self, op: &Op, part: &mut [u8], result: i64) -> Outcome;

    /// Waits until an operation has ended, or for this long; `true` if a signal arrived first. For libraries whose own
    /// threads call back; others do their work here.
    ///
    /// # Errors
    /// The connection's end.
    fn wait(&mut self, ended: &HandOver, at_most: Duration) -> io::Result<bool> {
        Ok(ended.wait(Some(at_most)))
    }

    /// Lets a library without threads of its own do what it can do without waiting.
    ///
    /// # Errors
    /// The connection's end.
    fn poll(&mut self, _ended: &HandOver) -> io::Result<()> {
        Ok(())
    }

    /// Leaves the connection as it is, because operations are in flight that may never end.
    fn abandon(self: Box<Self>);
}

/// The engine, set up.
pub(crate) struct LibraryEngine<'arena> {
    /// `None` only while the engine is dropped.
    session: Option<Box<dyn Session>>,
    hand_over: Arc<HandOver>,
    arena: Arena<'arena>,
    /// By slot.
    ops: Box<[Option<Op>]>,
    /// Slots not yet submitted, in order.
    queued: Vec<u32>,
    /// Slots and results taken from the library, the last first.
    taken: Vec<(u32, i64)>,
    local: LocalCompletions<'arena>,
    in_flight: u32,
    /// Spin instead of sleeping.
    busy: bool,
    /// When a request to stop was first seen while nothing ended.
    stalled_since: Option<Instant>,
}

impl fmt::Debug for LibraryEngine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibraryEngine").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl<'arena> LibraryEngine<'arena> {
    /// An engine over these buffers and this session; `busy` polls for completions without sleeping.
    pub(crate) fn new(arena: Arena<'arena>, session: Box<dyn Session>, busy: bool) -> LibraryEngine<'arena> {
        let depth = arena.count();
        LibraryEngine {
            session: Some(session),
            hand_over: HandOver::new(depth),
            ops: vec![None; depth as usize].into_boxed_slice(),
            queued: Vec::with_capacity(depth as usize),
            taken: Vec::with_capacity(depth as usize),
            local: LocalCompletions::new(depth),
            in_flight: 0,
            busy,
            stalled_since: None,
            arena,
        }
    }

    /// The session, which is there until the engine is dropped.
    fn session(&mut self) -> io::Result<&mut Box<dyn Session>> {
        self.session.as_mut().ok_or_else(|| Errno(libc::ENOTCONN).into())
    }

    /// Takes what the library has ended.
    fn take_ended(&mut self) {
        let LibraryEngine { hand_over, taken, session, arena, ops, local, .. } = self;
        hand_over.take(|index, result| taken.push((index, result)));
        let Some(session) = session else { return };
        self.in_flight -= to_u32(taken.len());
        for (index, result) in taken.drain(..).rev() {
            let Some(op) = &ops[index as usize] else { continue };
            let length = if op.action.transfers() { to_usize(op.length_bytes) } else { 0 };
            // SAFETY: the part is inside the slot's buffer, which `part` checks. The operation has ended, so the library
            // no longer uses it, and the slot is not handed out before this is over.
            let part = unsafe { std::slice::from_raw_parts_mut(part(arena, index, op), length) };
            let outcome = session.outcome(op, part, result);
            local.push(Slot::from_index(index), outcome);
            self.stalled_since = None;
        }
    }

    /// Waits for an operation to end, for at most this long; `true` if a signal arrived first.
    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        let (busy, hand_over) = (self.busy, Arc::clone(&self.hand_over));
        let session = self.session()?;
        let signalled = if busy {
            let until = Instant::now() + at_most;
            while !hand_over.has_ended() && Instant::now() < until {
                session.poll(&hand_over)?;
                std::hint::spin_loop();
            }
            false
        } else {
            session.wait(&hand_over, at_most)?
        };
        if !hand_over.has_ended() && signal::stop_requested().is_some() {
            let since = *self.stalled_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                // The run is stopped, which is no failure of the job.
                return Err(Errno(libc::EINTR).into());
            }
        }
        Ok(signalled)
    }
}

impl Drop for LibraryEngine<'_> {
    fn drop(&mut self) {
        let until = Instant::now() + GRACE;
        while self.in_flight > 0 && Instant::now() < until {
            if self.wait(LOOK_EVERY).is_err() {
                break;
            }
            self.take_ended();
        }
        match self.session.take() {
            Some(session) if self.in_flight > 0 => {
                self.arena.leak();
                session.abandon();
            }
            session => drop(session),
        }
    }
}

impl<'arena> Engine<'arena> for LibraryEngine<'arena> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        self.session()?.open(file, target)
    }

    fn detach(&mut self, file: FileIndex) {
        // Closing a target waits for what is in flight, also if the engine has given that up.
        if let (Some(session), 0) = (&mut self.session, self.in_flight) {
            session.close(file);
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for LibraryEngine<'arena> {
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.into_index();
        self.ops[index as usize] = Some(op);
        self.queued.push(index);
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        let LibraryEngine { session: Some(session), hand_over, arena, ops, queued, local, .. } = self else {
            return Err(Errno(libc::ENOTCONN).into());
        };
        let count = to_u32(queued.len());
        for index in queued.drain(..) {
            let Some(op) = &ops[index as usize] else { continue };
            let ticket = hand_over.ticket(index);
            // SAFETY: the slot was moved into the engine, so nobody uses its buffer until the operation has ended. The
            // engine drops the session only when nothing is in flight.
            match unsafe { session.start(op, part(arena, index, op), ticket) } {
                Ok(()) => self.in_flight += 1,
                Err(errno) => local.push(Slot::from_index(index), Outcome::Failed(errno)),
            }
        }
        session.poll(hand_over)?;
        Ok(count)
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.submit()?;
        }
        let deadline = match wait {
            Wait::Poll | Wait::Block => None,
            Wait::For(time_ns) => Some(Instant::now() + Duration::from_nanos(time_ns)),
        };
        if wait == Wait::Poll && !self.hand_over.has_ended() {
            let hand_over = Arc::clone(&self.hand_over);
            self.session()?.poll(&hand_over)?;
        }
        let mut got = 0;
        loop {
            self.take_ended();
            got += self.local.drain(max - got, done);
            if wait == Wait::Poll || got >= min.min(max) || self.in_flight == 0 {
                return Ok(());
            }
            let left = deadline.map_or(LOOK_EVERY, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() || self.wait(left.min(LOOK_EVERY))? {
                self.take_ended();
                self.local.drain(max - got, done);
                return Ok(());
            }
        }
    }
}

/// Where an operation's part of its slot's buffer starts; one that transfers nothing may be longer than a buffer.
fn part(arena: &Arena<'_>, index: u32, op: &Op) -> *mut u8 {
    if op.action.transfers() { arena.part(index, op) } else { std::ptr::NonNull::dangling().as_ptr() }
}

/// Bytes, or the negative error number, that a library returns for an operation; some return 0 for a complete write.
pub(crate) fn whole_or_error(op: &Op, result: i64) -> Outcome {
    match (op.action, result) {
        (_, ..0) | (Action::Read, _) => Outcome::from_result(result),
        (
            Action::Write
            | Action::Trim
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_),
            _,
        ) => Outcome::whole(op),
    }
}

impl From<Unavailable> for SetupError {
    fn from(unavailable: Unavailable) -> SetupError {
        let Unavailable { call, cause, remedy } = unavailable;
        SetupError { call, errno: Errno(libc::ELIBACC), cause, remedy }
    }
}

/// A failed call as an error of `open`: what failed, and `hint`, which is given the call and the error number.
pub(crate) fn sentence(error: LibraryError, hint: impl FnOnce(&str, i32) -> String) -> (Errno, String) {
    match error {
        LibraryError::Unavailable(unavailable) => {
            let refused = SetupError::from(unavailable);
            (refused.errno, refused.to_string())
        }
        LibraryError::Stopped(call) => {
            (Errno(libc::ECANCELED), format!("{call}: the server had not answered when the run was stopped"))
        }
        LibraryError::Call(call, errno) => {
            let hint = hint(call, errno.0);
            let separator = if hint.is_empty() { "" } else { ": " };
            (errno, format!("{call} failed: {errno}{separator}{hint}"))
        }
    }
}
