//! The system's allocator with an observer, for tests that define where memory may be allocated.
//!
//! Invariant: every request is passed on unchanged, after the observer has been called.

use std::alloc::{GlobalAlloc, Layout, System};

/// A request to the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Memory, or more of it.
    Allocate,
    /// Memory is freed.
    Free,
}

/// For the `#[global_allocator]` of a test. The observer may allocate, which calls it again; it must not panic, because
/// an allocator must not.
#[derive(Debug)]
pub struct ObservedAllocator(pub fn(Request));

// SAFETY: passes everything on to the system's allocator unchanged.
unsafe impl GlobalAlloc for ObservedAllocator {
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
