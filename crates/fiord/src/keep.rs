//! Records runs and studies in the history.
//!
//! Invariant: a history that cannot be used changes neither the output nor the exit status; a run is recorded after
//! both.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::slice;

use fiord_fleet::{Fate, FleetReport, HostRun};
use fiord_host::{DeviceIdentity, Machine};
use fiord_lab::StudyTarget;
use fiord_options::{masked, secret};
use fiord_plan::Plan;
use fiord_report::RunReport;
use fiord_report::path::{shown, text};
use fiord_session::run::assemble::headings;
use fiord_session::run::files::files;
use fiord_session::run::version::FIORD_VERSION;
use fiord_stats::{Gather, OrderBy};
use fiord_store::{
    Conclusion, Draft, History, KeptRun, Printed, RunFacts, RunKind, StoreError, StudyIdentity,
};
use fiord_sys::errno::Errno;
use fiord_sys::{clock, sealed_map};
use fiord_worker::{Failure, TargetOpener};

use crate::config;
use crate::hosts::counted;
use crate::output::say;
use crate::status;

/// Number of job names in a title, which must fit into a list.
const NAMES_MAX: usize = 3;
/// Number of targets recorded individually; of more, their directories are recorded.
const FILES_MAX: usize = 16;

/// A run to be recorded when it ends.
pub(crate) struct Keeper {
    command: String,
    host: String,
    kernel: String,
    tag: Option<String>,
    started_ms: u64,
    /// By the monotonic clock: the time of day may be set meanwhile.
    began_ns: u64,
}

/// What is known of a study of this kind when it starts.
pub(crate) fn facts_of_study(kind: &str, machine: &Machine, tag: Option<&str>) -> RunFacts {
    Keeper::of_process(machine, tag).facts(RunKind::from_name(kind.to_string()))
}

impl Keeper {
    /// With the arguments of this process.
    fn of_process(machine: &Machine, tag: Option<&str>) -> Keeper {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        Keeper::new(&arguments, machine, tag)
    }

    /// For a run that starts now, with these arguments.
    pub(crate) fn new<A: AsRef<OsStr>>(arguments: &[A], machine: &Machine, tag: Option<&str>) -> Keeper {
        Keeper {
            command: command_of(arguments),
            host: machine.hostname.clone(),
            kernel: machine.kernel_release.clone(),
            tag: tag.map(str::to_string),
            started_ms: clock::realtime_ms(),
            began_ns: clock::monotonic_ns(),
        }
    }

    /// Milliseconds since it started.
    fn elapsed_ms(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.began_ns) / 1_000_000
    }

    /// Records the run, or prints why it cannot.
    pub(crate) fn keep(self, plan: &Plan, report: &RunReport, exit_status: u8) {
        let facts = RunFacts {
            title: title(plan),
            elapsed_ms: self.elapsed_ms(),
            exit_status: Some(exit_status),
            ..self.facts(RunKind::Fio)
        };
        if let Err(why) = open().and_then(|mut history| keep_run(&mut history, facts, plan, report)) {
            say_not_kept("run", &why);
        }
    }

    /// Records a run on hosts as it was printed, and the run of each host below it; or prints why it cannot.
    pub(crate) fn keep_on_hosts(self, fleet: &FleetReport, exit_status: u8, summary: &Conclusion) {
        if let Err(why) =
            open().and_then(|mut history| self.try_on_hosts(&mut history, fleet, exit_status, summary))
        {
            say_not_kept("run", &why);
        }
    }

    fn try_on_hosts(
        &self,
        history: &mut History,
        fleet: &FleetReport,
        exit_status: u8,
        summary: &Conclusion,
    ) -> Result<(), String> {
        let reports = || fleet.counted().filter_map(|(run, _)| Some((run, run.report.as_ref()?)));
        let jobs = title_of(reports().flat_map(|(_, report)| &report.jobs).map(|job| job.name.clone()));
        let title = format!("{jobs} on {}", counted(fleet.hosts.len()));
        let targets = targets_of_hosts(&fleet.hosts);
        let facts = RunFacts { title, targets, ..self.facts(RunKind::Hosts) };
        let run = described(history.keep(&Draft { facts, printed: None, heading: Some(""), summary: None }))?;
        for (host, report) in reports() {
            let printed = Some(Printed { headings: "", report });
            let machine = host.facts.as_ref();
            let facts = RunFacts {
                title: host.host.name.clone(),
                targets: targets_of_hosts(slice::from_ref(host)),
                host: machine.map_or_else(|| host.host.address.clone(), |facts| facts.hostname.clone()),
                kernel: machine.map(|facts| facts.kernel.clone()),
                exit_status: Some(match host.fate {
                    Fate::Complete => status::SUCCESS,
                    Fate::Stopped => exit_status,
                    _ => status::FAILED,
                }),
                ..self.part(run, report)
            };
            described(history.keep(&Draft { facts, printed, heading: None, summary: None }))?;
        }
        described(history.conclude(run, self.elapsed_ms(), exit_status, summary))
    }

    /// The facts of a run that is part of another, which has the name.
    fn part(&self, parent: i64, report: &RunReport) -> RunFacts {
        let elapsed_s = report.jobs.iter().map(|job| job.elapsed_s).max().unwrap_or(0);
        let started_ms = report.timestamp_ms.saturating_sub(elapsed_s * 1000);
        RunFacts {
            parent: Some(parent),
            started_ms,
            elapsed_ms: report.timestamp_ms.saturating_sub(started_ms),
            tag: None,
            ..self.facts(RunKind::Fio)
        }
    }

    /// The facts known at the start.
    fn facts(&self, kind: RunKind) -> RunFacts {
        RunFacts {
            kind,
            parent: None,
            title: String::new(),
            command: self.command.clone(),
            targets: Vec::new(),
            host: self.host.clone(),
            fiord_version: FIORD_VERSION.to_string(),
            started_ms: self.started_ms,
            utc_offset_s: clock::utc_offset_s(),
            elapsed_ms: 0,
            exit_status: None,
            tag: self.tag.clone(),
            kernel: Some(self.kernel.clone()),
        }
    }
}

/// Records a study as it proceeds: first itself, then each run as it ends, then the result.
pub(crate) struct StudyKeeper {
    keeper: Keeper,
    history: History,
    study: i64,
    /// Whether the study has a target, rather than jobs that name their files.
    has_place: bool,
}

impl StudyKeeper {
    /// Records the start of a study of this kind at `target`, if it has one, with its heading; or prints why it
    /// cannot.
    pub(crate) fn begin(
        kind: &str,
        purpose: &str,
        target: Option<&Path>,
        heading: &str,
        machine: &Machine,
        tag: Option<&str>,
    ) -> Option<StudyKeeper> {
        let keeper = Keeper::of_process(machine, tag);
        let facts = RunFacts {
            title: title_of_study(kind, purpose),
            targets: target.map(self::target).into_iter().collect(),
            ..keeper.facts(RunKind::from_name(kind.to_string()))
        };
        let kept = open().and_then(|mut history| {
            let study = described(history.keep(&Draft {
                facts,
                printed: None,
                heading: Some(heading),
                summary: None,
            }))?;
            Ok((history, study))
        });
        match kept {
            Ok((history, study)) => Some(StudyKeeper { keeper, history, study, has_place: target.is_some() }),
            Err(why) => {
                say_not_kept("study", &why);
                None
            }
        }
    }

    /// Goes on with the study of this number; or prints why it cannot.
    pub(crate) fn resume(study: i64, machine: &Machine, tag: Option<&str>) -> Option<StudyKeeper> {
        let keeper = Keeper::of_process(machine, tag);
        let reopened = open().and_then(|mut history| described(history.reopen(study)).map(|()| history));
        let history = reopened.map_err(|why| say_not_kept("study", &why)).ok()?;
        Some(StudyKeeper { keeper, history, study, has_place: true })
    }

    /// Records the files used by its runs, if it has no target; or prints why it cannot.
    pub(crate) fn works_on(&mut self, files: &BTreeSet<PathBuf>) {
        if self.has_place {
            return;
        }
        if let Err(why) = described(
            self.history
                .add_targets(self.study, &targets(&files.iter().map(PathBuf::as_path).collect(), target)),
        ) {
            say_not_kept("study's target", &why);
        }
    }

    /// Records what it is about, by which it is found again; or prints why it cannot.
    pub(crate) fn is_about(&mut self, identity: &StudyIdentity) {
        if let Err(why) = described(self.history.identify(self.study, identity)) {
            say_not_kept("study's devices", &why);
        }
    }

    /// Records one of its runs.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        plan: &Plan,
        report: &RunReport,
        exit_status: u8,
    ) -> Result<(), String> {
        let (title, exit_status) = (name.to_string(), Some(exit_status));
        let facts = RunFacts { title, exit_status, ..self.keeper.part(self.study, report) };
        keep_run(&mut self.history, facts, plan, report)
    }

    /// Records the result, or prints why it cannot.
    pub(crate) fn conclude(mut self, exit_status: u8, summary: &Conclusion) {
        let elapsed_ms = self.keeper.elapsed_ms();
        if let Err(why) = may_map() {
            say_not_kept("study's result", &why);
            // Closing the history unmaps memory.
            return std::mem::forget(self);
        }
        if let Err(why) = described(self.history.conclude(self.study, elapsed_ms, exit_status, summary)) {
            say_not_kept("study's result", &why);
        }
    }
}

/// What a study at these targets is about that keeps the preconditioning of these runs, as the history returns it.
pub(crate) fn identity_of_study(targets: &[&StudyTarget], kept: &[KeptRun]) -> StudyIdentity {
    let mut kept = kept.to_vec();
    kept.order_by(Ord::cmp);
    StudyIdentity { devices: targets.iter().map(|target| device_words(&target.path)).collect(), kept }
}

/// What identifies a device or file; of anything else its path.
pub(crate) fn device_words(path: &Path) -> Vec<String> {
    let mut words = DeviceIdentity::of(path).map_or_else(|_| vec![target(path)], |identity| identity.words);
    words.sort_unstable();
    words.dedup();
    words
}

/// The title of a study of this kind and purpose in lists.
pub(crate) fn title_of_study(kind: &str, purpose: &str) -> String {
    format!("{kind}: {purpose}")
}

/// Records a run: its facts, its targets, its headings and its report.
fn keep_run(history: &mut History, facts: RunFacts, plan: &Plan, report: &RunReport) -> Result<(), String> {
    may_map()?;
    let headings = headings(plan);
    let printed = Some(Printed { headings: &headings, report });
    // A file system that did not answer a job would not tell where a link leads either.
    let answers = report.jobs.iter().all(|job| job.error != Errno::ETIMEDOUT.0);
    let facts =
        RunFacts { targets: targets(&files(plan), if answers { target } else { unfollowed }), ..facts };
    described(history.keep(&Draft { facts, printed, heading: None, summary: None })).map(|_| ())
}

/// Opens the history, creating it if necessary.
fn open() -> Result<History, String> {
    may_map()?;
    place().and_then(|path| described(History::open(&path)))
}

/// Whether memory can be mapped, as SQLite does; else it would wait until a file system goes on.
fn may_map() -> Result<(), String> {
    if sealed_map::is_sealed() { Err(sealed_map::HELD.to_string()) } else { Ok(()) }
}

fn described<T>(result: Result<T, StoreError>) -> Result<T, String> {
    result.map_err(|why| why.to_string())
}

/// Prints that something could not be recorded, which is not a failure.
pub(crate) fn say_not_kept(what: &str, why: &str) {
    say(&format!(
        "fiord: this {what} could not be recorded in the history (--no-history turns it off): {why}\n"
    ));
}

/// The path of the history.
pub(crate) fn place() -> Result<PathBuf, String> {
    let path = fiord_store::default_path(config::variable)
        .ok_or_else(|| "neither XDG_STATE_HOME nor HOME is set".to_string())?;
    // SQLite would create a database on whatever is there, even a device.
    let refused = |failure: Failure| format!("{}: {}", shown(&path), failure.reason());
    TargetOpener::default().may_write(&path).map_err(refused)?;
    Ok(path)
}

/// The names of the jobs, each once.
fn title(plan: &Plan) -> String {
    title_of(plan.jobs.iter().map(|job| text(&job.name)))
}

/// Names in a title, each once.
pub(crate) fn title_of(all: impl Iterator<Item = String>) -> String {
    let mut seen = BTreeSet::new();
    let mut names: Vec<String> = all.filter(|name| seen.insert(name.clone())).collect();
    let rest = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let names = names.join(", ");
    if rest > 0 { format!("{names} and {rest} more") } else { names }
}

/// Files as they are recorded; of many files, their directories.
fn targets(files: &BTreeSet<&Path>, name: fn(&Path) -> String) -> Vec<String> {
    let many = files.len() > FILES_MAX;
    let places = files.iter().map(|file| if many { file.parent().unwrap_or(file) } else { file });
    // Each directory once: to follow its links takes longer than to probe a file.
    let places: BTreeSet<&Path> = places.gather();
    let names: BTreeSet<String> = places.into_iter().map(name).gather();
    names.into_iter().collect()
}

/// The files of hosts, as these call them.
fn targets_of_hosts(hosts: &[HostRun]) -> Vec<String> {
    let files = hosts.iter().flat_map(|host| &host.files).map(PathBuf::as_path).gather();
    targets(&files, |path| name_of(&without_credentials(path)))
}

/// A file, device or directory as it is recorded and looked up: its absolute path with all links followed, the same
/// whatever name it was given by.
pub(crate) fn target(path: &Path) -> String {
    name_of(&real(&absolute(&without_credentials(path))))
}

/// The same with links left as they are, without a look at the file system.
fn unfollowed(path: &Path) -> String {
    name_of(&absolute(&without_credentials(path)))
}

/// A target that is a URL, as it may be recorded.
fn without_credentials(path: &Path) -> PathBuf {
    PathBuf::from(secret::in_urls(path.as_os_str()))
}

/// The absolute path, with links left as they are.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    match path.as_os_str().is_empty() {
        true => std::env::current_dir().unwrap_or_default(),
        false => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// The path with existing links followed; the file itself may no longer exist.
fn real(path: &Path) -> PathBuf {
    match (std::fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

/// An absolute path as it is recorded. A name that is not UTF-8 follows a second slash, with its bytes as `\xff`, so
/// that no other path has the same text.
pub(crate) fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for part in path.components().filter(|part| *part != Component::RootDir) {
        let part = part.as_os_str();
        name += if part.to_str().is_none() { "//" } else { "/" };
        name += &text(part);
    }
    if name.is_empty() { "/".to_string() } else { name }
}

/// The command line of fiord with these arguments, without secrets.
pub(crate) fn command_of<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let words = std::iter::once("fiord".into()).chain(masked::of_arguments(arguments));
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word quoted for a shell; unprintable text uses `$'…'` with escaped bytes.
fn quoted(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_string(),
        Some(text) if !text.chars().any(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte {
                b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            };
            format!("$'{}'", word.as_bytes().iter().map(byte).collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        for (word, expected) in [
            ("--name=a", "--name=a"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
        assert_eq!(quoted(OsStr::from_bytes(b"a\n'\xff")), r"$'a\x0a\'\xff'");
    }
}
