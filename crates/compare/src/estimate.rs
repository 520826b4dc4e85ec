//! A figure of one side, and how far it may be off.
//!
//! Invariant: an error comes from repeated runs if there are at least three, else from what a single run carries, with an
//! allowance for what a single run cannot show; without either it is the largest that is plausible for a run of its length,
//! and there is none if that is not known.

use fiord_import::{DirectionFigures, DirectionName, LatencyFigures, SampleMoments};
use fiord_stats::repeats::INTERVAL_VALUES_MIN;
use fiord_stats::{MeanError, OrderBy};

use crate::figure::{Figure, Measure, Subject};
use crate::side::{Measured, Row};

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Its value, in I/Os or bytes per second, or nanoseconds.
    pub value: f64,
    /// How far it may be off; `None` if the result does not say.
    pub error: Option<MeanError>,
    /// What the error comes from.
    pub basis: Basis,
}

/// What an error comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The values of this many runs.
    Repeats(usize),
    /// How this many windows of a run vary; of a percentile, its place in the histogram as well.
    Windows(usize),
    /// The standard deviation of this many samples of a run.
    Samples(u64),
    /// The largest that is plausible for a run of its length, because nothing shows how it varied.
    RunTime,
    /// The result does not say how far it may be off.
    Nothing,
}

impl Basis {
    /// Whether the error was measured.
    pub fn is_measured(self) -> bool {
        !matches!(self, Basis::RunTime | Basis::Nothing)
    }

    /// In words, for JSON and below tables.
    pub fn words(self) -> String {
        match self {
            Basis::Repeats(count) => format!("{count} runs"),
            Basis::Windows(count) => format!("{count} windows of a run"),
            Basis::Samples(count) => format!("{count} samples of a run"),
            Basis::RunTime => "the run time".to_string(),
            Basis::Nothing => "nothing".to_string(),
        }
    }
}

/// How much runs of the same thing differ beyond what the windows of one run show (placement of files, caches,
/// temperature, other load): one standard deviation, as a share. It is added to figures of fewer than three runs.
/// docs/compare.md gives these numbers.
fn allowance(measure: Measure) -> f64 {
    match measure {
        Measure::Iops | Measure::Bandwidth | Measure::Mean => 0.015,
        // Of a single run nothing shows how much of them is noise.
        Measure::Watts | Measure::IopsPerWatt | Measure::BytesPerJoule | Measure::Counted(_) => 0.0,
        Measure::Percentile(percent) if percent <= 75.0 => 0.03,
        Measure::Percentile(percent) if percent <= 99.0 => 0.08,
        Measure::Percentile(_) => 0.12,
    }
}

/// The degrees of freedom of the allowance: a rule of thumb from a handful of disks.
const ALLOWANCE_DEGREES: f64 = 30.0;

/// The most that figures vary of runs that do not show how: a standard deviation of runs as a share, with which one in
/// twenty is off by a factor of two, and that of the seconds of a run, each independent of the next. docs/compare.md gives
/// these numbers.
const RUNS_DEVIATION_MAX: f64 = 0.35;
const SECONDS_DEVIATION_MAX: f64 = 1.0;

/// A figure of a row; `None` if it does not have it.
pub(crate) fn estimate(row: &Row<'_>, figure: Figure) -> Option<Estimate> {
    if let Some(repeated) = repeated(row, figure) {
        return Some(repeated);
    }
    let single: Vec<Estimate> = row.measured.iter().filter_map(|run| of_run(run, figure)).collect();
    let values: Vec<f64> = single.iter().map(|one| one.value).collect();
    if values.len() >= INTERVAL_VALUES_MIN {
        return Some(of_runs(&values));
    }
    let first = single.first()?;
    let count = single.len() as f64;
    let errors: Option<Vec<MeanError>> = single.iter().map(|one| one.error).collect();
    // Independent runs: the error of their mean is smaller by the root of their number.
    let error = errors.map(|errors| MeanError {
        share: errors.iter().map(|error| error.share.powi(2)).sum::<f64>().sqrt() / count,
        degrees: errors.iter().map(|error| error.degrees).sum(),
    });
    Some(Estimate { value: values.iter().sum::<f64>() / count, error, basis: first.basis })
}

/// From the values that a report has of several runs.
fn repeated(row: &Row<'_>, figure: Figure) -> Option<Estimate> {
    let [only] = row.measured.as_slice() else { return None };
    let Subject::Direction(direction) = figure.subject else { return None };
    let (key, scale) = match figure.measure {
        Measure::Iops => ("iops", 1.0),
        Measure::Bandwidth => ("mib_per_s", f64::from(1 << 20)),
        Measure::Mean => ("mean_ns", 1.0),
        Measure::Percentile(99.0) => ("p99_ns", 1.0),
        _ => return None,
    };
    let of = format!("{}, {}", only.job.name, direction.name());
    let found = only.report.repeats.iter().find(|known| known.of == of && known.figure == key)?;
    let runs: Vec<f64> = found.runs.iter().skip(found.left_out).map(|value| value * scale).collect();
    (runs.len() >= INTERVAL_VALUES_MIN).then(|| of_runs(&runs))
}

/// The mean of several runs, by Student's t.
fn of_runs(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let share = if mean > 0.0 { deviation / count.sqrt() / mean } else { 0.0 };
    let error = Some(MeanError { share, degrees: count - 1.0 });
    Estimate { value: mean, error, basis: Basis::Repeats(values.len()) }
}

/// From one run alone.
fn of_run(run: &Measured<'_>, figure: Figure) -> Option<Estimate> {
    if figure.subject == Subject::Energy {
        return energy(run, figure.measure);
    }
    if let Measure::Counted(count) = figure.measure {
        let counts = match figure.subject {
            Subject::Direction(name) => &run.direction(name)?.counts,
            _ => &run.job.counts,
        };
        return counts.get(count).map(|number| Estimate {
            value: number as f64,
            error: None,
            basis: Basis::Nothing,
        });
    }
    let rate = rate_error(run, figure);
    let basis = rate.map_or(Basis::Nothing, |(_, basis)| basis);
    let with = |value: f64, own: Option<f64>| {
        let error = rate.zip(own).map(|((rate, _), own)| widened(rate, own, figure.measure));
        Some(Estimate { value, error, basis: if error.is_some() { basis } else { Basis::Nothing } })
    };
    match (figure.subject, figure.measure) {
        (Subject::Direction(name), Measure::Iops) => with(run.direction(name)?.ios_per_s()?, Some(0.0)),
        (Subject::Direction(name), Measure::Bandwidth) => with(bytes_per_s(run.direction(name)?)?, Some(0.0)),
        (_, Measure::Mean) => {
            let latency = latency(run, figure.subject).filter(|latency| latency.is_measured())?;
            let mean = latency.mean_ns?;
            let own = latency.stddev_ns.zip(latency.count).map(|(deviation, count)| {
                if mean > 0.0 { deviation / mean / (count.max(1) as f64).sqrt() } else { 0.0 }
            });
            with(mean, own)
        }
        (_, Measure::Percentile(percent)) => {
            let latency = latency(run, figure.subject).filter(|latency| latency.is_measured())?;
            let value = percentile(latency, percent)?;
            with(value, rank_error(run, latency, figure.subject, percent))
        }
        _ => None,
    }
}

/// What the machine used during a run, which is said of a job that was the only one.
fn energy(run: &Measured<'_>, measure: Measure) -> Option<Estimate> {
    let used =
        run.report.main_energy().filter(|_| DirectionName::ALL.iter().all(|name| run.is_alone_in(*name)))?;
    let value = match measure {
        Measure::Watts => used.watts,
        Measure::IopsPerWatt => used.iops_per_watt,
        Measure::BytesPerJoule => used.bytes_per_joule,
        _ => None,
    };
    value.map(|value| Estimate { value, error: None, basis: Basis::Nothing })
}

/// The error of a rate, that of the figure itself and the allowance together. A slow second makes latencies longer by as
/// much as it makes the rate lower, which is why that of the rate is in all of them.
fn widened(rate: MeanError, own: f64, measure: Measure) -> MeanError {
    let parts = [
        (rate.share.powi(2), rate.degrees),
        (own.powi(2), f64::INFINITY),
        (allowance(measure).powi(2), ALLOWANCE_DEGREES),
    ];
    MeanError {
        share: parts.iter().map(|(variance, _)| variance).sum::<f64>().sqrt(),
        degrees: welch(&parts),
    }
}

/// The degrees of freedom of a sum of variances (Welch and Satterthwaite).
pub(crate) fn welch(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let weights: f64 = parts.iter().map(|(variance, degrees)| variance.powi(2) / degrees).sum();
    if weights > 0.0 { sum.powi(2) / weights } else { ALLOWANCE_DEGREES }
}

/// How far the rate of the direction may be off; of syncs, that of the direction that was synced.
fn rate_error(run: &Measured<'_>, figure: Figure) -> Option<(MeanError, Basis)> {
    let directions: Vec<&DirectionFigures> = match figure.subject {
        Subject::Direction(name) => run.direction(name).into_iter().collect(),
        Subject::Sync | Subject::Energy | Subject::Job => {
            run.job.directions.iter().filter(|direction| direction.is_active()).collect()
        }
    };
    let direction = directions.into_iter().max_by_key(|direction| direction.ios)?;
    let is_bytes = figure.measure == Measure::Bandwidth;
    let windows = run.report.windows.iter().find(|windows| windows.name == direction.name);
    if let Some(windows) = windows.filter(|_| run.is_alone_in(direction.name)) {
        let values = if is_bytes { &windows.bandwidth } else { &windows.iops };
        if let Some(error) = MeanError::of_windows(values) {
            return Some((error, Basis::Windows(values.len())));
        }
    }
    let samples = if is_bytes { &direction.bandwidth_samples } else { &direction.iops_samples };
    // Terse lines of version 3 have samples of bandwidth without their number.
    let samples = samples.as_ref().or(direction.bandwidth_samples.as_ref());
    match samples.and_then(|samples| of_samples(samples, run)) {
        Some((error, count)) => Some((error, Basis::Samples(count))),
        None => Some((largest_plausible(direction)?, Basis::RunTime)),
    }
}

/// The largest error that is plausible for a run of this length.
fn largest_plausible(direction: &DirectionFigures) -> Option<MeanError> {
    let ios = direction.ios.filter(|ios| *ios > 0)? as f64;
    let seconds = match direction.runtime_ms {
        Some(runtime_ms) => runtime_ms as f64 / 1000.0,
        None => ios / direction.iops?,
    };
    let variances = [RUNS_DEVIATION_MAX.powi(2), SECONDS_DEVIATION_MAX.powi(2) / seconds, 1.0 / ios];
    let share = variances.iter().sum::<f64>().sqrt();
    (seconds > 0.0).then_some(MeanError { share, degrees: ALLOWANCE_DEGREES })
}

/// From the moments of samples. Under group reporting those of several jobs are listed together: their means are added
/// up, their deviation is that of one; jobs may rise and fall together.
fn of_samples(samples: &SampleMoments, run: &Measured<'_>) -> Option<(MeanError, u64)> {
    let (mean, deviation, count) = (samples.mean?, samples.stddev?, samples.count?);
    let is_grouped = run.option(&["group_reporting"]).is_some();
    let cloned = run.option(&["numjobs"]).filter(|_| is_grouped).and_then(|count| count.parse().ok());
    let jobs = run.job.member_count.map(u64::from).or(cloned).unwrap_or(1).max(1);
    if mean <= 0.0 {
        return None;
    }
    let count = count / jobs;
    Some((MeanError::of_moments(count, deviation * jobs as f64 / mean)?, count))
}

/// Bytes per second, if the report has them.
pub(crate) fn bytes_per_s(direction: &DirectionFigures) -> Option<f64> {
    match (direction.bytes, direction.runtime_ms) {
        (Some(bytes), Some(runtime_ms)) if runtime_ms > 0 => Some(bytes as f64 * 1000.0 / runtime_ms as f64),
        _ => direction.bandwidth.map(|bandwidth| bandwidth as f64),
    }
}

/// The latency that is compared: completion, or the total one of jobs without it.
fn latency<'r>(run: &'r Measured<'_>, subject: Subject) -> Option<&'r LatencyFigures> {
    match subject {
        Subject::Energy | Subject::Job => None,
        Subject::Sync => run.job.sync.lat.as_ref(),
        Subject::Direction(name) => {
            let direction = run.direction(name)?;
            let has = |latency: &&LatencyFigures| latency.mean_ns.is_some() && latency.is_measured();
            direction.clat.as_ref().filter(has).or(direction.lat.as_ref())
        }
    }
}

/// A percentile as the report has it, or from its histogram.
pub(crate) fn percentile(latency: &LatencyFigures, percent: f64) -> Option<f64> {
    let known = latency.percentile_ns(percent).map(|ns| ns as f64);
    known.or_else(|| at_rank(&latency.bins, percent / 100.0))
}

/// The value below which this share of the values of a histogram are; `None` if it is empty.
fn at_rank(bins: &[(u64, u64)], share: f64) -> Option<f64> {
    let total: u64 = bins.iter().map(|(_, count)| count).sum();
    let rank = (share * total as f64).ceil().clamp(1.0, (total as f64).max(1.0));
    let mut below = 0;
    let found = bins.iter().find(|(_, count)| {
        below += count;
        below as f64 >= rank
    });
    found.map(|(ns, _)| *ns as f64)
}

/// The standard error of a percentile as a share of it, from how many values lie on either side (the binomial
/// distribution of its rank): by the histogram, or between the percentiles beside it.
fn rank_error(run: &Measured<'_>, latency: &LatencyFigures, subject: Subject, percent: f64) -> Option<f64> {
    let binned: u64 = latency.bins.iter().map(|(_, count)| count).sum();
    let ios = match subject {
        Subject::Direction(name) => run.direction(name)?.ios,
        Subject::Sync => run.job.sync.ios,
        Subject::Energy | Subject::Job => None,
    };
    let count = Some(binned).filter(|count| *count > 0).or(latency.count).or(ios)? as f64;
    let share = percent / 100.0;
    // Two standard deviations of the rank to either side.
    let reach = 2.0 * (share * (1.0 - share) / count).sqrt();
    // A percentile beyond the last values is the maximum, which says nothing about its error.
    if count * (1.0 - share) < 2.0 {
        return None;
    }
    let (low, high) = ((share - reach).max(0.0), (share + reach).min(1.0));
    let value = percentile(latency, percent)?;
    let spread = match latency.bins.is_empty() {
        false => at_rank(&latency.bins, high)? - at_rank(&latency.bins, low)?,
        true => between(latency, high)? - between(latency, low)?,
    };
    (value > 0.0).then(|| spread.abs() / 4.0 / value)
}

/// The value at a share, on the line between the percentiles around it.
fn between(latency: &LatencyFigures, share: f64) -> Option<f64> {
    let known = latency.percentiles.iter().map(|known| (known.percent / 100.0, known.ns as f64));
    let ends = [latency.min_ns.map(|ns| (0.0, ns as f64)), latency.max_ns.map(|ns| (1.0, ns as f64))];
    let mut points: Vec<(f64, f64)> = known.chain(ends.into_iter().flatten()).collect();
    points.order_by(|one, other| one.0.total_cmp(&other.0));
    let after = points.iter().position(|(at, _)| *at >= share)?;
    let (to, to_ns) = points[after];
    let (from, from_ns) = *points.get(after.checked_sub(1)?)?;
    Some(if to > from { from_ns + (to_ns - from_ns) * (share - from) / (to - from) } else { to_ns })
}
