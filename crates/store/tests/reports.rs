//! Stored reports and their size.
//!
//! Invariant: every format renders the same bytes from a stored report as from the original.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fiord_device::{DiskUse, EnergyScope, EnergyUse};
use fiord_report::table::Cell;
use fiord_report::{
    Code, Finding, Format, RepeatedFigure, RunReport, Subject, TerseVersion, Unified, render,
};
use fiord_stats::count::ZONE_RESETS;
use fiord_stats::{
    DirectionTotals, Histogram, JobPart, JobTimeline, JobTotals, PartLatencies, ProcessorShares,
    RunLatencies, RunSteadiness, SteadyMeasure, SteadyPart, Timeline, TimelineWindow, Window,
};
use fiord_store::{Cause, checksum, decode, encode, seal};
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
    let back = decode(&encode(report).unwrap()).unwrap();
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

/// A figure of four runs.
fn repeated_figure() -> RepeatedFigure {
    RepeatedFigure {
        subject: "a, read".to_string(),
        figure: "iops".to_string(),
        title: "IOPS".to_string(),
        runs: vec![500.0, 1000.25, 1010.0, 990.0],
        left_out: 1,
    }
}

#[test]
fn the_figures_of_repeated_runs_are_read_back() {
    assert_comes_back(&RunReport { repeats: vec![repeated_figure()], ..RunReport::default() });
}

/// A run over time, with two jobs in the same windows.
fn timeline(seconds: u64) -> Timeline {
    let window = |second: u64| {
        let mut window = TimelineWindow { end_ms: second * 1000, ..TimelineWindow::default() };
        let write = &mut window.done.directions[1];
        (write.ios, write.bytes, write.latency_ns) = (second, second << 12, second * 1_000_000);
        (20..40).for_each(|bin| write.latencies.counts[bin] = second * bin as u64);
        window.machine.processors = Some(ProcessorShares { user: 250, ..ProcessorShares::default() });
        window.machine.temperature_celsius = (second > 3).then_some(-4);
        window
    };
    let job = |name: &str| {
        let mut done = JobTotals::default();
        done.directions[1] = DirectionTotals { ios: 1 << 20, bytes: 1 << 32, latency_ns: 1 << 40 };
        JobTimeline { name: name.to_string(), windows: vec![done; seconds as usize] }
    };
    Timeline { windows: (0..seconds).map(window).collect(), jobs: vec![job("a"), job("b")] }
}

/// Half a minute of it takes a few kilobytes.
#[test]
fn what_a_run_did_over_time_is_read_back() {
    let report = RunReport { timeline: Some(timeline(30)), ..fixture::run() };
    assert_comes_back(&report);
    let length = |report: &RunReport| encode(report).unwrap().len();
    let added = length(&report) - length(&RunReport { timeline: None, ..report });
    assert!(added < 4096, "{added}");
}

#[test]
fn windows_come_back() {
    let window =
        |ios: u64| Window { length_ns: 250_000_000 + ios, ios: [ios, 0, 1], bytes: [ios << 40, 0, u64::MAX] };
    assert_comes_back(&RunReport { windows: (0..20).map(window).collect(), ..fixture::run() });
}

#[test]
fn devices_are_read_back_with_properties_and_counters() {
    assert_comes_back(&RunReport { devices: fixture::devices(), ..fixture::run() });
}

/// Every kind of subject and of figure, and every code.
fn findings() -> Vec<Finding> {
    let subjects = [
        Subject::Run,
        Subject::Target(OsStr::from_bytes(b"/dev/\xff").into()),
        Subject::Job("a".to_owned()),
        Subject::Place("a.fio:3:1".to_owned()),
        Subject::Device("sda".to_owned()),
        Subject::Machine,
        Subject::Host("db1".to_owned()),
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
    Code::ALL.iter().cycle().take(count).enumerate().map(finding).collect()
}

#[test]
fn findings_come_back() {
    assert_comes_back(&RunReport { findings: findings(), ..fixture::run() });
}

#[test]
fn response_latencies_come_back_and_are_added_up() {
    let mut report = RunReport { jobs: vec![fixture::paced_job()], ..fixture::run() };
    assert_comes_back(&report);
    report.jobs[0].merge(&fixture::paced_job());
    assert_eq!(report.jobs[0].stats.directions[0].response.running.count, 2 * 1_100);
    assert_comes_back(&report);
}

/// The fixture with what is recorded of its steady part.
fn steady_run(part: Option<SteadyPart>) -> RunReport {
    let steadiness = Some(RunSteadiness { run_ms: 60_000, slope_share: -0.25, excursion_share: 0.5, part });
    let latencies = RunLatencies::of(fixture::run().jobs.iter().map(|job| &job.stats));
    let job_part = |name: &str, latencies| JobPart {
        name: name.to_string(),
        ios_per_s: [1.5, 0.0, 1.0],
        bytes_per_s: [4096.25, 0.0, 1e3],
        latencies,
    };
    let job_parts = vec![job_part("a", Some(latencies.clone())), job_part("b", None)];
    let part_latencies = Some(PartLatencies { from_ms: 12_900, latencies });
    RunReport { steadiness, part_latencies, job_parts, ..fixture::run() }
}

const STEADY_PART: SteadyPart =
    SteadyPart { from_ms: 12_250, ios_per_s: [1.5, 0.0, 3.0], bytes_per_s: [4096.25, 0.0, 1e9] };

#[test]
fn steady_parts_come_back() {
    assert_comes_back(&steady_run(Some(STEADY_PART)));
    assert_comes_back(&steady_run(None));
}

/// A report in which every field of the model has a value, and every variant occurs.
fn full_report() -> RunReport {
    let mut jobs = fixture::run().jobs;
    for (job, (unified, measure)) in jobs.iter_mut().zip([
        (Unified::Mixed, SteadyMeasure::Iops),
        (Unified::Both, SteadyMeasure::Latency),
        (Unified::Separate, SteadyMeasure::Bandwidth),
    ]) {
        job.show.unified = unified;
        let steady = job.steady.insert(fixture::steady_state());
        steady.rule.measure = measure;
        job.stats.blocks = Some(fixture::block_lifetimes());
        job.stats.counts.add(&ZONE_RESETS, 3);
    }
    jobs.extend([fixture::paced_job(), fixture::replayed_job()]);
    RunReport {
        fiord_version: Some("0.1.0".to_string()),
        jobs,
        devices: fixture::devices(),
        energy: vec![EnergyUse {
            source: "package-0".to_string(),
            scope: EnergyScope::Processors,
            energy_uj: 7,
            elapsed_ns: 8,
            idle_uw: Some(9),
        }],
        // Codes are stored by name, so that another one is no other format.
        findings: findings().into_iter().take(7).map(|each| Finding { code: Code::Option, ..each }).collect(),
        repeats: vec![repeated_figure()],
        timeline: Some(timeline(9)),
        windows: vec![Window { length_ns: 1, ios: [2, 3, 4], bytes: [5, 6, 7] }],
        boot_id: Some("7d0c".to_string()),
        ..steady_run(Some(STEADY_PART))
    }
}

/// The fields have no names in the history: a model that has changed must not read what another has written.
#[test]
fn a_changed_model_has_another_format() {
    let report = full_report();
    assert_comes_back(&report);
    let sum = u64::from_le_bytes(checksum(&postcard::to_allocvec(&report).unwrap()));
    let format = encode(&report).unwrap()[0];
    assert_eq!(
        (format, sum),
        (5, 14_783_178_462_661_909_288),
        "raise FORMAT if the model has changed, and write the new sum here"
    );
}

#[test]
fn lists_and_texts_longer_than_their_report_are_refused() {
    // A text, nothing, two numbers; then the options of all jobs.
    for lengths in
        [&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10][..], &[0xff; 9], &[0xff, 0xff, 0x7f]]
    {
        for before in [&[][..], &[0, 0, 0, 0]] {
            let stored = seal(&[before, lengths, &[1]].concat()).unwrap();
            assert!(matches!(decode(&stored), Err(Cause::Damaged)));
        }
    }
}

#[test]
fn lists_within_lists_are_refused_before_the_stack_overflows() {
    let report = |levels: u32| {
        let figure = (0..levels).fold(Cell::Count(1), |figure, _| Cell::Figures(vec![figure]));
        let disk = |below: DiskUse, _| DiskUse { members: vec![below], ..DiskUse::default() };
        let disks = vec![(0..levels).fold(DiskUse::default(), disk)];
        let findings = findings().into_iter().take(1).map(|one| one.based_on([("deep", figure.clone())]));
        RunReport { disks, findings: findings.collect(), ..RunReport::default() }
    };
    assert_comes_back(&report(60));
    assert!(matches!(decode(&encode(&report(200)).unwrap()), Err(Cause::Damaged)));
    // What failed does not count for the next.
    assert_comes_back(&report(60));
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

#[test]
fn zone_resets_come_back() {
    let mut report = fixture::run();
    report.jobs[0].stats.counts.add(&ZONE_RESETS, 3);
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
fn jobs_of_a_large_run_take_few_bytes() {
    let mut report = fixture::run();
    let job = report.jobs.swap_remove(0);
    report.jobs = vec![job; 200];
    let bins = |histogram: &Histogram| histogram.occupied().count();
    let latencies = |direction: &fiord_stats::DirectionStats| {
        bins(&direction.submission.histogram)
            + bins(&direction.completion.histogram)
            + bins(&direction.total.histogram)
    };
    let stats = &report.jobs[0].stats;
    let occupied =
        stats.directions.iter().map(latencies).sum::<usize>() + bins(&stats.sync.latency.histogram);
    let bytes_per_job = encode(&report).unwrap().len() / 200;
    assert!(bytes_per_job < 600 + 4 * occupied, "{bytes_per_job} bytes with {occupied} bins");
}

proptest! {
    #[test]
    fn damaged_reports_are_refused(
        place in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&fixture::run()).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(decode(&bytes).is_err());
        // Bytes with a matching checksum that no fiord wrote are refused or read, but never worse.
        let (content, sum) = bytes.split_last_chunk_mut::<8>().unwrap();
        *sum = checksum(content);
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
