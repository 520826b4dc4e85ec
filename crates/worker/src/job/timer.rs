//! The clock of one worker, and the loops compiled for each kind of clock.
//!
//! Invariant: no loop chooses between the processor's counter and another clock.

use fiord_engine::contract::{QueuedEngine, Slot, SyncEngine};
use fiord_engine::{GpuMemory, LentQueued, LentSync, WithGpu};
use fiord_plan::{ClockSource, Depth};
use fiord_sys::clock::keeper::KeptClock;
use fiord_sys::clock::{Clock, CounterClock, MicrosecondClock, NoClock, OsClock};

use crate::failure::Failure;
use crate::hot::end::End;
use crate::hot::work::Work;
use crate::hot::{queued, sync};
use crate::timekeepers::Timekeepers;

/// The clock of one worker.
pub(crate) enum Timer<'a> {
    Counter(CounterClock),
    Other(OtherClock<'a>),
    /// Any of them, of an engine whose buffers are copied from and to memory of a GPU.
    WithGpu(OtherClock<'a>, GpuMemory),
    None,
}

/// A clock other than the processor's counter, or any where I/Os take microseconds. There is one loop for them all, in which a
/// reading chooses, and in which most engines are behind virtual calls: such a reading takes tens of nanoseconds, a choice that
/// is always the same a fraction of one, a virtual call one or two.
#[derive(Clone, Copy)]
pub(crate) enum OtherClock<'a> {
    Counter(CounterClock),
    Os,
    Microseconds,
    Kept(KeptClock<'a>),
}

impl Clock for OtherClock<'_> {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        match self {
            OtherClock::Counter(clock) => clock.now_ns(),
            OtherClock::Os => OsClock.now_ns(),
            OtherClock::Microseconds => MicrosecondClock.now_ns(),
            OtherClock::Kept(clock) => clock.now_ns(),
        }
    }
}

impl<'a> Timer<'a> {
    /// The clock of a job; time that threads keep is that of `keepers`.
    ///
    /// # Errors
    /// Why no thread keeps the time.
    pub(crate) fn of(source: ClockSource, keepers: &'a Timekeepers) -> Result<Timer<'a>, Failure> {
        Ok(match source {
            ClockSource::None => Timer::None,
            ClockSource::Monotonic => Timer::Other(OtherClock::Os),
            ClockSource::Microseconds => Timer::Other(OtherClock::Microseconds),
            ClockSource::Best | ClockSource::Counter => CounterClock::shared()
                .ok()
                .filter(CounterClock::agrees_here)
                .map_or(Timer::Other(OtherClock::Os), Timer::Counter),
            ClockSource::Kept(cpu) => Timer::Other(OtherClock::Kept(keepers.clock(cpu)?)),
        })
    }

    /// The same for an engine with memory of a GPU.
    pub(crate) fn with_gpu(self, memory: GpuMemory) -> Timer<'a> {
        let clock = match self {
            Timer::Counter(clock) => OtherClock::Counter(clock),
            Timer::Other(clock) | Timer::WithGpu(clock, _) => clock,
            Timer::None => OtherClock::Os,
        };
        Timer::WithGpu(clock, memory)
    }

    /// fio's number of its clock source; 0 for one that fio has no number for.
    pub(crate) fn number(&self) -> u8 {
        match self {
            Timer::None => 0,
            Timer::Counter(_) => 3,
            Timer::Other(clock) | Timer::WithGpu(clock, _) => match clock {
                OtherClock::Kept(_) => 0,
                OtherClock::Microseconds => 1,
                OtherClock::Os => 2,
                OtherClock::Counter(_) => 3,
            },
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
            Timer::Other(clock) => sync::run(&mut LentSync::new(engine), clock, work, slot),
            Timer::WithGpu(clock, memory) => {
                let mut with_gpu = WithGpu::new(LentSync::new(engine), memory);
                sync::run(&mut LentSync::new(&mut with_gpu), clock, work, slot)
            }
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
            Timer::Other(clock) => match LentQueued::new(engine) {
                Some(mut lent) => queued::run(&mut lent, clock, work, slots, depth),
                None => queued::run(engine, clock, work, slots, depth),
            },
            Timer::WithGpu(clock, memory) => {
                let mut with_gpu = LentQueued::new(engine).map(|lent| WithGpu::new(lent, memory));
                match with_gpu.as_mut().and_then(LentQueued::new) {
                    Some(mut lent) => queued::run(&mut lent, clock, work, slots, depth),
                    None => Failure::other("mem=cudamalloc", "this engine's I/Os end at once; use iodepth=1")
                        .into(),
                }
            }
            Timer::None => queued::run(engine, NoClock, work, slots, depth),
        }
    }
}
