//! Setup of a run, attended by a thread: a signal ends it although a file system that it asks does not answer.
//!
//! Invariant: while this is on, the signals go to that thread. It passes each on at once, as if it were not there, unless
//! the thread that sets the run up waits for a file.
//!
//! A thread that waits for a file system takes no signal before it is answered: it would run the handler when it comes
//! back from the kernel, and by default the signal ends the process without a word about what it waited for.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fiord_report::path;
use fiord_sys::signal::{self, Taken};
use fiord_sys::thread_activity::{self, ThreadActivity};

/// How long a file may keep a run from its end that a signal asked for.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How often the thread that waits is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The attention that is on.
static ATTENTION: Mutex<Option<Arc<Attention>>> = Mutex::new(None);

/// What ends the process, which knows how it says why.
static GIVES_UP: OnceLock<fn(&Unanswered) -> !> = OnceLock::new();

/// A file that did not answer while a run was set up, so that the signal that asked for its end has none.
#[derive(Debug)]
pub struct Unanswered {
    /// The signal.
    pub signal: i32,
    /// What the thread that sets up waits for.
    waits: ThreadActivity,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.waits.path.as_deref().map(path::shown).unwrap_or_default();
        let call = self.waits.call.unwrap_or("a system call");
        write!(
            f,
            "{}: {file} does not answer ({call} has not come back), so the run ends before it has begun; the file system or \
             the device below it hangs",
            signal::name(self.signal)
        )
    }
}

/// Names what ends the process when a file does not answer: the thread that sets up may never come back, and the one that
/// attends calls this. Without it nothing does, and the signal waits as well.
pub fn give_up_by(gives_up: fn(&Unanswered) -> !) {
    // The first one counts.
    let _ = GIVES_UP.set(gives_up);
}

/// What both threads know.
#[derive(Default)]
struct Attention {
    /// The number of the thread that attends, once it can be woken.
    thread: AtomicI32,
    is_over: AtomicBool,
}

/// The attention that is on, whole also if a thread panicked beside it: it is set and taken at once.
fn attention() -> MutexGuard<'static, Option<Arc<Attention>>> {
    ATTENTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread begins to set up a run; no effect if it has begun. Returns whether it is this call that began.
pub fn begin() -> bool {
    let mut current = attention();
    if current.is_some() {
        return false;
    }
    let attention = Arc::new(Attention::default());
    let (shared, setup) = (Arc::clone(&attention), fiord_sys::thread::id().cast_unsigned());
    signal::leave_to_other_threads();
    let begun = thread::Builder::new().name("signals".to_string()).spawn(move || attend(&shared, setup));
    match begun {
        Ok(_) => *current = Some(attention),
        // Without it a signal does what it did without it.
        Err(_) => signal::take_in_this_thread(),
    }
    current.is_some()
}

/// The setup is over, or goes on with threads that may hang alone; no effect if it was not begun.
pub fn end() {
    let Some(attention) = attention().take() else { return };
    attention.is_over.store(true, Ordering::SeqCst);
    let thread = attention.thread.load(Ordering::SeqCst);
    if thread != 0 {
        // It may have ended.
        let _ = signal::wake(thread);
    }
    signal::take_in_this_thread();
}

/// Does this with the attention on.
pub(crate) fn during<T>(setup: impl FnOnce() -> T) -> T {
    let has_begun = begin();
    let result = setup();
    if has_begun {
        end();
    }
    result
}

/// A signal that has come, and what the thread that sets up has been waiting for since.
struct Asked {
    signal: i32,
    waits: ThreadActivity,
    since: Instant,
}

/// Takes signals until the setup is over.
fn attend(attention: &Attention, setup: u32) {
    signal::hold_wakes_back();
    attention.thread.store(fiord_sys::thread::id(), Ordering::SeqCst);
    let mut asked: Option<Asked> = None;
    while !attention.is_over.load(Ordering::SeqCst) {
        let taken = signal::take(asked.is_some().then_some(LOOK));
        // As recorded, it ends the run as soon as the setup goes on. By default it ends the process, which would not say
        // what the setup waited for; a second one does not wait.
        if let Taken::Signal(signal) = taken {
            let waits = waits_for_file(setup);
            if signal::is_recorded(signal) || waits.is_none() || asked.is_some() {
                signal::pass_on(signal);
            }
            if let (Some(waits), true) = (waits, signal::asks_to_stop(signal)) {
                asked.get_or_insert(Asked { signal, waits, since: Instant::now() });
            }
        } else if let Some(was) = &mut asked {
            match waits_for_file(setup) {
                Some(waits) if waits == was.waits && was.since.elapsed() >= ANSWER_MAX => {
                    if let Some(give_up) = GIVES_UP.get() {
                        give_up(&Unanswered { signal: was.signal, waits });
                    }
                }
                Some(waits) if waits == was.waits => {}
                _ if !signal::is_recorded(was.signal) => {
                    signal::pass_on(was.signal);
                    asked = None;
                }
                Some(waits) => (was.waits, was.since) = (waits, Instant::now()),
                None => was.since = Instant::now(),
            }
        }
    }
}

/// What the thread waits for, if it is a file and not a terminal, where the user decides how long that takes.
fn waits_for_file(setup: u32) -> Option<ThreadActivity> {
    let activity = thread_activity::of(setup);
    let path = activity.path.as_ref()?;
    (!path.starts_with("/dev/pts") && !path.starts_with("/dev/tty") && !path.starts_with("/proc"))
        .then_some(activity)
}
