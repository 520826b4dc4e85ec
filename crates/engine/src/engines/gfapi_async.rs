//! gfapi_async: files of a GlusterFS volume, by the asynchronous calls of libgfapi, without a mount.
//!
//! Invariant: threads of the library hand over what has ended (`HandOver`).

use std::ffi::c_void;
use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, Example, FileIndex, Op, Queueing};
use fiord_sys::errno::Errno;
use fiord_sys::library::{HandOver, gluster};

use crate::boxed::BoxedQueued;
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::gluster::{Settings, TESTED, VOLUME, VolumeFiles, command, explain, outcome};
use crate::library_engine::{LibraryEngine, Session, descriptor, usable};

/// The engine.
#[derive(Debug)]
pub struct GfapiAsync;

impl EngineDefinition for GfapiAsync {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random writes to a file of a volume, 16 at a time.",
            commands: "fiord --name=example --ioengine=gfapi_async --volume=example --brick=$(hostname) --iodepth=16 --rw=randwrite --size=16m",
            needs: VOLUME,
        }),
        ..descriptor(
            EngineName::GfapiAsync,
            "files of a GlusterFS volume (libgfapi), queued",
            Queueing::Queued,
            |_, errno| explain(errno),
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(refused) = usable(job, gluster::is_available) {
            return visitor.queued::<BoxedQueued<'_>>(Err(refused));
        }
        let session = Box::new(VolumeSession { files: VolumeFiles::new(settings, job.files) });
        visitor.queued(Ok(BoxedQueued::new(LibraryEngine::new(arena, session, false))))
    }
}

/// One volume.
struct VolumeSession {
    files: VolumeFiles,
}

impl Session for VolumeSession {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        self.files.open(file, target)
    }

    fn close(&mut self, file: FileIndex) {
        self.files.close(file);
    }

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let (command, part) = command(op, buffer);
        match self.files.get(op.file) {
            // SAFETY: the caller vouches for ticket and memory, and for the life of the session. A block is shorter than
            // 2 GiB, which `usable` checks.
            Some(file) => unsafe { file.start(command, part, ticket) },
            None => {
                // SAFETY: the ticket was not used.
                unsafe { HandOver::cancel(ticket) };
                Err(Errno(libc::EBADF))
            }
        }
    }

    fn outcome(&mut self, op: &Op, _part: &mut [u8], result: i64) -> Outcome {
        outcome(op, result)
    }

    fn abandon(mut self: Box<Self>) {
        self.files.abandon();
    }
}
