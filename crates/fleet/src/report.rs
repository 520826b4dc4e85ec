//! What all hosts did together.
//!
//! Invariant: a value made of the hosts' runs alone; every format is written from it. A host whose report is not whole is in no
//! sum.

use fiord_report::{Finding, JobReport};

use crate::findings;
use crate::member::Member;
use crate::order::Order;
use crate::outliers::{self, Measure, Outlier};
use crate::run::{HostRun, StageStart};
use crate::start;
use crate::window::{CommonWindow, Series};

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
    /// The time in which all ran; `None` if they did not run together, or did not tell when.
    pub window: Option<CommonWindow>,
    /// How they started; `None` if they did not start together, or did not tell.
    pub starts: Option<Starts>,
    /// Hosts that are far from the others: by throughput, then by latency, the worst first.
    pub outliers: Vec<Outlier>,
    /// What a reader has to know, the worst first.
    pub findings: Vec<Finding>,
}

impl FleetReport {
    /// Of these hosts.
    pub fn of(hosts: Vec<HostRun>, settings: FleetSettings) -> FleetReport {
        let member = |run: &HostRun| Member::of(run).filter(|_| run.is_counted());
        let members: Vec<Option<Member>> = hosts.iter().map(member).collect();
        let counted = || hosts.iter().filter(|run| run.is_counted());
        let jobs = counted().filter_map(|run| run.report.as_ref()).flat_map(|report| &report.jobs);
        let all = merged(jobs);
        let mut outliers = outliers::outliers(Measure::Iops, &values(&members, |member| Some(member.iops)));
        let p99 = |member: &Member| member.p99_ns().map(|ns| ns as f64);
        outliers.extend(outliers::outliers(Measure::P99, &values(&members, p99)));
        let (window, starts) = match settings.order {
            Order::Together => {
                // A sum over those alone that told when would not be one over all.
                let series: Option<Vec<Series>> = counted().map(Series::of).collect();
                let window = series.as_deref().and_then(CommonWindow::of);
                let run_ns = window.as_ref().map_or(0, |window| window.shortest_run_ns);
                let accepted_ns = settings.start_within_ns.unwrap_or(start::accepted_skew_ns(run_ns));
                (window, starts(counted(), accepted_ns))
            }
            Order::Alone | Order::Interleaved => (None, None),
        };
        let mut fleet =
            FleetReport { settings, hosts, members, all, window, starts, outliers, findings: Vec::new() };
        fleet.findings = findings::of(&fleet);
        fleet
    }

    /// The hosts of the sums, and their figures.
    pub fn counted(&self) -> impl Iterator<Item = (&HostRun, &Member)> {
        self.hosts.iter().zip(&self.members).filter_map(|(run, member)| Some((run, member.as_ref()?)))
    }
}

/// A figure of each host that has it, with the host's place in the list.
fn values(members: &[Option<Member>], figure: impl Fn(&Member) -> Option<f64>) -> Vec<(usize, f64)> {
    let of = |(host, member): (usize, &Option<Member>)| Some((host, figure(member.as_ref()?)?));
    members.iter().enumerate().filter_map(of).collect()
}

/// How exactly these started together.
fn starts<'a>(runs: impl Iterator<Item = &'a HostRun> + Clone, accepted_ns: u64) -> Option<Starts> {
    let started = |stage: u32| {
        let of = move |run: &HostRun| {
            run.stages
                .iter()
                .find(|start| start.stage == stage)
                .and_then(|start: &StageStart| start.started_ns)
        };
        runs.clone().filter_map(of).collect::<Vec<i64>>()
    };
    let stages = runs.clone().flat_map(|run| &run.stages).map(|start| start.stage).max()?;
    let skew_ns = |stage| {
        let all = started(stage);
        Some(all.iter().max()?.abs_diff(*all.iter().min()?))
    };
    let skew_ns = (0..=stages).filter_map(skew_ns).max()?;
    let error_ns = |run: &HostRun| run.clock.map(|clock| clock.error_ns);
    let clock_error_ns = runs.clone().filter_map(error_ns).max().unwrap_or(0);
    Some(Starts { hosts: started(0).len(), skew_ns, clock_error_ns, accepted_ns })
}

/// Jobs as one, called `All clients` as in fio.
fn merged<'a>(mut jobs: impl Iterator<Item = &'a JobReport>) -> Option<JobReport> {
    let mut all = JobReport {
        name: ALL_CLIENTS.to_string(),
        group_id: 0,
        pid: 0,
        start_ms: 0,
        description: None,
        ..jobs.next()?.clone()
    };
    jobs.for_each(|job| all.merge(job));
    Some(JobReport { options: Vec::new(), ..all })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{host, job};

    proptest! {
        #[test]
        fn hosts_merge_to_what_all_their_jobs_merge_to(
            jobs in proptest::collection::vec(proptest::collection::vec(1..10_000_000_u64, 0..20), 1..12),
            cuts in proptest::collection::vec(0..4_usize, 12),
        ) {
            let jobs: Vec<JobReport> = jobs.iter().map(|latencies| job(latencies, 1000)).collect();
            let mut hosts: Vec<Vec<JobReport>> = vec![Vec::new(); 4];
            jobs.iter().zip(&cuts).for_each(|(job, host)| hosts[*host].push(job.clone()));
            let runs = hosts.into_iter().enumerate().map(|(number, jobs)| host(number as u32, 0, jobs)).collect();
            let all = FleetReport::of(runs, FleetSettings::default()).all.unwrap();
            let together = merged(jobs.iter()).unwrap();
            prop_assert_eq!(&all.stats, &together.stats);
            prop_assert_eq!(all.member_count, together.member_count);
            let percentiles = |job: &JobReport| job.stats.directions[0].completion.percentiles(&[50.0, 99.0, 99.9]);
            prop_assert_eq!(percentiles(&all), percentiles(&together));
        }
    }

    #[test]
    fn hosts_that_ran_alone_have_no_common_window() {
        let runs = || vec![host(0, 0, vec![job(&[5; 10], 1000)]), host(1, 5_000, vec![job(&[5; 10], 1000)])];
        let alone =
            FleetReport::of(runs(), FleetSettings { order: Order::Alone, ..FleetSettings::default() });
        assert_eq!((alone.window, alone.starts, alone.findings.len()), (None, None, 0));
        let together = FleetReport::of(runs(), FleetSettings::default());
        assert_eq!(together.window.map(|window| window.length_ns), Some(0));
        assert_eq!(together.starts.map(|starts| starts.skew_ns), Some(5_000_000_000));
    }
}
