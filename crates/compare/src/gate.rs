//! Conditions on one result alone: `read.p99 > 2ms` of a run, or of the runs of a study.
//!
//! Invariant: nothing is decided by figures that a finding voids.

use crate::comparison::{Settings, compare};
use crate::condition::Condition;
use crate::hosts_condition::HostsCondition;
use crate::outcome::{Decision, Outcome};
use crate::side::Side;

/// What becomes of each condition.
pub fn outcomes(side: Side, conditions: &[Condition]) -> Vec<Outcome> {
    let mut findings = side.runs.iter().flat_map(|run| &run.report.findings);
    let void = findings.find(|finding| finding.severity == "void").map(|finding| finding.code.clone());
    let settings = Settings { conditions: conditions.to_vec(), ..Settings::default() };
    let mut outcomes = compare(&[side], &settings).outcomes;
    if let Some(code) = void {
        for outcome in &mut outcomes {
            outcome.decision = Decision::Undecided;
            outcome.why = format!("{}, and a finding voids it ({code})", outcome.why);
        }
    }
    outcomes
}

/// A condition on a result alone, as typed.
///
/// # Errors
/// It is none, or one about a change.
pub fn condition(text: &str) -> Result<Condition, String> {
    if HostsCondition::is_meant(text) {
        return Err(format!(
            "{text:?} is about the hosts of a run of jobs; run it with --hosts, or leave it out"
        ));
    }
    let condition: Condition = text.parse()?;
    match condition.is_change() {
        true => Err(format!(
            "{text:?} is about a change; write a value (read.p99 > 10ms), or compare two results with fiord compare"
        )),
        false => Ok(condition),
    }
}

#[cfg(test)]
mod tests {
    use fiord_import::{DirectionFigures, DirectionName, JobFigures, Report, ReportedFinding};

    use super::*;
    use crate::side::NamedRun;

    fn side(iops: f64, severity: &str) -> Side {
        let direction = DirectionFigures {
            name: DirectionName::Read,
            iops: Some(iops),
            ios: Some(1000),
            ..DirectionFigures::default()
        };
        let job = JobFigures { name: "a".to_string(), directions: vec![direction], ..JobFigures::default() };
        let finding = ReportedFinding {
            code: "disk-shared".to_string(),
            severity: severity.to_string(),
            ..ReportedFinding::default()
        };
        let report = Report { jobs: vec![job], findings: vec![finding], ..Report::default() };
        let run = NamedRun { name: String::new(), report };
        Side { name: "this run".to_string(), runs: vec![run], ..Side::default() }
    }

    #[test]
    fn a_value_is_decided_by_one_result_unless_a_finding_voids_it() {
        let decided = |iops, severity, text| {
            let outcomes = outcomes(side(iops, severity), &[condition(text).unwrap()]);
            outcomes[0].decision
        };
        assert_eq!(decided(400.0, "note", "read.iops < 500"), Decision::Holds);
        assert_eq!(decided(600.0, "note", "read.iops < 500"), Decision::Clear);
        assert_eq!(decided(600.0, "note", "a: read.iops < 500"), Decision::Clear);
        assert_eq!(decided(600.0, "note", "b: read.iops < 500"), Decision::Undecided);
        assert_eq!(decided(600.0, "note", "write.iops < 500"), Decision::Undecided);
        for iops in [400.0, 600.0] {
            assert_eq!(decided(iops, "void", "read.iops < 500"), Decision::Undecided);
        }
    }

    #[test]
    fn a_change_needs_a_result_to_compare_with() {
        assert!(condition("read.p99 > +10%").unwrap_err().contains("fiord compare"));
        assert!(condition("read.p99").unwrap_err().starts_with("column 9"));
    }
}
