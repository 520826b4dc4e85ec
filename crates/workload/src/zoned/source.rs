//! The operations of a job on zoned targets.
//!
//! Invariant: writes go to the write pointer of their zone and never beyond its capacity; reads stay below the write
//! pointer unless the job may go beyond it. The place of an append is one that it would have if writes ended in order, until
//! it has completed: then it is where the device put it.

use fiord_errno::Errno;
use fiord_plan::job::Limits;
use fiord_plan::{Access, Action, Direction, FileIndex, Files, Op, Pattern, ZonedAccess};
use fiord_stats::Capped;
use fiord_stats::random::Random;

use super::claims::{Claim, Claims};
use super::file::{self, ZonedFile, ZonedTarget};
use super::step::{Batch, EarlyReset, Reset, Step, Stop};
use super::table::{ClaimOutcome, ZoneLayout, ZoneTable, divisor};
use super::waiters::Waiter;
use crate::barrier::BarrierCounter;
use crate::direction::Directions;
use crate::error::WorkloadError;
use crate::files::{Service, Turn};
use crate::offset::placer::Placer;
use crate::passes::Passes;
use crate::size::Sizes;
use crate::source::{OperationSource, Supply};
use crate::substream::Substream;

/// Number of zones tried for a write before it waits.
const TRIES: usize = 16;

/// Number of places drawn for a write before any zone is taken.
const DRAWS: usize = 1024;

/// Interval between two checks of zones that other jobs write to.
const LOOK_NS: u64 = 20_000;

/// The operations of a job on zoned targets.
pub struct ZonedSource {
    zoned: ZonedAccess,
    is_random: bool,
    align_bytes: [u64; 3],
    directions: Directions,
    sizes: Sizes,
    /// A zone with less room than this is full.
    least_room_bytes: u64,
    /// Where random I/O would go without zones.
    placer: Placer,
    random: Random,
    passes: Passes,
    service: Service,
    barriers: BarrierCounter,
    files: Vec<ZonedFile>,
    /// What was drawn for an operation that has to wait.
    request: Option<Direction>,
    /// Whether each trim of a zone is followed by a write of it.
    writes_after_trims: bool,
    /// The file and the zone of a trim whose write follows.
    owed: Option<(usize, usize)>,
    claims: Claims,
    in_flight: u64,
    /// Length of the write that was claimed last.
    drawn_bytes: u64,
    /// Writes above the threshold since the last reset that left room early, or since the pass began.
    writes_above: u64,
    resets: u64,
    /// Whether what was written may be read back before a zone is reset.
    asks_before_resets: bool,
    /// That was asked, so that the next reset is made.
    may_reset: bool,
    failure: Option<Stop>,
    /// The job among those that change zones of the same targets.
    waiter: Waiter,
}

impl ZonedSource {
    /// The operations of a job whose files have these zones.
    ///
    /// # Errors
    /// Why the job has no operations.
    pub fn new(
        access: &Access,
        files: &Files,
        limits: &Limits,
        zoned: &ZonedAccess,
        targets: Vec<ZonedTarget>,
    ) -> Result<ZonedSource, WorkloadError> {
        let Some(first) = targets.first().filter(|_| !files.list.is_empty()) else {
            return Err(WorkloadError::NoFiles);
        };
        let waiter = Waiter::new(first.table.waiters().clone(), access.pattern.modifies());
        let sizes = Sizes::new(access);
        let reads_alone = access.pattern == Pattern::Only(Direction::Read) && !access.random;
        let file = |(plan, target)| ZonedFile::new(plan, target, zoned, reads_alone);
        let file_list: Vec<ZonedFile> = files.list.iter().zip(targets).map(file).collect();
        let limits = file::limits(*limits, access, &file_list);
        Ok(ZonedSource {
            zoned: *zoned,
            is_random: access.random,
            align_bytes: access.align_bytes.map(|bytes| bytes.max(1)),
            directions: Directions::new(access.pattern, access.read_percent, access.seed),
            placer: Placer::new(access, files)?,
            random: Substream::Zones.of(access.seed),
            passes: Passes::new(limits, access.pattern == Pattern::TrimThenWrite, sizes.shortest(access)),
            service: Service::new(access.service, files.list.len(), files.open_at_once, access.seed),
            barriers: BarrierCounter::new(access.barriers, files.list.len()),
            files: file_list,
            least_room_bytes: match zoned.writes_remainder {
                true => 1,
                false => sizes.min(Direction::Write, access.random),
            },
            sizes,
            request: None,
            writes_after_trims: access.pattern == Pattern::TrimThenWrite,
            owed: None,
            claims: Claims::new(),
            in_flight: 0,
            drawn_bytes: 0,
            writes_above: 0,
            resets: 0,
            asks_before_resets: false,
            may_reset: false,
            failure: None,
            waiter,
        })
    }

    /// Appends at most `room` operations of this pass.
    pub(crate) fn fill_pass(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Batch {
        let before = ops.len();
        let changes = self.waiter.changes();
        let (mut end, mut tried) = (None, 0);
        while ops.len() - before < room {
            match self.next() {
                Some(Step::Made(op)) => {
                    self.in_flight += 1;
                    ops.push(op);
                    // What a claim holds others wait for: it is issued at once.
                    if self.holds_zone(&op) {
                        break;
                    }
                    continue;
                }
                Some(Step::Failed(file, errno)) => return self.stop(Stop::Errno(file, errno)),
                Some(Step::NoZone(file)) if self.in_flight == 0 => {
                    tried += 1;
                    // Another job may need a zone of another file to go on, and close one here.
                    if self.owed.is_none() && self.service.pass_over(tried) {
                        continue;
                    }
                    if self.waiter.waits_in_vain(changes) {
                        return self.stop(Stop::NoZone(file));
                    }
                }
                Some(Step::BeforeReset) => end = Some(Batch::BeforeReset),
                None => end = Some(Batch::Over),
                Some(Step::Wait | Step::NoZone(_) | Step::Done) => {}
            }
            break;
        }
        match (ops.len() > before, end) {
            (true, _) => {
                // What the job may do at the end of its operations it is asked again.
                self.may_reset &= end != Some(Batch::BeforeReset);
                Batch::Made
            }
            (false, Some(end)) => end,
            (false, None) if self.in_flight > 0 => Batch::Wait(Supply::AfterCompletion),
            (false, None) => Batch::Wait(Supply::NotBefore(now_ns + LOOK_NS)),
        }
    }

    fn stop(&mut self, why: Stop) -> Batch {
        self.failure = Some(why);
        self.waiter.leave();
        Batch::Wait(Supply::Failed)
    }

    /// Begins the next pass, when `fill_pass` has ended one; `false`: that was the last.
    pub(crate) fn begin_next_pass(&mut self) -> bool {
        let begins = !self.passes.has_ended() && self.passes.begin_next();
        if begins {
            self.service.restart();
            self.placer.restart();
            self.writes_above = 0;
            self.files.iter_mut().for_each(ZonedFile::restart);
        } else {
            self.waiter.leave();
        }
        begins
    }

    fn next(&mut self) -> Option<Step> {
        if self.passes.has_ended() {
            return None;
        }
        if let Some((file, zone)) = self.owed {
            let step = self.write_all_of(file, zone);
            if !matches!(step, Step::Wait | Step::NoZone(_)) {
                self.owed = None;
            }
            if let Step::Made(op) = &step {
                self.barriers.count(op);
            }
            return if matches!(step, Step::Done) { self.next() } else { Some(step) };
        }
        if self.passes.is_full() {
            return None;
        }
        if let Some(op) = self.barriers.take_due() {
            return Some(Step::Made(op));
        }
        let direction = self.request.take().unwrap_or_else(|| self.directions.next());
        let Turn::File(file) = self.service.turn(true) else {
            self.request = Some(direction);
            return None;
        };
        let step = match (direction, self.step(file as usize, direction)) {
            // Nothing to read yet: the job writes first.
            (Direction::Read, Step::Done) if self.directions.is_mixed() => {
                self.step(file as usize, Direction::Write)
            }
            (_, step) => step,
        };
        match step {
            Step::Made(op) => {
                self.service.count();
                self.passes.count(1, op.length_bytes);
                self.barriers.count(&op);
                Some(Step::Made(op))
            }
            Step::Done => {
                self.request = Some(direction);
                self.service.retire(true);
                self.next()
            }
            waits @ (Step::Wait | Step::NoZone(_) | Step::BeforeReset) => {
                self.request = Some(direction);
                Some(waits)
            }
            failed @ Step::Failed(..) => Some(failed),
        }
    }

    fn step(&mut self, file: usize, direction: Direction) -> Step {
        match (direction, self.is_random) {
            (Direction::Read, true) => self.read_anywhere(file),
            (Direction::Read, false) => self.read_on(file),
            (Direction::Write, true) => self.write_anywhere(file),
            (Direction::Write, false) => self.write_on(file),
            (Direction::Trim, true) => self.trim_anywhere(file),
            (Direction::Trim, false) => self.trim_on(file),
        }
    }

    fn write_on(&mut self, file: usize) -> Step {
        loop {
            let one = &self.files[file];
            let zone = one.write_zone;
            if zone >= one.end {
                // As in fio, what was skipped is made up for.
                if one.skip_zones == 0 || one.count() == 0 {
                    return Step::Done;
                }
                self.files[file].write_zone = one.first;
                continue;
            }
            if !one.table.layout(zone).is_sequential {
                // A conventional zone has no write pointer; the job keeps its own: where it entered the zone, then the
                // end of its last write.
                let step = self.write_conventional_on(file, zone);
                if matches!(step, Step::Done) {
                    self.files[file].next_zone();
                    continue;
                }
                return step;
            }
            let is_full = self.is_full(file, zone);
            if is_full && self.files[file].has_entered {
                self.files[file].next_zone();
                continue;
            }
            let early = self.early_reset(file);
            match self.reset_before_write(file, zone, early) {
                Ok(Reset::Done) => {}
                Ok(Reset::Busy) => return Step::Wait,
                Ok(Reset::Asked) => return Step::BeforeReset,
                Err(errno) => return Step::Failed(file, errno),
            }
            return match self.claim(file, zone) {
                Ok(ClaimOutcome::At(offset_bytes)) => {
                    self.files[file].has_entered = true;
                    self.count_towards_reset(early);
                    self.write(file, zone, offset_bytes)
                }
                Ok(ClaimOutcome::Full) => continue,
                Ok(ClaimOutcome::Busy) => Step::Wait,
                Ok(ClaimOutcome::TooManyOpen) => self.write_to_open(file),
                Err(errno) => Step::Failed(file, errno),
            };
        }
    }

    /// A write to a zone that is open, as in fio, because no other may be opened: a job that has ended leaves its zones
    /// open.
    fn write_to_open(&mut self, file: usize) -> Step {
        let Some(zone) = self.open_zone(file) else { return self.wait(file) };
        let written = match self.is_full(file, zone) {
            true => self.close_if_full(file, zone).map(|()| ClaimOutcome::Busy),
            false => self.claim(file, zone),
        };
        match written {
            Ok(ClaimOutcome::At(offset_bytes)) => self.write(file, zone, offset_bytes),
            Ok(ClaimOutcome::Full | ClaimOutcome::Busy | ClaimOutcome::TooManyOpen) => Step::Wait,
            Err(errno) => Step::Failed(file, errno),
        }
    }

    /// A conventional zone is written from its start to its end.
    fn write_conventional_on(&mut self, file: usize, zone: usize) -> Step {
        let one = &mut self.files[file];
        let layout = *one.table.layout(zone);
        if !one.has_entered {
            one.has_entered = true;
            one.conventional_bytes = layout.start_bytes;
        }
        let offset_bytes = one.conventional_bytes;
        let room_bytes = (layout.start_bytes + layout.length_bytes).saturating_sub(offset_bytes);
        if room_bytes < self.sizes.min(Direction::Write, false) {
            return Step::Done;
        }
        let length_bytes = self.sizes.draw(Direction::Write, false, room_bytes);
        self.files[file].conventional_bytes = offset_bytes + length_bytes;
        Step::Made(Op::new(Action::Write, FileIndex::capped(file), offset_bytes, length_bytes))
    }

    fn write_anywhere(&mut self, file: usize) -> Step {
        let waiting = self.files[file].waiting_zone.take();
        let Some(drawn) = waiting.or_else(|| self.draw_for_write(file)) else {
            return Step::Done;
        };
        let step = self.write_to_any(file, drawn);
        if matches!(step, Step::Wait | Step::NoZone(_) | Step::BeforeReset) {
            self.files[file].waiting_zone = Some(drawn);
        }
        step
    }

    /// A write to this zone, or to another if it cannot be written now.
    fn write_to_any(&mut self, file: usize, mut zone: usize) -> Step {
        for _ in 0..TRIES {
            let table = &self.files[file].table;
            if !table.layout(zone).is_sequential {
                return self.anywhere_in(file, zone, Direction::Write, table.layout(zone).length_bytes);
            }
            if let Some(mine) = self.zone_of_mine(file, zone) {
                zone = mine;
            }
            let early = self.early_reset(file);
            match self.reset_before_write(file, zone, early) {
                Ok(Reset::Done) => {}
                Ok(Reset::Busy) => {
                    zone = self.any_zone(file);
                    continue;
                }
                Ok(Reset::Asked) => return Step::BeforeReset,
                Err(errno) => return Step::Failed(file, errno),
            }
            zone = match self.claim(file, zone) {
                Ok(ClaimOutcome::At(offset_bytes)) => {
                    self.count_towards_reset(early);
                    return self.write(file, zone, offset_bytes);
                }
                Ok(ClaimOutcome::Full | ClaimOutcome::Busy) => self.any_zone(file),
                Ok(ClaimOutcome::TooManyOpen) => self.open_zone(file).unwrap_or(zone),
                Err(errno) => return Step::Failed(file, errno),
            };
        }
        self.wait(file)
    }

    /// A write that waits for other jobs.
    fn wait(&self, file: usize) -> Step {
        let one = &self.files[file];
        if one.table.has_no_slot_for(&one.zones()) { Step::NoZone(file) } else { Step::Wait }
    }

    /// The zone to write to instead of this one, if the job may not open another zone.
    fn zone_of_mine(&mut self, file: usize, zone: usize) -> Option<usize> {
        let most = self.zoned.job_open_max? as usize;
        let one = &mut self.files[file];
        let table = &one.table;
        one.mine.retain(|zone| table.is_open(*zone));
        if one.mine.contains(&zone) || one.mine.len() < most {
            return None;
        }
        let draw = usize::capped(self.random.below(one.mine.len() as u64));
        Some(one.mine[draw])
    }

    /// One of the open zones within the job's range.
    fn open_zone(&mut self, file: usize) -> Option<usize> {
        let one = &self.files[file];
        let nth = self.random.next_u64() >> 1;
        (0..TRIES as u64)
            .filter_map(|step| one.table.nth_open(nth + step))
            .find(|zone| (one.first..one.end).contains(zone))
    }

    /// Whether the shortest block does not fit into a zone any longer.
    fn is_full(&self, file: usize, zone: usize) -> bool {
        let table = &self.files[file].table;
        self.room_bytes(table, zone) < self.least_room_bytes
    }

    /// Bytes of a zone that are left to write: appends need not wait for those in flight.
    fn room_bytes(&self, table: &ZoneTable, zone: usize) -> u64 {
        let used_bytes =
            if self.zoned.appends { table.claimed_bytes(zone) } else { table.written_bytes(zone) };
        table.layout(zone).capacity_bytes.saturating_sub(used_bytes)
    }

    /// Whether so much is written that some writes reset a zone that still has room, and the next is one of them. As in
    /// fio, only writes above the threshold count towards the next of these resets, and the count begins anew in each pass.
    fn early_reset(&self, file: usize) -> EarlyReset {
        let Some(every) = self.zoned.reset_every else { return EarlyReset::None };
        let one = &self.files[file];
        match one.table.data_bytes() as f64 >= self.zoned.reset_threshold * one.capacity_bytes() as f64 {
            false => EarlyReset::None,
            true if self.writes_above + 1 >= every => EarlyReset::Now,
            true => EarlyReset::Later,
        }
    }

    /// Resets the zone of the next write if it is full, or if it is the turn of an early reset: as in fio not if it is
    /// empty then. `Done`: it has room.
    fn reset_before_write(&mut self, file: usize, zone: usize, early: EarlyReset) -> Result<Reset, Errno> {
        let is_its_turn = early == EarlyReset::Now && self.files[file].table.written_bytes(zone) > 0;
        if is_its_turn || self.is_full(file, zone) { self.reset(file, zone) } else { Ok(Reset::Done) }
    }

    /// A write was made; `early` is what was true before it.
    fn count_towards_reset(&mut self, early: EarlyReset) {
        self.writes_above = match early {
            EarlyReset::Now => 0,
            EarlyReset::Later => self.writes_above + 1,
            EarlyReset::None => self.writes_above,
        };
    }

    fn reset(&mut self, file: usize, zone: usize) -> Result<Reset, Errno> {
        let one = &self.files[file];
        if self.asks_before_resets
            && !std::mem::take(&mut self.may_reset)
            && one.table.written_bytes(zone) > 0
        {
            self.may_reset = true;
            return Ok(Reset::Asked);
        }
        if !one.table.reset(zone, one.device.as_deref())? {
            return Ok(Reset::Busy);
        }
        self.resets += 1;
        Ok(Reset::Done)
    }

    /// From now on `fill_pass` returns `BeforeReset` before each reset.
    pub(crate) fn ask_before_resets(&mut self) {
        self.asks_before_resets = true;
    }

    /// What divides the places of all writes, as far as the zones and what is written of them now decide it.
    pub(crate) fn align_bytes(&self, files: &Files) -> u64 {
        let zones = self.files.iter().map(|file| file.table.align_bytes());
        let starts = files.list.iter().map(|file| file.offset_bytes);
        zones.chain(starts).fold(0, divisor)
    }

    /// Start and length of the zone of `op`, if it was reset since `note_resets`.
    pub(crate) fn reset_since(&self, op: &Op) -> Option<(u64, u64)> {
        let one = self.files.get(op.file as usize)?;
        let zone = one.table.zone_of(op.offset_bytes);
        let noted = *one.resets_noted.get(zone)?;
        let layout = one.table.layout(zone);
        (one.table.resets(zone) != noted).then_some((layout.start_bytes, layout.length_bytes))
    }

    /// Takes note of the resets of the zone of `op`.
    pub(crate) fn note_resets(&mut self, op: &Op) {
        let Some(one) = self.files.get_mut(op.file as usize) else { return };
        let zone = one.table.zone_of(op.offset_bytes);
        if let Some(noted) = one.resets_noted.get_mut(zone) {
            *noted = one.table.resets(zone);
        }
    }

    /// Takes the right to write the next block of a zone.
    fn claim(&mut self, file: usize, zone: usize) -> Result<ClaimOutcome, Errno> {
        let one = &self.files[file];
        let room_bytes = self.room_bytes(&one.table, zone);
        let shortest_bytes = self.sizes.min(Direction::Write, self.is_random);
        let length_bytes = match room_bytes < shortest_bytes {
            true => room_bytes,
            false => self.sizes.draw(Direction::Write, self.is_random, room_bytes),
        };
        if length_bytes == 0 {
            return Ok(ClaimOutcome::Full);
        }
        if self.claims.is_full() {
            return Ok(ClaimOutcome::Busy);
        }
        let claim = one.table.claim(zone, length_bytes, self.zoned.appends);
        self.drawn_bytes = length_bytes;
        if let ClaimOutcome::At(offset_bytes) = claim {
            let ZoneLayout { start_bytes, capacity_bytes, .. } = one.table.layout(zone);
            // Most claims leave room.
            if start_bytes + capacity_bytes < offset_bytes + length_bytes + self.least_room_bytes {
                self.close_if_full(file, zone)?;
            }
        }
        Ok(claim)
    }

    fn close_if_full(&self, file: usize, zone: usize) -> Result<(), Errno> {
        let one = &self.files[file];
        one.table.close_if_full(zone, self.least_room_bytes, one.device.as_deref())
    }

    /// The write that was claimed.
    fn write(&mut self, file: usize, zone: usize, offset_bytes: u64) -> Step {
        let one = &mut self.files[file];
        if let Some(most) = self.zoned.job_open_max.filter(|_| !one.mine.contains(&zone)) {
            let table = &one.table;
            one.mine.retain(|zone| table.is_open(*zone));
            // A sequential job goes on to the next zone only when this one is full, and so closed.
            if one.mine.len() < most as usize {
                one.mine.push(zone);
            }
        }
        self.claims.push(file, zone, self.drawn_bytes);
        Step::Made(Op::new(Action::Write, FileIndex::capped(file), offset_bytes, self.drawn_bytes))
    }

    /// Zones are trimmed by resets. As in fio, a job that is sequential resets empty ones too.
    fn trim_on(&mut self, file: usize) -> Step {
        let one = &mut self.files[file];
        let table = &one.table;
        let sequential = (one.trim_zone..one.end).find(|zone| table.layout(*zone).is_sequential);
        let Some(zone) = sequential else { return Step::Done };
        one.trim_zone = zone;
        let step = self.trim(file, zone);
        if matches!(step, Step::Made(_)) {
            self.files[file].trim_zone += 1;
        }
        step
    }

    /// As in fio, a job that is random resets only zones that are not empty.
    fn trim_anywhere(&mut self, file: usize) -> Step {
        let Some((drawn, _)) = self.draw(file, Direction::Trim) else { return Step::Done };
        let one = &self.files[file];
        let table = &one.table;
        let behind = (drawn..one.end).chain(one.first..drawn);
        let mut filled =
            behind.filter(|zone| table.layout(*zone).is_sequential && table.written_bytes(*zone) > 0);
        match filled.next() {
            Some(zone) => self.trim(file, zone),
            None => Step::Done,
        }
    }

    /// The reset of a zone of a device; where zones are emulated, the discard of what is in it.
    fn trim(&mut self, file: usize, zone: usize) -> Step {
        let table = &self.files[file].table;
        if self.claims.is_full() || !table.begin_reset(zone) {
            return Step::Wait;
        }
        let ZoneLayout { start_bytes, length_bytes, .. } = *table.layout(zone);
        let action = if table.is_device() { Action::ResetZone } else { Action::Trim };
        self.claims.push(file, zone, 0);
        self.owed = self.writes_after_trims.then_some((file, zone));
        Step::Made(Op::new(action, FileIndex::capped(file), start_bytes, length_bytes))
    }

    /// The write that follows the trim of a zone; `Done`: another job was first.
    fn write_all_of(&mut self, file: usize, zone: usize) -> Step {
        let table = &self.files[file].table;
        let capacity_bytes = table.layout(zone).capacity_bytes;
        match table.claim(zone, capacity_bytes, self.zoned.appends) {
            ClaimOutcome::At(offset_bytes) => {
                self.drawn_bytes = capacity_bytes;
                match self.close_if_full(file, zone) {
                    Ok(()) => self.write(file, zone, offset_bytes),
                    Err(errno) => Step::Failed(file, errno),
                }
            }
            ClaimOutcome::Full => Step::Done,
            ClaimOutcome::Busy => Step::Wait,
            ClaimOutcome::TooManyOpen => Step::NoZone(file),
        }
    }

    fn read_on(&mut self, file: usize) -> Step {
        loop {
            let one = &self.files[file];
            let zone = one.table.zone_of(one.read_bytes);
            if zone >= one.end {
                return Step::Done;
            }
            let layout = *one.table.layout(zone);
            let end_bytes = layout.start_bytes + self.readable_bytes(file, zone);
            let room_bytes = end_bytes.saturating_sub(one.read_bytes);
            if room_bytes < self.sizes.min(Direction::Read, false) {
                self.files[file].read_behind(zone);
                continue;
            }
            let length_bytes = self.sizes.draw(Direction::Read, false, room_bytes);
            let one = &mut self.files[file];
            let offset_bytes = one.read_bytes;
            one.read_bytes += length_bytes;
            return Step::Made(Op::new(Action::Read, FileIndex::capped(file), offset_bytes, length_bytes));
        }
    }

    fn read_anywhere(&mut self, file: usize) -> Step {
        let Some((drawn, offset_bytes)) = self.draw(file, Direction::Read) else { return Step::Done };
        let shortest_bytes = self.sizes.min(Direction::Read, true);
        let (first, count) = (self.files[file].first, self.files[file].count());
        for step in 0..count {
            let zone = first + (drawn - first + step) % count;
            let readable_bytes = self.readable_bytes(file, zone);
            let start_bytes = self.files[file].table.layout(zone).start_bytes;
            match offset_bytes.checked_sub(start_bytes) {
                Some(within_bytes) if step == 0 && within_bytes + shortest_bytes <= readable_bytes => {
                    // Blocks begin with their zone, whose length may be no multiple of theirs.
                    let at_bytes = within_bytes - within_bytes % self.align_bytes[Direction::Read.index()];
                    let length_bytes = self.sizes.draw(Direction::Read, true, readable_bytes - at_bytes);
                    let offset_bytes = start_bytes + at_bytes;
                    let op = Op::new(Action::Read, FileIndex::capped(file), offset_bytes, length_bytes);
                    return Step::Made(op);
                }
                _ if readable_bytes >= shortest_bytes => {
                    return self.anywhere_in(file, zone, Direction::Read, readable_bytes);
                }
                _ => {}
            }
        }
        Step::Done
    }

    /// The next random place, and its zone; `None` when the pass has covered everything.
    fn draw(&mut self, file: usize, direction: Direction) -> Option<(usize, u64)> {
        if self.files[file].count() == 0 {
            return None;
        }
        let place = self.placer.random_place(file, direction)?;
        let one = &self.files[file];
        // The job's range may begin and end within zones; it does not use those.
        match one.table.zone_of(place.offset_bytes) {
            zone if (one.first..one.end).contains(&zone) => Some((zone, place.offset_bytes)),
            _ => Some((self.any_zone(file), place.offset_bytes)),
        }
    }

    /// The zone of the next random write. Places that no zone has room for are left out, so that a pass fills each zone
    /// once; a job that hardly ever draws others writes anywhere.
    fn draw_for_write(&mut self, file: usize) -> Option<usize> {
        let shortest_bytes = self.sizes.min(Direction::Write, true);
        for _ in 0..DRAWS {
            let (zone, offset_bytes) = self.draw(file, Direction::Write)?;
            if self.files[file].holds(zone, offset_bytes, shortest_bytes) {
                return Some(zone);
            }
        }
        Some(self.any_zone(file))
    }

    /// Bytes of a zone, from its start, that the job may read.
    fn readable_bytes(&self, file: usize, zone: usize) -> u64 {
        let table = &self.files[file].table;
        let layout = table.layout(zone);
        match (layout.is_sequential, self.zoned.reads_beyond_pointer) {
            (false, _) | (true, true) => layout.length_bytes,
            (true, false) => table.written_bytes(zone),
        }
    }

    /// An operation at a random place in the first `within_bytes` of a zone.
    fn anywhere_in(&mut self, file: usize, zone: usize, direction: Direction, within_bytes: u64) -> Step {
        let align_bytes = self.align_bytes[direction.index()];
        let shortest_bytes = self.sizes.min(direction, true);
        let places = (within_bytes - shortest_bytes.min(within_bytes)) / align_bytes + 1;
        let at_bytes = self.random.below(places) * align_bytes;
        let length_bytes = self.sizes.draw(direction, true, within_bytes - at_bytes);
        let start_bytes = self.files[file].table.layout(zone).start_bytes;
        Step::Made(Op::new(direction.into(), FileIndex::capped(file), start_bytes + at_bytes, length_bytes))
    }

    fn any_zone(&mut self, file: usize) -> usize {
        let one = &self.files[file];
        one.first + usize::capped(self.random.below(one.count() as u64))
    }

    /// Whether others wait for an operation, but for those that reset its zone.
    fn holds_zone(&self, op: &Op) -> bool {
        let is_write = op.action == Action::Write;
        let is_alone = self.files[op.file as usize].table.is_device() && !self.zoned.appends;
        let is_shared = is_write && !is_alone;
        !is_shared && self.claimed_zone(op).is_some_and(|zone| self.claims.holds(op, zone))
    }

    /// The zone of an operation that may have claimed it.
    fn claimed_zone(&self, op: &Op) -> Option<usize> {
        (!self.claims.is_empty()).then(|| self.files[op.file as usize].table.zone_of(op.offset_bytes))
    }

    /// The operation of a claim has failed, or was never issued; `recover`: ask the device where the zone is now.
    fn give_up(&self, claim: &Claim, recover: bool) {
        let one = &self.files[claim.file as usize];
        let device = one.device.as_deref();
        match claim.write_bytes {
            0 => one.table.release(claim.zone),
            bytes => one.table.fail_write(claim.zone, bytes, self.zoned.appends, recover, device),
        }
    }
}

impl Drop for ZonedSource {
    /// Other jobs must not wait for writes that were never issued.
    fn drop(&mut self) {
        self.waiter.leave();
        while let Some(claim) = self.claims.pop() {
            self.give_up(&claim, true);
        }
    }
}

impl OperationSource for ZonedSource {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        loop {
            match self.fill_pass(ops, room, now_ns) {
                Batch::Made => return Supply::Ready,
                Batch::Wait(supply) => return supply,
                Batch::Over if !self.begin_next_pass() => return Supply::Ended,
                // Only asked for by a source that reads back what is to be reset.
                Batch::Over | Batch::BeforeReset => {}
            }
        }
    }

    fn completed(&mut self, op: &Op, _buffer: &[u8]) -> Result<(), Errno> {
        self.in_flight = self.in_flight.saturating_sub(1);
        let claim = self.claimed_zone(op).and_then(|zone| self.claims.take(op, zone));
        let Some(Claim { zone, write_bytes, .. }) = claim else { return Ok(()) };
        let table = &self.files[op.file as usize].table;
        if op.action != Action::Write {
            table.end_reset(zone);
            self.resets += 1;
            return Ok(());
        }
        table.complete(zone, write_bytes, self.zoned.appends);
        self.close_if_full(op.file as usize, zone)
    }

    fn failed(&mut self, op: &Op, _errno: Errno) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let claim = self.claimed_zone(op).and_then(|zone| self.claims.take(op, zone));
        claim.iter().for_each(|claim| self.give_up(claim, self.zoned.recovers));
    }

    fn failure(&self) -> String {
        self.failure.as_ref().map_or_else(String::new, |stop| stop.explain(&self.files))
    }

    fn is_mixed(&self) -> bool {
        self.directions.is_mixed()
    }

    fn steer(&mut self, either: [Direction; 2]) {
        self.directions.steer(either);
    }

    fn passes_begun(&self) -> u64 {
        self.passes.begun()
    }

    fn open_generation(&self) -> u64 {
        self.service.generation()
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.service.open().for_each(show);
    }

    fn zone_resets(&self) -> Option<u64> {
        Some(self.resets)
    }
}
