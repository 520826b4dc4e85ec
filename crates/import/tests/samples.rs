//! Reports of the real fio: recorded ones of 3.42, and those that the installed one prints now.
//!
//! Invariant: recordings and fio are not part of the repository; without them, these tests are skipped.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::assert_agrees;
use fiord_import::{DirectionName, Report, ReportFormat, read};
use fiord_testing::skip;

/// Text files of the samples that are not reports.
const NO_REPORTS: [&str; 5] =
    ["command.txt", "exit-status.txt", "iolog-written.txt", "debug.txt", "version.txt"];

fn samples() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    path.is_dir().then_some(path)
}

fn reports_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_report = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.ends_with(".txt") || name.contains(".json")) && !NO_REPORTS.contains(&name)
    };
    let mut paths: Vec<PathBuf> = entries.filter(is_report).collect();
    paths.sort();
    paths
}

#[test]
fn every_sample_is_read() {
    let Some(samples) = samples() else { skip!("there is no ../shared/samples beside the repository") };
    let folders = [
        "randrw-libaio-group",
        "trim-null",
        "two-sections",
        "uring-bssplit-rate",
        "write-fdatasync",
        "more-3.42",
        "old-fio",
    ];
    let mut count = 0;
    for path in folders.iter().flat_map(|folder| reports_in(&samples.join(folder))) {
        let reports = read(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|why| panic!("{}:{why}", path.display()));
        assert_eq!(reports.len(), 1, "{}", path.display());
        let report = &reports[0];
        let moved: u64 = report.jobs.iter().flat_map(|job| &job.directions).filter_map(|of| of.bytes).sum();
        // Trims are not in version 3.
        assert!(moved > 0 || report.format == ReportFormat::Terse(3), "{}: {report:?}", path.display());
        assert!(
            report.jobs.iter().all(|job| job.error.is_some() && job.group_id.is_some()),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 40, "{count} samples");
}

#[test]
fn formats_of_a_sample_agree_on_what_was_done() {
    let Some(samples) = samples() else { skip!("there is no ../shared/samples beside the repository") };
    for folder in ["randrw-libaio-group", "two-sections", "uring-bssplit-rate", "write-fdatasync"] {
        // Each format is of another run of the same command, so only what the command determines is the same.
        let done = |report: &Report| {
            let job = |job: &fiord_import::JobFigures| {
                let active = job.directions.iter().filter(|direction| direction.is_active());
                let done: Vec<_> = active.map(|of| (of.name, of.bytes.unwrap().div_ceil(1 << 20))).collect();
                (job.name.clone(), job.group_id, done)
            };
            report.jobs.iter().map(job).collect::<Vec<_>>()
        };
        let all: Vec<_> = reports_in(&samples.join(folder))
            .iter()
            .map(|path| done(&read(&fs::read_to_string(path).unwrap()).unwrap()[0]))
            .collect();
        assert_eq!(all.len(), 7, "{folder}");
        assert!(all.iter().all(|of| *of == all[0]), "{folder}: {all:?}");
    }
}

/// Command lines whose reports differ in form.
const RUNS: [&str; 6] = [
    "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m",
    "--name=a --ioengine=null --rw=randrw --bs=4k --size=1m --numjobs=3 --group_reporting --lat_percentiles=1",
    "--name=m --ioengine=null --rw=randrw --bs=4k --size=1m --unified_rw_reporting=mixed",
    "--name=b --ioengine=null --rw=rw --bs=64k --size=4m --unified_rw_reporting=both --kb_base=1000 --unit_base=1",
    "--description=words --continue_on_error=all --name=a;b --ioengine=null --rw=trim --bs=4k --size=1m --iodepth=8",
    "--ioengine=null --size=1m --name=one --rw=write --fdatasync=4 --percentile_list=50:99.9 --name=two --rw=read --stonewall",
];

#[test]
fn what_the_installed_fio_prints_is_read() {
    if Command::new("fio").arg("--version").output().is_err() {
        skip!("there is no fio");
    }
    for (run, version) in RUNS.into_iter().zip((2..=5).cycle()) {
        let output = Command::new("fio")
            .args(["--output-format=terse,json+,normal", &format!("--terse-version={version}")])
            .args(run.split(' '))
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut reports = read(&text).unwrap_or_else(|why| panic!("{run}: {why}\n{text}"));
        let formats: Vec<ReportFormat> = reports.iter().map(|report| report.format).collect();
        assert_eq!(
            formats,
            [ReportFormat::Terse(version), ReportFormat::JsonPlus, ReportFormat::Normal],
            "{run}"
        );
        if run.contains("=both") {
            // fio 3.33 sums the directions for the first format alone: a later one has zeros.
            reports[2].jobs[0].directions.retain(|direction| direction.name != DirectionName::Mixed);
            reports[1].jobs[0].directions.retain(|direction| direction.name != DirectionName::Mixed);
        }
        let compared = [0, 2].map(|other| assert_agrees(&reports[1], &reports[other]));
        assert!(compared.iter().all(|count| *count > 20), "{run}: {compared:?}");
    }
}

/// What the reports of several clients say of each host, and of all together.
fn of_clients(name: &str) -> Option<Report> {
    let path = samples()?.join("fleet").join(name);
    fiord_import::best(read(&fs::read_to_string(path).ok()?).unwrap_or_else(|why| panic!("{name}: {why}")))
}

#[test]
fn reports_of_several_clients_have_a_host_for_each_job() {
    if samples().is_none() {
        skip!("there is no ../shared/samples beside the repository");
    }
    for (name, hosts, reads, all) in [
        ("342-two-json.out", "127.0.0.5 127.0.0.6", 7_726_160, 7_726_160),
        ("342-two-jsonplus.out", "127.0.0.5 127.0.0.6", 0, 0),
        ("342-two-text.out", "client 1 client 2", 10_285_438, 10_285_438),
        ("342-status.out", "127.0.0.6 127.0.0.5", 7_149_791, 0),
        ("342-layout-skew.json", "127.0.0.12 127.0.0.11", 5999, 5999),
        ("two-json.out", "127.0.0.2 127.0.0.1", 0, 0),
        ("two-text.out", "vm vm (2)", 0, 0),
        ("status-interval-after.out", "127.0.0.1", 24_501_064, 0),
        ("342-terse.out", "", 12_004_649, 12_004_649),
        ("two-terse.out", "", 0, 0),
    ] {
        let Some(report) = of_clients(name) else { skip!("{name} is not there") };
        assert_eq!(report.damage, [], "{name}");
        assert_eq!(report.hosts.join(" "), hosts, "{name}");
        let ios =
            |of: &fiord_import::DirectionFigures| of.ios.unwrap_or_else(|| of.bytes.unwrap_or(0) / 4096);
        let read = |job: &fiord_import::JobFigures| {
            job.directions.iter().filter(|of| of.name == DirectionName::Read).map(ios).sum::<u64>()
        };
        let sum: u64 = report.jobs.iter().map(read).sum();
        let of_all = report.all_hosts.as_deref().map_or(0, read);
        if reads > 0 {
            assert_eq!((sum, of_all), (reads, all), "{name}");
        } else {
            assert_eq!(sum, of_all, "{name}");
        }
    }
}
