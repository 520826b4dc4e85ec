//! The plan of one step of a study.
//!
//! Invariant: planned with the facts of the host and refused if a target is in use, like a user's job file; a step
//! that names its files touches those and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fiord_host::Machine;
use fiord_lab::Step;
use fiord_options::{Origin, Place, Problem, Section, Setting};
use fiord_plan::facts::RunSettings;
use fiord_plan::job::Memory;
use fiord_plan::{Job, Plan, Refusal};
use fiord_report::path::shown;

use crate::error::SessionError;
use crate::run::facts;

/// A step as planned.
pub(super) struct StepPlan {
    pub plan: Arc<Plan>,
    /// Warnings, which do not stop it.
    pub warnings: Vec<Problem>,
    /// Settings of `[global]` sections, which the report echoes.
    pub global_options: Vec<(String, String)>,
}

impl StepPlan {
    /// Plans a step, which errors call `name`. A job with given files may touch others only if options of the user
    /// name them.
    pub(super) fn of(
        name: &str,
        step: &Step,
        has_users_options: bool,
        machine: &Machine,
    ) -> Result<StepPlan, SessionError> {
        let entropy = fiord_sys::clock::realtime_ns();
        let (plan, warnings) =
            plan(&step.sections, machine, entropy).map_err(|refusal| refused(name, &refusal))?;
        for job in &plan.jobs {
            let files = step.sections.get(job.section as usize).map_or(&[][..], |section| &section.files);
            stays_within(job, files, has_users_options).map_err(|why| SessionError {
                why: format!("{name}: job {}: {why}; nothing was run\n", shown(&job.name)),
                is_refused: true,
            })?;
        }
        Ok(StepPlan { plan: Arc::new(plan), warnings, global_options: global_options(&step.sections) })
    }

    /// Every path that the run may read, write, create or remove.
    pub(super) fn touched(&self) -> BTreeSet<PathBuf> {
        self.plan
            .jobs
            .iter()
            .flat_map(|job| job.files.list.iter().map(|file| &file.path).chain(others(job)))
            .cloned()
            .collect()
    }
}

/// What the last section inherits: each begins with what those before it inherit.
fn global_options(sections: &[Section]) -> Vec<(String, String)> {
    sections.last().into_iter().flat_map(|section| section.global.iter()).map(Setting::echoed).collect()
}

/// What errors call a step.
pub(super) fn step_name(number: usize) -> String {
    format!("run {}", number + 1)
}

/// The plan of these sections, with warnings.
pub(super) fn plan(
    sections: &[Section],
    machine: &Machine,
    entropy: u64,
) -> Result<(Plan, Vec<Problem>), Refusal> {
    let settings = RunSettings { entropy, counts_timed_writes: true, ..RunSettings::default() };
    let (plan, warnings) = facts::plan(sections, &[], machine, &settings)?;
    // Results of some of the jobs would answer a different question.
    let problems: Vec<Problem> = plan.unplannable().cloned().collect();
    if problems.is_empty() { Ok((plan, warnings)) } else { Err(Refusal { problems, unsafe_target: false }) }
}

/// Checks that a job with given files uses exactly those, in order and without links.
fn stays_within(job: &Job, files: &[PathBuf], has_users_options: bool) -> Result<(), String> {
    if files.is_empty() {
        return Ok(());
    }
    let planned: Vec<&PathBuf> = job.files.list.iter().map(|file| &file.path).collect();
    if planned != files.iter().collect::<Vec<_>>() {
        return Err(format!("it would use {} and not the files of this study", listed(planned)));
    }
    let other: Vec<&PathBuf> = others(job).filter(|_| !has_users_options).collect();
    if !other.is_empty() {
        return Err(format!("it would create {}, which is not a file of this study", listed(other)));
    }
    files.iter().try_for_each(|file| match is_real(file) {
        true => Ok(()),
        false => Err(format!("{} has changed: a part of the path is now a link, or missing", shown(file))),
    })
}

/// What a job creates in addition to its files: directories, logs, a file for its buffers.
fn others(job: &Job) -> impl Iterator<Item = &PathBuf> {
    let logs = job.logs.iter().flat_map(|logs| logs.files.iter().map(|file| &file.path));
    let memory = match &job.buffers.memory {
        Memory::Mmap(file) | Memory::MmapHuge(file) | Memory::MmapShared(file) => file.as_ref(),
        Memory::Malloc | Memory::Shm | Memory::ShmHuge | Memory::Gpu => None,
    };
    job.files.create_directories.iter().chain(logs).chain(memory)
}

/// Whether no part of the path is a link. The file itself need not exist yet.
fn is_real(file: &Path) -> bool {
    let is_real = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real == path);
    match fs::symlink_metadata(file) {
        Ok(_) => is_real(file),
        Err(_) => file.parent().is_some_and(is_real),
    }
}

fn listed(paths: Vec<&PathBuf>) -> String {
    paths.into_iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Problems without a place are attributed to the step.
fn refused(name: &str, refusal: &Refusal) -> SessionError {
    let placed = |problem: &Problem| match problem.place.source {
        Origin::Derived => problem.clone().at(Place::all_of(name)),
        Origin::CommandLine | Origin::File(_) => problem.clone(),
    };
    SessionError {
        why: refusal.problems.iter().map(|problem| format!("{}\n", placed(problem))).collect(),
        is_refused: refusal.unsafe_target,
    }
}

#[cfg(test)]
mod tests;
