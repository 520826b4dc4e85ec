//! gfapi: files of a GlusterFS volume, by libgfapi, without a mount, one operation at a time.
//!
//! Invariant: the library has no memory of the job. Its synchronous calls wait for an asynchronous one themselves, and could
//! not be given up when the volume stops answering, so that the engine does the waiting.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, Example, FileIndex, Op, Queueing};
use fiord_sys::errno::Errno;
use fiord_sys::library::{HandOver, gluster};
use fiord_sys::signal;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::gluster::{Settings, TESTED, VOLUME, VolumeFiles, command, explain, outcome};
use crate::library_engine::{GRACE, LOOK_EVERY, descriptor, usable};

/// The engine.
#[derive(Debug)]
pub struct Gfapi;

impl EngineDefinition for Gfapi {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random writes to a file of a volume.",
            commands: "fiord --name=example --ioengine=gfapi --volume=example --brick=$(hostname) --rw=randwrite --size=16m",
            needs: VOLUME,
        }),
        ..descriptor(
            EngineName::Gfapi,
            "files of a GlusterFS volume (libgfapi)",
            Queueing::Synchronous,
            |_, errno| explain(errno),
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(refused) = usable(job, gluster::is_available) {
            return visitor.synchronous::<BoxedSync<'_>>(Err(refused));
        }
        let engine = GfapiEngine::new(settings, job.files, arena);
        visitor.synchronous(Ok(BoxedSync::new(engine)))
    }
}

/// The engine, set up.
struct GfapiEngine<'arena> {
    files: VolumeFiles,
    hand_over: Arc<HandOver>,
    /// What the library transfers. Not the job's buffer, which the job gets back even if the library never ends the
    /// operation.
    bounce: Vec<u8>,
    /// The library still has an operation, which was given up.
    has_given_up: bool,
    arena: Arena<'arena>,
}

impl<'arena> GfapiEngine<'arena> {
    fn new(settings: &Settings, files: usize, arena: Arena<'arena>) -> GfapiEngine<'arena> {
        GfapiEngine {
            files: VolumeFiles::new(settings, files),
            hand_over: HandOver::new(1),
            bounce: vec![0; arena.stride_bytes()],
            has_given_up: false,
            arena,
        }
    }

    /// The result of the operation that was started; `None` if it was given up, because the run was requested to stop.
    fn result(&self) -> Option<i64> {
        let mut stalled_since = None;
        while !self.hand_over.has_ended() {
            self.hand_over.wait(Some(LOOK_EVERY));
            if signal::stop_requested().is_some() {
                let since = *stalled_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= GRACE {
                    return None;
                }
            }
        }
        let mut ended = None;
        self.hand_over.take(|_, result| ended = Some(result));
        ended
    }
}

impl Drop for GfapiEngine<'_> {
    fn drop(&mut self) {
        if self.has_given_up {
            std::mem::forget(std::mem::take(&mut self.bounce));
            self.files.abandon();
        }
    }
}

impl<'arena> Engine<'arena> for GfapiEngine<'arena> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        self.files.open(file, target)
    }

    fn detach(&mut self, file: FileIndex) {
        if !self.has_given_up {
            self.files.close(file);
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for GfapiEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let Some(file) = self.files.get(op.file).filter(|_| !self.has_given_up) else {
            return Outcome::Failed(Errno(libc::EBADF));
        };
        let start = to_usize(op.buffer_offset_bytes);
        let part = if op.action.transfers() { start..start + to_usize(op.length_bytes) } else { 0..0 };
        if op.action.sends_buffer() {
            let bytes = ArenaAccess::of(&mut self.arena).bytes_mut(slot);
            self.bounce[part.clone()].copy_from_slice(&bytes[part.clone()]);
        }
        let (command, target) = command(&op, self.bounce[part.clone()].as_mut_ptr());
        // SAFETY: the memory is used by nobody until the operation has ended; if it does not end, the memory is never
        // freed, and no file closed. A block is shorter than 2 GiB, which `usable` checks.
        if let Err(errno) = unsafe { file.start(command, target, self.hand_over.ticket(0)) } {
            return Outcome::Failed(errno);
        }
        let Some(result) = self.result() else {
            self.has_given_up = true;
            return Outcome::Failed(Errno(libc::EINTR));
        };
        if op.action.fills_buffer() && result > 0 {
            let read = start..start + to_usize(result.cast_unsigned()).min(part.len());
            let bytes = ArenaAccess::of(&mut self.arena).bytes_mut(slot);
            bytes[read.clone()].copy_from_slice(&self.bounce[read]);
        }
        outcome(&op, result)
    }
}
