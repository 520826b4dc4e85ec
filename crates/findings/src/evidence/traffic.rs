//! How much a run moved, and how much the devices below its files did.
//!
//! Invariant: at each level of the storage the devices are summed: the level that holds the files, and the disks at the
//! bottom.

use fiord_host::{DeviceUse, HostTotals};
use fiord_plan::{Direction, Plan};

use super::measured::Measurements;
use crate::subject;

const SECTOR_BYTES: u64 = 512;

/// Bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Moved by the jobs.
    pub jobs_bytes: u64,
    /// Moved by the devices that hold the files; `None` if there are none, or they do not count it.
    pub top_bytes: Option<u64>,
    /// Moved by the disks at the bottom; `None` as above.
    pub bottom_bytes: Option<u64>,
    /// Moved on behalf of this process, as the kernel accounts for it.
    pub process_bytes: Option<u64>,
}

impl Traffic {
    /// Of a run.
    pub fn of(plan: &Plan, measured: &Measurements<'_>, direction: Direction) -> Traffic {
        // Devices do not tell the I/O of a job that failed later from that of others.
        let jobs = plan.jobs.iter().zip(measured.jobs);
        // Persistent memory that is mapped is accessed past its driver, which counts nothing.
        let counts = |used: &DeviceUse| !(used.holds_files && used.device.kind == "pmem");
        let are_counted = measured.devices.iter().all(counts);
        let sum = |of: fn(&DeviceUse) -> bool| {
            let found = measured.devices.iter().filter(|used| are_counted && of(used));
            found.map(|used| sectors(used, direction) * SECTOR_BYTES).reduce(|sum, one| sum + one)
        };
        let process = measured.ends().and_then(|(start, end)| {
            let of = |totals: &HostTotals| {
                let io = totals.io?;
                Some(match direction {
                    Direction::Read => io.read_bytes,
                    Direction::Write | Direction::Trim => io.write_bytes,
                })
            };
            Some(of(end.totals.as_ref()?)?.saturating_sub(of(start.totals.as_ref()?)?))
        });
        Traffic {
            jobs_bytes: jobs
                .filter(|(job, _)| subject::does_io(job))
                .map(|(_, known)| known.stats.directions[direction.index()].bytes)
                .sum(),
            top_bytes: sum(|used| used.holds_files),
            bottom_bytes: sum(|used| used.below.is_empty()),
            process_bytes: process,
        }
    }
}

fn sectors(used: &DeviceUse, direction: Direction) -> u64 {
    let done = used.done();
    match direction {
        Direction::Read => done.read_sectors,
        Direction::Write | Direction::Trim => done.write_sectors,
    }
}
