//! Targets for the grammars: job files, command lines, variables and sums, and the resolving of sections.
//!
//! Invariant: whatever is typed is either taken or named by at least one error, and every message has a place that
//! lies in what was typed.

use std::collections::BTreeSet;
use std::io;

use fiord_options::cli::{self, Parsed};
use fiord_options::expand::{self, Environment, Machine};
use fiord_options::{Problem, Severity, Source, job, program, showcmd};

use crate::{every_option, spelled_out};

/// The machine of all targets.
const MACHINE: Machine = Machine { cpus: 2, memory_mib: 1000, page_bytes: 4096 };

/// Reads a command line in a world where `j.fio` holds these bytes, which may include one another.
fn read(args: &[String], file: &[u8]) -> Result<Parsed, Vec<Problem>> {
    let files = |name: &str| match name {
        "j.fio" | "-" => Ok(file.to_vec()),
        "x" => Ok(b"bs=8k\ninclude j.fio\n".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let variables = |name: &str| match name {
        "" => None,
        "EQUALS" => Some("bs=4k".to_string()),
        "COMMENT" => Some("4k;x\n[b]".to_string()),
        name => Some(name.repeat(2)),
    };
    cli::read(args, &Environment { files: &files, variables: &variables, machine: MACHINE })
}

/// Reads a job file.
pub(crate) fn read_job_file(file: &[u8]) -> Result<Parsed, Vec<Problem>> {
    let result = read(&["j.fio".to_string()], file);
    check(&result, file);
    result
}

/// The job file without the lines that these problems name; `None` when they name none.
pub(crate) fn without(text: &str, problems: &[Problem]) -> Option<String> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let wrong: BTreeSet<usize> = errors
        .filter(|problem| matches!(&problem.place.source, Source::File(name) if &**name == "j.fio"))
        .map(|problem| problem.place.line as usize)
        .collect();
    let lines = text.split('\n').enumerate().filter(|(index, _)| !wrong.contains(&(index + 1)));
    let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
    (!wrong.is_empty()).then(|| rest.join("\n"))
}

/// The job file as it is read once every line that does not fit has been taken out: most of what a fuzzer makes
/// would go no further otherwise.
pub(crate) fn read_what_fits(mut text: String) -> Option<(String, Parsed)> {
    loop {
        let problems = match read_job_file(text.as_bytes()) {
            Ok(parsed) => match cli::check(&parsed) {
                problems if problems.iter().all(|problem| problem.severity == Severity::Warning) => {
                    return Some((text, parsed));
                }
                problems => problems,
            },
            Err(problems) => problems,
        };
        text = without(&text, &problems)?;
    }
}

/// What holds of every reading.
fn check(result: &Result<Parsed, Vec<Problem>>, file: &[u8]) {
    let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    let problems = match result {
        Ok(parsed) => {
            assert!(parsed.warnings.iter().all(|problem| problem.severity == Severity::Warning));
            let _ = showcmd::print(parsed);
            &parsed.warnings
        }
        Err(problems) => {
            assert!(
                problems.iter().any(|problem| problem.severity == Severity::Error),
                "refused without a reason"
            );
            problems
        }
    };
    for problem in problems {
        assert!(!problem.message.is_empty(), "{problem:?}");
        let place = &problem.place;
        match &place.source {
            Source::File(name) if &**name == "j.fio" => {
                let line = lines.get(place.line as usize - 1);
                assert!(line.is_some_and(|line| place.column as usize <= line.len().max(1)), "{problem}");
            }
            Source::CommandLine(text) => assert!(place.column as usize <= text.len() + 1, "{problem}"),
            Source::File(_) | Source::Derived => {}
        }
    }
}

/// A job file, byte by byte.
pub fn job_file(data: &[u8]) {
    let _ = read_job_file(data);
}

/// A command line: an argument per line, and after a NUL the job file.
pub fn command_line(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let typed = spelled_out(parts.next().unwrap_or_default());
    let file = parts.next().unwrap_or(b"[a]\nrw=read\n");
    let args: Vec<String> = typed.lines().map(String::from).collect();
    let result = read(&args, file);
    check(&result, file);
    if let Ok(parsed) = result {
        let (_, _, problems) = program::resolve_program(&parsed.program);
        problems.iter().for_each(|problem| drop(problem.to_string()));
    }
}

/// Variables and sums.
pub fn expansion(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let expanded = expand::variables(&text, &|name| (name.len() % 2 == 0).then(|| name.to_string()));
    if !text.contains('$') {
        assert_eq!(expanded.text, text);
        assert_eq!(expand::keywords(&text, &MACHINE, true).as_deref(), Ok(&*text));
    }
    let _ = expand::keywords(&text, &MACHINE, true);
    let _ = expand::keywords(&format!("{text}*$ncpus"), &MACHINE, true);
}

/// Any option with any value: the two bytes that choose it, then the value.
pub fn option_value(data: &[u8]) {
    let [high, low, value @ ..] = data else { return };
    let specs: Vec<_> = every_option().collect();
    let spec = specs[(usize::from(*high) << 8 | usize::from(*low)) % specs.len()];
    let value = String::from_utf8_lossy(value);
    for given in [Some(&*value), None] {
        if let Err(why) = (spec.check)(given) {
            assert!(!why.is_empty() && !why.ends_with('.'), "{}={given:?}: {why:?}", spec.name);
        }
    }
}

/// A job file, option by option, down to typed values.
pub fn resolve(data: &[u8]) {
    let text = spelled_out(data);
    let fits = read_what_fits(text.clone()).map(|(_, parsed)| parsed);
    for parsed in read_job_file(text.as_bytes()).into_iter().chain(fits) {
        assert_resolved(&parsed);
    }
}

fn assert_resolved(parsed: &Parsed) {
    let all = cli::check(parsed);
    for section in &parsed.sections {
        let (options, given, problems) = job::resolve(section);
        assert!(problems.iter().all(|problem| all.contains(problem)), "{problems:?} is not all in {all:?}");
        let (again, _, same) = job::resolve(section);
        assert_eq!(format!("{options:?}{problems:?}"), format!("{again:?}{same:?}"), "not the same twice");
        assert_eq!(given.iter().count(), section.global.len() + section.own.len());
    }
}
