//! How a worker waits for the time at which an I/O is due: it sleeps until shortly before, and polls the clock for the
//! rest, because the kernel wakes a thread tens of microseconds late, most of all in a virtual machine.
//!
//! Invariant: a wait is polled for at most `MARGIN_NS_MAX`, and only if it was long enough when it began.

use fiord_plan::Job;

/// The earliest a worker wakes before the I/O is due: the most it polls for one wait.
const MARGIN_NS_MAX: u64 = 120_000;
/// The least: enough for the reading of the clock and the next pass of the loop.
const MARGIN_NS_MIN: u64 = 2_000;
/// The first waits of a job have no earlier ones to learn from.
const MARGIN_NS_FIRST: u64 = 60_000;
/// By how much the margin grows after a sleep that ended later than the margin allows, and shrinks after any other. It
/// settles where one sleep in `GROWTH_NS / SHRINKAGE_NS + 1` ends too late: at the 95th percentile of their lateness.
const GROWTH_NS: u64 = 9_500;
const SHRINKAGE_NS: u64 = 500;
/// Longer waits are not planned to their end: the loop checks again before.
const PLANNED_NS_MAX: u64 = 1_000_000_000;
/// Two calculations of the end of one wait differ by less than this.
const SAME_END_NS: u64 = 10_000;

/// In a job with rates, a wait is polled only if it is so many times as long as the margin, so that polling takes at
/// most this part of the time.
const RATE_WAIT_MARGINS: u64 = 8;

/// What a worker that waits does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitStep {
    /// Sleeps for this many nanoseconds.
    Sleep(u64),
    /// Polls the clock for this many nanoseconds.
    Poll(u64),
}

/// How early a worker wakes: follows how late its sleeps are found to end on this machine.
#[derive(Debug, Clone)]
pub(crate) struct WakeAhead {
    margin_ns: u64,
    /// How many times as long as the margin a wait must be.
    wait_margins: u64,
    /// The end of the latest wait that was long enough, and how long of it is polled.
    polled_until_ns: u64,
    polled_ns: u64,
}

impl WakeAhead {
    /// For a job that is to wake early; `None` for others. A replay polls wherever the wait is longer than what is
    /// polled, since being on time is its purpose.
    pub(crate) fn of(job: &Job) -> Option<WakeAhead> {
        if !job.pace.wakes_early {
            return None;
        }
        let wait_margins = if job.replay.is_some() { 1 } else { RATE_WAIT_MARGINS };
        Some(WakeAhead { margin_ns: MARGIN_NS_FIRST, wait_margins, polled_until_ns: 0, polled_ns: 0 })
    }

    /// The next step of a wait of `ns` that begins, or goes on, at `now_ns`.
    pub(crate) fn step(&mut self, ns: u64, now_ns: u64) -> WaitStep {
        if ns > PLANNED_NS_MAX {
            return WaitStep::Sleep(ns);
        }
        let until_ns = now_ns + ns;
        let goes_on = until_ns <= self.polled_until_ns + SAME_END_NS;
        if !goes_on && ns > self.margin_ns * self.wait_margins {
            (self.polled_until_ns, self.polled_ns) = (until_ns, self.margin_ns);
        } else if !goes_on {
            return WaitStep::Sleep(ns);
        }
        // What is polled of a wait is not changed by how late its first part ends: a sleep of less than the system is
        // late would follow.
        match ns.saturating_sub(self.polled_ns) {
            0 => WaitStep::Poll(ns),
            early_ns => WaitStep::Sleep(early_ns),
        }
    }

    /// Learns that a sleep ended `late_ns` after it should have.
    pub(crate) fn woke(&mut self, late_ns: u64) {
        let margin_ns = match late_ns > self.margin_ns {
            true => self.margin_ns + GROWTH_NS,
            false => self.margin_ns - SHRINKAGE_NS,
        };
        self.margin_ns = margin_ns.clamp(MARGIN_NS_MIN, MARGIN_NS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::Random;

    fn replaying() -> WakeAhead {
        WakeAhead { margin_ns: MARGIN_NS_FIRST, wait_margins: 1, polled_until_ns: 0, polled_ns: 0 }
    }

    /// Waits for `ns`, with sleeps that end late; returns how late it ends and how long it polled.
    fn waited(
        wake: &mut WakeAhead,
        now_ns: &mut u64,
        ns: u64,
        mut late_ns: impl FnMut() -> u64,
    ) -> (u64, u64) {
        let (due_ns, mut polled_ns) = (*now_ns + ns, 0);
        while *now_ns < due_ns {
            match wake.step(due_ns - *now_ns, *now_ns) {
                WaitStep::Sleep(ns) => {
                    let late_ns = late_ns();
                    *now_ns += ns + late_ns;
                    wake.woke(late_ns);
                }
                WaitStep::Poll(ns) => {
                    *now_ns += ns;
                    polled_ns += ns;
                }
            }
        }
        (*now_ns - due_ns, polled_ns)
    }

    #[test]
    fn jobs_that_are_not_to_wake_early_sleep_as_long_as_they_wait() {
        let mut job = crate::test_jobs::null_job("plain");
        job.pace.ios_per_s[0] = Some(1000);
        assert!(WakeAhead::of(&job).is_none());
        job.pace.wakes_early = true;
        assert_eq!(WakeAhead::of(&job).unwrap().wait_margins, RATE_WAIT_MARGINS);
    }

    #[test]
    fn the_margin_follows_how_late_sleeps_end() {
        for (from_us, to_us) in [(0, 1), (5, 10), (30, 60), (80, 110)] {
            let (mut wake, mut now_ns, mut random) = (replaying(), 1, Random::new(7));
            let mut wait = || {
                waited(&mut wake, &mut now_ns, 2_000_000, || {
                    (from_us * 1000) + random.below((to_us - from_us) * 1000)
                })
            };
            (0..500).for_each(|_| _ = wait());
            let (late, polled): (Vec<u64>, Vec<u64>) = (0..1000).map(|_| wait()).unzip();
            let on_time = late.iter().filter(|late_ns| **late_ns == 0).count();
            assert!((900..=1000).contains(&on_time), "{from_us}..{to_us} us: {on_time}");
            let mean_us = polled.iter().sum::<u64>() / 1_000_000;
            assert!(mean_us <= to_us - from_us + 12, "{from_us}..{to_us} us: polls for {mean_us} us");
        }
    }

    #[test]
    fn polling_is_bounded_however_late_sleeps_end() {
        let (mut wake, mut now_ns) = (replaying(), 1);
        for _ in 0..1000 {
            waited(&mut wake, &mut now_ns, 2_000_000, || 10_000_000);
            assert!(wake.margin_ns <= MARGIN_NS_MAX);
        }
        let (late_ns, polled_ns) = waited(&mut wake, &mut now_ns, 2_000_000, || 0);
        assert_eq!((late_ns, polled_ns), (0, MARGIN_NS_MAX));
    }

    #[test]
    fn a_wait_shorter_than_what_is_polled_is_slept() {
        let mut wake = replaying();
        assert_eq!(wake.step(MARGIN_NS_FIRST, 1), WaitStep::Sleep(MARGIN_NS_FIRST));
        assert_eq!(wake.step(MARGIN_NS_FIRST + 5, 1), WaitStep::Sleep(5));
        // The same wait goes on, after a sleep or a completion; a later one is its own.
        assert_eq!(wake.step(30_000, 30_000), WaitStep::Poll(30_000));
        assert_eq!(wake.step(30_000, 80_000), WaitStep::Sleep(30_000));
        assert_eq!(wake.step(u64::MAX, 80_000), WaitStep::Sleep(u64::MAX), "until a completion");
        assert_eq!(wake.step(30_000, 80_000), WaitStep::Sleep(30_000));
    }

    #[test]
    fn a_job_with_rates_polls_for_a_small_part_of_its_time() {
        for interval_us in [10, 50, 100, 200, 500, 800, 1000, 10_000] {
            let mut wake = WakeAhead { wait_margins: RATE_WAIT_MARGINS, ..replaying() };
            let (mut now_ns, mut random, mut polled_ns) = (1, Random::new(7), 0);
            for _ in 0..2000 {
                let waits_ns = interval_us * 1000;
                polled_ns += waited(&mut wake, &mut now_ns, waits_ns, || 20_000 + random.below(40_000)).1;
            }
            assert!(polled_ns * RATE_WAIT_MARGINS <= now_ns, "{interval_us} us: {polled_ns} of {now_ns}");
            assert_eq!(polled_ns > 0, interval_us >= 500, "{interval_us} us");
        }
    }
}
