//! pvsync2: one `preadv2` or `pwritev2` of one vector per operation, with the flags that only these two take.
//!
//! Invariant: see `read_write`. A flag that the kernel or the file system does not know fails each operation with
//! `EOPNOTSUPP`, and `nowait` one that would have to wait with `EAGAIN`; the job's error policy decides what follows.

use std::io;

use fiord_options::job::JobOptions;
use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, Queueing};
use fiord_sys::transfer::{self, RwFlags};

use crate::error_hint::TransferFlags;
use crate::read_write::{Calls, Part};
use crate::setup_error::{SetupError, SetupStep};

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// `RWF_HIPRI` on this share of I/Os, in percent.
    pub hipri_percent: u8,
    /// `RWF_UNCACHED` (`RWF_DONTCACHE`).
    pub uncached: bool,
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `RWF_ATOMIC` on writes.
    pub atomic: bool,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.pvsync2;
        let hipri = own.hipri.is_some_and(|flag| flag.0);
        Settings {
            hipri_percent: if hipri { own.hipri_percentage.min(100) as u8 } else { 0 },
            uncached: own.uncached.is_some_and(|value| value != 0),
            nowait: own.nowait.unwrap_or(false),
            atomic: options.access.atomic,
        }
    }

    /// The explanation of an errno by these settings.
    fn explain(&self, errno: i32) -> Option<&'static str> {
        let hipri = self.hipri_percent > 0;
        TransferFlags { nowait: self.nowait, uncached: self.uncached, hipri, atomic: self.atomic }
            .explain(errno)
    }
}

/// The engine.
#[derive(Debug)]
pub struct Pvsync2 {
    flags: RwFlags,
    /// Those that only writes take.
    write_flags: RwFlags,
    hipri: Share,
}

/// The flags that are the same for all operations.
fn flags(settings: &Settings) -> RwFlags {
    let uncached = if settings.uncached { RwFlags::UNCACHED } else { RwFlags::NONE };
    let nowait = if settings.nowait { RwFlags::NOWAIT } else { RwFlags::NONE };
    uncached.with(nowait)
}

impl Pvsync2 {
    #[inline]
    fn next_flags(&mut self) -> RwFlags {
        if self.hipri.next() { self.flags.with(RwFlags::HIPRI) } else { self.flags }
    }
}

impl Calls for Pvsync2 {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        atomic_writes: true,
        explain: |settings, errno| settings.get::<Settings>()?.explain(errno),
        tests: Some(EngineTests::ON_FILES),
        example: Some(Example::plain(
            "Reads that fail instead of waiting for the disk: those of data in the page cache succeed.",
            "fiord --name=example --ioengine=pvsync2 --nowait=1 --ignore_error=EAGAIN \
             --invalidate=0 --rw=randread --bs=4k --size=16m",
        )),
        ..EngineDescriptor::of(EngineName::Pvsync2, "preadv2 and pwritev2", Queueing::Synchronous)
    };

    fn new(settings: &Settings, _files: usize) -> Result<Pvsync2, SetupError> {
        transfer::try_preadv2().map_err(|error| SetupError::new(SetupStep::Preadv2, &error))?;
        let write_flags = if settings.atomic { RwFlags::ATOMIC } else { RwFlags::NONE };
        Ok(Pvsync2 { flags: flags(settings), write_flags, hipri: Share::new(settings.hipri_percent) })
    }

    #[inline]
    unsafe fn read(&mut self, part: Part) -> io::Result<usize> {
        let flags = self.next_flags();
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::preadv2(part.fd, &part.vector(), part.offset_bytes, flags) }
    }

    #[inline]
    unsafe fn write(&mut self, part: Part) -> io::Result<usize> {
        let flags = self.next_flags().with(self.write_flags);
        // SAFETY: the caller vouches for the part.
        unsafe { transfer::pwritev2(part.fd, &part.vector(), part.offset_bytes, flags) }
    }
}

/// True for a share of calls, distributed without a period that a workload could have: multiples of the golden ratio
/// fill the interval from 0 to 1 evenly.
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
    fn a_share_has_no_period_of_alternating_operations() {
        let mut share = Share::new(50);
        let of_even = (0..10_000).filter(|question| share.next() && question % 2 == 0).count();
        assert!((2_400..=2_600).contains(&of_even), "{of_even} of 5000");
    }

    #[test]
    fn settings_become_flags() {
        let settings = Settings { hipri_percent: 100, uncached: true, nowait: true, atomic: true };
        let mut calls = Pvsync2::new(&settings, 1).unwrap();
        let expected = libc::RWF_DONTCACHE | libc::RWF_NOWAIT | libc::RWF_HIPRI;
        assert_eq!(calls.next_flags(), RwFlags(expected));
        assert_eq!(calls.write_flags, RwFlags(libc::RWF_ATOMIC), "which reads do not take");
        assert_eq!(flags(&Settings::default()), RwFlags::NONE);
    }
}
