//! The shared face of a running worker: counters, its lifecycle state, and the requests others make of it.
//!
//! Invariant: the counters have one writer, the worker, and are read relaxed; the flags are written by the coordinator
//! and other workers' ends, on a cache line of their own. Whoever sees a state or takes a request sees what was recorded
//! before it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fiord_plan::{Direction, PerDirection};
use fiord_stats::{DetailedProgress, JobStats, RunLatencies};
use fiord_sys::clock;

use crate::failure::Failure;

/// A worker's lifecycle state, as shown by the letters of fio's live line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not started yet.
    Waiting = 0,
    /// Started, opening and laying out.
    SettingUp,
    /// Ready, held by the start barrier.
    Ready,
    /// Pre-reading its files.
    PreReading,
    /// Running its ramp, which is not counted.
    Ramping,
    /// Running.
    Running,
    /// In its final synchronisation.
    Syncing,
    /// Finishing after its loop.
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
    /// Whether the worker has ended.
    pub fn is_over(self) -> bool {
        matches!(self, State::Ended | State::Failed)
    }

    /// Whether the worker is in its loop, in which it does I/O and answers requests.
    pub fn does_io(self) -> bool {
        matches!(self, State::Ramping | State::Running)
    }
}

/// Requests to a worker, as bits.
pub(crate) mod request {
    /// Stop now.
    pub const STOP: u32 = 1;
    /// Publish a copy of the statistics.
    pub const SNAPSHOT: u32 = 2;
    /// The ramp is over.
    pub const MEASURE: u32 = 4;
    /// Publish what was done so far, with coarse latencies.
    pub const PROGRESS: u32 = 8;
    /// Publish the latencies so far at full resolution.
    pub const LATENCIES: u32 = 16;
    /// Those to publish something.
    pub const COPIES: u32 = SNAPSHOT | PROGRESS | LATENCIES;
}

/// Counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// I/Os completed, per direction.
    pub ios: PerDirection<u64>,
    /// Bytes transferred, per direction.
    pub bytes: PerDirection<u64>,
    /// How many latencies `latency_ns` is the sum of: they are added in batches.
    pub latencies: u64,
    /// The sum of latencies, if a rule of the job needs it; else 0.
    pub latency_ns: u64,
}

/// What has been done in one direction; side by side, so that an I/O finds both with one address.
#[derive(Default)]
struct Done {
    ios: AtomicU64,
    bytes: AtomicU64,
}

/// The worker's own side, written by it alone.
#[repr(align(128))]
#[derive(Default)]
struct Shown {
    done: PerDirection<Done>,
    latencies: AtomicU64,
    latency_ns: AtomicU64,
    state: AtomicU8,
    files_open: AtomicU32,
    depth: AtomicU32,
    thread_id: AtomicU32,
    measured_since_ns: AtomicU64,
    ended_ns: AtomicU64,
    /// Time spent reading back until the last time that it ended.
    read_back_ns: AtomicU64,
    /// Since when it reads back, on the monotonic clock; 0 if it does not.
    reads_back_since_ns: AtomicU64,
    /// Completed operations that are not measured (a verification's reads), so that a worker that does nothing else is
    /// seen to make progress.
    unmeasured: AtomicU64,
    /// Whether it has done its I/O, and waits for the page faults of others.
    is_held_up: AtomicBool,
}

/// What a worker publishes of its statistics while it runs.
#[derive(Default)]
pub(crate) struct Published {
    /// A copy as of the last request for one.
    pub stats: JobStats,
    /// What was done as of the last request for that, or of the end; `None` before the first.
    pub progress: Option<Box<DetailedProgress>>,
    /// Its latencies as of the last request for them; `None` before the first.
    pub latencies: Option<Box<RunLatencies>>,
    /// When `latencies` were published, on the monotonic clock.
    pub latencies_ns: u64,
}

/// What a worker publishes and others read. A thread that panics while it has the lock takes no figure from the others:
/// statistics and progress are replaced as a whole, and latencies are dated after they are complete. That it panicked is
/// the failure of its own job, or the end of the run.
#[derive(Default)]
pub(crate) struct PublishedLock(Mutex<Published>);

impl PublishedLock {
    /// What was published last.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Published> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Published {
    /// Publishes the latencies so far; of a ramp, none.
    pub(crate) fn set_latencies(&mut self, stats: Option<&JobStats>) {
        match stats {
            Some(stats) => self.latencies.get_or_insert_default().copy(stats),
            None => self.latencies = Some(Box::default()),
        }
        self.latencies_ns = clock::monotonic_ns();
    }
}

/// Adds to a counter that only this thread changes.
#[inline]
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(count), Relaxed);
}

/// What other threads see of one worker.
#[derive(Default)]
pub(crate) struct Live {
    shown: Shown,
    requests: Requests,
    failure: OnceLock<Failure>,
}

#[repr(align(128))]
#[derive(Default)]
struct Requests {
    flags: AtomicU32,
    why: AtomicU8,
    watches_signals: AtomicBool,
    complaint: OnceLock<String>,
}

/// Why a worker was requested to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopReason {
    /// No stop was requested.
    Nothing = 0,
    /// SIGINT or SIGTERM.
    Signal,
    /// Another worker's end (`exitall`).
    Other,
    /// Its run time is over (requested by the coordinator if the worker has no clock).
    Time,
    /// It fell below its minimum rate.
    TooSlow,
    /// Its measure became steady.
    Steady,
    /// The trigger of the run fired.
    Trigger,
}

impl Live {
    /// Adds completed I/Os, and the bytes of all of them; returns how many there were before.
    #[inline]
    pub(crate) fn completed(&self, direction: Direction, ios: u64, bytes: u64) -> u64 {
        let done = &self.shown.done[direction.index()];
        let before = done.ios.load(Relaxed);
        done.ios.store(before.wrapping_add(ios), Relaxed);
        add(&done.bytes, bytes);
        before
    }

    /// Completed I/Os of one direction.
    #[inline]
    pub(crate) fn ios(&self, direction: Direction) -> u64 {
        self.shown.done[direction.index()].ios.load(Relaxed)
    }

    /// Adds the latencies of completed I/Os, and their number.
    pub(crate) fn add_latencies(&self, count: u64, sum_ns: u64) {
        add(&self.shown.latencies, count);
        add(&self.shown.latency_ns, sum_ns);
    }

    /// Adds a completed operation that is not measured.
    pub(crate) fn completed_unmeasured(&self) {
        add(&self.shown.unmeasured, 1);
    }

    /// The worker reads back what it wrote from now on, or its own I/O goes on; `now_ns` reads the monotonic clock.
    #[inline]
    pub(crate) fn set_reads_back(&self, reads_back: bool, now_ns: impl Fn() -> u64) {
        let since = &self.shown.reads_back_since_ns;
        match (reads_back, since.load(Relaxed)) {
            (true, 0) => since.store(now_ns(), Relaxed),
            (false, 1..) => {
                self.shown.read_back_ns.store(self.read_back_ns(now_ns()), Relaxed);
                // Who misses the time would take the job for too slow.
                since.store(0, Release);
            }
            (true, 1..) | (false, 0) => {}
        }
    }

    /// Time spent reading back until `now_ns` on the monotonic clock, in which the job does no I/O of its own.
    pub(crate) fn read_back_ns(&self, now_ns: u64) -> u64 {
        let running_ns = match self.shown.reads_back_since_ns.load(Acquire) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        self.shown.read_back_ns.load(Relaxed) + running_ns
    }

    /// Operations completed, measured or not: grows as long as the worker makes progress.
    pub(crate) fn completions(&self) -> u64 {
        self.counters().ios.iter().sum::<u64>() + self.shown.unmeasured.load(Relaxed)
    }

    pub(crate) fn counters(&self) -> Counters {
        let done = &self.shown.done;
        Counters {
            ios: done.each_ref().map(|done| done.ios.load(Relaxed)),
            bytes: done.each_ref().map(|done| done.bytes.load(Relaxed)),
            latencies: self.shown.latencies.load(Relaxed),
            latency_ns: self.shown.latency_ns.load(Relaxed),
        }
    }

    pub(crate) fn state(&self) -> State {
        STATES[usize::from(self.shown.state.load(Acquire)).min(STATES.len() - 1)]
    }

    pub(crate) fn set_state(&self, state: State) {
        self.shown.state.store(state as u8, Release);
    }

    pub(crate) fn files_open(&self) -> u32 {
        self.shown.files_open.load(Relaxed)
    }

    pub(crate) fn set_files_open(&self, count: u32) {
        self.shown.files_open.store(count, Relaxed);
    }

    /// The queue depth in use, if it is adjusted to a latency; else 0.
    pub(crate) fn depth(&self) -> u32 {
        self.shown.depth.load(Relaxed)
    }

    pub(crate) fn set_depth(&self, depth: u32) {
        self.shown.depth.store(depth, Relaxed);
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

    /// Whether it has done its I/O, and waits for the page faults of others: it makes no progress, but does not hang.
    pub(crate) fn is_held_up(&self) -> bool {
        self.shown.is_held_up.load(Relaxed)
    }

    pub(crate) fn set_held_up(&self, is_held_up: bool) {
        self.shown.is_held_up.store(is_held_up, Relaxed);
    }

    /// Whether any request is pending: one relaxed load per I/O.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.requests.flags.load(Relaxed) != 0
    }

    /// Whether requests are pending, for whoever waits for their answers.
    pub(crate) fn owes_answers(&self) -> bool {
        self.requests.flags.load(Acquire) != 0
    }

    /// Takes the pending requests, those to publish something with what it is published in; a request to stop remains set.
    /// That is locked before, so that whoever sees such a request taken, and locks it, has the answer.
    pub(crate) fn take_requests<P>(&self, lock: impl FnOnce() -> P) -> (u32, Option<P>) {
        let locked = (self.requests.flags.load(Relaxed) & request::COPIES != 0).then(lock);
        let kept = if locked.is_some() { 0 } else { request::COPIES };
        (self.requests.flags.fetch_and(request::STOP | kept, AcqRel) & !kept, locked)
    }

    pub(crate) fn request(&self, what: u32) {
        self.requests.flags.fetch_or(what, Release);
    }

    /// Requests the worker to stop; the first reason given is kept.
    pub(crate) fn request_stop(&self, why: StopReason) {
        let _ = self.requests.why.compare_exchange(StopReason::Nothing as u8, why as u8, Relaxed, Relaxed);
        self.request(request::STOP);
    }

    /// Records why the worker ends, before it waits for its operations in flight: some may never end.
    pub(crate) fn set_failure(&self, failure: &Failure) {
        let _ = self.failure.set(failure.clone());
    }

    /// Why the worker ends while it still waits for operations in flight; `None` if it has not failed or does not wait.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// Makes the worker check for signals to the process itself.
    pub(crate) fn watch_signals(&self) {
        self.requests.watches_signals.store(true, Relaxed);
    }

    /// Whether the worker checks for signals to the process itself.
    pub(crate) fn watches_signals(&self) -> bool {
        self.requests.watches_signals.load(Relaxed)
    }

    /// Records what is wrong with the worker, before it is requested to stop for that.
    pub(crate) fn set_complaint(&self, what: String) {
        // The first complaint is the cause.
        let _ = self.requests.complaint.set(what);
    }

    pub(crate) fn complaint(&self) -> &str {
        self.requests.complaint.get().map_or("", String::as_str)
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.requests.flags.load(Acquire) & request::STOP != 0
    }

    pub(crate) fn stop_reason(&self) -> StopReason {
        match self.requests.why.load(Relaxed) {
            1 => StopReason::Signal,
            2 => StopReason::Other,
            3 => StopReason::Time,
            4 => StopReason::TooSlow,
            5 => StopReason::Steady,
            6 => StopReason::Trigger,
            _ => StopReason::Nothing,
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
        live.request(request::SNAPSHOT);
        live.request_stop(StopReason::Other);
        live.request_stop(StopReason::Signal);
        assert_eq!(live.take_requests(|| ()).0, request::SNAPSHOT | request::STOP);
        assert_eq!(live.take_requests(|| ()).0, request::STOP);
        assert_eq!(live.stop_reason(), StopReason::Other);
    }
}

/// Run by Miri too, which shows what processors that reorder memory may show.
#[cfg(test)]
mod memory_order {
    use std::thread;

    use fiord_testing::in_many_orders;

    use super::*;

    #[test]
    fn whoever_is_stopped_knows_why() {
        in_many_orders(|| {
            let live = Live::default();
            thread::scope(|scope| {
                scope.spawn(|| {
                    live.set_complaint("too slow".to_string());
                    live.request_stop(StopReason::TooSlow);
                });
                while !live.has_requests() {
                    thread::yield_now();
                }
                assert_eq!(live.take_requests(|| ()).0, request::STOP);
                assert_eq!((live.stop_reason(), live.complaint()), (StopReason::TooSlow, "too slow"));
            });
        });
    }

    #[test]
    fn whoever_sees_a_request_taken_has_its_answer() {
        in_many_orders(|| {
            let (live, answer) = (Live::default(), Mutex::new(0));
            thread::scope(|scope| {
                live.request(request::SNAPSHOT);
                scope.spawn(|| {
                    let (_, answer) = live.take_requests(|| answer.lock().unwrap());
                    *answer.unwrap() = 7;
                });
                while live.owes_answers() {
                    thread::yield_now();
                }
                assert_eq!(*answer.lock().unwrap(), 7);
            });
        });
    }

    #[test]
    fn whoever_waits_for_a_stop_knows_why() {
        in_many_orders(|| {
            let live = Live::default();
            thread::scope(|scope| {
                scope.spawn(|| live.request_stop(StopReason::Time));
                while !live.is_stop_requested() {
                    thread::yield_now();
                }
                assert_eq!(live.stop_reason(), StopReason::Time);
            });
        });
    }

    #[test]
    fn a_state_comes_with_its_time() {
        in_many_orders(|| {
            let live = Live::default();
            thread::scope(|scope| {
                scope.spawn(|| {
                    live.set_measured_since_ns(7);
                    live.set_state(State::Running);
                    live.set_ended_ns(9);
                    live.set_state(State::Finishing);
                });
                while live.state() != State::Finishing {
                    assert!(live.state() != State::Running || live.measured_since_ns() == 7);
                    thread::yield_now();
                }
                assert_eq!((live.measured_since_ns(), live.ended_ns()), (7, 9));
            });
        });
    }

    #[test]
    fn no_time_of_reading_back_is_missed() {
        in_many_orders(|| {
            let live = Live::default();
            live.set_reads_back(true, || 1000);
            thread::scope(|scope| {
                scope.spawn(|| live.set_reads_back(false, || 3000));
                for _ in 0..20 {
                    assert!(live.read_back_ns(3000) >= 2000);
                    thread::yield_now();
                }
            });
            assert_eq!(live.read_back_ns(4000), 2000);
        });
    }
}
