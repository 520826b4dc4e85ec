//! What is printed of a run on several hosts.
//!
//! Invariant: shapes are those of fio 3.42's client mode; what fio does not have comes after them.

use fiord_report::RepeatedFigure;
use serde_json::Value;

use super::*;
use crate::model::FleetSettings;
use crate::run::{Fate, HostRun};
use crate::testing::{host, job};

fn hosts(count: u32) -> Vec<HostRun> {
    let of = |number: u32| {
        let ios = 100 + number as usize;
        let mut run =
            host(number, i64::from(number), vec![job(&vec![1000 * u64::from(number + 1); ios], 1000)]);
        run.host.port = Some(8765 + number as u16);
        let options = vec![("ioengine".to_string(), "null".to_string())];
        run.report.as_mut().unwrap().global_options = options;
        run
    };
    (0..count).map(of).collect()
}

fn document(hosts: Vec<HostRun>) -> Value {
    let fleet = FleetReport::of(hosts, FleetSettings::default());
    serde_json::from_str(&render(&fleet, &[Format::Json], TerseVersion::V3)).unwrap()
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_fios_shape_and_one_object_more() {
    let two = document(hosts(2));
    let fios = ["fio version", "timestamp", "time", "global options", "client_stats", "disk_util"];
    assert_eq!(keys(&two)[..6], fios);
    assert_eq!(keys(&two)[6..], ["fleet"]);
    let entries = two["client_stats"].as_array().unwrap();
    let named = |entry: &Value| format!("{} {} {}", entry["jobname"], entry["hostname"], entry["port"]);
    let all: Vec<String> = entries.iter().map(named).collect();
    assert_eq!(all, [r#""a" "db1" 8765"#, r#""a" "db2" 8766"#, r#""All clients" "db2" 8766"#]);
    // fio 3.42's entries, in their order.
    let expected = "jobname groupid job_start error read write trim sync job_runtime usr_cpu sys_cpu ctx majf minf \
                    iodepth_level iodepth_submit iodepth_complete latency_ns latency_us latency_ms latency_depth \
                    latency_target latency_target_ns latency_percentile latency_window latency_window_us hostname port";
    assert_eq!(keys(&entries[0]).join(" "), expected);
    let without_target: Vec<&str> =
        expected.split(' ').filter(|key| !key.starts_with("latency_") || key.len() == 10).collect();
    assert_eq!(keys(&entries[2]), without_target);
    assert_eq!(entries[2]["read"]["total_ios"], 201);
    assert_eq!(entries[2]["job_start"], 0);
    assert_eq!(keys(&two["global options"][1]), ["hostname", "port", "ioengine"]);
    let fleet = &two["fleet"];
    assert_eq!(keys(fleet), ["order", "hosts", "window", "starts", "clocks", "totals", "outliers"]);
    assert_eq!(fleet["starts"]["skew_ns"], 1_000_000);
    assert_eq!(fleet["totals"][0]["window_iops"].as_f64().unwrap().round(), 201.0);
}

#[test]
fn one_host_has_an_object_of_options_and_no_sum() {
    let one = document(hosts(1));
    assert_eq!(keys(&one["global options"]), ["ioengine"]);
    assert_eq!(one["client_stats"].as_array().unwrap().len(), 1);
}

#[test]
fn terse_lines_end_with_all_clients() {
    let fleet = FleetReport::of(hosts(2), FleetSettings::default());
    let lines = render(&fleet, &[Format::Terse], TerseVersion::V3);
    let starts: Vec<String> =
        lines.lines().map(|line| line.split(';').take(4).collect::<Vec<_>>().join(";")).collect();
    assert_eq!(starts, ["3;fio-3.42;a;0", "3;fio-3.42;a;0", "3;fio-3.42;All clients;0"]);
}

/// What fiord prints after fio's part.
fn own_text(hosts: Vec<HostRun>) -> String {
    let fleet = FleetReport::of(hosts, FleetSettings::default());
    let text = render(&fleet, &[Format::Normal], TerseVersion::V3);
    text.split_once("\nHosts:\n").unwrap().1.to_string()
}

#[test]
fn text_has_the_blocks_of_hosts_then_all_clients_then_the_table() {
    let fleet = FleetReport::of(hosts(2), FleetSettings::default());
    let text = render(&fleet, &[Format::Normal], TerseVersion::V3);
    let heads: Vec<&str> = text
        .lines()
        .filter(|line| {
            line.starts_with('<') || line.contains(": (groupid=") || line.starts_with("Run status")
        })
        .map(|line| line.split(" pid=").next().unwrap_or_default())
        .collect();
    assert_eq!(
        heads,
        [
            "<db1> ",
            "a: (groupid=0, jobs=1): err= 0:",
            "Run status group 0 (all jobs):",
            "<db2> ",
            "a: (groupid=0, jobs=1): err= 0:",
            "Run status group 0 (all jobs):",
            "All clients: (groupid=0, jobs=2): err= 0:",
        ]
    );
    let expected = "  2 hosts started within 1.0 ms (clocks known to 0.2 ms)\n\
                    \x20 they ran together for 1.0 s, 100 % of the shortest run, of rates taken for even\n\
                    \x20 read: 201 IOPS, 804KiB/s together; as fio adds: 201 IOPS, 804KiB/s\n\
                    \x20 host  start  IOPS     B/s  mean  p50  p99  p99.9  max\n\
                    \x20 db1     0ns   100  400KiB   1us  1us  1us    1us  1us\n\
                    \x20 db2     1ms   101  404KiB   2us  2us  2us    2us  2us\n";
    assert_eq!(own_text(hosts(2)), expected);
}

#[test]
fn many_hosts_are_shown_by_the_worst_the_median_and_the_best() {
    let text = own_text(hosts(30));
    let table = text.split("\nFindings").next().unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{text}");
    let names: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("host "))
        .skip(1)
        .take(16)
        .map(|line| line.split_whitespace().next().unwrap_or_default())
        .collect();
    let expected = "db1 db2 db3 db4 db5 db6 db7 db8 db9 db10 db16 db30 (min) (median) (max) (MAD)";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn a_host_that_is_gone_is_in_no_sum_and_is_said() {
    let mut runs = hosts(3);
    runs[1].fate = Fate::Lost { at_ms: 1200, cause: "the pipe\x1b[2J ended".to_string() };
    let text = own_text(runs.clone());
    assert!(
        text.contains("  db2: lost: the pipe\\u{1b}[2J ended\n") && text.contains("2 hosts started"),
        "{text}"
    );
    assert!(text.contains("void: this run: host-lost: db2 went lost at 1.2 s"), "{text}");
    runs[1].logs.files = 5;
    runs[1].logs.incomplete = vec![("l_bw.1.log.db2".to_string(), "its end has not come".to_string()); 4];
    let text = own_text(runs.clone());
    let incomplete = "  db2: 4 of 5 logs incomplete: l_bw.1.log.db2 (its end has not come), ";
    assert!(text.contains(incomplete) && text.contains(", 1 more\n"), "{text}");
    let document = document(runs);
    assert_eq!(document["client_stats"].as_array().unwrap().len(), 3);
    assert_eq!(document["fleet"]["hosts"][1]["logs"]["files"], 5);
    assert_eq!(document["fleet"]["hosts"][0]["logs"], Value::Null);
    assert_eq!(document["client_stats"][2]["read"]["total_ios"], 202);
    assert_eq!(document["fleet"]["hosts"][1]["fate"], "lost");
    assert_eq!(document["fleet"]["hosts"][1]["iops"], Value::Null);
}

/// The paths of all keys of a value, as docs/json.md writes them.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| paths(value, &format!("{path}.{key}"), found));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| paths(item, &format!("{path}[]"), found));
        }
        _ => found.push(path.to_string()),
    }
}

#[test]
fn every_key_of_fleet_is_documented() {
    let mut runs = hosts(6);
    runs[5] = host(5, 0, vec![job(&[900_000; 10], 1000)]);
    for run in &mut runs {
        let targets = vec![crate::TargetFacts::default()];
        run.facts = Some(crate::HostFacts { targets, ..crate::HostFacts::default() });
        run.logs = crate::HostLogs { files: 1, incomplete: vec![("l".to_string(), "why".to_string())] };
    }
    let mut found = Vec::new();
    let intervals = vec![crate::Interval::of(500, &runs)];
    let fleet = FleetReport::of(runs, FleetSettings { group_by: Some("kernel"), ..FleetSettings::default() });
    let over_time = crate::OverTime { window_ns: 1, hosts: vec![("db1".to_string(), vec![Some(1.0), None])] };
    let fleet = FleetReport { intervals, over_time: Some(over_time), ..fleet };
    let document: Value = serde_json::from_str(&render(&fleet, &[Format::Json], TerseVersion::V3)).unwrap();
    paths(&document["fleet"], "fleet", &mut found);
    found.sort();
    found.dedup();
    assert!(found.iter().any(|path| path == "fleet.outliers[].z"), "{found:?}");
    let page = include_str!("../../../../docs/json.md");
    for path in found {
        let last = path.rsplit('.').next().unwrap_or_default();
        let is_there = page.contains(&format!("`{path}`")) || page.contains(&format!("`{last}`"));
        assert!(is_there, "{path} is not in docs/json.md");
    }
}

#[test]
fn groups_are_sums_of_their_hosts_and_the_first_done_is_named() {
    let mut runs = hosts(3);
    for (run, role) in runs.iter_mut().zip(["fast", "slow", "fast"]) {
        run.host.role = Some(role.to_string());
    }
    runs[1].report.as_mut().unwrap().jobs = vec![job(&[2000; 50], 500)];
    let settings = FleetSettings { group_by: Some("role"), ..FleetSettings::default() };
    let fleet = FleetReport::of(runs, settings);
    let text = render(&fleet, &[Format::Normal], TerseVersion::V3);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().skip(4).take(1).collect::<String>()
    };
    assert_eq!([row("role fast (2)"), row("role slow (1)")], ["202", "100"], "{text}");
    assert!(text.contains("  first done: db2 after 0.5 s; last done: db3 after 1.0 s\n"), "{text}");
    let document: Value = serde_json::from_str(&render(&fleet, &[Format::Json], TerseVersion::V3)).unwrap();
    let p99_ns = document["fleet"]["groups"][0]["p99_ns"].as_u64().unwrap();
    assert!((2900..=3000).contains(&p99_ns), "{p99_ns}");
    assert_eq!(document["fleet"]["window"]["first_done"]["host"], "db2");
}

#[test]
fn what_is_printed_is_read_back_with_its_hosts() {
    let fleet = FleetReport::of(hosts(3), FleetSettings::default());
    for format in [Format::Normal, Format::Terse, Format::Json, Format::JsonPlus] {
        let text = render(&fleet, &[format], TerseVersion::V3);
        let reports = fiord_import::read(&text).unwrap();
        let [report] = reports.as_slice() else { panic!("{format:?}: {} reports", reports.len()) };
        assert_eq!(report.damage, [], "{format:?}");
        let ios = |job: &fiord_import::JobFigures| {
            let read = &job.directions[0];
            read.ios.unwrap_or_else(|| read.bytes.unwrap() / 4096)
        };
        assert_eq!(report.jobs.iter().map(ios).collect::<Vec<_>>(), [100, 101, 102], "{format:?}");
        assert_eq!(report.all_hosts.as_deref().map(ios), Some(303), "{format:?}");
        // Terse lines name no host.
        let expected: &[&str] = if format == Format::Terse { &[] } else { &["db1", "db2", "db3"] };
        assert_eq!(report.hosts, expected, "{format:?}");
    }
}

#[test]
fn rounds_are_shown_as_medians_and_repeats_that_are_read_back_for_each_host() {
    let subject = || "a, read".to_string();
    let of = |mut run: HostRun| {
        run.add_round(run.clone(), 2, false);
        run.add_round(HostRun { earlier: Vec::new(), ..run.clone() }, 3, false);
        let own =
            RepeatedFigure { subject: subject(), figure: "iops".to_string(), ..RepeatedFigure::default() };
        run.report.as_mut().unwrap().repeats = vec![RepeatedFigure { runs: vec![1.0, 2.0, 3.0], ..own }];
        run.host.port = None;
        run
    };
    let settings = FleetSettings { order: crate::Order::Interleaved, ..FleetSettings::default() };
    let fleet = FleetReport::of(hosts(2).into_iter().map(of).collect(), settings);
    let text = render(&fleet, &[Format::Normal], TerseVersion::V3);
    let expected = "\nHosts:\n\
                    \x20 each ran alone in 3 of 3 rounds: rows are medians, sums of the last round\n\
                    \x20 read: as fio adds: 201 IOPS, 804KiB/s\n\
                    \x20 host  IOPS     B/s  mean  p50  p99  p99.9  max\n\
                    \x20 db1    100  400KiB   1us  1us  1us    1us  1us\n\
                    \x20 db2    101  404KiB   2us  2us  2us    2us  2us\n\
                    \x20 3 runs of each; ± is half of the 95 % confidence interval of the mean\n";
    assert!(text.contains(expected) && !text.contains("a, read"), "{text}");
    let document = render(&fleet, &[Format::Json], TerseVersion::V3);
    let values: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(values["fleet"]["order"], "interleaved");
    assert_eq!(values["repeats"][0]["runs"].as_array().unwrap().len(), 3);
    let report = fiord_import::read(&document).unwrap().remove(0);
    let one = report.of_host("db2").unwrap();
    assert_eq!(
        one.repeats.iter().map(|one| (one.of.clone(), one.runs.len())).collect::<Vec<_>>(),
        [(subject(), 3)]
    );
}
