//! The version of fio that this program is compatible with.
//!
//! Invariant: `--version`, headings and reports all print this one.

/// The version of fio whose options and outputs are followed, as `--version` prints it.
pub(crate) const FIO_VERSION: &str = "fio-3.42";
