//! What a job did in one direction: its rate, its latencies, its samples.
//!
//! Invariant: a sentence is left out if the report lacks one of its figures.

use fiord_import::{DirectionFigures, DirectionName, LatencyFigures, SampleMoments};
use fiord_stats::{Capped, Counts};

use crate::entry::{PartExplanation, Sentences};
use crate::words::{bytes, count, list, number_of, percent, time, times};

/// Fewer samples than this say nothing about how steady a job was.
const SAMPLES_MIN: u64 = 10;
/// A deviation of the samples up to the first is steady, and from the second on unsteady, in percent of their mean.
const STEADY_MAX: f64 = 5.0;
const UNSTEADY_MIN: f64 = 20.0;
/// How many times the median the 99th percentile may be in a short tail, and in a moderate one.
const SHORT_TAIL_MAX: f64 = 3.0;
const MODERATE_TAIL_MAX: f64 = 10.0;
/// I/Os are on time if their response latency exceeds the latency from the issue by at most this share of it, on average.
const ON_TIME_SHARE_MAX: f64 = 0.1;
/// The latency from the issue hides waits if the response latency is this many times as high at the percentile compared,
/// which is the highest of the report up to one that usually rests on enough I/Os.
const HIDDEN_RATIO_MIN: f64 = 2.0;
const HIGHEST_PERCENTILE: f64 = 99.9;

/// Every part of a direction.
pub(crate) fn entries(of: &DirectionFigures) -> Vec<PartExplanation> {
    let name = of.name.name();
    let part = |part: &str| format!("{name}.{part}");
    let mut found = Vec::new();
    found.extend(rate(of).entry(name.to_string(), name, of.line));
    let mut latency = |label: &str, latency: &Option<LatencyFigures>, sentences: Sentences| {
        let line = latency.as_ref().and_then(|latency| latency.line);
        found.extend(sentences.entry(part(label), label, line));
    };
    latency("slat", &of.slat, submission(of));
    latency("clat", &of.clat, completion(of));
    latency("lat", &of.lat, total(of));
    latency("response", &of.response, response(of));
    let kinds = [("slat", &of.slat), ("clat", &of.clat), ("lat", &of.lat), ("response", &of.response)];
    for (label, latency) in kinds {
        let Some(latency) = latency else { continue };
        let label = format!("{label} percentiles");
        found.extend(percentiles(latency, noun(of.name)).entry(
            part(&label.replace(' ', ".")),
            &label,
            latency.line,
        ));
    }
    found.extend(counted(&of.counts).entry(part("counts"), "counts", None));
    for (label, samples, is_bandwidth) in
        [("bw", &of.bandwidth_samples, true), ("iops", &of.iops_samples, false)]
    {
        let Some(samples) = samples else { continue };
        let label = format!("{label} samples");
        found.extend(sampled(samples, is_bandwidth).entry(
            part(&label.replace(' ', ".")),
            &label,
            samples.line,
        ));
    }
    found
}

/// What one I/O of a direction is called.
pub(crate) fn noun(name: DirectionName) -> &'static str {
    match name {
        DirectionName::Read => "read",
        DirectionName::Write => "write",
        DirectionName::Trim => "trim",
        DirectionName::Mixed => "I/O",
    }
}

fn rate(of: &DirectionFigures) -> Sentences {
    let mut said = Sentences::default();
    let noun = noun(of.name);
    let runtime = of.runtime_ms.map(|ms| time(ms as f64 * 1e6));
    if let (Some(ios), Some(runtime), Some(rate)) = (of.ios, &runtime, of.ios_per_s()) {
        said.say(format!("{} in {runtime}: {} per second (IOPS).", number_of(ios, noun), count(rate)));
    } else if let (Some(rate), Some(runtime)) = (of.iops, &runtime) {
        said.say(format!("{} {noun}s per second (IOPS), for {runtime}.", count(rate)));
    } else if let Some(rate) = of.iops {
        said.say(format!("{} {noun}s per second (IOPS).", count(rate)));
    }
    if let (Some(moved), Some(rate)) = (of.bytes, of.bandwidth) {
        said.say(format!("They transferred {}, which is {} per second (BW).", bytes(moved), bytes(rate)));
    }
    if let (Some(moved), Some(ios)) = (of.bytes, of.ios.filter(|ios| *ios > 0)) {
        let mean = mean_size(of, moved, ios);
        said.say(format!("On average a {noun} was {}.", bytes(mean)));
        if mean == 1 << 20 {
            said.say("At 1MiB each, IOPS and MiB per second are the same number.");
        }
    }
    if let Some(short) = of.short_ios.filter(|short| *short > 0) {
        said.say(format!("{} transferred less than requested (short).", number_of(short, noun)));
    }
    if let Some(dropped) = of.dropped_ios.filter(|dropped| *dropped > 0) {
        said.say(format!(
            "{} never carried out (dropped).",
            number_of(dropped, noun) + if dropped == 1 { " was" } else { " were" }
        ));
    }
    said
}

/// Bytes of a mean I/O. Text and terse lines round the bytes transferred, so that a mean within their precision of whole
/// sectors is one of whole sectors.
fn mean_size(of: &DirectionFigures, moved: u64, ios: u64) -> u64 {
    const SECTOR: f64 = 512.0;
    let mean = moved as f64 / ios as f64;
    let sectors = (mean / SECTOR).round() * SECTOR;
    // JSON has no lines, and exact bytes.
    let is_rounded = of.line.is_some() && (sectors - mean).abs() <= mean * 0.005;
    if is_rounded { u64::capped(sectors) } else { u64::capped(mean) }
}

/// The mean and the extremes: `187us on average, from 23.6us to 693us`.
fn moments(latency: &LatencyFigures) -> Option<String> {
    let (mean, min, max) = (latency.mean_ns?, latency.min_ns?, latency.max_ns?);
    Some(format!("{} on average, from {} to {}", time(mean), time(min as f64), time(max as f64)))
}

fn share_of_total(of: &DirectionFigures, latency: &LatencyFigures) -> Option<String> {
    let (part, whole) = (latency.mean_ns?, of.lat.as_ref()?.mean_ns?);
    (whole > 0.0).then(|| percent((100.0 * part / whole).min(100.0)))
}

fn submission(of: &DirectionFigures) -> Sentences {
    let mut said = Sentences::default();
    let Some(slat) = &of.slat else { return said };
    if !slat.is_measured() {
        // Terse lines and JSON have zeros where nothing was measured.
        if of.clat.as_ref().is_some_and(LatencyFigures::is_measured) {
            said.say(
                "Submission latency: not measured. A synchronous engine submits and completes an I/O in one call, \
                 and all of its time is clat.",
            );
        }
        return said;
    }
    if let Some(moments) = moments(slat) {
        said.say(format!("Submission latency, the time to hand an I/O to the kernel: {moments}."));
    }
    if let Some(share) = share_of_total(of, slat) {
        said.say(format!("That is {share} of lat."));
    }
    said
}

fn completion(of: &DirectionFigures) -> Sentences {
    let mut said = Sentences::default();
    let Some(clat) = of.clat.as_ref().filter(|clat| clat.is_measured()) else { return said };
    if let Some(moments) = moments(clat) {
        said.say(format!("Completion latency, from the end of submission to completion: {moments}."));
    }
    if let (Some(stddev), Some(mean)) = (clat.stddev_ns, clat.mean_ns.filter(|mean| *mean > 0.0)) {
        said.say(format!(
            "Its standard deviation is {}, {} of the mean.",
            time(stddev),
            percent(100.0 * stddev / mean)
        ));
    }
    said
}

fn total(of: &DirectionFigures) -> Sentences {
    let mut said = Sentences::default();
    let Some(lat) = of.lat.as_ref().filter(|lat| lat.is_measured()) else { return said };
    if let Some(moments) = moments(lat) {
        said.say(format!("Total latency, from the start of submission to completion: {moments}."));
    }
    if let (Some(mean), Some(rate)) = (lat.mean_ns, of.ios_per_s()) {
        let in_flight = rate * mean / 1e9;
        if in_flight >= 0.05 {
            said.say(format!(
                "IOPS times this latency is the number of I/Os in flight on average, over all jobs: {}.",
                count((in_flight * 10.0).round() / 10.0)
            ));
        }
    }
    said
}

/// Response latency beside the latency from the issue, and what their difference means.
fn response(of: &DirectionFigures) -> Sentences {
    let mut said = Sentences::default();
    let noun = noun(of.name);
    if let Some(response) = of.response.as_ref().filter(|response| response.is_measured()) {
        if let Some(moments) = moments(response) {
            said.say(format!(
                "Response latency, from the moment the rate intended the {noun} to start until it completed: {moments}."
            ));
        }
        said.say_if(delay(of, response));
        said.say_if(hidden_wait(of, response));
    }
    said
}

/// What was counted, and what each count means.
pub(crate) fn counted(counts: &Counts) -> Sentences {
    let mut said = Sentences::default();
    counts.iter().for_each(|(known, number)| {
        said.say(format!("{} {}: {}", count(number as f64), known.name(), known.meaning));
    });
    said
}

/// By how much the mean of the response latency exceeds that of the latency from the issue.
fn delay(of: &DirectionFigures, response: &LatencyFigures) -> Option<String> {
    let (mean, issued) = (response.mean_ns?, of.lat.as_ref().and_then(|lat| lat.mean_ns)?);
    let late = mean - issued;
    Some(if late > issued * ON_TIME_SHARE_MAX {
        format!(
            "The mean is {} more than that of lat: {}s were issued late by that much.",
            time(late),
            noun(of.name)
        )
    } else {
        format!("The mean is that of lat: {}s were issued when the rate intended.", noun(of.name))
    })
}

/// What the highest percentile that both latencies have says of waits that the latency from the issue leaves out.
fn hidden_wait(of: &DirectionFigures, response: &LatencyFigures) -> Option<String> {
    let with_percentiles = |latency: &&LatencyFigures| !latency.percentiles.is_empty();
    let clat = of.clat.as_ref().filter(with_percentiles).map(|clat| ("clat", clat));
    let (label, issued) = clat.or_else(|| Some(("lat", of.lat.as_ref().filter(with_percentiles)?)))?;
    let common = response.percentiles.iter().rev().filter(|known| known.percent <= HIGHEST_PERCENTILE);
    let mut both = common.filter_map(|known| Some((known, issued.percentile_ns(known.percent)?)));
    let (high, issued_ns) = both.next()?;
    let [response_ns, issued_ns] = [high.ns as f64, issued_ns as f64];
    let p = high.percent;
    Some(if response_ns > issued_ns * HIDDEN_RATIO_MIN {
        format!(
            "Its p{p} is {}, that of {label} {}: {label} hides that {}s which were due waited for slower ones before \
             them. Quote the response latency: it is what a client of this rate would see.",
            time(response_ns),
            time(issued_ns),
            noun(of.name)
        )
    } else {
        format!(
            "Its p{p} is {}, that of {label} {}: {label} hides no waits here.",
            time(response_ns),
            time(issued_ns)
        )
    })
}

/// A latency's percentiles.
pub(crate) fn percentiles(latency: &LatencyFigures, noun: &str) -> Sentences {
    let mut said = Sentences::default();
    let shown = |percent: f64| latency.percentile_ns(percent).map(|ns| (percent, ns));
    let wanted: Vec<(f64, u64)> = [50.0, 90.0, 99.0, 99.9, 99.99].into_iter().filter_map(shown).collect();
    let chosen = if wanted.is_empty() {
        latency.percentiles.iter().map(|of| (of.percent, of.ns)).take(3).collect()
    } else {
        wanted
    };
    if chosen.is_empty() || !latency.is_measured() {
        return said;
    }
    let each = |(percent, ns): &(f64, u64)| match *percent {
        50.0 => format!("half of the {noun}s took at most {} (p50)", time(*ns as f64)),
        percent => format!("{percent} % at most {} (p{percent})", time(*ns as f64)),
    };
    let all: Vec<String> = chosen.iter().map(each).collect();
    let mut sentence = list(&all);
    // A sentence begins with a capital, or a figure.
    if let Some(first) = sentence.get(..1).map(str::to_uppercase) {
        sentence.replace_range(..1, &first);
    }
    said.say(sentence + ".");
    if let (Some(median), Some(p99)) =
        (latency.percentile_ns(50.0).filter(|ns| *ns > 0), latency.percentile_ns(99.0))
    {
        let ratio = p99 as f64 / median as f64;
        let tail = match ratio {
            ratio if ratio <= SHORT_TAIL_MAX => "a short tail",
            ratio if ratio <= MODERATE_TAIL_MAX => "a moderate tail",
            _ => "a long tail: the mean hides it",
        };
        said.say(format!("p99 is {} the median: {tail}.", times(ratio)));
    }
    said
}

fn sampled(samples: &SampleMoments, is_bandwidth: bool) -> Sentences {
    let mut said = Sentences::default();
    let shown =
        |figure: f64| if is_bandwidth { bytes(u64::capped(figure.round())) } else { count(figure.round()) };
    let what = if is_bandwidth { "Bytes" } else { "I/Os" };
    match samples.count {
        Some(0) => {
            said.say("No samples: the job was shorter than the interval between two.");
            return said;
        }
        _ if samples.mean.unwrap_or(0.0) == 0.0 => return said,
        Some(1) => said.say(format!("{what} per second, in 1 sample.")),
        Some(number) => {
            said.say(format!("{what} per second, in {} during the run.", number_of(number, "sample")))
        }
        None => said.say(format!("{what} per second, in samples during the run.")),
    }
    if let (Some(min), Some(max), Some(mean)) = (samples.min, samples.max, samples.mean) {
        said.say(format!("{} on average, from {} to {}.", shown(mean), shown(min as f64), shown(max as f64)));
    }
    if let (Some(stddev), Some(mean)) = (samples.stddev, samples.mean) {
        let share = 100.0 * stddev / mean;
        let judged = match (samples.count, share) {
            (Some(..SAMPLES_MIN), _) => ": too few samples to say whether it was steady",
            (_, ..STEADY_MAX) => ": steady",
            (_, UNSTEADY_MIN..) => ": unsteady, so the mean alone describes it badly",
            _ => "",
        };
        said.say(format!("The standard deviation is {} of the mean{judged}.", percent(share)));
    }
    if let Some(share) = samples.share_percent.filter(|share| *share > 0.0 && *share < 99.95) {
        said.say(format!("per={}: the part of this job in the bandwidth of its group.", percent(share)));
    }
    said
}

#[cfg(test)]
mod tests {
    use fiord_import::Percentile;

    use fiord_stats::count::DROPPED_ARRIVALS;

    use super::*;

    /// Means of 20 us from the issue, with a p99.9 of 50 us, beside a response latency of these.
    fn paced(mean_us: f64, p999_us: u64) -> String {
        let latency = |mean_us: f64, p999_us: u64| LatencyFigures {
            min_ns: Some(10_000),
            max_ns: Some(p999_us * 1000),
            mean_ns: Some(mean_us * 1e3),
            percentiles: vec![
                Percentile { percent: 50.0, ns: 15_000 },
                Percentile { percent: 99.9, ns: p999_us * 1000 },
                Percentile { percent: 99.99, ns: p999_us * 1000 },
            ],
            ..LatencyFigures::default()
        };
        let of = DirectionFigures {
            clat: Some(latency(20.0, 50)),
            lat: Some(LatencyFigures { percentiles: Vec::new(), ..latency(20.0, 50) }),
            response: Some(latency(mean_us, p999_us)),
            ..DirectionFigures::default()
        };
        response(&of).entry(String::new(), "", None).unwrap().text
    }

    #[test]
    fn the_response_latency_is_compared_with_the_latency_from_the_issue() {
        let stalled = paced(98_000.0, 990_000);
        assert!(
            stalled.contains("The mean is 98ms more than that of lat: I/Os were issued late"),
            "{stalled}"
        );
        assert!(stalled.contains("Its p99.9 is 990ms, that of clat 50us: clat hides"), "{stalled}");
        let on_time = paced(20.5, 52);
        assert!(
            on_time.contains("The mean is that of lat: I/Os were issued when the rate intended."),
            "{on_time}"
        );
        assert!(on_time.contains("clat hides no waits here"), "{on_time}");
    }

    #[test]
    fn counts_are_said_with_their_meanings() {
        let mut of = DirectionFigures::default();
        assert!(entries(&of).iter().all(|entry| entry.label != "counts"));
        of.counts.add(&DROPPED_ARRIVALS, 3);
        let said = entries(&of).into_iter().find(|entry| entry.label == "counts").unwrap().text;
        assert_eq!(said, format!("3 dropped arrivals: {}", DROPPED_ARRIVALS.meaning));
    }

    #[test]
    fn a_mean_of_rounded_bytes_is_not_shown_exactly() {
        let of = |line| DirectionFigures { line, ..DirectionFigures::default() };
        assert_eq!(mean_size(&of(Some(5)), 120_586_240, 29_504), 4096);
        assert_eq!(mean_size(&of(None), 8_388_608, 610), 13_751, "bssplit, in JSON");
        assert_eq!(mean_size(&of(Some(5)), 1_021 << 10, 455), 2297, "bs=2300");
    }
}
