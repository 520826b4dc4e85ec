//! What was checked in a report that was read back, and what could not be.
//!
//! Invariant: a check that is not made has a reason; a report without findings is never called more than what was
//! checked.

use fiord_report::Finding;
use fiord_stats::OrderBy;

use crate::merge::merge;

/// A check of the figures of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// I/Os that failed.
    Errors,
    /// Whether as many I/Os were in flight as `iodepth` allows.
    Depth,
    /// Whether the rate was steady.
    Steadiness,
    /// The longest I/Os.
    LongestIos,
    /// Whether the processor was the limit.
    Processor,
    /// Whether percentiles rest on enough I/Os.
    Percentiles,
    /// Whether the disks did the I/O that the jobs issued.
    Caches,
    /// Whether others used the disks.
    Others,
    /// Whether the hosts ran at the same time, in reports of several.
    Together,
}

impl Check {
    /// Every check, in the order in which they are named.
    pub const ALL: [Check; 9] = [
        Check::Errors,
        Check::Depth,
        Check::Steadiness,
        Check::LongestIos,
        Check::Processor,
        Check::Percentiles,
        Check::Caches,
        Check::Others,
        Check::Together,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Check::Errors => "failed I/Os",
            Check::Depth => "the depth reached",
            Check::Steadiness => "steadiness",
            Check::LongestIos => "the longest I/Os",
            Check::Processor => "processors",
            Check::Percentiles => "enough I/Os for the percentiles",
            Check::Caches => "caches",
            Check::Others => "other programs on the disks",
            Check::Together => "whether the hosts ran at the same time",
        }
    }
}

/// What came of a check of one job: a finding or none, or why it could not be made.
pub(super) type Outcome = Result<Option<Finding>, &'static str>;

/// What a report was judged by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What was checked of every job.
    pub checked: Vec<Check>,
    /// What could not be checked of all of them, and why.
    pub unchecked: Vec<(Check, &'static str)>,
}

impl Judgement {
    /// Adds what came of a check.
    pub(super) fn add(&mut self, check: Check, outcome: Outcome) {
        match outcome {
            Ok(found) => self.findings.extend(found),
            Err(why) if self.unchecked.iter().all(|(known, _)| *known != check) => {
                self.unchecked.push((check, why));
            }
            Err(_) => {}
        }
    }

    /// With all outcomes added: findings merged as those of a run are. Whether hosts ran together is only a question where
    /// there are several.
    pub(super) fn closed(mut self, has_hosts: bool) -> Judgement {
        self.findings = merge(self.findings);
        self.unchecked.order_by_key(|(check, _)| *check);
        let is_checked = |check: &Check| {
            let applies = *check != Check::Together || has_hosts;
            applies && self.unchecked.iter().all(|(known, _)| known != check)
        };
        self.checked = Check::ALL.into_iter().filter(is_checked).collect();
        self
    }
}
