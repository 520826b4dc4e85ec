//! `fiord sweep`: a job as typed for fio, run at several values of its options.
//!
//! Invariant: what was typed is never overridden; every value is read by its option's own parser before anything runs;
//! what is written to is what the job names, or a file of the sweep's own where it names nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use fiord_host::Machine;
use fiord_lab::sweep::{Counted, Job, Key, Pictures, Sweep};
use fiord_lab::{Site, Study, ranges};
use fiord_options::cli::{self, Parsed};
use fiord_options::expand::{self, Environment};
use fiord_options::value::{Bytes, Micros, Reading, Seconds, Value};
use fiord_options::{Lookup, Place, Problem, Scope, Section, Setting, Severity, Spec, job, lookup, table};
use fiord_report::path::shown;
use fiord_sys::signal;
use fiord_worker::{Door, Failure};

use crate::output::say;
use crate::study::own::OwnFiles;
use crate::study::{self, site};
use crate::{amount, environment, status, subcommand};

/// Runs a job at several values of its options, and tells where throughput
/// stops growing.
#[derive(clap::Parser)]
#[command(
    name = "fiord sweep",
    verbatim_doc_comment,
    override_usage = "fiord sweep [FIO OPTIONS | JOB FILE] --over KEY=LIST [OPTIONS]",
    after_help = HELP
)]
struct Options {
    /// An option of the job, and its values
    #[arg(long, required = true, value_name = "KEY=LIST")]
    over: Vec<String>,
    /// Draw the chart into this file as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Time for all runs together, where the job has none
    #[arg(long, value_parser = amount::time_to_take)]
    time: Option<Duration>,
    #[command(flatten)]
    study: study::Options,
}

/// What the list of options does not tell.
const HELP: &str = "\
Everything else is an option of fio's, or one job file to begin with.

LIST is a list (4k,16k,64k), a range that doubles (1..120 is 1,2,4,...,64,120),
or both. Of several --over every combination is run, the values of the last one
changing fastest.

A job that names no file works on one of its own in the current directory, which
is removed after. A job that does not say when to end runs 10 s a point, less
where all of them would take more than 2 minutes.

Examples:
  fiord sweep --rw=read --over bs=4k..1M
  fiord sweep -rw=randread -bs=4k --over numjobs=1..64 --plot threads.svg
  fiord sweep job.fio --over rw=read,write --over bs=4k,64k,1M";

/// How long a run takes, and all of them at most, where nothing was said; no run takes less than the least.
const RUN: Duration = Duration::from_secs(10);
const ALL: Duration = Duration::from_secs(120);
const RUN_MIN: Duration = Duration::from_secs(1);

/// Most of the own file.
const SIZE_BYTES: u64 = 1 << 30;

/// The name of a job that was not given one.
const NAME: &str = "sweep";

/// Options that say what a job works on.
const TARGETS: [&str; 5] = ["filename", "directory", "filename_format", "opendir", "read_iolog"];

/// Options, beside `runtime`, that say when a job ends.
const ENDS: [&str; 5] = ["time_based", "io_size", "number_ios", "loops", "fill_device"];

/// Runs the study.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let (own, of_fio) = match split(arguments) {
        Ok(split) => split,
        Err(why) => return refused(&why),
    };
    let options: Options = match subcommand::read(&own) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let prepared = match prepare(&options, &of_fio) {
        Ok(prepared) => prepared,
        Err(why) => return refused(&why),
    };
    // Its own files are there until all is printed.
    let site = prepared.own.as_ref().map(|(site, _)| site);
    study::carry_out(&prepared.sweep, site, &prepared.warnings, &options.study)
}

fn refused(why: &str) -> ExitCode {
    say(&format!("fiord sweep: {why}\n"));
    ExitCode::from(status::FAILED)
}

/// A sweep that may be run.
struct Prepared {
    sweep: Sweep,
    /// Where it works if the job names no file, and the files it made there.
    own: Option<(Site, OwnFiles)>,
    /// What is odd about the job as it was typed.
    warnings: Vec<Problem>,
}

/// Splits the sweep's own options, each with its value, from those of fio's. One dash or two, as fio takes them.
///
/// # Errors
/// An option of fio's is not text. The sweep's own may hold any path.
fn split(arguments: &[OsString]) -> Result<(Vec<OsString>, Vec<String>), String> {
    let command = Options::command();
    let mut own = Vec::new();
    let mut of_fio = Vec::new();
    let mut arguments = (1..).zip(arguments);
    while let Some((number, argument)) = arguments.next() {
        let bytes = argument.as_bytes();
        let body = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-")).unwrap_or_default();
        let equals = body.iter().position(|byte| *byte == b'=');
        let name = &body[..equals.unwrap_or(body.len())];
        if [&b"help"[..], b"h"].contains(&name) {
            own.push(OsString::from("--help"));
            continue;
        }
        let is_own = |long: &str| long.as_bytes() == name;
        let Some(known) = command.get_arguments().find(|known| known.get_long().is_some_and(is_own)) else {
            // The subcommand itself is the first.
            of_fio.push(environment::text(number + 1, argument)?);
            continue;
        };
        own.push(OsStr::from_bytes(&[b"--", body].concat()).to_os_string());
        if equals.is_none() && known.get_action().takes_values() {
            own.extend(arguments.next().map(|(_, value)| value.clone()));
        }
    }
    Ok((own, of_fio))
}

fn prepare(options: &Options, of_fio: &[String]) -> Result<Prepared, String> {
    let machine =
        Machine::read().map_err(|error| format!("/proc and /sys cannot be read: {error}; mount them"))?;
    let base = Base::read(of_fio, &machine)?;
    let keys = keys(&options.over, &base)?;
    base.engines_have_their_options(&keys)?;
    let plot = options.plot.as_deref().map(writable).transpose()?;
    let runs = keys.iter().map(|key| key.values.len() as u32).fold(1, u32::saturating_mul);
    let each = options.time.map_or_else(|| (ALL / runs).clamp(RUN_MIN, RUN), |all| all / runs);
    let mut own = base.own_site(&keys, options.study.dry_run)?;
    let site = own.as_ref().map(|(site, _)| site);
    let added = base.added(&keys, each, site);
    let heading = base.heading(&keys, &added, site);
    let pictures = Pictures { colour: study::is_coloured(), plot };
    let job = base.job(&keys, &added, site);
    let sweep = Sweep::new(keys, job, pictures, &time)?.headed(heading);
    let sweep = match site {
        Some(site) => sweep.prepared_by(site.fill()),
        None => sweep,
    };
    own.as_mut().map_or(Ok(()), |(_, own)| own.expect_files_of(sweep.steps()))?;
    Ok(Prepared { sweep, own, warnings: base.warnings })
}

/// The path of a file that can be made where it is wanted.
fn writable(path: &Path) -> Result<PathBuf, String> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() || !directory.is_dir() {
        return Err(format!("--plot {}: not a file in a directory that is there", shown(path)));
    }
    let refused = |failure: Failure| format!("--plot {}: {}", shown(path), failure.reason());
    Door::default().may_write(path).map_err(refused)?;
    Ok(path.to_path_buf())
}

/// The keys of `--over`, every value read by its option's parser.
fn keys(over: &[String], base: &Base) -> Result<Vec<Key>, String> {
    let mut keys: Vec<Key> = Vec::new();
    for text in over {
        let Some((name, list)) = text.split_once('=') else {
            return Err(format!("--over {text}: write an option and its values: --over bs=4k,64k"));
        };
        let key =
            key(name.trim_start_matches('-'), list, base).map_err(|why| format!("--over {text}: {why}"))?;
        if keys.iter().any(|known| known.name() == key.name()) {
            return Err(format!(
                "--over {text}: {} is swept already; give all its values at once",
                key.name()
            ));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn key(name: &str, list: &str, base: &Base) -> Result<Key, String> {
    let engines = base.engines();
    let spec = match table::find_job_option(name, false, &engines) {
        Lookup::Found(spec) if spec.name == "name" => {
            return Err("a name is nothing to sweep over".to_string());
        }
        Lookup::Found(spec) => spec,
        Lookup::Ambiguous(_) => return Err(format!("no option of a job is called {name:?}")),
        Lookup::Unknown { suggestion } => return Err(unknown(name, suggestion)),
    };
    let (counted, number) = numbers(spec);
    let values = ranges::values(&base.expanded(spec, list)?, &number)?;
    for value in &values {
        (spec.check)(Some(&value.text)).map_err(|why| match spec.allowed() {
            allowed if allowed.is_empty() => why,
            allowed => format!("{why}; allowed: {allowed}"),
        })?;
        base.reads_whole(spec, &value.text, &number)?;
    }
    Ok(Key { spec, counted, values })
}

fn unknown(name: &str, suggestion: Option<&str>) -> String {
    let of_engine = table::engine_specs().find(|spec| spec.names().any(|known| known == name));
    match (of_engine.map(|spec| spec.scope), suggestion) {
        (Some(Scope::Engine(engines)), _) => {
            format!(
                "{name} is an option of {}; name that engine: --ioengine={}",
                engines.join(" and "),
                engines[0]
            )
        }
        (_, Some(suggestion)) => {
            format!("no option of a job is called {name:?}; did you mean {suggestion:?}?")
        }
        _ => format!("no option of a job is called {name:?}; fiord --cmdhelp lists them"),
    }
}

/// Reads one value as a number.
type Number = fn(&str) -> Option<f64>;

/// What the option's values count, and how one is read as a number: in the unit it has without a suffix.
fn numbers(spec: &Spec) -> (Counted, Number) {
    fn whole(text: &str) -> Option<f64> {
        // Lists for several directions are no numbers.
        let single = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let Bytes(number) = Bytes::parse(text, &mut Reading::default()).ok().filter(|_| single)?;
        Some(number as f64)
    }
    fn seconds(text: &str) -> Option<f64> {
        Some(Seconds::parse(text, &mut Reading::default()).ok()?.us as f64 / 1e6)
    }
    fn micros(text: &str) -> Option<f64> {
        Some(Micros::parse(text, &mut Reading::default()).ok()?.us as f64)
    }
    match spec.kind {
        "integer" => (Counted::Other, whole),
        kind if kind == Seconds::KIND => (Counted::Other, seconds),
        kind if kind == Micros::KIND => (Counted::Other, micros),
        kind if kind.starts_with("size") => (Counted::Bytes, whole),
        "list of numbers separated by colons" => (Counted::Other, |text| text.parse().ok()),
        _ => (Counted::Other, |_| None),
    }
}

/// The job that was typed.
struct Base {
    sections: Vec<Section>,
    /// What the reserved keywords stand for.
    keywords: expand::Machine,
    /// What is worth saying about how it was typed.
    warnings: Vec<Problem>,
}

impl Base {
    fn read(of_fio: &[String], machine: &Machine) -> Result<Base, String> {
        let environment = Environment {
            files: &environment::read_file,
            variables: &environment::variable,
            machine: environment::keywords(machine),
        };
        let mut parsed = cli::read(of_fio, &environment).map_err(|problems| told(&problems))?;
        if parsed.sections.is_empty() && parsed.files.is_empty() {
            let named: Vec<String> = of_fio.iter().cloned().chain([format!("--name={NAME}")]).collect();
            parsed = cli::read(&named, &environment).map_err(|problems| told(&problems))?;
        }
        fit_to_sweep(&parsed)?;
        let problems = cli::check(&parsed);
        let (errors, odd): (Vec<Problem>, Vec<Problem>) =
            problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        if !errors.is_empty() {
            return Err(told(&errors));
        }
        let Parsed { sections, mut warnings, .. } = parsed;
        warnings.extend(odd);
        Ok(Base { sections, keywords: environment.machine, warnings })
    }

    /// The values of a list with their keywords replaced, as the command line replaces them.
    fn expanded(&self, spec: &Spec, list: &str) -> Result<String, String> {
        let place = Place::derived();
        let expanded = list.split(',').map(|value| {
            let value = lookup::with_keywords(spec, Some(value.to_string()), &self.keywords, &place);
            value.map(Option::unwrap_or_default).map_err(|problem| problem.message)
        });
        Ok(expanded.collect::<Result<Vec<_>, _>>()?.join(","))
    }

    /// Sees that a value is read to its last letter and as one value: a run of half of it would stand in the table under
    /// all of it.
    fn reads_whole(&self, spec: &'static Spec, text: &str, number: &Number) -> Result<(), String> {
        if let Some((from, to)) = text.split_once('-')
            && [from, to].iter().all(|end| number(end.trim()).is_some())
            && !spec.kind.contains("range")
        {
            return Err(format!(
                "{text:?} is no single value; a range is written {}..{}",
                from.trim(),
                to.trim()
            ));
        }
        let mut section = Section::new(NAME);
        let decides = |setting: &&Setting| ["kb_base", "ioengine"].contains(&setting.spec.name);
        section.own.extend(self.settings().filter(decides).cloned());
        section.own.push(Setting::new(spec, text));
        let (_, _, problems) = job::resolve(&section);
        match problems.iter().find(|problem| problem.option == spec.name) {
            Some(problem) => Err(format!("{}; write what is meant, one value at a time", problem.message)),
            None => Ok(()),
        }
    }

    /// Sees that options of an engine are not there for another one that the engine is swept over.
    fn engines_have_their_options(&self, keys: &[Key]) -> Result<(), String> {
        let swept = keys.iter().filter(|key| key.name() == "ioengine").flat_map(|key| &key.values);
        for engine in swept {
            for setting in self.settings() {
                if let Scope::Engine(engines) = setting.spec.scope
                    && !engines.contains(&engine.text.as_str())
                {
                    let (name, engines) = (setting.spec.name, engines.join(" and "));
                    return Err(format!(
                        "{name} is an option of {engines}, not of {}; leave it out, or sweep without that engine",
                        engine.text
                    ));
                }
            }
        }
        Ok(())
    }

    fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.sections.iter().flat_map(Section::settings)
    }

    /// What a job option is set to, the last time.
    fn value(&self, name: &str) -> Option<&str> {
        self.settings().filter(|setting| setting.spec.name == name).last()?.value.as_deref()
    }

    fn engines(&self) -> Vec<&str> {
        let engines = self.settings().filter(|setting| setting.spec.name == "ioengine");
        engines.filter_map(|setting| setting.value.as_deref()).chain(["psync"]).collect()
    }

    fn is_given(&self, name: &str, keys: &[Key]) -> bool {
        self.settings().any(|setting| setting.spec.name == name) || keys.iter().any(|key| key.name() == name)
    }

    /// A file of its own in the current directory, where the job names none.
    fn own_site(&self, keys: &[Key], dry_run: bool) -> Result<Option<(Site, OwnFiles)>, String> {
        // Without handlers a sweep still runs; a signal then takes the rows there are with it.
        let _ = signal::record_stop_requests();
        if TARGETS.iter().any(|name| self.is_given(name, keys)) {
            return Ok(None);
        }
        let size = self.value("size").and_then(|text| Bytes::parse(text, &mut Reading::default()).ok());
        let size_bytes = size.map_or(SIZE_BYTES, |size| size.0);
        let (site, own) = site::at(Path::new("."), NAME, size_bytes, dry_run)?;
        Ok(own.map(|own| (site, own)))
    }

    /// What is added to what was typed.
    fn added(&self, keys: &[Key], each: Duration, site: Option<&Site>) -> Vec<(&'static str, String)> {
        let mut added = Vec::new();
        let mut add = |name: &'static str, value: String| {
            if !self.is_given(name, keys) {
                added.push((name, value));
            }
        };
        if !ENDS.iter().any(|name| self.is_given(name, keys)) {
            add("runtime", runtime(each));
            add("time_based", "1".to_string());
        }
        // Several jobs have rows of their own.
        if self.sections.len() == 1 {
            add("group_reporting", "1".to_string());
        }
        if let Some(site) = site {
            add("size", site.size_bytes.to_string());
            if !self.is_given("buffered", keys) {
                add("direct", u8::from(site.direct).to_string());
            }
        }
        // Others take no notice of a depth.
        if keys.iter().any(|key| key.name() == "iodepth") {
            add("ioengine", site::queued_engine().to_string());
        }
        added
    }

    /// What people are told before it begins.
    fn heading(
        &self,
        keys: &[Key],
        added: &[(&'static str, String)],
        site: Option<&Site>,
    ) -> Vec<(&'static str, String)> {
        let mut heading = Vec::new();
        let names_target = |setting: &&Setting| TARGETS.contains(&setting.spec.name);
        let mut targets: Vec<String> = self.settings().filter(names_target).map(as_typed).collect();
        let mut seen = BTreeSet::new();
        targets.retain(|target| seen.insert(target.clone()));
        if site.is_none() && !targets.is_empty() {
            heading.push(("Target", targets.join(", ")));
        }
        let globals = self.sections.first().map_or(&[][..], |first| &first.global);
        let job: Vec<String> =
            globals.iter().filter(|setting| is_kept(setting, keys)).map(as_typed).collect();
        let mut jobs: Vec<String> = if job.is_empty() { Vec::new() } else { vec![job.join(" ")] };
        for Section { name, own, .. } in &self.sections {
            let own: Vec<String> =
                own.iter().filter(|setting| is_kept(setting, keys)).map(as_typed).collect();
            if self.sections.len() > 1 || !own.is_empty() {
                jobs.push(format!("[{}] {}", shown(name), own.join(" ")).trim_end().to_string());
            }
        }
        let names = ["Job"].into_iter().chain(std::iter::repeat(""));
        heading.extend(names.zip(jobs));
        let told: Vec<String> = added.iter().map(|(name, value)| format!("{name}={value}")).collect();
        heading.push(("Added", told.join(" ")));
        let cached = site.is_none() && !["direct", "buffered"].iter().any(|name| self.is_given(name, keys));
        if cached && !self.engines().contains(&"null") {
            let note =
                "without direct=1 reads and writes go through the page cache, and the figures with them";
            heading.push(("Note", note.to_string()));
        }
        heading
    }

    /// The job without what is swept: settings as they were read, and never read again.
    fn job(&self, keys: &[Key], added: &[(&'static str, String)], site: Option<&Site>) -> Job {
        let mut sections = self.sections.clone();
        for section in &mut sections {
            section.global.retain(|setting| is_kept(setting, keys));
            section.own.retain(|setting| is_kept(setting, keys));
            section.own.extend(added.iter().map(|(name, value)| Setting::of(name, value)));
            section.files = site.iter().map(|site| site.file.clone()).collect();
        }
        // Of all runs in one job file, as a dry run prints them, each waits for those before it.
        if let Some(first) = sections.first_mut().filter(|_| self.value("stonewall").is_none()) {
            first.own.push(Setting::of("stonewall", "1"));
        }
        Job { sections }
    }
}

/// Whether a setting is of the job that is swept over: `name` is the section's own.
fn is_kept(setting: &Setting, keys: &[Key]) -> bool {
    setting.spec.name != "name" && keys.iter().all(|key| key.name() != setting.spec.name)
}

/// A setting for people.
fn as_typed(setting: &Setting) -> String {
    match &setting.value {
        Some(value) => format!("{}={}", setting.spec.name, shown(value)),
        None => setting.spec.name.to_string(),
    }
}

/// A sweep prints in its own way and begins with one job file.
fn fit_to_sweep(parsed: &Parsed) -> Result<(), String> {
    if let Some(setting) = parsed.program.iter().find(|setting| setting.spec.name != "section") {
        let name = &setting.spelling;
        return Err(format!("--{name} is for a run, not for a sweep; leave it out (fiord sweep --help)"));
    }
    if parsed.files.len() > 1 {
        return Err("a sweep begins with one job file; name one".to_string());
    }
    if parsed.sections.is_empty() {
        return Err("the job file has no section; write [job] and its options".to_string());
    }
    Ok(())
}

fn told(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A time as job files have it: seconds where it is made of them.
fn runtime(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => time.as_secs().to_string(),
        _ => format!("{}ms", time.as_millis().max(1)),
    }
}

/// How long sections run: side by side, stage after stage. Nothing where that is not told by times.
fn time(sections: &[Section]) -> Duration {
    let mut stages_us = vec![0];
    for section in sections {
        let (job, _, _) = job::resolve(section);
        if job.stonewall.0 {
            stages_us.push(0);
        }
        let last = stages_us.len() - 1;
        stages_us[last] = stages_us[last].max(job.runtime.us + job.ramp_time.us);
    }
    Duration::from_micros(stages_us.iter().sum())
}
