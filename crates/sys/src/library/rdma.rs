//! Connections over RDMA, by librdmacm: their addresses, how they are made, and their events.
//!
//! Invariant: an event is acknowledged before the next is taken, and an identifier is destroyed before its channel.
//!
//! Nothing here blocks: events are waited for by `poll`. What a connection transfers is in `queue_pair`.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use super::verbs::{ConnectionParameters, EventChannel, QueuePairSetup, RawEvent, RawIdentifier, Verbs};
use super::{LibraryError, Unavailable, functions};
use crate::errno::{Errno, check};

functions! {
    /// Functions of librdmacm.
    struct Manager from "librdmacm.so.1" of package "librdmacm1 ibverbs-providers";
    fn rdma_create_event_channel() -> *mut EventChannel;
    fn rdma_destroy_event_channel(*mut EventChannel);
    fn rdma_create_id(*mut EventChannel, *mut *mut RawIdentifier, *mut c_void, c_int) -> c_int;
    fn rdma_destroy_id(*mut RawIdentifier) -> c_int;
    fn rdma_bind_addr(*mut RawIdentifier, *mut c_void) -> c_int;
    fn rdma_listen(*mut RawIdentifier, c_int) -> c_int;
    fn rdma_resolve_addr(*mut RawIdentifier, *mut c_void, *mut c_void, c_int) -> c_int;
    fn rdma_resolve_route(*mut RawIdentifier, c_int) -> c_int;
    fn rdma_create_qp(*mut RawIdentifier, *mut c_void, *mut QueuePairSetup) -> c_int;
    fn rdma_destroy_qp(*mut RawIdentifier);
    fn rdma_connect(*mut RawIdentifier, *mut ConnectionParameters) -> c_int;
    fn rdma_accept(*mut RawIdentifier, *mut ConnectionParameters) -> c_int;
    fn rdma_disconnect(*mut RawIdentifier) -> c_int;
    fn rdma_get_cm_event(*mut EventChannel, *mut *mut RawEvent) -> c_int;
    fn rdma_ack_cm_event(*mut RawEvent) -> c_int;
}

/// `RDMA_PS_TCP`: reliable connections.
const PORT_SPACE: c_int = 0x106;

/// How long an address or a route may take to be resolved.
const RESOLVE_MS: c_int = 2000;

/// Whether the libraries can be used; loads them.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Manager::get()?;
    Verbs::get().map(drop)
}

/// The error of a call that has set errno.
pub(super) fn failed(call: &'static str) -> LibraryError {
    LibraryError::Call(call, Errno::of(&io::Error::last_os_error()).unwrap_or(Errno(libc::EIO)))
}

/// The result of a call that returns 0 or sets errno.
pub(super) fn checked(call: &'static str, answer: c_int) -> Result<(), LibraryError> {
    if answer == 0 { Ok(()) } else { Err(failed(call)) }
}

/// The pointer that a call returned, or its error.
pub(super) fn pointer<T>(call: &'static str, answer: *mut T) -> Result<*mut T, LibraryError> {
    if answer.is_null() { Err(failed(call)) } else { Ok(answer) }
}

/// An address as the library takes it.
#[repr(C)]
union RawAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    fn of(address: &SocketAddr) -> RawAddress {
        // SAFETY: zeros are valid in every field.
        let mut raw: RawAddress = unsafe { std::mem::zeroed() };
        match address {
            SocketAddr::V4(address) => {
                raw.v4 = libc::sockaddr_in {
                    sin_family: (libc::AF_INET & 0xff) as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
            }
            SocketAddr::V6(address) => {
                raw.v6 = libc::sockaddr_in6 {
                    sin6_family: (libc::AF_INET6 & 0xff) as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
            }
        }
        raw
    }
}

/// What happened to an identifier.
#[derive(Debug)]
pub enum Event {
    /// `Identifier::resolve` has found the other end's address.
    AddressResolved,
    /// `Identifier::resolve_route` has found a way to it.
    RouteResolved,
    /// The other end asks for this connection.
    Requested(Identifier),
    /// The connection is made.
    Established,
    /// The other end has ended the connection, or its device is gone.
    Disconnected,
    /// The call that failed, and why; `ECONNREFUSED` if nobody listens.
    Failed(&'static str, Errno),
    /// Nothing that concerns a connection that is made.
    Other,
}

/// Where the events of identifiers arrive.
#[derive(Debug)]
pub struct Channel {
    pub(super) functions: &'static Manager,
    raw: *mut EventChannel,
}

impl Channel {
    /// A channel.
    ///
    /// # Errors
    /// The library or the call that failed; `ENODEV` if there is no RDMA device.
    pub fn open() -> Result<Rc<Channel>, LibraryError> {
        let functions = Manager::get()?;
        // SAFETY: the call takes nothing.
        let raw = pointer("rdma_create_event_channel", unsafe { (functions.rdma_create_event_channel)() })?;
        let channel = Channel { functions, raw };
        set_nonblocking(channel.fd()).map_err(|_| failed("fcntl"))?;
        Ok(Rc::new(channel))
    }

    pub(super) fn fd(&self) -> c_int {
        // SAFETY: the channel is open.
        unsafe { (*self.raw).fd }
    }

    /// Waits at most so long for an event; `EINTR` after a signal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        wait(&mut [readable(self.fd())], at_most)
    }

    /// The next event, if one has arrived, and the identifier that it is about; a request is about its listener.
    ///
    /// # Errors
    /// The library's.
    pub fn take(self: &Rc<Self>) -> Result<Option<(IdentifierKey, Event)>, LibraryError> {
        let mut raw: *mut RawEvent = ptr::null_mut();
        // SAFETY: the channel is open, and the event written to.
        if unsafe { (self.functions.rdma_get_cm_event)(self.raw, &raw mut raw) } != 0 {
            return match failed("rdma_get_cm_event") {
                LibraryError::Call(_, Errno(libc::EAGAIN)) => Ok(None),
                error => Err(error),
            };
        }
        // SAFETY: the library returned an event, which lives until it is acknowledged.
        let RawEvent { identifier, listener, kind, status } = unsafe { ptr::read(raw) };
        // SAFETY: the event was returned by the library, and is acknowledged once.
        unsafe { (self.functions.rdma_ack_cm_event)(raw) };
        let error = |call| Event::Failed(call, Errno(if status < 0 { -status } else { libc::EIO }));
        let about = |event| Ok(Some((IdentifierKey(identifier), event)));
        // `enum rdma_cm_event_type`.
        match kind {
            0 => about(Event::AddressResolved),
            1 => about(error("rdma_resolve_addr")),
            2 => about(Event::RouteResolved),
            3 => about(error("rdma_resolve_route")),
            4 => {
                let requested = Identifier { channel: Rc::clone(self), raw: identifier };
                Ok(Some((IdentifierKey(listener), Event::Requested(requested))))
            }
            6 | 7 => about(error("rdma_connect")),
            8 => about(Event::Failed("rdma_connect", Errno(libc::ECONNREFUSED))),
            9 => about(Event::Established),
            10 | 11 => about(Event::Disconnected),
            _ => about(Event::Other),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: identifiers keep the channel, so there is none, and every event was acknowledged.
        unsafe { (self.functions.rdma_destroy_event_channel)(self.raw) };
    }
}

/// Which identifier an event is about. It is compared, and never followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifierKey(*mut RawIdentifier);

/// One end of a connection, or one that listens.
#[derive(Debug)]
pub struct Identifier {
    pub(super) channel: Rc<Channel>,
    pub(super) raw: *mut RawIdentifier,
}

impl Identifier {
    /// One whose events arrive at this channel.
    ///
    /// # Errors
    /// The call that failed.
    pub fn new(channel: &Rc<Channel>) -> Result<Identifier, LibraryError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is open, and the identifier written to.
        let answer = unsafe {
            (channel.functions.rdma_create_id)(channel.raw, &raw mut raw, ptr::null_mut(), PORT_SPACE)
        };
        checked("rdma_create_id", answer)?;
        Ok(Identifier { channel: Rc::clone(channel), raw })
    }

    /// By what its events are known.
    pub fn key(&self) -> IdentifierKey {
        IdentifierKey(self.raw)
    }

    /// Listens at an address.
    ///
    /// # Errors
    /// The call that failed.
    pub fn listen(&self, address: &SocketAddr) -> Result<(), LibraryError> {
        const BACKLOG: c_int = 16;
        let mut address = RawAddress::of(address);
        let functions = self.channel.functions;
        // SAFETY: the identifier is open, and the address lives during the call.
        unsafe {
            checked("rdma_bind_addr", (functions.rdma_bind_addr)(self.raw, (&raw mut address).cast()))?;
            checked("rdma_listen", (functions.rdma_listen)(self.raw, BACKLOG))
        }
    }

    /// Looks for the device that reaches an address; `Event::AddressResolved` follows.
    ///
    /// # Errors
    /// The call that failed.
    pub fn resolve(&self, from: Option<&SocketAddr>, to: &SocketAddr) -> Result<(), LibraryError> {
        let mut to = RawAddress::of(to);
        let mut from = from.map(RawAddress::of);
        let from = from.as_mut().map_or(ptr::null_mut(), |from| (&raw mut *from).cast());
        // SAFETY: the identifier is open, and the addresses live during the call.
        let answer = unsafe {
            (self.channel.functions.rdma_resolve_addr)(self.raw, from, (&raw mut to).cast(), RESOLVE_MS)
        };
        checked("rdma_resolve_addr", answer)
    }

    /// Looks for the way to that address; `Event::RouteResolved` follows.
    ///
    /// # Errors
    /// The call that failed.
    pub fn resolve_route(&self) -> Result<(), LibraryError> {
        // SAFETY: the identifier is open.
        let answer = unsafe { (self.channel.functions.rdma_resolve_route)(self.raw, RESOLVE_MS) };
        checked("rdma_resolve_route", answer)
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        // SAFETY: the identifier is open and has no queue pair; every event of it was acknowledged. One that was requested
        // and not accepted is refused by this.
        unsafe { (self.channel.functions.rdma_destroy_id)(self.raw) };
    }
}

pub(super) fn set_nonblocking(fd: c_int) -> io::Result<()> {
    // SAFETY: the calls take a number, and no memory.
    unsafe {
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

pub(super) fn readable(fd: c_int) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Waits until one of them is ready, for at most so long, rounded up to milliseconds.
pub(super) fn wait(entries: &mut [libc::pollfd], at_most: Duration) -> io::Result<()> {
    let timeout_ms = at_most.as_micros().div_ceil(1000).min(1_000_000) as c_int;
    // SAFETY: the call writes the entries.
    check(unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout_ms) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_the_order_of_the_network() {
        let v4 = RawAddress::of(&"127.7.0.1:8765".parse().unwrap());
        // SAFETY: it was written as this kind.
        let v4 = unsafe { v4.v4 };
        assert_eq!((v4.sin_family, v4.sin_port.to_ne_bytes()), (libc::AF_INET as u16, [0x22, 0x3d]));
        assert_eq!(v4.sin_addr.s_addr.to_ne_bytes(), [127, 7, 0, 1]);
        let v6 = RawAddress::of(&"[fe80::2]:1".parse().unwrap());
        // SAFETY: it was written as this kind.
        let v6 = unsafe { v6.v6 };
        assert_eq!((v6.sin6_family, v6.sin6_port.to_ne_bytes()), (libc::AF_INET6 as u16, [0, 1]));
        assert_eq!((v6.sin6_addr.s6_addr[0], v6.sin6_addr.s6_addr[15]), (0xfe, 2));
    }

    #[test]
    fn a_machine_without_devices_says_so() {
        if is_available().is_err() {
            fiord_testing::skip!("librdmacm or libibverbs cannot be loaded");
        }
        if std::path::Path::new("/dev/infiniband/rdma_cm").exists() {
            fiord_testing::skip!("this machine has RDMA devices");
        }
        match Channel::open().unwrap_err() {
            LibraryError::Call("rdma_create_event_channel", Errno(libc::ENODEV)) => {}
            other => panic!("{other:?}"),
        }
    }
}
