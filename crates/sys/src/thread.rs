//! The calling thread: where it runs, with what priority, as whom, and what it has used.
//!
//! Invariant: every function acts on the calling thread alone, never on the whole process.
use crate::errno::check_long;
use std::io;

/// Most processors a mask can hold here.
const MASK_WORDS: usize = 128;

/// Binds the calling thread to these processors.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mask = mask_of(cpus)?;
    let call = libc::SYS_sched_setaffinity;
    // SAFETY: the kernel reads the mask's bytes; thread 0 is the caller.
    check_long(unsafe { libc::syscall(call, 0, size_of_val(&mask), mask.as_ptr()) }).map(drop)
}

/// The processors the calling thread may run on, in order.
pub fn affinity() -> io::Result<Vec<u32>> {
    let mut mask = [0 as libc::c_ulong; MASK_WORDS];
    let call = libc::SYS_sched_getaffinity;
    // SAFETY: the kernel writes at most the mask's bytes; thread 0 is the caller.
    check_long(unsafe { libc::syscall(call, 0, size_of_val(&mask), mask.as_mut_ptr()) })?;
    Ok(members_of(&mask))
}

fn mask_of(members: &[u32]) -> io::Result<[libc::c_ulong; MASK_WORDS]> {
    let mut mask = [0; MASK_WORDS];
    for &member in members {
        let word = mask.get_mut((member / libc::c_ulong::BITS) as usize);
        *word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))? |=
            1 << (member % libc::c_ulong::BITS);
    }
    Ok(mask)
}

fn members_of(mask: &[libc::c_ulong]) -> Vec<u32> {
    let bits = mask.len() as u32 * libc::c_ulong::BITS;
    let is_set =
        |bit: &u32| mask[(bit / libc::c_ulong::BITS) as usize] >> (bit % libc::c_ulong::BITS) & 1 == 1;
    (0..bits).filter(is_set).collect()
}
