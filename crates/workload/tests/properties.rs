//! Properties of all jobs: every operation in range, every block once if coverage is requested, shares kept.
//!
//! Invariant: a failing case is shrunk and printed with its seed.

mod common;

use std::collections::HashMap;

use common::{Case, case, counts, direction};
use fiord_plan::{Barriers, BlockSizes, Direction, FileService, Op, Pattern, Sequencer};
use proptest::prelude::*;

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Only(Direction::Read)),
        Just(Pattern::Only(Direction::Write)),
        Just(Pattern::Mixed),
        Just(Pattern::TrimThenWrite),
    ]
}

fn sizes() -> impl Strategy<Value = BlockSizes> {
    prop_oneof![
        (1..9000_u64).prop_map(BlockSizes::Fixed),
        (1..3000_u64, 1..9000_u64).prop_map(|(min, more)| BlockSizes::Range { min, max: min + more }),
        prop::collection::vec((1..9000_u64, 1..100_u32), 1..5)
            .prop_map(|shares| BlockSizes::Split(shares.iter().map(|(b, s)| (*b, f64::from(*s))).collect())),
    ]
}

fn service() -> impl Strategy<Value = FileService> {
    prop_oneof![
        (1..4_u32).prop_map(|every| FileService::RoundRobin { every }),
        Just(FileService::Sequential),
        (1..4_u32).prop_map(|every| FileService::Random { every }),
        (0.0..=1.0).prop_map(|centre| FileService::Zipf { theta: 1.2, centre }),
        (0.0..=1.0).prop_map(|centre| FileService::Pareto { power: 0.3, centre }),
        (0.0..=1.0).prop_map(|centre| FileService::Normal { deviation: 20.0, centre }),
    ]
}

prop_compose! {
    /// A job of any kind, small enough to be run to its end.
    fn any_case()(
        pattern in pattern(),
        random in any::<bool>(),
        lengths in prop::collection::vec(0..100_000_u64, 1..5),
        sizes in [sizes(), sizes(), sizes()],
        (by_order, unaligned, full_coverage) in any::<(bool, bool, bool)>(),
        (service, open_at_once) in (service(), 0..4_u32),
        (ios_per_draw, identical) in (1..4_u32, any::<bool>()),
        percent_random in [0..=100_u8, 0..=100_u8, 0..=100_u8],
        (stride_bytes, read_percent) in (prop_oneof![Just(0), -9000..9000_i64], 0..=100_u8),
        (align_bytes, offset_bytes) in (prop_oneof![Just(0), 1..9000_u64], 0..10_000_u64),
        (seed, repeat_order, loops) in (any::<u64>(), any::<bool>(), 1..3_u64),
        (extra_bytes, number_ios) in (0..100_000_u64, prop::option::of(0..50_u64)),
        every in [0..4_u32, 0..4_u32, 0..4_u32],
    ) -> Case {
        case(pattern, random, &lengths).sizes(sizes).with(|case| {
            let access = &mut case.access;
            access.sizes_by_order = by_order;
            access.unaligned_sizes = unaligned;
            access.full_coverage = full_coverage;
            access.service = service;
            access.ios_per_draw = ios_per_draw;
            access.sequencer = if identical { Sequencer::Identical } else { Sequencer::Sequential };
            access.percent_random = percent_random;
            access.stride_bytes = stride_bytes;
            access.read_percent = read_percent;
            if align_bytes > 0 {
                access.align_bytes = [align_bytes; 3];
            }
            access.seed = seed;
            access.repeat_order = repeat_order;
            access.barriers = Barriers {
                fsync_every: every[0],
                fdatasync_every: every[1],
                range_every: every[2],
                ..Barriers::default()
            };
            case.files.open_at_once = open_at_once;
            case.files.list.iter_mut().for_each(|file| file.offset_bytes = offset_bytes);
            case.limits.loops = loops;
            case.limits.loop_bytes += extra_bytes / 2;
            case.limits.number_ios = number_ios;
        })
    }
}

/// Counts of each block, per file; all operations are whole blocks.
fn visits(ops: &[Op], block_bytes: u64) -> HashMap<(u32, u64), usize> {
    let mut visits = HashMap::new();
    for op in ops {
        assert_eq!((op.offset_bytes % block_bytes, op.length_bytes % block_bytes), (0, 0));
        let first = op.offset_bytes / block_bytes;
        for block in first..first + op.length_bytes / block_bytes {
            *visits.entry((op.file, block)).or_default() += 1;
        }
    }
    visits
}

/// Whether a share of `count` draws is within its random variation.
fn is_share(part: usize, count: usize, share: f64) -> bool {
    let expected = share * count as f64;
    (part as f64 - expected).abs() <= 6.0 * (expected * (1.0 - share)).sqrt() + 1.0
}

proptest! {
    // Failures are printed completely; nothing is written to files.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A barrier that never becomes due disables the loops for common jobs, and must change nothing else.
    #[test]
    fn the_loops_for_common_jobs_agree_with_the_general_one(
        random in any::<bool>(), mixed in any::<bool>(), full_coverage in any::<bool>(),
        blocks in 1_u64..200, read_percent in 0_u8..=100, sizes in prop::option::of([sizes(), sizes(), sizes()]),
        loops in 1_u64..4,
    ) {
        let pattern = if mixed { Pattern::Mixed } else { Pattern::Only(Direction::Write) };
        let fixed = case(pattern, random, &[blocks * 4096 + 100]);
        let common = match sizes {
            Some(sizes) => fixed.sizes(sizes),
            None => fixed,
        }
        .with(|case| {
            case.access.full_coverage = full_coverage;
            case.access.read_percent = read_percent;
            case.limits.loops = loops;
        });
        let general = common.clone().with(|case| case.access.barriers.fsync_every = u32::MAX);
        prop_assert_eq!(common.ops(), general.ops());
    }

    #[test]
    fn every_operation_stays_in_its_region(case in any_case()) {
        for op in case.ops() {
            let file = &case.files.list[op.file as usize];
            prop_assert!(op.offset_bytes >= file.offset_bytes || op.action.direction().is_none(), "{op:?}");
            prop_assert!(op.offset_bytes + op.length_bytes <= file.offset_bytes + file.length_bytes, "{op:?}");
            prop_assert!(op.length_bytes > 0 || op.action.direction().is_none(), "{op:?}");
            if let Some(direction) = direction(&op) {
                prop_assert!(case.access.pattern.includes(direction));
            }
        }
    }

    #[test]
    fn the_stream_does_not_depend_on_its_batches(case in any_case(), rooms in prop::collection::vec(1..70_usize, 1..9)) {
        let mut stream = case.stream();
        let mut ops = Vec::new();
        for room in rooms.iter().cycle() {
            if stream.fill(&mut ops, *room) == 0 {
                break;
            }
        }
        prop_assert_eq!(ops, case.ops());
    }

    #[test]
    fn a_batch_uses_only_open_files(case in any_case(), room in 1..20_usize) {
        let mut stream = case.stream();
        let limit = match case.files.open_at_once {
            0 => case.files.list.len(),
            limit => limit as usize,
        };
        let mut ops = Vec::new();
        let mut open: Vec<u32> = stream.open_files().collect();
        let mut generation = stream.open_generation();
        while stream.fill(&mut ops, room) > 0 {
            if stream.open_generation() != generation {
                generation = stream.open_generation();
                open = stream.open_files().collect();
            }
            prop_assert!(open.len() <= limit);
            prop_assert!(ops.iter().all(|op| open.contains(&op.file)), "{:?} {:?}", open, ops);
            ops.clear();
        }
    }

    #[test]
    fn a_random_pass_takes_each_block_once(
        pattern in pattern(),
        lengths in prop::collection::vec(0..2_000_000_u64, 1..4),
        block_bytes in 512..9000_u64,
        seed in any::<u64>(),
    ) {
        let job = case(pattern, true, &lengths).block(block_bytes).with(|case| case.access.seed = seed);
        let visits = visits(&job.ops(), block_bytes);
        let per_block = if pattern == Pattern::TrimThenWrite { 2 } else { 1 };
        prop_assert!(visits.values().all(|count| *count == per_block));
        prop_assert_eq!(visits.len() as u64, lengths.iter().map(|length| length / block_bytes).sum::<u64>());
    }

    // divergence: `random_generator=lfsr`
    #[test]
    fn each_pass_of_a_generator_without_repeats_takes_each_block_once_even_without_a_map(
        blocks in 1..600_u64, pattern in pattern(), seed in any::<u64>(),
    ) {
        let job = case(pattern, true, &[blocks * 4096]).with(|case| {
            (case.access.full_coverage, case.access.covers_single_size) = (false, true);
            case.access.seed = seed;
            case.limits.loops = 3;
        });
        let per_block = if pattern == Pattern::TrimThenWrite { 2 } else { 1 };
        for pass in job.ops().chunks(per_block * blocks as usize) {
            let visits = visits(pass, 4096);
            prop_assert_eq!(visits.len() as u64, blocks);
            prop_assert!(visits.values().all(|count| *count == per_block));
        }
    }

    #[test]
    fn blocks_of_mixed_sizes_cover_everything_once(
        pattern in pattern(),
        lengths in prop::collection::vec(0..2_000_000_u64, 1..4),
        (min_blocks, more_blocks, split) in (1..3_u64, 1..20_u64, any::<bool>()),
        seed in any::<u64>(),
    ) {
        let unit_bytes = 512 * min_blocks;
        let max_bytes = unit_bytes * (1 + more_blocks);
        let sizes = if split {
            BlockSizes::Split(vec![(unit_bytes, 20.0), (max_bytes, 80.0)])
        } else {
            BlockSizes::Range { min: unit_bytes, max: max_bytes }
        };
        let job = case(pattern, true, &lengths).sizes([0; 3].map(|_| sizes.clone())).with(|case| case.access.seed = seed);
        let visits = visits(&job.ops(), unit_bytes);
        let per_block = if pattern == Pattern::TrimThenWrite { 2 } else { 1 };
        prop_assert!(visits.values().all(|count| *count == per_block));
        prop_assert_eq!(visits.len() as u64, lengths.iter().map(|length| length / unit_bytes).sum::<u64>());
    }

    // divergence: a later pass under `time_based`
    #[test]
    fn each_pass_covers_everything_and_repeats_its_order_only_on_request(
        blocks in 100..1000_u64,
        seed in any::<u64>(),
        repeat_order in any::<bool>(),
    ) {
        let job = case(Pattern::Mixed, true, &[blocks * 4096]).with(|case| {
            case.limits.loops = 3;
            case.access.seed = seed;
            case.access.repeat_order = repeat_order;
        });
        let ops = job.ops();
        let passes: Vec<&[Op]> = ops.chunks(blocks as usize).collect();
        prop_assert_eq!(passes.len(), 3);
        let offsets = |pass: &[Op]| pass.iter().map(|op| op.offset_bytes).collect::<Vec<_>>();
        let directions = |pass: &[Op]| pass.iter().map(direction).collect::<Vec<_>>();
        for pass in &passes[1..] {
            prop_assert_eq!(visits(pass, 4096).len() as u64, blocks);
            prop_assert_eq!(offsets(pass) == offsets(passes[0]), repeat_order);
            prop_assert!(directions(pass) != directions(passes[0]));
        }
    }

    /// However short a pass is, and whatever ends it, draws do not restart with the next one.
    #[test]
    fn a_mix_keeps_its_shares_over_any_number_of_passes(
        blocks in prop_oneof![1..6_u64, 1..300_u64],
        read_percent in 0..=100_u8,
        (random, full_coverage, repeat_order, time_based) in any::<(bool, bool, bool, bool)>(),
        (own_sizes, percent_random, files) in (any::<bool>(), prop_oneof![Just(100), 0..=100_u8], 1..3_usize),
        seed in any::<u64>(),
    ) {
        let job = case(Pattern::Mixed, random, &vec![blocks * 4096; files]).with(|case| {
            case.access.full_coverage = full_coverage;
            case.access.repeat_order = repeat_order;
            case.access.percent_random = [percent_random; 3];
            case.access.read_percent = read_percent;
            case.access.seed = seed;
            case.limits.time_based = time_based;
            case.limits.loops = 1_000_000;
            if own_sizes {
                case.access.block_sizes[1] = BlockSizes::Fixed(2048);
                case.access.align_bytes[1] = 2048;
            }
        });
        let ops = job.first(10_000);
        let [reads, writes, ..] = counts(&ops);
        prop_assert_eq!(reads + writes, 10_000);
        prop_assert!(is_share(reads, 10_000, f64::from(read_percent) / 100.0), "{} of {}", reads, read_percent);
    }

    /// If files are drawn, one that is done restarts within the pass.
    #[test]
    fn a_file_repeats_its_order_only_on_request(blocks in 20..60_u64, seed in any::<u64>(), repeat_order in any::<bool>()) {
        let job = case(Pattern::Only(Direction::Read), true, &[blocks * 4096; 3]).with(|case| {
            case.access.service = FileService::Zipf { theta: 1.2, centre: 0.0 };
            case.access.repeat_order = repeat_order;
            case.access.seed = seed;
            case.limits.loops = 100;
        });
        let ops = job.first(20 * blocks as usize);
        let hottest: Vec<u64> = ops.iter().filter(|op| op.file == 0).map(|op| op.offset_bytes).collect();
        let rounds: Vec<&[u64]> = hottest.chunks_exact(blocks as usize).take(3).collect();
        prop_assert_eq!(rounds.len(), 3);
        prop_assert_eq!(rounds[0] == rounds[1], repeat_order);
        prop_assert_eq!(rounds[1] == rounds[2], repeat_order);
    }

    #[test]
    fn drawn_lengths_keep_their_shares_over_any_number_of_passes(
        blocks in 4..40_u64, (random, repeat_order) in any::<(bool, bool)>(), share in 5..95_u32, seed in any::<u64>(),
    ) {
        let split = BlockSizes::Split(vec![(4096, f64::from(share)), (8192, f64::from(100 - share))]);
        // Longer ones fit everywhere but in the last block; a map would shorten them where blocks are taken.
        let job = case(Pattern::Only(Direction::Read), random, &[blocks * 4096]).sizes([0; 3].map(|_| split.clone())).with(|case| {
            case.access.full_coverage = false;
            case.access.repeat_order = repeat_order;
            case.access.seed = seed;
            case.limits.loops = 1_000_000;
        });
        let ops = job.first(10_000);
        let roomy: Vec<&Op> = ops.iter().filter(|op| op.offset_bytes + 8192 <= blocks * 4096).collect();
        let short = roomy.iter().filter(|op| op.length_bytes == 4096).count();
        prop_assert!(is_share(short, roomy.len(), f64::from(share) / 100.0), "{} of {}: {}", short, roomy.len(), share);
    }

    #[test]
    fn a_sequential_pass_is_in_order(length in 0..3_000_000_u64, block_bytes in 512..9000_u64) {
        let ops = case(Pattern::Only(Direction::Write), false, &[length]).block(block_bytes).ops();
        prop_assert_eq!(ops.len() as u64, length / block_bytes);
        prop_assert!(ops.iter().enumerate().all(|(index, op)| op.offset_bytes == index as u64 * block_bytes));
    }

    #[test]
    fn mixes_keep_their_percentages(read_percent in 0..=100_u8, random in any::<bool>(), seed in any::<u64>()) {
        let job = case(Pattern::Mixed, random, &[20_000 * 4096]).with(|case| {
            case.access.read_percent = read_percent;
            case.access.seed = seed;
        });
        let [reads, writes, ..] = counts(&job.ops());
        prop_assert_eq!(reads + writes, 20_000);
        prop_assert!(is_share(reads, 20_000, f64::from(read_percent) / 100.0), "{} of {}", reads, read_percent);
    }

    #[test]
    fn random_jobs_keep_their_share_of_random_offsets(percent in 0..=100_u8, seed in any::<u64>()) {
        // The region is so large that a random offset is never the next one by chance.
        let job = case(Pattern::Only(Direction::Read), true, &[1 << 50]).with(|case| {
            case.access.percent_random = [percent; 3];
            case.access.seed = seed;
            case.limits.number_ios = Some(10_000);
        });
        let ops = job.ops();
        let jumps = ops.windows(2).filter(|pair| pair[1].offset_bytes != pair[0].offset_bytes + 4096).count();
        prop_assert!(is_share(jumps, 9999, f64::from(percent) / 100.0), "{} of {}", jumps, percent);
    }

    #[test]
    fn splits_keep_their_shares(shares in prop::collection::vec(1..100_u32, 2..6), random in any::<bool>(), seed in any::<u64>()) {
        let sum: u32 = shares.iter().sum();
        let part = |share: u32| f64::from(share) / f64::from(sum);
        let split = shares.iter().enumerate().map(|(index, share)| (4096 << index, 100.0 * part(*share))).collect();
        let job = case(Pattern::Only(Direction::Read), random, &[1 << 40]).sizes([0; 3].map(|_| BlockSizes::Split(Vec::clone(&split))));
        let ops = job.with(|case| {
            case.access.seed = seed;
            case.access.full_coverage = false;
            case.limits.number_ios = Some(10_000);
        }).ops();
        for (index, share) in shares.iter().enumerate() {
            let count = ops.iter().filter(|op| op.length_bytes == 4096 << index).count();
            prop_assert!(is_share(count, 10_000, part(*share)), "{} of {:?}", count, shares);
        }
    }
}
