//! Verdicts on synthetic reports.
//!
//! Invariant: every profile is judged by reports that name its own jobs.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_report::{Code, Finding, JobReport, RunReport, Subject};

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

fn target() -> StudyTarget {
    let (path, file) = ("/there".into(), "/there/own/data".into());
    StudyTarget { path, file, writable: true, size_bytes: 4 << 30, ..StudyTarget::default() }
}

/// As many rounds as a profile has itself.
fn own(profile: &Profile) -> Repeat {
    Repeat::Times(profile.rounds)
}

fn check(name: &str) -> Check {
    let profile = PROFILES.iter().find(|profile| profile.name == name).unwrap();
    Check::new(profile, &target(), None, own(profile)).unwrap()
}

fn result(check: &Check, reports: Vec<Vec<JobReport>>) -> StudyResult {
    let results = |(step, jobs)| StepResult { step, report: RunReport { jobs, ..RunReport::default() } };
    let results: Vec<StepResult> = reports.into_iter().enumerate().map(results).collect();
    let result = check.result(&results, 80);
    assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
    result
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

fn verdict(result: &StudyResult) -> &str {
    result.verdict.map_or("none", Verdict::word)
}

/// The verdicts of the rows, which are the same for programs and for readers.
fn row_verdicts(result: &StudyResult) -> Vec<Cell> {
    let [table, shown] =
        [&result.table, result.shown.as_ref().unwrap()].map(|table| table.select(&["verdict"]).rows.concat());
    assert_eq!(table, shown);
    table
}

#[test]
fn the_worst_of_three_rounds_judges_etcd() {
    let good = (MS, 9000);
    for (worst, expected) in [
        (good, "PASS"),
        ((6 * MS, 9000), "MARGINAL"),
        ((MS, 4800), "MARGINAL"),
        // 90 per second beside 900: the mean may be on either side of 50.
        ((MS, 900), "CANNOT TELL"),
        ((11 * MS, 9000), "CANNOT TELL"),
        ((MS, 400), "CANNOT TELL"),
    ] {
        for place in 0..3 {
            let mut rounds = [good; 3];
            rounds[place] = worst;
            let result = result(&check("etcd"), etcd_rounds(rounds));
            assert_eq!(verdict(&result), expected, "{worst:?} in round {place}");
            assert!(result.conclusion.starts_with(expected), "{}", result.conclusion);
            let word = Cell::Text(expected.to_string());
            assert!(row_verdicts(&result).contains(&word), "{expected}: {:?}", row_verdicts(&result));
        }
    }
}

#[test]
fn rounds_on_both_sides_of_a_limit_decide_nothing() {
    let result = result(&check("etcd"), etcd_rounds([(MS, 9000), (11 * MS, 9000), (MS, 9000)]));
    assert_eq!(
        result.conclusion,
        "CANNOT TELL, because p99 of fdatasync, 2300-byte appends was 1ms to 11ms in 3 rounds, mean 4.33ms (95 %: \
         up to 18.7ms), on both sides of the limit of 10ms."
    );
    assert_eq!(verdict(&self::result(&check("etcd"), etcd_rounds([(11 * MS, 9000); 3]))), "FAIL");
}

/// Neither a good figure nor a bad one is a verdict if it is not one of the disk alone.
#[test]
fn a_void_round_decides_nothing() {
    for (rounds, without) in [([(MS, 9000); 3], "PASS"), ([(20 * MS, 9000); 3], "FAIL")] {
        let check = check("etcd");
        let step = |(step, jobs)| StepResult { step, report: RunReport { jobs, ..RunReport::default() } };
        let mut results: Vec<StepResult> = etcd_rounds(rounds).into_iter().enumerate().map(step).collect();
        assert_eq!(verdict(&check.result(&results, 80)), without);
        let finding = |code| {
            Finding::new(code, Subject::Device("sda".to_string()), "other programs transferred 2GiB", "")
        };
        results[4].report.findings = vec![finding(Code::ForeignIo)];
        assert_eq!(verdict(&check.result(&results, 80)), without, "a caution is no reason");
        results[4].report.findings = vec![finding(Code::DiskShared)];
        let result = check.result(&results, 80);
        assert_eq!((verdict(&result), result.verdict), ("CANNOT TELL", Some(Verdict::Undecided)));
        let word = Cell::Text("CANNOT TELL".to_string());
        assert!(row_verdicts(&result).iter().all(|cell| *cell == word), "{:?}", row_verdicts(&result));
        assert!(result.text.lines().all(|line| !line.ends_with(without)), "{}", result.text);
        assert_eq!(
            result.conclusion,
            "CANNOT TELL, because other programs transferred 2GiB (disk-shared, device sda)."
        );
    }
}

#[test]
fn the_conclusion_names_the_figure_that_decided() {
    let result = result(&check("etcd"), etcd_rounds([(18 * MS, 9000), (20 * MS, 9000), (19 * MS, 9000)]));
    assert_eq!(
        result.conclusion,
        "FAIL: this disk is too slow for etcd: p99 of fdatasync, 2300-byte appends is 20ms (18ms to 20ms in 3 rounds, mean 19ms \
         ± 2.48ms; fails above 10ms)."
    );
}

/// All rounds of these figures, by whether the confidence interval of their mean contains a limit.
#[test]
fn an_interval_across_the_limit_decides_nothing_and_one_across_the_headroom_is_named() {
    let conclusion = |syncs_ms: [u64; 3]| {
        result(&check("etcd"), etcd_rounds(syncs_ms.map(|ms| (ms * MS, 9000)))).conclusion
    };
    let beyond = conclusion([12, 20, 15]);
    assert!(beyond.starts_with("CANNOT TELL, because "), "{beyond}");
    assert!(beyond.contains("the 95 % interval of the mean contains the limit of 10ms"), "{beyond}");
    let within = conclusion([4, 9, 4]);
    assert!(within.starts_with("CANNOT TELL, because "), "{within}");
    let headroom = conclusion([4, 5, 5]);
    assert!(headroom.starts_with("PASS: "), "{headroom}");
    assert!(headroom.contains("Another check may see more or less headroom"), "{headroom}");
    assert!(!conclusion([1, 1, 2]).contains("Another check"));
}

/// Scripted figures: noise asks for further rounds until the interval is clear of the limit, or the time is over.
#[test]
fn further_rounds_follow_while_noise_hides_the_verdict_and_time_is_left() {
    let profile = &PROFILES[0];
    let check =
        |seconds| Check::new(profile, &target(), Some(Duration::from_secs(seconds)), Repeat::Auto).unwrap();
    let of = |syncs_ms: &[u64]| -> Vec<StepResult> {
        let rounds = syncs_ms.iter().flat_map(|ms| etcd_rounds([(ms * MS, 9000); 3]).into_iter().take(2));
        let step = |(number, jobs)| StepResult {
            step: number % 2,
            report: RunReport { jobs, ..RunReport::default() },
        };
        rounds.enumerate().map(step).collect()
    };
    // Each run takes ten seconds.
    let next = |seconds, syncs_ms: &[u64]| check(seconds).next(&of(syncs_ms)).map(|step| step.repeats);
    assert_eq!(next(600, &[1, 1]), Some(Some(0)), "three rounds at least");
    assert_eq!(next(600, &[1, 1, 1]), None);
    assert_eq!(next(600, &[9, 4, 4]), Some(Some(0)));
    assert_eq!(next(60, &[9, 4, 4]), None, "no time is left");
    assert_eq!(next(600, &[9, 4, 4, 4, 4, 4, 4]), Some(Some(0)), "across the headroom");
    assert_eq!(next(600, &[11, 4, 4, 4, 4, 4, 4, 4, 4, 4]), None, "the most");
    let decided = check(600).result(&of(&[7, 8, 7, 8]), 80);
    assert_eq!((verdict(&decided), decided.verdict), ("MARGINAL", Some(Verdict::Marginal)));
    assert_eq!(decided.tables.iter().find(|(key, _)| *key == "repeats").unwrap().1.rows.len(), 2);
}

#[test]
fn an_interrupted_check_shows_its_rows_and_gives_no_verdict() {
    let mut reports = etcd_rounds([(20 * MS, 100); 3]);
    reports.truncate(1);
    let result = result(&check("etcd"), reports);
    assert_eq!((row_verdicts(&result), result.verdict), (vec![Cell::None], None));
    assert_eq!(result.conclusion, "No verdict: not all rounds were run.");
    let nothing = check("rocksdb").result(&[], 80);
    assert_eq!((nothing.text.as_str(), nothing.conclusion.as_str()), ("", ""));
}

/// Both stages of the rocksdb profile; `share` of the background load was moved.
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
        (rocksdb(MS, MS, 1000, 1.0), "PASS", "with headroom"),
        (rocksdb(6 * MS, MS, 1000, 1.0), "MARGINAL", "p99 of gets under load"),
        (rocksdb(MS, 11 * MS, 1000, 1.0), "FAIL", "p99 of WAL fdatasync"),
        (rocksdb(MS, MS, 1100 * MS, 1.0), "FAIL", "longest WAL append or sync"),
        (rocksdb(MS, MS, 1000, 0.95), "MARGINAL", "95.0 %"),
        (rocksdb(MS, MS, 1000, 0.5), "FAIL", "50.0 %"),
    ] {
        let result = result(&check("rocksdb"), reports);
        assert_eq!(verdict(&result), expected, "{why}");
        assert!(result.conclusion.contains(why), "{why}: {}", result.conclusion);
    }
}

#[test]
fn one_session_decides_whether_oltp_fails_and_several_whether_it_has_headroom() {
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
        assert_eq!(verdict(&result(&check("oltp"), reports)), expected);
    }
}

#[test]
fn a_time_budget_is_divided_as_in_the_profile() {
    for (budget, each) in [(None, 10_000), (Some(12_000), 2000), (Some(600), 100)] {
        let check = Check::new(&PROFILES[0], &target(), budget.map(Duration::from_millis), own(&PROFILES[0]))
            .unwrap();
        let runtime = format!("runtime={each}ms");
        assert!(check.steps().iter().all(|step| settings(step).contains(&runtime)));
    }
    let rocksdb =
        Check::new(&PROFILES[1], &target(), Some(Duration::from_secs(9)), Repeat::Times(1)).unwrap();
    let steps = rocksdb.steps().iter().map(|step| (step.prepares, step.time.as_secs()));
    assert_eq!(steps.collect::<Vec<_>>(), [(true, 0), (false, 3), (false, 6)]);
}

#[test]
fn the_files_of_a_profile_take_the_declared_space() {
    for profile in PROFILES.iter() {
        let check = Check::new(profile, &target(), None, own(profile)).unwrap();
        let sections = || check.steps().iter().flat_map(|step| &step.sections);
        let files: std::collections::BTreeSet<&std::path::PathBuf> =
            sections().flat_map(|section| &section.files).collect();
        assert!(sections().all(|section| section.files.len() == 1));
        assert!(files.iter().all(|file| file.parent() == Some("/there/own".as_ref())), "{files:?}");
        let size = match profile.space {
            Space { fixed_bytes, files: 0, .. } => format!("\nsize={}m\n", fixed_bytes >> 20),
            Space { files: count, .. } => {
                assert_eq!(files.len() as u64, count, "{}", profile.name);
                "\nsize=1g\n".to_string()
            }
        };
        assert!(profile.job_file.contains(&size), "{}", profile.name);
    }
}

#[test]
fn a_read_only_target_cannot_be_checked() {
    let read = StudyTarget { writable: false, ..target() };
    let why = Check::new(&PROFILES[0], &read, None, Repeat::Auto).unwrap_err();
    assert_eq!(why, "/there: not a directory, and check writes to scratch files; name a directory");
}

#[test]
fn files_that_do_not_fit_are_refused_with_both_figures() {
    let small = StudyTarget { free_bytes: Some(20 << 20), ..target() };
    let why = Check::new(&PROFILES[0], &small, None, Repeat::Auto).unwrap_err();
    assert_eq!(
        why,
        "/there: 20MiB are free, and the files of etcd whose size is fixed take 22MiB; free some space, or name another \
         directory"
    );
    let small = StudyTarget { size_bytes: 12 << 20, ..target() };
    let checkpoint = PROFILES.iter().find(|profile| profile.name == "ai-checkpoint").unwrap();
    assert_eq!(
        Check::new(checkpoint, &small, None, Repeat::Auto).unwrap_err(),
        "/there: 12MiB can be used, and each of the 4 files of ai-checkpoint needs at least 4MiB; raise --size, free some \
         space, or name another directory"
    );
    let text = "title = 'x'\njobs = '''\n[a]\nrw=read\nsize=5g\nruntime=1\n[b]\nrw=read\nsize=1g\nruntime=1\n'''\n[limit]\n'a: read.p99' = '<= 1ms'";
    let profile = super::read("x.toml".as_ref(), "x", text).unwrap();
    assert_eq!((profile.space_bytes(1 << 30), profile.seconds()), (6 << 30, 1));
    let why = Check::new(&profile, &target(), None, Repeat::Auto).unwrap_err();
    assert!(
        why.starts_with("/there: 4GiB can be used, and the files of x whose size is fixed take 5GiB"),
        "{why}"
    );
}
