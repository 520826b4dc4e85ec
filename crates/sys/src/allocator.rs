//! The system's allocator with somebody looking on, for tests that say where memory may be asked for.
//!
//! Invariant: every request is passed on unchanged, after the one who looks on was told.

use std::alloc::{GlobalAlloc, Layout, System};

/// What is asked of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Memory, or more of it.
    Allocate,
    /// Memory is given back.
    Free,
}

/// To be made the `#[global_allocator]` of a test. Whom it tells may allocate, and is then told of that as well; it must
/// not panic, since an allocator must not.
#[derive(Debug)]
pub struct Watched(pub fn(Request));

// SAFETY: passes everything on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)(Request::Allocate);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.0)(Request::Allocate);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        (self.0)(Request::Allocate);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size_bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        (self.0)(Request::Free);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
