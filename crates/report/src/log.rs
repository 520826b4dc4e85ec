//! Log files in fio's form: bandwidth, I/Os per second, latencies and histograms over time.
//!
//! Invariant: every line ends in a newline and separates its columns by `, `: five, one more with the offset, with the time
//! of issue, and if a window has both its values.

mod samples;

use std::fmt::Write;
use std::num::NonZeroU64;

use fiord_plan::{LogKind, Logs, WindowValue};
use fiord_stats::histogram::BINS;
use fiord_stats::log::{HistogramWindow, WindowEntry};
use fiord_stats::{Capped, LogEntries, LoggedIo};

pub use samples::LogDecoder;
use samples::LogEntry;

/// The real-time class of priorities.
const REAL_TIME: u16 = 1;

/// Appends the lines of these entries to the text of the log of this kind.
pub fn write(text: &mut String, kind: LogKind, plan: &Logs, entries: &LogEntries) {
    let zero_ms = entries.zero_ms;
    match kind {
        LogKind::Histogram | LogKind::ResponseHistogram => {
            let is_response = kind == LogKind::ResponseHistogram;
            let windows = if is_response { &entries.response_histograms } else { &entries.histograms };
            return windows.iter().for_each(|window| histogram_line(text, window, zero_ms, plan.coarseness));
        }
        LogKind::Submission if !entries.has_submission => return,
        LogKind::Submission
        | LogKind::Completion
        | LogKind::Total
        | LogKind::Response
        | LogKind::Bandwidth
        | LogKind::Iops => {}
    }
    ios(kind, entries).for_each(|io| io_line(text, kind, plan, (io, zero_ms)));
    windows(kind, entries).iter().for_each(|window| window_line(text, plan, window, zero_ms));
}

/// The I/Os that have a line in a log of this kind.
fn ios(kind: LogKind, entries: &LogEntries) -> impl Iterator<Item = &LoggedIo> {
    entries.ios.iter().filter(move |io| kind != LogKind::Response || io.response_ns.is_some())
}

fn windows(kind: LogKind, entries: &LogEntries) -> &[WindowEntry] {
    match kind {
        LogKind::Bandwidth => &entries.bandwidth,
        LogKind::Iops => &entries.iops,
        LogKind::Submission => &entries.submission,
        LogKind::Completion => &entries.completion,
        LogKind::Total => &entries.total,
        LogKind::Response => &entries.response,
        LogKind::Histogram | LogKind::ResponseHistogram => &[],
    }
}

/// The priority on an I/O's line.
fn push_priority(text: &mut String, plan: &Logs, io: &LoggedIo) {
    let priority = io.priority.unwrap_or(plan.priority);
    if !plan.shows_priority {
        text.push(if priority >> 13 == REAL_TIME { '1' } else { '0' });
        return;
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "0x{priority:04x}");
}

/// Appends these entries in the form of the compressed log of this kind, which is not one of histograms.
pub fn encode(bytes: &mut Vec<u8>, kind: LogKind, plan: &Logs, entries: &LogEntries) {
    if kind == LogKind::Submission && !entries.has_submission {
        return;
    }
    for io in ios(kind, entries) {
        let sample = LogEntry {
            time_ms: entries.zero_ms + io.end_ns / 1_000_000,
            value: match kind {
                LogKind::Bandwidth => per_second(io.length_bytes, io.completion_ns),
                kind => value(kind, io),
            },
            direction: io.direction,
            priority: io.priority.unwrap_or(plan.priority),
            length_bytes: io.length_bytes,
            offset_bytes: plan.with_offset.then_some(io.offset_bytes),
        };
        sample.encode(plan.shows_priority, bytes);
    }
    for window in windows(kind, entries) {
        let value = if plan.value == WindowValue::Maximum { window.maximum } else { window.average };
        let sample = LogEntry {
            time_ms: entries.zero_ms + window.end_ms,
            value: if kind == LogKind::Bandwidth { value * 1024 } else { value },
            direction: window.direction,
            offset_bytes: plan.with_offset.then_some(0),
            ..LogEntry::default()
        };
        sample.encode(plan.shows_priority, bytes);
    }
}

/// What an I/O contributes to a log of this kind. Its bandwidth is that of its own completion latency.
fn value(kind: LogKind, io: &LoggedIo) -> u64 {
    match kind {
        LogKind::Bandwidth => per_second(io.length_bytes, io.completion_ns) / 1024,
        LogKind::Iops => 1,
        LogKind::Submission => io.submission_ns,
        LogKind::Total => io.total_ns(),
        LogKind::Response | LogKind::ResponseHistogram => io.response_ns.map_or(0, NonZeroU64::get),
        LogKind::Completion | LogKind::Histogram => io.completion_ns,
    }
}

/// One I/O's line.
fn io_line(text: &mut String, kind: LogKind, plan: &Logs, (io, zero_ms): (&LoggedIo, u64)) {
    let columns =
        [zero_ms + io.end_ns / 1_000_000, value(kind, io), u64::from(io.direction), io.length_bytes];
    columns.into_iter().for_each(|column| push_column(text, column));
    if plan.with_offset {
        push_column(text, io.offset_bytes);
    }
    push_priority(text, plan, io);
    if plan.with_issue_time {
        text.push_str(", ");
        let issue_ns = zero_ms * 1_000_000 + io.end_ns.saturating_sub(io.completion_ns);
        push_number(text, if has_issue_time(kind) { issue_ns } else { 0 });
    }
    text.push('\n');
}

/// Whether the column of issue times has any in a log of this kind. As in fio, it is 0 in the others.
fn has_issue_time(kind: LogKind) -> bool {
    match kind {
        LogKind::Submission | LogKind::Completion | LogKind::Response => true,
        LogKind::Total
        | LogKind::Bandwidth
        | LogKind::Iops
        | LogKind::Histogram
        | LogKind::ResponseHistogram => false,
    }
}

/// One window's line; block size, offset and priority are zero, as in fio.
fn window_line(text: &mut String, plan: &Logs, window: &WindowEntry, zero_ms: u64) {
    push_column(text, zero_ms + window.end_ms);
    match plan.value {
        WindowValue::Average => push_column(text, window.average),
        WindowValue::Maximum => push_column(text, window.maximum),
        WindowValue::Both => {
            [window.average, window.maximum].into_iter().for_each(|value| push_column(text, value))
        }
    }
    push_column(text, u64::from(window.direction));
    push_column(text, 0);
    if plan.with_offset {
        push_column(text, 0);
    }
    text.push_str(if plan.shows_priority { "0x0000" } else { "0" });
    text.push_str(if plan.with_issue_time { ", 0\n" } else { "\n" });
}

fn histogram_line(text: &mut String, window: &HistogramWindow, zero_ms: u64, coarseness: u32) {
    let mut counts = vec![0_u64; BINS >> coarseness];
    for (bin, count) in &window.counts {
        counts[usize::from(*bin) >> coarseness] += count;
    }
    push_column(text, zero_ms + window.end_ms);
    push_column(text, u64::from(window.direction));
    push_number(text, window.length_bytes);
    for count in counts {
        text.push_str(", ");
        push_number(text, count);
    }
    text.push('\n');
}

/// Bytes per second, if `bytes` take `ns` nanoseconds; zero nanoseconds count as one.
fn per_second(bytes: u64, ns: u64) -> u64 {
    u64::capped(u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1)))
}

/// Appends a column that another follows.
fn push_column(text: &mut String, number: u64) {
    push_number(text, number);
    text.push_str(", ");
}

/// Appends a number. Logs of every I/O have millions of them, and `format!` takes several times as long.
fn push_number(text: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits[first..].iter().for_each(|digit| text.push(char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use fiord_stats::{JobLogs, LogSettings};

    use super::*;

    #[test]
    fn a_rate_beyond_all_numbers_is_the_largest_one() {
        assert_eq!(per_second(u64::MAX, 1), u64::MAX);
        assert_eq!(crate::model::bytes_per_second(u64::MAX, 1), u64::MAX);
    }

    fn plan() -> Logs {
        Logs {
            are_sent: false,
            files: Vec::new(),
            window_ms: None,
            bandwidth_window_ms: 0,
            iops_window_ms: 0,
            histogram_window_ms: 0,
            coarseness: 0,
            value: WindowValue::Average,
            with_offset: false,
            priority: 0,
            shows_priority: false,
            with_issue_time: false,
            held_chunk_bytes: None,
            cpus: Vec::new(),
            entries_ahead: 0,
            clock_id: None,
        }
    }

    /// Two I/Os: a read of 200 ns after 50 ns of submission, a write of 100 us without submission, which was intended to
    /// start 1 us before.
    fn logs(settings: LogSettings) -> LogEntries {
        let io = LoggedIo {
            end_ns: 2_999_999,
            submission_ns: 0,
            completion_ns: 200,
            response_ns: None,
            offset_bytes: 8192,
            length_bytes: 4096,
            direction: 0,
            priority: None,
        };
        let mut logs = JobLogs::new(settings);
        logs.record(io, Some(50));
        let write = LoggedIo { end_ns: 7_000_000, completion_ns: 100_000, direction: 1, ..io };
        logs.record(LoggedIo { response_ns: NonZeroU64::new(101_000), ..write }, Some(0));
        logs.finish(10_000_000);
        logs.take(10_000_000, LogEntries::default())
    }

    fn text(kind: LogKind, plan: &Logs, logs: &LogEntries) -> String {
        let mut text = String::new();
        write(&mut text, kind, plan, logs);
        text
    }

    #[test]
    fn numbers_are_as_format_writes_them() {
        for number in (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]).chain([10, 99, 100, u64::MAX]) {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }

    #[test]
    fn every_io_has_a_line_of_five_columns() {
        let logs = logs(LogSettings { every_io: true, ..LogSettings::default() });
        let lines = |kind| text(kind, &plan(), &logs);
        assert_eq!(lines(LogKind::Bandwidth), "2, 20000000, 0, 4096, 0\n7, 40000, 1, 4096, 0\n");
        assert_eq!(lines(LogKind::Iops), "2, 1, 0, 4096, 0\n7, 1, 1, 4096, 0\n");
        assert_eq!(lines(LogKind::Submission), "2, 50, 0, 4096, 0\n7, 0, 1, 4096, 0\n");
        assert_eq!(lines(LogKind::Completion), "2, 200, 0, 4096, 0\n7, 100000, 1, 4096, 0\n");
        assert_eq!(lines(LogKind::Total), "2, 250, 0, 4096, 0\n7, 100000, 1, 4096, 0\n");
        assert_eq!(lines(LogKind::Response), "7, 101000, 1, 4096, 0\n", "the reads have no rate");
    }

    #[test]
    fn offset_and_priority_are_last_and_times_may_be_of_a_clock() {
        let mut logs = logs(LogSettings { every_io: true, ..LogSettings::default() });
        logs.zero_ms = 1_700_000_000_000;
        let plan = Logs { with_offset: true, priority: 0x2004, shows_priority: true, ..plan() };
        assert_eq!(
            text(LogKind::Iops, &plan, &logs).lines().next(),
            Some("1700000000002, 1, 0, 4096, 8192, 0x2004")
        );
    }

    #[test]
    fn times_of_issue_are_the_last_column_in_nanoseconds_of_logs_that_have_them() {
        let logs = logs(LogSettings { every_io: true, ..LogSettings::default() });
        let plan = Logs { with_offset: true, with_issue_time: true, ..plan() };
        let lines = |kind| text(kind, &plan, &logs);
        let completions = "2, 200, 0, 4096, 8192, 0, 2999799\n7, 100000, 1, 4096, 8192, 0, 6900000\n";
        assert_eq!(lines(LogKind::Completion), completions);
        assert!(lines(LogKind::Submission).starts_with("2, 50, 0, 4096, 8192, 0, 2999799\n"));
        assert_eq!(lines(LogKind::Response), "7, 101000, 1, 4096, 8192, 0, 6900000\n");
        // As fio 3.41.
        assert_eq!(lines(LogKind::Total), "2, 250, 0, 4096, 8192, 0, 0\n7, 100000, 1, 4096, 8192, 0, 0\n");
        for kind in [LogKind::Bandwidth, LogKind::Iops] {
            assert!(lines(kind).lines().all(|line| line.ends_with(", 8192, 0, 0")), "{kind:?}");
        }
    }

    // divergence: bandwidth in a compressed log
    #[test]
    fn a_compressed_log_has_the_lines_of_its_text_but_for_the_unit_of_bandwidth() {
        let settings = LogSettings {
            every_io: true,
            latency_window_ms: Some(10),
            responses: true,
            ..LogSettings::default()
        };
        let logs = logs(settings);
        let plan = Logs { with_offset: true, priority: 0x2004, shows_priority: true, ..plan() };
        let decoded = |kind: LogKind| {
            let (mut bytes, mut text) = (Vec::new(), String::new());
            encode(&mut bytes, kind, &plan, &logs);
            LogDecoder::default().decode(&bytes, &mut text);
            text
        };
        let latencies = [LogKind::Submission, LogKind::Completion, LogKind::Total, LogKind::Response];
        for kind in latencies.into_iter().chain([LogKind::Iops]) {
            assert_eq!(decoded(kind), text(kind, &plan, &logs), "{kind:?}");
        }
        assert!(decoded(LogKind::Bandwidth).starts_with("2, 20480000000, 0, 4096, 8192, 0x2004\n"));
    }

    #[test]
    fn windows_have_neither_block_size_nor_offset() {
        let settings = LogSettings { latency_window_ms: Some(10), ..LogSettings::default() };
        let logs = logs(settings);
        let line = |plan: &Logs| text(LogKind::Completion, plan, &logs);
        assert_eq!(line(&plan()), "10, 200, 0, 0, 0\n10, 100000, 1, 0, 0\n");
        let offset = Logs { with_offset: true, priority: 1, shows_priority: true, ..plan() };
        assert_eq!(line(&offset).lines().next(), Some("10, 200, 0, 0, 0, 0x0000"));
        let both = Logs { value: WindowValue::Both, ..plan() };
        assert_eq!(line(&both).lines().next(), Some("10, 200, 200, 0, 0, 0"));
        assert_eq!(text(LogKind::Bandwidth, &plan(), &logs), "", "not requested");
        let settings = LogSettings { responses: true, ..settings };
        assert_eq!(text(LogKind::Response, &plan(), &self::logs(settings)), "10, 101000, 1, 0, 0\n");
    }

    #[test]
    fn histograms_of_responses_count_those_that_have_one() {
        let settings = LogSettings { response_histogram_window_ms: Some(10), ..LogSettings::default() };
        let logs = logs(settings);
        assert_eq!(text(LogKind::Histogram, &plan(), &logs), "");
        let text = text(LogKind::ResponseHistogram, &plan(), &logs);
        assert!(text.starts_with("10, 1, 4096, 0, ") && text.lines().count() == 1, "{text}");
        assert_eq!(text.trim_end().split(", ").filter(|count| *count == "1").count(), 2, "direction, count");
    }

    #[test]
    fn histograms_have_all_bins_or_fewer_and_lose_no_count() {
        let settings = LogSettings { histogram_window_ms: Some(10), ..LogSettings::default() };
        let logs = logs(settings);
        for coarseness in 0..=6 {
            let text = text(LogKind::Histogram, &Logs { coarseness, ..plan() }, &logs);
            assert_eq!(text.lines().count(), 2);
            for line in text.lines() {
                let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
                assert_eq!((fields[0], fields[2]), (10, 4096));
                assert_eq!(fields.len() - 3, BINS >> coarseness);
                assert_eq!(fields[3..].iter().sum::<u64>(), 1);
            }
        }
    }

    #[test]
    fn block_sizes_of_a_log_sum_to_the_bytes_of_the_job() {
        let mut logs = JobLogs::new(LogSettings { every_io: true, ..LogSettings::default() });
        let mut bytes = 0;
        for number in 1..=3_000 {
            let length_bytes = 512 * (number % 7 + 1);
            bytes += length_bytes;
            let io = LoggedIo {
                end_ns: number,
                submission_ns: 0,
                completion_ns: 1,
                response_ns: None,
                offset_bytes: 0,
                length_bytes,
                direction: 0,
                priority: None,
            };
            logs.record(io, None);
        }
        let text = text(LogKind::Bandwidth, &plan(), &logs.take(0, LogEntries::default()));
        let size = |line: &str| line.split(", ").nth(3).unwrap().parse::<u64>().unwrap();
        assert_eq!(text.lines().map(size).sum::<u64>(), bytes);
    }
}
