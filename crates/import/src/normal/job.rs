//! Reads the block of a job in normal text.
//!
//! Invariant: figures without a direction of their own (`issued rwts`) go to the directions that were read before.

use fiord_stats::Capped;

use crate::clients::ALL;
use crate::model::{
    DirectionFigures, DirectionName, ErrorFigures, JobFigures, LatencyBucket, LatencyFigures,
    LatencyTargetFigures, Percentile, SampleMoments, SteadyFigures,
};
use crate::number::{self, Prefixes};
use crate::place::{NumberedLine, ReadError, pairs};

/// What the next lines of percentiles are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Latency {
    #[default]
    None,
    Submission,
    Completion,
    Total,
    Response,
    Sync,
}

/// Reads one job.
#[derive(Debug, Default)]
pub(super) struct JobReader {
    percentiles_of: Latency,
    unit_ns: f64,
}

impl JobReader {
    /// Takes a line.
    pub fn line(&mut self, job: &mut JobFigures, line: NumberedLine<'_>) -> Result<(), ReadError> {
        let text = line.text.trim();
        if let Some(entries) = text.strip_prefix("| ") {
            let Some(latency) = slot(job, self.percentiles_of) else { return Ok(()) };
            return percentiles(latency, line, self.unit_ns, entries);
        }
        if text.starts_with("block lifetime percentiles") {
            // Of trims, not of a latency.
            self.percentiles_of = Latency::None;
            return Ok(());
        }
        if let Some((name, unit)) = text.split_once(" percentiles (") {
            self.percentiles_of = latency_named(name);
            let unit = unit.trim_end_matches([':', ')']);
            self.unit_ns = line.figure(unit, "unit", number::unit_ns)?;
            return Ok(());
        }
        let (label, rest) = text.split_once(':').unwrap_or((text, ""));
        // Of a call on any column: labels are padded before their colon.
        match label.split_whitespace().next().unwrap_or_default() {
            "Description" => job.description = Some(rest.trim().trim_matches(['[', ']']).to_string()),
            "read" | "write" | "trim" | "mixed" => direction(job, line, label.trim(), rest)?,
            "slat" | "clat" | "lat" | "response" | "sync" => latency(job, line, label, rest)?,
            "bw" | "iops" => samples(job, line, label, rest)?,
            "cpu" => cpu(job, line, rest)?,
            "IO" => job.depth_percents = shares(line, rest)?,
            "submit" => job.submit_percents = shares(line, rest)?,
            "complete" => job.complete_percents = shares(line, rest)?,
            "issued" => issued(job, line, rest)?,
            "errors" => errors(job, line, rest)?,
            "latency" => latency_target(job, line, rest)?,
            "steadystate" => {
                let attained = rest.contains("attained=yes");
                let criterion = rest.rsplit(", ").next().unwrap_or_default().trim().to_string();
                job.steady = Some(SteadyFigures { attained, criterion });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Moments (`slat (nsec): min=…`), or shares by latency (`lat (usec) : 50=0.06%`).
fn latency(job: &mut JobFigures, line: NumberedLine<'_>, label: &str, rest: &str) -> Result<(), ReadError> {
    let Some((name, unit)) = label.split_once('(') else { return Ok(()) };
    let unit_ns = line.figure(unit.trim().trim_end_matches(')'), "unit", number::unit_ns)?;
    if !rest.contains("min=") {
        return buckets(job, line, unit_ns, rest);
    }
    let Some(latency) = slot(job, latency_named(name.trim())) else { return Ok(()) };
    moments(latency, line, unit_ns, rest)
}

/// `min=24, max=693, avg=187.37, stdev=42.41`, in this unit.
pub(super) fn moments(
    latency: &mut LatencyFigures,
    line: NumberedLine<'_>,
    unit_ns: f64,
    figures: &str,
) -> Result<(), ReadError> {
    latency.line = Some(line.number);
    for (key, value) in pairs(figures) {
        let figure = line.figure(value, key, number::count)? * unit_ns;
        match key {
            "min" => latency.min_ns = Some(u64::capped(figure)),
            "max" => latency.max_ns = Some(u64::capped(figure)),
            "avg" => latency.mean_ns = Some(figure),
            "stdev" => latency.stddev_ns = Some(figure),
            _ => {}
        }
    }
    Ok(())
}

/// ` 1.00th=[  129],  5.00th=[  147],`, in this unit.
pub(super) fn percentiles(
    latency: &mut LatencyFigures,
    line: NumberedLine<'_>,
    unit_ns: f64,
    entries: &str,
) -> Result<(), ReadError> {
    for entry in entries.split(',').filter(|entry| !entry.trim().is_empty()) {
        let whole = entry.trim();
        let lacks = || line.error(whole, format!("{whole:?} is not a percentile"));
        let (percent, value) = whole.split_once("th=[").ok_or_else(lacks)?;
        let value = value.strip_suffix(']').ok_or_else(lacks)?;
        let percent = line.figure(percent, "percentile", number::plain)?;
        let ns = line.figure(value, "percentile", number::count)? * unit_ns;
        latency.percentiles.push(Percentile { percent, ns: u64::capped(ns) });
    }
    Ok(())
}

/// The latency of a label; those of single priorities are skipped.
fn latency_named(name: &str) -> Latency {
    match name.trim() {
        "slat" => Latency::Submission,
        "clat" => Latency::Completion,
        "lat" => Latency::Total,
        "response" => Latency::Response,
        "sync" => Latency::Sync,
        _ => Latency::None,
    }
}

fn slot(job: &mut JobFigures, of: Latency) -> Option<&mut LatencyFigures> {
    let place = match of {
        Latency::None => return None,
        Latency::Sync => &mut job.sync.lat,
        Latency::Submission => &mut job.directions.last_mut()?.slat,
        Latency::Completion => &mut job.directions.last_mut()?.clat,
        Latency::Total => &mut job.directions.last_mut()?.lat,
        Latency::Response => &mut job.directions.last_mut()?.response,
    };
    Some(place.get_or_insert_with(LatencyFigures::default))
}

/// `IOPS=111k, BW=434MiB/s (455MB/s)(22.1MiB/51msec)`, in fio 2 `io=22MB, bw=434MB/s, iops=111000, runt=    51msec`.
fn direction(job: &mut JobFigures, line: NumberedLine<'_>, label: &str, rest: &str) -> Result<(), ReadError> {
    let Some(name) = DirectionName::from_name(label) else { return Ok(()) };
    let rest = rest.trim_start();
    let is_old = rest.starts_with("io=");
    if !is_old && !rest.starts_with("IOPS=") {
        return Ok(());
    }
    // The lines below are of this direction, even if this one is damaged.
    job.directions.push(DirectionFigures { name, line: Some(line.number), ..DirectionFigures::default() });
    // fio 3.42 leaves the unit out where it sums clients: `BW=19.6Gi (21.0G)`.
    let unit = if job.name == ALL { "B" } else { "" };
    let Some(found) = job.directions.last_mut() else { return Ok(()) };
    if is_old { old_rates(found, line, rest) } else { rates(found, line, rest, unit) }
}

/// The line of a direction in fio 1 and 2.
fn old_rates(found: &mut DirectionFigures, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    let bytes = |text| line.figure(text, "bytes", |text| number::bytes(text, Prefixes::Binary));
    for (key, value) in pairs(rest) {
        match key {
            "io" => found.bytes = Some(u64::capped(bytes(value)?)),
            "bw" => found.bandwidth = Some(u64::capped(bytes(value)?)),
            "iops" => found.iops = Some(line.figure(value, key, number::count)?),
            "runt" => {
                found.runtime_ms = Some(u64::capped(line.figure(value, key, number::duration_ns)? / 1e6))
            }
            _ => {}
        }
    }
    Ok(())
}

/// The line of a direction in fio 3. Each figure is kept as soon as it is read: the line may be cut. A bandwidth without a
/// unit is in this one.
fn rates(
    found: &mut DirectionFigures,
    line: NumberedLine<'_>,
    rest: &str,
    unit: &str,
) -> Result<(), ReadError> {
    let rest = rest.strip_prefix("IOPS=").unwrap_or(rest);
    let bytes = |text| line.figure(text, "bytes", |text| number::bytes(text, Prefixes::Precise));
    let cut = |rest: &str, what: &str| line.error(rest, format!("the line ends before its {what}"));
    let (iops, rest) = rest.split_once(", BW=").ok_or_else(|| cut(rest, "bandwidth"))?;
    found.iops = Some(line.figure(iops, "IOPS", number::count)?);
    let (rate, rest) = rest.split_once(" (").ok_or_else(|| cut(rest, "bandwidth"))?;
    let is_bare =
        rate.ends_with(|last: char| last == 'i' || last.is_ascii_digit() || "kMGTPE".contains(last));
    found.bandwidth = match is_bare && !unit.is_empty() {
        true => number::bytes(&format!("{rate}{unit}"), Prefixes::Precise).map(u64::capped),
        false => Some(u64::capped(bytes(rate)?)),
    };
    let (_, rest) = rest.split_once(")(").ok_or_else(|| cut(rest, "bytes and time"))?;
    let (moved, rest) = rest.split_once('/').ok_or_else(|| cut(rest, "bytes and time"))?;
    found.bytes = Some(u64::capped(bytes(moved)?));
    let (runtime, _) = rest.split_once("msec)").ok_or_else(|| cut(rest, "time"))?;
    found.runtime_ms = Some(line.figure(runtime, "time", number::whole)?);
    Ok(())
}

/// `bw (  KiB/s): min= 5000, max= 9712, per=100.00%, avg=7356.00, stdev=3331.89, samples=2`, or `iops        : …`.
fn samples(job: &mut JobFigures, line: NumberedLine<'_>, label: &str, rest: &str) -> Result<(), ReadError> {
    let is_bandwidth = label.starts_with("bw");
    let scale = match label.split_once('(') {
        Some((_, unit)) => {
            let unit: String = unit.trim_end().trim_end_matches(')').split_whitespace().collect();
            // fio 2 writes KB for 1024 bytes.
            let prefixes = if unit.starts_with('K') { Prefixes::Binary } else { Prefixes::Precise };
            number::bytes(&format!("1{unit}"), prefixes)
                .ok_or_else(|| line.error(line.text.trim_start(), format!("unknown unit {unit:?}")))?
        }
        None => 1.0,
    };
    let mut found = SampleMoments { line: Some(line.number), ..SampleMoments::default() };
    for (key, value) in pairs(rest) {
        let scaled = |value| line.figure(value, key, number::count).map(|figure| figure * scale);
        match key {
            "min" => found.min = Some(u64::capped(scaled(value)?)),
            "max" => found.max = Some(u64::capped(scaled(value)?)),
            "avg" => found.mean = Some(scaled(value)?),
            "stdev" => found.stddev = Some(scaled(value)?),
            "per" => found.share_percent = Some(line.figure(value, key, number::percent)?),
            "samples" => found.count = Some(line.figure(value, key, number::whole)?),
            _ => {}
        }
    }
    if let Some(direction) = job.directions.last_mut() {
        if is_bandwidth {
            direction.bandwidth_samples = Some(found);
        } else {
            direction.iops_samples = Some(found);
        }
    }
    Ok(())
}

/// `50=0.06%, 100=0.10%, >=2000=0.01%`.
fn buckets(job: &mut JobFigures, line: NumberedLine<'_>, unit_ns: f64, rest: &str) -> Result<(), ReadError> {
    for entry in rest.split(',') {
        let entry = entry.trim();
        let lacks = || line.error(entry, format!("{entry:?} is not a share"));
        let (bound, share) = entry.rsplit_once('=').ok_or_else(lacks)?;
        let below_ns = match bound.starts_with(">=") {
            true => None,
            false => Some(u64::capped(line.figure(bound, "bound", number::whole)? as f64 * unit_ns)),
        };
        let percent = line.figure(share, "share", number::percent)?;
        job.latency_buckets.push(LatencyBucket { below_ns, percent });
    }
    Ok(())
}

/// `usr=6.06%, sys=29.29%, ctx=529, majf=0, minf=19`.
fn cpu(job: &mut JobFigures, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    let cpu = &mut job.cpu;
    cpu.line = Some(line.number);
    for (key, value) in pairs(rest) {
        match key {
            "usr" => cpu.user_percent = Some(line.figure(value, key, number::percent)?),
            "sys" => cpu.system_percent = Some(line.figure(value, key, number::percent)?),
            "ctx" => cpu.context_switches = Some(line.figure(value, key, number::whole)?),
            "majf" => cpu.major_faults = Some(line.figure(value, key, number::whole)?),
            "minf" => cpu.minor_faults = Some(line.figure(value, key, number::whole)?),
            _ => {}
        }
    }
    Ok(())
}

/// Seven shares: `1=0.1%, 2=0.1%, …, >=64=0.0%`.
fn shares(line: NumberedLine<'_>, rest: &str) -> Result<Option<[f64; 7]>, ReadError> {
    let mut found = Vec::new();
    for entry in rest.split(',') {
        let entry = entry.trim();
        let lacks = || line.error(entry, format!("{entry:?} is not a share"));
        let (_, share) = entry.rsplit_once('=').ok_or_else(lacks)?;
        found.push(line.figure(share, "share", number::percent)?);
    }
    match <[f64; 7]>::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(found) => Err(line.error(rest, format!("{} shares instead of 7", found.len()))),
    }
}

/// `total=5661,2531,0,0 short=0,0,0,0 dropped=0,0,0,0`, in fio 2 `total=r=5661/w=2531/d=0, short=r=0/w=0/d=0, …`.
fn issued(job: &mut JobFigures, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    for part in rest.split_whitespace() {
        let Some((what, counts)) = part.split_once('=') else { continue };
        let counts = counts.trim_end_matches(',').split([',', '/']);
        for (index, count) in counts.enumerate() {
            let count = count.rsplit('=').next().unwrap_or_default();
            let count = line.figure(count, what, number::whole)?;
            place_issued(job, what, index, count);
        }
    }
    Ok(())
}

fn place_issued(job: &mut JobFigures, what: &str, index: usize, count: u64) {
    if index == 3 {
        // fio 3.19 counts none there, and measures them.
        if what == "total" && (count > 0 || job.sync.lat.is_none()) {
            job.sync.ios = Some(count);
        }
        return;
    }
    let Some(name) = DirectionName::ALL.get(index) else { return };
    let mixed_only = matches!(job.directions.as_slice(), [only] if only.name == DirectionName::Mixed);
    let wanted = if mixed_only && index == 0 { DirectionName::Mixed } else { *name };
    let position = job.directions.iter().position(|direction| direction.name == wanted);
    let direction = match position {
        Some(at) => &mut job.directions[at],
        // Directions without I/O have no lines; fio 3.19 counts syncs as short reads.
        None if count == 0 || what != "total" => return,
        None => {
            job.directions.push(DirectionFigures { name: wanted, line: None, ..DirectionFigures::default() });
            let last = job.directions.len() - 1;
            &mut job.directions[last]
        }
    };
    match what {
        "total" => direction.ios = Some(count),
        "short" => direction.short_ios = Some(count),
        "dropped" => direction.dropped_ios = Some(count),
        _ => {}
    }
}

/// `total=1, first_error=28/<No space left on device>`.
fn errors(job: &mut JobFigures, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    let mut found = ErrorFigures::default();
    for (key, value) in pairs(rest) {
        match key {
            "total" => found.total = line.figure(value, key, number::whole)?,
            "first_error" => {
                let number = value.split('/').next().unwrap_or_default();
                found.first = line.figure(number, key, |text| text.parse().ok())?;
            }
            _ => {}
        }
    }
    job.errors = Some(found);
    Ok(())
}

/// `target=0.00ns, window=0.00ns, percentile=100.00%, depth=16`.
fn latency_target(job: &mut JobFigures, line: NumberedLine<'_>, rest: &str) -> Result<(), ReadError> {
    let mut found = LatencyTargetFigures::default();
    for (key, value) in pairs(rest) {
        match key {
            "target" => found.target_ns = u64::capped(line.figure(value, key, number::duration_ns)?),
            "window" => found.window_ns = u64::capped(line.figure(value, key, number::duration_ns)?),
            "percentile" => found.percentile = line.figure(value, key, number::percent)?,
            "depth" => found.depth = line.figure(value, key, |text| text.parse().ok())?,
            _ => {}
        }
    }
    job.latency_target = Some(found);
    Ok(())
}
