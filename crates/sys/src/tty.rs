//! Terminals: whether a stream is one, and its width.
//!
//! Invariant: without a terminal there is no width; none is assumed.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The width of the terminal of `stream` in columns, if it reports one.
pub fn columns(stream: impl AsFd) -> Option<u16> {
    let columns = rustix::termios::tcgetwinsize(stream).ok()?.ws_col;
    (columns > 0).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn a_file_has_no_columns() {
        assert_eq!(columns(&TempFile::new("tty").file), None);
    }
}
