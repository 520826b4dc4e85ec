//! What all hosts did together, as a value.
//!
//! Invariant: every format is written from it.

use fiord_report::{Finding, JobReport, RepeatedFigure};

use crate::interval::Interval;
use crate::member::Member;
use crate::order::Order;
use crate::outliers::Outlier;
use crate::over_time::OverTime;
use crate::run::HostRun;
use crate::window::CommonWindow;

/// The name of all jobs of all hosts as one, as in fio.
pub const ALL_CLIENTS: &str = "All clients";

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
    /// What hosts are put into groups by (`--group-by`): the name of one of their traits.
    pub group_by: Option<&'static str>,
    /// Whether the hosts are servers that `--client` named: their text begins as that of fio's client.
    pub are_clients: bool,
}

/// Hosts that have the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// What they have; empty if it is not known.
    pub value: String,
    /// How many they are.
    pub hosts: usize,
    /// Their figures as one.
    pub figures: Member,
}

/// How exactly the hosts started together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Hosts that told when they started.
    pub hosts: usize,
    /// From the first to the last in the stage in which that is longest, in nanoseconds.
    pub skew_ns: u64,
    /// How well the clock that is known least is known, in nanoseconds.
    pub clock_error_ns: u64,
    /// The skew that is accepted, in nanoseconds.
    pub accepted_ns: u64,
}

/// A run on hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetReport {
    /// What was asked for.
    pub settings: FleetSettings,
    /// Each host, in the order of the list.
    pub hosts: Vec<HostRun>,
    /// The figures of each; `None` of one that is in no sum.
    pub members: Vec<Option<Member>>,
    /// All jobs of all hosts as one, called `All clients`; `None` if no host reported a job.
    pub all: Option<JobReport>,
    /// Those of `--group-by`, by what they have.
    pub groups: Vec<Group>,
    /// The time in which all ran; `None` if they did not run together, or did not tell when.
    pub window: Option<CommonWindow>,
    /// What each did over time; `None` if they did not run together, or did not tell.
    pub over_time: Option<OverTime>,
    /// How they started; `None` if they did not start together, or did not tell.
    pub starts: Option<Starts>,
    /// The figures of each round, of each host (all its jobs as one) and then of its jobs; empty if there was one.
    pub repeats: Vec<RepeatedFigure>,
    /// What was measured until times of the run, in their order; empty unless it was asked for (`--status-interval`).
    pub intervals: Vec<Interval>,
    /// Hosts that are far from the others: by throughput, then by latency, the worst first.
    pub outliers: Vec<Outlier>,
    /// What a reader has to know, the worst first.
    pub findings: Vec<Finding>,
}

impl FleetReport {
    /// The hosts of the sums, and their figures.
    pub fn counted(&self) -> impl Iterator<Item = (&HostRun, &Member)> {
        self.hosts.iter().zip(&self.members).filter_map(|(run, member)| Some((run, member.as_ref()?)))
    }
}
