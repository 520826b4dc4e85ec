//! How often each statistic rejects the random order, compared with a true shuffle: `cargo run --release --example
//! randomness [SEEDS]`.
//!
//! Invariant: prints, and asserts nothing. In both columns about one in twenty is rejected, and squares average to 1.
#![allow(clippy::print_stdout, reason = "a program for people")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::statistics::{ONE_IN_TWENTY, STATISTICS, shuffle};
use common::{case, offsets};
use fiord_plan::{Direction, Pattern};

const BLOCK_BYTES: u64 = 4096;

/// Sizes in blocks, and how many of the blocks are examined.
const SIZES: &[(u64, usize)] = &[
    (256, 256),
    (1000, 1000),
    (4096, 4096),
    (5000, 5000),
    (65_536, 65_536),
    (100_003, 100_003),
    (1 << 20, 1 << 20),
    (1 << 40, 10_000),
];

fn order(blocks: u64, seed: u64, count: usize) -> Vec<u64> {
    let job = case(Pattern::Only(Direction::Read), true, &[blocks * BLOCK_BYTES]);
    let ops = job.with(|case| case.access.seed = seed).first(count);
    offsets(&ops).iter().map(|offset| offset / BLOCK_BYTES).collect()
}

/// Percent of the orders rejected, and the mean square, of each statistic.
fn figures(orders: &[Vec<u64>], blocks: u64) -> Vec<(f64, f64)> {
    let figure = |statistic: fn(&[u64], u64) -> f64| {
        let deviates: Vec<f64> = orders.iter().map(|order| statistic(order, blocks)).collect();
        let rejected = deviates.iter().filter(|deviate| deviate.abs() > ONE_IN_TWENTY).count();
        let count = orders.len() as f64;
        (100.0 * rejected as f64 / count, deviates.iter().map(|z| z * z).sum::<f64>() / count)
    };
    STATISTICS.iter().map(|(_, statistic)| figure(*statistic)).collect()
}

fn main() {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200_u64);
    for (blocks, count) in SIZES {
        // A million numbers take as long as a thousand seeds of a few.
        let seeds = if *count > 200_000 { seeds.div_ceil(10) } else { seeds };
        let orders = |make: fn(u64, u64, usize) -> Vec<u64>| -> Vec<Vec<u64>> {
            (0..seeds).map(|seed| make(*blocks, seed, *count)).collect()
        };
        let (ours, shuffled) = (figures(&orders(order), *blocks), figures(&orders(shuffle), *blocks));
        println!("{count} of {blocks} blocks, {seeds} seeds: rejected at 5 %, mean square");
        for (index, (name, _)) in STATISTICS.iter().enumerate() {
            let ((rejected, square), (rejected_shuffled, square_shuffled)) = (ours[index], shuffled[index]);
            println!(
                "  {name:<24} {rejected:5.1} % {square:5.2}   a shuffle {rejected_shuffled:5.1} % {square_shuffled:5.2}"
            );
        }
    }
}
