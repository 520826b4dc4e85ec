//! `--fail-if` of a run on hosts: on what all did as one, and on how they differ.
//!
//! Invariant: nothing is decided by figures that a finding voids, nor on the whole without every host.

use fiord_compare::figure::{DirectionName, Measure, Subject};
use fiord_compare::{Condition, Decision, Figure, HostsCondition, NamedRun, Outcome, Side};
use fiord_fleet::{Done, FleetReport, HostRun};
use fiord_report::{JobReport, RunReport, Severity};

use crate::gate;

/// What becomes of the conditions on this run.
pub(super) fn outcomes(
    fleet: &FleetReport,
    conditions: &[Condition],
    of_hosts: &[HostsCondition],
) -> Vec<Outcome> {
    let side =
        Side { name: "this run".to_string(), runs: whole(fleet).into_iter().collect(), ..Side::default() };
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

/// The jobs of each name on all hosts as one, as the run of one machine.
fn whole(fleet: &FleetReport) -> Option<NamedRun> {
    let mut jobs: Vec<JobReport> = Vec::new();
    let reports = fleet.counted().filter_map(|(run, _)| run.report.as_ref());
    for job in reports.flat_map(|report| &report.jobs) {
        match jobs.iter_mut().find(|known| known.name == job.name) {
            Some(known) => known.merge(job),
            None => jobs.push(job.clone()),
        }
    }
    let report = RunReport { jobs, findings: fleet.findings.clone(), ..RunReport::default() };
    NamedRun::of_run("", &report).ok()
}

/// A figure of one host.
fn value(run: &HostRun, figure: Figure) -> Option<f64> {
    let direction = match figure.subject {
        Subject::Direction(DirectionName::Mixed) => None,
        Subject::Direction(name) => Some(DirectionName::ALL.iter().position(|known| *known == name)?),
        Subject::Sync | Subject::Energy => return None,
    };
    let done = Done::of(run, direction).filter(|done| !done.is_empty())?;
    let [iops, bytes_per_s] = done.rates();
    match figure.measure {
        Measure::Iops => Some(iops),
        Measure::Bandwidth => Some(bytes_per_s),
        Measure::Mean => Some(done.mean_ns()),
        Measure::Percentile(percent) => done.percentile_ns(percent).map(|ns| ns as f64),
        Measure::Watts | Measure::IopsPerWatt | Measure::BytesPerJoule => None,
    }
}
