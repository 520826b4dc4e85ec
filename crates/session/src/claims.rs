//! What a command reads, tests and keeps: the files that nothing it writes may destroy.
//!
//! Invariant: there is one table per process, which carries out one command. Every file that is read through
//! `run/environment.rs` and every target of a plan is in it, so that no output of any subcommand has a rule of its own.
//! Files are the same by device and inode, or by their real path while they do not exist.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fiord_options::{Place, Problem, ProblemKind, Section, Spec};
use fiord_plan::path_change::path_changes;
use fiord_plan::{ChangeKind, FileKind, PathChange, Plan, Refusal};
use fiord_report::path::shown;
use fiord_stats::Gather;
use fiord_sys::stat::{self, Identity, InodeKind, Stat};
use fiord_worker::TargetOpener;

/// Links that lead to a file that does not exist, at most, as for the kernel.
const LINKS_MAX: usize = 40;

/// What to do about an output that must not be written.
pub const REMEDY: &str = "name another file";

/// What a file is to the command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It is read: a job file, a report, a log, a trace.
    Input,
    /// Its jobs test it.
    Target,
    /// Its jobs write it: a log, a recording.
    JobOutput,
    /// This option of the command names it as an output.
    Output(String),
}

impl Role {
    /// As it follows the file's name.
    fn words(&self) -> String {
        match self {
            Role::Input => "is read by this command".to_string(),
            Role::Target => "is a target of the jobs".to_string(),
            Role::JobOutput => "is written by the jobs".to_string(),
            Role::Output(option) => format!("is the file of {option} as well"),
        }
    }
}

/// What is said of the history and what is kept beside it.
const STATE: &str = "belongs to fiord's own records (the history of runs)";

/// The history, if it is elsewhere than by default.
static HISTORY: OnceLock<PathBuf> = OnceLock::new();

/// Protects the history at this path, as that of the default place.
pub fn history_is_at(path: PathBuf) {
    // It is told once, at the start.
    let _ = HISTORY.set(path);
}

/// A file and what it is.
type Claim = (Role, PathBuf);

static TABLE: Mutex<BTreeSet<Claim>> = Mutex::new(BTreeSet::new());

fn table() -> MutexGuard<'static, BTreeSet<Claim>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command reads this file.
pub fn reads(path: &Path) {
    table().insert((Role::Input, path.to_path_buf()));
}

/// The command's jobs would test this file.
pub fn tests(path: &Path) {
    table().insert((Role::Target, path.to_path_buf()));
}

/// Claims a file for an output of the command.
///
/// # Errors
/// Why it must not be written: what else the file is to the command, as it follows the file's name.
pub fn output(option: &str, path: &Path) -> Result<(), String> {
    Outputs::default().claim(option, path)
}

/// Claims outputs of which none is written before the last is claimed: each file is looked at once.
#[derive(Default)]
pub struct Outputs {
    files: Files,
    /// The table, by file.
    claims: BTreeMap<File, BTreeSet<Claim>>,
    /// How many claims of the table these are.
    count: usize,
}

impl Outputs {
    /// As [`output`].
    ///
    /// # Errors
    /// The same.
    pub fn claim(&mut self, option: &str, path: &Path) -> Result<(), String> {
        let Some(file) = self.files.of(path) else { return Ok(()) };
        let mut table = table();
        if self.count != table.len() {
            self.claims.clear();
            table.iter().for_each(|claim| self.add(claim.clone()));
            self.count = table.len();
        }
        let this = (Role::Output(option.to_string()), path.to_path_buf());
        let why = match self.files.is_state(&file) {
            true => Some(STATE.to_string()),
            false => {
                let mut others = self.claims.get(&file).into_iter().flatten().filter(|claim| **claim != this);
                others.next().map(|(role, _)| role.words())
            }
        };
        if let Some(why) = why {
            return Err(why);
        }
        table.insert(this.clone());
        self.add(this);
        self.count = table.len();
        Ok(())
    }

    fn add(&mut self, claim: Claim) {
        if let Some(file) = self.files.of(&claim.1) {
            self.claims.entry(file).or_default().insert(claim);
        }
    }
}

/// Claims the targets and outputs of a plan.
///
/// # Errors
/// Its jobs would change what the command reads or keeps, write an output to a target, or through a link that no one named.
pub fn admit(plan: &Plan, sections: &[Section]) -> Result<(), Refusal> {
    let mut files = Files::default();
    let inputs: Vec<PathBuf> = of_role(&Role::Input);
    let inputs: BTreeSet<File> = inputs.iter().filter_map(|path| files.of(path)).gather();
    let targets =
        plan.jobs.iter().flat_map(|job| &job.files.list).filter(|file| file.kind == FileKind::Regular);
    let targets: BTreeMap<File, &Path> =
        targets.filter_map(|target| Some((files.of(&target.path)?, target.path.as_path()))).gather();
    let mut problems: Vec<Problem> = Vec::new();
    let mut outputs = BTreeSet::new();
    for job in &plan.jobs {
        for change in path_changes(job) {
            let is_output = matches!(change.kind, ChangeKind::Output | ChangeKind::Buffers);
            let why = files.of(&change.path).and_then(|file| match () {
                () if files.is_state(&file) => Some((STATE.to_string(), REMEDY)),
                () if inputs.contains(&file) => Some((Role::Input.words(), REMEDY)),
                () if is_output && targets.contains_key(&file) => Some((Role::Target.words(), REMEDY)),
                () if is_output && is_link_of_no_one(&change) => Some((
                    "is a symbolic link, and would be written through it".to_string(),
                    "remove the link",
                )),
                () => None,
            });
            if let Some((why, remedy)) = why {
                let section = sections.get(job.section as usize);
                problems.push(problem(&change, section, &why, remedy));
            }
            outputs.extend(is_output.then_some(change.path));
        }
    }
    problems.dedup();
    if !problems.is_empty() {
        return Err(Refusal { problems, unsafe_target: true });
    }
    let mut table = table();
    table.extend(targets.into_values().map(|path| (Role::Target, path.to_path_buf())));
    table.extend(outputs.into_iter().map(|path| (Role::JobOutput, path)));
    Ok(())
}

fn of_role(role: &Role) -> Vec<PathBuf> {
    table().iter().filter(|(known, _)| known == role).map(|(_, path)| path.clone()).collect()
}

/// Whether a file would be written through a link under a name that fiord made.
fn is_link_of_no_one(change: &PathChange) -> bool {
    !change.is_given && TargetOpener::is_link_to_file(&change.path)
}

fn problem(change: &PathChange, section: Option<&Section>, why: &str, remedy: &str) -> Problem {
    let given = |option: &Spec| section?.last(option).map(|setting| setting.value_place.clone());
    let place = given(change.option).or_else(|| section.map(|section| section.place.clone()));
    let message = format!("{} {why}", shown(&change.path));
    let problem = Problem::error(
        ProblemKind::InUse,
        place.unwrap_or_else(Place::derived),
        change.option,
        message,
        remedy,
    );
    match section {
        Some(section) => problem.of_job(&section.name).of_path(&change.path),
        None => problem.of_path(&change.path),
    }
}

/// A regular file, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum File {
    There(Identity),
    /// It does not exist, and would be made at this real path.
    Absent(PathBuf),
}

/// Finds out which file a path is.
#[derive(Default)]
struct Files {
    /// The real paths of directories.
    directories: BTreeMap<PathBuf, PathBuf>,
    /// What is in fiord's own directory, and that directory.
    state: Option<(BTreeSet<Identity>, Vec<PathBuf>)>,
    /// Which files the paths that were asked about are.
    known: HashMap<PathBuf, Option<File>>,
}

impl Files {
    /// The file of this path; `None` for devices, pipes and directories. Standard input is the file it comes from.
    fn of(&mut self, path: &Path) -> Option<File> {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let there = |found: Stat| (found.kind == InodeKind::Regular).then(|| File::There(found.identity()));
        let file = match stat::not_a_link(path) {
            Ok(Some(found)) => there(found),
            Ok(None) => stat::stat(path).map_or_else(|_| Some(File::Absent(self.real(path))), there),
            Err(_) => Some(File::Absent(self.in_real_directory(path))),
        };
        self.known.insert(path.to_path_buf(), file.clone());
        file
    }

    /// The path at which the kernel would create a file: links are followed, the last one as well.
    fn real(&mut self, path: &Path) -> PathBuf {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            path = self.in_real_directory(&path);
            let Ok(link) = fs::read_link(&path) else { break };
            path = path.parent().map_or_else(|| link.clone(), |parent| parent.join(&link));
        }
        path
    }

    fn in_real_directory(&mut self, path: &Path) -> PathBuf {
        let Some(name) = path.file_name() else { return path.to_path_buf() };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.directories.entry(parent.to_path_buf()).or_insert_with(|| real_directory(parent)).join(name)
    }

    /// Whether a file is the history, or would be made beside it.
    fn is_state(&mut self, file: &File) -> bool {
        let (files, directories) = self.state.get_or_insert_with(state);
        match file {
            File::There(identity) => files.contains(identity),
            File::Absent(path) => {
                path.parent().is_some_and(|parent| directories.iter().any(|own| own == parent))
            }
        }
    }
}

/// The files in fiord's own directories, and those directories.
fn state() -> (BTreeSet<Identity>, Vec<PathBuf>) {
    let history = fiord_store::default_path(|name| std::env::var_os(name)).unwrap_or_default();
    let histories = [Some(history.as_path()), HISTORY.get().map(PathBuf::as_path)];
    let directories: Vec<&Path> = histories.into_iter().flatten().filter_map(Path::parent).collect();
    let entries = directories.iter().flat_map(|own| fs::read_dir(own).into_iter().flatten().flatten());
    let files = entries.filter_map(|entry| Some(stat::stat(&entry.path()).ok()?.identity()));
    (files.gather(), directories.into_iter().map(real_directory).collect())
}

/// A directory with its links followed, as far as it exists.
fn real_directory(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real_directory(parent).join(name),
        (Err(_), ..) => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_the_same_by_all_its_names_also_before_it_exists() {
        let dir = std::env::temp_dir().join(format!("fiord-claims-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a"), "a").unwrap();
        fs::hard_link(dir.join("a"), dir.join("hard")).unwrap();
        symlink("a", dir.join("soft")).unwrap();
        symlink("absent", dir.join("dangling")).unwrap();
        symlink(&dir, dir.join("here")).unwrap();
        let mut files = Files::default();
        let mut of = |name: &str| files.of(&dir.join(name));
        let (there, absent) = (of("a"), of("absent"));
        for (name, same) in [("hard", &there), ("soft", &there), ("here/a", &there)] {
            assert_eq!(&of(name), same, "{name}");
        }
        for name in ["dangling", "here/absent", "here/here/dangling"] {
            assert_eq!(of(name), absent, "{name}");
        }
        assert!(there.is_some() && absent.is_some() && there != absent && of("other") != absent);
        assert_eq!((of("."), files.of(Path::new("/dev/null"))), (None, None));
        fs::remove_dir_all(&dir).unwrap();
    }
}
