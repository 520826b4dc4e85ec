//! Capacity of synthetic devices.
//!
//! Invariant: responses are invented, so that the rate which meets the bound is known.

use fiord_options::{Section, job};
use fiord_stats::DirectionStats;
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};

use super::trial::percentile_with_lost;

use super::*;
use crate::testing::{direction, report, settings, synced, target};

fn settings_of() -> Settings {
    let bound = Bound { percentile: 99.0, limit: Duration::from_millis(10) };
    Settings { bound, even: false, time: Duration::from_secs(60), plot: Some("chart.svg".into()) }
}

fn pattern(pattern: &str) -> Load {
    Load::Pattern(Workload { pattern: pattern.to_string(), block_bytes: 4096, depth: 32 })
}

fn study(rw: &str) -> Result<Capacity, String> {
    Capacity::new(vec![target()], pattern(rw), settings_of())
}

/// The same on two targets.
fn study_of_two() -> Capacity {
    let other = StudyTarget { path: "/other".into(), file: "/other/own:2/data".into(), ..target() };
    Capacity::new(vec![target(), other], pattern("randread"), settings_of()).unwrap()
}

/// A run at a rate on a disk that responds in 1 ms up to 5000 I/Os per second and in 20 ms beyond it.
fn ran(step: usize, rate: u64) -> StepResult {
    let mut reads = direction(rate, 4096, 500_000);
    reads.response = direction(rate, 4096, if rate <= 5000 { 1_000_000 } else { 20_000_000 }).completion;
    reads.counts.add(&DROPPED_ARRIVALS, 0);
    reads.counts.add(&WAITING_ARRIVALS, 0);
    StepResult { step, report: report(Some(reads), None) }
}

/// All results of the study, as it would be carried out.
fn carried_out(study: &Capacity, mut ran: impl FnMut(usize, u64) -> StepResult) -> Vec<StepResult> {
    let mut results =
        vec![StepResult { step: 1, report: report(Some(direction(10_000, 4096, 500_000)), None) }];
    while let Some(step) = study.next(&results) {
        let setting = step.sections[0].settings().find(|setting| setting.spec == job::Pace::rate_iops);
        let rate = setting.and_then(|setting| setting.text()?.parse().ok()).unwrap();
        results.push(ran(results.len() + 1, rate));
    }
    results
}

#[test]
fn the_first_run_has_no_rate_and_the_others_have_open_arrivals() {
    let study = study("randread").unwrap();
    assert_eq!(study.steps().len(), 2, "the file is filled first");
    let first = settings(&study.steps()[1]);
    assert!(first.contains("rw=randread bs=4096 iodepth=32") && !first.contains(" rate"), "{first}");
    assert!(study.next(&[]).is_none());
    let first = StepResult { step: 1, report: report(Some(direction(10_000, 4096, 500_000)), None) };
    let next = settings(&study.next(&[first]).unwrap());
    assert!(next.contains("rate_iops=5000 rate_process=poisson rate_arrivals=open"), "{next}");
}

#[test]
fn the_highest_rate_within_the_bound_is_the_capacity() {
    let study = study("randread").unwrap();
    let results = carried_out(&study, ran);
    let result = study.result(&results, 80);
    let fact = |name: &str| result.facts.iter().find(|(key, _)| *key == name).map(|(_, cell)| cell.clone());
    assert_eq!(fact("capacity_iops"), Some(Cell::Count(5000)));
    assert_eq!(fact("capacity_iops_min"), Some(Cell::Count(5000)));
    assert!(matches!(fact("capacity_iops_max"), Some(Cell::Count(5001..5400))), "{:?}", result.facts);
    assert_eq!(result.verdict, None);
    assert!(
        result.conclusion.starts_with("This disk sustains 5000 I/Os per second with p99 within 10"),
        "{}",
        result.conclusion
    );
    assert_eq!(result.table.rows.len(), results.len() - 1);
    assert!(result.text.contains("Response p99, ms"), "{}", result.text);
    assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
    assert!(result.files[0].1.starts_with("<svg"), "{}", result.files[0].1);
    assert!(result.files[0].1.contains(">capacity 5000<"), "{}", result.files[0].1);
    // Unfinished, it concludes nothing.
    let begun = study.result(&results[..3], 80);
    assert_eq!((begun.conclusion.as_str(), begun.table.rows.len()), ("", 2));
    assert_eq!(study.result(&[], 80), StudyResult::default());
}

#[test]
fn arrivals_that_never_got_in_count_as_beyond_the_bound() {
    let lost = |dropped: u64| {
        let mut all = ran(0, 1000).report.jobs[0].stats.directions[0].clone();
        all.counts.add(&DROPPED_ARRIVALS, dropped);
        all.counts.add(&WAITING_ARRIVALS, 0);
        percentile_with_lost(&all, dropped, 99.0)
    };
    assert_eq!(lost(0), Some(1_000_000));
    assert_eq!(lost(9), Some(1_000_000));
    assert_eq!(lost(11), None, "more than 1 % of all");
    assert_eq!(percentile_with_lost(&DirectionStats::default(), 0, 99.0), None);
}

/// A write to memory within the bound, whose caller waits for the sync after it.
#[test]
fn the_response_to_a_write_that_is_synced_ends_with_its_sync() {
    let mut writes = direction(1000, 4096, 20_000);
    writes.response = direction(1000, 4096, 20_000).completion;
    let judged = |syncs: u64| {
        let report = synced(report(None, Some(writes.clone())), syncs, 30_000_000);
        let trial = settings_of().bound.judge(1000, &report);
        (trial.meets, trial.response_ns)
    };
    assert!(matches!(judged(1000), (false, Some(29_000_000..31_000_000))), "{:?}", judged(1000));
    assert!(matches!(judged(10), (true, Some(..25_000))), "{:?}", judged(10));
}

#[test]
fn a_bound_that_no_rate_meets_is_a_failure() {
    let study = study("randread").unwrap();
    let slow = |step, rate| {
        let mut result = ran(step, rate);
        result.report.jobs[0].stats.directions[0].response = direction(rate, 4096, 11_000_000).completion;
        result
    };
    let result = study.result(&carried_out(&study, slow), 80);
    assert_eq!(result.verdict, Some(Verdict::Fail));
    assert!(result.conclusion.starts_with("Not even "), "{}", result.conclusion);
}

#[test]
fn what_was_exhausted_beyond_it_is_the_limit() {
    let study = study("randread").unwrap();
    let limit = |util_percent: f64, busy_us: u64| {
        let exhausting = |step, rate| {
            let mut result = ran(step, rate);
            result.report.disks = vec![Default::default()];
            result.report.disks[0].util_percent = util_percent;
            let usage = &mut result.report.jobs[0].stats.usage;
            (usage.elapsed_ms, usage.user_us) = (1000, busy_us);
            result
        };
        let result = study.result(&carried_out(&study, exhausting), 80);
        result.facts.iter().find(|(key, _)| *key == "limit").map(|(_, cell)| cell.clone()).unwrap()
    };
    assert_eq!(limit(99.0, 100_000), Cell::Text("disk".to_string()));
    assert_eq!(limit(99.0, 950_000), Cell::Text("host".to_string()));
    assert_eq!(limit(50.0, 100_000), Cell::None);
}

#[test]
fn what_writes_needs_a_directory() {
    assert!(study("randrw").unwrap_err().contains("is not one of randread, randwrite, read, write"));
    let read_only = || vec![StudyTarget { writable: false, ..target() }];
    let refused = Capacity::new(read_only(), pattern("randwrite"), settings_of());
    assert!(refused.unwrap_err().contains("read-only, and randwrite writes"));
    let job = |rw| Load::Job(vec![Section::new("a").with([(job::Access::rw, rw)])]);
    assert!(Capacity::new(read_only(), job("randrw"), settings_of()).unwrap_err().contains("the job writes"));
    assert!(Capacity::new(read_only(), job("randread"), settings_of()).is_ok());
    assert!(Capacity::new(Vec::new(), pattern("read"), settings_of()).is_err());
}

#[test]
fn targets_are_measured_in_turn_and_compared() {
    let study = study_of_two();
    let names: Vec<&str> = study.steps().iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "/data: filling the test file",
            "/other: filling the test file",
            "/data: without a rate",
            "/other: without a rate"
        ]
    );
    // The second responds within the bound up to 2500 I/Os per second, the first up to 5000.
    let mut results: Vec<StepResult> = (2..4)
        .map(|step| StepResult { step, report: report(Some(direction(10_000, 4096, 500_000)), None) })
        .collect();
    let mut order = String::new();
    while let Some(step) = study.next(&results) {
        let is_other = step.name.starts_with("/other: ");
        assert_eq!(step.sections[0].files, [study.targets[usize::from(is_other)].file.clone()]);
        let setting = step.sections[0].settings().find(|setting| setting.spec == job::Pace::rate_iops);
        let rate: u64 = setting.and_then(|setting| setting.text()?.parse().ok()).unwrap();
        results.push(ran(results.len() + 2, if is_other { 2 * rate } else { rate }));
        order.push(if is_other { 'b' } else { 'a' });
    }
    assert!(order.starts_with("abababab"), "{order}");
    let result = study.result(&results, 80);
    assert!(result.conclusion.starts_with("/data carries most: "), "{}", result.conclusion);
    let fact = |name: &str| result.facts.iter().find(|(key, _)| *key == name).map(|(_, cell)| cell.clone());
    assert_eq!(fact("carries_most"), Some(Cell::Text("/data".to_string())));
    assert_eq!((fact("capacity_iops"), result.verdict), (Some(Cell::None), None));
    let (_, targets) = result.tables.iter().find(|(key, _)| *key == "targets").unwrap();
    let capacities: Vec<Cell> = targets.select(&["capacity_iops"]).rows.concat();
    assert!(matches!(capacities[..], [Cell::Count(5000), Cell::Count(2300..=2500)]), "{capacities:?}");
    assert_eq!(result.table.rows.len(), results.len() - 2);
    assert_eq!(result.table.columns[0].key, "target");
    assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
    for name in ["/data", "/other"] {
        // In the picture, a line of the legend.
        assert!(
            result.text.contains(name) && result.files[0].1.contains(&format!(">{name}<")),
            "{}",
            result.text
        );
    }
    // Interrupted, it has what was measured and says nothing of it.
    let begun = study.result(&results[..5], 80);
    assert_eq!((begun.conclusion.as_str(), begun.verdict, begun.table.rows.len()), ("", None, 3));
    assert_eq!(study.result(&results[..1], 80).conclusion, "");
}
