//! Signals: those that request a stop, the one that requests a status, and the one that interrupts a system call.
//!
//! Invariant: the handlers perform atomic operations only, and `_exit` on the third SIGINT; everything else is done by
//! threads that poll `stop_requested`.
//!
//! Handlers are installed without `SA_RESTART`: a sleeping or waiting system call returns with `EINTR`.
//!
//! SIGQUIT, SIGABRT and the signals of a fault keep their default action, because whoever sends them wants a core dump
//! of the process as it is.

use crate::clock::c_timespec;
use crate::errno::{check, check_long, check_posix};
use crate::tty;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// The first signal that requested a stop; 0 for none.
static REQUEST: AtomicI32 = AtomicI32::new(0);

/// SIGINTs that came after a request to stop.
static REPEATS: AtomicU32 = AtomicU32::new(0);

/// A status was requested, and the request not taken yet.
static STATUS: AtomicBool = AtomicBool::new(false);

/// Signals that request a stop, whatever their sender, and whether or not the program that started this one had them
/// ignored: shells do that to what a script runs in the background.
const ASKED: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// Signals that would end the process by default, with the loss of its measurements: a closed terminal, a limit on
/// processor time, a timer, a failing power supply. They stay ignored if they are, as under `nohup`.
const OTHERS: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGUSR2,
    libc::SIGIO,
    libc::SIGPWR,
];

/// Requests a stop in good order.
pub const TERMINATE: i32 = libc::SIGTERM;

/// Signals that this process ignores, so that the call that causes them fails with an errno.
const IGNORED: [libc::c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// From now on signals that request a stop are recorded instead of ending the process, SIGUSR1 requests a status, and a
/// write beyond the limit on file sizes fails with `EFBIG`. The first SIGINT after a request to stop makes it urgent
/// (`is_stop_urgent`), the second ends the process at once with status 130.
pub fn record_stop_requests() -> io::Result<()> {
    for signal in ASKED {
        set_handler(signal, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
    }
    for signal in OTHERS {
        if !is_ignored(signal)? {
            set_handler(signal, on_stop as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
        }
    }
    set_handler(libc::SIGUSR1, on_status as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
    set_handler(wake_signal(), on_wake as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
    fail_writes_by_errno()
}

/// From now on signals that request a stop have an effect, if they were ignored when the process started; until
/// `record_stop_requests` they end it.
///
/// # Errors
/// The kernel's.
pub fn heed_stop_requests() -> io::Result<()> {
    for signal in ASKED {
        if is_ignored(signal)? {
            set_handler(signal, libc::SIG_DFL)?;
        }
    }
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    Ok(action_of(signal)? == libc::SIG_IGN)
}

fn action_of(signal: libc::c_int) -> io::Result<libc::sighandler_t> {
    // SAFETY: the call writes one sigaction, for which zero is a valid value.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(signal, std::ptr::null(), &raw mut now))?;
        Ok(now.sa_sigaction)
    }
}

/// The signal that requested a stop, if one did.
#[inline]
pub fn stop_requested() -> Option<i32> {
    match REQUEST.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Whether SIGINT arrived again after a request to stop.
pub fn is_stop_urgent() -> bool {
    REPEATS.load(Ordering::Relaxed) > 0
}

/// Whether a status was requested since the last call.
pub fn take_status_request() -> bool {
    STATUS.swap(false, Ordering::Relaxed)
}

/// Keeps the signals of `record_stop_requests` away from this thread, so that they interrupt another: a worker's I/O
/// must not end with `EINTR` because the user pressed Ctrl-C.
pub fn leave_to_other_threads() {
    let signals = recorded();
    // SAFETY: only this thread's mask changes, and with a valid set and operation the call cannot fail.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) };
}

/// The opposite of `leave_to_other_threads`.
pub fn take_in_this_thread() {
    let signals = recorded();
    // SAFETY: only this thread's mask changes, and with a valid set and operation the call cannot fail.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut()) };
}

/// A thread that calls `take` is woken by `wake`, and not ended by that where no handler is installed yet.
pub fn hold_wakes_back() {
    let signals = set_of([wake_signal()]);
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) };
}

/// What `take` has come back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A signal that requests a stop, or a status.
    Signal(i32),
    /// `wake`.
    Woken,
    /// Nothing in the time it was given.
    Nothing,
}

/// For a thread that blocks these signals, as all others do: waits for the next of them, for ever without a limit. The
/// signal has no effect unless it is passed on.
pub fn take(limit: Option<Duration>) -> Taken {
    let signals = set_of(ASKED.into_iter().chain(OTHERS).chain([libc::SIGUSR1, wake_signal()]));
    let limit = limit.map(c_timespec);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the set and the time are valid, and nothing is written.
    match unsafe { libc::sigtimedwait(&raw const signals, std::ptr::null_mut(), limit) } {
        signal if signal == wake_signal() => Taken::Woken,
        signal if signal > 0 => Taken::Signal(signal),
        _ => Taken::Nothing,
    }
}

/// Does in this thread what a signal that was taken would have done: its handler runs, or it is ignored, or it ends the
/// process.
pub fn pass_on(signal: i32) {
    let signals = set_of([signal]);
    // SAFETY: only this thread's mask changes; no memory is passed to `raise`, and handlers may run in any thread.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut());
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
}

/// Whether a signal is recorded or ignored, and does not end the process.
pub fn is_recorded(signal: i32) -> bool {
    action_of(signal).is_ok_and(|action| action != libc::SIG_DFL)
}

/// Whether a signal requests a stop, and is not ignored.
pub fn asks_to_stop(signal: i32) -> bool {
    signal != libc::SIGUSR1 && !is_ignored(signal).unwrap_or(true)
}

/// For a thread that blocks these signals: whether one that requests a stop is pending, because no other thread has run
/// to handle it yet, or has been handled.
pub fn is_stop_pending() -> bool {
    // SAFETY: a signal set is integers, for which zero is valid; the call fills it, and `sigismember` reads it.
    let is_pending = unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        ASKED.into_iter().chain(OTHERS).any(|signal| libc::sigismember(&raw const pending, signal) == 1)
    };
    is_pending || stop_requested().is_some()
}

/// The signals that request a stop, and the one that requests a status.
fn recorded() -> libc::sigset_t {
    set_of(ASKED.into_iter().chain(OTHERS).chain([libc::SIGUSR1]))
}

fn set_of(members: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before it is added to; with valid signal numbers none of the calls
    // can fail.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        for signal in members {
            libc::sigaddset(&raw mut signals, signal);
        }
        signals
    }
}

/// Interrupts the system call of this process's thread with this id, with `EINTR`. An uninterruptible wait for a disk
/// is not affected.
///
/// # Errors
/// `ESRCH`: the thread has ended.
pub fn wake(thread_id: i32) -> io::Result<()> {
    // SAFETY: no memory is passed, and the handler of the signal does nothing.
    check_long(unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread_id, wake_signal()) })
        .map(drop)
}

/// The first real-time signal, which has no other meaning.
fn wake_signal() -> libc::c_int {
    libc::SIGRTMIN()
}

/// Makes a write to a closed pipe (`EPIPE`) and one beyond the limit on file sizes (`EFBIG`) errors instead of the end of the
/// process.
///
/// # Errors
/// The kernel's.
pub fn fail_writes_by_errno() -> io::Result<()> {
    IGNORED.into_iter().try_for_each(|signal| set_handler(signal, libc::SIG_IGN))
}

/// In a child between `fork` and `exec`: no signal is blocked, and those that this program ignores for itself have their
/// default actions. Others that were ignored when it started stay so, as under `nohup`.
///
/// # Errors
/// The kernel's.
pub(crate) fn reset_in_child() -> io::Result<()> {
    for signal in IGNORED {
        set_handler(signal, libc::SIG_DFL)?;
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by sigemptyset before it is used; only this thread's mask changes.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        check_posix(libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()))
    }
}

/// A signal's name, `"SIGINT"`.
pub fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGALRM => "SIGALRM",
        libc::SIGHUP => "SIGHUP",
        libc::SIGIO => "SIGIO",
        libc::SIGPROF => "SIGPROF",
        libc::SIGPWR => "SIGPWR",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGXCPU => "SIGXCPU",
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
    if !first && signal == libc::SIGINT && REPEATS.fetch_add(1, Ordering::Relaxed) > 0 {
        tty::restore();
        // SAFETY: async-signal-safe, and does not return.
        unsafe { libc::_exit(128 + signal) };
    }
}

extern "C" fn on_status(_signal: libc::c_int) {
    STATUS.store(true, Ordering::Relaxed);
}

/// Does nothing: its purpose is the `EINTR` of the interrupted system call.
extern "C" fn on_wake(_signal: libc::c_int) {}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all fields of the structure are integers or a null pointer, for which zero is valid: no flags, an empty
    // mask. The handler is a constant the kernel knows or one of those above, which are async-signal-safe.
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

    /// The body of the process under test: signals belong to a process, so each test starts its own.
    fn act(role: &str) -> ! {
        record_stop_requests().unwrap();
        fail_writes_by_errno().unwrap();
        for harmless in [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGUSR1, wake_signal()] {
            raise(harmless);
        }
        assert_eq!(stop_requested(), None);
        assert!(take_status_request() && !take_status_request());
        let first: i32 = role.split('-').next().and_then(|number| number.parse().ok()).unwrap();
        raise(first);
        assert_eq!(stop_requested(), Some(first));
        raise(libc::SIGTERM);
        assert!(!is_stop_urgent(), "a process group often receives SIGTERM twice");
        for _ in role.matches("-again") {
            raise(libc::SIGINT);
        }
        assert!(is_stop_urgent() == role.contains("-again"));
        assert_eq!(stop_requested(), Some(first), "the first signal is the one that counts");
        std::process::exit(77)
    }

    // divergence: a second and third SIGINT
    #[test]
    fn the_first_request_is_recorded_and_a_third_interrupt_ends_it() {
        if let Ok(role) = std::env::var(ROLE) {
            act(&role);
        }
        let first = ASKED.into_iter().chain(OTHERS).map(|signal| (signal.to_string(), 77));
        let repeated = [("15-again", 77), ("2-again", 77), ("15-again-again", 130), ("2-again-again", 130)];
        for (role, status) in first.chain(repeated.map(|(role, status)| (role.to_string(), status))) {
            let this = "signal::tests::the_first_request_is_recorded_and_a_third_interrupt_ends_it";
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", this, "--nocapture"])
                .env(ROLE, &role)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stderr);
            assert_eq!(child.status.code(), Some(status), "{role}: {said}");
        }
    }

    #[test]
    fn a_blocking_call_is_interrupted() {
        use std::os::fd::AsRawFd;
        set_handler(wake_signal(), on_wake as extern "C" fn(libc::c_int) as libc::sighandler_t).unwrap();
        let (silent, _kept_open) = std::io::pipe().unwrap();
        let (sender, number) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            sender.send(crate::thread::id()).unwrap();
            let mut byte = 0_u8;
            // SAFETY: one byte is room for one byte.
            check_long(unsafe { libc::read(silent.as_raw_fd(), (&raw mut byte).cast(), 1) } as libc::c_long)
        });
        let number = number.recv().unwrap();
        while !reader.is_finished() {
            // It may not have entered the call yet.
            let _ = wake(number);
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap().unwrap_err().raw_os_error(), Some(libc::EINTR));
        assert!(wake(1).is_err(), "a thread of another process");
    }

    #[test]
    fn a_thread_that_blocks_signals_sees_a_pending_one() {
        let name = "signal::tests::a_thread_that_blocks_signals_sees_a_pending_one";
        if std::env::var(ROLE).is_ok() {
            // All threads of this process inherit the mask of this one.
            leave_to_other_threads();
            assert!(!is_stop_pending());
            raise(libc::SIGTERM);
            assert!(is_stop_pending() && stop_requested().is_none());
            std::process::exit(77);
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ROLE, "pending")
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(77), "{}", String::from_utf8_lossy(&child.stderr));
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(name(2), "SIGINT");
        assert_eq!(name(15), "SIGTERM");
        assert_eq!(name(63), "a signal");
    }
}
