//! Private options of the engines that work over a network connection.
//!
//! Invariant: all dormant, since none of these engines is built in.

use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// Options of `net` and `netsplice`.
    pub struct Net, scope Scope::Engine(&["net", "netsplice"]);

    "Engines net and netsplice" {
        /// Host to connect to, or multicast address to join.
        #[dormant("ioengine")]
        hostname: Text;
        /// Port to connect to or to listen on.
        #[dormant("ioengine")]
        port: u32, in 1..=65535;
        /// Protocol of the connection.
        #[dormant("ioengine")]
        protocol | proto: Text = "tcp";
        /// Send small packets at once.
        #[dormant("ioengine")]
        nodelay: bool, in 0..=1;
        /// Wait for a connection instead of making one.
        #[dormant("ioengine")]
        listen: Flag;
        /// Answer each message, and measure the way there and back.
        #[dormant("ioengine")]
        pingpong: Flag;
        /// Address of the interface used for multicast.
        #[dormant("ioengine")]
        interface: Text;
        /// Hops a multicast packet may take.
        #[dormant("ioengine")]
        ttl: u32 = 1;
        /// Size of the socket's buffer.
        #[dormant("ioengine")]
        window_size: Bytes;
        /// Largest TCP segment.
        #[dormant("ioengine")]
        mss: u32;
    }
}

options! {
    /// Options of `rdma`.
    pub struct Rdma, scope Scope::Engine(&["rdma"]);

    "Engine rdma" {
        /// Host to connect to.
        #[dormant("ioengine")]
        hostname: Text;
        /// Address to bind to.
        #[dormant("ioengine")]
        bindname: Text;
        /// Port to connect to or to listen on.
        #[dormant("ioengine")]
        port: u32, in 1..=65535;
        /// Operation: write, read, send or recv.
        #[dormant("ioengine")]
        verb: Text = "write";
    }
}
