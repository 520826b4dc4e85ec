//! Runs the steps of a study, one after the other.
//!
//! Invariant: whatever ends it, everything that was measured until then is in its outcome.

use fiord_findings::interrupted;
use fiord_host::Machine;
use fiord_lab::rounds::with_resumption;
use fiord_lab::{Figures, Step, StepResult, Study};
use fiord_options::value::Trust;
use fiord_plan::Plan;
use fiord_report::Finding;
use fiord_report::finding::any_void;
use fiord_sys::signal;

use super::overwrite::WriteLimit;
use super::planned::PlannedSteps;
use super::step_plan::{StepPlan, step_name};
use crate::ending::Ending;
use crate::error::SessionError;
use crate::event::{Event, Presenter};
use crate::run::drive::{Run, RunOutcome, StageGate, drive};
use crate::stop::StopHandle;

/// A study to be carried out.
pub struct StudyRun<'a> {
    /// What gives the steps.
    pub study: &'a dyn Study,
    /// The machine it runs on.
    pub machine: &'a Machine,
    /// Whether findings are made, and what they do to its ending.
    pub trust: Trust,
    /// Whether something may be kept in the state directory for later runs.
    pub keeps: bool,
    /// Ends it early.
    pub stop: StopHandle,
}

/// The outcome of a study.
pub struct StudyOutcome {
    /// The runs that were measured.
    pub results: Vec<StepResult>,
    /// The names of their steps.
    pub names: Vec<String>,
    /// How many of them were not interrupted.
    pub complete: usize,
    /// All findings, the worst first.
    pub findings: Vec<Finding>,
    /// How it ended.
    pub ending: Ending,
    /// Why it ended early, if it did.
    pub why_early: Option<String>,
}

impl StudyRun<'_> {
    /// Runs the steps until the last one, a signal or a failure. `gate` holds the stages of each run, if the study does not
    /// go on on its own.
    pub fn carry_out<'s>(
        &'s self,
        planned: &'s mut PlannedSteps,
        presenter: &'s mut dyn Presenter,
        gate: Option<&'s mut dyn StageGate>,
    ) -> StudyOutcome {
        let (names, results): (Vec<String>, Vec<StepResult>) = planned.earlier.drain(..).unzip();
        let (complete, resumed_at) = (results.len(), Some(results.len()).filter(|runs| *runs > 0));
        let mut steps = Steps { of: self, planned, presenter, gate, results, names, complete, resumed_at };
        let early = steps.run().err();
        let Steps { results, names, complete, planned, .. } = steps;
        let findings = planned.messages.findings();
        let ending = match &early {
            Some(early) => early.ending,
            None if self.trust == Trust::Strict && any_void(&findings) => Ending::Void,
            None => Ending::Complete,
        };
        let why_early = early.map(|early| early.why);
        StudyOutcome { results, names, complete, findings, ending, why_early }
    }
}

/// What ended a study early.
struct Early {
    ending: Ending,
    why: String,
}

impl Early {
    fn by_signal(signal: i32) -> Early {
        Early { ending: Ending::Signal(signal), why: format!("ended by {}", signal::name(signal)) }
    }
}

impl From<SessionError> for Early {
    fn from(SessionError { why, is_refused }: SessionError) -> Early {
        let ending = if is_refused { Ending::Refused } else { Ending::Failed };
        Early { ending, why: why.trim_end().to_string() }
    }
}

/// The steps so far.
struct Steps<'a> {
    of: &'a StudyRun<'a>,
    planned: &'a mut PlannedSteps,
    presenter: &'a mut dyn Presenter,
    gate: Option<&'a mut dyn StageGate>,
    results: Vec<StepResult>,
    names: Vec<String>,
    complete: usize,
    /// The number of the first step of this process, if another process has run those before.
    resumed_at: Option<usize>,
}

impl Steps<'_> {
    fn run(&mut self) -> Result<(), Early> {
        if let Some(refused) = self.planned.refused.take() {
            return Err(refused.into());
        }
        let mut number = self.results.len();
        for (name, run) in self.names.iter().zip(&self.results).filter(|_| self.of.trust != Trust::Off) {
            let findings = run.report.findings.iter().filter(|finding| !self.of.study.accounts_for(finding));
            self.planned.messages.run(name, findings);
        }
        while let Some(step) = self.step(number) {
            if let Some(signal) = self.stop_requested() {
                return Err(Early::by_signal(signal));
            }
            self.presenter.event(&Event::Step { number, step: &step });
            let run = self.plan(number, &step)?;
            // The user cannot fix options he did not type.
            let is_users = self.of.study.outline().is_of_users_options;
            let warnings = if is_users { run.warnings.as_slice() } else { &[] };
            let StudyRun { trust, keeps, ref stop, .. } = *self.of;
            let gate: Option<&mut dyn StageGate> = match &mut self.gate {
                Some(gate) => Some(&mut **gate),
                None => None,
            };
            let (global_options, stop) = (run.global_options.clone(), stop.clone());
            let of_step = Run { global_options, trust, keeps, stop, gate, ..Run::of(&run.plan, warnings) };
            let outcome = drive(of_step, self.presenter);
            match outcome.ending {
                Ending::Signal(signal) => {
                    self.add_interrupted((number, &step), &run.plan, outcome, signal);
                    return Err(Early::by_signal(signal));
                }
                // Void figures are a matter of the conclusion, and of the ending when all runs are over.
                Ending::Complete | Ending::Void => {
                    self.add((number, &step), &run.plan, outcome, !step.prepares)
                }
                ending @ (Ending::Failed | Ending::Refused) => {
                    return Err(Early { ending, why: outcome.errors.concat().trim_end().to_string() });
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// The signal that ends the study, if one does.
    fn stop_requested(&self) -> Option<i32> {
        signal::stop_requested().or_else(|| self.of.stop.is_used().then_some(signal::TERMINATE))
    }

    /// A step by its number: one that was known before, or that follows from the results so far.
    fn step(&self, number: usize) -> Option<Step> {
        let step = self.of.study.step(number, &self.results)?;
        // By this name a later resumption knows of the interruption.
        let is_resumed = self.resumed_at == Some(number);
        Some(if is_resumed { Step { name: with_resumption(&step.name), ..step } } else { step })
    }

    /// The plan of a step that is about to run.
    fn plan(&self, number: usize, step: &Step) -> Result<StepPlan, SessionError> {
        self.planned.limits.iter().try_for_each(WriteLimit::check_again)?;
        let is_users = self.of.study.outline().is_of_users_options;
        let name = step_name(number);
        let run = StepPlan::of(&name, step, is_users, self.of.machine)?;
        self.planned.within_limits(&name, &run)?;
        if self.planned.may_touch(step.repeats.unwrap_or(number), &run.touched()) {
            return Ok(run);
        }
        let why = format!("{name}: it would use files that appeared after the runs were checked");
        Err(SessionError { why, is_refused: true })
    }

    /// Adds a run that was ended by a signal, if it measured anything: to the results if they have no other run of its
    /// step.
    fn add_interrupted(&mut self, of: (usize, &Step), plan: &Plan, mut outcome: RunOutcome, signal: i32) {
        let (number, step) = of;
        if step.prepares || Figures::of_all(&outcome.report).is_none() {
            return;
        }
        let finding = interrupted(&outcome.report, signal::name(signal), step.time);
        outcome.report.findings.push(finding);
        // What ended it has been said.
        outcome.errors.clear();
        let is_known = self.results.iter().any(|run| run.step == step.repeats.unwrap_or(number));
        self.add(of, plan, outcome, !is_known);
    }

    /// Tells of a run that is over, which may be one of the results.
    fn add(&mut self, (number, step): (usize, &Step), plan: &Plan, outcome: RunOutcome, is_result: bool) {
        let RunOutcome { report, errors, ending, .. } = outcome;
        self.presenter.event(&Event::StepDone {
            step,
            plan,
            report: &report,
            errors: &errors,
            ending,
            is_result,
        });
        if !is_result {
            return;
        }
        self.complete += usize::from(!matches!(ending, Ending::Signal(_)));
        if self.of.trust != Trust::Off {
            let findings = report.findings.iter().filter(|finding| !self.of.study.accounts_for(finding));
            self.planned.messages.run(&step.name, findings);
        }
        self.names.push(step.name.clone());
        self.results.push(StepResult { step: step.repeats.unwrap_or(number), report });
    }
}
