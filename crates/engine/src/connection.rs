//! Connections as fio makes them: which end waits, how they begin, and how they end.
//!
//! Invariant: a connection ends once, by a message to the other end or from it. What the other end sent before its
//! message is data.
//!
//! The messages are those of fio 3.33, seen on the wire: a sender of datagrams begins with `OPEN`, and the end that is
//! done first sends `CLOSE`, on streams too.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::rc::Rc;

use fiord_options::job::JobOptions;
use fiord_options::shown::shown;
use fiord_options::value::NetProtocol;
use fiord_sys::errno::{Errno, Explained, error_text};
use fiord_sys::socket::{self, Address, Flags, Passes, Socket};
use fiord_sys::width::to_usize;

use crate::definition::JobOutline;
use crate::setup_error::{SetupError, SetupStep};

/// The first message of a sender of datagrams.
const OPEN: &[u8; 8] = b"link\0\0\0\x98";

/// The last message of the end that closes first.
const CLOSE: &[u8; 8] = b"knil\x89\0\0\0";

/// The options of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Protocol.
    pub protocol: NetProtocol,
    /// The other end, or a group.
    pub host: Option<OsString>,
    /// The port of the first clone; 0 for none.
    pub port: u32,
    /// Whether a stream waits for the other end.
    pub listen: bool,
    /// Whether each message is answered.
    pub pingpong: bool,
    /// Whether small packets are sent at once.
    pub nodelay: bool,
    /// Interface of groups.
    pub interface: Option<String>,
    /// Hops to groups.
    pub hops: u8,
    /// Size of the socket's buffer.
    pub window_bytes: Option<usize>,
    /// Largest TCP segment.
    pub segment_bytes: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(&JobOptions::default())
    }
}

impl Settings {
    /// Those of a job's options.
    pub(crate) fn of(options: &JobOptions) -> Settings {
        let own = &options.net;
        Settings {
            protocol: own.protocol,
            host: own.hostname.as_ref().map(|host| host.0.clone()),
            port: own.port.unwrap_or(0),
            listen: own.listen.is_some_and(|flag| flag.0),
            pingpong: own.pingpong.is_some_and(|flag| flag.0),
            nodelay: own.nodelay.unwrap_or(false),
            interface: own.interface.as_ref().map(|interface| interface.0.clone()),
            hops: u8::try_from(own.ttl).unwrap_or(u8::MAX),
            window_bytes: own.window_size.map(|size| to_usize(size.0)),
            segment_bytes: own.mss,
        }
    }

    /// The explanation of an errno of a read or write.
    pub(crate) fn explain(&self, errno: i32) -> Option<&'static str> {
        match errno {
            libc::EPIPE | libc::ECONNRESET => Some(
                "the other end is closed: it ended, or its size or runtime is smaller than that of this job",
            ),
            libc::EMSGSIZE => Some(
                "a datagram holds at most 65507 bytes, and both ends have the same bs: use a smaller bs, or tcp",
            ),
            libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH => {
                Some("the other end cannot be reached any more")
            }
            libc::ENOBUFS => Some("the network's queue is full: use rate="),
            _ => None,
        }
    }

    /// The host, if it is an address.
    fn group(&self) -> Option<IpAddr> {
        self.host.as_ref()?.to_str()?.parse().ok()
    }

    fn passes(&self) -> Passes {
        match self.protocol {
            NetProtocol::Udp | NetProtocol::Udpv6 => Passes::Datagrams,
            NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Unix | NetProtocol::Vsock => Passes::Stream,
        }
    }

    fn is_tcp(&self) -> bool {
        matches!(self.protocol, NetProtocol::Tcp | NetProtocol::Tcpv6)
    }

    /// The address that any other is bound with.
    fn unspecified(&self) -> IpAddr {
        match self.protocol {
            NetProtocol::Tcpv6 | NetProtocol::Udpv6 => Ipv6Addr::UNSPECIFIED.into(),
            NetProtocol::Tcp | NetProtocol::Udp | NetProtocol::Unix | NetProtocol::Vsock => {
                Ipv4Addr::UNSPECIFIED.into()
            }
        }
    }

    /// The options of the kernel for a socket, before it is bound or connected.
    fn prepare(&self, socket: &Socket, waits: bool) -> io::Result<()> {
        if let Some(bytes) = self.window_bytes {
            if waits { socket.set_receive_buffer(bytes)? } else { socket.set_send_buffer(bytes)? }
        }
        match self.segment_bytes.filter(|_| self.is_tcp()) {
            Some(bytes) => socket.set_segment(bytes),
            None => Ok(()),
        }
    }
}

/// One end of connections, of one job.
#[derive(Debug)]
pub(crate) struct Endpoint {
    settings: Settings,
    /// The port of this clone.
    port: u32,
    /// The path of a Unix socket.
    path: PathBuf,
    /// What the other end connects or sends to, if this end waits.
    bound: Option<Rc<Socket>>,
}

impl Endpoint {
    /// The end of this job. One that waits can be reached from here on.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub(crate) fn new(settings: &Settings, job: &JobOutline) -> Result<Endpoint, SetupError> {
        let path = match &settings.host {
            Some(host) => PathBuf::from(host),
            None => job.target.clone(),
        };
        let mut endpoint = Endpoint {
            settings: settings.clone(),
            port: settings.port.saturating_add(job.clone),
            path,
            bound: None,
        };
        let waits = match settings.protocol {
            NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Vsock => settings.listen,
            NetProtocol::Udp | NetProtocol::Udpv6 | NetProtocol::Unix => job.reads,
        };
        if waits {
            let bound = endpoint.bind().map_err(|error| SetupError::new(SetupStep::Listen, &error))?;
            endpoint.bound = Some(Rc::new(bound));
        }
        Ok(endpoint)
    }

    /// A socket that waits at this end's address.
    fn bind(&self) -> io::Result<Socket> {
        let settings = &self.settings;
        let address = match settings.protocol {
            NetProtocol::Unix => {
                socket::remove_stale(&self.path)?;
                Address::unix(&self.path)?
            }
            NetProtocol::Vsock => Address::vsock(Address::VSOCK_ANY, self.port),
            NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Udp | NetProtocol::Udpv6 => {
                Address::ip(SocketAddr::new(settings.unspecified(), self.ip_port()?))
            }
        };
        let bound = Socket::new(&address, settings.passes())?;
        if matches!(settings.protocol, NetProtocol::Unix | NetProtocol::Vsock) {
            settings.prepare(&bound, true)?;
        } else {
            bound.share_address()?;
            settings.prepare(&bound, true)?;
            if let Some(group) = settings.group() {
                bound.join(group, settings.interface.as_deref())?;
            }
        }
        bound.bind(&address)?;
        if settings.passes() == Passes::Stream {
            bound.listen()?;
        }
        Ok(bound)
    }

    /// The port of this clone, of IP.
    fn ip_port(&self) -> io::Result<u16> {
        u16::try_from(self.port).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
    }

    /// Makes a connection: waits for the other end, or connects to it.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(crate) fn open(&self) -> io::Result<Connection> {
        let stream = |socket| Connection { socket: Rc::new(socket), remote: None, ended: false };
        match (&self.bound, self.settings.passes()) {
            (Some(bound), Passes::Stream) => {
                let socket = bound.accept()?;
                self.hurry(&socket)?;
                Ok(stream(socket))
            }
            (Some(bound), Passes::Datagrams) => {
                Ok(Connection { socket: Rc::clone(bound), remote: Some(opened(bound)?), ended: false })
            }
            (None, passes) => {
                let (address, shown) = self.remote()?;
                let connected = self.connect(&address, passes);
                connected.map_err(|error| Explained::with(&error, refused(&shown, &error)))
            }
        }
    }

    /// Sends small packets at once, if the job asks for it.
    fn hurry(&self, socket: &Socket) -> io::Result<()> {
        if self.settings.nodelay && self.settings.is_tcp() { socket.send_at_once() } else { Ok(()) }
    }

    fn connect(&self, address: &Address, passes: Passes) -> io::Result<Connection> {
        let socket = Socket::new(address, passes)?;
        self.hurry(&socket)?;
        self.settings.prepare(&socket, false)?;
        let remote = match passes {
            Passes::Stream => {
                socket.connect(address)?;
                None
            }
            Passes::Datagrams => {
                if let Some(group) = self.settings.group().filter(IpAddr::is_multicast) {
                    socket.send_to_groups(group, self.settings.interface.as_deref(), self.settings.hops)?;
                }
                // SAFETY: the message lives for ever.
                unsafe { socket.send_message(OPEN.as_ptr(), OPEN.len(), address)? };
                Some(address.clone())
            }
        };
        Ok(Connection { socket: Rc::new(socket), remote, ended: false })
    }

    /// The other end's address, and how it is shown.
    fn remote(&self) -> io::Result<(Address, String)> {
        let host = self.settings.host.as_deref().unwrap_or_default();
        let no_machine = || io::Error::other("hostname= is not text in UTF-8, and so the name of no machine");
        let name = || host.to_str().ok_or_else(no_machine);
        match self.settings.protocol {
            NetProtocol::Unix => Ok((Address::unix(&self.path)?, shown(&self.path))),
            NetProtocol::Vsock => {
                let machine = name()?.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
                Ok((Address::vsock(machine, self.port), format!("machine {machine}, port {}", self.port)))
            }
            NetProtocol::Tcp | NetProtocol::Tcpv6 | NetProtocol::Udp | NetProtocol::Udpv6 => {
                let name = name()?;
                let found = resolve(name, self.ip_port()?, self.settings.unspecified().is_ipv6())?;
                Ok((Address::ip(found), format!("{name} ({}), port {}", found.ip(), self.port)))
            }
        }
    }
}

impl Drop for Endpoint {
    /// The socket's file is of no use without it.
    fn drop(&mut self) {
        if self.bound.is_some() && self.settings.protocol == NetProtocol::Unix {
            let _ = socket::remove_stale(&self.path);
        }
    }
}

/// The first address of a name that is of this family.
fn resolve(host: &str, port: u16, is_ipv6: bool) -> io::Result<SocketAddr> {
    let unknown = io::Error::from_raw_os_error(libc::EINVAL);
    let no = |why: String| Explained::with(&unknown, format!("hostname={host} {why}"));
    let mut found = (host, port)
        .to_socket_addrs()
        .map_err(|error| no(format!("is not known: {}", error_text(&error))))?;
    found.find(|address| address.is_ipv6() == is_ipv6).ok_or_else(|| match is_ipv6 {
        true => no("has no IPv6 address: use protocol=tcp or udp".to_string()),
        false => no("has no IPv4 address: use protocol=tcpv6 or udpv6".to_string()),
    })
}

/// Waits for the first message of a sender, and returns its address.
fn opened(bound: &Socket) -> io::Result<Address> {
    loop {
        let mut message = [0; OPEN.len()];
        // SAFETY: the array lives during the call.
        let (length_bytes, from) = unsafe { bound.receive_message(message.as_mut_ptr(), message.len())? };
        // What an earlier sender left is passed over.
        if let Some(from) = from.filter(|_| length_bytes == OPEN.len() && message == *OPEN) {
            return Ok(from);
        }
    }
}

/// What to do about a connection that could not be made.
fn refused(to: &str, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => {
            "nobody listens there: begin the other end first (listen=1), or check the port"
        }
        Some(libc::ENOENT) => "there is no such socket: begin the other end first (rw=read)",
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => "there is no route to it",
        Some(libc::ETIMEDOUT) => "it does not answer: it is off, or a firewall drops the packets",
        Some(libc::EAFNOSUPPORT | libc::ENODEV | libc::EADDRNOTAVAIL) => {
            "this kernel reaches no such addresses (for vsock, a module such as vsock_loopback is missing)"
        }
        _ => "check hostname, port and interface",
    };
    format!("{to}: {remedy}")
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Rc<Socket>,
    /// The other end, of datagrams.
    remote: Option<Address>,
    /// Whether the other end is closed.
    ended: bool,
}

impl Connection {
    /// Its socket.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether it passes a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether the other end is closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Receives bytes: how many, 0 if the other end is closed.
    ///
    /// # Safety
    /// `buffer` is valid for reads and writes of `len_bytes`.
    #[inline]
    pub(crate) unsafe fn receive(&mut self, buffer: *mut u8, len_bytes: usize) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        // SAFETY: the caller vouches for the buffer.
        let received = unsafe {
            match self.remote {
                None => self.socket.receive(buffer, len_bytes, Flags::Whole)?,
                Some(_) => self.socket.receive_message(buffer, len_bytes)?.0,
            }
        };
        // SAFETY: the caller vouches for the buffer.
        unsafe { self.data_of(buffer, received, len_bytes) }
    }

    /// How many of the bytes that were received, of those that were wanted, are data: all but the other end's last message.
    ///
    /// # Safety
    /// As `receive`.
    #[inline]
    pub(crate) unsafe fn data_of(
        &mut self,
        buffer: *mut u8,
        received: usize,
        wanted: usize,
    ) -> io::Result<usize> {
        if received == wanted && received > CLOSE.len() {
            return Ok(received);
        }
        // SAFETY: the caller vouches for the buffer.
        unsafe { self.end_of(buffer, received, wanted) }
    }

    /// The same of a transfer that is not whole, or could be a message.
    ///
    /// # Safety
    /// As `receive`.
    #[cold]
    unsafe fn end_of(&mut self, buffer: *mut u8, received: usize, wanted: usize) -> io::Result<usize> {
        if received > wanted {
            return Err(Errno::EMSGSIZE.into());
        }
        // SAFETY: the caller vouches for the buffer, which holds the bytes.
        let bytes = unsafe { std::slice::from_raw_parts(buffer, received) };
        if bytes.ends_with(CLOSE) && (self.is_stream() || received == CLOSE.len()) {
            self.ended = true;
            return Ok(received - CLOSE.len());
        }
        self.ended = received == 0;
        Ok(received)
    }

    /// Sends bytes: how many.
    ///
    /// # Safety
    /// `buffer` is valid for reads of `len_bytes`.
    #[inline]
    pub(crate) unsafe fn send(&self, buffer: *const u8, len_bytes: usize, more: bool) -> io::Result<usize> {
        let flags = if more { Flags::More } else { Flags::None };
        // SAFETY: the caller vouches for the buffer.
        unsafe {
            match &self.remote {
                None => self.socket.send(buffer, len_bytes, flags),
                Some(remote) => self.socket.send_message(buffer, len_bytes, remote),
            }
        }
    }
}

impl Drop for Connection {
    /// Tells the other end, which may expect more. If it is gone, there is nobody to tell.
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the message lives for ever.
            let _ = unsafe { self.send(CLOSE.as_ptr(), CLOSE.len(), false) };
        }
    }
}
