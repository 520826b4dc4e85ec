//! The result of a run as a value.
//!
//! Invariant: a `RunReport` contains everything that any format prints; formats differ in what they omit, never in
//! figures.

use fiord_device::{DeviceUse, DiskUse, EnergyUse};
use fiord_stats::OrderBy;
use fiord_stats::{
    Capped, DirectionStats, JobPart, JobStats, PartLatencies, RunSteadiness, SteadyState, Timeline, Window,
};
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::repeats::RepeatedFigure;

/// A run's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The name of the program in reports, such as `fio-3.42`.
    pub version: String,
    /// The version of fiord that made the run; `None` if another program did.
    pub fiord_version: Option<String>,
    /// When this report was made, in milliseconds since the epoch.
    pub timestamp_ms: u64,
    /// Local time minus UTC at that time, in seconds: reports print local time.
    pub utc_offset_s: i32,
    /// Options of all jobs, (name, text as typed), in the order given.
    pub global_options: Vec<(String, String)>,
    /// The jobs to show, in order. Under group reporting one represents several: see [`merge_groups`].
    pub jobs: Vec<JobReport>,
    /// The disks under the files as fio counts them; empty with `disk_util=0` or if no file is on one.
    pub disks: Vec<DiskUse>,
    /// Every device under the files, from those that hold them down to the disks, with its counters at the beginning
    /// and at the end; empty with `disk_util=0`.
    pub devices: Vec<DeviceUse>,
    /// How idle the processors were, if requested (`--idle-prof`).
    pub idleness: Option<Idleness>,
    /// Energy by source; empty if this machine tells none, and with `--trust=off`.
    pub energy: Vec<EnergyUse>,
    /// What a reader of the figures has to know, the worst first.
    pub findings: Vec<Finding>,
    /// The figures of all runs with `--repeat`, of which this is the last; empty without.
    pub repeats: Vec<RepeatedFigure>,
    /// How steady it was, and its steady part; `None` if that was not judged.
    pub steadiness: Option<RunSteadiness>,
    /// The latencies of the steady part; `None` if that is the whole run, or no copy of the histograms was made in it.
    pub part_latencies: Option<PartLatencies>,
    /// What the jobs of each name did in the steady part; empty if that is the whole run, if all jobs have one name, or if
    /// there are too many names. Only studies show it.
    pub job_parts: Vec<JobPart>,
    /// What it did over time; `None` if that was not recorded. Only pages show it (`fiord report`).
    pub timeline: Option<Timeline>,
    /// What all jobs together did over time, while all of them were running; empty if that was not observed.
    pub windows: Vec<Window>,
    /// The kernel's number of the boot in which it was made, if known: only within one are counters of devices comparable.
    pub boot_id: Option<String>,
}

/// How idle the processors were during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Idleness {
    /// Idle share of the time of all processors together, in percent.
    pub system_percent: f64,
    /// Number and idle share in percent of each; empty unless requested.
    pub cpus: Vec<(u32, f64)>,
    /// How long one unit of work takes.
    pub unit: UnitWork,
}

/// How long a processor takes for one unit of work, over all processors, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitWork {
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub stddev_us: f64,
}

/// One job's result, or a group's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The job's name (the first one's under group reporting).
    pub name: String,
    /// The `description` option.
    pub description: Option<String>,
    /// The reporting group, counted from 0; a stonewall or `new_group` starts the next.
    pub group_id: u32,
    /// Jobs merged into this one.
    pub member_count: u32,
    /// Process or thread id.
    pub pid: u32,
    /// errno the job ended with; 0 on success.
    pub error: i32,
    /// Its error, for people: operation, file, offset and the error's name.
    pub error_text: String,
    /// When the job started, in milliseconds: since 1970, unless `job_start_clock_id` names another clock.
    pub start_ms: u64,
    /// Seconds since the job was started, rounded up as fio does.
    pub elapsed_s: u64,
    /// Seconds to go; [`JobReport::ETA_UNKNOWN`] once the job has ended.
    pub eta_s: u32,
    /// Options of the job itself, (name, text as typed), in the order given; a flag's text is empty. For several
    /// jobs, those of the last section that has any.
    pub options: Vec<(String, String)>,
    /// Its measurements.
    pub stats: JobStats,
    /// Which of them are shown.
    pub show: Show,
    /// Whether `continue_on_error` is set, so that the error counts are shown.
    pub continue_on_error: bool,
    /// How steady it became, if `steadystate` is used.
    pub steady: Option<SteadyState>,
    /// The `latency_target` options and the depth they led to.
    pub latency_target: LatencyTarget,
    /// No job of it started its I/O: something could not be set up, or it only laid out files.
    pub unstarted: bool,
}

impl JobReport {
    /// The time left that fio prints if it is unknown.
    pub const ETA_UNKNOWN: u32 = i32::MAX as u32;

    /// Adds another job's result: group reporting.
    pub fn merge(&mut self, other: &Self) {
        let JobReport {
            name: _,
            description: _,
            group_id: _,
            member_count,
            pid: _,
            error,
            error_text,
            start_ms: _,
            elapsed_s,
            eta_s,
            options,
            stats,
            show,
            continue_on_error,
            // Jobs that are reported as one have one.
            steady: _,
            latency_target: _,
            unstarted,
        } = other;
        self.member_count += member_count;
        // Those of the last section that has any, as in fio.
        if !options.is_empty() {
            self.options.clone_from(options);
        }
        // The last section decides which percentiles are shown, as in fio; the planner keeps `lat_percentiles` equal.
        self.show.percentile_list.clone_from(&show.percentile_list);
        self.show.clat_percentiles = show.clat_percentiles;
        self.show.slat_percentiles = show.slat_percentiles;
        if self.error == 0 {
            self.error = *error;
            self.error_text.clone_from(error_text);
        }
        self.elapsed_s = self.elapsed_s.max(*elapsed_s);
        self.eta_s = self.eta_s.max(*eta_s);
        self.stats.merge(stats);
        self.continue_on_error |= continue_on_error;
        self.unstarted &= unstarted;
    }
}

impl Default for JobReport {
    fn default() -> Self {
        JobReport {
            name: String::new(),
            description: None,
            group_id: 0,
            member_count: 1,
            pid: 0,
            error: 0,
            error_text: String::new(),
            start_ms: 0,
            elapsed_s: 0,
            eta_s: JobReport::ETA_UNKNOWN,
            options: Vec::new(),
            stats: JobStats::default(),
            show: Show::default(),
            continue_on_error: false,
            steady: None,
            latency_target: LatencyTarget::default(),
            unstarted: false,
        }
    }
}

/// The `latency_target` options and the depth in use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// `latency_target` in nanoseconds; 0 when unset.
    pub target_ns: u64,
    /// `latency_window` in microseconds; 0 when unset.
    pub window_us: u64,
    /// `latency_percentile`.
    pub percentile: f64,
    /// Depth that meets the target; the job's `iodepth` when there is no target.
    pub depth: u32,
}

impl Default for LatencyTarget {
    fn default() -> Self {
        LatencyTarget { target_ns: 0, window_us: 0, percentile: 100.0, depth: 1 }
    }
}

/// Whether directions are reported separately (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unified {
    /// Each separately.
    #[default]
    Separate,
    /// All as one.
    Mixed,
    /// Each separately, and all as one.
    Both,
}

/// Which of a job's figures are shown, and in which units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Show {
    /// Submission latencies (not `disable_slat`).
    pub slat: bool,
    /// Completion latencies (not `disable_clat`).
    pub clat: bool,
    /// Total latencies (not `disable_lat`).
    pub lat: bool,
    /// Percentiles of submission latencies.
    pub slat_percentiles: bool,
    /// Percentiles of completion latencies.
    pub clat_percentiles: bool,
    /// Percentiles of total latencies.
    pub lat_percentiles: bool,
    /// Which percentiles, ascending, at most 20.
    pub percentile_list: Vec<f64>,
    /// Digits of shortened figures.
    pub significant_figures: u32,
    /// 1024 (KiB and MiB, the default) or 1000.
    pub kb_base: u32,
    /// 8: rates in bytes (the default); 1: in bits; 0 counts as 8.
    pub unit_base: u32,
    /// Whether directions are shown separately.
    pub unified: Unified,
    /// Whether jobs of a group are shown as one.
    pub group_reporting: bool,
}

/// The percentiles fio shows by default.
const DEFAULT_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

impl Default for Show {
    fn default() -> Self {
        Show {
            slat: true,
            clat: true,
            lat: true,
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            percentile_list: DEFAULT_PERCENTILES.to_vec(),
            significant_figures: 4,
            kb_base: 1024,
            unit_base: 8,
            unified: Unified::Separate,
            group_reporting: false,
        }
    }
}

/// One direction of a group of jobs: a line of the `Run status group` section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateGroup {
    /// Bytes all jobs transferred.
    pub bytes: u64,
    /// Bytes per second of the slowest job.
    pub bandwidth_min: u64,
    /// Bytes per second of the fastest job.
    pub bandwidth_max: u64,
    /// Bytes per second of all: their bytes over the longest runtime.
    pub bandwidth: u64,
    /// The shortest runtime, in milliseconds.
    pub runtime_ms_min: u64,
    /// The longest runtime, in milliseconds.
    pub runtime_ms_max: u64,
}

/// The jobs of a reporting group, summed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupReport {
    /// Its number.
    pub group_id: u32,
    /// Read, write, trim, of jobs without `unified_rw_reporting=mixed`.
    pub directions: [RateGroup; 3],
    /// All directions together, of jobs with `unified_rw_reporting=mixed` or `both`. The extremes are those of single directions,
    /// as in fio.
    pub mixed: RateGroup,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 8 or 1.
    pub unit_base: u32,
    /// Digits of shortened figures.
    pub significant_figures: u32,
}

impl RateGroup {
    fn add(&mut self, direction: &DirectionStats) {
        if direction.runtime_ms == 0 && direction.bytes == 0 {
            return;
        }
        let first = self.runtime_ms_max == 0 && self.bytes == 0;
        let bandwidth = bytes_per_second(direction.bytes, direction.runtime_ms);
        let least = |so_far: u64, now: u64| if first { now } else { so_far.min(now) };
        self.bandwidth_min = least(self.bandwidth_min, bandwidth);
        self.bandwidth_max = self.bandwidth_max.max(bandwidth);
        self.runtime_ms_min = least(self.runtime_ms_min, direction.runtime_ms);
        self.runtime_ms_max = self.runtime_ms_max.max(direction.runtime_ms);
        self.bytes += direction.bytes;
        self.bandwidth = bytes_per_second(self.bytes, self.runtime_ms_max);
    }
}

/// Bytes per second, rounded down; 0 when no time passed.
pub(crate) fn bytes_per_second(bytes: u64, runtime_ms: u64) -> u64 {
    if runtime_ms == 0 { 0 } else { u64::capped(u128::from(bytes) * 1000 / u128::from(runtime_ms)) }
}

impl RateGroup {
    /// Whether any job moved data this way.
    pub fn is_active(&self) -> bool {
        self.runtime_ms_max > 0 || self.bytes > 0
    }
}

impl RunReport {
    /// The groups of the jobs shown, in the order of their numbers.
    pub fn groups(&self) -> Vec<GroupReport> {
        let mut groups: Vec<GroupReport> = Vec::new();
        for job in &self.jobs {
            // Jobs of a group mostly follow each other, so the last group is tried first.
            let place = match groups.iter().rposition(|group| group.group_id == job.group_id) {
                Some(place) => place,
                None => {
                    groups.push(GroupReport {
                        group_id: job.group_id,
                        kb_base: job.show.kb_base,
                        unit_base: job.show.unit_base,
                        significant_figures: job.show.significant_figures,
                        ..GroupReport::default()
                    });
                    groups.len() - 1
                }
            };
            groups[place].add(job);
        }
        groups.order_by_key(|group| group.group_id);
        groups
    }
}

impl GroupReport {
    fn add(&mut self, job: &JobReport) {
        if job.show.unified == Unified::Mixed {
            self.mixed.add(&job.stats.mixed());
            return;
        }
        self.directions.iter_mut().zip(&job.stats.directions).for_each(|(group, job)| group.add(job));
        if job.show.unified == Unified::Both {
            job.stats.directions.iter().for_each(|direction| self.mixed.add(direction));
        }
    }
}

/// Jobs as they are shown: one with `group_reporting` is merged into the job before it if both are of the same group,
/// even if that one does not have the option, as in fio. The result has the name of its first job.
pub fn merge_groups(jobs: impl IntoIterator<Item = JobReport>) -> Vec<JobReport> {
    let mut shown: Vec<JobReport> = Vec::new();
    for job in jobs {
        match shown.last_mut() {
            Some(last) if job.show.group_reporting && last.group_id == job.group_id => last.merge(&job),
            _ => shown.push(job),
        }
    }
    shown
}
