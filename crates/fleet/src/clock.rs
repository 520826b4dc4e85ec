//! The clock of an agent on the clock of the controller, from messages there and back (Cristian's method).
//!
//! Invariant: monotonic clocks alone. As long as both clocks run evenly, and within [`DRIFT_PPM_MAX`] of each other, the true offset
//! is within the error of the fitted one at every moment between the first ping and the last.

use fiord_stats::OrderBy;

/// One message there and back: sent by the controller, received and answered by the agent, received by the controller.
/// Each time is that of its own monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ping {
    /// Sent, controller's clock.
    pub t1: i64,
    /// Received, agent's clock.
    pub t2: i64,
    /// Answered, agent's clock.
    pub t3: i64,
    /// Received, controller's clock.
    pub t4: i64,
}

/// The most that clocks of two machines drift apart: in millionths.
pub const DRIFT_PPM_MAX: u64 = 100;

impl Ping {
    /// The time that it was on its way, in nanoseconds; `None` if the times contradict each other.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let there_and_back = self.t4.checked_sub(self.t1)?.checked_sub(self.t3.checked_sub(self.t2)?)?;
        u64::try_from(there_and_back).ok().filter(|_| self.t3 >= self.t2)
    }

    /// By how much the agent's clock is ahead, if both ways took as long.
    fn offset_ns(&self) -> i64 {
        let ahead = i128::from(self.t2) - i128::from(self.t1) + i128::from(self.t3) - i128::from(self.t4);
        i64::try_from(ahead / 2).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX })
    }

    /// Its middle, on the controller's clock.
    fn middle_ns(&self) -> i64 {
        self.t1.midpoint(self.t4)
    }
}

/// How an agent's clock and the controller's belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockFit {
    /// By how much the agent's clock is ahead at `at_ns`, in nanoseconds.
    pub offset_ns: i64,
    /// When that is, on the controller's clock.
    pub at_ns: i64,
    /// How much faster the agent's clock runs, in thousand-millionths.
    pub drift_ppb: i64,
    /// How far the offset may be off, in nanoseconds.
    pub error_ns: u64,
    /// The least time that a message took there and back, in nanoseconds.
    pub round_trip_ns: u64,
    /// The longest.
    pub round_trip_ns_max: u64,
}

impl ClockFit {
    /// From these pings, in any order; `None` without one that makes sense.
    pub fn from_pings(pings: &[Ping]) -> Option<ClockFit> {
        let mut known: Vec<(i64, u64, Ping)> =
            pings.iter().filter_map(|ping| Some((ping.middle_ns(), ping.round_trip_ns()?, *ping))).collect();
        known.order_by_key(|(middle_ns, ..)| *middle_ns);
        let (first_ns, last_ns) = (known.first()?.0, known.last()?.0);
        let quickest = |of: &[(i64, u64, Ping)]| of.iter().min_by_key(|(_, took_ns, _)| *took_ns).copied();
        let (best_ns, best_took_ns, best) = quickest(&known)?;
        let farthest_ns = best_ns.abs_diff(first_ns).max(best_ns.abs_diff(last_ns));
        let constant = ClockFit {
            offset_ns: best.offset_ns(),
            at_ns: best_ns,
            drift_ppb: 0,
            error_ns: best_took_ns / 2 + 1 + farthest_ns / (1_000_000 / DRIFT_PPM_MAX),
            round_trip_ns: best_took_ns,
            round_trip_ns_max: known.iter().map(|(_, took_ns, _)| *took_ns).max()?,
        };
        // A line through the quickest ping of the first third and that of the last: between two offsets that are known
        // within an error each, it is within the greater of the two.
        let third = (last_ns - first_ns) / 3;
        let early = known.partition_point(|(at_ns, ..)| *at_ns <= first_ns + third);
        let late = known.partition_point(|(at_ns, ..)| *at_ns < last_ns - third);
        let (Some(one), Some(other)) = (quickest(&known[..early]), quickest(&known[late..])) else {
            return Some(constant);
        };
        Some(constant.with_line(one, other, [first_ns, last_ns]))
    }

    /// With the line through two pings, if that is known better.
    fn with_line(self, one: (i64, u64, Ping), other: (i64, u64, Ping), ends_ns: [i64; 2]) -> ClockFit {
        let apart_ns = other.0 - one.0;
        if apart_ns <= 0 {
            return self;
        }
        let slower_ns = one.1.max(other.1);
        // Outside of the two the error grows as the line goes on.
        let outside_ns = one.0.abs_diff(ends_ns[0]).max(other.0.abs_diff(ends_ns[1]));
        let more_ns = u128::from(slower_ns) * u128::from(outside_ns) / apart_ns.unsigned_abs() as u128;
        let error_ns = slower_ns / 2 + 1 + u64::try_from(more_ns).unwrap_or(u64::MAX / 2);
        let ahead = i128::from(other.2.offset_ns()) - i128::from(one.2.offset_ns());
        let drift_ppb = ahead * 1_000_000_000 / i128::from(apart_ns);
        if error_ns >= self.error_ns {
            return self;
        }
        let drift_ppb = i64::try_from(drift_ppb).unwrap_or(0);
        ClockFit { offset_ns: one.2.offset_ns(), at_ns: one.0, drift_ppb, error_ns, ..self }
    }

    /// A moment of the agent's clock on the controller's, in nanoseconds.
    pub fn to_controller(&self, agent_ns: i64) -> i64 {
        // The drift is so small that a second step changes nothing.
        let nearly = agent_ns.saturating_sub(self.offset_ns);
        agent_ns.saturating_sub(self.offset_at(nearly))
    }

    /// A moment of the controller's clock on the agent's, in nanoseconds.
    pub fn to_agent(&self, controller_ns: i64) -> i64 {
        controller_ns.saturating_add(self.offset_at(controller_ns))
    }

    fn offset_at(&self, controller_ns: i64) -> i64 {
        let since = i128::from(controller_ns) - i128::from(self.at_ns);
        let drifted = since * i128::from(self.drift_ppb) / 1_000_000_000;
        self.offset_ns.saturating_add(i64::try_from(drifted).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A ping at this time to an agent whose clock is ahead by `offset` and runs `ppm` fast, with these times on its way.
    fn ping(at: i64, offset: i64, ppm: i64, there: i64, back: i64) -> Ping {
        let agent = |controller: i64| controller + offset + controller * ppm / 1_000_000;
        Ping { t1: at, t2: agent(at + there), t3: agent(at + there + 5000), t4: at + there + 5000 + back }
    }

    #[test]
    fn the_quickest_of_eight_decides() {
        let mut pings: Vec<Ping> =
            (0..8).map(|number| ping(number * 1000, 86_400 * SECOND, 0, 900_000, 100_000)).collect();
        pings.push(ping(9000, 86_400 * SECOND, 0, 30_000, 20_000));
        let fit = ClockFit::from_pings(&pings).unwrap();
        assert_eq!((fit.offset_ns, fit.round_trip_ns, fit.drift_ppb), (86_400 * SECOND + 5000, 50_000, 0));
        assert!((25_000..26_100).contains(&fit.error_ns), "{fit:?}");
        assert_eq!(fit.to_controller(fit.to_agent(77 * SECOND)), 77 * SECOND);
        assert_eq!(fit.round_trip_ns_max, 1_000_000);
    }

    #[test]
    fn a_minute_of_pings_shows_the_drift() {
        let pings: Vec<Ping> = (0..=60).map(|number| ping(number * SECOND, 7, 50, 20_000, 30_000)).collect();
        let fit = ClockFit::from_pings(&pings).unwrap();
        assert!((49_000..=51_000).contains(&fit.drift_ppb), "{fit:?}");
        assert!(fit.error_ns < 60_000, "{fit:?}");
    }

    #[test]
    fn an_offset_that_cannot_be_stays_on_its_side() {
        let early = Ping { t1: SECOND, t2: i64::MIN, t3: i64::MIN, t4: SECOND };
        assert_eq!(ClockFit::from_pings(&[early]).unwrap().offset_ns, i64::MIN);
    }

    #[test]
    fn pings_that_contradict_themselves_are_not_used() {
        let wrong = [
            Ping::default(),
            Ping { t1: 5, t2: 0, t3: 9, t4: 6 },
            Ping { t1: i64::MIN, t2: 0, t3: 0, t4: i64::MAX },
        ];
        assert_eq!(ClockFit::from_pings(&wrong[1..]), None);
        assert_eq!(ClockFit::from_pings(&wrong).unwrap().offset_ns, 0);
        assert_eq!(ClockFit::from_pings(&[]), None);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            offset in -10_000_000_000_000..10_000_000_000_000_i64,
            ppm in -100..=100_i64,
            ways in proptest::collection::vec((1000..5_000_000_i64, 1000..5_000_000_i64), 1..40),
            step in 1_000_000..1_000_000_000_i64,
        ) {
            let of = |(number, (there, back)): (usize, &(i64, i64))| {
                ping(number as i64 * step, offset, ppm, *there, *back)
            };
            let pings: Vec<Ping> = ways.iter().enumerate().map(of).collect();
            let fit = ClockFit::from_pings(&pings).unwrap();
            for at in [pings[0].middle_ns(), pings[pings.len() / 2].middle_ns(), pings[pings.len() - 1].middle_ns()] {
                let truth = at + offset + at * ppm / 1_000_000;
                let off = (fit.to_agent(at) - truth).unsigned_abs();
                // The times on the way are themselves measured by clocks that drift.
                prop_assert!(off <= fit.error_ns + 1500, "{off} {fit:?}");
            }
        }
    }
}
