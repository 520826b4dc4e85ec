//! Carries a study out: says what it will do, runs its steps, shows what it has, keeps the rows if it is interrupted.
//!
//! Invariant: whatever happens, the study's own files are gone at the end and every row that was measured is printed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_host::Machine;
use fiord_lab::{Ran, Site, Study};
use fiord_options::Problem;
use fiord_report::RunReport;
use fiord_report::path::shown;
use fiord_store::{Headline, Summary};
use fiord_sys::{signal, tty};
use fiord_worker::Door;

use crate::fio::headings;
use crate::keep::{StudyKeeper, say_not_kept};
use crate::output::{Output, remark, say};
use crate::subcommand::{self, Form, Forms, WIDTH, width};
use crate::{assemble, status};

mod checked;
mod dry_run;
pub(crate) mod own;
mod page;
mod progress;
mod run;
pub(crate) mod site;
mod told;
mod ways;

pub(crate) use page::{is_coloured, labelled};
pub(crate) use progress::duration;

use checked::Checked;
use progress::Progress;

/// What all studies let one choose.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    pub forms: Forms,
    /// Print the jobs as a job file, which fio runs as well
    #[arg(long)]
    pub dry_run: bool,
    /// Keep nothing of it in the history
    #[arg(long)]
    pub no_history: bool,
}

/// Runs a study at `target` that uses up to `size_bytes` there; `make` makes it for the site that was found.
pub(crate) fn at<S: Study>(
    target: &Path,
    name: &str,
    size_bytes: u64,
    options: &Options,
    make: impl FnOnce(&Site) -> Result<S, String>,
) -> ExitCode {
    let found = site::at(target, name, size_bytes, options.dry_run);
    let made = found.and_then(|(site, mut own)| {
        let study = make(&site)?;
        own.as_mut().map_or(Ok(()), |own| own.expect_files_of(study.steps()))?;
        Ok((study, site, own))
    });
    match made {
        Ok((study, site, _own)) => carry_out(&study, Some(&site), &[], options),
        Err(why) => {
            say(&format!("fiord {name}: {why}\n"));
            ExitCode::from(status::FAILED)
        }
    }
}

/// Runs all steps of `study` and prints what they say. There is no `site` where the study's jobs name their files
/// themselves; `typed` is what is odd about options as they were typed.
pub(crate) fn carry_out(
    study: &dyn Study,
    site: Option<&Site>,
    typed: &[Problem],
    options: &Options,
) -> ExitCode {
    let machine = match Machine::read() {
        Ok(machine) => machine,
        Err(error) => {
            say(&format!("fiord: /proc and /sys cannot be read: {error}; mount them\n"));
            return ExitCode::from(status::FAILED);
        }
    };
    if options.dry_run {
        let job_files = dry_run::job_files(study, &machine);
        return subcommand::print(job_files.map_err(|why| format!("{}: {why}", study.name())));
    }
    let form = options.forms.chosen();
    let mut output = Output::stdout();
    let mut checked = Checked::all(study, typed, &machine);
    match form {
        Form::Text => output.write(&page::opening(study, site, &checked.ways, width())),
        // Who looks on is told what the others find in the heading or the document.
        _ => remarks(site).for_each(|told| remark(&format!("fiord {}: {told}\n", study.name()))),
    }
    let target = site.map(|site| site.target.as_path());
    let heading = page::opening(study, site, &checked.ways, WIDTH);
    let begin = || StudyKeeper::begin(study.name(), &study.purpose(), target, &heading, &machine.hostname);
    let mut keeper = if options.no_history { None } else { begin() };
    let (ran, end) = run_steps(study, &machine, &mut checked, &mut keeper);
    let findings = study.findings(&ran, width());
    // What was said on a terminal need not be said again.
    let said = if tty::stderr_is_terminal() { &[][..] } else { &checked.told.warnings };
    output.write(&match form {
        Form::Json => page::json(study, site, &checked, &findings, end.why().as_deref()),
        Form::Csv => findings.table.csv(),
        Form::Markdown => page::markdown(&findings, said),
        Form::Text => page::closing(&findings, said, width(), is_coloured()),
    });
    let written = output.finish().map_err(|error| format!("standard output: {error}"));
    let written = written.and_then(|()| write_files(&findings.files));
    if let Err(why) = &written {
        say(&format!("fiord: {why}\n"));
    }
    if let Some(why) = end.why() {
        let all = measured(study, study.steps().len());
        say(&format!("fiord {}: after {} of {all} runs: {why}\n", study.name(), ran.len()));
    }
    let status = match (&written, findings.verdict) {
        (Ok(()), Some(verdict)) if end.is_complete() && !study.accepts(verdict) => {
            status::of_verdict(verdict)
        }
        _ => end.status(written.is_err()),
    };
    if let Some(keeper) = keeper {
        let json = page::json(study, site, &checked, &findings, end.why().as_deref());
        let text = page::closing(&study.findings(&ran, WIDTH), &checked.told.warnings, WIDTH, false);
        let (latency_p99_ns, latency_of) = findings.latency_p99_ns.unzip();
        let latency_of = latency_of.map(str::to_string);
        let headline = Headline { latency_p99_ns, latency_of, ..Headline::default() };
        keeper.conclude(status, &Summary { json, text, headline });
    }
    ExitCode::from(status)
}

/// What is to be known of where it works.
fn remarks(site: Option<&Site>) -> impl Iterator<Item = &String> {
    site.into_iter().flat_map(|site| &site.remarks)
}

/// Writes the files that were asked for.
fn write_files(files: &[(PathBuf, String)]) -> Result<(), String> {
    files.iter().try_for_each(|(path, text)| {
        let opened = Door::default().create(path, false);
        let mut file = opened.map_err(|refused| format!("{}: {}", shown(path), refused.reason()))?;
        file.write_all(text.as_bytes()).map_err(|error| format!("{}: {error}", shown(path)))
    })
}

/// How the steps ended.
enum End {
    Complete,
    Signal(i32),
    /// A step could not be run, or failed: why, and the status to end with.
    Failed(String, u8),
}

impl End {
    /// The status to end with; `unwritten`: what was found is not where it should be.
    fn status(&self, unwritten: bool) -> u8 {
        match self {
            End::Signal(signal) => status::of_signal(*signal),
            End::Failed(_, status) => *status,
            End::Complete if unwritten => status::FAILED,
            End::Complete => status::WELL,
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, End::Complete)
    }

    /// Why it ended before all was done.
    fn why(&self) -> Option<String> {
        match self {
            End::Complete => None,
            End::Signal(number) => Some(format!("ended by {}", signal::name(*number))),
            End::Failed(why, _) => Some(why.clone()),
        }
    }
}

/// How many of the first `count` steps are measured.
fn measured(study: &dyn Study, count: usize) -> usize {
    study.steps()[..count].iter().filter(|step| !step.prepares).count()
}

fn run_steps(
    study: &dyn Study,
    machine: &Machine,
    checked: &mut Checked,
    keeper: &mut Option<StudyKeeper>,
) -> (Vec<Ran>, End) {
    let mut ran = Vec::new();
    if let Some(run::Refused { text, status }) = &checked.refused {
        return (ran, End::Failed(text.trim_end().to_string(), *status));
    }
    if let Some(keeper) = keeper {
        keeper.works_on(&checked.files);
    }
    let mut progress = Progress::new(study.steps());
    let of_user = study.is_of_users_options();
    for (number, step) in study.steps().iter().enumerate() {
        if let Some(signal) = signal::stop_requested() {
            return (ran, End::Signal(signal));
        }
        progress.begin(number);
        let run = match run::Run::of(&run::run_name(number), step, of_user, machine) {
            Ok(run) if !run.touched().is_subset(&checked.touched[number]) => {
                progress.clear();
                let why = format!(
                    "{}: it would use files that were not there to be checked",
                    run::run_name(number)
                );
                return (ran, End::Failed(why, status::REFUSED));
            }
            Ok(run) => run,
            Err(refused) => {
                progress.clear();
                return (ran, End::Failed(refused.text.trim_end().to_string(), refused.status));
            }
        };
        let mut outcome = run.go(&mut progress);
        progress.clear();
        checked.told.remarks(&outcome.remarks);
        let typed = run.warnings.iter().filter(|_| of_user).map(assemble::warning);
        outcome.report.warnings = typed.chain(outcome.remarks).collect();
        if let Some(signal) = outcome.signal {
            return (ran, End::Signal(signal));
        }
        if !outcome.failures.is_empty() {
            return (ran, End::Failed(outcome.failures.concat().trim_end().to_string(), outcome.status));
        }
        if !step.prepares {
            keep_run(keeper, &step.name, &run, &outcome.report);
            ran.push(Ran { step: number, report: outcome.report });
        }
    }
    (ran, End::Complete)
}

/// Keeps a run of the study; the first that cannot be kept is the last that is tried.
fn keep_run(keeper: &mut Option<StudyKeeper>, name: &str, run: &run::Run, report: &RunReport) {
    let Some(kept) = keeper else { return };
    if let Err(why) = kept.keep(name, &run.plan, &headings(&run.plan), report) {
        say_not_kept("run", &why);
        *keeper = None;
    }
}
