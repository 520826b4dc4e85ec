//! Targets for the grammars: job files, command lines, variables and sums, and the resolution of sections.
//!
//! Invariant: every input is either accepted or refused with at least one error, and every message has a place within
//! the input.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fiord_engine::registry::NAMES;
use fiord_options::cli::{self, Parsed};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::{Origin, Problem, ProblemLevel, expand, resolve_job, resolve_program, showcmd};

use crate::{every_option, spelled_out};

/// The machine of all targets.
const KEYWORDS: KeywordValues = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };

/// Reads a command line, with these bytes as `j.fio`, which may include itself.
fn read(args: &[OsString], file: &[u8]) -> Result<Parsed, Vec<Problem>> {
    let files = |name: &OsStr| match name.as_bytes() {
        b"j.fio" | b"-" => Ok(file.to_vec()),
        b"x" => Ok(b"bs=8k\ninclude j.fio\n".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let variables = |name: &OsStr| match name.as_bytes() {
        b"" => None,
        b"EQUALS" => Some("bs=4k".into()),
        b"COMMENT" => Some("4k;x\n[b]".into()),
        name => Some(OsString::from_vec(name.repeat(2))),
    };
    cli::read(args, &Environment { files: &files, variables: &variables, keywords: KEYWORDS, engines: NAMES })
}

/// Reads a job file.
pub(crate) fn read_job_file(file: &[u8]) -> Result<Parsed, Vec<Problem>> {
    let result = read(&["j.fio".into()], file);
    check(&result, "j.fio".len(), file);
    result
}

/// The job file without the lines that these problems name; `None` if they name none.
pub(crate) fn without(text: &str, problems: &[Problem]) -> Option<String> {
    let errors = problems.iter().filter(|problem| problem.level == ProblemLevel::Error);
    let wrong: BTreeSet<usize> = errors
        .filter(|problem| matches!(&problem.place.source, Origin::File(name) if **name == *"j.fio"))
        .map(|problem| problem.place.line as usize)
        .collect();
    let lines = text.split('\n').enumerate().filter(|(index, _)| !wrong.contains(&(index + 1)));
    let rest: Vec<&str> = lines.map(|(_, line)| line).collect();
    (!wrong.is_empty()).then(|| rest.join("\n"))
}

/// The job file parsed after removing every line with an error: most inputs of a fuzzer would get no further
/// otherwise.
pub(crate) fn read_what_fits(mut text: String) -> Option<(String, Parsed)> {
    loop {
        let problems = match read_job_file(text.as_bytes()) {
            Ok(parsed) => match cli::check(&parsed, NAMES) {
                problems if problems.iter().all(|problem| problem.level == ProblemLevel::Warning) => {
                    return Some((text, parsed));
                }
                problems => problems,
            },
            Err(problems) => problems,
        };
        text = without(&text, &problems)?;
    }
}

/// Checks that hold for every result.
fn check(result: &Result<Parsed, Vec<Problem>>, line_bytes: usize, file: &[u8]) {
    let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    let problems = match result {
        Ok(parsed) => {
            assert!(parsed.warnings.iter().all(|problem| problem.level == ProblemLevel::Warning));
            let _ = showcmd::print(parsed);
            &parsed.warnings
        }
        Err(problems) => {
            assert!(
                problems.iter().any(|problem| problem.level == ProblemLevel::Error),
                "refused without a reason"
            );
            problems
        }
    };
    for problem in problems {
        assert!(!problem.message().is_empty(), "{problem:?}");
        let place = &problem.place;
        match &place.source {
            Origin::File(name) if **name == *"j.fio" => {
                let line = lines.get(place.line as usize - 1);
                assert!(line.is_some_and(|line| place.column as usize <= line.len().max(1)), "{problem}");
            }
            Origin::CommandLine => assert!(place.column as usize <= line_bytes + 1, "{problem}"),
            Origin::File(_) | Origin::Derived => {}
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
    let typed = parts.next().unwrap_or_default();
    // Half of them are spelled out; the others are raw bytes.
    let typed = match typed.first() {
        Some(b'!'..=b'P') => typed.to_vec(),
        _ => spelled_out(typed).into_bytes(),
    };
    let file = parts.next().unwrap_or(b"[a]\nrw=read\n");
    let lines = typed.split(|byte| *byte == b'\n');
    let args: Vec<OsString> = lines.map(|line| OsString::from_vec(line.to_vec())).collect();
    let result = read(&args, file);
    check(&result, args.iter().map(|arg| arg.len() + 1).sum(), file);
    if let Ok(parsed) = result {
        let (_, _, problems) = resolve_program(&parsed.program);
        problems.iter().for_each(|problem| drop(problem.to_string()));
    }
}

/// The options of a built-in profile, an argument per line; the first byte chooses the profile.
pub fn profile_jobs(data: &[u8]) {
    let Some((choice, typed)) = data.split_first() else { return };
    let profile = ["--profile=tiobench", "--profile=act"][usize::from(*choice) % 2];
    let typed = spelled_out(typed);
    let args: Vec<OsString> = [profile].into_iter().chain(typed.lines()).map(OsString::from).collect();
    let result = read(&args, b"[a]\nrw=read\n");
    check(&result, args.iter().map(|arg| arg.len() + 1).sum(), b"");
    let Ok(parsed) = result else { return };
    let Some(profile) = &parsed.profile else { return };
    // What is wrong with an option of the profile is said of that option, not of what the profile makes of it.
    let problems = cli::check(&parsed, NAMES);
    let of_profile = problems.iter().filter(|problem| problem.place == profile.value_place);
    let errors: Vec<String> = of_profile
        .filter(|problem| problem.level == ProblemLevel::Error)
        .map(|problem| problem.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Variables and sums.
pub fn expansion(data: &[u8]) {
    let text = OsStr::from_bytes(data);
    let variable = |name: &OsStr| name.len().is_multiple_of(2).then(|| name.to_os_string());
    let expanded = expand::variables(text, &variable);
    if !data.contains(&b'$') {
        assert_eq!(expanded.text, text);
        assert_eq!(expand::keywords(text, &KEYWORDS, true).as_deref(), Ok(text));
    }
    let _ = expand::keywords(text, &KEYWORDS, true);
    let _ = expand::keywords(OsStr::from_bytes(&[data, b"*$ncpus"].concat()), &KEYWORDS, true);
}

/// Any option with any value: the two bytes that choose it, then the value.
pub fn option_value(data: &[u8]) {
    let [high, low, value @ ..] = data else { return };
    let specs: Vec<_> = every_option().collect();
    let spec = specs[(usize::from(*high) << 8 | usize::from(*low)) % specs.len()];
    for given in [Some(OsStr::from_bytes(value)), None] {
        if let Err(why) = spec.check(given) {
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
    let all = cli::check(parsed, NAMES);
    for section in &parsed.sections {
        let (options, given, problems) = resolve_job(section, NAMES);
        assert!(problems.iter().all(|problem| all.contains(problem)), "{problems:?} is not all in {all:?}");
        let (again, _, same) = resolve_job(section, NAMES);
        assert_eq!(format!("{options:?}{problems:?}"), format!("{again:?}{same:?}"), "results differ");
        for setting in section.settings() {
            let in_force = given.get(setting.spec).map(|given| &given.place);
            assert_eq!(in_force, section.last(setting.spec).map(|last| &last.place));
        }
    }
}
