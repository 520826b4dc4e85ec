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

/// More files than the order is over.
pub(super) fn needs_one_file(section: &ResolvedSection<'_>, files: &Files) -> Option<Problem> {
    (section.options.access.sprandom && files.list.len() > 1).then(|| {
        let message = format!("sprandom needs one file, and this job has {}", files.list.len());
        section.error(ProblemKind::Conflict, job::Files::filename, message, "one job for each file or device")
    })
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
