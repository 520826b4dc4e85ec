//! The common part of the engines of connections: everything except how bytes get from memory to a socket and back.
//!
//! Invariant: an operation is one message or one transfer of a stream, and with pingpong its answer; nothing is repeated.

use std::fmt;
use std::io;

use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, FileIndex, FileUse, Op, RateUnit,
};
use fiord_sys::errno::Errno;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::connection::{Connection, Endpoint, Settings};
use crate::contract::{Arena, ArenaAccess, Engine, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{Setup, Visitor};
use crate::setup_error::SetupError;

/// How such an engine transfers bytes.
pub(crate) trait Wire: fmt::Debug {
    /// Receives bytes: how many, 0 if the other end is closed.
    ///
    /// # Safety
    /// `buffer` is valid for reads and writes.
    unsafe fn receive(&mut self, from: &mut Connection, buffer: *mut [u8]) -> io::Result<usize>;

    /// Sends bytes: how many. `more` follow at once.
    ///
    /// # Safety
    /// `buffer` is valid for reads.
    unsafe fn send(&mut self, to: &mut Connection, buffer: *const [u8], more: bool) -> io::Result<usize>;
}

/// An engine of connections.
#[derive(Debug)]
pub(crate) struct ConnectionEngine<'arena, W> {
    // Dropped in this order: what the kernel still sends of the memory, it has pages of.
    connections: Box<[Option<Connection>]>,
    endpoint: Endpoint,
    wire: W,
    pingpong: bool,
    /// Whether the kernel is not to wait for more to send.
    hurries: bool,
    /// Bytes of one loop: the last ones do not wait for more.
    loop_bytes: u64,
    arena: Arena<'arena>,
}

/// Of an engine of connections, whose rates are told in this unit.
pub(crate) const fn descriptor(name: EngineName, summary: &'static str, unit: RateUnit) -> EngineDescriptor {
    EngineDescriptor {
        files: FileUse::Connected(unit),
        settings: |options| EngineSettings::new(Settings::of(options)),
        tests: Some(EngineTests::CONNECTED),
        explain: |settings, errno| settings.get::<Settings>()?.explain(errno),
        ..EngineDescriptor::synchronous(name, summary)
    }
}

/// Sets such an engine up, and passes it, or the error, to `visitor`.
pub(crate) fn set_up<'a, V: Visitor<'a>, W: Wire + 'a>(
    settings: &Settings,
    Setup { job, arena }: Setup<'_, 'a>,
    wire: Result<W, SetupError>,
    visitor: V,
) -> V::Output {
    let engine = wire.and_then(|wire| {
        let endpoint = Endpoint::new(settings, job)?;
        let connections = (0..job.files).map(|_| None).collect();
        let pingpong = settings.pingpong;
        let hurries = pingpong || settings.nodelay;
        Ok(ConnectionEngine { connections, endpoint, wire, pingpong, hurries, loop_bytes: 0, arena })
    });
    visitor.synchronous(engine.map(BoxedSync::new))
}

impl<W: Wire> ConnectionEngine<'_, W> {
    /// Receives bytes and sends them back.
    ///
    /// # Safety
    /// `buffer` is valid for reads and writes of `length_bytes`.
    unsafe fn answer(connection: &mut Connection, buffer: *mut u8, length_bytes: usize) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe {
            let received = connection.receive(buffer, length_bytes)?;
            if received > 0 && !connection.has_ended() {
                connection.send(buffer, received, false)?;
            }
            Ok(received)
        }
    }

    /// Sends bytes and receives as many in their place. The other end may close instead of its answer.
    ///
    /// # Safety
    /// As `answer`.
    unsafe fn ask(connection: &mut Connection, buffer: *mut u8, length_bytes: usize) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe {
            let sent = connection.send(buffer, length_bytes, false)?;
            match connection.receive(buffer, sent)? {
                received if received == sent => Ok(sent),
                0 => Ok(0),
                // Half an answer, or a message that is none.
                _ => Err(Errno::EIO.into()),
            }
        }
    }
}

impl<'arena, W: Wire> Engine<'arena> for ConnectionEngine<'arena, W> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let place = self.connections.get_mut(file as usize).ok_or(Errno(libc::EBADF))?;
        *place = Some(self.endpoint.open()?);
        self.loop_bytes = target.length_bytes;
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        if let Some(place) = self.connections.get_mut(file as usize) {
            *place = None;
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena, W: Wire> SyncEngine<'arena> for ConnectionEngine<'arena, W> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let Some(Some(connection)) = self.connections.get_mut(op.file as usize) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let (part, length) = (self.arena.part(slot.number(), &op), to_usize(op.length_bytes));
        let buffer = std::ptr::slice_from_raw_parts_mut(part, length);
        let more = !self.hurries && op.offset_bytes + op.length_bytes < self.loop_bytes;
        // SAFETY: the part is inside the slot's buffer, and the slot is borrowed mutably until the calls are over.
        let done = unsafe {
            match op.action {
                Action::Read if self.pingpong => Self::answer(connection, part, length),
                Action::Read => self.wire.receive(connection, buffer),
                Action::Write if self.pingpong => Self::ask(connection, part, length),
                Action::Write => self.wire.send(connection, buffer, more),
                Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                    Err(Errno::EINVAL.into())
                }
            }
        };
        done.into()
    }
}
