//! Connections to servers, which several engines share.
//!
//! Invariant: no call here blocks for longer than it was given; a signal ends every wait.

mod connection;
pub(crate) mod http;
pub(crate) mod nbd;
mod patience;
mod shared;
mod tls;

use std::io;

use fiord_sys::errno::{Errno, error_text};

pub(crate) use connection::Connection;
pub(crate) use patience::Patience;
pub(crate) use shared::Shared;
pub(crate) use tls::Verification;

/// Why a server cannot be used, and what to look at if it is the way to it that fails.
pub(crate) fn reason(error: &io::Error) -> String {
    match Errno::of(error) {
        Some(errno) => format!("{errno}; is the server running, and is this its address?"),
        None => error_text(error),
    }
}
