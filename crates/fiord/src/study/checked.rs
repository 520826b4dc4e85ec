//! All steps of a study, planned before the first one is run.
//!
//! Invariant: a step that would be refused stops all of them before anything is written.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fiord_host::Machine;
use fiord_lab::Study;
use fiord_options::Problem;

use super::run::{Refused, Run, run_name};
use super::told::Told;
use super::ways::Ways;
use crate::keep;

/// What is known before anything has been run.
pub(super) struct Checked {
    /// Of each step, every path its run may touch.
    pub touched: Vec<BTreeSet<PathBuf>>,
    /// What the runs read and write.
    pub files: BTreeSet<PathBuf>,
    /// How they do so.
    pub ways: Ways,
    /// What there is to say of it.
    pub told: Told,
    /// Why nothing may be run.
    pub refused: Option<Refused>,
}

impl Checked {
    /// Plans every step; `typed` is what is odd about options as they were typed.
    pub(super) fn all(study: &dyn Study, typed: &[Problem], machine: &Machine) -> Checked {
        let mut checked = Checked {
            touched: Vec::new(),
            files: BTreeSet::new(),
            ways: Ways::new(),
            told: Told::default(),
            refused: None,
        };
        checked.told.problems(typed);
        let of_user = study.is_of_users_options();
        for (number, step) in study.steps().iter().enumerate() {
            let run = match Run::of(&run_name(number), step, of_user, machine) {
                Ok(run) => run,
                Err(refused) => {
                    checked.refused = Some(refused);
                    break;
                }
            };
            checked.touched.push(run.touched());
            checked.files.extend(keep::files(&run.plan));
            checked.ways.add(step, &run.plan);
            // Options that nobody typed are nobody's to mend.
            checked.told.problems(run.warnings.iter().filter(|_| of_user));
        }
        checked
    }
}
