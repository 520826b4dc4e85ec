//! Zoned block devices: their zones, and what can be done to one, by ioctl.
//!
//! Invariant: offsets and lengths are in bytes, and whole zones.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::errno::check;
use crate::stat::DeviceNumber;
use crate::sysfs::Sysfs;
use crate::width::to_u32;

// Numbers from the kernel's `linux/blkzoned.h`.
const BLKREPORTZONE: libc::Ioctl = libc::_IOWR::<ReportHeader>(0x12, 130);
const BLKRESETZONE: libc::Ioctl = libc::_IOW::<[u64; 2]>(0x12, 131);
const BLKGETZONESZ: libc::Ioctl = libc::_IOR::<u32>(0x12, 132);
const BLKFINISHZONE: libc::Ioctl = libc::_IOW::<[u64; 2]>(0x12, 136);

/// The kernel reports where a zone ends for writing (`BLK_ZONE_REP_CAPACITY`).
const HAS_CAPACITY: u32 = 1;

/// The kernel's `BLK_ZONE_TYPE_CONVENTIONAL`.
const CONVENTIONAL: u8 = 1;

/// Number of zones requested at once.
const ZONES_AT_ONCE: usize = 512;

const SECTOR_BYTES: u64 = 512;

/// The kernel's `struct blk_zone_report`, before its zones.
#[repr(C)]
#[derive(Clone, Copy)]
struct ReportHeader {
    sector: u64,
    zones: u32,
    flags: u32,
}

/// The kernel's `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawZone {
    start: u64,
    length: u64,
    pointer: u64,
    kind: u8,
    condition: u8,
    non_sequential: u8,
    reset: u8,
    reserved: [u8; 4],
    capacity: u64,
    more: [u64; 3],
}

#[repr(C)]
struct Report {
    header: ReportHeader,
    zones: [RawZone; ZONES_AT_ONCE],
}

/// The state of a zone (the kernel's `enum blk_zone_cond`, as far as it matters here).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneCondition {
    /// Written in part, and held open by the device.
    Open,
    /// Nothing more can be written before a reset.
    Full,
    /// Neither can be written nor read.
    Offline,
    /// Can be read only.
    ReadOnly,
    /// Any other: empty, closed, or without a write pointer.
    Other,
}

/// One zone of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Where it begins.
    pub start_bytes: u64,
    /// Up to the start of the next.
    pub length_bytes: u64,
    /// How much of it can be written.
    pub capacity_bytes: u64,
    /// Where the next write goes; of no meaning in a conventional zone.
    pub pointer_bytes: u64,
    /// Whether it is written at its write pointer (or should be) and not anywhere.
    pub is_sequential: bool,
    /// Its condition.
    pub condition: ZoneCondition,
}

impl Zone {
    fn of(raw: &RawZone, flags: u32) -> Zone {
        let capacity = if flags & HAS_CAPACITY != 0 { raw.capacity } else { raw.length };
        Zone {
            start_bytes: raw.start * SECTOR_BYTES,
            length_bytes: raw.length * SECTOR_BYTES,
            capacity_bytes: capacity * SECTOR_BYTES,
            pointer_bytes: raw.pointer.wrapping_mul(SECTOR_BYTES),
            is_sequential: raw.kind != CONVENTIONAL,
            condition: match raw.condition {
                2 | 3 => ZoneCondition::Open,
                0xd => ZoneCondition::ReadOnly,
                0xe => ZoneCondition::Full,
                0xf => ZoneCondition::Offline,
                _ => ZoneCondition::Other,
            },
        }
    }
}

/// Length of a device's zones; 0 if it has none.
pub fn zone_bytes(device: impl AsFd) -> io::Result<u64> {
    let mut sectors = 0u32;
    // SAFETY: the request writes one u32.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKGETZONESZ, &raw mut sectors) })?;
    Ok(u64::from(sectors) * SECTOR_BYTES)
}

/// The zones of a device from the one that holds `from_bytes`, at most `most` of them.
pub fn report(device: impl AsFd, from_bytes: u64, most: usize) -> io::Result<Vec<Zone>> {
    let mut zones: Vec<Zone> = Vec::new();
    let mut sector = from_bytes / SECTOR_BYTES;
    while zones.len() < most {
        let count = ZONES_AT_ONCE.min(most - zones.len());
        let header = ReportHeader { sector, zones: to_u32(count), flags: 0 };
        let mut report = Box::new(Report { header, zones: [RawZone::default(); ZONES_AT_ONCE] });
        // SAFETY: the request reads the header and writes at most as many zones as it asks for, which the structure
        // has room for.
        check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKREPORTZONE, &raw mut *report) })?;
        let got = &report.zones[..(report.header.zones as usize).min(count)];
        zones.extend(got.iter().map(|raw| Zone::of(raw, report.header.flags)));
        match got.last() {
            Some(last) if last.length > 0 => sector = last.start + last.length,
            _ => break,
        }
    }
    Ok(zones)
}

/// Makes a zone empty.
pub fn reset(device: impl AsFd, start_bytes: u64, length_bytes: u64) -> io::Result<()> {
    let range = [start_bytes / SECTOR_BYTES, length_bytes / SECTOR_BYTES];
    // SAFETY: the request reads two u64.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKRESETZONE, range.as_ptr()) }).map(drop)
}

/// Makes a zone full.
pub fn finish(device: impl AsFd, start_bytes: u64, length_bytes: u64) -> io::Result<()> {
    let range = [start_bytes / SECTOR_BYTES, length_bytes / SECTOR_BYTES];
    // SAFETY: the request reads two u64.
    check(unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFINISHZONE, range.as_ptr()) }).map(drop)
}

/// A figure that the kernel shows of a device.
fn shown(device: DeviceNumber, name: &str) -> Option<String> {
    let path = format!("/sys/dev/block/{}:{}/queue/{name}", device.major, device.minor);
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

/// Length of the zones of a host-managed or host-aware device, without opening it.
pub fn shown_zone_bytes(device: DeviceNumber) -> Option<u64> {
    let is_zoned = ["host-managed", "host-aware"].contains(&shown(device, "zoned")?.as_str());
    let sectors: u64 = shown(device, "chunk_sectors")?.parse().ok()?;
    is_zoned.then_some(sectors * SECTOR_BYTES)
}

/// Zones that a device can have open at once; `None` without a limit.
pub fn open_max(device: DeviceNumber) -> Option<u32> {
    Sysfs::default().block_device_of(device).ok()?.open_zones_max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LoopDevice, TempFile};

    #[test]
    fn the_numbers_and_structures_are_the_kernels() {
        assert_eq!((size_of::<ReportHeader>(), size_of::<RawZone>()), (16, 64));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(BLKREPORTZONE as u32, 0xc010_1282);
            assert_eq!(BLKRESETZONE as u32, 0x4010_1283);
            assert_eq!(BLKGETZONESZ as u32, 0x8004_1284);
            assert_eq!(BLKFINISHZONE as u32, 0x4010_1288);
        }
    }

    #[test]
    fn a_zone_is_read_in_bytes() {
        let raw = RawZone {
            start: 16,
            length: 8,
            pointer: 18,
            capacity: 6,
            kind: 2,
            condition: 2,
            ..RawZone::default()
        };
        let zone = Zone::of(&raw, HAS_CAPACITY);
        assert_eq!((zone.start_bytes, zone.length_bytes, zone.capacity_bytes), (8192, 4096, 3072));
        assert_eq!((zone.pointer_bytes, zone.condition), (9216, ZoneCondition::Open));
        assert!(zone.is_sequential);
        assert_eq!(Zone::of(&raw, 0).capacity_bytes, 4096, "an older kernel reports no capacity");
    }

    #[test]
    fn what_is_not_zoned_has_no_zones() {
        assert!(report(&TempFile::new("zones").file, 0, 1).is_err(), "a file");
        let device = fiord_testing::need!(LoopDevice::new(1 << 20));
        let file = crate::file::open(&device.path, &crate::file::OpenHow::READ_WRITE).unwrap();
        assert_eq!(zone_bytes(&file).unwrap(), 0);
        assert!(report(&file, 0, 1).is_err());
        assert!(reset(&file, 0, 4096).is_err());
    }
}
