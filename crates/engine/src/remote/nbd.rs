//! One NBD connection with many requests in flight: what is sent, what is received, and which slot it belongs to.
//!
//! Invariant: a slot's buffer is written to from the moment its request is queued until its reply is complete, and at no
//! other time. After an error of the connection every request in flight has failed, and no bytes are received any more.
//!
//! A cookie has the slot's number in its lower half and counts requests in its upper half, so that a reply to no request
//! in flight is recognised.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use fiord_nbd::{
    Address, Command, Export, Host, Negotiation, NegotiationError, REPLY_BYTES, REQUEST_BYTES, Reply,
    Request, disconnect,
};
use fiord_plan::{Action, Op};
use fiord_sys::errno::Errno;
use fiord_sys::width::{low_u32, to_usize};

use super::connection::{Connection, Peer};
use super::tls::Verification;
use crate::contract::{Arena, Outcome, Slot};
use crate::local_completions::LocalCompletions;

/// Bytes received at once, beyond the data that go directly into a slot.
const STAGED_BYTES: usize = 1 << 16;

/// Parts of what is sent at once: a header and data per request.
const PARTS: usize = 64;

/// Connects, and agrees on the export.
///
/// # Errors
/// What is wrong with the server or the way to it, with what to do.
pub(crate) fn connect(address: &Address) -> io::Result<(Connection, Export)> {
    let peer = match &address.host {
        Host::Tcp { name, port } => Peer::Tcp(name, *port),
        Host::Unix(path) => Peer::Unix(path),
    };
    let stream = Connection::open(peer)?.blocking();
    let mut negotiation = Negotiation::begin(stream).map_err(failed)?;
    if address.tls {
        negotiation.start_tls().map_err(failed)?;
        let name = match &address.host {
            Host::Tcp { name, .. } => name,
            // A socket has no name; certificates for it have this one.
            Host::Unix(_) => "localhost",
        };
        let verification = match &address.certificates {
            Some(directory) => Verification::Directory(directory),
            None => Verification::System,
        };
        negotiation = negotiation
            .map(|stream| Ok::<_, io::Error>(stream.into_inner().encrypt(name, verification)?.blocking()))?;
    }
    let (stream, export) = negotiation.go(&address.export).map_err(failed)?;
    Ok((stream.into_inner(), export))
}

/// The error of the connection, if it is that which failed; otherwise what the server is or answered.
fn failed(error: NegotiationError) -> io::Error {
    match error {
        NegotiationError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => error,
        error @ (NegotiationError::Io(_)
        | NegotiationError::NotSupported(_)
        | NegotiationError::Refused(_)) => io::Error::other(error),
    }
}

/// The data of a read that are being received.
#[derive(Debug, Clone, Copy)]
struct Payload {
    index: u32,
    op: Op,
    /// How much of it is in the buffer.
    received_bytes: usize,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    op: Op,
    cookie: u64,
    header: [u8; REQUEST_BYTES],
}

/// A connection with requests.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    export: Export,
    /// Whether writes reach stable storage before their replies.
    writes_through: bool,
    /// By slot.
    in_flight: Box<[Option<InFlight>]>,
    count: u32,
    sequence: u32,
    /// Slots whose requests were not sent in full, in order.
    unsent: VecDeque<u32>,
    /// How much of the first of them was sent, its header included.
    sent_bytes: usize,
    staging: Box<[u8]>,
    /// What of `staging` has been received and not yet used.
    staged: (usize, usize),
    payload: Option<Payload>,
    /// Why the connection is of no use any more.
    broken: Option<Errno>,
}

impl Session {
    /// Over a connection after its handshake, for this many slots.
    pub(crate) fn new(connection: Connection, export: Export, writes_through: bool, depth: u32) -> Session {
        Session {
            connection,
            export,
            writes_through,
            in_flight: vec![None; depth as usize].into_boxed_slice(),
            count: 0,
            sequence: 0,
            unsent: VecDeque::with_capacity(depth as usize),
            sent_bytes: 0,
            staging: vec![0; STAGED_BYTES].into_boxed_slice(),
            staged: (0, 0),
            payload: None,
            broken: None,
        }
    }

    /// Requests without a reply.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.count
    }

    /// The request for an operation, or why the server would not take it.
    #[inline]
    fn request(&self, op: &Op) -> Result<Request, Errno> {
        let export = &self.export;
        let (offset_bytes, length_bytes) = (op.offset_bytes, op.length_bytes);
        let least = u64::from(export.block_bytes_min);
        let fits = offset_bytes % least == 0 && length_bytes % least == 0;
        let too_long = export.block_bytes_max.is_some_and(|most| length_bytes > u64::from(most));
        let command = match op.action {
            Action::Read if too_long => return Err(Errno::EINVAL),
            Action::Read => Command::Read,
            Action::Write | Action::Trim if export.read_only => return Err(Errno::EROFS),
            Action::Write if too_long => return Err(Errno::EINVAL),
            Action::Write => Command::Write { through_cache: self.writes_through },
            Action::Trim if export.trims => Command::Trim,
            Action::Sync | Action::DataSync | Action::RangeSync(_) if export.flushes => {
                return Ok(Request { command: Command::Flush, cookie: 0, offset_bytes: 0, length_bytes: 0 });
            }
            Action::Trim | Action::Sync | Action::DataSync | Action::RangeSync(_) | Action::ResetZone => {
                return Err(Errno::EOPNOTSUPP);
            }
        };
        let length_bytes = u32::try_from(length_bytes).map_err(|_| Errno::EINVAL)?;
        if fits { Ok(Request { command, cookie: 0, offset_bytes, length_bytes }) } else { Err(Errno::EINVAL) }
    }

    /// Queues an operation; one that the server would not take has ended.
    #[inline]
    pub(crate) fn queue<'arena>(&mut self, op: Op, slot: Slot<'arena>, local: &mut LocalCompletions<'arena>) {
        let request = match self.broken {
            Some(errno) => Err(errno),
            None => self.request(&op),
        };
        match request {
            Err(errno) => local.push(slot, Outcome::Failed(errno)),
            Ok(mut request) => {
                let index = slot.into_index();
                self.sequence = self.sequence.wrapping_add(1);
                request.cookie = u64::from(self.sequence) << 32 | u64::from(index);
                let header = request.encode();
                self.in_flight[index as usize] = Some(InFlight { op, cookie: request.cookie, header });
                self.unsent.push_back(index);
                self.count += 1;
            }
        }
    }

    /// Sends and receives what is possible without waiting.
    #[inline]
    pub(crate) fn advance<'arena>(&mut self, arena: &Arena<'arena>, local: &mut LocalCompletions<'arena>) {
        let advanced = self.send(arena).and_then(|()| self.receive(arena, local));
        if let Err(error) = advanced {
            self.fail(Errno::of(&error).unwrap_or(Errno::EPROTO), local);
        }
    }

    /// Sends what is possible without waiting.
    #[inline]
    pub(crate) fn push<'arena>(&mut self, arena: &Arena<'arena>, local: &mut LocalCompletions<'arena>) {
        if let Err(error) = self.send(arena) {
            self.fail(Errno::of(&error).unwrap_or(Errno::EPROTO), local);
        }
    }

    /// Waits until `advance` can do something; whether it can.
    ///
    /// # Errors
    /// `Interrupted` after a signal.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let sending = !self.unsent.is_empty() || self.connection.has_unsent();
        self.connection.wait(sending, timeout)
    }

    /// Ends every request in flight with this error, and the use of the connection.
    #[cold]
    pub(crate) fn fail<'arena>(&mut self, errno: Errno, local: &mut LocalCompletions<'arena>) {
        self.broken = Some(errno);
        self.payload = None;
        self.unsent.clear();
        for (index, place) in (0..).zip(&mut self.in_flight) {
            if place.take().is_some() {
                local.push(Slot::from_index(index), Outcome::Failed(errno));
            }
        }
        self.count = 0;
    }

    fn send(&mut self, arena: &Arena<'_>) -> io::Result<()> {
        while !self.unsent.is_empty() {
            let mut parts = [IoSlice::new(&[]); PARTS];
            let mut used = 0;
            let mut skipped_bytes = self.sent_bytes;
            for index in &self.unsent {
                if used + 2 > PARTS {
                    break;
                }
                let Some(request) = &self.in_flight[*index as usize] else { break };
                let header = &request.header[skipped_bytes.min(REQUEST_BYTES)..];
                if !header.is_empty() {
                    parts[used] = IoSlice::new(header);
                    used += 1;
                }
                if request.op.action == Action::Write {
                    // SAFETY: the slot is in flight, so only this engine uses its buffer, and writes nothing there.
                    let data = unsafe { part(arena, *index, &request.op) };
                    parts[used] = IoSlice::new(&data[skipped_bytes.saturating_sub(REQUEST_BYTES)..]);
                    used += 1;
                }
                skipped_bytes = 0;
            }
            match self.connection.send(&parts[..used]) {
                Ok(bytes) => self.note_sent(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.connection.flush()
    }

    /// Removes the requests that were sent in full with these bytes.
    fn note_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        while let Some(index) = self.unsent.front() {
            let Some(request) = &self.in_flight[*index as usize] else { break };
            let data_bytes =
                if request.op.action == Action::Write { to_usize(request.op.length_bytes) } else { 0 };
            if self.sent_bytes < REQUEST_BYTES + data_bytes {
                break;
            }
            self.sent_bytes -= REQUEST_BYTES + data_bytes;
            self.unsent.pop_front();
        }
    }

    fn receive<'arena>(
        &mut self,
        arena: &Arena<'arena>,
        local: &mut LocalCompletions<'arena>,
    ) -> io::Result<()> {
        while self.count > 0 {
            self.use_staged(arena, local)?;
            // What is left is part of a header, and is moved to the front for the rest of it.
            let (start, end) = self.staged;
            self.staging.copy_within(start..end, 0);
            self.staged = (0, end - start);
            let free = &mut self.staging[end - start..];
            let missing = match &self.payload {
                // SAFETY: the slot is in flight, so only this engine uses its buffer.
                Some(Payload { index, op, received_bytes }) => unsafe {
                    &mut part_mut(arena, *index, op)[*received_bytes..]
                },
                None => &mut [],
            };
            let (missing_bytes, room_bytes) = (missing.len(), missing.len() + free.len());
            let received =
                match self.connection.receive(&mut [IoSliceMut::new(missing), IoSliceMut::new(free)]) {
                    Ok(0) => return Err(Errno::ECONNRESET.into()),
                    Ok(received) => received,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
            let direct_bytes = received.min(missing_bytes);
            self.staged.1 += received - direct_bytes;
            self.note_received(direct_bytes, local);
            if received < room_bytes && !self.connection.is_encrypted() {
                // The socket is empty.
                return self.use_staged(arena, local);
            }
        }
        Ok(())
    }

    /// Uses what was received, up to an incomplete header.
    fn use_staged<'arena>(
        &mut self,
        arena: &Arena<'arena>,
        local: &mut LocalCompletions<'arena>,
    ) -> io::Result<()> {
        loop {
            let (start, end) = self.staged;
            let staged = &self.staging[start..end];
            if let Some(Payload { index, op, received_bytes }) = &self.payload {
                // SAFETY: the slot is in flight, so only this engine uses its buffer.
                let missing = unsafe { &mut part_mut(arena, *index, op)[*received_bytes..] };
                let bytes = missing.len().min(staged.len());
                missing[..bytes].copy_from_slice(&staged[..bytes]);
                self.staged.0 += bytes;
                self.note_received(bytes, local);
                if self.payload.is_some() {
                    return Ok(());
                }
                continue;
            }
            let Some(header) = staged.first_chunk::<REPLY_BYTES>() else { return Ok(()) };
            let reply = Reply::decode(header).map_err(io::Error::other)?;
            self.staged.0 += REPLY_BYTES;
            self.begin_reply(reply, local)?;
        }
    }

    /// A header was received: its request has ended, or data follow.
    fn begin_reply<'arena>(&mut self, reply: Reply, local: &mut LocalCompletions<'arena>) -> io::Result<()> {
        let index = low_u32(reply.cookie);
        let place = self.in_flight.get(index as usize).and_then(Option::as_ref);
        // A server that answers what it was not sent in full does not follow the protocol.
        let Some(request) = place.filter(|request| request.cookie == reply.cookie) else {
            return Err(Errno::EPROTO.into());
        };
        let op = request.op;
        match (reply.errno, op.action) {
            (0, Action::Read) => self.payload = Some(Payload { index, op, received_bytes: 0 }),
            (0, _) => self.end(index, Outcome::whole(&op), local),
            (errno, _) => {
                let errno = i32::try_from(errno).unwrap_or(libc::EPROTO);
                self.end(index, Outcome::Failed(Errno(errno)), local);
            }
        }
        // A read of nothing has no data.
        self.note_received(0, local);
        Ok(())
    }

    /// Bytes of the payload are in its buffer.
    fn note_received<'arena>(&mut self, bytes: usize, local: &mut LocalCompletions<'arena>) {
        let Some(payload) = &mut self.payload else { return };
        payload.received_bytes += bytes;
        if payload.received_bytes as u64 == payload.op.length_bytes {
            let (index, outcome) = (payload.index, Outcome::whole(&payload.op));
            self.payload = None;
            self.end(index, outcome, local);
        }
    }

    fn end<'arena>(&mut self, index: u32, outcome: Outcome, local: &mut LocalCompletions<'arena>) {
        self.in_flight[index as usize] = None;
        self.count -= 1;
        local.push(Slot::from_index(index), outcome);
    }
}

impl Drop for Session {
    /// Says goodbye, if the server has nothing left to do and would read it.
    fn drop(&mut self) {
        if self.broken.is_none() && self.count == 0 {
            // The connection is closed in any case.
            let _ = self.connection.send(&[IoSlice::new(&disconnect())]);
            let _ = self.connection.flush();
        }
    }
}

/// The bytes of an operation, to be sent.
///
/// # Safety
/// The slot is in flight, and nothing writes to its buffer while the slice lives.
unsafe fn part<'a>(arena: &'a Arena<'_>, index: u32, op: &Op) -> &'a [u8] {
    // SAFETY: `part` checks that the bytes are inside the buffer; the caller vouches for the rest.
    unsafe { std::slice::from_raw_parts(arena.part(index, op), to_usize(op.length_bytes)) }
}

/// The bytes of an operation, to be filled.
///
/// # Safety
/// The slot is in flight, and nothing else uses its buffer while the slice lives.
#[allow(clippy::mut_from_ref, reason = "the slot in flight is the exclusive right to the buffer")]
unsafe fn part_mut<'a>(arena: &'a Arena<'_>, index: u32, op: &Op) -> &'a mut [u8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(arena.part(index, op), to_usize(op.length_bytes)) }
}
