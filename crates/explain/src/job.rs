//! What belongs to a job as a whole: how it was set up, how it ended, its depths, its use of processors.
//!
//! Invariant: a sentence is left out if the report lacks one of its figures.

use fiord_import::{JobFigures, Report, ReportFormat};
use fiord_stats::OrderBy;

use crate::direction::{self, noun, percentiles};
use crate::entry::{PartExplanation, Sentences};
use crate::words::{count, list, number_of, percent, time};

/// The options that say most about a job, under each of their names.
const TELLING: [&[&str]; 14] = [
    &["rw", "readwrite"],
    &["rwmixread"],
    &["bs", "blocksize"],
    &["bssplit"],
    &["size"],
    &["ioengine"],
    &["iodepth"],
    &["direct"],
    &["fsync", "fdatasync"],
    &["rate", "rate_iops"],
    &["runtime", "timeout"],
    &["time_based"],
    &["numjobs"],
    &["filename", "directory"],
];

/// The lower ends of the depths that reports count: 1, 2 to 3, 4 to 7, …
const DEPTHS: [&str; 7] = ["1", "2 or 3", "4 to 7", "8 to 15", "16 to 31", "32 to 63", "64 or more"];
/// The sizes of batches that reports count.
const BATCHES: [&str; 7] = ["0", "1 to 4", "5 to 8", "9 to 16", "17 to 32", "33 to 64", "more than 64"];

/// Every part of a job.
pub(crate) fn entries(report: &Report, job: &JobFigures) -> Vec<PartExplanation> {
    let mut found = Vec::new();
    found.extend(setup(report, job).entry("options".to_string(), "set up as", None));
    found.extend(ending(job).entry("error".to_string(), "ended", job.line));
    for of in job.directions.iter().filter(|of| of.is_active()) {
        found.extend(direction::entries(of));
    }
    if !job.directions.iter().any(fiord_import::DirectionFigures::is_active) {
        let mut said = Sentences::default();
        said.say("This job did no I/O that this format reports.");
        found.extend(said.entry("directions".to_string(), "I/O", job.line));
    }
    found.extend(common(job));
    found
}

/// The parts that are not of one direction.
pub(crate) fn common(job: &JobFigures) -> Vec<PartExplanation> {
    let sync_line = job.sync.lat.as_ref().and_then(|lat| lat.line);
    let all = [
        (buckets(job), "latency_buckets", "lat (…sec)", None),
        (syncs(job), "sync", "sync", sync_line),
        (cpu(job), "cpu", "cpu", job.cpu.line),
        (depths(job), "depths", "IO depths", None),
        (batches(job), "batches", "submit/complete", None),
        (issued(job), "issued", "issued rwts", None),
        (errors(job), "errors", "errors", None),
        (target(job), "latency_target", "latency", None),
        (steady(job), "steadystate", "steadystate", None),
        (direction::counted(&job.counts), "counts", "counts", None),
    ];
    all.into_iter()
        .filter_map(|(said, part, label, line)| said.entry(part.to_string(), label, line))
        .collect()
}

fn setup(report: &Report, job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    if let ReportFormat::Terse(_) = report.format {
        said.say(
            "Terse lines do not say how a job was set up, nor whether the percentiles are of clat or, with \
             lat_percentiles, of lat.",
        );
        return said;
    }
    let option = |names: &&[&str]| {
        let all = job.options.iter().rev().chain(report.global_options.iter().rev());
        let mut given = all.filter(|(name, _)| names.contains(&name.as_str()));
        given.next().map(|(name, text)| if text.is_empty() { name.clone() } else { format!("{name}={text}") })
    };
    let given: Vec<String> = TELLING.iter().filter_map(option).collect();
    if !given.is_empty() {
        said.say(given.join(", ") + ".");
    } else if let Some(heading) = &job.heading {
        let depth = heading.iodepth.map(|depth| format!("iodepth={depth}"));
        let engine = heading.ioengine.as_ref().map(|engine| format!("ioengine={engine}"));
        let rw = heading.rw.as_ref().map(|rw| format!("rw={rw}"));
        let all: Vec<String> = [rw, engine, depth].into_iter().flatten().collect();
        said.say(format!("{}. The text does not show the other options.", all.join(", ")));
    }
    said
}

fn ending(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    if let Some(number) = job.error.filter(|number| *number != 0) {
        let text = job.error_text.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
        said.say(format!("With error {number}{text}. Its figures are those of the time before."));
    }
    said
}

fn buckets(job: &JobFigures) -> Sentences {
    const BOUNDS_NS: [u64; 29] = bounds();
    let mut said = Sentences::default();
    let mut largest: Vec<_> = job.latency_buckets.clone();
    largest.order_by(|one, other| other.percent.total_cmp(&one.percent));
    let range = |below_ns: Option<u64>| match below_ns {
        None => "2s or longer".to_string(),
        Some(below_ns) => match BOUNDS_NS.iter().rev().find(|bound| **bound < below_ns) {
            Some(from) => format!("{} to {}", time(*from as f64), time(below_ns as f64)),
            None => format!("less than {}", time(below_ns as f64)),
        },
    };
    let shown: Vec<String> = largest
        .iter()
        .take(3)
        .map(|of| format!("{} took {}", percent(of.percent), range(of.below_ns)))
        .collect();
    if !shown.is_empty() {
        said.say(format!("How many of all I/Os took how long to complete: {}.", list(&shown)));
        let rest = largest.len().saturating_sub(3);
        if rest > 0 {
            said.say(format!("The rest is in {}.", number_of(rest as u64, "other range")));
        }
    }
    said
}

/// The bounds of all buckets, ascending, in nanoseconds.
const fn bounds() -> [u64; 29] {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut all = [0; 29];
    let mut index = 0;
    while index < 29 {
        // The last bound of a unit is the first of the next divided by two, so that each unit has ten.
        let unit = [1, 1_000, 1_000_000][index / 10];
        all[index] = STEPS[index % 10] * unit;
        index += 1;
    }
    all
}

fn syncs(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    let Some(lat) = job.sync.lat.as_ref().filter(|lat| lat.is_measured()) else { return said };
    let number = job.sync.ios.map_or_else(|| "Syncs".to_string(), |ios| number_of(ios, "sync"));
    let (Some(mean), Some(max)) = (lat.mean_ns, lat.max_ns) else { return said };
    said.say(format!(
        "{number} (fsync, fdatasync and the like): {} on average, at most {}. Writes are safe from a power failure \
         only after these, and their time is not in clat.",
        time(mean),
        time(max as f64)
    ));
    said.say_if(percentiles(lat, "sync").entry(String::new(), "", None).map(|entry| entry.text));
    said.say_if(job.synced_writes().and_then(|both| {
        let (mean, median, p99) = (both.mean_ns?, both.percentile_ns(50.0)?, both.percentile_ns(99.0)?);
        Some(format!(
            "Each write was followed by one: a write with its sync took {} on average, half at most {}, 99 % at most \
             {}. That is the latency to judge these writes by, not clat.",
            time(mean),
            time(median as f64),
            time(p99 as f64)
        ))
    }));
    said
}

fn cpu(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    let cpu = &job.cpu;
    if let (Some(user), Some(system)) = (cpu.user_percent, cpu.system_percent) {
        said.say(format!(
            "Of its time, the job was running in the program for {} (usr) and in the kernel for {} (sys); 100 % is one \
             processor for each job.",
            percent(user),
            percent(system)
        ));
    }
    if let Some(switches) = cpu.context_switches {
        let ios: u64 = job.directions.iter().filter_map(|of| of.ios).sum();
        let per_io =
            if ios > 0 { format!(", {:.2} per I/O", switches as f64 / ios as f64) } else { String::new() };
        said.say(format!("Context switches (ctx): {}{per_io}.", count(switches as f64)));
    }
    if let Some(faults) = cpu.major_faults.filter(|faults| *faults > 0) {
        said.say(format!("{} had to wait for I/O (majf).", number_of(faults, "page fault")));
    }
    said
}

fn depths(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    let Some(shares) = job.depth_percents else { return said };
    let sum: f64 = shares.iter().sum();
    if let Some((share, depth)) = shares.iter().zip(DEPTHS).max_by(|one, other| one.0.total_cmp(other.0))
        && *share > 0.0
    {
        let of = if sum > 101.0 { share / sum * 100.0 } else { *share };
        let of = percent(of.min(100.0));
        said.say(match depth {
            "1" => format!("{of} of I/Os were issued while no other was in flight."),
            _ => format!("{of} of I/Os were issued with {depth} in flight, themselves included."),
        });
    }
    if sum > 101.0 {
        said.say(format!(
            "The shares add up to {}, because syncs are counted here and are no I/Os.",
            percent(sum)
        ));
    }
    said
}

fn batches(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    for (shares, what) in [(job.submit_percents, "submissions"), (job.complete_percents, "completions")] {
        let Some(shares) = shares else { continue };
        let most = shares.iter().zip(BATCHES).max_by(|one, other| one.0.total_cmp(other.0));
        if let Some((share, size)) = most.filter(|(share, _)| **share > 0.0) {
            said.say(format!("{} of {what} were of {size} I/Os at once.", percent(*share)));
        }
    }
    said
}

fn issued(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    let mut counts: Vec<String> = Vec::new();
    let mut ill = 0;
    for of in &job.directions {
        counts.extend(of.ios.filter(|ios| *ios > 0).map(|ios| number_of(ios, noun(of.name))));
        ill += of.short_ios.unwrap_or(0) + of.dropped_ios.unwrap_or(0);
    }
    counts.extend(job.sync.ios.filter(|ios| *ios > 0).map(|ios| number_of(ios, "sync")));
    if counts.is_empty() {
        return said;
    }
    said.say(format!("{}.", list(&counts)));
    let is_known = job.directions.iter().any(|of| of.short_ios.is_some() && of.dropped_ios.is_some());
    match (ill, is_known) {
        (0, true) => said.say("None was short or dropped."),
        (0, false) => {}
        (ill, _) => said.say(format!(
            "{} short or dropped: see above.",
            number_of(ill, "I/O") + if ill == 1 { " was" } else { " were" }
        )),
    }
    said
}

fn errors(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    if let Some(errors) = job.errors.filter(|errors| errors.total > 0) {
        said.say(format!(
            "{} failed and the job went on (continue_on_error). The first error was number {}.",
            number_of(errors.total, "I/O"),
            errors.first
        ));
    }
    said
}

fn target(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    if let Some(target) = job.latency_target.filter(|target| target.target_ns > 0) {
        said.say(format!(
            "The job looked for the highest depth at which {} % of I/Os take at most {} (latency_target), in windows of \
             {}: it is {}.",
            target.percentile,
            time(target.target_ns as f64),
            time(target.window_ns as f64),
            count(f64::from(target.depth))
        ));
    }
    said
}

fn steady(job: &JobFigures) -> Sentences {
    let mut said = Sentences::default();
    if let Some(steady) = &job.steady {
        let not = if steady.attained { "was" } else { "was not" };
        said.say(format!("The criterion of a steady state {not} met: {}.", steady.criterion));
    }
    said
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

    use fiord_import::{DirectionFigures, DirectionName, LatencyFigures, Percentile};

    use super::*;

    #[test]
    fn writes_that_are_each_synced_are_explained_with_their_syncs() {
        let latency = |ns: u64, count: u64| {
            let percentile =
                |percent: f64| Percentile { percent, ns: ns * if percent > 50.0 { 2 } else { 1 } };
            LatencyFigures {
                mean_ns: Some(ns as f64),
                max_ns: Some(ns * 3),
                count: Some(count),
                percentiles: [50.0, 99.0].map(percentile).to_vec(),
                ..LatencyFigures::default()
            }
        };
        let mut job = JobFigures::default();
        job.directions.push(DirectionFigures {
            name: DirectionName::Write,
            ios: Some(1000),
            clat: Some(latency(20_000, 1000)),
            ..DirectionFigures::default()
        });
        let mut said = |count: u64| {
            (job.sync.ios, job.sync.lat) = (Some(count), Some(latency(9_000_000, count)));
            syncs(&job).entry(String::new(), "", None).map(|entry| entry.text).unwrap()
        };
        let each = "a write with its sync took 9.02ms on average, half at most 9.02ms, 99 % at most 18ms";
        assert!(said(999).contains(each), "{}", said(999));
        assert!(!said(250).contains("with its sync"), "every fourth: {}", said(250));
    }

    #[test]
    fn buckets_have_ascending_bounds() {
        let all = bounds();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert_eq!((all[0], all[9], all[10], all[28]), (2, 1_000, 2_000, 750_000_000));
    }
}
