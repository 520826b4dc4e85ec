//! Whether a job's ramp was over when the job ended: `ramp_time` and `ramp_size` leave the first part of it out.
//!
//! Invariant: a job without a ramp has no such finding.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::{Code, Finding};
use fiord_stats::RampEnd;

use crate::subject;

pub(super) fn ended(job: &Job, ramp: RampEnd) -> Option<Finding> {
    let (code, sentence) = match ramp {
        RampEnd::Over => return None,
        RampEnd::Unfinished => {
            (Code::EndedInRamp, "the job ended before its ramp did: its figures are those of the ramp")
        }
        RampEnd::NothingAfter => {
            (Code::NothingMeasured, "the job ended together with its ramp: nothing was measured")
        }
    };
    let (option, remedy) = match job.limits.ramp_bytes > 0 {
        true => (job::Time::ramp_size, "a smaller ramp_size, or a larger size"),
        false => (job::Time::ramp_time, "a shorter ramp_time, or a longer runtime or larger size"),
    };
    let subject = subject::job(job);
    Some(Finding::new(code, subject, sentence, remedy).of_option(option))
}
