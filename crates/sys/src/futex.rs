//! Event counts: threads wait for a counter to change without taking a lock, so that thousands of woken threads do not
//! queue for a mutex.
//!
//! Invariant: a thread never sleeps once the counter differs from the value it has read.

use std::io::{Error, ErrorKind};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::clock::c_timespec;

/// A counter that is incremented after each change that other threads wait for.
#[derive(Debug, Default)]
pub struct EventCount {
    count: AtomicU32,
}

impl EventCount {
    /// The current count, to be read before the condition that the thread waits for is checked. Changes made before the
    /// notification that produced this count are visible to its reader.
    pub fn current(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Increments the count and wakes all waiting threads.
    pub fn notify_all(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        wake(&self.count, i32::MAX.cast_unsigned());
    }

    /// Sleeps until the count differs from `seen`, for `at_most` this long, or until a signal arrives.
    pub fn wait(&self, seen: u32, at_most: Option<Duration>) {
        // Why it returned does not matter: the caller checks its condition again.
        wait(&self.count, seen, at_most);
    }
}

/// Wakes at most so many threads that wait for a change of the word.
pub(crate) fn wake(word: &AtomicU32, threads: u32) {
    call(word, libc::FUTEX_WAKE, threads, None);
}

/// Sleeps until the thread is woken, unless the word differs from `seen`; for `at_most` this long, or until a signal arrives, which
/// is then `true`.
pub(crate) fn wait(word: &AtomicU32, seen: u32, at_most: Option<Duration>) -> bool {
    call(word, libc::FUTEX_WAIT, seen, at_most) == -1
        && Error::last_os_error().kind() == ErrorKind::Interrupted
}

/// The system call, by the C library's function with the types that Miri demands: rustix passes another pointer. It fails only as
/// `wait` says, because the word is one of this process.
fn call(word: &AtomicU32, operation: i32, value: u32, at_most: Option<Duration>) -> libc::c_long {
    let at_most = at_most.map(c_timespec);
    let timeout = at_most.as_ref().map_or(ptr::null(), ptr::from_ref);
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word, and the time if there is one; both live until it returns.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_waiting_thread_is_woken_and_does_not_sleep_after_a_notification() {
        let event = Arc::new(EventCount::default());
        let seen = event.current();
        let others: Vec<_> = (0..4)
            .map(|_| {
                let event = Arc::clone(&event);
                std::thread::spawn(move || {
                    while event.current() == seen {
                        event.wait(seen, None);
                    }
                })
            })
            .collect();
        event.notify_all();
        others.into_iter().for_each(|other| other.join().unwrap());
        event.wait(seen, None);
        event.wait(event.current(), Some(Duration::from_millis(1)));
    }
}

/// Run by Miri too, which shows what processors that reorder memory may show.
#[cfg(test)]
mod memory_order {
    use fiord_testing::in_many_orders;

    use super::*;

    #[test]
    fn what_was_changed_before_a_notification_is_seen_after_it() {
        in_many_orders(|| {
            let (event, changed) = (EventCount::default(), AtomicU32::new(0));
            let seen = event.current();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    changed.store(7, Ordering::Relaxed);
                    event.notify_all();
                });
                while event.current() == seen {
                    std::thread::yield_now();
                }
                assert_eq!(changed.load(Ordering::Relaxed), 7);
            });
        });
    }

    /// As workers check for a request to stop, which is made without a lock, before they sleep.
    #[test]
    fn a_change_that_is_missed_wakes_who_sleeps() {
        in_many_orders(|| {
            let (event, changed) = (EventCount::default(), AtomicU32::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    changed.store(1, Ordering::Relaxed);
                    event.notify_all();
                });
                loop {
                    let seen = event.current();
                    if changed.load(Ordering::Relaxed) == 1 {
                        break;
                    }
                    event.wait(seen, None);
                }
            });
        });
    }
}
