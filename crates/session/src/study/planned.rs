//! All steps of a study, planned before the first one runs.
//!
//! Invariant: if one step is refused, none runs and nothing is written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fiord_host::Machine;
use fiord_lab::{StepResult, Study, StudyTarget};
use fiord_options::Problem;
use fiord_options::value::Trust;
use fiord_plan::path_change::path_changes;

use super::io_modes::IoModes;
use super::messages::Messages;
use super::overwrite::WriteLimit;
use super::step_plan::{StepPlan, step_name};
use crate::error::SessionError;
use crate::run::files::files;

/// The plans of all steps.
pub struct PlannedSteps {
    /// For each step, every path its run may touch.
    touched: Vec<BTreeSet<PathBuf>>,
    /// The files that the runs read and write.
    pub files: BTreeSet<PathBuf>,
    /// What the runs change.
    pub changed: BTreeSet<PathBuf>,
    /// How they do so: engine, direct or not, depth.
    pub modes: IoModes,
    /// What may be written of targets that are not scratch files.
    pub(super) limits: Vec<WriteLimit>,
    /// The runs of an earlier process that the study goes on from, with their names.
    pub earlier: Vec<(String, StepResult)>,
    /// Findings so far.
    pub(super) messages: Messages,
    /// Why nothing is run, if a step was refused.
    pub refused: Option<SessionError>,
}

impl PlannedSteps {
    /// Whether the run of a step may touch these paths. A step that follows from results may touch what the steps known
    /// before touch.
    pub(super) fn may_touch(&self, number: usize, paths: &BTreeSet<PathBuf>) -> bool {
        match self.touched.get(number) {
            Some(planned) => paths.is_subset(planned),
            None => paths.iter().all(|path| self.touched.iter().any(|planned| planned.contains(path))),
        }
    }

    /// Checks that the run of a step writes only what it may.
    pub(super) fn within_limits(&self, name: &str, run: &StepPlan) -> Result<(), SessionError> {
        self.limits.iter().try_for_each(|limit| limit.check(name, &run.plan))
    }

    /// The warnings about options, with their place in what was typed, each once.
    pub fn warnings(&self) -> &[Problem] {
        self.messages.warnings()
    }

    /// Plans every step; `typed` has the warnings about options as typed. There are no `targets` if the jobs name their
    /// files themselves.
    pub fn all(
        study: &dyn Study,
        targets: &[&StudyTarget],
        typed: &[Problem],
        trust: Trust,
        machine: &Machine,
    ) -> PlannedSteps {
        let mut planned = PlannedSteps {
            touched: Vec::new(),
            files: BTreeSet::new(),
            changed: BTreeSet::new(),
            modes: IoModes::new(),
            earlier: Vec::new(),
            limits: targets.iter().filter_map(|target| WriteLimit::of(target)).collect(),
            messages: Messages::default(),
            refused: None,
        };
        planned.messages.problems(typed);
        let of_user = study.outline().is_of_users_options;
        for (number, step) in study.steps().iter().enumerate() {
            let name = step_name(number);
            let run = StepPlan::of(&name, step, of_user, machine);
            let run = run.and_then(|run| planned.within_limits(&name, &run).map(|()| run));
            let run = match run {
                Ok(run) => run,
                Err(refused) => {
                    planned.refused = Some(refused);
                    break;
                }
            };
            planned.touched.push(run.touched());
            planned.files.extend(files(&run.plan).into_iter().map(Path::to_path_buf));
            planned.changed.extend(run.plan.jobs.iter().flat_map(path_changes).map(|change| change.path));
            planned.modes.add(step, &run.plan);
            // The user cannot fix options he did not type.
            planned.messages.problems(run.warnings.iter().filter(|_| of_user));
        }
        if trust != Trust::Off {
            targets.iter().for_each(|target| planned.messages.target(&target.findings));
        }
        planned
    }
}
