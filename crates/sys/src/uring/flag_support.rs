//! Which of the flags that make a ring cheaper are in use on this kernel.
//!
//! Invariant: reports the same choice that rings are built with.

use std::io;

use super::Ring;
use super::options::RingOptions;
use super::setup_flags::{SetupFlag, best, probe};
use crate::errno::Errno;

/// The use of a flag on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSupport {
    /// Rings have it.
    InUse,
    /// The kernel supports it, and rings have another that serves better.
    NotNeeded,
    /// The kernel does not support it.
    Unsupported(Errno),
}

/// Each flag, and its use in a ring without polling.
///
/// # Errors
/// As for `Ring::build`.
pub fn setup_flag_support() -> io::Result<Vec<(SetupFlag, FlagSupport)>> {
    let ring: Ring = Ring::build(&RingOptions { entries: 1, ..RingOptions::default() })?;
    let best = best()?;
    let state = |flag: SetupFlag| match flag {
        SetupFlag::RegisteredRing => {
            ring.registration.map_or_else(FlagSupport::Unsupported, |_| FlagSupport::InUse)
        }
        _ if best.contains(&flag) => FlagSupport::InUse,
        _ => match probe(&flag.with_its_needs()) {
            Ok(()) => FlagSupport::NotNeeded,
            Err(error) => FlagSupport::Unsupported(Errno::of(&error).unwrap_or(Errno(libc::EINVAL))),
        },
    };
    Ok(SetupFlag::ALL.map(|flag| (flag, state(flag))).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_reported() {
        let Ok(setup_flag_support) = setup_flag_support() else {
            fiord_testing::skip!("no io_uring here");
        };
        let state = |wanted| setup_flag_support.iter().find(|(flag, _)| *flag == wanted).unwrap().1;
        assert_eq!(setup_flag_support.len(), SetupFlag::ALL.len());
        let best = best().unwrap();
        assert!(best.iter().all(|flag| state(*flag) == FlagSupport::InUse));
        assert!(
            [SetupFlag::DeferTaskrun, SetupFlag::CoopTaskrun]
                .iter()
                .any(|flag| state(*flag) != FlagSupport::InUse),
            "they exclude each other"
        );
    }
}
