//! Why an engine cannot be set up on this machine, and what the user can do about it.
//!
//! Invariant: every error names the call that failed, the kernel's error, its usual cause, and a remedy.

use std::fmt;
use std::io;

use fiord_sys::errno::Errno;

/// An engine that could not be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetupError {
    /// The call that failed.
    pub call: &'static str,
    /// The kernel's error.
    pub errno: Errno,
    /// The usual cause of that error from that call.
    pub cause: &'static str,
    /// What to do or to use instead.
    pub remedy: &'static str,
}

impl SetupError {
    /// The error of a step, with its usual cause and remedy.
    pub(crate) fn new(step: SetupStep, error: &io::Error) -> SetupError {
        let errno = Errno::of(error).unwrap_or(Errno(libc::EIO));
        let (cause, remedy) = step.explain(errno.0);
        SetupError { call: step.call(), errno, cause, remedy }
    }
}

impl fmt::Display for SetupError {
    /// `io_setup failed: Resource temporarily unavailable (EAGAIN): likely …; …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}: {}; {}", self.call, self.errno, self.cause, self.remedy)
    }
}

impl std::error::Error for SetupError {}

/// The steps of setting an engine up that the kernel may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupStep {
    /// `io_uring_setup` and the mapping of its rings.
    RingSetup,
    /// The same with entries that hold commands.
    RingSetupCommands,
    /// The same with a submission thread.
    RingSetupThread,
    /// `IORING_REGISTER_BUFFERS`.
    RegisterBuffers,
    /// `IORING_REGISTER_FILES`.
    RegisterFiles,
    /// `io_setup`.
    AioSetup,
    /// `pipe2`.
    Pipe,
    /// `splice` and `vmsplice`.
    Splice,
    /// `preadv2` and `pwritev2`.
    Preadv2,
    /// `bind` and `listen`.
    Listen,
    /// Memory beside the buffers.
    Memory,
    /// The choice of the instruction that writes the processor's caches back.
    WriteBack,
    /// The start of a thread that executes operations.
    Thread,
}

const CAUSE_UNKNOWN: &str = "the kernel gives no usual cause for this";

impl SetupStep {
    fn call(self) -> &'static str {
        match self {
            SetupStep::RingSetup => "io_uring_setup",
            SetupStep::RingSetupCommands => "io_uring_setup with IORING_SETUP_SQE128",
            SetupStep::RingSetupThread => "io_uring_setup with IORING_SETUP_SQPOLL",
            SetupStep::RegisterBuffers => "io_uring_register(IORING_REGISTER_BUFFERS)",
            SetupStep::RegisterFiles => "io_uring_register(IORING_REGISTER_FILES)",
            SetupStep::AioSetup => "io_setup",
            SetupStep::Pipe => "pipe2",
            SetupStep::Splice => "splice or vmsplice",
            SetupStep::Preadv2 => "preadv2 or pwritev2",
            SetupStep::Listen => "bind",
            SetupStep::Memory => "mmap",
            SetupStep::WriteBack => "writing the processor's caches back",
            SetupStep::Thread => "pthread_create",
        }
    }

    /// The likely cause and what to do, for an errno.
    fn explain(self, errno: i32) -> (&'static str, &'static str) {
        match (self, errno) {
            (SetupStep::RingSetup | SetupStep::RingSetupThread | SetupStep::RingSetupCommands, _) => {
                explain_ring_setup(self, errno)
            }
            (SetupStep::RegisterBuffers, libc::ENOMEM) => (
                "pinning the buffers needs more locked memory than the limit allows",
                "raise it (ulimit -l), use a smaller iodepth or bs, or leave fixedbufs out",
            ),
            (SetupStep::RegisterBuffers, libc::EFAULT | libc::EINVAL | libc::EOPNOTSUPP) => (
                "the buffers are larger than 1 GiB each, too many, or in memory that cannot be pinned",
                "use a smaller bs, mem=malloc or mem=mmap, or leave fixedbufs out",
            ),
            (SetupStep::RegisterFiles, libc::EMFILE) => (
                "there are more files than the limit on open files allows to register",
                "raise it (ulimit -n) or leave registerfiles out",
            ),
            (SetupStep::RegisterFiles, libc::EINVAL | libc::EBADF) => (
                "this kernel is older than 5.5 and takes no table with empty places",
                "use a newer kernel or leave registerfiles out",
            ),
            (SetupStep::AioSetup, libc::EAGAIN) => (
                "the queues of all processes together exceed /proc/sys/fs/aio-max-nr",
                "raise it (sysctl fs.aio-max-nr=1048576), use a smaller iodepth, or ioengine=io_uring",
            ),
            (SetupStep::AioSetup, libc::ENOSYS) => (
                "this kernel is built without CONFIG_AIO, or a sandbox hides it",
                "use ioengine=io_uring, or psync with several jobs",
            ),
            (SetupStep::AioSetup, libc::EPERM) => (
                "a sandbox (seccomp, as in containers) forbids it",
                "allow io_setup there, or use ioengine=psync with several jobs",
            ),
            (SetupStep::Splice | SetupStep::Preadv2, libc::EPERM | libc::EACCES) => {
                ("a sandbox (seccomp, as in containers) forbids it", "allow it there, or use ioengine=psync")
            }
            (SetupStep::Preadv2, libc::ENOSYS) => {
                ("this kernel is older than 4.6, or a sandbox hides it", "use ioengine=pvsync")
            }
            (SetupStep::Splice, libc::ENOSYS) => ("a sandbox hides it", "use ioengine=psync"),
            (SetupStep::Pipe, libc::EMFILE | libc::ENFILE) => {
                ("too many files are open", "raise the limit (ulimit -n), or use fewer jobs")
            }
            (SetupStep::Listen, _) => explain_listening(errno),
            (SetupStep::WriteBack, _) => (
                "fiord knows the instructions for that on x86-64 and ARMv8.2 alone",
                "use ioengine=mmap, which asks the kernel to write its pages out",
            ),
            (SetupStep::Thread, libc::EAGAIN) => (
                "the limit on threads is reached",
                "raise it (ulimit -u, pids.max), use a smaller iodepth or leave io_submit_mode out",
            ),
            (_, libc::ENOMEM) => ("memory is short", "use a smaller iodepth or fewer jobs"),
            _ => (CAUSE_UNKNOWN, "try ioengine=psync with several jobs"),
        }
    }
}

fn explain_listening(errno: i32) -> (&'static str, &'static str) {
    match errno {
        libc::EADDRINUSE => {
            ("another program listens there", "end it (ss -lnp shows it) or use another port")
        }
        libc::EEXIST => {
            ("there is a file at the path of the socket, which is not removed", "use another filename")
        }
        libc::EACCES | libc::EPERM => (
            "a port below 1024 is for root, or the directory of the socket is not yours",
            "use a larger port or another directory",
        ),
        libc::ENOENT => ("the directory of the socket does not exist", "make it, or use another filename"),
        libc::ENAMETOOLONG => ("the path of a socket has at most 107 bytes", "use a shorter filename"),
        libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL => (
            "this kernel has no such addresses: IPv6 is off, or it has no vsock",
            "use another protocol (tcp, unix), or load the module (vsock_loopback for this machine alone)",
        ),
        libc::ENODEV => ("no interface has that address, or none can reach the group", "set interface="),
        libc::EINVAL => (
            "an option of the socket is out of range: mss (88 to 32767) or interface",
            "leave mss and interface out",
        ),
        _ => (CAUSE_UNKNOWN, "try another port or protocol"),
    }
}

fn explain_ring_setup(step: SetupStep, errno: i32) -> (&'static str, &'static str) {
    const OTHERS: &str = "use ioengine=libaio, or psync with several jobs";
    match errno {
        libc::ENOSYS => {
            ("this kernel is older than 5.1, built without CONFIG_IO_URING, or a sandbox hides it", OTHERS)
        }
        libc::EPERM if step == SetupStep::RingSetupThread => (
            "/proc/sys/kernel/io_uring_disabled or a sandbox forbids it, or a kernel before 5.13 keeps it to root",
            "allow it there, leave sqthread_poll out, or use ioengine=libaio",
        ),
        libc::EPERM | libc::EACCES => (
            "/proc/sys/kernel/io_uring_disabled, or a sandbox (seccomp, as in containers), forbids it",
            "allow it there, or use ioengine=libaio, or psync with several jobs",
        ),
        libc::ENOMEM => (
            "memory is short, or a kernel before 5.12 counts the rings as locked memory",
            "raise the limit (ulimit -l), or use a smaller iodepth or fewer jobs",
        ),
        libc::EMFILE | libc::ENFILE => {
            ("too many files are open", "raise the limit (ulimit -n), or use fewer jobs")
        }
        libc::EINVAL if step == SetupStep::RingSetupThread => {
            ("the CPU of sqthread_poll_cpu is not there or not online", "name another CPU or leave it out")
        }
        libc::EINVAL if step == SetupStep::RingSetupCommands => (
            "this kernel is older than 5.19, or the queue is deeper than the kernel takes (32768)",
            "use a newer kernel or a smaller iodepth",
        ),
        libc::EINVAL => ("the queue is deeper than the kernel takes (32768)", "use a smaller iodepth"),
        _ => (CAUSE_UNKNOWN, OTHERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [SetupStep; 12] = [
        SetupStep::RingSetup,
        SetupStep::RingSetupThread,
        SetupStep::RegisterBuffers,
        SetupStep::RegisterFiles,
        SetupStep::AioSetup,
        SetupStep::Pipe,
        SetupStep::Listen,
        SetupStep::RingSetupCommands,
        SetupStep::Memory,
        SetupStep::WriteBack,
        SetupStep::Splice,
        SetupStep::Preadv2,
    ];

    fn refused(step: SetupStep, errno: i32) -> SetupError {
        SetupError::new(step, &io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_refusal_tells_call_error_cause_and_remedy() {
        let text = refused(SetupStep::AioSetup, libc::EAGAIN).to_string();
        assert_eq!(
            text,
            "io_setup failed: Resource temporarily unavailable (EAGAIN): the queues of all processes \
             together exceed /proc/sys/fs/aio-max-nr; raise it (sysctl fs.aio-max-nr=1048576), use a smaller iodepth, \
             or ioengine=io_uring"
        );
    }

    #[test]
    fn usual_answers_have_their_own_cause() {
        let usual = [
            (SetupStep::RingSetup, libc::ENOSYS, "5.1"),
            (SetupStep::RingSetup, libc::EPERM, "io_uring_disabled"),
            (SetupStep::RingSetup, libc::ENOMEM, "locked memory"),
            (SetupStep::RingSetupThread, libc::EINVAL, "sqthread_poll_cpu"),
            (SetupStep::RingSetupThread, libc::EPERM, "root"),
            (SetupStep::RegisterBuffers, libc::ENOMEM, "locked memory"),
            (SetupStep::RegisterFiles, libc::EMFILE, "open files"),
            (SetupStep::AioSetup, libc::ENOSYS, "CONFIG_AIO"),
            (SetupStep::AioSetup, libc::EPERM, "seccomp"),
        ];
        for (step, errno, word) in usual {
            let refusal = refused(step, errno);
            assert!(refusal.cause.contains(word), "{refusal}");
        }
    }

    #[test]
    fn any_answer_to_any_step_is_explained() {
        for step in STEPS {
            for errno in 1..134 {
                let refusal = refused(step, errno);
                assert!(!refusal.cause.is_empty() && !refusal.remedy.is_empty(), "{step:?} {errno}");
            }
        }
    }
}
