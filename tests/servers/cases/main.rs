//! The engines that talk to servers, each against a real one: `cargo x servers`. One file per server.
//!
//! Invariant: a case starts the servers it uses, and outside of `cargo x servers` says that it is skipped.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a case needs and does not get fails it")]

mod ceph;
mod engine;
mod gluster;
mod http;
mod iscsi;
mod nbd;
mod nfs;
mod radosgw;
