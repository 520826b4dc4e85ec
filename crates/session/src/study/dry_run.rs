//! The jobs of a study as a job file.
//!
//! Invariant: the job file has been parsed back and gives the same plans; otherwise it is not printed.

use std::ffi::OsStr;

use fiord_host::Machine;
use fiord_lab::Study;
use fiord_options::environment::Environment;
use fiord_options::{Section, cli, write};
use fiord_plan::Job;
use fiord_report::path::shown;

use super::step_plan;
use crate::run::environment;

/// The jobs of all steps as one job file.
///
/// # Errors
/// What cannot be written in a job file, and why.
pub fn job_files(study: &dyn Study, machine: &Machine) -> Result<Vec<u8>, String> {
    let mut texts = Vec::new();
    for (number, step) in study.steps().iter().enumerate() {
        // A name may hold text the user typed, including line breaks.
        let title = format!("# run {}: {}\n", number + 1, shown(&step.name));
        texts.push([title.as_bytes(), write::job_file(&step.sections)?.trim_ascii_end(), b"\n"].concat());
    }
    let text = texts.join(&b'\n');
    let mut read = read(&text, machine)?.into_iter();
    for (number, step) in study.steps().iter().enumerate() {
        let again: Vec<Section> = read.by_ref().take(step.sections.len()).collect();
        if jobs(&again, machine) != jobs(&step.sections, machine) {
            return Err(format!(
                "run {}, {}, cannot be written in a job file: it would be read otherwise",
                number + 1,
                shown(&step.name)
            ));
        }
    }
    Ok(text)
}

fn read(text: &[u8], machine: &Machine) -> Result<Vec<Section>, String> {
    let file = |_: &OsStr| Ok(text.to_vec());
    let environment = Environment { files: &file, ..environment::of(machine) };
    let parsed = cli::read(&["job"], &environment);
    parsed.map(|parsed| parsed.sections).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("the jobs cannot be written in a job file: {}", problems.join("\n"))
    })
}

/// The jobs of these sections, without the echo of their settings; `None` if they cannot be planned.
fn jobs(sections: &[Section], machine: &Machine) -> Option<Vec<Job>> {
    let (mut plan, _) = step_plan::plan(sections, machine, 0).ok()?;
    plan.jobs.iter_mut().for_each(|job| job.presentation.options.clear());
    Some(plan.jobs)
}
