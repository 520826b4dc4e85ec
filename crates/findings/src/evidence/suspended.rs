//! Whether the run was suspended: stopped by a signal, frozen with its control group, or asleep with the machine.
//!
//! Invariant: a device that stands still is no suspension, because the run goes on looking at the time; neither is a busy
//! machine, on which it waits for a processor.

use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use crate::subject::percent;

/// The time is looked at several times a second: a longer pause between two looks has a reason.
const PAUSE_MIN_NS: u64 = 1_000_000_000;

/// Who is suspended does not wait for a processor: at most for this share of a pause, in percent.
const WAITED_MAX: f64 = 50.0;

/// The machine sleeps for at least this long, by the clock that counts it.
const SLEEP_MIN_NS: u64 = 100_000_000;

/// The moment of a look, by several clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The monotonic clock, which stands still while the machine sleeps.
    pub monotonic_ns: u64,
    /// The clock that does not.
    pub boot_ns: u64,
    /// How long the looking thread has waited for a processor, if the kernel counts it.
    pub waited_ns: Option<u64>,
}

/// For how long a run was suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspension {
    /// In all, in nanoseconds.
    pub total_ns: u64,
    /// When the first one began, after the first look, in nanoseconds.
    pub at_ns: u64,
}

/// Finds pauses between looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuspensionWatch {
    first: Option<Look>,
    last: Look,
    found: Option<Suspension>,
}

impl SuspensionWatch {
    /// Takes the next look.
    pub fn look(&mut self, now: Look) {
        let Some(first) = self.first else {
            (self.first, self.last) = (Some(now), now);
            return;
        };
        let before = std::mem::replace(&mut self.last, now);
        let passed_ns = now.monotonic_ns.saturating_sub(before.monotonic_ns);
        let slept_ns = now.boot_ns.saturating_sub(before.boot_ns).saturating_sub(passed_ns);
        let stood_ns = if is_pause(&before, &now) { passed_ns } else { 0 };
        let slept_ns = if slept_ns >= SLEEP_MIN_NS { slept_ns } else { 0 };
        if stood_ns + slept_ns > 0 {
            let at_ns = before.boot_ns.saturating_sub(first.boot_ns);
            let found = self.found.get_or_insert(Suspension { total_ns: 0, at_ns });
            found.total_ns += stood_ns + slept_ns;
        }
    }

    /// What was found so far.
    pub fn found(&self) -> Option<Suspension> {
        self.found
    }
}

/// Whether the process stood still between two looks; not if it is not known whether it waited for a processor.
fn is_pause(before: &Look, now: &Look) -> bool {
    let passed_ns = now.monotonic_ns.saturating_sub(before.monotonic_ns);
    let waited_ns = now.waited_ns.zip(before.waited_ns).map(|(now, before)| now.saturating_sub(before));
    let is_waiting =
        waited_ns.is_none_or(|waited_ns| percent(waited_ns as f64, passed_ns as f64) > WAITED_MAX);
    passed_ns >= PAUSE_MIN_NS && !is_waiting
}

/// The finding of a run that was suspended.
pub(super) fn of(suspension: Option<Suspension>) -> Option<Finding> {
    let Suspension { total_ns, at_ns } = suspension?;
    let (total_s, at_s) = (total_ns as f64 / 1e9, at_ns as f64 / 1e9);
    let sentence = format!(
        "the run itself was suspended for {total_s:.1} s, beginning {at_s:.0} s after its start: the time is in its figures"
    );
    let remedy =
        "repeat the run; do not stop it, freeze its container or virtual machine, or let the machine sleep";
    let finding = Finding::new(Code::Suspended, Subject::Run, sentence, remedy);
    Some(finding.based_on([("suspended_s", Cell::Number(total_s, 1)), ("at_s", Cell::Number(at_s, 1))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A run looked at every 250 ms, with this between its fourth look and the next.
    fn found(between: Look) -> Option<Suspension> {
        let mut watch = SuspensionWatch::default();
        let mut now = Look { waited_ns: Some(0), ..Look::default() };
        for number in 0..8 {
            watch.look(now);
            let passes = if number == 3 { between } else { pause(250) };
            now = Look {
                monotonic_ns: now.monotonic_ns + passes.monotonic_ns,
                boot_ns: now.boot_ns + passes.boot_ns,
                waited_ns: now.waited_ns.zip(passes.waited_ns).map(|(so_far, more)| so_far + more),
            };
        }
        watch.found()
    }

    fn pause(ms: u64) -> Look {
        Look { monotonic_ns: ms * MS, boot_ns: ms * MS, waited_ns: Some(MS) }
    }

    #[test]
    fn a_process_that_stood_still_was_suspended() {
        let expected = Suspension { total_ns: 3000 * MS, at_ns: 750 * MS };
        assert_eq!(found(pause(3000)), Some(expected));
        assert_eq!(found(pause(900)), None, "a look that came late");
        let sentence = of(Some(expected)).unwrap().sentence;
        assert!(
            sentence.starts_with("the run itself was suspended for 3.0 s, beginning 1 s after"),
            "{sentence}"
        );
    }

    #[test]
    fn a_machine_that_slept_suspended_it() {
        let slept = Look { monotonic_ns: 250 * MS, boot_ns: 8250 * MS, ..pause(250) };
        assert_eq!(found(slept), Some(Suspension { total_ns: 8000 * MS, at_ns: 750 * MS }));
        assert_eq!(found(Look { boot_ns: 251 * MS, ..slept }), None);
    }

    #[test]
    fn a_busy_machine_does_not_suspend_it() {
        assert_eq!(
            found(Look { waited_ns: Some(2500 * MS), ..pause(3000) }),
            None,
            "it waited for a processor"
        );
        assert_eq!(found(Look { waited_ns: None, ..pause(3000) }), None, "the kernel does not count that");
    }
}
