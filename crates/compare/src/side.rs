//! One of the results that are compared: its runs, and the rows that they are shown in.
//!
//! Invariant: runs of one name on one side are repetitions of the same thing; jobs of one name in a report are one row.

use std::borrow::Cow;
use std::collections::HashMap;

use fiord_import::{
    DirectionFigures, DirectionName, Heading, JobFigures, LatencyFigures, Percentile, Report, SampleMoments,
};
use fiord_report::{Format, RunReport, TerseVersion, render};

/// A result: one run, several, or those of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// As the user named it: `last`, `before.json`.
    pub name: String,
    /// What it is, for people: `run 12 of 2026-11-23 01:30, randread`. Empty if its name says it.
    pub described: String,
    /// The machine it was run on, if that is known.
    pub host: Option<String>,
    /// The kernel it was run on, if that is known.
    pub kernel: Option<String>,
    /// Its runs, in order.
    pub runs: Vec<NamedRun>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedRun {
    /// What a study calls it: `random read 4k, depth 32`. Empty for a run of its own.
    pub name: String,
    /// Its report.
    pub report: Report,
}

impl NamedRun {
    /// A run of fiord, read back from its own JSON with its histograms, so that it is compared in the same way as the
    /// file that it would have printed.
    ///
    /// # Errors
    /// Its report cannot be read.
    pub fn of_run(name: &str, run: &RunReport) -> Result<NamedRun, String> {
        let text = render(run, &[Format::JsonPlus], TerseVersion::V3);
        let reports = fiord_import::read(&text).map_err(|why| why.to_string())?;
        let report = fiord_import::best(reports).unwrap_or_default();
        Ok(NamedRun { name: name.to_string(), report })
    }
}

/// One thing that was measured, once or several times.
#[derive(Clone, Debug)]
pub(crate) struct Row<'s> {
    pub name: String,
    /// In each run in which it was measured.
    pub measured: Vec<Measured<'s>>,
}

/// The jobs of one name in one run.
#[derive(Clone, Debug)]
pub(crate) struct Measured<'s> {
    pub report: &'s Report,
    /// Of thousands of jobs, those that are alone under their name are not copied.
    pub job: Cow<'s, JobFigures>,
    /// Directions in which no job of another name did I/O.
    pub alone_in: Vec<DirectionName>,
}

impl Side {
    /// The rows, in the order of their first run.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for run in &self.runs {
            let jobs = each_job(&run.report);
            let count = jobs.len();
            for measured in jobs {
                let job_name = run.report.name_of(&measured.job);
                let name = match (run.name.as_str(), count) {
                    ("", _) => job_name.into_owned(),
                    (run, 1) => run.to_string(),
                    (run, _) => format!("{run}: {job_name}"),
                };
                let at = *places.entry(name.clone()).or_insert_with(|| {
                    rows.push(Row { name, measured: Vec::new() });
                    rows.len() - 1
                });
                rows[at].measured.push(measured);
            }
        }
        rows
    }
}

/// The jobs of a report, those of one name on one host as one; and beside them all jobs of all hosts, if it has their sum.
pub(crate) fn each_job(report: &Report) -> Vec<Measured<'_>> {
    let active_names = DirectionName::ALL.map(|name| active_in(report, name));
    let mut all = Vec::new();
    for (job_name, jobs) in named_jobs(report) {
        let alone_in = DirectionName::ALL.into_iter().zip(&active_names);
        let alone_in = alone_in.filter(|(_, names)| names.iter().all(|name| *name == job_name));
        let alone_in = alone_in.map(|(name, _)| name).collect();
        all.push(Measured { report, job: joined(&jobs), alone_in });
    }
    let sum = report.all_hosts.as_deref();
    all.extend(sum.map(|sum| Measured {
        report,
        job: Cow::Borrowed(sum),
        alone_in: DirectionName::ALL.to_vec(),
    }));
    all
}

/// The jobs of each name, in the order of the first ones.
fn named_jobs(report: &Report) -> Vec<(Cow<'_, str>, Vec<&JobFigures>)> {
    let mut named: Vec<(Cow<'_, str>, Vec<&JobFigures>)> = Vec::new();
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for job in &report.jobs {
        let name = report.name_of(job);
        let at = *places.entry(name.clone()).or_insert_with(|| {
            named.push((name, Vec::new()));
            named.len() - 1
        });
        named[at].1.push(job);
    }
    named
}

/// The names of the jobs that did I/O in a direction: two different ones at most, which are enough to tell whether one is
/// alone.
fn active_in(report: &Report, name: DirectionName) -> Vec<Cow<'_, str>> {
    let does = |job: &&JobFigures| job.directions.iter().any(|of| of.name == name && of.is_active());
    let mut active = report.jobs.iter().filter(does).map(|job| report.name_of(job));
    let first = active.next();
    let other = active.find(|name| Some(name) != first.as_ref());
    first.into_iter().chain(other).collect()
}

impl Measured<'_> {
    /// What the job did in a direction, if anything.
    pub fn direction(&self, name: DirectionName) -> Option<&DirectionFigures> {
        self.job.directions.iter().find(|direction| direction.name == name && direction.is_active())
    }

    /// Whether no other job of the run did I/O in this direction, so that what all jobs did is what it did.
    pub fn is_alone_in(&self, name: DirectionName) -> bool {
        self.alone_in.contains(&name)
    }

    /// An option of the job, by any of its names; `None` if the report has no options, or not this one.
    pub fn option(&self, names: &[&str]) -> Option<&str> {
        let all = self.report.global_options.iter().chain(&self.job.options);
        all.rev().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
    }

    /// Whether the report has the options of its jobs.
    pub fn has_options(&self) -> bool {
        !self.report.global_options.is_empty() || !self.job.options.is_empty()
    }
}

/// Jobs that ran at the same time, as one.
fn joined<'s>(jobs: &[&'s JobFigures]) -> Cow<'s, JobFigures> {
    let Some((first, others)) = jobs.split_first() else { return Cow::default() };
    if others.is_empty() {
        return Cow::Borrowed(first);
    }
    let mut all = (*first).clone();
    for job in others {
        all.member_count = Some(all.member_count.unwrap_or(1) + job.member_count.unwrap_or(1));
        let is_known = |heading: &Heading| job.heading.as_ref().is_some_and(|other| heading.is_like(other));
        all.heading = all.heading.filter(is_known);
        for direction in &job.directions {
            match all.directions.iter_mut().find(|known| known.name == direction.name) {
                Some(known) => join(known, direction),
                None => all.directions.push(direction.clone()),
            }
        }
        all.sync.lat = joined_latency(all.sync.lat.as_ref(), job.sync.lat.as_ref());
        all.sync.ios = sum(all.sync.ios, job.sync.ios);
    }
    Cow::Owned(all)
}

fn join(into: &mut DirectionFigures, other: &DirectionFigures) {
    into.iops = match (into.ios_per_s(), other.ios_per_s()) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    into.bandwidth = sum(into.bandwidth, other.bandwidth);
    into.bytes = sum(into.bytes, other.bytes);
    into.ios = sum(into.ios, other.ios);
    // The rate of several is the sum of theirs, and not a count over a time.
    into.runtime_ms = None;
    into.clat = joined_latency(into.clat.as_ref(), other.clat.as_ref());
    into.lat = joined_latency(into.lat.as_ref(), other.lat.as_ref());
    into.iops_samples = joined_samples(into.iops_samples.as_ref(), other.iops_samples.as_ref());
    into.bandwidth_samples =
        joined_samples(into.bandwidth_samples.as_ref(), other.bandwidth_samples.as_ref());
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

/// The mean of both by their counts; percentiles only from histograms, because those of two jobs do not add up.
fn joined_latency(one: Option<&LatencyFigures>, other: Option<&LatencyFigures>) -> Option<LatencyFigures> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other).cloned(),
    };
    let (Some(n), Some(m)) = (one.count, other.count) else { return None };
    if n == 0 || m == 0 {
        return Some(if n == 0 { other.clone() } else { one.clone() });
    }
    let mean_ns = match (one.mean_ns, other.mean_ns) {
        (Some(one), Some(other)) => Some((one * n as f64 + other * m as f64) / (n + m) as f64),
        _ => None,
    };
    let mut bins = Vec::new();
    if !one.bins.is_empty() && !other.bins.is_empty() {
        let mut all = std::collections::BTreeMap::new();
        one.bins.iter().chain(&other.bins).for_each(|(ns, count)| *all.entry(*ns).or_insert(0) += count);
        bins = all.into_iter().collect();
    }
    Some(LatencyFigures {
        mean_ns,
        stddev_ns: one.stddev_ns.zip(other.stddev_ns).map(|(one, other)| one.max(other)),
        count: Some(n + m),
        min_ns: one.min_ns.min(other.min_ns),
        max_ns: one.max_ns.max(other.max_ns),
        percentiles: Vec::<Percentile>::new(),
        bins,
        line: None,
    })
}

/// As if the samples of both rose and fell together, which is the worst case.
fn joined_samples(one: Option<&SampleMoments>, other: Option<&SampleMoments>) -> Option<SampleMoments> {
    let (one, other) = (one?, other?);
    let both = |of: fn(&SampleMoments) -> Option<f64>| Some(of(one)? + of(other)?);
    Some(SampleMoments {
        mean: both(|samples| samples.mean),
        stddev: both(|samples| samples.stddev),
        count: one.count.min(other.count),
        ..SampleMoments::default()
    })
}
