//! Helpers of the engine tests: a machine that runs operations on either kind of engine, and places to run them on.
//!
//! Invariant: a place or engine that this system does not have is a skip, recorded and counted, never a silent pass.

pub mod engines;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fiord_engine::{Arena, Completion, Outcome, QueuedEngine, SetupError, Slot, SyncEngine};
use fiord_plan::{Action, Direction, Op};
use fiord_sys::memory::{MemorySource, Region};

/// Bytes of one buffer, and of one block.
pub const BLOCK_BYTES: u64 = 4096;
/// Buffers of every machine.
pub const DEPTH: u32 = 8;
/// Maximum number of files of every machine.
pub const FILES: usize = 2;
/// Bytes of every file.
pub const FILE_BYTES: u64 = 64 * BLOCK_BYTES;

static NEXT_FILE: AtomicU32 = AtomicU32::new(0);

/// Records that this part of a test cannot run here.
#[track_caller]
pub fn skip(what: &str, why: &dyn std::fmt::Display) {
    fiord_testing::skipped(format_args!("{what}: {why}"));
}

/// `DEPTH` buffers of one block.
pub fn with_arena<R>(body: impl for<'arena> FnOnce(Arena<'arena>) -> R) -> R {
    let bytes = Arena::region_bytes(DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize);
    let region = Region::allocate(&MemorySource::Mmap, bytes, BLOCK_BYTES as usize).unwrap();
    Arena::with(region, DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize, body)
}

/// Either kind of engine, driven the same way.
pub trait Machine {
    /// Opens file 0.
    fn attach(&mut self, file: &File);
    /// Closes file 0.
    fn detach(&mut self);
    /// Fills a buffer.
    fn fill(&mut self, buffer: usize, byte: u8);
    /// Copies a buffer out.
    fn bytes(&mut self, buffer: usize) -> Vec<u8>;
    /// Runs at most `DEPTH` operations, the n-th on buffer n, all in flight at once if the engine supports it.
    fn run(&mut self, ops: &[Op]) -> Vec<Outcome>;

    /// Runs one operation on buffer 0.
    fn one(&mut self, op: Op) -> Outcome {
        self.run(&[op])[0]
    }
}

/// Whether an engine was tested, or why this machine has none.
pub type Tested = Result<(), SetupError>;

/// A test on a machine.
pub type Test<'a> = &'a mut dyn FnMut(&mut dyn Machine);

/// Tests a synchronous engine.
pub fn synchronous<'arena, E: SyncEngine<'arena>>(engine: Result<E, SetupError>, test: Test<'_>) -> Tested {
    let mut engine = engine?;
    let slots = engine.arena().slots();
    test(&mut Synchronous { engine, slots });
    Ok(())
}

/// Tests a queued engine.
pub fn queued<'arena, E: QueuedEngine<'arena>>(engine: Result<E, SetupError>, test: Test<'_>) -> Tested {
    let mut engine = engine?;
    let slots = engine.arena().slots().into_iter().map(Some).collect();
    test(&mut Queued { engine, slots });
    Ok(())
}

struct Synchronous<'arena, E> {
    engine: E,
    slots: Vec<Slot<'arena>>,
}

impl<'arena, E: SyncEngine<'arena>> Machine for Synchronous<'arena, E> {
    fn attach(&mut self, file: &File) {
        self.engine.attach(0, file.as_fd(), length_bytes(file)).unwrap();
    }

    fn detach(&mut self) {
        self.engine.detach(0);
    }

    fn fill(&mut self, buffer: usize, byte: u8) {
        self.engine.arena().bytes_mut(&mut self.slots[buffer]).fill(byte);
    }

    fn bytes(&mut self, buffer: usize) -> Vec<u8> {
        self.engine.arena().bytes_mut(&mut self.slots[buffer]).to_vec()
    }

    fn run(&mut self, ops: &[Op]) -> Vec<Outcome> {
        ops.iter().zip(&mut self.slots).map(|(op, slot)| self.engine.execute(*op, slot)).collect()
    }
}

struct Queued<'arena, E> {
    engine: E,
    slots: Vec<Option<Slot<'arena>>>,
}

impl<'arena, E: QueuedEngine<'arena>> Machine for Queued<'arena, E> {
    fn attach(&mut self, file: &File) {
        self.engine.attach(0, file.as_fd(), length_bytes(file)).unwrap();
    }

    fn detach(&mut self) {
        self.engine.detach(0);
    }

    fn fill(&mut self, buffer: usize, byte: u8) {
        self.engine.arena().bytes_mut(self.slots[buffer].as_mut().unwrap()).fill(byte);
    }

    fn bytes(&mut self, buffer: usize) -> Vec<u8> {
        self.engine.arena().bytes_mut(self.slots[buffer].as_mut().unwrap()).to_vec()
    }

    fn run(&mut self, ops: &[Op]) -> Vec<Outcome> {
        let mut outcomes = vec![None; ops.len()];
        for ((op, slot), outcome) in ops.iter().zip(&mut self.slots).zip(&mut outcomes) {
            *outcome = self.engine.execute_unqueued(op);
            if outcome.is_none() {
                self.engine.queue(*op, slot.take().unwrap()).expect("capacity for a whole queue");
            }
        }
        let queued = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
        let mut taken = 0;
        while done.len() < queued {
            let before = done.len();
            taken += self.engine.submit_and_wait(&mut done).unwrap();
            assert!(done.len() > before, "waiting for one completion brought none");
        }
        for completion in done {
            let index = completion.slot.index();
            assert!(outcomes[index].replace(completion.outcome).is_none(), "slot {index} came back twice");
            self.slots[index] = Some(completion.slot);
        }
        assert!(taken as usize <= queued);
        outcomes.into_iter().map(Option::unwrap).collect()
    }
}

fn length_bytes(file: &File) -> u64 {
    (&mut &*file).seek(SeekFrom::End(0)).unwrap()
}

/// A transfer of one whole block, by number.
pub fn block(direction: Direction, number: u64) -> Op {
    Op::new(direction.into(), 0, number * BLOCK_BYTES, BLOCK_BYTES)
}

/// An operation on file 0 that is not a transfer.
pub fn barrier(action: Action) -> Op {
    Op { action, ..block(Direction::Read, 0) }
}

/// A file or device that can be opened.
pub struct TestTarget {
    pub name: String,
    pub path: PathBuf,
    pub direct: bool,
    /// Removed afterwards: a file, not a device.
    pub temporary: bool,
}

impl TestTarget {
    /// Opens it.
    pub fn open(&self) -> File {
        open(&self.path, self.direct).unwrap()
    }
}

impl Drop for TestTarget {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path, direct: bool) -> std::io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// A file of `FILE_BYTES` on each available file system, buffered and direct.
pub fn places() -> Vec<TestTarget> {
    let mut places = Vec::new();
    for directory in [env!("CARGO_TARGET_TMPDIR"), "/dev/shm"] {
        for direct in [false, true] {
            let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
            let path = Path::new(directory).join(format!("fiord-engine-{}-{number}", std::process::id()));
            let name = format!("{} in {directory}", if direct { "direct" } else { "buffered" });
            let made = File::create(&path).and_then(|file| file.set_len(FILE_BYTES));
            match made.and_then(|()| open(&path, direct)) {
                Ok(_) => places.push(TestTarget { name, path, direct, temporary: true }),
                Err(error) => {
                    let _ = std::fs::remove_file(&path);
                    skip(&name, &error);
                }
            }
        }
    }
    places
}
