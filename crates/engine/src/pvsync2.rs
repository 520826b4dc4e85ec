//! pvsync2: one `preadv2` or `pwritev2` of one vector per operation, with the flags that only these two take.
//!
//! Invariant: see `blocking`. A flag that the kernel or the file system does not know fails each operation with
//! `EOPNOTSUPP`, and `nowait` one that would have to wait with `EAGAIN`: what that means is for the job's error policy
//! to say.

use std::io;

use fiord_plan::Pvsync2 as Settings;
use fiord_sys::transfer::{self, RwFlags};

use crate::blocking::{Blocking, Calls, Part};
use crate::contract::{Arena, Info};

/// The engine.
pub type Pvsync2 = Blocking<Pvsync2Calls>;

/// Its calls.
#[derive(Debug)]
pub struct Pvsync2Calls {
    flags: RwFlags,
    hipri: Share,
}

impl Pvsync2 {
    /// With these settings, over these buffers, for so many files.
    pub fn new(settings: &Settings, arena: Arena, files: usize) -> Pvsync2 {
        let calls = Pvsync2Calls { flags: flags(settings), hipri: Share::new(settings.hipri_percent) };
        Blocking::with_calls(calls, arena, files)
    }
}

/// The flags that are the same for all operations.
fn flags(settings: &Settings) -> RwFlags {
    let uncached = if settings.uncached { RwFlags::UNCACHED } else { RwFlags::NONE };
    let nowait = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
    uncached.with(nowait)
}

impl Pvsync2Calls {
    #[inline]
    fn next_flags(&mut self) -> RwFlags {
        if self.hipri.next() { self.flags.with(RwFlags::HIPRI) } else { self.flags }
    }
}

impl Calls for Pvsync2Calls {
    const INFO: Info = Info { name: "pvsync2", summary: "preadv2 and pwritev2", queued: false };

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        let flags = self.next_flags();
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::preadv2(part.fd, &part.vector(), part.offset_bytes, flags) }
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        let flags = self.next_flags();
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::pwritev2(part.fd, &part.vector(), part.offset_bytes, flags) }
    }
}

/// Says yes to a share of questions, spread so that it follows no period a workload has: multiples of the golden
/// ratio fill the interval from 0 to 1 evenly and never in step.
#[derive(Debug)]
struct Share {
    percent: u64,
    position: u32,
}

impl Share {
    fn new(percent: u8) -> Share {
        Share { percent: u64::from(percent), position: 0 }
    }

    #[inline]
    fn next(&mut self) -> bool {
        const GOLDEN_RATIO: u32 = 0x9E37_79B9;
        self.position = self.position.wrapping_add(GOLDEN_RATIO);
        (u64::from(self.position) * 100) >> 32 < self.percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept() {
        for percent in [0, 1, 50, 99, 100] {
            let mut share = Share::new(percent);
            let yes = (0..10_000).filter(|_| share.next()).count() as i64;
            assert!((yes - i64::from(percent) * 100).abs() <= 5, "{percent} %: {yes} of 10000");
        }
    }

    #[test]
    fn a_share_does_not_keep_step_with_alternating_operations() {
        let mut share = Share::new(50);
        let of_even = (0..10_000).filter(|question| share.next() && question % 2 == 0).count();
        assert!((2_400..=2_600).contains(&of_even), "{of_even} of 5000");
    }

    #[test]
    fn settings_become_flags() {
        let settings = Settings { hipri_percent: 100, uncached: true, nowait: true };
        let mut calls = Pvsync2Calls { flags: flags(&settings), hipri: Share::new(100) };
        let expected = libc::RWF_DONTCACHE | libc::RWF_NOWAIT | libc::RWF_HIPRI;
        assert_eq!(calls.next_flags(), RwFlags(expected));
        assert_eq!(flags(&Settings::default()), RwFlags::NONE);
    }
}
