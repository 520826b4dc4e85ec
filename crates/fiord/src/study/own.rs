//! A study's own directory: made under a name nobody has, marked with its owner, and cleared by a later study where the
//! owner is gone.
//!
//! Invariant: nothing is removed but files that the mark names, by these names in the directory that was opened, never
//! through a link; and nothing while the mark's lock is held, which the kernel lets go of however its owner ends.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use fiord_lab::Step;
use fiord_report::path::shown;
use fiord_report::table::shown_bytes;
use fiord_sys::procfs;

/// What the names of such directories begin with.
const PREFIX: &str = "fiord-";

/// The mark's name.
const MARK: &str = "owner";

/// The mark's first line.
const TITLE: &str = "fiord: files of a study";

/// A mark is shorter than this, in bytes.
const MARK_BYTES_MAX: u64 = 64 << 10;

/// Names that are tried for one directory.
const NAMES_MAX: u32 = 10_000;

/// A directory that a study made for itself. It goes with this.
#[derive(Debug)]
pub(crate) struct OwnFiles {
    opened: Opened,
    /// Its lock is held as long as this is open.
    mark: File,
    names: Vec<String>,
}

impl OwnFiles {
    /// A new directory of this study's below another one.
    ///
    /// # Errors
    /// The kernel's, and where.
    pub(crate) fn create(below: &Path, study: &str) -> Result<OwnFiles, (PathBuf, io::Error)> {
        let path = new_directory(&below.join(format!("{PREFIX}{study}-{}", std::process::id())))?;
        let marked = Opened::open(&path).and_then(|opened| {
            let mut mark = File::create_new(opened.at(MARK))?;
            // Whoever looks at it now sees an empty mark and lets go. Where no lock can be had, the mark says so, and
            // nobody will take its owner for gone.
            let lock = if mark.lock().is_ok() { Lock::Held } else { Lock::None };
            let boot = procfs::boot_id().unwrap_or_default();
            let pid = std::process::id();
            mark.write_all(format!("{TITLE}\npid {pid}\nboot {boot}\nlock {}\n", lock.word()).as_bytes())?;
            Ok(OwnFiles { opened, mark, names: Vec::new() })
        });
        marked.map_err(|error| {
            // What is in it is a mark at most.
            let _ = fs::remove_dir_all(&path);
            (path, error)
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Makes an empty file in it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn make(&mut self, name: &str) -> io::Result<PathBuf> {
        self.expect(name)?;
        File::create_new(self.opened.at(name))?;
        Ok(self.path().join(name))
    }

    /// Notes the files in it that these steps work on, so that they go with it.
    ///
    /// # Errors
    /// They cannot be noted.
    pub(crate) fn expect_files_of(&mut self, steps: &[Step]) -> Result<(), String> {
        for file in steps.iter().flat_map(|step| &step.sections).flat_map(|section| &section.files) {
            let is_own = file.parent() == Some(self.path());
            let Some(name) = file.file_name().and_then(|name| name.to_str()).filter(|_| is_own) else {
                continue;
            };
            self.expect(name).map_err(|error| format!("{}: {error}", shown(self.path())))?;
        }
        Ok(())
    }

    fn expect(&mut self, name: &str) -> io::Result<()> {
        if !self.names.iter().any(|known| known == name) {
            self.mark.write_all(format!("file {name}\n").as_bytes())?;
            self.names.push(name.to_string());
        }
        Ok(())
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // Gone already is as good; what somebody else put there stays.
        let _ = self.opened.remove(&self.names);
    }
}

/// Makes a directory of this name, or of the first one behind it that nobody has: a process number may come again.
fn new_directory(first: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut path = first.to_path_buf();
    for number in 1..NAMES_MAX {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut name = first.as_os_str().to_os_string();
                name.push(format!("-{number}"));
                path = PathBuf::from(name);
            }
            Err(error) => return Err((path, error)),
            Ok(()) => return Ok(path),
        }
    }
    Err((path, io::Error::from(io::ErrorKind::AlreadyExists)))
}

/// A directory that stays the same whatever becomes of its name.
#[derive(Debug)]
struct Opened {
    path: PathBuf,
    directory: File,
}

impl Opened {
    /// Opens the directory at a path that is no link.
    fn open(path: &Path) -> io::Result<Opened> {
        let opened = Opened { path: path.to_path_buf(), directory: File::open(path)? };
        match opened.is_in_place()? {
            true => Ok(opened),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Whether its name still leads to it.
    fn is_in_place(&self) -> io::Result<bool> {
        let (there, this) = (fs::symlink_metadata(&self.path)?, self.directory.metadata()?);
        Ok(there.is_dir() && (there.dev(), there.ino()) == (this.dev(), this.ino()))
    }

    /// A name in it, through the descriptor.
    fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()))
    }

    /// Removes these files, the mark and the directory, in that order, so that what is interrupted can be gone on with.
    fn remove(&self, names: &[String]) -> io::Result<()> {
        for name in names.iter().map(String::as_str).chain([MARK]) {
            match fs::remove_file(self.at(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match self.is_in_place()? {
            true => fs::remove_dir(&self.path),
            false => Ok(()),
        }
    }
}

/// Whether the owner held its mark's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Held,
    /// The file system has no locks.
    None,
}

impl Lock {
    fn word(self) -> &'static str {
        match self {
            Lock::Held => "held",
            Lock::None => "none",
        }
    }
}

/// What a mark says.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    boot: String,
    lock: Lock,
    names: Vec<String>,
}

impl Mark {
    fn read(text: &str) -> Option<Mark> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next() != Some(TITLE) {
            return None;
        }
        let mut mark = Mark { boot: String::new(), lock: Lock::None, names: Vec::new() };
        for line in lines {
            match line.split_once(' ')? {
                ("boot", id) => mark.boot = id.to_string(),
                ("lock", word) if word == Lock::Held.word() => mark.lock = Lock::Held,
                ("file", name) if !name.contains('/') && ![".", "..", MARK].contains(&name) => {
                    mark.names.push(name.to_string());
                }
                ("pid" | "lock", _) => {}
                _ => return None,
            }
        }
        Some(mark)
    }
}

/// Removes what studies left in a directory when they were ended before they could, and says so, a sentence without a
/// full stop for each. `is_remote`: other machines work there as well, whose locks may not be seen here.
pub(crate) fn clear(directory: &Path, is_remote: bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut said: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| clear_one(&entry.path(), is_remote))
        .collect();
    said.sort();
    said
}

/// The same for one directory that may be such a study's; nothing is said of what is not, and of what is in use.
fn clear_one(path: &Path, is_remote: bool) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_dir() {
        return None;
    }
    let opened = Opened::open(path).ok()?;
    let mark = opened.at(MARK);
    let is_mark = |facts: fs::Metadata| facts.is_file() && facts.len() < MARK_BYTES_MAX;
    if !is_mark(fs::symlink_metadata(&mark).ok()?) {
        return None;
    }
    // Its lock is held from here on, so that of two studies one clears.
    let mut file = File::open(mark).ok()?;
    file.try_lock().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mark = Mark::read(&text)?;
    let same_boot = procfs::boot_id().is_ok_and(|id| id == mark.boot);
    let kept =
        |why: &str| Some(format!("{} was left by a study and stays: {why}; remove it yourself", shown(path)));
    if mark.lock == Lock::None || (is_remote && !same_boot) {
        return kept("whether that goes on elsewhere cannot be told");
    }
    let mut bytes = 0;
    for entry in fs::read_dir(opened.at("")).ok()? {
        let name = entry.ok()?.file_name();
        let name = name.to_str().filter(|name| *name == MARK || mark.names.iter().any(|known| known == name));
        let facts = name.and_then(|name| fs::symlink_metadata(opened.at(name)).ok());
        match facts.filter(fs::Metadata::is_file) {
            Some(facts) => bytes += if name == Some(MARK) { 0 } else { facts.len() },
            None => return kept("it holds what no study made"),
        }
    }
    match opened.remove(&mark.names) {
        Ok(()) => Some(format!(
            "cleared {}, {} that a study left when it was killed",
            shown(path),
            shown_bytes(bytes)
        )),
        Err(error) => kept(&error.to_string()),
    }
}

#[cfg(test)]
mod tests;
