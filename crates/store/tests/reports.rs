//! Stored reports and their size.
//!
//! Invariant: every format renders the same bytes from a stored report as from the original.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use fiord_report::table::Cell;
use fiord_report::{
    Code, Finding, Format, RepeatedFigure, RunReport, Subject, TerseVersion, Unified, render,
};
use fiord_stats::{
    DirectionTotals, Histogram, JobPart, JobTimeline, JobTotals, PartLatencies, ProcessorShares,
    RunLatencies, RunSteadiness, SteadyMeasure, SteadyPart, Timeline, TimelineWindow, Window,
};
use fiord_store::{Cause, codec, decode, encode};
use proptest::prelude::*;

/// The report in every format.
fn rendered(report: &RunReport) -> Vec<String> {
    let terse = [2, 3, 4, 5].map(|number| TerseVersion::from_number(number).unwrap());
    let terse = terse.map(|version| render(report, &[Format::Terse], version));
    let others = [Format::Normal, Format::Json, Format::JsonPlus];
    let others = others.map(|format| render(report, &[format], TerseVersion::V3));
    terse.into_iter().chain(others).collect()
}

fn assert_comes_back(report: &RunReport) {
    let back = decode(&encode(report)).unwrap();
    assert_eq!(rendered(&back), rendered(report));
    assert_eq!(&back, report);
}

#[test]
fn a_report_that_uses_everything_is_read_back() {
    let mut report = fixture::run();
    assert_comes_back(&report);
    for unified in [Unified::Mixed, Unified::Both] {
        report.jobs.iter_mut().for_each(|job| job.show.unified = unified);
        assert_comes_back(&report);
    }
    let first = report.jobs[0].clone();
    report.jobs[0].merge(&first);
    assert_comes_back(&report);
    assert_comes_back(&RunReport::default());
}

#[test]
fn the_figures_of_repeated_runs_are_read_back() {
    let iops = RepeatedFigure {
        subject: "a, read".to_string(),
        figure: "iops".to_string(),
        title: "IOPS".to_string(),
        runs: vec![500.0, 1000.25, 1010.0, 990.0],
        left_out: 1,
    };
    assert_comes_back(&RunReport { repeats: vec![iops], ..RunReport::default() });
}

/// Half a minute of it takes a few kilobytes.
#[test]
fn what_a_run_did_over_time_is_read_back() {
    let window = |second: u64| {
        let mut window = TimelineWindow { end_ms: second * 1000, ..TimelineWindow::default() };
        let write = &mut window.done.directions[1];
        (write.ios, write.bytes, write.latency_ns) = (second, second << 12, second * 1_000_000);
        (20..40).for_each(|bin| write.latencies.counts[bin] = second * bin as u64);
        window.machine.processors = Some(ProcessorShares { user: 250, ..ProcessorShares::default() });
        window.machine.temperature_celsius = (second > 3).then_some(-4);
        window
    };
    let timeline = |seconds| Some(Timeline { windows: (0..seconds).map(window).collect(), jobs: Vec::new() });
    let report = RunReport { timeline: timeline(30), ..fixture::run() };
    assert_comes_back(&report);
    let added = encode(&report).len() - encode(&RunReport { timeline: None, ..report }).len();
    assert!(added < 4096, "{added}");
    let job = |name: &str| {
        let mut done = JobTotals::default();
        done.directions[1] = DirectionTotals { ios: 1 << 20, bytes: 1 << 32, latency_ns: 1 << 40 };
        JobTimeline { name: name.to_string(), windows: vec![done; 30] }
    };
    let jobs = vec![job("a"), job("b")];
    let timeline = timeline(30).map(|known| Timeline { jobs, ..known });
    let with_jobs = RunReport { timeline, ..fixture::run() };
    assert_comes_back(&with_jobs);
}

/// `report-v18.bin` was written before timelines had jobs, from the fixture with a timeline and a steady part.
#[test]
fn reports_of_version_18_have_no_jobs_over_time() {
    let report = decode(include_bytes!("report-v18.bin")).unwrap();
    let timeline = report.timeline.as_ref().unwrap();
    assert_eq!((timeline.windows.len(), timeline.jobs.len(), report.job_parts.len()), (3, 0, 0));
    let ios: Vec<u64> = timeline.windows.iter().map(|window| window.done.directions[1].ios).collect();
    assert_eq!(ios, [10, 20, 30]);
    assert_eq!(report.part_latencies.as_ref().map(|part| part.from_ms), Some(12_900));
    let added = RunReport { timeline: None, part_latencies: None, ..report };
    assert_eq!(added, fixture::run());
}

#[test]
fn windows_come_back() {
    let window =
        |ios: u64| Window { length_ns: 250_000_000 + ios, ios: [ios, 0, 1], bytes: [ios << 40, 0, u64::MAX] };
    assert_comes_back(&RunReport { windows: (0..20).map(window).collect(), ..fixture::run() });
}

#[test]
fn reports_of_version_1_are_still_read() {
    let kept = include_bytes!("report-v1.bin");
    let report = decode(kept).unwrap();
    let job = &report.jobs[0];
    assert_eq!(job.stats.directions[1].completion.running.max, 501_500);
    assert_eq!(job.stats.directions[1].completion.percentiles(&[50.0]), [250_880]);
    assert_eq!(job.options[1], ("group_reporting".to_owned(), String::new()));
    assert_eq!(report.jobs[1].error_text, "operation trim, file /dev/sdz, offset 4096: Input/output error");
    assert_eq!(report.disks, fixture::run().disks);
    // Version 2 added a field of jobs.
    assert!(report.jobs.iter().all(|job| !job.unstarted));
}

/// `report-v2.bin` was written before devices were recorded, from the same fixture.
#[test]
fn reports_of_version_2_print_as_they_did() {
    let report = decode(include_bytes!("report-v2.bin")).unwrap();
    assert_eq!(report.devices, []);
    assert_eq!(rendered(&report), rendered(&fixture::run()));
}

#[test]
fn devices_are_read_back_with_properties_and_counters() {
    assert_comes_back(&RunReport { devices: fixture::devices(), ..fixture::run() });
}

/// Every kind of subject and of figure, and every code.
#[test]
fn findings_come_back() {
    let subjects = [
        Subject::Run,
        Subject::Target("/dev/sda".into()),
        Subject::Job("a".to_owned()),
        Subject::Place("a.fio:3:1".to_owned()),
        Subject::Device("sda".to_owned()),
        Subject::Machine,
    ];
    let figures = || {
        [
            Cell::None,
            Cell::Text("x".to_owned()),
            Cell::List(vec!["x".to_owned()]),
            Cell::Flag(true),
            Cell::Count(1),
            Cell::Number(0.5, 1),
            Cell::Bytes(2),
            Cell::Latency(3),
            Cell::Formatted("4k".to_owned(), 4096.0),
            Cell::Figures(vec![Cell::Count(5)]),
        ]
    };
    let finding = |(index, code): (usize, &Code)| {
        let subject = subjects[index % subjects.len()].clone();
        let finding = Finding { option: "rw".into(), ..Finding::new(*code, subject, "is so", "do this") };
        finding.based_on(figures().map(|value| ("figure", value)))
    };
    let count = subjects.len().max(Code::ALL.len());
    let findings: Vec<Finding> = Code::ALL.iter().cycle().take(count).enumerate().map(finding).collect();
    assert_comes_back(&RunReport { findings, ..fixture::run() });
}

/// `report-v3.bin` was written by the fiord before findings were kept, from the same fixture with one warning.
#[test]
fn warnings_of_version_3_are_findings() {
    let report = decode(include_bytes!("report-v3.bin")).unwrap();
    let place = Subject::Place("a.fio:3:9".to_owned());
    let warning =
        Finding { option: "iodepth".into(), ..Finding::new(Code::Option, place, "the depth stays at 1", "") };
    assert_eq!(
        report,
        RunReport { findings: vec![warning], devices: fixture::devices_without_samples(), ..fixture::run() }
    );
}

/// `report-v4.bin` was written before steady states were kept, from the same fixture.
#[test]
fn reports_of_version_4_have_no_steady_state() {
    let report = decode(include_bytes!("report-v4.bin")).unwrap();
    assert_eq!(report, RunReport { devices: fixture::devices_without_samples(), ..fixture::run() });
}

/// `report-v5.bin` was written before response latencies were kept, from the same fixture.
#[test]
fn reports_of_version_5_have_no_response_latency() {
    let mut report = RunReport { devices: fixture::devices_without_samples(), ..fixture::run() };
    report.jobs[0].steady = Some(fixture::steady_state());
    assert_eq!(decode(include_bytes!("report-v5.bin")).unwrap(), report);
}

#[test]
fn response_latencies_come_back_and_are_added_up() {
    let mut report = RunReport { jobs: vec![fixture::paced_job()], ..fixture::run() };
    assert_comes_back(&report);
    report.jobs[0].merge(&fixture::paced_job());
    assert_eq!(report.jobs[0].stats.directions[0].response.running.count, 2 * 1_100);
    assert_comes_back(&report);
}

/// `report-v7.bin` was written before arrivals of an open loop were counted.
#[test]
fn reports_of_version_7_have_no_open_arrivals() {
    let mut report = RunReport { devices: fixture::devices_without_samples(), ..fixture::run() };
    report.jobs = vec![fixture::paced_job()];
    report.jobs[0].stats.directions[0].open_arrivals = None;
    assert_eq!(decode(include_bytes!("report-v7.bin")).unwrap(), report);
}

#[test]
fn steady_parts_come_back() {
    let part = SteadyPart { from_ms: 12_250, ios_per_s: [1.5, 0.0, 3.0], bytes_per_s: [4096.25, 0.0, 1e9] };
    for part in [Some(part), None] {
        let (slope_share, excursion_share) = (-0.25, 0.5);
        let steadiness = Some(RunSteadiness { run_ms: 60_000, slope_share, excursion_share, part });
        assert_comes_back(&RunReport { steadiness, ..fixture::run() });
        let latencies = RunLatencies::of(fixture::run().jobs.iter().map(|job| &job.stats));
        let part_latencies = Some(PartLatencies { from_ms: 12_900, latencies });
        let latencies = part_latencies.as_ref().map(|part| part.latencies.clone());
        let job_part = |name: &str, latencies| JobPart {
            name: name.to_string(),
            ios_per_s: [1.5, 0.0, 1.0],
            bytes_per_s: [4096.25, 0.0, 1e3],
            latencies,
        };
        let job_parts = vec![job_part("a", latencies), job_part("b", None)];
        assert_comes_back(&RunReport { steadiness, part_latencies, job_parts, ..fixture::run() });
    }
}

#[test]
fn the_version_of_fiord_comes_back() {
    assert_comes_back(&RunReport { fiord_version: Some("0.1.0".to_string()), ..fixture::run() });
}

#[test]
fn steady_states_come_back() {
    for measure in [SteadyMeasure::Iops, SteadyMeasure::Bandwidth, SteadyMeasure::Latency] {
        let mut report = fixture::run();
        let mut steady = fixture::steady_state();
        steady.rule.measure = measure;
        report.jobs[0].steady = Some(steady);
        assert_comes_back(&report);
    }
}

/// `report-v6.bin` was written before zone resets were kept, from the same fixture with one steady state.
#[test]
fn reports_of_version_6_have_no_zone_resets() {
    let mut report = fixture::run();
    report.jobs[0].steady = Some(fixture::steady_state());
    assert_eq!(decode(include_bytes!("report-v6.bin")).unwrap(), report);
}

#[test]
fn zone_resets_come_back() {
    let mut report = fixture::run();
    report.jobs[0].stats.zone_resets = Some(3);
    assert_comes_back(&report);
}

#[test]
fn the_lateness_of_a_replay_comes_back_and_is_added_up() {
    let mut report = RunReport { jobs: vec![fixture::replayed_job()], ..fixture::run() };
    assert_comes_back(&report);
    report.jobs[0].merge(&fixture::replayed_job());
    let lateness = report.jobs[0].stats.replay_lateness.as_ref().unwrap();
    assert_eq!((lateness.running.count, lateness.histogram.count()), (2 * 1_000, 2 * 1_000));
    assert_comes_back(&report);
}

#[test]
fn lifetimes_of_blocks_come_back() {
    let mut report = fixture::run();
    report.jobs[0].stats.blocks = Some(fixture::block_lifetimes());
    assert_comes_back(&report);
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let mut bytes = encode(&fixture::run());
    bytes[0] = 99;
    assert!(matches!(decode(&bytes), Err(Cause::NewerReport { found: 99, known: 19 })));
}

#[test]
fn jobs_of_a_large_run_take_few_bytes() {
    let mut report = fixture::run();
    let job = report.jobs.swap_remove(0);
    report.jobs = vec![job; 1000];
    let bins = |histogram: &Histogram| histogram.occupied().count();
    let latencies = |direction: &fiord_stats::DirectionStats| {
        bins(&direction.submission.histogram)
            + bins(&direction.completion.histogram)
            + bins(&direction.total.histogram)
    };
    let stats = &report.jobs[0].stats;
    let occupied =
        stats.directions.iter().map(latencies).sum::<usize>() + bins(&stats.sync.latency.histogram);
    let bytes_per_job = encode(&report).len() / 1000;
    assert!(bytes_per_job < 600 + 4 * occupied, "{bytes_per_job} bytes with {occupied} bins");
}

proptest! {
    #[test]
    fn damaged_reports_are_refused(
        place in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&fixture::run());
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(decode(&bytes).is_err());
        // Bytes with a matching checksum that no fiord wrote are refused or read, but never worse.
        let (content, sum) = bytes.split_last_chunk_mut::<8>().unwrap();
        *sum = codec::checksum(content);
        let _ = decode(&bytes);
        bytes.truncate(length.index(bytes.len()));
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn latencies_come_back(values in prop::collection::vec(any::<u64>(), 0..50), samples in prop::collection::vec(any::<u32>(), 0..9)) {
        let mut report = fixture::run();
        let direction = &mut report.jobs[0].stats.directions[2];
        for value in values {
            direction.completion.record(value);
            direction.total.record(value / 2);
        }
        samples.iter().for_each(|sample| direction.bandwidth.record(u64::from(*sample)));
        assert_comes_back(&report);
    }
}
