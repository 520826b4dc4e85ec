//! A study from its options to its exit status: prints its heading, has it carried out, prints its result.
//!
//! Invariant: whatever happens, scratch files are removed at the end and every row that was measured is printed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_host::Machine;
use fiord_lab::{Several, Study, StudyResult, StudyTarget};
use fiord_options::Problem;
use fiord_session::run::environment;
use fiord_session::study::dry_run;
use fiord_session::study::planned::PlannedSteps;
use fiord_session::study::steps::{StudyOutcome, StudyRun};
use fiord_session::study::target::{self, Space};
use fiord_session::{Ending, StopHandle};
use fiord_store::{Conclusion, Headline};
use fiord_sys::errno::error_text;

use super::ending::exit_status;
use super::options::Options;
use super::overwriting::Overwriting;
use super::page::{self, StudyDocument};
use super::presenter::StudyPresenter;
use super::{on_agent, on_hosts};
use crate::arguments::{self, CommandError, Form};
use crate::gate;
use crate::keep::{self, StudyKeeper};
use crate::layout::{WIDTH, is_coloured, width};
use crate::live::LiveMode;
use crate::output::{Output, remark, say};
use crate::output_file::OutputFile;
use crate::profile::Profiler;

/// Runs a study at `path` that uses up to `size_bytes` there; `make` builds it for the target as probed.
pub(crate) fn at<S: Study>(
    path: &Path,
    name: &str,
    space: Space,
    overwriting: &Overwriting,
    options: &Options,
    make: impl FnOnce(&StudyTarget) -> Result<S, String>,
) -> Result<ExitCode, CommandError> {
    let (target, mut scratch) = overwriting.target(path, name, space, options.dry_run)?;
    let study = make(&target)?;
    scratch.as_mut().map_or(Ok(()), |scratch| scratch.record_files_of(study.steps()))?;
    carry_out(&study, &[&target], &[], options, &[])
}

/// Runs the study of this command line on the hosts that it names; `None` if it names none, or this is one of them.
pub(crate) fn at_hosts(name: &str, options: &Options) -> Result<Option<ExitCode>, CommandError> {
    if options.agent.is_some() || !options.is_on_hosts() {
        return Ok(None);
    }
    if options.dry_run || options.live {
        return Err("--dry-run and --live do not work on hosts; leave them out".to_string().into());
    }
    if let Some(manifest) = options.reach.pods.manifest()? {
        return arguments::print(manifest).map(Some);
    }
    on_hosts::carry_out(name, options).map(Some)
}

/// Runs a study at each of `paths`, step by step in turn if there are several, and compares these.
pub(crate) fn at_all<S: Study + 'static>(
    paths: &[PathBuf],
    name: &str,
    space: Space,
    overwriting: &Overwriting,
    options: &Options,
    make: impl Fn(&StudyTarget) -> Result<S, String>,
) -> Result<ExitCode, CommandError> {
    if let Some(status) = at_hosts(name, options)? {
        return Ok(status);
    }
    if let [only] = paths {
        return at(only, name, space, overwriting, options, make);
    }
    // The scratch files live until everything has been printed.
    let places: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut targets = target::all(&places, |path| overwriting.target(path, name, space, options.dry_run))?;
    let mut studies: Vec<(String, Box<dyn Study>)> = Vec::new();
    for (target, scratch) in &mut targets {
        let study = make(target)?;
        scratch.as_mut().map_or(Ok(()), |scratch| scratch.record_files_of(study.steps()))?;
        studies.push((target.shown(), Box::new(study)));
    }
    let several = Several::new(studies)?;
    let targets: Vec<&StudyTarget> = targets.iter().map(|(target, _)| target).collect();
    carry_out(&several, &targets, &[], options, &[])
}

/// Runs all steps of `study` and prints the result. There are no `targets` if the jobs name their files themselves;
/// `typed` has the warnings about options as typed, and `outputs` are the files that the study may make.
pub(crate) fn carry_out(
    study: &dyn Study,
    targets: &[&StudyTarget],
    typed: &[Problem],
    options: &Options,
    outputs: &[OutputFile],
) -> Result<ExitCode, CommandError> {
    carry_out_profiled(study, targets, typed, options, outputs, None)
}

/// The same for a study that needs more of its runs than their reports.
pub(crate) fn carry_out_profiled(
    study: &dyn Study,
    targets: &[&StudyTarget],
    typed: &[Problem],
    options: &Options,
    outputs: &[OutputFile],
    profiler: Option<&mut Profiler<'_>>,
) -> Result<ExitCode, CommandError> {
    let machine = environment::machine()?;
    if let Some(agent) = &options.agent {
        return on_agent::carry_out(study, targets, typed, options, (agent, &machine));
    }
    // Such a study never becomes one of this machine without a word.
    if options.is_on_hosts() {
        return Err(format!("{}: --hosts does not work with it; leave it out", study.name()).into());
    }
    if options.dry_run {
        return arguments::print(dry_run::job_files(study, &machine)?);
    }
    let live = LiveMode::of(options.live, true)?;
    let form = options.forms.chosen();
    let mut output = Output::stdout();
    let mut planned = PlannedSteps::all(study, targets, typed, options.trust, &machine);
    planned.warnings().iter().for_each(|problem| remark(&format!("{problem}\n\n")));
    if let Some(resumed) = &options.resumed {
        planned.earlier.clone_from(&resumed.runs);
    }
    // What the runs would touch is known only now.
    outputs.iter().try_for_each(OutputFile::check)?;
    match form {
        Form::Text => output.write(&page::opening(study, targets, &planned.modes, width())),
        // Text has these notes in its heading, JSON in its document.
        _ => notes(targets).for_each(|text| remark(&format!("fiord {}: {text}\n", study.name()))),
    }
    let facts = keep::facts_of_study(study.name(), &machine, options.tag.as_deref());
    let keeper = begin_keeping(study, targets, &planned, options, &machine);
    let (trust, keeps) = (options.trust, keeper.is_some());
    let run = StudyRun { study, machine: &machine, trust, keeps, stop: StopHandle::default() };
    let mut presenter = StudyPresenter::new(study, live, keeper, profiler);
    let outcome = run.carry_out(&mut planned, &mut presenter, None);
    let (keeper, profiler) = presenter.finish();
    let StudyOutcome { results: ran, names, complete, findings, ending, why_early } = outcome;
    let why_early = why_early.as_deref();
    let result = study.result(&ran, width());
    let (modes, result) = (&planned.modes, &result);
    let outcomes = gate::outcomes(page::side(&ran, &names), &options.fail_if);
    let document = StudyDocument {
        outcomes: &outcomes,
        study,
        targets,
        modes,
        result,
        findings: &findings,
        facts,
        ran: &ran,
        names,
        why_early,
    };
    let json = if form == Form::Json || keeper.is_some() { page::json(&document) } else { String::new() };
    output.write(&match form {
        Form::Json => json.clone(),
        Form::Csv => result.table.csv(),
        Form::Markdown => page::markdown(result, &findings),
        Form::Text => page::closing(result, &findings, width(), is_coloured()),
    });
    let written = output.finish().map_err(|error| format!("standard output: {}", error_text(&error)));
    let made = profiler.map_or(Ok(Vec::new()), |profiler| profiler.files(&ran, result, &findings));
    let written = written.and_then(|()| write_files(&[result.files.clone(), made?].concat(), outputs));
    let unwritten = written.as_ref().err().map(|why| format!("fiord {}: {why}\n", study.name()));
    let early = why_early.map(|why| ended_early(study, complete, why));
    unwritten.into_iter().chain(early).for_each(|line| say(&line));
    if matches!(ending, Ending::Complete) {
        gate::lines(&outcomes).for_each(|line| say(&line));
    }
    let status = exit_status(study, ending, result.verdict, written.is_ok(), options, &outcomes);
    if let Some(keeper) = keeper {
        let text = page::closing(&study.result(&ran, WIDTH), &findings, WIDTH, false);
        keeper.conclude(status, &Conclusion { json, text, headline: headline(result) });
    }
    Ok(ExitCode::from(status))
}

/// Begins the study's entry in the history, with the files that its runs use; `None` if it is to have none.
fn begin_keeping(
    study: &dyn Study,
    targets: &[&StudyTarget],
    planned: &PlannedSteps,
    options: &Options,
    machine: &Machine,
) -> Option<StudyKeeper> {
    if options.no_history {
        return None;
    }
    if let Some(resumed) = &options.resumed {
        return StudyKeeper::resume(resumed.id, machine, options.tag.as_deref());
    }
    let path = match targets {
        [only] => Some(only.path.as_path()),
        _ => None,
    };
    let heading = page::opening(study, targets, &planned.modes, WIDTH);
    let tag = options.tag.as_deref();
    let mut keeper = StudyKeeper::begin(study.name(), &study.purpose(), path, &heading, machine, tag)?;
    if !targets.is_empty() {
        keeper.is_about(&keep::identity_of_study(targets, &options.kept_runs));
    }
    if planned.refused.is_none() {
        keeper.works_on(&planned.files);
    }
    Some(keeper)
}

/// The line about a study that was not completed.
fn ended_early(study: &dyn Study, complete: usize, why: &str) -> String {
    format!("fiord {}: after {complete} of {} runs: {why}\n", study.name(), study.runs_max())
}

/// What lists show of a study.
fn headline(result: &StudyResult) -> Headline {
    let (latency_p99_ns, latency_of) = result.latency_p99_ns.clone().unzip();
    Headline { latency_p99_ns, latency_of, ..Headline::default() }
}

/// Remarks to be read before the results.
fn notes<'t>(targets: &'t [&StudyTarget]) -> impl Iterator<Item = &'t str> {
    targets.iter().flat_map(|target| target.notes())
}

/// Writes the requested files, such as a chart.
fn write_files(files: &[(PathBuf, String)], outputs: &[OutputFile]) -> Result<(), String> {
    files.iter().try_for_each(|(path, text)| {
        let mut outputs = outputs.iter().filter(|output| output.path() == path);
        outputs.try_for_each(|output| output.write(text.as_bytes())).map_err(|error| error.why)
    })
}
