//! The search for the highest rate that meets a bound: what to try next.
//!
//! Invariant: the next rate follows from the trials so far alone, so that a search can be repeated from its results; it
//! ends after [`RUNS_MAX`] trials. No rate is said to be sustained that was not tried [`REPEATS`] times, nor one above what
//! was done without a rate.

use fiord_report::RunReport;
use fiord_stats::Capped;
use fiord_stats::OrderBy;

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

/// The lowest rate that is tried, as a share of that without a limit: at a lower one no I/O waits for another.
const FLOOR_SHARE: f64 = 0.005;

/// What a search that is over found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The highest rate at which most runs met the bound.
    Sustains(u64),
    /// No run met the bound, down to this rate, which is so low that no lower one would.
    Fails(u64),
    /// Runs met the bound and no rate was confirmed by others.
    Unclear,
}

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

    /// How many more runs at this rate met the bound than did not.
    fn lead(&self, rate: u64) -> i64 {
        self.at(rate).map(|trial| if trial.meets { 1 } else { -1 }).sum()
    }

    /// The lowest rate at which not most runs met the bound.
    fn failed(&self) -> Option<u64> {
        self.trials.iter().map(|trial| trial.rate).filter(|rate| self.lead(*rate) <= 0).min()
    }

    /// The rates at which most runs met the bound, with no lower one that failed.
    fn holding(&self) -> impl Iterator<Item = u64> {
        let failed = self.failed().unwrap_or(u64::MAX);
        self.trials.iter().map(|trial| trial.rate).filter(move |rate| *rate < failed)
    }

    /// The highest of them.
    fn met(&self) -> Option<u64> {
        self.holding().max()
    }

    /// What it found, once it is over.
    pub(super) fn outcome(&self) -> Outcome {
        let lowest = self.trials.iter().map(|trial| trial.rate).min().unwrap_or(0);
        let is_lowest = lowest <= self.floor() && self.needs(lowest) == 0;
        match self.holding().filter(|rate| self.needs(*rate) == 0).max() {
            Some(met) => Outcome::Sustains(met),
            None if is_lowest && self.trials.iter().all(|trial| !trial.meets) => Outcome::Fails(lowest),
            _ => Outcome::Unclear,
        }
    }

    /// The rate that it found.
    pub(super) fn sustained(&self) -> Option<u64> {
        match self.outcome() {
            Outcome::Sustains(rate) => Some(rate),
            Outcome::Fails(_) | Outcome::Unclear => None,
        }
    }

    /// How many runs at this rate met the bound, and how many there were, of the rate that came closest to being confirmed.
    pub(super) fn closest(&self) -> Option<(u64, usize, usize)> {
        let met = |rate: u64| self.at(rate).filter(|trial| trial.meets).count();
        let rates = self.trials.iter().filter(|trial| trial.meets).map(|trial| trial.rate);
        rates.min().map(|rate| (rate, met(rate), self.at(rate).count()))
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
            runs.order_by_key(|trial| trial.response_ns.unwrap_or(u64::MAX));
            (rate, runs[(runs.len() - 1) / 2])
        };
        rates.into_iter().map(median).collect()
    }

    /// What to try next; `None` if the search is over.
    pub(super) fn next_rate(&self) -> Option<u64> {
        let left = RUNS_MAX.saturating_sub(self.trials.len());
        if left == 0 || self.unpaced_iops < 1.0 {
            return None;
        }
        let next = match (self.met(), self.failed()) {
            (None, None) => FIRST_SHARE * self.unpaced_iops,
            (Some(met), None) => GROWTH * met as f64,
            (None, Some(failed)) => SHRINKAGE * failed as f64,
            (Some(met), Some(_)) if self.is_noisy() && self.needs(met) > 0 => return Some(met),
            (Some(met), Some(failed)) => {
                let is_apart = failed as f64 > RATIO_MIN * met as f64;
                // What the repeats of a new rate and of the other one need is kept for them.
                let kept = REPEATS - 1 + self.needs(met).max(self.needs(failed));
                if !is_apart || left <= kept {
                    return self.repeated();
                }
                (met as f64 * failed as f64).sqrt()
            }
        };
        let next = rounded(next).clamp(self.floor(), self.ceiling());
        // At either end there is no other, and two digits do not tell lower rates apart.
        if self.at(next).next().is_none() { Some(next) } else { self.repeated() }
    }

    /// Whether any rate has met the bound in one run and not in another, so that a single run says little.
    fn is_noisy(&self) -> bool {
        let of = |rate: u64, meets: bool| self.at(rate).any(|trial| trial.meets == meets);
        self.trials.iter().any(|trial| of(trial.rate, true) && of(trial.rate, false))
    }

    /// Of the rate that is found and the one that failed, or of the only one of both that there is, the one that was tried
    /// less often, as long as that is not often enough.
    fn repeated(&self) -> Option<u64> {
        let least = self.met().into_iter().chain(self.failed()).min_by_key(|rate| self.at(*rate).count())?;
        (self.needs(least) > 0).then_some(least)
    }

    /// How many more runs a rate needs.
    fn needs(&self, rate: u64) -> usize {
        REPEATS.saturating_sub(self.at(rate).count())
    }

    /// The lowest rate that is tried.
    fn floor(&self) -> u64 {
        rounded(FLOOR_SHARE * self.unpaced_iops).max(1)
    }

    /// The highest: what was done without a rate, which no rate goes beyond.
    fn ceiling(&self) -> u64 {
        let rounded = rounded(self.unpaced_iops);
        let unit = u64::capped(unit(self.unpaced_iops));
        let ceiling = if rounded as f64 > self.unpaced_iops { rounded - unit } else { rounded };
        ceiling.max(self.floor())
    }
}

/// To three digits: more would suggest a precision that is not there.
fn rounded(rate: f64) -> u64 {
    let unit = unit(rate);
    u64::capped((rate / unit).round() * unit)
}

/// The third digit's worth of a rate.
fn unit(rate: f64) -> f64 {
    10f64.powi((i32::capped(rate.max(1.0).log10().floor()) - 2).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a device that meets the bound where `meets` says so, and returns every rate tried.
    fn searched(
        unpaced_iops: f64,
        mut meets: impl FnMut(u64, usize) -> bool,
    ) -> (Vec<u64>, Option<u64>, (u64, Option<u64>)) {
        static REPORT: std::sync::LazyLock<RunReport> = std::sync::LazyLock::new(RunReport::default);
        let search = over(unpaced_iops, &REPORT, &mut meets);
        (search.trials.iter().map(|trial| trial.rate).collect(), search.sustained(), search.interval())
    }

    /// The same, with all that is known at its end.
    fn over<'r>(
        unpaced_iops: f64,
        report: &'r RunReport,
        meets: &mut dyn FnMut(u64, usize) -> bool,
    ) -> Search<'r> {
        let mut search = Search::from(unpaced_iops);
        while let Some(rate) = search.next_rate() {
            let meets = meets(rate, search.trials.len());
            search.trials.push(Trial { rate, response_ns: Some(1), lost: 0, meets, report });
            assert!(search.trials.len() <= RUNS_MAX);
        }
        search
    }

    proptest::proptest! {
        /// Whatever the runs do, what is said of them follows from them.
        #[test]
        fn no_rate_is_found_nor_refused_that_the_runs_do_not_show(
            unpaced_iops in 2.0f64..1e6,
            limit_share in 0.001f64..1.5,
            noise in 0.0f64..1.0,
            seed in 0u64..1000,
        ) {
            let mut random = fiord_stats::Random::new(seed);
            let mut meets = |rate: u64, _: usize| {
                let is_noise = (random.below(1 << 20) as f64) < noise * f64::from(1 << 20);
                if is_noise { random.below(2) == 0 } else { rate as f64 <= limit_share * unpaced_iops }
            };
            let report = RunReport::default();
            let search = over(unpaced_iops, &report, &mut meets);
            let met = |rate: u64| search.at(rate).filter(|trial| trial.meets).count();
            let has_failed = |rate: u64| 2 * met(rate) <= search.at(rate).count();
            match search.outcome() {
                Outcome::Sustains(rate) => {
                    proptest::prop_assert!(rate as f64 <= unpaced_iops, "{rate} of {unpaced_iops}");
                    let count = search.at(rate).count();
                    proptest::prop_assert!(count >= REPEATS && 2 * met(rate) > count, "{:?}", search.trials);
                    let mut lower = search.trials.iter().map(|trial| trial.rate).filter(|lower| *lower < rate);
                    proptest::prop_assert!(lower.all(|lower| !has_failed(lower)), "{:?}", search.trials);
                }
                Outcome::Fails(rate) => {
                    proptest::prop_assert!(search.trials.iter().all(|trial| !trial.meets && trial.rate >= rate));
                    proptest::prop_assert!(rate as f64 <= (0.01 * unpaced_iops).max(1.0) && search.at(rate).count() >= REPEATS);
                }
                Outcome::Unclear => {
                    let is_over = search.trials.len() == RUNS_MAX;
                    proptest::prop_assert!(noise > 0.0 && (is_over || search.closest().is_some()), "{:?}", search.trials);
                }
            }
        }
    }

    /// The first rates meet the bound once and fail once: what lies below them is tried before anything is said.
    #[test]
    fn rates_that_fail_when_they_are_repeated_lead_to_lower_ones() {
        let mut tried: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
        let (rates, met, _) = searched(49_200.0, |rate, _| {
            let before = tried.entry(rate).or_default();
            *before += 1;
            rate <= 8000 || *before == 1
        });
        assert!(met.is_some_and(|met| met <= 8000), "{met:?}: {rates:?}");
        // One that never holds twice is neither found nor refused.
        let mut count = 0;
        let report = RunReport::default();
        let search = over(49_200.0, &report, &mut |_, _| {
            count += 1;
            count == 1
        });
        assert_eq!(search.outcome(), Outcome::Unclear, "{:?}", search.trials);
    }

    #[test]
    fn no_rate_is_tried_beyond_what_was_done_without_one() {
        for unpaced in [15_438.0, 15_460.0, 999.5, 3.0] {
            let (rates, met, interval) = searched(unpaced, |_, _| true);
            assert!(rates.iter().all(|rate| *rate as f64 <= unpaced), "{unpaced}: {rates:?}");
            assert!(
                met.unwrap() as f64 > 0.98 * unpaced - 1.0 && interval.1.is_none(),
                "{unpaced}: {rates:?}"
            );
            assert_eq!(rates.iter().filter(|rate| Some(**rate) == met).count(), REPEATS, "{rates:?}");
        }
    }

    #[test]
    fn the_highest_rate_is_found_and_tried_three_times() {
        for limit in [70, 700, 3_000, 6_800, 9_600] {
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
        assert!(met.is_none_or(|met| met < 8_000), "{rates:?}");
        assert!(sure < 8_000 && failed.is_none_or(|failed| failed >= 6_000), "{rates:?} {sure} {failed:?}");
    }

    #[test]
    fn a_bound_that_nothing_or_everything_meets_ends_the_search() {
        let (rates, met, interval) = searched(10_000.0, |_, _| false);
        assert_eq!((met, interval.0), (None, 0));
        assert!(
            rates.windows(2).all(|pair| pair[1] <= pair[0]) && rates.ends_with(&[50; REPEATS]),
            "{rates:?}"
        );
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
