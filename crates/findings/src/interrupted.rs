//! A run of a study that was ended by a signal.
//!
//! Invariant: the time measured is that of the job that ran longest.

use std::time::Duration;

use fiord_report::table::Cell;
use fiord_report::{Code, Finding, RunReport, Subject};

/// That this run was ended by the signal of this name, before the time planned for it was over; the latter is zero if it is
/// not known.
pub fn interrupted(report: &RunReport, signal: &str, planned: Duration) -> Finding {
    let directions = report.jobs.iter().flat_map(|job| &job.stats.directions);
    let measured_ms = directions.map(|direction| direction.runtime_ms).max().unwrap_or(0);
    let measured = Cell::Number(measured_ms as f64 / 1000.0, 1);
    let planned = Cell::Number(planned.as_secs_f64(), 1);
    let of = match &planned {
        Cell::Number(seconds, _) if *seconds > 0.0 => format!(" of {} s", planned.shown()),
        _ => String::new(),
    };
    let sentence = format!("it was ended by {signal} after {} s{of}", measured.shown());
    Finding::new(Code::Interrupted, Subject::Run, sentence, "run the study again")
        .based_on([("measured_s", measured), ("planned_s", planned)])
}

#[cfg(test)]
mod tests {
    use fiord_report::JobReport;

    use super::*;

    #[test]
    fn the_longest_job_is_named_beside_the_planned_time_if_that_is_known() {
        let job = |runtime_ms: u64| {
            let mut job = JobReport::default();
            job.stats.directions[1].runtime_ms = runtime_ms;
            job
        };
        let report = RunReport { jobs: vec![job(1340), job(900)], ..RunReport::default() };
        let of = |planned| interrupted(&report, "SIGINT", planned).sentence;
        assert_eq!(of(Duration::from_secs(4)), "it was ended by SIGINT after 1.3 s of 4.0 s");
        assert_eq!(of(Duration::ZERO), "it was ended by SIGINT after 1.3 s");
    }
}
