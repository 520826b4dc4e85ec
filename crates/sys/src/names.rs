//! Calls on the names of files and directories, for engines whose operations these are: one each, never retried.
//!
//! Invariant: names are C strings made beforehand, because a hot loop makes the calls; a relative one is looked up in the
//! thread's working directory.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;

use crate::errno::Errno;

/// Permissions of what is created, as fio's engines create it.
const FILE_MODE: libc::c_uint = 0o600;
const DIRECTORY_MODE: libc::mode_t = 0o700;

/// How a name is looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// `stat`.
    #[default]
    Stat,
    /// `lstat`: a symbolic link itself.
    Lstat,
    /// `statx`, for all that `stat` has.
    Statx,
}

/// Opens a regular file for reading and writing, which creates it, and closes it. One that is there is not changed.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn create_file(name: &CStr) -> io::Result<()> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::open(name.as_ptr(), flags, FILE_MODE) };
    checked(fd.min(0))?;
    // SAFETY: the descriptor is ours, and is not used again. Nothing was written that closing could fail to store.
    unsafe { libc::close(fd) };
    Ok(())
}

/// `unlink`.
///
/// # Errors
/// The kernel's; a directory is one.
#[inline]
pub fn remove_file(name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::unlink(name.as_ptr()) })
}

/// `mkdir`.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn create_directory(name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::mkdir(name.as_ptr(), DIRECTORY_MODE) })
}

/// `rmdir`: only an empty directory is removed.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn remove_directory(name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a zero.
    checked(unsafe { libc::rmdir(name.as_ptr()) })
}

/// Looks a name up.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn look_up(name: &CStr, how: Lookup) -> io::Result<()> {
    let mut found = MaybeUninit::<libc::stat64>::uninit();
    let mut extended = MaybeUninit::<libc::statx>::uninit();
    let name = name.as_ptr();
    // SAFETY: the name ends with a zero, and the kernel fills a structure of ours, which nothing reads.
    checked(unsafe {
        match how {
            Lookup::Stat => libc::stat64(name, found.as_mut_ptr()),
            Lookup::Lstat => libc::lstat64(name, found.as_mut_ptr()),
            Lookup::Statx => {
                libc::statx(libc::AT_FDCWD, name, 0, libc::STATX_BASIC_STATS, extended.as_mut_ptr())
            }
        }
    })
}

#[inline]
fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(Errno::last().into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn name(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    fn errno(result: io::Result<()>) -> i32 {
        result.unwrap_err().raw_os_error().unwrap()
    }

    #[test]
    fn files_and_directories_come_and_go_and_nothing_else_does() {
        let home = std::env::temp_dir().join(format!("fiord-names-{}", std::process::id()));
        fs::create_dir(&home).unwrap();
        let (file, directory, link) = (home.join("file"), home.join("directory"), home.join("link"));
        create_file(&name(&file)).unwrap();
        fs::write(&file, "contents").unwrap();
        // What is there stays as it is.
        create_file(&name(&file)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"contents");
        create_directory(&name(&directory)).unwrap();
        assert_eq!(errno(create_directory(&name(&directory))), libc::EEXIST);
        assert_eq!(errno(remove_file(&name(&directory))), libc::EISDIR);
        assert_eq!(errno(remove_directory(&name(&file))), libc::ENOTDIR);
        fs::write(directory.join("inside"), "").unwrap();
        assert_eq!(errno(remove_directory(&name(&directory))), libc::ENOTEMPTY);
        fs::remove_file(directory.join("inside")).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for how in [Lookup::Stat, Lookup::Lstat, Lookup::Statx] {
            look_up(&name(&file), how).unwrap();
            look_up(&name(&directory), how).unwrap();
            assert_eq!(look_up(&name(&link), how).is_ok(), how == Lookup::Lstat, "{how:?}");
            assert_eq!(errno(look_up(&name(&home.join("absent")), how)), libc::ENOENT);
        }
        remove_file(&name(&file)).unwrap();
        remove_directory(&name(&directory)).unwrap();
        assert!(!file.exists() && !directory.exists());
        fs::remove_dir_all(&home).unwrap();
    }
}
