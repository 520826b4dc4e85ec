//! Every format, line by line.
//!
//! Invariant: a format changes only together with its file in `snapshots/`. `FIORD_BLESS=1 cargo test -p fiord-report`
//! rewrites them; read the difference before committing it.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod fixture;

use std::path::PathBuf;

use fiord_device::{EnergyScope, EnergyUse};
use fiord_options::job;
use fiord_report::table::Cell;
use fiord_report::{
    Code, Finding, Format, Idleness, RunReport, Subject, TerseVersion, Unified, UnitWork, render,
};
use fiord_stats::{SteadyMeasure, SteadyRule};

fn check(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("FIORD_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (ours, theirs)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            ours,
            theirs,
            "{name}, line {}; to accept: FIORD_BLESS=1 cargo test -p fiord-report",
            number + 1
        );
    }
    assert_eq!(
        text, expected,
        "{name} has more or fewer lines; to accept: FIORD_BLESS=1 cargo test -p fiord-report"
    );
}

#[test]
fn normal() {
    check("normal.txt", &render(&fixture::run(), &[Format::Normal], TerseVersion::V3));
}

#[test]
fn terse() {
    let versions = [TerseVersion::V2, TerseVersion::V3, TerseVersion::V4, TerseVersion::V5];
    let text: String =
        versions.iter().map(|version| render(&fixture::run(), &[Format::Terse], *version)).collect();
    check("terse.txt", &text);
}

#[test]
fn json() {
    check("result.json", &render(&fixture::run(), &[Format::Json], TerseVersion::V3));
}

#[test]
fn json_plus() {
    let mut run = fixture::run();
    run.jobs.remove(0);
    check("plus.json", &render(&run, &[Format::JsonPlus], TerseVersion::V3));
}

#[test]
fn unified() {
    for (name, unified) in [("mixed", Unified::Mixed), ("both", Unified::Both)] {
        let run = fixture::run_unified(unified);
        check(&format!("{name}.txt"), &render(&run, &[Format::Terse, Format::Normal], TerseVersion::V5));
        check(&format!("{name}.json"), &render(&run, &[Format::Json], TerseVersion::V3));
    }
}

#[test]
fn text_after_the_disks() {
    let mut run = fixture::run();
    run.jobs.clear();
    run.disks.truncate(1);
    run.idleness = Some(Idleness {
        system_percent: 21.721,
        cpus: vec![(0, 29.11), (3, 14.3351)],
        unit: UnitWork { mean_us: 13.456, stddev_us: 7.79 },
    });
    let used = |source: &str, scope, energy_uj, idle_uw| EnergyUse {
        source: source.to_owned(),
        scope,
        energy_uj,
        elapsed_ns: 4_000_000_000,
        idle_uw,
    };
    run.energy = vec![
        used("package-0", EnergyScope::Processors, 123_456_789, Some(20_000_000)),
        used("dram-0", EnergyScope::Memory, 10_000_000, Some(5_000_000)),
        used("power_meter: power1", EnergyScope::Other, 800_000_000, None),
    ];
    let place = Subject::Place("a.fio:3:9".to_owned());
    let depth =
        Finding::new(Code::Option, place, "job \"a\": the depth stays at 1", "ioengine=io_uring has a queue");
    let ramp = Finding::new(Code::EndedInRamp, Subject::Job("a".to_owned()), "it ended\nbefore its ramp", "");
    let ramp = ramp.of_option(job::Time::ramp_time).based_on([("ramp_s", Cell::Count(3))]);
    run.findings = vec![ramp, depth.of_option(job::Queue::iodepth)];
    check("tail.json", &render(&run, &[Format::Json], TerseVersion::V3));
    check("tail.txt", &render(&run, &[Format::Terse, Format::Normal], TerseVersion::V3));
    run.findings.clear();
    assert!(!render(&run, &[Format::Normal], TerseVersion::V3).contains("Findings"));
}

#[test]
fn units() {
    let mut run = fixture::run();
    run.jobs.truncate(1);
    let show = &mut run.jobs[0].show;
    (show.kb_base, show.unit_base, show.significant_figures) = (1000, 1, 6);
    show.percentile_list = vec![50.0, 99.0, 99.999];
    check("units.txt", &render(&run, &[Format::Normal], TerseVersion::V3));
}

/// The section and the object of response latencies, which terse output lacks.
#[test]
fn response_latencies() {
    let mut run = fixture::run();
    run.jobs = vec![fixture::paced_job()];
    let terse = |run: &RunReport| render(run, &[Format::Terse], TerseVersion::V5);
    let without = RunReport { jobs: vec![fixture::busy_job()], ..fixture::run() };
    assert_eq!(terse(&run), terse(&without));
    for (name, format) in [("response.json", Format::Json), ("response-plus.json", Format::JsonPlus)] {
        let document = render(&run, &[format], TerseVersion::V3);
        let at = document.find("\"response\"").unwrap();
        let end = document[at..].find("\"disk_util\"").unwrap();
        check(name, &document[at..at + end]);
    }
    let text = render(&run, &[Format::Normal], TerseVersion::V3);
    check("response.txt", &text[text.find("\nResponse latency").unwrap()..]);
    assert!(!render(&without, &[Format::Normal], TerseVersion::V3).contains("esponse"));
    let show = &mut run.jobs[0].show;
    (show.clat_percentiles, show.lat_percentiles) = (false, false);
    assert!(!render(&run, &[Format::Normal], TerseVersion::V3).contains("response percentiles"));
    run.jobs[0].show.unified = Unified::Mixed;
    assert!(
        render(&run, &[Format::Json], TerseVersion::V3).contains("\"response\" : {\n        \"mixed\" : {")
    );
}

/// The section and the object of a replay's lateness, which terse output lacks.
#[test]
fn the_lateness_of_a_replay() {
    let run = RunReport { jobs: vec![fixture::replayed_job()], ..fixture::run() };
    let without = RunReport { jobs: vec![fixture::busy_job()], ..fixture::run() };
    let terse = |run: &RunReport| render(run, &[Format::Terse], TerseVersion::V5);
    assert_eq!(terse(&run), terse(&without));
    let document = render(&run, &[Format::Json], TerseVersion::V3);
    let (from, to) = (document.find("\"replay\"").unwrap(), document.find("\"disk_util\"").unwrap());
    check("replay.json", &document[from..to]);
    let text = render(&run, &[Format::Normal], TerseVersion::V3);
    check("replay.txt", &text[text.find("\nReplay lateness").unwrap()..]);
    assert!(!render(&without, &[Format::Normal], TerseVersion::V3).contains("Replay"));
}

/// The lines and the object of the lifetimes of blocks, which terse output lacks.
#[test]
fn block_lifetimes() {
    let mut run = fixture::run();
    run.jobs.truncate(1);
    run.jobs[0].stats.blocks = Some(fixture::block_lifetimes());
    let text = render(&run, &[Format::Normal], TerseVersion::V3);
    let (from, to) = (text.find("  block lifetime").unwrap(), text.find("\nRun status").unwrap());
    check("blocks.txt", &text[from..to]);
    let document = render(&run, &[Format::Json], TerseVersion::V3);
    let (from, to) = (document.find("\"block\"").unwrap(), document.find("\"disk_util\"").unwrap());
    check("blocks.json", &document[from..to]);
}

/// The line and the object of a steady state, which terse output lacks.
#[test]
fn steady_state() {
    let mut run = fixture::run();
    run.jobs.truncate(1);
    run.jobs[0].steady = Some(fixture::steady_state());
    let text = render(&run, &[Format::Normal], TerseVersion::V3);
    assert!(
        text.contains(
            "\n  steadystate  : attained=yes, bw=4004KiB/s (4100kB/s), iops=1001, bw slope=-0.250%\n"
        )
    );
    let document = render(&run, &[Format::Json], TerseVersion::V3);
    let at = document.find("\"steadystate\"").unwrap();
    check("steady.json", &document[at..]);
    for measure in [SteadyMeasure::Iops, SteadyMeasure::Latency] {
        let mut steady = fixture::steady_state();
        steady.rule = SteadyRule { measure, is_percent: false, is_slope: false, ..steady.rule };
        steady.samples.truncate(1);
        run.jobs[0].steady = Some(steady);
        let document = render(&run, &[Format::Json], TerseVersion::V3);
        let at = document.find("\"steadystate\"").unwrap();
        check(
            if measure == SteadyMeasure::Iops { "steady-short.json" } else { "steady-latency.json" },
            &document[at..],
        );
    }
}
