//! Operations that threads of a library end, handed over to the thread that started them, without locks.
//!
//! Invariant: a place is in the list from the end of its operation until the list is taken, and in no other list. Each
//! operation that has not ended keeps the structure alive, so a library may end it after everybody else has forgotten it.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use crate::futex;

/// The end of the list; other numbers are those of places plus one.
const END: u32 = 0;

/// Operations that have ended and were not taken yet, by the numbers of their slots.
pub struct HandOver {
    places: Box<[Place]>,
    /// The list's first place: that of the operation that ended last.
    newest: AtomicU32,
    /// Whether somebody sleeps until the list has a first place.
    is_waited_for: AtomicBool,
}

/// What belongs to one slot.
struct Place {
    owner: *const HandOver,
    index: u32,
    result: AtomicI64,
    /// The operation that ended before.
    older: AtomicU32,
}

// SAFETY: the pointer is only used by `end` and `cancel`, for which their callers vouch; the rest is atomic or constant.
unsafe impl Send for Place {}
// SAFETY: the same.
unsafe impl Sync for Place {}

impl fmt::Debug for HandOver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HandOver").field("slots", &self.places.len()).finish_non_exhaustive()
    }
}

impl HandOver {
    /// Room for an operation of each of so many slots.
    pub fn new(slots: u32) -> Arc<HandOver> {
        Arc::new_cyclic(|owner| {
            let place = |index| Place {
                owner: owner.as_ptr(),
                index,
                result: AtomicI64::new(0),
                older: AtomicU32::new(END),
            };
            HandOver {
                places: (0..slots).map(place).collect(),
                newest: AtomicU32::new(END),
                is_waited_for: AtomicBool::new(false),
            }
        })
    }

    /// The value with which a library calls back when the slot's operation has ended. Exactly one of `end` and `cancel` is
    /// called with it; until then the structure lives.
    #[inline]
    pub fn ticket(self: &Arc<Self>, slot: u32) -> *mut c_void {
        // Given back by `end` or `cancel`.
        let _ = Arc::into_raw(Arc::clone(self));
        (&raw const self.places[slot as usize]).cast_mut().cast()
    }

    /// The slot of this ticket.
    ///
    /// # Safety
    /// The ticket is from `ticket`, and was not used before.
    #[inline]
    pub(crate) unsafe fn slot_of(ticket: *mut c_void) -> u32 {
        let place: *const Place = ticket.cast_const().cast();
        // SAFETY: the ticket holds a reference to the structure, which lives until it is used.
        unsafe { (*place).index }
    }

    /// The operation of this ticket has ended: with bytes, or with a negative error number. For any thread.
    ///
    /// # Safety
    /// The ticket is from `ticket`, and was not used before.
    #[inline]
    pub unsafe fn end(ticket: *mut c_void, result: i64) {
        let place: *const Place = ticket.cast_const().cast();
        // SAFETY: the ticket holds a reference to the structure, which is taken over here.
        let (place, shared) = unsafe { (&*place, Arc::from_raw((*place).owner)) };
        place.result.store(result, Ordering::Relaxed);
        let mut newest = shared.newest.load(Ordering::Relaxed);
        loop {
            place.older.store(newest, Ordering::Relaxed);
            let put = shared.newest.compare_exchange_weak(
                newest,
                place.index + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            match put {
                Ok(_) => break,
                Err(found) => newest = found,
            }
        }
        if shared.is_waited_for.load(Ordering::SeqCst) {
            futex::wake(&shared.newest, 1);
        }
    }

    /// The library did not take the operation of this ticket.
    ///
    /// # Safety
    /// The ticket is from `ticket`, and was not used before.
    #[inline]
    pub unsafe fn cancel(ticket: *mut c_void) {
        let place: *const Place = ticket.cast_const().cast();
        // SAFETY: the ticket holds a reference to the structure, which is taken over here.
        drop(unsafe { Arc::from_raw((*place).owner) });
    }

    /// Whether an operation has ended that was not taken.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.newest.load(Ordering::SeqCst) != END
    }

    /// Takes all operations that have ended, those that ended last first: slot and result.
    #[inline]
    pub fn take(&self, mut each: impl FnMut(u32, i64)) {
        let mut number = self.newest.swap(END, Ordering::SeqCst);
        while number != END {
            let place = &self.places[number as usize - 1];
            number = place.older.load(Ordering::Relaxed);
            each(place.index, place.result.load(Ordering::Relaxed));
        }
    }

    /// Sleeps until an operation has ended, for `at_most` this long, or until a signal arrives, which is then `true`. For
    /// one thread.
    pub fn wait(&self, at_most: Option<Duration>) -> bool {
        self.is_waited_for.store(true, Ordering::SeqCst);
        let interrupted = futex::wait(&self.newest, END, at_most);
        self.is_waited_for.store(false, Ordering::SeqCst);
        interrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(from: &HandOver) -> Vec<(u32, i64)> {
        let mut taken = Vec::new();
        from.take(|slot, result| taken.push((slot, result)));
        taken
    }

    #[test]
    fn operations_are_taken_once_with_their_results_the_last_first() {
        let shared = HandOver::new(3);
        for (slot, result) in [(1, 4096), (0, -5)] {
            // SAFETY: each ticket is used once.
            unsafe { HandOver::end(shared.ticket(slot), result) };
        }
        assert!(shared.has_ended());
        assert_eq!(taken(&shared), [(0, -5), (1, 4096)]);
        assert!(taken(&shared).is_empty() && !shared.has_ended());
        // SAFETY: the same.
        unsafe { HandOver::cancel(shared.ticket(2)) };
        assert!(taken(&shared).is_empty());
        assert_eq!(Arc::strong_count(&shared), 1, "ended and cancelled tickets hold nothing");
    }

    #[test]
    fn many_threads_hand_over_every_operation_to_one_that_sleeps() {
        hand_over_many::<2000, 16>();
    }

    fn hand_over_many<const ROUNDS: u32, const SLOTS: u32>() {
        let shared = HandOver::new(SLOTS);
        let (sender, receiver) = std::sync::mpsc::channel::<(usize, i64)>();
        let receiver = std::sync::Mutex::new(receiver);
        let mut seen = vec![0_u32; SLOTS as usize];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Ok((ticket, result)) = { receiver.lock().unwrap().recv() } {
                        // SAFETY: each ticket is sent once.
                        unsafe { HandOver::end(ticket as *mut c_void, result) };
                    }
                });
            }
            let start = |slot: u32, round: u32| {
                let message = (shared.ticket(slot) as usize, i64::from(slot * ROUNDS + round));
                sender.send(message).unwrap();
            };
            (0..SLOTS).for_each(|slot| start(slot, 0));
            let mut left = SLOTS;
            while left > 0 {
                shared.wait(None);
                shared.take(|slot, result| {
                    let round = &mut seen[slot as usize];
                    assert_eq!(result, i64::from(slot * ROUNDS + *round));
                    *round += 1;
                    if *round < ROUNDS { start(slot, *round) } else { left -= 1 }
                });
            }
            drop(sender);
        });
        assert!(seen.iter().all(|rounds| *rounds == ROUNDS));
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn an_operation_may_end_after_the_structure_was_dropped() {
        let shared = HandOver::new(1);
        let ticket = shared.ticket(0);
        drop(shared);
        // SAFETY: the ticket is used once.
        unsafe { HandOver::end(ticket, 1) };
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        assert!(!HandOver::new(1).wait(Some(Duration::from_millis(1))));
    }

    /// Run by Miri too, which shows what processors that reorder memory may show.
    mod memory_order {
        use fiord_testing::in_many_orders;

        use super::*;

        #[test]
        fn results_are_handed_over_with_their_operations() {
            in_many_orders(|| {
                hand_over_many::<3, 2>();
            });
        }

        #[test]
        fn what_a_library_has_read_is_seen_with_its_result() {
            in_many_orders(|| {
                let shared = HandOver::new(1);
                let read = AtomicU32::new(0);
                let ticket = shared.ticket(0) as usize;
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        read.store(7, Ordering::Relaxed);
                        // SAFETY: the ticket is used once.
                        unsafe { HandOver::end(ticket as *mut c_void, 4096) };
                    });
                    while !shared.has_ended() {
                        std::thread::yield_now();
                    }
                    assert_eq!(taken(&shared), [(0, 4096)]);
                    assert_eq!(read.load(Ordering::Relaxed), 7);
                });
            });
        }
    }
}
