//! What a worker logs over time, and into which files.
//!
//! Invariant: a job that writes no log has no `Logs`, and its worker has no cost for them.

use std::path::PathBuf;

use fiord_options::{Spec, job};

/// What a log file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// KiB/s.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Submission latencies.
    Submission,
    /// Completion latencies.
    Completion,
    /// Total latencies.
    Total,
    /// Response latencies: from the start that a rate intended.
    Response,
    /// Histograms of completion latencies.
    Histogram,
    /// Histograms of response latencies.
    ResponseHistogram,
}

impl LogKind {
    /// All of them. The place of one is its number in messages between machines: new ones come last.
    pub const ALL: [LogKind; 8] = [
        LogKind::Bandwidth,
        LogKind::Iops,
        LogKind::Submission,
        LogKind::Completion,
        LogKind::Total,
        LogKind::Response,
        LogKind::Histogram,
        LogKind::ResponseHistogram,
    ];

    /// The word for it in a file's name: fio's, except for response latencies, which fio does not measure.
    pub fn word(self) -> &'static str {
        match self {
            LogKind::Bandwidth => "bw",
            LogKind::Iops => "iops",
            LogKind::Submission => "slat",
            LogKind::Completion => "clat",
            LogKind::Total => "lat",
            LogKind::Response => "resp",
            LogKind::Histogram => "clat_hist",
            LogKind::ResponseHistogram => "resp_hist",
        }
    }

    /// The job option that requests it.
    pub fn option(self) -> &'static Spec {
        match self {
            LogKind::Bandwidth => job::Measure::write_bw_log,
            LogKind::Iops => job::Measure::write_iops_log,
            LogKind::Submission | LogKind::Completion | LogKind::Total | LogKind::Response => {
                job::Measure::write_lat_log
            }
            LogKind::Histogram | LogKind::ResponseHistogram => job::Measure::write_hist_log,
        }
    }

    /// Whether it holds histograms, and not a value for each I/O or window.
    pub fn is_histogram(self) -> bool {
        matches!(self, LogKind::Histogram | LogKind::ResponseHistogram)
    }
}

/// One log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// What it holds.
    pub kind: LogKind,
    /// Its path. Workers may share one; each then appends to it.
    pub path: PathBuf,
    /// Whether anything is recorded for it; a file for which nothing is stays empty.
    pub recorded: bool,
    /// Whether it is appended to the file of an earlier run (`per_job_logs=0`, as in fio), instead of replacing it.
    pub appends: bool,
    /// Whether it holds a zlib stream of binary entries instead of text.
    pub is_compressed: bool,
}

/// The value of a line for its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowValue {
    /// The average.
    Average,
    /// The maximum.
    Maximum,
    /// The average, then the maximum.
    Both,
}

/// The logs of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// Files, in the order they are written.
    pub files: Vec<LogFile>,
    /// Whether they are written on another machine, and nothing here.
    pub are_sent: bool,
    /// Length of the windows of latencies; `None` when every I/O has a line.
    pub window_ms: Option<u64>,
    /// Length of the windows of bandwidth, where there are windows.
    pub bandwidth_window_ms: u64,
    /// Length of the windows of I/Os per second, where there are windows.
    pub iops_window_ms: u64,
    /// Length of the windows of histograms; 0 when there are none.
    pub histogram_window_ms: u64,
    /// How often the bins of a histogram are halved in number.
    pub coarseness: u32,
    /// The value of a window's line.
    pub value: WindowValue,
    /// Whether a line has the offset.
    pub with_offset: bool,
    /// Priority of the I/Os that have none of their own, as the kernel packs it.
    pub priority: u16,
    /// Whether a line has the packed priority, in hexadecimal, or 1 for the real-time class and 0 for others.
    pub shows_priority: bool,
    /// Whether a line ends with the time of issue, in nanoseconds.
    pub with_issue_time: bool,
    /// Entries that may wait to be written, if that is more than fiord's default.
    pub entries_ahead: u32,
    /// Whether they stay in memory until the job ends, compressed in chunks of this many bytes (`log_compression`).
    pub held_chunk_bytes: Option<u64>,
    /// CPUs that the thread which compresses and writes them may run on; empty is all.
    pub cpus: Vec<u32>,
    /// The kernel's number of the clock that times are read from; `None` counts from the start of the run.
    pub clock_id: Option<u32>,
}

impl Logs {
    /// Whether something is recorded for a log of this kind.
    pub fn records(&self, kind: LogKind) -> bool {
        self.files.iter().any(|file| file.kind == kind && file.recorded)
    }
}
