//! A thread that looks at the clocks while a run lasts, and finds that the run was suspended.
//!
//! Invariant: it waits for nothing but the next look, so that a pause is never one of a terminal or a file system.

use std::time::Duration;

use fiord_findings::{Look, Suspension, SuspensionWatch};
use fiord_sys::channel::{Receiver, RecvTimeoutError, Sender, channel};
use fiord_sys::counter_file::CounterFile;
use fiord_sys::spawn::{Thread, spawn};
use fiord_sys::{clock, procfs, signal};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Stack of the thread.
const STACK_BYTES: usize = 256 * 1024;

/// The thread.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Dropped when the run is over.
    over: Sender<()>,
    thread: Thread<Option<Suspension>>,
}

impl Heartbeat {
    /// Begins to look; `None` if no thread can be had.
    pub(super) fn start() -> Option<Heartbeat> {
        let (over, is_over) = channel();
        let thread = spawn("clock", STACK_BYTES, move || look_until(&is_over)).ok()?;
        Some(Heartbeat { over, thread })
    }

    /// Ends it; returns for how long the run was suspended meanwhile, if it was.
    pub(super) fn end(self) -> Option<Suspension> {
        drop(self.over);
        self.thread.join().ok().flatten()
    }
}

fn look_until(is_over: &Receiver<()>) -> Option<Suspension> {
    signal::leave_to_other_threads();
    let mut waited_ns = procfs::waited_for_processor_ns();
    let mut watch = SuspensionWatch::default();
    let mut look = || {
        watch.look(Look {
            monotonic_ns: clock::monotonic_ns(),
            boot_ns: clock::boot_ns(),
            waited_ns: waited_ns.as_mut().and_then(CounterFile::read),
        });
    };
    look();
    while is_over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        look();
    }
    look();
    watch.found()
}
