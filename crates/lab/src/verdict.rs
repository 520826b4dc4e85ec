//! What a study concludes about a disk whose figures are compared with limits.
//!
//! Invariant: verdicts are ordered from good to bad, so that the worst of several is their maximum.

/// How a disk compares with its limits. Of several the greatest holds for all: what certainly fails is not hidden by what is
/// not known, and what is not known not by what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Within the limits, with headroom.
    Pass,
    /// Within the limits, without headroom.
    Marginal,
    /// The figures do not say: they are void, or spread across a limit.
    Undecided,
    /// Beyond a limit.
    Fail,
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
