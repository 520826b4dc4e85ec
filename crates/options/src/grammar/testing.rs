//! Helpers for the tests of both grammars: an environment given as values, and the result as text.
//!
//! Invariant: used by tests only.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::cli::{self, Parsed};
use super::environment::{Environment, KeywordValues};
use super::showcmd;
use crate::problem::Problem;
use crate::section::Setting;
use crate::shown;
use crate::value::EngineName;

/// Engines that are built in, for tests; `net` is not.
pub(crate) const ENGINES: [EngineName; 6] = [
    EngineName::Psync,
    EngineName::Pvsync2,
    EngineName::Mmap,
    EngineName::Libaio,
    EngineName::IoUring,
    EngineName::Null,
];

/// The values of the keywords in all tests.
pub(crate) const KEYWORDS: KeywordValues = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };

/// Reads a command line in an environment with only these `files` and the variables `V` (`vv`), `B` (`4`) and `EQUALS`
/// (`bs=4k`).
pub(crate) fn read_with(args: &[&str], files: &[(&str, &str)]) -> Result<Parsed, Vec<Problem>> {
    let read_file = |name: &OsStr| {
        let found = files.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let variable = |name: &OsStr| match name.to_str()? {
        "V" => Some("vv".into()),
        "B" => Some("4".into()),
        "EQUALS" => Some("bs=4k".into()),
        _ => None,
    };
    let environment =
        Environment { files: &read_file, variables: &variable, keywords: KEYWORDS, engines: &ENGINES };
    cli::read(args, &environment)
}

/// Reads one job file as `j.fio`.
pub(crate) fn read_text(text: &str) -> Result<Parsed, Vec<Problem>> {
    read_with(&["j.fio"], &[("j.fio", text)])
}

/// Reads one job file of any bytes.
pub(crate) fn read_bytes(bytes: &[u8]) -> Result<Parsed, Vec<Problem>> {
    let file = |_: &OsStr| Ok(bytes.to_vec());
    cli::read(
        &["j.fio"],
        &Environment { files: &file, variables: &|_| None, keywords: KEYWORDS, engines: &ENGINES },
    )
}

/// What `--showcmd` prints of a job file, or its problems.
pub(crate) fn shown(text: &str) -> String {
    match read_text(text) {
        Ok(parsed) => shown::text(OsStr::from_bytes(showcmd::print(&parsed).trim_ascii_end())),
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
        Some(value) => format!("{}={}", setting.spec.name, shown::text(value)),
        None => setting.spec.name.to_string(),
    };
    settings.iter().map(text).collect::<Vec<String>>().join(" ")
}

/// The sections of a command line as `name [globals] own`, or its problems.
pub(crate) fn sections(args: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    match read_with(args, files) {
        Ok(parsed) => {
            let text = |section: &crate::Section| {
                format!(
                    "{} [{}] {}",
                    shown::text(&section.name),
                    settings(&section.global),
                    settings(&section.own)
                )
            };
            parsed.sections.iter().map(text).collect()
        }
        Err(problems) => vec![texts(&problems)],
    }
}
