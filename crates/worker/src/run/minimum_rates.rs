//! The rule that stops a job whose rate falls below its minimum (`rate_min`, `rate_iops_min`).
//!
//! Invariant: a job is judged by whole windows of its own cycle, and by what it can do in them; the first begins when
//! its grace period is over.

use fiord_plan::{Direction, Job};
use fiord_stats::Capped;

use super::group::{GroupRule, JobTick, Stop, Tick};
use super::window::{Window, WindowStart};
use crate::live::StopReason;

/// How long a job runs before its minimum rates apply, as in fio.
const GRACE_NS: u64 = 2_000_000_000;

/// The rule for the jobs of a group.
#[derive(Debug)]
pub(super) struct MinimumRates {
    /// Per job of the group: the start of its measurement, and its window.
    windows: Vec<(u64, Option<WindowStart>)>,
    due_ns: u64,
}

impl MinimumRates {
    /// The rule for a group of these jobs; `None` if none has a minimum rate.
    pub(super) fn over(jobs: &[Job]) -> Option<MinimumRates> {
        let windows = vec![(0, None); jobs.len()];
        jobs.iter().any(has_minimum).then_some(MinimumRates { windows, due_ns: 0 })
    }
}

impl GroupRule for MinimumRates {
    fn due_ns(&self) -> u64 {
        self.due_ns
    }

    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop> {
        let mut decisions = Vec::new();
        self.due_ns = u64::MAX;
        for (one, (measured_since_ns, window_start)) in tick.jobs.iter().zip(&mut self.windows) {
            if !has_minimum(one.job) || one.state.is_over() {
                continue;
            }
            if std::mem::replace(measured_since_ns, one.measured_since_ns) != one.measured_since_ns {
                *window_start = None;
            }
            let (missed, due_ns) = look_at(one, window_start, tick.now_ns);
            self.due_ns = self.due_ns.min(due_ns);
            let stop = |why| Stop { job: one.job.number, reason: StopReason::TooSlow, complaint: Some(why) };
            decisions.extend(missed.map(stop));
        }
        decisions
    }
}

/// The minimum rates one job missed in the window that just ended, if one did, and when to check it again.
fn look_at(one: &JobTick<'_>, window_start: &mut Option<WindowStart>, now_ns: u64) -> (Option<String>, u64) {
    let cycle_ms = one.job.pace.cycle_ms.max(1);
    if !one.is_measured() {
        // Measurement may begin at any time; its first window then starts at most a tenth of a cycle late.
        return (None, now_ns + cycle_ms * 100_000);
    }
    let begins_ns = one.measured_since_ns + GRACE_NS;
    if now_ns < begins_ns {
        return (None, begins_ns);
    }
    // What the job writes while it reads back is nothing: that time is left out.
    let own_ns = now_ns.saturating_sub(one.read_back_ns);
    let window_start = window_start.get_or_insert(WindowStart { at_ns: own_ns, counters: one.counters });
    let window = window_start.advance(own_ns, &one.counters, cycle_ms);
    let missed: Vec<String> = match window {
        Some(window) => judged(one.job).filter_map(|direction| missed(one.job, direction, &window)).collect(),
        None => Vec::new(),
    };
    let left_ns = (window_start.at_ns + cycle_ms * 1_000_000).saturating_sub(own_ns);
    ((!missed.is_empty()).then(|| missed.join("; ")), now_ns + left_ns)
}

/// The directions that the job's own I/O has. One value of `rate_min` counts for all three, and a job that reads writes
/// nothing.
fn judged(job: &Job) -> impl Iterator<Item = Direction> {
    Direction::ALL.into_iter().filter(|direction| match &job.replay {
        Some(replay) => replay.directions[direction.index()],
        None => job.access.draws(*direction),
    })
}

fn has_minimum(job: &Job) -> bool {
    job.pace.min_bytes_per_s.iter().chain(&job.pace.min_ios_per_s).any(Option::is_some)
}

/// The message for a minimum rate that was missed in one direction, in fio's wording.
fn missed(job: &Job, direction: Direction, window: &Window) -> Option<String> {
    let direction = direction.index();
    let below = |least: Option<u64>, done: u64| {
        let rate = u64::capped(done as f64 / window.seconds);
        least.filter(|least| rate < *least).map(|least| (least, rate))
    };
    if let Some((least, rate)) = below(job.pace.min_bytes_per_s[direction], window.bytes[direction]) {
        return Some(format!("rate_min={least}B/s not met, got {rate}B/s"));
    }
    let (least, rate) = below(job.pace.min_ios_per_s[direction], window.ios[direction])?;
    Some(format!("rate_iops_min={least} not met, got {rate} IOPS"))
}
