//! One zoned target, as far as a job uses it.
//!
//! Invariant: the zones that the job uses lie within its range as a whole.

use std::path::PathBuf;
use std::sync::Arc;

use fiord_plan::job::Limits;
use fiord_plan::{Access, Direction, FilePlan, Pattern, ZonedAccess};
use fiord_stats::Capped;

use super::table::{ZoneDevice, ZoneTable};

/// The zones of a target, and the device as the worker has it open; `None` where they are emulated.
pub struct ZonedTarget {
    /// Shared by all jobs.
    pub table: Arc<ZoneTable>,
    /// The worker's own.
    pub device: Option<Box<dyn ZoneDevice>>,
}

/// A target, as far as the job uses it.
pub(super) struct ZonedFile {
    pub(super) path: PathBuf,
    pub(super) table: Arc<ZoneTable>,
    pub(super) device: Option<Box<dyn ZoneDevice>>,
    pub(super) first: usize,
    /// Behind the last.
    pub(super) end: usize,
    /// The zone that is written sequentially, and whether that has begun.
    pub(super) write_zone: usize,
    pub(super) has_entered: bool,
    /// Where the next sequential write to a conventional zone begins.
    pub(super) conventional_bytes: u64,
    /// Where sequential reads begin: where the job's range does, for a job that only reads; elsewhere with the first zone.
    reads_from_bytes: u64,
    /// Where the next sequential read begins.
    pub(super) read_bytes: u64,
    /// Zones that sequential jobs leave out after each zone.
    pub(super) skip_zones: usize,
    /// The zone that the next sequential trim resets, unless it is conventional.
    pub(super) trim_zone: usize,
    /// Drawn for a write that has to wait: it counts as visited in this pass.
    pub(super) waiting_zone: Option<usize>,
    /// Zones that this job has opened, where their number is limited.
    pub(super) mine: Vec<usize>,
    /// How often each zone was reset when the job began, or last began to write to it.
    pub(super) resets_noted: Vec<u64>,
}

impl ZonedFile {
    /// At the start of its zones; `reads_alone`: the job does nothing else.
    pub(super) fn new(
        plan: &FilePlan,
        target: ZonedTarget,
        zoned: &ZonedAccess,
        reads_alone: bool,
    ) -> ZonedFile {
        let ZonedTarget { table, device } = target;
        let end_bytes = plan.offset_bytes.saturating_add(plan.length_bytes);
        let (first, end) = (table.first_from(plan.offset_bytes), table.zone_of(end_bytes));
        let begins_in = if reads_alone { table.zone_of(plan.offset_bytes) } else { first };
        let reads_from_bytes = match begins_in {
            zone if zone >= end => u64::MAX,
            zone => table.layout(zone).start_bytes.max(plan.offset_bytes),
        };
        let zone_bytes = if begins_in < end { table.layout(begins_in).length_bytes } else { 0 };
        // The job may have as many open as this, 0 for any number.
        let open_max = zoned.job_open_max.unwrap_or(0) as usize;
        let mut file = ZonedFile {
            path: plan.path.clone(),
            first,
            end,
            resets_noted: table.resets_of_all(),
            table,
            device,
            write_zone: 0,
            has_entered: false,
            conventional_bytes: 0,
            reads_from_bytes,
            read_bytes: 0,
            skip_zones: usize::capped(zoned.skip.zones(zone_bytes)),
            trim_zone: 0,
            waiting_zone: None,
            mine: Vec::with_capacity(open_max),
        };
        file.restart();
        file
    }

    pub(super) fn restart(&mut self) {
        self.write_zone = self.first;
        self.trim_zone = self.first;
        self.has_entered = false;
        self.read_bytes = self.reads_from_bytes;
    }

    pub(super) fn next_zone(&mut self) {
        self.write_zone = self.behind(self.write_zone);
        self.has_entered = false;
    }

    /// The zone that follows this one in a sequential job.
    fn behind(&self, zone: usize) -> usize {
        (zone + 1).saturating_add(self.skip_zones)
    }

    /// Sequential reads go on behind this zone.
    pub(super) fn read_behind(&mut self, zone: usize) {
        self.read_bytes = match self.behind(zone) {
            next if next < self.end => self.table.layout(next).start_bytes,
            _ => u64::MAX,
        };
    }

    /// Whether this byte lies in the zone, and its block, counted in blocks of this length from the zone's start, is one
    /// that the zone has room for.
    pub(super) fn holds(&self, zone: usize, offset_bytes: u64, block_bytes: u64) -> bool {
        self.table.holds(zone, offset_bytes) && {
            let layout = self.table.layout(zone);
            let within_bytes = offset_bytes - layout.start_bytes;
            // A block that would fit from there on fits from its own start, before that, and needs no division.
            within_bytes + block_bytes <= layout.capacity_bytes
                || (within_bytes / block_bytes + 1) * block_bytes <= layout.capacity_bytes
        }
    }

    /// Bytes of its zones that can be written.
    pub(super) fn capacity_bytes(&self) -> u64 {
        self.zones().map(|zone| self.table.layout(zone).capacity_bytes).sum()
    }

    pub(super) fn zones(&self) -> std::ops::Range<usize> {
        self.first..self.end
    }

    pub(super) fn count(&self) -> usize {
        self.end.saturating_sub(self.first)
    }
}

/// What random writes transfer at most in a pass: what their zones hold.
pub(super) fn limits(limits: Limits, access: &Access, files: &[ZonedFile]) -> Limits {
    let writes = matches!(access.pattern, Pattern::Only(Direction::Write) | Pattern::Mixed);
    if !access.random || !writes {
        return limits;
    }
    let capacity_bytes = files.iter().map(ZonedFile::capacity_bytes).sum();
    let pass_bytes = limits.pass_bytes.min(capacity_bytes);
    let loop_bytes = if limits.loop_bytes == limits.pass_bytes { pass_bytes } else { limits.loop_bytes };
    Limits { pass_bytes, loop_bytes, ..limits }
}
