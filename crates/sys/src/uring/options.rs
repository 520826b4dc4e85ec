//! What a ring must have, as required by its user.
//!
//! Invariant: these are requirements; the flags that merely make a ring cheaper are chosen by `setup_flags.rs`.

/// A kernel thread that picks submissions up (`IORING_SETUP_SQPOLL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionPolling {
    /// Milliseconds without submissions after which it sleeps.
    pub idle_ms: u32,
    /// The processor it is bound to.
    pub cpu: Option<u32>,
}

/// What a ring must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingOptions {
    /// Submission queue entries; the kernel rounds up to a power of two and caps at its limit.
    pub entries: u32,
    /// Completion queue entries; twice the submission queue's by default.
    pub completion_entries: Option<u32>,
    /// Submissions are picked up by a kernel thread.
    pub submission_polling: Option<SubmissionPolling>,
    /// Completions are polled for in the device (`IORING_SETUP_IOPOLL`).
    pub completion_polling: bool,
}
