//! Persistent memory: mappings whose stores reach the medium without the kernel, and the instructions that bring them there.
//!
//! Invariant: what was stored before `drain` is durable after it, in a mapping that `map` made.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::MapFlags;

use crate::map::{Mapping, Protection};

/// The instruction that writes a line of the processor's caches back to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// `clwb`: the line may stay in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// `clflushopt`: the line leaves it.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// `clflush`: the same, one line after the other.
    #[cfg(target_arch = "x86_64")]
    Clflush,
    /// `dc cvadp`: to where memory stays even if the memory system fails.
    #[cfg(target_arch = "aarch64")]
    DcCvadp,
    /// `dc cvap`: to where memory outlives a loss of power.
    #[cfg(target_arch = "aarch64")]
    DcCvap,
}

impl WriteBack {
    /// The fastest that this processor has; `None` for ARM before version 8.2, and processors that are neither ARM nor
    /// x86-64, of 64 bits.
    pub fn of_this_processor() -> Option<WriteBack> {
        fastest()
    }
}

/// How data reach persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorePath {
    /// Ordinary stores; then the lines are written back.
    ThroughCaches,
    /// Non-temporal stores, of which ARM has none that are durable.
    PastCaches,
}

/// Maps an open file or device of persistent memory from its start, such that no call of the kernel is needed to make
/// what is stored durable (`MAP_SYNC`).
///
/// # Errors
/// The kernel's: `EOPNOTSUPP` where the file is not in persistent memory, or its file system does not map that directly
/// (DAX).
pub fn map(file: BorrowedFd<'_>, len_bytes: usize, protection: Protection) -> io::Result<Mapping> {
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    Mapping::of_file_with(file, 0, len_bytes, protection, flags)
}

/// Length of a line of the caches.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "the oldest Rust that compiles this has the function as unsafe")]
fn fastest() -> Option<WriteBack> {
    use std::arch::x86_64::__cpuid_count;

    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |number| unsafe { __cpuid_count(number, 0) };
    // Bits 24 and 23 of EBX of leaf 7 stand for the two newer instructions.
    let newer = if leaf(0).eax >= 7 { leaf(7).ebx } else { 0 };
    Some(match ((newer >> 24) & 1, (newer >> 23) & 1) {
        (1, _) => WriteBack::Clwb,
        (_, 1) => WriteBack::ClflushOpt,
        _ => WriteBack::Clflush,
    })
}

#[cfg(target_arch = "aarch64")]
fn fastest() -> Option<WriteBack> {
    const DCPOP: libc::c_ulong = 1 << 16;
    const DCPODP: libc::c_ulong = 1;

    // SAFETY: no memory is passed. The kernel lets programs use the instructions that it names.
    let (first, second) = unsafe { (libc::getauxval(libc::AT_HWCAP), libc::getauxval(libc::AT_HWCAP2)) };
    match (second & DCPODP, first & DCPOP) {
        (0, 0) => None,
        (0, _) => Some(WriteBack::DcCvap),
        _ => Some(WriteBack::DcCvadp),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn fastest() -> Option<WriteBack> {
    None
}

/// Copies to persistent memory. Past the caches go whole lines only: the rest goes through them and is written back.
///
/// # Safety
/// Both are valid for `length` bytes and do not overlap; the processor has the instruction.
#[cfg(target_arch = "x86_64")]
pub unsafe fn store(to: *mut u8, from: *const u8, length: usize, path: StorePath, write_back: WriteBack) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

    let (head, tail) = match path {
        StorePath::ThroughCaches => (length, length),
        StorePath::PastCaches => {
            let head = to.align_offset(LINE_BYTES).min(length);
            (head, length - (length - head) % LINE_BYTES)
        }
    };
    // SAFETY: all ranges are inside those of the caller; the lines between head and tail begin at multiples of their length.
    unsafe {
        store_through_caches(to, from, head, write_back);
        for at in (head..tail).step_by(size_of::<__m128i>()) {
            let part = _mm_loadu_si128(from.add(at).cast());
            _mm_stream_si128(to.add(at).cast(), part);
        }
        store_through_caches(to.add(tail), from.add(tail), length - tail, write_back);
    }
}

/// # Safety
/// As `store`.
#[cfg(target_arch = "x86_64")]
unsafe fn store_through_caches(to: *mut u8, from: *const u8, length: usize, write_back: WriteBack) {
    use std::arch::asm;

    if length == 0 {
        return;
    }
    // SAFETY: as the caller says.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
    let first = to as usize & !(LINE_BYTES - 1);
    for line in (first..to as usize + length).step_by(LINE_BYTES) {
        // SAFETY: the line contains bytes of the range, and the instruction changes no memory.
        unsafe {
            match write_back {
                WriteBack::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
                WriteBack::ClflushOpt => {
                    asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                }
                WriteBack::Clflush => asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)),
            }
        }
    }
}

/// Waits until what this thread has stored is durable.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn drain() {
    // SAFETY: every processor of this kind has the instruction, which orders stores and does no more.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Copies to persistent memory, through the caches.
///
/// # Safety
/// Both are valid for `length` bytes and do not overlap; the processor has the instruction.
#[cfg(target_arch = "aarch64")]
pub unsafe fn store(to: *mut u8, from: *const u8, length: usize, _path: StorePath, write_back: WriteBack) {
    use std::arch::asm;

    let cache_type: usize;
    // SAFETY: as the caller says; every program may read the register, which says how long the shortest line is.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, length);
        asm!("mrs {}, ctr_el0", out(reg) cache_type, options(nomem, nostack, preserves_flags));
    }
    let line_bytes = 4 << ((cache_type >> 16) & 0xf);
    let first = to as usize & !(line_bytes - 1);
    for line in (first..to as usize + length).step_by(line_bytes) {
        // SAFETY: the line contains bytes of the range, and the instruction changes no memory. These are `dc cvadp` and
        // `dc cvap`, by numbers that assemblers for older processors know too.
        unsafe {
            match write_back {
                WriteBack::DcCvadp => {
                    asm!("sys #3, c7, c13, #1, {}", in(reg) line, options(nostack, preserves_flags))
                }
                WriteBack::DcCvap => {
                    asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack, preserves_flags))
                }
            }
        }
    }
}

/// Waits until what this thread has stored is durable.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn drain() {
    // SAFETY: every processor of this kind has the instruction, which waits for stores and write-backs.
    unsafe { std::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
}

/// Copies; there is no `WriteBack` that could be passed.
///
/// # Safety
/// Both are valid for `length` bytes and do not overlap.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn store(to: *mut u8, from: *const u8, length: usize, _path: StorePath, _write_back: WriteBack) {
    // SAFETY: as the caller says.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) }
}

/// Does nothing: nothing can have been stored.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn drain() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;
    use std::os::fd::AsFd;

    #[cfg(target_arch = "x86_64")]
    const OLDEST: WriteBack = WriteBack::Clflush;
    #[cfg(target_arch = "aarch64")]
    const OLDEST: WriteBack = WriteBack::DcCvap;

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn all_bytes_are_stored_and_none_beside_them() {
        let Some(fastest) = WriteBack::of_this_processor() else { return };
        let from: Vec<u8> = (0..600).map(|number| (number % 251) as u8).collect();
        let mut to = vec![0xee_u8; 1024];
        let places = [(0, 600), (1, 0), (7, 1), (60, 8), (63, 66), (64, 64), (65, 500), (3, 60), (0, 128)];
        for path in [StorePath::ThroughCaches, StorePath::PastCaches] {
            for write_back in [fastest, OLDEST] {
                for (start, length) in places {
                    to.fill(0xee);
                    // SAFETY: both ranges are inside their vectors; the processor has the instruction.
                    unsafe { store(to.as_mut_ptr().add(start), from.as_ptr(), length, path, write_back) };
                    drain();
                    let what = format!("{length} bytes at {start}, {path:?}, {write_back:?}");
                    assert_eq!(to[start..start + length], from[..length], "{what}");
                    let mut beside = to[..start].iter().chain(&to[start + length..]);
                    assert!(beside.all(|&byte| byte == 0xee), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_file_on_an_ordinary_file_system_is_refused() {
        let temp = TempFile::new("persistent");
        crate::file::truncate(&temp.file, 8192).unwrap();
        let error = map(temp.file.as_fd(), 8192, Protection::ReadWrite).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
