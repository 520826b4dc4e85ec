//! Rules about rates and think time.
//!
//! Invariant: a rate of 0 is none.

use fiord_options::value::{PerDirection, RateProcess};
use fiord_options::{Problem, ProblemKind, job};

use crate::build::blocks::block_sizes;
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

/// fio turns `rate_iops` into bytes by the smallest block, so that larger ones come more rarely than it says.
pub(super) fn rate_iops_counts_smallest_blocks(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let sizes = block_sizes(options);
    let limited = directions(&options.pace.rate_iops, |rate| u64::from(*rate));
    let linear = options.pace.rate_process == RateProcess::Linear;
    let direction = (0..3).find(|d| linear && limited[*d] > 0 && sizes[*d].min() < sizes[*d].max())?;
    let (ios, bytes) = (limited[direction], sizes[direction].min());
    let message = format!(
        "with several block sizes, the limit is {ios} of the smallest blocks per second: {} bytes",
        ios * bytes
    );
    Some(
        section
            .error(
                ProblemKind::ReadDifferently,
                job::Pace::rate_iops,
                message,
                "rate_process=poisson counts I/Os of any size; rate= counts bytes",
            )
            .as_warning(),
    )
}

pub(super) fn spin_is_part_of_thinktime(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.pace.thinktime.us > 0 && options.pace.thinktime_spin.us > options.pace.thinktime.us).then(|| {
        let message = "spinning longer than the think time itself; the whole think time is spun";
        section.error(ProblemKind::Adjusted, job::Pace::thinktime_spin, message, "").as_warning()
    })
}

pub(super) fn thinktime_options_need_thinktime(section: &ResolvedSection<'_>) -> Option<Problem> {
    if section.options.pace.thinktime.us > 0 {
        return None;
    }
    let companions = [
        job::Pace::thinktime_spin,
        job::Pace::thinktime_blocks,
        job::Pace::thinktime_blocks_type,
        job::Pace::thinktime_iotime,
        job::Pace::thinkcycles,
    ];
    let given = companions.into_iter().find(|option| section.is_given(option))?;
    Some(
        section
            .error(
                ProblemKind::NoEffect,
                given,
                format!("{} has no effect without thinktime", given.name),
                "for example thinktime=1ms",
            )
            .as_warning(),
    )
}

fn directions<T>(values: &PerDirection<T>, number: impl Fn(&T) -> u64) -> [u64; 3] {
    [&values.read, &values.write, &values.trim].map(|value| value.as_ref().map_or(0, &number))
}
