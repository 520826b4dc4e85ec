//! How fast a job may go: rates and think time.
//!
//! Invariant: a rate of nothing is no limit, as in fio.

use fiord_options::job::{self, JobOptions};
use fiord_options::value::{Bytes, RateArrivals, RateProcess, ThinktimeBlocksType};
use fiord_options::{Problem, ProblemKind};

use super::queue;
use super::section::ResolvedSection;
use crate::access::{Direction, PerDirection};
use crate::engine::Cycle;
use crate::facts::Facts;
use crate::job::Job;
use crate::pace::{Flow, LatencyTarget, Pace, Think};

/// The limits of one worker.
pub(crate) fn pace(section: &ResolvedSection<'_>) -> Pace {
    if let Some(cycle) = queue::engine(section).and_then(|engine| engine.cycle()) {
        return between_cycles(section, cycle);
    }
    let options = section.options;
    let bytes = |rate: &fiord_options::value::PerDirection<Bytes>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(|Bytes(bytes)| bytes)))
    };
    let ios = |rate: &fiord_options::value::PerDirection<u32>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(u64::from)))
    };
    Pace {
        bytes_per_s: bytes(&options.pace.rate),
        ios_per_s: ios(&options.pace.rate_iops),
        min_bytes_per_s: bytes(&options.pace.rate_min),
        min_ios_per_s: ios(&options.pace.rate_iops_min),
        cycle_ms: u64::from(options.pace.rate_cycle),
        poisson: options.pace.rate_process == RateProcess::Poisson,
        open: options.pace.rate_arrivals == RateArrivals::Open,
        ignore_think_time: options.pace.rate_ignore_thinktime,
        think: think(section),
        flow: flow(section),
        wakes_early: false,
    }
}

/// The pace of a job whose I/Os are cycles of other work: their pauses, and no rate, as in fio.
fn between_cycles(section: &ResolvedSection<'_>, cycle: Cycle) -> Pace {
    let think = Think {
        pause_us: cycle.pause_us,
        spin_us: 0,
        cycles: 0,
        every_ios: 1,
        count_issued: false,
        io_time_us: 0,
    };
    Pace {
        bytes_per_s: [None; 3],
        ios_per_s: [None; 3],
        min_bytes_per_s: [None; 3],
        min_ios_per_s: [None; 3],
        cycle_ms: u64::from(section.options.pace.rate_cycle),
        poisson: false,
        open: false,
        ignore_think_time: false,
        think: (cycle.pause_us > 0).then_some(think),
        flow: flow(section),
        wakes_early: false,
    }
}

/// Lets jobs that issue I/Os at given times wake early, if no more jobs are planned than there are processors.
pub(crate) fn wake_early(jobs: &mut [Job], facts: &Facts) {
    if jobs.len() > facts.cpus_online.len() {
        return;
    }
    for job in jobs {
        let is_timed_replay = job.replay.as_ref().is_some_and(|replay| !replay.trace.transform.no_stall);
        job.pace.wakes_early = is_timed_replay || job.pace.has_rates();
    }
}

/// The share of a flow, if the job has a weight.
fn flow(section: &ResolvedSection<'_>) -> Option<Flow> {
    let options = &section.options.process;
    let (weight, id, sleep_us) = (options.flow, options.flow_id, options.flow_sleep);
    (weight > 0).then_some(Flow { id, weight, sleep_us })
}

/// The latency that the queue depth is adjusted to.
pub(crate) fn latency_target(section: &ResolvedSection<'_>) -> Option<LatencyTarget> {
    let options = section.options;
    let target_ns = options.pace.latency_target.us.saturating_mul(1000);
    (target_ns > 0).then(|| LatencyTarget {
        target_ns,
        window_ns: options.pace.latency_window.us.saturating_mul(1000),
        percentile: options.pace.latency_percentile.0.first().copied().unwrap_or(100.0),
        continues: options.pace.latency_run,
    })
}

/// Whether the I/Os of a direction have intended starts, by a rate.
pub(crate) fn has_rate(options: &JobOptions, direction: Direction) -> bool {
    let (rate, rate_iops) = (&options.pace.rate, &options.pace.rate_iops);
    let bytes = [rate.read, rate.write, rate.trim][direction.index()].is_some_and(|rate| rate.0 > 0);
    bytes || [rate_iops.read, rate_iops.write, rate_iops.trim][direction.index()].is_some_and(|rate| rate > 0)
}

/// Without a clock no I/O has a latency.
pub(crate) fn latency_target_needs_a_clock(section: &ResolvedSection<'_>) -> Option<Problem> {
    (latency_target(section).is_some() && section.options.time.gtod_reduce).then(|| {
        let message = "latencies are not measured, so no depth can be found for one";
        let option = job::Pace::latency_target;
        section.error(ProblemKind::Conflict, option, message, "leave out gtod_reduce")
    })
}

fn limits(rates: PerDirection<Option<u64>>) -> PerDirection<Option<u64>> {
    rates.map(|rate| rate.filter(|rate| *rate > 0))
}

/// The pauses, if there are any: the other think options do nothing without `thinktime`.
fn think(section: &ResolvedSection<'_>) -> Option<Think> {
    let options = section.options;
    let io_time_us = options.pace.thinktime_iotime.us;
    let counts_ios = io_time_us == 0 || section.is_given(job::Pace::thinktime_blocks);
    (options.pace.thinktime.us > 0).then(|| Think {
        pause_us: options.pace.thinktime.us,
        spin_us: options.pace.thinktime_spin.us.min(options.pace.thinktime.us),
        cycles: u64::from(options.pace.thinkcycles),
        every_ios: if counts_ios { options.pace.thinktime_blocks.max(1) } else { 0 },
        count_issued: options.pace.thinktime_blocks_type == ThinktimeBlocksType::Issue,
        io_time_us,
    })
}
