//! How steady a run was: the object `steadystate` of a job, which fio has, and `steady_part` of the run.
//!
//! Invariant: `data` holds as many measurements as the window, as in fio; those not taken yet are zero.

use fiord_options::value::steady_word;
use fiord_stats::job::DIRECTIONS;
use fiord_stats::{RunSteadiness, SteadyMeasure, SteadySample, SteadyState};

use super::Writer;

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

/// Writes the members of the object of a run: the limits of SNIA's specification and the longest steady part at its end.
pub(super) fn write_part(json: &mut Writer, steadiness: &RunSteadiness) {
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
    let rates = DIRECTIONS.iter().zip(part.ios_per_s).zip(part.bytes_per_s);
    for ((name, ios_per_s), bytes_per_s) in rates.filter(|((_, ios_per_s), _)| *ios_per_s > 0.0) {
        json.object(name, |json| {
            json.float("iops", ios_per_s);
            json.integer("bw_bytes", bytes_per_s.round() as u64);
        });
    }
}

fn list(json: &mut Writer, key: &str, steady: &SteadyState, figure: impl Fn(&SteadySample) -> u64) {
    let missing = (steady.window as usize).saturating_sub(steady.samples.len());
    let taken = steady.samples.iter().map(|sample| figure(sample) as f64);
    json.numbers(key, taken.chain(std::iter::repeat_n(0.0, missing)));
}
