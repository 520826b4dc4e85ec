//! `sprandom`: preconditioning of a flash drive, and what it excludes.
//!
//! Invariant: a job with `sprandom` writes one file at random, in blocks of one length; anything else is refused.

use fiord_options::job;
use fiord_options::job::JobOptions;
use fiord_options::value::{RandomGenerator, RwKind, ZoneMode};
use fiord_options::{Problem, ProblemKind};

use super::blocks::block_sizes;
use super::section::ResolvedSection;
use super::targets::Targets;
use crate::access::{Access, Direction, RandomDistribution, Sprandom};
use crate::files::Files;

/// The plan of a job's preconditioning, if it is one.
pub(super) fn sprandom(options: &JobOptions) -> Option<Sprandom> {
    let block_bytes = block_sizes(options)[Direction::Write.index()].min().max(1);
    options.access.sprandom.then(|| Sprandom {
        regions: options.access.spr_num_regions.max(1),
        over_provisioning: options.access.spr_op.0.first().copied().unwrap_or(0.0).max(0.0),
        cache_blocks: options.access.spr_cs.0.div_ceil(block_bytes),
    })
}

/// The bytes of a loop: as many as the drive has physically, unless `io_size` says otherwise.
pub(super) fn loop_bytes(section: &ResolvedSection<'_>, access: &Access, targets: &Targets) -> u64 {
    match &access.sprandom {
        Some(plan) if !section.is_given(job::Amount::io_size) => {
            let block_bytes = access.block_sizes[Direction::Write.index()].min().max(1);
            plan.writes(targets.pass_bytes / block_bytes).saturating_mul(block_bytes)
        }
        _ => targets.loop_bytes,
    }
}

/// A rule.
pub(super) fn sprandom_is_one_random_write(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    if !options.access.sprandom {
        return None;
    }
    let sizes = &block_sizes(options)[Direction::Write.index()];
    let is_uniform =
        super::zones::distributions(options).iter().all(|one| *one == RandomDistribution::Uniform);
    let (option, what) = if options.access.rw.kind != RwKind::RandWrite {
        (job::Access::rw, "rw=randwrite")
    } else if sizes.min() != sizes.max() {
        (job::Blocks::bs, "blocks of one length")
    } else if options.files.nrfiles > 1 {
        (job::Files::nrfiles, "one file")
    } else if options.files.zonemode != ZoneMode::None {
        (job::Files::zonemode, "no zones")
    } else if !is_uniform {
        (job::Access::random_distribution, "random_distribution=random")
    } else if section.is_given(job::Verification::verify) {
        (
            job::Verification::verify,
            "no verification, because blocks are written more than once in an order of its own",
        )
    } else if section.is_given(job::Replay::read_iolog) {
        (job::Replay::read_iolog, "no trace")
    } else if section.is_given(job::Access::norandommap) && !options.access.norandommap.0 {
        (job::Access::norandommap, "norandommap=1, which it sets by itself: it writes blocks more than once")
    } else {
        return None;
    };
    Some(section.error(
        ProblemKind::Conflict,
        option,
        format!("sprandom needs {what}"),
        "change it, or leave out sprandom",
    ))
}

/// Blocks of a region, at least: shares of a region to be written again differ by percents.
const REGION_BLOCKS_MIN: u64 = 32;

/// What of a job's files does not suit its preconditioning.
pub(super) fn unsuited_files(
    section: &ResolvedSection<'_>,
    access: &Access,
    files: &Files,
) -> Option<Problem> {
    let plan = access.sprandom.as_ref()?;
    if files.list.len() > 1 {
        let message = format!("sprandom needs one file, and this job has {}", files.list.len());
        let remedy = "one job for each file or device";
        return Some(section.error(ProblemKind::Conflict, job::Files::filename, message, remedy));
    }
    let block_bytes = access.block_sizes[Direction::Write.index()].min().max(1);
    let blocks = files.list.first()?.length_bytes / block_bytes;
    let region_blocks = blocks / u64::from(plan.regions);
    let is_given = section.is_given(job::Access::spr_num_regions) && plan.regions > 1;
    let (option, message, remedy) = if is_given && region_blocks < REGION_BLOCKS_MIN {
        let message = format!(
            "{} regions of {blocks} blocks have {region_blocks} each, fewer than {REGION_BLOCKS_MIN}",
            plan.regions
        );
        let most = (blocks / REGION_BLOCKS_MIN).max(1);
        (job::Access::spr_num_regions, message, format!("at most spr_num_regions={most}, or a larger size"))
    } else if plan.cache_blocks >= blocks {
        let message = format!(
            "a cache of {} blocks holds all {blocks} of the file, so that the drive would write none of them twice",
            plan.cache_blocks
        );
        (job::Access::spr_cs, message, "spr_cs=, as the maker of the drive says, below size".to_string())
    } else {
        return None;
    };
    Some(section.error(ProblemKind::InvalidValue, option, message, remedy))
}

/// A rule, as in fio.
pub(super) fn sprandom_has_its_generator(section: &ResolvedSection<'_>) -> Option<Problem> {
    let access = &section.options.access;
    let is_other =
        section.is_given(job::Access::random_generator) && access.random_generator != RandomGenerator::Lfsr;
    (access.sprandom && is_other).then(|| {
        let message = "sprandom needs random_generator=lfsr, which it sets by itself";
        section.error(
            ProblemKind::Conflict,
            job::Access::random_generator,
            message,
            "leave out random_generator",
        )
    })
}

/// A rule.
pub(super) fn sprandom_knows_the_spare_flash(section: &ResolvedSection<'_>) -> Option<Problem> {
    let access = &section.options.access;
    let has_one =
        matches!(access.spr_op.0[..], [share] if share.is_finite() && (0.0..=100.0).contains(&share));
    (access.sprandom && !has_one).then(|| {
        let message = "spr_op is one share of the logical size, from 0 to 100";
        section.error(
            ProblemKind::InvalidValue,
            job::Access::spr_op,
            message,
            "for example spr_op=0.15 for 15 %",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_writes_as_much_as_the_drive_has_physically() {
        let plan = |over_provisioning| Sprandom { regions: 100, over_provisioning, cache_blocks: 0 };
        assert_eq!([0.0, 0.15, 1.0].map(|share| plan(share).writes(1000)), [1000, 1150, 2000]);
    }
}
