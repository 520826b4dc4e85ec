//! Carries bytes between a secured connection and a local socket, both ways.
//!
//! Invariant: an end of either direction is passed on, and the other direction goes on; of each direction at most a few
//! buffers are kept.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use fiord_sys::poll::{self, Until};

use super::handshake::Secured;

/// The most that is carried at a time, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Carries bytes until both directions have ended.
///
/// # Errors
/// The connection broke.
pub(super) fn relay(secured: Secured, local: UnixStream) -> io::Result<()> {
    let Secured { mut tls, socket } = secured;
    socket.set_read_timeout(None)?;
    socket.set_nonblocking(true)?;
    local.set_nonblocking(false)?;
    // One buffer at a time is written, of any length.
    tls.set_buffer_limit(None);
    let mut relay =
        Relay { tls, socket, local, is_sending: true, is_receiving: true, buffer: vec![0; BUFFER_BYTES] };
    // What came with the last message of the handshake.
    relay.pass_on()?;
    while relay.is_sending || relay.is_receiving || relay.tls.wants_write() {
        relay.step()?;
    }
    Ok(())
}

struct Relay {
    tls: rustls::Connection,
    socket: UnixStream,
    local: UnixStream,
    /// The local end may say more.
    is_sending: bool,
    /// The other end may say more.
    is_receiving: bool,
    buffer: Vec<u8>,
}

impl Relay {
    fn step(&mut self) -> io::Result<()> {
        let wants_write = self.tls.wants_write();
        let until = if wants_write { Until::ReadableOrWritable } else { Until::Readable };
        // More is only taken once the rest is sent, so that what waits here stays short.
        let listens = self.is_sending && !wants_write;
        let local = listens.then(|| (self.local.as_fd(), Until::Readable));
        let socket = (self.is_receiving || wants_write).then(|| (self.socket.as_fd(), until));
        let awaited: Vec<_> = local.into_iter().chain(socket).collect();
        let ready = match poll::wait_for_any(&awaited, None) {
            Ok(ready) => ready,
            Err(error) if is_for_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        if listens && ready[0] {
            self.take_local()?;
        }
        if self.is_receiving && ready.last() == Some(&true) {
            self.take_remote()?;
        }
        self.flush()
    }

    fn take_local(&mut self) -> io::Result<()> {
        match self.local.read(&mut self.buffer) {
            Err(error) if is_for_later(&error) => Ok(()),
            Ok(0) | Err(_) => {
                self.is_sending = false;
                self.tls.send_close_notify();
                Ok(())
            }
            Ok(count) => self.tls.writer().write_all(&self.buffer[..count]),
        }
    }

    fn take_remote(&mut self) -> io::Result<()> {
        match self.tls.read_tls(&mut self.socket) {
            // Without TLS' own end: whoever is there has gone, or was cut off.
            Ok(0) => return self.end_receiving(),
            Ok(_) => {}
            Err(error) if is_for_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.tls.process_new_packets().map_err(io::Error::other)?;
        self.pass_on()
    }

    /// Passes on what has been received.
    fn pass_on(&mut self) -> io::Result<()> {
        loop {
            match self.tls.reader().read(&mut self.buffer) {
                Ok(0) => return self.end_receiving(),
                Ok(count) => {
                    if self.local.write_all(&self.buffer[..count]).is_err() {
                        // Nobody reads there any more; what it still says goes on.
                        return self.end_receiving();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return self.end_receiving(),
                Err(error) => return Err(error),
            }
        }
    }

    fn end_receiving(&mut self) -> io::Result<()> {
        self.is_receiving = false;
        // It may be closed already.
        let _ = self.local.shutdown(Shutdown::Write);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if !self.is_sending {
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

/// Whether a signal came, or the socket is not ready after all.
fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::server::handshake::{connect, serve, server_config};

    /// Two local ends, between which bytes go through two relays.
    fn ends() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let ((here, client), (server, there)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        thread::spawn(move || relay(serve(far, &server_config().unwrap(), None).unwrap(), server).unwrap());
        thread::spawn(move || relay(connect(near, None).unwrap(), client).unwrap());
        (here, there)
    }

    #[test]
    fn many_bytes_go_both_ways_at_once_and_each_end_is_passed_on() {
        let (here, there) = ends();
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|index| (index % 251) as u8).collect();
        let send = |mut end: UnixStream, bytes: Vec<u8>| {
            thread::spawn(move || {
                end.write_all(&bytes).unwrap();
                end.shutdown(Shutdown::Write).unwrap();
            })
        };
        let senders = [(&here, bytes.clone()), (&there, bytes[1..].to_vec())]
            .map(|(end, bytes)| send(end.try_clone().unwrap(), bytes));
        let receivers = [here, there].map(|mut end| {
            thread::spawn(move || {
                let mut read = Vec::new();
                end.read_to_end(&mut read).map(|_| read)
            })
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let [came_here, came_there] = receivers.map(|receiver| receiver.join().unwrap().unwrap());
        assert!(came_there == bytes && came_here == bytes[1..]);
    }

    #[test]
    fn one_end_may_be_done_long_before_the_other() {
        let (mut here, mut there) = ends();
        here.shutdown(Shutdown::Write).unwrap();
        let mut nothing = Vec::new();
        assert_eq!(there.read_to_end(&mut nothing).unwrap(), 0);
        there.write_all(b"a report").unwrap();
        drop(there);
        let mut report = String::new();
        here.read_to_string(&mut report).unwrap();
        assert_eq!(report, "a report");
    }

    #[test]
    fn who_goes_without_a_word_ends_both() {
        let (here, mut there) = ends();
        drop(here);
        let mut nothing = Vec::new();
        assert_eq!(there.read_to_end(&mut nothing).unwrap(), 0);
    }
}
