//! Rules about rates and think time.
//!
//! Invariant: a rate of 0 is none.

use fiord_options::value::PerDirection;
use fiord_options::{Problem, ProblemKind, job};

use crate::build::section::ResolvedSection;

pub(super) fn rate_excludes_rate_iops(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let bytes = directions(&options.pace.rate, |rate| rate.0);
    let ios = directions(&options.pace.rate_iops, |rate| u64::from(*rate));
    (bytes.iter().zip(ios).any(|(bytes, ios)| *bytes > 0 && ios > 0)).then(|| {
        let message = "rate and rate_iops are mutually exclusive";
        section.error(ProblemKind::Conflict, job::Pace::rate_iops, message, "give one of them")
    })
}

pub(super) fn rate_min_is_below_rate(section: &ResolvedSection<'_>) -> Option<Problem> {
    let rate = directions(&section.options.pace.rate, |rate| rate.0);
    let least = directions(&section.options.pace.rate_min, |rate| rate.0);
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        section.error(
            ProblemKind::Conflict,
            job::Pace::rate_min,
            "the minimum rate exceeds the rate",
            "lower rate_min or raise rate",
        )
    })
}

pub(super) fn rate_iops_min_is_below_rate_iops(section: &ResolvedSection<'_>) -> Option<Problem> {
    let rate = directions(&section.options.pace.rate_iops, |rate| u64::from(*rate));
    let least = directions(&section.options.pace.rate_iops_min, |rate| u64::from(*rate));
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        let message = "the minimum rate exceeds the rate";
        section.error(
            ProblemKind::Conflict,
            job::Pace::rate_iops_min,
            message,
            "lower rate_iops_min or raise rate_iops",
        )
    })
}

pub(super) fn spin_is_part_of_thinktime(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.pace.thinktime.us > 0 && options.pace.thinktime_spin.us > options.pace.thinktime.us).then(|| {
        let message = "spinning longer than the think time itself; the whole think time is spun";
        section.error(ProblemKind::Adjusted, job::Pace::thinktime_spin, message, "").as_warning()
    })
}

fn directions<T>(values: &PerDirection<T>, number: impl Fn(&T) -> u64) -> [u64; 3] {
    [&values.read, &values.write, &values.trim].map(|value| value.as_ref().map_or(0, &number))
}
