//! A report as its reader finds it: the figures of each job, direction and disk.
//!
//! Invariant: a figure that the format does not carry is `None` or absent from its list; every figure is in the unit
//! that its name or its comment says, whatever unit the report printed.

use std::borrow::Cow;

use fiord_stats::{Counts, syncs_each_write};

use crate::place::ReadError;

/// The format a report was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for people. Its figures are rounded to four digits or so.
    #[default]
    Normal,
    /// Lines of fields, with the version of their layout (2 to 5).
    Terse(u32),
    /// A JSON document.
    Json,
    /// A JSON document with the histograms.
    JsonPlus,
}

/// One report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The format it was read from.
    pub format: ReportFormat,
    /// The line at which it begins, from 1.
    pub line: u32,
    /// The program that made it: `fio-3.42`.
    pub version: Option<String>,
    /// The version of fiord, if that made it. Only fiord's JSON has it.
    pub fiord_version: Option<String>,
    /// When it was made, as it was printed.
    pub date: Option<String>,
    /// The same in milliseconds since 1970. Only JSON has it.
    pub timestamp_ms: Option<u64>,
    /// Options of all jobs: (name, text as typed). Only JSON has them.
    pub global_options: Vec<(String, String)>,
    /// The jobs; under group reporting one stands for several.
    pub jobs: Vec<JobFigures>,
    /// The hosts that they ran on, in the order of their first jobs; empty if it was one machine, which is not named.
    pub hosts: Vec<String>,
    /// All jobs of all hosts as one (`All clients`), which is not among the jobs.
    pub all_hosts: Option<Box<JobFigures>>,
    /// Entries of earlier status reports in the same document, which later ones of the same jobs replace.
    pub superseded: usize,
    /// The sums of reporting groups. Only the normal text has them.
    pub groups: Vec<GroupFigures>,
    /// The disks below the files; empty if the report has none.
    pub disks: Vec<DiskFigures>,
    /// The findings of fiord in it.
    pub findings: Vec<ReportedFinding>,
    /// Messages of the program before the report: errors, warnings.
    pub messages: Vec<Message>,
    /// What could not be read, with its place: figures of damaged lines, an end that is missing.
    pub damage: Vec<ReadError>,
    /// The lines at which the other reports of its format in the same text begin.
    pub others: Vec<u32>,
    /// What all jobs together did over time, by direction. Only fiord's JSON has it.
    pub windows: Vec<WindowFigures>,
    /// What each host did over time. Only fiord's JSON has it.
    pub hosts_over_time: Vec<HostOverTime>,
    /// Hosts that have no figures, each with what became of it. Only fiord's JSON has them.
    pub absent_hosts: Vec<(String, String)>,
    /// The figures of repeated runs, of which the report shows the last. Only fiord's JSON has them.
    pub repeats: Vec<RepeatedFigures>,
    /// What each source of energy measured during the run. Only fiord's JSON has it.
    pub energy: Vec<EnergyFigures>,
}

/// Energy of the machine during a run, by one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyFigures {
    /// `package-0`, a sensor, or the sum of processors and memory.
    pub source: String,
    /// Energy in joules.
    pub joules: Option<f64>,
    /// Mean power in watts.
    pub watts: Option<f64>,
    /// Power before the run in watts.
    pub idle_watts: Option<f64>,
    /// I/Os of all jobs for each joule above that.
    pub iops_per_watt: Option<f64>,
    /// Bytes of all jobs for each joule above that.
    pub bytes_per_joule: Option<f64>,
}

/// What all jobs together did in one direction, in windows of equal length that follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowFigures {
    /// The direction.
    pub name: DirectionName,
    /// The length of a window, in seconds.
    pub window_s: f64,
    /// I/Os per second in each.
    pub iops: Vec<f64>,
    /// Bytes per second in each.
    pub bandwidth: Vec<f64>,
}

/// What one of several hosts did in windows of equal length that follow each other, from the first start of all on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostOverTime {
    /// Its name.
    pub host: String,
    /// The length of a window, in seconds.
    pub window_s: f64,
    /// I/Os per second in each; `None` where it is not known what it did.
    pub iops: Vec<Option<f64>>,
}

/// One figure of one job in one direction in repeated runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepeatedFigures {
    /// The job and the direction: `a, read`.
    pub of: String,
    /// The figure, unit last: `iops`, `p99_ns`.
    pub figure: String,
    /// Its value in each run.
    pub runs: Vec<f64>,
    /// How many of the first runs are not counted, because throughput was not steady before.
    pub left_out: usize,
}

/// The heading of a job section: `name: (g=0): rw=randread, …`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heading {
    /// The section's name.
    pub name: String,
    /// Its reporting group.
    pub group_id: Option<u32>,
    /// The direction and order: `randrw`.
    pub rw: Option<String>,
    /// The engine.
    pub ioengine: Option<String>,
    /// The `iodepth` option.
    pub iodepth: Option<u32>,
    /// The line it was read from.
    pub line: u32,
}

impl Heading {
    /// Whether it says the same of its jobs as another.
    pub fn is_like(&self, other: &Heading) -> bool {
        (&self.rw, &self.ioengine, self.iodepth) == (&other.rw, &other.ioengine, other.iodepth)
    }
}

/// A message that the program printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The line, without its line feed.
    pub text: String,
    /// Where it is.
    pub line: u32,
}

/// The result of one job, or of several that are reported as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFigures {
    /// Its name.
    pub name: String,
    /// The host that it ran on, in reports of several.
    pub host: Option<String>,
    /// The line at which it begins; `None` in JSON.
    pub line: Option<u32>,
    /// Its reporting group.
    pub group_id: Option<u32>,
    /// Jobs reported as this one.
    pub member_count: Option<u32>,
    /// The error number it ended with; 0 on success.
    pub error: Option<i32>,
    /// Its error in words.
    pub error_text: Option<String>,
    /// The `description` option.
    pub description: Option<String>,
    /// When it started, in milliseconds since 1970 or of another clock.
    pub start_ms: Option<u64>,
    /// Seconds since it started.
    pub elapsed_s: Option<u64>,
    /// Its options: (name, text as typed). Only JSON has them.
    pub options: Vec<(String, String)>,
    /// The heading of its section, which precedes normal text; `None` where it cannot be told which of several it is.
    pub heading: Option<Heading>,
    /// What it did in each direction. JSON and terse lines have idle directions, too.
    pub directions: Vec<DirectionFigures>,
    /// Its syncs.
    pub sync: SyncFigures,
    /// Time of all jobs together, in milliseconds.
    pub job_runtime_ms: Option<u64>,
    /// Use of processors.
    pub cpu: CpuFigures,
    /// Percent of I/Os issued at a depth of 1, 2, 4, 8, 16, 32 and 64 or more.
    pub depth_percents: Option<[f64; 7]>,
    /// Percent of submissions of at most 0, 4, 8, 16, 32, 64 and more than 64 I/Os.
    pub submit_percents: Option<[f64; 7]>,
    /// The same of completions.
    pub complete_percents: Option<[f64; 7]>,
    /// I/Os by completion latency, only those buckets that are not empty.
    pub latency_buckets: Vec<LatencyBucket>,
    /// I/Os that failed, with `continue_on_error`.
    pub errors: Option<ErrorFigures>,
    /// The `latency_target` options and their result.
    pub latency_target: Option<LatencyTargetFigures>,
    /// Whether it became steady.
    pub steady: Option<SteadyFigures>,
    /// What only fiord counts.
    pub counts: Counts,
}

/// The directions of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectionName {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// All of them as one (`unified_rw_reporting`).
    #[default]
    Mixed,
}

impl Report {
    /// The name of a job of it, with its host where there are several: `a@db1`.
    pub fn name_of<'j>(&self, job: &'j JobFigures) -> Cow<'j, str> {
        match &job.host {
            Some(host) if self.hosts.len() > 1 => Cow::Owned(format!("{}@{host}", job.name)),
            _ => Cow::Borrowed(&job.name),
        }
    }

    /// The energy of processors and memory, or of the only or first source.
    pub fn main_energy(&self) -> Option<&EnergyFigures> {
        self.energy.iter().find(|used| used.source == EnergyFigures::SUM).or(self.energy.first())
    }

    /// The jobs, and behind them all jobs of all hosts as one if the report has that.
    pub fn jobs_and_sum(&self) -> impl Iterator<Item = &JobFigures> {
        self.jobs.iter().chain(self.all_hosts.as_deref())
    }

    /// The report with the jobs of one host alone; `None` if it has none of it.
    pub fn of_host(mut self, host: &str) -> Option<Report> {
        self.jobs.retain(|job| job.host.as_deref() == Some(host));
        let prefix = format!("{host}: ");
        let own = |one: RepeatedFigures| {
            Some(RepeatedFigures { of: one.of.strip_prefix(&prefix)?.to_string(), ..one })
        };
        let repeats = self.repeats.into_iter().filter_map(own).collect();
        let hosts = vec![host.to_string()];
        // What was observed of all hosts is not that of one.
        (!self.jobs.is_empty()).then(|| Report {
            hosts,
            all_hosts: None,
            windows: Vec::new(),
            hosts_over_time: Vec::new(),
            absent_hosts: Vec::new(),
            repeats,
            energy: Vec::new(),
            ..self
        })
    }
}

impl EnergyFigures {
    /// The source that is the sum of processors and memory.
    pub const SUM: &str = "processors and memory";
}

impl JobFigures {
    /// The latency of each write together with its sync, if each has one (`fsync=1`, `fdatasync=1`): percentiles that both
    /// have, each the sum of the two, because a report does not say which sync followed which write.
    pub fn synced_writes(&self) -> Option<LatencyFigures> {
        let writes = self.directions.iter().find(|direction| direction.name == DirectionName::Write)?;
        let syncs = self.sync.lat.as_ref().filter(|lat| lat.is_measured())?;
        let workers = u64::from(self.member_count.unwrap_or(1));
        if !syncs_each_write(writes.ios?, self.sync.ios.or(syncs.count)?, workers) {
            return None;
        }
        let with_percentiles =
            |latency: &&LatencyFigures| latency.is_measured() && !latency.percentiles.is_empty();
        let own = writes.clat.as_ref().filter(with_percentiles).or(writes.lat.as_ref())?;
        let both = |known: &Percentile| {
            let ns = known.ns.saturating_add(syncs.percentile_ns(known.percent)?);
            Some(Percentile { percent: known.percent, ns })
        };
        let sum = |of: fn(&LatencyFigures) -> Option<u64>| Some(of(own)?.saturating_add(of(syncs)?));
        Some(LatencyFigures {
            min_ns: sum(|latency| latency.min_ns),
            max_ns: sum(|latency| latency.max_ns),
            mean_ns: own.mean_ns.zip(syncs.mean_ns).map(|(own, sync)| own + sync),
            stddev_ns: own.stddev_ns.zip(syncs.stddev_ns).map(|(own, sync)| own + sync),
            count: own.count,
            percentiles: own.percentiles.iter().filter_map(both).collect(),
            ..LatencyFigures::default()
        })
    }
}

impl DirectionName {
    /// Every direction, in the order of reports.
    pub const ALL: [DirectionName; 4] =
        [DirectionName::Read, DirectionName::Write, DirectionName::Trim, DirectionName::Mixed];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            DirectionName::Read => "read",
            DirectionName::Write => "write",
            DirectionName::Trim => "trim",
            DirectionName::Mixed => "mixed",
        }
    }

    /// The direction of this name, in small letters or capitals.
    pub fn from_name(name: &str) -> Option<DirectionName> {
        DirectionName::ALL.into_iter().find(|direction| direction.name().eq_ignore_ascii_case(name))
    }
}

/// What a job did in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionFigures {
    /// The direction.
    pub name: DirectionName,
    /// The line at which it begins; `None` in JSON.
    pub line: Option<u32>,
    /// Bytes transferred. Rounded in normal text, to KiB in terse lines.
    pub bytes: Option<u64>,
    /// I/Os per second, as printed: rounded in all formats but JSON.
    pub iops: Option<f64>,
    /// Bytes per second, as printed.
    pub bandwidth: Option<u64>,
    /// How long it did I/O in this direction, in milliseconds.
    pub runtime_ms: Option<u64>,
    /// I/Os completed.
    pub ios: Option<u64>,
    /// I/Os that transferred less than requested.
    pub short_ios: Option<u64>,
    /// I/Os that were not carried out.
    pub dropped_ios: Option<u64>,
    /// Submission latency.
    pub slat: Option<LatencyFigures>,
    /// Completion latency. In terse lines, its percentiles are those of the total latency if the job has
    /// `lat_percentiles`, which the lines do not say.
    pub clat: Option<LatencyFigures>,
    /// Total latency.
    pub lat: Option<LatencyFigures>,
    /// Response latency: from the start that a rate intended. Only fiord measures it.
    pub response: Option<LatencyFigures>,
    /// Samples of bandwidth, in bytes per second.
    pub bandwidth_samples: Option<SampleMoments>,
    /// Samples of I/Os per second.
    pub iops_samples: Option<SampleMoments>,
    /// What only fiord counts.
    pub counts: Counts,
}

impl DirectionFigures {
    /// Whether it did any I/O.
    pub fn is_active(&self) -> bool {
        self.ios.or(self.bytes).or(self.runtime_ms).unwrap_or(0) > 0
    }

    /// I/Os per second: from the count and the time if the report has both, since many formats round the rate.
    pub fn ios_per_s(&self) -> Option<f64> {
        match (self.ios, self.runtime_ms) {
            (Some(ios), Some(runtime_ms)) if runtime_ms > 0 => Some(ios as f64 * 1000.0 / runtime_ms as f64),
            _ => self.iops,
        }
    }
}

/// What a job's syncs took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncFigures {
    /// How many.
    pub ios: Option<u64>,
    /// Their latency.
    pub lat: Option<LatencyFigures>,
}

/// A latency, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyFigures {
    /// The line it begins at; `None` in JSON and in terse lines.
    pub line: Option<u32>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// The mean.
    pub mean_ns: Option<f64>,
    /// The standard deviation.
    pub stddev_ns: Option<f64>,
    /// How many were measured.
    pub count: Option<u64>,
    /// The percentiles, ascending.
    pub percentiles: Vec<Percentile>,
    /// The histogram: (upper end in nanoseconds, I/Os). Only JSON+ has it.
    pub bins: Vec<(u64, u64)>,
}

impl LatencyFigures {
    /// The value of a percentile, in nanoseconds.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        self.percentiles.iter().find(|known| (known.percent - percent).abs() < 1e-6).map(|known| known.ns)
    }

    /// Whether anything was measured.
    pub fn is_measured(&self) -> bool {
        self.count.is_none_or(|count| count > 0) && self.max_ns.unwrap_or(0) > 0
    }
}

/// One percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentile {
    /// The share of I/Os, in percent.
    pub percent: f64,
    /// None of them took longer, in nanoseconds.
    pub ns: u64,
}

/// Samples taken while a job ran. Samples of bandwidth are in bytes per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleMoments {
    /// The line it was read from; `None` in JSON and in terse lines.
    pub line: Option<u32>,
    /// The lowest.
    pub min: Option<u64>,
    /// The highest.
    pub max: Option<u64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation.
    pub stddev: Option<f64>,
    /// The mean as a percentage of the reporting group's bandwidth.
    pub share_percent: Option<f64>,
    /// How many were taken.
    pub count: Option<u64>,
}

/// Use of processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuFigures {
    /// The line it was read from; `None` in JSON.
    pub line: Option<u32>,
    /// Time in the program, in percent of the jobs' time.
    pub user_percent: Option<f64>,
    /// Time in the kernel, in percent of the jobs' time.
    pub system_percent: Option<f64>,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Page faults that needed I/O.
    pub major_faults: Option<u64>,
    /// Page faults that did not.
    pub minor_faults: Option<u64>,
}

/// The I/Os whose completion latency lies below a bound and at or above the bound before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyBucket {
    /// The bound, in nanoseconds; `None` for two seconds and more.
    pub below_ns: Option<u64>,
    /// Percent of all I/Os.
    pub percent: f64,
}

/// I/Os that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorFigures {
    /// How many.
    pub total: u64,
    /// The number of the first error.
    pub first: i32,
}

/// The `latency_target` options and their result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyTargetFigures {
    /// `latency_target` in nanoseconds; 0 if it is not set.
    pub target_ns: u64,
    /// `latency_window` in nanoseconds; 0 if it is not set.
    pub window_ns: u64,
    /// `latency_percentile`.
    pub percentile: f64,
    /// The depth that meets it; `iodepth` if there is no target.
    pub depth: u32,
}

/// Whether a job became steady (`steadystate`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyFigures {
    /// Whether the criterion was met.
    pub attained: bool,
    /// The criterion's value, as printed.
    pub criterion: String,
}

/// One direction of a reporting group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateFigures {
    /// The direction.
    pub name: DirectionName,
    /// The line it was read from.
    pub line: u32,
    /// Bytes per second of all jobs.
    pub bandwidth: Option<u64>,
    /// Bytes per second of the slowest job.
    pub bandwidth_min: Option<u64>,
    /// Bytes per second of the fastest job.
    pub bandwidth_max: Option<u64>,
    /// Bytes of all jobs.
    pub bytes: Option<u64>,
    /// The shortest run time, in milliseconds.
    pub runtime_ms_min: Option<u64>,
    /// The longest run time, in milliseconds.
    pub runtime_ms_max: Option<u64>,
}

/// The sums of a reporting group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFigures {
    /// Its number.
    pub group_id: u32,
    /// Its directions.
    pub directions: Vec<RateFigures>,
}

/// What a disk did during the run, for any process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFigures {
    /// Its name: `sda`.
    pub name: String,
    /// The line it was read from; `None` in JSON.
    pub line: Option<u32>,
    /// Requests completed: reads, writes.
    pub ios: [Option<u64>; 2],
    /// Sectors of 512 bytes: read, written. fio before 3.36 has none.
    pub sectors: [Option<u64>; 2],
    /// Requests merged with others: reads, writes.
    pub merges: [Option<u64>; 2],
    /// Time of all requests together, in milliseconds: reads, writes.
    pub ticks_ms: [Option<u64>; 2],
    /// Time of all requests in flight, in milliseconds.
    pub in_queue_ms: Option<u64>,
    /// How much of the time it had any request, in percent.
    pub util_percent: Option<f64>,
    /// Whether it is made of other disks, whose figures it has as `aggr…`.
    pub is_stacked: bool,
}

/// A finding that fiord wrote into a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedFinding {
    /// Its code, or the option it is about.
    pub code: String,
    /// How much it matters.
    pub severity: String,
    /// What it is about.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// What to do about it.
    pub remedy: String,
}
