//! Whether a job of reads and writes had the mix that it asked for.
//!
//! Invariant: chance never makes a finding: the difference is far beyond what drawing the directions allows.

use fiord_options::job;
use fiord_plan::{Direction, Job, Pattern};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};
use fiord_stats::JobStats;

use crate::subject;

/// Fewer I/Os say nothing about a mix.
const IOS_MIN: u64 = 100;

/// A smaller difference is none, in percent of all I/Os.
const DIFFERENCE_MIN: f64 = 5.0;

/// Drawing the directions makes no larger difference than this many standard deviations.
const DEVIATIONS_MAX: f64 = 6.0;

/// A mix that something held back: a rate of one direction, think time after one.
pub(super) fn not_reached(job: &Job, stats: &JobStats) -> Option<Finding> {
    // What is verified is read as well; a trace has its own mix.
    let is_judged =
        job.access.pattern == Pattern::Mixed && job.replay.is_none() && job.verification.is_none();
    let [reads, writes] = [Direction::Read, Direction::Write].map(|of| stats.directions[of.index()].ios);
    let all = reads + writes;
    if !is_judged || all < IOS_MIN {
        return None;
    }
    let asked = f64::from(job.access.read_percent);
    let had = subject::percent(reads as f64, all as f64);
    let deviation = (asked * (100.0 - asked) / all as f64).sqrt();
    ((had - asked).abs() >= DIFFERENCE_MIN.max(DEVIATIONS_MAX * deviation)).then(|| {
        let sentence =
            format!("{had:.0} % of its I/Os were reads, of the {asked:.0} % that the job asks for");
        let rates = &job.pace;
        let remedy = if rates.has_rates() {
            "rates for both directions in the proportion of the mix, or for none"
        } else if rates.think.is_some() {
            "leave out thinktime, or let it follow I/Os of both directions"
        } else {
            "look for what holds one direction back, or give each direction a job of its own"
        };
        Finding::new(Code::MixNotReached, subject::job(job), sentence, remedy)
            .of_option(job::Access::rwmixread)
            .based_on([
                ("read_percent", Cell::Number(had, 1)),
                ("rwmixread", Cell::Count(u64::from(job.access.read_percent))),
                ("ios", Cell::Count(all)),
            ])
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(options: &[(&'static str, &str)], reads: u64, writes: u64) -> Option<String> {
        let common = [("ioengine", "psync"), ("filename", "/data/f"), ("rw", "randrw")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let mut stats = JobStats::default();
        (stats.directions[0].ios, stats.directions[1].ios) = (reads, writes);
        not_reached(&plan(&[("a", &options)]).jobs[0], &stats).map(|finding| finding.sentence)
    }

    #[test]
    fn a_mix_that_was_not_reached_is_found() {
        let mix = ("rwmixread", "5");
        let sentence = "97 % of its I/Os were reads, of the 5 % that the job asks for";
        assert_eq!(found(&[mix, ("rate", ",1m")], 97_000, 3_000).as_deref(), Some(sentence));
        assert!(found(&[mix], 11_000, 89_000).is_some());
        assert_eq!(found(&[mix], 9_000, 91_000), None, "less than 5 percentage points");
        assert_eq!(found(&[], 60, 40), None, "chance: two standard deviations of 100 I/Os");
        assert!(found(&[], 560_000, 440_000).is_some());
        assert_eq!(found(&[mix], 90, 3), None, "too few to say");
        assert_eq!(found(&[mix, ("verify", "md5")], 97_000, 3_000), None, "reads back what it wrote");
        assert_eq!(found(&[mix, ("rw", "randread")], 97_000, 0), None);
    }
}
