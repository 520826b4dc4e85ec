//! Who this program is, as it tells the other end.
//!
//! Invariant: the digest is that of the program that runs, even if its file was replaced or removed.

use fiord_session::run::version::FIORD_VERSION;
use fiord_sys::system;
use fiord_wire::agent::digest;
use fiord_wire::message::{Hello, PROTOCOL};

/// The program that runs.
pub(crate) const SELF: &str = "/proc/self/exe";

/// This program. Its digest takes some milliseconds.
pub(crate) fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        fiord: FIORD_VERSION.to_string(),
        digest: std::fs::read(SELF).map_or_else(|_| Vec::new(), |bytes| digest(&bytes)),
        pid: std::process::id(),
        hostname: system::names().host,
    }
}
