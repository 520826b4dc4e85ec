//! Where operations go: one file per order.
//!
//! Invariant: every operation lies within its file's region.

pub(crate) mod map;
pub(crate) mod order;
pub(crate) mod permutation;
pub(crate) mod region;

use fiord_plan::{Access, Direction, FileIndex, Files, Pattern, Sequencer};
use fiord_stats::random::Random;

use crate::WorkloadError;
use crate::size::Sizes;
use map::BlockMap;
use order::{Kind, Order, Orders};
use permutation::Permutation;
use region::{Place, Region};

/// What the draws for offsets are told apart by.
const PURPOSE: u64 = 4;

/// What the draws for the seeds of orders are told apart by.
const ORDER_PURPOSE: u64 = 6;

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
    orders: Orders,
    sizes: Sizes,
    random: Random,
    order_seeds: Random,
    repeat_order: bool,
    is_random: bool,
    stride_bytes: i64,
    percent_random: [u8; 3],
    align_bytes: [u64; 3],
    sequencer: Sequencer,
    ios_per_draw: u32,
    until_draw: u32,
}

impl Placer {
    /// Over the regions of these files.
    ///
    /// # Errors
    /// When a map does not fit into memory and the job insists on one.
    pub(crate) fn new(access: &Access, files: &Files) -> Result<Placer, WorkloadError> {
        let orders = Orders::new(access);
        let sizes = Sizes::new(access);
        let align_bytes = access.align_bytes.map(|bytes| bytes.max(1));
        let mut order_seeds = Random::for_purpose(access.seed, ORDER_PURPOSE);
        let mut regions = Vec::with_capacity(files.list.len());
        for (file, plan) in files.list.iter().enumerate() {
            let places = Direction::ALL.map(|direction| {
                let last = plan.length_bytes.checked_sub(sizes.min(direction, true));
                last.map_or(0, |last| last / align_bytes[direction.index()] + 1)
            });
            let order = |kind| {
                let seed = order_seeds.next_u64();
                order(kind, plan.length_bytes, places, access.soft_map, file as FileIndex, seed)
            };
            let orders = orders.kinds.iter().map(order).collect::<Result<_, _>>()?;
            regions.push(Region::new(plan.offset_bytes, plan.length_bytes, orders));
        }
        Ok(Placer {
            regions,
            orders,
            sizes,
            random: Random::for_purpose(access.seed, PURPOSE),
            order_seeds,
            repeat_order: access.repeat_order,
            is_random: access.random,
            stride_bytes: access.stride_bytes,
            percent_random: access.percent_random,
            align_bytes,
            sequencer: access.sequencer,
            ios_per_draw: access.ios_per_draw.max(1),
            until_draw: 0,
        })
    }

    /// Begins a file again, in a new order unless the job repeats the first.
    pub(crate) fn restart_file(&mut self, file: usize) {
        let region = &mut self.regions[file];
        region.restart();
        for order in &mut region.orders {
            match order {
                Order::Draws(_) => {}
                Order::Permutation(permutation) if self.repeat_order => permutation.restart(),
                Order::Permutation(permutation) => permutation.reseed(self.order_seeds.next_u64()),
                Order::Map(map) => map.restart(),
            }
        }
    }

    /// Begins all files again.
    pub(crate) fn restart(&mut self) {
        (0..self.regions.len()).for_each(|file| self.restart_file(file));
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
        let room_bytes = region.length_bytes();
        if room_bytes < min_bytes {
            return None;
        }
        let index = self.orders.index[direction.index()];
        let (within_bytes, length_bytes) = match &mut region.orders[index] {
            Order::Draws(places) => {
                let places = places[direction.index()];
                let within_bytes = self.random.below(places) * self.align_bytes[direction.index()];
                (within_bytes, self.sizes.draw(direction, true, room_bytes - within_bytes))
            }
            Order::Permutation(permutation) => (permutation.next()? * min_bytes, min_bytes),
            // Checked first: a file that is done must not cost draws, however often it is asked.
            Order::Map(map) if map.is_empty() => return None,
            Order::Map(map) => {
                let length_bytes = self.sizes.draw(direction, true, room_bytes);
                let run = map.take(self.random.below(map.blocks()), length_bytes.div_ceil(min_bytes))?;
                (run.first * min_bytes, length_bytes.min(run.count * min_bytes))
            }
        };
        let offset_bytes = region.start_bytes() + within_bytes;
        Some(self.take(file, direction, Place { offset_bytes, length_bytes }))
    }

    #[inline]
    fn take(&mut self, file: usize, direction: Direction, place: Place) -> Place {
        self.regions[file].advance(direction, place);
        place
    }

    /// The length of all operations of a random job that covers each block once, if they have one.
    pub(crate) fn one_block_bytes(&self) -> Option<u64> {
        self.orders.one_block_bytes().filter(|_| self.is_always_drawn())
    }

    /// The length of all operations of a random job on one file that draws each place anew, if they have one and the
    /// file has room for it.
    pub(crate) fn one_draw_bytes(&self, pattern: Pattern) -> Option<u64> {
        let mut used = Direction::ALL.into_iter().filter(|direction| pattern.includes(*direction));
        let first = used.next()?;
        let length_bytes = self.sizes.fixed(first, true)?;
        let region = &self.regions[0];
        let has_room = region.length_bytes() >= length_bytes;
        let has_same_length = used.all(|direction| self.sizes.fixed(direction, true) == Some(length_bytes));
        let draws = region.orders.iter().all(|order| matches!(order, Order::Draws(_)));
        (self.is_always_drawn() && draws && has_same_length && has_room).then_some(length_bytes)
    }

    /// For batches: a place for an operation of a job that `one_draw_bytes` has a length for.
    #[inline]
    pub(crate) fn draw(&mut self, direction: Direction) -> u64 {
        let (region, index) = (&self.regions[0], direction.index());
        let Order::Draws(places) = &region.orders[self.orders.index[index]] else {
            return region.start_bytes();
        };
        region.start_bytes() + self.random.below(places[index]) * self.align_bytes[index]
    }

    /// Whether every operation finds its place at random.
    fn is_always_drawn(&self) -> bool {
        self.is_random && self.ios_per_draw == 1 && self.percent_random.iter().all(|percent| *percent >= 100)
    }

    /// The length of all operations of a sequential job without strides, if they have one.
    pub(crate) fn one_stretch_bytes(&self, direction: Direction) -> Option<u64> {
        let goes_straight = !self.is_random && self.stride_bytes == 0;
        self.sizes.fixed(direction, false).filter(|_| goes_straight)
    }

    /// For batches: the region of a file.
    #[inline]
    pub(crate) fn region_mut(&mut self, file: usize) -> &mut Region {
        &mut self.regions[file]
    }
}

/// An order over a region of this length, in which random operations of each direction have so many places.
fn order(
    kind: &Kind,
    length_bytes: u64,
    places: [u64; 3],
    soft_map: bool,
    file: FileIndex,
    seed: u64,
) -> Result<Order, WorkloadError> {
    match *kind {
        Kind::Draws => Ok(Order::Draws(places)),
        Kind::Permutation { block_bytes } => {
            Ok(Order::Permutation(Permutation::new(length_bytes / block_bytes, seed)))
        }
        Kind::Map { block_bytes } => {
            let blocks = length_bytes / block_bytes;
            match BlockMap::new(blocks) {
                Ok(map) => Ok(Order::Map(map)),
                Err(_) if soft_map => Ok(Order::Draws(places)),
                Err(_) => Err(WorkloadError::MapTooLarge { file, blocks }),
            }
        }
    }
}
