//! What a worker logs over time, and into which files.
//!
//! Invariant: a job that writes no log has no `Logs`, and its worker pays nothing for there being logs.

use std::path::PathBuf;

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
    /// Histograms of completion latencies.
    Histogram,
}

impl LogKind {
    /// fio's word for it in a file's name.
    pub fn word(self) -> &'static str {
        match self {
            LogKind::Bandwidth => "bw",
            LogKind::Iops => "iops",
            LogKind::Submission => "slat",
            LogKind::Completion => "clat",
            LogKind::Total => "lat",
            LogKind::Histogram => "clat_hist",
        }
    }
}

/// One log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// What it holds.
    pub kind: LogKind,
    /// Where it is. Workers may share one; each then writes behind those before it.
    pub path: PathBuf,
    /// Whether anything is recorded for it; a file for which nothing is stays empty.
    pub recorded: bool,
    /// Whether it is written behind what an earlier run left (`per_job_logs=0`, as fio does), instead of anew.
    pub appends: bool,
}

/// What a line says of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowValue {
    /// The average.
    Average,
    /// The maximum.
    Maximum,
    /// The average, then the maximum.
    Both,
}

/// The last column of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityColumn {
    /// 1 for the real-time class, else 0.
    Flag(bool),
    /// Class and level as the kernel packs them, in hexadecimal.
    Packed(u16),
}

/// The logs of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// Files, in the order they are written.
    pub files: Vec<LogFile>,
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
    /// What a window's line says.
    pub value: WindowValue,
    /// Whether a line has the offset.
    pub with_offset: bool,
    /// The last column.
    pub priority: PriorityColumn,
    /// Entries to make room for before the run.
    pub entries_ahead: u32,
    /// The kernel's number of the clock whose times are told; `None` counts from the start of the run.
    pub clock_id: Option<u32>,
}

impl Logs {
    /// Whether something is recorded for a log of this kind.
    pub fn records(&self, kind: LogKind) -> bool {
        self.files.iter().any(|file| file.kind == kind && file.recorded)
    }
}
