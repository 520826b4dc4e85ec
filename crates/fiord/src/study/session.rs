//! Carries out a study: prints its heading, runs its steps, prints its result.
//!
//! Invariant: whatever happens, scratch files are removed at the end and every row that was measured is printed.

use fiord_sys::errno::error_text;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_findings::interrupted;
use fiord_host::Machine;
use fiord_lab::{Figures, Repeat, Several, Step, StepResult, Study, StudyResult, StudyTarget};
use fiord_options::Problem;
use fiord_options::value::Trust;
use fiord_plan::Plan;
use fiord_report::RunReport;
use fiord_report::finding::any_void;
use fiord_session::run::drive::{Ending, Run, RunOutcome, drive};
use fiord_session::run::environment;
use fiord_store::{Conclusion, Headline};
use fiord_sys::signal;

use super::messages::Messages;
use super::page::StudyDocument;
use super::planned::PlannedSteps;
use super::progress::Progress;
use super::sampler::RunSampler;
use super::step_plan::{StepError, StepPlan, step_name};
use super::target::{self, Space};
use super::{dry_run, page};
use crate::arguments::{self, CommandError, Form, Forms};
use crate::keep::{self, StudyKeeper, say_not_kept};
use crate::layout::{WIDTH, is_coloured, width};
use crate::live::LiveMode;
use crate::output::{Output, remark, say};
use crate::output_file::OutputFile;
use crate::status;

/// The options of all studies.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    pub forms: Forms,
    /// Print the runs as a job file, which fio can run as well
    #[arg(long)]
    pub dry_run: bool,
    /// Whether to print findings: off, on, or strict
    /// (exit status 3 if one voids the figures)
    #[arg(long, default_value = "on", value_parser = trust)]
    pub trust: Trust,
    /// Run everything N times; auto: as often as the noise
    /// needs within the time (docs/repeats.md)
    #[arg(long, default_value = "auto", value_name = "N", value_parser = repeat)]
    pub repeat: Repeat,
    /// Do not record the study in the history
    #[arg(long)]
    pub no_history: bool,
    /// Show the runs on the whole terminal (docs/live.md)
    #[arg(long)]
    pub live: bool,
    /// A name for the study in the history
    #[arg(long, value_name = "NAME", value_parser = tag, conflicts_with = "no_history")]
    pub tag: Option<String>,
}

fn tag(text: &str) -> Result<String, String> {
    fiord_store::check_tag(text).map(|()| text.to_string())
}

fn trust(text: &str) -> Result<Trust, String> {
    Trust::from_word(text).ok_or_else(|| format!("{text:?} is not one of off, on, strict"))
}

/// Most times a study is repeated.
const REPEATS_MAX: usize = 1000;

fn repeat(text: &str) -> Result<Repeat, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Repeat::Auto),
        (_, Ok(times @ 1..=REPEATS_MAX)) => Ok(Repeat::Times(times)),
        _ => Err(format!("write auto, or a number from 1 to {REPEATS_MAX}")),
    }
}

/// Runs a study at `path` that uses up to `size_bytes` there; `make` builds it for the target as probed.
pub(crate) fn at<S: Study>(
    path: &Path,
    name: &str,
    size_bytes: u64,
    options: &Options,
    make: impl FnOnce(&StudyTarget) -> Result<S, String>,
) -> Result<ExitCode, CommandError> {
    let (target, mut scratch) = target::at(path, name, Space::AtMost(size_bytes), options.dry_run)?;
    let study = make(&target)?;
    scratch.as_mut().map_or(Ok(()), |scratch| scratch.record_files_of(study.steps()))?;
    carry_out(&study, &[&target], &[], options, &[])
}

/// Runs a study at each of `paths`, step by step in turn if there are several, and compares these.
pub(crate) fn at_all<S: Study + 'static>(
    paths: &[PathBuf],
    name: &str,
    size_bytes: u64,
    options: &Options,
    make: impl Fn(&StudyTarget) -> Result<S, String>,
) -> Result<ExitCode, CommandError> {
    if let [only] = paths {
        return at(only, name, size_bytes, options, make);
    }
    // The scratch files live until everything has been printed.
    let places: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut targets = target::all(&places, name, Space::AtMost(size_bytes), options.dry_run)?;
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
    carry_out_sampled(study, targets, typed, options, outputs, None)
}

/// The same for a study that needs more of its runs than their reports.
pub(crate) fn carry_out_sampled(
    study: &dyn Study,
    targets: &[&StudyTarget],
    typed: &[Problem],
    options: &Options,
    outputs: &[OutputFile],
    sampler: Option<&dyn RunSampler>,
) -> Result<ExitCode, CommandError> {
    let machine = environment::machine()?;
    if options.dry_run {
        return arguments::print(dry_run::job_files(study, &machine)?);
    }
    let live = LiveMode::of(options.live, true)?;
    let form = options.forms.chosen();
    let mut output = Output::stdout();
    let mut planned = PlannedSteps::all(study, typed, &machine);
    // What the runs would touch is known only now.
    outputs.iter().try_for_each(OutputFile::check)?;
    if options.trust != Trust::Off {
        targets.iter().for_each(|target| planned.messages.target(&target.findings));
    }
    match form {
        Form::Text => output.write(&page::opening(study, targets, &planned.modes, width())),
        // Text has these notes in its heading, JSON in its document.
        _ => notes(targets).for_each(|text| remark(&format!("fiord {}: {text}\n", study.name()))),
    }
    let path = match targets {
        [only] => Some(only.path.as_path()),
        _ => None,
    };
    let heading = page::opening(study, targets, &planned.modes, WIDTH);
    let begin = || {
        StudyKeeper::begin(study.name(), &study.purpose(), path, &heading, &machine, options.tag.as_deref())
    };
    let facts = keep::facts_of_study(study.name(), &machine, options.tag.as_deref());
    let mut keeper = if options.no_history { None } else { begin() };
    let (results, names, complete) = (Vec::new(), Vec::new(), 0);
    let mut runs =
        Runs { study, trust: options.trust, sampler, keeper: &mut keeper, results, names, complete };
    let end = run_steps(&mut runs, live, &machine, &mut planned);
    let Runs { results: ran, names, complete, .. } = runs;
    let findings = planned.messages.findings();
    let why = end.why();
    let why_early = why.as_deref();
    let (planned, result) = (&planned, study.result(&ran, width()));
    let document =
        StudyDocument { study, targets, planned, result: &result, facts, ran: &ran, names, why_early };
    let json = if form == Form::Json || keeper.is_some() { page::json(&document) } else { String::new() };
    output.write(&match form {
        Form::Json => json.clone(),
        Form::Csv => result.table.csv(),
        Form::Markdown => page::markdown(&result, &findings),
        Form::Text => page::closing(&result, &findings, width(), is_coloured()),
    });
    let written = output.finish().map_err(|error| format!("standard output: {}", error_text(&error)));
    let made = sampler.map_or(Ok(Vec::new()), |sampler| sampler.files(&ran, &result, &findings));
    let written = written.and_then(|()| write_files(&[result.files.clone(), made?].concat(), outputs));
    if let Err(why) = &written {
        say(&format!("fiord {}: {why}\n", study.name()));
    }
    if let Some(why) = &why {
        let all = study.runs_max();
        say(&format!("fiord {}: after {complete} of {all} runs: {why}\n", study.name()));
    }
    let is_void = options.trust == Trust::Strict && any_void(&findings);
    let status = match result.verdict {
        _ if !end.is_complete() || written.is_err() => end.status(written.is_err()),
        _ if is_void => status::VOID,
        Some(verdict) if !study.accepts(verdict) => status::of_verdict(verdict),
        _ => end.status(false),
    };
    if let Some(keeper) = keeper {
        let text = page::closing(&study.result(&ran, WIDTH), &findings, WIDTH, false);
        keeper.conclude(status, &Conclusion { json, text, headline: headline(&result) });
    }
    Ok(ExitCode::from(status))
}

/// What lists show of a study.
fn headline(result: &StudyResult) -> Headline {
    let (latency_p99_ns, latency_of) = result.latency_p99_ns.unzip();
    Headline { latency_p99_ns, latency_of: latency_of.map(str::to_string), ..Headline::default() }
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

/// How the steps ended.
enum End {
    Complete,
    Signal(i32),
    /// A step could not be run, or failed: why, and the exit status.
    Failed(String, u8),
}

impl End {
    /// The exit status; `unwritten`: output could not be written.
    fn status(&self, unwritten: bool) -> u8 {
        match self {
            End::Signal(signal) => status::of_signal(*signal),
            End::Failed(_, status) => *status,
            End::Complete if unwritten => status::FAILED,
            End::Complete => status::SUCCESS,
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, End::Complete)
    }

    /// Why it ended early.
    fn why(&self) -> Option<String> {
        match self {
            End::Complete => None,
            End::Signal(number) => Some(format!("ended by {}", signal::name(*number))),
            End::Failed(why, _) => Some(why.clone()),
        }
    }
}

/// A step by its number: one that was known before, or that follows from the results so far.
fn step_of(study: &dyn Study, number: usize, ran: &[StepResult]) -> Option<Step> {
    study.steps().get(number).cloned().or_else(|| study.next(ran))
}

/// The runs of a study that were measured.
struct Runs<'a> {
    study: &'a dyn Study,
    trust: Trust,
    sampler: Option<&'a dyn RunSampler>,
    keeper: &'a mut Option<StudyKeeper>,
    results: Vec<StepResult>,
    /// The names of their steps.
    names: Vec<String>,
    /// How many of the results are of runs that were not interrupted.
    complete: usize,
}

impl Runs<'_> {
    /// Adds a run that ran to its end.
    fn add(&mut self, of: (usize, &Step), plan: &Plan, report: RunReport, messages: &mut Messages) {
        self.keep(of.1, plan, &report, status::SUCCESS);
        self.complete += 1;
        self.push(of, report, messages);
    }

    /// Adds a run that was ended by a signal, if it measured anything: to the history, and to the results if they have no
    /// other run of its step.
    fn add_interrupted(
        &mut self,
        of: (usize, &Step),
        plan: &Plan,
        mut report: RunReport,
        signal: i32,
        messages: &mut Messages,
    ) {
        if of.1.prepares || Figures::of_all(&report).is_none() {
            return;
        }
        report.findings.push(interrupted(&report, signal::name(signal), of.1.time));
        self.keep(of.1, plan, &report, status::of_signal(signal));
        let step = of.1.repeats.unwrap_or(of.0);
        if !self.results.iter().any(|run| run.step == step) {
            self.push(of, report, messages);
        }
    }

    fn push(&mut self, (number, step): (usize, &Step), report: RunReport, messages: &mut Messages) {
        if let Some(sampler) = self.sampler {
            sampler.measured();
        }
        if self.trust != Trust::Off {
            let findings = report.findings.iter().filter(|finding| !self.study.accounts_for(finding));
            messages.run(&step.name, findings);
        }
        self.names.push(step.name.clone());
        self.results.push(StepResult { step: step.repeats.unwrap_or(number), report });
    }

    /// Records a run; after the first failure no further run is recorded.
    fn keep(&mut self, step: &Step, plan: &Plan, report: &RunReport, exit_status: u8) {
        let Some(kept) = self.keeper else { return };
        if let Err(why) = kept.keep(&step.name, plan, report, exit_status) {
            say_not_kept("run", &why);
            *self.keeper = None;
        }
    }
}

/// The plan of a step that is about to run.
fn planned_run(
    study: &dyn Study,
    number: usize,
    step: &Step,
    machine: &Machine,
    planned: &PlannedSteps,
) -> Result<StepPlan, StepError> {
    let run = StepPlan::of(&step_name(number), step, study.outline().is_of_users_options, machine)?;
    if planned.may_touch(step.repeats.unwrap_or(number), &run.touched()) {
        return Ok(run);
    }
    let text = format!("{}: it would use files that appeared after the runs were checked", step_name(number));
    Err(StepError { text, status: status::REFUSED })
}

/// Runs the steps until the last one, a signal or a failure.
fn run_steps(runs: &mut Runs<'_>, live: LiveMode, machine: &Machine, planned: &mut PlannedSteps) -> End {
    let failed = |StepError { text, status }: StepError| End::Failed(text.trim_end().to_string(), status);
    if let Some(refused) = planned.refused.take() {
        return failed(refused);
    }
    if let Some(keeper) = runs.keeper {
        keeper.works_on(&planned.files);
    }
    let (study, sampler) = (runs.study, runs.sampler);
    let mut progress = Progress::new(study.steps(), study.time(), live, sampler);
    let mut number = 0;
    while let Some(step) = step_of(study, number, &runs.results) {
        if let Some(signal) = signal::stop_requested() {
            return End::Signal(signal);
        }
        progress.begin(number, &step);
        let run = match planned_run(study, number, &step, machine, planned) {
            Ok(run) => run,
            Err(refused) => {
                progress.clear();
                return failed(refused);
            }
        };
        // The user cannot fix options he did not type.
        let warnings = if study.outline().is_of_users_options { run.warnings.as_slice() } else { &[] };
        let of_step = Run {
            plan: &run.plan,
            global_options: Vec::new(),
            warnings,
            idle: None,
            trust: runs.trust,
            debug: None,
            repeats: None,
            keeps: runs.keeper.is_some(),
        };
        if let Some(sampler) = sampler.filter(|_| !step.prepares) {
            sampler.prepare(&run.plan);
        }
        let RunOutcome { report, errors, ending, .. } = drive(of_step, &mut progress);
        if let Ending::Signal(signal) = ending {
            runs.add_interrupted((number, &step), &run.plan, report, signal, &mut planned.messages);
            return End::Signal(signal);
        }
        // Void figures are a matter of the conclusion, and of the exit status when all runs are over.
        if !matches!(ending, Ending::Complete | Ending::Void) {
            let status = status::of_ending(ending);
            return End::Failed(errors.concat().trim_end().to_string(), status);
        }
        // Errors that were ignored.
        errors.iter().for_each(|line| say(line));
        if !step.prepares {
            progress.measured(&report);
            runs.add((number, &step), &run.plan, report, &mut planned.messages);
        }
        number += 1;
    }
    End::Complete
}
