//! Reads JSON and JSON+ documents.
//!
//! Invariant: a key that is absent is a figure that is absent; a key with a value of the wrong type is an error, with
//! the place of that value.

mod fields;
mod locate;
pub mod replaced;
pub mod study;

use fiord_stats::{Capped, Count, Counts};
use serde_json::Value;

use crate::clients;
use crate::model::{
    CpuFigures, DirectionFigures, DirectionName, DiskFigures, EnergyFigures, ErrorFigures, HostOverTime,
    JobFigures, LatencyBucket, LatencyFigures, LatencyTargetFigures, Percentile, RepeatedFigures, Report,
    ReportFormat, ReportedFinding, SampleMoments, SteadyFigures, SyncFigures, WindowFigures,
};
use crate::place::{ReadError, place_of};
use fields::{Fields, PathStep, WrongType};
use locate::NotJson;

/// The version of fio before latencies were in nanoseconds and bytes in bytes.
const OLD: &str = "fio-2";

/// The lists of jobs: those of a run, or of a server's clients.
const JOBS: [&str; 2] = ["jobs", "client_stats"];

/// Reads the document at the beginning of a text, which is this line. Returns it and its length in bytes.
pub(crate) fn read(document: &str, line: u32) -> Result<(Report, usize), ReadError> {
    let not_json = |NotJson { at, problem }: NotJson| {
        let (lines_before, column) = place_of(document, at);
        ReadError { line: line + lines_before - 1, column, problem: format!("this is not JSON: {problem}") }
    };
    let (places, length) = locate::members(document).map_err(not_json)?;
    // Of thousands of jobs one at a time is held as values.
    let mut members = serde_json::Map::new();
    for (key, at) in places.iter().filter(|(key, _)| !JOBS.contains(&key.as_str())) {
        members.insert(key.clone(), locate::value(document, *at).map_err(not_json)?.0);
    }
    let members = Value::Object(members);
    let root = Fields::root(&members);
    let report = head(&root).and_then(|report| Ok((report, jobs_of(&root, document, &places)?)));
    match report {
        Ok((mut report, Ok(mut jobs))) => {
            report.format = if has_bins(&jobs) { ReportFormat::JsonPlus } else { ReportFormat::Json };
            let global_options =
                global_options(&root, &mut jobs).map_err(|wrong| placed(document, line, wrong))?;
            let mut report = Report { line, jobs, global_options, ..report };
            clients::settle(&mut report);
            Ok((report, length))
        }
        Ok((_, Err(why))) => Err(not_json(why)),
        Err(wrong) => Err(placed(document, line, wrong)),
    }
}

/// Why a list of jobs cannot be read.
enum JobsError {
    NotJson(NotJson),
    Wrong(WrongType),
}

impl From<NotJson> for JobsError {
    fn from(why: NotJson) -> JobsError {
        JobsError::NotJson(why)
    }
}

/// The jobs of a document whose members have these places.
fn jobs_of(
    root: &Fields<'_>,
    document: &str,
    places: &[(String, usize)],
) -> Result<Result<Vec<JobFigures>, NotJson>, WrongType> {
    let is_old = root.text("fio version")?.is_some_and(|version| version.starts_with(OLD));
    let list = JOBS.iter().find_map(|name| places.iter().rev().find(|(key, _)| key == name));
    let (key, at) = list.ok_or_else(|| {
        root.wrong("a JSON document, but not a report of fio: it has neither \"jobs\" nor \"client_stats\"")
    })?;
    let mut jobs = Vec::new();
    let read = locate::items(document, *at, |index, value| {
        let steps = [PathStep::Key(key.clone()), PathStep::Index(index)];
        let fields = Fields::at(&value, steps.to_vec(), key).map_err(JobsError::Wrong)?;
        jobs.push(job(&fields, is_old).map_err(JobsError::Wrong)?);
        Ok(())
    });
    match read {
        Ok(Some(())) => Ok(Ok(jobs)),
        Ok(None) => Err(root.wrong_member(key, "a list")),
        Err(JobsError::NotJson(why)) => Ok(Err(why)),
        Err(JobsError::Wrong(wrong)) => Err(wrong),
    }
}

fn has_bins(jobs: &[JobFigures]) -> bool {
    let has = |latency: &Option<LatencyFigures>| latency.as_ref().is_some_and(|of| !of.bins.is_empty());
    let of = |direction: &DirectionFigures| has(&direction.clat) || has(&direction.lat);
    jobs.iter().any(|job| job.directions.iter().any(of) || has(&job.sync.lat))
}

/// An error with the place of its value in a document that begins on this line.
fn placed(document: &str, line: u32, WrongType { path, problem }: WrongType) -> ReadError {
    let (lines_before, column) = place_of(document, locate::value_at(document, &path).unwrap_or(0));
    ReadError { line: line + lines_before - 1, column, problem }
}

/// All but the jobs.
fn head(root: &Fields<'_>) -> Result<Report, WrongType> {
    let mut report = Report {
        version: root.text("fio version")?,
        date: root.text("time")?,
        timestamp_ms: match root.number("timestamp_ms")? {
            Some(ms) => Some(ms),
            None => root.number::<u64>("timestamp")?.map(|seconds| seconds.saturating_mul(1000)),
        },
        ..Report::default()
    };
    if let Some(fields) = root.object("fiord")? {
        report.fiord_version = fields.text("version")?;
    }
    for fields in root.list("disk_util")?.unwrap_or_default() {
        report.disks.push(disk(&fields)?);
    }
    for fields in root.list("findings")?.unwrap_or_default() {
        report.findings.push(finding(&fields)?);
    }
    if let Some(fields) = root.object("windows")? {
        report.windows = windows(&fields)?;
    }
    if let Some(fleet) = root.object("fleet")? {
        if let Some(fields) = fleet.object("over_time")? {
            report.hosts_over_time = hosts_over_time(&fields)?;
        }
        for fields in fleet.list("hosts")?.unwrap_or_default() {
            if let (Some(host), Some(fate @ ("lost" | "missing"))) =
                (fields.text("host")?, fields.text("fate")?.as_deref())
            {
                let cause = fields.text("cause")?.unwrap_or_default();
                report.absent_hosts.push((host, format!("was {fate}: {cause}")));
            }
        }
    }
    for fields in root.list("repeats")?.unwrap_or_default() {
        report.repeats.push(RepeatedFigures {
            of: fields.text("of")?.unwrap_or_default(),
            figure: fields.text("figure")?.unwrap_or_default(),
            runs: fields.floats("runs")?,
            left_out: fields.number("left_out")?.unwrap_or(0),
        });
    }
    for fields in root.list("energy")?.unwrap_or_default() {
        report.energy.push(EnergyFigures {
            source: fields.text("source")?.unwrap_or_default(),
            joules: fields.float("joules")?,
            watts: fields.float("watts")?,
            idle_watts: fields.float("idle_watts")?,
            iops_per_watt: fields.float("iops_per_watt")?,
            bytes_per_joule: fields.float("bytes_per_joule")?,
        });
    }
    Ok(report)
}

fn hosts_over_time(fields: &Fields<'_>) -> Result<Vec<HostOverTime>, WrongType> {
    let window_s = fields.float("window_ns")?.unwrap_or(0.0) / 1e9;
    let of = |fields: Fields<'_>| {
        let host = fields.text("host")?.unwrap_or_default();
        Ok(HostOverTime { host, window_s, iops: fields.known_floats("iops")? })
    };
    fields.list("hosts")?.unwrap_or_default().into_iter().map(of).collect()
}

/// The directions that were active.
fn windows(fields: &Fields<'_>) -> Result<Vec<WindowFigures>, WrongType> {
    let window_s = fields.float("window_s")?.unwrap_or(0.0);
    let mut windows = Vec::new();
    for name in DirectionName::ALL {
        let iops = fields.floats(&format!("{}_ios_per_s", name.name()))?;
        let bandwidth = fields.floats(&format!("{}_bytes_per_s", name.name()))?;
        if !iops.is_empty() {
            windows.push(WindowFigures { name, window_s, iops, bandwidth });
        }
    }
    Ok(windows)
}

/// The options of all jobs. In reports of several clients each has its own: where these differ they become part of the
/// options of its jobs.
fn global_options(root: &Fields<'_>, jobs: &mut [JobFigures]) -> Result<Vec<(String, String)>, WrongType> {
    if !root.is_list("global options") {
        return options(root, "global options");
    }
    let mut each = Vec::new();
    for fields in root.list("global options")?.unwrap_or_default() {
        let host = clients::host_and_port(fields.text("hostname")?, fields.number("port")?);
        let mut options = fields.texts();
        options.retain(|(name, _)| name != "hostname" && name != "port");
        each.push((host, options));
    }
    if each.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Ok(each.into_iter().next().map(|(_, options)| options).unwrap_or_default());
    }
    for job in jobs {
        if let Some((_, options)) = each.iter().find(|(host, _)| *host == job.host) {
            job.options = options.iter().cloned().chain(std::mem::take(&mut job.options)).collect();
        }
    }
    Ok(Vec::new())
}

/// Options as text; in reports of servers they are a list of objects.
fn options(fields: &Fields<'_>, key: &str) -> Result<Vec<(String, String)>, WrongType> {
    let Some(options) = fields.object_in(key)? else { return Ok(Vec::new()) };
    Ok(options.texts())
}

fn job(fields: &Fields<'_>, is_old: bool) -> Result<JobFigures, WrongType> {
    let mut job = JobFigures {
        name: fields.text("jobname")?.unwrap_or_default(),
        host: clients::host_and_port(fields.text("hostname")?, fields.number("port")?),
        group_id: fields.number("groupid")?,
        error: fields.number("error")?,
        description: fields.text("desc")?,
        start_ms: fields.number("job_start")?,
        elapsed_s: fields.number("elapsed")?,
        options: options(fields, "job options")?,
        job_runtime_ms: fields.number("job_runtime")?,
        cpu: CpuFigures {
            line: None,
            user_percent: fields.float("usr_cpu")?,
            system_percent: fields.float("sys_cpu")?,
            context_switches: fields.number("ctx")?,
            major_faults: fields.number("majf")?,
            minor_faults: fields.number("minf")?,
        },
        depth_percents: shares(fields, "iodepth_level")?,
        submit_percents: shares(fields, "iodepth_submit")?,
        complete_percents: shares(fields, "iodepth_complete")?,
        ..JobFigures::default()
    };
    for name in DirectionName::ALL {
        if let Some(fields) = fields.object(name.name())? {
            job.directions.push(direction(name, &fields, is_old)?);
        }
    }
    if let Some(fields) = fields.object("response")? {
        responses(&mut job, &fields)?;
    }
    if let Some(fields) = fields.object("counts")? {
        job.counts = counts(&fields, false)?;
        for direction in &mut job.directions {
            let Some(fields) = fields.object(direction.name.name())? else { continue };
            direction.counts = counts(&fields, true)?;
        }
    }
    if let Some(fields) = fields.object("sync")? {
        job.sync = SyncFigures { ios: fields.number("total_ios")?, lat: latency(&fields, "lat_ns", "lat")? };
    }
    for (key, unit_ns) in [("latency_ns", 1), ("latency_us", 1000), ("latency_ms", 1_000_000)] {
        if let Some(fields) = fields.object(key)? {
            buckets(&mut job.latency_buckets, &fields, unit_ns)?;
        }
    }
    if let (Some(total), Some(first)) = (fields.number("total_err")?, fields.number("first_error")?) {
        job.errors = Some(ErrorFigures { total, first });
    }
    if let (Some(target_ns), Some(depth)) = (target_ns(fields)?, fields.number("latency_depth")?) {
        let window_us = fields.number::<u64>("latency_window")?.unwrap_or(0);
        job.latency_target = Some(LatencyTargetFigures {
            target_ns,
            window_ns: window_us.saturating_mul(1000),
            percentile: fields.float("latency_percentile")?.unwrap_or(0.0),
            depth,
        });
    }
    if let Some(fields) = fields.object("steadystate")? {
        job.steady = Some(SteadyFigures {
            attained: fields.number::<u64>("attained")? == Some(1),
            criterion: fields.text("criterion")?.unwrap_or_default(),
        });
    }
    Ok(job)
}

/// The latencies from intended starts, which are beside the directions because fio has none.
fn responses(job: &mut JobFigures, fields: &Fields<'_>) -> Result<(), WrongType> {
    for direction in &mut job.directions {
        let Some(fields) = fields.object(direction.name.name())? else { continue };
        direction.response = latency(&fields, "lat_ns", "lat")?;
    }
    Ok(())
}

/// What only fiord counts, of a direction or of a job.
fn counts(fields: &Fields<'_>, of_directions: bool) -> Result<Counts, WrongType> {
    let mut counts = Counts::default();
    for count in Count::all(of_directions) {
        fields.number(count.key)?.into_iter().for_each(|number| counts.add(count, number));
    }
    Ok(counts)
}

/// `latency_target` is in nanoseconds where `latency_target_ns` is beside it, else in microseconds.
fn target_ns(fields: &Fields<'_>) -> Result<Option<u64>, WrongType> {
    if let Some(ns) = fields.number("latency_target_ns")? {
        return Ok(Some(ns));
    }
    Ok(fields.number::<u64>("latency_target")?.map(|us| us.saturating_mul(1000)))
}

fn direction(name: DirectionName, fields: &Fields<'_>, is_old: bool) -> Result<DirectionFigures, WrongType> {
    let kib = |count: Option<u64>| count.map(|kib| kib.saturating_mul(1024));
    let bytes = fields.number("io_bytes")?;
    let bandwidth = match fields.number("bw_bytes")? {
        Some(bytes) => Some(bytes),
        None => kib(fields.number("bw")?),
    };
    let samples = |prefix: &str, deviation: &str, scale: f64| -> Result<SampleMoments, WrongType> {
        let of =
            |part: &str| fields.float(&format!("{prefix}_{part}")).map(|figure| figure.map(|it| it * scale));
        Ok(SampleMoments {
            line: None,
            min: of("min")?.map(u64::capped),
            max: of("max")?.map(u64::capped),
            mean: of("mean")?,
            stddev: of(deviation)?,
            share_percent: fields.float(&format!("{prefix}_agg"))?,
            count: fields.number(&format!("{prefix}_samples"))?,
        })
    };
    let bandwidth_samples = samples("bw", "dev", 1024.0)?;
    let iops_samples = samples("iops", "stddev", 1.0)?;
    Ok(DirectionFigures {
        name,
        line: None,
        bytes: if is_old { kib(bytes) } else { bytes },
        iops: fields.float("iops")?,
        bandwidth,
        runtime_ms: fields.number("runtime")?,
        ios: fields.number("total_ios")?,
        short_ios: fields.number("short_ios")?,
        dropped_ios: fields.number("drop_ios")?,
        slat: latency(fields, "slat_ns", "slat")?,
        clat: latency(fields, "clat_ns", "clat")?,
        lat: latency(fields, "lat_ns", "lat")?,
        response: None,
        bandwidth_samples: bandwidth_samples.min.is_some().then_some(bandwidth_samples),
        iops_samples: iops_samples.min.is_some().then_some(iops_samples),
        counts: Counts::default(),
    })
}

/// A latency in nanoseconds, or as fio 2 has it in microseconds under another key.
fn latency(fields: &Fields<'_>, key: &str, old_key: &str) -> Result<Option<LatencyFigures>, WrongType> {
    let (found, unit_ns) = match fields.object(key)? {
        Some(found) => (found, 1.0),
        None => match fields.object(old_key)? {
            Some(found) => (found, 1000.0),
            None => return Ok(None),
        },
    };
    let mut latency = LatencyFigures {
        line: None,
        min_ns: found.float("min")?.map(|figure| u64::capped(figure * unit_ns)),
        max_ns: found.float("max")?.map(|figure| u64::capped(figure * unit_ns)),
        mean_ns: found.float("mean")?.map(|figure| figure * unit_ns),
        stddev_ns: found.float("stddev")?.map(|figure| figure * unit_ns),
        count: found.number("N")?,
        percentiles: Vec::new(),
        bins: Vec::new(),
    };
    if let Some(percentiles) = found.object("percentile")? {
        for (key, value) in percentiles.figures()? {
            let percent =
                key.parse().map_err(|_| percentiles.wrong(&format!("{key:?} is not a percentile")))?;
            // fio 2 fills its list of twenty with zeros.
            if percent > 0.0 {
                latency.percentiles.push(Percentile { percent, ns: u64::capped(value * unit_ns) });
            }
        }
    }
    if let Some(bins) = found.object("bins")? {
        for (key, count) in bins.figures()? {
            let ns = key.parse().map_err(|_| bins.wrong(&format!("{key:?} is not a latency")))?;
            latency.bins.push((ns, u64::capped(count)));
        }
    }
    Ok(Some(latency))
}

fn shares(fields: &Fields<'_>, key: &str) -> Result<Option<[f64; 7]>, WrongType> {
    let Some(found) = fields.object(key)? else { return Ok(None) };
    let shares: Vec<f64> = found.figures()?.into_iter().map(|(_, share)| share).collect();
    match <[f64; 7]>::try_from(shares) {
        Ok(shares) => Ok(Some(shares)),
        // fio 2 has six.
        Err(shares) if shares.len() < 7 => Ok(None),
        Err(shares) => Err(found.wrong(&format!("{} shares instead of 7", shares.len()))),
    }
}

fn buckets(into: &mut Vec<LatencyBucket>, fields: &Fields<'_>, unit_ns: u64) -> Result<(), WrongType> {
    for (key, percent) in fields.figures()? {
        let below_ns = match key.starts_with(">=") {
            true => None,
            false => {
                let bound: u64 =
                    key.parse().map_err(|_| fields.wrong(&format!("{key:?} is not a latency")))?;
                Some(bound.saturating_mul(unit_ns))
            }
        };
        if percent > 0.0 {
            into.push(LatencyBucket { below_ns, percent });
        }
    }
    Ok(())
}

fn disk(fields: &Fields<'_>) -> Result<DiskFigures, WrongType> {
    let both = |what: &str| -> Result<[Option<u64>; 2], WrongType> {
        Ok([fields.number(&format!("read_{what}"))?, fields.number(&format!("write_{what}"))?])
    };
    Ok(DiskFigures {
        name: fields.text("name")?.unwrap_or_default(),
        line: None,
        ios: both("ios")?,
        sectors: both("sectors")?,
        merges: both("merges")?,
        ticks_ms: both("ticks")?,
        in_queue_ms: fields.number("in_queue")?,
        util_percent: fields.float("util")?,
        is_stacked: fields.float("aggr_util")?.is_some(),
    })
}

fn finding(fields: &Fields<'_>) -> Result<ReportedFinding, WrongType> {
    let text = |key: &str| fields.text(key).map(Option::unwrap_or_default);
    Ok(ReportedFinding {
        code: text("code")?,
        severity: text("severity")?,
        subject: text("subject")?,
        sentence: text("sentence")?,
        remedy: text("remedy")?,
    })
}
