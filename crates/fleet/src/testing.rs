//! Hosts and jobs for tests.
//!
//! Invariant: used by tests only.

use fiord_report::{JobReport, RunReport};
use fiord_stats::{JobStats, Latency};

use crate::clock::ClockFit;
use crate::hosts::Host;
use crate::run::{HostFacts, HostRun, StageStart};

/// A job that read 4 KiB with each of these latencies, in this time.
pub(crate) fn job(latencies_ns: &[u64], runtime_ms: u64) -> JobReport {
    let mut stats = JobStats::default();
    let read = &mut stats.directions[0];
    read.completion = Latency::with_histogram();
    for latency_ns in latencies_ns {
        read.completion.record(*latency_ns);
        read.ios += 1;
        read.bytes += 4096;
    }
    read.runtime_ms = runtime_ms;
    JobReport { name: "a".to_string(), stats, elapsed_s: runtime_ms.div_ceil(1000), ..JobReport::default() }
}

/// A host called `dbNUMBER` that started so long after the first and ran these jobs.
pub(crate) fn host(number: u32, start_ms: i64, jobs: Vec<JobReport>) -> HostRun {
    HostRun {
        host: Host { number, ..Host::of(&format!("db{}", number + 1)) },
        stages: vec![StageStart { stage: 0, agreed_ns: 0, started_ns: Some(start_ms * 1_000_000) }],
        clock: Some(ClockFit { error_ns: 200_000, round_trip_ns: 400_000, ..ClockFit::default() }),
        facts: Some(HostFacts { kernel: "6.1.0".to_string(), ..HostFacts::default() }),
        report: Some(RunReport { version: "fio-3.42".to_string(), jobs, ..RunReport::default() }),
        ..HostRun::default()
    }
}
