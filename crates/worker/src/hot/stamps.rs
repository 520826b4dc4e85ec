//! The times at which one I/O was generated, issued and completed.
//!
//! Invariant: all three are readings of the same clock, the worker's.

use fiord_engine::contract::Timing;

/// Times of one I/O, in nanoseconds on the worker's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamps {
    /// Generated.
    pub start_ns: u64,
    /// Submitted to the kernel.
    pub issue_ns: u64,
    /// Completed.
    pub end_ns: u64,
}

impl Stamps {
    /// For an engine that issues each I/O as soon as it is generated.
    #[inline]
    pub(crate) fn unqueued(start_ns: u64, end_ns: u64) -> Stamps {
        Stamps { start_ns, issue_ns: start_ns, end_ns }
    }

    /// For an operation that another thread executed, and that was reaped at `reaped_ns`.
    pub(crate) fn offloaded(start_ns: u64, reaped_ns: u64, timing: Timing) -> Stamps {
        let end_ns = reaped_ns.saturating_sub(timing.since_end_ns).max(start_ns);
        Stamps { start_ns, issue_ns: end_ns.saturating_sub(timing.execution_ns).max(start_ns), end_ns }
    }

    #[inline]
    pub(crate) fn submission_ns(self) -> u64 {
        self.issue_ns.saturating_sub(self.start_ns)
    }

    #[inline]
    pub(crate) fn completion_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.issue_ns)
    }

    /// Whether both latencies, and their sum, fit into 32 bits and none is negative: one comparison for all of that.
    #[inline]
    pub(crate) fn are_short(self) -> bool {
        let submission_ns = self.issue_ns.wrapping_sub(self.start_ns);
        let completion_ns = self.end_ns.wrapping_sub(self.issue_ns);
        (submission_ns | completion_ns | self.end_ns.wrapping_sub(self.start_ns)) <= u64::from(u32::MAX)
    }

    #[inline]
    pub(crate) fn total_ns(self) -> u64 {
        self.submission_ns() + self.completion_ns()
    }
}
