//! What to tell a person whose machine does not give an engine what it needs.
//!
//! Invariant: every refusal names the call that was tried, the kernel's answer, what that usually means, and a way
//! to go on.

use std::fmt;
use std::io;

use fiord_sys::errno::Errno;

/// An engine that could not be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The call that was tried.
    pub what: &'static str,
    /// The kernel's answer.
    pub errno: Errno,
    /// The usual cause of that answer to that call.
    pub likely: &'static str,
    /// What to do or to use instead.
    pub instead: &'static str,
}

impl Refused {
    /// A refusal with the cause and the remedy that are usual for this answer to this step.
    pub(crate) fn new(step: Step, error: &io::Error) -> Refused {
        let errno = Errno::of(error).unwrap_or(Errno(libc::EIO));
        let (likely, instead) = step.explain(errno.0);
        Refused { what: step.call(), errno, likely, instead }
    }
}

impl fmt::Display for Refused {
    /// `io_setup failed: Resource temporarily unavailable (EAGAIN, errno 11): likely …; …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Errno(number) = self.errno;
        let (text, name) = (self.errno.describe(), self.errno.name());
        write!(f, "{} failed: {text} ({name}, errno {number}): {}; {}", self.what, self.likely, self.instead)
    }
}

impl std::error::Error for Refused {}

/// The steps of setting an engine up that the kernel may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `io_uring_setup` and the mapping of its rings.
    RingSetup,
    /// The same with a submission thread.
    RingSetupThread,
    /// `IORING_REGISTER_BUFFERS`.
    RegisterBuffers,
    /// `IORING_REGISTER_FILES`.
    RegisterFiles,
    /// `io_setup`.
    AioSetup,
}

const LIKELY_UNKNOWN: &str = "the kernel gives no usual cause for this";

impl Step {
    fn call(self) -> &'static str {
        match self {
            Step::RingSetup => "io_uring_setup",
            Step::RingSetupThread => "io_uring_setup with IORING_SETUP_SQPOLL",
            Step::RegisterBuffers => "io_uring_register(IORING_REGISTER_BUFFERS)",
            Step::RegisterFiles => "io_uring_register(IORING_REGISTER_FILES)",
            Step::AioSetup => "io_setup",
        }
    }

    /// The likely cause and what to do, for an errno.
    fn explain(self, errno: i32) -> (&'static str, &'static str) {
        match (self, errno) {
            (Step::RingSetup | Step::RingSetupThread, _) => explain_ring_setup(self, errno),
            (Step::RegisterBuffers, libc::ENOMEM) => (
                "pinning the buffers needs more locked memory than the limit allows",
                "raise it (ulimit -l), use a smaller iodepth or bs, or leave fixedbufs out",
            ),
            (Step::RegisterBuffers, libc::EFAULT | libc::EINVAL | libc::EOPNOTSUPP) => (
                "the buffers are larger than 1 GiB each, too many, or in memory that cannot be pinned",
                "use a smaller bs, mem=malloc or mem=mmap, or leave fixedbufs out",
            ),
            (Step::RegisterFiles, libc::EMFILE) => (
                "there are more files than the limit on open files allows to register",
                "raise it (ulimit -n) or leave registerfiles out",
            ),
            (Step::RegisterFiles, libc::EINVAL | libc::EBADF) => (
                "this kernel is older than 5.5 and takes no table with empty places",
                "use a newer kernel or leave registerfiles out",
            ),
            (Step::AioSetup, libc::EAGAIN) => (
                "the queues of all processes together exceed /proc/sys/fs/aio-max-nr",
                "raise it (sysctl fs.aio-max-nr=1048576), use a smaller iodepth, or ioengine=io_uring",
            ),
            (Step::AioSetup, libc::ENOSYS) => (
                "this kernel is built without CONFIG_AIO, or a sandbox hides it",
                "use ioengine=io_uring, or psync with several jobs",
            ),
            (Step::AioSetup, libc::EPERM) => (
                "a sandbox (seccomp, as in containers) forbids it",
                "allow io_setup there, or use ioengine=psync with several jobs",
            ),
            (_, libc::ENOMEM) => ("memory is short", "use a smaller iodepth or fewer jobs"),
            _ => (LIKELY_UNKNOWN, "try ioengine=psync with several jobs"),
        }
    }
}

fn explain_ring_setup(step: Step, errno: i32) -> (&'static str, &'static str) {
    const OTHERS: &str = "use ioengine=libaio, or psync with several jobs";
    match errno {
        libc::ENOSYS => {
            ("this kernel is older than 5.1, built without CONFIG_IO_URING, or a sandbox hides it", OTHERS)
        }
        libc::EPERM if step == Step::RingSetupThread => (
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
        libc::EINVAL if step == Step::RingSetupThread => {
            ("the CPU of sqthread_poll_cpu is not there or not online", "name another CPU or leave it out")
        }
        libc::EINVAL => ("the queue is deeper than the kernel takes (32768)", "use a smaller iodepth"),
        _ => (LIKELY_UNKNOWN, OTHERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 5] =
        [Step::RingSetup, Step::RingSetupThread, Step::RegisterBuffers, Step::RegisterFiles, Step::AioSetup];

    fn refused(step: Step, errno: i32) -> Refused {
        Refused::new(step, &io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_refusal_tells_call_error_cause_and_remedy() {
        let text = refused(Step::AioSetup, libc::EAGAIN).to_string();
        assert_eq!(
            text,
            "io_setup failed: Resource temporarily unavailable (EAGAIN, errno 11): the queues of all processes \
             together exceed /proc/sys/fs/aio-max-nr; raise it (sysctl fs.aio-max-nr=1048576), use a smaller iodepth, \
             or ioengine=io_uring"
        );
    }

    #[test]
    fn usual_answers_have_their_own_cause() {
        let usual = [
            (Step::RingSetup, libc::ENOSYS, "5.1"),
            (Step::RingSetup, libc::EPERM, "io_uring_disabled"),
            (Step::RingSetup, libc::ENOMEM, "locked memory"),
            (Step::RingSetupThread, libc::EINVAL, "sqthread_poll_cpu"),
            (Step::RingSetupThread, libc::EPERM, "root"),
            (Step::RegisterBuffers, libc::ENOMEM, "locked memory"),
            (Step::RegisterFiles, libc::EMFILE, "open files"),
            (Step::AioSetup, libc::ENOSYS, "CONFIG_AIO"),
            (Step::AioSetup, libc::EPERM, "seccomp"),
        ];
        for (step, errno, word) in usual {
            let refusal = refused(step, errno);
            assert!(refusal.likely.contains(word), "{refusal}");
        }
    }

    #[test]
    fn any_answer_to_any_step_is_explained() {
        for step in STEPS {
            for errno in 1..134 {
                let refusal = refused(step, errno);
                assert!(!refusal.likely.is_empty() && !refusal.instead.is_empty(), "{step:?} {errno}");
            }
        }
    }
}
