//! The hints that make a ring cheaper, and which of them this kernel takes.
//!
//! Invariant: the kernel is asked once per process, by rings of one entry that are never used; what it answered holds
//! for every ring built afterwards.

use std::io;
use std::sync::{Mutex, PoisonError};

use io_uring::Builder;

use super::{Ring, RingOptions, builder};
use crate::errno::Errno;

/// A hint that makes a ring cheaper, newest kernels first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Submission without the index array.
    NoSqArray,
    /// Completions are finished when this thread asks for them and not before; needs a single issuer.
    DeferTaskrun,
    /// Only this thread submits.
    SingleIssuer,
    /// This thread is not interrupted to finish completions: they are when it next leaves the kernel.
    CoopTaskrun,
    /// A failing submission does not stop the batch.
    SubmitAll,
    /// The ring's descriptor is registered: the kernel need not look it up.
    RegisteredRing,
}

impl Hint {
    /// All of them.
    pub const ALL: [Hint; 6] = [
        Hint::NoSqArray,
        Hint::DeferTaskrun,
        Hint::SingleIssuer,
        Hint::CoopTaskrun,
        Hint::SubmitAll,
        Hint::RegisteredRing,
    ];

    /// The name of its flag in the kernel's interface.
    pub fn name(self) -> &'static str {
        match self {
            Hint::NoSqArray => "IORING_SETUP_NO_SQARRAY",
            Hint::DeferTaskrun => "IORING_SETUP_DEFER_TASKRUN",
            Hint::SingleIssuer => "IORING_SETUP_SINGLE_ISSUER",
            Hint::CoopTaskrun => "IORING_SETUP_COOP_TASKRUN",
            Hint::SubmitAll => "IORING_SETUP_SUBMIT_ALL",
            Hint::RegisteredRing => "IORING_REGISTER_RING_FDS",
        }
    }

    /// The first Linux that takes it.
    pub fn since(self) -> &'static str {
        match self {
            Hint::NoSqArray => "6.6",
            Hint::DeferTaskrun => "6.1",
            Hint::SingleIssuer => "6.0",
            Hint::CoopTaskrun => "5.19",
            Hint::SubmitAll | Hint::RegisteredRing => "5.18",
        }
    }

    /// Whether it makes sense where a kernel thread submits: that thread finishes completions itself.
    fn fits_submission_polling(self) -> bool {
        !matches!(self, Hint::DeferTaskrun | Hint::CoopTaskrun)
    }

    /// It, and what the kernel does not take it without.
    fn with_its_needs(self) -> Vec<Hint> {
        if self == Hint::DeferTaskrun { vec![self, Hint::SingleIssuer] } else { vec![self] }
    }

    /// Asks for it; a registered descriptor is asked for once the ring is there.
    pub(super) fn ask(self, builder: &mut Builder) {
        match self {
            Hint::NoSqArray => builder.setup_no_sqarray(),
            // With the flag the kernel says when there is work for us to run.
            Hint::DeferTaskrun => builder.setup_defer_taskrun().setup_taskrun_flag(),
            Hint::SingleIssuer => builder.setup_single_issuer(),
            Hint::CoopTaskrun => builder.setup_coop_taskrun().setup_taskrun_flag(),
            Hint::SubmitAll => builder.setup_submit_all(),
            Hint::RegisteredRing => builder,
        };
    }
}

/// Sets of hints from best to none, each for older kernels than the one before.
///
/// `DeferTaskrun` is in none. It excludes `CoopTaskrun`, and loses to it where I/Os end one after another while the
/// thread waits for the first: what ends meanwhile takes a system call more, and rounds fall apart. Direct reads on
/// virtio and loop devices cost 8 to 17% more processor time with it, cached ones the same.
pub(super) const LADDER: &[&[Hint]] = &[
    &[Hint::NoSqArray, Hint::SingleIssuer, Hint::CoopTaskrun, Hint::SubmitAll],
    &[Hint::SingleIssuer, Hint::CoopTaskrun, Hint::SubmitAll],
    &[Hint::CoopTaskrun, Hint::SubmitAll],
    &[Hint::SubmitAll],
    &[],
];

/// The hints for a ring of these options on this kernel.
///
/// # Errors
/// The kernel's, where it builds no ring at all, however plain. Such an answer is not kept: memory may be short now
/// and not the next time.
pub(super) fn best_for(options: &RingOptions) -> io::Result<Vec<Hint>> {
    let polled = options.submission_polling.is_some();
    Ok(best()?.iter().copied().filter(|hint| !polled || hint.fits_submission_polling()).collect())
}

fn best() -> io::Result<&'static [Hint]> {
    static BEST: Mutex<Option<&[Hint]>> = Mutex::new(None);
    let mut best = BEST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(best) = *best {
        return Ok(best);
    }
    let found = first_taken(LADDER, try_out)?;
    *best = Some(found);
    Ok(found)
}

/// The first set that is not answered with `EINVAL`; the last answer where none is.
fn first_taken<'a>(
    sets: &[&'a [Hint]],
    mut attempt: impl FnMut(&[Hint]) -> io::Result<()>,
) -> io::Result<&'a [Hint]> {
    let mut refusal = io::Error::from_raw_os_error(libc::EINVAL);
    for hints in sets {
        match attempt(hints) {
            Ok(()) => return Ok(hints),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// Builds the smallest ring with these hints, and lets go of it.
fn try_out(hints: &[Hint]) -> io::Result<()> {
    builder(&RingOptions::default(), hints).build(1).map(drop)
}

/// What became of a hint on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Rings have it.
    Used,
    /// The kernel takes it, and rings have another that serves better.
    Unneeded,
    /// The kernel does not take it.
    Refused(Errno),
}

/// Each hint, and what became of it in a ring that nobody polls.
///
/// # Errors
/// As for `Ring::build`.
pub fn standings() -> io::Result<Vec<(Hint, Standing)>> {
    let ring = Ring::build(&RingOptions { entries: 1, ..RingOptions::default() })?;
    let best = best()?;
    let standing = |hint: Hint| match hint {
        Hint::RegisteredRing => ring.registration.map_or_else(Standing::Refused, |_| Standing::Used),
        _ if best.contains(&hint) => Standing::Used,
        _ => match try_out(&hint.with_its_needs()) {
            Ok(()) => Standing::Unneeded,
            Err(error) => Standing::Refused(Errno::of(&error).unwrap_or(Errno(libc::EINVAL))),
        },
    };
    Ok(Hint::ALL.map(|hint| (hint, standing(hint))).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusing(unknown: &'static [Hint]) -> impl FnMut(&[Hint]) -> io::Result<()> {
        move |hints| match hints.iter().any(|hint| unknown.contains(hint)) {
            true => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            false => Ok(()),
        }
    }

    #[test]
    fn an_older_kernel_gets_the_hints_it_knows() {
        use Hint::{CoopTaskrun, NoSqArray, SingleIssuer, SubmitAll};
        let kernels: [(&'static [Hint], &[Hint]); 5] = [
            (&[], &[NoSqArray, SingleIssuer, CoopTaskrun, SubmitAll]),
            (&[NoSqArray], &[SingleIssuer, CoopTaskrun, SubmitAll]),
            (&[NoSqArray, SingleIssuer], &[CoopTaskrun, SubmitAll]),
            (&[NoSqArray, SingleIssuer, CoopTaskrun], &[SubmitAll]),
            (&Hint::ALL, &[]),
        ];
        for (unknown, best) in kernels {
            assert_eq!(first_taken(LADDER, refusing(unknown)).unwrap(), best, "without {unknown:?}");
        }
    }

    #[test]
    fn a_kernel_that_forbids_rings_is_asked_once() {
        let mut asked = 0;
        let answer = first_taken(LADDER, |_| {
            asked += 1;
            Err(io::Error::from_raw_os_error(libc::EPERM))
        });
        assert_eq!((answer.unwrap_err().raw_os_error(), asked), (Some(libc::EPERM), 1));
    }

    #[test]
    fn each_hint_stands_somewhere() {
        let Ok(standings) = standings() else {
            println!("skipped: no io_uring here");
            return;
        };
        let standing = |wanted| standings.iter().find(|(hint, _)| *hint == wanted).unwrap().1;
        assert_eq!(standings.len(), Hint::ALL.len());
        let best = best().unwrap();
        assert!(best.iter().all(|hint| standing(*hint) == Standing::Used));
        assert_ne!(standing(Hint::DeferTaskrun), Standing::Used);
    }

    #[test]
    fn a_ring_whose_submissions_are_polled_has_no_hints_about_its_own_work() {
        let polling = super::super::SubmissionPolling { idle_ms: 10, cpu: None };
        let options = RingOptions { submission_polling: Some(polling), ..RingOptions::default() };
        let Ok(hints) = best_for(&options) else {
            println!("skipped: no io_uring here");
            return;
        };
        assert!(hints.iter().all(|hint| hint.fits_submission_polling()), "{hints:?}");
    }
}
