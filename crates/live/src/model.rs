//! What the view shows.
//!
//! Invariant: figures are those of the last second unless their name says otherwise; a figure that is not measured is
//! `None` and shown as `-`.

use std::borrow::Cow;

use fiord_report::Severity;

use crate::heat::HeatMap;

/// Everything on the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// What runs: the jobs of a run, or the step of a study.
    pub title: String,
    /// How long it has run and how long it will, in words.
    pub progress: String,
    /// The directions that transfer data, all jobs together.
    pub directions: Vec<DirectionRow>,
    /// Latencies over time, all directions together.
    pub heat: HeatMap,
    /// Each job, in order; or each host.
    pub jobs: Vec<JobRow>,
    /// Whether these are hosts.
    pub are_hosts: bool,
    /// The devices below the files.
    pub devices: Vec<DeviceRow>,
    /// The processors; `None` before there are two readings of them.
    pub cpu: Option<Cpu>,
    /// Code, severity and sentence of each finding so far, the worst first.
    pub findings: Vec<(Severity, String)>,
    /// Whether colours may be used.
    pub is_coloured: bool,
}

/// One direction, all jobs together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionRow {
    /// `read`, `write` or `trim`.
    pub name: &'static str,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub mean_ns: Option<u64>,
    /// Percentiles of latency, in the order of [`DirectionRow::PERCENTS`]; `None` without a histogram.
    pub percentiles_ns: Option<[u64; 4]>,
}

impl DirectionRow {
    /// The percentiles that are shown.
    pub const PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 100.0];
}

/// One job, or one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRow {
    /// Its name.
    pub name: String,
    /// Its state, in a word.
    pub state: Cow<'static, str>,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// The 99th percentile of its latency, all directions together.
    pub p99_ns: Option<u64>,
    /// The share of its work that is done, 0 to 1.
    pub done: Option<f64>,
}

/// One device, by the figures and names of `iostat -x`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceRow {
    /// The kernel's name.
    pub name: String,
    /// Reads and writes per second.
    pub ios_per_s: [f64; 2],
    /// Bytes read and written per second.
    pub bytes_per_s: [f64; 2],
    /// Mean time of a read and of a write in ms, queue included; 0 without one, as in iostat.
    pub await_ms: [f64; 2],
    /// Mean number of requests in flight.
    pub queue_length: f64,
    /// Share of the time in which it had a request, in percent.
    pub util_percent: f64,
}

/// The processors that fiord may use: shares of their time in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Their number.
    pub count: u64,
    /// User mode.
    pub user: f64,
    /// Kernel.
    pub system: f64,
    /// Idle while I/O was outstanding.
    pub io_wait: f64,
    /// Used by the hypervisor for other guests.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
    /// Used by fiord, in percent of one processor.
    pub own: f64,
}
