//! cpuio: work for a processor in place of I/O, in bursts with pauses between them.
//!
//! Invariant: a burst ends when its time is over, or soon after a signal that requests the end of the run. No file is
//! touched.

use std::hint::black_box;
use std::io;
use std::os::fd::BorrowedFd;

use fiord_options::engine;
use fiord_options::job::JobOptions;
use fiord_options::value::CpuMode;
use fiord_plan::{
    Cycle, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse,
    MissingSetting, Op, Tested,
};
use fiord_sys::{clock, signal};

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};

/// Steps of the empty loop between two readings of the clock.
const STEPS: u32 = 1024;

/// Numbers sorted between two readings of the clock.
const NUMBERS: usize = 1024;

/// Interval between two checks for a signal.
const SIGNAL_CHECK_NS: u64 = 50_000_000;

/// The engine.
#[derive(Debug)]
pub struct CpuIo;

/// Its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Share of a processor; `None` if not given.
    load_percent: Option<u64>,
    burst_us: u64,
    mode: CpuMode,
    ends_with_io: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { load_percent: Some(100), burst_us: 50_000, mode: CpuMode::Noop, ends_with_io: false }
    }
}

impl Settings {
    fn of(options: &JobOptions) -> Settings {
        let own = &options.cpuio;
        Settings {
            load_percent: own
                .cpuload
                .filter(|percent| *percent > 0)
                .map(|percent| u64::from(percent.min(100))),
            burst_us: u64::from(own.cpuchunks),
            mode: own.cpumode,
            ends_with_io: own.exit_on_io_done,
        }
    }

    /// Bursts make up their share of the time, and pauses the rest.
    fn cycle(&self) -> Cycle {
        let load = self.load_percent.unwrap_or(100);
        Cycle { pause_us: self.burst_us.saturating_mul(100 - load) / load, ends_with_io: self.ends_with_io }
    }

    fn missing(&self) -> Option<MissingSetting> {
        self.load_percent.is_none().then_some(MissingSetting {
            option: engine::Cpuio::cpuload,
            message: "ioengine=cpuio needs the share of a processor that it is to use",
            remedy: "for example cpuload=50",
        })
    }
}

const COUNTED: Tested =
    Tested::By("crates/fiord/tests/engine_calls.rs", "a_processor_is_used_in_bursts_and_no_file_is_made");

impl EngineDefinition for CpuIo {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Untouched,
        settings: |options| EngineSettings::new(Settings::of(options)),
        cycle: Some(|settings| settings.get::<Settings>().map(Settings::cycle).unwrap_or_default()),
        missing: |settings| settings.get::<Settings>()?.missing(),
        tests: Some(EngineTests::without_io(COUNTED)),
        example: Some(Example::plain(
            "Reads beside a job that uses half a processor, and ends with them.",
            "fiord --name=load --ioengine=cpuio --cpuload=50 --exit_on_io_done=1 \\\n  \
             --name=reads --ioengine=psync --rw=randread --bs=4k --size=16m --runtime=1s --time_based",
        )),
        ..EngineDescriptor::synchronous(EngineName::Cpuio, "work for a processor, no I/O")
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        let numbers = if settings.mode == CpuMode::Qsort { vec![0; NUMBERS] } else { Vec::new() };
        let burst_ns = settings.burst_us.saturating_mul(1000);
        visitor.synchronous(Ok(BoxedSync::new(CpuIoEngine { burst_ns, numbers, drawn: 1, arena })))
    }
}

/// The engine, set up.
#[derive(Debug)]
struct CpuIoEngine<'arena> {
    burst_ns: u64,
    /// What is sorted; empty if nothing is.
    numbers: Vec<u64>,
    drawn: u64,
    arena: Arena<'arena>,
}

impl CpuIoEngine<'_> {
    /// Work for a fraction of a millisecond.
    fn work(&mut self) {
        if self.numbers.is_empty() {
            (0..STEPS).for_each(|step| _ = black_box(step));
            return;
        }
        for number in &mut self.numbers {
            // The generator of Lehmer, modulo a Mersenne prime.
            self.drawn = self.drawn * 48_271 % 0x7fff_ffff;
            *number = self.drawn;
        }
        self.numbers.sort_unstable();
        black_box(&mut self.numbers);
    }
}

impl<'arena> Engine<'arena> for CpuIoEngine<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn open(&mut self, _file: FileIndex, _target: &NamedTarget<'_>) -> io::Result<()> {
        Ok(())
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for CpuIoEngine<'arena> {
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        let began_ns = clock::monotonic_ns();
        let (mut now_ns, mut checked_ns) = (began_ns, began_ns);
        while now_ns - began_ns < self.burst_ns {
            self.work();
            now_ns = clock::monotonic_ns();
            if now_ns - checked_ns >= SIGNAL_CHECK_NS {
                checked_ns = now_ns;
                if signal::is_stop_pending() {
                    break;
                }
            }
        }
        Outcome::whole(&op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_leave_the_share_that_is_asked_for() {
        let settings = |load_percent, burst_us| Settings { load_percent, burst_us, ..Settings::default() };
        for (load, burst, pause) in
            [(50, 50_000, 50_000), (20, 10_000, 40_000), (100, 50_000, 0), (1, 10, 990)]
        {
            assert_eq!(settings(Some(load), burst).cycle().pause_us, pause, "{load} {burst}");
        }
        assert!(settings(None, 1).missing().is_some() && Settings::default().missing().is_none());
    }
}
