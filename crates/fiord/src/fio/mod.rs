//! The program as fio: its command line, help, live line and reports, and its tests of
//! checksums, copies and clocks.
//!
//! Invariant: everything here serves fio's options; the list of subcommands is passed in, and none is known by name.

mod bandwidth;
mod clocktest;
mod crctest;
mod debug;
mod help;
mod hosts;
mod hosts_gate;
mod hosts_presenter;
mod inflate;
mod memcpytest;
mod presenter;
mod server;
mod session;
pub(crate) mod settings;

pub(crate) use session::{is_called_by, run};
