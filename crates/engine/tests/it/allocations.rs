//! Once made, an engine moves data without allocating.
//!
//! Invariant: only the allocations of the thread that runs the engine are counted, so tests do not disturb each other.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsRawFd;

use crate::common::{DEPTH, FILE_BYTES, FILES, arena, barrier, block, places, skip};
use fiord_engine::{
    Completion, IoUring, Libaio, MapUse, Mmap, Null, Psync, Pvsync2, QueuedEngine, SyncEngine, Wait,
};
use fiord_plan::{Action, Direction, IoUring as UringSettings, Op};
use fiord_sys::allocator::{Request, Watched};
use fiord_sys::map::MapAdvice;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Watched = Watched(|request| {
    if request == Request::Allocate {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
});

/// Every kind of operation, failing ones too.
fn ops() -> [Op; 6] {
    [
        block(Direction::Write, 1),
        block(Direction::Read, 1),
        block(Direction::Trim, 1),
        Op { file: 1, ..block(Direction::Read, 1) },
        barrier(Action::Sync),
        Op { file: 1, ..barrier(Action::DataSync) },
    ]
}

/// How many allocations this thread makes meanwhile.
fn counted(body: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    body();
    ALLOCATIONS.get() - before
}

fn synchronous(name: &str, mut engine: impl SyncEngine, file: &File) {
    engine.attach(0, file.as_raw_fd(), FILE_BYTES).unwrap();
    let mut slot = engine.arena().slots().remove(0);
    let count = counted(|| {
        for op in ops().iter().cycle().take(60) {
            engine.execute(*op, &mut slot);
        }
    });
    assert_eq!(count, 0, "{name}");
}

fn queued(name: &str, mut engine: impl QueuedEngine, file: &File) {
    engine.attach(0, file.as_raw_fd(), FILE_BYTES).unwrap();
    let mut slots = engine.arena().slots();
    let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
    let count = counted(|| {
        let ops = ops();
        for round in 0..60 {
            while let Some(slot) = slots.pop() {
                engine.queue(ops[(round + slots.len()) % ops.len()], slot).unwrap();
            }
            engine.submit().unwrap();
            engine.reap(0, DEPTH, Wait::Poll, &mut done).unwrap();
            engine.reap(1, DEPTH, Wait::For(1_000_000), &mut done).unwrap();
            while done.len() < DEPTH as usize {
                engine.submit_and_reap(1, DEPTH, Wait::Block, &mut done).unwrap();
            }
            slots.extend(done.drain(..).map(|completion| completion.slot));
        }
    });
    assert_eq!(count, 0, "{name}");
}

#[test]
fn no_engine_allocates_while_it_moves_data() {
    let usage = MapUse { advice: MapAdvice::Random, flush_writes: true };
    for place in places() {
        let file = place.open();
        synchronous("null", Null::new(arena()), &file);
        synchronous("psync", Psync::new(arena(), FILES), &file);
        synchronous("pvsync2", Pvsync2::new(&Default::default(), arena(), FILES), &file);
        synchronous("mmap", Mmap::new(&Default::default(), usage, arena(), FILES), &file);
        queued("null", Null::new(arena()), &file);
        match Libaio::new(&Default::default(), arena(), FILES) {
            Ok(engine) => queued("libaio", engine, &file),
            Err(refused) => skip("libaio", &refused),
        }
        for submission_thread in [false, true] {
            match IoUring::new(&UringSettings { submission_thread, ..Default::default() }, arena(), FILES) {
                Ok(engine) => queued("io_uring", engine, &file),
                Err(refused) => skip("io_uring", &refused),
            }
        }
    }
}
