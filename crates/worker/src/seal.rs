//! The mark of a thread that is in its loop, where nothing is allocated.
//!
//! Invariant: set once around a loop and lifted only by `unsealed`, each time with a reason; I/O that goes well pays
//! nothing for it. fiord itself does not look at it: the allocator of a test does.

use std::cell::Cell;

thread_local! {
    static SEALED: Cell<bool> = const { Cell::new(false) };
}

/// Puts the mark back as it was, also when the work panics.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        SEALED.set(self.0);
    }
}

/// Runs a loop. Public for tests of what keeps a loop from allocating.
pub fn sealed<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(SEALED.replace(true));
    work()
}

/// Runs what may allocate although it is called from a loop: what happens far less often than an I/O.
#[cold]
pub(crate) fn unsealed<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(SEALED.replace(false));
    work()
}

/// Whether this thread is in its loop; it is not any more from here on.
///
/// For the global allocator of a test, which has to allocate itself to say who asked for memory.
pub fn break_seal() -> bool {
    SEALED.replace(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_lifted_for_exceptions_and_gone_after_the_loop() {
        sealed(|| {
            unsealed(|| assert!(!SEALED.get()));
            assert!(SEALED.get());
        });
        assert!(!break_seal());
        unsealed(|| ());
        assert!(!break_seal(), "outside a loop there is nothing to put back");
        assert!(std::panic::catch_unwind(|| sealed(|| panic!("in the loop"))).is_err());
        assert!(!break_seal());
        sealed(|| assert!(break_seal() && !break_seal()));
    }
}
