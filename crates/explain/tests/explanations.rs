//! Explanations of reports that fiord made: an invented run with content in every part.
//!
//! Invariant: an explanation changes only together with its file in `snapshots/`.
//! `FIORD_BLESS=1 cargo test -p fiord-explain` rewrites them; read the difference before committing it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use std::path::PathBuf;

use fiord_explain::{Checks, NotedFinding, explain, lookup};
use fiord_report::{Code, Finding, Format, RunReport, Subject, TerseVersion, render};

fn check(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("FIORD_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}; to accept: FIORD_BLESS=1 cargo test -p fiord-explain");
}

fn explained(run: &RunReport, format: Format, version: TerseVersion) -> fiord_explain::Explanation {
    let report = fiord_import::read(&render(run, &[format], version)).unwrap().remove(0);
    let findings = report.findings.iter().map(NotedFinding::from).collect();
    explain(&report, findings, Checks::default())
}

/// The run, with a finding.
fn run() -> RunReport {
    let mut run = fixture::run();
    run.findings.push(Finding::new(
        Code::FewSamples,
        Subject::Job("mix".into()),
        "p99.9 rests on 1 I/O",
        "a longer run",
    ));
    run
}

#[test]
fn every_format_is_explained() {
    let run = run();
    check("json.txt", &explained(&run, Format::Json, TerseVersion::V3).text(80));
    check("normal.txt", &explained(&run, Format::Normal, TerseVersion::V3).text(80));
    check("terse-v5.txt", &explained(&run, Format::Terse, TerseVersion::V5).text(80));
}

#[test]
fn text_fits_the_terminal_and_json_has_the_same() {
    let explanation = explained(&run(), Format::Normal, TerseVersion::V3);
    let text = explanation.text(80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let json: serde_json::Value = serde_json::from_str(&explanation.json()).unwrap();
    let parts = json["jobs"][0]["parts"].as_array().unwrap();
    let slat = parts.iter().find(|part| part["part"] == "read.slat").unwrap();
    assert!(slat["text"].as_str().unwrap().starts_with("Submission latency"), "{slat}");
    assert!(slat["line"].as_u64().unwrap() > 2);
    assert_eq!(json["findings"][0]["code"], "few-samples");
}

#[test]
fn every_line_and_every_key_of_a_report_has_a_meaning() {
    let mut run = run();
    run.jobs[0].steady = Some(fixture::steady_state());
    run.jobs[0].stats.blocks = Some(fixture::block_lifetimes());
    let part = Some(fiord_stats::SteadyPart { from_ms: 1000, ios_per_s: [1.0; 3], bytes_per_s: [4096.0; 3] });
    let (slope_share, excursion_share) = (-0.5, 0.5);
    run.steadiness = Some(fiord_stats::RunSteadiness { run_ms: 9000, slope_share, excursion_share, part });
    let latencies = fiord_stats::RunLatencies::of(run.jobs.iter().map(|job| &job.stats));
    run.part_latencies = Some(fiord_stats::PartLatencies { from_ms: 1250, latencies });
    run.windows = vec![fiord_stats::Window { length_ns: 250_000_000, ios: [1; 3], bytes: [4096; 3] }];
    let text = render(&run, &[Format::Normal], TerseVersion::V3);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // Free text: the description, and what a finding says.
        if line.starts_with("  Description") || line.contains("few-samples") || line == "    a longer run" {
            continue;
        }
        lookup::line(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    }
    let json: serde_json::Value =
        serde_json::from_str(&render(&run, &[Format::JsonPlus], TerseVersion::V3)).unwrap();
    assert_keys(&json);
}

/// Keys that stand for figures or options have no meaning of their own.
fn assert_keys(value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            for (key, value) in members {
                let is_figure = key.trim_start_matches(">=").parse::<f64>().is_ok();
                if !is_figure {
                    lookup::line(key).unwrap_or_else(|why| panic!("{key}: {why}"));
                }
                if !key.ends_with(" options") {
                    assert_keys(value);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(assert_keys),
        _ => {}
    }
}

#[test]
fn absent_figures_are_not_explained() {
    let report = fiord_import::Report {
        jobs: vec![fiord_import::JobFigures { name: "a".into(), ..Default::default() }],
        ..Default::default()
    };
    let text = explain(&report, Vec::new(), Checks::default()).text(80);
    assert!(text.contains("did no I/O that this format reports"), "{text}");
    assert!(!text.contains("latency") && !text.contains("NaN") && !text.contains("inf"), "{text}");
}
