//! `fiord record`: what an application does on its files, as a file that `fiord model` and replays read.
//!
//! Invariant: the application's data is neither read nor written; the output never replaces a file that fiord did not write
//! without `--force`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_model::{EntryKind, RecordingHead};
use fiord_report::json::Writer;
use fiord_report::path::{shown, visible_lines};
use fiord_report::table::shown_bytes;
use fiord_sys::{clock, processes, signal, system};

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::{self, folded, width};
use crate::output::say;
use crate::output_file::{Force, OutputFile};
use crate::record::{self, Form, Outcome, Settings, Source, Tracing, words};
use crate::status;
use crate::status_line::StatusLine;
use crate::subcommand::Subcommands;
use crate::watch::Chosen;

/// Records what an application does on its files: each read, write and sync with
/// its file, offset, length, thread, flags and time, without a change to the
/// application. Contents are not recorded. Needs root and a kernel with tracefs.
/// fiord model makes a job file of it; docs/model.md explains both.
#[derive(clap::Parser)]
#[command(name = "fiord record", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Write the recording here
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Record these processes, and what they start (1234,1300)
    #[arg(
        long = "pid",
        value_name = "PIDS",
        value_delimiter = ',',
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    processes: Vec<i32>,
    /// How long at most; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME", value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// The form of the recording
    #[arg(long = "as", value_enum, value_name = "FORM", default_value = "recording")]
    form: Form,
    /// Replace names of files, threads, the command and this machine,
    /// so that the recording can be given away
    #[arg(long, verbatim_doc_comment)]
    anonymous: bool,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
    /// Start this command, and record it until it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  fiord record -o db.rec --pid 1234 --for 1m       a database that runs
  fiord record -o a.rec -- sqlite3 a.db < a.sql    a command, until it ends
  fiord model db.rec -o db.fio                     the job file that does the same
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let output = OutputFile::new("--output", &self.output, Some(self.force))?;
        Chosen::processes(&self.processes)?;
        let tracing = Tracing::prepare()?;
        let settings = Settings { time: self.time, form: self.form, head: self.head() };
        let is_command = !self.command.is_empty();
        let source =
            if is_command { Source::Command(self.command) } else { Source::Processes(self.processes) };
        // Ctrl-C ends recording; a second one ends fiord.
        let _ = signal::record_stop_requests();
        // What a command prints is not mixed with a line about it.
        let is_shown = fiord_sys::tty::stderr_is_terminal() && !is_command;
        let mut line = is_shown.then(StatusLine::default);
        let not_written = |error: &std::io::Error| output.not_written(error);
        let mut opened = output.open()?;
        let file = opened.file().try_clone().map_err(|error| not_written(&error))?;
        let progress = |calls| {
            if let Some(line) = &mut line {
                line.draw(&format!("recording, {calls} calls so far"));
            }
        };
        // From then on it is found by its name, also if fiord is killed.
        let begun = || opened.keep();
        let outcome = record::record(tracing, source, &settings, file, begun, progress, &not_written)?;
        if let Some(line) = &mut line {
            line.clear();
        }
        let missing = record::missing(&outcome.end, outcome.totals.unnamed_files);
        match (self.json, is_command) {
            (true, _) => drop(arguments::print(json(&outcome, &output, self.form, &missing))?),
            (false, false) => drop(arguments::print(text(&outcome, &missing))?),
            // Standard output is the command's.
            (false, true) if fiord_sys::tty::stderr_is_terminal() => say(&text(&outcome, &missing)),
            (false, true) => {
                // Files without a name are in it.
                let missing = record::missing(&outcome.end, 0);
                missing.iter().for_each(|one| say(&format!("fiord record: {one}\n")));
            }
        }
        if let Some(error) = &outcome.failure {
            return Err(cut_off(&output, error, &outcome));
        }
        let stopped = signal::stop_requested().filter(|_| outcome.status.is_none());
        Ok(ExitCode::from(stopped.map_or(status::SUCCESS, status::of_signal)))
    }
}

impl Options {
    fn head(&self) -> RecordingHead {
        let began_s = clock::realtime_ms() / 1000;
        let made_by = concat!("fiord ", env!("CARGO_PKG_VERSION")).to_string();
        let names = system::names();
        if self.anonymous {
            let (host, command) = ("host".to_string(), "command".to_string());
            return RecordingHead {
                made_by,
                host,
                kernel: names.kernel_release,
                command,
                began_s,
                is_anonymous: true,
            };
        }
        let words: Vec<String> = match self.command.is_empty() {
            true => self
                .processes
                .iter()
                .filter_map(|one| processes::of_thread(*one).ok())
                .map(|one| one.name)
                .collect(),
            false => self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        };
        let (host, kernel) = (names.host, names.kernel_release);
        RecordingHead { made_by, host, kernel, command: words.join(" "), began_s, is_anonymous: false }
    }
}

/// What to say if the rest could not be written.
fn cut_off(output: &OutputFile, error: &std::io::Error, outcome: &Outcome) -> CommandError {
    let until = layout::duration(Duration::from_nanos(outcome.totals.last_ns));
    let calls: u64 = outcome.totals.calls.iter().sum();
    let CommandError { why, status } = output.not_written(error);
    let remedy = "free space there, or name a file on another file system with --output, and record again; \
                  fiord model reads what is there";
    CommandError {
        why: format!(
            "{why}: the recording ends after {until} with {calls} calls, and has no end\n  {remedy}"
        ),
        status,
    }
}

fn text(outcome: &Outcome, missing: &[String]) -> String {
    let Outcome { totals, end, status, .. } = outcome;
    let counted = |kind: EntryKind| {
        let (calls, bytes) = (totals.calls[kind as usize], totals.bytes[kind as usize]);
        let bytes = if kind.has_range() { format!(" ({})", shown_bytes(bytes)) } else { String::new() };
        (calls > 0).then(|| format!("{calls} {}{bytes}", words(kind)))
    };
    let calls: Vec<String> = EntryKind::ALL.into_iter().filter_map(counted).collect();
    let what = if calls.is_empty() { "no calls on files".to_string() } else { calls.join(", ") };
    let length = layout::duration(Duration::from_nanos(end.length_ns));
    let cpu_percent = end.own_cpu_ns as f64 * 100.0 / end.length_ns.max(1) as f64;
    let mut sentences = vec![format!(
        "{what}; {} files, {} threads, in {length}. Recording took {cpu_percent:.1} % of one processor.",
        totals.files, totals.threads,
    )];
    sentences.extend(
        status.filter(|status| !status.success()).map(|status| format!("The command ended with {status}.")),
    );
    sentences.extend(missing.iter().cloned());
    let folded: Vec<String> = sentences.iter().map(|sentence| folded(sentence, width(), 0)).collect();
    visible_lines(&folded.concat())
}

fn json(outcome: &Outcome, output: &OutputFile, form: Form, missing: &[String]) -> String {
    let Outcome { totals, end, status, failure } = outcome;
    Writer::document(|json| {
        json.string("output", &shown(output.path()));
        json.string("form", if form == Form::Recording { "recording" } else { "iolog" });
        json.integer("length_ns", end.length_ns);
        json.integer("files", totals.files);
        json.integer("unnamed_files", totals.unnamed_files);
        json.integer("threads", totals.threads);
        json.list("calls", |json| {
            for kind in EntryKind::ALL {
                json.item(|json| {
                    json.string("kind", kind.word());
                    json.integer("calls", totals.calls[kind as usize]);
                    json.integer("bytes", totals.bytes[kind as usize]);
                });
            }
        });
        json.integer("lost_events", end.lost_events);
        json.integer("own_cpu_ns", end.own_cpu_ns);
        json.integer("io_uring_requests", end.left_out.io_uring);
        json.integer("libaio_requests", end.left_out.libaio);
        json.integer("mappings", end.left_out.mappings);
        json.integer("copies", end.left_out.copies);
        json.integer("calls_unknown", end.left_out.unknown);
        match status {
            Some(status) => json.string("exit_status", &status.to_string()),
            None => json.null("exit_status"),
        }
        json.boolean("complete", failure.is_none());
        json.strings("missing", missing);
    })
}
