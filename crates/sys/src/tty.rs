//! Terminals: whether a stream is one, its size, single keys, and the screen beside the scrolled text.
//!
//! Invariant: without a terminal there is no size; none is assumed. Whatever was changed is undone by [`restore`], which a
//! signal handler may call; a process in the background changes and reads nothing, because the kernel would stop it.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errno::check;

/// Switches to the other screen, hides the cursor, and does not wrap at the end of a line.
const OPEN: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";

/// Undoes that, and colours.
const CLOSE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The settings of standard input as they were found.
static FOUND: OnceLock<libc::termios> = OnceLock::new();
static HAS_KEYS: AtomicBool = AtomicBool::new(false);
static HAS_SCREEN: AtomicBool = AtomicBool::new(false);

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

/// The size of the terminal of `stream` in columns and rows, if it reports one.
pub fn size(stream: impl AsFd) -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Whether keys can be read: standard input is a terminal, and this process is in its foreground.
pub fn has_keyboard() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stdin());
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// From now on keys arrive one by one and are not shown. Ctrl-C still is SIGINT; Ctrl-Z is an ordinary key, because a
/// suspended benchmark measures nothing and would leave its screen behind.
///
/// # Errors
/// `ENOTTY`: standard input is not a terminal; and others of the system.
pub fn open_keyboard() -> std::io::Result<()> {
    if !has_keyboard() {
        return Err(std::io::Error::from_raw_os_error(libc::ENOTTY));
    }
    // SAFETY: a termios is integers, for which zero is valid; the first call fills it, the second reads it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        check(libc::tcgetattr(libc::STDIN_FILENO, &raw mut settings))?;
        let _ = FOUND.set(settings);
        settings.c_lflag &= !(libc::ICANON | libc::ECHO);
        // A read returns at once, with what there is.
        settings.c_cc[libc::VMIN] = 0;
        settings.c_cc[libc::VTIME] = 0;
        settings.c_cc[libc::VSUSP] = 0;
        HAS_KEYS.store(true, Ordering::Relaxed);
        check(libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const settings)).map(drop)
    }
}

/// The keys typed since the last call; never waits.
pub fn typed() -> Vec<u8> {
    let mut keys = vec![0; 64];
    if !HAS_KEYS.load(Ordering::Relaxed) || !has_keyboard() {
        return Vec::new();
    }
    // Not through `stdin`, whose buffer would keep what is not taken.
    let count = rustix::io::read(std::io::stdin(), &mut keys).unwrap_or(0);
    keys.truncate(count);
    keys
}

/// Shows the other screen on standard error, until [`restore`] or [`close_screen`].
pub fn open_screen() {
    restore_before_fatal_signals();
    HAS_SCREEN.store(true, Ordering::Relaxed);
    write_to_stderr(OPEN);
}

/// Whether the other screen is shown: a panic or a signal may have closed it.
pub fn has_screen() -> bool {
    HAS_SCREEN.load(Ordering::Relaxed)
}

/// Shows the scrolled text again.
pub fn close_screen() {
    if HAS_SCREEN.swap(false, Ordering::Relaxed) {
        write_to_stderr(CLOSE);
    }
}

/// Undoes all changes to the terminal. Safe in a signal handler.
pub fn restore() {
    close_screen();
    if HAS_KEYS.swap(false, Ordering::Relaxed)
        && has_keyboard()
        && let Some(found) = FOUND.get()
    {
        // SAFETY: the settings are those the kernel returned, and the call is async-signal-safe.
        let _ = check(unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, found) });
    }
}

/// Without the buffers and locks of the library, because a signal may have interrupted whoever holds them.
fn write_to_stderr(bytes: &[u8]) {
    // SAFETY: the bytes are valid for their length; nothing can be done about a terminal that is gone.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}

/// Signals that end the process with a core dump first restore the terminal, once.
fn restore_before_fatal_signals() {
    for signal in [libc::SIGQUIT, libc::SIGABRT] {
        // SAFETY: zero is valid for all fields; the handler makes async-signal-safe calls only, and SA_RESETHAND makes the
        // signal that it raises the end of the process.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fatal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER;
            let _ = check(libc::sigaction(signal, &raw const action, std::ptr::null_mut()));
        }
    }
}

extern "C" fn on_fatal(signal: libc::c_int) {
    restore();
    // SAFETY: no memory is passed.
    unsafe { libc::raise(signal) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn a_file_has_no_columns() {
        assert_eq!(columns(&TempFile::new("tty").file), None);
        assert_eq!(size(&TempFile::new("tty").file), None);
    }
}
