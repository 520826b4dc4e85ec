//! `sprandom` on a simulated drive: what its flash holds after the run, and what cleaning then costs.
//!
//! Invariant: the drive is a log of physical pages and nothing else, so that it knows nothing of regions or of the theory.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use std::collections::VecDeque;

use common::Case;
use fiord_plan::job::Limits;
use fiord_plan::{Direction, Pattern, Sprandom};
use fiord_stats::Random;
use fiord_workload::{OperationSource, SprandomSource, Supply};

const BLOCK_BYTES: u64 = 4096;

/// A job over a part of a file of this many blocks, from the fourth on.
fn job(blocks: u64, plan: &Sprandom) -> Case {
    let mut case = common::case(Pattern::Only(Direction::Write), true, &[blocks * BLOCK_BYTES]);
    case.files.list[0].offset_bytes = 3 * BLOCK_BYTES;
    case.limits.loop_bytes = plan.writes(blocks) * BLOCK_BYTES;
    case
}

/// The blocks in the order they are written.
fn written(blocks: u64, plan: &Sprandom, seed: u64) -> Vec<u64> {
    let mut case = job(blocks, plan);
    case.access.seed = seed;
    let mut source = SprandomSource::new(&case.access, plan, &case.files, &case.limits).unwrap();
    let (mut all, mut ops) = (Vec::new(), Vec::new());
    while source.fill(&mut ops, 64, 0) == Supply::Ready {
        all.extend(ops.drain(..).map(|op| {
            assert_eq!((op.offset_bytes % BLOCK_BYTES, op.length_bytes), (0, BLOCK_BYTES));
            op.offset_bytes / BLOCK_BYTES - 3
        }));
    }
    all
}

fn plan(regions: u32, over_provisioning: f64) -> Sprandom {
    Sprandom { regions, over_provisioning, cache_blocks: 0 }
}

/// Which physical pages are valid after these writes.
fn valid(writes: &[u64], blocks: u64) -> Vec<bool> {
    let mut page_of = vec![None; blocks as usize];
    let mut valid = vec![false; writes.len()];
    for (page, block) in writes.iter().enumerate() {
        if let Some(before) = page_of[*block as usize].replace(page) {
            valid[before] = false;
        }
        valid[page] = true;
    }
    assert!(page_of.iter().all(Option::is_some), "every block was written");
    valid
}

#[test]
fn however_few_blocks_there_are_each_is_written_and_none_too_often() {
    for blocks in (1..40).chain([255, 256, 257]) {
        for (regions, over) in [(1, 0.15), (1, 2.5), (3, 0.0), (7, 0.3), (100, 0.15), (100, 4.0)] {
            let plan = plan(regions, over);
            let writes = written(blocks, &plan, blocks);
            assert_eq!(writes.len() as u64, plan.writes(blocks), "{blocks} {regions} {over}");
            valid(&writes, blocks);
        }
    }
}

/// The solution below 1 of `u = exp(-ratio (1 - u))`, by halving: not as the code under test finds it.
fn valid_when_cleaned(ratio: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 / ratio);
    for _ in 0..200 {
        let middle: f64 = (low + high) / 2.0;
        if (-ratio * (1.0 - middle)).exp() > middle { low = middle } else { high = middle }
    }
    low
}

#[test]
fn the_flash_holds_what_the_theory_says_at_every_age() {
    for (blocks, over, regions) in
        [(40_000, 0.15, 100), (40_000, 0.07, 100), (20_011, 0.5, 20), (30_000, 1.8, 10)]
    {
        let plan = plan(regions, over);
        let writes = written(blocks, &plan, 7);
        assert_eq!(
            writes.len() as u64,
            (blocks as f64 * (1.0 + over)).round() as u64,
            "bytes are logical (1 + op)"
        );
        let valid = valid(&writes, blocks);
        let (ratio, slices) = (1.0 + over, 40);
        let decay = ratio * (1.0 - valid_when_cleaned(ratio));
        for slice in 0..slices {
            // Slices are not regions: the shares have to hold between their borders as well.
            let (from, to) = (valid.len() * slice / slices, valid.len() * (slice + 1) / slices);
            let pages = (to - from) as f64;
            let share = valid[from..to].iter().filter(|valid| **valid).count() as f64 / pages;
            let age = |page: usize| 1.0 - page as f64 / valid.len() as f64;
            let expected =
                ((-decay * age(to)).exp() - (-decay * age(from)).exp()) / (decay * (age(from) - age(to)));
            // Five deviations of a draw, and the step between two regions.
            let tolerance = 5.0 * (expected * (1.0 - expected) / pages).sqrt() + decay / f64::from(regions);
            assert!((share - expected).abs() < tolerance, "{over} {slice}: {share} instead of {expected}");
        }
    }
}

#[test]
fn pages_of_one_age_are_valid_at_random() {
    let (blocks, over) = (40_000, 0.15);
    let writes = written(blocks, &plan(10, over), 3);
    let valid = valid(&writes, blocks);
    // Runs of valid and invalid pages in the oldest region are as many as of independent draws.
    let oldest = &valid[..valid.len() / 10];
    let share = oldest.iter().filter(|valid| **valid).count() as f64 / oldest.len() as f64;
    let changes = oldest.windows(2).filter(|two| two[0] != two[1]).count() as f64;
    let expected = 2.0 * share * (1.0 - share) * oldest.len() as f64;
    assert!((changes - expected).abs() < 5.0 * expected.sqrt(), "{changes} instead of {expected}");
}

/// A drive whose oldest erase block is cleaned when it has no erased page left.
struct Drive {
    pages_per_block: usize,
    /// By erase block, oldest first: the logical block of each page.
    log: VecDeque<Vec<u64>>,
    /// By logical block: number of its erase block since the beginning, and page.
    place: Vec<(u64, usize)>,
    first: u64,
    blocks_max: usize,
    moved: u64,
}

impl Drive {
    fn new(blocks: u64, physical: usize, pages_per_block: usize) -> Drive {
        let blocks_max = physical / pages_per_block + 2;
        let place = vec![(u64::MAX, 0); blocks as usize];
        Drive { pages_per_block, log: VecDeque::from([Vec::new()]), place, first: 0, blocks_max, moved: 0 }
    }

    fn write(&mut self, block: u64) {
        self.append(block);
        while self.log.len() >= self.blocks_max {
            let oldest = self.log.pop_front().unwrap();
            let number = self.first;
            self.first += 1;
            for (page, block) in oldest.into_iter().enumerate() {
                if self.place[block as usize] == (number, page) {
                    self.moved += 1;
                    self.append(block);
                }
            }
        }
    }

    fn append(&mut self, block: u64) {
        if self.log.back().unwrap().len() == self.pages_per_block {
            self.log.push_back(Vec::new());
        }
        let number = self.first + self.log.len() as u64 - 1;
        let newest = self.log.back_mut().unwrap();
        self.place[block as usize] = (number, newest.len());
        newest.push(block);
    }

    /// Writes of the drive for each write of the user, over this many uniform random ones.
    fn amplification(&mut self, writes: u64, random: &mut Random) -> f64 {
        self.moved = 0;
        let blocks = self.place.len() as u64;
        (0..writes).for_each(|_| self.write(random.below(blocks)));
        1.0 + self.moved as f64 / writes as f64
    }
}

// divergence: `sprandom`
#[test]
fn random_overwrites_cost_what_they_cost_in_the_steady_state_from_the_first() {
    let (blocks, over) = (30_000_u64, 0.15);
    let physical = (blocks as f64 * (1.0 + over)) as usize;
    let expected = 1.0 / (1.0 - valid_when_cleaned(1.0 + over));
    let after = |order: &[u64]| {
        let mut drive = Drive::new(blocks, physical, 64);
        order.iter().for_each(|block| drive.write(*block));
        let mut random = Random::new(11);
        // Each is shorter than the flash that is cleaned meanwhile, so that it shows the state after the run.
        [0; 4].map(|_| drive.amplification(blocks / 20, &mut random))
    };
    for found in after(&written(blocks, &plan(100, over), 5)) {
        assert!((found / expected - 1.0).abs() < 0.15, "{found} instead of {expected}");
    }
    // The same number of sequential writes leaves a drive that costs something else at first.
    let sequential: Vec<u64> = (0..physical as u64).map(|write| write % blocks).collect();
    assert!((after(&sequential)[0] / expected - 1.0).abs() > 0.5, "{:?} {expected}", after(&sequential));
}

#[test]
fn a_block_is_not_written_again_within_the_cache() {
    let (blocks, cache_blocks) = (50_000, 2_000);
    let plan = Sprandom { cache_blocks, ..plan(20, 0.15) };
    let writes = written(blocks, &plan, 9);
    valid(&writes, blocks);
    let mut last_at = vec![None; blocks as usize];
    let last_region = writes.len() * 19 / 20;
    for (at, block) in writes.iter().enumerate().take(last_region) {
        if let Some(before) = last_at[*block as usize].replace(at) {
            // Both kinds are drawn, so that the distance varies a little.
            assert!(at - before >= cache_blocks as usize * 9 / 10, "{at} {before}");
        }
    }
}

#[test]
fn loops_repeat_the_order_and_limits_cut_it() {
    let (blocks, plan) = (1000, plan(10, 0.2));
    let once = written(blocks, &plan, 42);
    let count = |change: &dyn Fn(&mut Limits)| {
        let mut case = job(blocks, &plan);
        change(&mut case.limits);
        let mut source = SprandomSource::new(&case.access, &plan, &case.files, &case.limits).unwrap();
        let mut ops = Vec::new();
        while source.fill(&mut ops, 64, 0) == Supply::Ready {}
        ops.iter().map(|op| op.offset_bytes / BLOCK_BYTES - 3).collect::<Vec<u64>>()
    };
    assert_eq!(count(&|limits| limits.loops = 2), [once.clone(), once.clone()].concat());
    assert_eq!(count(&|limits| limits.number_ios = Some(70)), once[..70]);
    assert_eq!(count(&|limits| limits.loop_bytes = 100 * BLOCK_BYTES), once[..100]);
}
