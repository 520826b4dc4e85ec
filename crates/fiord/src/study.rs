//! Carries a study out: says what it will do, runs its steps, shows what it has, keeps the rows if it is interrupted.
//!
//! Invariant: whatever happens, the study's own file is gone at the end and every row that was measured is printed.

use std::io;
use std::process::ExitCode;

use fiord_host::Machine;
use fiord_lab::{Findings, Ran, Study};
use fiord_report::json::Writer;
use fiord_sys::tty;

use crate::output::{Output, say};
use crate::subcommand::EXIT_FAILED;

mod progress;
mod run;
pub(crate) mod site;

use progress::Progress;

/// The width of text that does not go to a terminal.
const WIDTH: usize = 80;

/// What all studies let one choose.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Options {
    /// Print JSON (described in docs/json.md)
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    pub json: bool,
    /// Print CSV: a row for every measurement
    #[arg(long, conflicts_with = "markdown")]
    pub csv: bool,
    /// Print the table as Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Print the job files instead of running them; fio runs them, too
    #[arg(long)]
    pub dry_run: bool,
}

/// Runs all steps of `study` and prints what they say; `heading` tells people where it works.
pub(crate) fn carry_out(study: &dyn Study, heading: &[(&str, String)], options: &Options) -> ExitCode {
    if options.dry_run {
        return print(&job_files(study), ExitCode::SUCCESS);
    }
    let machine = match Machine::read() {
        Ok(machine) => machine,
        Err(error) => {
            say(&format!("fiord: /proc and /sys cannot be read: {error}; mount them\n"));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let for_people = !(options.json || options.csv || options.markdown);
    let mut output = Output::stdout();
    if for_people {
        output.write(&opening(study, heading));
    }
    let (ran, end) = run_steps(study, &machine);
    let findings = study.findings(&ran, width());
    output.write(&if options.json {
        json(study, heading, &findings, end.is_complete())
    } else if options.csv {
        findings.table.csv()
    } else if options.markdown {
        findings.table.markdown()
    } else {
        closing(&findings)
    });
    let written = output.finish();
    if let Err(error) = &written {
        say(&format!("fiord: standard output: {error}\n"));
    }
    match end {
        End::Signal(signal) => {
            let (done, all) = (ran.len(), study.steps().len());
            say(&format!("fiord: interrupted after {done} of {all} runs\n"));
            ExitCode::from(128 + signal as u8)
        }
        End::Refused(code) => code,
        End::Complete if written.is_err() || findings.failed => ExitCode::from(EXIT_FAILED),
        End::Complete => ExitCode::SUCCESS,
    }
}

/// How the steps ended.
enum End {
    Complete,
    Signal(i32),
    /// A step could not be run or failed; it was said why.
    Refused(ExitCode),
}

impl End {
    fn is_complete(&self) -> bool {
        matches!(self, End::Complete)
    }
}

fn run_steps(study: &dyn Study, machine: &Machine) -> (Vec<Ran>, End) {
    let mut progress = Progress::new(study.steps());
    let mut ran = Vec::new();
    for (number, step) in study.steps().iter().enumerate() {
        progress.begin(number);
        let file_name = format!("{}, run {}", study.name(), number + 1);
        let run = match run::Run::of(&file_name, &step.job, machine) {
            Ok(run) => run,
            Err(refused) => {
                progress.clear();
                say(&refused.text);
                return (ran, End::Refused(ExitCode::from(refused.status)));
            }
        };
        let outcome = run.go(&mut progress);
        progress.clear();
        if !outcome.failures.is_empty() {
            outcome.failures.iter().for_each(|line| say(line));
            return (ran, End::Refused(ExitCode::from(EXIT_FAILED)));
        }
        if let Some(signal) = outcome.signal {
            return (ran, End::Signal(signal));
        }
        ran.push(Ran { step: number, report: outcome.report });
    }
    (ran, End::Complete)
}

/// Columns there are for text.
fn width() -> usize {
    tty::columns(io::stdout()).map_or(WIDTH, usize::from)
}

/// What it will do, and on what.
fn opening(study: &dyn Study, heading: &[(&str, String)]) -> String {
    let mut text = format!(
        "fiord {}: {}, about {}\n",
        study.name(),
        study.purpose(),
        progress::duration(study.seconds())
    );
    let widest = heading.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in heading {
        text += &format!("  {name:<widest$}  {value}\n");
    }
    text + "\n"
}

fn closing(findings: &Findings) -> String {
    if findings.conclusion.is_empty() {
        return findings.text.clone();
    }
    format!("{}\n{}\n", findings.text, findings.conclusion)
}

fn json(study: &dyn Study, heading: &[(&str, String)], findings: &Findings, complete: bool) -> String {
    Writer::document(|json| {
        json.string("study", study.name());
        json.boolean("complete", complete);
        json.object("target", |json| {
            for (name, value) in heading {
                json.string(&name.to_lowercase().replace(' ', "_"), value);
            }
        });
        findings.table.write_json(json, "rows");
        for (key, cell) in &findings.facts {
            cell.write(json, key);
        }
        json.string("conclusion", &findings.conclusion);
    })
}

/// The job files of all steps, one behind the other.
fn job_files(study: &dyn Study) -> String {
    let file = |(number, step): (usize, &fiord_lab::Step)| {
        format!("# run {}: {}\n{}", number + 1, step.name, step.job)
    };
    study.steps().iter().enumerate().map(file).collect::<Vec<_>>().join("\n")
}

fn print(text: &str, code: ExitCode) -> ExitCode {
    let mut output = Output::stdout();
    output.write(text);
    match output.finish() {
        Ok(()) => code,
        Err(error) => {
            say(&format!("fiord: standard output: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}
