//! Who this program is, as it tells the other end.
//!
//! Invariant: it takes no time that a start would wait for.

use fiord_session::run::version::FIORD_VERSION;
use fiord_sys::system;
use fiord_wire::message::{Hello, PROTOCOL};

/// The program that runs.
pub const SELF: &str = "/proc/self/exe";

/// This program.
pub(crate) fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        fiord: FIORD_VERSION.to_string(),
        pid: std::process::id(),
        hostname: system::names().host,
    }
}
