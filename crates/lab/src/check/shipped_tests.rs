//! The checks that fiord brings along, on synthetic disks.
//!
//! Invariant: a disk is made of the figures of a check, so that a check that is added is tested without a line here, and with
//! each of its limits.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_compare::figure::{DirectionName, Figure, Measure, Subject};
use fiord_report::{Code, Finding, JobReport, RunReport, Subject as FindingSubject};
use fiord_stats::Latency;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::expression::{Quantity, Quotient, Term};
use super::limit::{Limit, Unit};
use super::profile::FigureOfCheck;
use super::*;
use crate::figures::{READ, WRITE};
use crate::testing::target;

/// Seconds that each job ran.
const SECONDS: f64 = 10.0;

/// A latency within every limit.
const QUICK_NS: u64 = 10_000;

fn latency(ns: u64) -> Latency {
    let mut latency = Latency::with_histogram();
    (0..100).for_each(|_| {
        latency.record(ns);
    });
    latency
}

/// A job with this rate that is within every limit in all that it could do.
fn quick_job(name: &str, rate: &str) -> JobReport {
    let mut job = JobReport { name: name.to_string(), member_count: 1, ..JobReport::default() };
    job.options.push(("rate".to_string(), rate.to_string()));
    for direction in [READ, WRITE] {
        let stats = &mut job.stats.directions[direction];
        (stats.ios, stats.bytes, stats.runtime_ms) = (100_000_000, 1 << 50, 1000 * SECONDS as u64);
        stats.completion = latency(QUICK_NS);
    }
    job.stats.sync.latency = latency(QUICK_NS);
    job
}

/// The reports of a disk that is within every limit.
fn quick_disk(profile: &Profile) -> Vec<RunReport> {
    let measured = profile.stages.iter().filter(|stage| stage.seconds > 0);
    let report = |stage: &Stage| {
        let jobs = stage.jobs.iter().map(|job| quick_job(&job.name, "1m")).collect();
        RunReport { jobs, ..RunReport::default() }
    };
    measured.map(report).collect()
}

/// Makes what a term is of `times` what it is now, or `to` this value.
fn change(reports: &mut [RunReport], term: &Term, to: f64) {
    let jobs = &mut reports[term.stage].jobs;
    let count =
        jobs.iter().filter(|job| term.job.as_ref().is_none_or(|name| *name == job.name)).count() as f64;
    for job in jobs.iter_mut().filter(|job| term.job.as_ref().is_none_or(|name| *name == job.name)) {
        let direction = match term.quantity.subject() {
            Subject::Direction(DirectionName::Write) => WRITE,
            _ => READ,
        };
        let stats = &mut job.stats.directions[direction];
        match (term.quantity, term.quantity.subject()) {
            (Quantity::Of(Figure { measure: Measure::Iops, .. }), _) => {
                stats.ios = (to * SECONDS / count) as u64
            }
            (Quantity::Of(Figure { measure: Measure::Bandwidth, .. }), _) => {
                stats.bytes = (to * SECONDS / count) as u64
            }
            (Quantity::ShareOfRate(_), _) => stats.bytes = (f64::from(1 << 20) * SECONDS * to / 100.0) as u64,
            (_, Subject::Sync) => job.stats.sync.latency = latency(to as u64),
            _ => stats.completion = latency(to as u64),
        }
    }
}

/// The disk with this quotient of a figure beyond a limit.
fn beyond(profile: &Profile, figure: &FigureOfCheck, quotient: &Quotient, limit: f64) -> Vec<RunReport> {
    let mut reports = quick_disk(profile);
    let Quotient { term, over } = quotient;
    let factor = match figure.of.unit() {
        Unit::Ns | Unit::Times => 1.05,
        Unit::Percent => 0.995,
        _ => 0.98,
    };
    let to = if over.is_some() { limit * QUICK_NS as f64 } else { limit };
    change(&mut reports, term, factor * to);
    reports
}

fn result(profile: &Profile, reports: &[RunReport]) -> StudyResult {
    let check = Check::new(profile, &target(), None, Repeat::Times(1)).unwrap();
    let results: Vec<StepResult> = reports
        .iter()
        .enumerate()
        .map(|(step, report)| StepResult { step, report: report.clone() })
        .collect();
    check.result(&results, 80)
}

fn verdict_of(result: &StudyResult, figure: &str) -> Cell {
    let row = result.table.rows.iter().find(|row| row[0] == Cell::Text(figure.to_string()));
    row.unwrap_or_else(|| panic!("{figure}: {:?}", result.table.rows))[1].clone()
}

#[test]
fn each_passes_a_quick_disk_and_fails_one_for_each_of_its_limits() {
    for profile in PROFILES.iter() {
        let quick = result(profile, &quick_disk(profile));
        assert_eq!(
            quick.verdict,
            Some(Verdict::Pass),
            "{}: {}\n{}",
            profile.name,
            quick.conclusion,
            quick.text
        );
        let mut failed = 0;
        for figure in &profile.figures {
            let Some(Limit { pass, fail, .. }) = figure.limit else { continue };
            let marginal = (fail != Some(pass)).then_some((pass, Verdict::Marginal));
            let limits = marginal.into_iter().chain(fail.map(|fail| (fail, Verdict::Fail)));
            for ((limit, expected), quotient) in
                limits.flat_map(|limit| figure.of.0.iter().map(move |of| (limit, of)))
            {
                let result = result(profile, &beyond(profile, figure, quotient, limit));
                let name = format!("{}: {}: {quotient:?}: {}", profile.name, figure.title, result.text);
                let word = Cell::Text(expected.word().to_string());
                assert_eq!(verdict_of(&result, &figure.title), word, "{name}");
                assert!(result.verdict >= Some(expected), "{name}");
            }
            failed += usize::from(marginal.is_some()) + usize::from(fail.is_some());
        }
        // As many as a reader of the file counts; one limit that both passes and fails is one.
        let lines = |start: &str| profile.text.lines().filter(|line| line.starts_with(start)).count();
        let both = profile.figures.iter().filter_map(|figure| figure.limit.as_ref());
        let both = both.filter(|limit| limit.fail == Some(limit.pass)).count();
        assert_eq!(failed, lines("pass = ") + lines("limit = ") - both, "{}", profile.name);
    }
}

#[test]
fn each_tells_nothing_of_a_disk_whose_figures_are_void_or_missing() {
    for profile in PROFILES.iter() {
        let mut void = quick_disk(profile);
        let subject = FindingSubject::Device("sda".to_string());
        void[0].findings.push(Finding::new(Code::DiskShared, subject, "other programs transferred 2GiB", ""));
        assert_eq!(result(profile, &void).verdict, Some(Verdict::Undecided), "{}", profile.name);
        let silent: Vec<RunReport> = quick_disk(profile).iter().map(|_| RunReport::default()).collect();
        let silent = result(profile, &silent);
        assert_eq!(silent.verdict, Some(Verdict::Undecided), "{}", profile.name);
        assert!(silent.conclusion.contains("was not measured in every round"), "{}", silent.conclusion);
    }
}

/// One round is within a limit, and another beyond it.
#[test]
fn each_is_undecided_if_rounds_lie_on_both_sides_of_one_of_its_limits() {
    for profile in PROFILES.iter() {
        let fails = profile.figures.iter().filter_map(|figure| Some((figure, figure.limit.as_ref()?.fail?)));
        let limits = fails.flat_map(|(figure, fail)| figure.of.0.iter().map(move |of| (figure, of, fail)));
        let mut count = 0;
        for (figure, quotient, fail) in limits {
            let rounds = [quick_disk(profile), beyond(profile, figure, quotient, fail)].concat();
            let result = result(profile, &rounds);
            let name = format!("{}: {}: {quotient:?}: {}", profile.name, figure.title, result.text);
            assert_eq!(verdict_of(&result, &figure.title), Cell::Text("CANNOT TELL".to_string()), "{name}");
            assert_eq!(result.verdict, Some(Verdict::Undecided), "{name}");
            assert!(result.conclusion.contains("on both sides of the limit of"), "{}", result.conclusion);
            count += 1;
        }
        assert!(count > 0, "{}", profile.name);
    }
}

#[test]
fn each_is_a_file_that_is_read_back_and_says_where_its_limits_are_from() {
    for profile in PROFILES.iter() {
        let again = super::read("x.toml".as_ref(), "x", &profile.text).unwrap();
        assert_eq!((&again.runs, &again.figures), (&profile.runs, &profile.figures));
        for limit in profile.figures.iter().filter_map(|figure| figure.limit.as_ref()) {
            assert!(
                limit.from.len() > 10 && !limit.from.contains("check's own"),
                "{}: {}",
                profile.name,
                limit.from
            );
        }
        assert!(profile.explained().contains(&profile.workload), "{}", profile.explained());
        assert!(profile.seconds() > 0 && profile.space_bytes(1 << 30) > 0, "{}", profile.name);
    }
}

#[test]
fn a_forbidden_finding_fails_a_disk() {
    let text = "title = 'x'\nforbidden_findings = ['volatile-cache']\njobs = '''\n[a]\nrw=randread\nsize=1g\nruntime=1\n'''\n";
    let profile = super::read("x.toml".as_ref(), "x", text).unwrap();
    let quick = quick_disk(&profile);
    assert_eq!(result(&profile, &quick).verdict, Some(Verdict::Pass));
    let mut found = quick;
    let subject = FindingSubject::Device("sda".to_string());
    found[0].findings.push(Finding::new(Code::VolatileCache, subject, "its cache is volatile", ""));
    let result = result(&profile, &found);
    assert_eq!(
        result.conclusion,
        "FAIL: this disk does not suit x: findings volatile-cache is 1 (fails above 0)."
    );
}

/// A file may come from anybody.
#[test]
fn no_text_of_a_file_controls_a_terminal() {
    let escape = |name: &str| format!("{name}\\u001b[2J");
    let [title, workload, source, remedy] = ["t", "w", "s", "r"].map(escape);
    let text = format!(
        "title = \"{title}\"\nfast_enough_for = \"{workload}\"\nsource = \"{source}\"\nremedy = \"{remedy}\"\njobs = '''\n[a]\n\
         rw=randread\nsize=1g\nruntime=1\n'''\n[[figure]]\ntitle = \"{title}\"\nof = \"read.p99\"\nlimit = \"<= 1ms\"\n"
    );
    let explained = super::read("x.toml".as_ref(), "x", &text).unwrap().explained();
    assert!(!explained.contains('\u{1b}'), "{explained}");
    assert_eq!(explained.matches("\\u{1b}[2J").count(), 5, "{explained}");
}

/// The value in JSON, by which schemas are written.
fn in_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Array(items) => items.iter().map(|item| in_json(item.get_ref())).collect(),
        DeValue::Table(table) => table_in_json(table),
        DeValue::Integer(number) => number.to_string().parse().unwrap_or_default(),
        DeValue::Float(number) => number.to_string().parse().unwrap_or_default(),
        DeValue::Datetime(time) => Value::from(time.to_string()),
    }
}

fn table_in_json(table: &DeTable<'_>) -> Value {
    table.iter().map(|(key, value)| (key.get_ref().to_string(), in_json(value.get_ref()))).collect()
}

/// What the schema refuses of a file; nothing of one that is not TOML.
fn refused_by_schema(text: &str) -> Vec<String> {
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let errors = |error: jsonschema::ValidationError<'_>| format!("{}: {error:.300}", error.instance_path());
    schema.iter_errors(&table_in_json(table.get_ref())).map(errors).collect()
}

#[test]
fn the_schema_accepts_each() {
    for profile in PROFILES.iter() {
        assert_eq!(refused_by_schema(&profile.text), [""; 0], "{}", profile.name);
    }
    let book = include_str!("../../../../docs/checks.md");
    let example = book.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(refused_by_schema(example), [""; 0], "the example of docs/checks.md");
}

/// Editors complete what fiord reads.
#[test]
fn the_schema_has_every_key() {
    for key in file::TOP.iter().chain(&file::FIGURE) {
        assert!(SCHEMA.contains(&format!("\"{key}\": {{")), "{key}");
    }
}

/// Cases between `=== NAME`, with what is said of each after `---`, and whether an editor says so as well.
#[test]
fn each_broken_file_is_refused_with_its_place_and_a_remedy() {
    let snapshot = include_str!("broken.txt");
    let mut said = String::new();
    for case in snapshot.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let text = rest.split("---\n").next().unwrap();
        said += &format!("=== {name}\n{text}---\n");
        match super::read("c.toml".as_ref(), "c", text) {
            Ok(_) => said += "it is read\n",
            Err(problems) => problems.iter().for_each(|problem| said += &format!("{problem}\n")),
        }
        if !refused_by_schema(text).is_empty() {
            said += "the schema refuses it\n";
        }
    }
    assert!(!said.contains("it is read"), "{said}");
    assert!(said.matches("=== ").count() >= 40);
    assert!(said == snapshot, "{said}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(title|jobs|limit|figure|of|\\[|\\]|=|'''|\"|\n|read.p99|<= 5ms|\\[a\\]|size=1g| / |:|.){0,40}") {
        let _ = super::read("c.toml".as_ref(), "c", &text);
    }
}
