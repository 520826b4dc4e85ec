//! Being asked to stop: SIGINT, SIGTERM and, where wanted, SIGHUP become a number that loops can look at.
//!
//! Invariant: the handler does nothing but atomic operations and, for a second SIGINT, `_exit`; all else happens where
//! somebody reads `stop_requested`.
//!
//! Handlers are installed without `SA_RESTART`: whoever sleeps or waits in the kernel wakes with `EINTR`.

use crate::errno::check;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

/// The first signal that asked to stop; 0 for none.
static REQUEST: AtomicI32 = AtomicI32::new(0);

/// From now on SIGINT and SIGTERM are recorded instead of ending the process. A SIGINT after either ends it at once,
/// with status 130.
pub fn record_stop_requests() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        set_handler(signal, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
    }
    Ok(())
}

/// From now on SIGHUP, which a terminal sends when it is closed, is recorded likewise; not where it is ignored already,
/// as `nohup` has it.
pub fn record_hang_ups() -> io::Result<()> {
    // SAFETY: the call writes one sigaction, for which zero is a valid value.
    let now = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut now))?;
        now
    };
    if now.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    set_handler(libc::SIGHUP, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t)
}

/// The signal that asked to stop, if one did.
#[inline]
pub fn stop_requested() -> Option<i32> {
    match REQUEST.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Keeps SIGINT, SIGTERM and SIGHUP away from this thread, so that they interrupt another: a worker's I/O must not end with
/// `EINTR` because the user pressed Ctrl-C.
pub fn leave_to_other_threads() {
    // SAFETY: the set is initialised by sigemptyset before it is read, and only this thread's mask changes; with valid
    // signal numbers none of the calls can fail.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::sigaddset(&mut signals, libc::SIGHUP);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
    }
}

/// Writing where nobody reads is an error (`EPIPE`) and not the end.
pub fn ignore_broken_pipes() -> io::Result<()> {
    set_handler(libc::SIGPIPE, libc::SIG_IGN)
}

/// A signal's name, `"SIGINT"`.
pub fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}

extern "C" fn on_stop(signal: libc::c_int) {
    let first = REQUEST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !first && signal == libc::SIGINT {
        // SAFETY: async-signal-safe, and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all fields of the structure are integers or a null pointer, for which zero is valid: no flags, an empty
    // mask. The handler is a constant the kernel knows or `on_stop`, which is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        check(libc::sigaction(signal, &action, std::ptr::null_mut())).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const ROLE: &str = "FIORD_SYS_SIGNAL_TEST";

    fn raise(signal: i32) {
        // SAFETY: no memory is passed.
        unsafe { libc::raise(signal) };
    }

    /// What the process under test does; signals belong to a process, so it gets one of its own.
    fn act(role: &str) -> ! {
        record_stop_requests().unwrap();
        ignore_broken_pipes().unwrap();
        raise(libc::SIGPIPE);
        assert_eq!(stop_requested(), None);
        raise(libc::SIGTERM);
        assert_eq!(stop_requested(), Some(libc::SIGTERM));
        raise(libc::SIGTERM);
        if role == "twice" {
            raise(libc::SIGINT);
        }
        assert_eq!(stop_requested(), Some(libc::SIGTERM), "the first signal is the one that counts");
        std::process::exit(77)
    }

    #[test]
    fn the_first_request_is_recorded_and_a_further_interrupt_ends_it() {
        if let Ok(role) = std::env::var(ROLE) {
            act(&role);
        }
        for (role, status) in [("once", 77), ("twice", 130)] {
            let this = "signal::tests::the_first_request_is_recorded_and_a_further_interrupt_ends_it";
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", this, "--nocapture"])
                .env(ROLE, role)
                .output()
                .unwrap();
            assert_eq!(
                child.status.code(),
                Some(status),
                "{role}: {}",
                String::from_utf8_lossy(&child.stderr)
            );
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(name(2), "SIGINT");
        assert_eq!(name(15), "SIGTERM");
        assert_eq!(name(63), "a signal");
    }
}
