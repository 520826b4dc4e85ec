//! What the engine tests share: a machine that runs operations on either kind of engine, and places to run them on.
//!
//! Invariant: a place or engine that this system does not have is a skip, printed and counted, never a silent pass.

pub mod engines;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use fiord_engine::{Arena, Completion, Outcome, QueuedEngine, Slot, SyncEngine, Wait};
use fiord_plan::{Action, Direction, Op};
use fiord_sys::memory::{Region, Source};

/// Bytes of one buffer, and of one block.
pub const BLOCK_BYTES: u64 = 4096;
/// Buffers of every machine.
pub const DEPTH: u32 = 8;
/// Files every machine has room for.
pub const FILES: usize = 2;
/// Bytes of every file.
pub const FILE_BYTES: u64 = 64 * BLOCK_BYTES;

static SKIPPED: AtomicU32 = AtomicU32::new(0);
static NEXT_FILE: AtomicU32 = AtomicU32::new(0);

/// Says that something was not tested here.
pub fn skip(what: &str, why: &dyn std::fmt::Display) {
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    println!("skipped ({count} so far): {what}: {why}");
}

/// `DEPTH` buffers of one block.
pub fn arena() -> Arena {
    let bytes = Arena::region_bytes(DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize);
    let region = Region::allocate(&Source::Mmap, bytes, BLOCK_BYTES as usize).unwrap();
    Arena::new(region, DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize)
}

/// Either kind of engine, driven the same way.
pub trait Machine {
    /// Opens file 0.
    fn attach(&mut self, file: &File);
    /// Closes file 0.
    fn detach(&mut self);
    /// Sets all of a buffer.
    fn fill(&mut self, buffer: usize, byte: u8);
    /// Copies a buffer out.
    fn bytes(&mut self, buffer: usize) -> Vec<u8>;
    /// Runs at most `DEPTH` operations, the n-th on buffer n, all in flight at once where the engine can.
    fn run(&mut self, ops: &[Op]) -> Vec<Outcome>;

    /// Runs one operation on buffer 0.
    fn one(&mut self, op: Op) -> Outcome {
        self.run(&[op])[0]
    }
}

/// A machine of a synchronous engine.
pub fn synchronous<E: SyncEngine + 'static>(mut engine: E) -> Box<dyn Machine> {
    let slots = engine.arena().slots();
    Box::new(Synchronous { engine, slots })
}

/// A machine of a queued engine.
pub fn queued<E: QueuedEngine + 'static>(mut engine: E) -> Box<dyn Machine> {
    let slots = engine.arena().slots().into_iter().map(Some).collect();
    Box::new(Queued { engine, slots })
}

struct Synchronous<E> {
    engine: E,
    slots: Vec<Slot>,
}

impl<E: SyncEngine> Machine for Synchronous<E> {
    fn attach(&mut self, file: &File) {
        self.engine.attach(0, file.as_raw_fd(), length_bytes(file)).unwrap();
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

struct Queued<E> {
    engine: E,
    slots: Vec<Option<Slot>>,
}

impl<E: QueuedEngine> Machine for Queued<E> {
    fn attach(&mut self, file: &File) {
        self.engine.attach(0, file.as_raw_fd(), length_bytes(file)).unwrap();
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
        for (op, slot) in ops.iter().zip(&mut self.slots) {
            self.engine.queue(*op, slot.take().unwrap()).expect("room for a whole queue");
        }
        let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
        let mut taken = 0;
        while done.len() < ops.len() {
            let before = done.len();
            taken += self.engine.submit_and_reap(1, DEPTH, Wait::Block, &mut done).unwrap();
            assert!(done.len() > before, "waiting for one completion brought none");
        }
        let mut outcomes = vec![None; ops.len()];
        for completion in done {
            let index = completion.slot.index();
            assert!(outcomes[index].replace(completion.outcome).is_none(), "slot {index} came back twice");
            self.slots[index] = Some(completion.slot);
        }
        assert!(taken as usize <= ops.len());
        outcomes.into_iter().map(Option::unwrap).collect()
    }
}

fn length_bytes(file: &File) -> u64 {
    fiord_sys::file::seek_end(file).unwrap()
}

/// A transfer of one whole block, by number.
pub fn block(direction: Direction, number: u64) -> Op {
    Op {
        action: Action::Transfer(direction),
        file: 0,
        offset_bytes: number * BLOCK_BYTES,
        length_bytes: BLOCK_BYTES,
        buffer_offset_bytes: 0,
    }
}

/// An operation on file 0 that is not a transfer.
pub fn barrier(action: Action) -> Op {
    Op { action, ..block(Direction::Read, 0) }
}

/// A file or device that can be opened.
pub struct Place {
    pub name: String,
    pub path: PathBuf,
    pub direct: bool,
    /// Removed afterwards: a file of ours, not a device.
    pub temporary: bool,
}

impl Place {
    /// Opens it.
    pub fn open(&self) -> File {
        open(&self.path, self.direct).unwrap()
    }
}

impl Drop for Place {
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

/// A file of `FILE_BYTES` on each file system there is, buffered and direct.
pub fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for directory in [env!("CARGO_TARGET_TMPDIR"), "/dev/shm"] {
        for direct in [false, true] {
            let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
            let path = Path::new(directory).join(format!("fiord-engine-{}-{number}", std::process::id()));
            let name = format!("{} in {directory}", if direct { "direct" } else { "buffered" });
            let made = File::create(&path).and_then(|file| file.set_len(FILE_BYTES));
            match made.and_then(|()| open(&path, direct)) {
                Ok(_) => places.push(Place { name, path, direct, temporary: true }),
                Err(error) => {
                    let _ = std::fs::remove_file(&path);
                    skip(&name, &error);
                }
            }
        }
    }
    places
}
