//! Latencies by percentile: one curve for each job and direction, with percentiles by their nines.
//!
//! Invariant: the table has the percentiles that the report has, and no others.

use fiord_import::{DirectionFigures, LatencyFigures};
use fiord_stats::Capped;

use crate::axis::Axis;
use crate::chart::{Chart, LINES_MAX, Line};
use crate::figures::{self, Figure};
use crate::run_view::{RunView, prefix};

/// Percentiles that are labelled.
const TICKS: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
/// Points of a curve that is drawn from a histogram.
const POINTS: u32 = 80;

/// A curve before it is drawn.
pub(crate) struct Curve<'a> {
    pub name: String,
    latency: &'a LatencyFigures,
}

/// The chart, and the rows of its table: percentile, share of the x axis, figures.
pub(crate) struct PercentileChart {
    pub chart: Chart,
    pub rows: Vec<(String, String, Vec<Figure>)>,
}

/// The latency whose percentiles a report has, and what it is called: completion latency if possible.
pub(crate) fn measured(direction: &DirectionFigures) -> Option<(&'static str, &LatencyFigures)> {
    let kinds = [("completion", &direction.clat), ("total", &direction.lat), ("submission", &direction.slat)];
    let known = || kinds.into_iter().filter_map(|(name, latency)| Some((name, latency.as_ref()?)));
    let with_percentiles =
        known().find(|(_, latency)| !latency.percentiles.is_empty() && latency.is_measured());
    with_percentiles.or_else(|| known().find(|(_, latency)| latency.is_measured()))
}

/// The position of a percentile: how many nines it has.
fn nines(percent: f64) -> f64 {
    -(1.0 - (percent / 100.0).min(1.0 - 1e-9)).log10()
}

fn percent_of(nines: f64) -> f64 {
    100.0 * (1.0 - 10f64.powf(-nines))
}

/// A curve for each job and direction with percentiles.
pub(crate) fn curves(runs: &[RunView]) -> Vec<Curve<'_>> {
    let mut curves = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (name, job) in run.named_jobs() {
            for direction in job.directions.iter().filter(|direction| direction.is_active()) {
                let Some((_, latency)) = measured(direction) else { continue };
                if latency.percentiles.is_empty() {
                    continue;
                }
                let job_name = if run.report.jobs.len() > 1 { format!("{name} ") } else { String::new() };
                let name = format!("{}{job_name}{}", prefix(runs, number), direction.name.name());
                curves.push(Curve { name, latency });
            }
        }
    }
    curves
}

/// The chart of these curves; `None` without any.
pub(crate) fn chart(curves: &[Curve<'_>]) -> Option<PercentileChart> {
    let shown = &curves[..curves.len().min(LINES_MAX)];
    let lines: Vec<Line> =
        shown.iter().map(|curve| Line { name: curve.name.clone(), points: points(curve.latency) }).collect();
    let x_end = lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x).fold(0.0, f64::max);
    if lines.is_empty() || x_end <= 0.0 {
        return None;
    }
    let y = Axis::decades(lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y));
    let x = Axis::linear(0.0, x_end);
    let ticks = TICKS.into_iter().map(nines).filter(|tick| *tick <= x_end + 1e-6).collect();
    let chart = Chart {
        id: "percentiles".to_string(),
        title: "Latency by percentile".to_string(),
        description: "Each line is a job and direction: to the right the share of its I/Os, each step one more nine; upwards the \
                      latency that this share did not exceed, on a logarithmic scale."
            .to_string(),
        x_title: "Percentile of I/Os".to_string(),
        x,
        y,
        y_base: 1000.0,
        x_text: |nines| figures::percentile(percent_of(nines)),
        y_text: figures::time,
        x_ticks: Some(ticks),
        lines,
        bands: Vec::new(),
    };
    Some(PercentileChart { rows: rows(shown, &x), chart })
}

fn points(latency: &LatencyFigures) -> Vec<(f64, Option<f64>)> {
    let listed = latency.percentiles.iter().filter(|known| known.percent < 100.0 && known.ns > 0);
    let listed = listed.map(|known| (nines(known.percent), Some(known.ns as f64)));
    let total: u64 = latency.bins.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return listed.collect();
    }
    let end = nines(100.0 * (1.0 - 1.0 / total.max(2) as f64)).clamp(1.0, 6.0);
    let (mut seen, mut index) = (0, 0);
    let mut all = Vec::new();
    for step in 0..=POINTS {
        let x = end * f64::from(step) / f64::from(POINTS);
        let rank = u64::capped((percent_of(x) / 100.0 * total as f64).ceil().max(1.0));
        while seen < rank && index < latency.bins.len() {
            seen += latency.bins[index].1;
            index += 1;
        }
        let ns = latency.bins[index.saturating_sub(1)].0;
        all.push((x, Some((ns as f64).max(1.0))));
    }
    all
}

fn rows(curves: &[Curve<'_>], x: &Axis) -> Vec<(String, String, Vec<Figure>)> {
    let mut percents: Vec<f64> =
        curves.iter().flat_map(|curve| &curve.latency.percentiles).map(|known| known.percent).collect();
    percents.sort_unstable_by(f64::total_cmp);
    percents.dedup_by(|one, other| (*one - *other).abs() < 1e-9);
    let row = |percent: &f64| {
        let figure =
            |curve: &Curve<'_>| Figure::time(curve.latency.percentile_ns(*percent).map(|ns| ns as f64));
        (
            figures::percentile(*percent),
            format!("{:.4}", x.share(nines(*percent))),
            curves.iter().map(figure).collect(),
        )
    };
    percents.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_from_histograms_rise_and_end_at_the_last_bin() {
        let latency =
            LatencyFigures { bins: vec![(100, 900), (1_000, 90), (10_000, 10)], ..LatencyFigures::default() };
        let points = points(&latency);
        let at = |share: f64| points[(share * 80.0) as usize].1;
        assert_eq!((at(0.0), at(1.0)), (Some(100.0), Some(10_000.0)));
        assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        assert!((nines(99.9) - 3.0).abs() < 1e-9 && (percent_of(2.0) - 99.0).abs() < 1e-9);
    }
}
