//! Private options of the engines that work over a network connection.
//!
//! Invariant: the options of an engine that is not built in are `unbuilt`.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `net` and `netsplice`.
    pub struct Net, scope Scope::Engine(&[EngineName::Net, EngineName::Netsplice]);

    "Engines net and netsplice" {
        /// Host to connect to, or multicast address.
        ///
        /// A name or an address; for `protocol=vsock` the number of the machine (1 is this one, 2 the host). A job that
        /// listens or receives has none, unless it is the address of a group to join (`224.0.0.0/4`, `ff00::/8`).
        hostname: Text;
        /// Port to connect to or to listen on.
        ///
        /// With `numjobs`, the first clone's; each further one uses the next.
        port: u32, in 1..=65535;
        /// Protocol of the connection.
        ///
        /// `unix` has a path, `filename`; all others have a port. Of `udp`, `udpv6` and `unix` a job that reads is the end
        /// that waits for the other.
        protocol | proto: NetProtocol = "tcp";
        /// Send small packets at once (`TCP_NODELAY`).
        nodelay: bool, in 0..=1;
        /// Wait for a connection instead of making one.
        ///
        /// For `tcp`, `tcpv6` and `vsock`. The job may read or write.
        listen: Flag;
        /// Answer each message, and measure the way there and back.
        ///
        /// A job that writes waits for the same bytes to come back; one that reads sends them back. Both ends need it.
        pingpong: Flag;
        /// Interface used for multicast: its address, or for IPv6 its name.
        interface: Utf8Text;
        /// Hops a multicast packet may take.
        ttl: u32 = 1, in 0..=255;
        /// Size of the socket's buffer.
        window_size: Bytes;
        /// Largest TCP segment.
        mss: u32;
    }
}

options! {
    /// Options of `rdma`.
    pub struct Rdma, scope Scope::Engine(&[EngineName::Rdma]);

    "Engine rdma" {
        /// Host to connect to.
        ///
        /// A name or an address, of the end that waits. A job that reads is that end, and does not use it.
        hostname: Utf8Text;
        /// Address of this end.
        ///
        /// A name or an address of this machine: what a job that waits listens at, instead of all its IPv4 addresses, and
        /// where the connection of one that connects begins.
        bindname: Utf8Text;
        /// Port to connect to or to listen on.
        ///
        /// Of the RDMA connection manager; TCP has ports of its own. With `numjobs`, the first clone's; each further one
        /// uses the next.
        port: u32, in 1..=65535;
        /// What the end that connects does: it tells the other end.
        verb | proto: RdmaVerb = "write";
    }
}
