//! From the runs of hosts to what they did together.
//!
//! Invariant: a host whose report is not whole is in no sum.

use std::collections::BTreeMap;

use fiord_report::{JobReport, RepeatedFigure};

use crate::findings;
use crate::member::Member;
use crate::model::{ALL_CLIENTS, FleetReport, FleetSettings, Group, Starts};
use crate::order::Order;
use crate::outliers::{self, Measure, Outlier};
use crate::over_time::OverTime;
use crate::run::{HostRun, StageStart};
use crate::start;
use crate::window::{CommonWindow, Series};

impl FleetReport {
    /// Of these hosts.
    pub fn of(hosts: Vec<HostRun>, settings: FleetSettings) -> FleetReport {
        let member = |run: &HostRun| Member::of(run).filter(|_| run.is_counted());
        let members: Vec<Option<Member>> = hosts.iter().map(member).collect();
        let counted = || hosts.iter().filter(|run| run.is_counted());
        let jobs = counted().filter_map(|run| run.report.as_ref()).flat_map(|report| &report.jobs);
        let all = merged(jobs);
        let far = |measure: Measure| {
            let far = outliers::outliers(measure, &values(&members, |member| measure.of(member)));
            let is_off = |report, median| {
                measure.of(&Member::of_round([report])).is_some_and(|value| measure.is_off(value, median))
            };
            // Slow in one round is not a slow host.
            let is_so = |each: &Outlier| hosts[each.host].rounds().all(|report| is_off(report, each.median));
            far.into_iter().filter(is_so).collect::<Vec<_>>()
        };
        let outliers: Vec<Outlier> = [Measure::Iops, Measure::P99].into_iter().flat_map(far).collect();
        let (window, over_time, starts) = match settings.order {
            Order::Together => {
                // A sum over those alone that told when would not be one over all.
                let series: Option<Vec<Series>> = counted().map(Series::of).collect();
                let window = series.as_deref().and_then(CommonWindow::of);
                let over_time =
                    series.as_deref().and_then(|series| OverTime::of(&counted().collect::<Vec<_>>(), series));
                let run_ns = window.as_ref().map_or(0, |window| window.shortest_run_ns);
                let accepted_ns = settings.start_within_ns.unwrap_or(start::accepted_skew_ns(run_ns));
                (window, over_time, Starts::of(counted(), accepted_ns))
            }
            Order::Alone | Order::Interleaved => (None, None, None),
        };
        let groups = groups(counted(), settings.group_by);
        let (findings, repeats) = (Vec::new(), counted().flat_map(repeats).collect());
        let mut fleet = FleetReport {
            settings,
            hosts,
            members,
            all,
            groups,
            window,
            over_time,
            starts,
            repeats,
            intervals: Vec::new(),
            outliers,
            findings,
        };
        fleet.findings = findings::of(&fleet);
        fleet
    }
}

/// Hosts by what they have of this trait.
fn groups<'r>(runs: impl Iterator<Item = &'r HostRun>, key: Option<&str>) -> Vec<Group> {
    let Some(key) = key else { return Vec::new() };
    let mut by_value: BTreeMap<String, Vec<&HostRun>> = BTreeMap::new();
    for run in runs {
        let known = findings::traits(run).into_iter().find(|(name, _)| *name == key);
        by_value.entry(known.map(|(_, value)| value).unwrap_or_default()).or_default().push(run);
    }
    let group = |(value, runs): (String, Vec<&HostRun>)| Group {
        value,
        hosts: runs.len(),
        figures: Member::of_all(&runs),
    };
    by_value.into_iter().map(group).collect()
}

/// The figures of a host's rounds: of all its jobs as one, then of each; none of a single round.
fn repeats(run: &HostRun) -> Vec<RepeatedFigure> {
    let name = &run.host.name;
    let members: Vec<Member> = run.rounds().map(|report| Member::of_round([report])).collect();
    if members.len() < 2 {
        return Vec::new();
    }
    let figure = |figure: &str, title: &str, of: fn(&Member) -> Option<f64>| {
        let runs = members.iter().map(of).collect::<Option<Vec<f64>>>()?;
        let (subject, figure, title) = (name.clone(), figure.to_string(), title.to_string());
        Some(RepeatedFigure { subject, figure, title, runs, left_out: 0 })
    };
    let own = [
        figure("iops", "IOPS", |member| Some(member.iops)),
        figure("mean_ns", "MEAN", |member| Some(member.mean_ns)),
        figure("p99_ns", "P99", |member| Measure::P99.of(member)),
    ];
    let of_jobs = run.report.iter().flat_map(|report| &report.repeats);
    let named =
        |one: &RepeatedFigure| RepeatedFigure { subject: format!("{name}: {}", one.subject), ..one.clone() };
    own.into_iter().flatten().chain(of_jobs.map(named)).collect()
}

/// A figure of each host that has it, with the host's place in the list.
fn values(members: &[Option<Member>], figure: impl Fn(&Member) -> Option<f64>) -> Vec<(usize, f64)> {
    let of = |(host, member): (usize, &Option<Member>)| Some((host, figure(member.as_ref()?)?));
    members.iter().enumerate().filter_map(of).collect()
}

impl Starts {
    /// How exactly these started together; `None` if none of them told.
    pub fn of<'a>(runs: impl Iterator<Item = &'a HostRun> + Clone, accepted_ns: u64) -> Option<Starts> {
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
}

/// Jobs as one, called `All clients` as in fio; `None` without any.
pub fn merged<'a>(mut jobs: impl Iterator<Item = &'a JobReport>) -> Option<JobReport> {
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
    /// Hosts whose runs of three rounds took so long, in hundreds of milliseconds.
    fn in_rounds(runtimes: &[[u64; 3]]) -> FleetReport {
        let of = |(number, runtimes): (usize, &[u64; 3])| {
            let round = |tenths: u64| host(number as u32, 0, vec![job(&[1000 * tenths; 100], 100 * tenths)]);
            let mut run = round(runtimes[0]);
            runtimes[1..]
                .iter()
                .enumerate()
                .for_each(|(at, next)| run.add_round(round(*next), at + 2, false));
            run
        };
        let settings = FleetSettings { order: Order::Interleaved, ..FleetSettings::default() };
        FleetReport::of(runtimes.iter().enumerate().map(of).collect(), settings)
    }

    #[test]
    fn a_host_that_ran_in_rounds_has_their_median_and_their_spread() {
        let fleet = in_rounds(&[[10, 20, 5], [10, 10, 10]]);
        let figures = |at: usize| {
            let member = fleet.members[at].as_ref().unwrap();
            (member.iops, member.mean_ns as u64, member.max_ns)
        };
        assert_eq!([figures(0), figures(1)], [(100.0, 10_000, 20_000), (100.0, 10_000, 10_000)]);
        let named: Vec<(&str, &str, &[f64])> =
            fleet.repeats.iter().map(|one| (&*one.subject, &*one.figure, &*one.runs)).collect();
        assert_eq!(named[0], ("db1", "iops", &[100.0, 50.0, 200.0][..]));
        assert_eq!(named.len(), 6);
        assert_eq!((fleet.window, fleet.starts), (None, None));
        let groups = groups(fleet.hosts.iter(), Some("kernel"));
        assert_eq!((groups[0].hosts, groups[0].figures.iops), (2, 200.0), "150 and 300 in the other rounds");
    }

    #[test]
    fn a_host_that_is_slow_in_every_round_is_an_outlier_and_one_that_recovers_is_not() {
        let fleet = in_rounds(&[[10; 3], [10; 3], [10; 3], [10; 3], [20; 3], [20, 20, 10]]);
        let hosts: Vec<usize> = fleet.outliers.iter().map(|outlier| outlier.host).collect();
        assert_eq!(hosts, [4, 4], "by both figures");
    }
}
