//! The steady state that ends a job.
//!
//! Invariant: there is none without a duration of at least a second, as in fio.

use fiord_options::job;
use fiord_options::value::SteadyMeasure;
use fiord_options::{Problem, ProblemKind};

use super::section::ResolvedSection;
use crate::steady::Steady;

const US_PER_S: u64 = 1_000_000;

/// The steady state of a section, if it has one.
pub(crate) fn steady(section: &ResolvedSection<'_>) -> Option<Steady> {
    let options = section.options;
    // fio counts whole seconds.
    let duration_s = options.steady.steadystate_duration.us / US_PER_S;
    (duration_s > 0).then_some(Steady {
        criterion: options.steady.steadystate,
        duration_s,
        ramp_ns: options.steady.steadystate_ramp_time.us.saturating_mul(1000),
        interval_ns: options.steady.steadystate_check_interval.us.saturating_mul(1000),
    })
}

/// A window needs a measurement, and its length is a multiple of theirs.
pub(crate) fn steady_window_holds_measurements(section: &ResolvedSection<'_>) -> Option<Problem> {
    let interval_us = section.options.steady.steadystate_check_interval.us;
    let duration_us = steady(section)?.duration_s * US_PER_S;
    (interval_us == 0 || !duration_us.is_multiple_of(interval_us)).then(|| {
        let message = format!(
            "steadystate_duration ({} s) is not a multiple of the interval between two checks",
            duration_us / US_PER_S
        );
        let option = job::Steady::steadystate_check_interval;
        section.error(ProblemKind::Conflict, option, message, "for example 1, or 500ms")
    })
}

/// A job without a clock has no latencies.
pub(crate) fn steady_latency_is_measured(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let is_of_latency = steady(section)?.criterion.measure == SteadyMeasure::Latency;
    let is_measured = !options.time.gtod_reduce && !options.measure.disable_lat;
    (is_of_latency && !is_measured).then(|| {
        let message = "the latency that is to become steady is not measured";
        let remedy = "leave out gtod_reduce and disable_lat, or use iops or bw";
        section.error(ProblemKind::Conflict, job::Steady::steadystate, message, remedy)
    })
}
