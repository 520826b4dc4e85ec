//! The figures of a measurement in several rounds.
//!
//! Invariant: rates and means are the means of the rounds; percentiles are of all their I/Os together.

use fiord_report::energy;
use fiord_report::table::Cell;
use fiord_stats::{Capped, Latency};

use super::phase::Measure;
use super::progress::figure;
use crate::figures::whole_run;
use crate::step::StepResult;

/// The mean of what is known; `None` if nothing is.
pub(super) fn mean_of(known: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = known.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

/// The figures of a point in the rounds of a window.
pub(super) struct Figures {
    pub iops: f64,
    pub mib_per_s: f64,
    pub mean_ns: f64,
    pub latency: Latency,
    /// Of those rounds in which the machine told it: mean power, and I/Os and bytes for each joule above idle.
    pub watts: Option<f64>,
    pub ios_per_joule: Option<f64>,
    pub bytes_per_joule: Option<f64>,
}

impl Figures {
    pub(super) fn of(rounds: &[&[StepResult]], point: usize) -> Figures {
        let mean = |measure| {
            let sum: f64 = rounds.iter().map(|round| figure(&round[point], measure)).sum();
            sum / rounds.len().max(1) as f64
        };
        let mut latency = Latency::default();
        rounds.iter().for_each(|round| latency.merge(&whole_run(&round[point].report).completion));
        let power = || rounds.iter().filter_map(|round| energy::power(&round[point].report));
        let per_joule = || power().filter_map(|(_, per_joule)| per_joule);
        Figures {
            iops: mean(Measure::Iops),
            mib_per_s: mean(Measure::MibPerS),
            mean_ns: mean(Measure::MeanNs),
            latency,
            watts: mean_of(power().map(|(watts, _)| watts)),
            ios_per_joule: mean_of(per_joule().map(|per| per.ios)),
            bytes_per_joule: mean_of(per_joule().map(|per| per.bytes)),
        }
    }

    pub(super) fn cells(&self) -> [Cell; 7] {
        let percentiles = self.latency.percentiles(&[99.0, 99.9, 99.99]);
        [
            Cell::Count(u64::capped(self.iops.round())),
            Cell::Number(self.mib_per_s, 1),
            Cell::Latency(u64::capped(self.mean_ns.round())),
            Cell::Latency(percentiles[0]),
            Cell::Latency(percentiles[1]),
            Cell::Latency(percentiles[2]),
            Cell::Latency(self.latency.running.max),
        ]
    }
}
