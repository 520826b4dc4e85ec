//! `fiord report`: pages of recorded runs and of reports in files, with their logs.
//!
//! Invariant: figures are compared with the JSON of the same run.

use std::process::Command;

use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::{Dir, Ran, finish, fiord, start};

/// Long enough for two windows of the timeline.
const JOB: &str = "--name=<b>mix --filename=data --rw=randrw --bs=4k --size=256k --ioengine=psync --rate_iops=200 \
                   --runtime=3 --time_based";

fn with_history(dir: &Dir, line: &str) -> Ran {
    let mut command: Command = fiord(dir.path(), line);
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(command))
}

/// The exact values of a column of the summary.
fn column(page: &str, key: &str) -> Vec<f64> {
    let mark = format!("data-key=\"{key}\" value=\"");
    page.split(&mark).skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

/// Compares the summary with a report's JSON.
#[track_caller]
fn assert_agrees(page: &str, json: &Value) {
    type Figure = fn(&Value) -> &Value;
    let figures: [(&str, Figure); 7] = [
        ("iops", |direction| &direction["iops"]),
        ("bandwidth", |direction| &direction["bw_bytes"]),
        ("mean", |direction| &direction["clat_ns"]["mean"]),
        ("p99", |direction| &direction["clat_ns"]["percentile"]["99.000000"]),
        ("max", |direction| &direction["clat_ns"]["max"]),
        ("ios", |direction| &direction["total_ios"]),
        ("bytes", |direction| &direction["io_bytes"]),
    ];
    let job = &json["jobs"][0];
    for (key, figure) in figures {
        let expected = [&job["read"], &job["write"]].map(|direction| figure(direction).as_f64().unwrap());
        assert_eq!(column(page, key), expected, "{key}");
    }
}

#[test]
fn a_recorded_run_becomes_a_page_with_its_figures() {
    let dir = Dir::new();
    with_history(&dir, JOB).assert_success();
    let json = with_history(&dir, "show last --json").assert_success().json();
    let written = with_history(&dir, "report -o page.html --json").assert_success().json();
    assert_documented(&written, "report");
    let page = dir.text("page.html");
    assert_eq!(written["bytes"], page.len());
    assert_agrees(&page, &json);
    assert!(page.contains("&lt;b&gt;mix") && !page.contains("<b>"));
    for part in ["id=\"over-time\"", "id=\"heat0-w-t\"", "chart-bandwidth", "fiord &#x27;--name="] {
        assert!(page.contains(part), "{part}");
    }
    let printed = with_history(&dir, "report last -o -");
    assert_eq!(printed.assert_success().stdout, page);
    with_history(&dir, JOB).assert_success();
    with_history(&dir, "report 1 last -o two.html").assert_success();
    let two = dir.text("two.html");
    assert_eq!(column(&two, "ios").len(), 4);
    assert!(two.contains("A: Run 1") && two.contains("B: Run 2"));
}

#[test]
fn a_report_in_a_file_has_the_logs_beside_it() {
    let dir = Dir::new();
    let logs =
        "--write_bw_log=out --write_lat_log=out --write_iops_log=out --log_avg_msec=500 --per_job_logs=1";
    let line = format!("--no-history {JOB} {logs} --output-format=json+ --output=result.json");
    dir.run(&line).assert_success();
    dir.run("report result.json -o page.html").assert_success();
    let page = dir.text("page.html");
    assert_agrees(&page, &serde_json::from_slice(&dir.read("result.json")).unwrap());
    for part in ["chart-bandwidth", "chart-iops", "chart-latency", "means of intervals"] {
        assert!(page.contains(part), "{part}");
    }
    // Named alone: only what that log says.
    dir.run("report result.json out_bw.1.log -o page.html").assert_success();
    let page = dir.text("page.html");
    assert!(page.contains("chart-bandwidth") && !page.contains("chart-iops"));
}

#[test]
fn what_cannot_be_a_page_is_said_and_nothing_is_written() {
    let dir = Dir::new();
    dir.run(&format!("--no-history {JOB} --runtime=1 --output-format=json --output=result.json"))
        .assert_success();
    dir.write("bad_bw.1.log", "1, 2, 0, 0\n{}\n");
    let refused = [
        ("report bad_bw.1.log", "logs only"),
        ("report result.json bad_bw.1.log", "bad_bw.1.log:2:1"),
        ("report nothing.json", "no such file"),
        ("report result.json -o . ", "not a file in an existing directory"),
        ("report result.json -o missing/page.html", "not a file in an existing directory"),
        ("report result.json --json -o -", "standard output"),
    ];
    let before = dir.contents();
    for (line, why) in refused {
        dir.run(line).assert_status(1).assert_prints(&[why]);
    }
    assert_eq!(dir.contents(), before);
}

#[test]
fn a_study_becomes_a_page_with_its_conclusion_and_its_table_first() {
    let dir = Dir::new();
    let line = "matrix --bs=4k,64k --rw=randread --size=8M --time=600ms --repeat=2 --json";
    let document = with_history(&dir, line).json();
    let written = with_history(&dir, "report -o page.html --json").assert_success().json();
    assert_documented(&written, "report");
    let page = dir.text("page.html");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in the page"));
    let escaped = document["conclusion"].as_str().unwrap().replace('/', "&#x2f;");
    assert!(at(&escaped) < at(">Figures</h2>") && at(">Figures</h2>") < at(">How far the rounds agree</h2>"));
    for row in document["rows"].as_array().unwrap() {
        at(&format!("<th scope=\"row\">{}</th>", row["test"].as_str().unwrap()));
        at(&format!("<data value=\"{}\">", row["read_iops"]));
        at(&format!("<data value=\"{}\">", row["read_p99_ns"]));
    }
    assert!(page.contains("fiord report 2") && page.contains("What it printed:"), "{page}");
    assert!(page.contains("<dt>Targets</dt>") && !page.contains("<dt>Target</dt>"), "said once: {page}");
    // It wraps; what was printed does not.
    at("<pre class=\"command\" tabindex=\"0\">");
    assert_eq!(page.matches("<pre class=\"command\"").count(), 1, "{page}");
    dir.write("study.json", document.to_string());
    dir.run("report study.json -o file.html").assert_success();
    assert!(dir.text("file.html").contains(&escaped) && dir.text("file.html").contains("<dt>Target</dt>"));
    assert!(!page.contains("JSON document"), "captions say what tables show");
    dir.write("x_bw.1.log", "1, 2, 0, 0\n");
    with_history(&dir, "report 1 x_bw.1.log").assert_status(1).assert_prints(&["logs belong to a run"]);
}

/// Studies and runs one after the other, each with its own parts.
#[test]
fn several_results_share_a_page() {
    let dir = Dir::new();
    let line = "sweep --rw=read --size=8M --over bs=4k..16k --time=600ms --repeat=1";
    with_history(&dir, line).assert_success();
    with_history(&dir, "--name=one --ioengine=null --size=1m --rw=randread").assert_success();
    let study = with_history(&dir, "history --json").json();
    let id =
        study["runs"].as_array().unwrap().iter().find(|run| run["kind"] == "sweep").unwrap()["id"].clone();
    with_history(&dir, &format!("report {id} -o sweep.html")).assert_success();
    let sweep = dir.text("sweep.html");
    for part in ["id=\"chart-throughput\"", "Throughput against bs", "id=\"chart-latency\"", "16\u{a0}KiB"] {
        assert!(sweep.contains(part), "{part}: {sweep}");
    }
    let written = with_history(&dir, &format!("report {id} last {id} last -o all.html --json"));
    assert_eq!(written.assert_success().json()["runs"].as_array().map(Vec::len), Some(4));
    let all = dir.text("all.html");
    for part in ["id=\"of-0-rows\"", "id=\"chart-of-2-throughput\"", "id=\"of-3-figures\"", "one: "] {
        assert!(all.contains(part), "{part}: {all}");
    }
    let ids: Vec<&str> = all.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

/// The rounds of a qualification as charts, and the figures of a steady test as a heat map.
#[test]
fn a_qualification_has_its_pictures() {
    let dir = Dir::new();
    let line = "qualify --test=saturation,latency --capacity=8M --time=20ms --rounds=5 --trust=off --json .";
    let mut document = dir.run(line).json();
    let page = |document: &serde_json::Value| {
        dir.write("qualify.json", document.to_string());
        dir.run("report qualify.json -o page.html").assert_success();
        dir.text("page.html")
    };
    let measured = page(&document);
    for part in [
        "Mean latency by round: latency, 4KiB",
        "IOPS as it is written: saturation",
        "<h2 id=\"tests\">Tests",
    ] {
        assert!(measured.contains(part), "{part}: {measured}");
    }
    // Whatever this machine measured: the same document without a steady window, and with one.
    let mut unsteady = document.clone();
    for row in unsteady["rows"].as_array_mut().unwrap() {
        for key in ["iops", "mib_per_s", "mean_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"] {
            row[key] = serde_json::Value::Null;
        }
    }
    let unsteady = page(&unsteady);
    assert!(!unsteady.contains(">Figures</h2>") && unsteady.contains(">Rounds</h2>"), "{unsteady}");
    for round in document["rounds"].as_array_mut().unwrap() {
        round["in_window"] = (round["test"] == "latency").into();
    }
    for row in document["rows"].as_array_mut().unwrap() {
        for key in ["iops", "mean_ns", "max_ns"] {
            row[key] = 1234.into();
        }
    }
    let steady = page(&document);
    for part in [
        "Steady window: latency, 4KiB",
        "<span class=\"strip b",
        "Maximum latency by block size",
        "shaded window",
    ] {
        assert!(steady.contains(part), "{part}: {steady}");
    }
}
