//! The command line: arguments to program options, jobs and job files, as `getopt_long_only` reads them for fio.
//!
//! Invariant: every argument is used exactly once, as an option, as a value or as a job file; all errors are reported
//! at once.

use fiord_errno::error_text;
use fiord_stats::OrderBy;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::clients::Clients;
use super::environment::Environment;
use super::jobfile::{self, Block};
pub use super::parsed::{JobFile, Parsed};
use super::{lookup, profile};
use crate::place::{Origin, Place};
use crate::problem::{Problem, ProblemKind, ProblemLevel, without_repeats};
use crate::resolve::{Resolver, resolve_job, resolve_program};
use crate::section::{Globals, Section, Setting, count_inheritable};
use crate::shown::shown;
use crate::table::job::General;
use crate::table::program::ProgramOptions;
use crate::table::{Scope, Spec};
use crate::value::{EngineName, NamedEngine, Takes, ValueKind};

/// Reads a command line (without the program's name) and the job files it names.
///
/// `Err` holds every problem there is, warnings and wrong values among them, when the grammar does not fit. Where it
/// fits, values are not looked at: `check` does that, or resolving each section.
pub fn read<A: AsRef<OsStr>>(args: &[A], environment: &Environment<'_>) -> Result<Parsed, Vec<Problem>> {
    let mut reader = Reader::new(args, environment);
    reader.arguments();
    reader.profile();
    reader.files();
    reader.report_missing_sections();
    let Reader { mut parsed, mut problems, .. } = reader;
    let failed = problems.iter().any(|problem| problem.level == ProblemLevel::Error);
    if failed {
        problems.extend(check(&parsed, environment.engines));
    }
    sort_by_place(&mut problems);
    if failed {
        return Err(problems);
    }
    parsed.warnings = problems;
    Ok(parsed)
}

/// Sorts problems as a reader meets them: source by source in the order they first occur, the command line before
/// all files, then by line and column.
pub fn sort_by_place(problems: &mut [Problem]) {
    let mut sources: Vec<Origin> = Vec::new();
    for problem in problems.iter() {
        if !sources.contains(&problem.place.source) {
            sources.push(problem.place.source.clone());
        }
    }
    problems.order_by_key(|problem| {
        let Place { source, line, column } = &problem.place;
        let order = sources.iter().position(|known| known == source);
        (*source != Origin::CommandLine, order, *line, *column)
    });
}

/// All problems of the values, given the engines that are built in, each once: those of the program's options, of every
/// section, and of globals that no section inherits, since fio reads these too.
pub fn check(parsed: &Parsed, engines: &[EngineName]) -> Vec<Problem> {
    let (_, _, of_program) = resolve_program(&parsed.program);
    let mut resolver = Resolver::new(engines);
    let of_sections = parsed.sections.iter().flat_map(|section| resolver.job(section).2);
    without_repeats(of_program.into_iter().chain(of_sections).chain(unused_globals(parsed, engines)))
}

/// The problems of globals that no section inherits, found by resolving them as if one did.
fn unused_globals(parsed: &Parsed, engines: &[EngineName]) -> Vec<Problem> {
    let in_files = parsed.files.iter().flat_map(|file| &file.blocks).filter(|block| block.name.is_none());
    let globals = parsed.globals.iter().chain(in_files.flat_map(|block| &block.settings));
    let mut inherited: HashSet<&Place> = HashSet::new();
    let mut before = &Globals::default();
    for Section { global, .. } in &parsed.sections {
        inherited.extend(global.since(before).unwrap_or(global).iter().map(|given| &given.place));
        before = global;
    }
    let unused = globals.filter(|setting| !inherited.contains(&setting.place)).cloned().collect();
    let section = Section { global: unused, ..Section::new("") };
    resolve_job(&section, engines).2
}

/// Letters fio takes as options; none is documented, each one's meaning was observed.
const LETTERS: [(char, &Spec); 20] = [
    ('C', ProgramOptions::client),
    ('E', ProgramOptions::eta_newline),
    ('F', ProgramOptions::output_format),
    ('I', ProgramOptions::idle_prof),
    ('L', ProgramOptions::status_interval),
    ('O', ProgramOptions::eta_interval),
    ('P', ProgramOptions::parse_only),
    ('S', ProgramOptions::server),
    ('T', ProgramOptions::cpuclock_test),
    ('V', ProgramOptions::terse_version),
    ('b', ProgramOptions::bandwidth_log),
    ('c', ProgramOptions::cmdhelp),
    ('d', ProgramOptions::debug),
    ('f', ProgramOptions::append_terse),
    ('h', ProgramOptions::help),
    ('i', ProgramOptions::enghelp),
    ('m', ProgramOptions::minimal),
    ('o', ProgramOptions::output),
    ('r', ProgramOptions::readonly),
    ('v', ProgramOptions::version),
];

/// Whether an option takes the next argument as its value when none is attached. Of the options of a job fio lets
/// flags alone stand bare; a text that may be left out in a job file (`write_lat_log`) is wanted here.
pub fn needs_value(spec: &Spec) -> bool {
    match spec.takes {
        Takes::Value => true,
        Takes::Optional => spec.scope != Scope::Program && spec.kind == ValueKind::OptionalText,
        Takes::Nothing => false,
    }
}

/// Options that print a page instead of running jobs: what follows them, and the job files, are not read.
const ENDS_THE_COMMAND_LINE: [&Spec; 7] = [
    ProgramOptions::help,
    ProgramOptions::version,
    ProgramOptions::cmdhelp,
    ProgramOptions::enghelp,
    ProgramOptions::crctest,
    ProgramOptions::memcpytest,
    ProgramOptions::cpuclock_test,
];

/// One argument and where it begins in the joined command line (bytes, from 1).
#[derive(Clone)]
struct Argument {
    text: OsString,
    column: u32,
}

/// An argument that is a job file, and what it follows.
struct FileArgument {
    name: OsString,
    place: Place,
    /// The option before it, when that option took no value and could not take this one.
    after: Option<After>,
}

/// The option before a job file.
#[derive(Clone, Copy)]
enum After {
    /// An option that takes its value only after `=`.
    Flag(&'static str),
    /// After an unknown option, whose value this may be.
    Unknown,
}

/// An option's name as typed, and its value if that was attached with `=`.
struct Typed {
    /// As it is shown, so that what is not UTF-8 is the name of nothing.
    name: String,
    value: Option<OsString>,
    place: Place,
    value_place: Place,
}

struct Reader<'a> {
    environment: &'a Environment<'a>,
    arguments: std::vec::IntoIter<Argument>,
    parsed: Parsed,
    /// The job that options now apply to; `None` before the first `--name` and after `--name=global`.
    current: Current,
    /// How many globals each of the sections so far inherits.
    inherited: Vec<usize>,
    /// Sections named by `--section`, each with its place.
    wanted: Vec<(OsString, Place)>,
    files: Vec<FileArgument>,
    files_wanted: bool,
    after: Option<After>,
    problems: Vec<Problem>,
}

/// What options apply to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Current {
    Globals,
    Job,
    /// A job that `--section` leaves out.
    Nothing,
}

impl<'a> Reader<'a> {
    fn new<A: AsRef<OsStr>>(args: &[A], environment: &'a Environment<'a>) -> Reader<'a> {
        let mut column = 1;
        let mut arguments = Vec::with_capacity(args.len());
        for text in args.iter().map(AsRef::as_ref) {
            let text: &OsStr = text;
            let column_here = u32::try_from(column).unwrap_or(u32::MAX);
            arguments.push(Argument { text: text.to_os_string(), column: column_here });
            column += text.len() + 1;
        }
        Reader {
            environment,
            arguments: arguments.into_iter(),
            parsed: Parsed::default(),
            current: Current::Globals,
            inherited: Vec::new(),
            wanted: Vec::new(),
            files: Vec::new(),
            files_wanted: true,
            after: None,
            problems: Vec::new(),
        }
    }

    fn error(
        &mut self,
        kind: ProblemKind,
        place: &Place,
        option: impl Into<Option<&'static Spec>>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.push(Problem::error(kind, place.clone(), option, message, remedy));
    }

    fn arguments(&mut self) {
        let mut only_files = false;
        while let Some(argument) = self.arguments.next() {
            let is_file = only_files || argument.text == "-" || !argument.text.as_bytes().starts_with(b"-");
            if is_file {
                let place = place_at(argument.column);
                let after = self.after.take();
                self.files.push(FileArgument { name: argument.text, place, after });
            } else if argument.text == "--" {
                only_files = true;
            } else {
                self.after = None;
                self.option(&argument);
            }
        }
        let globals = Globals::inheritable(&self.parsed.globals);
        for (section, count) in self.parsed.sections.iter_mut().zip(&self.inherited) {
            section.global = globals.first(*count);
        }
    }

    fn option(&mut self, argument: &Argument) {
        let text = argument.text.as_bytes();
        let dashes = text.iter().take_while(|byte| **byte == b'-').count().min(2);
        let body = &text[dashes..];
        let letter = body.first().filter(|_| dashes == 1).and_then(|letter| of_letter(*letter));
        if let (Some(spec), [_]) = (letter, body) {
            return self.letter(spec, b"", argument);
        }
        let typed = self.typed(body, dashes, argument);
        let engine = self.engine();
        match lookup::on_command_line(&typed.name, &engine, &typed.place) {
            Ok(spec) => self.found(spec, typed),
            Err(_) if letter.is_some() && !is_ambiguous(&typed.name, &engine) => {
                if let Some(spec) = letter {
                    self.letter(spec, &body[1..], argument);
                }
            }
            Err(problem) => {
                if typed.value.is_none() {
                    self.after = Some(After::Unknown);
                }
                self.problems.push(problem);
            }
        }
    }

    fn typed(&self, body: &[u8], dashes: usize, argument: &Argument) -> Typed {
        let offset = |bytes: usize| argument.column.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        let place = place_at(offset(dashes));
        let name = |bytes: &[u8]| shown(OsStr::from_bytes(bytes));
        match body.iter().position(|byte| *byte == b'=') {
            Some(equals) => Typed {
                name: name(&body[..equals]),
                value: Some(OsStr::from_bytes(&body[equals + 1..]).to_os_string()),
                value_place: place_at(offset(dashes + equals + 1)),
                place,
            },
            None => Typed { name: name(body), value: None, value_place: place.clone(), place },
        }
    }

    /// A single letter (`-o FILE`), or a letter followed by its value or further letters (`-oFILE`, `-mv`).
    fn letter(&mut self, spec: &'static Spec, rest: &[u8], argument: &Argument) {
        let place = place_at(argument.column.saturating_add(1));
        let value = (!rest.is_empty() && spec.takes != Takes::Nothing)
            .then(|| OsStr::from_bytes(rest).to_os_string());
        let value_place = place.clone();
        let name = shown(OsStr::from_bytes(&argument.text.as_bytes()[1..2]));
        self.found(spec, Typed { name, value, place, value_place });
        if spec.takes == Takes::Nothing && !rest.is_empty() {
            let column = argument.column.saturating_add(1);
            let text = OsString::from_vec([b"-", rest].concat());
            self.option(&Argument { text, column });
        }
    }

    /// The engine whose private options are accepted here.
    fn engine(&self) -> NamedEngine {
        let job = self.parsed.sections.last().filter(|_| self.current == Current::Job);
        let own = job.map_or(&[][..], |job| &job.own);
        lookup::engine_of(self.parsed.globals.iter().chain(own))
    }

    fn found(&mut self, spec: &'static Spec, mut typed: Typed) {
        if typed.value.is_none() && needs_value(spec) {
            let Some(next) = self.arguments.next() else {
                return self.problems.push(lookup::value_missing(spec, &typed.place));
            };
            typed.value_place = place_at(next.column);
            typed.value = Some(next.text);
        } else if typed.value.is_none() {
            self.after = Some(After::Flag(spec.name));
        }
        if spec.takes == Takes::Nothing && typed.value.is_some() {
            let remedy = format!("write --{}", spec.name);
            return self.error(ProblemKind::ValueCount, &typed.value_place, spec, "takes no value", remedy);
        }
        if typed.value.as_deref() == Some(OsStr::new("")) {
            return self.problems.push(lookup::value_missing(spec, &typed.place));
        }
        let Typed { name: spelling, value, place, value_place } = typed;
        if spec.scope == Scope::Program {
            let setting = Setting { spec, spelling, value, place, value_place };
            return self.program(setting);
        }
        match lookup::with_keywords(spec, value, &self.environment.keywords, &value_place) {
            Ok(value) => self.job_option(Setting { spec, spelling, value, place, value_place }),
            Err(problem) => self.problems.push(problem),
        }
    }

    fn program(&mut self, setting: Setting) {
        if setting.spec == ProgramOptions::section
            && let Some(name) = &setting.value
        {
            if name == "global" {
                let message = "\"global\" is not a job; its options apply to all sections anyway";
                self.error(
                    ProblemKind::UnknownName,
                    &setting.value_place,
                    setting.spec,
                    message,
                    "name the job to run",
                );
            }
            self.wanted.push((name.clone(), setting.value_place.clone()));
        }
        if setting.spec.is_one_of(&ENDS_THE_COMMAND_LINE) {
            self.arguments = Vec::new().into_iter();
            self.files_wanted = false;
        }
        self.parsed.program.push(setting);
    }

    fn job_option(&mut self, setting: Setting) {
        if setting.spec == General::name
            && let Some(name) = setting.value.clone()
        {
            return self.begin_job(name, setting);
        }
        match self.current {
            Current::Nothing => {}
            Current::Globals => self.parsed.globals.push(setting),
            Current::Job => {
                if let Some(job) = self.parsed.sections.last_mut() {
                    job.own.push(setting);
                }
            }
        }
    }

    fn begin_job(&mut self, name: OsString, setting: Setting) {
        if name == "global" {
            self.current = Current::Globals;
            self.parsed.globals.push(setting);
        } else if !self.wanted.is_empty() && self.wanted.iter().all(|(wanted, _)| *wanted != name) {
            self.current = Current::Nothing;
        } else {
            self.current = Current::Job;
            self.inherited.push(count_inheritable(&self.parsed.globals));
            let place = setting.value_place.clone();
            self.parsed.sections.push(Section { own: vec![setting], place, ..Section::new(name) });
        }
    }

    /// Replaces all jobs by those of a profile, if one is asked for.
    fn profile(&mut self) {
        let jobs = profile::take(&mut self.parsed.globals, &self.environment.keywords);
        let jobs = jobs.unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        });
        let Some((profile, jobs)) = jobs else { return };
        self.parsed.profile = Some(profile);
        if let Some(place) = self.parsed.sections.first().map(|section| section.place.clone()) {
            let message = "the jobs of the profile are run, and no others";
            self.problems
                .push(Problem::error(ProblemKind::NoEffect, place, General::name, message, "").as_warning());
        }
        self.files.clear();
        let global = Globals::inheritable(&self.parsed.globals);
        self.parsed.sections = jobs;
        self.parsed.sections.iter_mut().for_each(|section| section.global.clone_from(&global));
    }

    /// Reads the job files, in order, after all options. The globals of the command line apply to the first one, with
    /// `--client` to the first of each; each later one starts without any.
    fn files(&mut self) {
        let wanted: Vec<OsString> = self.wanted.iter().map(|(name, _)| name.clone()).collect();
        let typed = std::mem::take(&mut self.parsed.globals);
        let mut globals = typed.clone();
        let clients = Clients::of(&self.parsed.program);
        let mut client = None;
        let files = std::mem::take(&mut self.files).into_iter().filter(|_| self.files_wanted);
        for (index, file) in files.collect::<Vec<FileArgument>>().into_iter().enumerate() {
            let client_before = std::mem::replace(&mut client, clients.of_place(&file.place));
            let is_later = index > 0 && client == client_before;
            if is_later {
                self.report_globals_end(&globals, &file);
                globals.clear();
            } else if index > 0 {
                globals.clone_from(&typed);
            }
            let text = match (self.environment.files)(&file.name) {
                Ok(text) => text,
                Err(error) => {
                    self.unreadable(&file, &error);
                    continue;
                }
            };
            let name = if file.name == "-" { OsStr::new("standard input") } else { &file.name };
            let blocks = jobfile::read(name, &text, &wanted, &globals, self.environment, &mut self.problems);
            let first_section = self.parsed.sections.len();
            let inherited = globals.clone();
            let added = blocks.iter().filter(|block| block.name.is_none());
            globals.extend(added.flat_map(|block| &block.settings).cloned());
            self.add_blocks(&blocks, count_inheritable(&inherited), &Globals::inheritable(&globals));
            if is_later && self.parsed.sections.len() > first_section {
                self.parsed.waiting.push(first_section);
            }
            self.parsed.files.push(JobFile { place: file.place, inherited, blocks });
        }
        self.parsed.globals = globals;
    }

    /// Adds the sections of a file: each inherits those of the globals that were known before the file, or that the file
    /// has before it.
    fn add_blocks(&mut self, blocks: &[Block], mut known: usize, globals: &Globals) {
        for Block { name, place, settings } in blocks {
            let Some(name) = name else {
                known += count_inheritable(settings);
                continue;
            };
            let (global, own, place) = (globals.first(known), settings.clone(), place.clone());
            self.parsed.sections.push(Section { global, own, place, ..Section::new(name) });
        }
    }

    /// Warns of options on the command line that do not apply to a second job file.
    fn report_globals_end(&mut self, globals: &[Setting], file: &FileArgument) {
        let typed = |setting: &&Setting| setting.place.source == Origin::CommandLine;
        let names: Vec<&str> = globals.iter().filter(typed).map(|setting| setting.spec.name).collect();
        if !names.is_empty() {
            let message = format!("{} does not apply to {}", names.join(", "), shown(&file.name));
            let remedy = "as in fio, options of the command line apply to the first job file only";
            self.problems.push(
                Problem::error(ProblemKind::Misplaced, file.place.clone(), None, message, remedy)
                    .as_warning(),
            );
        }
    }

    fn unreadable(&mut self, file: &FileArgument, error: &std::io::Error) {
        let value = shown(&file.name);
        let remedy = match file.after {
            Some(After::Unknown) => return,
            Some(After::Flag(flag)) => {
                format!("if it is the value of {flag}, write --{flag}={value}; anything else is a job file")
            }
            None if value.contains('=') => format!("options begin with dashes: --{value}"),
            None => "arguments that are not options are job files".to_string(),
        };
        self.error(
            ProblemKind::Unreadable,
            &file.place,
            None,
            format!("cannot read the job file {value}: {}", error_text(error)),
            remedy,
        );
    }

    /// Warns of `--section` with a name that no section has.
    fn report_missing_sections(&mut self) {
        if self.problems.iter().any(|problem| problem.level == ProblemLevel::Error) {
            return;
        }
        for (name, place) in &self.wanted {
            if self.parsed.sections.iter().all(|section| section.name != *name) {
                let message = format!("there is no section \"{}\"", shown(name));
                self.problems.push(
                    Problem::error(
                        ProblemKind::UnknownName,
                        place.clone(),
                        ProgramOptions::section,
                        message,
                        "",
                    )
                    .as_warning(),
                );
            }
        }
    }
}

/// The place of a byte of the command line.
fn place_at(column: u32) -> Place {
    Place { source: Origin::CommandLine, line: 1, column }
}

fn of_letter(letter: u8) -> Option<&'static Spec> {
    LETTERS.iter().find(|(known, _)| *known == char::from(letter)).map(|(_, spec)| *spec)
}

fn is_ambiguous(name: &str, engine: &NamedEngine) -> bool {
    matches!(
        crate::table::find_command_line_option(name, engine.known().as_slice()),
        crate::Lookup::Ambiguous(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{ENGINES, read_with, sections, settings, texts};
    use proptest::prelude::*;

    fn jobs(args: &[&str]) -> Vec<String> {
        sections(args, &[])
    }

    fn refusal(args: &[&str]) -> String {
        match read_with(args, &[]) {
            Ok(parsed) => format!("accepted: {:?}", parsed.sections.len()),
            Err(problems) => texts(&problems),
        }
    }

    #[test]
    fn values_are_attached_or_follow() {
        for args in [["--name=a", "--bs=4k"], ["-name=a", "-bs=4k"]] {
            assert_eq!(jobs(&args), ["a [] name=a bs=4k"]);
        }
        for args in [["--name", "a", "--bs", "4k"], ["-name", "a", "-bs", "4k"]] {
            assert_eq!(jobs(&args), ["a [] name=a bs=4k"]);
        }
    }

    #[test]
    fn flags_take_a_value_only_after_an_equals_sign() {
        assert_eq!(jobs(&["--name=a", "--thread"]), ["a [] name=a thread"]);
        assert_eq!(jobs(&["--name=a", "-thread=1", "--bs=4k"]), ["a [] name=a thread=1 bs=4k"]);
        let files = [("j.fio", "[j]\nrw=read")];
        assert_eq!(sections(&["-thread", "j.fio"], &files), ["j [thread] rw=read"]);
        let message = refusal(&["--name=a", "--thread", "1"]);
        assert!(message.contains("command line:1:19: error: cannot read the job file 1"), "{message}");
        assert!(message.contains("write --thread=1"), "{message}");
    }

    #[test]
    fn texts_of_jobs_want_a_value_that_files_may_leave_out() {
        for log in ["write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"] {
            let option = format!("--{log}");
            assert_eq!(
                jobs(&["--name=a", &option, "pre", "--thread"]),
                [format!("a [] name=a {log}=pre thread")]
            );
            assert_eq!(jobs(&["--name=a", &option, "--bs=4k"]), [format!("a [] name=a {log}=--bs=4k")]);
            assert!(refusal(&["--name=a", &option]).contains(&format!("{log}: needs a value")), "{log}");
            let file = format!("[j]\n{log}");
            assert_eq!(sections(&["j.fio"], &[("j.fio", &file)]), [format!("j [] {log}")]);
        }
        // Texts of the program may be left out here as well.
        assert!(read_with(&["--cmdhelp", "bs"], &[]).is_ok_and(|parsed| parsed.program[0].value.is_none()));
    }

    #[test]
    fn a_value_may_look_like_an_option() {
        assert_eq!(jobs(&["--name=a", "--description", "--bs=4k"]), ["a [] name=a description=--bs=4k"]);
    }

    #[test]
    fn options_before_the_first_name_are_global() {
        let args = ["--bs=4k", "--name=a", "--rw=read", "--name=b", "--size=1m"];
        assert_eq!(jobs(&args), ["a [bs=4k] name=a rw=read", "b [bs=4k] name=b size=1m"]);
    }

    #[test]
    fn name_global_returns_to_the_globals() {
        let args = ["--name=global", "--bs=4k", "--name=a", "--name=global", "--rw=read", "--name=b"];
        assert_eq!(jobs(&args), ["a [bs=4k] name=a", "b [bs=4k rw=read] name=b"]);
        let parsed = read_with(&args, &[]).unwrap();
        assert_eq!(settings(&parsed.globals), "name=global bs=4k name=global rw=read");
    }

    #[test]
    fn options_after_a_job_file_are_read_before_it() {
        let files = [("j.fio", "[j]\nrw=read")];
        assert_eq!(sections(&["j.fio", "--bs=2k"], &files), ["j [bs=2k] rw=read"]);
        let with_job = ["--iodepth=1", "--name=a", "--bs=1k", "j.fio", "--bs=2k"];
        assert_eq!(
            sections(&with_job, &files),
            ["a [iodepth=1] name=a bs=1k bs=2k", "j [iodepth=1] rw=read"]
        );
    }

    #[test]
    fn job_files_begin_without_the_globals_of_those_before() {
        let files = [("j.fio", "[global]\nsize=1m\n[j]\n[jj]\n"), ("k.fio", "[global]\nbs=1k\n[k]\n[kk]\n")];
        let parsed = read_with(&["--rw=read", "j.fio", "k.fio"], &files).unwrap();
        let globals: Vec<String> = parsed.sections.iter().map(|section| settings(&section.global)).collect();
        assert_eq!(globals, ["rw=read size=1m", "rw=read size=1m", "bs=1k", "bs=1k"]);
        assert_eq!(parsed.waiting, [2]);
        assert_eq!(settings(&parsed.globals), "bs=1k");
        assert!(texts(&parsed.warnings).contains("rw does not apply to k.fio"));
    }

    #[test]
    fn a_dash_is_standard_input_and_two_dashes_end_the_options() {
        assert_eq!(sections(&["--bs=1k", "-"], &[("-", "[j]\n")]), ["j [bs=1k] "]);
        assert_eq!(sections(&["--", "--x"], &[("--x", "[j]\n")]), ["j [] "]);
        let message = sections(&["-"], &[("-", "bs=4k")]).concat();
        assert!(message.starts_with("standard input:1:1: error"), "{message}");
    }

    #[test]
    fn program_options_stand_anywhere() {
        let parsed = read_with(&["--name=a", "--output", "o", "--bs=4k", "--minimal"], &[]).unwrap();
        assert_eq!(settings(&parsed.program), "output=o minimal");
        assert_eq!(settings(&parsed.sections[0].own), "name=a bs=4k");
    }

    #[test]
    fn abbreviations_must_be_unambiguous() {
        assert_eq!(jobs(&["--name=a", "--group_report"]), ["a [] name=a group_reporting"]);
        let message = refusal(&["--name=a", "--iodept=4"]);
        assert!(
            message.starts_with("command line:1:12: error: \"iodept\" is the beginning of several"),
            "{message}"
        );
        assert!(message.contains("iodepth_low"), "{message}");
    }

    #[test]
    fn engine_options_follow_their_engine() {
        assert_eq!(jobs(&["--ioengine=io_uring", "--name=a", "--hipri"]).len(), 1);
        assert!(refusal(&["--hipri", "--ioengine=io_uring", "--name=a"]).contains("another engine"));
        assert!(
            refusal(&["--name=a", "--ioengine=io_uring", "--name=b", "--hipri"]).contains("another engine")
        );
    }

    // divergence: single letters
    #[test]
    fn letters_are_options_too() {
        for args in [["-o", "7", "-m"].as_slice(), &["-o7", "-m"], &["-mo7"]] {
            let parsed = read_with(args, &[]).unwrap();
            let mut program = settings(&parsed.program).split(' ').map(str::to_string).collect::<Vec<_>>();
            program.sort();
            assert_eq!(program, ["minimal", "output=7"], "{args:?}");
        }
        assert_eq!(jobs(&["-name=a", "-rw", "read"]), ["a [] name=a rw=read"]);
        let known = ('A'..='z').filter(|letter| of_letter(*letter as u8).is_some());
        assert_eq!(known.collect::<String>(), "CEFILOPSTVbcdfhimorv");
    }

    #[test]
    fn help_and_version_end_the_command_line() {
        for args in [["j.fio", "--version", "--nonsense"], ["nope", "--cmdhelp=bs", "--minimal=1"]] {
            let parsed = read_with(&args, &[]).unwrap();
            assert_eq!(parsed.program.len(), 1, "{args:?}");
        }
        assert!(refusal(&["--nonsense", "--version"]).contains("no option is called"));
    }

    #[test]
    fn keywords_work_on_the_command_line_and_variables_do_not() {
        let args = ["--name=a", "--numjobs=2*$ncpus", "--filename_format=$jobnum.${V}"];
        assert_eq!(jobs(&args), ["a [] name=a numjobs=4 filename_format=$jobnum.${V}"]);
    }

    #[test]
    fn all_problems_are_collected() {
        let message = refusal(&["--foo", "4", "--minimal=1", "--bs=", "bs=4k", "--name"]);
        let starts = [
            "command line:1:3: error: no option is called \"foo\"",
            "command line:1:19: error: minimal: takes no value",
            "command line:1:23: error: bs: needs a value",
            "command line:1:27: error: cannot read the job file bs=4k",
            "command line:1:35: error: name: needs a value",
        ];
        let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(lines.len(), starts.len(), "{message}");
        assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{message}");
        assert!(message.contains("options begin with dashes: --bs=4k"));
    }

    #[test]
    fn problems_are_sorted_as_a_reader_meets_them() {
        let at = |source: &Origin, line, column| {
            let place = Place { source: source.clone(), line, column };
            Problem::error(ProblemKind::InvalidValue, place, None, format!("{line}:{column}"), "")
        };
        let typed = Origin::CommandLine;
        // Files in the order in which they are met, which is not that of their names.
        let [first, second] = ["z.fio", "a.fio"].map(|name| Origin::File(OsStr::new(name).into()));
        let sorted = [
            at(&typed, 1, 3),
            at(&typed, 1, 40),
            at(&first, 2, 9),
            at(&first, 10, 1),
            at(&first, 10, 2),
            at(&second, 1, 1),
        ];
        let mut problems: Vec<Problem> = [4, 1, 5, 3, 0, 2].map(|index| sorted[index].clone()).to_vec();
        sort_by_place(&mut problems);
        assert_eq!(problems, sorted);
        // Problems of one place keep their order.
        let mut same = ["one", "other"]
            .map(|text| Problem::error(ProblemKind::InvalidValue, at(&first, 1, 1).place, None, text, ""));
        let before = same.clone();
        sort_by_place(&mut same);
        assert_eq!(same, before);
    }

    #[test]
    fn section_chooses_among_jobs_of_both_kinds() {
        let args = ["--section=k", "--bs=4k", "--name=j", "--rw=read", "--name=k", "--rw=write"];
        assert_eq!(jobs(&args), ["k [bs=4k] name=k rw=write"]);
        assert!(refusal(&["--section=global"]).contains("\"global\" is not a job"));
        let parsed = read_with(&["--section=z", "j.fio"], &[("j.fio", "[j]\n")]).unwrap();
        assert!(parsed.sections.is_empty());
        assert!(texts(&parsed.warnings).contains("there is no section \"z\""));
    }

    #[test]
    fn globals_no_section_inherits_are_checked_too() {
        let parsed =
            read_with(&["j.fio"], &[("j.fio", "[global]\nbs=4k\n[a]\n[global]\niodepth=x\n")]).unwrap();
        let problems = texts(&check(&parsed, &ENGINES));
        assert!(problems.starts_with("j.fio:5:9: error: iodepth:"), "{problems}");
    }

    proptest! {
        #[test]
        fn no_command_line_panics(args in proptest::collection::vec(
            prop_oneof![
                Just("--name=a".to_string()), Just("--bs".to_string()), Just("-thread".to_string()),
                Just("--section=a".to_string()), Just("-".to_string()), Just("--".to_string()),
                Just("j.fio".to_string()), "-{0,3}[a-zA-Zä=]{0,6}", "\\PC{0,8}",
            ],
            0..8,
        )) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            if let Err(problems) = read_with(&args, &[("j.fio", "[j]\n")]) {
                let length = args.join(" ").len();
                for problem in problems {
                    prop_assert!(problem.place.column >= 1 && problem.place.column as usize <= length + 1);
                }
            }
        }
    }
}
