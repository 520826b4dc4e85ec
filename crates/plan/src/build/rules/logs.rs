//! Rules about logs over time.
//!
//! Invariant: an option of logs without a log is reported, never dropped silently.

use fiord_options::value::LogWindowValue;
use fiord_options::{Problem, ProblemKind, job};

use crate::build::section::ResolvedSection;

pub(super) fn histogram_logs_need_a_window(section: &ResolvedSection<'_>) -> Option<Problem> {
    (section.is_given(job::Measure::write_hist_log) && section.options.measure.log_hist_msec == 0).then(
        || {
            let message = "the log of histograms stays empty without log_hist_msec";
            section
                .error(
                    ProblemKind::NoEffect,
                    job::Measure::write_hist_log,
                    message,
                    "for example log_hist_msec=1000",
                )
                .as_warning()
        },
    )
}

pub(super) fn log_issue_time_needs_offsets_of_latencies(section: &ResolvedSection<'_>) -> Option<Problem> {
    let measure = &section.options.measure;
    let complete = measure.write_lat_log.is_some() && measure.log_offset;
    (measure.log_issue_time && !complete).then(|| {
        let message = "log_issue_time needs write_lat_log and log_offset, as in fio";
        let remedy = "add write_lat_log=run and log_offset=1, or remove it";
        section.error(ProblemKind::Conflict, job::Measure::log_issue_time, message, remedy)
    })
}

pub(super) fn compressed_logs_have_one_value(section: &ResolvedSection<'_>) -> Option<Problem> {
    let measure = &section.options.measure;
    let more = match (measure.log_issue_time, measure.log_window_value) {
        (true, _) => "times of issue",
        (false, LogWindowValue::Both) => "a second value",
        (false, LogWindowValue::Average | LogWindowValue::Maximum) => return None,
    };
    measure.log_store_compressed.then(|| {
        let message = format!("the form of compressed logs has no place for {more}");
        section.error(ProblemKind::Conflict, job::Measure::log_store_compressed, message, "remove it")
    })
}
