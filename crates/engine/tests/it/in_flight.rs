//! Operations in flight: waiting for them with a time limit or not at all, and dropping an engine with them.
//!
//! Invariant: the operation in flight is a read from a pipe, which ends only when the test writes to it.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, FromRawFd};

use crate::common::{BLOCK_BYTES, DEPTH, FILES, block, places, skip, with_arena};
use fiord_engine::engines::{
    io_uring::{IoUringEngine, Settings},
    libaio::{LibaioEngine, Settings as LibaioSettings},
    null::NullEngine,
};
use fiord_engine::{Arena, Completion, Engine, Outcome, QueuedEngine, Wait};
use fiord_plan::Direction;
use fiord_sys::errno::Errno;
use fiord_sys::map::Sharing;
use fiord_sys::memory::{MemorySource, Region};

fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors, which become owned right away.
    unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

/// Runs `body` on io_uring with these settings, where this machine has it.
fn on_uring(settings: Settings, body: impl for<'arena> FnOnce(IoUringEngine<'arena>)) {
    with_arena(|arena| uring_over(settings, arena, body));
}

fn uring_over<'arena>(settings: Settings, arena: Arena<'arena>, body: impl FnOnce(IoUringEngine<'arena>)) {
    match IoUringEngine::new(&settings, arena, FILES, true) {
        Ok(engine) => body(engine),
        Err(error) => skip("io_uring", &error),
    }
}

fn variants() -> [Settings; 3] {
    let plain = Settings { nonvectored: true, ..Default::default() };
    [plain, Settings { fixed_buffers: true, ..plain }, Settings { submission_thread: true, ..plain }]
}

#[test]
fn waiting_ends_with_its_time_or_with_the_operation() {
    for settings in variants() {
        on_uring(settings, |mut engine| {
            let (reader, mut writer) = pipe();
            engine.attach(0, reader.as_fd(), 0).unwrap();
            let slot = engine.arena().slots().remove(3);
            engine.queue(block(Direction::Read, 0), slot).unwrap();
            assert_eq!(engine.submit().unwrap(), 1);
            let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
            engine.reap(1, 1, Wait::Poll, &mut done).unwrap();
            engine.reap(1, 1, Wait::For(1_000), &mut done).unwrap();
            assert!(done.is_empty(), "nothing was written yet");
            writer.write_all(b"twelve bytes").unwrap();
            engine.reap(1, 1, Wait::Block, &mut done).unwrap();
            let Completion { mut slot, outcome } = done.remove(0);
            assert_eq!((slot.index(), outcome), (3, Outcome::Done(12)));
            assert_eq!(&engine.arena().bytes_mut(&mut slot)[..12], b"twelve bytes");
            // Waiting for more operations than are in flight waits for those.
            engine.reap(5, 8, Wait::Block, &mut done).unwrap();
            assert!(done.is_empty());
        });
    }
}

#[test]
fn polling_sees_a_completion_in_the_end() {
    for settings in variants() {
        on_uring(settings, |mut engine| {
            let (reader, mut writer) = pipe();
            engine.attach(0, reader.as_fd(), 0).unwrap();
            let slot = engine.arena().slots().remove(0);
            engine.queue(block(Direction::Read, 0), slot).unwrap();
            engine.submit().unwrap();
            writer.write_all(b"x").unwrap();
            let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
            while done.is_empty() {
                engine.reap(0, 1, Wait::Poll, &mut done).unwrap();
            }
            assert_eq!(done[0].outcome, Outcome::Done(1));
        });
    }
}

#[test]
fn a_dropped_engine_waits_for_the_kernel_to_be_done_with_its_buffers() {
    for settings in variants() {
        // Buffers that outlive the engine; in memory, because those on a disk cannot be pinned.
        let path = std::path::PathBuf::from(format!("/dev/shm/fiord-engine-dropped-{}", std::process::id()));
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let file = std::sync::Arc::new(file);
        let source = MemorySource::MmapFile { path: path.clone(), file, sharing: Sharing::Shared };
        let bytes = Arena::region_bytes(DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize);
        let region = Region::allocate(&source, bytes, BLOCK_BYTES as usize).unwrap();
        let (reader, mut writer) = pipe();
        let body = |mut engine: IoUringEngine<'_>| {
            engine.attach(0, reader.as_fd(), 0).unwrap();
            let slot = engine.arena().slots().remove(0);
            engine.queue(block(Direction::Read, 0), slot).unwrap();
            engine.submit().unwrap();
            let late = std::thread::spawn(move || writer.write_all(b"late").unwrap());
            drop(engine);
            assert_eq!(&std::fs::read(&path).unwrap()[..4], b"late", "{settings:?}");
            late.join().unwrap();
        };
        Arena::with(region, DEPTH, BLOCK_BYTES as usize, BLOCK_BYTES as usize, |arena| {
            uring_over(settings, arena, body);
        });
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_engine_dropped_before_submission_does_not_wait() {
    for place in places() {
        let file = place.open();
        on_uring(variants()[0], |mut engine| {
            engine.attach(0, file.as_fd(), 0).unwrap();
            for slot in engine.arena().slots() {
                engine.queue(block(Direction::Read, 0), slot).unwrap();
            }
        });
        with_arena(|arena| match LibaioEngine::new(&LibaioSettings::default(), arena, FILES) {
            Ok(mut engine) => {
                engine.attach(0, file.as_fd(), 0).unwrap();
                for slot in engine.arena().slots() {
                    engine.queue(block(Direction::Read, 0), slot).unwrap();
                }
                assert_eq!(engine.submit().unwrap(), DEPTH);
            }
            Err(refused) => skip("libaio", &refused),
        });
    }
}

#[test]
fn polled_completions_without_polled_queues_are_an_error_of_the_operation() {
    let settings = Settings { hipri: true, nonvectored: true, ..Default::default() };
    for place in places().iter().filter(|place| place.direct) {
        on_uring(settings, |mut engine| {
            let file = place.open();
            engine.attach(0, file.as_fd(), 0).unwrap();
            let slot = engine.arena().slots().remove(0);
            engine.queue(block(Direction::Read, 0), slot).unwrap();
            let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
            engine.submit_and_wait(&mut done).unwrap();
            // A disk that has such queues accepts it.
            let outcomes = [Outcome::Failed(Errno(libc::EOPNOTSUPP)), Outcome::Done(BLOCK_BYTES)];
            assert!(outcomes.contains(&done[0].outcome), "{}: {:?}", place.name, done[0].outcome);
        });
    }
}

#[test]
fn null_completes_every_operation() {
    with_arena(|arena| {
        let mut engine = NullEngine::new(arena);
        let mut slots = engine.arena().slots();
        let mut done: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
        for _ in 0..3 {
            for slot in slots.drain(..) {
                engine.queue(block(Direction::Trim, 1 << 40), slot).unwrap();
            }
            assert_eq!(engine.submit().unwrap(), DEPTH);
            engine.reap(1, 5, Wait::Block, &mut done).unwrap();
            assert_eq!(done.len(), 5);
            engine.reap(1, DEPTH, Wait::Poll, &mut done).unwrap();
            assert!(done.iter().all(|completion| completion.outcome == Outcome::Done(BLOCK_BYTES)));
            slots.extend(done.drain(..).map(|completion| completion.slot));
            assert_eq!(slots.len(), DEPTH as usize);
        }
    });
}
