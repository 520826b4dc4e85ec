//! Log files in fio's form: bandwidth, I/Os per second, latencies and histograms over time.
//!
//! Invariant: every line ends in a newline and has its columns separated by `, `: five of them, six with the offset,
//! one more where a window has both its values.

use std::fmt::Write;

use fiord_plan::{LogKind, Logs, PriorityColumn, WindowValue};
use fiord_stats::histogram::BINS;
use fiord_stats::log::{HistogramWindow, Window, Windows};
use fiord_stats::{JobLogs, LoggedIo};

/// Entries written at once: a log may be larger than what memory has room for as text.
const PIECE: usize = 4096;

/// The text of the log of this kind, in pieces that follow each other.
pub fn pieces<'a>(kind: LogKind, plan: &'a Logs, logs: &'a JobLogs) -> Box<dyn Iterator<Item = String> + 'a> {
    if kind == LogKind::Histogram {
        let closed = logs.histograms.as_ref().map_or(&[][..], |histograms| histograms.closed());
        return Box::new(closed.iter().map(|window| histogram_line(window, logs.zero_ms, plan.coarseness)));
    }
    if kind == LogKind::Submission && !logs.has_submission {
        return Box::new(std::iter::empty());
    }
    if let Some(ios) = &logs.ios {
        let piece = move |ios: &'a [LoggedIo]| {
            let mut text = String::new();
            ios.iter().for_each(|io| io_line(&mut text, kind, plan, io, logs.zero_ms));
            text
        };
        return Box::new(ios.slices().flat_map(|slice| slice.chunks(PIECE)).map(piece));
    }
    let piece = |windows: &'a [Window]| {
        let mut text = String::new();
        windows.iter().for_each(|window| window_line(&mut text, plan, window, logs.zero_ms));
        text
    };
    let closed = windows(kind, logs).map_or(&[][..], Windows::closed);
    Box::new(closed.chunks(PIECE).map(piece))
}

fn windows(kind: LogKind, logs: &JobLogs) -> Option<&Windows> {
    match kind {
        LogKind::Bandwidth => logs.bandwidth.as_ref(),
        LogKind::Iops => logs.iops.as_ref(),
        LogKind::Submission => logs.submission.as_ref(),
        LogKind::Completion => logs.completion.as_ref(),
        LogKind::Total => logs.total.as_ref(),
        LogKind::Histogram => None,
    }
}

/// One I/O's line. Its bandwidth is that of its own completion latency.
fn io_line(text: &mut String, kind: LogKind, plan: &Logs, io: &LoggedIo, zero_ms: u64) {
    let value = match kind {
        LogKind::Bandwidth => kib_per_s(io.length_bytes, io.completion_ns),
        LogKind::Iops => 1,
        LogKind::Submission => io.submission_ns,
        LogKind::Total => io.total_ns(),
        LogKind::Completion | LogKind::Histogram => io.completion_ns,
    };
    let time_ms = zero_ms + io.end_ns / 1_000_000;
    push(text, format_args!("{time_ms}, {value}, {}, {}", io.direction, io.length_bytes));
    if plan.with_offset {
        push(text, format_args!(", {}", io.offset_bytes));
    }
    match plan.priority {
        PriorityColumn::Flag(high) => push(text, format_args!(", {}\n", u8::from(high))),
        PriorityColumn::Packed(priority) => push(text, format_args!(", 0x{priority:04x}\n")),
    }
}

/// One window's line: block size, offset and priority are those of no I/O.
fn window_line(text: &mut String, plan: &Logs, window: &Window, zero_ms: u64) {
    push(text, format_args!("{}, ", zero_ms + window.end_ms));
    match plan.value {
        WindowValue::Average => push(text, format_args!("{}", window.average)),
        WindowValue::Maximum => push(text, format_args!("{}", window.maximum)),
        WindowValue::Both => push(text, format_args!("{}, {}", window.average, window.maximum)),
    }
    let offset = if plan.with_offset { ", 0" } else { "" };
    let priority = match plan.priority {
        PriorityColumn::Flag(_) => "0",
        PriorityColumn::Packed(_) => "0x0000",
    };
    push(text, format_args!(", {}, 0{offset}, {priority}\n", window.direction));
}

fn histogram_line(window: &HistogramWindow, zero_ms: u64, coarseness: u32) -> String {
    let mut counts = vec![0_u64; BINS >> coarseness];
    for (bin, count) in &window.counts {
        counts[usize::from(*bin) >> coarseness] += count;
    }
    let mut text = format!("{}, {}, {}", zero_ms + window.end_ms, window.direction, window.length_bytes);
    counts.iter().for_each(|count| push(&mut text, format_args!(", {count}")));
    text.push('\n');
    text
}

/// `bytes` in `ns` nanoseconds; what took no time is taken to have taken one.
fn kib_per_s(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / 1024 / u128::from(ns.max(1))) as u64
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A `String` takes all that is written to it.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use fiord_stats::LogSettings;

    use super::*;

    fn plan() -> Logs {
        Logs {
            files: Vec::new(),
            window_ms: None,
            bandwidth_window_ms: 0,
            iops_window_ms: 0,
            histogram_window_ms: 0,
            coarseness: 0,
            value: WindowValue::Average,
            with_offset: false,
            priority: PriorityColumn::Flag(false),
            entries_ahead: 0,
            clock_id: None,
        }
    }

    /// Two I/Os: a read of 200 ns after 50 ns of submission, a write of 100 us without submission.
    fn logs(settings: LogSettings) -> JobLogs {
        let io = LoggedIo {
            end_ns: 2_999_999,
            submission_ns: 0,
            completion_ns: 200,
            offset_bytes: 8192,
            length_bytes: 4096,
            direction: 0,
        };
        let mut logs = JobLogs::new(settings);
        logs.record(io, Some(50));
        logs.record(LoggedIo { end_ns: 7_000_000, completion_ns: 100_000, direction: 1, ..io }, Some(0));
        logs.finish(10_000_000);
        logs
    }

    fn text(kind: LogKind, plan: &Logs, logs: &JobLogs) -> String {
        pieces(kind, plan, logs).collect()
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
    }

    #[test]
    fn offset_and_priority_stand_last_and_times_may_be_a_clocks() {
        let mut logs = logs(LogSettings { every_io: true, ..LogSettings::default() });
        logs.zero_ms = 1_700_000_000_000;
        let plan = Logs { with_offset: true, priority: PriorityColumn::Packed(0x2004), ..plan() };
        assert_eq!(
            text(LogKind::Iops, &plan, &logs).lines().next(),
            Some("1700000000002, 1, 0, 4096, 8192, 0x2004")
        );
    }

    #[test]
    fn windows_have_neither_block_size_nor_offset() {
        let settings = LogSettings { latency_window_ms: Some(10), ..LogSettings::default() };
        let logs = logs(settings);
        let line = |plan: &Logs| text(LogKind::Completion, plan, &logs);
        assert_eq!(line(&plan()), "10, 200, 0, 0, 0\n10, 100000, 1, 0, 0\n");
        let offset = Logs { with_offset: true, priority: PriorityColumn::Packed(1), ..plan() };
        assert_eq!(line(&offset).lines().next(), Some("10, 200, 0, 0, 0, 0x0000"));
        let both = Logs { value: WindowValue::Both, ..plan() };
        assert_eq!(line(&both).lines().next(), Some("10, 200, 200, 0, 0, 0"));
        assert_eq!(text(LogKind::Bandwidth, &plan(), &logs), "", "nobody asked for it");
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
        for number in 1..=3 * PIECE as u64 {
            let length_bytes = 512 * (number % 7 + 1);
            bytes += length_bytes;
            let io = LoggedIo {
                end_ns: number,
                submission_ns: 0,
                completion_ns: 1,
                offset_bytes: 0,
                length_bytes,
                direction: 0,
            };
            logs.record(io, None);
        }
        let text = text(LogKind::Bandwidth, &plan(), &logs);
        let size = |line: &str| line.split(", ").nth(3).unwrap().parse::<u64>().unwrap();
        assert_eq!(text.lines().map(size).sum::<u64>(), bytes);
    }
}
