//! What a study concludes about a disk whose figures are compared with limits.
//!
//! Invariant: verdicts are ordered from good to bad, so that the worst of several is their maximum.

/// How a disk compares with its limits; the worst verdict is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Within the limits, with headroom.
    Pass,
    /// Within the limits, without headroom.
    Marginal,
    /// Beyond a limit.
    Fail,
    /// The figures do not say: they are void, or spread across a limit.
    Undecided,
}

impl Verdict {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Marginal => "MARGINAL",
            Verdict::Fail => "FAIL",
            Verdict::Undecided => "CANNOT TELL",
        }
    }
}
