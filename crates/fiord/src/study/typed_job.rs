//! The job that a study starts from, as typed: a sweep, or a profile.
//!
//! Invariant: it is read as fio reads it, and an option that the study cannot honour is refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Command;
use fiord_engine::registry;
use fiord_host::Machine;
use fiord_lab::sweep::Key;
use fiord_lab::{StudyTarget, ranges};
use fiord_options::cli::{self, Parsed};
use fiord_options::environment::KeywordValues;
use fiord_options::program::ProgramOptions;
use fiord_options::value::{Bytes, EngineName, NamedEngine, Reading, Value};
use fiord_options::{Lookup, Place, Problem, Scope, Section, Setting, Spec, job, lookup, resolve_job, table};
use fiord_report::path::shown;
use fiord_session::run::environment;
use fiord_session::study::scratch::ScratchFiles;
use fiord_session::study::target::{self, Space};
use fiord_sys::signal;

use super::job_file::{self, FILES, joined};
use super::options::Options;

/// Size of the scratch file, at most, and of what is used of a device.
pub(crate) const SIZE_BYTES: u64 = 1 << 30;

/// The engine that a value of `ioengine` names.
pub(crate) fn named_engine(value: &str) -> Option<EngineName> {
    NamedEngine::of(value).known()
}

/// The job as typed.
pub(crate) struct TypedJob {
    pub(crate) sections: Vec<Section>,
    /// The values of the reserved keywords.
    keywords: KeywordValues,
    /// The subcommand, and the name of a job without one.
    name: &'static str,
    /// Warnings about how it was typed.
    pub(crate) warnings: Vec<Problem>,
}

impl TypedJob {
    /// Reads the arguments of `fiord NAME`.
    pub(crate) fn read(
        name: &'static str,
        of_fio: &[OsString],
        machine: &Machine,
        options: &Options,
    ) -> Result<TypedJob, String> {
        let mut parsed = options.parsed(of_fio, machine).map_err(|problems| joined(&problems))?;
        if parsed.sections.is_empty() && parsed.files.is_empty() {
            let named: Vec<OsString> =
                of_fio.iter().cloned().chain([format!("--name={name}").into()]).collect();
            parsed = options.parsed(&named, machine).map_err(|problems| joined(&problems))?;
        }
        fit_to_study(name, &parsed)?;
        let (sections, warnings) = job_file::checked(parsed)?;
        Ok(TypedJob { sections, keywords: environment::of(machine).keywords, name, warnings })
    }

    /// The values of a list with their keywords replaced, as the command line replaces them.
    pub(crate) fn expanded(&self, spec: &'static Spec, list: &OsStr) -> Result<OsString, String> {
        let place = Place::derived();
        let expanded = list.as_bytes().split(|byte| *byte == b',').map(|value| {
            let value = Some(OsStr::from_bytes(value).to_os_string());
            let expanded = lookup::with_keywords(spec, value, &self.keywords, &place);
            expanded.map(Option::unwrap_or_default).map_err(|problem| problem.message())
        });
        Ok(expanded.collect::<Result<Vec<_>, _>>()?.join(OsStr::new(",")))
    }

    /// Checks that a value is parsed to its last character and as a single value: otherwise a row would be labelled
    /// with a value that was used only in part.
    pub(crate) fn reads_whole(
        &self,
        spec: &'static Spec,
        value: &ranges::SweptValue,
        number: Option<ranges::Number<'_>>,
    ) -> Result<(), String> {
        if let (Some((from, to)), Some(number)) = (value.text.split_once('-'), number)
            && [from, to].iter().all(|end| number(end.trim()).is_some())
            && !spec.kind.has_ranges()
        {
            return Err(format!(
                "{:?} is not a single value; write a range as {}..{}",
                value.text,
                from.trim(),
                to.trim()
            ));
        }
        let mut section = Section::new(self.name);
        let decides =
            |setting: &&Setting| setting.spec.is_one_of(&[job::General::kb_base, job::Queue::ioengine]);
        section.own.extend(self.settings().filter(decides).cloned());
        section.own.push(Setting::new(spec, &value.setting));
        let (_, _, problems) = resolve_job(&section, registry::NAMES);
        match problems.iter().find(|problem| problem.option == Some(spec)) {
            Some(problem) => Err(format!("{}; write the value in full, one at a time", problem.message())),
            None => Ok(()),
        }
    }

    /// Checks that no option of one engine is set if the study includes another engine.
    pub(crate) fn engines_have_their_options(&self, keys: &[Key]) -> Result<(), String> {
        let swept = keys.iter().filter(|key| key.spec == job::Queue::ioengine).flat_map(|key| &key.values);
        for engine in swept {
            for setting in self.settings() {
                if let Scope::Engine(engines) = setting.spec.scope
                    && named_engine(&engine.text).is_none_or(|named| !engines.contains(&named))
                {
                    let (name, engines) = (setting.spec.name, EngineName::join(engines, " and "));
                    return Err(format!(
                        "{name} is an option of {engines}, not of {}; remove it, or leave that engine out",
                        engine.text
                    ));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.sections.iter().flat_map(Section::settings)
    }

    /// The last value a job option is set to.
    pub(crate) fn value(&self, option: &Spec) -> Option<&str> {
        self.settings().filter(|setting| setting.spec == option).last()?.text()
    }

    pub(crate) fn engines(&self) -> Vec<EngineName> {
        let engines = self.settings().filter(|setting| setting.spec == job::Queue::ioengine);
        engines.filter_map(Setting::text).filter_map(named_engine).chain([EngineName::default()]).collect()
    }

    pub(crate) fn is_given(&self, option: &Spec, keys: &[Key]) -> bool {
        self.settings().any(|setting| setting.spec == option) || keys.iter().any(|key| key.spec == option)
    }

    /// The option that names its files, if it names files itself.
    pub(crate) fn names_files(&self, keys: &[Key]) -> Option<&'static Spec> {
        FILES.into_iter().find(|option| self.is_given(option, keys))
    }

    /// A scratch file in the current directory, if the job names no file.
    pub(crate) fn own_target(
        &self,
        keys: &[Key],
        dry_run: bool,
    ) -> Result<Option<(StudyTarget, ScratchFiles)>, String> {
        // Without handlers a study still runs, but a signal ends it without printing its rows.
        let _ = signal::record_stop_requests();
        if self.names_files(keys).is_some() {
            return Ok(None);
        }
        let size =
            self.value(job::Amount::size).and_then(|text| Bytes::parse(text, &mut Reading::default()).ok());
        let space = size.map_or(Space::AtMost(SIZE_BYTES), |size| Space::Exactly(size.0));
        let (target, scratch) = target::at(Path::new("."), self.name, space, dry_run)?;
        Ok(scratch.map(|scratch| (target, scratch)))
    }
}

/// Takes the argument that is a block device, which no job file is; `None` if there is none.
///
/// # Errors
/// There are several.
pub(crate) fn take_device(of_fio: &mut Vec<OsString>) -> Result<Option<PathBuf>, String> {
    let is_value = |at: usize| {
        let Some(option) = at.checked_sub(1).and_then(|before| of_fio[before].to_str()) else { return false };
        let name = option.strip_prefix('-').filter(|name| !name.contains('='));
        let spec = name.map(|name| table::find_job_option(name.trim_start_matches('-'), false, &[]));
        matches!(spec, Some(Lookup::Found(spec)) if cli::needs_value(spec))
    };
    let is_device = |at: &usize| {
        let found = fs::metadata(&of_fio[*at]);
        found.is_ok_and(|found| found.file_type().is_block_device()) && !is_value(*at)
    };
    match (0..of_fio.len()).filter(is_device).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [only] => Ok(Some(of_fio.remove(only).into())),
        [_, second, ..] => {
            Err(format!("{}: a second device; name one, and run others after it", shown(&of_fio[second])))
        }
    }
}

/// Refuses options that a study cannot honour: it has its own output, and starts from one job file.
fn fit_to_study(study: &str, parsed: &Parsed) -> Result<(), String> {
    if let Some(setting) = parsed.program.iter().find(|setting| setting.spec != ProgramOptions::section) {
        let name = &setting.spelling;
        return Err(format!("--{name} applies to a run, not to a {study}; remove it (fiord {study} --help)"));
    }
    if parsed.files.len() > 1 {
        return Err(format!("a {study} starts from one job file; name only one"));
    }
    if parsed.sections.is_empty() {
        return Err("the job file has no section; add [job] and its options".to_string());
    }
    Ok(())
}

/// Separates the study's own options, each with its value, from fio's. Both take one dash or two, as in fio.
pub(crate) fn split(command: &Command, arguments: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let mut own = Vec::new();
    let mut of_fio = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let bytes = argument.as_bytes();
        let body = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-")).unwrap_or_default();
        let equals = body.iter().position(|byte| *byte == b'=');
        let name = &body[..equals.unwrap_or(body.len())];
        if [&b"help"[..], b"h"].contains(&name) {
            own.push(OsString::from("--help"));
            continue;
        }
        let is_own = |known: &&clap::Arg| {
            let short = known.get_short().is_some_and(|short| name == [short as u8]);
            known.get_long().is_some_and(|long| long.as_bytes() == name) || short
        };
        let Some(known) = command.get_arguments().find(is_own) else {
            of_fio.push(argument.clone());
            continue;
        };
        let long = known.get_long().unwrap_or_default().as_bytes();
        own.push(OsStr::from_bytes(&[b"--", long, &body[name.len()..]].concat()).to_os_string());
        if equals.is_none() && known.get_action().takes_values() {
            own.extend(arguments.next().cloned());
        }
    }
    (own, of_fio)
}

/// How long sections run, stage after stage, jobs of a stage in parallel. Zero if no times are set.
pub(crate) fn time(sections: &[Section]) -> Duration {
    let mut stages_us = vec![0];
    for section in sections {
        let (job, _, _) = resolve_job(section, registry::NAMES);
        if job.process.stonewall.0 {
            stages_us.push(0);
        }
        let last = stages_us.len() - 1;
        stages_us[last] = stages_us[last].max(job.time.runtime.us + job.time.ramp_time.us);
    }
    Duration::from_micros(stages_us.iter().sum())
}
