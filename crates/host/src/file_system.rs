//! The file system that a path is on, and whether a file created there would be among the device nodes.
//!
//! Invariant: a path is resolved as the kernel does; one that does not exist yet is judged by its nearest existing
//! ancestor.

use std::path::{Path, PathBuf};

use fiord_sys::procfs::Mount;
use fiord_sys::stat::{self, DeviceNumber, Stat};

use crate::quota::{QuotaFacts, quota_at};

/// The file system that a path lies on, or would lie on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemFacts {
    /// Its type, `ext4`; a hexadecimal number where it has no name here.
    pub type_name: String,
    /// Where it is mounted, if the mount table has it.
    pub mount_point: Option<PathBuf>,
    /// What was mounted, if the mount table has it: `/dev/vda`, a server's name, or a name that the file system
    /// defines.
    pub source: Option<PathBuf>,
    /// The options of the mount and of the file system, if the mount table has them: `rw,relatime,discard`.
    pub options: Option<String>,
    /// Mounted read-only.
    pub read_only: bool,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Free bytes, including those reserved for root.
    pub free_bytes: u64,
    /// Bytes free for any user.
    pub available_bytes: u64,
    /// The quota that binds what this process writes there, if one does.
    pub quota: Option<QuotaFacts>,
}

impl FileSystemFacts {
    /// Bytes that any user may still write there, within the quota.
    pub fn room_bytes(&self) -> u64 {
        self.available_bytes.min(self.quota.map_or(u64::MAX, |quota| quota.left_bytes))
    }
}

/// The file system of an existing `path`; `None` if it cannot be queried.
pub(crate) fn file_system_facts(
    path: &Path,
    device: DeviceNumber,
    mounts: &[Mount],
) -> Option<FileSystemFacts> {
    let system = stat::file_system(path).ok()?;
    let mount = mount_of(path, device, mounts);
    let by_number = || system.type_name().map_or_else(|| format!("{:#x}", system.magic), str::to_owned);
    Some(FileSystemFacts {
        type_name: mount.map_or_else(by_number, |mount| mount.fs_type.clone()),
        mount_point: mount.map(|mount| mount.point.clone()),
        source: mount.map(|mount| mount.source.clone()),
        options: mount.map(|mount| mount.options.clone()),
        read_only: system.read_only,
        total_bytes: system.total_bytes,
        free_bytes: system.free_bytes,
        available_bytes: system.available_bytes,
        quota: mount.and_then(|mount| quota_at(path, &mount.fs_type, &mount.options)),
    })
}

/// The mount that a path lies on: the longest mount point above it, and the last of several there. One with the file's
/// own device number is preferred; btrfs gives files a number that no mount has.
fn mount_of<'a>(path: &Path, device: DeviceNumber, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let real = std::fs::canonicalize(path).ok()?;
    let above = || mounts.iter().filter(|mount| real.starts_with(&mount.point));
    let depth = |mount: &&Mount| mount.point.components().count();
    above().filter(|mount| mount.device == device).max_by_key(depth).or_else(|| above().max_by_key(depth))
}

/// The directory that a path is in. A name alone is in the current directory, which has an empty path.
pub(crate) fn named_directory(above: &Path) -> &Path {
    if above.as_os_str().is_empty() { Path::new(".") } else { above }
}

/// The path itself, or its nearest existing ancestor, and the metadata of that; `None` if not even `/` can be looked at.
pub(crate) fn nearest_existing(path: &Path) -> Option<(&Path, Stat)> {
    let found = |above| Some((above, stat::stat(above).ok()?));
    path.ancestors().map(named_directory).find_map(found).or_else(|| found(Path::new("/")))
}

/// The end of a dangling chain of symbolic links: the path that would be created by opening it.
pub(crate) fn end_of_links(path: &Path) -> PathBuf {
    // As many links as the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut end = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&end) else { break };
        end = end.parent().map_or_else(|| target.clone(), |above| above.join(&target));
    }
    end
}

/// Whether a file created in this directory would be among the device nodes. Judged by the type of the file system, and
/// by the path as well, because in a container `/dev` is an ordinary file system.
pub(crate) fn is_among_devices(directory: &Path, system: Option<&FileSystemFacts>) -> bool {
    let dev = Path::new("/dev");
    let of_devices = system.is_some_and(|system| ["devtmpfs", "devfs"].contains(&system.type_name.as_str()));
    let mount_point = system.and_then(|system| system.mount_point.as_deref());
    let is_below = std::fs::canonicalize(directory).is_ok_and(|real| real.starts_with(dev));
    let has_its_own = mount_point.is_some_and(|point| point.starts_with(dev) && point != dev);
    of_devices || (is_below && !has_its_own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mount;

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let mounts = [
            mount("1:1", "/", "ext4", "none"),
            mount("1:2", "/proc", "old", "none"),
            mount("1:3", "/proc", "proc", "none"),
            mount("1:4", "/pro", "no", "none"),
        ];
        let of = |path, minor| mount_of(Path::new(path), DeviceNumber { major: 1, minor }, &mounts).unwrap();
        assert_eq!(of("/proc/self", 9).fs_type, "proc");
        assert_eq!(of("/proc/self", 2).fs_type, "old");
        assert_eq!(of("/", 1).fs_type, "ext4");
    }
}
