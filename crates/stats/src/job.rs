//! All that one job measured, and its sum over a group of jobs.
//!
//! Invariant: each `merge` destructures its argument, so a field cannot be added without deciding how it merges.

use crate::{BatchMap, DepthMap, Distribution, Latency, Samples};

/// Directions, in the order of [`JobStats::directions`].
pub const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// What one direction of a job did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionStats {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// I/Os that transferred less than asked.
    pub short_ios: u64,
    /// I/Os dropped after issue.
    pub dropped_ios: u64,
    /// Time this direction was active, in milliseconds; the longest of a group.
    pub runtime_ms: u64,
    /// Submission latency (slat).
    pub submission: Latency,
    /// Completion latency (clat).
    pub completion: Latency,
    /// Total latency (lat).
    pub total: Latency,
    /// Samples in KiB/s.
    pub bandwidth: Samples,
    /// Samples in I/Os per second.
    pub iops: Samples,
}

impl DirectionStats {
    /// Adds what another job did beside this one.
    pub fn merge(&mut self, other: &Self) {
        let DirectionStats {
            ios,
            bytes,
            short_ios,
            dropped_ios,
            runtime_ms,
            submission,
            completion,
            total,
            bandwidth,
            iops,
        } = other;
        self.ios += ios;
        self.bytes += bytes;
        self.short_ios += short_ios;
        self.dropped_ios += dropped_ios;
        self.runtime_ms = self.runtime_ms.max(*runtime_ms);
        self.submission.merge(submission);
        self.completion.merge(completion);
        self.total.merge(total);
        self.bandwidth.merge(bandwidth);
        self.iops.merge(iops);
    }
}

/// What syncing calls did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncStats {
    /// fsync, fdatasync, sync_file_range and syncfs calls.
    pub ios: u64,
    /// Their latency.
    pub latency: Latency,
}

impl SyncStats {
    /// Adds what another job did.
    pub fn merge(&mut self, other: &Self) {
        let SyncStats { ios, latency } = other;
        self.ios += ios;
        self.latency.merge(latency);
    }
}

/// What the kernel charged a job for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// Time the CPU times are a share of, in milliseconds; summed over a group, as its jobs ran side by side.
    pub elapsed_ms: u64,
}

impl Usage {
    /// Adds another job's usage.
    pub fn merge(&mut self, other: &Self) {
        let Usage { user_us, system_us, context_switches, major_faults, minor_faults, elapsed_ms } = *other;
        self.user_us += user_us;
        self.system_us += system_us;
        self.context_switches += context_switches;
        self.major_faults += major_faults;
        self.minor_faults += minor_faults;
        self.elapsed_ms += elapsed_ms;
    }
}

/// All that a job, or a group of jobs, measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStats {
    /// Reads, writes, trims.
    pub directions: [DirectionStats; 3],
    /// Syncing calls.
    pub sync: SyncStats,
    /// Completion latencies by magnitude, over all directions.
    pub distribution: Distribution,
    /// Depth each I/O (syncs too) was issued at.
    pub depth: DepthMap,
    /// I/Os per submitting call.
    pub submit: BatchMap,
    /// I/Os per reaping call.
    pub complete: BatchMap,
    /// CPU time, faults and switches.
    pub usage: Usage,
    /// I/Os that failed and were continued after.
    pub errors_total: u64,
    /// errno of the first I/O that failed; zero when none did.
    pub first_error: i32,
}

impl JobStats {
    /// Adds what another job measured beside this one.
    ///
    /// Which of two jobs failed first is not known, so the smaller errno stands for both.
    pub fn merge(&mut self, other: &Self) {
        let JobStats {
            directions,
            sync,
            distribution,
            depth,
            submit,
            complete,
            usage,
            errors_total,
            first_error,
        } = other;
        self.directions.iter_mut().zip(directions).for_each(|(a, b)| a.merge(b));
        self.sync.merge(sync);
        self.distribution.merge(distribution);
        self.depth.merge(depth);
        self.submit.merge(submit);
        self.complete.merge(complete);
        self.usage.merge(usage);
        self.errors_total += errors_total;
        self.first_error = match (self.first_error, *first_error) {
            (0, error) | (error, 0) => error,
            (a, b) => a.min(b),
        };
    }

    /// All directions as one: what `unified_rw_reporting=mixed` shows.
    pub fn mixed(&self) -> DirectionStats {
        let mut all = DirectionStats::default();
        self.directions.iter().for_each(|direction| all.merge(direction));
        all
    }
}
