//! Commands run on a user's behalf, and the resource limits of this process.
//!
//! Invariant: a command goes to `/bin/sh` exactly as it was typed.

use crate::errno::{check, check_long};
use crate::signal;
use crate::thread::micros;
use crate::width::to_u64;
use rustix::process::{Pid, Resource, Signal, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};
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
    /// Starts `command`. Its output goes to `output`; without one, to our own standard error, because our standard
    /// output is for data.
    pub fn start(command: &OsStr, output: Option<File>) -> io::Result<Shell> {
        let (stdout, stderr): (Stdio, Stdio) = match output {
            Some(file) => (file.try_clone()?.into(), file.into()),
            None => (io::stderr().into(), Stdio::inherit()),
        };
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        Ok(Shell { child: with_ordinary_signals(&mut shell).spawn()? })
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Kills it and everything it started, and waits for it.
    pub fn kill(mut self) -> io::Result<ExitStatus> {
        // The child has not been waited for, so its process group cannot have been reused.
        rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL)?;
        self.child.wait()
    }
}

/// A program of the user's, in a process group of its own.
#[derive(Debug)]
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts it with these arguments. Its output goes to these files; without them, to our own standard error, because
    /// our standard output is for data.
    ///
    /// # Errors
    /// It is not found, or cannot be executed.
    pub fn start(
        program: &OsStr,
        arguments: &[OsString],
        output: Option<File>,
        error: Option<File>,
    ) -> io::Result<Program> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        command.stdout(output.map_or_else(|| io::stderr().into(), Stdio::from));
        command.stderr(error.map_or_else(Stdio::inherit, Stdio::from));
        Ok(Program { child: with_ordinary_signals(&mut command).spawn()? })
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks it, and everything it started, to end.
    ///
    /// # Errors
    /// It has ended.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::TERM)?)
    }

    /// Kills it and everything it started, and waits for it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kill(mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            // Its number may be another's by now.
            return Ok(status);
        }
        rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL)?;
        self.child.wait()
    }
}

/// Starts a command in a session of its own, which the end of this terminal does not end.
pub fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: one system call, which neither allocates nor takes a lock.
    unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from)) }
}

/// Interrupts a child as Ctrl-C does.
///
/// # Errors
/// It has ended.
pub fn interrupt(child: &Child) -> io::Result<()> {
    Ok(rustix::process::kill_process(Pid::from_child(child), Signal::INT)?)
}

/// Starts a command with the signals of an ordinary program, whoever starts it: none blocked, as on the threads of jobs, and
/// none ignored because fiord ignores it.
fn with_ordinary_signals(command: &mut Command) -> &mut Command {
    // SAFETY: the function changes the actions and the mask of signals by system calls, and neither allocates nor takes a
    // lock.
    unsafe { command.pre_exec(signal::reset_in_child) }
}

/// Runs a command as an ordinary program, whatever the signals and the class of the thread that starts it.
pub fn in_ordinary_state(command: &mut Command) -> &mut Command {
    in_ordinary_class(with_ordinary_signals(command))
}

/// Runs a command in the class of ordinary programs, whatever the class of the caller. In a real-time class, one that polls
/// without a pause would keep its processor from everything that it waits for.
fn in_ordinary_class(command: &mut Command) -> &mut Command {
    let leave = || {
        let priority: libc::c_int = 0;
        // SAFETY: the kernel reads one `sched_param`, which is an int. Libraries other than glibc do not make this call.
        let answer =
            unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const priority) };
        check_long(answer).map(drop)
    };
    // SAFETY: the closure makes one system call, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(leave) }
}

/// Resources used by a process that has ended, including the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChildUsage {
    /// Processor time, user and system, in microseconds.
    pub cpu_us: u64,
    /// Maximum resident memory in bytes, of the process or of one of its children, whichever is larger. At least that of
    /// the caller, because a child is a copy of its parent until it executes its program.
    pub memory_bytes_max: u64,
}

impl ChildUsage {
    /// Of both: the sum of their processor times, and the larger memory.
    #[must_use]
    pub fn and(self, other: ChildUsage) -> ChildUsage {
        ChildUsage {
            cpu_us: self.cpu_us + other.cpu_us,
            memory_bytes_max: self.memory_bytes_max.max(other.memory_bytes_max),
        }
    }
}

/// Waits until `child` ends. `ErrorKind::Interrupted` if a signal arrived first; the child is then still there. After
/// success its process id is free again and `child` must not be used any more.
pub fn wait_with_usage(child: &Child) -> io::Result<(ExitStatus, ChildUsage)> {
    wait4(child.id().cast_signed())
}

/// From now on, what a descendant of this process leaves behind when it ends becomes a child of this process.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Waits until this process has no children left, those that it adopted included; what they used. Nobody else in the
/// process may wait for a child meanwhile. `ErrorKind::Interrupted` if a signal arrived first.
pub fn wait_for_all_with_usage() -> io::Result<ChildUsage> {
    const ANY: libc::pid_t = -1;
    let mut used = ChildUsage::default();
    loop {
        match wait4(ANY) {
            Ok((_, usage)) => used = used.and(usage),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(used),
            Err(error) => return Err(error),
        }
    }
}

/// Kills the children that this process has at the moment, and waits for none.
pub fn kill_children() -> io::Result<()> {
    // A child is that of the thread that started it, or of the first one, if it was adopted.
    for thread in std::fs::read_dir("/proc/self/task")? {
        let children = std::fs::read_to_string(thread?.path().join("children"))?;
        for child in children.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)) {
            match rustix::process::kill_process(child, Signal::KILL) {
                // Another thread has waited for it meanwhile.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// The call of this name, which blocks.
fn wait4(process: libc::pid_t) -> io::Result<(ExitStatus, ChildUsage)> {
    let mut status = 0;
    let mut raw = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills both when it answers with a process's number.
    check(unsafe { libc::wait4(process, &raw mut status, 0, raw.as_mut_ptr()) })?;
    // SAFETY: the call succeeded.
    let raw = unsafe { raw.assume_init() };
    let usage = ChildUsage {
        cpu_us: micros(raw.ru_utime) + micros(raw.ru_stime),
        memory_bytes_max: to_u64(raw.ru_maxrss) * 1024,
    };
    Ok((ExitStatus::from_raw(status), usage))
}

/// Whether this process acts as root, of its user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Raises this process's limit on open files to its maximum; returns that number.
pub fn raise_open_file_limit() -> io::Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.current.unwrap_or(u64::MAX))
}

/// The limit on this process's address space in bytes (`ulimit -v`); `None` without a limit.
pub fn address_space_limit_bytes() -> Option<u64> {
    getrlimit(Resource::As).current
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::temp_path;

    #[test]
    fn a_shell_runs_what_was_typed_and_both_streams_are_kept() {
        let path = temp_path("shell");
        let mut shell =
            Shell::start(OsStr::new("echo out; echo err >&2; exit 3"), Some(File::create(&path).unwrap()))
                .unwrap();
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

    /// The lines of a process's status about these signals.
    fn signal_sets(status: &str) -> Vec<String> {
        let of = |line: &&str| line.starts_with("SigBlk") || line.starts_with("SigIgn");
        status.lines().filter(of).map(str::to_string).collect()
    }

    /// Those without the real-time signals, two of which the C library uses itself.
    const STANDARD: u64 = 0x7fff_ffff;

    /// The bit of a signal in a set of `/proc/PID/status`.
    fn bit(signal: libc::c_int) -> u64 {
        1 << (signal - 1)
    }

    #[test]
    fn programs_start_with_no_signal_blocked_or_ignored_for_our_sake() {
        let path = temp_path("signals");
        let show = OsString::from("exec cat /proc/self/status");
        let shown = std::thread::spawn({
            let path = path.clone();
            let started = {
                let path = path.clone();
                move || Some(File::create(&path).unwrap())
            };
            move || {
                signal::leave_to_other_threads();
                signal::fail_writes_by_errno().unwrap();
                // SAFETY: no handler is passed; a write beyond a limit fails instead, in this process of tests.
                unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
                let ours = std::fs::read_to_string("/proc/thread-self/status").unwrap();
                let mut shell = Shell::start(&show, started()).unwrap();
                while shell.ended().unwrap().is_none() {
                    std::thread::yield_now();
                }
                let of_shell = std::fs::read_to_string(&path).unwrap();
                let arguments = [OsString::from("/proc/self/status")];
                let mut program = Program::start(OsStr::new("cat"), &arguments, started(), None).unwrap();
                while program.ended().unwrap().is_none() {
                    std::thread::yield_now();
                }
                [ours, of_shell, std::fs::read_to_string(&path).unwrap()]
            }
        });
        let [ours, of_shell, of_program] = shown.join().unwrap().map(|status| signal_sets(&status));
        std::fs::remove_file(&path).unwrap();
        let set = |lines: &[String], at: usize| {
            u64::from_str_radix(lines[at].split_whitespace().nth(1).unwrap(), 16).unwrap() & STANDARD
        };
        let for_our_sake = bit(libc::SIGPIPE) | bit(libc::SIGXFSZ);
        assert!(set(&ours, 0) & bit(libc::SIGTERM) != 0 && set(&ours, 1) & for_our_sake == for_our_sake);
        for theirs in [of_shell, of_program] {
            assert_eq!((set(&theirs, 0), set(&theirs, 1)), (0, set(&ours, 1) & !for_our_sake), "{theirs:?}");
        }
    }

    /// Of a thread in a real-time class, as under `chrt -f 1`; it ends with the test.
    #[test]
    fn a_command_is_ordinary_whatever_class_started_it() {
        let class = |command: &mut Command| {
            let ran = command.args(["-o", "cls=", "-p"]).output().unwrap();
            String::from_utf8_lossy(&ran.stdout).trim().to_string()
        };
        let ps = || {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "exec ps \"$@\" $$", "sh"]);
            shell
        };
        let found = std::thread::spawn(move || {
            let thread = crate::thread::id().to_string();
            let set = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).output();
            set.is_ok_and(|set| set.status.success())
                .then(|| (class(&mut ps()), class(in_ordinary_class(&mut ps()))))
        });
        match found.join().unwrap() {
            Some(classes) => assert_eq!(classes, ("FF".to_string(), "TS".to_string())),
            None => fiord_testing::skip!("this user may not change the class of a thread"),
        }
    }

    #[test]
    fn a_shell_is_killed_with_what_it_started() {
        let shell = Shell::start(OsStr::new("sleep 1000; echo never"), None).unwrap();
        assert_eq!(shell.kill().unwrap().code(), None);
    }

    #[test]
    fn the_usage_of_a_child_is_its_own() {
        let memory = |bytes: u64| {
            let child = Command::new("sh")
                .args(["-c", &format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x); exit 3")])
                .spawn();
            let (status, usage) = wait_with_usage(&child.unwrap()).unwrap();
            assert_eq!(status.code(), Some(3));
            usage.memory_bytes_max
        };
        // A child starts with the memory that its parent had at the fork.
        let small = memory(1);
        let large = memory(small + 100_000_000);
        assert!(large > small + 100_000_000, "{small} {large}");
    }

    /// In a process of its own, because it waits for all children.
    #[test]
    fn what_a_child_left_behind_is_counted_or_killed() {
        const ROLE: &str = "FIORD_TEST_ADOPTS";
        let name = "process::tests::what_a_child_left_behind_is_counted_or_killed";
        if std::env::var(ROLE).is_ok() {
            adopt_orphans().unwrap();
            let busy = "(sleep 0.1; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo end) &";
            let child = Command::new("sh").args(["-c", busy]).stdout(Stdio::piped()).spawn().unwrap();
            let (status, of_child) = wait_with_usage(&child).unwrap();
            let of_orphan = wait_for_all_with_usage().unwrap();
            let printed = std::io::read_to_string(child.stdout.unwrap()).unwrap();
            assert_eq!((status.success(), printed.as_str()), (true, "end\n"));
            assert!(of_orphan.cpu_us > of_child.cpu_us, "{of_orphan:?} {of_child:?}");
            assert_eq!(wait_for_all_with_usage().unwrap(), ChildUsage::default());
            let asleep =
                Command::new("sh").args(["-c", "setsid sleep 1000 & exec sleep 1000"]).spawn().unwrap();
            kill_children().unwrap();
            assert!(!wait_with_usage(&asleep).unwrap().0.success());
            // The other has been adopted, if it was started at all.
            kill_children().unwrap();
            wait_for_all_with_usage().unwrap();
            std::process::exit(77);
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ROLE, "parent")
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(77), "{}", String::from_utf8_lossy(&child.stderr));
    }

    #[test]
    fn the_open_file_limit_is_raised_once() {
        let first = raise_open_file_limit().unwrap();
        assert!(first > 0);
        assert_eq!(raise_open_file_limit().unwrap(), first);
    }
}
