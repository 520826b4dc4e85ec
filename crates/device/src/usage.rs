//! The activity of a device during a run.
//!
//! Invariant: activity is the difference of counters at two moments.

use serde::{Deserialize, Serialize};

use crate::counters::DiskCounters;
use crate::device::Device;
use crate::nested;
use crate::nvme_power::PowerStates;

/// A device of the storage under a run's files, with its counters when the run began and when it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// Its properties.
    pub device: Device,
    /// Whether files of the run are directly on it, or it is one of them.
    pub holds_files: bool,
    /// The names of the devices directly below: the disk of a partition, the members of a RAID, the device that holds
    /// the file behind a loop device.
    pub below: Vec<String>,
    /// Its counters when the run began.
    pub start: DiskCounters,
    /// Its counters when the run ended.
    pub end: DiskCounters,
    /// The time between, in nanoseconds.
    pub elapsed_ns: u64,
    /// What hosts have written to it in its life, by its own count at the end, in bytes; `None` if it tells none, and for runs
    /// that do not ask for health.
    pub lifetime_written_bytes: Option<u64>,
    /// Its counters meanwhile, about once a second; of a long run less often.
    pub samples: Vec<CounterSample>,
    /// Its power states at both ends, if it is an NVMe disk that tells them.
    pub power: Option<PowerStates>,
}

/// A device's counters at one moment of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSample {
    /// The time since the run began, in nanoseconds.
    pub elapsed_ns: u64,
    /// As they were then.
    pub counters: DiskCounters,
    /// Its temperature then, in degrees Celsius, if reading it does not disturb the I/O.
    pub temperature_celsius: Option<i32>,
}

impl DeviceUse {
    /// Its activity during the run, including that of other programs.
    pub fn done(&self) -> DiskCounters {
        self.end.since(&self.start)
    }
}

/// The activity of a whole disk and of its member disks during a run: fio's `Disk stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUse {
    /// The kernel's name, `vda`.
    pub name: String,
    /// Its activity.
    pub done: DiskCounters,
    /// Share of the time during which it was busy, 0 to 100.
    pub util_percent: f64,
    /// Its member disks (`slaves` in sysfs), if it is made of others.
    #[serde(deserialize_with = "nested::deserialize")]
    pub members: Vec<DiskUse>,
}

impl DiskUse {
    /// The members' figures: the mean of each counter, and the busy share of the busiest; `None` without members.
    pub fn aggregate(&self) -> Option<(DiskCounters, f64)> {
        let busiest = self.members.iter().map(|disk| disk.util_percent).max_by(f64::total_cmp)?;
        Some((DiskCounters::mean(self.members.iter().map(|disk| &disk.done)), busiest.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(read_ios: u64, busy_ms: u64) -> DiskCounters {
        DiskCounters { read_ios, busy_ms, ..DiskCounters::default() }
    }

    #[test]
    fn activity_is_the_difference_of_the_readings() {
        let (start, end) = (counters(100, 1000), counters(150, 1250));
        let used = DeviceUse { start, end, elapsed_ns: 1_000_000_000, ..DeviceUse::default() };
        assert_eq!(used.done(), counters(50, 250));
    }

    #[test]
    fn an_aggregate_is_the_mean_of_the_members_and_the_busiest_of_them() {
        let disk = |ios, util_percent| DiskUse { done: counters(ios, 0), util_percent, ..DiskUse::default() };
        let array = DiskUse { members: vec![disk(2, 45.5), disk(5, 60.0)], ..disk(100, 75.0) };
        assert_eq!(array.aggregate(), Some((counters(3, 0), 60.0)));
        assert_eq!(disk(0, 1.0).aggregate(), None);
    }
}
