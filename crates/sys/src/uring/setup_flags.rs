//! The flags that make a ring cheaper, and which of them this kernel supports.
//!
//! Invariant: the kernel is probed once per process, with rings of one entry that are never used; the result holds for
//! every ring built afterwards.

use std::io;
use std::sync::{Mutex, PoisonError};

use io_uring::{Builder, IoUring, cqueue, squeue};

use super::options::RingOptions;

/// A flag that makes a ring cheaper, newest kernels first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupFlag {
    /// Submission without the index array.
    NoSqArray,
    /// Completions are finished only when this thread requests them; needs a single issuer.
    DeferTaskrun,
    /// Only this thread submits.
    SingleIssuer,
    /// This thread is not interrupted to finish completions: they are finished when it next leaves the kernel.
    CoopTaskrun,
    /// A failing submission does not stop the batch.
    SubmitAll,
    /// The ring's descriptor is registered: the kernel need not look it up.
    RegisteredRing,
}

impl SetupFlag {
    /// All of them.
    pub const ALL: [SetupFlag; 6] = [
        SetupFlag::NoSqArray,
        SetupFlag::DeferTaskrun,
        SetupFlag::SingleIssuer,
        SetupFlag::CoopTaskrun,
        SetupFlag::SubmitAll,
        SetupFlag::RegisteredRing,
    ];

    /// The name of its flag in the kernel's interface.
    pub fn name(self) -> &'static str {
        match self {
            SetupFlag::NoSqArray => "IORING_SETUP_NO_SQARRAY",
            SetupFlag::DeferTaskrun => "IORING_SETUP_DEFER_TASKRUN",
            SetupFlag::SingleIssuer => "IORING_SETUP_SINGLE_ISSUER",
            SetupFlag::CoopTaskrun => "IORING_SETUP_COOP_TASKRUN",
            SetupFlag::SubmitAll => "IORING_SETUP_SUBMIT_ALL",
            SetupFlag::RegisteredRing => "IORING_REGISTER_RING_FDS",
        }
    }

    /// The first Linux that supports it.
    pub fn since(self) -> &'static str {
        match self {
            SetupFlag::NoSqArray => "6.6",
            SetupFlag::DeferTaskrun => "6.1",
            SetupFlag::SingleIssuer => "6.0",
            SetupFlag::CoopTaskrun => "5.19",
            SetupFlag::SubmitAll | SetupFlag::RegisteredRing => "5.18",
        }
    }

    /// Whether it makes sense where a kernel thread submits: that thread finishes completions itself.
    fn fits_submission_polling(self) -> bool {
        !matches!(self, SetupFlag::DeferTaskrun | SetupFlag::CoopTaskrun)
    }

    /// It, and the flags it requires.
    pub(super) fn with_its_needs(self) -> Vec<SetupFlag> {
        if self == SetupFlag::DeferTaskrun { vec![self, SetupFlag::SingleIssuer] } else { vec![self] }
    }

    /// Sets it; a descriptor can be registered only once the ring exists.
    pub(super) fn ask<S, C>(self, builder: &mut Builder<S, C>)
    where
        S: squeue::EntryMarker,
        C: cqueue::EntryMarker,
    {
        match self {
            SetupFlag::NoSqArray => builder.setup_no_sqarray(),
            // Without the flag that reports work to run: workers would set it in memory that this thread reads.
            SetupFlag::DeferTaskrun => builder.setup_defer_taskrun(),
            SetupFlag::SingleIssuer => builder.setup_single_issuer(),
            // With the flag the kernel reports when there is work for this thread to run.
            SetupFlag::CoopTaskrun => builder.setup_coop_taskrun().setup_taskrun_flag(),
            SetupFlag::SubmitAll => builder.setup_submit_all(),
            SetupFlag::RegisteredRing => builder,
        };
    }
}

/// Sets of flags from best to none, each for older kernels than the one before.
///
/// `DeferTaskrun` excludes `CoopTaskrun`, and is better where the kernel hands requests to worker threads of its own
/// (tmpfs, zram): with `CoopTaskrun` each of them writes its completion into memory that this thread polls meanwhile.
pub(super) const LADDER: &[&[SetupFlag]] = &[
    &[SetupFlag::NoSqArray, SetupFlag::SingleIssuer, SetupFlag::DeferTaskrun, SetupFlag::SubmitAll],
    &[SetupFlag::SingleIssuer, SetupFlag::DeferTaskrun, SetupFlag::SubmitAll],
    &[SetupFlag::SingleIssuer, SetupFlag::CoopTaskrun, SetupFlag::SubmitAll],
    &[SetupFlag::CoopTaskrun, SetupFlag::SubmitAll],
    &[SetupFlag::SubmitAll],
    &[],
];

/// The flags for a ring of these options on this kernel.
///
/// # Errors
/// The kernel's, if it builds no ring even without flags. This result is not kept, because memory may be short now and
/// not the next time.
pub(super) fn best_for(options: &RingOptions) -> io::Result<Vec<SetupFlag>> {
    let polled = options.submission_polling.is_some();
    Ok(best()?.iter().copied().filter(|flag| !polled || flag.fits_submission_polling()).collect())
}

pub(super) fn best() -> io::Result<&'static [SetupFlag]> {
    static BEST: Mutex<Option<&[SetupFlag]>> = Mutex::new(None);
    let mut best = BEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(best) = *best {
        return Ok(best);
    }
    let found = first_taken(LADDER, probe)?;
    *best = Some(found);
    Ok(found)
}

/// The first set that does not fail with `EINVAL`; otherwise the last error.
fn first_taken<'a>(
    sets: &[&'a [SetupFlag]],
    mut attempt: impl FnMut(&[SetupFlag]) -> io::Result<()>,
) -> io::Result<&'a [SetupFlag]> {
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    for flags in sets {
        match attempt(flags) {
            Ok(()) => return Ok(flags),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// Builds the smallest ring with these flags, and drops it.
pub(super) fn probe(flags: &[SetupFlag]) -> io::Result<()> {
    builder::<squeue::Entry, cqueue::Entry>(&RingOptions::default(), flags).build(1).map(drop)
}

/// A ring of these options and flags, not yet built.
pub(super) fn builder<S, C>(options: &RingOptions, flags: &[SetupFlag]) -> Builder<S, C>
where
    S: squeue::EntryMarker,
    C: cqueue::EntryMarker,
{
    let mut builder = IoUring::<S, C>::builder();
    builder.setup_clamp();
    builder.dontfork();
    if let Some(entries) = options.completion_entries {
        builder.setup_cqsize(entries);
    }
    if let Some(polling) = options.submission_polling {
        builder.setup_sqpoll(polling.idle_ms);
        if let Some(cpu) = polling.cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
    }
    if options.completion_polling {
        builder.setup_iopoll();
    }
    flags.iter().for_each(|flag| flag.ask(&mut builder));
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusing(unknown: &'static [SetupFlag]) -> impl FnMut(&[SetupFlag]) -> io::Result<()> {
        move |flags| match flags.iter().any(|flag| unknown.contains(flag)) {
            true => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            false => Ok(()),
        }
    }

    #[test]
    fn an_older_kernel_gets_the_flags_it_supports() {
        use SetupFlag::{CoopTaskrun, DeferTaskrun, NoSqArray, SingleIssuer, SubmitAll};
        let kernels: [(&'static [SetupFlag], &[SetupFlag]); 6] = [
            (&[], &[NoSqArray, SingleIssuer, DeferTaskrun, SubmitAll]),
            (&[NoSqArray], &[SingleIssuer, DeferTaskrun, SubmitAll]),
            (&[NoSqArray, DeferTaskrun], &[SingleIssuer, CoopTaskrun, SubmitAll]),
            (&[NoSqArray, DeferTaskrun, SingleIssuer], &[CoopTaskrun, SubmitAll]),
            (&[NoSqArray, DeferTaskrun, SingleIssuer, CoopTaskrun], &[SubmitAll]),
            (&SetupFlag::ALL, &[]),
        ];
        for (unknown, best) in kernels {
            assert_eq!(first_taken(LADDER, refusing(unknown)).unwrap(), best, "without {unknown:?}");
        }
    }

    #[test]
    fn a_kernel_that_forbids_rings_is_probed_once() {
        let mut asked = 0;
        let answer = first_taken(LADDER, |_| {
            asked += 1;
            Err(io::Error::from_raw_os_error(libc::EPERM))
        });
        assert_eq!((answer.unwrap_err().raw_os_error(), asked), (Some(libc::EPERM), 1));
    }

    #[test]
    fn a_ring_with_submission_polling_has_no_flags_for_its_own_thread() {
        let polling = super::super::options::SubmissionPolling { idle_ms: 10, cpu: None };
        let options = RingOptions { submission_polling: Some(polling), ..RingOptions::default() };
        let Ok(flags) = best_for(&options) else {
            fiord_testing::skip!("no io_uring here");
        };
        assert!(flags.iter().all(|flag| flag.fits_submission_polling()), "{flags:?}");
    }
}
