//! Waiting for a number to change, without a lock: whoever is woken goes on at once, and need not queue for a mutex with
//! thousands of others that were woken too.
//!
//! Invariant: nobody sleeps while the number is another than the one seen.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::clock::timespec;

/// A number that goes up whenever something has happened.
#[derive(Debug, Default)]
pub struct Bell {
    rung: AtomicU32,
}

impl Bell {
    /// How often it was rung. What was true before it was rung that often is seen by whoever sees this.
    pub fn rung(&self) -> u32 {
        self.rung.load(Ordering::SeqCst)
    }

    /// Rings: all who wait go on.
    pub fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        let (call, operation) = (libc::SYS_futex, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: the kernel takes the address as a name and does not follow it.
        unsafe { libc::syscall(call, self.rung.as_ptr(), operation, libc::c_int::MAX) };
    }

    /// Sleeps until it was rung more often than `seen`, or `at_most` so long, or until a signal comes in.
    pub fn wait(&self, seen: u32, at_most: Option<Duration>) {
        let limit = at_most.map(timespec);
        let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
        let (call, operation) = (libc::SYS_futex, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
        // SAFETY: the kernel reads the number and the limit, both of which outlive the call. Whatever it answers, the
        // caller looks again.
        unsafe { libc::syscall(call, self.rung.as_ptr(), operation, seen, limit) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_waits_goes_on_when_it_rings_and_does_not_sleep_when_it_has_rung() {
        let bell = Arc::new(Bell::default());
        let seen = bell.rung();
        let others: Vec<_> = (0..4)
            .map(|_| {
                let bell = Arc::clone(&bell);
                std::thread::spawn(move || {
                    while bell.rung() == seen {
                        bell.wait(seen, None);
                    }
                })
            })
            .collect();
        bell.ring();
        others.into_iter().for_each(|other| other.join().unwrap());
        bell.wait(seen, None);
        bell.wait(bell.rung(), Some(Duration::from_millis(1)));
    }
}
