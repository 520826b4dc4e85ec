//! A sealed memory map: this process maps and unmaps nothing, as far as it depends on its allocations.
//!
//! A page fault that waits for a frozen file system holds a lock on the memory map for reading (`mmap_lock`), and no signal
//! ends it. Until it ends, each thread blocks for good that would change the map: `mmap`, `munmap`, `mprotect` and `brk`,
//! which allocators call as well, the creation of threads and processes, and the release of a thread's stack. A thread that
//! waits for that lock in turn blocks page faults.
//!
//! Invariant: while the map is sealed, allocations come from a stock that was mapped before (`stock.rs`), and what the
//! system's allocator gave out before goes back to it only after.

use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use crate::stock;

/// Why something is not done while the map is sealed for good.
pub const HELD: &str =
    "a job hangs in a page fault, and until its file system goes on, this process can map no memory";

static IS_SEALED: AtomicBool = AtomicBool::new(false);

/// Blocks of the system's allocator that were freed while the map was sealed; each begins with the address of the next.
static FREED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Seals the map. For the main thread, once everything is mapped that is needed. Without memory for a stock the map is not
/// sealed, and a page fault that hangs may block the others.
pub fn seal() {
    if stock::prepare() {
        grow_stack();
        grow_c_heap();
        IS_SEALED.store(true, SeqCst);
    }
}

/// Ends the sealing: no page fault hangs any more.
pub fn unseal() {
    IS_SEALED.store(false, SeqCst);
    let mut block = FREED.swap(null_mut(), SeqCst);
    while !block.is_null() {
        // SAFETY: a freed block begins with the address of the next, and is the system's allocator's, which is `malloc`.
        unsafe {
            let next = block.cast::<*mut u8>().read();
            libc::free(block.cast());
            block = next;
        }
    }
}

/// Whether the map is sealed.
#[inline]
pub fn is_sealed() -> bool {
    IS_SEALED.load(Relaxed)
}

/// Keeps a block of the system's allocator until the map is no longer sealed.
///
/// # Safety
/// The block is of this layout, and nothing uses it any more.
pub(crate) unsafe fn free_later(block: *mut u8, layout: Layout) {
    // One without room for an address is lost: there are not many, because new ones are of the stock.
    if layout.size() < size_of::<*mut u8>() {
        return;
    }
    let mut first = FREED.load(SeqCst);
    loop {
        // SAFETY: the block is ours, and has room for an address.
        unsafe { block.cast::<*mut u8>().write_unaligned(first) };
        match FREED.compare_exchange_weak(first, block, SeqCst, SeqCst) {
            Ok(_) => return,
            Err(changed) => first = changed,
        }
    }
}

/// Touches as much of this thread's stack as a report may need: the main thread's grows by a change of the map.
#[inline(never)]
fn grow_stack() {
    const STACK_BYTES: usize = 256 << 10;
    std::hint::black_box(&mut [0_u8; STACK_BYTES]);
}

/// Leaves free space in the heap of the C library, for calls such as `opendir`, and has it read the time zone, which musl
/// maps.
fn grow_c_heap() {
    #[cfg(target_env = "gnu")]
    {
        const TRIM_THRESHOLD_BYTES: libc::c_int = 64 << 20;
        // SAFETY: no memory is passed.
        unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES) };
        free_all(&[64 << 10; 16]);
    }
    #[cfg(target_env = "musl")]
    {
        // Blocks of about one size are mapped together, as long as one of them is in use.
        const BYTES: [usize; 10] = [12, 28, 44, 60, 92, 124, 252, 508, 1020, 2100];
        for bytes in BYTES {
            // SAFETY: no memory is passed.
            std::hint::black_box(unsafe { libc::malloc(bytes) });
        }
        free_all(&BYTES);
    }
    // SAFETY: all zeros is a valid `tm`; one time is read and one `tm` written.
    unsafe { libc::localtime_r(&0, &mut std::mem::zeroed()) };
}

/// Takes blocks of these sizes from the C library, and then returns them.
fn free_all<const COUNT: usize>(bytes: &[usize; COUNT]) {
    // SAFETY: no memory is passed to `malloc`, and each block is freed once.
    unsafe {
        let blocks = bytes.map(|bytes| std::hint::black_box(libc::malloc(bytes)));
        blocks.into_iter().for_each(|block| libc::free(block));
    }
}
