//! Jobs that end once they are steady: which values are accepted, when a job ends, and what is reported.
//!
//! Invariant: the jobs issue at a fixed rate, so that it is their options that decide whether they become steady.

use fiord_compat::compare::{equal, exit, json_shape, normal, success, terse};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, Ran, case, raw};
use serde_json::Value;

/// A job of a hundred I/Os a second.
const PACED: &str = "--ioengine=null --size=1m --rw=read --bs=4k --rate_iops=100 --time_based";

/// Values that are accepted or refused by both.
const VALUES: &[&str] = &[
    "iops:5%",
    "iops:5.5%",
    "iops:0",
    "iops:-5",
    "iops:105%",
    "iops:5%%",
    "iops:5x%",
    "iops:1e3%",
    "iops:1k",
    "iops:5.7",
    "iops:",
    "iops:%",
    "iops:abc",
    "iops",
    "IOPS:5%",
    "iops_slope:0.1%",
    "iops_slope:3",
    "iops_slope:",
    "iops_slope",
    "bw:5%",
    "bw:5k",
    "bw:5.5m",
    "bw:5KiB/s",
    "bw:1g",
    "bw:",
    "bw:xx",
    "bw_slope:.5%",
    "bw_slope:1m",
    "bw_slope",
    "latency:5%",
    "iops:5,bw:6%",
    ":5",
    "slope:5%",
];

/// Limits that `--debug=parse` prints.
const THRESHOLDS: &[&str] = &[
    "iops:10",
    "iops:10%",
    "iops:3.5%",
    "iops_slope:0.1%",
    "iops_slope:0.5",
    "bw:12",
    "bw:10%",
    "bw_slope:1m",
];

/// Options beside `steadystate`, for `--parse-only`.
const BESIDE: &[(&str, &str)] = &[
    ("alias-ss_dur", "--ss=iops:5% --ss_dur=2"),
    ("alias-ss_ramp", "--ss=iops:5% --ss_dur=2 --ss_ramp=3"),
    ("long-names", "--steadystate=iops:5% --steadystate_duration=10 --steadystate_ramp_time=5"),
    ("duration-in-minutes", "--ss=iops:5% --ss_dur=1.5m"),
    ("duration-in-ms", "--ss=iops:5% --ss_dur=2000ms"),
    ("duration-alone", "--ss_dur=5"),
    ("ramp-alone", "--ss_ramp=5"),
    ("criterion-alone", "--ss=iops:5%"),
    ("no-value", "--ss= --ss_dur=2"),
];

/// Jobs of which each has a steady state or none.
const RUNS: &[(&str, &str)] = &[
    ("iops-percent", "--name=s --ss=iops:50% --ss_dur=1 --runtime=9"),
    ("iops", "--name=s --ss=iops:90 --ss_dur=1 --runtime=9"),
    ("iops_slope-percent", "--name=s --ss=iops_slope:90% --ss_dur=2 --runtime=9"),
    ("iops_slope", "--name=s --ss=iops_slope:90 --ss_dur=2 --runtime=9"),
    ("bw-percent", "--name=s --ss=bw:50% --ss_dur=2 --runtime=9"),
    ("bw", "--name=s --ss=bw:300k --ss_dur=1 --runtime=9"),
    ("bw_slope-percent", "--name=s --ss=bw_slope:90% --ss_dur=2 --runtime=9"),
    ("bw_slope", "--name=s --ss=bw_slope:1m --ss_dur=2 --runtime=9"),
    ("never", "--name=s --ss=iops:0 --ss_dur=1 --runtime=2"),
    ("never-below-zero", "--name=s --ss=bw:-1% --ss_dur=1 --runtime=2"),
    ("window-not-full", "--name=s --ss=iops:50% --ss_dur=9 --runtime=2"),
    ("half-a-second-is-none", "--name=s --ss=iops:50% --ss_dur=500ms --runtime=1"),
    ("one-second-and-a-half", "--name=s --ss=iops:50% --ss_dur=1500ms --runtime=9"),
    ("no-duration", "--name=s --ss=iops:50% --runtime=1"),
    ("ramp", "--name=s --ss=iops:50% --ss_dur=1 --ss_ramp=1 --runtime=9"),
    ("ramp-of-the-job", "--name=s --ss=iops:50% --ss_dur=1 --ramp_time=1 --runtime=9"),
    ("numjobs", "--name=s --numjobs=2 --ss=iops:50% --ss_dur=1 --runtime=9"),
    ("numjobs-grouped", "--name=s --numjobs=2 --group_reporting --ss=iops:50% --ss_dur=1 --runtime=9"),
    ("two-groups", "--name=s --ss=iops:50% --ss_dur=1 --runtime=9 --name=t --new_group --runtime=2"),
    (
        "stonewall",
        "--name=s --ss=iops:50% --ss_dur=1 --runtime=9 --name=t --stonewall --ss=bw:50% --ss_dur=1 --runtime=9",
    ),
    ("late", "--name=s --startdelay=1 --ss=iops:50% --ss_dur=1 --runtime=9"),
    ("gtod_reduce", "--name=s --gtod_reduce=1 --ss=iops:50% --ss_dur=1 --runtime=9"),
    ("described", "--name=s --description=x --ss=iops:50% --ss_dur=1 --runtime=9"),
    (
        "exitall",
        "--name=s --exitall --exit_what=all --ss=iops:50% --ss_dur=1 --runtime=9 --name=t --new_group --runtime=9",
    ),
];

/// Jobs of one reporting group that differ in their steady state.
const DIFFERENT: &[(&str, &str)] = &[
    ("one-without", "--name=a --ss=iops:5% --ss_dur=2 --name=b"),
    ("other-criterion", "--ss_dur=2 --name=a --ss=iops:5% --name=b --ss=bw:5%"),
    ("other-limit", "--ss_dur=2 --name=a --ss=iops:5% --name=b --ss=iops:6%"),
    ("other-duration", "--ss=iops:5% --name=a --ss_dur=2 --name=b --ss_dur=3"),
    ("other-ramp", "--ss=iops:5% --ss_dur=2 --name=a --ss_ramp=1 --name=b"),
];

/// The values that do not depend on when measurements are taken.
fn outlines(ran: &Ran) -> Result<Vec<[Value; 5]>, String> {
    let outline = |job: &Value| {
        let steady = &job["steadystate"];
        let taken = |key: &str| Value::from(steady["data"][key].as_array().map_or(0, Vec::len));
        [
            steady["ss"].clone(),
            steady["duration"].clone(),
            steady["attained"].clone(),
            taken("iops"),
            taken("bw"),
        ]
    };
    Ok(ran.jobs()?.iter().map(outline).collect())
}

/// The same criterion, window and verdict.
fn the_same_verdict(pair: &Pair) -> Verdict {
    equal("steadystate of each job", outlines(&pair.fio)?, outlines(&pair.fiord)?)
}

/// fiord's criterion is that of its measurements.
fn follows_from_its_measurements(pair: &Pair) -> Verdict {
    for steady in pair.fiord.jobs()?.iter().map(|job| &job["steadystate"]).filter(|one| one.is_object()) {
        let word = steady["ss"].as_str().unwrap_or_default();
        let key = if word.starts_with("bw") { "bw" } else { "iops" };
        let values: Vec<f64> =
            steady["data"][key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        if values.contains(&0.0) {
            continue;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let criterion = match word.contains("_slope") {
            // Of two measurements; a single one has no slope.
            true => values[values.len() - 1] - values[0],
            false => values.iter().fold(0.0_f64, |most, value| most.max((value - mean).abs())),
        };
        let (number, percent) = match steady["criterion"].as_str().unwrap_or_default().split_once('%') {
            Some((number, _)) => (number.parse::<f64>(), criterion / mean * 100.0),
            None => (steady["criterion"].as_str().unwrap_or_default().parse::<f64>(), criterion),
        };
        if number.as_ref().map_or(true, |number| (number - percent).abs() > 0.001) {
            return Err(format!("{number:?} is reported, and {percent} follows from {values:?}"));
        }
    }
    Ok(())
}

fn text_is_in_order(pair: &Pair) -> Verdict {
    raw::json_text(&pair.fiord.stdout)
}

/// The line of each job without its figures and their prefixes.
fn lines(text: &str) -> Vec<String> {
    let found = text.lines().filter(|line| line.starts_with("  steadystate  :"));
    let is_figure =
        |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | 'K' | 'M' | 'k' | 'i');
    found.map(|line| line.replace("iops", "I/O").replace(is_figure, "")).collect()
}

fn the_same_line(pair: &Pair) -> Verdict {
    equal("lines about the steady state", lines(&pair.fio.stdout), lines(&pair.fiord.stdout))
}

/// `--debug=parse` says the same of the limit.
fn the_same_threshold(pair: &Pair) -> Verdict {
    let thresholds = |ran: &Ran| -> Vec<String> {
        let said = ran.stdout.lines().filter_map(|line| line.split_once("set steady state "));
        said.map(|(_, threshold)| threshold.to_string()).collect()
    };
    let fio = thresholds(&pair.fio);
    equal("fio says one", 1, fio.len())?;
    equal("threshold", fio, thresholds(&pair.fiord))
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let parsed = |name: String, args: &str| {
        case(format!("steady/{name}"), format!("--parse-only --name=a {PACED} --runtime=1 {args}"))
            .check(exit)
    };
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(VALUES.iter().map(|value| {
        let name = value.replace(['%', '/', ' '], "_");
        parsed(format!("value-{name}"), &format!("--ss={value} --ss_dur=2"))
    }));
    cases.extend(THRESHOLDS.iter().map(|value| {
        let line = format!("--debug=parse --parse-only --name=a {PACED} --runtime=1 --ss={value} --ss_dur=2");
        case(format!("steady/threshold-{value}"), line).check(success).check(the_same_threshold)
    }));
    cases.extend(BESIDE.iter().map(|(name, args)| parsed((*name).to_string(), args)));
    for (name, args) in RUNS {
        let run = |format: &str| {
            let name = format!("steady/{name}-{}", format.replace('+', "_bins"));
            case(name, format!("--output-format={format} {PACED} {args}")).check(success)
        };
        cases.push(
            run("json")
                .check(json_shape)
                .check(text_is_in_order)
                .check(the_same_verdict)
                .check(follows_from_its_measurements),
        );
        cases.push(run("normal").check(the_same_line));
    }
    for (name, args) in [RUNS[0], RUNS[10], RUNS[17]] {
        let run = |format: &str, name: &str| {
            case(format!("steady/{name}"), format!("{format} {PACED} {args}")).check(success)
        };
        cases.push(run("--output-format=json+", &format!("{name}-json_bins")).check(json_shape));
        cases.push(run("", &format!("{name}-text")).check(normal));
        for version in [3, 4, 5] {
            let format = format!("--minimal --terse-version={version}");
            cases.push(run(&format, &format!("{name}-terse-{version}")).check(terse));
        }
    }
    cases.extend(DIFFERENT.iter().map(|(name, args)| {
        let line = format!("--output-format=json {PACED} --runtime=1 {args}");
        case(format!("steady/group-{name}"), line).check(exit)
    }));
    cases
}
