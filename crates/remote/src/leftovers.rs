//! What agents have left on this machine: copies of the program, and reports of runs whose controller was lost.
//!
//! Invariant: a file is removed only if its place, its name and its owner are those of what an agent leaves, a copy of the
//! program also only by its SHA-256, and nothing while an agent works here. No symbolic link is followed at these places.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fiord_session::Ending;
use fiord_session::run::environment;
use fiord_stats::OrderBy;
use fiord_store::state_path;
use fiord_sys::errno::error_text;
use fiord_sys::{process, processes, thread};
use fiord_wire::agent::digest;
use fiord_wire::message::{LeftReport, StudyCommand, Told};
use fiord_wire::{Cleaned, Collected, Prepare};

use crate::agent_study::StudyAgent;
use crate::spool;

/// What is asked of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// To remove what others left.
    Clean,
    /// To list the reports that others left, with the contents of those of this run.
    Collect(Option<String>),
}

impl Task {
    const SUBCOMMAND: &'static [u8] = b"hosts";
    const CLEAN: &'static [u8] = b"--clean";
    const COLLECT: &'static [u8] = b"--collect";

    /// The command that asks for it.
    fn words(&self) -> Vec<Vec<u8>> {
        let words = match self {
            Task::Clean => vec![Task::SUBCOMMAND, Task::CLEAN],
            Task::Collect(None) => vec![Task::SUBCOMMAND, Task::COLLECT],
            Task::Collect(Some(run)) => vec![Task::SUBCOMMAND, Task::COLLECT, run.as_bytes()],
        };
        words.into_iter().map(<[u8]>::to_vec).collect()
    }

    /// What a command asks for, if it is one of these.
    pub(crate) fn of(command: &StudyCommand) -> Option<Task> {
        let words: Vec<&[u8]> = command.words.iter().map(Vec::as_slice).collect();
        match words[..] {
            [Task::SUBCOMMAND, Task::CLEAN] => Some(Task::Clean),
            [Task::SUBCOMMAND, Task::COLLECT] => Some(Task::Collect(None)),
            [Task::SUBCOMMAND, Task::COLLECT, run] => {
                Some(Task::Collect(Some(String::from_utf8_lossy(run).into_owned())))
            }
            _ => None,
        }
    }
}

/// The option of the main process of a pod, which is no agent.
const HOLDS: &[u8] = b"--hold";

/// The name of the process of an agent that cleans, by which others tell it from one at work.
const CLEANS: &str = "fiord-clean";

/// The end of the name of a report that is being written.
const UNFINISHED: &str = ".tmp";

/// A larger file is no copy of the program.
const COPY_BYTES_MAX: u64 = 1 << 30;

/// What asks the agent of a host of this name for it.
pub fn request(host: &str, task: &Task) -> Prepare {
    let study = Some(StudyCommand { words: task.words(), ..StudyCommand::default() });
    Prepare { run: format!("left-{}-{host}", std::process::id()), study, ..Prepare::default() }
}

/// The report of a run on a host of this name among those that a machine has of the run: that of another host, if it is the
/// only one.
pub fn report_of<'r>(reports: &'r [LeftReport], run: &str, host: &str) -> Option<&'r LeftReport> {
    let name = spool::file_name(&format!("{run}-{host}"));
    let only = reports.first().filter(|_| reports.len() == 1);
    reports.iter().find(|report| report.name == name).or(only)
}

/// The run and the host of a report's name.
pub fn run_and_host(name: &str) -> (&str, &str) {
    let host_at = name.match_indices('-').nth(1).map_or(name.len(), |(at, _)| at);
    (&name[..host_at], name[host_at..].trim_start_matches('-'))
}

/// Does it here, and tells the controller.
pub(crate) fn carry_out(agent: &mut StudyAgent, task: &Task) -> Result<(), Told> {
    // Before the controller lets any agent begin: several may be on this machine.
    let _ = thread::set_name(CLEANS);
    let machine = environment::machine().map_err(|text| Told { text, is_unsafe: false })?;
    if agent.planned(&machine, &BTreeMap::new()) {
        let places = Places::of(|name| env::var_os(name));
        if let Task::Collect(run) = task {
            agent.ended(&places.collect(run.as_deref()), Ending::Complete, None);
            return Ok(());
        }
        let running = at_work(&places);
        let cleaned = match running.is_empty() {
            true => places.clean(),
            false => Cleaned { running, ..Cleaned::default() },
        };
        agent.ended(&cleaned, Ending::Complete, None);
    }
    Ok(())
}

/// The agents of this user, but for this process and pods' own.
pub(crate) fn agents() -> impl Iterator<Item = (u32, String)> {
    let is_agent = |words: &[Vec<u8>]| {
        let [program, command, ..] = words else { return false };
        let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_holding = words.iter().any(|word| word == HOLDS);
        command == b"agent" && !is_holding && (name.starts_with(b"fiord") || name.starts_with(b"agent-"))
    };
    let all = processes::command_lines(process::effective_user()).into_iter();
    all.filter(move |(id, _, words)| *id != std::process::id() && is_agent(words))
        .map(|(id, name, _)| (id, name))
}

/// Those that may leave files at these places and do anything else than this one.
fn at_work(places: &Places) -> Vec<u32> {
    agents()
        .filter(|(_, name)| name != CLEANS)
        .map(|(id, _)| id)
        .filter(|id| {
            let variables = processes::environment(*id);
            // Of one that does not tell it is not known where it leaves files.
            variables.is_none_or(|variables| {
                Places::of(|name| variables.get(OsStr::new(name)).cloned()).meets(places)
            })
        })
        .collect()
}

/// Where agents leave files.
struct Places {
    /// Copies of the program.
    copies: Option<PathBuf>,
    /// Reports.
    spool: Option<PathBuf>,
    /// Who owns what agents of this user leave.
    user: u32,
}

impl Places {
    /// Those of a process with these variables.
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Places {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // As in the script that puts them there.
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Places {
            copies: caches.map(|caches| caches.join("fiord")),
            spool: state_path(&variable, spool::NAME),
            user: process::effective_user(),
        }
    }

    /// Whether others have one of these places.
    fn meets(&self, others: &Places) -> bool {
        let same = |one: &Option<PathBuf>, other: &Option<PathBuf>| one.is_some() && one == other;
        same(&self.copies, &others.copies) || same(&self.spool, &others.spool)
    }

    #[allow(clippy::disallowed_methods, reason = "a directory that only agents make, if it is empty")]
    fn clean(&self) -> Cleaned {
        let mut cleaned = Cleaned::default();
        if let Some(copies) = &self.copies {
            self.clean_directory(copies, &mut cleaned, is_copy);
        }
        if let Some(spool) = &self.spool {
            self.clean_directory(spool, &mut cleaned, |name, _, _| Ok(is_report(name)));
            if self.is_own_directory(spool) == Ok(true) && fs::remove_dir(spool).is_ok() {
                cleaned.removed.push((spool.to_string_lossy().into_owned(), 0));
            }
        }
        cleaned
    }

    /// Whether it is there, and is a directory that nobody else puts files into. The error: what it is instead.
    fn is_own_directory(&self, path: &Path) -> Result<bool, String> {
        const OTHERS_WRITE: u32 = 0o002;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error_text(&error)),
            Ok(known) if !known.is_dir() => Err("it is no directory: look at what is there".to_string()),
            Ok(known) if known.uid() != self.user => Err("another user owns it".to_string()),
            Ok(known) if known.mode() & OTHERS_WRITE != 0 => {
                Err("others may write to it: look at what is there, and `chmod o-w` it".to_string())
            }
            Ok(_) => Ok(true),
        }
    }

    /// The files of this user in a directory of their own, by name; none if it is not there. The error: why it is not read.
    fn own_files(&self, directory: &Path) -> Result<Vec<(PathBuf, String, Metadata)>, String> {
        if !self.is_own_directory(directory)? {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(directory).map_err(|error| error_text(&error))?;
        let own = |path: PathBuf| {
            let known = fs::symlink_metadata(&path).ok()?;
            let name = path.file_name()?.to_str()?.to_string();
            (known.is_file() && known.uid() == self.user).then_some((path, name, known))
        };
        let mut files: Vec<_> = entries.flatten().filter_map(|entry| own(entry.path())).collect();
        files.order_by(|one, other| one.0.cmp(&other.0));
        Ok(files)
    }

    /// The reports that are here, with the contents of those of `run`.
    fn collect(&self, run: Option<&str>) -> Collected {
        let Some(spool) = &self.spool else { return Collected::default() };
        let files = match self.own_files(spool) {
            Ok(files) => files,
            Err(why) => {
                let problem = Some(format!("{}: {why}", spool.to_string_lossy()));
                return Collected { problem, ..Collected::default() };
            }
        };
        let mut collected = Collected::default();
        for (path, name, known) in files {
            let is_asked_for = run.is_none_or(|run| run_and_host(&name).0 == run);
            if !is_asked_for || !is_report(&name) || name.ends_with(UNFINISHED) {
                continue;
            }
            let read = if run.is_some() { fs::read(&path) } else { Ok(Vec::new()) };
            match read {
                Ok(kept) => {
                    collected.reports.push(LeftReport { name, size_bytes: known.len(), kept });
                }
                Err(error) => collected.problem = Some(format!("{name}: {}", error_text(&error))),
            }
        }
        collected
    }

    /// Removes the files of a directory that `is_left` says an agent left, by their names and contents. Its error: why
    /// such a file must stay.
    #[allow(clippy::disallowed_methods, reason = "files that agents left, by their place, name and owner")]
    fn clean_directory(
        &self,
        directory: &Path,
        cleaned: &mut Cleaned,
        is_left: impl Fn(&str, &Path, &Metadata) -> Result<bool, String>,
    ) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let files = match self.own_files(directory) {
            Ok(files) => files,
            Err(why) => return cleaned.kept.push((text(directory), why)),
        };
        for (path, name, known) in files {
            let removed = match is_left(&name, &path, &known) {
                Ok(false) => continue,
                Ok(true) => fs::remove_file(&path).map_err(|error| error_text(&error)),
                Err(why) => Err(why),
            };
            match removed {
                Ok(()) => cleaned.removed.push((text(&path), known.len())),
                // Another agent that cleans was quicker.
                Err(_) if fs::symlink_metadata(&path).is_err() => {}
                Err(why) => cleaned.kept.push((text(&path), why)),
            }
        }
    }
}

/// Whether a file is a copy of the program: `agent-SHA256`, or `agent-SHA256.PROCESS` while it comes and after.
fn is_copy(name: &str, path: &Path, known: &Metadata) -> Result<bool, String> {
    let Some(rest) = name.strip_prefix("agent-") else { return Ok(false) };
    let (expected, id) = match rest.split_once('.') {
        Some((expected, id)) => (expected, id.parse::<u32>().ok()),
        None => (rest, None),
    };
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_named = expected.len() == 64 && expected.bytes().all(is_hex) && rest.contains('.') == id.is_some();
    if !is_named {
        return Ok(false);
    }
    match id {
        Some(id) if Path::new("/proc").join(id.to_string()).exists() => {
            Err(format!("process {id} may use it: try again when it has ended"))
        }
        // It may be a part alone: its name has the number of a process that is gone.
        Some(_) => Ok(true),
        None if known.len() > COPY_BYTES_MAX => Err("it is too large for a copy: look at it".to_string()),
        None => {
            let bytes = fs::read(path).map_err(|error| error_text(&error))?;
            let found: String = digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            let why = "its SHA-256 is not that of its name, so that fiord did not put it there: look at it";
            if found == expected { Ok(true) } else { Err(why.to_string()) }
        }
    }
}

/// Whether a name is that of a report: `TIME-PROCESS-HOST` of a run or `STUDY-PROCESS-HOST`, or of an unfinished one.
fn is_report(name: &str) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let mut parts = name.splitn(3, '-');
    let (Some(run), Some(id), Some(host)) = (parts.next(), parts.next(), parts.next()) else { return false };
    let is_all = |text: &str, is: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(is);
    (is_all(run, u8::is_ascii_digit) || is_all(run, u8::is_ascii_lowercase))
        && is_all(id, u8::is_ascii_digit)
        && is_all(host, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Home {
            let home = env::temp_dir().join(format!("fiord-leftovers-{name}-{}", std::process::id()));
            for directory in ["cache", "spool"] {
                fs::create_dir_all(home.join(directory)).unwrap();
                fs::set_permissions(home.join(directory), fs::Permissions::from_mode(0o755)).unwrap();
            }
            Home(home)
        }

        fn write(&self, name: &str, content: &str) -> String {
            fs::write(self.0.join(name), content).unwrap();
            name.to_string()
        }

        fn places(&self) -> Places {
            Places {
                copies: Some(self.0.join("cache")),
                spool: Some(self.0.join("spool")),
                user: process::effective_user(),
            }
        }

        /// What is removed and what is kept, by the last part of its path.
        fn clean(&self) -> (Vec<String>, Vec<String>) {
            let cleaned = self.places().clean();
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
            let removed = cleaned.removed.iter().map(|(path, _)| name(path)).collect();
            (removed, cleaned.kept.iter().map(|(path, why)| format!("{}: {why}", name(path))).collect())
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// SHA-256 of `fiord`.
    fn sha256() -> String {
        digest(b"fiord").iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn copies_and_reports_are_removed_and_nothing_else() {
        let home = Home::new("all");
        let copy = format!("agent-{}", sha256());
        home.write(&format!("cache/{copy}"), "fiord");
        // No process has this number: Linux has at most 2^22.
        home.write(&format!("cache/{copy}.4294967295"), "fio");
        home.write("spool/1700000000000-12-db1_lab", "");
        home.write("spool/check-12-a-b.tmp", "");
        let others = [
            home.write("cache/agent-0123", "fiord"),
            home.write(&format!("cache/{copy}.old"), "fiord"),
            home.write("cache/guest", "fiord"),
            home.write("spool/notes-from-me", ""),
            home.write("spool/1700000000000-12-a b", ""),
        ];
        let removed = [
            copy.clone(),
            format!("{copy}.4294967295"),
            "1700000000000-12-db1_lab".to_string(),
            "check-12-a-b.tmp".to_string(),
        ];
        assert_eq!(home.clean(), (removed.to_vec(), Vec::new()));
        others.iter().for_each(|name| assert!(home.0.join(name).exists(), "{name}"));
        assert!(home.0.join("spool").exists(), "it is not empty");
        assert_eq!(home.clean(), (Vec::new(), Vec::new()));
    }

    #[test]
    fn reports_are_listed_and_those_of_a_run_are_read() {
        let home = Home::new("collect");
        for name in
            ["17-12-a", "17-12-b_lab", "17-12-c.tmp", "17-120-a", "check-12-a-b", "notes", "17-12-a b"]
        {
            home.write(&format!("spool/{name}"), name);
        }
        let names = |run: Option<&str>| -> Vec<String> {
            let found = home.places().collect(run);
            let is_read = |one: &LeftReport| (one.kept == one.name.as_bytes()) == run.is_some();
            assert!(found.problem.is_none() && found.reports.iter().all(is_read), "{found:?}");
            found.reports.into_iter().map(|one| one.name).collect()
        };
        assert_eq!(names(None), ["17-12-a", "17-12-b_lab", "17-120-a", "check-12-a-b"]);
        assert_eq!(names(Some("17-12")), ["17-12-a", "17-12-b_lab"]);
        assert_eq!(names(Some("check-12")), ["check-12-a-b"]);
        assert_eq!(names(Some("17")), [""; 0]);
        assert_eq!(run_and_host("check-12-a-b"), ("check-12", "a-b"));
        let all = home.places().collect(Some("17-12")).reports;
        let found = |reports, host| report_of(reports, "17-12", host).map(|one| one.name.as_str());
        assert_eq!([found(&all, "b.lab"), found(&all, "db1")], [Some("17-12-b_lab"), None]);
        assert_eq!(found(&all[..1], "db1"), Some("17-12-a"), "the only one of the machine");
    }

    #[test]
    fn what_is_asked_for_is_read_as_it_was_written() {
        for task in [Task::Clean, Task::Collect(None), Task::Collect(Some("17-12".to_string()))] {
            let study = request("a", &task).study.unwrap();
            assert_eq!(Task::of(&study), Some(task));
        }
        let words = vec![b"hosts".to_vec(), b"--json".to_vec()];
        assert_eq!(Task::of(&StudyCommand { words, ..StudyCommand::default() }), None);
    }

    #[test]
    fn what_is_not_certain_is_kept_and_said() {
        let home = Home::new("kept");
        let copy = format!("agent-{}", sha256());
        home.write(&format!("cache/{copy}"), "something else");
        home.write(&format!("cache/{copy}.{}", std::process::id()), "fiord");
        let (removed, kept) = home.clean();
        assert_eq!(removed, ["spool"], "it is empty");
        assert!(kept[0].contains("its SHA-256 is not that of its name"), "{kept:?}");
        assert!(kept[1].contains("may use it"), "{kept:?}");
    }

    #[test]
    fn no_symbolic_link_is_followed() {
        let home = Home::new("links");
        let copy = format!("agent-{}", sha256());
        let own = home.0.join("mine");
        fs::create_dir(&own).unwrap();
        fs::write(own.join(&copy), "fiord").unwrap();
        fs::write(own.join("1-2-a"), "").unwrap();
        symlink(own.join(&copy), home.0.join("cache").join(&copy)).unwrap();
        fs::remove_dir(home.0.join("spool")).unwrap();
        symlink(&own, home.0.join("spool")).unwrap();
        let (removed, kept) = home.clean();
        assert_eq!(removed, [""; 0]);
        assert_eq!(kept, ["spool: it is no directory: look at what is there"]);
        assert!(own.join(&copy).exists() && own.join("1-2-a").exists());
        fs::set_permissions(home.0.join("cache"), fs::Permissions::from_mode(0o757)).unwrap();
        assert!(home.clean().1[0].starts_with("cache: others may write to it"));
    }
}
