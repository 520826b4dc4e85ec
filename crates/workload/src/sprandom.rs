//! The order of `sprandom`: one pass over a flash drive that leaves it as endless random overwrites would.
//!
//! Invariant: a loop writes every logical block at least once, and as many blocks as the drive has physically. Memory
//! does not depend on the size of the drive.
//!
//! A drive appends what is written to erased flash, and marks the earlier copy of a block invalid. With `L` logical and
//! `P = L (1 + op)` physical blocks it has to clean old flash, whose valid blocks it writes again, before it can take
//! more. Under uniform random overwrites with the oldest flash cleaned first (Desnoyers, "Analytic Modeling of SSD Write
//! Performance", 2012, whose result for large erase blocks holds for cleaning the emptiest first as well), a block is
//! still valid after `w` writes of the user with the probability `exp(-w / L)`. Of `P` blocks that the drive writes between
//! two cleanings of the same flash, `1 - u` are the user's, where `u` is the share that is valid when it is cleaned:
//!
//! ```text
//! u = exp(-(1 + op) (1 - u))            the solution below 1
//! v(x) = exp(-k x), k = (1 + op) (1 - u)  valid share of the flash that a share x of all was written after
//! ```
//!
//! The mean of `v` over the drive is `L / P`, as it has to be. So the run is cut into regions, and region `j`, in the
//! order of writing, has to keep the share `v_j`, the mean of `v` over its ages. It writes the next `v_j` of the blocks of one
//! random order for good, and mixed with them, by drawing from both, blocks that come later in that order, which later
//! regions overwrite.

use fiord_plan::job::Limits;
use fiord_plan::{Access, Action, Direction, FileIndex, Files, Op, Sprandom};
use fiord_stats::{Capped, Random};

use crate::barrier::BarrierCounter;
use crate::error::WorkloadError;
use crate::offset::permutation::{Mark, Permutation};
use crate::passes::Passes;
use crate::source::{OperationSource, Supply};
use crate::substream::Substream;

/// The share of flash that is still valid when it is cleaned: the solution below 1 of `u = exp(-ratio (1 - u))`; 1 without
/// flash to spare. `ratio` is physical over logical size.
fn valid_when_cleaned(ratio: f64) -> f64 {
    if ratio <= 1.0 {
        return 1.0;
    }
    // Newton's steps from 0 never pass the solution, because the function is convex.
    let mut share = 0.0_f64;
    for _ in 0..100 {
        let image = (-ratio * (1.0 - share)).exp();
        share += (image - share) / (1.0 - ratio * image);
    }
    share.clamp(0.0, 1.0)
}

/// The share of each region's flash that is valid in the steady state, the oldest first.
fn valid_shares(regions: u32, ratio: f64) -> Vec<f64> {
    let decay = ratio * (1.0 - valid_when_cleaned(ratio));
    let width = 1.0 / f64::from(regions);
    let share = |region: u32| {
        let newest = f64::from(regions - 1 - region) * width;
        match decay > 0.0 {
            true => ((-decay * newest).exp() - (-decay * (newest + width)).exp()) / (decay * width),
            false => 1.0,
        }
    };
    (0..regions).map(share).collect()
}

/// How many blocks a region writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    /// For good: the next of the order.
    last: u64,
    /// To be overwritten later: blocks of the order from here on.
    again_from: u64,
    again: u64,
}

/// Cuts a run over this many logical blocks into regions.
fn cut(blocks: u64, plan: &Sprandom) -> Vec<Region> {
    let writes = plan.writes(blocks);
    let count = u32::capped(u64::from(plan.regions).clamp(1, blocks.max(1)));
    let shares = valid_shares(count, 1.0 + plan.over_provisioning);
    let all: f64 = shares.iter().sum();
    let (mut so_far, mut first) = (0.0, 0);
    let mut regions = Vec::with_capacity(count as usize);
    for (number, share) in shares.iter().enumerate() {
        let at = |number: u64| u64::capped(u128::from(writes) * u128::from(number) / u128::from(count));
        let length = at(number as u64 + 1) - at(number as u64);
        so_far += share;
        let is_newest = number + 1 == shares.len();
        let end = if is_newest { blocks } else { u64::capped((blocks as f64 * so_far / all).round()) };
        // What rounding leaves over goes to the next region.
        let end = if is_newest { end } else { end.clamp(first, first + length) };
        let (last, again) = (end - first, length.saturating_sub(end - first));
        // Far enough ahead of the writes that overwrite it for a cache not to merge both. The newest region overwrites its
        // own last blocks, as none comes after it.
        let (nearest, ahead) = if end < blocks { (end, plan.cache_blocks) } else { (first, u64::MAX) };
        let again_from = nearest.saturating_add(ahead).min(blocks.saturating_sub(again)).max(nearest);
        regions.push(Region { last, again_from, again });
        first = end;
    }
    regions
}

/// The writes of a job with `sprandom`.
pub struct SprandomSource {
    block_bytes: u64,
    offset_bytes: u64,
    regions: Vec<Region>,
    passes: Passes,
    barriers: BarrierCounter,
    state: Walk,
}

/// Where a loop is.
#[derive(Debug, Clone)]
struct Walk {
    seed: u64,
    random: Random,
    /// The beginning of the order.
    start: Mark,
    /// Takes the blocks that are written for good.
    last: Permutation,
    /// Takes those that are written again.
    again: Permutation,
    /// Where `again` starts over if the order ends.
    again_start: Mark,
    /// Goes ahead to where `again` begins in the next region: a step for each write.
    scout: Permutation,
    scout_at: u64,
    region: usize,
    last_left: u64,
    again_left: u64,
}

impl SprandomSource {
    /// The writes over the file of a job.
    ///
    /// # Errors
    /// The job has no file, or no block size.
    pub fn new(
        access: &Access,
        plan: &Sprandom,
        files: &Files,
        limits: &Limits,
    ) -> Result<SprandomSource, WorkloadError> {
        let file = files.list.first().ok_or(WorkloadError::NoFiles)?;
        let block_bytes = access.block_sizes[Direction::Write.index()].min();
        if block_bytes == 0 {
            return Err(WorkloadError::EmptyBlock(Direction::Write));
        }
        let blocks = file.length_bytes / block_bytes;
        let regions = cut(blocks, plan);
        let state = Walk::new(blocks, &regions, access.seed);
        Ok(SprandomSource {
            block_bytes,
            offset_bytes: file.offset_bytes,
            regions,
            passes: Passes::new(*limits, false, block_bytes),
            barriers: BarrierCounter::new(access.barriers, 1),
            state,
        })
    }

    fn next(&mut self) -> Option<Op> {
        if self.passes.has_ended() {
            return None;
        }
        if let Some(op) = self.barriers.take_due() {
            return Some(op);
        }
        let block = if self.passes.is_full() { None } else { self.state.next(&self.regions) };
        let Some(block) = block else {
            if !self.passes.begin_next() {
                return None;
            }
            self.state.restart(&self.regions);
            return self.next();
        };
        let op = Op::new(Action::Write, 0, self.offset_bytes + block * self.block_bytes, self.block_bytes);
        self.passes.count(1, self.block_bytes);
        self.barriers.count(&op);
        Some(op)
    }
}

impl Walk {
    /// At the beginning of a loop.
    fn new(blocks: u64, regions: &[Region], seed: u64) -> Walk {
        let order = Permutation::new(blocks, Substream::Orders.of(seed).next_u64());
        let mut walk = Walk {
            seed,
            random: Substream::Rewrites.of(seed),
            start: order.mark(),
            again_start: order.mark(),
            again: order.clone(),
            scout: order.clone(),
            last: order,
            scout_at: 0,
            region: 0,
            last_left: 0,
            again_left: 0,
        };
        walk.restart(regions);
        walk
    }

    /// Begins again, in the same order. Allocates nothing.
    fn restart(&mut self, regions: &[Region]) {
        self.random = Substream::Rewrites.of(self.seed);
        for order in [&mut self.last, &mut self.again, &mut self.scout] {
            order.return_to(&self.start);
        }
        (self.scout_at, self.region) = (0, 0);
        self.enter(regions);
    }

    /// Enters the region, with the scout where its blocks to be written again begin.
    fn enter(&mut self, regions: &[Region]) {
        let Some(region) = regions.get(self.region) else { return };
        while self.scout_at < region.again_from {
            self.step_ahead();
        }
        // Of so few blocks that none is left for a region, the first are written again.
        self.again_start = if self.scout.left() > 0 { self.scout.mark() } else { self.start };
        self.again.return_to(&self.again_start);
        (self.last_left, self.again_left) = (region.last, region.again);
    }

    fn step_ahead(&mut self) {
        let _ = self.scout.next();
        self.scout_at += 1;
    }

    /// The next block, `None` at the end of the loop.
    fn next(&mut self, regions: &[Region]) -> Option<u64> {
        while self.last_left + self.again_left == 0 {
            self.region += 1;
            regions.get(self.region)?;
            self.enter(regions);
        }
        if regions.get(self.region + 1).is_some_and(|next| self.scout_at < next.again_from) {
            self.step_ahead();
        }
        // Every order of both kinds is as likely.
        if self.random.below(self.last_left + self.again_left) < self.last_left {
            self.last_left -= 1;
            return self.last.next();
        }
        self.again_left -= 1;
        if self.again.left() == 0 {
            self.again.return_to(&self.again_start);
        }
        self.again.next()
    }
}

impl OperationSource for SprandomSource {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        let before = ops.len();
        while ops.len() - before < room {
            let Some(op) = self.next() else { break };
            ops.push(op);
        }
        if ops.len() > before { Supply::Ready } else { Supply::Ended }
    }

    fn passes_begun(&self) -> u64 {
        self.passes.begun()
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(regions: u32, over_provisioning: f64) -> Sprandom {
        Sprandom { regions, over_provisioning, cache_blocks: 0 }
    }

    #[test]
    fn the_share_that_is_valid_when_cleaned_solves_its_equation() {
        for ratio in [1.001, 1.07, 1.15, 1.28, 2.0, 5.0] {
            let share = valid_when_cleaned(ratio);
            assert!((share - (-ratio * (1.0 - share)).exp()).abs() < 1e-9, "{ratio}");
            assert!(share < 1.0 / ratio, "{ratio}: less than the drive's mean");
        }
        assert_eq!(valid_when_cleaned(1.0), 1.0);
    }

    #[test]
    fn the_valid_shares_rise_to_the_newest_and_their_mean_is_logical_over_physical() {
        for (regions, ratio) in [(1, 1.15), (7, 1.07), (100, 1.15), (1000, 1.5), (10, 4.0), (5, 1.0)] {
            let shares = valid_shares(regions, ratio);
            let mean = shares.iter().sum::<f64>() / f64::from(regions);
            assert!((mean * ratio - 1.0).abs() < 1e-6, "{regions} {ratio}: {mean}");
            assert!(shares.windows(2).all(|two| two[0] <= two[1]), "{regions} {ratio}");
            assert!(shares.iter().all(|share| (0.0..=1.0 + 1e-12).contains(share)));
        }
    }

    #[test]
    fn regions_add_up_to_all_blocks_and_all_writes() {
        for blocks in [1, 3, 99, 100, 4096, 100_003] {
            for (regions, over) in [(1, 0.15), (100, 0.15), (100, 0.0), (7, 3.0), (1000, 0.07)] {
                let cut = cut(blocks, &plan(regions, over));
                assert_eq!(
                    cut.iter().map(|region| region.last).sum::<u64>(),
                    blocks,
                    "{blocks} {regions} {over}"
                );
                let writes: u64 = cut.iter().map(|region| region.last + region.again).sum();
                assert_eq!(writes, plan(regions, over).writes(blocks), "{blocks} {regions} {over}");
            }
        }
    }
}
