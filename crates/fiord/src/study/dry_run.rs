//! What a study would run, as a job file.
//!
//! Invariant: what is printed has been read again as a job file and makes the same plans; what would not is refused.

use fiord_host::Machine;
use fiord_lab::Study;
use fiord_options::expand::Environment;
use fiord_options::{Section, cli, write};
use fiord_plan::Job;
use fiord_report::path::shown;

use super::run;
use crate::environment;

/// The jobs of all steps as one job file.
///
/// # Errors
/// What cannot be written in a job file, and why.
pub(super) fn job_files(study: &dyn Study, machine: &Machine) -> Result<String, String> {
    let mut texts = Vec::new();
    for (number, step) in study.steps().iter().enumerate() {
        // A name may hold what the user typed, line breaks and all.
        let title = format!("# run {}: {}\n", number + 1, shown(&step.name));
        texts.push(title + write::job_file(&step.sections)?.trim_end() + "\n");
    }
    let text = texts.join("\n");
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

fn read(text: &str, machine: &Machine) -> Result<Vec<Section>, String> {
    let file = |_: &str| Ok(text.as_bytes().to_vec());
    let variables = &environment::variable;
    let environment = Environment { files: &file, variables, machine: environment::keywords(machine) };
    let parsed = cli::read(&["job".to_string()], &environment);
    parsed.map(|parsed| parsed.sections).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        format!("the jobs cannot be written in a job file: {}", problems.join("\n"))
    })
}

/// The jobs that sections make, but for how their settings are echoed; `None` where they make none.
fn jobs(sections: &[Section], machine: &Machine) -> Option<Vec<Job>> {
    let (mut plan, _) = run::plan(sections, machine, 0).ok()?;
    plan.jobs.iter_mut().for_each(|job| job.presentation.options.clear());
    Some(plan.jobs)
}
