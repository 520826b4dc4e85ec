//! One zoned target, as far as a job uses it.
//!
//! Invariant: the zones that the job uses lie within its range as a whole.

use std::path::PathBuf;
use std::sync::Arc;

use fiord_plan::FilePlan;

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
    /// Where the next sequential read begins.
    pub(super) read_bytes: u64,
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
    /// At the start of its zones; the job may have as many open as this, 0 for any number.
    pub(super) fn new(plan: &FilePlan, target: ZonedTarget, open_max: usize) -> ZonedFile {
        let ZonedTarget { table, device } = target;
        let end_bytes = plan.offset_bytes.saturating_add(plan.length_bytes);
        let mut file = ZonedFile {
            path: plan.path.clone(),
            first: table.first_from(plan.offset_bytes),
            end: table.zone_of(end_bytes),
            resets_noted: table.resets_of_all(),
            table,
            device,
            write_zone: 0,
            has_entered: false,
            conventional_bytes: 0,
            read_bytes: 0,
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
        self.read_bytes = match self.count() {
            0 => u64::MAX,
            _ => self.table.layout(self.first).start_bytes,
        };
    }

    pub(super) fn next_zone(&mut self, skip_zones: u64) {
        self.write_zone += 1 + skip_zones as usize;
        self.has_entered = false;
    }

    pub(super) fn zones(&self) -> std::ops::Range<usize> {
        self.first..self.end
    }

    pub(super) fn count(&self) -> usize {
        self.end.saturating_sub(self.first)
    }
}
