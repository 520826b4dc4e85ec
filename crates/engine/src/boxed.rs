//! Engines behind virtual calls: one loop is compiled for all of them, where each would have one of its own.
//!
//! Invariant: the same calls arrive in the same order as without them.
//!
//! For engines whose I/Os take microseconds, and for the loops whose clock is slower than the processor's counter: a virtual
//! call takes a nanosecond or two, and a loop of its own adds some tens of kilobytes to the program.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use fiord_plan::{FileIndex, Op};
use fiord_sys::thread::Usage;

use crate::attached_files::AttachedFiles;
use crate::contract::{
    ArenaAccess, Completion, Engine, Executed, NamedTarget, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};

/// A synchronous engine.
pub struct BoxedSync<'arena>(Box<dyn SyncEngine<'arena> + 'arena>);

impl<'arena> BoxedSync<'arena> {
    /// This engine.
    pub fn new(engine: impl SyncEngine<'arena> + 'arena) -> BoxedSync<'arena> {
        BoxedSync(Box::new(engine))
    }
}

impl<'arena> SyncEngine<'arena> for BoxedSync<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        self.0.execute(op, slot)
    }
}

/// A synchronous engine on loan.
pub struct LentSync<'e, 'arena>(&'e mut (dyn SyncEngine<'arena> + 'e));

impl<'e, 'arena> LentSync<'e, 'arena> {
    /// This engine.
    pub fn new(engine: &'e mut (impl SyncEngine<'arena> + 'e)) -> LentSync<'e, 'arena> {
        LentSync(engine)
    }
}

impl<'arena> SyncEngine<'arena> for LentSync<'_, 'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        self.0.execute(op, slot)
    }
}

/// A queued engine whose operations end after `submit`, and which does not offload them.
pub struct BoxedQueued<'arena>(Box<dyn Queued<'arena> + 'arena>);

impl<'arena> BoxedQueued<'arena> {
    /// This engine.
    pub fn new<E: QueuedEngine<'arena> + 'arena>(engine: E) -> BoxedQueued<'arena> {
        const { assert!(!E::ENDS_AT_ONCE && !E::OFFLOADS, "the loop of boxed engines knows neither") };
        BoxedQueued(Box::new(engine))
    }
}

/// A queued engine on loan, of the same kind.
pub struct LentQueued<'e, 'arena>(&'e mut (dyn Queued<'arena> + 'e));

impl<'e, 'arena> LentQueued<'e, 'arena> {
    /// This engine; `None` if its operations end at once, or are offloaded.
    pub fn new<E: QueuedEngine<'arena> + 'e>(engine: &'e mut E) -> Option<LentQueued<'e, 'arena>> {
        (!E::ENDS_AT_ONCE && !E::OFFLOADS).then_some(LentQueued(engine))
    }
}

/// `QueuedEngine` without its constants, which a trait object cannot have.
trait Queued<'arena>: Engine<'arena> {
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome>;
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>>;
    fn submit(&mut self) -> io::Result<u32>;
    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()>;
    fn submit_and_wait(&mut self, done: &mut Vec<Completion<'arena>>) -> io::Result<u32>;
}

/// Hands the calls of a queued engine on to `$engine`, by the trait it has them from.
macro_rules! hand_on_queued_calls {
    ($self:ident, $from:ident, $engine:expr) => {
        fn execute_unqueued(&mut $self, op: &Op) -> Option<Outcome> {
            $from::execute_unqueued($engine, op)
        }

        fn queue(&mut $self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
            $from::queue($engine, op, slot)
        }

        fn submit(&mut $self) -> io::Result<u32> {
            $from::submit($engine)
        }

        fn reap(&mut $self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
            $from::reap($engine, min, max, wait, done)
        }

        fn submit_and_wait(&mut $self, done: &mut Vec<Completion<'arena>>) -> io::Result<u32> {
            $from::submit_and_wait($engine, done)
        }
    };
}

impl<'arena, E: QueuedEngine<'arena>> Queued<'arena> for E {
    hand_on_queued_calls!(self, QueuedEngine, self);
}

impl<'arena> QueuedEngine<'arena> for BoxedQueued<'arena> {
    hand_on_queued_calls!(self, Queued, &mut *self.0);
}

impl<'arena> QueuedEngine<'arena> for LentQueued<'_, 'arena> {
    hand_on_queued_calls!(self, Queued, self.0);
}

/// Hands the calls of `Engine` on to the engine behind the virtual calls.
macro_rules! hand_on_engine_calls {
    ($behind:ty) => {
        impl<'arena> fmt::Debug for $behind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($behind)).finish_non_exhaustive()
            }
        }

        impl<'arena> Engine<'arena> for $behind {
            fn files(&mut self) -> Option<&mut AttachedFiles> {
                self.0.files()
            }

            fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
                self.0.attach(file, fd, length_bytes)
            }

            fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
                self.0.open(file, target)
            }

            fn detach(&mut self, file: FileIndex) {
                self.0.detach(file);
            }

            fn take_output(&mut self, number: usize, file: File) {
                self.0.take_output(number, file);
            }

            fn executed(&self) -> Executed {
                self.0.executed()
            }

            fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
                self.0.arena()
            }

            fn end_threads(&mut self) -> Usage {
                self.0.end_threads()
            }
        }
    };
}

pub(crate) use hand_on_engine_calls;

hand_on_engine_calls!(BoxedSync<'arena>);
hand_on_engine_calls!(LentSync<'_, 'arena>);
hand_on_engine_calls!(BoxedQueued<'arena>);
hand_on_engine_calls!(LentQueued<'_, 'arena>);
