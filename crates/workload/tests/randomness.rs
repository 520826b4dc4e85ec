//! The random order is statistically indistinguishable from a shuffle; passes, workers and seeds are independent.
//!
//! Invariant: seeds are fixed, so a test that passes once always passes; a shuffle passes all of them.

mod common;

use std::collections::BTreeMap;

use common::statistics::{ONE_IN_TWENTY, STATISTICS, correlation, even, shuffle};
use common::{Case, case, offsets};
use fiord_plan::Pattern;

const BLOCK_BYTES: u64 = 4096;

/// Sizes in blocks, how many of the blocks are examined, and with how many seeds.
const SIZES: &[(u64, usize, u64)] = &[
    (256, 256, 200),
    (257, 257, 200),
    (1000, 1000, 200),
    (4096, 4096, 100),
    (5000, 5000, 60),
    (65_536, 65_536, 24),
    (100_003, 100_003, 12),
    (1 << 40, 10_000, 100),
];

/// A job that reads this many blocks, each once.
fn job(blocks: u64, seed: u64) -> Case {
    case(Pattern::Only(fiord_plan::Direction::Read), true, &[blocks * BLOCK_BYTES])
        .with(|case| case.access.seed = seed)
}

/// The numbers of a job's first blocks.
fn order(blocks: u64, seed: u64, count: usize) -> Vec<u64> {
    offsets(&job(blocks, seed).first(count)).iter().map(|offset| offset / BLOCK_BYTES).collect()
}

/// Fails if a statistic rejects the order more often than a shuffle: more rejections than five deviations above one in
/// twenty, or deviates that are too large or too small in total.
#[track_caller]
fn assert_random(make: impl Fn(u64, u64, usize) -> Vec<u64>) {
    for (blocks, count, seeds) in SIZES {
        let orders: Vec<Vec<u64>> = (0..*seeds).map(|seed| make(*blocks, seed, *count)).collect();
        for (name, statistic) in STATISTICS {
            let deviates: Vec<f64> = orders.iter().map(|order| statistic(order, *blocks)).collect();
            let rejected = deviates.iter().filter(|deviate| deviate.abs() > ONE_IN_TWENTY).count();
            let (trials, mean_square) =
                (*seeds as f64, deviates.iter().map(|z| z * z).sum::<f64>() / *seeds as f64);
            let allowed = 0.05 * trials + 5.0 * (0.05 * 0.95 * trials).sqrt();
            assert!(
                rejected as f64 <= allowed,
                "{blocks} blocks, {name}: {rejected} of {seeds} seeds rejected"
            );
            // For squares of normal numbers; those of a chi-squared number have a slightly heavier tail.
            let spread = 6.0 * (2.0 / trials).sqrt();
            assert!(
                mean_square < 1.0 + spread && mean_square > (1.0 - spread).max(0.3),
                "{blocks} blocks, {name}: mean square {mean_square:.2}"
            );
        }
    }
}

#[test]
fn a_shuffle_passes() {
    assert_random(shuffle);
}

#[test]
fn the_random_order_is_indistinguishable_from_a_shuffle() {
    assert_random(order);
}

/// Fails if orders of the same blocks depend on each other: pairs correlate, or have blocks at the same places.
#[track_caller]
fn assert_unrelated<'a>(blocks: u64, pairs: impl Iterator<Item = (&'a [u64], &'a [u64])>) {
    let (mut rejected, mut common, mut count) = (0, 0, 0);
    for (a, b) in pairs {
        rejected += usize::from(correlation(a, b).abs() > ONE_IN_TWENTY);
        common += a.iter().zip(b).filter(|(a, b)| a == b).count();
        count += 1;
    }
    let trials = f64::from(count);
    let allowed = 0.05 * trials + 5.0 * (0.05 * 0.95 * trials).sqrt();
    assert!(rejected as f64 <= allowed, "{blocks} blocks: {rejected} of {count} pairs correlate");
    // One per pair on average, whatever the number of blocks.
    let off = (common as f64 - trials).abs();
    assert!(
        off < 6.0 * trials.sqrt(),
        "{blocks} blocks: {common} blocks at the same places in {count} pairs"
    );
}

#[test]
fn passes_are_independent() {
    for (blocks, passes) in [(16, 400), (256, 200), (300, 200), (4096, 100), (65_536, 20)] {
        let job = job(blocks, 7).with(|case| {
            case.access.repeat_order = false;
            case.limits.loops = passes;
        });
        let numbers: Vec<u64> = offsets(&job.first((blocks * passes) as usize))
            .iter()
            .map(|offset| offset / BLOCK_BYTES)
            .collect();
        let passes: Vec<&[u64]> = numbers.chunks(blocks as usize).collect();
        assert_unrelated(blocks, passes.windows(2).map(|two| (two[0], two[1])));
    }
}

#[test]
fn neighbouring_seeds_are_independent() {
    for (blocks, seeds) in [(16, 400), (256, 200), (300, 200), (4096, 100), (65_536, 20)] {
        let orders: Vec<Vec<u64>> = (0..seeds).map(|seed| order(blocks, seed, blocks as usize)).collect();
        assert_unrelated(blocks, orders.windows(2).map(|two| (&two[0][..], &two[1][..])));
    }
}

#[test]
fn every_order_of_few_blocks_is_equally_likely() {
    for (blocks, orders) in [(2, 2), (3, 6), (4, 24), (5, 120)] {
        let passes = 200 * orders;
        let job = job(blocks, 7).with(|case| {
            case.access.repeat_order = false;
            case.limits.loops = passes;
        });
        let offsets = offsets(&job.first((blocks * passes) as usize));
        let mut counts: BTreeMap<&[u64], u64> = BTreeMap::new();
        offsets.chunks(blocks as usize).for_each(|pass| *counts.entry(pass).or_default() += 1);
        assert_eq!(counts.len() as u64, orders, "{blocks} blocks");
        let deviate = even(&counts.into_values().collect::<Vec<u64>>());
        assert!(deviate.abs() < 4.0, "{blocks} blocks: {deviate}");
    }
}
