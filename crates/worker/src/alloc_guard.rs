//! The allocation guard: marks a thread as being in its loop, where nothing may be allocated.
//!
//! Invariant: set once around a loop and lifted only by `allow_alloc`, each time with a reason; successful I/O pays
//! nothing for it. fiord itself never reads the mark: the allocator of a test does.

use std::cell::Cell;

thread_local! {
    static NO_ALLOC: Cell<bool> = const { Cell::new(false) };
}

/// Restores the mark, also when the work panics.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        NO_ALLOC.set(self.0);
    }
}

/// Runs `work` with the mark set. Public for tests that prove loops do not allocate.
pub fn no_alloc<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(NO_ALLOC.replace(true));
    work()
}

/// Runs `work` with the mark lifted: for work in a loop that may allocate because it is far rarer than an I/O.
#[cold]
pub(crate) fn allow_alloc<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore(NO_ALLOC.replace(false));
    work()
}

/// Whether the mark is set for this thread; clears it.
///
/// For the global allocator of a test, which must allocate itself to report the offending call.
#[allow(dead_code, reason = "the allocators that call it are those of tests")]
pub fn leave_no_alloc() -> bool {
    NO_ALLOC.replace(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_may_allocate_and_the_mark_is_gone_after_the_loop() {
        no_alloc(|| {
            allow_alloc(|| assert!(!NO_ALLOC.get()));
            assert!(NO_ALLOC.get());
        });
        assert!(!leave_no_alloc());
        allow_alloc(|| ());
        assert!(!leave_no_alloc(), "outside a loop there is nothing to put back");
        assert!(std::panic::catch_unwind(|| no_alloc(|| panic!("in the loop"))).is_err());
        assert!(!leave_no_alloc());
        no_alloc(|| assert!(leave_no_alloc() && !leave_no_alloc()));
    }
}
