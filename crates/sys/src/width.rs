//! Conversions between the integers of plans, of memory and of the kernel, whose widths and signs differ.
//!
//! Invariant: none has a branch. What does not fit is the nearest number that does, and never another, unless it is said that
//! only some of the bits are wanted.

use std::ffi::c_int;

/// A length or a place in memory. All of them fit on processors of 64 bits; on others what does not is beyond all memory, and
/// is refused like any other place that does not exist.
#[inline]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A number of things in memory, or the length of a structure.
#[inline]
pub fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The same, for what takes it as an `int`.
#[inline]
pub(crate) fn to_c_int(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// What the kernel counts in a signed number, although it is never below zero.
#[inline]
pub(crate) fn to_u64<T>(count: T) -> u64
where
    u64: TryFrom<T>,
{
    u64::try_from(count).unwrap_or(0)
}

/// The lower half.
#[inline]
pub const fn low_u32(bits: u64) -> u32 {
    (bits & 0xffff_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_nearest_number_and_never_another() {
        assert_eq!((to_u32(7), to_c_int(7), to_usize(7), to_u64(7_i32)), (7, 7, 7, 7));
        assert_eq!((to_u32(usize::MAX), to_c_int(usize::MAX)), (u32::MAX, c_int::MAX));
        assert_eq!((to_usize(u64::MAX), to_u64(-1_i64)), (usize::MAX, 0));
        assert_eq!(low_u32(0x0123_4567_89ab_cdef), 0x89ab_cdef);
    }
}
