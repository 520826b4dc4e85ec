//! A test engine under the name libhdfs, which fiord will not have: its targets are volumes in memory, which it opens
//! by their names.
//!
//! Invariant: a volume has `VOLUME_BYTES` and blocks of `BLOCK_BYTES`; one whose name begins with "absent" cannot be
//! reached. The first operation on one that "breaks" never ends, and the second fails.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fiord_engine::{
    Arena, ArenaAccess, BoxedQueued, BoxedSync, Completion, Engine, EngineDefinition, NamedTarget, Outcome,
    QueuedEngine, Setup, Slot, SyncEngine, Visitor, Wait,
};
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, FileIndex, FileUse, Geometry, NoGeometry, Op,
    Queueing,
};
use fiord_sys::errno::Errno;

/// Bytes of a volume.
pub const VOLUME_BYTES: u64 = 1 << 20;

/// Unit of its offsets and lengths.
pub const BLOCK_BYTES: u64 = 512;

/// The contents of all volumes, by name.
static VOLUMES: Mutex<Option<HashMap<PathBuf, Vec<u8>>>> = Mutex::new(None);

/// Calls `work` with the contents of a volume.
pub fn with_volume<R>(name: &Path, work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut volumes = VOLUMES.lock().unwrap_or_else(PoisonError::into_inner);
    let volumes = volumes.get_or_insert_default();
    work(volumes.entry(name.to_path_buf()).or_insert_with(|| vec![0; VOLUME_BYTES as usize]))
}

/// The engine.
#[derive(Debug)]
pub struct Volume;

impl EngineDefinition for Volume {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Named,
        geometry: Some(geometry),
        ..EngineDescriptor::of(EngineName::Libhdfs, "volumes of a test", Queueing::ByDepth)
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        let depth = arena.count();
        let engine =
            VolumeEngine { arena, open: HashMap::new(), ended: Vec::new(), kept: Vec::new(), queued: 0 };
        match depth {
            1 => visitor.synchronous(Ok(BoxedSync::new(engine))),
            _ => visitor.queued(Ok(BoxedQueued::new(engine))),
        }
    }
}

fn geometry(_settings: &EngineSettings, target: &Path) -> Result<Geometry, NoGeometry> {
    match target.to_string_lossy().starts_with("absent") {
        true => Err(NoGeometry { errno: Errno::EIO, reason: "no such volume".to_string() }),
        false => Ok(Geometry { size_bytes: Some(VOLUME_BYTES), block_bytes: BLOCK_BYTES }),
    }
}

/// The engine, set up.
struct VolumeEngine<'arena> {
    arena: Arena<'arena>,
    open: HashMap<FileIndex, PathBuf>,
    ended: Vec<Completion<'arena>>,
    /// Those of operations that never end.
    kept: Vec<Slot<'arena>>,
    queued: u32,
}

impl<'arena> VolumeEngine<'arena> {
    fn transfer(&mut self, op: &Op, slot: &mut Slot<'arena>) -> Outcome {
        let name = self.open[&op.file].clone();
        let start = op.buffer_offset_bytes as usize;
        let length = op.length_bytes as usize;
        let bytes = &mut ArenaAccess::of(&mut self.arena).bytes_mut(slot)[start..start + length];
        let at = op.offset_bytes as usize;
        with_volume(&name, |volume| match op.action {
            Action::Read => bytes.copy_from_slice(&volume[at..at + length]),
            Action::Write => volume[at..at + length].copy_from_slice(bytes),
            Action::Trim | Action::ResetZone => volume[at..at + length].fill(0),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => {}
        });
        Outcome::whole(op)
    }
}

impl<'arena> Engine<'arena> for VolumeEngine<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Err(Errno::EINVAL.into())
    }

    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        if target.length_bytes > VOLUME_BYTES {
            return Err(io::Error::other("the volume is shorter than that"));
        }
        if target.name.to_string_lossy().starts_with("closed") {
            return Err(io::Error::other("the volume is closed; open it"));
        }
        self.open.insert(file, target.name.to_path_buf());
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.open.remove(&file);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for VolumeEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        self.transfer(&op, slot)
    }
}

impl<'arena> QueuedEngine<'arena> for VolumeEngine<'arena> {
    fn queue(&mut self, op: Op, mut slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        self.queued += 1;
        let breaks = self.open[&op.file].to_string_lossy().starts_with("breaks");
        let outcome = match (breaks, self.kept.len(), self.ended.len()) {
            (true, 0, _) => {
                self.kept.push(slot);
                return Ok(());
            }
            (true, _, 0) => Outcome::Failed(Errno::ENOTCONN),
            _ => self.transfer(&op, &mut slot),
        };
        self.ended.push(Completion { slot, outcome });
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        Ok(std::mem::take(&mut self.queued))
    }

    fn reap(
        &mut self,
        _min: u32,
        max: u32,
        wait: Wait,
        done: &mut Vec<Completion<'arena>>,
    ) -> io::Result<()> {
        if self.ended.is_empty() && wait == Wait::Block {
            std::thread::sleep(Duration::from_millis(10));
        }
        let count = self.ended.len().min(max as usize);
        done.extend(self.ended.drain(..count));
        Ok(())
    }
}
