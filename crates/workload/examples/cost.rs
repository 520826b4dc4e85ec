//! The cost of generating an operation, for the most important kinds of jobs: `cargo run --release --example cost`.
//!
//! Invariant: measures only `fill`, prints, and asserts nothing.
#![allow(clippy::print_stdout, reason = "a program for people")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{Case, case};
use fiord_plan::{BlockSizes, Direction, FileService, Pattern, RandomDistribution};

const GIB: u64 = 1 << 30;
const OPS: u64 = 100_000;
const ROUNDS: usize = 200;
const BATCH: usize = 64;

const ZIPF: RandomDistribution = RandomDistribution::Zipf { theta: 1.2, centre: None };
const PARETO: RandomDistribution = RandomDistribution::Pareto { power: 0.2, centre: None };
const NORMAL: RandomDistribution = RandomDistribution::Normal { deviation_percent: 10.0, centre: 0.5 };

fn spread(case: &mut Case, distribution: RandomDistribution) {
    case.access.distribution = [0; 3].map(|_| distribution.clone());
}

/// Nanoseconds per operation: the best of several rounds, because other programs can only add to it.
fn cost_ns(case: &Case) -> f64 {
    let mut case = case.clone();
    case.limits.time_based = true;
    let mut stream = case.stream();
    let mut ops = Vec::with_capacity(BATCH);
    let round = |_| {
        let start = Instant::now();
        let mut count = 0;
        while count < OPS {
            ops.clear();
            count += stream.fill(black_box(&mut ops), BATCH) as u64;
        }
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let read = Pattern::Only(Direction::Read);
    let range = [0; 3].map(|_| BlockSizes::Range { min: 4096, max: 65_536 });
    let split = [0; 3].map(|_| BlockSizes::Split(vec![(4096, 40.0), (16_384, 30.0), (65_536, 30.0)]));
    let drawn = |case: &mut Case| case.access.full_coverage = false;
    let cases = [
        ("sequential read", case(read, false, &[64 * GIB])),
        ("sequential mix", case(Pattern::Mixed, false, &[64 * GIB])),
        ("random read, every block once", case(read, true, &[64 * GIB])),
        ("the same, just above a power of two", case(read, true, &[64 * GIB + 4096])),
        ("random mix, every block once", case(Pattern::Mixed, true, &[64 * GIB])),
        ("random read, drawn", case(read, true, &[64 * GIB]).with(drawn)),
        ("random read, zipf", case(read, true, &[64 * GIB]).with(|case| spread(case, ZIPF))),
        ("random read, pareto", case(read, true, &[64 * GIB]).with(|case| spread(case, PARETO))),
        ("random read, normal", case(read, true, &[64 * GIB]).with(|case| spread(case, NORMAL))),
        ("random read over 100 TB", case(read, true, &[100_000 * GIB])),
        ("random read of 8 files in turn", case(read, true, &[GIB; 8])),
        ("sequential read of 8 files in turn", case(read, false, &[8 * GIB; 8])),
        (
            "sequential read of 8 files by zipf",
            case(read, false, &[8 * GIB; 8])
                .with(|case| case.access.service = FileService::Zipf { theta: 1.2, centre: 0.0 }),
        ),
        ("random read, 4k-64k, every block once", case(read, true, &[64 * GIB]).sizes(range.clone())),
        ("random read, split, every block once", case(read, true, &[64 * GIB]).sizes(split)),
        ("sequential read, 4k-64k", case(read, false, &[64 * GIB]).sizes(range)),
        ("sequential write, fsync of each", {
            case(Pattern::Only(Direction::Write), false, &[64 * GIB])
                .with(|case| case.access.barriers.fsync_every = 1)
        }),
        ("trim, then write", case(Pattern::TrimThenWrite, true, &[64 * GIB])),
    ];
    for (name, case) in &cases {
        println!("{:6.2} ns  {name}", cost_ns(case));
    }
}
