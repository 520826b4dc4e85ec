//! Reads terse lines, versions 2 to 5.
//!
//! Invariant: the meaning of a field is defined in `layout` alone, which both the reader and explanations of fields
//! use.

use fiord_stats::Capped;

use crate::model::{
    DirectionFigures, DirectionName, DiskFigures, ErrorFigures, JobFigures, LatencyBucket, LatencyFigures,
    Percentile, Report, ReportFormat, SampleMoments,
};
use crate::number;
use crate::place::{NumberedLine, ReadError};

/// What a field of a terse line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerseField {
    /// The version of the layout.
    Layout,
    /// The program's version.
    Program,
    /// The job's name.
    JobName,
    /// Its reporting group.
    Group,
    /// The error number it ended with.
    Error,
    /// A figure of one direction.
    Of(DirectionName, DirectionField),
    /// Use of processors.
    Cpu(CpuField),
    /// Percent of I/Os at a depth: the first is depth 1, the last 64 and more.
    Depth(usize),
    /// Percent of I/Os below a latency; `None` for two seconds and more.
    Bucket {
        /// The bound, in microseconds.
        below_us: Option<u32>,
    },
}

/// Use of processors in a terse line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuField {
    /// Time in the program.
    User,
    /// Time in the kernel.
    System,
    /// Context switches.
    ContextSwitches,
    /// Page faults with I/O.
    MajorFaults,
    /// Page faults without.
    MinorFaults,
}

/// A figure of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectionField {
    /// KiB transferred.
    Bytes,
    /// KiB per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Run time in milliseconds.
    Runtime,
    /// A latency in microseconds.
    Latency(LatencyKind, MomentField),
    /// A percentile and its value in microseconds; counted from 0.
    Percentile(usize),
    /// Samples of bandwidth, in KiB per second.
    BandwidthSamples(MomentField),
    /// Their mean as a percentage of the group's bandwidth.
    BandwidthShare,
    /// Samples of I/Os per second.
    IopsSamples(MomentField),
}

/// Which latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// Submission.
    Submission,
    /// Completion.
    Completion,
    /// Both.
    Total,
}

/// Which moment of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MomentField {
    /// The lowest.
    Min,
    /// The highest.
    Max,
    /// The mean.
    Mean,
    /// The standard deviation.
    Deviation,
    /// The number of samples.
    Count,
}

const PERCENTILES: usize = 20;
const BOUNDS_US: [u32; 21] = [
    2, 4, 10, 20, 50, 100, 250, 500, 750, 1_000, 2_000, 4_000, 10_000, 20_000, 50_000, 100_000, 250_000,
    500_000, 750_000, 1_000_000, 2_000_000,
];
/// Fields of a disk.
const DISK_FIELDS: usize = 9;

/// The directions that lines of a version have, unless `unified_rw_reporting` is set.
pub fn usual_directions(version: u32) -> &'static [DirectionName] {
    if version == 3 { &DirectionName::ALL[..2] } else { &DirectionName::ALL[..3] }
}

/// The fields of a line up to the disks.
pub fn layout(version: u32, directions: &[DirectionName]) -> Vec<TerseField> {
    let mut fields = vec![TerseField::Layout];
    if version != 2 {
        fields.push(TerseField::Program);
    }
    fields.extend([TerseField::JobName, TerseField::Group, TerseField::Error]);
    for direction in directions {
        fields.extend(direction_layout(version).into_iter().map(|field| TerseField::Of(*direction, field)));
    }
    use CpuField::{ContextSwitches, MajorFaults, MinorFaults, System, User};
    fields.extend([User, System, ContextSwitches, MajorFaults, MinorFaults].map(TerseField::Cpu));
    fields.extend((0..7).map(TerseField::Depth));
    fields.extend(BOUNDS_US.iter().map(|us| TerseField::Bucket { below_us: Some(*us) }));
    fields.push(TerseField::Bucket { below_us: None });
    fields
}

fn direction_layout(version: u32) -> Vec<DirectionField> {
    use DirectionField::{Bandwidth, BandwidthSamples, BandwidthShare, Bytes, Iops, IopsSamples, Runtime};
    use MomentField::{Count, Deviation, Max, Mean, Min};
    let latency = |kind| [Min, Max, Mean, Deviation].map(|moment| DirectionField::Latency(kind, moment));
    let mut fields = vec![Bytes, Bandwidth, Iops, Runtime];
    fields.extend(latency(LatencyKind::Submission));
    fields.extend(latency(LatencyKind::Completion));
    fields.extend((0..PERCENTILES).map(DirectionField::Percentile));
    fields.extend(latency(LatencyKind::Total));
    fields.extend([Min, Max].map(BandwidthSamples));
    fields.push(BandwidthShare);
    fields.extend([Mean, Deviation].map(BandwidthSamples));
    if version == 5 {
        fields.push(BandwidthSamples(Count));
        fields.extend([Min, Max, Mean, Deviation, Count].map(IopsSamples));
    }
    fields
}

/// The version of a terse line; `None` for any other line.
pub(crate) fn version_of(text: &str) -> Option<u32> {
    let (version, rest) = text.split_once(';')?;
    let version = version.parse().ok().filter(|version| (2..=5).contains(version))?;
    (version == 2 || rest.starts_with("fio-") || rest.starts_with("fiord")).then_some(version)
}

/// What a line says: a job, and the program and the disks.
pub(crate) struct TerseLine {
    job: JobFigures,
    program: Option<String>,
    disks: Vec<DiskFigures>,
}

impl TerseLine {
    /// Adds it to the report of its version. Each line has all the disks.
    pub fn add_to(self, report: &mut Report) {
        report.version = self.program.or(report.version.take());
        if report.disks.is_empty() {
            report.disks = self.disks;
        }
        report.jobs.push(self.job);
    }
}

/// A report of this version that begins at this line.
pub(crate) fn begin(version: u32, line: u32) -> Report {
    Report { format: ReportFormat::Terse(version), line, ..Report::default() }
}

/// Reads a line of this version.
pub(crate) fn read(version: u32, line: NumberedLine<'_>) -> Result<TerseLine, ReadError> {
    let texts: Vec<&str> = line.text.split(';').collect();
    let (directions, name_fields) = shape(version, &texts).ok_or_else(|| {
        let problem = format!("{} fields do not make a terse line of version {version}", texts.len());
        line.error(line.text, problem)
    })?;
    let names = if directions == 1 {
        vec![DirectionName::Mixed]
    } else {
        // Version 3 has no trims, but has a mixed direction.
        DirectionName::ALL
            .into_iter()
            .filter(|name| version != 3 || *name != DirectionName::Trim)
            .take(directions)
            .collect()
    };
    let mut job = JobFigures { line: Some(line.number), ..JobFigures::default() };
    job.directions = names
        .iter()
        .map(|name| DirectionFigures { name: *name, line: Some(line.number), ..DirectionFigures::default() })
        .collect();
    let mut program = None;
    let mut rest = texts.as_slice();
    for field in layout(version, &names) {
        let used = if field == TerseField::JobName { name_fields } else { 1 };
        let (now, after) = rest.split_at_checked(used).unwrap_or((rest, &[]));
        rest = after;
        match field {
            TerseField::Layout => {}
            TerseField::Program => program = now.first().map(|text| (*text).to_string()),
            TerseField::JobName => job.name = now.join(";"),
            _ => assign(&mut job, field, line, now.first().copied().unwrap_or_default())?,
        }
    }
    let disks = tail(&mut job, line, rest)?;
    Ok(TerseLine { job, program, disks })
}

/// The number of directions of a line, and the fields of its name, which may contain semicolons.
fn shape(version: u32, texts: &[&str]) -> Option<(usize, usize)> {
    let before_name = if version == 2 { 1 } else { 2 };
    let length = direction_layout(version).len();
    let fixed = layout(version, &[]).len() - before_name - 3;
    let whole = |at: usize| texts.get(at).is_some_and(|text| text.parse::<i64>().is_ok());
    let percent = |at: usize| texts.get(at).is_some_and(|text| number::percent(text).is_some());
    for name_fields in 1..=texts.len() {
        for directions in 1..=4 {
            let group = before_name + name_fields;
            let shares = group + 2 + directions * length;
            let fits = shares + fixed <= texts.len() && whole(group) && whole(group + 1);
            let is_here = (shares..shares + 2).chain(shares + 5..shares + fixed).all(percent);
            if fits && is_here && !percent(shares - 1) {
                return Some((directions, name_fields));
            }
        }
        if before_name + name_fields + 2 + length + fixed > texts.len() {
            break;
        }
    }
    None
}

fn assign(
    job: &mut JobFigures,
    field: TerseField,
    line: NumberedLine<'_>,
    text: &str,
) -> Result<(), ReadError> {
    let whole = || line.figure(text, "field", number::whole);
    let percent = || line.figure(text, "field", number::percent);
    match field {
        TerseField::Layout | TerseField::Program | TerseField::JobName => {}
        TerseField::Group => job.group_id = Some(line.figure(text, "group", |text| text.parse().ok())?),
        TerseField::Error => job.error = Some(line.figure(text, "error number", |text| text.parse().ok())?),
        TerseField::Of(name, field) => {
            if let Some(direction) = job.directions.iter_mut().find(|direction| direction.name == name) {
                assign_direction(direction, field, line, text)?;
            }
        }
        TerseField::Cpu(CpuField::User) => job.cpu.user_percent = Some(percent()?),
        TerseField::Cpu(CpuField::System) => job.cpu.system_percent = Some(percent()?),
        TerseField::Cpu(CpuField::ContextSwitches) => job.cpu.context_switches = Some(whole()?),
        TerseField::Cpu(CpuField::MajorFaults) => job.cpu.major_faults = Some(whole()?),
        TerseField::Cpu(CpuField::MinorFaults) => job.cpu.minor_faults = Some(whole()?),
        TerseField::Depth(index) => {
            let shares = job.depth_percents.get_or_insert([0.0; 7]);
            if let Some(share) = shares.get_mut(index) {
                *share = percent()?;
            }
        }
        TerseField::Bucket { below_us } => {
            let percent = percent()?;
            if percent > 0.0 {
                let below_ns = below_us.map(|us| u64::from(us) * 1000);
                job.latency_buckets.push(LatencyBucket { below_ns, percent });
            }
        }
    }
    Ok(())
}

fn assign_direction(
    direction: &mut DirectionFigures,
    field: DirectionField,
    line: NumberedLine<'_>,
    text: &str,
) -> Result<(), ReadError> {
    let whole = || line.figure(text, "field", number::whole);
    let plain = || line.figure(text, "field", number::plain);
    match field {
        DirectionField::Bytes => direction.bytes = Some(whole()?.saturating_mul(1024)),
        DirectionField::Bandwidth => direction.bandwidth = Some(whole()?.saturating_mul(1024)),
        DirectionField::Iops => direction.iops = Some(plain()?),
        DirectionField::Runtime => direction.runtime_ms = Some(whole()?),
        DirectionField::Latency(kind, moment) => {
            let latency = match kind {
                LatencyKind::Submission => &mut direction.slat,
                LatencyKind::Completion => &mut direction.clat,
                LatencyKind::Total => &mut direction.lat,
            };
            let latency = latency.get_or_insert_with(LatencyFigures::default);
            let ns = plain()? * 1000.0;
            match moment {
                MomentField::Min => latency.min_ns = Some(u64::capped(ns)),
                MomentField::Max => latency.max_ns = Some(u64::capped(ns)),
                MomentField::Mean => latency.mean_ns = Some(ns),
                MomentField::Deviation => latency.stddev_ns = Some(ns),
                MomentField::Count => latency.count = Some(whole()?),
            }
        }
        DirectionField::Percentile(_) => {
            let lacks = || line.error(text, format!("{text:?} is not a percentile"));
            let (percent, value) = text.split_once("%=").ok_or_else(lacks)?;
            let percent = line.figure(percent, "percentile", number::plain)?;
            let ns = line.figure(value, "percentile", number::whole)?.saturating_mul(1000);
            // Fields that are not used are `0%=0`.
            if percent > 0.0 {
                let latency = direction.clat.get_or_insert_with(LatencyFigures::default);
                latency.percentiles.push(Percentile { percent, ns });
            }
        }
        DirectionField::BandwidthShare => {
            let samples = direction.bandwidth_samples.get_or_insert_with(SampleMoments::default);
            samples.share_percent = Some(line.figure(text, "field", number::percent)?);
        }
        DirectionField::BandwidthSamples(moment) => {
            let scale = if moment == MomentField::Count { 1.0 } else { 1024.0 };
            let samples = direction.bandwidth_samples.get_or_insert_with(SampleMoments::default);
            assign_sample(samples, moment, plain()? * scale);
        }
        DirectionField::IopsSamples(moment) => {
            let samples = direction.iops_samples.get_or_insert_with(SampleMoments::default);
            assign_sample(samples, moment, plain()?);
        }
    }
    Ok(())
}

fn assign_sample(samples: &mut SampleMoments, moment: MomentField, figure: f64) {
    match moment {
        MomentField::Min => samples.min = Some(u64::capped(figure)),
        MomentField::Max => samples.max = Some(u64::capped(figure)),
        MomentField::Mean => samples.mean = Some(figure),
        MomentField::Deviation => samples.stddev = Some(figure),
        MomentField::Count => samples.count = Some(u64::capped(figure)),
    }
}

/// What follows the fixed fields: disks, errors, a description.
fn tail(
    job: &mut JobFigures,
    line: NumberedLine<'_>,
    mut rest: &[&str],
) -> Result<Vec<DiskFigures>, ReadError> {
    let mut disks = Vec::new();
    while let Some((fields, after)) = rest.split_at_checked(DISK_FIELDS) {
        let Some(util_percent) = fields.last().and_then(|text| number::percent(text)) else { break };
        let mut counts = [None; 7];
        for (count, text) in counts.iter_mut().zip(&fields[1..]) {
            *count = Some(line.figure(text, "disk", number::whole)?);
        }
        let [read_ios, write_ios, read_merges, write_merges, read_ms, write_ms, in_queue_ms] = counts;
        disks.push(DiskFigures {
            name: fields[0].to_string(),
            line: Some(line.number),
            ios: [read_ios, write_ios],
            sectors: [None, None],
            merges: [read_merges, write_merges],
            ticks_ms: [read_ms, write_ms],
            in_queue_ms,
            util_percent: Some(util_percent),
            is_stacked: false,
        });
        rest = after;
    }
    if let [total, first, after @ ..] = rest
        && let (Ok(total), Ok(first)) = (total.parse(), first.parse())
    {
        job.errors = Some(ErrorFigures { total, first });
        rest = after;
    }
    if !rest.is_empty() {
        job.description = Some(rest.join(";"));
    }
    Ok(disks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_documented_number_of_fields() {
        let directions = |version| if version == 3 { 2 } else { 3 };
        let fields = |version| layout(version, &DirectionName::ALL[..directions(version)]).len();
        assert_eq!([2, 3, 4, 5].map(fields), [161, 121, 162, 180]);
    }
}
