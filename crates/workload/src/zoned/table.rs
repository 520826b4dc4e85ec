//! The zones of one target, shared by all jobs that work on it.
//!
//! Invariant: a zone of a device has at most one write or reset in flight, or only appends, whose places the device chooses.
//! What a zone holds is what was claimed of it, without what has failed or is in flight. There is no lock: each zone is one word, which a writer changes in one atomic step.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use fiord_errno::Errno;
use fiord_stats::Capped;

use super::waiters::ZoneWaiters;
use crate::size::quotient;

/// Somebody has the zone alone: a write or a reset is in flight.
const BUSY: u64 = 1 << 63;
/// The zone counts as open.
const OPEN: u64 = 1 << 62;
const WRITTEN: u64 = OPEN - 1;

/// An empty slot for an open zone.
const FREE: u64 = u64::MAX;

/// Operations on the zones of a device. Emulated zones need none.
pub trait ZoneDevice: Send + Sync {
    /// Resets a zone.
    ///
    /// # Errors
    /// The errno of the call.
    fn reset(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno>;

    /// Makes a zone full, so that it does not count as open any longer.
    ///
    /// # Errors
    /// The errno of the call.
    fn finish(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno>;

    /// Bytes written to the zone that begins there.
    ///
    /// # Errors
    /// The errno of the call.
    fn written_bytes(&self, start_bytes: u64) -> Result<u64, Errno>;
}

/// The device as one worker has it open, because workers do not share descriptors; `None` where zones are emulated.
pub(crate) type OpenDevice<'a> = Option<&'a dyn ZoneDevice>;

/// One zone when the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Where it begins.
    pub start_bytes: u64,
    /// Up to the start of the next.
    pub length_bytes: u64,
    /// How much of it can be written.
    pub capacity_bytes: u64,
    /// How much of it is written; meaningless for a conventional zone.
    pub written_bytes: u64,
    /// Whether the device itself counts it as open.
    pub is_open: bool,
    /// Whether it is written at its write pointer only.
    pub is_sequential: bool,
}

struct Zone {
    layout: ZoneLayout,
    state: AtomicU64,
    /// Resets so far, counted before each begins, so that what is read without a change in between was there before it.
    resets: AtomicU64,
    /// Bytes of writes in flight, for which a reset waits.
    in_flight_bytes: AtomicU64,
}

impl Zone {
    /// Bytes left of a zone whose word is `seen`, if it is to be closed because they are less than `shortest_bytes`.
    #[inline]
    fn closes(&self, seen: u64, shortest_bytes: u64) -> Option<u64> {
        let left = self.layout.capacity_bytes.saturating_sub(seen & WRITTEN);
        (seen & (BUSY | OPEN) == OPEN && left < shortest_bytes).then_some(left)
    }
}

/// The zones of a target.
pub struct ZoneTable {
    zones: Box<[Zone]>,
    /// Where the first zone begins.
    first_bytes: u64,
    /// Length of the first zone, which as a rule is that of all but the last.
    usual_bytes: u64,
    /// Numbers of open zones, as many as may be open; empty without a limit.
    slots: Box<[AtomicU64]>,
    waiters: ZoneWaiters,
    /// Bytes written to sequential zones, or about to be; `None` if no job asks for them.
    data_bytes: Option<AtomicU64>,
    is_device: bool,
}

/// The result of claiming a write to a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// Write here.
    At(u64),
    /// The zone has no room for it.
    Full,
    /// Something else is in flight there.
    Busy,
    /// The zone is not open, and no more zones may be opened.
    TooManyOpen,
}

impl ZoneTable {
    /// The zones of a target, in the order of their starts. Without `is_device` they are emulated.
    pub fn new(layout: Vec<ZoneLayout>, open_max: Option<u32>, is_device: bool) -> ZoneTable {
        let slots: Box<[AtomicU64]> = (0..open_max.unwrap_or(0)).map(|_| AtomicU64::new(FREE)).collect();
        let open = layout.iter().enumerate().filter(|(_, zone)| zone.is_sequential && zone.is_open);
        let open: Vec<u64> = open.map(|(index, _)| index as u64).take(slots.len()).collect();
        open.iter().zip(&slots).for_each(|(zone, slot)| slot.store(*zone, Relaxed));
        let zone = |(index, layout): (usize, ZoneLayout)| {
            let is_open = layout.is_open && (slots.is_empty() || open.contains(&(index as u64)));
            let flag = if is_open { OPEN } else { 0 };
            Zone {
                layout,
                state: AtomicU64::new(flag | layout.written_bytes),
                resets: AtomicU64::new(0),
                in_flight_bytes: AtomicU64::new(0),
            }
        };
        let first_bytes = layout.first().map_or(0, |zone| zone.start_bytes);
        let usual_bytes = layout.first().map_or(1, |zone| zone.length_bytes.max(1));
        let zones = layout.into_iter().enumerate().map(zone).collect();
        ZoneTable {
            zones,
            first_bytes,
            usual_bytes,
            slots,
            waiters: ZoneWaiters::default(),
            data_bytes: None,
            is_device,
        }
    }

    /// The same zones, whose jobs wait together with those of other targets.
    #[must_use]
    pub fn sharing(self, waiters: ZoneWaiters) -> ZoneTable {
        ZoneTable { waiters, ..self }
    }

    /// The same zones, with a count of the bytes written to them.
    #[must_use]
    pub fn counting_data(self) -> ZoneTable {
        let sequential = self.zones.iter().filter(|zone| zone.layout.is_sequential);
        let data_bytes = sequential.map(|zone| zone.layout.written_bytes).sum();
        ZoneTable { data_bytes: Some(AtomicU64::new(data_bytes)), ..self }
    }

    /// The jobs that change its zones.
    pub(crate) fn waiters(&self) -> &ZoneWaiters {
        &self.waiters
    }

    /// Whether as many zones are open as may be, none of them among these.
    pub(crate) fn has_no_slot_for(&self, zones: &std::ops::Range<usize>) -> bool {
        let is_elsewhere = |zone: u64| zone != FREE && !zones.contains(&usize::capped(zone));
        !self.slots.is_empty() && self.slots.iter().all(|slot| is_elsewhere(slot.load(Acquire)))
    }

    /// Most zones that may be open; 0 without a limit.
    pub(crate) fn open_max(&self) -> usize {
        self.slots.len()
    }

    /// A zone as it was when the run began.
    pub(crate) fn layout(&self, zone: usize) -> &ZoneLayout {
        &self.zones[zone].layout
    }

    /// The zone that holds this byte; the number of zones beyond the last.
    #[inline]
    pub(crate) fn zone_of(&self, offset_bytes: u64) -> usize {
        // Where it is if all zones are as long as the first; a search finds it otherwise.
        let guess =
            usize::capped(quotient(offset_bytes - self.first_bytes.min(offset_bytes), self.usual_bytes));
        if self.holds(guess, offset_bytes) { guess } else { self.search(offset_bytes) }
    }

    /// Whether this byte is one of the zone.
    #[inline]
    pub(crate) fn holds(&self, zone: usize, offset_bytes: u64) -> bool {
        self.zones
            .get(zone)
            .is_some_and(|zone| offset_bytes.wrapping_sub(zone.layout.start_bytes) < zone.layout.length_bytes)
    }

    /// As `zone_of`, for zones of any lengths.
    #[cold]
    fn search(&self, offset_bytes: u64) -> usize {
        self.zones.partition_point(|zone| zone.layout.start_bytes + zone.layout.length_bytes <= offset_bytes)
    }

    /// The first zone that does not begin before this byte.
    pub(crate) fn first_from(&self, offset_bytes: u64) -> usize {
        self.zones.partition_point(|zone| zone.layout.start_bytes < offset_bytes)
    }

    /// Bytes written to a zone: of a device, without those in flight.
    pub(crate) fn written_bytes(&self, zone: usize) -> u64 {
        let claimed_bytes = self.claimed_bytes(zone);
        let in_flight = &self.zones[zone].in_flight_bytes;
        if self.is_device { claimed_bytes.saturating_sub(in_flight.load(Acquire)) } else { claimed_bytes }
    }

    /// Bytes written to a zone or in flight there.
    pub(crate) fn claimed_bytes(&self, zone: usize) -> u64 {
        self.zones[zone].state.load(Acquire) & WRITTEN
    }

    /// Bytes written to sequential zones in all, of a table that counts them.
    pub(crate) fn data_bytes(&self) -> u64 {
        debug_assert!(self.data_bytes.is_some(), "a job that resets zones early asks for the count");
        self.data_bytes.as_ref().map_or(0, |data_bytes| data_bytes.load(Relaxed))
    }

    /// Counts bytes written to a sequential zone, modulo 2^64: a negative number are bytes that are gone.
    #[inline]
    fn count_data(&self, change_bytes: u64) {
        if let Some(data_bytes) = &self.data_bytes {
            data_bytes.fetch_add(change_bytes, Relaxed);
        }
    }

    /// Whether a zone is open.
    pub(crate) fn is_open(&self, zone: usize) -> bool {
        self.zones[zone].state.load(Acquire) & OPEN != 0
    }

    /// The nth of the open zones, if their number is limited.
    pub(crate) fn nth_open(&self, nth: u64) -> Option<usize> {
        let count = self.slots.len();
        let begin = usize::capped(nth) % count.max(1);
        let zones = (0..count).map(|step| self.slots[(begin + step) % count].load(Acquire));
        zones.into_iter().find(|zone| *zone != FREE).map(usize::capped)
    }

    /// Takes the right to write `length_bytes` at the zone's write pointer, which moves at once. On a device nobody else
    /// writes to it until `complete` or `fail_write`, unless it `appends` too.
    pub(crate) fn claim(&self, zone: usize, length_bytes: u64, appends: bool) -> ClaimOutcome {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        let is_alone = self.is_alone(appends);
        if seen & BUSY != 0 || is_alone && one.in_flight_bytes.load(Acquire) > 0 {
            return ClaimOutcome::Busy;
        }
        let written = seen & WRITTEN;
        if one.layout.capacity_bytes.saturating_sub(written) < length_bytes {
            return ClaimOutcome::Full;
        }
        let was_open = seen & OPEN != 0;
        if !was_open && !self.take_slot(zone) {
            return ClaimOutcome::TooManyOpen;
        }
        let next = OPEN | (written + length_bytes) | if is_alone { BUSY } else { 0 };
        // Before the zone is taken, so that whoever wants it alone then sees it.
        let in_flight_bytes = one.in_flight_bytes.fetch_add(length_bytes, AcqRel);
        let has_others = is_alone && in_flight_bytes > 0;
        if has_others || one.state.compare_exchange(seen, next, AcqRel, Acquire).is_err() {
            one.in_flight_bytes.fetch_sub(length_bytes, AcqRel);
            if !was_open {
                self.free_slot(zone);
            }
            return ClaimOutcome::Busy;
        }
        self.count_data(length_bytes);
        ClaimOutcome::At(one.layout.start_bytes + written)
    }

    /// Whether a write has its zone alone.
    fn is_alone(&self, appends: bool) -> bool {
        self.is_device && !appends
    }

    /// The claimed write has completed.
    pub(crate) fn complete(&self, zone: usize, length_bytes: u64, appends: bool) {
        self.zones[zone].in_flight_bytes.fetch_sub(length_bytes, AcqRel);
        if self.is_alone(appends) {
            self.release(zone);
        }
    }

    /// The claimed write has failed, or was never issued; `recover`: ask the device where the zone is now, which it can say
    /// when nothing else is in flight there.
    pub(crate) fn fail_write(
        &self,
        zone: usize,
        length_bytes: u64,
        appends: bool,
        recover: bool,
        device: OpenDevice<'_>,
    ) {
        let one = &self.zones[zone];
        if self.is_device {
            one.state.fetch_sub(length_bytes, AcqRel);
            self.count_data(length_bytes.wrapping_neg());
        }
        one.in_flight_bytes.fetch_sub(length_bytes, AcqRel);
        let device = device.filter(|_| recover);
        if self.is_alone(appends) || (device.is_some() && self.take(zone)) {
            let before = self.claimed_bytes(zone);
            let asked = device.and_then(|device| device.written_bytes(one.layout.start_bytes).ok());
            let now = asked.unwrap_or(before);
            self.count_data(now.wrapping_sub(before));
            one.state.store(one.state.load(Acquire) & !WRITTEN | now, Release);
            self.release(zone);
        }
    }

    /// Takes a zone for oneself until `release`; `false`: something is in flight there.
    fn take(&self, zone: usize) -> bool {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        if seen & BUSY != 0 || one.state.compare_exchange(seen, seen | BUSY, AcqRel, Acquire).is_err() {
            return false;
        }
        let is_alone = one.in_flight_bytes.load(Acquire) == 0;
        if !is_alone {
            self.release(zone);
        }
        is_alone
    }

    /// Others may use a zone again: after `take`, or a reset that has failed or was never issued.
    pub(crate) fn release(&self, zone: usize) {
        self.zones[zone].state.fetch_and(!BUSY, AcqRel);
    }

    /// Closes a zone that has less than `shortest_bytes` left, one of a device when nothing is in flight there.
    ///
    /// # Errors
    /// The device's errno, if the zone had to be finished.
    #[inline]
    pub(crate) fn close_if_full(
        &self,
        zone: usize,
        shortest_bytes: u64,
        device: OpenDevice<'_>,
    ) -> Result<(), Errno> {
        let one = &self.zones[zone];
        // Most calls end here. What they miss is left to whoever changes the word next: who makes a zone full, or gives it
        // back after `take`, asks again, as does each write when it completes.
        if one.closes(one.state.load(Acquire), shortest_bytes).is_none() {
            return Ok(());
        }
        self.close(one, zone, shortest_bytes, device)
    }

    #[cold]
    fn close(
        &self,
        one: &Zone,
        zone: usize,
        shortest_bytes: u64,
        device: OpenDevice<'_>,
    ) -> Result<(), Errno> {
        let left = loop {
            let seen = one.state.load(Acquire);
            let Some(left) = one.closes(seen, shortest_bytes) else { return Ok(()) };
            if one.state.compare_exchange(seen, seen | BUSY, AcqRel, Acquire).is_err() {
                return Ok(());
            }
            let has_writes = || self.is_device && one.in_flight_bytes.load(Acquire) > 0;
            if !has_writes() {
                break left;
            }
            self.release(zone);
            // The last write, if it has ended since, may have found the zone taken, and left this to us.
            if has_writes() {
                return Ok(());
            }
        };
        let finished = match device {
            Some(device) if left > 0 => device.finish(one.layout.start_bytes, one.layout.length_bytes),
            _ => Ok(()),
        };
        self.free_slot(zone);
        one.state.fetch_and(WRITTEN, AcqRel);
        finished
    }

    /// Resets a zone; `false`: something is in flight there.
    ///
    /// # Errors
    /// The device's errno.
    pub(crate) fn reset(&self, zone: usize, device: OpenDevice<'_>) -> Result<bool, Errno> {
        if !self.begin_reset(zone) {
            return Ok(false);
        }
        let layout = &self.zones[zone].layout;
        let reset = device.map_or(Ok(()), |device| device.reset(layout.start_bytes, layout.length_bytes));
        match reset {
            Ok(()) => self.end_reset(zone),
            Err(_) => self.release(zone),
        }
        reset.map(|()| true)
    }

    /// Takes the right to reset a zone, until `end_reset` or `release`; `false`: something is in flight there.
    pub(crate) fn begin_reset(&self, zone: usize) -> bool {
        let is_taken = self.take(zone);
        if is_taken {
            self.zones[zone].resets.fetch_add(1, AcqRel);
        }
        is_taken
    }

    /// The reset that `begin_reset` began has been done.
    pub(crate) fn end_reset(&self, zone: usize) {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        if seen & OPEN != 0 {
            self.free_slot(zone);
        }
        self.count_data((seen & WRITTEN).wrapping_neg());
        one.state.store(0, Release);
    }

    /// Resets of a zone that have begun.
    pub(crate) fn resets(&self, zone: usize) -> u64 {
        self.zones[zone].resets.load(Acquire)
    }

    /// The same of each zone.
    pub(crate) fn resets_of_all(&self) -> Vec<u64> {
        self.zones.iter().map(|zone| zone.resets.load(Acquire)).collect()
    }

    /// What divides the start and the capacity of each zone, and what is written of it.
    pub(crate) fn align_bytes(&self) -> u64 {
        let places = |zone: &Zone| {
            let ZoneLayout { start_bytes, capacity_bytes, .. } = zone.layout;
            [start_bytes, capacity_bytes, zone.state.load(Acquire) & WRITTEN]
        };
        self.zones.iter().flat_map(places).fold(0, divisor)
    }

    /// Whether zones belong to a device, which takes one write of a zone at a time, but for appends.
    pub(crate) fn is_device(&self) -> bool {
        self.is_device
    }

    fn take_slot(&self, zone: usize) -> bool {
        let is_free = |slot: &&AtomicU64| slot.load(Acquire) == FREE;
        let take = |slot: &AtomicU64| {
            // Before the slot is taken: who finds it taken must not count as waiting since before.
            self.waiters.wake();
            slot.compare_exchange(FREE, zone as u64, AcqRel, Relaxed).is_ok()
        };
        self.slots.is_empty() || self.slots.iter().filter(is_free).any(take)
    }

    fn free_slot(&self, zone: usize) {
        for slot in &self.slots {
            if slot.compare_exchange(zone as u64, FREE, AcqRel, Relaxed).is_ok() {
                return self.waiters.wake();
            }
        }
    }
}

impl std::fmt::Debug for ZoneTable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ZoneTable of {} zones", self.zones.len())
    }
}

/// The greatest common divisor.
pub(crate) fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::Random;

    /// Zones of these lengths, one behind the other.
    fn table(first_bytes: u64, lengths: &[u64]) -> ZoneTable {
        let mut start_bytes = first_bytes;
        let layout = |length_bytes: &u64| {
            let layout = ZoneLayout {
                start_bytes,
                length_bytes: *length_bytes,
                capacity_bytes: *length_bytes,
                written_bytes: 0,
                is_open: false,
                is_sequential: true,
            };
            start_bytes += length_bytes;
            layout
        };
        ZoneTable::new(lengths.iter().map(layout).collect(), None, false)
    }

    #[test]
    fn a_zone_is_found_as_by_a_search_whatever_the_lengths() {
        let mut random = Random::new(7);
        for round in 0..200 {
            // Equal ones but for the last, or of any lengths; the first zone begins at 0 or behind it.
            let count = random.below(20) as usize;
            let mut lengths: Vec<u64> =
                (0..count).map(|_| if round % 2 == 0 { 64 } else { 1 + random.below(64) }).collect();
            lengths.extend([1 + random.below(64)].iter().filter(|_| round % 4 < 2));
            let first_bytes = random.below(3) * 50;
            let zones = table(first_bytes, &lengths);
            let end_bytes = first_bytes + lengths.iter().sum::<u64>();
            for offset_bytes in (0..end_bytes + 70).chain([u64::MAX]) {
                let searched = zones.search(offset_bytes);
                assert_eq!(
                    zones.zone_of(offset_bytes),
                    searched,
                    "{offset_bytes} of {first_bytes} {lengths:?}"
                );
                let holds: Vec<usize> =
                    (0..lengths.len() + 1).filter(|zone| zones.holds(*zone, offset_bytes)).collect();
                let is_within = (first_bytes..end_bytes).contains(&offset_bytes);
                assert_eq!(holds, if is_within { vec![searched] } else { vec![] });
            }
        }
    }
}
