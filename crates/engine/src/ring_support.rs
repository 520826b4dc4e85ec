//! The features of io_uring used by the engine that this kernel supports.
//!
//! Invariant: features are determined by probing, without a file or a device, and probes leave nothing behind.

use std::io;

use fiord_sys::errno::Errno;
use fiord_sys::uring::{FlagSupport, Ring, RingOptions, SetupFlag, SubmissionPolling, setup_flag_support};
use io_uring::{Probe, opcode};

use crate::setup_error::{SetupError, SetupStep};

/// The features that the kernel supports, and those that it refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingSupport {
    /// Setup flags that make every ring cheaper.
    pub setup_flags: Vec<(SetupFlag, FlagSupport)>,
    /// Features that jobs may request; with the kernel's error for those that it refuses.
    pub features: Vec<(RingFeature, Result<(), Errno>)>,
    /// Operations the engine queues, by the kernel's names, and whether the kernel knows them.
    pub operations: Vec<(&'static str, bool)>,
}

/// A feature of rings that a job may request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingFeature {
    /// Waits with a time limit.
    TimedWaits,
    /// Files registered with the ring.
    RegisteredFiles,
    /// Buffers pinned and mapped once.
    RegisteredBuffers,
    /// A kernel thread that polls the submission queue.
    SubmissionPolling,
    /// Completions polled in the device. Support in the kernel does not imply support by a device: its driver needs
    /// queues for polling (`nvme.poll_queues`).
    CompletionPolling,
}

impl RingFeature {
    /// All of them.
    pub const ALL: [RingFeature; 5] = [
        RingFeature::TimedWaits,
        RingFeature::RegisteredFiles,
        RingFeature::RegisteredBuffers,
        RingFeature::SubmissionPolling,
        RingFeature::CompletionPolling,
    ];

    /// Its name in the kernel's interface.
    pub fn name(self) -> &'static str {
        match self {
            RingFeature::TimedWaits => "IORING_FEAT_EXT_ARG",
            RingFeature::RegisteredFiles => "IORING_REGISTER_FILES",
            RingFeature::RegisteredBuffers => "IORING_REGISTER_BUFFERS",
            RingFeature::SubmissionPolling => "IORING_SETUP_SQPOLL",
            RingFeature::CompletionPolling => "IORING_SETUP_IOPOLL",
        }
    }

    /// The first version of Linux that supports it as used here.
    pub fn since(self) -> &'static str {
        match self {
            RingFeature::TimedWaits => "5.11",
            RingFeature::RegisteredFiles => "5.5",
            RingFeature::RegisteredBuffers
            | RingFeature::SubmissionPolling
            | RingFeature::CompletionPolling => "5.1",
        }
    }

    /// The options that need it.
    pub fn serves(self) -> &'static str {
        match self {
            RingFeature::TimedWaits => "rates, think time",
            RingFeature::RegisteredFiles => "registerfiles",
            RingFeature::RegisteredBuffers => "fixedbufs",
            RingFeature::SubmissionPolling => "sqthread_poll",
            RingFeature::CompletionPolling => "hipri, if the device polls",
        }
    }

    fn probe(self, ring: &Ring) -> Result<(), Errno> {
        let tried = match self {
            RingFeature::TimedWaits if ring.has_timed_waits() => Ok(()),
            RingFeature::TimedWaits => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            RingFeature::RegisteredFiles => ring.register_files(&[-1]),
            RingFeature::RegisteredBuffers => register_buffer(),
            RingFeature::SubmissionPolling => <Ring>::build(&RingOptions {
                submission_polling: Some(SubmissionPolling { idle_ms: 1, cpu: None }),
                ..PLAIN
            })
            .map(drop),
            RingFeature::CompletionPolling => {
                <Ring>::build(&RingOptions { completion_polling: true, ..PLAIN }).map(drop)
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

/// Probes the kernel.
///
/// # Errors
/// The reason why io_uring is not available.
pub fn ring_support() -> Result<RingSupport, SetupError> {
    let refused = |error: io::Error| SetupError::new(SetupStep::RingSetup, &error);
    let ring = <Ring>::build(&PLAIN).map_err(refused)?;
    let mut probe = Probe::new();
    let probed = ring.submitter().register_probe(&mut probe).is_ok();
    Ok(RingSupport {
        setup_flags: setup_flag_support().map_err(refused)?,
        features: RingFeature::ALL.map(|feature| (feature, feature.probe(&ring))).to_vec(),
        operations: OPERATIONS.map(|(name, code)| (name, probed && probe.is_supported(code))).to_vec(),
    })
}

/// Registers a buffer of one page with a temporary ring.
fn register_buffer() -> io::Result<()> {
    let mut page = vec![0_u8; 4096];
    let ring = <Ring>::build(&PLAIN)?;
    let buffer = libc::iovec { iov_base: page.as_mut_ptr().cast(), iov_len: page.len() };
    // SAFETY: the ring is declared after the page, and so dropped before it.
    unsafe { ring.register_buffers(&[buffer]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_are_supported_can_be_set_up() {
        let Ok(offer) = ring_support() else {
            fiord_testing::skip!("no io_uring here");
        };
        assert_eq!(offer.features.len(), RingFeature::ALL.len());
        let taken =
            |wanted| offer.features.iter().any(|(feature, answer)| *feature == wanted && answer.is_ok());
        let polling = Some(SubmissionPolling { idle_ms: 1, cpu: None });
        let polled = <Ring>::build(&RingOptions { submission_polling: polling, ..PLAIN });
        assert_eq!(taken(RingFeature::SubmissionPolling), polled.is_ok());
        assert!(offer.operations.iter().any(|(name, _)| *name == "READV"));
    }
}
