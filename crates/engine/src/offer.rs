//! What this kernel offers of io_uring, as far as the engine uses it.
//!
//! Invariant: it is found out by trying, without a file or a device, and nothing that was tried is left behind.

use std::io;

use fiord_sys::errno::Errno;
use fiord_sys::uring::{Hint, Ring, RingOptions, Standing, SubmissionPolling, standings};
use io_uring::{Probe, opcode};

use crate::refused::{Refused, Step};

/// What the kernel takes and what it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Hints that make every ring cheaper.
    pub hints: Vec<(Hint, Standing)>,
    /// What jobs may ask for; the kernel's answer where it does not take it.
    pub features: Vec<(Feature, Result<(), Errno>)>,
    /// Operations the engine queues, by the kernel's names, and whether the kernel knows them.
    pub operations: Vec<(&'static str, bool)>,
}

/// Something that a job may ask a ring for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Waits with a time limit.
    TimedWaits,
    /// Files known to the ring by number.
    RegisteredFiles,
    /// Buffers pinned and mapped once.
    RegisteredBuffers,
    /// A kernel thread that picks submissions up.
    SubmissionPolling,
    /// Completions polled for in the device. That the kernel takes it does not say that a device does: its driver
    /// needs queues for polling (`nvme.poll_queues`).
    CompletionPolling,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 5] = [
        Feature::TimedWaits,
        Feature::RegisteredFiles,
        Feature::RegisteredBuffers,
        Feature::SubmissionPolling,
        Feature::CompletionPolling,
    ];

    /// Its name in the kernel's interface.
    pub fn name(self) -> &'static str {
        match self {
            Feature::TimedWaits => "IORING_FEAT_EXT_ARG",
            Feature::RegisteredFiles => "IORING_REGISTER_FILES",
            Feature::RegisteredBuffers => "IORING_REGISTER_BUFFERS",
            Feature::SubmissionPolling => "IORING_SETUP_SQPOLL",
            Feature::CompletionPolling => "IORING_SETUP_IOPOLL",
        }
    }

    /// The first Linux that takes it, in the way it is used here.
    pub fn since(self) -> &'static str {
        match self {
            Feature::TimedWaits => "5.11",
            Feature::RegisteredFiles => "5.5",
            Feature::RegisteredBuffers | Feature::SubmissionPolling | Feature::CompletionPolling => "5.1",
        }
    }

    /// What needs it.
    pub fn serves(self) -> &'static str {
        match self {
            Feature::TimedWaits => "rates, think time",
            Feature::RegisteredFiles => "registerfiles",
            Feature::RegisteredBuffers => "fixedbufs",
            Feature::SubmissionPolling => "sqthread_poll",
            Feature::CompletionPolling => "hipri, if the device polls",
        }
    }

    fn try_out(self, ring: &Ring) -> Result<(), Errno> {
        let tried = match self {
            Feature::TimedWaits if ring.has_timed_waits() => Ok(()),
            Feature::TimedWaits => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            Feature::RegisteredFiles => ring.register_files(&[-1]),
            Feature::RegisteredBuffers => register_buffer(),
            Feature::SubmissionPolling => Ring::build(&RingOptions {
                submission_polling: Some(SubmissionPolling { idle_ms: 1, cpu: None }),
                ..PLAIN
            })
            .map(drop),
            Feature::CompletionPolling => {
                Ring::build(&RingOptions { completion_polling: true, ..PLAIN }).map(drop)
            }
        };
        tried.map_err(|error| Errno::of(&error).unwrap_or(Errno(libc::EIO)))
    }
}

/// The smallest ring.
const PLAIN: RingOptions =
    RingOptions { entries: 1, completion_entries: None, submission_polling: None, completion_polling: false };

/// Operations the engine queues.
const OPERATIONS: [(&str, u8); 8] = [
    ("READ", opcode::Read::CODE),
    ("WRITE", opcode::Write::CODE),
    ("READV", opcode::Readv::CODE),
    ("WRITEV", opcode::Writev::CODE),
    ("READ_FIXED", opcode::ReadFixed::CODE),
    ("WRITE_FIXED", opcode::WriteFixed::CODE),
    ("FSYNC", opcode::Fsync::CODE),
    ("SYNC_FILE_RANGE", opcode::SyncFileRange::CODE),
];

/// Asks the kernel.
///
/// # Errors
/// Why there is no io_uring here.
pub fn offer() -> Result<Offer, Refused> {
    let refused = |error: io::Error| Refused::new(Step::RingSetup, &error);
    let ring = Ring::build(&PLAIN).map_err(refused)?;
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe).is_ok();
    Ok(Offer {
        hints: standings().map_err(refused)?,
        features: Feature::ALL.map(|feature| (feature, feature.try_out(&ring))).to_vec(),
        operations: OPERATIONS.map(|(name, code)| (name, probed && probe.is_supported(code))).to_vec(),
    })
}

/// Registers a buffer of one page with a ring of its own.
fn register_buffer() -> io::Result<()> {
    let mut page = vec![0_u8; 4096];
    let ring = Ring::build(&PLAIN)?;
    let buffer = libc::iovec { iov_base: page.as_mut_ptr().cast(), iov_len: page.len() };
    // SAFETY: the ring is declared after the page, and so dropped before it.
    unsafe { ring.register_buffers(&[buffer]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_gets_is_what_is_offered() {
        let Ok(offer) = offer() else {
            println!("skipped: no io_uring here");
            return;
        };
        assert_eq!(offer.features.len(), Feature::ALL.len());
        let taken =
            |wanted| offer.features.iter().any(|(feature, answer)| *feature == wanted && answer.is_ok());
        let polling = Some(SubmissionPolling { idle_ms: 1, cpu: None });
        let polled = Ring::build(&RingOptions { submission_polling: polling, ..PLAIN });
        assert_eq!(taken(Feature::SubmissionPolling), polled.is_ok());
        assert!(offer.operations.iter().any(|(name, _)| *name == "READV"));
    }
}
