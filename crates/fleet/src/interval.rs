//! What hosts had done until some time of their run (`--status-interval`).
//!
//! Invariant: figures are of the time from each host's start, as those of the report, so that the last interval leads up to it.

use crate::member::{Done, Member};
use crate::run::HostRun;

/// The most rows of hosts in the intervals of a run: after these only the sums are kept.
pub const ROWS_MAX: usize = 100_000;

/// What one host, or all as one, had done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// For how long, in milliseconds.
    pub runtime_ms: u64,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Rates and latencies since the start.
    pub figures: Member,
}

/// What all had done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Until when, in milliseconds after the first start.
    pub at_ms: u64,
    /// Each host that had told what it did, by its name.
    pub hosts: Vec<(String, Part)>,
    /// All of these as one.
    pub all: Part,
}

impl Interval {
    /// Of these hosts, with the reports of what they have done so far.
    pub fn of(at_ms: u64, runs: &[HostRun]) -> Interval {
        let told = || runs.iter().filter(|run| run.is_counted());
        let hosts = told().map(|run| (run.host.name.clone(), Part::of(&[run]))).collect();
        Interval { at_ms, hosts, all: Part::of(&told().collect::<Vec<_>>()) }
    }
}

impl Part {
    fn of(runs: &[&HostRun]) -> Part {
        let mut part = Part { figures: Member::of_all(runs), ..Part::default() };
        for report in runs.iter().filter_map(|run| run.report.as_ref()) {
            let (runtime_ms, ios, bytes) = Done::of(report, None).counts();
            part.runtime_ms = part.runtime_ms.max(runtime_ms);
            part.ios += ios;
            part.bytes += bytes;
        }
        part
    }
}
