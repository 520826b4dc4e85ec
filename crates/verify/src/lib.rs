//! Blocks that can be verified: their headers, contents and checksums, what is wrong with one, and the saved state of
//! a verification.
//!
//! Invariant: pure. The bytes are fio's: either program verifies what the other wrote.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod block;
mod content;
mod corruption;
mod field;
mod header;
mod method;
mod pattern;
mod state;

pub use fiord_checksum::Checksum;

pub use block::{BlockFormat, CheckBuffer, Expected, Stamp, Trimmed};
pub use content::{Contents, Words};
pub use corruption::{Corruption, CorruptionKind, Fault};
pub use field::Field;
pub use header::{HEADER_BYTES_MAX, HeaderFormat};
pub use method::Method;
pub use pattern::BlockPattern;
pub use state::{StateError, VerifyState};
