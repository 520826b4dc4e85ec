//! The progress of a run: the data of the live status line.
//!
//! Invariant: computed from the live counters alone; reading them never slows a worker down.

use fiord_plan::Job;
use fiord_sys::clock;

use crate::live::{Counters, State};
use crate::run_state::RunState;

/// The state of one worker at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkerView<'a> {
    /// Its plan.
    pub job: &'a Job,
    /// Its stage: a stage starts when all workers of the one before have ended.
    pub stage: usize,
    /// Its lifecycle state.
    pub state: State,
    /// Its totals so far, including the ramp.
    pub counters: Counters,
    /// Files it has open.
    pub files_open: u32,
    /// Share of its work that is done, 0..=1, if known.
    pub done: Option<f64>,
    /// Seconds it still needs, if known.
    pub left_s: Option<f64>,
}

/// The state of a run at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct View<'a> {
    /// Time since the first stage was released; 0 before.
    pub elapsed_ns: u64,
    /// All workers.
    pub workers: Vec<WorkerView<'a>>,
}

impl View<'_> {
    /// Seconds until the last worker is done, stage by stage; `None` while unknown.
    pub fn left_s(&self) -> Option<f64> {
        let stages = self.workers.chunk_by(|one, next| one.stage == next.stage);
        stages.map(left_of_stage_s).try_fold(0.0, |sum, left_s| Some(sum + left_s?))
    }

    /// Share of the run that is done, 0..=1, by time; `None` while unknown.
    pub fn done(&self) -> Option<f64> {
        let elapsed_s = self.elapsed_ns as f64 / 1e9;
        let left_s = self.left_s()?;
        Some(if elapsed_s + left_s > 0.0 { elapsed_s / (elapsed_s + left_s) } else { 0.0 })
    }
}

/// Seconds until the last of these workers is done.
fn left_of_stage_s(workers: &[WorkerView<'_>]) -> Option<f64> {
    let running = workers.iter().filter(|worker| !worker.state.is_over());
    running.map(|worker| worker.left_s).try_fold(0.0_f64, |most, left| left.map(|left| most.max(left)))
}

/// The current state of all workers.
pub(crate) fn look(shared: &RunState) -> View<'_> {
    let now_ns = clock::monotonic_ns();
    let mut stage = 0;
    let workers = shared.plan.jobs.iter().zip(&shared.live).map(|(job, live)| {
        while shared.stages[stage].end <= job.number as usize {
            stage += 1;
        }
        let measured_ns = match live.measured_since_ns() {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        let counters = live.counters();
        let (done, left_s) = estimate(job, &counters, measured_ns);
        WorkerView { job, stage, state: live.state(), counters, files_open: live.files_open(), done, left_s }
    });
    View { elapsed_ns: shared.released_for_ns(now_ns), workers: workers.collect() }
}

/// Share done and seconds left of one job that has done `counters` in `measured_ns`.
fn estimate(job: &Job, counters: &Counters, measured_ns: u64) -> (Option<f64>, Option<f64>) {
    let elapsed_s = measured_ns as f64 / 1e9;
    let before_ns = job.schedule.start_delay_ns.0 + job.limits.ramp_ns;
    let ramp_s = if measured_ns == 0 { before_ns as f64 / 1e9 } else { 0.0 };
    let by_time = job.limits.runtime_ns.map(|limit_ns| {
        let limit_s = limit_ns as f64 / 1e9;
        ((elapsed_s / limit_s).min(1.0), (limit_s - elapsed_s).max(0.0) + ramp_s)
    });
    let by_size = by_size(job, counters).filter(|_| !job.limits.time_based).map(|share| {
        let left_s = if share > 0.0 && measured_ns > 0 { Some(elapsed_s / share - elapsed_s) } else { None };
        (share, left_s)
    });
    match (by_time, by_size) {
        (Some((share, left_s)), None) => (Some(share), Some(left_s)),
        (None, Some((share, left_s))) => (Some(share), left_s),
        (Some((time_share, time_left)), Some((share, left_s))) => {
            (Some(time_share.max(share)), Some(left_s.map_or(time_left, |left| left.min(time_left))))
        }
        (None, None) => (None, None),
    }
}

fn by_size(job: &Job, counters: &Counters) -> Option<f64> {
    let total_bytes =
        job.limits.loop_bytes.checked_mul(job.limits.loops.max(1)).filter(|bytes| *bytes > 0)?;
    let by_bytes = counters.bytes.iter().sum::<u64>() as f64 / total_bytes as f64;
    let by_ios =
        job.limits.number_ios.map_or(0.0, |ios| counters.ios.iter().sum::<u64>() as f64 / ios.max(1) as f64);
    Some(by_bytes.max(by_ios).clamp(0.0, 1.0))
}
