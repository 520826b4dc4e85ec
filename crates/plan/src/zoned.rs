//! fio's `zonemode=zbd`: a target of zones that are written from their start to their end, and reset as a whole.
//!
//! Invariant: what a device reports about its zones overrides the settings here.

/// What is left out after each zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneSkip {
    /// So many zones.
    Zones(u64),
    /// So many bytes: whole zones, whose length a zoned device reports.
    Bytes(u64),
}

impl ZoneSkip {
    /// Nothing.
    pub const NONE: ZoneSkip = ZoneSkip::Zones(0);

    /// How many zones of this length that is.
    pub fn zones(self, zone_bytes: u64) -> u64 {
        match self {
            ZoneSkip::Zones(zones) => zones,
            ZoneSkip::Bytes(bytes) => bytes / zone_bytes.max(1),
        }
    }
}

/// How a job treats the zones of its targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZonedAccess {
    /// Length of the zones that are emulated on a target without zones; 0 for that of a zoned device.
    pub zone_bytes: u64,
    /// How much of an emulated zone can be written; 0 for all of it.
    pub capacity_bytes: u64,
    /// Sequential jobs: what is left out after each zone.
    pub skip: ZoneSkip,
    /// Zones that all jobs together may have open for writing (`max_open_zones`); `None` for the device's own limit.
    pub open_max: Option<u32>,
    /// Zones that this job may have open.
    pub job_open_max: Option<u32>,
    /// `open_max` may be more than the device can have open.
    pub ignores_device_limit: bool,
    /// Reads may go beyond what was written, to the end of a zone.
    pub reads_beyond_pointer: bool,
    /// Share of the job's zones, by bytes, from which on zones are reset before they are full.
    pub reset_threshold: f64,
    /// Of how many writes above the threshold one makes such a reset; `None` without them.
    pub reset_every: Option<u64>,
    /// After a failed write, the zone continues at the write pointer that the device reports.
    pub recovers: bool,
    /// The device chooses the place of each write in its zone, which may have several in flight.
    pub appends: bool,
    /// The rest of a zone, too short for a block, is written instead of finishing the zone.
    pub writes_remainder: bool,
}
