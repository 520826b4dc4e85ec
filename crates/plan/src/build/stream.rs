//! The stream of operations: directions, order, mixes, seeds and barriers.
//!
//! Invariant: two workers of a run never share a seed, and a worker has the same one in every run unless its job
//! asks not to be repeatable.

use fiord_options::job;
use fiord_options::job::JobOptions;
use fiord_options::value::{self, Bytes, RandomGenerator, RwKind, Skew};
use fiord_options::{Problem, ProblemKind};

use super::blocks::block_sizes;
use super::schedule::is_time_based;
use super::section::ResolvedSection;
use super::{sprandom, zoned, zones};
use crate::access::{Access, Barriers, Direction, FileService, Pattern, PerDirection, Sequencer};
use crate::facts::RunSettings;
use crate::seed;

/// Which directions a mode has.
pub(crate) fn pattern(kind: RwKind) -> Pattern {
    match kind {
        RwKind::Read | RwKind::RandRead => Pattern::Only(Direction::Read),
        RwKind::Write | RwKind::RandWrite => Pattern::Only(Direction::Write),
        RwKind::Trim | RwKind::RandTrim => Pattern::Only(Direction::Trim),
        RwKind::ReadWrite | RwKind::RandReadWrite => Pattern::Mixed,
        RwKind::TrimWrite | RwKind::RandTrimWrite => Pattern::TrimThenWrite,
    }
}

/// Everything about the stream but for the files.
pub(crate) fn access(
    section: &ResolvedSection<'_>,
    number: u32,
    run: &RunSettings,
    notes: &mut Vec<Problem>,
) -> Access {
    let options = section.options;
    let mode = options.access.rw;
    let random = mode.kind.is_random();
    let block_sizes = block_sizes(options);
    let aligned = [options.blocks.ba.read, options.blocks.ba.write, options.blocks.ba.trim];
    let given_align = aligned.iter().any(Option::is_some);
    if random && given_align && !options.access.norandommap.0 {
        notes.push(
            section
                .error(
                    ProblemKind::NoEffect,
                    job::Blocks::ba,
                    "blocks are drawn without a map, so some repeat and some are missed",
                    "",
                )
                .as_warning(),
        );
    }
    let align_bytes =
        [0, 1, 2].map(|index| aligned[index].map_or(block_sizes[index].min(), |Bytes(bytes)| bytes.max(1)));
    Access {
        pattern: pattern(mode.kind),
        random,
        stride_bytes: mode.skip_bytes,
        ios_per_draw: mode.ios_per_offset.max(1),
        sequencer: sequencer(options.access.rw_sequencer),
        percent_random: percent_random(options),
        read_percent: read_percent(section),
        distribution: zones::distributions(options),
        strided: zones::strided(options, pattern(mode.kind), &block_sizes),
        zoned: zoned::zoned(section),
        sprandom: sprandom::sprandom(options),
        trim_ranges: options.access.num_range.max(1),
        full_coverage: !options.access.norandommap.0 && !given_align,
        soft_map: options.access.softrandommap,
        covers_single_size: options.access.random_generator == RandomGenerator::Lfsr && !given_align,
        block_sizes,
        unaligned_sizes: options.blocks.bs_unaligned.0,
        sizes_by_order: options.blocks.bs_is_seq_rand,
        align_bytes,
        seed: worker_seed(section, number, run),
        repeat_order: repeats_order(options),
        service: service(&options.files.file_service_type),
        barriers: barriers(options),
    }
}

/// The seed of a worker's random numbers: repeatable with `randrepeat`, or if a seed was given.
fn worker_seed(section: &ResolvedSection<'_>, number: u32, run: &RunSettings) -> u64 {
    let options = section.options;
    let repeatable = options.access.randrepeat || section.is_given(job::Access::randseed);
    let base = if repeatable { options.access.randseed } else { options.access.randseed ^ run.entropy };
    seed::mix(base, u64::from(number))
}

/// Passes of `loops` and `io_size` repeat their order as in fio; those of `time_based` continue the random sequence.
fn repeats_order(options: &JobOptions) -> bool {
    options.access.randrepeat && !is_time_based(options)
}

/// Share of reads. When both shares are given and are not each other's rest, the later one counts.
fn read_percent(section: &ResolvedSection<'_>) -> u8 {
    let options = section.options;
    let last = section.given.last_of(&[job::Access::rwmixread, job::Access::rwmixwrite]);
    let percent = match last == Some(job::Access::rwmixwrite) {
        true => 100 - options.access.rwmixwrite.min(100),
        false => options.access.rwmixread.min(100),
    };
    percent.min(100) as u8
}

fn percent_random(options: &JobOptions) -> PerDirection<u8> {
    let shares = &options.access.percentage_random;
    [shares.read, shares.write, shares.trim].map(|share| share.map_or(100, |percent| percent.min(100) as u8))
}

fn sequencer(word: value::RwSequencer) -> Sequencer {
    match word {
        value::RwSequencer::Sequential => Sequencer::Sequential,
        value::RwSequencer::Identical => Sequencer::Identical,
    }
}

fn service(wanted: &value::FileService) -> FileService {
    match *wanted {
        value::FileService::RoundRobin { ios } => FileService::RoundRobin { every: ios },
        value::FileService::Random { ios } => FileService::Random { every: ios },
        value::FileService::Sequential { .. } => FileService::Sequential,
        value::FileService::Skewed(Skew::Zipf { theta, center }) => {
            FileService::Zipf { theta, centre: center.unwrap_or(0.0) }
        }
        value::FileService::Skewed(Skew::Pareto { power, center }) => {
            FileService::Pareto { power, centre: center.unwrap_or(0.0) }
        }
        value::FileService::Skewed(Skew::Normal { deviation_percent: deviation, center }) => {
            FileService::Normal { deviation, centre: center.unwrap_or(0.5) }
        }
    }
}

/// Bits of `sync_file_range(2)`, as the kernel has them.
const WAIT_BEFORE: u8 = 1;
const WRITE: u8 = 2;
const WAIT_AFTER: u8 = 4;

fn barriers(options: &JobOptions) -> Barriers {
    let (mut range_every, mut range_flags) = (0, 0);
    if let Some(range) = &options.access.sync_file_range {
        range_every = range.every_writes;
        for (wanted, bit) in
            [(range.wait_before, WAIT_BEFORE), (range.write, WRITE), (range.wait_after, WAIT_AFTER)]
        {
            range_flags |= if wanted { bit } else { 0 };
        }
    }
    Barriers {
        fsync_every: options.access.fsync,
        fdatasync_every: options.access.fdatasync,
        range_every,
        range_flags,
    }
}
