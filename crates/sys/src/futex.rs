//! Event counts: threads wait for a counter to change without taking a lock, so that thousands of woken threads do not
//! queue for a mutex.
//!
//! Invariant: a thread never sleeps once the counter differs from the value it has read.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex::{self, Flags};

use crate::clock::timespec;

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
        // Waking cannot fail: the address is that of a word of this process.
        let _ = futex::wake(&self.count, Flags::PRIVATE, i32::MAX.cast_unsigned());
    }

    /// Sleeps until the count differs from `seen`, for `at_most` this long, or until a signal arrives.
    pub fn wait(&self, seen: u32, at_most: Option<Duration>) {
        // Why it returned does not matter: the caller checks its condition again.
        let _ = futex::wait(&self.count, Flags::PRIVATE, seen, at_most.map(timespec).as_ref());
    }
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
