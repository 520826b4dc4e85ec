//! `--fail-if` of a run on hosts: on what all did as one, and on how they differ.
//!
//! Invariant: nothing is decided by figures that a finding voids, nor on the whole without every host.

use fiord_compare::figure::{DirectionName, Measure, Subject};
use fiord_compare::{Condition, Decision, Figure, HostsCondition, NamedRun, Outcome, Side};
use fiord_fleet::{Done, FleetReport, HostRun};
use fiord_report::{JobReport, RunReport, Severity};
use fiord_stats::Summary;

use crate::gate;

/// What becomes of the conditions on this run.
pub(super) fn outcomes(
    fleet: &FleetReport,
    conditions: &[Condition],
    of_hosts: &[HostsCondition],
) -> Vec<Outcome> {
    let side = Side { name: "this run".to_string(), runs: whole(fleet), ..Side::default() };
    let mut outcomes = gate::outcomes(side, conditions);
    let (counted, hosts) = (fleet.counted().count(), fleet.hosts.len());
    for outcome in outcomes.iter_mut().filter(|_| counted < hosts) {
        outcome.decision = Decision::Undecided;
        outcome.why += &format!(", without {} of {hosts} hosts", hosts - counted);
    }
    let values = |figure: Figure| fleet.counted().filter_map(|(run, _)| value(run, figure)).collect();
    let void = fleet.findings.iter().find(|finding| finding.severity() == Severity::Void);
    outcomes.extend(of_hosts.iter().map(|condition| {
        let mut outcome = condition.outcome(&values, hosts);
        if let Some(finding) = void {
            outcome.decision = Decision::Undecided;
            outcome.why += &format!(", and a finding voids it ({})", finding.code.name());
        }
        outcome
    }));
    outcomes
}

/// The jobs of each name on all hosts as one, as the run of one machine; of rounds a run of each that all have.
fn whole(fleet: &FleetReport) -> Vec<NamedRun> {
    let rounds = fleet.counted().map(|(run, _)| run.rounds().count()).min().unwrap_or(0);
    let of_round = |round| {
        let mut jobs: Vec<JobReport> = Vec::new();
        let reports = fleet.counted().filter_map(|(run, _)| run.rounds().nth(round));
        for job in reports.flat_map(|report| &report.jobs) {
            match jobs.iter_mut().find(|known| known.name == job.name) {
                Some(known) => known.merge(job),
                None => jobs.push(job.clone()),
            }
        }
        let report = RunReport { jobs, findings: fleet.findings.clone(), ..RunReport::default() };
        NamedRun::of_run("", &report).ok()
    };
    (0..rounds.max(1)).filter_map(of_round).collect()
}

/// A figure of one host: the median of its rounds.
fn value(run: &HostRun, figure: Figure) -> Option<f64> {
    let values: Option<Vec<f64>> = run.rounds().map(|report| value_of(report, figure)).collect();
    Summary::of(&values?).map(|summary| summary.median)
}

fn value_of(report: &RunReport, figure: Figure) -> Option<f64> {
    let direction = match figure.subject {
        Subject::Direction(DirectionName::Mixed) => None,
        Subject::Direction(name) => Some(DirectionName::ALL.iter().position(|known| *known == name)?),
        Subject::Sync | Subject::Energy | Subject::Job => return None,
    };
    let done = Some(Done::of(report, direction)).filter(|done| !done.is_empty())?;
    let [iops, bytes_per_s] = done.rates();
    match figure.measure {
        Measure::Iops => Some(iops),
        Measure::Bandwidth => Some(bytes_per_s),
        Measure::Mean => Some(done.mean_ns()),
        Measure::Percentile(percent) => done.percentile_ns(percent).map(|ns| ns as f64),
        Measure::Watts | Measure::IopsPerWatt | Measure::BytesPerJoule | Measure::Counted(_) => None,
    }
}
