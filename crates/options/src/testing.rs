//! What the tests of both grammars share: a small world given as values, and what was read written as text.
//!
//! Invariant: used by tests only.

use std::io;

use crate::cli::{self, Parsed};
use crate::expand::{Environment, Machine};
use crate::place::Problem;
use crate::section::Setting;
use crate::showcmd;

/// The machine of all tests.
pub(crate) const MACHINE: Machine = Machine { cpus: 2, memory_mib: 1000, page_bytes: 4096 };

/// Reads a command line in a world where `files` are the only files and `V` (`vv`), `B` (`4`) and `EQUALS`
/// (`bs=4k`) the only variables.
pub(crate) fn read_with(args: &[&str], files: &[(&str, &str)]) -> Result<Parsed, Vec<Problem>> {
    let read_file = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let variable = |name: &str| match name {
        "V" => Some("vv".to_string()),
        "B" => Some("4".to_string()),
        "EQUALS" => Some("bs=4k".to_string()),
        _ => None,
    };
    let environment = Environment { files: &read_file, variables: &variable, machine: MACHINE };
    let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
    cli::read(&args, &environment)
}

/// Reads one job file as `j.fio`.
pub(crate) fn read_text(text: &str) -> Result<Parsed, Vec<Problem>> {
    read_with(&["j.fio"], &[("j.fio", text)])
}

/// What `--showcmd` prints of a job file, or its problems.
pub(crate) fn shown(text: &str) -> String {
    match read_text(text) {
        Ok(parsed) => showcmd::print(&parsed).trim_end().to_string(),
        Err(problems) => texts(&problems),
    }
}

/// Problems, one after the other.
pub(crate) fn texts(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<String>>().join("\n")
}

/// Settings as `name=value`, separated by blanks.
pub(crate) fn settings(settings: &[Setting]) -> String {
    let text = |setting: &Setting| match &setting.value {
        Some(value) => format!("{}={value}", setting.spec.name),
        None => setting.spec.name.to_string(),
    };
    settings.iter().map(text).collect::<Vec<String>>().join(" ")
}

/// The sections of a command line as `name [globals] own`, or its problems.
pub(crate) fn sections(args: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    match read_with(args, files) {
        Ok(parsed) => {
            let text = |section: &crate::Section| {
                format!("{} [{}] {}", section.name, settings(&section.global), settings(&section.own))
            };
            parsed.sections.iter().map(text).collect()
        }
        Err(problems) => vec![texts(&problems)],
    }
}
