//! Detects workers that should have ended and hang, and describes where they hang.
//!
//! Invariant: a worker that makes progress (completes I/O, changes its lifecycle state) is waited for, however long
//! it takes; so is one that has no reason to end yet.

use std::ops::Range;

use fiord_plan::{FileKind, Job};
use fiord_sys::errno::Errno;
use fiord_sys::{signal, thread_activity};

use crate::failure::Failure;
use crate::live::State;
use crate::run_state::RunState;

const S: u64 = 1_000_000_000;

/// How long a worker may make no progress after a signal requested it to stop.
const GRACE_NS: u64 = 10 * S;

/// The same after a second SIGINT.
const GRACE_URGENT_NS: u64 = S;

/// How long a worker may make no progress after its run time is over, another job's end stopped it, or its own I/O failed:
/// a disk that takes this long for one I/O is not slow but broken.
const GRACE_OVERTIME_NS: u64 = 30 * S;

/// Time between two checks.
const CHECK_INTERVAL_NS: u64 = S / 4;

/// How long workers may make no progress before the user is notified that the run waits for them.
const NOTIFY_AFTER_NS: u64 = S;

/// What identifies progress of one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    completions: u64,
    state: u8,
    should_end: bool,
}

/// Actions for workers that should have ended.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    /// To be requested to stop again and woken, since they may be blocked for good.
    pub to_wake: Vec<usize>,
    /// To be shown to the user.
    pub awaited: Vec<usize>,
    /// To be abandoned.
    pub to_abandon: Vec<usize>,
}

/// Tracks which workers make progress.
pub(crate) struct Watchdog {
    /// The last state seen of each worker, and when it was first seen.
    seen: Vec<(Seen, u64)>,
    abandoned: Vec<bool>,
    /// When any worker last made progress towards its end.
    moved_ns: u64,
    checked_ns: u64,
    has_notified: bool,
    unended: usize,
}

impl Watchdog {
    /// A watchdog for this number of workers.
    pub(crate) fn new(workers: usize) -> Watchdog {
        Watchdog {
            seen: vec![(Seen::default(), 0); workers],
            abandoned: vec![false; workers],
            moved_ns: 0,
            checked_ns: 0,
            has_notified: false,
            unended: usize::MAX,
        }
    }

    /// Whether this worker was abandoned.
    pub(crate) fn has_abandoned(&self, number: usize) -> bool {
        self.abandoned[number]
    }

    /// Records progress.
    pub(crate) fn has_moved(&mut self, now_ns: u64) {
        self.moved_ns = now_ns;
    }

    /// How long neither this worker nor the run as a whole has made progress.
    pub(crate) fn unmoved_ns(&self, number: usize, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.seen[number].1.max(self.moved_ns))
    }

    /// Checks the workers of a stage, if a check is due.
    pub(crate) fn look(&mut self, shared: &RunState, stage: &Range<usize>, now_ns: u64) -> Option<Actions> {
        if now_ns < self.checked_ns + CHECK_INTERVAL_NS {
            return None;
        }
        self.checked_ns = now_ns;
        let unended: Vec<usize> = stage.clone().filter(|number| !shared.is_ended(*number)).collect();
        // Thousands end one after another: while some still do, the others may just not have been scheduled.
        if unended.len() < std::mem::replace(&mut self.unended, unended.len()) {
            self.moved_ns = now_ns;
        }
        let mut actions = Actions::default();
        for number in unended {
            self.note(shared, number, now_ns);
            if shared.live[number].is_held_up() {
                self.seen[number].1 = now_ns;
            }
            let (seen, _) = self.seen[number];
            if !seen.should_end {
                continue;
            }
            let unmoved_ns = self.unmoved_ns(number, now_ns);
            if self.is_hung(shared, number, now_ns) {
                self.abandoned[number] = true;
                actions.to_abandon.push(number);
            } else if unmoved_ns >= CHECK_INTERVAL_NS {
                actions.to_wake.push(number);
            }
            if unmoved_ns >= NOTIFY_AFTER_NS && shared.stopping_for_ns(now_ns) > 0 {
                actions.awaited.push(number);
            }
        }
        if actions.awaited.is_empty() || std::mem::replace(&mut self.has_notified, true) {
            actions.awaited.clear();
        }
        Some(actions)
    }

    fn note(&mut self, shared: &RunState, number: usize, now_ns: u64) {
        let (live, job) = (&shared.live[number], &shared.plan.jobs[number]);
        let state = live.state();
        let seen = Seen {
            completions: live.completions(),
            state: state as u8,
            should_end: live.is_stop_requested()
                || live.failure().is_some()
                || is_past_run_time(job, state, live.measured_since_ns(), now_ns),
        };
        if seen != self.seen[number].0 {
            self.seen[number] = (seen, now_ns);
        }
    }

    /// Whether a worker that should have ended has used up its grace period.
    pub(crate) fn is_hung(&self, shared: &RunState, number: usize, now_ns: u64) -> bool {
        let unmoved_ns = self.unmoved_ns(number, now_ns);
        let stopping_for_ns = shared.stopping_for_ns(now_ns);
        match grace_ns(stopping_for_ns > 0, shared.is_urgent(), shared.live[number].state()) {
            Some(grace_ns) if stopping_for_ns > 0 => unmoved_ns.min(stopping_for_ns) >= grace_ns,
            Some(grace_ns) => self.seen[number].0.should_end && unmoved_ns >= grace_ns,
            // What unmaps memory waits for the page fault of another worker.
            None => shared.is_memory_map_held() && unmoved_ns >= GRACE_OVERTIME_NS,
        }
    }
}

/// Whether a job still runs although its run time is over.
fn is_past_run_time(job: &Job, state: State, measured_since_ns: u64, now_ns: u64) -> bool {
    let runs = state.does_io() && measured_since_ns > 0;
    runs && job.limits.runtime_ns.is_some_and(|limit_ns| now_ns > measured_since_ns.saturating_add(limit_ns))
}

/// How long a worker that should have ended may make no progress; `None`: without limit. Final synchronisation and
/// commands are part of its job, unless a signal stopped the run.
fn grace_ns(stopped_by_signal: bool, is_urgent: bool, state: State) -> Option<u64> {
    match (stopped_by_signal, is_urgent, state) {
        (true, true, _) => Some(GRACE_URGENT_NS),
        (true, false, _) => Some(GRACE_NS),
        (false, _, State::Syncing | State::Finishing) => None,
        (false, ..) => Some(GRACE_OVERTIME_NS),
    }
}

/// The failure of a worker that was abandoned after making no progress for `unmoved_ns`.
pub(crate) fn failure(shared: &RunState, job: &Job, unmoved_ns: u64, signal: Option<i32>) -> Failure {
    let live = &shared.live[job.number as usize];
    let found = thread_activity::of(live.thread_id());
    if let Some(first) = live.failure() {
        return after(first, unmoved_ns, live.thread_id());
    }
    let own = || job.files.list.iter().find(|file| file.kind != FileKind::None).map(|file| file.path.clone());
    let doing = match live.state() {
        State::Waiting => "laying out its files",
        State::SettingUp | State::Ready => "setting up",
        State::PreReading => "pre-reading its files",
        State::Ramping | State::Running => "doing I/O",
        State::Syncing => "waiting for its files to be synchronised",
        State::Finishing | State::Ended | State::Failed => "closing its files, or running exec_postrun",
    };
    let why = match signal {
        Some(number) => format!("{} requested it to stop", signal::name(number)),
        None => "its run time was over".to_string(),
    };
    let sleep = if found.is_uninterruptible {
        ", in a sleep that only the device or file system can end"
    } else {
        ""
    };
    Failure {
        operation: found.call.unwrap_or("end").to_string(),
        path: found.path.or_else(own),
        range: None,
        errno: Some(Errno::ETIMEDOUT),
        explanation: format!(
            "hangs while {doing}{sleep}: {why}, but it made no progress for {} s and was abandoned (thread {})",
            unmoved_ns / S,
            live.thread_id(),
        ),
        unsafe_target: false,
    }
}

/// The failure of a worker that failed, waited for its operations in flight, and was abandoned: the first one is the cause.
fn after(first: &Failure, unmoved_ns: u64, thread_id: u32) -> Failure {
    let unended = format!(
        "operations in flight did not end within {} s after it, and were abandoned (thread {thread_id})",
        unmoved_ns / S
    );
    let explanation = match first.explanation.as_str() {
        "" => unended,
        explanation => format!("{explanation}; {unended}"),
    };
    Failure { explanation, ..first.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_before_operations_that_never_ended_is_the_cause() {
        let first = Failure { explanation: String::new(), ..Failure::other("write", "the device is gone") };
        let errno = Some(Errno::ENOTCONN);
        let alone = after(&Failure { errno, ..first.clone() }, 31 * S, 7);
        let told = "operations in flight did not end within 31 s after it, and were abandoned (thread 7)";
        assert_eq!((alone.errno, alone.explanation.as_str()), (errno, told));
        let explained = after(&Failure::other("write", "the device is gone"), 31 * S, 7);
        assert_eq!(explained.explanation, format!("the device is gone; {told}"));
    }

    #[test]
    fn a_signal_shortens_the_grace_and_only_a_signal_cuts_a_synchronisation_short() {
        assert_eq!(grace_ns(false, false, State::Running), Some(GRACE_OVERTIME_NS));
        assert_eq!(grace_ns(false, false, State::Syncing), None);
        assert_eq!(grace_ns(false, false, State::Finishing), None);
        for state in [State::Waiting, State::Running, State::Syncing, State::Finishing] {
            assert_eq!(grace_ns(true, false, state), Some(GRACE_NS));
            assert_eq!(grace_ns(true, true, state), Some(GRACE_URGENT_NS));
        }
    }
}
