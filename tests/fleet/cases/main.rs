//! fiord on many hosts: `cargo x fleet`. Hosts by a command, by Debian's ssh server, by its Slurm, and by
//! servers of fiord's own.
//!
//! Invariant: a case looks for the fate of each host, the exit status, and processes and files that are left.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what a case needs and does not get fails it")]

mod cluster;
mod command;
mod kube;
mod logs;
mod server;
mod slurm;
mod ssh;
mod studies;
mod thousand;
