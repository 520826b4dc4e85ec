//! The version of this program, and the version of fio that it is compatible with.
//!
//! Invariant: `--version`, headings, reports and the history all print these.

/// The version of fiord.
pub const FIORD_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of fio whose options and outputs are followed, as `--version` prints it.
pub const FIO_VERSION: &str = "fio-3.42";
