//! An allocator for a program that must survive a shortage of memory: a reserve is released at the first allocation that
//! fails, so that the program can continue until it ends in good order.
//!
//! Invariant: every request goes to the system's allocator, and once more after the reserve was released if it fails.
//! `is_short` reports that this has happened. While the memory map is sealed (`sealed_map.rs`), the stock comes first.

use crate::map::{Mapping, Sharing};
use crate::process::address_space_limit_bytes;
use crate::{sealed_map, stock};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest size of the reserve: enough for the reports of thousands of workers, and for what other threads allocate
/// meanwhile.
const RESERVE_BYTES_MAX: usize = 64 << 20;

/// Greatest share of a limited address space that is kept as the reserve: one in this many bytes.
const SHARE_OF_LIMIT: u64 = 4;

/// The reserve: mapped and never touched. Under one lock with the requests that have failed, so that none of them
/// finds the reserve neither mapped nor released.
static RESERVE: Mutex<Option<Mapping>> = Mutex::new(None);

/// Whether the reserve was released.
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// For the `#[global_allocator]` of a program.
#[derive(Debug)]
pub struct Reserved;

// SAFETY: passes everything on to the system's allocator unchanged, at most twice; while the memory map is sealed, to the
// stock, which keeps the same contract. A block goes back to where it came from.
unsafe impl GlobalAlloc for Reserved {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match from_stock(layout) {
            // SAFETY: the caller keeps the contract.
            None => unsafe { or_from_reserve(System.alloc(layout), || System.alloc(layout)) },
            Some(block) => block,
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match from_stock(layout) {
            // SAFETY: the caller keeps the contract.
            None => unsafe { or_from_reserve(System.alloc_zeroed(layout), || System.alloc_zeroed(layout)) },
            Some(block) => {
                // SAFETY: the block has this size.
                unsafe { block.write_bytes(0, layout.size()) };
                block
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        if sealed_map::is_sealed() || stock::owns(pointer) {
            // SAFETY: the caller keeps the contract.
            return unsafe { self.move_to(pointer, layout, size_bytes) };
        }
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
        unsafe {
            match stock::owns(pointer) {
                true => stock::put_back(pointer, layout),
                false if sealed_map::is_sealed() => sealed_map::free_later(pointer, layout),
                false => System.dealloc(pointer, layout),
            }
        }
    }
}

impl Reserved {
    /// Resizes a block of the stock, or of the system's allocator while the memory map is sealed.
    ///
    /// # Safety
    /// As `realloc`.
    #[cold]
    unsafe fn move_to(&self, pointer: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: the caller passes a size that is valid for this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size_bytes, layout.align()) };
        let stays = match stock::owns(pointer) {
            true => stock::is_same_block(layout, wanted),
            false => size_bytes <= layout.size(),
        };
        if stays {
            return pointer;
        }
        // SAFETY: the caller keeps the contract; the blocks do not overlap, and both have what is copied.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(size_bytes));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

/// A block of the stock, if the memory map is sealed and one is left.
#[inline]
fn from_stock(layout: Layout) -> Option<*mut u8> {
    let block = sealed_map::is_sealed().then(|| stock::take(layout))?;
    (!block.is_null()).then_some(block)
}

#[inline]
fn or_from_reserve(first: *mut u8, again: impl FnOnce() -> *mut u8) -> *mut u8 {
    if first.is_null() { from_reserve(again) } else { first }
}

#[cold]
fn from_reserve(again: impl FnOnce() -> *mut u8) -> *mut u8 {
    IS_SHORT.store(true, SeqCst);
    let mut reserve = reserve();
    *reserve = None;
    again()
}

/// Maps a reserve if there is none; returns whether there is one now. Under a limit on address space it is smaller.
pub fn restock() -> bool {
    let mut reserve = reserve();
    if reserve.is_none() {
        let of_limit = address_space_limit_bytes().map(|limit| (limit / SHARE_OF_LIMIT) as usize);
        let size_bytes = of_limit.unwrap_or(RESERVE_BYTES_MAX).min(RESERVE_BYTES_MAX);
        let Ok(mapped) = Mapping::anonymous(size_bytes, Sharing::Private, None) else { return false };
        *reserve = Some(mapped);
    }
    IS_SHORT.store(false, SeqCst);
    true
}

fn reserve() -> MutexGuard<'static, Option<Mapping>> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the reserve was released since the last `restock`. For code that can make do with less memory.
#[inline]
pub fn is_short() -> bool {
    IS_SHORT.load(SeqCst)
}

/// Makes all threads allocate from one arena if address space is limited (`ulimit -v`): an arena for each thread would
/// reserve 64 MiB.
pub fn spare_address_space() {
    // musl has one arena for all threads.
    #[cfg(target_env = "gnu")]
    if address_space_limit_bytes().is_some() {
        const ARENAS_MAX: libc::c_int = -8;
        // SAFETY: no memory is passed.
        unsafe {
            libc::mallopt(ARENAS_MAX, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn a_failed_request_releases_the_reserve_and_is_reported() {
        assert!(restock() && !is_short());
        let layout = Layout::from_size_align(1 << 60, 8).unwrap();
        // SAFETY: the layout's size is not zero.
        assert!(std::hint::black_box(unsafe { Reserved.alloc(layout) }).is_null());
        assert!(is_short() && reserve().is_none());
        assert!(restock() && !is_short() && restock());
        let answered = or_from_reserve(null_mut(), std::ptr::dangling_mut);
        assert!(!answered.is_null() && is_short());
    }
}
