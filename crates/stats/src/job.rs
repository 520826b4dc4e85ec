//! The measurements of one job, and their sum over a group of jobs.
//!
//! Invariant: each `merge` destructures its argument, so a field cannot be added without deciding how it merges.

use serde::{Deserialize, Serialize};

use crate::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};
use crate::{BatchMap, BlockLifetimes, Counts, DepthMap, Latency, LatencyDistribution, Samples};

/// Directions, in the order of [`JobStats::directions`].
pub const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// The state of a job's ramp, which is not counted, when the job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RampEnd {
    /// It was over, or there was none: the measurements exclude it.
    #[default]
    Over,
    /// It was not over: the measurements are those of the ramp.
    Unfinished,
    /// It ended together with the job: nothing was measured.
    NothingAfter,
}

/// The measurements of one direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionStats {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// I/Os that transferred less than requested.
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
    /// Response latency: from the start that the rate intended. Has a histogram if the direction has a rate, and no
    /// values otherwise.
    pub response: Latency,
    /// I/O priority of the job, as the kernel packs it.
    pub priority: u16,
    /// Latencies by priority, in the order of first use; empty if all I/Os have `priority`.
    pub priorities: Vec<PriorityLatency>,
    /// Samples in KiB/s.
    pub bandwidth: Samples,
    /// Samples in I/Os per second.
    pub iops: Samples,
    /// What is counted of each direction ([`Count`](crate::Count)).
    pub counts: Counts,
}

impl DirectionStats {
    /// Adds those of another job that ran concurrently.
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
            response,
            bandwidth,
            iops,
            priority,
            priorities,
            counts,
        } = other;
        if self.ios == 0 && self.priorities.is_empty() {
            self.priority = *priority;
        }
        if *ios > 0 && (self.priority != *priority || !self.priorities.is_empty() || !priorities.is_empty()) {
            // Before the sums, which include the others from then on.
            self.priorities = self.merged_priorities(other);
        }
        self.ios += ios;
        self.bytes += bytes;
        self.short_ios += short_ios;
        self.dropped_ios += dropped_ios;
        self.runtime_ms = self.runtime_ms.max(*runtime_ms);
        self.submission.merge(submission);
        self.completion.merge(completion);
        self.total.merge(total);
        self.response.merge(response);
        self.bandwidth.merge(bandwidth);
        self.iops.merge(iops);
        self.counts.merge(counts);
    }
}

impl DirectionStats {
    /// I/Os of an open loop that arrived and were never issued; `None` of a closed one.
    pub fn never_issued(&self) -> Option<u64> {
        let [dropped, waiting] = [&DROPPED_ARRIVALS, &WAITING_ARRIVALS].map(|count| self.counts.get(count));
        Some(dropped?.saturating_add(waiting?))
    }

    /// The latency that is reported by priority: the total one if it has a histogram (`lat_percentiles`), as in fio.
    pub fn is_total_by_priority(&self) -> bool {
        self.total.histogram.is_allocated()
    }

    fn merged_priorities(&self, other: &Self) -> Vec<PriorityLatency> {
        let mut all = self.by_priority();
        for theirs in other.by_priority() {
            match all.iter_mut().find(|each| each.priority == theirs.priority) {
                Some(each) => each.latency.merge(&theirs.latency),
                None => all.push(theirs),
            }
        }
        all
    }

    /// Latencies by priority: one entry if all I/Os have the same.
    fn by_priority(&self) -> Vec<PriorityLatency> {
        if !self.priorities.is_empty() {
            return self.priorities.clone();
        }
        let latency = if self.is_total_by_priority() { &self.total } else { &self.completion };
        match latency.running.count {
            0 => Vec::new(),
            _ => vec![PriorityLatency { priority: self.priority, latency: latency.clone() }],
        }
    }
}

/// The latencies of the I/Os of one priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PriorityLatency {
    /// As the kernel packs it: class, hint and level.
    pub priority: u16,
    /// Completion latency, or total latency if the job has percentiles of those.
    pub latency: Latency,
}

impl PriorityLatency {
    /// Class, level and hint.
    pub fn parts(&self) -> (u16, u16, u16) {
        (self.priority >> 13, self.priority & 7, self.priority >> 3 & 0x3ff)
    }
}

/// The measurements of syncing calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncStats {
    /// fsync, fdatasync, sync_file_range and syncfs calls.
    pub ios: u64,
    /// Their latency.
    pub latency: Latency,
}

impl SyncStats {
    /// Adds those of another job.
    pub fn merge(&mut self, other: &Self) {
        let SyncStats { ios, latency } = other;
        self.ios += ios;
        self.latency.merge(latency);
    }
}

/// The resource usage that the kernel charged to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Time the CPU times are a share of, in milliseconds; summed over a group, whose jobs ran concurrently.
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

/// The measurements of a job, or of a group of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStats {
    /// Reads, writes, trims.
    pub directions: [DirectionStats; 3],
    /// Syncing calls.
    pub sync: SyncStats,
    /// Completion latencies by magnitude, over all directions.
    pub distribution: LatencyDistribution,
    /// Depth each I/O (syncs too) was issued at.
    pub depth: DepthMap,
    /// I/Os per submitting call.
    pub submit: BatchMap,
    /// I/Os per reaping call.
    pub complete: BatchMap,
    /// CPU time, faults and switches.
    pub usage: Usage,
    /// I/Os that failed and did not end the job.
    pub errors_total: u64,
    /// errno of the first I/O that failed; zero when none did.
    pub first_error: i32,
    /// How many trims its blocks lasted, if it trims and that is recorded (`block_error_percentiles`).
    pub blocks: Option<BlockLifetimes>,
    /// How late operations of a trace were issued, from their times in it; `None` without a replay in its own time.
    pub replay_lateness: Option<Latency>,
    /// What is counted of jobs ([`Count`](crate::Count)).
    pub counts: Counts,
}

/// Whether there was a sync after each of this many writes (`fsync=1`, `fdatasync=1`), which are then judged together: a
/// write that waits for memory alone is not what its caller waits for. The last one of each of the `workers` may not have
/// been synced when its time ended.
pub fn syncs_each_write(writes: u64, syncs: u64, workers: u64) -> bool {
    writes > 1 && syncs.saturating_add(workers) >= writes && syncs >= writes / 2
}

impl JobStats {
    /// Whether this many workers synced after each of their writes.
    pub fn syncs_each_write(&self, workers: u32) -> bool {
        syncs_each_write(self.directions[1].ios, self.sync.latency.running.count, u64::from(workers))
    }

    /// The latency of each write together with its sync, if each has one; else `None`.
    pub fn synced_writes(&self, workers: u32) -> Option<Latency> {
        let both = || self.directions[1].completion.followed_by(&self.sync.latency);
        self.syncs_each_write(workers).then(both)
    }

    /// Adds those of another job that ran concurrently.
    ///
    /// Which of two jobs failed first is not known, so the smaller errno is kept.
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
            blocks,
            replay_lateness,
            counts,
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
        self.counts.merge(counts);
        if let Some(lateness) = replay_lateness {
            self.replay_lateness.get_or_insert_default().merge(lateness);
        }
        if let Some(blocks) = blocks {
            self.blocks.get_or_insert_default().merge(blocks);
        }
    }

    /// All directions as one: what `unified_rw_reporting=mixed` shows.
    pub fn mixed(&self) -> DirectionStats {
        let mut all = DirectionStats::default();
        self.directions.iter().for_each(|direction| all.merge(direction));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of this priority with these completion latencies.
    fn job(priority: u16, latencies_ns: &[u64]) -> DirectionStats {
        let mut stats =
            DirectionStats { priority, ios: latencies_ns.len() as u64, ..DirectionStats::default() };
        latencies_ns.iter().for_each(|latency_ns| {
            stats.completion.record(*latency_ns);
        });
        stats
    }

    #[test]
    fn jobs_of_different_priorities_are_merged_by_priority() {
        let counts = |jobs: &[DirectionStats]| {
            let mut sum = DirectionStats::default();
            jobs.iter().for_each(|job| sum.merge(job));
            let entry = |each: &PriorityLatency| (each.parts(), each.latency.running.count);
            sum.priorities.iter().map(entry).collect::<Vec<_>>()
        };
        let (best, real) = (2 << 13 | 5 << 3 | 4, 1 << 13);
        assert_eq!(counts(&[job(best, &[1, 2]), job(best, &[3])]), []);
        assert_eq!(counts(&[job(best, &[1, 2]), job(0, &[])]), [], "one that did no I/O has none");
        let different = [job(best, &[1, 2]), job(real, &[3]), job(best, &[4])];
        assert_eq!(counts(&different), [((2, 4, 5), 3), ((1, 0, 0), 1)]);
    }
}
