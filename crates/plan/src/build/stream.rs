//! The stream of operations: directions, order, mixes, seeds and barriers.
//!
//! Invariant: two workers of a run never share a seed, and a worker has the same one in every run unless its job
//! asks not to be repeatable.

use fiord_options::Problem;
use fiord_options::job::JobOptions;
use fiord_options::value::{self, Bytes, RandomGenerator, RwKind};

use super::blocks::block_sizes;
use super::schedule::is_time_based;
use super::source::{Source, last_given};
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
    source: &Source<'_>,
    number: u32,
    run: &RunSettings,
    notes: &mut Vec<Problem>,
) -> Access {
    let options = source.options;
    let mode = options.rw;
    let random = mode.kind.is_random();
    let block_sizes = block_sizes(options);
    let aligned = [options.ba.read, options.ba.write, options.ba.trim];
    let given_align = aligned.iter().any(Option::is_some);
    if random && given_align && !options.norandommap.0 {
        notes.push(source.warning(
            "ba",
            "blocks are drawn without a map, so some repeat and some are missed",
            "",
        ));
    }
    let align_bytes =
        [0, 1, 2].map(|index| aligned[index].map_or(block_sizes[index].min(), |Bytes(bytes)| bytes.max(1)));
    Access {
        pattern: pattern(mode.kind),
        random,
        stride_bytes: mode.skip_bytes,
        ios_per_draw: mode.ios_per_offset.max(1),
        sequencer: sequencer(options.rw_sequencer),
        percent_random: percent_random(options),
        read_percent: read_percent(source),
        full_coverage: !options.norandommap.0 && !given_align,
        soft_map: options.softrandommap,
        covers_single_size: options.random_generator == RandomGenerator::Lfsr && !given_align,
        block_sizes,
        unaligned_sizes: options.bs_unaligned.0,
        sizes_by_order: options.bs_is_seq_rand,
        align_bytes,
        seed: worker_seed(source, number, run),
        repeat_order: repeats_order(options),
        service: service(&options.file_service_type),
        barriers: barriers(options),
    }
}

/// The seed of everything a worker draws: repeatable where `randrepeat` says so, and where a seed was given.
fn worker_seed(source: &Source<'_>, number: u32, run: &RunSettings) -> u64 {
    let options = source.options;
    let repeatable = options.randrepeat || source.is_given("randseed");
    let base = if repeatable { options.randseed } else { options.randseed ^ run.entropy };
    seed::mix(base, u64::from(number))
}

/// Passes of `loops` and `io_size` repeat their order as fio's do; those of `time_based` go on.
fn repeats_order(options: &JobOptions) -> bool {
    options.randrepeat && !is_time_based(options)
}

/// Share of reads. When both shares are given and are not each other's rest, the later one counts.
fn read_percent(source: &Source<'_>) -> u8 {
    let options = source.options;
    let percent = match last_given(source, &["rwmixread", "rwmixwrite"]) {
        Some("rwmixwrite") => 100 - options.rwmixwrite.min(100),
        _ => options.rwmixread.min(100),
    };
    percent as u8
}

fn percent_random(options: &JobOptions) -> PerDirection<u8> {
    let shares = &options.percentage_random;
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
        value::FileService::Zipf { theta, center } => {
            FileService::Zipf { theta, centre: center.unwrap_or(0.0) }
        }
        value::FileService::Pareto { power, center } => {
            FileService::Pareto { power, centre: center.unwrap_or(0.0) }
        }
        value::FileService::Normal { deviation_percent: deviation, center } => {
            FileService::Normal { deviation, centre: center.unwrap_or(0.5) }
        }
    }
}

/// Bits of `sync_file_range(2)`, as the kernel has them.
const WAIT_BEFORE: u32 = 1;
const WRITE: u32 = 2;
const WAIT_AFTER: u32 = 4;

fn barriers(options: &JobOptions) -> Barriers {
    let (mut range_every, mut range_flags) = (0, 0);
    if let Some(range) = &options.sync_file_range {
        range_every = range.every_writes;
        for (wanted, bit) in
            [(range.wait_before, WAIT_BEFORE), (range.write, WRITE), (range.wait_after, WAIT_AFTER)]
        {
            range_flags |= if wanted { bit } else { 0 };
        }
    }
    Barriers { fsync_every: options.fsync, fdatasync_every: options.fdatasync, range_every, range_flags }
}
