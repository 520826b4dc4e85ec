//! libiscsi: logical units of iSCSI targets, by libiscsi, without a device of this machine.
//!
//! Invariant: the library is used by the job's thread alone; it sends and receives while the engine waits.

use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::time::Duration;

use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, Geometry, Need,
    NoGeometry, Op, Queueing, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::library::iscsi::{self, BlockCommand, Unit};
use fiord_sys::library::patience::wait_for;
use fiord_sys::library::{HandOver, Part};

use crate::boxed::BoxedQueued;
use crate::ceph::name;
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::library_engine::{LibraryEngine, Session, descriptor, sentence, usable};

/// The engine.
#[derive(Debug)]
pub struct Libiscsi;

/// Its tests, on a target of tgt.
const TESTS: &str = "tests/servers/cases/iscsi.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_are_those_of_the_file_behind_the_unit"),
    counts: Tested::By(TESTS, "counts_are_those_of_the_jobs_and_of_the_target"),
    short: Tested::Never("a command is whole, or an error"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "what_is_wrong_is_named_and_a_target_that_is_gone_fails"),
    gone: Tested::By(TESTS, "what_is_wrong_is_named_and_a_target_that_is_gone_fails"),
    stuck: Tested::By(TESTS, "a_target_that_has_stopped_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for Libiscsi {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        geometry: Some(geometry),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random reads of a logical unit, 16 at a time; each colon of a URL is escaped in filename=.",
            commands: "fiord --name=example --ioengine=libiscsi --iodepth=16 --rw=randread --size=16m \\\n    \
                 '--filename=iscsi\\://localhost/iqn.2026-11.example\\:disk/1'",
            needs: &[Need {
                what: "an iSCSI target here named iqn.2026-11.example:disk (package tgt)",
                check: "iscsi-inq iscsi://localhost/iqn.2026-11.example:disk/1",
            }],
        }),
        ..descriptor(
            EngineName::Libiscsi,
            "logical unit of an iSCSI target (libiscsi)",
            Queueing::Queued,
            |_, errno| explain(errno),
        )
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(refused) = usable(job, iscsi::is_available) {
            return visitor.queued::<BoxedQueued<'_>>(Err(refused));
        }
        let session = IscsiSession { units: (0..job.files).map(|_| None).collect() };
        visitor.queued(Ok(BoxedQueued::new(LibraryEngine::new(arena, Box::new(session), false))))
    }
}

/// Logs in to a unit; blocks until its target answers.
fn connect(target: &Path) -> Result<Unit, (Errno, String)> {
    let url = name(target.as_os_str()).unwrap_or_default();
    let opened = wait_for("iscsi_full_connect_sync", move || Unit::open(&url));
    opened.map_err(|error| {
        sentence(error, |call, _| match call {
            "iscsi_parse_full_url" => {
                "the name is not the URL of a unit; set filename=iscsi\\://HOST\\:PORT/TARGET/LUN, each colon escaped".to_string()
            }
            "iscsi_full_connect_sync" => {
                "the target cannot be logged in to; see `iscsi-ls -s iscsi://HOST:PORT`, and the access list of the target"
                    .to_string()
            }
            _ => String::new(),
        })
    })
}

fn geometry(_settings: &EngineSettings, target: &Path) -> Result<Geometry, NoGeometry> {
    match connect(target) {
        Ok(unit) => {
            Ok(Geometry { size_bytes: Some(unit.size_bytes), block_bytes: u64::from(unit.block_bytes) })
        }
        Err((errno, reason)) => Err(NoGeometry { errno, reason }),
    }
}

/// The usual cause of an operation's error.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EREMOTEIO => {
            Some("the unit refuses the command; one that is not thin-provisioned has no trims")
        }
        libc::ECONNRESET => Some("the target has closed the connection; see its log"),
        libc::EBADE => Some("another initiator has reserved the unit"),
        libc::EROFS => Some("the unit is write-protected"),
        libc::EFBIG => Some("a trim has more blocks than a command can name; use a smaller bs="),
        _ => None,
    }
}

/// The units of a job.
struct IscsiSession {
    /// By file.
    units: Box<[Option<Unit>]>,
}

impl IscsiSession {
    /// Serves every connection, of which the last is waited for.
    fn serve(&self, at_most: Duration) -> io::Result<bool> {
        let mut signalled = false;
        let open = self.units.iter().flatten().count();
        for (number, unit) in self.units.iter().flatten().enumerate() {
            // With several units each is waited for in turn, for a moment.
            let wait = match (open, number + 1 == open) {
                (1, _) => at_most,
                (_, true) => at_most.min(Duration::from_millis(1)),
                (_, false) => Duration::ZERO,
            };
            signalled |= unit.serve(wait)?;
        }
        Ok(signalled)
    }
}

impl Session for IscsiSession {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let unit = connect(target.name).map_err(|(_, reason)| io::Error::other(reason))?;
        let place = self.units.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno(libc::EBADF)))?;
        *place = Some(unit);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) {
        if let Some(place) = self.units.get_mut(file as usize) {
            *place = None;
        }
    }

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let command = match op.action {
            Action::Read => BlockCommand::Read,
            Action::Write => BlockCommand::Write,
            Action::Trim | Action::ResetZone => BlockCommand::Unmap,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => BlockCommand::Sync,
        };
        let part = Part { buffer, length_bytes: op.length_bytes, offset_bytes: op.offset_bytes };
        let unit = self.units.get(op.file as usize).and_then(Option::as_ref);
        let aligned = |unit: &&Unit| {
            let block = u64::from(unit.block_bytes);
            op.offset_bytes.is_multiple_of(block) && op.length_bytes.is_multiple_of(block)
        };
        match unit.filter(aligned) {
            // SAFETY: the caller vouches for ticket and memory, and for the life of the session. A block is shorter than
            // 2 GiB, which `usable` checks.
            Some(unit) => unsafe { unit.start(command, part, ticket) },
            None => {
                // SAFETY: the ticket was not used.
                unsafe { HandOver::cancel(ticket) };
                Err(Errno(if unit.is_some() { libc::EINVAL } else { libc::EBADF }))
            }
        }
    }

    fn outcome(&mut self, op: &Op, _part: &mut [u8], result: i64) -> Outcome {
        match result {
            0 => Outcome::whole(op),
            _ => Outcome::from_result(result),
        }
    }

    fn wait(&mut self, _ended: &HandOver, at_most: Duration) -> io::Result<bool> {
        self.serve(at_most)
    }

    fn poll(&mut self, _ended: &HandOver) -> io::Result<()> {
        self.serve(Duration::ZERO).map(drop)
    }

    fn abandon(mut self: Box<Self>) {
        std::mem::take(&mut self.units).into_iter().flatten().for_each(Unit::abandon);
    }
}
