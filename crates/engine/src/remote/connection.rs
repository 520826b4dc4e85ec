//! A connection to a server: TCP or a socket in the file system, optionally encrypted.
//!
//! Invariant: the socket never blocks. What cannot go on ends with `WouldBlock`, and `wait` waits for the socket.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use fiord_sys::poll::{self, Until};

use super::tls::{Tls, Verification};

/// How long a server may take to accept a connection, and to answer before the first I/O.
const SETUP_TIME_MAX: Duration = Duration::from_secs(10);

/// What is connected to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer<'a> {
    /// A name or number of a machine, and a port.
    Tcp(&'a str, u16),
    /// A socket in the file system.
    Unix(&'a Path),
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    tls: Option<Box<Tls>>,
}

impl Connection {
    /// Connects, trying each address of a name in turn.
    ///
    /// # Errors
    /// That of the last address.
    pub(crate) fn open(peer: Peer<'_>) -> io::Result<Connection> {
        let socket = match peer {
            Peer::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Peer::Tcp(name, port) => {
                let mut tried = Err(io::Error::other("the name has no address"));
                for address in (name, port).to_socket_addrs()? {
                    tried = TcpStream::connect_timeout(&address, SETUP_TIME_MAX);
                    if tried.is_ok() {
                        break;
                    }
                }
                let stream = tried?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        match &socket {
            Socket::Tcp(stream) => stream.set_nonblocking(true),
            Socket::Unix(stream) => stream.set_nonblocking(true),
        }?;
        Ok(Connection { socket, tls: None })
    }

    /// Encrypts everything from here on, after a handshake with the server of this name.
    ///
    /// # Errors
    /// If the handshake fails, such as for a certificate that is not trusted.
    pub(crate) fn encrypt(mut self, name: &str, verification: Verification<'_>) -> io::Result<Connection> {
        let mut tls = Tls::new(name, verification)?;
        let deadline = Deadline::new();
        while tls.is_handshaking() || tls.has_unsent() {
            tls.flush(&mut self.socket)?;
            if !tls.is_handshaking() && !tls.has_unsent() {
                break;
            }
            match tls.advance(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    deadline.wait(&self, tls.has_unsent())?;
                }
                Err(error) => {
                    // The server learns why.
                    let _ = tls.flush(&mut self.socket);
                    return Err(error);
                }
            }
        }
        Ok(Connection { tls: Some(Box::new(tls)), ..self })
    }

    /// Sends as much as there is room for; how many bytes of the parts were taken.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room, or what the kernel or TLS reports.
    #[inline]
    pub(crate) fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write_vectored(parts),
            Some(tls) => tls.send(&mut self.socket, parts),
        }
    }

    /// Whether bytes may wait here, decrypted, that the socket no longer has.
    #[inline]
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether bytes that `send` took wait for room; `flush` sends them.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Sends what `send` took and the socket did not, as far as there is room.
    ///
    /// # Errors
    /// Those of the socket.
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => tls.flush(&mut self.socket),
        }
    }

    /// Receives what is there; 0 bytes if the server has closed the connection.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there, or what the kernel or TLS reports.
    #[inline]
    pub(crate) fn receive(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read_vectored(parts),
            Some(tls) => tls.receive(&mut self.socket, parts),
        }
    }

    /// Waits until something can be received, or if `sending` also sent; whether it can.
    ///
    /// # Errors
    /// Those of the kernel: `Interrupted` after a signal.
    pub(crate) fn wait(&self, sending: bool, timeout: Option<Duration>) -> io::Result<bool> {
        let until = if sending { Until::ReadableOrWritable } else { Until::Readable };
        poll::wait(self.socket.fd(), until, timeout)
    }

    /// The connection as a stream that blocks, for what precedes the first I/O.
    pub(crate) fn blocking(self) -> Blocking {
        Blocking { connection: self, deadline: Deadline::new() }
    }
}

impl Socket {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read_vectored(parts),
            Socket::Unix(stream) => stream.read_vectored(parts),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(parts),
            Socket::Unix(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// When a server has taken too long.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn new() -> Deadline {
        Deadline(Instant::now() + SETUP_TIME_MAX)
    }

    fn wait(self, connection: &Connection, sending: bool) -> io::Result<()> {
        let left = self.0.saturating_duration_since(Instant::now());
        match connection.wait(sending, Some(left))? {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::TimedOut, "the server did not answer within 10 s")),
        }
    }
}

/// A connection whose reads and writes wait for the server.
#[derive(Debug)]
pub(crate) struct Blocking {
    connection: Connection,
    deadline: Deadline,
}

impl Blocking {
    /// The connection again.
    pub(crate) fn into_inner(self) -> Connection {
        self.connection
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.connection.flush()?;
            match self.connection.receive(&mut [IoSliceMut::new(buffer)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.deadline.wait(&self.connection, self.connection.has_unsent())?;
                }
                received => return received,
            }
        }
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.connection.send(&[IoSlice::new(bytes)]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.deadline.wait(&self.connection, true)?;
                }
                sent => return sent,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        loop {
            self.connection.flush()?;
            if !self.connection.has_unsent() {
                return Ok(());
            }
            self.deadline.wait(&self.connection, true)?;
        }
    }
}
