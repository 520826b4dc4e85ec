//! A model of an SSD: where its pages are, what is collected when, and how long that takes.
//!
//! Invariant: it reads no clock and draws nothing at random; what it costs follows from its writes and pauses, in their order.

use std::time::Duration;

use super::fuse::{Asked, Kind};

pub const PAGE_BYTES: u64 = 4096;
const BLOCK_PAGES: usize = 64;
/// One block in eight is beyond the capacity.
const SPARE: usize = 8;
/// Blocks that collection keeps free while the host writes, and those that it frees in a pause.
const FREE_MIN: usize = 2;
const FREE_IN_PAUSE: usize = 8;
const NONE: usize = usize::MAX;

/// What operations take, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub read_ns: u64,
    /// Of a page, written by the host or moved by the collection.
    pub program_ns: u64,
    pub erase_ns: u64,
    /// After how many pages of the host all of these grow by 15 %; `None` if they do not.
    pub grow_after_pages: Option<u64>,
}

/// Pages of the host at places in blocks that have to be erased as a whole, of which the emptiest is collected.
#[derive(Clone, Debug)]
pub struct Model {
    costs: Costs,
    /// Where each page of the host is, and which page is at each place.
    places: Vec<usize>,
    pages: Vec<usize>,
    /// How many pages of the host are in each block.
    valid: Vec<usize>,
    free: Vec<usize>,
    /// The next place to program, and the end of its block.
    next: usize,
    end: usize,
    programmed: u64,
    /// What each page took that the host has written, in order.
    pub write_ns: Vec<u64>,
}

impl Model {
    pub fn new(bytes: u64, costs: Costs) -> Model {
        let pages = (bytes / PAGE_BYTES) as usize;
        let blocks = pages.div_ceil(BLOCK_PAGES) * (SPARE + 1) / SPARE;
        Model {
            costs,
            places: vec![NONE; pages],
            pages: vec![NONE; blocks * BLOCK_PAGES],
            valid: vec![0; blocks],
            free: (0..blocks).rev().collect(),
            next: 0,
            end: 0,
            programmed: 0,
            write_ns: Vec::new(),
        }
    }

    /// Pages that the host has written.
    pub fn written(&self) -> u64 {
        self.write_ns.len() as u64
    }

    /// Blocks that are erased.
    pub fn free_blocks(&self) -> usize {
        self.free.len()
    }

    fn grown(&self, ns: u64) -> u64 {
        let steps = self.costs.grow_after_pages.map_or(0, |pages| self.written() / pages);
        (ns as f64 * 1.15_f64.powi(steps as i32)) as u64
    }

    /// Programs a page of the host at the next place.
    fn place(&mut self, page: usize) -> u64 {
        if self.next == self.end {
            let block = self.free.pop().expect("a block is free");
            (self.next, self.end) = (block * BLOCK_PAGES, (block + 1) * BLOCK_PAGES);
        }
        let old = std::mem::replace(&mut self.places[page], self.next);
        if old != NONE {
            self.pages[old] = NONE;
            self.valid[old / BLOCK_PAGES] -= 1;
        }
        self.pages[self.next] = page;
        self.valid[self.next / BLOCK_PAGES] += 1;
        self.next += 1;
        self.programmed += 1;
        self.grown(self.costs.program_ns)
    }

    /// Moves the pages of the block that has the fewest and erases it; `None` if none has room to gain.
    fn collect(&mut self) -> Option<u64> {
        let open = self.end.checked_sub(1).map(|last| last / BLOCK_PAGES);
        let full = (0..self.valid.len()).filter(|block| Some(*block) != open && !self.free.contains(block));
        let victim = full.min_by_key(|block| self.valid[*block])?;
        if self.valid[victim] == BLOCK_PAGES {
            return None;
        }
        let all = victim * BLOCK_PAGES..(victim + 1) * BLOCK_PAGES;
        let pages: Vec<usize> = self.pages[all].iter().copied().filter(|page| *page != NONE).collect();
        let moved: u64 = pages.into_iter().map(|page| self.place(page)).sum();
        self.free.insert(0, victim);
        Some(moved + self.grown(self.costs.erase_ns))
    }

    /// The host writes a page; returns what that takes.
    pub fn write(&mut self, page: u64) -> u64 {
        let mut ns = 0;
        while self.free.len() < FREE_MIN {
            ns += self.collect().expect("there are spare blocks");
        }
        ns += self.place(page as usize);
        self.write_ns.push(ns);
        ns
    }

    /// The host does nothing for so long.
    pub fn pause(&mut self, time: Duration) {
        let mut left = time.as_nanos() as u64;
        while self.free.len() < FREE_IN_PAUSE
            && let Some(ns) = self.collect()
        {
            let Some(rest) = left.checked_sub(ns) else { break };
            left = rest;
        }
    }

    /// What a request takes. A part of a page is read before it is written.
    pub fn serve(&mut self, asked: &Asked) -> u64 {
        let pages = asked.offset / PAGE_BYTES..(asked.offset + asked.length).div_ceil(PAGE_BYTES);
        let read_ns = self.grown(self.costs.read_ns);
        match asked.kind {
            Kind::Read => (pages.end - pages.start) * read_ns,
            Kind::Write => {
                let is_part = !(asked.offset | asked.length).is_multiple_of(PAGE_BYTES);
                pages.map(|page| self.write(page)).sum::<u64>() + if is_part { read_ns } else { 0 }
            }
            Kind::Allocate | Kind::Resize => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use fiord_stats::Random;

    use super::*;

    const COSTS: Costs = Costs { read_ns: 1, program_ns: 10, erase_ns: 100, grow_after_pages: None };
    const PAGES: u64 = 8192;

    /// Pages that a model programs for each that the host writes, of so many at random.
    fn amplification(model: &mut Model, random: &mut Random, pages: u64) -> f64 {
        let before = model.programmed;
        for _ in 0..pages {
            model.write(random.below(PAGES));
        }
        (model.programmed - before) as f64 / pages as f64
    }

    #[test]
    fn a_fresh_device_and_one_written_in_sequence_move_nothing() {
        let mut model = Model::new(PAGES * PAGE_BYTES, COSTS);
        for page in (0..PAGES).chain(0..PAGES).chain(0..PAGES) {
            model.write(page);
        }
        assert_eq!(model.programmed, model.written());
        assert_eq!(model.write_ns[..PAGES as usize].iter().max(), Some(&10));
    }

    #[test]
    fn random_writes_are_amplified_evenly_and_a_pause_frees_blocks() {
        let (mut model, mut random) = (Model::new(PAGES * PAGE_BYTES, COSTS), Random::new(32));
        assert!(amplification(&mut model, &mut random, PAGES) < 1.0 + f64::EPSILON, "it is fresh");
        amplification(&mut model, &mut random, 8 * PAGES);
        let [one, two] = [(); 2].map(|()| amplification(&mut model, &mut random, 2 * PAGES));
        assert!(one > 2.0 && (one / two - 1.0).abs() < 0.05, "{one} {two}");
        let before = model.clone();
        assert!(model.free_blocks() <= FREE_MIN);
        model.pause(Duration::from_secs(1));
        assert_eq!(model.free_blocks(), FREE_IN_PAUSE);
        assert!((0..PAGES as usize).all(|page| {
            let place = model.places[page];
            (place == NONE) == (before.places[page] == NONE) && (place == NONE || model.pages[place] == page)
        }));
        // What was freed is written without moving anything.
        let burst = (FREE_IN_PAUSE - FREE_MIN) * BLOCK_PAGES;
        assert_eq!(amplification(&mut model, &mut random, burst as u64).to_bits(), 1.0_f64.to_bits());
    }

    /// The pages that a job of fiord's writes, in its order.
    fn pages_of(job: &str) -> Vec<u64> {
        let dir = crate::common::Dir::new();
        let line = format!("--name=p --ioengine=null --filename=f --size=32M --write_iolog=log {job}");
        dir.run(&line).assert_success();
        let log = std::fs::read_to_string(dir.join("log")).unwrap();
        let mut words = log.split_whitespace();
        let offset = |word: &str| word.parse::<u64>().unwrap();
        std::iter::from_fn(|| {
            words.find(|word| *word == "write")?;
            let (offset, length) = (offset(words.next()?), offset(words.next()?));
            Some(offset / PAGE_BYTES..(offset + length) / PAGE_BYTES)
        })
        .flatten()
        .collect()
    }

    #[test]
    fn one_pass_of_sprandom_leaves_it_as_random_overwrites_do() {
        // What random writes of a quarter of the capacity cost, after a purge and these jobs.
        let after = |jobs: &[&str], more_pages: u64| {
            let (mut model, mut random) = (Model::new(PAGES * PAGE_BYTES, COSTS), Random::new(5));
            for page in jobs.iter().flat_map(|job| pages_of(job)) {
                model.write(page);
            }
            let pages = model.written();
            for _ in 0..more_pages {
                model.write(random.below(PAGES));
            }
            (amplification(&mut model, &mut random, PAGES / 4), pages)
        };
        let (steady, _) = after(&[], 16 * PAGES);
        let sequence = "--rw=write --bs=128k --loops=2";
        let one_pass = "--rw=randwrite --bs=4k --iodepth=32 --sprandom=1 --spr_op=0.125";
        let (twice, written) = after(&[sequence], 0);
        assert_eq!(written, 2 * PAGES);
        let (once, written) = after(&[one_pass], 0);
        assert_eq!(written, PAGES * 9 / 8);
        let (unpurged, _) = after(&[sequence, one_pass], 0);
        let (wrong, _) = after(&["--rw=randwrite --bs=4k --iodepth=32 --sprandom=1 --spr_op=0.5"], 0);
        println!(
            "amplification: {steady:.2} steady, {once:.2} after sprandom, {twice:.2} after twice in sequence, {unpurged:.2} \
             after sprandom without a purge, {wrong:.2} after sprandom with a wrong share"
        );
        assert!((once / steady - 1.0).abs() < 0.1, "{once} {steady}");
        assert!(twice < 0.8 * steady, "{twice} {steady}");
    }

    #[test]
    fn the_same_writes_cost_the_same_and_costs_may_grow() {
        let [one, two] = [(); 2].map(|()| {
            let (mut model, mut random) = (Model::new(PAGES * PAGE_BYTES, COSTS), Random::new(7));
            amplification(&mut model, &mut random, 3 * PAGES);
            model.write_ns
        });
        assert_eq!(one, two);
        let grows = Costs { grow_after_pages: Some(100), ..COSTS };
        let mut model = Model::new(PAGES * PAGE_BYTES, grows);
        for page in 0..1000 {
            model.write(page);
        }
        assert_eq!((model.write_ns[0], model.write_ns[999]), (10, 35));
    }
}
