//! `fiord profile` on a file below the temporary directory: figures that belong together, forms of output, errors.
//!
//! Invariant: no test depends on how fast this machine is, or on what may be observed here.

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, assert_fits, is_empty, public};
use crate::common::{Dir, LoopDevice, Mount, direct_works_in, finish, fiord, signal, start, until};

/// The rows of one variant.
fn rows<'d>(document: &'d Value, table: &str, run: &str) -> Vec<&'d Value> {
    document[table].as_array().unwrap().iter().filter(|row| row["run"] == run).collect()
}

#[test]
fn buffered_and_direct_writes_are_shown_side_by_side() {
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    let line = "profile --rw=write --bs=4k --size=8m --time=4 --repeat=2 --json -- vary direct=0,1";
    let document = dir.run(line).json();
    assert_documented(&document, "profile");
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    for run in ["direct=0", "direct=1"] {
        let (all, parts): (Vec<&Value>, Vec<&Value>) =
            rows(&document, "rows", run).into_iter().partition(|row| row["part"] == "all");
        let sum = |key: &str| parts.iter().map(|row| row[key].as_f64().unwrap()).sum::<f64>();
        assert!((sum("share_percent") - 100.0).abs() < 0.1, "{parts:?}");
        assert!((sum("total_ms") - all[0]["total_ms"].as_f64().unwrap()).abs() < 0.1, "{parts:?}");
        let variant = rows(&document, "variants", run)[0];
        let ios = variant["ios"].as_f64().unwrap();
        let per_io_ns = all[0]["ns_per_io"].as_f64().unwrap();
        let total_ns = all[0]["total_ms"].as_f64().unwrap() * 1e6;
        assert!((per_io_ns * ios / total_ns - 1.0).abs() < 0.01, "{all:?} {variant}");
        // One job cannot use more than one processor.
        let of = |part: &str| {
            parts.iter().find(|row| row["part"] == part).map_or(0.0, |row| row["total_ms"].as_f64().unwrap())
        };
        assert!(of("fiord") + of("system_call") + of("file_system") <= total_ns / 1e6 + 0.1);
        // In which of the two it was running when the clock ticked is chance.
        assert!(of("fiord") + of("system_call") + of("file_system") > 0.0, "{parts:?}");
        let keys = [
            "user_percent",
            "system_percent",
            "io_wait_percent",
            "interrupt_percent",
            "steal_percent",
            "idle_percent",
        ];
        for second in rows(&document, "seconds", run) {
            let shares: f64 = keys.iter().map(|key| second[*key].as_f64().unwrap()).sum();
            assert!((shares - 100.0).abs() < 0.1 || shares == 0.0, "{second}");
            assert!(second["length_s"].as_f64().unwrap() > 0.0 && processors >= 1.0);
        }
        // The windows have the I/Os of the run that is shown.
        let seconds = rows(&document, "seconds", run);
        let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
        let ios: f64 = seconds.iter().map(|row| number(row, "iops") * number(row, "length_s")).sum();
        assert!(ios > 0.0 && ios <= variant["ios"].as_f64().unwrap() * 1.01, "{ios} of {variant}");
    }
    let (buffered, direct) =
        (rows(&document, "variants", "direct=0")[0], rows(&document, "variants", "direct=1")[0]);
    assert!(buffered["mib_per_s"].as_f64() > direct["mib_per_s"].as_f64(), "{buffered} {direct}");
    assert!(document["conclusion"].as_str().unwrap().contains("direct=1: a thread spends "), "{document}");
    assert!(is_empty(dir.path()), "the scratch file is removed");
}

#[test]
fn a_job_file_is_profiled_in_text_that_fits_a_terminal() {
    let dir = Dir::new();
    dir.write("job.fio", "[read]\nrw=randread\nbs=4k\nsize=8m\nruntime=1\ntime_based\nfilename=f\n[null]\nioengine=null\nsize=1g\nrate_iops=1000\nruntime=1\ntime_based\n");
    let ran = dir.run("profile job.fio");
    assert_fits(&ran);
    ran.assert_prints(&[
        "fiord profile: where the time of a job goes",
        "Processors and I/O over time:",
        "Where the time of the jobs' threads goes, for each I/O:",
        "WHERE",
        "waiting: other",
        "a thread spends ",
    ]);
    let ran = dir.run("profile --size=8M --rw=randread --time=1 --repeat=1 --over bs=4k,8k,16k --markdown");
    ran.assert_success();
    assert!(ran.stdout.starts_with("| WHERE | A % | B % | C % | FROM |\n"), "{}", ran.stdout);
    let ran = dir.run("profile --size=8M --dry-run -- vary bs=4k,8k iodepth=1,2");
    ran.assert_success();
    assert_eq!(ran.stdout.matches("# run ").count(), 5, "a fill and four variants: {}", ran.stdout);
    assert_fits(&dir.run("profile --help"));
}

#[test]
fn errors_are_reported_before_anything_runs() {
    let dir = Dir::new();
    for (line, parts) in [
        ("profile -- vary", vec!["-- vary direct=0,1"]),
        ("profile --rw=read -- direct=0,1", vec!["-- vary direct=0,1"]),
        ("profile -- vary dircet=0,1", vec!["vary dircet=0,1", "did you mean \"direct\"?"]),
        ("profile -- vary bs=4k,x", vec!["vary bs=4k,x", "\"x\" is not a number"]),
        ("profile -- vary bs", vec!["vary bs: give an option and its values: vary bs=4k,64k"]),
        ("profile --over bs=4k -- vary direct=0,1", vec!["write all keys after -- vary"]),
        ("profile -- vary iodepth=1..64", vec!["7 variants; at most 6"]),
        ("profile --minimal", vec!["--minimal applies to a run, not to a profile"]),
    ] {
        let ran = dir.run(line);
        ran.assert_status(1).assert_prints(&parts);
        assert!(!ran.stdout.contains("IOPS"), "{line}: {ran:?}");
    }
    assert!(is_empty(dir.path()));
}

/// What could not be observed, in one text.
fn lacking(document: &Value) -> String {
    document["lacking"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sentence| format!("{}\n", sentence.as_str().unwrap()))
        .collect()
}

#[test]
fn requests_on_a_device_of_its_own_are_the_ios_of_the_job() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 16 << 20));
    let line = format!(
        "profile --rw=randread --bs=4k --filename={} --direct=1 --number_ios=500 --norandommap --repeat=1 --json",
        device.path
    );
    let document = dir.run(&line).json();
    assert_eq!(document["variants"][0]["ios"], 500, "{document}");
    let lacking = lacking(&document);
    if lacking.contains("tracepoints") {
        fiord_testing::skip!("{lacking}");
    }
    let requests = &document["requests"][0];
    assert_eq!(requests["requests"], 500, "{document}");
    assert!(requests["device_mean_ns"].as_u64() > Some(0), "{requests}");
    // The latency of an I/O includes the times of its request.
    let of_requests =
        requests["queue_mean_ns"].as_u64().unwrap() + requests["device_mean_ns"].as_u64().unwrap();
    assert!(of_requests <= document["variants"][0]["mean_ns"].as_u64().unwrap() + 1000, "{document}");
    let source =
        |part: &str| rows(&document, "rows", "the job").into_iter().find(|row| row["part"] == part).cloned();
    assert_eq!(source("device").unwrap()["source"], "tracepoints");
    assert!(source("queue").is_some());
}

/// Nothing is left in the kernel after a Ctrl-C: all mounts of tracefs show the same instances.
#[test]
fn an_interrupt_removes_the_instance_of_the_tracepoints() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 16 << 20));
    let tracefs = need!(Mount::new(&dir, "tracefs", &["-t", "tracefs", "tracefs"]));
    if !tracefs.path.join("events/block/block_rq_issue").is_dir() {
        fiord_testing::skip!("the kernel has no tracepoints of the block layer");
    }
    let line = format!(
        "profile --rw=randread --bs=4k --filename={} --direct=1 --time_based --runtime=60 --repeat=1",
        device.path
    );
    let running = start(fiord(dir.path(), &line));
    let instance = tracefs.path.join(format!("instances/fiord-{}", running.0.id()));
    let is_recording =
        || std::fs::read_to_string(instance.join("tracing_on")).is_ok_and(|on| on.trim() == "1");
    until("the requests are traced", is_recording);
    signal(running.0.id(), "INT");
    finish(running).assert_status(130);
    assert!(!instance.exists(), "{}", instance.display());
}

#[test]
fn what_may_not_be_observed_is_named_with_what_to_do() {
    let dir = Dir::new();
    let mut without_perf = fiord(dir.path(), "profile --rw=randread --size=8M --time=1 --repeat=1 --json");
    without_perf.env("PATH", "");
    let document = finish(start(without_perf)).assert_success().json();
    assert!(
        lacking(&document).contains("perf is not installed; install it (Debian: apt install linux-perf"),
        "{document}"
    );
    assert_eq!(document["stacks"].as_array().unwrap().len(), 0);
    assert_eq!(rows(&document, "rows", "the job").last().unwrap()["part"], "all");

    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, "profile --rw=randread --size=8M --time=1 --repeat=1 --json");
    let document = ran.assert_success().json();
    assert!(lacking(&document).contains("run as root, or give this user /sys/kernel/tracing"), "{document}");
    assert!(rows(&document, "rows", "the job").iter().all(|row| row["source"] != "tracepoints"));
}

#[test]
fn the_page_has_the_figures_of_the_table_and_refers_to_nothing() {
    let dir = Dir::new();
    let line =
        "profile --rw=randread --bs=4k --size=8M --time=4 --repeat=1 --json -o page.html -- vary iodepth=1,2";
    let ran = dir.run(line);
    ran.assert_success();
    let (document, page) = (ran.json(), dir.text("page.html"));
    assert!(page.trim_end().ends_with("</html>") && page.len() < 1 << 20, "{} bytes", page.len());
    assert!(page.contains("<h1>Where the time goes with iodepth=1,2</h1>"), "{page}");
    for variant in document["variants"].as_array().unwrap() {
        let iops = variant["iops"].as_f64().unwrap().round();
        assert!(page.contains(&format!("<data value=\"{iops}\">{iops}</data>")), "{iops} is not in the page");
    }
    let sampled = !document["stacks"].as_array().unwrap().is_empty();
    assert_eq!(page.contains("Flame graph: iodepth=1"), sampled);
    for outside in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    dir.run("profile -o nowhere/page.html")
        .assert_status(1)
        .assert_prints(&["--output nowhere/page.html: not a file"]);
}
