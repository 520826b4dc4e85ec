//! How long a worker that should have ended is waited for, and what is said of one that does not.
//!
//! Invariant: a worker that moves (completes I/O, goes from one part of its life to the next) is waited for, however
//! long it takes; so is one that nothing has told to end.

use std::ops::Range;

use fiord_plan::{FileKind, Job};
use fiord_sys::errno::Errno;
use fiord_sys::{signal, whereabouts};

use crate::failure::Failure;
use crate::live::State;
use crate::scene::Scene;

const ETIMEDOUT: Errno = Errno(110);

const S: u64 = 1_000_000_000;

/// How long a worker may stay where it is after a signal told it to stop.
const GRACE_NS: u64 = 10 * S;

/// The same after a second SIGINT.
const GRACE_URGENT_NS: u64 = S;

/// How long a worker may stay where it is when its run time is over, or another's end told it to stop: a disk that
/// takes so long for an I/O is not slow, but broken.
const GRACE_OVERTIME_NS: u64 = 30 * S;

/// How often is looked.
const LOOKS_APART_NS: u64 = S / 4;

/// When those that are waited for are told of.
const SILENCE_NS: u64 = S;

/// What was seen of one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    ios: u64,
    state: u8,
    should_end: bool,
}

/// What there is to do about workers that should have ended.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// To be told again and woken, since they may wait for what never comes.
    pub to_wake: Vec<usize>,
    /// To be told of.
    pub awaited: Vec<usize>,
    /// To be waited for no longer.
    pub to_give_up: Vec<usize>,
}

/// Who moves and who does not.
pub(crate) struct Patience {
    /// What was seen last of each, and since when it is so.
    seen: Vec<(Seen, u64)>,
    given_up: Vec<bool>,
    /// When anybody came nearer to the end.
    moved_ns: u64,
    looked_ns: u64,
    has_told: bool,
    unended: usize,
}

impl Patience {
    /// With that many workers.
    pub(crate) fn new(workers: usize) -> Patience {
        Patience {
            seen: vec![(Seen::default(), 0); workers],
            given_up: vec![false; workers],
            moved_ns: 0,
            looked_ns: 0,
            has_told: false,
            unended: usize::MAX,
        }
    }

    /// Whether this worker is not waited for any more.
    pub(crate) fn has_given_up(&self, number: usize) -> bool {
        self.given_up[number]
    }

    /// Something came nearer to its end.
    pub(crate) fn has_moved(&mut self, now_ns: u64) {
        self.moved_ns = now_ns;
    }

    /// How long a worker is where it is by now, and nobody else came nearer to the end either.
    pub(crate) fn unmoved_ns(&self, number: usize, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.seen[number].1.max(self.moved_ns))
    }

    /// Looks at the workers of a stage, if it is time to.
    pub(crate) fn look(&mut self, scene: &Scene, stage: &Range<usize>, now_ns: u64) -> Option<Looked> {
        if now_ns < self.looked_ns + LOOKS_APART_NS {
            return None;
        }
        self.looked_ns = now_ns;
        let unended: Vec<usize> = stage.clone().filter(|number| !scene.has_one_ended(*number)).collect();
        // Thousands end one after another: as long as some do, the others have not had their turn.
        if unended.len() < std::mem::replace(&mut self.unended, unended.len()) {
            self.moved_ns = now_ns;
        }
        let mut looked = Looked::default();
        for number in unended {
            self.note(scene, number, now_ns);
            let (seen, _) = self.seen[number];
            if !seen.should_end {
                continue;
            }
            let unmoved_ns = self.unmoved_ns(number, now_ns);
            if self.is_over(scene, number, now_ns) {
                self.given_up[number] = true;
                looked.to_give_up.push(number);
            } else if unmoved_ns >= LOOKS_APART_NS {
                looked.to_wake.push(number);
            }
            if unmoved_ns >= SILENCE_NS && scene.told_for_ns(now_ns) > 0 {
                looked.awaited.push(number);
            }
        }
        if looked.awaited.is_empty() || std::mem::replace(&mut self.has_told, true) {
            looked.awaited.clear();
        }
        Some(looked)
    }

    fn note(&mut self, scene: &Scene, number: usize, now_ns: u64) {
        let (live, job) = (&scene.lives[number], &scene.plan.jobs[number]);
        let state = live.state();
        let seen = Seen {
            ios: live.counters().ios.iter().sum(),
            state: state as u8,
            should_end: live.is_told_to_stop()
                || is_past_its_time(job, state, live.measured_since_ns(), now_ns),
        };
        if seen != self.seen[number].0 {
            self.seen[number] = (seen, now_ns);
        }
    }

    /// Whether a worker that should have ended has had all the time it gets.
    pub(crate) fn is_over(&self, scene: &Scene, number: usize, now_ns: u64) -> bool {
        let unmoved_ns = self.unmoved_ns(number, now_ns);
        let told_for_ns = scene.told_for_ns(now_ns);
        match grace_ns(told_for_ns > 0, scene.is_urgent(), scene.lives[number].state()) {
            Some(grace_ns) if told_for_ns > 0 => unmoved_ns.min(told_for_ns) >= grace_ns,
            Some(grace_ns) => self.seen[number].0.should_end && unmoved_ns >= grace_ns,
            None => false,
        }
    }
}

/// Whether a job's run time is over and it runs on all the same.
fn is_past_its_time(job: &Job, state: State, measured_since_ns: u64, now_ns: u64) -> bool {
    let runs = matches!(state, State::Running | State::Ramping) && measured_since_ns > 0;
    runs && job.limits.runtime_ns.is_some_and(|limit_ns| now_ns > measured_since_ns.saturating_add(limit_ns))
}

/// How long a worker that should have ended may stay where it is; `None`: as long as it takes. What it writes back or
/// runs at its end is part of its job, unless a signal cut that short.
fn grace_ns(is_told_by_signal: bool, is_urgent: bool, state: State) -> Option<u64> {
    match (is_told_by_signal, is_urgent, state) {
        (true, true, _) => Some(GRACE_URGENT_NS),
        (true, false, _) => Some(GRACE_NS),
        (false, _, State::Syncing | State::Finishing) => None,
        (false, ..) => Some(GRACE_OVERTIME_NS),
    }
}

/// What is said of a worker that was given up after it had not moved for so long.
pub(crate) fn failure(scene: &Scene, job: &Job, unmoved_ns: u64, signal: Option<i32>) -> Failure {
    let live = &scene.lives[job.number as usize];
    let found = whereabouts::of(live.thread_id());
    let own = || job.files.list.iter().find(|file| file.kind != FileKind::None).map(|file| file.path.clone());
    let doing = match live.state() {
        State::Waiting => "laying out its files",
        State::SettingUp | State::Ready => "setting up",
        State::PreReading => "reading its files beforehand",
        State::Ramping | State::Running => "doing I/O",
        State::Syncing => "waiting for its files to be synchronised",
        State::Finishing | State::Ended | State::Failed => {
            "closing its files, or in a command behind the run"
        }
    };
    let why = match signal {
        Some(number) => format!("{} told it to stop", signal::name(number)),
        None => "its time was over".to_string(),
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
        errno: Some(ETIMEDOUT),
        explanation: format!(
            "hangs while {doing}{sleep}: {why}, it has not moved for {} s, and was given up (thread {})",
            unmoved_ns / S,
            live.thread_id(),
        ),
        endangers: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
