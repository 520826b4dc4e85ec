//! What a running worker shows: counters, a state, and the flags by which others speak to it.
//!
//! Invariant: the counters have one writer, the worker, and are read relaxed; the flags are written by the monitor
//! and other workers' ends, on a cache line of their own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use fiord_plan::{Direction, PerDirection};

/// Where a worker is in its life, in the letters of fio's live line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not started yet.
    Waiting = 0,
    /// Started, opening and laying out.
    SettingUp,
    /// Ready, held by the start barrier.
    Ready,
    /// Reading its files before the run.
    PreReading,
    /// Running, not counted yet.
    Ramping,
    /// Running.
    Running,
    /// In its final synchronisation.
    Syncing,
    /// Past its loop.
    Finishing,
    /// Ended.
    Ended,
    /// Ended with an error.
    Failed,
}

const STATES: [State; 10] = [
    State::Waiting,
    State::SettingUp,
    State::Ready,
    State::PreReading,
    State::Ramping,
    State::Running,
    State::Syncing,
    State::Finishing,
    State::Ended,
    State::Failed,
];

impl State {
    /// Whether the worker still has its thread.
    pub fn is_over(self) -> bool {
        matches!(self, State::Ended | State::Failed)
    }
}

/// Requests to a worker, as bits.
pub(crate) mod ask {
    /// Stop now.
    pub const STOP: u32 = 1;
    /// Publish a copy of the statistics.
    pub const SNAPSHOT: u32 = 2;
    /// The ramp is over.
    pub const MEASURE: u32 = 4;
}

/// Counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// I/Os completed, per direction.
    pub ios: PerDirection<u64>,
    /// Bytes transferred, per direction.
    pub bytes: PerDirection<u64>,
}

/// The worker's own side, written by it alone.
#[repr(align(128))]
#[derive(Default)]
struct Shown {
    ios: PerDirection<AtomicU64>,
    bytes: PerDirection<AtomicU64>,
    state: AtomicU8,
    files_open: AtomicU32,
    thread_id: AtomicU32,
    measured_since_ns: AtomicU64,
    ended_ns: AtomicU64,
}

/// One worker's public face.
#[derive(Default)]
pub(crate) struct Live {
    shown: Shown,
    asked: Asked,
}

#[repr(align(128))]
#[derive(Default)]
struct Asked {
    flags: AtomicU32,
    why: AtomicU8,
    listens: AtomicBool,
    complaint: OnceLock<String>,
}

/// Why a worker was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Why {
    /// Nobody told it.
    Nothing = 0,
    /// SIGINT or SIGTERM.
    Signal,
    /// Another worker's end (`exitall`).
    Other,
    /// Its run time is over (told by the monitor when the worker has no clock).
    Time,
    /// It fell below its minimum rate.
    TooSlow,
}

impl Live {
    /// Adds completed I/Os, and the bytes of all of them.
    #[inline]
    pub(crate) fn completed(&self, direction: Direction, ios: u64, bytes: u64) {
        let index = direction.index();
        let (all_ios, all_bytes) = (&self.shown.ios[index], &self.shown.bytes[index]);
        all_ios.store(all_ios.load(Relaxed) + ios, Relaxed);
        all_bytes.store(all_bytes.load(Relaxed) + bytes, Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        let read = |all: &PerDirection<AtomicU64>| [0, 1, 2].map(|index: usize| all[index].load(Relaxed));
        Counters { ios: read(&self.shown.ios), bytes: read(&self.shown.bytes) }
    }

    pub(crate) fn state(&self) -> State {
        STATES[usize::from(self.shown.state.load(Relaxed)).min(STATES.len() - 1)]
    }

    pub(crate) fn set_state(&self, state: State) {
        self.shown.state.store(state as u8, Relaxed);
    }

    pub(crate) fn files_open(&self) -> u32 {
        self.shown.files_open.load(Relaxed)
    }

    pub(crate) fn set_files_open(&self, count: u32) {
        self.shown.files_open.store(count, Relaxed);
    }

    /// The kernel's number for its thread; 0 before it has one.
    pub(crate) fn thread_id(&self) -> u32 {
        self.shown.thread_id.load(Relaxed)
    }

    pub(crate) fn set_thread_id(&self, number: u32) {
        self.shown.thread_id.store(number, Relaxed);
    }

    /// When measuring began, on the monotonic clock; 0 before.
    pub(crate) fn measured_since_ns(&self) -> u64 {
        self.shown.measured_since_ns.load(Relaxed)
    }

    pub(crate) fn set_measured_since_ns(&self, at_ns: u64) {
        self.shown.measured_since_ns.store(at_ns, Relaxed);
    }

    /// When its I/O was over, on the monotonic clock; 0 before.
    pub(crate) fn ended_ns(&self) -> u64 {
        self.shown.ended_ns.load(Relaxed)
    }

    pub(crate) fn set_ended_ns(&self, at_ns: u64) {
        self.shown.ended_ns.store(at_ns, Relaxed);
    }

    /// Whether anybody wants something of the worker: one relaxed load per I/O.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.flags.load(Relaxed) != 0
    }

    /// The requests, answered by being taken; a request to stop stays.
    pub(crate) fn take_asked(&self) -> u32 {
        self.asked.flags.fetch_and(ask::STOP, Relaxed)
    }

    pub(crate) fn ask(&self, what: u32) {
        self.asked.flags.fetch_or(what, Relaxed);
    }

    /// Asks the worker to stop; the first reason given is kept.
    pub(crate) fn ask_to_stop(&self, why: Why) {
        let _ = self.asked.why.compare_exchange(Why::Nothing as u8, why as u8, Relaxed, Relaxed);
        self.ask(ask::STOP);
    }

    /// Asks the worker to look for signals to the process itself.
    pub(crate) fn ask_to_listen(&self) {
        self.asked.listens.store(true, Relaxed);
    }

    /// Whether the worker is to look for signals to the process itself.
    pub(crate) fn listens(&self) -> bool {
        self.asked.listens.load(Relaxed)
    }

    /// Says what is wrong with the worker, before it is told to stop for that.
    pub(crate) fn complain(&self, what: String) {
        // The first complaint is the cause.
        let _ = self.asked.complaint.set(what);
    }

    pub(crate) fn complaint(&self) -> &str {
        self.asked.complaint.get().map_or("", String::as_str)
    }

    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.asked.flags.load(Relaxed) & ask::STOP != 0
    }

    pub(crate) fn why(&self) -> Why {
        match self.asked.why.load(Relaxed) {
            1 => Why::Signal,
            2 => Why::Other,
            3 => Why::Time,
            4 => Why::TooSlow,
            _ => Why::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_survive_the_way_through_the_atomic() {
        let live = Live::default();
        for state in STATES {
            live.set_state(state);
            assert_eq!(live.state(), state);
        }
    }

    #[test]
    fn a_request_to_stop_stays_and_the_first_reason_counts() {
        let live = Live::default();
        live.ask(ask::SNAPSHOT);
        live.ask_to_stop(Why::Other);
        live.ask_to_stop(Why::Signal);
        assert_eq!(live.take_asked(), ask::SNAPSHOT | ask::STOP);
        assert_eq!(live.take_asked(), ask::STOP);
        assert_eq!(live.why(), Why::Other);
    }
}
