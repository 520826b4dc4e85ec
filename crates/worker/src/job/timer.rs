//! The clock of one worker, and the loops compiled for each clock.
//!
//! Invariant: the clock is chosen once per worker, never in a loop.

use fiord_engine::contract::{QueuedEngine, Slot, SyncEngine};
use fiord_plan::{ClockSource, Depth};
use fiord_sys::clock::keeper::KeptClock;
use fiord_sys::clock::{CounterClock, MicrosecondClock, NoClock, OsClock};

use crate::failure::Failure;
use crate::hot::end::End;
use crate::hot::work::Work;
use crate::hot::{queued, sync};
use crate::timekeepers::Timekeepers;

/// The clock of one worker.
pub(crate) enum Timer<'a> {
    Counter(CounterClock),
    Os,
    Microseconds,
    Kept(KeptClock<'a>),
    None,
}

impl<'a> Timer<'a> {
    /// The clock of a job; time that threads keep is that of `keepers`.
    ///
    /// # Errors
    /// Why no thread keeps the time.
    pub(crate) fn of(source: ClockSource, keepers: &'a Timekeepers) -> Result<Timer<'a>, Failure> {
        Ok(match source {
            ClockSource::None => Timer::None,
            ClockSource::Monotonic => Timer::Os,
            ClockSource::Microseconds => Timer::Microseconds,
            ClockSource::Best | ClockSource::Counter => CounterClock::shared()
                .ok()
                .filter(CounterClock::agrees_here)
                .map_or(Timer::Os, Timer::Counter),
            ClockSource::Kept(cpu) => Timer::Kept(keepers.clock(cpu)?),
        })
    }

    /// fio's number of its clock source; 0 for one that fio has no number for.
    pub(crate) fn number(&self) -> u8 {
        match self {
            Timer::None | Timer::Kept(_) => 0,
            Timer::Microseconds => 1,
            Timer::Os => 2,
            Timer::Counter(_) => 3,
        }
    }

    /// Runs the loop of the synchronous engines with this clock.
    pub(crate) fn run_sync<'arena, E: SyncEngine<'arena>>(
        self,
        engine: &mut E,
        work: &mut Work<'_>,
        mut slots: Vec<Slot<'arena>>,
    ) -> End {
        let Some(slot) = slots.last_mut() else {
            return Failure::other("set up", "the engine has no buffer").into();
        };
        match self {
            Timer::Counter(clock) => sync::run(engine, clock, work, slot),
            Timer::Os => sync::run(engine, OsClock, work, slot),
            Timer::Microseconds => sync::run(engine, MicrosecondClock, work, slot),
            Timer::Kept(clock) => sync::run(engine, clock, work, slot),
            Timer::None => sync::run(engine, NoClock, work, slot),
        }
    }

    /// Runs the loop of the queued engines with this clock.
    pub(crate) fn run_queued<'arena, E: QueuedEngine<'arena>>(
        self,
        engine: &mut E,
        work: &mut Work<'_>,
        slots: Vec<Slot<'arena>>,
        depth: Depth,
    ) -> End {
        match self {
            Timer::Counter(clock) => queued::run(engine, clock, work, slots, depth),
            Timer::Os => queued::run(engine, OsClock, work, slots, depth),
            Timer::Microseconds => queued::run(engine, MicrosecondClock, work, slots, depth),
            Timer::Kept(clock) => queued::run(engine, clock, work, slots, depth),
            Timer::None => queued::run(engine, NoClock, work, slots, depth),
        }
    }
}
