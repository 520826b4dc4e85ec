//! e4defrag: each write exchanges the blocks of its range with newly allocated ones of a donor file, as the online
//! defragmentation of ext4 does; the data stays the same.
//!
//! Invariant: no buffer is touched. Reads and trims fail with `EINVAL`, as in fio.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use fiord_options::engine;
use fiord_options::job::JobOptions;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineOutput, EngineSettings, EngineTests, Example, FileIndex,
    FileUse, MissingSetting, Need, Op, Tested,
};
use fiord_sys::errno::{Errno, Explained};
use fiord_sys::extents::exchange_blocks;
use fiord_sys::resize::{Allocation, fallocate, ftruncate};

use crate::attached_files::AttachedFiles;
use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::sync_and_trim;

/// The engine.
#[derive(Debug)]
pub struct E4defrag;

/// Its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    donor: Option<PathBuf>,
    /// Whether the donor has blocks only during an I/O.
    in_place: bool,
}

impl Settings {
    fn of(options: &JobOptions) -> Settings {
        let own = &options.e4defrag;
        let donor = own.donorname.as_ref().map(|name| PathBuf::from(&name.0));
        Settings { donor, in_place: own.inplace }
    }

    fn missing(&self) -> Option<MissingSetting> {
        self.donor.is_none().then_some(MissingSetting {
            option: engine::E4defrag::donorname,
            message: "ioengine=e4defrag needs a file to exchange blocks with, whose contents are lost",
            remedy: "name a new one on the same file system, for example donorname=donor",
        })
    }

    fn outputs(&self) -> Vec<EngineOutput> {
        let option = engine::E4defrag::donorname;
        self.donor
            .iter()
            .map(|path| EngineOutput { path: path.clone(), option, is_kept: true, is_given: true })
            .collect()
    }
}

/// The explanation of an errno of an I/O.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EBUSY => Some(
            "pages of the file are in use: sync it before the run (sync FILE), and let no other job use it or the donor",
        ),
        libc::EINVAL => Some(
            "the engine e4defrag has writes only (rw=write or rw=randwrite), and donorname must name a file on the same \
             file system",
        ),
        libc::ENOTTY | libc::EOPNOTSUPP => Some("the file system is not ext4, or its files have no extents"),
        _ => None,
    }
}

const EXT4: Need = Need { what: "a directory on ext4", check: "test \"$(stat -f -c %T .)\" = ext2/ext3" };

const TESTS: &str = "crates/fiord/tests/e4defrag.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "blocks_are_exchanged_and_the_data_stays"),
    counts: Tested::By(TESTS, "blocks_are_exchanged_and_the_data_stays"),
    short: Tested::Never("the kernel exchanges all blocks of a range, or fails"),
    interrupted: Tested::Never("the kernel does not interrupt its calls"),
    error: Tested::By(TESTS, "what_cannot_be_exchanged_is_an_error_with_its_reason"),
    gone: Tested::By(TESTS, "a_file_system_that_shuts_down_ends_the_job_and_no_other"),
    stuck: Tested::By(TESTS, "a_frozen_file_system_does_not_hold_up_the_end"),
    given_back: Tested::Together,
};

impl EngineDefinition for E4defrag {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Resized,
        settings: |options| EngineSettings::new(Settings::of(options)),
        missing: |settings| settings.get::<Settings>()?.missing(),
        outputs: |settings, _| settings.get::<Settings>().map(Settings::outputs).unwrap_or_default(),
        explain: |_, errno| explain(errno),
        tests: Some(TESTED),
        example: Some(Example {
            text: "The blocks of a file exchanged with new ones, 64 KiB at a time.",
            commands: "fiord --name=data --filename=data --rw=write --bs=64k --size=16m --end_fsync=1\n\
                       fiord --name=example --ioengine=e4defrag --filename=data --donorname=donor --inplace=1 --rw=write \
                       --bs=64k --size=16m",
            needs: &[EXT4],
        }),
        ..EngineDescriptor::synchronous(EngineName::E4defrag, "exchanges of blocks with a donor, on ext4")
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let (in_place, files) = (settings.in_place, AttachedFiles::new(job.files));
        visitor.synchronous(Ok(BoxedSync::new(Exchanges {
            in_place,
            donor: None,
            block_bytes: 1,
            files,
            arena,
        })))
    }
}

/// The engine, set up.
#[derive(Debug)]
struct Exchanges<'arena> {
    in_place: bool,
    donor: Option<File>,
    /// The unit of the file system.
    block_bytes: u64,
    files: AttachedFiles,
    arena: Arena<'arena>,
}

impl Exchanges<'_> {
    /// The donor's descriptor, or -1 without one.
    fn donor(&self) -> RawFd {
        self.donor.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Exchanges the blocks of an operation's range.
    fn exchange(&self, op: &Op) -> io::Result<u64> {
        let (fd, donor) = (self.files.get(op.file), self.donor());
        if self.in_place {
            fallocate(donor, Allocation::Extend, op.offset_bytes, op.length_bytes)?;
        }
        let end_bytes = op.offset_bytes + op.length_bytes;
        let first = op.offset_bytes / self.block_bytes;
        let exchanged = exchange_blocks(fd, donor, first, end_bytes.div_ceil(self.block_bytes) - first);
        if self.in_place {
            ftruncate(donor, 0)?;
        }
        let reached_bytes = (first + exchanged?) * self.block_bytes;
        Ok(reached_bytes.clamp(op.offset_bytes, end_bytes) - op.offset_bytes)
    }
}

impl<'arena> Engine<'arena> for Exchanges<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)?;
        if let Some(donor) = &self.donor {
            let found = donor.metadata()?;
            let own = File::from(fd.try_clone_to_owned()?).metadata()?;
            if (found.dev(), found.ino()) == (own.dev(), own.ino()) {
                let why = "it is the file that donorname names, whose contents would be lost; name a new one";
                return Err(Explained::with(&Errno(libc::EINVAL).into(), why));
            }
            self.block_bytes = found.blksize();
            if !self.in_place {
                fallocate(donor.as_raw_fd(), Allocation::Extend, 0, length_bytes)?;
            }
        }
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.files.detach(file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }

    fn take_output(&mut self, _number: usize, file: File) {
        self.donor = Some(file);
    }
}

impl<'arena> SyncEngine<'arena> for Exchanges<'arena> {
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        match op.action {
            Action::Write => self.exchange(&op).into(),
            Action::Read | Action::Trim | Action::ResetZone => Outcome::Failed(Errno(libc::EINVAL)),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                sync_and_trim::execute(self.files.get(op.file), &op)
            }
        }
    }
}
