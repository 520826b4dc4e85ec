//! Jobs that may end before the run time they were given.
//!
//! Invariant: a job whose rate cannot reach its size in its run time is none of them.

use fiord_options::job;
use fiord_plan::{Direction, Job};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding};

use crate::subject;

/// A run time without `time_based`: the job ends at its size.
pub(super) fn stops_early(job: &Job) -> Option<Finding> {
    if job.engine.cycle().is_some() {
        // Nothing but time or a number ends it.
        return None;
    }
    let limits = &job.limits;
    let runtime_s = limits.runtime_ns? as f64 / 1e9;
    let size_bytes = limits.loop_bytes.saturating_mul(limits.loops);
    let is_too_slow = bytes_per_s_max(job).is_some_and(|rate| rate as f64 * runtime_s < size_bytes as f64);
    (!limits.time_based && size_bytes > 0 && !is_too_slow).then(|| {
        let decimals = usize::from(runtime_s.fract() > 0.0);
        let sentence = format!(
            "it ends when it has transferred {}, even if that is before its runtime of {runtime_s:.decimals$} s",
            shown_bytes(size_bytes)
        );
        Finding::new(Code::StopsEarly, subject::job(job), sentence, "time_based=1 runs for the full time")
            .of_option(job::Time::time_based)
            .based_on([("size_bytes", Cell::Bytes(size_bytes)), ("runtime_s", Cell::Number(runtime_s, 1))])
    })
}

/// The rate that the job is held to; `None` if one of its directions has no limit in bytes.
fn bytes_per_s_max(job: &Job) -> Option<u64> {
    let directions = Direction::ALL.into_iter().filter(|direction| job.access.pattern.includes(*direction));
    directions.map(|direction| job.pace.bytes_per_s[direction.index()]).sum()
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(options: &[(&'static str, &str)]) -> Option<String> {
        let common = [("size", "8m"), ("rw", "rw")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        stops_early(&plan(&[("a", &options)]).jobs[0]).map(|finding| finding.sentence)
    }

    #[test]
    fn a_run_time_that_the_size_may_cut_short_is_found() {
        let sentence = "it ends when it has transferred 16MiB, even if that is before its runtime of 60 s";
        assert_eq!(found(&[("runtime", "60"), ("loops", "2")]).as_deref(), Some(sentence));
        assert!(found(&[("runtime", "500ms")]).unwrap().ends_with("its runtime of 0.5 s"));
        assert_eq!(found(&[("runtime", "60"), ("time_based", "1")]), None);
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_rate_that_does_not_reach_the_size_is_none() {
        assert_eq!(found(&[("runtime", "4"), ("rate", "1m,512k")]), None);
        assert!(found(&[("runtime", "8"), ("rate", "1m,512k")]).is_some());
        assert!(found(&[("runtime", "4"), ("rate", "1m,")]).is_some(), "writes have no rate");
    }
}
