//! Chooses the next operation's place in its file: after the last one, or in the file's random order.
//!
//! Invariant: every operation is within its file's region.

use fiord_plan::{Access, Direction, FileIndex, FilePlan, Files, Pattern, Sequencer};
use fiord_stats::Capped;
use fiord_stats::random::Random;

use super::map::BlockMap;
use super::order::{Order, OrderKind, Orders};
use super::permutation::Permutation;
use super::region::{ByteRange, FileRegion};
use super::spread::{RankTables, Spread};
use super::strided::FileZones;
use crate::error::WorkloadError;
use crate::size::{Sizes, quotient};
use crate::substream::Substream;

/// How the next operation finds its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextOffset {
    /// After the last one, plus the stride.
    Sequential,
    /// Anywhere.
    Random,
    /// After the last one, in a random job.
    Follow,
    /// At the offset of the last one.
    Repeat,
}

/// Places operations in the regions of all files.
#[derive(Debug, Clone)]
pub(crate) struct Placer {
    /// The current zone of each file where the job has zones, else what it uses of the file.
    regions: Vec<FileRegion>,
    /// The strided zones of each file; empty if the job has none.
    zones: Vec<FileZones>,
    /// The bytes that an operation counts in its zone, per byte of its length: 2 if a write follows each trim.
    zone_factor: u64,
    orders: Orders,
    sizes: Sizes,
    random: Random,
    order_seeds: Random,
    repeat_order: bool,
    is_random: bool,
    stride_bytes: i64,
    percent_random: [u8; 3],
    /// Whether this is a random job that draws no place (`percentage_random=0`), unless a file ends with a whole block.
    is_never_drawn: bool,
    align_bytes: [u64; 3],
    sequencer: Sequencer,
    ios_per_draw: u32,
    until_draw: u32,
}

impl Placer {
    /// A placer for the regions of these files.
    ///
    /// # Errors
    /// If a map does not fit into memory and the job requires one.
    pub(crate) fn new(access: &Access, files: &Files) -> Result<Placer, WorkloadError> {
        let orders = Orders::new(access);
        let sizes = Sizes::new(access);
        let align_bytes = access.align_bytes.map(|bytes| bytes.max(1));
        let mut order_seeds = Substream::Orders.of(access.seed);
        let mut favourites = Substream::Favourites.of(access.seed);
        let mut tables = RankTables::default();
        let mut regions = Vec::with_capacity(files.list.len());
        for (file, plan) in files.list.iter().enumerate() {
            let zone_bytes = access.strided.map_or(u64::MAX, |zones| zones.zone_bytes);
            let length_bytes = plan.length_bytes.min(zone_bytes);
            let places = Direction::ALL.map(|direction| {
                let last = length_bytes.checked_sub(sizes.min(direction, true));
                last.map_or(0, |last| last / align_bytes[direction.index()] + 1)
            });
            let anywhere = favourites.unit();
            let spread = || {
                Box::new([0, 1, 2].map(|index: usize| {
                    let (distribution, align_bytes) = (&access.distribution[index], align_bytes[index]);
                    Spread::new(distribution, length_bytes, places[index], align_bytes, anywhere, &mut tables)
                }))
            };
            let mut extent = OrderedRange { file: FileIndex::capped(file), length_bytes, places, spread };
            let order = |kind| order(kind, &mut extent, access.soft_map, order_seeds.next_u64());
            let orders = orders.kinds.iter().map(order).collect::<Result<_, _>>()?;
            regions.push(FileRegion::new(plan.offset_bytes, length_bytes, orders));
        }
        Ok(Placer {
            regions,
            zones: access.strided.map_or_else(Vec::new, |zones| {
                let of_file = |plan: &FilePlan| {
                    let end_bytes = plan.offset_bytes.saturating_add(plan.length_bytes);
                    FileZones::new(zones, plan.offset_bytes, end_bytes)
                };
                files.list.iter().map(of_file).collect()
            }),
            zone_factor: if access.pattern == Pattern::TrimThenWrite { 2 } else { 1 },
            orders,
            sizes,
            random: Substream::Offsets.of(access.seed),
            order_seeds,
            repeat_order: access.repeat_order,
            is_random: access.random,
            stride_bytes: access.stride_bytes,
            percent_random: access.percent_random,
            is_never_drawn: Direction::ALL
                .into_iter()
                .filter(|direction| access.pattern.includes(*direction))
                .all(|direction| access.percent_random[direction.index()] == 0),
            align_bytes,
            sequencer: access.sequencer,
            ios_per_draw: access.ios_per_draw.max(1),
            until_draw: 0,
        })
    }

    /// Restarts a file, in a new order unless the job repeats the first.
    pub(crate) fn restart_file(&mut self, file: usize) {
        match self.zones.get_mut(file).map(FileZones::restart) {
            None => self.regions[file].restart(),
            Some(true) => self.enter_zone(file),
            // Goes on within its zone.
            Some(false) => return,
        }
        for order in &mut self.regions[file].orders {
            match order {
                Order::Permutation(permutation) if self.repeat_order => permutation.restart(),
                order => renew(order, &mut self.order_seeds),
            }
        }
    }

    /// Restarts all files.
    pub(crate) fn restart(&mut self) {
        (0..self.regions.len()).for_each(|file| self.restart_file(file));
    }

    /// How the next operation gets its offset, in whichever file.
    #[inline]
    pub(crate) fn step(&mut self, direction: Direction) -> NextOffset {
        if !self.is_random {
            return NextOffset::Sequential;
        }
        if self.until_draw == 0 {
            self.until_draw = self.ios_per_draw - 1;
        } else {
            self.until_draw -= 1;
            return if self.sequencer == Sequencer::Identical {
                NextOffset::Repeat
            } else {
                NextOffset::Follow
            };
        }
        let percent = self.percent_random[direction.index()];
        if percent >= 100 || self.random.percent() < u32::from(percent) {
            NextOffset::Random
        } else {
            NextOffset::Follow
        }
    }

    /// The place of the next operation in this file; `None` when the file is done.
    #[inline]
    pub(crate) fn place(&mut self, file: usize, direction: Direction, step: NextOffset) -> Option<ByteRange> {
        if self.zones.is_empty() {
            return self.place_in_region(file, direction, step);
        }
        if self.zones[file].go_on() {
            self.enter_zone(file);
        }
        let place = match self.place_in_region(file, direction, step) {
            None if self.zones[file].repeats() => {
                self.enter_zone(file);
                self.place_in_region(file, direction, step)
            }
            place => place,
        }?;
        self.zones[file].count(place.length_bytes * self.zone_factor);
        Some(place)
    }

    /// Begins the current zone of a file.
    fn enter_zone(&mut self, file: usize) {
        let (start_bytes, end_bytes) = self.zones[file].bounds();
        let region = &mut self.regions[file];
        region.move_to(start_bytes, end_bytes);
        region.orders.iter_mut().for_each(|order| renew(order, &mut self.order_seeds));
    }

    /// The place of the next operation within the file's region; `None` when there is no more room in it.
    #[inline]
    fn place_in_region(&mut self, file: usize, direction: Direction, step: NextOffset) -> Option<ByteRange> {
        let offset_bytes = match step {
            NextOffset::Sequential => self.regions[file].next_sequential(direction, self.stride_bytes),
            NextOffset::Random => return self.place_randomly(file, direction),
            NextOffset::Follow => Some(self.regions[file].position(direction)),
            NextOffset::Repeat => Some(self.regions[file].last(direction)),
        }?;
        let room_bytes = self.regions[file].room_bytes(offset_bytes);
        if room_bytes < self.sizes.min(direction, false) {
            // In a random job the end of the region only ends the sequential part. As in fio, a job that draws no place ends
            // with a rest that is shorter than a block all the same.
            let is_over = step == NextOffset::Sequential || self.is_never_drawn && room_bytes > 0;
            return if is_over { None } else { self.place_randomly(file, direction) };
        }
        let length_bytes = self.sizes.draw(direction, false, room_bytes);
        Some(self.take(file, direction, ByteRange { offset_bytes, length_bytes }))
    }

    /// The next random place in a file, from which the next may follow on.
    #[inline]
    fn place_randomly(&mut self, file: usize, direction: Direction) -> Option<ByteRange> {
        let place = self.random_place(file, direction)?;
        Some(self.take(file, direction, place))
    }

    /// The next random place in a file; `None` when the file is done.
    #[inline]
    pub(crate) fn random_place(&mut self, file: usize, direction: Direction) -> Option<ByteRange> {
        let region = &mut self.regions[file];
        let min_bytes = self.sizes.min(direction, true);
        let room_bytes = region.length_bytes();
        if room_bytes < min_bytes {
            return None;
        }
        let order = &mut region.orders[self.orders.index[direction.index()]];
        let (within_bytes, length_bytes) = loop {
            let (within_bytes, length_bytes) = match &mut *order {
                Order::Map(map) => {
                    mapped_place(map, &mut self.sizes, &mut self.random, direction, (min_bytes, room_bytes))?
                }
                Order::Permutation(permutation) => (permutation.next()? * min_bytes, min_bytes),
                order @ (Order::Draws(_) | Order::Spread(_)) => {
                    let align_bytes = self.align_bytes[direction.index()];
                    let place = drawn_place(order, direction, &mut self.random);
                    // The last zone of a file may be shorter than those that the places were counted for.
                    let last = (room_bytes - min_bytes) / align_bytes;
                    let place = if place <= last { place } else { place % (last + 1) };
                    let within_bytes = place * align_bytes;
                    (within_bytes, self.sizes.draw(direction, true, room_bytes - within_bytes))
                }
            };
            // It may also lack blocks of an order.
            match room_bytes.checked_sub(within_bytes) {
                Some(room_bytes) if room_bytes >= min_bytes => {
                    break (within_bytes, length_bytes.min(room_bytes));
                }
                _ => continue,
            }
        };
        Some(ByteRange { offset_bytes: region.start_bytes() + within_bytes, length_bytes })
    }

    #[inline]
    fn take(&mut self, file: usize, direction: Direction, place: ByteRange) -> ByteRange {
        self.regions[file].advance(direction, place);
        place
    }

    /// The length of all operations of a random job that covers each block once, if it is fixed.
    pub(crate) fn one_block_bytes(&self) -> Option<u64> {
        self.orders.one_block_bytes().filter(|_| self.is_always_drawn() && self.zones.is_empty())
    }

    /// The length of all operations of a random job on one file without coverage, if it is fixed and fits into the
    /// file.
    pub(crate) fn one_draw_bytes(&self, pattern: Pattern) -> Option<u64> {
        let mut used = Direction::ALL.into_iter().filter(|direction| pattern.includes(*direction));
        let first = used.next()?;
        let length_bytes = self.sizes.fixed(first, true)?;
        let region = &self.regions[0];
        let has_room = region.length_bytes() >= length_bytes;
        let has_same_length = used.all(|direction| self.sizes.fixed(direction, true) == Some(length_bytes));
        let draws = region.orders.iter().all(|order| matches!(order, Order::Draws(_) | Order::Spread(_)));
        (self.is_always_drawn() && self.zones.is_empty() && draws && has_same_length && has_room)
            .then_some(length_bytes)
    }

    /// For batches: a place for an operation of a job for which `one_draw_bytes` returns a length.
    #[inline]
    pub(crate) fn draw(&mut self, direction: Direction) -> u64 {
        let (region, index) = (&mut self.regions[0], direction.index());
        let place = drawn_place(&mut region.orders[self.orders.index[index]], direction, &mut self.random);
        region.start_bytes() + place * self.align_bytes[index]
    }

    /// Whether this is a random job on one file that draws each place.
    pub(crate) fn is_one_file_drawn(&self) -> bool {
        self.regions.len() == 1 && self.is_always_drawn() && self.zones.is_empty()
    }

    /// Whether such a job covers each block once.
    pub(crate) fn is_mapped(&self) -> bool {
        self.regions[0].orders.iter().all(|order| matches!(order, Order::Map(_)))
    }

    /// For batches: as `random_place` in the only file, of a job for which `is_mapped` holds.
    #[inline]
    pub(crate) fn mapped_place(&mut self, direction: Direction) -> Option<ByteRange> {
        let region = &mut self.regions[0];
        let (start_bytes, room_bytes) = (region.start_bytes(), region.length_bytes());
        let Order::Map(map) = &mut region.orders[self.orders.index[direction.index()]] else { return None };
        let extent = (self.sizes.min(direction, true), room_bytes);
        let (within_bytes, length_bytes) =
            mapped_place(map, &mut self.sizes, &mut self.random, direction, extent)?;
        Some(ByteRange { offset_bytes: start_bytes + within_bytes, length_bytes })
    }

    /// Whether every operation has a random place.
    fn is_always_drawn(&self) -> bool {
        self.is_random && self.ios_per_draw == 1 && self.percent_random.iter().all(|percent| *percent >= 100)
    }

    /// The length of all operations of a sequential job without strides, if it is fixed.
    pub(crate) fn one_stretch_bytes(&self, direction: Direction) -> Option<u64> {
        let goes_straight = !self.is_random && self.stride_bytes == 0 && self.zones.is_empty();
        self.sizes.fixed(direction, false).filter(|_| goes_straight)
    }

    /// For batches: the region of a file.
    #[inline]
    pub(crate) fn region_mut(&mut self, file: usize) -> &mut FileRegion {
        &mut self.regions[file]
    }
}

/// The offset and length, in bytes, of a run of blocks that a map has left; `None` if it has none. The extent is that of
/// a block and of the whole map.
#[inline]
fn mapped_place(
    map: &mut BlockMap,
    sizes: &mut Sizes,
    random: &mut Random,
    direction: Direction,
    (block_bytes, map_bytes): (u64, u64),
) -> Option<(u64, u64)> {
    // Checked first, so that a file that is done draws no random numbers, however often this is called.
    if map.is_empty() {
        return None;
    }
    let length_bytes = sizes.draw(direction, true, map_bytes);
    let run =
        map.take(random.below(map.blocks()), quotient(length_bytes + (block_bytes - 1), block_bytes))?;
    Some((run.first * block_bytes, length_bytes.min(run.count * block_bytes)))
}

/// A place of an order that draws each anew.
#[inline]
fn drawn_place(order: &mut Order, direction: Direction, random: &mut Random) -> u64 {
    match order {
        Order::Draws(places) => random.below(places[direction.index()]),
        Order::Spread(spreads) => spreads[direction.index()].draw(random),
        Order::Permutation(_) | Order::Map(_) => 0,
    }
}

/// Begins an order again, in a new sequence.
fn renew(order: &mut Order, seeds: &mut Random) {
    match order {
        Order::Draws(_) => {}
        Order::Spread(spreads) => spreads.iter_mut().for_each(Spread::restart),
        Order::Permutation(permutation) => permutation.reseed(seeds.next_u64()),
        Order::Map(map) => map.restart(),
    }
}

/// What an order is made over.
struct OrderedRange<S> {
    file: FileIndex,
    length_bytes: u64,
    /// Places that random operations of each direction have.
    places: [u64; 3],
    /// Makes the spreads of the three directions.
    spread: S,
}

/// An order over this extent.
fn order(
    kind: &OrderKind,
    extent: &mut OrderedRange<impl FnMut() -> Box<[Spread; 3]>>,
    soft_map: bool,
    seed: u64,
) -> Result<Order, WorkloadError> {
    match *kind {
        OrderKind::Draws => Ok(Order::Draws(extent.places)),
        OrderKind::Spread => Ok(Order::Spread((extent.spread)())),
        OrderKind::Permutation { block_bytes } => {
            Ok(Order::Permutation(Permutation::new(extent.length_bytes / block_bytes, seed)))
        }
        OrderKind::Map { block_bytes } => {
            let blocks = extent.length_bytes / block_bytes;
            match BlockMap::new(blocks) {
                Ok(map) => Ok(Order::Map(map)),
                Err(_) if soft_map => Ok(Order::Draws(extent.places)),
                Err(_) => Err(WorkloadError::MapTooLarge { file: extent.file, blocks }),
            }
        }
    }
}
