//! Where random I/O prefers to go, and zones that are worked on one at a time: `random_distribution`, `zonemode`.
//!
//! Invariant: zones of fixed size lie within every file of the job, and a zone holds at least one block.

use fiord_options::job::{self, JobOptions};
use fiord_options::shown::shown;
use fiord_options::value::{self, Size, Skew, ZoneMode};
use fiord_options::{Problem, ProblemKind, Spec};

use super::section::ResolvedSection;
use crate::access::{
    Access, AccessZone, BlockSizes, Direction, Pattern, PerDirection, RandomDistribution, StridedZones,
    ZoneSize,
};
use crate::files::Files;

/// The distribution of each direction.
pub(crate) fn distributions(options: &JobOptions) -> PerDirection<RandomDistribution> {
    let strides = options.access.random_sequence_stride;
    options.access.random_distribution.0.clone().map(|distribution| one(distribution, strides))
}

fn one(distribution: value::RandomDistribution, strides: bool) -> RandomDistribution {
    match distribution {
        value::RandomDistribution::Uniform => RandomDistribution::Uniform,
        value::RandomDistribution::Skewed(Skew::Zipf { theta, center }) => {
            RandomDistribution::Zipf { theta, centre: center }
        }
        value::RandomDistribution::Skewed(Skew::Pareto { power, center }) => {
            RandomDistribution::Pareto { power, centre: center }
        }
        value::RandomDistribution::Skewed(Skew::Normal { deviation_percent, center }) => {
            RandomDistribution::Normal { deviation_percent, centre: center.unwrap_or(0.5) }
        }
        value::RandomDistribution::Zoned(zones) => {
            let given: u32 = zones.iter().filter_map(|zone| zone.size_percent).map(u32::from).sum();
            let blanks = zones.iter().filter(|zone| zone.size_percent.is_none()).count();
            let blank = f64::from(100 - given.min(100)) / blanks.max(1) as f64;
            let zone = |zone: value::ZoneShare| AccessZone {
                access_percent: zone.access_percent,
                size: ZoneSize::Percent(zone.size_percent.map_or(blank, f64::from)),
            };
            RandomDistribution::Zoned(zones.into_iter().map(zone).collect())
        }
        value::RandomDistribution::ZonedAbsolute(zones) => {
            let zone = |zone: value::ZoneBytes| AccessZone {
                access_percent: zone.access_percent,
                size: ZoneSize::Bytes(zone.bytes),
            };
            RandomDistribution::Zoned(zones.into_iter().map(zone).collect())
        }
        value::RandomDistribution::Sequence(blocks) => RandomDistribution::Sequence { blocks, strides },
    }
}

/// The zones of `zonemode=strided`.
pub(crate) fn strided(
    options: &JobOptions,
    pattern: Pattern,
    sizes: &PerDirection<BlockSizes>,
) -> Option<StridedZones> {
    let files = &options.files;
    let transfer_bytes = files.zonesize.0;
    if files.zonemode != ZoneMode::Strided || transfer_bytes == 0 {
        return None;
    }
    let used = Direction::ALL.into_iter().filter(|direction| pattern.includes(*direction));
    let shortest_bytes = used.map(|direction| sizes[direction.index()].min()).max().unwrap_or(1);
    let skip_bytes = match files.zoneskip {
        Size::Bytes(bytes) => bytes,
        Size::Zones(zones) => zones.saturating_mul(transfer_bytes),
        // A rule refuses it.
        Size::Percent(_) => 0,
    };
    let zone_bytes = zone_bytes(options).max(shortest_bytes);
    Some(StridedZones { transfer_bytes, zone_bytes, skip_bytes })
}

/// `zonerange`, or `zonesize` without one.
pub(crate) fn zone_bytes(options: &JobOptions) -> u64 {
    match options.files.zonerange.0 {
        0 => options.files.zonesize.0,
        bytes => bytes,
    }
}

/// The options that may count zones (`8z`), with what the job says of each.
fn amounts(options: &JobOptions) -> [(&'static Spec, Option<Size>); 6] {
    [
        (job::Amount::size, options.amount.size),
        (job::Amount::io_size, options.amount.io_size),
        (job::Access::offset, Some(options.access.offset)),
        (job::Access::offset_increment, Some(options.access.offset_increment)),
        (job::Files::zoneskip, Some(options.files.zoneskip)),
        (job::Time::ramp_size, options.time.ramp_size),
    ]
}

/// A problem of a target whose zones have no known length, if an option counts them. fio takes such an offset for 0, and
/// such a size for the whole target.
pub(super) fn uncounted(section: &ResolvedSection<'_>) -> Option<Problem> {
    let counts = |(option, size)| match size {
        Some(Size::Zones(zones)) => Some((option, zones)),
        Some(Size::Bytes(_) | Size::Percent(_)) | None => None,
    };
    let (option, zones) = amounts(section.options).into_iter().find_map(counts)?;
    let (why, remedy) = match section.options.files.zonemode {
        ZoneMode::None => ("zonemode=none has none", "give bytes, or add zonemode= and zonesize="),
        ZoneMode::Strided | ZoneMode::Zbd => ("their length is not known", "add zonesize=, or give bytes"),
    };
    let message = format!("{}={zones}z counts zones, and {why}", option.name);
    Some(section.error(ProblemKind::Conflict, option, message, remedy))
}

/// A rule; fio's words.
pub(super) fn zonesize_goes_with_zonemode(section: &ResolvedSection<'_>) -> Option<Problem> {
    let files = &section.options.files;
    match (files.zonemode, files.zonesize.0) {
        (ZoneMode::None, 1..) => Some(section.error(
            ProblemKind::Conflict,
            job::Files::zonesize,
            "zonemode=none and zonesize are not compatible",
            "add zonemode=strided, or leave out zonesize",
        )),
        (ZoneMode::Strided, 0) => Some(section.error(
            ProblemKind::Conflict,
            job::Files::zonemode,
            "zonesize must be specified when using zonemode=strided",
            "for example zonesize=1m zonerange=1g",
        )),
        _ => None,
    }
}

/// A rule.
pub(super) fn zoneskip_is_bytes_or_zones(section: &ResolvedSection<'_>) -> Option<Problem> {
    matches!(section.options.files.zoneskip, Size::Percent(1..)).then(|| {
        section.error(
            ProblemKind::InvalidValue,
            job::Files::zoneskip,
            "a percentage has no meaning here",
            "bytes (8m), or a number of zones (2z)",
        )
    })
}

/// A rule.
pub(super) fn stride_needs_a_sequence(section: &ResolvedSection<'_>) -> Option<Problem> {
    let access = &section.options.access;
    let is_sequence = matches!(access.random_distribution.0[0], value::RandomDistribution::Sequence(_));
    (access.random_sequence_stride && !is_sequence).then(|| {
        let message = "random_sequence_stride has no effect without a sequence of blocks";
        section
            .error(
                ProblemKind::NoEffect,
                job::Access::random_sequence_stride,
                message,
                "for example random_distribution=sequence:0,2,1,3",
            )
            .as_warning()
    })
}

/// Zones of a given size that reach beyond a file.
pub(super) fn beyond_files(section: &ResolvedSection<'_>, access: &Access, files: &Files) -> Option<Problem> {
    let bytes = |zone: &AccessZone| match zone.size {
        ZoneSize::Bytes(bytes) => bytes,
        ZoneSize::Percent(_) => 0,
    };
    let used =
        Direction::ALL.into_iter().filter(|direction| access.random && access.pattern.includes(*direction));
    let reach = |direction: Direction| match &access.distribution[direction.index()] {
        RandomDistribution::Zoned(zones) => zones.iter().map(bytes).fold(0, u64::saturating_add),
        _ => 0,
    };
    let reach_bytes = used.map(reach).max().unwrap_or(0);
    let file = files.list.iter().find(|file| file.length_bytes < reach_bytes)?;
    let message = format!(
        "the zones reach {reach_bytes} bytes, beyond the {} bytes used of {}",
        file.length_bytes,
        shown(&file.path)
    );
    Some(section.error(
        ProblemKind::Extent,
        job::Access::random_distribution,
        message,
        "make the zones smaller, or the file larger",
    ))
}
