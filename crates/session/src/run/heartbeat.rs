//! A thread that looks at the clocks while a run lasts, and finds that the run was suspended.
//!
//! Invariant: it waits for nothing but the next look, so that a pause is never one of a terminal or a file system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fiord_findings::{Look, Suspension, SuspensionWatch};
use fiord_sys::counter_file::CounterFile;
use fiord_sys::{clock, procfs, signal};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The thread.
#[derive(Debug)]
pub(super) struct Heartbeat {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Option<Suspension>>,
}

impl Heartbeat {
    /// Begins to look; `None` if no thread can be had.
    pub(super) fn start() -> Option<Heartbeat> {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_over);
        let thread =
            thread::Builder::new().name("clock".to_string()).spawn(move || look_until(&shared)).ok()?;
        Some(Heartbeat { is_over, thread })
    }

    /// Ends it; returns for how long the run was suspended meanwhile, if it was.
    pub(super) fn end(self) -> Option<Suspension> {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        self.thread.join().ok().flatten()
    }
}

fn look_until(is_over: &AtomicBool) -> Option<Suspension> {
    signal::leave_to_other_threads();
    let mut waited_ns = procfs::waited_for_processor_ns();
    let mut watch = SuspensionWatch::default();
    loop {
        watch.look(Look {
            monotonic_ns: clock::monotonic_ns(),
            boot_ns: clock::boot_ns(),
            waited_ns: waited_ns.as_mut().and_then(CounterFile::read),
        });
        if is_over.load(Ordering::SeqCst) {
            return watch.found();
        }
        thread::park_timeout(LOOK_EVERY);
    }
}
