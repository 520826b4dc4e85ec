//! Verdicts on made-up reports.
//!
//! Invariant: every profile is judged by reports that name its own jobs.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_report::JobReport;

use super::*;
use crate::figures::{READ, WRITE};
use crate::testing::settings;

const MS: u64 = 1_000_000;

/// A job of `ios` I/Os in ten seconds, each of this latency.
fn job(name: &str, direction: usize, ios: u64, bytes: u64, latency_ns: u64) -> JobReport {
    let mut job = JobReport { name: name.to_string(), ..JobReport::default() };
    let stats = &mut job.stats.directions[direction];
    (stats.ios, stats.bytes, stats.runtime_ms) = (ios, bytes, 10_000);
    stats.completion = fiord_stats::Latency::with_histogram();
    (0..ios.min(1000)).for_each(|_| {
        stats.completion.record(latency_ns);
    });
    job
}

fn synced(mut job: JobReport, latency_ns: u64) -> JobReport {
    job.stats.sync.latency = fiord_stats::Latency::with_histogram();
    (0..1000).for_each(|_| {
        job.stats.sync.latency.record(latency_ns);
    });
    job
}

fn site() -> Site {
    let (target, file) = ("/there".into(), "/there/own/data".into());
    Site { target, file, writable: true, size_bytes: 4 << 30, ..Site::default() }
}

fn check(name: &str) -> Check {
    let profile = PROFILES.iter().find(|profile| profile.name == name).unwrap();
    Check::new(profile, &site(), None).unwrap()
}

fn findings(check: &Check, reports: Vec<Vec<JobReport>>) -> Findings {
    let ran = |(step, jobs)| Ran { step, report: RunReport { jobs, ..RunReport::default() } };
    let ran: Vec<Ran> = reports.into_iter().enumerate().map(ran).collect();
    let findings = check.findings(&ran, 80);
    assert!(findings.text.lines().all(|line| line.chars().count() <= 80), "{}", findings.text);
    findings
}

/// Three rounds of etcd's stages: the latency of fdatasync, and appends in ten seconds.
fn etcd_rounds(rounds: [(u64, u64); 3]) -> Vec<Vec<JobReport>> {
    let round = |(sync_ns, appends): (u64, u64)| {
        [
            vec![synced(job("appends-of-2300", WRITE, 1000, 2_300_000, 1000), sync_ns)],
            vec![synced(job("appends-of-8000", WRITE, appends, appends * 8000, 1000), sync_ns)],
        ]
    };
    rounds.into_iter().flat_map(round).collect()
}

fn verdict(findings: &Findings) -> &str {
    let (_, cell) = findings.facts.iter().find(|(key, _)| *key == "verdict").unwrap();
    if let Cell::Text(word) = cell { word } else { "none" }
}

#[test]
fn the_worst_of_three_rounds_judges_etcd() {
    let good = (MS, 9000);
    for (worst, expected) in [
        (good, "PASS"),
        ((6 * MS, 9000), "MARGINAL"),
        ((MS, 900), "MARGINAL"),
        ((11 * MS, 9000), "FAIL"),
        ((MS, 400), "FAIL"),
    ] {
        for place in 0..3 {
            let mut rounds = [good; 3];
            rounds[place] = worst;
            let findings = findings(&check("etcd"), etcd_rounds(rounds));
            assert_eq!(verdict(&findings), expected, "{worst:?} in round {place}");
            assert!(findings.conclusion.starts_with(expected), "{}", findings.conclusion);
            assert_eq!(findings.verdict == Some(Verdict::Fail), expected == "FAIL");
        }
    }
}

#[test]
fn the_conclusion_names_the_figure_that_decided() {
    let findings = findings(&check("etcd"), etcd_rounds([(MS, 9000), (20 * MS, 9000), (MS, 9000)]));
    assert_eq!(
        findings.conclusion,
        "FAIL: this disk does not carry etcd: p99 of fdatasync, 2300-byte appends is 20ms, and more than 10ms fails."
    );
}

#[test]
fn an_interrupted_check_shows_its_rows_and_gives_no_verdict() {
    let mut reports = etcd_rounds([(20 * MS, 100); 3]);
    reports.truncate(1);
    let findings = findings(&check("etcd"), reports);
    assert_eq!((findings.table.rows.len(), findings.verdict), (1, None));
    assert_eq!(findings.conclusion, "No verdict: not everything was run.");
    let nothing = check("rocksdb").findings(&[], 80);
    assert_eq!((nothing.text.as_str(), nothing.conclusion.as_str()), ("", ""));
}

/// Both stages of rocksdb's; `share` of the background load was moved.
fn rocksdb(get_ns: u64, sync_ns: u64, append_ns: u64, share: f64) -> Vec<Vec<JobReport>> {
    let paced = |name: &str, direction, mebibytes: u64| {
        let bytes = (share * (mebibytes << 20) as f64 * 10.0) as u64;
        let mut job = job(name, direction, 1000, bytes, MS);
        job.options = vec![("rate".to_string(), format!("{mebibytes}m"))];
        job
    };
    vec![
        vec![job("gets-alone", READ, 1000, 4_096_000, MS / 10)],
        vec![
            job("gets-under-load", READ, 1000, 4_096_000, get_ns),
            synced(job("wal", WRITE, 1000, 1_024_000, append_ns), sync_ns),
            paced("flush", WRITE, 16),
            paced("compaction-reads", READ, 64),
            paced("compaction-writes", WRITE, 56),
        ],
    ]
}

#[test]
fn rocksdb_is_judged_by_gets_log_and_background_under_load() {
    for (reports, expected, why) in [
        (rocksdb(MS, MS, 1000, 1.0), "PASS", "with reserve"),
        (rocksdb(6 * MS, MS, 1000, 1.0), "MARGINAL", "p99 of gets under load"),
        (rocksdb(MS, 11 * MS, 1000, 1.0), "FAIL", "p99 of WAL fdatasync"),
        (rocksdb(MS, MS, 1100 * MS, 1.0), "FAIL", "longest WAL append or sync"),
        (rocksdb(MS, MS, 1000, 0.95), "MARGINAL", "95.0 %"),
        (rocksdb(MS, MS, 1000, 0.5), "FAIL", "50.0 %"),
    ] {
        let findings = findings(&check("rocksdb"), reports);
        assert_eq!(verdict(&findings), expected, "{why}");
        assert!(findings.conclusion.contains(why), "{why}: {}", findings.conclusion);
    }
}

#[test]
fn one_session_decides_whether_oltp_fails_and_more_whether_it_has_reserve() {
    let stage = |sessions: usize, read_ns| {
        let session = |_| {
            let mut job = job("sessions", READ, 700, 700 << 14, read_ns);
            job.stats.directions[WRITE] = job.stats.directions[READ].clone();
            job
        };
        (0..sessions).map(session).collect::<Vec<_>>()
    };
    for (latencies, expected) in [
        ([MS, MS, MS, 9 * MS], "PASS"),
        ([MS, MS, MS, 90 * MS], "MARGINAL"),
        ([11 * MS, 11 * MS, 11 * MS, 11 * MS], "FAIL"),
    ] {
        let reports = [1, 4, 16, 32].into_iter().zip(latencies).map(|(n, ns)| stage(n, ns)).collect();
        assert_eq!(verdict(&findings(&check("oltp"), reports)), expected);
    }
}

#[test]
fn a_time_budget_is_shared_out_as_the_profile_does() {
    for (budget, each) in [(None, 10_000), (Some(12_000), 2000), (Some(600), 100)] {
        let check = Check::new(&PROFILES[0], &site(), budget.map(Duration::from_millis)).unwrap();
        let runtime = format!("runtime={each}ms");
        assert!(check.steps().iter().all(|step| settings(step).contains(&runtime)));
    }
    let rocksdb = Check::new(&PROFILES[1], &site(), Some(Duration::from_secs(9))).unwrap();
    let steps = rocksdb.steps().iter().map(|step| (step.prepares, step.time.as_secs()));
    assert_eq!(steps.collect::<Vec<_>>(), [(true, 0), (false, 3), (false, 6)]);
}

#[test]
fn the_files_of_a_profile_take_the_space_it_says() {
    for profile in &PROFILES {
        let check = Check::new(profile, &site(), None).unwrap();
        let sections = || check.steps().iter().flat_map(|step| &step.sections);
        let files: std::collections::BTreeSet<&std::path::PathBuf> =
            sections().flat_map(|section| &section.files).collect();
        assert!(sections().all(|section| section.files.len() == 1));
        assert!(files.iter().all(|file| file.parent() == Some("/there/own".as_ref())), "{files:?}");
        let size = match profile.space {
            Space::Bytes(bytes) => format!("\nsize={}m\n", bytes >> 20),
            Space::Files(count) => {
                assert_eq!(files.len() as u64, count, "{}", profile.name);
                "\nsize=1g\n".to_string()
            }
        };
        assert!(profile.job_file.contains(&size), "{}", profile.name);
    }
}

#[test]
fn what_is_only_read_cannot_be_checked() {
    let read = Site { writable: false, ..site() };
    let why = Check::new(&PROFILES[0], &read, None).unwrap_err();
    assert_eq!(why, "/there: it is no directory, and check writes to files of its own; name a directory");
}
