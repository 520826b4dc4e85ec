//! Bytes that a job read or wrote and that no device transferred.
//!
//! Invariant: the I/O of others never hides it, as far as the kernel accounts for this process: the smaller of the two
//! figures counts.

use fiord_options::job;
use fiord_plan::{Direction, Plan};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};

use super::measured::{JobEvidence, Measurements};
use super::traffic::Traffic;
use crate::subject::percent;

/// From this share of the bytes on, in percent, a figure is that of a cache.
const SHARE_MIN: f64 = 10.0;

/// Less than this is not judged: read-ahead and rounding to pages are of that size.
const BYTES_MIN: u64 = 1 << 20;

/// Reads served from a cache, and writes that stayed in one.
pub(super) fn served(plan: &Plan, measured: &Measurements<'_>) -> Vec<Finding> {
    if measured.working(plan).next().is_none() {
        return Vec::new();
    }
    reads(plan, measured).into_iter().chain(writes(plan, measured)).collect()
}

fn reads(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    // Ramps and preparations are in the counters of the kernel, and not in those of the jobs, so that what came from
    // devices is overstated there, and never understated.
    let moved = Traffic::of(plan, measured, Direction::Read);
    let from_devices =
        [moved.process_bytes, moved.top_bytes, moved.bottom_bytes].into_iter().flatten().min()?;
    // Without a device there are only the counters of the process, which do not cover a server's cache.
    moved.top_bytes?;
    cached(moved.jobs_bytes, from_devices, Some(is_direct(plan, measured, Direction::Read)))
}

/// The finding of reads that came from devices in part; `is_direct` is `None` where that is not known.
pub(crate) fn cached(jobs_bytes: u64, from_devices: u64, is_direct: Option<bool>) -> Option<Finding> {
    let cached = jobs_bytes.saturating_sub(from_devices);
    let share = percent(cached as f64, jobs_bytes as f64);
    if jobs_bytes < BYTES_MIN || share < SHARE_MIN {
        return None;
    }
    let (why, remedy) = match is_direct {
        Some(true) => (
            "although they were read directly: there was nothing to read, or a level below has a cache",
            "write all of the file before it is read; see `fiord devices FILE` for what lies below it",
        ),
        Some(false) => ("but from the page cache", "direct=1, or a size well above the machine's memory"),
        None => {
            ("but from a cache, or there was nothing to read", "direct=1, of a file that was written before")
        }
    };
    let sentence =
        format!("{share:.0} % of the {} read did not come from a device, {why}", shown_bytes(jobs_bytes));
    let finding =
        Finding::new(Code::CacheServed, Subject::Run, sentence, remedy).of_option(job::Access::direct);
    Some(finding.based_on([
        ("read_bytes", Cell::Bytes(jobs_bytes)),
        ("from_devices_bytes", Cell::Bytes(from_devices)),
        ("cached_percent", Cell::Number(share, 1)),
    ]))
}

fn writes(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let moved = Traffic::of(plan, measured, Direction::Write);
    let to_devices = [moved.top_bytes, moved.bottom_bytes].into_iter().flatten().min()?;
    missing(moved.jobs_bytes, to_devices)
}

/// The finding of writes that reached devices in part.
pub(crate) fn missing(jobs_bytes: u64, to_devices: u64) -> Option<Finding> {
    let missing = jobs_bytes.saturating_sub(to_devices);
    let share = percent(missing as f64, jobs_bytes as f64);
    if jobs_bytes < BYTES_MIN || share < SHARE_MIN {
        return None;
    }
    let sentence = format!(
        "{share:.0} % of the {} written had not reached a device at the end: they were in a cache, or overwritten there",
        shown_bytes(jobs_bytes)
    );
    let remedy = "direct=1, or end_fsync=1 and a size well above the machine's memory";
    let finding =
        Finding::new(Code::NotYetWritten, Subject::Run, sentence, remedy).of_option(job::Access::direct);
    Some(finding.based_on([
        ("written_bytes", Cell::Bytes(jobs_bytes)),
        ("to_devices_bytes", Cell::Bytes(to_devices)),
        ("missing_percent", Cell::Number(share, 1)),
    ]))
}

/// Whether all jobs in this direction used direct I/O.
fn is_direct(plan: &Plan, measured: &Measurements<'_>, direction: Direction) -> bool {
    let moved = |known: &JobEvidence<'_>| known.stats.directions[direction.index()].bytes > 0;
    measured.working(plan).filter(|(_, known)| moved(known)).all(|(job, _)| job.files.direct)
}

#[cfg(test)]
mod tests {
    use fiord_host::{DeviceUse, ProcessIo};

    use crate::evidence::testing::{accounted, device, job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The findings of a job that moved 100 MiB, with these devices and this account of the process.
    fn found(
        direction: Direction,
        direct: &str,
        devices: &[DeviceUse],
        process: Option<u64>,
    ) -> Vec<Finding> {
        let plan = plan(&[("a", &[("ioengine", "psync"), ("direct", direct), ("filename", "/data/f")])]);
        let stats = moved(direction.index(), 100 * MIB);
        let host = accounted(process.map(|bytes| ProcessIo { read_bytes: bytes, write_bytes: bytes }));
        served(&plan, &Measurements { jobs: &[job(&stats)], devices, host: &host, ..nothing() })
    }

    fn codes(findings: &[Finding]) -> Vec<Code> {
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn reads_that_no_device_saw_are_found() {
        let found = |bytes: u64, process| found(Direction::Read, "0", &[device("sda", bytes, 0)], process);
        assert_eq!(codes(&found(8 * MIB, None)), [Code::CacheServed]);
        assert!(
            found(8 * MIB, None)[0].sentence.starts_with("92 % of the 100MiB read"),
            "{found:?}",
            found = found(8 * MIB, None)
        );
        assert_eq!(found(91 * MIB, Some(91 * MIB)), []);
        assert_eq!(found(200 * MIB, None), [], "read-ahead");
        // Reads of others at the same time hide nothing.
        assert_eq!(codes(&found(500 * MIB, Some(0))), [Code::CacheServed]);
    }

    #[test]
    fn reads_of_nothing_are_found_although_they_are_direct() {
        let direct = found(Direction::Read, "1", &[device("sda", 0, 0)], Some(0));
        assert!(direct[0].sentence.contains("although they were read directly"), "{direct:?}");
        assert_eq!(found(Direction::Read, "1", &[], Some(0)), [], "no device is known");
    }

    #[test]
    fn writes_that_stay_in_a_cache_are_found_at_every_level() {
        let found = |devices: &[DeviceUse]| codes(&found(Direction::Write, "0", devices, Some(100 * MIB)));
        assert_eq!(found(&[device("sda", 0, 50 * MIB)]), [Code::NotYetWritten]);
        assert_eq!(found(&[device("sda", 0, 95 * MIB)]), []);
        let over = DeviceUse { below: vec!["sda".to_string()], ..device("loop0", 0, 100 * MIB) };
        let below = |bytes| DeviceUse { holds_files: false, ..device("sda", 0, bytes) };
        assert_eq!(found(&[over.clone(), below(0)]), [Code::NotYetWritten], "the cache of its backing file");
        assert_eq!(found(&[over, below(100 * MIB)]), []);
    }

    #[test]
    fn persistent_memory_is_accessed_past_its_counters() {
        let mut memory = device("pmem0", 0, 0);
        memory.device.kind = "pmem".to_string();
        for direction in [Direction::Read, Direction::Write] {
            assert_eq!(found(direction, "1", &[memory.clone()], Some(0)), []);
        }
    }

    #[test]
    fn little_is_not_judged() {
        let plan = plan(&[("a", &[("ioengine", "psync"), ("filename", "/data/f")])]);
        let stats = moved(0, MIB / 2);
        let devices = [device("sda", 0, 0)];
        assert_eq!(served(&plan, &Measurements { jobs: &[job(&stats)], devices: &devices, ..nothing() }), []);
    }
}
