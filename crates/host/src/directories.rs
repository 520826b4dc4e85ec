//! What files of one directory have in common: found once, however many files there are.
//!
//! Invariant: what is known of a directory holds for its path as long as that leads to the same directory, by device and
//! inode, which is asked each time; a file that is a link, or on another file system, is looked at itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fiord_sys::procfs::Mount;
use fiord_sys::stat::{Identity, Stat};

use crate::file_system::{FileSystemFacts, file_system_facts, is_among_devices};

/// A directory that was looked at.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The directory itself, whatever has its path later.
    identity: Identity,
    /// Its path without links, if the kernel says.
    real: Option<PathBuf>,
    /// What it is on.
    pub(crate) file_system: Option<FileSystemFacts>,
    /// Whether a file created in it would be among the device nodes.
    pub(crate) is_among_devices: bool,
}

impl Directory {
    fn of(path: &Path, found: &Stat, mounts: &[Mount]) -> Directory {
        let file_system = file_system_facts(path, found.device, mounts);
        Directory {
            identity: found.identity(),
            real: std::fs::canonicalize(path).ok(),
            is_among_devices: is_among_devices(path, file_system.as_ref()),
            file_system,
        }
    }

    /// Whether something is mounted on the file of this name, which is in this directory.
    pub(crate) fn is_mounted_over(&self, file: &Path, mounts: &[Mount]) -> bool {
        let real = self.real.as_ref().zip(file.file_name()).map(|(real, name)| real.join(name));
        real.is_none_or(|real| mounts.iter().any(|mount| mount.point == real))
    }
}

/// The directories that were looked at, by path. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directories {
    known: Arc<Mutex<BTreeMap<PathBuf, Arc<Directory>>>>,
}

impl Directories {
    /// What is known of a directory with this metadata, which are those of `path`.
    pub(crate) fn of(&self, path: &Path, found: &Stat, mounts: &[Mount]) -> Arc<Directory> {
        let table = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table().get(path).filter(|known| known.identity == found.identity()).cloned();
        known.unwrap_or_else(|| {
            // Not under the lock: the file system may hang.
            let new = Arc::new(Directory::of(path, found, mounts));
            table().insert(path.to_owned(), Arc::clone(&new));
            new
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use fiord_sys::procfs;
    use fiord_sys::stat;

    #[test]
    fn a_directory_is_looked_at_again_if_another_has_its_path() {
        let place = TempDir::new("directories");
        let path = place.path.join("d");
        let (directories, mounts) = (Directories::default(), procfs::mounts().unwrap());
        let look = || {
            let found = stat::stat(&path).unwrap();
            (directories.of(&path, &found, &mounts), found.identity())
        };
        std::fs::create_dir(&path).unwrap();
        let (first, second) = (look().0, look().0);
        assert!(Arc::ptr_eq(&first, &second));
        std::fs::rename(&path, place.path.join("moved")).unwrap();
        std::fs::create_dir(&path).unwrap();
        let (other, identity) = look();
        assert!(!Arc::ptr_eq(&first, &other) && other.identity == identity);
    }
}
