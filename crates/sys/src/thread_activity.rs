//! What a thread of this process is doing in the kernel, to explain a thread that hangs.
//!
//! Invariant: reads `/proc/self` alone, and never waits for that thread.

use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// What a thread is doing in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    /// The name of its current system call, if it is one of those known here, or that it waits in a page fault.
    pub call: Option<&'static str>,
    /// The file that the call operates on, if it has a path.
    pub path: Option<PathBuf>,
    /// Whether it is in an uninterruptible sleep, waiting for a disk or a file system.
    pub is_uninterruptible: bool,
}

/// Which argument of a call identifies its file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    /// Its first argument is a descriptor.
    Descriptor,
    /// Its argument of this index points to a path.
    Path(usize),
    /// None.
    Nothing,
}

/// The same on all architectures.
const SYS_CACHESTAT: libc::c_long = 451;

/// What `syscall` has for a thread that waits outside of system calls.
const NO_CALL: libc::c_long = -1;

/// The calls that workers make, and those of the setup of a run.
const CALLS: &[(libc::c_long, &str, About)] = &[
    (NO_CALL, "page fault", About::Nothing),
    (libc::SYS_openat, "openat", About::Path(1)),
    (libc::SYS_unlinkat, "unlinkat", About::Path(1)),
    (libc::SYS_mkdirat, "mkdirat", About::Path(1)),
    (libc::SYS_statx, "statx", About::Path(1)),
    (libc::SYS_close, "close", About::Descriptor),
    (libc::SYS_read, "read", About::Descriptor),
    (libc::SYS_write, "write", About::Descriptor),
    (libc::SYS_pread64, "pread", About::Descriptor),
    (libc::SYS_pwrite64, "pwrite", About::Descriptor),
    (libc::SYS_readv, "readv", About::Descriptor),
    (libc::SYS_writev, "writev", About::Descriptor),
    (libc::SYS_preadv, "preadv", About::Descriptor),
    (libc::SYS_pwritev, "pwritev", About::Descriptor),
    (libc::SYS_preadv2, "preadv2", About::Descriptor),
    (libc::SYS_pwritev2, "pwritev2", About::Descriptor),
    (libc::SYS_fsync, "fsync", About::Descriptor),
    (libc::SYS_fdatasync, "fdatasync", About::Descriptor),
    #[cfg(all(target_pointer_width = "64", not(target_arch = "powerpc64")))]
    (libc::SYS_sync_file_range, "sync_file_range", About::Descriptor),
    (libc::SYS_syncfs, "syncfs", About::Descriptor),
    (libc::SYS_fallocate, "fallocate", About::Descriptor),
    (libc::SYS_ftruncate, "ftruncate", About::Descriptor),
    (libc::SYS_ioctl, "ioctl", About::Descriptor),
    #[cfg(all(target_pointer_width = "64", not(target_arch = "powerpc64")))]
    (libc::SYS_fadvise64, "fadvise", About::Descriptor),
    (libc::SYS_msync, "msync", About::Nothing),
    #[cfg(target_pointer_width = "64")]
    (libc::SYS_mmap, "mmap", About::Nothing),
    (libc::SYS_munmap, "munmap", About::Nothing),
    (libc::SYS_mprotect, "mprotect", About::Nothing),
    (libc::SYS_madvise, "madvise", About::Nothing),
    (libc::SYS_brk, "brk", About::Nothing),
    (libc::SYS_io_uring_enter, "io_uring_enter", About::Nothing),
    (libc::SYS_io_getevents, "io_getevents", About::Nothing),
    (libc::SYS_io_submit, "io_submit", About::Nothing),
    (libc::SYS_wait4, "wait4", About::Nothing),
    #[cfg(target_pointer_width = "64")]
    (libc::SYS_newfstatat, "newfstatat", About::Path(1)),
    (libc::SYS_readlinkat, "readlinkat", About::Path(1)),
    (libc::SYS_faccessat, "faccessat", About::Path(1)),
    (libc::SYS_faccessat2, "faccessat2", About::Path(1)),
    (libc::SYS_openat2, "openat2", About::Path(1)),
    (libc::SYS_statfs, "statfs", About::Path(0)),
    (libc::SYS_chdir, "chdir", About::Path(0)),
    (libc::SYS_fstat, "fstat", About::Descriptor),
    (libc::SYS_fstatfs, "fstatfs", About::Descriptor),
    (libc::SYS_getdents64, "getdents64", About::Descriptor),
    (libc::SYS_lseek, "lseek", About::Descriptor),
    (libc::SYS_flock, "flock", About::Descriptor),
    (libc::SYS_fcntl, "fcntl", About::Descriptor),
    (SYS_CACHESTAT, "cachestat", About::Descriptor),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open", About::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, "stat", About::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, "lstat", About::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, "readlink", About::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, "access", About::Path(0)),
];

/// The current activity of the thread with this id; empty if there is no such thread.
pub fn of(thread_id: u32) -> ThreadActivity {
    let task = format!("/proc/self/task/{thread_id}");
    let read = |name: &str| fs::read_to_string(format!("{task}/{name}")).unwrap_or_default();
    let is_uninterruptible = state_of(&read("stat")) == Some('D');
    let (call, about, arguments) = call_of(&read("syscall")).unwrap_or(("", About::Nothing, Vec::new()));
    let of_descriptor = || {
        let path = arguments.first().and_then(|number| fs::read_link(format!("{task}/fd/{number}")).ok());
        // Pipes and sockets have names that are not paths, `pipe:[1234]`.
        path.filter(|path| path.is_absolute())
    };
    let path = match about {
        About::Nothing => None,
        About::Descriptor => of_descriptor(),
        // Without a name the call is about the descriptor before it (`AT_EMPTY_PATH`).
        About::Path(index) => match arguments.get(index).and_then(|address| path_at(*address)) {
            Some(path) if path.as_os_str().is_empty() => of_descriptor(),
            path => path,
        },
    };
    ThreadActivity { call: Some(call).filter(|call| !call.is_empty()), path, is_uninterruptible }
}

/// Whether the thread with this id waits in a page fault at this moment.
pub fn is_in_page_fault(thread_id: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/self/task/{thread_id}/syscall")).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()) == Some(NO_CALL)
}

/// The state in `stat`, after the name, which may contain anything, including parentheses.
fn state_of(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The call in `syscall` (`257 0xffffff9c 0x7f... ...`), if it is one of those known.
fn call_of(text: &str) -> Option<(&'static str, About, Vec<u64>)> {
    let mut words = text.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let (_, name, about) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let argument = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    Some((name, *about, words.map_while(argument).collect()))
}

/// The path at an address of this process, read through a file, so that a wrong address is an error and not a fault.
fn path_at(address: u64) -> Option<PathBuf> {
    let mut bytes = [0; libc::PATH_MAX as usize];
    let length = File::open("/proc/self/mem").ok()?.read_at(&mut bytes, address).ok()?;
    let end = bytes[..length].iter().position(|byte| *byte == 0)?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes[..end].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{self, OpenHow};
    use crate::testing::temp_path;
    use crate::thread;
    use std::sync::mpsc;

    #[test]
    fn states_and_calls_are_read() {
        assert_eq!(state_of("12 (a) D b) S 1 2"), Some('S'));
        assert_eq!(state_of(""), None);
        let (name, _, arguments) = call_of(&format!("{} 0x3 0x10 0x0 0x7ffe", libc::SYS_pread64)).unwrap();
        assert_eq!((name, &arguments[..2]), ("pread", &[3, 16][..]));
        assert!(call_of("running\n").is_none() && call_of("").is_none());
        assert_eq!(call_of("-1 0x1 0x2").unwrap().0, "page fault");
    }

    #[test]
    fn a_thread_blocked_in_opening_a_pipe_is_described() {
        let path = temp_path("thread_activity");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let (sender, number) = mpsc::channel();
        let opens = path.clone();
        let opener = std::thread::spawn(move || {
            sender.send(thread::id() as u32).unwrap();
            file::open(&opens, &OpenHow::READ).map(drop)
        });
        let number = number.recv().unwrap();
        let found = loop {
            let found = of(number);
            if found.path.as_ref() == Some(&path) || opener.is_finished() {
                break found;
            }
            std::thread::yield_now();
        };
        let writer = file::open(&path, &OpenHow::WRITE);
        opener.join().unwrap().unwrap();
        drop(writer);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            found,
            ThreadActivity { call: Some("openat"), path: Some(path), is_uninterruptible: false }
        );
        assert_eq!(of(u32::MAX), ThreadActivity::default());
    }
}
