//! Where operations go: one file per order.
//!
//! Invariant: every operation lies within its file's region.

pub(crate) mod permutation;
pub(crate) mod region;

use fiord_plan::{Access, Direction, Files, Pattern, Sequencer};
use fiord_stats::random::{Random, splitmix64};

use crate::size::Sizes;
use permutation::Permutation;
use region::{Order, Place, Region};

/// What the draws for offsets are told apart by.
const PURPOSE: u64 = 4;

/// How the next operation finds its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Behind the last one, plus the stride.
    Sequential,
    /// Anywhere.
    Random,
    /// Behind the last one, within a random job.
    Follow,
    /// Where the last one was.
    Repeat,
}

/// Places operations in the regions of all files.
#[derive(Debug, Clone)]
pub(crate) struct Placer {
    regions: Vec<Region>,
    sizes: Sizes,
    random: Random,
    is_random: bool,
    stride_bytes: i64,
    percent_random: [u8; 3],
    align_bytes: [u64; 3],
    sequencer: Sequencer,
    ios_per_draw: u32,
    until_draw: u32,
}

impl Placer {
    pub(crate) fn new(access: &Access, files: &Files) -> Placer {
        let block_bytes = whole_blocks(access);
        let regions = files.list.iter().map(|file| {
            let order = match block_bytes {
                Some(bytes) => Order::Permutation(Permutation::new(file.length_bytes / bytes, 0), bytes),
                None => Order::Draws,
            };
            Region::new(file.offset_bytes, file.length_bytes, order)
        });
        let mut placer = Placer {
            regions: regions.collect(),
            sizes: Sizes::new(access),
            random: Random::for_purpose(access.seed, PURPOSE),
            is_random: access.random,
            stride_bytes: access.stride_bytes,
            percent_random: access.percent_random,
            align_bytes: access.align_bytes.map(|bytes| bytes.max(1)),
            sequencer: access.sequencer,
            ios_per_draw: access.ios_per_draw.max(1),
            until_draw: 0,
        };
        (0..placer.regions.len()).for_each(|file| placer.restart_file(file, access.seed));
        placer
    }

    /// Begins a file again, in the order that this seed gives.
    pub(crate) fn restart_file(&mut self, file: usize, seed: u64) {
        let region = &mut self.regions[file];
        region.restart();
        match &mut region.order {
            Order::Draws => {}
            Order::Permutation(permutation, _) => {
                permutation.restart(splitmix64(seed) ^ splitmix64(file as u64))
            }
        }
    }

    /// Begins all files again.
    pub(crate) fn restart(&mut self, seed: u64) {
        (0..self.regions.len()).for_each(|file| self.restart_file(file, seed));
    }

    /// Starts the same draws again.
    pub(crate) fn restart_draws(&mut self, seed: u64) {
        self.random = Random::for_purpose(seed, PURPOSE);
        self.sizes.restart(seed);
        self.until_draw = 0;
    }

    /// How the next operation finds its offset, whichever file it goes to.
    #[inline]
    pub(crate) fn step(&mut self, direction: Direction) -> Step {
        if !self.is_random {
            return Step::Sequential;
        }
        if self.until_draw == 0 {
            self.until_draw = self.ios_per_draw - 1;
        } else {
            self.until_draw -= 1;
            return if self.sequencer == Sequencer::Identical { Step::Repeat } else { Step::Follow };
        }
        let percent = self.percent_random[direction.index()];
        if percent >= 100 || self.random.percent() < u32::from(percent) { Step::Random } else { Step::Follow }
    }

    /// The place of the next operation in this file; `None` when the file is done.
    #[inline]
    pub(crate) fn place(&mut self, file: usize, direction: Direction, step: Step) -> Option<Place> {
        let offset_bytes = match step {
            Step::Sequential => self.regions[file].next_sequential(direction, self.stride_bytes),
            Step::Random => return self.place_randomly(file, direction),
            Step::Follow => Some(self.regions[file].position(direction)),
            Step::Repeat => Some(self.regions[file].last(direction)),
        }?;
        let room_bytes = self.regions[file].room_bytes(offset_bytes);
        if room_bytes < self.sizes.min(direction, false) {
            // Within a random job the end of the region is only the end of following.
            return if step == Step::Sequential { None } else { self.place_randomly(file, direction) };
        }
        let length_bytes = self.sizes.draw(direction, false, room_bytes);
        Some(self.take(file, direction, Place { offset_bytes, length_bytes }))
    }

    #[inline]
    fn place_randomly(&mut self, file: usize, direction: Direction) -> Option<Place> {
        let region = &mut self.regions[file];
        let min_bytes = self.sizes.min(direction, true);
        let offset_bytes = region.start_bytes()
            + match &mut region.order {
                Order::Permutation(permutation, block_bytes) => permutation.next()? * *block_bytes,
                Order::Draws => {
                    let align_bytes = self.align_bytes[direction.index()];
                    let last = region.length_bytes().checked_sub(min_bytes)? / align_bytes;
                    self.random.below(last + 1) * align_bytes
                }
            };
        let length_bytes = self.sizes.draw(direction, true, region.room_bytes(offset_bytes));
        Some(self.take(file, direction, Place { offset_bytes, length_bytes }))
    }

    #[inline]
    fn take(&mut self, file: usize, direction: Direction, place: Place) -> Place {
        self.regions[file].advance(direction, place);
        place
    }

    /// For batches: the region of a file.
    #[inline]
    pub(crate) fn region_mut(&mut self, file: usize) -> &mut Region {
        &mut self.regions[file]
    }
}

/// The length that all operations of a random job with full coverage have, if they have one.
pub(crate) fn whole_blocks(access: &Access) -> Option<u64> {
    if !access.random || !access.full_coverage {
        return None;
    }
    one_length(access).filter(|bytes| {
        Direction::ALL.iter().all(|direction| {
            !access.pattern.includes(*direction) || access.align_bytes[direction.index()] == *bytes
        })
    })
}

/// The length that all operations have, if they have one.
pub(crate) fn one_length(access: &Access) -> Option<u64> {
    let sizes = &access.block_sizes;
    let used = match access.pattern {
        _ if access.sizes_by_order => [&sizes[0], &sizes[1]],
        Pattern::Only(direction) => [&sizes[direction.index()]; 2],
        Pattern::Mixed => [&sizes[0], &sizes[1]],
        // A write takes its trim's length.
        Pattern::TrimThenWrite => [&sizes[Direction::Trim.index()]; 2],
    };
    let [first, second] = used;
    let bytes = first.min();
    [first.max(), second.min(), second.max()].iter().all(|other| *other == bytes).then_some(bytes)
}
