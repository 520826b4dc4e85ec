//! The zones of one target, shared by all jobs that work on it.
//!
//! Invariant: a zone of a device has at most one write or reset in flight, and its write pointer moves when that has
//! completed. There is no lock: each zone is one word, which a writer changes in one atomic step.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use fiord_errno::Errno;

use super::waiters::ZoneWaiters;

/// A write or a reset of the zone is in flight.
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
    /// Writes in flight, for which a reset waits: one at most, but where zones are emulated.
    writes: AtomicU64,
}

/// The zones of a target.
pub struct ZoneTable {
    zones: Box<[Zone]>,
    /// Numbers of open zones, as many as may be open; empty without a limit.
    slots: Box<[AtomicU64]>,
    waiters: ZoneWaiters,
    /// Bytes written to sequential zones.
    data_bytes: AtomicU64,
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
        let sequential = || layout.iter().filter(|zone| zone.is_sequential);
        let data_bytes = sequential().map(|zone| zone.written_bytes).sum();
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
                writes: AtomicU64::new(0),
            }
        };
        let zones = layout.into_iter().enumerate().map(zone).collect();
        let data_bytes = AtomicU64::new(data_bytes);
        ZoneTable { zones, slots, waiters: ZoneWaiters::default(), data_bytes, is_device }
    }

    /// The same zones, whose jobs wait together with those of other targets.
    #[must_use]
    pub fn sharing(self, waiters: ZoneWaiters) -> ZoneTable {
        ZoneTable { waiters, ..self }
    }

    /// The jobs that change its zones.
    pub(crate) fn waiters(&self) -> &ZoneWaiters {
        &self.waiters
    }

    /// Whether as many zones are open as may be, none of them among these.
    pub(crate) fn has_no_slot_for(&self, zones: &std::ops::Range<usize>) -> bool {
        let is_elsewhere = |zone: u64| zone != FREE && !zones.contains(&(zone as usize));
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
    pub(crate) fn zone_of(&self, offset_bytes: u64) -> usize {
        self.zones.partition_point(|zone| zone.layout.start_bytes + zone.layout.length_bytes <= offset_bytes)
    }

    /// The first zone that does not begin before this byte.
    pub(crate) fn first_from(&self, offset_bytes: u64) -> usize {
        self.zones.partition_point(|zone| zone.layout.start_bytes < offset_bytes)
    }

    /// Bytes written to a zone.
    pub(crate) fn written_bytes(&self, zone: usize) -> u64 {
        self.zones[zone].state.load(Acquire) & WRITTEN
    }

    /// Bytes written to sequential zones in all.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes.load(Relaxed)
    }

    /// Whether a zone is open.
    pub(crate) fn is_open(&self, zone: usize) -> bool {
        self.zones[zone].state.load(Acquire) & OPEN != 0
    }

    /// The nth of the open zones, if their number is limited.
    pub(crate) fn nth_open(&self, nth: u64) -> Option<usize> {
        let count = self.slots.len();
        let begin = nth as usize % count.max(1);
        let zones = (0..count).map(|step| self.slots[(begin + step) % count].load(Acquire));
        zones.into_iter().find(|zone| *zone != FREE).map(|zone| zone as usize)
    }

    /// Takes the right to write `length_bytes` at the zone's write pointer. On a device nobody else writes to it until
    /// `complete` or `fail`; where zones are emulated the pointer moves at once.
    pub(crate) fn claim(&self, zone: usize, length_bytes: u64) -> ClaimOutcome {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        if seen & BUSY != 0 {
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
        let next = match self.is_device {
            true => BUSY | OPEN | written,
            false => OPEN | (written + length_bytes),
        };
        // Before the zone is taken, so that a reset that comes then sees it.
        one.writes.fetch_add(1, AcqRel);
        if one.state.compare_exchange(seen, next, AcqRel, Acquire).is_err() {
            one.writes.fetch_sub(1, AcqRel);
            if !was_open {
                self.free_slot(zone);
            }
            return ClaimOutcome::Busy;
        }
        if !self.is_device {
            self.data_bytes.fetch_add(length_bytes, Relaxed);
        }
        ClaimOutcome::At(one.layout.start_bytes + written)
    }

    /// The claimed write has completed.
    pub(crate) fn complete(&self, zone: usize, length_bytes: u64) {
        self.zones[zone].writes.fetch_sub(1, AcqRel);
        if self.is_device {
            let written = self.written_bytes(zone) + length_bytes;
            self.data_bytes.fetch_add(length_bytes, Relaxed);
            self.zones[zone].state.store(OPEN | written, Release);
        }
    }

    /// The claimed write or reset has failed, or was never issued; `recover`: ask the device where the zone is now.
    pub(crate) fn fail(&self, zone: usize, recover: bool, device: OpenDevice<'_>) {
        let one = &self.zones[zone];
        // A reset waits for writes, so that there is either a write or a reset.
        let is_write = one.writes.fetch_update(AcqRel, Acquire, |writes| writes.checked_sub(1)).is_ok();
        if is_write && !self.is_device {
            return;
        }
        let seen = one.state.load(Acquire);
        let before = seen & WRITTEN;
        let asked =
            device.filter(|_| recover).and_then(|device| device.written_bytes(one.layout.start_bytes).ok());
        let now = asked.unwrap_or(before);
        self.data_bytes.fetch_add(now.wrapping_sub(before), Relaxed);
        one.state.store(seen & OPEN | now, Release);
    }

    /// Closes a zone that has less than `shortest_bytes` left.
    ///
    /// # Errors
    /// The device's errno, if the zone had to be finished.
    pub(crate) fn close_if_full(
        &self,
        zone: usize,
        shortest_bytes: u64,
        device: OpenDevice<'_>,
    ) -> Result<(), Errno> {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        let left = one.layout.capacity_bytes.saturating_sub(seen & WRITTEN);
        let closed = BUSY | (seen & WRITTEN);
        let closes = seen & (BUSY | OPEN) == OPEN && left < shortest_bytes;
        if !closes || one.state.compare_exchange(seen, closed, AcqRel, Acquire).is_err() {
            return Ok(());
        }
        let finished = match device {
            Some(device) if left > 0 => device.finish(one.layout.start_bytes, one.layout.length_bytes),
            _ => Ok(()),
        };
        self.free_slot(zone);
        one.state.store(seen & WRITTEN, Release);
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
            Err(_) => self.fail(zone, false, device),
        }
        reset.map(|()| true)
    }

    /// Takes the right to reset a zone, until `end_reset` or `fail`; `false`: something is in flight there.
    pub(crate) fn begin_reset(&self, zone: usize) -> bool {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        if seen & BUSY != 0 || one.state.compare_exchange(seen, seen | BUSY, AcqRel, Acquire).is_err() {
            return false;
        }
        if one.writes.load(Acquire) > 0 {
            one.state.store(seen, Release);
            return false;
        }
        one.resets.fetch_add(1, AcqRel);
        true
    }

    /// The reset that `begin_reset` began has been done.
    pub(crate) fn end_reset(&self, zone: usize) {
        let one = &self.zones[zone];
        let seen = one.state.load(Acquire);
        if seen & OPEN != 0 {
            self.free_slot(zone);
        }
        self.data_bytes.fetch_sub(seen & WRITTEN, Relaxed);
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

    /// Whether zones belong to a device, which takes one write of a zone at a time.
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
