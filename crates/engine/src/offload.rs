//! Offloading: a pool of threads executes the operations of a job, each thread on an engine of its own, while the job's
//! thread generates, paces and records them (`io_submit_mode=offload`).
//!
//! Invariant: an operation is with the job's thread, among the requests, with one thread of the pool, or among the
//! results. The buffers outlive the engines of the pool, because `Offload` waits for its threads before it is dropped.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use fiord_plan::{FileIndex, Op};
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_sys::thread::{self, Usage};

use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, SyncEngine, Timing, Wait,
};
use crate::definition::{EngineDefinition, JobOutline, Setup, Visitor};
use crate::setup_error::{SetupError, SetupStep};

/// Stack of a pool thread: touched only as far as it is used.
const STACK_BYTES: usize = 256 << 10;

/// Sets up the engine `D` on as many threads as there are buffers, and passes the queued engine that feeds them, or the
/// reason why one of them could not be set up, to `visitor`. An engine that moves the position of its files gets one
/// thread, because threads would move it for each other.
pub fn offload<'arena, D: EngineDefinition, V: Visitor<'arena>>(
    settings: &D::Settings,
    job: &JobOutline,
    arena: Arena<'arena>,
    visitor: V,
) -> V::Output {
    let threads = if D::MOVES_FILE_POSITION { 1 } else { arena.count() };
    offload_to(threads, job.files, arena, visitor, &|pool, arena| {
        D::set_up(settings, Setup { job, arena }, PoolThread { pool })
    })
}

/// The same with as many threads, each of which runs `execute` until the pool is closed. Compiled once for all engines.
fn offload_to<'arena, V: Visitor<'arena>>(
    threads: u32,
    files: usize,
    arena: Arena<'arena>,
    visitor: V,
    execute: &(dyn Fn(&Pool, Arena<'arena>) + Sync),
) -> V::Output {
    let pool = Pool::new(arena.count() as usize, files);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (view, pool) = (arena.view(), &pool);
            pool.lock().threads += 1;
            let body = move || execute(pool, view);
            let spawned =
                Builder::new().name("offload".to_string()).stack_size(STACK_BYTES).spawn_scoped(scope, body);
            if let Err(error) = spawned {
                let mut state = pool.lock();
                state.threads -= 1;
                state.refused.get_or_insert(SetupError::new(SetupStep::Thread, &error));
                break;
            }
        }
        let refused = pool.wait_for_setup();
        let timings = vec![Timing::default(); arena.count() as usize].into_boxed_slice();
        let engine = Offload { pool: &pool, arena, threads, timings, queued: 0 };
        match refused {
            None => visitor.queued(Ok(engine)),
            Some(refused) => {
                drop(engine);
                visitor.queued::<Offload<'_, '_>>(Err(refused))
            }
        }
    })
}

/// A file, as attached by the job's thread.
#[derive(Debug, Clone, Copy, Default)]
struct File {
    /// Descriptor and length in bytes, if it is open.
    open: Option<(RawFd, u64)>,
    /// Incremented by each attach and detach.
    generation: u64,
}

/// An operation that was executed.
#[derive(Debug, Clone, Copy)]
struct Executed {
    index: u32,
    outcome: Outcome,
    begun_ns: u64,
    ended_ns: u64,
}

/// The state shared by the job's thread and the pool.
#[derive(Debug, Default)]
struct PoolState {
    requests: VecDeque<(Op, u32)>,
    results: VecDeque<Executed>,
    files: Vec<File>,
    /// Threads that have not ended.
    threads: u32,
    /// Threads that have set up their engine.
    ready: u32,
    /// Why an engine could not be set up.
    refused: Option<SetupError>,
    closed: bool,
    /// Resources used by the threads that have ended.
    usage: Usage,
}

#[derive(Debug)]
struct Pool {
    state: Mutex<PoolState>,
    requested: Condvar,
    executed: Condvar,
}

impl Pool {
    fn new(depth: usize, files: usize) -> Pool {
        let state = PoolState {
            requests: VecDeque::with_capacity(depth),
            results: VecDeque::with_capacity(depth),
            files: vec![File::default(); files],
            ..PoolState::default()
        };
        Pool { state: Mutex::new(state), requested: Condvar::new(), executed: Condvar::new() }
    }

    /// A thread that panicked leaves the state consistent: it changes nothing that can panic under the lock.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_setup(&self) -> Option<SetupError> {
        let mut state = self.lock();
        while state.ready < state.threads {
            state = self.executed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.refused
    }

    /// Waits until all threads have ended; returns the resources they used.
    fn close(&self) -> Usage {
        let mut state = self.lock();
        state.closed = true;
        self.requested.notify_all();
        while state.threads > 0 {
            state = self.executed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.usage
    }

    /// The next request, with the file it concerns; `None` when the pool is closed and no request is left.
    fn take(&self) -> Option<(Op, u32, File)> {
        let mut state = self.lock();
        loop {
            if let Some((op, index)) = state.requests.pop_front() {
                let file = state.files.get(op.file as usize).copied().unwrap_or_default();
                return Some((op, index, file));
            }
            if state.closed {
                return None;
            }
            state = self.requested.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, executed: Executed) {
        self.lock().results.push_back(executed);
        self.executed.notify_one();
    }

    fn change_file(&self, file: FileIndex, open: Option<(RawFd, u64)>) -> io::Result<()> {
        let mut state = self.lock();
        let file = state.files.get_mut(file as usize).ok_or_else(|| io::Error::from(Errno::EBADF))?;
        *file = File { open, generation: file.generation + 1 };
        Ok(())
    }
}

/// The body of a pool thread, once its engine is set up.
struct PoolThread<'p> {
    pool: &'p Pool,
}

impl Drop for PoolThread<'_> {
    /// Also when the thread panics, so that no thread waits for it.
    fn drop(&mut self) {
        let used = thread::usage().unwrap_or_default();
        let mut state = self.pool.lock();
        state.threads -= 1;
        state.usage = state.usage.plus(&used);
        self.pool.executed.notify_all();
    }
}

impl PoolThread<'_> {
    /// Executes requests until the pool is closed.
    fn serve<'arena, E: Engine<'arena>>(
        &self,
        engine: Result<E, SetupError>,
        execute: impl Fn(&mut E, Op, u32) -> Outcome,
    ) {
        let mut engine = match engine {
            Ok(engine) => engine,
            Err(refused) => {
                self.pool.lock().refused.get_or_insert(refused);
                return;
            }
        };
        let mut state = self.pool.lock();
        state.ready += 1;
        let mut seen = vec![File::default(); state.files.len()];
        drop(state);
        self.pool.executed.notify_all();
        while let Some((op, index, file)) = self.pool.take() {
            let begun_ns = clock::monotonic_ns();
            let outcome = match follow(&mut engine, op.file, file, &mut seen) {
                Ok(()) => execute(&mut engine, op, index),
                Err(error) => Outcome::Failed(Errno::of(&error).unwrap_or(Errno::EIO)),
            };
            let ended_ns = clock::monotonic_ns();
            self.pool.put(Executed { index, outcome, begun_ns, ended_ns });
        }
    }
}

/// Attaches `file` to a thread's engine, or detaches it, if it has changed since the thread last used it.
fn follow<'arena, E: Engine<'arena>>(
    engine: &mut E,
    file: FileIndex,
    now: File,
    seen: &mut [File],
) -> io::Result<()> {
    let Some(before) = seen.get_mut(file as usize).filter(|before| before.generation != now.generation)
    else {
        return Ok(());
    };
    if before.open.is_some() {
        engine.detach(file);
    }
    *before = File { open: None, ..now };
    if let Some((fd, length_bytes)) = now.open {
        // SAFETY: the job's thread keeps the file open until no operation on it is requested or executed.
        engine.attach(file, unsafe { BorrowedFd::borrow_raw(fd) }, length_bytes)?;
        *before = now;
    }
    Ok(())
}

impl<'arena> Visitor<'arena> for PoolThread<'_> {
    type Output = ();

    fn synchronous<E: SyncEngine<'arena>>(self, engine: Result<E, SetupError>) {
        self.serve(engine, |engine, op, index| {
            let mut slot = Slot::from_index(index);
            let outcome = engine.execute(op, &mut slot);
            slot.into_index();
            outcome
        });
    }

    fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) {
        self.serve(engine, |engine, op, index| {
            if let Some(outcome) = engine.execute_unqueued(&op) {
                return outcome;
            }
            if let Err(slot) = engine.queue(op, Slot::from_index(index)) {
                slot.into_index();
                return Outcome::Failed(Errno::EAGAIN);
            }
            let mut done = Vec::with_capacity(1);
            while done.is_empty() {
                let reaped = engine.submit_and_wait(&mut done);
                if let (Err(error), true) = (reaped, done.is_empty()) {
                    return Outcome::Failed(Errno::of(&error).unwrap_or(Errno::EIO));
                }
            }
            done.pop().map_or(Outcome::Failed(Errno::EIO), |Completion { slot, outcome }| {
                slot.into_index();
                outcome
            })
        });
    }
}

/// The queued engine that feeds the pool.
#[derive(Debug)]
pub struct Offload<'p, 'arena> {
    pool: &'p Pool,
    arena: Arena<'arena>,
    /// Threads of the pool.
    threads: u32,
    /// By slot: how its last operation was executed.
    timings: Box<[Timing]>,
    /// Operations requested since the last `submit`.
    queued: u32,
}

impl Drop for Offload<'_, '_> {
    fn drop(&mut self) {
        self.pool.close();
    }
}

impl<'arena> Engine<'arena> for Offload<'_, 'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        self.pool.change_file(file, Some((fd.as_raw_fd(), length_bytes)))
    }

    fn detach(&mut self, file: FileIndex) {
        // A file that is not in the table was never attached.
        let _ = self.pool.change_file(file, None);
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }

    fn end_threads(&mut self) -> Usage {
        self.pool.close()
    }
}

impl<'arena> QueuedEngine<'arena> for Offload<'_, 'arena> {
    const OFFLOADS: bool = true;

    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        self.pool.lock().requests.push_back((op, slot.into_index()));
        self.pool.requested.notify_one();
        self.queued += 1;
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        Ok(std::mem::take(&mut self.queued))
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let mut state = self.pool.lock();
        while state.results.len() < min as usize && wait != Wait::Poll {
            if state.threads < self.threads {
                return Err(io::Error::other("fiord has a bug: a thread that executes I/O has ended"));
            }
            let Wait::For(ns) = wait else {
                state = self.pool.executed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.pool.executed.wait_timeout(state, Duration::from_nanos(ns));
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            if timeout.timed_out() {
                break;
            }
        }
        let now_ns = clock::monotonic_ns();
        let count = state.results.len().min(max as usize);
        for Executed { index, outcome, begun_ns, ended_ns } in state.results.drain(..count) {
            let (execution_ns, since_end_ns) = (ended_ns - begun_ns, now_ns.saturating_sub(ended_ns));
            self.timings[index as usize] = Timing { execution_ns, since_end_ns };
            done.push(Completion { slot: Slot::from_index(index), outcome });
        }
        Ok(())
    }

    fn timing(&self, slot: &Slot<'arena>) -> Timing {
        self.timings[slot.index()]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, PoisonError, RwLock};

    use fiord_plan::{Action, EngineDescriptor};
    use fiord_sys::memory::{MemorySource, Region};

    use super::*;
    use crate::engines::Null;

    const BUFFER_BYTES: usize = 4096;
    const DEPTH: u32 = 3;

    /// What an operation of `Meeting` waits for.
    static MEETING: RwLock<Option<Barrier>> = RwLock::new(None);

    /// An engine whose operations end when as many are executed at once as the queue is deep.
    struct Meeting<'arena> {
        arena: Arena<'arena>,
    }

    struct Meets;

    impl EngineDefinition for Meets {
        type Settings = ();
        const DESCRIPTOR: &'static EngineDescriptor = Null::DESCRIPTOR;

        fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
            let arena = setup.arena;
            visitor.synchronous(Ok(Meeting { arena }))
        }
    }

    impl<'arena> Engine<'arena> for Meeting<'arena> {
        fn attach(&mut self, _: FileIndex, _: BorrowedFd<'_>, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
            ArenaAccess::of(&mut self.arena)
        }
    }

    impl<'arena> SyncEngine<'arena> for Meeting<'arena> {
        fn execute(&mut self, op: Op, _: &mut Slot<'arena>) -> Outcome {
            let meeting = MEETING.read().unwrap_or_else(PoisonError::into_inner);
            meeting.as_ref().map(Barrier::wait);
            Outcome::whole(&op)
        }
    }

    /// Queues as many operations as there are slots, and reaps them all.
    struct QueueAll;

    impl<'arena> Visitor<'arena> for QueueAll {
        type Output = Usage;

        fn synchronous<E: SyncEngine<'arena>>(self, _: Result<E, SetupError>) -> Usage {
            unreachable!("an engine that offloads is queued")
        }

        fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) -> Usage {
            let mut engine = engine.unwrap();
            let mut done = Vec::with_capacity(DEPTH as usize);
            engine.reap(0, DEPTH, Wait::Poll, &mut done).unwrap();
            engine.reap(1, DEPTH, Wait::For(1_000), &mut done).unwrap();
            assert!(done.is_empty(), "nothing is in flight");
            for slot in engine.arena().slots() {
                assert!(engine.queue(Op::new(Action::Read, 0, 0, 512), slot).is_ok());
            }
            assert_eq!(engine.submit().unwrap(), DEPTH);
            engine.reap(DEPTH, DEPTH, Wait::Block, &mut done).unwrap();
            assert!(done.iter().all(|completion| completion.outcome == Outcome::Done(512)));
            let executed = done.iter().map(|completion| engine.timing(&completion.slot).execution_ns);
            assert!(executed.min() > Some(0));
            engine.end_threads()
        }
    }

    #[test]
    fn as_many_operations_are_executed_at_once_as_the_queue_is_deep() {
        *MEETING.write().unwrap() = Some(Barrier::new(DEPTH as usize));
        let length = Arena::region_bytes(DEPTH, BUFFER_BYTES, BUFFER_BYTES);
        let region = Region::allocate(&MemorySource::Malloc, length, BUFFER_BYTES).unwrap();
        let used = Arena::with(region, DEPTH, BUFFER_BYTES, BUFFER_BYTES, |arena| {
            offload::<Meets, _>(&(), &JobOutline::plain(1), arena, QueueAll)
        });
        assert!(used.switches_voluntary > 0, "threads waited for each other");
    }
}
