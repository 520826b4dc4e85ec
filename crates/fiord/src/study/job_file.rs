//! A job file that a study starts from, and what all studies of typed jobs share.
//!
//! Invariant: it is read as fio reads it, and a value that is wrong is an error before anything runs.

use std::ffi::OsStr;
use std::path::Path;

use fiord_engine::registry;
use fiord_host::Machine;
use fiord_options::cli::{self, Parsed};
use fiord_options::value::{Bytes, Reading, Value};
use fiord_options::{Problem, ProblemLevel, Section, Setting, Spec, job};
use fiord_report::path::shown;

use super::options::Options;

/// Options that name the files of a job.
pub(crate) const FILES: [&Spec; 5] = [
    job::Files::filename,
    job::Files::directory,
    job::Files::filename_format,
    job::Files::opendir,
    job::Replay::read_iolog,
];

/// What was read, and its warnings.
///
/// # Errors
/// All errors of its values, with their places.
pub(crate) fn checked(parsed: Parsed) -> Result<(Vec<Section>, Vec<Problem>), String> {
    let problems = cli::check(&parsed, registry::NAMES);
    let (errors, odd): (Vec<Problem>, Vec<Problem>) =
        problems.into_iter().partition(|problem| problem.level == ProblemLevel::Error);
    if !errors.is_empty() {
        return Err(joined(&errors));
    }
    let Parsed { sections, mut warnings, .. } = parsed;
    warnings.extend(odd);
    Ok((sections, warnings))
}

/// Problems, one below the other.
pub(crate) fn joined(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A setting as text.
pub(crate) fn as_typed(setting: &Setting) -> String {
    match setting.shown_value() {
        Some(value) => format!("{}={}", setting.spec.name, shown(value)),
        None => setting.spec.name.to_string(),
    }
}

/// A job file as read.
pub(crate) struct JobFile {
    pub sections: Vec<Section>,
    /// Warnings about it.
    pub warnings: Vec<Problem>,
}

impl JobFile {
    /// Reads a job file.
    ///
    /// # Errors
    /// What is wrong with it, with places.
    pub(crate) fn read(path: &Path, machine: &Machine, options: &Options) -> Result<JobFile, String> {
        let parsed = options.parsed(&[path.as_os_str()], machine).map_err(|problems| joined(&problems))?;
        if parsed.sections.is_empty() {
            return Err(format!("{}: the job file has no section; add [job] and its options", shown(path)));
        }
        let (sections, warnings) = checked(parsed)?;
        Ok(JobFile { sections, warnings })
    }

    fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.sections.iter().flat_map(Section::settings)
    }

    /// The setting that names files, if the job names its files itself.
    pub(crate) fn names_files(&self) -> Option<&Setting> {
        self.settings().find(|setting| setting.spec.is_one_of(&FILES))
    }

    /// The largest size that a section has, in bytes; `None` if none has one, or a share of its file.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        let sizes = self.settings().filter(|setting| setting.spec == job::Amount::size);
        let bytes = sizes.filter_map(|setting| Bytes::parse(setting.text()?, &mut Reading::default()).ok());
        bytes.map(|Bytes(bytes)| bytes).max()
    }

    /// Lines of a heading: each section with its settings.
    pub(crate) fn heading(&self) -> Vec<(&'static str, String)> {
        let line = |section: &Section| {
            let settings = section.settings().filter(|setting| setting.spec != job::General::name);
            let settings: Vec<String> = settings.map(as_typed).collect();
            format!("[{}] {}", shown(OsStr::new(&section.name)), settings.join(" "))
        };
        let names = ["Job"].into_iter().chain(std::iter::repeat(""));
        names.zip(self.sections.iter().map(line)).collect()
    }
}
