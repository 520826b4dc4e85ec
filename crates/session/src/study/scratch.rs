//! A study's scratch directory: created under an unused name, marked with its owner, and cleared by a later study if
//! the owner is gone.
//!
//! Invariant: removes only files that the mark names, by name in the directory as opened, never through a link; and
//! nothing while the mark's lock is held, which the kernel releases however its owner ends. The mark is created before
//! the directory and removed after it: it lies beside a directory that is being created or removed, and else in it.

#![allow(
    clippy::disallowed_methods,
    reason = "only files in fiord's own scratch directories, which have a mark and a lock"
)]

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use fiord_lab::Step;
use fiord_report::path::shown;
use fiord_report::table::shown_bytes;
use fiord_sys::errno::error_text;
use fiord_sys::{file, procfs};

/// The prefix of the names of scratch directories.
pub const PREFIX: &str = "fiord-";

/// The file name of the mark, which no file of a check can have.
const MARK: &str = ".owner";

/// The end of the name of a mark that lies beside its directory.
const BESIDE: &str = ".owner";

/// The first line of a mark.
const TITLE: &str = "fiord: files of a study";

/// Maximum size of a mark, in bytes.
const MARK_BYTES_MAX: u64 = 64 << 10;

/// How many names are tried for one directory.
const NAMES_MAX: u32 = 10_000;

/// The scratch directory of a study, removed on drop.
#[derive(Debug)]
pub struct ScratchFiles {
    opened: Opened,
    /// Locked as long as it is open.
    mark: File,
    names: Vec<String>,
}

impl ScratchFiles {
    /// Creates a scratch directory for this study below another directory.
    ///
    /// # Errors
    /// The path and the error.
    pub fn create(below: &Path, study: &str) -> Result<ScratchFiles, (PathBuf, io::Error)> {
        let first = below.join(format!("{PREFIX}{study}-{}", std::process::id()));
        let mut path = first.clone();
        for number in 1..NAMES_MAX {
            match ScratchFiles::create_at(&path) {
                // Process ids are reused.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = with_suffix(&first, &format!("-{number}"));
                }
                created => return created.map_err(|error| (path, error)),
            }
        }
        Err((path, io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    fn create_at(path: &Path) -> io::Result<ScratchFiles> {
        let beside = with_suffix(path, BESIDE);
        let mut mark = File::create_new(&beside)?;
        let opened = write_mark(&mut mark).and_then(|()| marked_directory(path, &beside));
        match opened {
            Ok(opened) => Ok(ScratchFiles { opened, mark, names: Vec::new() }),
            Err(error) => {
                let _ = fs::remove_file(&beside);
                Err(error)
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Creates an empty file in it.
    ///
    /// # Errors
    /// The error of the call.
    pub fn make(&mut self, name: &str) -> io::Result<PathBuf> {
        self.record(name)?;
        File::create_new(self.opened.at(name))?;
        Ok(self.path().join(name))
    }

    /// Records the files in it that these steps use, so that they are removed with it.
    ///
    /// # Errors
    /// They cannot be recorded in the mark.
    pub fn record_files_of(&mut self, steps: &[Step]) -> Result<(), String> {
        for file in steps.iter().flat_map(|step| &step.sections).flat_map(|section| &section.files) {
            let is_own = file.parent() == Some(self.path());
            let Some(name) = file.file_name().and_then(|name| name.to_str()).filter(|_| is_own) else {
                continue;
            };
            self.record(name).map_err(|error| format!("{}: {}", shown(self.path()), error_text(&error)))?;
        }
        Ok(())
    }

    /// Records a file in it by its name, so that it is removed with it.
    ///
    /// # Errors
    /// It cannot be recorded in the mark.
    pub fn record(&mut self, name: &str) -> io::Result<()> {
        if !self.names.iter().any(|known| known == name) {
            self.mark.write_all(format!("file {name}\n").as_bytes())?;
            self.names.push(name.to_string());
        }
        Ok(())
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        // Missing files are fine; files of others stay.
        let _ = self.opened.remove(&self.names);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Locks a new mark, and writes it. Another study that reads it before finds it empty and leaves it alone. If the file
/// system does not support locks, the mark says so, and its owner is assumed to be alive.
fn write_mark(mark: &mut File) -> io::Result<()> {
    let lock = if mark.lock().is_ok() { Lock::Held } else { Lock::None };
    let boot = procfs::boot_id().unwrap_or_default();
    let pid = std::process::id();
    mark.write_all(format!("{TITLE}\npid {pid}\nboot {boot}\nlock {}\n", lock.word()).as_bytes())
}

/// Creates a directory, and moves into it the mark that lies beside it.
fn marked_directory(path: &Path, beside: &Path) -> io::Result<Opened> {
    DirBuilder::new().mode(0o700).create(path)?;
    let moved = Opened::open(path).and_then(|opened| fs::rename(beside, opened.at(MARK)).map(|()| opened));
    moved.inspect_err(|_| {
        let _ = fs::remove_dir(path);
    })
}

/// An open directory, which stays the same even if its path is replaced.
#[derive(Debug)]
struct Opened {
    path: PathBuf,
    directory: File,
}

impl Opened {
    /// Opens a directory whose path is not a link.
    fn open(path: &Path) -> io::Result<Opened> {
        let opened = Opened { path: path.to_path_buf(), directory: File::open(path)? };
        match opened.is_in_place()? {
            true => Ok(opened),
            false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Whether its path still leads to it.
    fn is_in_place(&self) -> io::Result<bool> {
        let (there, this) = (fs::symlink_metadata(&self.path)?, self.directory.metadata()?);
        Ok(there.is_dir() && (there.dev(), there.ino()) == (this.dev(), this.ino()))
    }

    /// The path of a name in it, through the descriptor.
    fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()))
    }

    /// Removes these files, the directory and the mark, in that order, so that an interrupted removal can be resumed.
    fn remove(&self, names: &[String]) -> io::Result<()> {
        self.remove_files(names)?;
        match self.move_mark_out()? {
            Some(beside) => {
                let removed = fs::remove_dir(&self.path);
                fs::remove_file(beside)?;
                removed
            }
            None => {
                self.remove_files(&[MARK])?;
                match self.is_in_place()? {
                    true => fs::remove_dir(&self.path),
                    false => Ok(()),
                }
            }
        }
    }

    fn remove_files(&self, names: &[impl AsRef<str>]) -> io::Result<()> {
        for name in names {
            match fs::remove_file(self.at(name.as_ref())) {
                // Of a name that is too long there is no file.
                Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves the mark beside the directory. `None` if it cannot be there: the directory is no longer at its path, the
    /// name is taken, or the file system cannot rename without replacing.
    fn move_mark_out(&self) -> io::Result<Option<PathBuf>> {
        let beside = with_suffix(&self.path, BESIDE);
        Ok((self.is_in_place()? && file::rename_new(&self.at(MARK), &beside).is_ok()).then_some(beside))
    }
}

/// Whether the owner holds a lock on its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    Held,
    /// The file system does not support locks.
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

/// The content of a mark.
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

/// Removes scratch directories left behind by studies that were killed, and returns a message for each. `is_remote`:
/// other machines, whose locks may not be visible here, use the directory as well.
pub fn clear(directory: &Path, is_remote: bool) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut messages: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter_map(|entry| {
            let (path, name) = (entry.path(), entry.file_name());
            match name.to_str().and_then(|name| name.strip_suffix(BESIDE)) {
                Some(name) => clear_empty(&path.with_file_name(name), &path, is_remote),
                None => clear_one(&path, is_remote),
            }
        })
        .collect();
    messages.sort_unstable();
    messages
}

/// A mark whose owner is gone, with its file, which is locked from here on so that of two studies only one clears.
/// `None` if it is not a mark, or in use; the error says why its owner may not be gone.
fn abandoned(path: &Path, is_remote: bool) -> Option<(File, Result<Mark, &'static str>)> {
    let is_mark = |facts: fs::Metadata| facts.is_file() && facts.len() < MARK_BYTES_MAX;
    if !is_mark(fs::symlink_metadata(path).ok()?) {
        return None;
    }
    let mut file = File::open(path).ok()?;
    file.try_lock().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mark = Mark::read(&text)?;
    let same_boot = procfs::boot_id().is_ok_and(|id| id == mark.boot);
    let is_unsure = mark.lock == Lock::None || (is_remote && !same_boot);
    let mark = if is_unsure { Err("the study may still be running on another machine") } else { Ok(mark) };
    Some((file, mark))
}

fn removed(path: &Path, bytes: u64) -> String {
    format!("removed {} ({}), left by a study that was killed", shown(path), shown_bytes(bytes))
}

fn kept(path: &Path, why: &str) -> String {
    format!("{} was left by a study and not removed: {why}; remove it yourself", shown(path))
}

/// The same for a directory whose mark lies beside it: it is empty, or no longer or not yet there.
fn clear_empty(path: &Path, beside: &Path, is_remote: bool) -> Option<String> {
    let (_locked, mark) = abandoned(beside, is_remote)?;
    if let Err(why) = mark {
        return Some(kept(beside, why));
    }
    // A directory that is not empty belongs to another program.
    let _ = fs::remove_dir(path);
    match fs::remove_file(beside) {
        Ok(()) => Some(removed(path, 0)),
        Err(error) => Some(kept(beside, &error_text(&error))),
    }
}

/// The same for one directory; `None` if it is not a scratch directory or is in use.
fn clear_one(path: &Path, is_remote: bool) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_dir() {
        return None;
    }
    let opened = Opened::open(path).ok()?;
    let (_locked, mark) = abandoned(&opened.at(MARK), is_remote)?;
    let mark = match mark {
        Ok(mark) => mark,
        Err(why) => return Some(kept(path, why)),
    };
    let mut bytes = 0;
    for entry in fs::read_dir(opened.at("")).ok()? {
        let name = entry.ok()?.file_name();
        let name = name.to_str().filter(|name| *name == MARK || mark.names.iter().any(|known| known == name));
        let facts = name.and_then(|name| fs::symlink_metadata(opened.at(name)).ok());
        match facts.filter(fs::Metadata::is_file) {
            Some(facts) => bytes += if name == Some(MARK) { 0 } else { facts.len() },
            None => return Some(kept(path, "it contains files that no study made")),
        }
    }
    match opened.remove(&mark.names) {
        Ok(()) => Some(removed(path, bytes)),
        Err(error) => Some(kept(path, &error_text(&error))),
    }
}

#[cfg(test)]
mod tests;
