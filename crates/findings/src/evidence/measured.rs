//! What was measured and counted during a run, as values.
//!
//! Invariant: there is an entry for each job of the plan, in its order.

use fiord_host::{DeviceUse, GpuWays, Health, HostReading, PageCacheUse};
use fiord_plan::{Job, Plan};
use fiord_stats::{JobStats, ProgressSample, RampEnd, RunSteadiness};

use super::suspended::Suspension;
use crate::own_cost::OwnCost;
use crate::subject;

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// It had done all its I/O.
    BySize,
    /// Its run time was over, or something else stopped it.
    #[default]
    Otherwise,
    /// It failed, or was never started.
    Failed,
    /// It has not: it goes on.
    NotYet,
}

/// What one job did.
#[derive(Clone, Copy, Debug)]
pub struct JobEvidence<'a> {
    /// Whether its ramp was over when it ended.
    pub ramp: RampEnd,
    /// How it ended.
    pub ended: Ended,
    /// What it measured.
    pub stats: &'a JobStats,
    /// When its I/O began, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it did I/O, in milliseconds.
    pub elapsed_ms: u64,
}

/// What was measured and counted during a run.
#[derive(Clone, Copy, Debug)]
pub struct Measurements<'a> {
    /// An entry for each job of the plan, in its order.
    pub jobs: &'a [JobEvidence<'a>],
    /// The devices below the files, with their counters at both ends.
    pub devices: &'a [DeviceUse],
    /// Whether files are on storage of which nothing is seen: no device, no memory, no server.
    pub is_hidden: bool,
    /// What the page cache held of files that are read and written past it.
    pub page_cache: &'a [PageCacheUse],
    /// The machine when the run began, about once per second, and when it ended; empty if it was not looked at.
    pub host: &'a [HostReading],
    /// The run over time, a few times per second.
    pub samples: &'a [ProgressSample],
    /// How steady it was, if that can be judged ([`crate::steadiness`]).
    pub steadiness: Option<&'a RunSteadiness>,
    /// For how long the run was suspended, if it was.
    pub suspension: Option<Suspension>,
    /// The health of the disks below the files at both ends, where they say it.
    pub health: (&'a [Health], &'a [Health]),
    /// fiord's own cost on this machine, where it was calibrated.
    pub own_cost: Option<&'a OwnCost>,
    /// The steps of the processor's counter in nanoseconds, if they are longer than one.
    pub counter_step_ns: Option<f64>,
    /// The ways to memory of GPUs, if cuFile was used.
    pub gpu_ways: Option<GpuWays>,
}

/// Parts of a run that are shorter than this are not judged by themselves, in nanoseconds.
const PART_MIN_NS: u64 = 500_000_000;

impl<'a> Measurements<'a> {
    /// The machine when the run began and when it ended, if both are known.
    pub(super) fn ends(&self) -> Option<(&'a HostReading, &'a HostReading)> {
        let [start, .., end] = self.host else { return None };
        Some((start, end))
    }

    /// For how long something held, by two readings in succession, and how long all of them took, in seconds.
    pub(super) fn seconds_when(&self, holds: impl Fn(&HostReading, &HostReading) -> bool) -> (f64, f64) {
        let parts = self.host.windows(2).filter_map(|pair| {
            let [earlier, later] = pair else { return None };
            let elapsed_ns = later.taken_ns.saturating_sub(earlier.taken_ns);
            (elapsed_ns >= PART_MIN_NS).then(|| (elapsed_ns as f64 / 1e9, holds(earlier, later)))
        });
        parts.fold((0.0, 0.0), |(some_s, all_s), (elapsed_s, holds)| {
            (some_s + if holds { elapsed_s } else { 0.0 }, all_s + elapsed_s)
        })
    }

    /// Each job with what it did, of those that did not fail: the figures of the others are not what they were to measure.
    pub(super) fn sound(
        &self,
        plan: &'a Plan,
    ) -> impl Iterator<Item = (&'a Job, &'a JobEvidence<'a>)> + Clone {
        plan.jobs.iter().zip(self.jobs).filter(|(_, known)| known.ended != Ended::Failed)
    }

    /// The same of those that do I/O.
    pub(super) fn working(
        &self,
        plan: &'a Plan,
    ) -> impl Iterator<Item = (&'a Job, &'a JobEvidence<'a>)> + Clone {
        self.sound(plan).filter(|(job, _)| subject::does_io(job))
    }
}
