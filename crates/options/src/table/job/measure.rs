//! What is measured, logged and reported of a job, and which errors end it.
//!
//! Invariant: nothing here changes which I/O is done.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Reports, logs, statistics, and what counts as an error.
    pub struct Measure, scope Scope::Job;

    "Logs and statistics" {
        /// Report the jobs of a group as one.
        ///
        /// Example: `numjobs=8` with `group_reporting` reports once instead of eight times.
        group_reporting: Flag = 0;
        /// Start a new group of reports.
        new_group: Flag = 0;
        /// Whether the job is in the report.
        ///
        /// With 0, its figures are left out of the report, including the group's totals.
        stats: bool = 1, in 0..=1;
        /// Whether the names of log files contain the worker's number.
        ///
        /// Workers are numbered from 1 across the whole run. Without the number, workers whose files have the same name
        /// append to one file, after what an earlier run wrote there.
        per_job_logs: bool = 1, in 0..=1;
        /// Log bandwidth over time in files of this prefix.
        ///
        /// The file is `PREFIX_bw.N.log`; without a value the job's name is the prefix. A line is time in milliseconds,
        /// KiB/s, direction (0 read, 1 write, 2 trim), block size, priority. There is a line for each I/O, or with
        /// `log_avg_msec` one for each window and direction.
        write_bw_log: OptionalText;
        /// Log latencies over time in files of this prefix.
        ///
        /// The files are `PREFIX_slat.N.log`, `PREFIX_clat.N.log` and `PREFIX_lat.N.log`, in nanoseconds, otherwise
        /// like those of `write_bw_log`. A latency that is not recorded (`disable_clat`) has no file. For a job with
        /// `rate` or `rate_iops`, `PREFIX_resp.N.log` has the latencies from the start that the rate intended.
        write_lat_log: OptionalText;
        /// Log I/Os per second over time in files of this prefix.
        ///
        /// The file is `PREFIX_iops.N.log`, like that of `write_bw_log`. Where each I/O has a line, the value is 1.
        write_iops_log: OptionalText;
        /// Log histograms of latency over time in files of this prefix.
        ///
        /// The file is `PREFIX_clat_hist.N.log`. A line is time in milliseconds, direction, block size, and the counts
        /// of all bins. Without `log_hist_msec` the file is empty. For a job with `rate` or `rate_iops`,
        /// `PREFIX_resp_hist.N.log` has the histograms of the latency from the start that the rate intended.
        write_hist_log: OptionalText;
        /// Log entries that may wait in memory to be written.
        ///
        /// Logs are written while the job runs. A job that is faster than the disk of its logs waits when this many
        /// entries, or 64 MiB of all jobs if that is more, have not been written, and the report says how long.
        log_entries: u32 = 1024, in 1024..=1048576;
        /// Window of one log entry, in milliseconds; 0 logs every I/O.
        ///
        /// Windows of bandwidth and of I/Os per second are no longer than `bwavgtime` and `iopsavgtime`.
        ///
        /// Example: `write_bw_log=run` with `log_avg_msec=1000` writes a line a second.
        log_avg_msec: u32 = 0, in 0..=U32;
        /// Window of one histogram, in milliseconds; 0 logs none.
        log_hist_msec: u32 = 0, in 0..=U32;
        /// Coarseness of logged histograms: the number of bins is halved this many times.
        log_hist_coarseness: u32 = 0, in 0..=6;
        /// Value of a log entry: the average of its window, the maximum, or both.
        ///
        /// With `both`, a line has two values: the average, then the maximum.
        log_window_value | log_max_value: LogWindowValue = "avg";
        /// Whether log entries contain the offset.
        ///
        /// It comes before the priority.
        log_offset: bool = 0, in 0..=1;
        /// Whether log entries contain the priority.
        ///
        /// Class and level in hexadecimal, as the kernel packs them; otherwise the column is 1 for the real-time
        /// class and 0 for the others.
        log_prio: bool = 0, in 0..=1;
        /// Whether log entries carry the time of issue.
        ///
        /// It is the last column, in nanoseconds since the start, in the logs of submission and completion latencies, and 0
        /// in the others. Needs `write_lat_log` and `log_offset`.
        log_issue_time: bool = 0, in 0..=1;
        /// Keep logs in memory until the job has ended, compressed in chunks of this size.
        ///
        /// Logs are otherwise written while the job runs, which disturbs a job on the same disk. Compressed, an entry
        /// takes a few bytes. With `log_store_compressed`, the file is compressed as well.
        ///
        /// Example: `log_compression=1m`.
        log_compression: u32, in 1024..=536870912;
        /// CPUs that the thread which compresses and writes logs may run on: `0,5,8-15`.
        ///
        /// Example: `log_compression_cpus=0` with `cpus_allowed=1-7`.
        log_compression_cpus: NumberSet;
        /// Store the log compressed.
        ///
        /// The file's name ends in `.log.fz`; `fiord --inflate-log=FILE`, or fio 3.33, prints it. Bandwidth is in bytes per
        /// second there, as fio has it. Logs of histograms stay text.
        log_store_compressed: bool = 0, in 0..=1;
        /// Take the times in logs from another clock.
        ///
        /// Instead of counting from 0 at the start of the run, times are those of the clock that
        /// `log_alternate_epoch_clock_id` names: by default the time of day, in milliseconds since 1970.
        log_alternate_epoch | log_unix_epoch: bool = 0, in 0..=1;
        /// The clock of `log_alternate_epoch`.
        ///
        /// The kernel's number of the clock: 0 is the time of day, 1 the monotonic clock, 7 the time since boot.
        log_alternate_epoch_clock_id: u32 = 0, in 0..=U32;
        /// Window of a bandwidth sample, in milliseconds.
        ///
        /// Example: `bwavgtime=1000`.
        bwavgtime: u32 = 500, in 0..=U32;
        /// Window of a sample of I/Os per second, in milliseconds.
        iopsavgtime: u32 = 500, in 0..=U32;
        /// Report the activity of the disks that hold the files.
        disk_util: bool = 1, in 0..=1;
        /// Do not measure total latency.
        disable_lat: bool = 0, in 0..=1;
        /// Do not measure completion latency.
        disable_clat: bool = 0, in 0..=1;
        /// Do not measure submission latency.
        disable_slat: bool = 0, in 0..=1;
        /// Do not measure bandwidth over time.
        disable_bw_measurement | disable_bw: bool = 0, in 0..=1;
        /// Report percentiles of submission latency.
        slat_percentiles: bool = 0, in 0..=1;
        /// Report percentiles of completion latency.
        clat_percentiles: bool = 1, in 0..=1;
        /// Report percentiles of total latency.
        lat_percentiles: bool = 0, in 0..=1;
        /// Percentiles to report: up to twenty, separated by colons.
        ///
        /// Example: `percentile_list=50:99:99.9`.
        percentile_list: FloatList = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99", in 0..=100;
        /// Significant figures of the normal report.
        ///
        /// Example: `significant_figures=6`.
        significant_figures: u32 = 4, in 1..=10;
        /// Record how many trims each block lasts, and what failed.
        ///
        /// For jobs that trim, in units of the length of a trim: percentiles of the number of trims that a block
        /// survived, over all blocks that were written or trimmed, and the number of blocks by their last state
        /// (unwritten, trimmed, written, trim failure, write failure). It takes 4 bytes of memory for each block.
        ///
        /// Example: `rw=trimwrite` with `block_error_percentiles=1` and `continue_on_error=all`.
        block_error_percentiles: bool = 0, in 0..=1;
    }

    "Errors" {
        /// Errors that do not stop the job.
        ///
        /// Example: `continue_on_error=read`.
        continue_on_error: ContinueOnError = "none";
        /// Errors to ignore.
        ///
        /// Lists for reads, writes and verification, separated by commas. The errors of a list are names or numbers,
        /// separated by colons: `EAGAIN,ENOSPC:122`.
        ignore_error: IgnoreErrors = "";
        /// Print every error, including ignored ones.
        error_dump: bool = 0, in 0..=1;
    }
}
