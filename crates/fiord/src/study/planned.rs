//! All steps of a study, planned before the first one runs.
//!
//! Invariant: if one step is refused, none runs and nothing is written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fiord_host::Machine;
use fiord_lab::Study;
use fiord_options::Problem;

use super::io_modes::IoModes;
use super::messages::Messages;
use super::step_plan::{StepError, StepPlan, step_name};
use crate::keep;

/// The plans of all steps.
pub(super) struct PlannedSteps {
    /// For each step, every path its run may touch.
    pub touched: Vec<BTreeSet<PathBuf>>,
    /// The files that the runs read and write.
    pub files: BTreeSet<PathBuf>,
    /// How they do so: engine, direct or not, depth.
    pub modes: IoModes,
    /// Warnings so far.
    pub messages: Messages,
    /// Why nothing is run, if a step was refused.
    pub refused: Option<StepError>,
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

    /// Plans every step; `typed` has the warnings about options as typed.
    pub(super) fn all(study: &dyn Study, typed: &[Problem], machine: &Machine) -> PlannedSteps {
        let mut planned = PlannedSteps {
            touched: Vec::new(),
            files: BTreeSet::new(),
            modes: IoModes::new(),
            messages: Messages::default(),
            refused: None,
        };
        planned.messages.problems(typed);
        let of_user = study.outline().is_of_users_options;
        for (number, step) in study.steps().iter().enumerate() {
            let run = match StepPlan::of(&step_name(number), step, of_user, machine) {
                Ok(run) => run,
                Err(refused) => {
                    planned.refused = Some(refused);
                    break;
                }
            };
            planned.touched.push(run.touched());
            planned.files.extend(keep::files(&run.plan));
            planned.modes.add(step, &run.plan);
            // The user cannot fix options he did not type.
            planned.messages.problems(run.warnings.iter().filter(|_| of_user));
        }
        planned
    }
}
