//! Sockets of streams and datagrams: IP, Unix and virtual machines. One call each, never retried.
//!
//! Invariant: a call that a signal interrupts ends with `EINTR`, and a closed peer is an error or a length of 0, never a
//! signal.
//!
//! # Safety, for every unsafe function here
//!
//! `buffer` must be valid for its length, for writes by the functions that receive and for reads by those that send.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketType,
    addr::{SocketAddrArg, SocketAddrStorage},
    netdevice, sockopt,
};

use crate::errno::check;
use crate::width::to_u32;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 10;

/// The address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(SocketAddrAny);

impl Address {
    /// An address and port of the Internet.
    pub fn ip(address: SocketAddr) -> Address {
        Address(address.as_any())
    }

    /// A path.
    ///
    /// # Errors
    /// `ENAMETOOLONG`: it is longer than 107 bytes. `EINVAL`: it contains a NUL byte.
    pub fn unix(path: &Path) -> io::Result<Address> {
        Ok(Address(SocketAddrUnix::new(path)?.as_any()))
    }

    /// A port of a machine among virtual machines and their host.
    pub fn vsock(machine: u32, port: u32) -> Address {
        // SAFETY: all fields are integers, for which zero is valid.
        let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
        address.svm_family = (libc::AF_VSOCK & 0xff) as libc::sa_family_t;
        (address.svm_cid, address.svm_port) = (machine, port);
        // SAFETY: the structure is a valid address of this length, and lives during the call.
        Address(unsafe {
            SocketAddrAny::read(
                (&raw const address).cast::<SocketAddrStorage>(),
                to_u32(size_of::<libc::sockaddr_vm>()),
            )
        })
    }

    /// The machine that any other machine's address is bound with.
    pub const VSOCK_ANY: u32 = libc::VMADDR_CID_ANY;

    fn family(&self) -> AddressFamily {
        self.0.address_family()
    }
}

/// What passes through a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// Bytes.
    Stream,
    /// Messages.
    Datagrams,
}

/// What of a transfer is not usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// Nothing.
    None,
    /// Receive the whole length, unless the connection ends.
    Whole,
    /// More will be sent at once: the kernel may wait for it.
    More,
}

/// A socket, closed when dropped.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// A socket for addresses like this one.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`: the kernel has no such addresses.
    pub fn new(like: &Address, passes: Passes) -> io::Result<Socket> {
        let kind = match passes {
            Passes::Stream => SocketType::STREAM,
            Passes::Datagrams => SocketType::DGRAM,
        };
        let flags = net::SocketFlags::CLOEXEC;
        Ok(Socket(net::socket_with(like.family(), kind, flags, None)?))
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Lets an address be bound again at once, and by several sockets.
    ///
    /// # Errors
    /// The kernel's.
    pub fn share_address(&self) -> io::Result<()> {
        sockopt::set_socket_reuseaddr(&self.0, true)?;
        Ok(sockopt::set_socket_reuseport(&self.0, true)?)
    }

    /// The size of the buffer for what arrives, in bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_recv_buffer_size(&self.0, bytes)?)
    }

    /// The size of the buffer for what is sent, in bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_send_buffer_size(&self.0, bytes)?)
    }

    /// Sends small packets at once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send_at_once(&self) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(&self.0, true)?)
    }

    /// The largest segment of TCP, in bytes.
    ///
    /// # Errors
    /// `EINVAL`: the kernel allows 88 to 32767.
    pub fn set_segment(&self, bytes: u32) -> io::Result<()> {
        let bytes = bytes.cast_signed();
        // SAFETY: the number lives during the call, which is given its length.
        check(unsafe {
            libc::setsockopt(
                self.fd(),
                libc::IPPROTO_TCP,
                libc::TCP_MAXSEG,
                (&raw const bytes).cast(),
                to_u32(size_of::<libc::c_int>()),
            )
        })
        .map(drop)
    }

    /// Receives what is sent to this group, by the interface with this address (or name, for IPv6).
    ///
    /// # Errors
    /// `ENODEV`: there is no such interface. `EINVAL`: the address is not one of an interface.
    pub fn join(&self, group: IpAddr, interface: Option<&str>) -> io::Result<()> {
        match group {
            IpAddr::V4(group) => Ok(sockopt::set_ip_add_membership(&self.0, &group, &of_ipv4(interface)?)?),
            IpAddr::V6(group) => {
                Ok(sockopt::set_ipv6_add_membership(&self.0, &group, self.number_of(interface)?)?)
            }
        }
    }

    /// Sends to groups by the interface with this address (or name, for IPv6), over this many hops.
    ///
    /// # Errors
    /// As `join`.
    pub fn send_to_groups(&self, family: IpAddr, interface: Option<&str>, hops: u8) -> io::Result<()> {
        match family {
            IpAddr::V4(_) => {
                if interface.is_some() {
                    sockopt::set_ip_multicast_if(&self.0, &of_ipv4(interface)?)?;
                }
                Ok(sockopt::set_ip_multicast_ttl(&self.0, u32::from(hops))?)
            }
            IpAddr::V6(_) => {
                if interface.is_some() {
                    sockopt::set_ipv6_multicast_if(&self.0, self.number_of(interface)?)?;
                }
                Ok(sockopt::set_ipv6_multicast_hops(&self.0, u32::from(hops))?)
            }
        }
    }

    /// The number of the interface of this name; 0 for any.
    fn number_of(&self, interface: Option<&str>) -> io::Result<u32> {
        match interface {
            None => Ok(0),
            Some(name) => Ok(netdevice::name_to_index(&self.0, name)?),
        }
    }

    /// Binds it to an address.
    ///
    /// # Errors
    /// `EADDRINUSE`, `EACCES` (a port below 1024), `EADDRNOTAVAIL`.
    pub fn bind(&self, address: &Address) -> io::Result<()> {
        Ok(net::bind(&self.0, &address.0)?)
    }

    /// Lets connections be made to it.
    ///
    /// # Errors
    /// `EADDRINUSE`.
    pub fn listen(&self) -> io::Result<()> {
        Ok(net::listen(&self.0, BACKLOG)?)
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self) -> io::Result<Socket> {
        Ok(Socket(net::accept_with(&self.0, net::SocketFlags::CLOEXEC)?))
    }

    /// Connects it.
    ///
    /// # Errors
    /// The kernel's: nobody listens there, or it cannot be reached.
    pub fn connect(&self, address: &Address) -> io::Result<()> {
        Ok(net::connect(&self.0, &address.0)?)
    }

    /// Receives bytes of a stream: how many, 0 at its end.
    ///
    /// # Safety
    /// See the module.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub unsafe fn receive(&self, buffer: *mut u8, len_bytes: usize, flags: Flags) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, len_bytes) };
        let flags = if flags == Flags::Whole { RecvFlags::WAITALL } else { RecvFlags::empty() };
        Ok(net::recv(&self.0, buffer, flags)?.1)
    }

    /// Receives a message: its whole length, even if the buffer is shorter, and who sent it.
    ///
    /// # Safety
    /// See the module.
    ///
    /// # Errors
    /// The kernel's.
    #[inline]
    pub unsafe fn receive_message(
        &self,
        buffer: *mut u8,
        len_bytes: usize,
    ) -> io::Result<(usize, Option<Address>)> {
        // SAFETY: the caller vouches for the buffer.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, len_bytes) };
        let (_, length_bytes, from) = net::recvfrom(&self.0, buffer, RecvFlags::TRUNC)?;
        Ok((length_bytes, from.map(Address)))
    }

    /// Sends bytes of a stream: how many were taken.
    ///
    /// # Safety
    /// See the module.
    ///
    /// # Errors
    /// `EPIPE`, `ECONNRESET`: the other end is closed.
    #[inline]
    pub unsafe fn send(&self, buffer: *const u8, len_bytes: usize, flags: Flags) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        let buffer = unsafe { std::slice::from_raw_parts(buffer, len_bytes) };
        let more = if flags == Flags::More { SendFlags::MORE } else { SendFlags::empty() };
        Ok(net::send(&self.0, buffer, SendFlags::NOSIGNAL | more)?)
    }

    /// Sends a message to an address.
    ///
    /// # Safety
    /// See the module.
    ///
    /// # Errors
    /// `EMSGSIZE`: it is too long for a message.
    #[inline]
    pub unsafe fn send_message(
        &self,
        buffer: *const u8,
        len_bytes: usize,
        to: &Address,
    ) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        let buffer = unsafe { std::slice::from_raw_parts(buffer, len_bytes) };
        Ok(net::sendto(&self.0, buffer, SendFlags::NOSIGNAL, &to.0)?)
    }
}

/// Removes what is left of a socket at this path, and nothing else.
///
/// # Errors
/// `EEXIST`: something else is there.
pub fn remove_stale(path: &Path) -> io::Result<()> {
    match rustix::fs::lstat(path) {
        Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(found) if rustix::fs::FileType::from_raw_mode(found.st_mode).is_socket() => {
            Ok(rustix::fs::unlink(path)?)
        }
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EEXIST)),
    }
}

/// The address of an interface.
fn of_ipv4(interface: Option<&str>) -> io::Result<Ipv4Addr> {
    let Some(text) = interface else { return Ok(Ipv4Addr::UNSPECIFIED) };
    text.parse().map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    /// Sends a text through a connection to this address, and receives it in one piece.
    fn passes_text(address: &Address) {
        let listener = Socket::new(address, Passes::Stream).unwrap();
        listener.bind(address).unwrap();
        listener.listen().unwrap();
        let bound = Address(net::getsockname(&listener.0).unwrap());
        let sender = Socket::new(&bound, Passes::Stream).unwrap();
        sender.connect(&bound).unwrap();
        let receiver = listener.accept().unwrap();
        let mut text = [0; 8];
        // SAFETY: the texts live for ever, and the array during the calls.
        unsafe {
            assert_eq!(sender.send(b"abcd".as_ptr(), 4, Flags::More).unwrap(), 4);
            assert_eq!(sender.send(b"efgh".as_ptr(), 4, Flags::None).unwrap(), 4);
            assert_eq!(receiver.receive(text.as_mut_ptr(), 8, Flags::Whole).unwrap(), 8);
            assert_eq!(&text, b"abcdefgh");
            drop(sender);
            assert_eq!(receiver.receive(text.as_mut_ptr(), 8, Flags::Whole).unwrap(), 0);
        }
    }

    #[test]
    fn a_connection_passes_bytes_in_their_order_and_ends() {
        passes_text(&Address::ip((Ipv4Addr::LOCALHOST, 0).into()));
        passes_text(&Address::ip((Ipv6Addr::LOCALHOST, 0).into()));
        let path = std::env::temp_dir().join(format!("fiord-socket-{}", std::process::id()));
        for _ in 0..2 {
            remove_stale(&path).unwrap();
            passes_text(&Address::unix(&path).unwrap());
        }
        remove_stale(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn only_what_is_left_of_a_socket_is_removed() {
        let file = crate::testing::TempFile::new("not a socket");
        let error = remove_stale(&file.path).unwrap_err();
        assert_eq!((error.raw_os_error(), file.path.exists()), (Some(libc::EEXIST), true));
    }

    #[test]
    fn a_message_has_a_sender_and_a_length_even_if_it_is_cut_off() {
        let any = Address::ip((Ipv4Addr::LOCALHOST, 0).into());
        let [sender, receiver] = [0; 2].map(|_: i32| Socket::new(&any, Passes::Datagrams).unwrap());
        sender.bind(&any).unwrap();
        receiver.bind(&any).unwrap();
        let to = Address(net::getsockname(&receiver.0).unwrap());
        let from = Address(net::getsockname(&sender.0).unwrap());
        let mut text = [0; 4];
        // SAFETY: the text lives for ever, and the array during the call.
        unsafe {
            sender.send_message(b"abcdefgh".as_ptr(), 8, &to).unwrap();
            assert_eq!(receiver.receive_message(text.as_mut_ptr(), 4).unwrap(), (8, Some(from)));
        }
        assert_eq!(&text, b"abcd");
    }

    #[test]
    fn a_virtual_machine_has_a_number_and_a_port() {
        let address = Address::vsock(1, 7000);
        assert_eq!(address.family(), AddressFamily::VSOCK);
        assert_ne!(address, Address::vsock(1, 7001));
    }
}
