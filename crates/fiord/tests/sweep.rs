//! `fiord sweep` in a directory on a disk, in memory, and on a device; as root and as an ordinary user; and a limit
//! that it must find.
//!
//! Invariant: however a sweep ends, only the files of the job are written, and the sweep's own files are gone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fiord_testing::need;
use serde_json::Value;

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, assert_fits, fio_takes, masked, public};
use crate::common::{
    Dir, LoopDevice, Mount, Ran, finish, fiord, in_one_line, moved_bytes, run, signal, start, until,
    until_moved,
};

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

fn column<'a>(document: &'a Value, key: &str) -> Vec<&'a Value> {
    document["rows"].as_array().unwrap().iter().map(|row| &row[key]).collect()
}

#[test]
fn the_table_the_chart_and_a_sentence_fit_a_terminal() {
    let dir = Dir::new();
    let ran = dir.run("sweep -rw randread --size=8M --over bs=4k..16k --time 600ms --plot plot.svg");
    assert_fits(&ran);
    let text = masked(&ran.stdout);
    let title = "fiord sweep: # runs over bs=4k,8k,16k, about # s after its file is filled";
    assert!(text.starts_with(title), "{text}");
    let table = text.split("\n\n").nth(1).unwrap();
    // The position of the knee depends on the disk, and in memory there is no utilisation.
    let table = table.replace(" <- knee", "").replace(" -", " #");
    let expected = [
        "RW BlockSize IOPS BW(MiB/s) AvgLat(ms) p99(ms) Util(%)",
        "randread 4k # # # # #",
        "randread 8k # # # # #",
        "randread 16k # # # # #",
    ];
    assert_eq!(table.lines().collect::<Vec<_>>(), expected);
    ran.assert_prints(&[
        "Added ",
        "Throughput, MiB/s",
        "against BlockSize (bytes)",
        "The knee is the smallest",
    ]);
    assert!(dir.text("plot.svg").starts_with("<svg ") && dir.text("plot.svg").ends_with("</svg>\n"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the plot stays");
}

#[test]
fn a_plot_is_written_or_it_is_said_why_not() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let sweep = |over: &str| {
        let line = format!(
            "sweep --trust=on --rw=read --size=8M --over {over} --time=600ms --repeat=1 --plot=plot.svg"
        );
        in_one_line(&run(&mount.path, &line).all_output())
    };
    // In memory, all figures are void.
    let said = sweep("bs=4k,8k");
    assert!(said.contains("CANNOT TELL") && said.contains("The plot shows what was measured"), "{said}");
    let svg = fs::read_to_string(mount.path.join("plot.svg")).unwrap();
    assert!(svg.contains("<polyline") && svg.ends_with("</svg>\n"), "{svg}");
    fs::remove_file(mount.path.join("plot.svg")).unwrap();
    let said = sweep("ioengine=psync,libaio");
    assert!(said.contains("No plot is written"), "{said}");
    assert!(!mount.path.join("plot.svg").exists());
}

#[test]
fn values_of_text_may_be_any_bytes() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    let mut command = fiord(&dir.join("in"), "sweep --rw=write --size=64k --time 300ms --csv --over");
    command.arg(OsStr::from_bytes(b"filename=a\xff,../b,c"));
    let ran = finish(start(command));
    ran.assert_success();
    for path in [OsStr::from_bytes(b"in/a\xff"), OsStr::new("b"), OsStr::new("in/c")] {
        assert_eq!(fs::metadata(dir.path().join(path)).unwrap().len(), 64 << 10, "{path:?}");
    }
    let named: Vec<&str> = ran.stdout.lines().filter(|line| line.contains(r"a\xff")).collect();
    assert_eq!(named.len(), 1, "{}", ran.stdout);
}

#[test]
fn json_has_the_documented_keys_and_every_combination() {
    let dir = Dir::new();
    let ran = dir.run("sweep --json --size=8M --over rw=read,randrw --over bs=4k,64k --time 800ms");
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, "sweep");
    assert_eq!(column(&document, "rw"), ["read", "read", "randrw", "randrw", "randrw", "randrw"]);
    assert_eq!(column(&document, "direction"), ["read", "read", "read", "write", "read", "write"]);
    assert_eq!(column(&document, "bs"), [4096, 65536, 4096, 4096, 65536, 65536]);
    assert_eq!(document["knees"][0]["peak"].as_u64().map(|peak| peak % 4096), Some(0));
    // What the jobs did, not what the directory would allow.
    assert_eq!(
        (&document["target"]["engine"], &document["jobs"][0]["engine"]),
        (&"psync".into(), &"psync".into())
    );
    assert_eq!(document["jobs"][3]["run"], "rw=randrw bs=64k");
    assert_eq!(document["knees"][1]["curve"], "rw=randrw");
    assert!(is_empty(dir.path()));
}

#[test]
fn settings_of_the_job_are_not_overridden() {
    let dir = Dir::new();
    let line = "sweep --dry-run --filename=f --size 4M -direct=0 -runtime=7 -rw=write --over numjobs=1,3";
    let ran = dir.run(line);
    ran.assert_success();
    for line in ["filename=f", "size=4M", "direct=0", "runtime=7", "time_based=1", "rw=write", "numjobs=3"] {
        assert!(ran.stdout.lines().any(|printed| printed == line), "{line}: {}", ran.stdout);
    }
    assert_eq!(ran.stdout.matches("filename=").count(), 2);
    assert!(is_empty(dir.path()));
    assert_fits(&dir.run("sweep --help"));
    need!(fio_takes(&dir, &ran.stdout));
}

#[test]
fn a_job_file_can_be_swept() {
    let dir = Dir::new();
    dir.write(
        "job.fio",
        "[global]\nsize=4m\nruntime=200ms\n[a]\nrw=read\nbs=64k\n[b]\nrw=write\nfilename=${F}\n",
    );
    let mut command = fiord(dir.path(), "sweep --csv job.fio --over bs=4k,8k --filename=mine");
    command.env("F", "other");
    let ran = finish(start(command));
    ran.assert_success();
    let rows: Vec<String> =
        ran.stdout.lines().skip(1).map(|row| row.split(',').take(4).collect::<Vec<_>>().join(" ")).collect();
    let expected = ["a read 4096 read", "b write 4096 write", "a read 8192 read", "b write 8192 write"];
    assert_eq!(rows, expected);
    let mut command = fiord(dir.path(), "sweep job.fio --over bs=4k,8k");
    command.env("F", "other");
    let text = finish(start(command)).assert_success().stdout.clone();
    let words = in_one_line(&text);
    assert!(
        words.contains("Target filename=other Job size=4m runtime=200ms [a] rw=read [b] rw=write filename="),
        "{text}"
    );
    assert!(words.contains(" JOB RW BlockSize IOPS "), "{text}");
    assert!(dir.join("mine").exists() && dir.join("other").exists(), "files that the job names stay");
}

#[test]
fn runs_have_the_options_of_global_sections() {
    let dir = Dir::new();
    dir.write("job.fio", "[global]\nioengine=null\nrw=randread\nsize=8m\n[a]\ndirect=1\n");
    let document = dir.run("sweep job.fio --over iodepth=1,2 --repeat=1 --json").assert_success().json();
    let workloads: Vec<String> = (document["runs"].as_array().unwrap().iter())
        .map(|run| ["ioengine", "rw", "iodepth", "direct"].map(|key| run[key].as_str().unwrap()).join(" "))
        .collect();
    assert_eq!(workloads, ["null randread 1 1", "null randread 2 1"]);
}

#[test]
fn files_that_appear_between_two_runs_are_not_written() {
    let dir = Dir::new();
    // Directories that the first run creates exist for the second.
    let line = "sweep --filename=sub/f --size=64k --rw=write --loops=1 --over bs=4k,8k";
    dir.run(line).assert_success();
    fs::create_dir(dir.join("open")).unwrap();
    dir.write("open/f", [0; 65536]);
    let line =
        "sweep --opendir=open --rw=write --loops=1 --over bs=4k,8k --exec_postrun=cp${IFS}keep${IFS}open/new";
    dir.write("keep", [b'p'; 65536]);
    dir.run(line)
        .assert_status(2)
        .assert_prints(&["after 1 of 2 runs", "files that appeared after the runs were checked"]);
    assert_eq!(dir.read("open/new"), [b'p'; 65536]);
}

#[test]
fn errors_are_reported_before_anything_runs() {
    let dir = Dir::new();
    dir.write("empty.fio", "[global]\nbs=4k\n");
    for (line, parts) in [
        ("sweep --over numjob=1,2", vec!["\"numjob\"", "did you mean \"numjobs\"?"]),
        ("sweep --over bs=4k,x", vec!["--over bs=4k,x", "\"x\" is not a number"]),
        ("sweep --over rw=read,raed", vec!["raed", "allowed: read, write"]),
        ("sweep --over bs=64k..4k", vec!["is descending", "write 4k..64k"]),
        ("sweep --over rw=read..write", vec!["separate words with commas"]),
        ("sweep --over bs", vec!["--over bs=4k,64k"]),
        ("sweep --over bs=4k --over blocksize=8k", vec!["bs is already varied"]),
        ("sweep --over name=a,b", vec!["name cannot be varied"]),
        ("sweep --over iodepth=1-32", vec!["\"1-32\" is not a single value; write a range as 1..32"]),
        ("sweep --over bs=4k-64k", vec!["write a range as 4k..64k"]),
        ("sweep --over runtime=1,2-5", vec!["write a range as 2..5"]),
        ("sweep --over numjobs=1:4", vec!["\"1:4\"", "one at a time"]),
        ("sweep --over bs=4KiB,64KiB", vec!["4KiB is read as 4000", "write the value in full"]),
        ("sweep --over rwmixread=50x,60", vec!["\"x\" is ignored"]),
        ("sweep --over thinktime=1..5x", vec!["knows no unit \"x\""]),
        ("sweep --over sqthread_poll=0,1", vec!["io_uring", "--ioengine=io_uring"]),
        ("sweep --over numjobs=1,0", vec!["run 3", "numjobs"]),
        ("sweep --rw=raed --over bs=4k", vec!["did you mean \"read\"?"]),
        ("sweep --minimal --over bs=4k", vec!["--minimal applies to a run"]),
        ("sweep empty.fio --over bs=4k", vec!["no section"]),
        ("sweep --over bs=4k --plot nowhere/x.svg", vec!["--plot nowhere/x.svg"]),
        ("sweep --rw=read", vec!["--over <KEY=LIST>"]),
    ] {
        let ran = dir.run(line);
        ran.assert_status(1).assert_prints(&parts);
        assert!(!ran.stdout.contains("IOPS"), "{line}: {ran:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_device_in_use_is_refused_before_the_first_run() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    mount.write("precious", b"data");
    // Only the first point could run.
    let line = format!(
        "sweep --repeat=1 --rw=write --bs=4k --size=4M --over filename={},{}",
        dir.join("f").display(),
        device.path
    );
    let ran = dir.run(&line);
    ran.assert_status(2).assert_prints(&[&device.path, "after 0 of 2 runs"]);
    assert!(!dir.join("f").exists());
    assert_eq!(fs::read(mount.path.join("precious")).unwrap(), b"data");
}

#[test]
fn in_memory_and_on_a_device() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    run(&mount.path, "sweep --size=8M --over iodepth=1..4 --time 300ms").assert_success();
    assert!(is_empty(&mount.path));
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let ran =
        dir.run(&format!("sweep --filename={} --rw=randread --over numjobs=1..4 --time 300ms", device.path));
    assert_fits(&ran);
    ran.assert_prints(&["Threads", "Target  filename=", "Note    without direct=1 "]);
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, "sweep --json --size=8M --over bs=4k,64k --time 400ms");
    ran.assert_success();
    assert_eq!(column(&ran.json(), "bs"), [4096, 65536]);
}

/// Warnings about options and from jobs are in the text, in JSON and in the history.
#[test]
fn warnings_are_in_the_report_once() {
    let dir = Dir::new();
    dir.write("f", vec![1; 1 << 20]);
    let line = "sweep --filename=f --rw=read --iodepth=32 --numjobs=1x --exec_prerun=false --over bs=4k,8k --time 200ms --trust=on";
    let command = |line: &str| {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", dir.join("state"));
        finish(start(command))
    };
    // What is read again and again from the page cache is void, where the kernel counts it.
    let ended = |ran: Ran| {
        assert!([Some(0), Some(6)].contains(&ran.status) && ran.stderr.is_empty(), "{ran:?}");
        ran
    };
    let text = ended(command(line));
    let warnings = text.stdout.split_once("\nFindings:\n").expect("findings").1.to_string();
    let words = in_one_line(&warnings);
    for part in ["numjobs: ", "is ignored", "exec_prerun", "sync-engine-depth"] {
        assert!(words.contains(part), "{part}: {text:?}");
    }
    assert_eq!(
        warnings.matches("exec_prerun").count(),
        warnings.matches(": exec_prerun: ").count(),
        "{text:?}"
    );
    assert_eq!(warnings.matches(": exec_prerun: ").count(), 1, "{text:?}");
    assert_fits(&text);
    let shown = command("show last");
    assert!(shown.assert_success().stdout.contains(&warnings), "{shown:?}");
    let part = command("show 2");
    part.assert_success().assert_prints(&["Findings:", "exec_prerun"]);
    ended(command(&format!("{line} --markdown"))).assert_prints(&["\n- caution: job ", ": exec_prerun: "]);
    let document = ended(command(&format!("{line} --json"))).json();
    let findings = document["findings"].as_array().unwrap();
    let codes: Vec<&str> = findings.iter().filter_map(|one| one["option"].as_str()).collect();
    for code in ["numjobs", "exec_prerun", "iodepth"] {
        assert_eq!(codes.iter().filter(|known| **known == code).count(), 1, "{code}: {codes:?}");
    }
}

/// A study's runs use the same driver as fio's: both report the warnings of workers, in text and in JSON.
#[test]
fn a_remark_of_a_worker_is_reported_as_in_a_run() {
    let dir = Dir::new();
    dir.write("f", vec![1; 1 << 20]);
    let job = "--name=a --ioengine=null --filename=f --rw=read --size=1m --loops=1 --ramp_time=1h";
    let remark = |line: &str, status: i32| -> String {
        let document = dir.run(line).assert_status(status).json();
        let all = document["findings"].as_array().unwrap();
        let of_ramp: Vec<&Value> = all.iter().filter(|one| one["option"] == "ramp_time").collect();
        assert_eq!(of_ramp.len(), 1, "{document}");
        let keys = ["code", "severity", "subject"].map(|key| of_ramp[0][key].as_str().unwrap());
        assert_eq!(keys, ["ended-in-ramp", "void", "job a"], "{document}");
        of_ramp[0]["sentence"].as_str().unwrap().to_string()
    };
    let of_run = remark(&format!("--no-history --bs=4k {job} --output-format=json"), 0);
    assert!(of_run.starts_with("the job ended before its ramp did"), "{of_run}");
    let sweep = format!("sweep --no-history --trust=on {job} --over bs=4k,8k");
    assert_eq!(remark(&format!("{sweep} --json"), 6), format!("{of_run} (bs=4k, and 1 more run)"));
    let text = dir.run(&sweep);
    text.assert_status(6).assert_prints(&["CANNOT TELL, because the job ended before its ramp did"]);
    let words = in_one_line(&text.stdout);
    assert_eq!(words.matches(&format!("job a: ended-in-ramp: {of_run}")).count(), 1, "{text:?}");
}

/// Errors that a job ignores fail neither a run nor a sweep, and both print those that `error_dump` requests.
#[test]
fn ignored_errors_do_not_end_a_sweep() {
    let dir = Dir::new();
    let job = "--no-history --name=a --filename=/dev/full --rw=write --size=32k --loops=1 --ignore_error=,ENOSPC \
               --error_dump=1";
    let line = "fiord: job a: write /dev/full at offset 0, 16384 bytes: ";
    let run = dir.run(&format!("{job} --bs=16k"));
    run.assert_status(0);
    assert_eq!(run.stderr.matches(line).count(), 1, "{run:?}");
    let sweep = dir.run(&format!("sweep {job} --over bs=16k,32k --csv"));
    sweep.assert_status(0);
    assert_eq!(sweep.stderr.matches(line).count(), 1, "{sweep:?}");
    assert_eq!(sweep.stderr.lines().count(), 3, "two of the first run, one of the second: {sweep:?}");
}

/// The logs that a job requests are written by a sweep as well; those of its last run remain.
#[test]
fn a_sweep_writes_the_logs_of_its_job() {
    let dir = Dir::new();
    dir.write("f", vec![1; 1 << 20]);
    let job = "--name=a --ioengine=null --filename=f --rw=read --size=1m --loops=1 --write_lat_log=log";
    dir.run(&format!("sweep --no-history {job} --over bs=512k,256k --csv")).assert_success();
    let sizes: Vec<String> =
        dir.text("log_clat.1.log").lines().map(|line| line.split(", ").nth(3).unwrap().to_string()).collect();
    assert_eq!(sizes, ["262144"; 4]);
}

#[test]
fn an_interrupted_sweep_prints_the_rows_it_has() {
    let dir = Dir::new();
    let line = "sweep --filename=f --size=4M --rw=write --over runtime=100ms,10m --over bs=4k --csv";
    // Each run begins with a line in this file; the second one would take ten minutes.
    let running = start(fiord(dir.path(), &format!("{line} --exec_prerun=echo>>runs")));
    until("the second run has begun", || fs::read(dir.join("runs")).is_ok_and(|text| text.len() == 2));
    until_moved(&running, moved_bytes(&running) + (1 << 20));
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130).assert_prints(&["after 1 of 2 runs: ended by SIGINT"]);
    // The titles, the first run, and what was measured of the second.
    assert_eq!(ran.stdout.lines().count(), 3, "{ran:?}");
}

#[test]
fn the_knee_is_where_the_device_is_limited() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 64 << 20));
    // Each job reads 1 MiB per second, and the device allows 6 in total: eight jobs are the first to reach the limit.
    let group = need!(ControlGroup::for_io("sweep"));
    need!(group.limit_reads(&need!(device.number()), ReadLimit::BytesPerSecond(6 << 20)));
    let line = format!(
        "sweep --trust=off --json --filename={} --rw=randread --bs=64k --direct=1 --rate=1m --runtime=2 --ramp_time=500ms \
         --over numjobs=2..16",
        device.path
    );
    // The noise of a busy machine may leave open how far the knee reaches, but not where it begins; one sweep of three tells.
    let is_told = (0..3).any(|_| {
        let ran = finish(start(group.inside(&fiord(dir.path(), &line))));
        ran.assert_success();
        let document = ran.json();
        let knee = &document["knees"][0];
        assert!(knee["knee"] == 8 || knee["knee_from"] == 8, "{document:#}");
        knee["knee"] == 8
    });
    assert!(is_told, "noise hides in three sweeps how far the knee reaches");
}
