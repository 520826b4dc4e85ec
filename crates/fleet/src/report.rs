//! What all hosts did together.
//!
//! Invariant: a value made of the hosts' runs alone; every format is written from it.

use fiord_report::{Finding, JobReport};

use crate::order::Order;
use crate::run::HostRun;

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetSettings {
    /// In which order the hosts ran.
    pub order: Order,
    /// Whether hosts share targets on purpose (`--shared`).
    pub shared: bool,
    /// How many hosts may be missing or lost (`--allow-missing`).
    pub allow_missing: u32,
    /// The skew of starts that is accepted, in nanoseconds; `None` is 10 ms or a thousandth of the run.
    pub start_within_ns: Option<u64>,
}

/// A run on hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetReport {
    /// What was asked for.
    pub settings: FleetSettings,
    /// Each host, in the order of the list.
    pub hosts: Vec<HostRun>,
    /// All jobs of all hosts as one, called `All clients`; `None` if no host reported a job.
    pub all: Option<JobReport>,
    /// What a reader has to know, the worst first.
    pub findings: Vec<Finding>,
}

impl FleetReport {
    /// Of these hosts.
    pub fn of(hosts: Vec<HostRun>, settings: FleetSettings) -> FleetReport {
        let jobs = hosts.iter().filter_map(|run| run.report.as_ref()).flat_map(|report| &report.jobs);
        let all = merged(jobs);
        FleetReport { settings, hosts, all, findings: Vec::new() }
    }
}

/// Jobs as one, called `All clients` as in fio.
fn merged<'a>(jobs: impl Iterator<Item = &'a JobReport>) -> Option<JobReport> {
    jobs.fold(None, |all: Option<JobReport>, job| match all {
        Some(mut all) => {
            all.merge(job);
            Some(all)
        }
        None => Some(job.clone()),
    })
    .map(|all| JobReport {
        name: "All clients".to_string(),
        group_id: 0,
        start_ms: 0,
        options: Vec::new(),
        ..all
    })
}
