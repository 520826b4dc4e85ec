//! Every format, line by line.
//!
//! Invariant: a format changes only together with its file in `snapshots/`. `FIORD_BLESS=1 cargo test -p fiord-report`
//! rewrites those; read the difference before committing it.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod fixture;

use std::path::PathBuf;

use fiord_report::{Format, Idleness, TerseVersion, Unified, UnitWork, Warning, render};

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
fn what_follows_the_disks() {
    let mut run = fixture::run();
    run.jobs.clear();
    run.disks.truncate(1);
    run.idleness = Some(Idleness {
        system_percent: 21.721,
        cpus: vec![(0, 29.11), (3, 14.3351)],
        unit: UnitWork { mean_us: 13.456, stddev_us: 7.79 },
    });
    let warning = |code: &str, place: &str, message: &str| Warning {
        code: code.to_owned(),
        place: place.to_owned(),
        message: message.to_owned(),
    };
    run.warnings = vec![
        warning("iodepth", "a.fio:3:9", "job \"a\": the depth stays at 1\nioengine=io_uring has a queue"),
        warning("exec_prerun", "job a", "\"false\" ended with exit status: 1"),
    ];
    check("tail.json", &render(&run, &[Format::Json], TerseVersion::V3));
    run.tells_warnings = true;
    check("tail.txt", &render(&run, &[Format::Terse, Format::Normal], TerseVersion::V3));
    run.tells_warnings = false;
    assert!(!render(&run, &[Format::Normal], TerseVersion::V3).contains("Warnings"));
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
