//! One run of a study: settings and paths in, a report out.
//!
//! Invariant: planned with the host's facts and refused where a target is in use, as a job file of the user's is; and a
//! run that was handed its files touches those and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fiord_host::Machine;
use fiord_lab::Step;
use fiord_options::{Place, Problem, Section, Source};
use fiord_plan::facts::RunSettings;
use fiord_plan::job::Memory;
use fiord_plan::{Job, Plan, Refusal};
use fiord_report::path::shown;
use fiord_report::{RunReport, Warning};
use fiord_worker::{Moment, Watcher};

use crate::assemble::{self, Frame, Meters};
use crate::{facts, status};

/// A run that was planned.
pub(super) struct Run {
    pub plan: Arc<Plan>,
    /// What is worth saying although it stops nothing.
    pub warnings: Vec<Problem>,
}

/// Why there is no run, and the status to end with.
pub(super) struct Refused {
    pub text: String,
    pub status: u8,
}

/// What came of a run.
pub(super) struct Outcome {
    pub report: RunReport,
    pub signal: Option<i32>,
    /// What failed, a line each.
    pub failures: Vec<String>,
    /// What its jobs gave rise to say although nothing failed.
    pub remarks: Vec<Warning>,
    /// The status that means, if anything failed.
    pub status: u8,
}

/// Who looks on while a run of a study goes on: a watcher that is told of the disks as well.
pub(super) trait Looker: Watcher {
    /// What is watched beside the workers.
    fn meters(&mut self) -> &mut Meters;
}

impl Run {
    /// Plans a step, which is called `name` where something is wrong with it. A job that was handed its files may touch
    /// others only where the user's own options name them.
    pub(super) fn of(
        name: &str,
        step: &Step,
        has_users_options: bool,
        machine: &Machine,
    ) -> Result<Run, Refused> {
        let entropy = fiord_sys::clock::realtime_ns();
        let (plan, warnings) =
            plan(&step.sections, machine, entropy).map_err(|refusal| refused(name, &refusal))?;
        for job in &plan.jobs {
            let files = step.sections.get(job.section as usize).map_or(&[][..], |section| &section.files);
            stays_within(job, files, has_users_options).map_err(|why| Refused {
                text: format!("{name}: job {}: {why}; nothing was run\n", job.name),
                status: status::REFUSED,
            })?;
        }
        Ok(Run { plan: Arc::new(plan), warnings })
    }

    /// Every path that the run may read, write, make or remove.
    pub(super) fn touched(&self) -> BTreeSet<PathBuf> {
        self.plan
            .jobs
            .iter()
            .flat_map(|job| job.files.list.iter().map(|file| &file.path).chain(others(job)))
            .cloned()
            .collect()
    }

    /// Runs it to its end.
    pub(super) fn go(&self, looker: &mut impl Looker) -> Outcome {
        // Ten thousand jobs open ten thousand files; a limit that stays low shows as EMFILE in a job.
        let _ = fiord_sys::process::raise_open_file_limit();
        let frame = Frame { plan: &self.plan, global_options: Vec::new() };
        looker.meters().disks = assemble::disks(&self.plan);
        let mut result = fiord_worker::run(&self.plan, looker);
        let moment = Moment { elapsed_ms: result.elapsed_ms, left_s: Some(0.0) };
        let report = assemble::report(&frame, looker.meters(), &mut result.workers, moment);
        let failures = assemble::failures(&self.plan, &result.workers);
        let remarks = assemble::remarks(&self.plan, &result.workers);
        let status = if assemble::endangered(&result.workers) { status::REFUSED } else { status::FAILED };
        Outcome { report, signal: result.signal, failures, remarks, status }
    }
}

/// What a step is called where something is wrong with it.
pub(super) fn run_name(number: usize) -> String {
    format!("run {}", number + 1)
}

/// The plan of these sections and what is odd about it.
pub(super) fn plan(
    sections: &[Section],
    machine: &Machine,
    entropy: u64,
) -> Result<(Plan, Vec<Problem>), Refusal> {
    let settings = RunSettings { readonly: false, max_jobs: None, entropy };
    let facts = facts::gather(&fiord_plan::needs(sections), machine);
    let (plan, warnings) = fiord_plan::build(sections, &[], &facts, &settings)?;
    // Figures of a part of the jobs would answer another question.
    let problems: Vec<Problem> = plan.unplannable().cloned().collect();
    if problems.is_empty() { Ok((plan, warnings)) } else { Err(Refusal { problems, unsafe_target: false }) }
}

/// Sees that a job that was handed its files uses each of them where it stands, and nothing else.
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
        return Err(format!("it would make {} beside the files of this study", listed(other)));
    }
    files.iter().try_for_each(|file| match is_real(file) {
        true => Ok(()),
        false => {
            Err(format!("{} is no longer what it was: a part of it is a link now, or gone", shown(file)))
        }
    })
}

/// What a job makes beside its files: directories, logs, a file for its buffers.
fn others(job: &Job) -> impl Iterator<Item = &PathBuf> {
    let logs = job.logs.iter().flat_map(|logs| logs.files.iter().map(|file| &file.path));
    let memory = match &job.buffers.memory {
        Memory::Mmap(file) | Memory::MmapHuge(file) | Memory::MmapShared(file) => file.as_ref(),
        Memory::Malloc | Memory::Shm | Memory::ShmHuge => None,
    };
    job.files.create_directories.iter().chain(logs).chain(memory)
}

/// Whether no part of the path is a link. The file itself may still have to be made.
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

/// What nobody typed stands in the step.
fn refused(name: &str, refusal: &Refusal) -> Refused {
    let placed = |problem: &Problem| match problem.place.source {
        Source::Derived => Problem { place: Place::all_of(name), ..problem.clone() },
        Source::CommandLine(_) | Source::File(_) => problem.clone(),
    };
    Refused {
        text: refusal.problems.iter().map(|problem| format!("{}\n", placed(problem))).collect(),
        status: if refusal.unsafe_target { status::REFUSED } else { status::FAILED },
    }
}

#[cfg(test)]
mod tests;
