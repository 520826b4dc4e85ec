//! Private options of the engines that work over a network connection.
//!
//! Invariant: all sets are `unbuilt`, since none of these engines is built in.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `net` and `netsplice`.
    pub struct Net, scope Scope::Engine(&[EngineName::Net, EngineName::Netsplice]), unbuilt;

    "Engines net and netsplice" {
        /// Host to connect to, or multicast address to join.
        hostname: Text;
        /// Port to connect to or to listen on.
        port: u32, in 1..=65535;
        /// Protocol of the connection.
        protocol | proto: Text = "tcp";
        /// Send small packets at once.
        nodelay: bool, in 0..=1;
        /// Wait for a connection instead of making one.
        listen: Flag;
        /// Answer each message, and measure the way there and back.
        pingpong: Flag;
        /// Address of the interface used for multicast.
        interface: Text;
        /// Hops a multicast packet may take.
        ttl: u32 = 1;
        /// Size of the socket's buffer.
        window_size: Bytes;
        /// Largest TCP segment.
        mss: u32;
    }
}

options! {
    /// Options of `rdma`.
    pub struct Rdma, scope Scope::Engine(&[EngineName::Rdma]), unbuilt;

    "Engine rdma" {
        /// Host to connect to.
        hostname: Text;
        /// Address to bind to.
        bindname: Text;
        /// Port to connect to or to listen on.
        port: u32, in 1..=65535;
        /// Operation: write, read, send or recv.
        verb: Text = "write";
    }
}
