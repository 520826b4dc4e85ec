//! Memory that is mapped and touched in advance, for allocations while this process must not change its memory map.
//!
//! Invariant: the size of a block is a power of two, and it is aligned to its size or to a page; the stock is mapped once
//! and never unmapped, so that its blocks outlive the time they were needed for.

use std::alloc::Layout;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::map::{Mapping, Sharing};
use crate::process::address_space_limit_bytes;

/// Size of the stock. Only what is touched takes memory.
const STOCK_BYTES: usize = 256 << 20;

/// Greatest share of a limited address space: one in this many bytes.
const SHARE_OF_LIMIT: u64 = 8;

/// How much of it is touched in advance: enough for the report of hundreds of jobs.
const TOUCHED_BYTES: usize = 16 << 20;

/// The smallest page of any machine, and the greatest alignment of a block.
const PAGE_BYTES: usize = 4096;

/// The smallest block has room for the address of the next free one.
const BLOCK_BYTES_MIN: usize = 16;

/// Where the stock begins, and its length: 0 until it is mapped.
static START: AtomicUsize = AtomicUsize::new(0);
static LENGTH_BYTES: AtomicUsize = AtomicUsize::new(0);

static STOCK: Mutex<Stock> =
    Mutex::new(Stock { memory: None, used_bytes: 0, free: [null_mut(); usize::BITS as usize] });

struct Stock {
    memory: Option<Mapping>,
    /// What lies before this was handed out at some time.
    used_bytes: usize,
    /// The first free block of each size, by its logarithm; each begins with the address of the next.
    free: [*mut u8; usize::BITS as usize],
}

// SAFETY: the pointers are into the mapping that belongs to the stock.
unsafe impl Send for Stock {}

fn stock() -> MutexGuard<'static, Stock> {
    STOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The size of the block for this layout; `None` if no block suits it.
fn block_bytes(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(BLOCK_BYTES_MIN).checked_next_power_of_two()?;
    (layout.align() <= PAGE_BYTES).then_some(bytes)
}

/// Maps the stock, if that has not happened yet, and touches what the next blocks will take. `false` if there is no memory
/// for it.
pub(crate) fn prepare() -> bool {
    let mut stock = stock();
    if stock.memory.is_none() {
        let of_limit = address_space_limit_bytes().map(|limit| limit / SHARE_OF_LIMIT);
        let of_limit = of_limit.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(STOCK_BYTES);
        let length_bytes = STOCK_BYTES.min(of_limit) / PAGE_BYTES * PAGE_BYTES;
        let Ok(memory) = Mapping::anonymous(length_bytes, Sharing::Private, None) else { return false };
        START.store(memory.as_ptr().addr(), Ordering::Relaxed);
        LENGTH_BYTES.store(length_bytes, Ordering::Release);
        stock.memory = Some(memory);
    }
    let Some(memory) = &stock.memory else { return false };
    let first = stock.used_bytes.next_multiple_of(PAGE_BYTES);
    for offset in (first..memory.len_bytes().min(first + TOUCHED_BYTES)).step_by(PAGE_BYTES) {
        // SAFETY: the byte is inside the mapping, and behind all that was handed out.
        unsafe { memory.as_ptr().add(offset).write_volatile(0) };
    }
    true
}

/// Whether this block is of the stock.
#[inline]
pub(crate) fn owns(block: *mut u8) -> bool {
    let length_bytes = LENGTH_BYTES.load(Ordering::Acquire);
    block.addr().wrapping_sub(START.load(Ordering::Relaxed)) < length_bytes
}

/// A block for this layout; null if none is left.
pub(crate) fn take(layout: Layout) -> *mut u8 {
    let Some(bytes) = block_bytes(layout) else { return null_mut() };
    let mut stock = stock();
    let class = bytes.trailing_zeros() as usize;
    let first = stock.free[class];
    if !first.is_null() {
        // SAFETY: a free block begins with the address of the next.
        stock.free[class] = unsafe { first.cast::<*mut u8>().read() };
        return first;
    }
    let start = stock.used_bytes.next_multiple_of(bytes.min(PAGE_BYTES));
    let Some(memory) = stock.memory.as_ref() else { return null_mut() };
    let end = start.saturating_add(bytes);
    if end > memory.len_bytes() {
        return null_mut();
    }
    let block = memory.as_ptr().wrapping_add(start);
    stock.used_bytes = end;
    block
}

/// Takes a block back.
///
/// # Safety
/// `take` gave it out, for a layout with a block of the same size, and nothing uses it any more.
pub(crate) unsafe fn put_back(block: *mut u8, layout: Layout) {
    let Some(bytes) = block_bytes(layout) else { return };
    let mut stock = stock();
    let class = bytes.trailing_zeros() as usize;
    // SAFETY: the block is ours again, aligned, and has room for an address.
    unsafe { block.cast::<*mut u8>().write(stock.free[class]) };
    stock.free[class] = block;
}

/// Whether the block for one layout serves the other as it is.
pub(crate) fn is_same_block(one: Layout, other: Layout) -> bool {
    block_bytes(one) == block_bytes(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_apart_and_used_again() {
        assert!(prepare());
        let layouts = [(1, 1), (24, 8), (100, 64), (4096, 4096), (5000, 8)]
            .map(|(size, align)| Layout::from_size_align(size, align).unwrap());
        let blocks = layouts.map(|layout| {
            let block = take(layout);
            assert!(owns(block) && block.align_offset(layout.align()) == 0);
            // SAFETY: the block has this size.
            unsafe { block.write_bytes(0x5a, layout.size()) };
            block
        });
        for (block, layout) in blocks.into_iter().zip(layouts) {
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
            assert!(bytes.iter().all(|byte| *byte == 0x5a), "blocks overlap");
            // SAFETY: taken above, and not used after this.
            unsafe { put_back(block, layout) };
        }
        let whole = Layout::from_size_align(STOCK_BYTES, 1).unwrap();
        assert!(take(whole).is_null() && take(Layout::from_size_align(1, 8192).unwrap()).is_null());
        assert!(!owns(Box::into_raw(Box::new(1_u8))) && !owns(null_mut()));
    }

    #[test]
    fn a_layout_keeps_its_block_up_to_the_next_power_of_two() {
        let of = |bytes| Layout::from_size_align(bytes, 8).unwrap();
        assert!(
            is_same_block(of(1), of(16)) && is_same_block(of(17), of(32)) && !is_same_block(of(32), of(33))
        );
    }
}
