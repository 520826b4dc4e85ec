//! Properties that widely used tools rely on.
//!
//! Invariant: each test is independent of the measurements, so nothing here depends on the figures of the fixture.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod fixture;

use std::collections::BTreeSet;

use fiord_report::{Format, JobReport, RunReport, TerseVersion, Unified, merge_groups, render};
use fiord_stats::{DirectionStats, Latency, PartLatencies, RunLatencies, RunSteadiness, SteadyPart, Window};
use proptest::prelude::*;
use serde_json::Value;

fn one(run: &RunReport, format: Format) -> String {
    render(run, &[format], TerseVersion::V3)
}

fn document(run: &RunReport) -> Value {
    serde_json::from_str(&one(run, Format::JsonPlus)).unwrap()
}

/// The run of a single job that measured nothing.
fn idle() -> RunReport {
    RunReport { jobs: vec![JobReport::default()], ..RunReport::default() }
}

#[test]
fn terse_versions_have_their_number_of_fields() {
    use TerseVersion::{V2, V3, V4, V5};
    for (version, fields) in [(V2, 161), (V3, 121), (V4, 162), (V5, 180)] {
        for mut run in [idle(), fixture::run()] {
            // Disks, error counts and descriptions follow the fixed fields.
            run.disks.clear();
            for job in &mut run.jobs {
                (job.continue_on_error, job.description) = (false, None);
            }
            for line in render(&run, &[Format::Terse], version).lines() {
                assert_eq!(line.split(';').count(), fields, "{version:?}");
            }
        }
    }
}

#[test]
fn the_steady_part_of_a_run_is_beside_the_figures_of_fio() {
    let mut run = fixture::run();
    let before = document(&run);
    let part = SteadyPart { from_ms: 12_250, ios_per_s: [1000.5, 0.0, 0.0], bytes_per_s: [4096.4, 0.0, 0.0] };
    let (slope_share, excursion_share) = (-0.25, 0.5);
    run.steadiness = Some(RunSteadiness { run_ms: 60_000, slope_share, excursion_share, part: Some(part) });
    let mut after = document(&run);
    let steady = after.as_object_mut().unwrap().remove("steady_part").unwrap();
    assert_eq!(after, before, "the figures of the jobs stay those of the whole run");
    let expected = serde_json::json!({
        "run_s": 60, "slope_percent": -25.0, "excursion_percent": 50.0, "from_s": 12.25, "to_s": 60,
        "read": { "iops": 1000.5, "bw_bytes": 4096 },
    });
    for (key, value) in expected.as_object().unwrap() {
        let figure = |value: &Value| value.as_f64();
        assert_eq!(figure(&steady[key]), figure(value), "{key}");
    }
    assert_eq!(steady["read"]["bw_bytes"], 4096);
    assert!(steady.get("write").is_none() && steady.get("latencies_from_s").is_none());
    let mut latencies = RunLatencies::default();
    latencies.directions[0] = Latency::with_histogram();
    for latency_ns in [100, 120, 127] {
        latencies.directions[0].record(latency_ns);
    }
    run.part_latencies = Some(PartLatencies { from_ms: 12_900, latencies });
    let steady = &document(&run)["steady_part"];
    assert_eq!((&steady["latencies_from_s"], &steady["sync"]), (&Value::from(12.9), &Value::Null));
    let expected = serde_json::json!({ "50.000000": 120, "99.000000": 127, "99.900000": 127 });
    assert_eq!(steady["read"]["clat_ns"]["percentile"], expected);
    assert_eq!(
        (&steady["read"]["clat_ns"]["min"], &steady["read"]["clat_ns"]["N"]),
        (&100.into(), &3.into())
    );
    run.steadiness = Some(RunSteadiness { run_ms: 60_000, slope_share, excursion_share, part: None });
    assert!(document(&run)["steady_part"]["from_s"].is_null());
}

#[test]
fn what_the_jobs_did_over_time_is_beside_the_figures_of_fio() {
    let mut run = fixture::run();
    let before = document(&run);
    let window = |ios: u64| Window { length_ns: 500_000_000, ios: [ios, 0, 0], bytes: [ios * 4096, 0, 0] };
    run.windows = vec![window(10), window(0), window(20)];
    let mut after = document(&run);
    let windows = after.as_object_mut().unwrap().remove("windows").unwrap();
    assert_eq!(after, before);
    let (ios, bytes) = ([20, 0, 40], [81_920, 0, 163_840]);
    let expected = serde_json::json!({ "window_s": 0.5, "read_ios_per_s": ios, "read_bytes_per_s": bytes });
    assert_eq!(windows, expected);
}

#[test]
fn terse_appends_disks_errors_and_description() {
    let mut run = fixture::run();
    run.jobs.truncate(1);
    let plain = 121;
    let text = one(&run, Format::Terse);
    let fields: Vec<&str> = text.trim_end().split(';').collect();
    assert_eq!(fields.len(), plain + 4 * 9 + 2 + 1);
    assert_eq!((fields[plain], fields[plain + 9]), ("dm-0", "sda"));
    assert_eq!(fields[plain + 36..], ["1", "28", "a \"busy\" job"]);
    let second = render(&run, &[Format::Terse], TerseVersion::V2);
    assert_eq!(second.lines().nth(1), Some(";a \"busy\" job"));
}

#[test]
fn mixed_directions_are_one_section_and_both_add_one() {
    let fields = |unified| {
        let mut run = fixture::run_unified(unified);
        run.disks.clear();
        run.jobs[0].continue_on_error = false;
        run.jobs[0].description = None;
        one(&run, Format::Terse).split(';').count()
    };
    assert_eq!((fields(Unified::Mixed), fields(Unified::Both)), (121 - 41, 121 + 41));
    let keys = |unified| -> Vec<String> {
        let json = document(&fixture::run_unified(unified));
        let known = ["read", "write", "trim", "sync", "mixed"];
        json["jobs"][0]
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| known.contains(&key.as_str()))
            .cloned()
            .collect()
    };
    assert_eq!(keys(Unified::Mixed), ["mixed"]);
    assert_eq!(keys(Unified::Both), ["read", "write", "trim", "sync", "mixed"]);
    assert_eq!(keys(Unified::Separate), ["read", "write", "trim", "sync"]);
}

#[test]
fn json_starts_in_column_0_and_documents_follow_each_other() {
    let text = one(&idle(), Format::Json);
    assert!(text.starts_with("{\n  \"fio version\" : "));
    assert!((text.clone() + &text).contains("\n}\n{\n"));
}

#[test]
fn formats_on_one_stream_keep_their_order() {
    let run = fixture::run();
    let text = render(&run, &[Format::Normal, Format::Json, Format::Terse], TerseVersion::V3);
    let apart = [Format::Terse, Format::Json, Format::Normal].map(|format| one(&run, format));
    assert_eq!(text, apart.concat());
    assert!(text.contains("\n}\n\nmix: (groupid=0, jobs=1): err= 0: pid=4242: "));
}

/// As in fio: without options of its own, no object for them; without I/O of its own, no depth.
#[test]
fn a_job_without_options_has_no_object_for_them() {
    let mut run = fixture::run();
    let has = |run: &RunReport, key: &str| document(run)["jobs"][0].get(key).is_some();
    assert!(has(&run, "job options") && has(&run, "latency_window_us"));
    run.jobs[0].options.clear();
    run.jobs[0].unstarted = true;
    assert!(!has(&run, "job options"));
    for key in ["depth", "target", "target_ns", "percentile", "window", "window_us"] {
        assert!(!has(&run, &format!("latency_{key}")), "{key}");
    }
}

#[test]
fn a_group_echoes_the_options_of_its_last_section_with_any() {
    let mut run = fixture::run();
    let (first, other) = (run.jobs[0].clone(), run.jobs[1].clone());
    run.jobs[0].merge(&other);
    assert_eq!(run.jobs[0].options, other.options);
    let silent = JobReport { options: Vec::new(), ..first };
    run.jobs[0].merge(&silent);
    assert_eq!(run.jobs[0].options, other.options);
}

#[test]
fn types_stay_when_nothing_was_measured() {
    for run in [idle(), fixture::run()] {
        let json = document(&run);
        for direction in ["read", "write", "trim"] {
            let figures = &json["jobs"][0][direction];
            for key in ["iops", "iops_mean", "bw_mean", "bw_agg", "bw_dev", "iops_stddev"] {
                assert!(figures[key].is_f64(), "{direction}.{key}");
            }
            for key in
                ["bw", "bw_bytes", "io_bytes", "io_kbytes", "total_ios", "runtime", "bw_min", "iops_max"]
            {
                assert!(figures[key].is_u64(), "{direction}.{key}");
            }
            assert!(figures["clat_ns"]["mean"].is_f64() && figures["clat_ns"]["N"].is_u64());
        }
        assert!(json["jobs"][0]["latency_depth"].is_u64());
    }
    assert!(one(&idle(), Format::Json).contains("\"iops\" : 0.000000"));
}

#[test]
fn words_that_scrapers_search_for_are_present() {
    let text = one(&fixture::run(), Format::Normal);
    for words in [
        "   READ: bw=",
        "  WRITE: bw=",
        "   TRIM: bw=",
        "IOPS=4000,",
        "\n     issued rwts: total=1000,500,0,50 ",
    ] {
        assert!(text.contains(words), "{words}");
    }
    assert!(
        text.contains("err= 5 (operation trim, file /dev/sdz, offset 4096: Input/output error): pid=4243")
    );
    assert!(text.contains("     errors    : total=1, first_error=28/<No space left on device>\n"));
}

#[test]
fn group_reporting_merges_a_job_into_the_one_before_it() {
    let job = |name: &str, group_id, group_reporting| {
        let mut job = fixture::busy_job();
        (job.name, job.group_id, job.show.group_reporting) = (name.to_owned(), group_id, group_reporting);
        job
    };
    let shown = |jobs: Vec<JobReport>| -> Vec<(String, u32)> {
        merge_groups(jobs).into_iter().map(|job| (job.name, job.member_count)).collect()
    };
    let names =
        |expected: &[(&str, u32)]| expected.iter().map(|(n, c)| (n.to_string(), *c)).collect::<Vec<_>>();
    assert_eq!(
        shown(vec![job("a", 0, true), job("b", 0, true), job("c", 1, true)]),
        names(&[("a", 2), ("c", 1)])
    );
    assert_eq!(
        shown(vec![job("a", 0, true), job("b", 0, false), job("c", 0, true)]),
        names(&[("a", 1), ("b", 2)])
    );
    assert_eq!(shown(vec![job("a", 0, false), job("b", 0, true)]), names(&[("a", 2)]));
}

#[test]
fn a_group_over_several_sections_has_the_percentiles_of_the_last() {
    let job = |percentile: f64, clat_percentiles: bool| {
        let mut job = fixture::busy_job();
        (job.show.group_reporting, job.show.clat_percentiles) = (true, clat_percentiles);
        job.show.percentile_list = vec![percentile];
        job
    };
    let shown = merge_groups(vec![job(50.0, false), job(75.0, false), job(90.0, true)]);
    assert_eq!(shown[0].show.percentile_list, [90.0]);
    assert!(shown[0].show.clat_percentiles);
    assert!(!merge_groups(vec![job(50.0, true), job(90.0, false)])[0].show.clat_percentiles);
}

#[test]
fn a_group_sums_its_concurrent_jobs() {
    let mut job = fixture::busy_job();
    job.show.group_reporting = true;
    let jobs = merge_groups(vec![job.clone(), job]);
    let stats = &jobs[0].stats;
    assert_eq!(
        (stats.directions[0].ios, stats.directions[0].runtime_ms, stats.usage.elapsed_ms),
        (2000, 250, 500)
    );
    assert_eq!(stats.directions[0].iops.figures().mean, 2000.0);
}

#[test]
fn the_first_error_of_a_group_is_its_error() {
    let with = |error| JobReport {
        error,
        error_text: format!("error {error}"),
        show: fiord_report::Show { group_reporting: true, ..Default::default() },
        ..JobReport::default()
    };
    let jobs = merge_groups(vec![with(0), with(28), with(5)]);
    assert_eq!((jobs.len(), jobs[0].error, jobs[0].error_text.as_str()), (1, 28, "error 28"));
}

proptest! {
    #[test]
    fn percentiles_never_exceed_the_maximum_in_any_format(values in prop::collection::vec(0_u64..1 << 40, 1..40)) {
        let mut stats = DirectionStats {
            ios: values.len() as u64,
            bytes: 4096,
            runtime_ms: 1,
            completion: fiord_stats::Latency::with_histogram(),
            ..DirectionStats::default()
        };
        values.iter().for_each(|value| { stats.completion.record(*value); });
        let mut run = idle();
        run.jobs[0].stats.directions[0] = stats;
        let json = document(&run);
        let clat = &json["jobs"][0]["read"]["clat_ns"];
        let max = clat["max"].as_u64().unwrap();
        for (_, value) in clat["percentile"].as_object().unwrap() {
            prop_assert!(value.as_u64().unwrap() <= max);
        }
        let counted: u64 = clat["bins"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        prop_assert_eq!(counted, values.len() as u64);
    }
}

/// The paths of a document's values, lists as `[]`.
fn paths(at: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| paths(&format!("{at}.{key}"), value, found));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| paths(&format!("{at}[]"), item, found));
        }
        _ => {
            found.insert(at.to_string());
        }
    }
}

/// `docs/json.md` has one line for each key of a device, and no others; `end` has the keys of `start`.
#[test]
fn devices_are_documented_key_by_key() {
    let run = RunReport { devices: fixture::devices(), ..fixture::run() };
    let document = document(&run);
    let mut printed = BTreeSet::new();
    paths("devices", &document["devices"], &mut printed);
    let with = |part: &str| -> BTreeSet<String> {
        let within = printed.iter().filter_map(|path| path.strip_prefix(&format!("devices[].{part}.")));
        within.map(str::to_string).collect()
    };
    assert_eq!(with("start"), with("end"));
    assert_eq!(with("power_states.start"), with("power_states.end"));
    let page = include_str!("../../../docs/json.md");
    let (_, section) = page.split_once("\n## Runs\n").unwrap();
    let documented = section.lines().filter_map(|line| line.strip_prefix("| `devices[].")?.split('`').next());
    // Rows of objects and lists say when they are there; their keys have rows of their own.
    const WITH_KEYS: [&str; 4] = ["end", "power_states", "power_states.end", "samples"];
    let documented = documented.filter(|key| !WITH_KEYS.contains(key));
    let documented: BTreeSet<String> = documented.map(|key| format!("devices[].{key}")).collect();
    let is_end = |path: &str| {
        ["end.", "power_states.end."].iter().any(|end| path["devices[].".len()..].starts_with(end))
    };
    printed.retain(|path| !is_end(path));
    assert_eq!(documented, printed);
}

/// Only JSON contains devices, at its end: fio's own text, terse lines and keys are unchanged.
#[test]
fn devices_change_nothing_that_fio_prints() {
    let (without, with) = (fixture::run(), RunReport { devices: fixture::devices(), ..fixture::run() });
    for format in [Format::Normal, Format::Terse] {
        assert_eq!(one(&with, format), one(&without, format));
    }
    let text = one(&with, Format::Json);
    let fios = one(&without, Format::Json).strip_suffix("\n}\n").unwrap().to_string();
    assert!(text.strip_prefix(&fios).unwrap().starts_with(",\n  \"devices\" : [\n"));
    let device = &document(&with)["devices"][0];
    assert_eq!((&device["backing_file"], &device["below"]), (&"/a\\xff".into(), &serde_json::json!(["sda"])));
    assert_eq!((&device["start"]["busy_ms"], &device["end"]["busy_ms"]), (&109.into(), &309.into()));
}
