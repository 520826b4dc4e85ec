//! A thread that does nothing but keep the time for others, on a CPU of its own (`gtod_cpu`).
//!
//! Invariant: the time it keeps never goes back and is never ahead of the clock it is read from. It is as old as the
//! thread's last turn: on a CPU that others use as well, it stands still while they run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Clock, CounterClock, OsClock};
use crate::channel::bounded;
use crate::spawn::{Thread, spawn};
use crate::{signal, thread};

/// Name of the thread in process listings.
const THREAD_NAME: &str = "fiord-clock";

const STACK_BYTES: usize = 64 << 10;

/// Two cache lines, because processors fetch them in pairs: what is written all the time shares them with nothing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug, Default)]
struct Kept {
    now_ns: Line<AtomicU64>,
    is_over: Line<AtomicBool>,
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Timekeeper {
    kept: Arc<Kept>,
    thread: Option<Thread>,
}

/// The time that a thread keeps.
#[derive(Clone, Copy, Debug)]
pub struct KeptClock<'a>(&'a AtomicU64);

impl Timekeeper {
    /// Starts a thread that keeps the time on this CPU. It has the time when this returns.
    ///
    /// # Errors
    /// The thread cannot be started, or may not run on that CPU (`EINVAL`).
    pub fn start(cpu: u32) -> io::Result<Timekeeper> {
        let kept = Arc::new(Kept::default());
        let of_thread = Arc::clone(&kept);
        let (started, outcome) = bounded(1);
        let thread = spawn(THREAD_NAME, STACK_BYTES, move || {
            signal::leave_to_other_threads();
            let placed = thread::set_affinity(&[cpu]);
            let goes_on = placed.is_ok();
            of_thread.now_ns.0.store(OsClock.now_ns(), Relaxed);
            // Nobody waits for it if the starter has given up.
            let _ = started.send(placed);
            if goes_on {
                match CounterClock::shared().ok().filter(CounterClock::agrees_here) {
                    Some(clock) => of_thread.keep(clock),
                    None => of_thread.keep(OsClock),
                }
            }
        })?;
        let keeper = Timekeeper { kept, thread: Some(thread) };
        let gone = || io::Error::other("the thread that keeps the time ended at once");
        outcome.recv().map_err(|_| gone())??;
        Ok(keeper)
    }

    /// The time it keeps.
    pub fn clock(&self) -> KeptClock<'_> {
        KeptClock(&self.kept.now_ns.0)
    }

    /// Ends the thread; the time stands still from now on.
    pub fn stop(&self) {
        self.kept.is_over.0.store(true, Relaxed);
    }
}

impl Drop for Timekeeper {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // If it panicked, its clock stands still, as a run that waits for it finds out.
            let _ = thread.join();
        }
    }
}

impl Kept {
    /// Stores the time of `clock` until it is over.
    fn keep(&self, clock: impl Clock) {
        while !self.is_over.0.load(Relaxed) {
            self.now_ns.0.fetch_max(clock.now_ns(), Relaxed);
        }
    }
}

impl Clock for KeptClock<'_> {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;

    #[test]
    fn the_kept_time_follows_the_clock_and_never_goes_back() {
        let cpu = thread::affinity().unwrap()[0];
        let before_ns = monotonic_ns();
        let keeper = Timekeeper::start(cpu).unwrap();
        let clock = keeper.clock();
        let mut last_ns = clock.now_ns();
        assert!(last_ns >= before_ns, "it has the time at once");
        // However long the thread waits for its turns.
        while last_ns < before_ns + 20_000_000 {
            let now_ns = clock.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
            std::hint::spin_loop();
        }
        // The counter may be ahead of the kernel's clock by as much as both differ.
        assert!(last_ns <= monotonic_ns() + 1_000_000);
        keeper.stop();
    }

    #[test]
    fn the_thread_runs_on_its_cpu_alone_and_ends() {
        let cpu = *thread::affinity().unwrap().last().unwrap();
        let keeper = Timekeeper::start(cpu).unwrap();
        let of_thread = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let mut statuses =
                tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
            let pinned = format!("Cpus_allowed_list:\t{cpu}\n");
            statuses
                .any(|status| status.contains(&format!("Name:\t{THREAD_NAME}\n")) && status.contains(&pinned))
        };
        assert!(of_thread());
        drop(keeper);
        let refused = Timekeeper::start(8191).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{refused}");
    }
}
