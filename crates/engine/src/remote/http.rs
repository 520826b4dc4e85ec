//! Requests of HTTP/1.1 over one connection, one after the other: sent, answered, and the connection kept.
//!
//! Invariant: a connection that is kept has nothing left to send or to receive. A request is sent again only if the
//! server closed a connection that had been used before without answering anything: that is how a server ends a
//! connection that it no longer wants to keep.

use std::io::{self, IoSlice, IoSliceMut};

use fiord_http::{Body, Chunks, Endpoint, ResponseHead};
use fiord_sys::errno::Errno;

use super::connection::{Connection, Peer};
use super::patience::Patience;
use super::tls::Verification;

/// Bytes received at once, beyond the data that go directly into a buffer; the head of a response is never longer.
const STAGED_BYTES: usize = 1 << 14;

/// The response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response {
    /// Its status.
    pub status: u16,
    /// Bytes of its body, of which as many as fit are in the buffer if it is a success.
    pub body_bytes: u64,
}

/// A server, with a connection to it.
#[derive(Debug)]
pub(crate) struct Exchange {
    endpoint: Endpoint,
    /// How it is verified; `None` without TLS.
    tls: Option<Verification<'static>>,
    /// If it can take a request.
    connection: Option<Connection>,
    /// Whether it has answered a request.
    was_used: bool,
    staging: Staging,
    patience: Patience,
}

/// What has been received and not yet used.
#[derive(Debug)]
struct Staging {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Whether nothing has been received since the request.
    is_silent: bool,
}

impl Exchange {
    /// With this server; connects.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub(crate) fn open(endpoint: Endpoint, tls: Option<Verification<'static>>) -> io::Result<Exchange> {
        let bytes = vec![0; STAGED_BYTES].into_boxed_slice();
        let staging = Staging { bytes, start: 0, end: 0, is_silent: true };
        let connection = Some(connect(&endpoint, tls)?);
        Ok(Exchange { endpoint, tls, connection, was_used: false, staging, patience: Patience::default() })
    }

    /// Sends a request, and receives the response with its body.
    ///
    /// # Errors
    /// If the connection fails, or the server breaks the protocol; `Interrupted` if it does not answer and the job was
    /// asked to stop.
    pub(crate) fn exchange(&mut self, head: &[u8], body: &[u8], into: &mut [u8]) -> io::Result<Response> {
        self.patience.renew();
        let is_reused = self.was_used && self.connection.is_some();
        match self.attempt(head, body, into) {
            Err(error)
                if is_reused && self.staging.is_silent && error.kind() != io::ErrorKind::Interrupted =>
            {
                self.attempt(head, body, into)
            }
            ended => ended,
        }
    }

    fn attempt(&mut self, head: &[u8], body: &[u8], into: &mut [u8]) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                self.was_used = false;
                connect(&self.endpoint, self.tls)?
            }
        };
        let Exchange { staging, patience, .. } = self;
        (staging.start, staging.end, staging.is_silent) = (0, 0, true);
        let is_sent = staging.send(&mut connection, patience, head, body)?;
        // The response takes a while: asking for it at once would find nothing, and cost a call.
        if staging.is_silent && !connection.is_encrypted() {
            wait(&connection, false, patience)?;
        }
        let response = loop {
            let received = &staging.bytes[staging.start..staging.end];
            match ResponseHead::parse(received).map_err(io::Error::other)? {
                // The server goes on.
                Some((ResponseHead { status: 100..200, .. }, length)) => staging.start += length,
                Some((response, length)) => {
                    staging.start += length;
                    break response;
                }
                None => staging.receive(&mut connection, patience, &mut []).map(drop)?,
            }
        };
        let is_success = (200..300).contains(&response.status);
        let into = if is_success { into } else { &mut [] };
        let body_bytes = staging.body(&mut connection, patience, response.body, into)?;
        if response.keeps_alive && is_sent {
            self.connection = Some(connection);
            self.was_used = true;
        }
        Ok(Response { status: response.status, body_bytes })
    }
}

fn connect(endpoint: &Endpoint, tls: Option<Verification<'static>>) -> io::Result<Connection> {
    let connection = Connection::open(Peer::Tcp(&endpoint.host, endpoint.port))?;
    match tls {
        Some(verification) => connection.encrypt(&endpoint.host, verification),
        None => Ok(connection),
    }
}

/// Waits for the server.
fn wait(connection: &Connection, sending: bool, patience: &mut Patience) -> io::Result<()> {
    match connection.wait(sending, None) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted && !patience.is_over() => Ok(()),
        waited => waited.map(drop),
    }
}

impl Staging {
    /// Sends a request; whether all of it, which a server need not read that has answered already.
    fn send(
        &mut self,
        connection: &mut Connection,
        patience: &mut Patience,
        mut head: &[u8],
        mut body: &[u8],
    ) -> io::Result<bool> {
        loop {
            let sent = match head.is_empty() && body.is_empty() {
                true => connection.flush().map(|()| 0),
                false => connection.send(&[IoSlice::new(head), IoSlice::new(body)]),
            };
            match sent {
                Ok(bytes) => {
                    let of_head = bytes.min(head.len());
                    head = &head[of_head..];
                    body = &body[bytes - of_head..];
                    if head.is_empty() && body.is_empty() && !connection.has_unsent() {
                        return Ok(true);
                    }
                    if bytes > 0 {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // Its response may say why it did not read on.
                    return if self.has_more(connection)? { Ok(false) } else { Err(error) };
                }
            }
            if self.has_more(connection)? {
                return Ok(false);
            }
            wait(connection, true, patience)?;
        }
    }

    /// Whether the server has sent something already.
    fn has_more(&mut self, connection: &mut Connection) -> io::Result<bool> {
        let free = &mut self.bytes[self.end..];
        match connection.receive(&mut [IoSliceMut::new(free)]) {
            Ok(0) if self.end == 0 => return Err(Errno::ECONNRESET.into()),
            Ok(received) => {
                self.end += received;
                self.is_silent &= received == 0;
            }
            // Whatever is wrong, what was received before stands.
            Err(_) => {}
        }
        Ok(self.end > 0)
    }

    /// Waits for more: first into this buffer, how many bytes, and what exceeds it into the staging.
    fn receive(
        &mut self,
        connection: &mut Connection,
        patience: &mut Patience,
        into: &mut [u8],
    ) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        let free = &mut self.bytes[self.end..];
        if free.is_empty() {
            return Err(io::Error::other("the head of the response is too long"));
        }
        let direct_bytes = into.len();
        loop {
            match connection.receive(&mut [IoSliceMut::new(into), IoSliceMut::new(free)]) {
                Ok(0) => return Err(Errno::ECONNRESET.into()),
                Ok(received) => {
                    patience.heard();
                    self.is_silent = false;
                    self.end += received.saturating_sub(direct_bytes);
                    return Ok(received.min(direct_bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(connection, connection.has_unsent(), patience)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives a body: how long it is.
    fn body(
        &mut self,
        connection: &mut Connection,
        patience: &mut Patience,
        body: Body,
        into: &mut [u8],
    ) -> io::Result<u64> {
        let (mut received_bytes, mut chunks) = (0_u64, Chunks::default());
        loop {
            let staged = &self.bytes[self.start..self.end];
            let (taken, data) = match body {
                Body::Chunked => chunks.take(staged).map_err(io::Error::other)?,
                Body::Length(length_bytes) => {
                    let left = usize::try_from(length_bytes - received_bytes).unwrap_or(usize::MAX);
                    (left.min(staged.len()), left.min(staged.len()))
                }
                Body::UntilClosed => (staged.len(), staged.len()),
            };
            keep(&staged[taken - data..taken], received_bytes, into);
            self.start += taken;
            received_bytes += data as u64;
            let (is_ended, direct) = match body {
                Body::Chunked => (chunks.is_ended(), 0..0),
                Body::Length(length_bytes) => {
                    let fits = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(into.len());
                    (received_bytes == length_bytes, fits(received_bytes)..fits(length_bytes))
                }
                Body::UntilClosed => (false, 0..0),
            };
            if is_ended {
                return Ok(received_bytes);
            }
            if taken > 0 && self.start < self.end {
                continue;
            }
            match self.receive(connection, patience, &mut into[direct]) {
                Ok(direct_bytes) => received_bytes += direct_bytes as u64,
                Err(error) if body == Body::UntilClosed && Errno::of(&error) == Some(Errno::ECONNRESET) => {
                    return Ok(received_bytes);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Copies data to their place in a buffer, as far as they fit.
fn keep(data: &[u8], at_bytes: u64, into: &mut [u8]) {
    let Some(place) = usize::try_from(at_bytes).ok().and_then(|at| into.get_mut(at..)) else { return };
    let bytes = data.len().min(place.len());
    place[..bytes].copy_from_slice(&data[..bytes]);
}
