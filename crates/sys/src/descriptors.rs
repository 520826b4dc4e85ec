//! The open files of processes, from `/proc`, and how files are opened.
//!
//! Invariant: only looked at: nothing is opened but files of `/proc`, and no process is stopped.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How a file is opened, from the flags of `open`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenedHow {
    /// `O_DIRECT`.
    pub direct: bool,
    /// `O_SYNC`.
    pub sync: bool,
    /// `O_DSYNC` alone.
    pub dsync: bool,
    /// `O_APPEND`.
    pub append: bool,
    /// `O_TRUNC`.
    pub truncate: bool,
    /// `O_CLOEXEC`.
    pub closes_on_exec: bool,
    /// `O_PATH` or `O_DIRECTORY`: no I/O is made on it.
    pub without_io: bool,
}

impl OpenedHow {
    /// Of these flags.
    pub fn of(flags: i32) -> OpenedHow {
        let has = |flag: libc::c_int| flags & flag == flag;
        OpenedHow {
            direct: has(libc::O_DIRECT),
            sync: has(libc::O_SYNC),
            dsync: has(libc::O_DSYNC) && !has(libc::O_SYNC),
            append: has(libc::O_APPEND),
            truncate: has(libc::O_TRUNC),
            closes_on_exec: has(libc::O_CLOEXEC),
            without_io: has(libc::O_PATH) || has(libc::O_DIRECTORY),
        }
    }

    /// Of `creat`.
    pub fn created() -> OpenedHow {
        OpenedHow { truncate: true, ..OpenedHow::default() }
    }
}

/// An open file of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its path; `None` of what is neither a regular file nor a block device, and of files of the kernel.
    pub path: Option<PathBuf>,
    /// How it is open.
    pub how: OpenedHow,
    /// The position of `read` and `write`.
    pub position_bytes: u64,
    /// The size of a regular file.
    pub size_bytes: u64,
    /// When it was made, where its file system tells.
    pub made: Option<SystemTime>,
}

impl Opened {
    /// One of which nothing is known but this name that was made up for it.
    pub fn without_name(name: PathBuf) -> Opened {
        let how = OpenedHow::default();
        Opened { path: Some(name), how, position_bytes: 0, size_bytes: 0, made: None }
    }
}

/// The open file of a process that has this number.
///
/// # Errors
/// It is closed by now, the process has ended, or this user may not look.
pub fn opened(process: i32, descriptor: i32) -> io::Result<Opened> {
    let link = PathBuf::from(format!("/proc/{process}/fd/{descriptor}"));
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}"))?;
    let target = fs::read_link(&link)?;
    // Follows the link, also to a file that has no name any more.
    let found = fs::metadata(&link)?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = field("flags:").and_then(|flags| i32::from_str_radix(flags, 8).ok());
    Ok(Opened {
        path: path(target, &found),
        how: OpenedHow { truncate: false, ..OpenedHow::of(flags.unwrap_or(0)) },
        position_bytes: field("pos:").and_then(|position| position.parse().ok()).unwrap_or(0),
        size_bytes: found.len(),
        made: found.created().ok(),
    })
}

/// The file that had this path when it was opened, and that is closed by now; it may have been removed.
pub fn named(path: &Path) -> Opened {
    let in_directory = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    let place = fs::canonicalize(path).ok().or_else(in_directory).unwrap_or_else(|| path.to_path_buf());
    match fs::metadata(&place) {
        Ok(found) => Opened {
            path: self::path(place, &found),
            how: OpenedHow::default(),
            position_bytes: 0,
            size_bytes: found.len(),
            made: found.created().ok(),
        },
        Err(_) => {
            Opened { path: (!is_of_kernel(&place)).then_some(place), ..Opened::without_name(PathBuf::new()) }
        }
    }
}

/// The directory that a thread is in.
///
/// # Errors
/// It has ended, or this user may not look.
pub fn directory(thread: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{thread}/cwd"))
}

/// The directory that a thread has open by this number.
///
/// # Errors
/// It is closed by now, the thread has ended, or this user may not look.
pub fn directory_opened(thread: i32, descriptor: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{thread}/fd/{descriptor}"))
}

/// All open files of a process, with their numbers.
///
/// # Errors
/// The process has ended, or this user may not look.
pub fn all_opened(process: i32) -> io::Result<Vec<(i32, Opened)>> {
    let entries = fs::read_dir(format!("/proc/{process}/fd"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter_map(|number| Some((number, opened(process, number).ok()?))).collect())
}

/// The numbers of the threads of these processes and of those that descend from them, without this process: what it does on
/// account of what the others do would have no end.
pub fn threads_with_descendants(processes: &[i32]) -> Vec<i32> {
    let mut left = processes.to_vec();
    let mut threads = Vec::new();
    while let Some(process) = left.pop() {
        if process == std::process::id().cast_signed() {
            continue;
        }
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for thread in tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()) {
            threads.push(thread);
            let children = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
            left.extend(
                children.unwrap_or_default().split_whitespace().filter_map(|child| child.parse::<i32>().ok()),
            );
        }
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Whether it is a file of the kernel.
fn is_of_kernel(target: &Path) -> bool {
    ["/proc", "/sys", "/memfd:"].iter().any(|place| match place.strip_suffix(':') {
        Some(_) => target.as_os_str().as_bytes().starts_with(place.as_bytes()),
        None => target.starts_with(Path::new(place)),
    })
}

/// The path of a regular file or block device that is stored somewhere.
fn path(target: PathBuf, found: &Metadata) -> Option<PathBuf> {
    const DELETED: &[u8] = b" (deleted)";
    let is_storage = found.is_file() || found.file_type().is_block_device();
    if !is_storage || is_of_kernel(&target) || !target.is_absolute() {
        return None;
    }
    let mut bytes = target.into_os_string().into_vec();
    if bytes.ends_with(DELETED) {
        bytes.truncate(bytes.len() - DELETED.len());
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn an_open_file_is_told_with_its_position() {
        let path = std::env::temp_dir().join(format!("fiord-descriptors-{}", std::process::id()));
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        file.write_all(b"abcdef").unwrap();
        file.seek(SeekFrom::Start(2)).unwrap();
        fs::remove_file(&path).unwrap();
        let (process, number) = (std::process::id() as i32, file.as_raw_fd());
        let found = opened(process, number).unwrap();
        assert_eq!(
            (found.path.as_deref(), found.position_bytes, found.size_bytes),
            (Some(path.as_path()), 2, 6)
        );
        assert!(found.how.append && found.how.closes_on_exec && !found.how.direct, "{found:?}");
        assert!(all_opened(process).unwrap().iter().any(|(one, all)| *one == number && *all == found));
        let null = fs::File::open("/dev/null").unwrap();
        assert_eq!(opened(process, null.as_raw_fd()).unwrap().path, None);
        let status = fs::File::open("/proc/self/status").unwrap();
        assert_eq!(opened(process, status.as_raw_fd()).unwrap().path, None);
        assert!(opened(process, 1 << 20).is_err());
    }

    #[test]
    fn threads_of_others_are_found_and_never_those_of_this_process() {
        let process = std::process::id() as i32;
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let found = threads_with_descendants(&[parent, parent]);
        assert!(found.contains(&parent) && !found.contains(&process));
        assert_eq!(threads_with_descendants(&[-1]), []);
    }
}
