//! Findings about a report that was read back: from its own figures alone, since nothing else is known of the run.
//!
//! Invariant: a finding needs every figure that it rests on; where a format lacks one, there is no finding, and the check
//! is named as one that could not be made.

mod checks;
mod disks;
mod hosts;
mod known;

use fiord_import::Report;

pub use checks::{Check, Judgement};
pub use known::EngineFacts;
use known::Known;

/// Everything that the figures of a report allow to say.
pub fn of_report(report: &Report, engines: EngineFacts<'_>) -> Judgement {
    let mut judged = Judgement::default();
    let jobs: Vec<Known<'_>> = report.jobs.iter().map(|job| Known { report, job }).collect();
    for known in &jobs {
        judged.add(Check::Errors, known.errors());
        judged.add(Check::Depth, known.depth(engines));
        judged.add(Check::Depth, Ok(known.submission()));
        judged.add(Check::Processor, known.processor());
        judged.add(Check::Percentiles, known.few_samples());
        judged.add(Check::Percentiles, Ok(known.stopped_by_size()));
        judged.add(Check::Steadiness, known.steadiness());
        judged.add(Check::LongestIos, known.longest());
        judged.add(Check::LongestIos, Ok(known.hidden_waits()));
        judged.add(Check::LongestIos, Ok(known.never_issued()));
    }
    disks::judge(report, &jobs, &mut judged);
    hosts::judge(report, &mut judged);
    judged.closed(report.hosts.len() > 1)
}

#[cfg(test)]
mod tests;
