//! The energy of a run beside what `perf` counts of it.
//!
//! Invariant: both read the same counters of the processor, over the same run.

use fiord_testing::{need, skip};

use crate::common::{Dir, helper, root};

const EVENT: &str = "power/energy-pkg/";

/// How far apart the two may be, in percent: perf also counts the start and end of fiord, and the power before its run.
const APART_MAX: f64 = 20.0;

/// The joules of a line of `perf stat -x,`: `12.34,Joules,power/energy-pkg/,…`.
fn joules(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(EVENT))?;
    line.split(',').next()?.trim().parse().ok()
}

#[test]
fn the_joules_of_the_packages_are_those_of_perf() {
    need!(root());
    let dir = Dir::new();
    let (file, report) =
        (dir.join("perf.csv").display().to_string(), dir.join("run.json").display().to_string());
    let perf = ["stat", "-a", "-x,", "-o", &file, "-e", EVENT];
    need!(helper("perf", &[&perf[..], &["true"]].concat()));
    let output = format!("--output={report}");
    let job = ["--output-format=json", &output, "--name=j", "--ioengine=null", "--size=1g", "--time_based"];
    let fiord = [env!("CARGO_BIN_EXE_fiord"), "--no-history", "--runtime=5"];
    need!(helper("perf", &[&perf[..], &fiord[..], &job[..]].concat()));
    let Some(theirs) = joules(&String::from_utf8_lossy(&dir.read("perf.csv"))) else {
        skip!("perf does not count {EVENT} here");
    };
    let document: serde_json::Value =
        serde_json::from_str(&String::from_utf8_lossy(&dir.read("run.json"))).unwrap();
    let sources = document["energy"].as_array().cloned().unwrap_or_default();
    let packages = sources.iter().filter(|row| row["source"].as_str().unwrap().starts_with("package-"));
    let ours: f64 = packages.map(|row| row["joules"].as_f64().unwrap()).sum();
    assert!(
        (ours - theirs).abs() <= theirs * APART_MAX / 100.0,
        "fiord {ours} J, perf {theirs} J: {document}"
    );
}

#[test]
fn the_joules_of_perf_are_read() {
    let text = "# started on Mon Nov 30\n\n12.34,Joules,power/energy-pkg/,5000000,100.00,,\n";
    assert_eq!(joules(text), Some(12.34));
    assert_eq!(joules("<not supported>,Joules,power/energy-pkg/,0,100.00,,"), None);
    assert_eq!(joules(""), None);
}
