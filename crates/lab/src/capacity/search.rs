//! The search for the highest rate that meets a bound: what to try next.
//!
//! Invariant: the next rate follows from the trials so far alone, so that a search can be repeated from its results; it
//! ends after [`RUNS_MAX`] trials.

use fiord_report::RunReport;

/// Most trials of a search, repeats included.
pub(super) const RUNS_MAX: usize = 14;

/// How often the rate that is found, and the one that fails, are tried.
const REPEATS: usize = 3;

/// Rates closer to each other than this count as the same.
const RATIO_MIN: f64 = 1.08;

/// The first rate, as a share of that without a limit.
const FIRST_SHARE: f64 = 0.5;

/// How much is added while every rate meets the bound, and taken off while none does.
const GROWTH: f64 = 1.4;
const SHRINKAGE: f64 = 0.4;

/// A run at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial<'r> {
    /// I/Os per second that arrived.
    pub rate: u64,
    /// The percentile of their response latency; `None` if it is that of an I/O which was never issued.
    pub response_ns: Option<u64>,
    /// I/Os that were never issued.
    pub lost: u64,
    /// Whether it met the bound.
    pub meets: bool,
    pub report: &'r RunReport,
}

/// What is known so far.
#[derive(Clone, Debug)]
pub(super) struct Search<'r> {
    /// I/Os per second without a rate.
    unpaced_iops: f64,
    pub trials: Vec<Trial<'r>>,
}

impl<'r> Search<'r> {
    pub(super) fn from(unpaced_iops: f64) -> Search<'r> {
        Search { unpaced_iops, trials: Vec::new() }
    }

    pub(super) fn at(&self, rate: u64) -> impl Iterator<Item = &Trial<'r>> {
        self.trials.iter().filter(move |trial| trial.rate == rate)
    }

    /// Whether most runs at this rate met the bound.
    fn is_met(&self, rate: u64) -> bool {
        2 * self.at(rate).filter(|trial| trial.meets).count() > self.at(rate).count()
    }

    /// The lowest rate that failed.
    fn failed(&self) -> Option<u64> {
        self.trials.iter().map(|trial| trial.rate).filter(|rate| !self.is_met(*rate)).min()
    }

    /// The highest rate that met the bound, with no lower one that failed.
    pub(super) fn met(&self) -> Option<u64> {
        let failed = self.failed().unwrap_or(u64::MAX);
        self.trials.iter().map(|trial| trial.rate).filter(|rate| *rate < failed).max()
    }

    /// The rate up to which every run met the bound (0 if there is none), and the lowest from which none did.
    pub(super) fn interval(&self) -> (u64, Option<u64>) {
        let rates = || self.trials.iter().map(|trial| trial.rate);
        let first_miss = self.trials.iter().filter(|trial| !trial.meets).map(|trial| trial.rate).min();
        let sure = rates().filter(|rate| first_miss.is_none_or(|miss| *rate < miss)).max().unwrap_or(0);
        let last_met =
            self.trials.iter().filter(|trial| trial.meets).map(|trial| trial.rate).max().unwrap_or(0);
        (sure, rates().filter(|rate| *rate > last_met).min())
    }

    /// For each rate the run of the median response.
    pub(super) fn medians(&self) -> Vec<(u64, &Trial<'r>)> {
        let mut rates: Vec<u64> = self.trials.iter().map(|trial| trial.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let median = |rate: u64| {
            let mut runs: Vec<&Trial<'r>> = self.at(rate).collect();
            // Those that lost the percentile's I/O are the longest.
            runs.sort_by_key(|trial| trial.response_ns.unwrap_or(u64::MAX));
            (rate, runs[(runs.len() - 1) / 2])
        };
        rates.into_iter().map(median).collect()
    }

    /// What to try next; `None` if the search is over.
    pub(super) fn next_rate(&self) -> Option<u64> {
        if self.trials.len() >= RUNS_MAX || self.unpaced_iops < 1.0 {
            return None;
        }
        let next = match (self.met(), self.failed()) {
            (None, None) => FIRST_SHARE * self.unpaced_iops,
            (Some(met), None) => GROWTH * met as f64,
            (None, Some(failed)) => SHRINKAGE * failed as f64,
            (Some(met), Some(failed)) if failed as f64 > RATIO_MIN * met as f64 => {
                (met as f64 * failed as f64).sqrt()
            }
            (Some(met), Some(failed)) => return self.repeated(met, failed),
        };
        let next = rounded(next);
        // Two digits do not tell lower rates apart.
        if self.at(next).next().is_none() {
            (next > 0).then_some(next)
        } else {
            self.repeated(self.met()?, self.failed()?)
        }
    }

    /// The one of both that was tried less often.
    fn repeated(&self, met: u64, failed: u64) -> Option<u64> {
        let least = [met, failed].into_iter().min_by_key(|rate| self.at(*rate).count())?;
        (self.at(least).count() < REPEATS).then_some(least)
    }
}

/// To three digits: more would suggest a precision that is not there.
fn rounded(rate: f64) -> u64 {
    let digits = (rate.max(1.0).log10().floor() as i32 - 2).max(0);
    let unit = 10f64.powi(digits);
    ((rate / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a device that meets the bound where `meets` says so, and returns every rate tried.
    fn searched(
        unpaced_iops: f64,
        mut meets: impl FnMut(u64, usize) -> bool,
    ) -> (Vec<u64>, Option<u64>, (u64, Option<u64>)) {
        let report = RunReport::default();
        let mut search = Search::from(unpaced_iops);
        while let Some(rate) = search.next_rate() {
            let meets = meets(rate, search.trials.len());
            search.trials.push(Trial { rate, response_ns: Some(1), lost: 0, meets, report: &report });
            assert!(search.trials.len() <= RUNS_MAX);
        }
        (search.trials.iter().map(|trial| trial.rate).collect(), search.met(), search.interval())
    }

    #[test]
    fn the_highest_rate_is_found_and_tried_three_times() {
        for limit in [700, 3_000, 6_800, 9_900, 12_000] {
            let (rates, met, (sure, failed)) = searched(10_000.0, |rate, _| rate <= limit);
            let met = met.unwrap();
            assert!(met <= limit && met as f64 >= limit as f64 / RATIO_MIN / 1.01, "{limit}: {rates:?}");
            assert_eq!(sure, met);
            assert!(failed.unwrap() > limit);
            let repeats = rates.iter().filter(|rate| **rate == met).count();
            assert_eq!(repeats, REPEATS, "{limit}: {rates:?}");
        }
    }

    #[test]
    fn a_rate_that_fails_when_it_is_repeated_is_left() {
        // 6000 and more fail from the sixth run on, 8000 and more always.
        let (rates, met, (sure, failed)) =
            searched(10_000.0, |rate, run| rate < if run < 6 { 8_000 } else { 6_000 });
        assert!(met.unwrap() < 8_000, "{rates:?}");
        assert!(sure < 8_000 && failed.is_none_or(|failed| failed >= 6_000), "{rates:?} {sure} {failed:?}");
    }

    #[test]
    fn a_bound_that_nothing_or_everything_meets_ends_the_search() {
        let (rates, met, interval) = searched(10_000.0, |_, _| false);
        assert_eq!((met, interval.0), (None, 0));
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
        let (rates, met, interval) = searched(10_000.0, |_, _| true);
        assert_eq!((met, interval.1), (rates.last().copied(), None));
        assert_eq!(searched(0.0, |_, _| true).0, [0u64; 0]);
    }

    #[test]
    fn rates_have_three_digits() {
        for (rate, expected) in [(123_456.0, 123_000), (1234.5, 1230), (99.6, 100), (7.4, 7), (0.2, 0)] {
            assert_eq!(rounded(rate), expected, "{rate}");
        }
    }
}
