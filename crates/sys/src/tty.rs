//! Terminals: whether there is one, and how wide.
//!
//! Invariant: where there is no terminal there is no width; nothing is assumed.

use std::io::IsTerminal;
use std::os::fd::{AsFd, AsRawFd};

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The width of the terminal behind `stream`, in columns, where it knows one.
pub fn columns(stream: impl AsFd) -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes one winsize.
    let answer = unsafe { libc::ioctl(stream.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(size.ws_col)
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
