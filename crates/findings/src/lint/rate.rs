//! Rates whose latency from the issue is not the latency that a user of the device sees.
//!
//! Invariant: a job without a rate has no intended starts, and is not judged.

use fiord_options::job;
use fiord_plan::Job;
use fiord_report::{Code, Finding};

use crate::subject;

/// A rate of a closed loop: while an I/O is late, those that are due after it are not issued.
pub(super) fn closed_loop(job: &Job) -> Option<Finding> {
    let rate = match (job.pace.has_rates(), job.pace.ios_per_s.iter().any(Option::is_some)) {
        _ if job.pace.open => return None,
        (false, _) => return None,
        (true, true) => job::Pace::rate_iops,
        (true, false) => job::Pace::rate,
    };
    let (measures_issue, measures_response) = (job.measure.completion, job.measure.total);
    if !measures_issue && !measures_response {
        return None;
    }
    let sentence =
        "I/Os that are due during a stall are issued after it: the latency from the issue hides the wait";
    let remedy = if measures_response {
        "read the response latency, from the start that the rate intended, which includes it"
    } else {
        "leave out disable_lat, and read the response latency, which includes it"
    };
    Some(Finding::new(Code::ClosedLoopRate, subject::job(job), sentence, remedy).of_option(rate))
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    fn found(options: &[(&'static str, &str)]) -> Option<(String, String)> {
        let plan = plan(&[("a", options)]);
        closed_loop(&plan.jobs[0]).map(|finding| (finding.option.into_owned(), finding.remedy.into_owned()))
    }

    #[test]
    fn a_rate_is_found_and_where_to_read_its_latency() {
        let (option, remedy) = found(&[("rate_iops", "100")]).unwrap();
        assert_eq!(option, "rate_iops");
        assert!(remedy.starts_with("read the response latency"), "{remedy}");
        let (option, remedy) = found(&[("rate", "1m"), ("disable_lat", "1")]).unwrap();
        assert_eq!(option, "rate");
        assert!(remedy.starts_with("leave out disable_lat"), "{remedy}");
        assert!(found(&[("rate", ",1m"), ("rw", "rw"), ("rate_process", "poisson")]).is_some());
    }

    #[test]
    fn a_job_without_a_rate_or_without_latencies_is_not() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("rate_process", "poisson")]), None);
        assert_eq!(found(&[("thinktime", "1ms")]), None);
        assert_eq!(found(&[("rate", "1m"), ("rate_arrivals", "open")]), None);
        assert_eq!(found(&[("rate_min", "1m")]), None);
        assert_eq!(found(&[("rate", "1m"), ("gtod_reduce", "1")]), None);
    }
}
