//! Runs are recorded, listed, shown again and deleted; and no run is affected by that.
//!
//! Invariant: a history that cannot be used changes neither a run's report nor its exit status.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use fiord_store::{Conclusion, Draft, Headline, History, RunFacts, RunKind};
use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::{Dir, LoopDevice, Mount, Ran, assert_fits_terminal, finish, fiord, signal, start, until};

const JOB: &str = "--name=job --ioengine=null --rw=randrw --bs=4k --size=1m";

/// A job that fails after planning.
const FAILS: &str = "--name=fails --filename=/dev/full --rw=write --bs=4k --size=64k";

/// A working directory with its own history.
struct Home {
    dir: Dir,
}

impl Home {
    fn new() -> Home {
        Home { dir: Dir::new() }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = fiord(self.dir.path(), line);
        command.env("XDG_STATE_HOME", self.state());
        command
    }

    fn run(&self, line: &str) -> Ran {
        finish(start(self.command(line)))
    }

    fn state(&self) -> std::path::PathBuf {
        self.dir.join("state")
    }

    fn runs(&self) -> Vec<Value> {
        let document = self.run("history --json").assert_success().json();
        assert_documented(&document, "history");
        document["runs"].as_array().unwrap().clone()
    }
}

/// What a run printed, without the messages printed while it ran (that a job failed).
fn report_of(ran: &Ran) -> String {
    ran.stdout.split_inclusive('\n').filter(|line| !line.starts_with("fio: pid=")).collect()
}

#[test]
fn show_prints_what_the_run_printed() {
    let home = Home::new();
    home.dir.write("data", vec![7; 256 << 10]);
    let jobs = [
        JOB.to_string(),
        format!("{JOB} --numjobs=3 --group_reporting --lat_percentiles=1 --percentile_list=50:99.9"),
        format!("--description=words --kb_base=1000 {JOB} --unified_rw_reporting=both --unit_base=1"),
        format!(
            "{JOB} --unified_rw_reporting=mixed --disable_lat=1 --name=second --stonewall --ioengine=null --size=1m"
        ),
        "--bs=4k --name=sync --filename=data --rw=randwrite --fsync=4 --size=256k --slat_percentiles=1"
            .to_string(),
        "--name=queue --filename=data --rw=read --bs=4k --ioengine=libaio --iodepth=8 --size=256k"
            .to_string(),
        FAILS.to_string(),
        format!("--idle-prof=percpu {JOB} --iodepth=7"),
    ];
    for job in jobs {
        for formats in [
            "--output-format=normal",
            "--output-format=terse",
            "--output-format=json",
            "--output-format=normal,terse,json+ --terse-version=2",
            "--output-format=json,terse --terse-version=4",
            "--output-format=json+,terse --terse-version=5",
        ] {
            let ran = home.run(&format!("{formats} {job}"));
            assert_ne!(ran.stdout, "", "refused: {ran:?}");
            let again = home.run(&format!("show last {formats}"));
            assert_eq!(again.assert_success().stdout, report_of(&ran), "{formats} {job}");
        }
    }
    let json = home.run("show 1 --json");
    assert_eq!(json.assert_success().stdout, home.run("show 1 --output-format=json").stdout);
}

// divergence: the run itself
#[test]
fn every_run_is_listed() {
    let home = Home::new();
    assert_eq!(home.run("history").assert_success().stdout, "");
    assert_eq!(home.runs(), Vec::<Value>::new());
    assert!(!home.state().exists(), "a history is made by the first run");

    home.dir.write("f", vec![1; 64 << 10]);
    home.run(JOB).assert_success();
    home.run("--name=a --filename=f --rw=read --bs=4k --name=b --filename=f --rw=read").assert_success();
    home.run(FAILS).assert_status(1);

    let runs = home.runs();
    let values = |key: &str| runs.iter().map(|run| run[key].clone()).collect::<Vec<Value>>();
    assert_eq!(values("id"), [3, 2, 1]);
    assert_eq!(values("title"), ["fails", "a, b", "job"]);
    assert_eq!(values("exit_status"), [1, 0, 0]);
    assert_eq!(runs[1]["targets"], serde_json::json!([home.dir.join("f")]));
    assert_eq!(runs[2]["targets"], serde_json::json!([]));
    assert_eq!(runs[2]["command"], format!("fiord {JOB}"));
    let report = home.run("show 1 --json").json();
    let side = |key: &str| {
        report["jobs"][0]["read"][key].as_f64().unwrap() + report["jobs"][0]["write"][key].as_f64().unwrap()
    };
    let runtime_ms = report["jobs"][0]["read"]["runtime"].as_f64().unwrap();
    assert!((runs[2]["ios_per_s"].as_f64().unwrap() - side("total_ios") * 1000.0 / runtime_ms).abs() < 1.0);

    let text = home.run("history").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    for part in ["ID", "fails", "status 1", "a, b", "ok"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(home.run("history --markdown").stdout.lines().count(), 5);
    assert_eq!(home.run("history --csv").stdout.lines().count(), 4);
    assert_eq!(home.run("history --limit=1 --csv").stdout.lines().count(), 2);
    assert_eq!(home.run("history --target . --csv").stdout.lines().count(), 2);
    assert_eq!(home.run("history --target f --csv").stdout.lines().count(), 2);
}

#[test]
fn no_history_leaves_no_file() {
    let home = Home::new();
    home.run(&format!("--no-history {JOB}")).assert_success();
    let link = home.dir.join("fio");
    symlink(env!("CARGO_BIN_EXE_fiord"), &link).unwrap();
    let mut as_fio = Command::new(link);
    as_fio.args(JOB.split_whitespace()).current_dir(home.dir.path()).env("XDG_STATE_HOME", home.state());
    finish(start(as_fio)).assert_success();
    home.run(&format!("--parse-only {JOB}")).assert_success();
    home.run("--name=x --rw=wrong").assert_status(1);
    assert!(!home.state().exists());
}

#[test]
fn runs_are_deleted_by_number_by_age_and_all_at_once() {
    let home = Home::new();
    (0..5).for_each(|_| drop(home.run(JOB)));
    home.run("history rm 99 2").assert_status(1).assert_prints(&["there is no run 99"]);
    assert_eq!(home.runs().len(), 5, "all or none");
    let removed = home.run("history rm 2 last --json").assert_success().json();
    assert_documented(&removed, "history-rm");
    assert_eq!(removed["forgotten"], 2);
    assert_eq!(home.runs().iter().map(|run| run["id"].clone()).collect::<Vec<_>>(), [4, 3, 1]);
    assert_eq!(home.run("history rm --older-than=1d").assert_success().stdout, "0 runs deleted\n");
    assert_eq!(home.run("history rm --older-than=0s").assert_success().stdout, "3 runs deleted\n");
    home.run(JOB).assert_success();
    assert_eq!(home.runs()[0]["id"], 6, "a number is not given again");
    home.run("history rm").assert_status(1).assert_prints(&["ID"]);
    home.run("history rm --all").assert_success();
    for line in ["show 6", "show last", "history rm last"] {
        home.run(line).assert_status(1).assert_prints(&["there is no run", "`fiord history` lists"]);
    }
    home.run("show six").assert_status(1).assert_prints(&["\"six\" names no run"]);
}

#[test]
fn a_policy_keeps_the_newest_runs_from_then_on() {
    let home = Home::new();
    let keep = |line: &str| {
        let document = home.run(&format!("history --json {line}")).assert_success().json();
        assert_documented(&document, if line.contains("--dry-run") { "history" } else { "history-keep" });
        document
    };
    let listed = || home.runs().iter().map(|run| run["id"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(keep("--keep=3 --dry-run")["keep"], "3");
    assert!(!home.state().exists(), "a dry run makes no history");
    home.run(&format!("--tag=before {JOB}")).assert_success();
    (0..4).for_each(|_| drop(home.run(JOB)));
    let would = keep("--keep=2 --dry-run");
    assert_eq!(would["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect::<Vec<_>>(), [3, 2]);
    let text = home.run("history --keep=2 --dry-run").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    assert!(text.starts_with("ID") && text.ends_with("2 runs would be deleted\n"), "{text}");
    assert_eq!(listed(), [5, 4, 3, 2, 1]);

    assert_eq!(keep("--keep=2"), serde_json::json!({"keep": "2", "forgotten": 2}));
    assert_eq!(listed(), [5, 4, 1], "the newest of a name stays");
    home.run(JOB).assert_success();
    assert_eq!(listed(), [6, 5, 1]);
    assert_eq!(home.run("history --json").json()["keep"], "2");
    assert!(home.run("history").stdout.ends_with("\n\nThe newest 2 runs are kept.\n"));
    let aged = home.run("history --keep=30d").assert_success().stdout.clone();
    assert_eq!(aged, "Runs are kept for 30d. 0 runs deleted\n");
    assert_eq!(keep("--keep=all"), serde_json::json!({"keep": null, "forgotten": 0}));
    (0..3).for_each(|_| drop(home.run(JOB)));
    assert_eq!(listed(), [9, 8, 7, 6, 5, 1]);
    for (line, why) in [
        ("history --keep=0", "write 1"),
        ("history --keep=soon", "write 30d"),
        ("history --dry-run", "--keep"),
        ("history --keep=5 --target=/mnt", "--target"),
    ] {
        home.run(line).assert_status(1).assert_prints(&[why]);
    }
    assert_eq!(listed().len(), 6);
}

#[test]
fn concurrent_runs_are_all_recorded() {
    let home = Home::new();
    let running: Vec<_> = (0..16).map(|_| start(home.command(JOB))).collect();
    for one in running {
        finish(one).assert_success();
    }
    assert_eq!(home.runs().len(), 16);
}

#[test]
fn a_run_ended_by_a_signal_is_recorded() {
    let home = Home::new();
    let line = "--name=job --ioengine=null --rw=read --bs=4k --size=1m --time_based --runtime=60 --status-interval=1ms";
    let mut command = home.command(line);
    let report = home.dir.join("out");
    command.arg("--output=out");
    let running = start(command);
    until("it runs", || fs::metadata(&report).is_ok_and(|file| file.len() > 0));
    signal(running.0.id(), "TERM");
    finish(running).assert_status(128 + 15);
    assert_eq!(home.runs()[0]["exit_status"], 128 + 15);
    assert!(home.run("history").stdout.contains("signal 15"));
}

/// Asserts that a run's report and status are unaffected, and that it prints why it was not recorded.
#[track_caller]
fn assert_unharmed(home: &Home, why: &[&str]) {
    let ran = home.run(&format!("--output-format=json {JOB}"));
    ran.assert_status(0).assert_prints(&["could not be recorded", "--no-history"]).assert_prints(why);
    assert_eq!(ran.json()["jobs"][0]["jobname"], "job");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    home.run(FAILS).assert_status(1);
}

#[test]
fn a_history_that_cannot_be_used_does_not_affect_runs() {
    let home = Home::new();
    let database = home.state().join("fiord/history.db");
    home.dir.write("state", "a file");
    assert_unharmed(&home, &["state/fiord/history.db", "XDG_STATE_HOME"]);
    fs::remove_file(home.state()).unwrap();

    fs::create_dir_all(&database).unwrap();
    assert_unharmed(&home, &["XDG_STATE_HOME"]);
    fs::remove_dir(&database).unwrap();

    fs::write(&database, "this is not a database, whatever its name".repeat(99)).unwrap();
    assert_unharmed(&home, &["not a database", "move the file away"]);
    home.run("history").assert_status(1).assert_prints(&["history.db", "move the file away"]);
    home.run("show 1").assert_status(1).assert_prints(&["history.db", "move the file away"]);

    let mut homeless = home.command(JOB);
    homeless.env_remove("XDG_STATE_HOME").env_remove("HOME");
    finish(start(homeless)).assert_status(0).assert_prints(&["neither XDG_STATE_HOME nor HOME"]);
}

#[test]
fn a_full_disk_affects_neither_run_nor_history() {
    let home = Home::new();
    let disk = need!(Mount::tmpfs(&home.dir, "size=512k"));
    symlink(&disk.path, home.state()).unwrap();
    home.run(JOB).assert_success();
    let filler = disk.path.join("filler");
    fill(&filler);
    let mut kept = 1;
    // Existing pages may have space for a few more.
    let full = (0..200).find_map(|_| {
        let ran = home.run(JOB);
        ran.assert_status(0);
        kept += usize::from(ran.stderr.is_empty());
        (!ran.stderr.is_empty()).then_some(ran)
    });
    full.expect("the disk is full").assert_prints(&["could not be recorded", "full"]);
    fs::remove_file(filler).unwrap();
    assert_eq!(home.runs().len(), kept);
    home.run(JOB).assert_success();
    assert_eq!(home.runs().len(), kept + 1);
}

/// Writes until the disk is full.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    while file.write(&[0; 512]).is_ok_and(|written| written > 0) {}
}

#[test]
fn a_study_is_shown_by_its_conclusion_and_its_runs() {
    let home = Home::new();
    home.run(JOB).assert_success();
    let summary = Conclusion {
        json: "{ \"best\" : 4 }\n".to_string(),
        text: "Best at 4.\n".to_string(),
        headline: Headline::default(),
    };
    let study = RunFacts {
        kind: RunKind::Sweep,
        parent: None,
        title: "depths".to_string(),
        command: "fiord sweep".to_string(),
        targets: Vec::new(),
        host: "vole".to_string(),
        fiord_version: "0.1.0".to_string(),
        started_ms: 0,
        utc_offset_s: 0,
        elapsed_ms: 0,
        exit_status: None,
        tag: None,
        kernel: None,
    };
    let keep = |history: &mut History, facts: RunFacts| {
        history
            .keep(&Draft { facts, printed: None, heading: Some("fiord sweep: depths\n\n"), summary: None })
            .unwrap()
    };
    let mut history = History::open(&home.state().join("fiord/history.db")).unwrap();
    let id = keep(&mut history, study.clone());
    keep(
        &mut history,
        RunFacts { kind: RunKind::Fio, parent: Some(id), title: "depth 4".to_string(), ..study },
    );

    assert!(home.run("history").stdout.contains("unfinished"));
    assert_eq!(home.run("show last --json").assert_success().json()["runs"][0]["title"], "depth 4");
    history.conclude(id, 5, 0, &summary).unwrap();
    let text = home.run("show last").assert_success().stdout.clone();
    assert!(text.starts_with("Run      2 of Thu Jan  1 00:00:00 1970, 1 s, on vole"), "{text}");
    assert!(text.contains("\nCommand  fiord sweep\n\nfiord sweep: depths\n\nBest at 4.\n\nID"), "{text}");
    assert!(text.contains("depth 4"), "{text}");
    assert_eq!(home.run("show last --json").assert_success().stdout, summary.json);
    home.run("show last --output-format=terse").assert_status(1).assert_prints(&["study"]);
    assert_eq!(home.runs().len(), 2, "parts of a study are listed by the study");
    home.run(&format!("history rm {id}")).assert_success();
    home.run(&format!("show {}", id + 1)).assert_status(1);
}

#[test]
fn a_study_is_recorded_with_each_of_its_runs() {
    let home = Home::new();
    home.dir.write("data", vec![7; 16 << 20]);
    let line = "matrix data --bs 4k,64k --rw read --time 2s";
    let printed = home.run(line).assert_success().stdout.clone();
    let runs = home.runs();
    assert_eq!(runs.len(), 1, "its runs are its own: {runs:?}");
    assert_eq!(runs[0]["kind"], "matrix");
    assert_eq!(runs[0]["targets"][0], home.dir.join("data").to_str().unwrap());
    let shown = home.run("show last").assert_success().stdout.clone();
    let conclusion = printed.trim_end().rsplit("\n\n").next().unwrap();
    assert!(shown.contains(conclusion), "{printed}\n{shown}");
    assert!(shown.contains("64k read"), "{shown}");
    let report =
        home.run(&format!("show {}", runs[0]["id"].as_u64().unwrap() + 1)).assert_success().stdout.clone();
    assert!(report.contains("Run status group 0"), "{report}");
    assert_eq!(home.run("show last --json").assert_success().json()["study"], "matrix");

    home.run(&format!("{line} --no-history")).assert_success();
    assert_eq!(home.runs().len(), 1);
}

/// A study is shown as it was printed, below its date and command: devices, target, table, chart, conclusion.
#[test]
fn a_study_is_shown_as_it_was_printed() {
    let home = Home::new();
    for line in [
        "quick --trust=off --time 700ms --size 8M",
        "sweep --trust=off --size=8M --over bs=4k..16k --time 300ms",
    ] {
        let printed = home.run(line).assert_success().stdout.clone();
        let shown = home.run("show last").assert_success().stdout.clone();
        assert!(shown.contains(&printed), "{printed}\n{shown}");
        assert!(printed.contains("\nTarget  ") && printed.contains("MiB/s"), "{printed}");
        let head: Vec<&str> = shown.lines().take(2).collect();
        assert!(head[0].starts_with("Run ") && head[0].contains(" 20"), "{shown}");
        assert_eq!(head[1], format!("Command  fiord {line}"));
        assert_fits_terminal(&shown);
    }
}

/// A sweep is found by the files of its jobs, like a run; other studies by their target.
#[test]
fn studies_are_found_by_their_targets() {
    let home = Home::new();
    home.dir.write("data", vec![7; 8 << 20]);
    fs::create_dir(home.dir.join("sub")).unwrap();
    home.run("sweep --filename=data --rw=read --over bs=4k,64k --time 200ms").assert_success();
    home.run("sweep --directory=sub --size=1m --rw=write --over bs=4k,64k --time 200ms").assert_success();
    home.run("quick data --time 300ms").assert_success();
    let found = |target: &str| {
        let runs = home.run(&format!("history --json --target {target}")).assert_success().json();
        runs["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect::<Vec<_>>()
    };
    let ids: Vec<Value> = home.runs().iter().map(|run| run["id"].clone()).collect();
    let [quick, there, data] = ids.as_slice() else { panic!("{ids:?}") };
    assert_eq!(found("data"), [quick.clone(), data.clone()]);
    assert_eq!(found("sub"), std::slice::from_ref(there));
    assert_eq!(found("."), ids);
    assert_eq!(found("elsewhere"), [0; 0]);
    // By its former and its present name.
    symlink(home.dir.join("sub"), home.dir.join("link")).unwrap();
    assert_eq!(found("link"), std::slice::from_ref(there));
    home.run("--name=a --filename=link/odd\\name --rw=write --size=64k --bs=4k").assert_success();
    let last = home.runs()[0]["id"].clone();
    assert_eq!(found("sub"), [last.clone(), there.clone()]);
    assert_eq!(found("link/odd\\name"), [last]);
}

/// The latency of writes that are each synced is that of the syncs.
#[test]
fn the_latency_of_synced_writes_is_that_of_both() {
    let home = Home::new();
    home.run("check etcd --time 1500ms");
    let document = home.run("show last --json").assert_success().json();
    let runs = home.runs();
    assert_eq!(runs[0]["latency_p99_ns"], document["rows"][0]["measured_ns"], "{runs:?}");
    assert_eq!(runs[0]["latency_of"], "p99 of fdatasync, 2300-byte appends");
    home.run("--name=a --rw=write --bs=4k --size=256k --fdatasync=1 --filename=f").assert_success();
    home.run("--name=a --rw=write --bs=4k --size=256k --fdatasync=4 --filename=f").assert_success();
    let runs = home.runs();
    assert_eq!((&runs[0]["latency_of"], &runs[1]["latency_of"]), (&Value::Null, &"write + sync".into()));
    let report = home.run("show last~1 --json").json();
    let job = &report["jobs"][0];
    let [sync, write] = [&job["sync"]["lat_ns"], &job["write"]["clat_ns"]]
        .map(|latency| latency["percentile"]["99.000000"].as_u64().filter(|p99| *p99 > 0).unwrap());
    let both = runs[1]["latency_p99_ns"].as_u64().unwrap();
    assert!(both.abs_diff(sync + write) <= both / 30, "{sync} {write} {both}");
    let list = home.run("history").assert_success().stdout.clone();
    assert!(list.contains("P99 of runs that sync each write"), "{list}");
}

/// Every device under the files is in the report and in the history, including the disks of a RAID or a loop device.
#[test]
fn the_devices_under_a_run_are_recorded_with_their_counters() {
    let home = Home::new();
    let device = need!(LoopDevice::new(&home.dir, 4 << 20));
    let line = format!(
        "--name=a --filename={} --ioengine=psync --rw=write --bs=4k --size=64k --direct=1",
        device.path
    );
    let ran = home.run(&format!("{line} --output-format=json"));
    ran.assert_success();
    let document = ran.json();
    let devices = document["devices"].as_array().unwrap();
    let name = Path::new(&device.path).file_name().unwrap().to_str().unwrap();
    let counted = |key: &str| {
        let of = |when: &str| devices[0][when][key].as_u64().unwrap();
        of("end") - of("start")
    };
    assert_eq!((&devices[0]["name"], &devices[0]["holds_files"]), (&name.into(), &true.into()));
    assert_eq!((counted("write_sectors"), counted("read_sectors")), (128, 0));
    assert_eq!(devices[0]["size_bytes"], 4 << 20);
    // fio counts the same on the same disk.
    assert_eq!(document["disk_util"][0]["write_sectors"], 128);
    for lower in &devices[1..] {
        let is_named = |upper: &Value| upper["below"].as_array().unwrap().contains(&lower["name"]);
        assert!(lower["holds_files"] == false && devices.iter().any(is_named), "{lower}");
    }
    assert_eq!(home.run("show last --json").stdout, ran.stdout);
    let unwatched = home.run(&format!("{line} --disk_util=0 --output-format=json")).json();
    assert!(unwatched.get("devices").is_none() && unwatched.get("disk_util").is_none(), "{unwatched}");
}

#[test]
fn void_runs_are_listed_as_such_and_each_run_has_one_line() {
    let home = Home::new();
    // Reads of what was just written come from memory.
    home.dir.write("a-file-with-a-name-that-is-longer-than-a-column-of-a-table-would-be", vec![1; 1 << 20]);
    let target = "--filename=a-file-with-a-name-that-is-longer-than-a-column-of-a-table-would-be";
    let job = format!(
        "--name=a-job-with-a-name-that-is-long-as-well-and-longer-than-half-of-eighty-columns {target}"
    );
    let void = home.run(&format!("{job} --rw=read --bs=4k --pre_read=1 --invalidate=0 --size=1m"));
    assert!(void.assert_status(0).stdout.contains("  void: "), "{void:?}");
    home.run(JOB).assert_success();
    home.run("sweep --trust=off --rw=read --size=8M --over bs=4k,8k,16k,32k --time=800ms --repeat=1")
        .assert_success();
    let text = home.run("history").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("P99 ")).collect();
    assert_eq!(lines.len(), 4, "a heading and three runs: {text}");
    assert!(lines[1].ends_with("ok") && lines[2].ends_with("ok") && lines[3].ends_with("void"), "{text}");
    assert!(lines[3].contains('\u{2026}') && lines[3].contains("would-be"), "{text}");
    // Nothing is shortened for programs.
    assert!(home.run("history --csv").stdout.contains("longer-than-half-of-eighty-columns"));
}
