//! A study on one of the hosts of `--hosts`: its runs start when the controller says so, and its result goes there.
//!
//! Invariant: nothing is printed and nothing is recorded here; targets, scratch files and plans are those of any study.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use fiord_host::Machine;
use fiord_lab::{Study, StudyTarget, Verdict};
use fiord_options::Problem;
use fiord_session::study::planned::PlannedSteps;
use fiord_session::study::steps::{StudyOutcome, StudyRun};
use fiord_stats::Gather;
use fiord_wire::StudyReport;

use super::ending::exit_status;
use super::options::{OnAgent, Options};
use super::page::{self, StudyDocument};
use crate::arguments::CommandError;
use crate::layout::WIDTH;
use crate::{gate, keep};

/// Runs all steps of `study` and tells the controller the result.
pub(super) fn carry_out(
    study: &dyn Study,
    targets: &[&StudyTarget],
    typed: &[Problem],
    options: &Options,
    (agent, machine): (&OnAgent, &Machine),
) -> Result<ExitCode, CommandError> {
    let mut agent = agent.borrow_mut();
    let mut planned = PlannedSteps::all(study, targets, typed, options.trust, machine);
    if let Some(refused) = planned.refused.take() {
        return Err(refused.into());
    }
    // Jobs that name their own files are known whole; what follows from results in a target is not.
    let writes = |path: &PathBuf| match targets {
        [] => planned.changed.contains(path),
        targets => targets.iter().all(|target| target.writable || target.file != *path),
    };
    let paths = planned.files.union(&planned.changed);
    let used: BTreeMap<PathBuf, bool> = paths.map(|path| (path.clone(), writes(path))).gather();
    if !agent.planned(machine, &used) {
        return Ok(ExitCode::SUCCESS);
    }
    let run = StudyRun { study, machine, trust: options.trust, keeps: false, stop: agent.stop() };
    let mut presenter = agent.presenter();
    let outcome = run.carry_out(&mut planned, &mut presenter, Some(agent.stages()));
    let StudyOutcome { results: ran, names, findings, ending, why_early, .. } = outcome;
    let result = study.result(&ran, WIDTH);
    let outcomes = gate::outcomes(page::side(&ran, &names), &options.fail_if);
    let status = exit_status(study, ending, result.verdict, true, options, &outcomes);
    let heading = page::opening(study, targets, &planned.modes, WIDTH);
    let text = heading + &page::closing(&result, &findings, WIDTH, false);
    let json = page::json(&StudyDocument {
        outcomes: &outcomes,
        study,
        targets,
        modes: &planned.modes,
        result: &result,
        findings: &findings,
        facts: keep::facts_of_study(study.name(), machine, options.tag.as_deref()),
        ran: &ran,
        names,
        why_early: why_early.as_deref(),
    });
    let report = StudyReport {
        status,
        verdict: result.verdict.map(|verdict| Verdict::word(verdict).to_string()),
        conclusion: result.conclusion,
        text: text + &gate::lines(&outcomes).collect::<String>(),
        json,
    };
    agent.ended(&report, ending, why_early.as_deref());
    Ok(ExitCode::SUCCESS)
}
