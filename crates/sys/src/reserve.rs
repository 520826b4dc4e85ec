//! The allocator of a program that is to outlive a shortage of memory: a reserve that is given up at the first request
//! that cannot be met, so that whoever asked goes on until it can end in good order.
//!
//! Invariant: a request is answered as the system's allocator answers it, as long as that can; after that once more from
//! what the reserve gave back. `is_short` says that it came to that.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};

/// What is kept back: enough for the reports of thousands of workers, and for all that the others do meanwhile.
const RESERVE_BYTES: usize = 64 << 20;

/// What is kept back, mapped and never touched.
static RESERVE: AtomicPtr<libc::c_void> = AtomicPtr::new(null_mut());

/// The reserve was needed.
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// To be made the `#[global_allocator]` of a program.
#[derive(Debug)]
pub struct Reserved;

// SAFETY: passes everything on to the system's allocator unchanged, at most twice.
unsafe impl GlobalAlloc for Reserved {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { or_from_reserve(System.alloc(layout), || System.alloc(layout)) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { or_from_reserve(System.alloc_zeroed(layout), || System.alloc_zeroed(layout)) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract; a request that failed has left the memory as it was.
        unsafe {
            or_from_reserve(System.realloc(pointer, layout, size_bytes), || {
                System.realloc(pointer, layout, size_bytes)
            })
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[inline]
fn or_from_reserve(first: *mut u8, again: impl FnOnce() -> *mut u8) -> *mut u8 {
    if first.is_null() { from_reserve(again) } else { first }
}

#[cold]
fn from_reserve(again: impl FnOnce() -> *mut u8) -> *mut u8 {
    IS_SHORT.store(true, SeqCst);
    give_back(RESERVE.swap(null_mut(), SeqCst));
    again()
}

/// Sets memory aside, unless that is so already; whether there is a reserve now.
pub fn restock() -> bool {
    if RESERVE.load(SeqCst).is_null() {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping where there was none touches no memory of anybody's.
        let mapped = unsafe { libc::mmap(null_mut(), RESERVE_BYTES, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        if RESERVE.compare_exchange(null_mut(), mapped, SeqCst, SeqCst).is_err() {
            give_back(mapped);
        }
    }
    IS_SHORT.store(false, SeqCst);
    true
}

/// Whether the reserve was needed since it was stocked last. To be asked by whoever can do with less.
#[inline]
pub fn is_short() -> bool {
    IS_SHORT.load(SeqCst)
}

fn give_back(reserve: *mut libc::c_void) {
    if !reserve.is_null() {
        // SAFETY: whoever took the pointer out of RESERVE is the only one who has it, and nothing lies there.
        unsafe { libc::munmap(reserve, RESERVE_BYTES) };
    }
}

/// Has all threads take their memory from one place, where address space is limited (`ulimit -v`): places of their own
/// would reserve 64 MiB each.
pub fn spare_address_space() {
    const ARENAS_MAX: libc::c_int = -8;
    let limit = crate::process::address_space_limit_bytes();
    if matches!(limit, Ok(Some(_))) {
        #[cfg(target_env = "gnu")]
        // SAFETY: no memory is passed.
        unsafe {
            libc::mallopt(ARENAS_MAX, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_cannot_be_met_takes_the_reserve_and_is_told_of() {
        assert!(restock() && !is_short());
        let layout = Layout::from_size_align(1 << 60, 8).unwrap();
        // SAFETY: the layout's size is not zero.
        assert!(std::hint::black_box(unsafe { Reserved.alloc(layout) }).is_null());
        assert!(is_short() && RESERVE.load(SeqCst).is_null());
        assert!(restock() && !is_short() && restock());
        let answered = or_from_reserve(null_mut(), std::ptr::dangling_mut);
        assert!(!answered.is_null() && is_short());
    }
}
