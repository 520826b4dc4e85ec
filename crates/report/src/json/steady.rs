//! How steady a run was: the object `steadystate` of a job, which fio has, and `steady_part` of the run.
//!
//! Invariant: `data` holds as many measurements as the window, as in fio; those not taken yet are zero.

use fiord_options::value::steady_word;
use fiord_stats::job::DIRECTIONS;
use fiord_stats::{Capped, PartLatencies, RunSteadiness, SteadyMeasure, SteadySample, SteadyState};

use super::latency::{Detail, latency};
use super::writer::Writer;

/// The percentiles of a part, those of studies.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// Writes the members of the object.
pub(super) fn write(json: &mut Writer, steady: &SteadyState) {
    let rule = &steady.rule;
    let percent = if rule.is_percent { "%" } else { "" };
    json.string("ss", &format!("{}:{:.6}{percent}", steady_word(rule.measure, rule.is_slope), rule.limit));
    json.integer("duration", rule.duration_s);
    json.integer("attained", u8::from(steady.attained));
    json.string("criterion", &format!("{:.6}{percent}", steady.criterion));
    json.float("max_deviation", steady.max_deviation);
    json.float("slope", steady.slope);
    json.object("data", |json| {
        let has_latencies = rule.measure == SteadyMeasure::Latency;
        json.integer("bw_mean", steady.mean(|sample| sample.bytes_per_s));
        json.integer("iops_mean", steady.mean(|sample| sample.iops));
        if has_latencies {
            json.integer("lat_mean", steady.mean(|sample| sample.latency_ns));
        }
        list(json, "iops", steady, |sample| sample.iops);
        list(json, "bw", steady, |sample| sample.bytes_per_s);
        if has_latencies {
            list(json, "lat", steady, |sample| sample.latency_ns);
        }
    });
}

/// Writes the members of the object of a run: the limits of SNIA's specification and the longest steady part at its end,
/// with its latencies if they are known.
pub(super) fn write_part(
    json: &mut Writer,
    steadiness: &RunSteadiness,
    latencies: Option<&PartLatencies>,
    detail: Detail,
) {
    let RunSteadiness { run_ms, slope_share, excursion_share, part } = steadiness;
    let seconds = |ms: &u64| *ms as f64 / 1000.0;
    json.number("run_s", seconds(run_ms));
    json.float("slope_percent", 100.0 * slope_share);
    json.float("excursion_percent", 100.0 * excursion_share);
    let Some(part) = part else {
        json.null("from_s");
        return json.null("to_s");
    };
    json.number("from_s", seconds(&part.from_ms));
    json.number("to_s", seconds(run_ms));
    if let Some(latencies) = latencies {
        json.number("latencies_from_s", seconds(&latencies.from_ms));
    }
    for (index, name) in DIRECTIONS.iter().enumerate().filter(|(index, _)| part.ios_per_s[*index] > 0.0) {
        json.object(name, |json| {
            json.float("iops", part.ios_per_s[index]);
            json.integer("bw_bytes", u64::capped(part.bytes_per_s[index].round()));
            if let Some(PartLatencies { latencies, .. }) = latencies {
                latency(json, "clat_ns", &latencies.directions[index], &PERCENTILES, detail);
            }
        });
    }
    if let Some(PartLatencies { latencies, .. }) = latencies
        && latencies.sync.running.count > 0
    {
        json.object("sync", |json| latency(json, "lat_ns", &latencies.sync, &PERCENTILES, detail));
    }
}

fn list(json: &mut Writer, key: &str, steady: &SteadyState, figure: impl Fn(&SteadySample) -> u64) {
    let missing = usize::capped(steady.window).saturating_sub(steady.samples.len());
    let taken = steady.samples.iter().map(|sample| figure(sample) as f64);
    json.numbers(key, taken.chain(std::iter::repeat_n(0.0, missing)));
}
