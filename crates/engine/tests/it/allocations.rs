//! Once set up, an engine transfers data without allocating.
//!
//! Invariant: only the allocations of the thread that runs the engine are counted, so tests do not disturb each other.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::AsFd;

use crate::common::{DEPTH, FILE_BYTES, FILES, barrier, block, places, skip, with_arena};
use fiord_engine::engines::{
    Psync, Pvsync2,
    io_uring::{IoUringEngine, Settings as UringSettings},
    libaio::LibaioEngine,
    mmap::{MapUse, MmapEngine},
    null::NullEngine,
};
use fiord_engine::{Completion, QueuedEngine, ReadWriteEngine, SyncEngine, Wait};
use fiord_plan::{Action, Direction, Op};
use fiord_sys::allocator::{ObservedAllocator, Request};
use fiord_sys::map::MapAdvice;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: ObservedAllocator = ObservedAllocator(|request| {
    if request == Request::Allocate {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
});

/// Every kind of operation, including failing ones.
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

/// The number of allocations by this thread during a call.
fn counted(body: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    body();
    ALLOCATIONS.get() - before
}

fn synchronous<'arena>(name: &str, mut engine: impl SyncEngine<'arena>, file: &File) {
    engine.attach(0, file.as_fd(), FILE_BYTES).unwrap();
    let mut slot = engine.arena().slots().remove(0);
    let count = counted(|| {
        for op in ops().iter().cycle().take(60) {
            engine.execute(*op, &mut slot);
        }
    });
    assert_eq!(count, 0, "{name}");
}

fn queued<'arena>(name: &str, mut engine: impl QueuedEngine<'arena>, file: &File) {
    engine.attach(0, file.as_fd(), FILE_BYTES).unwrap();
    let mut slots = engine.arena().slots();
    let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
    let count = counted(|| {
        let ops = ops();
        for round in 0..60 {
            while let Some(slot) = slots.pop() {
                let op = ops[(round + slots.len()) % ops.len()];
                match engine.execute_unqueued(&op) {
                    Some(outcome) => done.push(Completion { slot, outcome }),
                    None => engine.queue(op, slot).unwrap(),
                }
            }
            engine.submit().unwrap();
            engine.reap(0, DEPTH, Wait::Poll, &mut done).unwrap();
            engine.reap(1, DEPTH, Wait::For(1_000_000), &mut done).unwrap();
            while done.len() < DEPTH as usize {
                engine.submit_and_wait(&mut done).unwrap();
            }
            slots.extend(done.drain(..).map(|completion| completion.slot));
        }
    });
    assert_eq!(count, 0, "{name}");
}

#[test]
fn no_engine_allocates_during_transfers() {
    let usage = MapUse { advice: MapAdvice::Random, flush_writes: true };
    for place in places() {
        let file = place.open();
        with_arena(|arena| synchronous("null", NullEngine::new(arena), &file));
        with_arena(|arena| {
            synchronous("psync", ReadWriteEngine::<Psync>::new(&(), arena, FILES).unwrap(), &file)
        });
        with_arena(|arena| {
            synchronous(
                "pvsync2",
                ReadWriteEngine::<Pvsync2>::new(&Default::default(), arena, FILES).unwrap(),
                &file,
            )
        });
        with_arena(|arena| {
            synchronous("mmap", MmapEngine::new(&Default::default(), usage, arena, FILES), &file)
        });
        with_arena(|arena| queued("null", NullEngine::new(arena), &file));
        with_arena(|arena| match LibaioEngine::new(&Default::default(), arena, FILES) {
            Ok(engine) => queued("libaio", engine, &file),
            Err(refused) => skip("libaio", &refused),
        });
        for submission_thread in [false, true] {
            let settings = UringSettings { submission_thread, ..Default::default() };
            with_arena(|arena| match IoUringEngine::new(&settings, arena, FILES, true) {
                Ok(engine) => queued("io_uring", engine, &file),
                Err(refused) => skip("io_uring", &refused),
            });
        }
    }
}
