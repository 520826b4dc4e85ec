//! The receiver of a job's logs while the job runs.
//!
//! Invariant: neither call blocks; a job that gets no empty block waits between two I/Os, where no latency is measured.

use fiord_stats::LogEntries;

/// Receives the log entries of one job, in blocks. Dropped when the job has handed over its last one.
pub trait LogSink: Send {
    /// I/Os of a block.
    fn block_ios(&self) -> usize;

    /// An empty block to record into; `None` while all blocks of this job are waiting to be written.
    fn spare(&mut self) -> Option<LogEntries>;

    /// Takes a block of entries, in the order they were recorded.
    fn take(&mut self, entries: LogEntries);
}
