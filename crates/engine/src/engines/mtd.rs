//! mtd: reads, writes and erasures of raw flash memory (`/dev/mtdN`).
//!
//! Invariant: a trim erases whole erase blocks, or fails. A write changes only what was erased before; that it is, is up to
//! the job (`rw=trimwrite`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Geometry,
    Need, NoGeometry, Op, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::mtd::{self, Flash};
use fiord_sys::transfer;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};

/// The engine.
#[derive(Debug)]
pub struct Mtd;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// I/Os on bad blocks count as done.
    pub skips_bad_blocks: bool,
}

/// The size of a flash device, and the unit that is written.
fn geometry(_settings: &EngineSettings, path: &Path) -> Result<Geometry, NoGeometry> {
    let failed = |error: io::Error| {
        let errno = Errno::of(&error).unwrap_or(Errno(libc::EIO));
        let reason = match errno.0 {
            libc::ENOTTY | libc::EINVAL => "the engine mtd needs a flash device (/dev/mtdN)".to_string(),
            _ => format!("{errno}: the flash device cannot be opened"),
        };
        NoGeometry { errno, reason }
    };
    let flash = mtd::flash(File::open(path).map_err(failed)?).map_err(failed)?;
    Ok(Geometry { size_bytes: Some(flash.size_bytes), block_bytes: flash.write_bytes })
}

/// The explanation of an errno of a transfer.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EIO => Some("a bad block, or one that was not erased; skip_bad=1 passes over bad blocks"),
        libc::EBADMSG => Some("the flash device read more wrong bits than it can correct"),
        libc::EROFS => Some("the flash device is write-protected"),
        _ => None,
    }
}

/// Its tests, on flash that the guest simulates.
const TESTS: &str = "tests/guest/cases/commands.rs";
const SHARED: &str = "tests/guest/cases/shared.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "flash_is_written_erased_and_verified_as_by_fio"),
    counts: Tested::By(TESTS, "flash_is_written_erased_and_verified_as_by_fio"),
    short: Tested::Never("a call does all of its range, or fails"),
    interrupted: Tested::Never("the kernel does not interrupt its calls"),
    error: Tested::By(SHARED, "a_bad_block_of_flash_ends_the_job_or_is_skipped"),
    gone: Tested::Never("the kernel does not let go of flash that a file is open on"),
    stuck: Tested::Never("flash in memory, as the guest has it, answers at once"),
    given_back: Tested::By(SHARED, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for Mtd {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(TESTED),
        example: Some(Example {
            text: "Erasures and writes of flash memory, block by block.",
            commands: "fiord --name=example --ioengine=mtd --filename=/dev/mtd0 --rw=trimwrite --bs=128k --size=1m",
            needs: &[Need {
                what: "flash in memory as /dev/mtd0 (modprobe mtdram)",
                check: "grep -q mtdram /sys/class/mtd/mtd0/name",
            }],
        }),
        files: FileUse::Device,
        geometry: Some(geometry),
        settings: |options: &JobOptions| {
            EngineSettings::new(Settings { skips_bad_blocks: options.mtd.skip_bad })
        },
        explain: |_, errno| explain(errno),
        ..EngineDescriptor::synchronous(EngineName::Mtd, "raw flash memory; trims erase it")
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let engine = MtdEngine { targets: vec![None; job.files].into(), settings: *settings, arena };
        visitor.synchronous(Ok(BoxedSync::new(engine)))
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct MtdEngine<'arena> {
    targets: Box<[Option<(RawFd, Flash)>]>,
    settings: Settings,
    arena: Arena<'arena>,
}

/// Whether one of the erase blocks of an operation is bad.
fn is_on_bad_block(fd: RawFd, flash: &Flash, op: &Op) -> io::Result<bool> {
    let first = op.offset_bytes / flash.erase_bytes;
    let end = op.offset_bytes.saturating_add(op.length_bytes).div_ceil(flash.erase_bytes);
    for block in first..end {
        if mtd::is_bad(fd, block * flash.erase_bytes)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'arena> Engine<'arena> for MtdEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        let flash = mtd::flash(fd)?;
        let place = self.targets.get_mut(file as usize);
        *place.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))? = Some((fd.as_raw_fd(), flash));
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        if let Some(place) = self.targets.get_mut(file as usize) {
            *place = None;
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for MtdEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let Some((fd, flash)) = self.targets.get(op.file as usize).copied().flatten() else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        if self.settings.skips_bad_blocks && op.action.direction().is_some() {
            match is_on_bad_block(fd, &flash, &op) {
                Ok(false) => {}
                Ok(true) => return Outcome::whole(&op),
                Err(error) => return Outcome::from(Err::<(), _>(error)),
            }
        }
        let (index, length) = (slot.number(), to_usize(op.length_bytes));
        match op.action {
            Action::Read => {
                let part = self.arena.part(index, &op);
                // SAFETY: the part is inside the slot's buffer, and the slot is borrowed mutably until the call is over.
                unsafe { transfer::pread(fd, part, length, op.offset_bytes) }.into()
            }
            Action::Write => {
                let part = self.arena.part(index, &op);
                // SAFETY: as above.
                unsafe { transfer::pwrite(fd, part, length, op.offset_bytes) }.into()
            }
            Action::Trim => mtd::erase(fd, op.offset_bytes, op.length_bytes).map(|()| op.length_bytes).into(),
            Action::ResetZone => Outcome::Failed(Errno(libc::EOPNOTSUPP)),
            // A write has reached the flash when it returns, and the device has no fsync.
            Action::Sync | Action::DataSync | Action::RangeSync(_) => Outcome::Done(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_flash() {
        let settings = EngineSettings::new(Settings::default());
        let refused = geometry(&settings, Path::new("/proc/self/exe")).unwrap_err();
        assert!(refused.reason.contains("/dev/mtdN"), "{refused:?}");
    }
}
