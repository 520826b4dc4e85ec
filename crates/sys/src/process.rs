//! Other programs, run for a user who asked for them, and the limits this one lives in.
//!
//! Invariant: a command goes to `/bin/sh` exactly as it was typed.

use crate::errno::check;
use crate::thread::micros;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A command in a shell, in a process group of its own.
#[derive(Debug)]
pub struct Shell {
    child: Child,
}

impl Shell {
    /// Starts `command`. What it prints goes to `output`; without one, to our own standard error, because our standard
    /// output is for data.
    pub fn start(command: &str, output: Option<File>) -> io::Result<Shell> {
        let (stdout, stderr): (Stdio, Stdio) = match output {
            Some(file) => (file.try_clone()?.into(), file.into()),
            None => (io::stderr().into(), Stdio::inherit()),
        };
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        Ok(Shell { child: shell.spawn()? })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends it and everything it started, and waits for it.
    pub fn kill(mut self) -> io::Result<ExitStatus> {
        // SAFETY: no memory is passed. The group is that of a child nobody has waited for, so its number is still its
        // own.
        check(unsafe { libc::killpg(self.child.id().cast_signed(), libc::SIGKILL) })?;
        self.child.wait()
    }
}

/// What a process that has ended had used, with the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildUsage {
    /// Processor time, user's and system's, in microseconds.
    pub cpu_us: u64,
    /// Most memory that was resident at a time, in bytes: of the process or of one of its children, whichever had more.
    /// At least what the caller itself has had, because a child is a copy of its parent until it runs its program.
    pub memory_bytes_max: u64,
}

/// Waits until `child` ends. `ErrorKind::Interrupted` if a signal came first; the child is then still there. After
/// success its number is free again and nothing else may be asked of `child`.
pub fn wait_with_usage(child: &Child) -> io::Result<(ExitStatus, ChildUsage)> {
    let mut status = 0;
    let mut raw = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills both when it answers with the child's number.
    check(unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    let raw = unsafe { raw.assume_init() };
    let usage = ChildUsage {
        cpu_us: micros(raw.ru_utime) + micros(raw.ru_stime),
        memory_bytes_max: raw.ru_maxrss as u64 * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// Raises the number of files this process may open to as many as it is allowed; answers that number.
pub fn raise_open_file_limit() -> io::Result<u64> {
    let mut limit = limit(libc::RLIMIT_NOFILE)?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the call reads one rlimit.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(limit.rlim_cur)
}

/// How much memory this process may lock, in bytes; `None` where there is no limit.
pub fn locked_memory_limit_bytes() -> io::Result<Option<u64>> {
    let limit = limit(libc::RLIMIT_MEMLOCK)?.rlim_cur;
    Ok((limit != libc::RLIM_INFINITY).then_some(limit))
}

/// How much address space this process may have, in bytes (`ulimit -v`); `None` where there is no limit.
pub fn address_space_limit_bytes() -> io::Result<Option<u64>> {
    let limit = limit(libc::RLIMIT_AS)?.rlim_cur;
    Ok((limit != libc::RLIM_INFINITY).then_some(limit))
}

fn limit(which: libc::__rlimit_resource_t) -> io::Result<libc::rlimit> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the call fills one rlimit when it answers 0.
    check(unsafe { libc::getrlimit(which, limit.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    Ok(unsafe { limit.assume_init() })
}

/// Whether this process has root's powers as far as user numbers tell.
pub fn is_root() -> bool {
    // SAFETY: no memory is passed, and the call cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::temp_path;

    #[test]
    fn a_shell_runs_what_was_typed_and_both_streams_are_kept() {
        let path = temp_path("shell");
        let mut shell =
            Shell::start("echo out; echo err >&2; exit 3", Some(File::create(&path).unwrap())).unwrap();
        let status = loop {
            if let Some(status) = shell.ended().unwrap() {
                break status;
            }
            std::thread::yield_now();
        };
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(text, "out\nerr\n");
    }

    #[test]
    fn a_shell_is_killed_with_what_it_started() {
        let shell = Shell::start("sleep 1000; echo never", None).unwrap();
        assert_eq!(shell.kill().unwrap().code(), None);
    }

    #[test]
    fn a_child_is_told_apart_by_what_it_used() {
        let memory = |bytes: &str| {
            let child = Command::new("sh")
                .args(["-c", &format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x); exit 3")])
                .spawn();
            let (status, usage) = wait_with_usage(&child.unwrap()).unwrap();
            assert_eq!(status.code(), Some(3));
            usage.memory_bytes_max
        };
        let large = memory("100000000");
        assert!(large > 100_000_000 && memory("1") < large / 2, "{large}");
    }

    #[test]
    fn the_open_file_limit_is_raised_once() {
        let first = raise_open_file_limit().unwrap();
        assert!(first > 0);
        assert_eq!(raise_open_file_limit().unwrap(), first);
        locked_memory_limit_bytes().unwrap();
    }
}
