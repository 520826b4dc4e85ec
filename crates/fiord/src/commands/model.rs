//! `fiord model`: a trace as the job file that behaves alike.
//!
//! Invariant: the trace is only read, once and as a stream; the output never replaces it, nor a file that fiord did not
//! write without `--force`. Only `--verify` runs I/O.

mod as_run;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_engine::registry::ENGINES;
use fiord_model::choose::{Origin, job_file};
use fiord_model::fidelity::{Fidelity, Verdict};
use fiord_model::jobfile::{Chosen, JobFile};
use fiord_model::measure::Measurement;
use fiord_model::{FileName, Reader, Recorded, TraceError, TracePosition, Transform, calls, own};
use fiord_report::json::Writer;
use fiord_report::path::{shown, visible_lines};
use fiord_report::table::{Table, wrapped};
use fiord_session::claims;
use fiord_sys::errno::error_text;

use crate::arguments::{self, CommandError, Invocation};
use crate::layout::width;
use crate::output_file::{Force, OutputFile};
use crate::subcommand::Subcommands;

/// Makes a job file that behaves as the I/O of a trace does: block sizes, mix, order,
/// places, syncs and arrivals, each with the reason for its value. Then compares the
/// job file's own operations with the trace, figure by figure. Runs I/O with --verify
/// alone.
/// Reads what `fiord record` writes, iologs of version 2 and 3 (`write_iolog`), and
/// what `blkparse -d` writes.
/// docs/model.md has an example.
#[derive(clap::Parser)]
#[command(name = "fiord model", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// The trace (- for standard input)
    #[arg(value_name = "TRACE")]
    trace: OsString,
    /// Write the job file here, and print the comparison; without
    /// it and --verify the job file is printed
    #[arg(short, long, value_name = "FILE", verbatim_doc_comment)]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Few sections: files that do the same kind of thing together
    #[arg(long)]
    compact: bool,
    /// Run the job file as well, on new files below DIR, which are
    /// removed, and compare what was recorded of it (needs root)
    #[arg(long, value_name = "DIR", verbatim_doc_comment)]
    verify: Option<PathBuf>,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord record -o app.rec --pid 1234 --for 1m     what a program does
  fiord model app.rec -o app.fio                  the job file of that
  fiord model app.iolog                     the job file, commented
  fiord model app.iolog -o app.fio          the file, and how alike it is
  fiord model --compact app.iolog -o app.fio
  fiord model app.rec -o app.fio --verify=/mnt/new     run it as well
  blktrace -d sda -o - -w 30 | blkparse -i - -d t -O && fiord model t
";

/// Bytes of a trace that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Why a trace of block requests is not compared with calls.
const BLOCK_LEVEL: &str = "a trace of block requests does not tell the calls that the run of a model is compared by; leave it out, \
                           or record the program (fiord record)";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let path = Path::new(&self.trace);
        claims::reads(path);
        let output = self.output.as_ref().map(|output| OutputFile::new("--output", output, Some(self.force)));
        let output = output.transpose()?;
        let traced = Traced::read(path, &|_| true)?;
        if self.verify.is_some() && traced.is_blktrace {
            return Err(format!("--verify: {BLOCK_LEVEL}").into());
        }
        let mut modelled = traced.modelled(self.compact)?;
        let text = visible_lines(&modelled.job_file.text());
        if let Some(output) = &output {
            output.write(text.as_bytes())?;
        }
        if let Some(below) = &self.verify {
            modelled.run(&text, below)?;
        }
        match (self.json, &output) {
            (true, _) => arguments::print(modelled.json(&traced, &text, output.as_ref())),
            (false, None) if modelled.run.is_none() => arguments::print(text),
            (false, _) => arguments::print(modelled.comparison()),
        }
    }
}

/// A trace that was read.
struct Traced {
    name: String,
    files: Vec<FileName>,
    is_blktrace: bool,
    recorded: Option<Recorded>,
    length_ns: u64,
    measured: Measurement,
}

impl Traced {
    /// Reads what it has of these files.
    fn read(path: &Path, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Traced, String> {
        if path == Path::new("-") {
            return Traced::of("standard input".to_string(), io::stdin().lock(), is_wanted);
        }
        let name = shown(path);
        let file = File::open(path).map_err(|error| format!("{name}: {}", error_text(&error)))?;
        Traced::of(name, BufReader::with_capacity(READ_BYTES, file), is_wanted)
    }

    fn of(name: String, input: impl BufRead, is_wanted: &dyn Fn(&Path) -> bool) -> Result<Traced, String> {
        let placed = |TraceError { place, message }: TraceError| match place {
            TracePosition::Line(line) => format!("{name}:{line}: {message}"),
            TracePosition::Byte(byte) => format!("{name}: byte {byte}: {message}"),
        };
        let mut reader = Reader::new(input, Transform::default()).map_err(placed)?.accepting_cut();
        let mut measured = Measurement::default();
        while let Some(entry) = reader.next_entry().map_err(placed)? {
            if let Some(FileName::Path(path)) = reader.files().get(entry.file as usize)
                && !is_wanted(path)
            {
                continue;
            }
            measured.add(&entry, &calls::told(&reader));
        }
        if measured.ios() == 0 {
            let what = match (measured.operations(), reader.files().len()) {
                (0, 0) => "the trace is empty".to_string(),
                (0, files) => format!("the trace names {files} files, and no I/O to them"),
                (syncs, _) => format!("the trace has {syncs} synchronizations, and no other I/O"),
            };
            return Err(format!(
                "{name}: {what}; record the program while it reads or writes (fiord record)"
            ));
        }
        let files = reader.files().to_vec();
        let (is_blktrace, length_ns) = (reader.is_blktrace(), reader.now_ns());
        let recorded = reader.recorded().cloned();
        Ok(Traced { files, is_blktrace, recorded, length_ns, measured, name })
    }

    fn form(&self) -> &'static str {
        match (self.is_blktrace, &self.recorded) {
            (true, _) => "blktrace",
            (false, Some(_)) => "recording",
            (false, None) => "iolog",
        }
    }

    /// The model of it.
    fn modelled(&self, is_compact: bool) -> Result<Modelled, String> {
        let (main, small_streams, small_operations) = match self.recorded {
            Some(_) => self.measured.without_small(),
            None => (self.measured.clone(), 0, 0),
        };
        let measured = &if is_compact { main.compact() } else { main };
        let Traced { name, files, is_blktrace, recorded, .. } = self;
        let origin = Origin { name, files, is_blktrace: *is_blktrace, recorded: recorded.as_ref() };
        let mut job_file = job_file(measured, &origin);
        if small_streams > 0 {
            job_file.about.push(format!(
                "Left out: streams that hardly count ({small_streams}, with {small_operations} operations together)."
            ));
        }
        let operations_max = measured.operations().saturating_mul(2).saturating_add(1000);
        let own = own::measure(&job_file, ENGINES, operations_max).map_err(|why| {
            format!(
                "{}: the job file made of it cannot be planned, which is a mistake of fiord:\n{why}",
                self.name
            )
        })?;
        let section = |stream: usize| job_file.sections.iter().find(|section| section.stream == stream);
        let name = |stream: usize| section(stream).map_or_else(String::new, |section| section.name.clone());
        let names: Vec<String> = (0..measured.streams().len()).map(name).collect();
        let fidelity = Fidelity::of(measured, &own, &names);
        job_file.about.push(fidelity.sentence());
        let cut = recorded.as_ref().and_then(|recorded| calls::cut(recorded, self.length_ns));
        job_file.about.extend(cut.clone());
        Ok(Modelled { job_file, fidelity, cut, measured: measured.clone(), own, run: None })
    }
}

/// The model of a trace.
struct Modelled {
    job_file: JobFile,
    fidelity: Fidelity,
    /// Where the recording stops, if it has no end.
    cut: Option<String>,
    /// What is modelled, and the operations of the job file.
    measured: Measurement,
    own: Measurement,
    /// The job file as run, and what is not known of that.
    run: Option<(Fidelity, Vec<String>)>,
}

impl Modelled {
    /// Runs it on new files below this directory.
    fn run(&mut self, text: &str, below: &Path) -> Result<(), CommandError> {
        let (run, missing) = as_run::recorded(text, below, Traced::read)?;
        self.run = Some((Fidelity::as_run(&self.measured, &self.own, &run.measured), missing));
        Ok(())
    }

    /// The figures side by side: of several streams only those that deviate by more than they may, beside the sums.
    fn comparison(&self) -> String {
        let mut table = self.fidelity.table();
        let mut figures = self.fidelity.figures.iter();
        if self.job_file.sections.len() > 1 {
            table.rows.retain(|_| {
                figures.next().is_some_and(|one| one.stream.is_empty() || one.verdict() != Verdict::Close)
            });
        }
        let columns = ["stream", "figure", "trace", "model", "deviation", "verdict"];
        let sentences = self.cut.iter().cloned().chain([self.fidelity.sentence()]);
        let part = |table: Table, sentences: &mut dyn Iterator<Item = String>| {
            let lines: Vec<String> = sentences.flat_map(|one| wrapped(&one, width())).collect();
            visible_lines(&format!("{}\n{}\n", table.text(width()), lines.join("\n")))
        };
        let mut text = part(table.select(&columns), &mut { sentences });
        if let Some((run, missing)) = &self.run {
            let columns = ["figure", "trace", "model", "run", "deviation", "verdict"];
            let mut sentences = missing.iter().cloned().chain([run.sentence()]);
            text = text + "\n" + &part(run.table().select(&columns), &mut sentences);
        }
        text
    }

    fn json(&self, traced: &Traced, text: &str, output: Option<&OutputFile>) -> String {
        Writer::document(|json| {
            json.string("trace", &traced.name);
            json.string("form", traced.form());
            json.integer("operations", traced.measured.operations());
            json.integer("length_ns", traced.length_ns);
            match traced.recorded.as_ref().and_then(|recorded| recorded.cut_at_byte) {
                Some(byte) => json.integer("cut_at_byte", byte),
                None => json.null("cut_at_byte"),
            }
            match output {
                Some(output) => json.string("output", &shown(output.path())),
                None => json.null("output"),
            }
            json.list("global", |json| options(json, &self.job_file.global));
            json.list("sections", |json| {
                for section in &self.job_file.sections {
                    json.item(|json| {
                        json.string("name", &section.name);
                        json.string("about", &section.about);
                        json.list("options", |json| options(json, &section.options));
                    });
                }
            });
            self.fidelity.table().write_json(json, "fidelity");
            json.boolean("close", self.fidelity.is_close());
            json.string("sentence", &self.fidelity.sentence());
            match &self.run {
                Some((run, missing)) => {
                    run.table().write_json(json, "as_run");
                    json.strings("as_run_missing", missing);
                    json.string("as_run_sentence", &run.sentence());
                }
                None => {
                    ["as_run", "as_run_missing"].iter().for_each(|key| json.list(key, |_| ()));
                    json.null("as_run_sentence");
                }
            }
            json.string("job_file", text);
        })
    }
}

fn options(json: &mut Writer, options: &[Chosen]) {
    for Chosen { name, value, why } in options {
        json.item(|json| {
            json.string("name", name);
            json.string("value", value);
            json.string("why", why);
        });
    }
}
