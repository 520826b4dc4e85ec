//! What jobs measured, for the tests of findings.
//!
//! Invariant: a value that a test does not change raises no finding.

use fiord_host::{Device, DeviceUse, DiskCounters, HostReading, HostTotals, ProcessIo};
use fiord_stats::{JobStats, Latency, RampEnd};

use super::measured::{Ended, JobEvidence, Measurements};

/// A job that did nothing for ten seconds.
pub(crate) fn job(stats: &JobStats) -> JobEvidence<'_> {
    JobEvidence { ramp: RampEnd::Over, ended: Ended::Otherwise, stats, started_ms: 1_000, elapsed_ms: 10_000 }
}

/// A run of which nothing was measured.
pub(crate) fn nothing<'a>() -> Measurements<'a> {
    Measurements {
        jobs: &[],
        devices: &[],
        is_hidden: false,
        page_cache: &[],
        host: &[],
        samples: &[],
        steadiness: None,
        suspension: None,
        health: (&[], &[]),
        own_cost: None,
        counter_step_ns: None,
        gpu_ways: None,
    }
}

/// The machine at both ends of a run, between which this process had this account of its I/O; `None` if it is not known.
pub(crate) fn accounted(io: Option<ProcessIo>) -> [HostReading; 2] {
    let reading = |io| HostReading {
        totals: Some(HostTotals { io, ..HostTotals::default() }),
        ..HostReading::default()
    };
    [reading(Some(ProcessIo::default())), reading(io)]
}

/// Statistics of a job that moved this much in one direction, in ten seconds and in I/Os of 4 KiB of 1 ms each.
pub(crate) fn moved(direction: usize, bytes: u64) -> JobStats {
    let mut stats = JobStats::default();
    let of = &mut stats.directions[direction];
    (of.bytes, of.ios, of.runtime_ms) = (bytes, bytes / 4096, 10_000);
    of.total = Latency::with_histogram();
    of.completion = Latency::with_histogram();
    for _ in 0..(bytes / 4096).min(1000) {
        of.total.record(1_000_000);
        of.completion.record(1_000_000);
    }
    stats
}

/// A device that holds the files and moved this much in ten seconds.
pub(crate) fn device(name: &str, read_bytes: u64, written_bytes: u64) -> DeviceUse {
    let end = DiskCounters {
        read_sectors: read_bytes / 512,
        write_sectors: written_bytes / 512,
        ..DiskCounters::default()
    };
    DeviceUse {
        device: Device { name: name.to_string(), ..Device::default() },
        holds_files: true,
        end,
        elapsed_ns: 10_000_000_000,
        ..DeviceUse::default()
    }
}
