//! Control groups that jobs' I/O is charged to: made, weighed, joined and removed, in both versions of the kernel's
//! interface.
//!
//! Invariant: only directories that were made here are removed.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::cgroup;
use crate::clock::{monotonic_ns, sleep_until_ns};
use crate::procfs::{self, Mount};
use crate::thread;

/// How long the kernel may take to let go of threads that have ended.
const EMPTY_WITHIN_NS: u64 = 2_000_000_000;
const RETRY_NS: u64 = 1_000_000;

/// The version of the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Each controller has a hierarchy, here that of `blkio`. A group holds threads.
    One,
    /// One hierarchy for all controllers. A group holds processes.
    Two,
}

/// The hierarchy of groups for I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    root: PathBuf,
}

/// What was done to which file of a group, and how it failed.
#[derive(Debug)]
pub struct GroupError {
    /// What.
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The kernel's answer.
    pub error: io::Error,
}

/// A group.
#[derive(Debug)]
pub struct IoGroup {
    hierarchy: Hierarchy,
    directory: PathBuf,
    /// Directories that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// The group that this process was in, in version 2.
    home: Option<PathBuf>,
}

impl Hierarchy {
    /// That of this machine: `blkio` of version 1 if it is mounted, else version 2; `None` if neither is.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn find() -> io::Result<Option<Hierarchy>> {
        Ok(Hierarchy::among(&procfs::mounts()?))
    }

    fn among(mounts: &[Mount]) -> Option<Hierarchy> {
        let has_blkio = |mount: &&Mount| mount.options.split(',').any(|word| word == "blkio");
        let one = mounts.iter().rev().filter(|mount| mount.fs_type == "cgroup").find(has_blkio);
        let two = || mounts.iter().rev().find(|mount| mount.fs_type == "cgroup2");
        let (version, mount) = match one {
            Some(mount) => (Version::One, mount),
            None => (Version::Two, two()?),
        };
        Some(Hierarchy { version, root: mount.point.clone() })
    }

    /// The group of this name, a path below the root of the hierarchy, with all directories that it needs.
    ///
    /// # Errors
    /// A directory cannot be made, or the name leads out of the hierarchy (`EINVAL`).
    pub fn make(&self, name: &Path) -> Result<IoGroup, GroupError> {
        let mut group =
            IoGroup { hierarchy: self.clone(), directory: self.root.clone(), made: Vec::new(), home: None };
        for part in name.components() {
            match part {
                Component::Normal(part) => group.directory.push(part),
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => {
                    let error = io::Error::from_raw_os_error(libc::EINVAL);
                    return Err(GroupError {
                        action: "find the control group",
                        path: name.to_path_buf(),
                        error,
                    });
                }
            }
            match fs::create_dir(&group.directory) {
                Ok(()) => group.made.push(group.directory.clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let path = group.directory.clone();
                    // What was made on the way is not left behind.
                    let _ = group.remove();
                    return Err(GroupError { action: "make the control group", path, error });
                }
            }
        }
        Ok(group)
    }
}

impl IoGroup {
    /// Sets its share of a disk's time, from 1 to 1000, beside groups of the same parent.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no weights there.
    pub fn set_weight(&self, weight: u32) -> Result<(), GroupError> {
        let names = match self.hierarchy.version {
            Version::One => ["blkio.weight", "blkio.bfq.weight"],
            Version::Two => ["io.weight", "io.bfq.weight"],
        };
        let files = || names.map(|name| self.directory.join(name)).into_iter().filter(|file| file.exists());
        if self.hierarchy.version == Version::Two && files().next().is_none() {
            self.enable_io();
        }
        let mut is_set = false;
        for file in files() {
            write(&file, &weight.to_string(), "set the weight of the control group")?;
            is_set = true;
        }
        match is_set {
            true => Ok(()),
            false => Err(GroupError {
                action: "set the weight of the control group",
                path: self.directory.join(names[0]),
                error: io::Error::from_raw_os_error(libc::ENOENT),
            }),
        }
    }

    /// Turns the controller for I/O on in all groups above it. Where that fails there are no weights.
    fn enable_io(&self) {
        let above: Vec<&Path> = self.directory.ancestors().skip(1).collect();
        for directory in above.iter().rev().filter(|directory| directory.starts_with(&self.hierarchy.root)) {
            let _ = fs::write(directory.join("cgroup.subtree_control"), "+io");
        }
    }

    /// Moves the calling thread into it, in version 1. In version 2 it moves the whole process, which is moved back when
    /// the group is removed.
    ///
    /// # Errors
    /// That of the kernel: `EACCES`, and `EBUSY` for a group of version 2 with groups below it.
    pub fn join(&mut self) -> Result<(), GroupError> {
        const ACTION: &str = "join the control group";
        match self.hierarchy.version {
            Version::One => self.join_thread(),
            Version::Two => {
                self.home = cgroup::Groups::read().ok().and_then(|groups| groups.unified_own());
                write(&self.directory.join("cgroup.procs"), "0", ACTION)
            }
        }
    }

    /// Moves the calling thread into it, if it is of version 1; does nothing in version 2.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn join_thread(&self) -> Result<(), GroupError> {
        match self.hierarchy.version {
            Version::One => {
                write(&self.directory.join("tasks"), &thread::id().to_string(), "join the control group")
            }
            Version::Two => Ok(()),
        }
    }

    /// Moves the process out of it, and removes what was made for it. Waits until the kernel has let go of threads that
    /// have ended, for at most two seconds.
    ///
    /// # Errors
    /// A directory cannot be removed: `EBUSY` if somebody else is in it.
    pub fn remove(self) -> Result<(), GroupError> {
        if let Some(home) = &self.home {
            write(&home.join("cgroup.procs"), "0", "leave the control group")?;
        }
        let until_ns = monotonic_ns() + EMPTY_WITHIN_NS;
        for directory in self.made.iter().rev() {
            while let Err(error) = fs::remove_dir(directory) {
                match error.raw_os_error() {
                    Some(libc::ENOENT) => break,
                    Some(libc::EBUSY) if monotonic_ns() < until_ns => {
                        sleep_until_ns(monotonic_ns() + RETRY_NS)
                    }
                    _ => {
                        let (action, path) = ("remove the control group", directory.clone());
                        return Err(GroupError { action, path, error });
                    }
                };
            }
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str, action: &'static str) -> Result<(), GroupError> {
    fs::write(path, text).map_err(|error| GroupError { action, path: path.to_path_buf(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_version_1_goes_first() {
        let mount = |fs_type: &str, point: &str, options: &str| Mount::made_up(fs_type, "/", point, options);
        let (cpu, two) = (mount("cgroup", "/cg/cpu", "rw,cpu"), mount("cgroup2", "/cg/two", "rw"));
        let blkio = mount("cgroup", "/cg/blkio", "rw,blkio");
        let among = |mounts: &[&Mount]| {
            let mounts: Vec<Mount> = mounts.iter().copied().cloned().collect();
            Hierarchy::among(&mounts)
        };
        let at = |version, root: &str| Some(Hierarchy { version, root: root.into() });
        assert_eq!(among(&[&cpu, &two, &blkio]), at(Version::One, "/cg/blkio"));
        assert_eq!(among(&[&cpu, &two]), at(Version::Two, "/cg/two"));
        assert_eq!(among(&[&cpu]), None);
    }

    /// On plain directories: what a group would be told is in files of these names.
    #[test]
    fn a_group_removes_what_it_made_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("fiord-io-group-{}", std::process::id()));
        fs::create_dir_all(root.join("there")).unwrap();
        let hierarchy = Hierarchy { version: Version::One, root: root.clone() };
        let group = hierarchy.make(Path::new("/there/a/b")).unwrap();
        assert!(root.join("there/a/b").is_dir());
        let weightless = group.set_weight(500).unwrap_err();
        assert_eq!(weightless.error.raw_os_error(), Some(libc::ENOENT), "{weightless:?}");
        let weight = root.join("there/a/b/blkio.bfq.weight");
        fs::write(&weight, "100").unwrap();
        group.set_weight(500).unwrap();
        assert_eq!(fs::read_to_string(&weight).unwrap(), "500");
        fs::remove_file(&weight).unwrap();
        group.remove().unwrap();
        assert!(root.join("there").is_dir() && !root.join("there/a").exists());
        let outside = hierarchy.make(Path::new("there/../../x")).unwrap_err();
        assert_eq!(outside.error.raw_os_error(), Some(libc::EINVAL));
        // The group of this name was there before.
        hierarchy.make(Path::new("there")).unwrap().remove().unwrap();
        assert!(root.join("there").is_dir());
        fs::remove_dir_all(root).unwrap();
    }
}
