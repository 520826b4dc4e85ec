//! What a job certainly writes into its files, for the space that this takes.
//!
//! Invariant: a lower bound. A job that may end early, leave holes or write a place twice counts with less, or not at all.

use std::ops::Range;

use fiord_errno::Errno;
use fiord_options::job::{self, JobOptions};
use fiord_options::value::RwKind;

use super::section::ResolvedSection;
use crate::access::{Access, BlockSizes, Direction, FileService, Pattern, RandomDistribution};
use crate::files::{FileKind, FilePlan};
use crate::job::Job;

/// What is certainly written into one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// All of these bytes.
    All(Range<u64>),
    /// As many bytes, wherever they are.
    Some(u64),
}

/// Whether a job of this section may make room for others, or end them before they have written everything.
pub(crate) fn may_spare_others(section: &ResolvedSection<'_>) -> bool {
    let JobOptions { files, process, verify, replay, access, .. } = section.options;
    let removes = files.unlink || files.unlink_each_loop || verify.trim_percentage > 0;
    let runs_commands = process.exec_prerun.is_some() || process.exec_postrun.is_some();
    let trims = match access.rw.kind {
        RwKind::Trim | RwKind::RandTrim | RwKind::TrimWrite | RwKind::RandTrimWrite => true,
        RwKind::Read | RwKind::RandRead | RwKind::Write | RwKind::RandWrite => false,
        RwKind::ReadWrite | RwKind::RandReadWrite => false,
    };
    let ends_others =
        process.exitall.0 || process.exitall_on_error.0 || section.is_given(job::Steady::steadystate);
    let does_other_work = section.engine().is_some_and(|engine| {
        engine.cycle.is_some() || engine.resizes_files() || engine.name_call().is_some()
    });
    removes || runs_commands || trims || ends_others || does_other_work || replay.read_iolog.is_some()
}

/// The files that a job certainly writes to, and how much; `counts_timed`: as if it had all the time it needs.
pub(crate) fn certainly(job: &Job, counts_timed: bool) -> Vec<(&FilePlan, Written)> {
    let list = &job.files.list;
    let writes = job.unplannable.is_none()
        && job.engine.descriptor.transfers_files()
        && list.iter().all(|file| file.kind == FileKind::Regular);
    if !writes
        || !(counts_timed || job.limits.runtime_ns.is_none())
        || !ends_by_itself(job)
        || !leaves_no_holes(&job.access)
    {
        return Vec::new();
    }
    let (limits, sizes) = (&job.limits, &job.access.block_sizes[Direction::Write.index()]);
    let fewest_bytes = |ios: u64| ios.saturating_mul(sizes.min());
    let loop_bytes = limits.loop_bytes.min(limits.number_ios.map_or(u64::MAX, fewest_bytes));
    if loop_bytes >= list.iter().map(|file| file.length_bytes).fold(0, u64::saturating_add) {
        let all = |file| (file, Written::All(range(file, whole_blocks(sizes, file.length_bytes))));
        return list.iter().map(all).collect();
    }
    // How a part is shared out among several files is not known before.
    let [file] = list.as_slice() else { return Vec::new() };
    let bytes = whole_blocks(sizes, loop_bytes);
    match job.access.random {
        true => vec![(file, Written::Some(bytes))],
        false => vec![(file, Written::All(range(file, bytes)))],
    }
}

fn range(file: &FilePlan, bytes: u64) -> Range<u64> {
    file.offset_bytes..file.offset_bytes.saturating_add(bytes)
}

/// Whether nothing but its amount of I/O, an error, or its time ends the job.
fn ends_by_itself(job: &Job) -> bool {
    let write = Direction::Write.index();
    job.latency_target.is_none()
        && job.errors.latency_ns_max[write].is_none()
        && !job.errors.passed_over[write].contains(&Errno::ENOSPC.0)
        && job.pace.flow.is_none()
        && !job.files.fill_device
        && !job.files.create_only
        && job.verification.as_ref().is_none_or(|verification| !verification.only)
}

/// Whether every block of a pass is written, each of them once.
fn leaves_no_holes(access: &Access) -> bool {
    let write = Direction::Write.index();
    let plain = access.pattern == Pattern::Only(Direction::Write)
        && access.strided.is_none()
        && access.zoned.is_none()
        && access.sprandom.is_none()
        && !access.sizes_by_order
        && matches!(access.service, FileService::RoundRobin { .. } | FileService::Sequential);
    let ordered = match access.random {
        false => access.stride_bytes == 0,
        true => {
            access.full_coverage
                && !access.soft_map
                && access.ios_per_draw == 1
                && access.percent_random[write] == 100
                && access.distribution[write] == RandomDistribution::Uniform
                && access.block_sizes[write] == BlockSizes::Fixed(access.align_bytes[write])
        }
    };
    plain && ordered
}

/// The blocks that certainly fit into a length: the last one may be too long for what is left.
fn whole_blocks(sizes: &BlockSizes, bytes: u64) -> u64 {
    match sizes {
        BlockSizes::Fixed(block) => bytes - bytes % block.max(&1),
        drawn => bytes.saturating_sub(drawn.max() - 1),
    }
}
