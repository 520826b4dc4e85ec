//! What the search found for one target.
//!
//! Invariant: nothing is said of a search that is not over, except what was measured.

use fiord_report::table::Cell;
use fiord_report::{Finding, RepeatedFigure, RunReport};
use fiord_stats::Capped;
use fiord_stats::OrderBy;

use super::search::{Outcome, Search, Trial};
use super::trial::{self, HOST};
use crate::chart::{Line, Point};
use crate::figures::{Figures, mib};
use crate::study::counted;
use crate::trust;
use crate::verdict::Verdict;

/// A target with its search.
#[derive(Clone, Debug)]
pub(super) struct Found<'r> {
    /// The target as the user named it; `None` if the job names its files itself.
    pub target: Option<String>,
    /// The same if there are several targets, else empty.
    pub name: String,
    /// The subject of a sentence about it.
    pub subject: String,
    /// The run without a rate.
    pub unpaced: &'r RunReport,
    pub search: Search<'r>,
    /// The finding that voids the figures of one of its runs, if one does: nothing is concluded about it.
    pub void: Option<&'r Finding>,
}

impl<'r> Found<'r> {
    /// I/Os per second without a rate.
    pub(super) fn fastest(&self) -> u64 {
        u64::capped(Figures::of_all(self.unpaced).map_or(0.0, |figures| figures.iops).round())
    }

    /// Its runs in the order of their rates, repeats beside each other.
    pub(super) fn trials(&self) -> Vec<&Trial<'r>> {
        let mut trials: Vec<&Trial<'_>> = self.search.trials.iter().collect();
        trials.order_by_key(|trial| trial.rate);
        trials
    }

    /// The response latency over the runs at each rate.
    pub(super) fn repeated(&self) -> Vec<RepeatedFigure> {
        let of = |rate: u64| RepeatedFigure {
            subject: match self.name.is_empty() {
                true => format!("{rate} IOPS"),
                false => format!("{}: {rate} IOPS", self.name),
            },
            figure: "response_ns".to_string(),
            title: "RESPONSE".to_string(),
            runs: self.search.at(rate).filter_map(|trial| Some(trial.response_ns? as f64)).collect(),
            left_out: 0,
        };
        let rates = self.search.medians().into_iter().map(|(rate, _)| rate);
        rates.map(of).filter(|one| one.runs.len() > 1).collect()
    }

    /// Rate against response latency: the median of the runs at each rate.
    pub(super) fn line(&self) -> Line {
        let point = |(rate, trial): (u64, &Trial<'_>)| {
            Some(Point {
                x: rate as f64,
                label: rate.to_string(),
                mib_per_s: mib(Figures::of_all(trial.report)?.bytes_per_s),
                latency_ms: trial.response_ns? as f64 / 1e6,
            })
        };
        let medians = self.search.medians();
        let mut drawn = medians.iter().filter(|(_, trial)| trial.response_ns.is_some());
        let met = self.search.sustained().filter(|_| self.void.is_none());
        let knee = drawn.position(|(rate, _)| Some(*rate) == met);
        Line { name: self.name.clone(), points: medians.into_iter().filter_map(point).collect(), knee }
    }

    /// What limited the lowest rate that failed; not said if its figures are void.
    pub(super) fn limit(&self) -> Option<&'static str> {
        if self.void.is_some() {
            return None;
        }
        let (_, failed) = self.search.interval();
        let trials = self.search.trials.iter().filter(|trial| Some(trial.rate) == failed && !trial.meets);
        trials.filter_map(|trial| trial::exhausted(trial.report)).min()
    }

    /// Its capacity, the rate up to which every run met the bound, and the lowest from which none did; nothing if its
    /// figures are void.
    pub(super) fn rates(&self) -> [Cell; 3] {
        if self.void.is_some() {
            return [Cell::None, Cell::None, Cell::None];
        }
        let met = self.search.sustained();
        let (sure, failed) = self.search.interval();
        [Cell::count(met), Cell::count(met.map(|_| sure)), Cell::count(failed)]
    }

    /// Why nothing can be said of what it carries, in the middle of a sentence; `None` if something can.
    pub(super) fn withheld(&self) -> Option<String> {
        match (self.void, self.search.outcome()) {
            (Some(finding), _) => Some(trust::because(finding)),
            (None, Outcome::Unclear) => Some(match self.search.closest() {
                Some((rate, met, count)) => format!(
                    "its runs disagree: the lowest rate that met the bound at all, {rate}, met it in {met} of {}, and no \
                     run was left to try others more often",
                    counted(count, "run")
                ),
                None => "no rate met the bound, and no run was left to try lower ones".to_string(),
            }),
            (None, Outcome::Sustains(_) | Outcome::Fails(_)) => None,
        }
    }

    /// `percentile` within `limit`, as texts.
    pub(super) fn sentence(&self, percentile: &str, limit: &str) -> String {
        let subject = &self.subject;
        let met = match self.search.outcome() {
            Outcome::Sustains(met) => met,
            Outcome::Fails(lowest) => {
                let of = if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
                return format!("{of}Not even {lowest} I/Os per second keep {percentile} within {limit}.");
            }
            Outcome::Unclear => {
                let (what, why) = (self.name.as_str(), self.withheld().unwrap_or_default());
                let what = if what.is_empty() { "this target" } else { what };
                return format!("{} what {what} carries, because {why}.", Verdict::Undecided.word());
            }
        };
        let (sure, failed) = self.search.interval();
        let (range, limited) = match failed {
            Some(failed) => (format!("between {sure} and {failed}"), self.limited()),
            None => (format!("{sure} or more"), "more was not tried"),
        };
        format!(
            "{subject} sustains {met} I/Os per second with {percentile} within {limit} (repeated runs: {range}); {limited}; \
             without a rate it does {}.",
            self.fastest()
        )
    }

    /// What the rates beyond the one that is found exhausted.
    fn limited(&self) -> &'static str {
        match self.limit() {
            Some(HOST) => "beyond it, the host was the limit",
            Some(_) => "beyond it, the disk was the limit",
            None => {
                "beyond it, neither the processor nor the disk was exhausted: what limits it is the depth, or the device's latency"
            }
        }
    }
}
