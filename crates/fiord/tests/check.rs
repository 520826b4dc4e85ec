//! `fiord check` on a disk, in memory and on a loop device; its job files under fio; interrupted; as root and as an
//! ordinary user.
//!
//! Invariant: whatever the verdict, it agrees with the rows and the exit status, and nothing is left behind.

use std::fs;
use std::path::Path;

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, public};
use crate::common::{
    Dir, LoopDevice, Mount, Ran, assert_fits_terminal, finish, fiord, helper, in_one_line, signal, start,
    until,
};

const PROFILES: [&str; 3] = ["etcd", "rocksdb", "oltp"];

/// A few tenths of a second for each run, on small files.
const SHORT: &str = "--time 1500ms --size 8M";

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Checks that the verdict is that of the worst row, that the conclusion says so, and that the status agrees.
#[track_caller]
fn assert_judged(ran: &Ran, profile: &str) -> Value {
    let document = ran.json();
    assert_eq!((&document["study"], &document["profile"]), (&"check".into(), &profile.into()));
    assert_eq!(document["complete"], true, "{ran:?}");
    assert_documented(&document, "check");
    let rows = document["rows"].as_array().unwrap();
    let order = ["PASS", "MARGINAL", "CANNOT TELL", "FAIL"];
    let worst = rows
        .iter()
        .filter_map(|row| order.iter().position(|word| row["verdict"] == *word))
        .max()
        .expect("a row with a verdict");
    assert_eq!(document["verdict"], order[worst], "{document}");
    assert!(document["conclusion"].as_str().unwrap().starts_with(order[worst]), "{document}");
    ran.assert_status([0, 0, 6, 4][worst]);
    assert_eq!(ran.stderr, "");
    for row in rows {
        assert_row(row, &document);
    }
    document
}

/// Whether the rounds of a row, or the interval of their mean, have its limit between them.
fn is_undecided(row: &Value, document: &Value) -> bool {
    let limits = ["ns", "per_s", "percent", "times"].map(|unit| row[format!("fail_limit_{unit}")].as_f64());
    let Some(limit) = limits.into_iter().flatten().next() else { return false };
    let mut repeats =
        document["repeats"].as_array().unwrap().iter().filter(|entry| entry["of"] == row["figure"]);
    repeats.any(|entry| {
        let contains = |low: &str, high: &str| {
            let bounds = entry[low].as_f64().zip(entry[high].as_f64());
            bounds.is_some_and(|(low, high)| (low..=high).contains(&limit))
        };
        contains("lowest", "highest") || contains("interval_low", "interval_high")
    })
}

/// Checks that a row has one figure, above zero and in one unit, its limits and rounds in the same unit, and a verdict
/// that follows from them.
#[track_caller]
fn assert_row(row: &Value, document: &Value) {
    let units: Vec<&str> = ["ns", "per_s", "percent", "times"]
        .into_iter()
        .filter(|unit| row[format!("measured_{unit}")].as_f64().is_some_and(|figure| figure > 0.0))
        .collect();
    let [unit] = units.as_slice() else { panic!("{units:?}: {row}") };
    let figure = |name: &str| row[format!("{name}_{unit}")].as_f64();
    let measured = figure("measured").unwrap();
    if let Some(rounds) = row[format!("rounds_{unit}")].as_array() {
        assert!(rounds.iter().all(Value::is_number), "{row}");
    }
    let Some(pass) = figure("pass_limit") else { return assert_eq!(row["verdict"], Value::Null, "{row}") };
    let lower_is_better = *unit == "ns";
    let within = |limit: f64| if lower_is_better { measured <= limit } else { measured >= limit };
    let expected = match figure("fail_limit") {
        _ if row["verdict"] == "CANNOT TELL" && is_undecided(row, document) => "CANNOT TELL",
        _ if within(pass) => "PASS",
        Some(fail) if !within(fail) => "FAIL",
        _ => "MARGINAL",
    };
    assert_eq!(row["verdict"], expected, "{row}");
}

fn figures(document: &Value) -> Vec<&str> {
    document["rows"].as_array().unwrap().iter().map(|row| row["figure"].as_str().unwrap()).collect()
}

#[test]
fn every_profile_tests_a_directory_and_leaves_it_unchanged() {
    let dir = Dir::new();
    for (profile, count) in PROFILES.into_iter().zip([2, 6, 4]) {
        let document = assert_judged(&dir.run(&format!("check {profile} --json {SHORT} .")), profile);
        // What the jobs did, not what the directory would allow.
        let engine = if profile == "etcd" { "sync" } else { "psync" };
        assert_eq!(document["target"]["engine"], engine);
        if profile != "oltp" {
            let mixed = document["jobs"].as_array().unwrap().iter().any(|job| job["direct"] == true);
            let direct = if mixed { Value::Null } else { false.into() };
            assert_eq!(document["target"]["direct"], direct, "{profile}: {}", document["jobs"]);
        }
        assert_eq!(figures(&document).len(), count, "{document}");
        assert!(is_empty(dir.path()), "{profile}");
    }
}

#[test]
fn text_shows_limits_and_their_sources_in_80_columns() {
    let dir = Dir::new();
    let ran = dir.run(&format!("check etcd {SHORT}"));
    assert!(matches!(ran.status, Some(0 | 4 | 6)) && ran.stderr.is_empty(), "{ran:?}");
    let text = in_one_line(&ran.stdout);
    for part in [
        "fiord check: etcd in ",
        "synced appends of 22 MiB, 3 rounds or more, about ",
        ", through the page cache; ",
        "FIGURE MEASURED PASS FAIL BEYOND VERDICT p99 of fdatasync, 2300-byte appends ",
        "synced 8000-byte appends per second ",
        "etcd FAQ: p99 of wal_fsync_duration_seconds",
        "etcd Hardware recommendations, and OpenShift Recommended",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("this disk ") || text.contains("CANNOT TELL, because "), "{text}");
    assert_fits_terminal(&ran.stdout);
    let cells: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .filter(|line| ["PASS", "MARGINAL", "FAIL", "CANNOT TELL"].iter().any(|word| line.contains(word)))
        .map(|line| line.trim_end_matches(" TELL").split_whitespace().rev().take(3).collect())
        .collect();
    assert_eq!(cells[0], ["VERDICT", "BEYOND", "FAIL"]);
    assert_eq!((cells[1][1], cells[1][2]), ("10ms", "5ms"));
    assert_eq!((cells[2][1], cells[2][2]), ("50", "500"));
}

#[test]
fn memory_and_a_loop_device_can_be_checked() {
    let dir = Dir::new();
    let memory = need!(Mount::tmpfs(&dir, "size=300m"));
    assert_judged(&dir.run(&format!("check rocksdb --json {SHORT} tmpfs")), "rocksdb");
    assert!(is_empty(&memory.path));
    let device = need!(LoopDevice::new(&dir, 400 << 20));
    let disk = need!(Mount::ext4(&dir, &device));
    let before = fs::read_dir(&disk.path).unwrap().count();
    assert_judged(&dir.run(&format!("check etcd --json {SHORT} ext4")), "etcd");
    assert_eq!(fs::read_dir(&disk.path).unwrap().count(), before);
    let ran = dir.run(&format!("check etcd {}", device.path));
    ran.assert_status(1)
        .assert_prints(&["not a directory, and check writes to scratch files; name a directory"]);
}

#[test]
fn csv_and_markdown_have_a_line_for_every_figure() {
    let dir = Dir::new();
    let csv = dir.run(&format!("check etcd --csv {SHORT}")).stdout;
    assert!(csv.starts_with("figure,verdict,measured_ns,measured_per_s,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
    let markdown = dir.run(&format!("check etcd --markdown {SHORT}")).stdout;
    assert!(markdown.starts_with("| FIGURE | MEASURED | PASS | FAIL BEYOND | VERDICT |"), "{markdown}");
    let lines: Vec<&str> = markdown.lines().collect();
    let is_verdict =
        |line: &&str| ["PASS", "MARGINAL", "FAIL", "CANNOT TELL"].iter().any(|word| line.starts_with(word));
    assert!(lines[3].starts_with('|') && lines[4].is_empty() && is_verdict(&lines[5]), "{markdown}");
}

/// FAIL has its own status, and so has MARGINAL if it is not enough; errors have another.
#[test]
fn the_exit_status_distinguishes_verdicts_from_errors() {
    let dir = Dir::new();
    dir.run("check etcd nowhere").assert_status(1).assert_prints(&["no such directory"]);
    dir.run("check etcd --tiem 1").assert_status(1).assert_prints(&["--time"]);
    for (profile, option) in [("etcd", ""), ("etcd", "--strict"), ("oltp", "--strict")] {
        let ran = dir.run(&format!("check {profile} --json {option} {SHORT}"));
        let verdict = ran.json()["verdict"].clone();
        let marginal = if option.is_empty() { 0 } else { 5 };
        let expected = match verdict.as_str().unwrap() {
            "PASS" => 0,
            "MARGINAL" => marginal,
            "CANNOT TELL" => 6,
            _ => 4,
        };
        ran.assert_status(expected);
    }
}

#[test]
fn an_interrupted_check_gives_no_verdict_and_leaves_nothing() {
    let dir = Dir::new();
    let running = start(fiord(dir.path(), "check oltp --json --time 400 --size 8M"));
    until("it has filled its file", || {
        let own = fs::read_dir(dir.path()).unwrap().flatten().next();
        own.is_some_and(|own| {
            fs::metadata(own.path().join("fiord-oltp.data")).is_ok_and(|data| data.len() == 8 << 20)
        })
    });
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    let document = ran.json();
    assert_eq!((&document["complete"], &document["verdict"]), (&false.into(), &Value::Null));
    assert!(is_empty(dir.path()));
}

#[test]
fn an_ordinary_user_can_check_writable_directories() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    assert_judged(&as_ordinary_user(&dir, &binary, &format!("check etcd --json {SHORT}")), "etcd");
}

#[test]
fn profiles_are_listed_and_unknown_ones_refused() {
    let dir = Dir::new();
    for line in ["check", "check list", "check list --markdown"] {
        dir.run(line).assert_success().assert_prints(&PROFILES);
    }
    let document = dir.run("check list --json").json();
    let names: Vec<_> = document["profiles"].as_array().unwrap().iter().map(|row| &row["profile"]).collect();
    assert_eq!(names[..PROFILES.len()], PROFILES);
    assert!(names.len() > 15, "{names:?}");
    dir.run("check postgers").assert_status(1).assert_prints(&["did you mean \"postgres\"?"]);
    dir.run("check absent").assert_status(1).assert_prints(&["etcd, rocksdb, oltp, postgres"]);
}

/// Each profile under the real fio: as shown, scaled down, and as a dry run shows it.
#[test]
fn fio_runs_the_job_files() {
    let dir = Dir::new();
    need!(helper("fio", &["--version"]));
    for profile in PROFILES {
        let shown = dir.run(&format!("check {profile} --show-job"));
        shown.assert_success();
        let file = format!("{profile}.fio");
        dir.write(&file, &shown.stdout);
        helper("fio", &["--parse-only", &dir.join(&file).to_string_lossy()]).unwrap();
        let dry = dir.run(&format!("check {profile} --dry-run"));
        dry.assert_success();
        let dry = dir.write("dry.fio", &dry.stdout);
        helper("fio", &["--parse-only", &dry.to_string_lossy()]).unwrap();
        fs::remove_file(dry).unwrap();
        let small = shown
            .stdout
            .lines()
            .map(|line| match line.split_once('=') {
                Some(("runtime", _)) => "runtime=1\n".to_string(),
                Some(("size", "1g")) => "size=8m\n".to_string(),
                Some(("direct", _)) => "direct=0\n".to_string(),
                _ => format!("{line}\n"),
            })
            .collect::<String>();
        let small = dir.write(&file, small);
        let json = helper(
            "sh",
            &["-c", &format!("cd {} && fio --output-format=json {}", dir.path().display(), small.display())],
        );
        let document: Value = serde_json::from_str(&json.unwrap()).unwrap();
        for job in document["jobs"].as_array().unwrap() {
            assert_eq!(job["error"], 0, "{job}");
        }
    }
}

/// Two directories of one disk, each judged as if it were alone, and compared.
#[test]
fn several_directories_are_judged_each_and_compared() {
    let dir = Dir::new();
    for name in ["one", "other"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let ran = dir.run("check etcd --json --time 1500ms one other");
    let document = ran.json();
    assert_eq!((&document["study"], &document["complete"]), (&"check".into(), &true.into()), "{ran:?}");
    let targets = document["targets"].as_array().unwrap();
    let order = ["PASS", "MARGINAL", "CANNOT TELL", "FAIL"];
    let rank = |verdict: &Value| order.iter().position(|word| verdict == *word).unwrap();
    let worst = targets.iter().map(|target| rank(&target["verdict"])).max().unwrap();
    ran.assert_status([0, 0, 6, 4][worst]);
    for (target, name) in targets.iter().zip(["one", "other"]) {
        assert_eq!(target["target"], dir.join(name).canonicalize().unwrap().to_str().unwrap());
        assert!(
            target["conclusion"].as_str().unwrap().starts_with(target["verdict"].as_str().unwrap()),
            "{target}"
        );
        let rows: Vec<&Value> = document["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["target"] == target["target"])
            .collect();
        assert!(!rows.is_empty(), "{document}");
        rows.iter().for_each(|row| assert_row(row, &document));
        assert!(is_empty(&dir.join(name)));
    }
    assert!(!document["comparison"].as_array().unwrap().is_empty(), "{document}");
    let text = dir.run("check etcd --time 1500ms one other").stdout;
    assert_fits_terminal(&text);
    for part in ["TARGET", "CONCLUSION", "one", "other"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What a team keeps in its repository: a check of fiord's, changed, and one of its own.
#[test]
fn a_file_is_a_check() {
    let dir = Dir::new();
    let shown = dir.run("check --show etcd").stdout;
    dir.write("mine.toml", &shown);
    assert_eq!(dir.run("check --show mine.toml").stdout, shown);
    fs::create_dir(dir.join("here")).unwrap();
    assert_judged(&dir.run(&format!("check mine.toml --json {SHORT} here")), "mine");
    let explained = dir.run("check --explain ./mine.toml");
    explained.assert_success().assert_prints(&["PASS up to 5ms, FAIL above 10ms", "from: etcd FAQ"]);
    assert_fits_terminal(&explained.stdout);
    let schema: Value = dir.run("check --schema").json();
    assert!(schema["properties"]["figure"].is_object(), "{schema}");
    // One round, and time for a disk that stands still.
    let once = shown.replace("rounds = 3", "rounds = 1");
    dir.write("slow.toml", once.replace("<= 5ms", "<= 1ns").replace("<= 10ms", "<= 2ns"));
    let slow = dir.run("check slow.toml --json --trust=off --time 6s --size 8M here").assert_status(4).json();
    assert_eq!(slow["rows"][0]["verdict"], "FAIL", "{slow}");
    assert!(is_empty(&dir.join("here")));
}

#[test]
fn errors_of_a_check_file_have_their_place() {
    let dir = Dir::new();
    dir.write("c.toml", "title = \"x\"\njobs = '''\n[a]\nrw=randraed\nsize=1g\nruntime=1\n'''\n[limit]\nread.p99 = \"<= 1ms\"\n");
    dir.run("check c.toml")
        .assert_status(1)
        .assert_prints(&["c.toml:4:4: error: rw: ", "did you mean \"randread\"?"]);
    dir.run("check ./absent.toml").assert_status(1).assert_prints(&["ENOENT"]);
    dir.write("bytes.toml", [0xff, 0xfe]);
    dir.run("check bytes.toml").assert_status(1).assert_prints(&["not UTF-8 at byte 0"]);
    dir.run("check /dev/zero").assert_status(1).assert_prints(&["longer than 1 MiB"]);
    let forbids = "title = \"x\"\nforbidden_findings = \"volatile-cache\"\njobs = '''\n[a]\nrw=read\nsize=8m\nruntime=1\n'''\n";
    dir.write("forbids.toml", forbids);
    dir.run("check forbids.toml --trust=off")
        .assert_status(1)
        .assert_prints(&["--trust=off does not look for"]);
}

/// A run of each that is not run elsewhere, from its file as it is shown: its jobs are valid in every place, and every limit is
/// measured.
#[test]
fn every_check_is_a_file_that_can_be_run() {
    let dir = Dir::new();
    fs::create_dir(dir.join("here")).unwrap();
    let document = dir.run("check list --json").json();
    for name in document["profiles"].as_array().unwrap().iter().map(|row| row["profile"].as_str().unwrap()) {
        dir.run(&format!("check {name} --dry-run")).assert_success();
        let file = format!("{name}.toml");
        dir.write(&file, dir.run(&format!("check --show {name}")).stdout);
        for form in ["--show", "--explain", "--show-job"] {
            let [own, brought] = [&file, name].map(|check| dir.run(&format!("check {form} {check}")));
            own.assert_success();
            assert_eq!(own.stdout, brought.stdout, "{form} {name}");
        }
        if PROFILES.contains(&name) {
            continue;
        }
        let ran = dir.run(&format!("check {file} --json --repeat=1 --trust=off {SHORT} here"));
        assert!(is_empty(&dir.join("here")), "{name}");
        let document = ran.json();
        assert_eq!(document["complete"], true, "{ran:?}");
        assert!(matches!(ran.status, Some(0 | 4)), "{ran:?}");
        assert_documented(&document, "check");
    }
}

/// `--fail-if` of runs and studies, in the language of `fiord compare`.
#[test]
fn conditions_decide_the_status_of_runs_and_studies() {
    let dir = Dir::new();
    let run = "--name=a --rw=randread --size=1m --ioengine=null --number_ios=1000 --trust=off";
    for (condition, options, status) in [
        ("read.p99>1s", "", 0),
        ("read.iops>1", "", 8),
        ("a:read.iops>1", "", 8),
        ("write.iops>1", "", 6),
        ("write.iops>1", "--undecided=pass", 0),
        ("write.iops>1", "--undecided=fail", 8),
    ] {
        let ran = dir.run(&format!("{run} {options} --fail-if={condition}"));
        ran.assert_status(status);
        let says = ran.stderr.contains(&format!("fiord: --fail-if {condition:?}: "));
        assert_eq!(says, status != 0 || options.contains("pass"), "{ran:?}");
    }
    dir.run(&format!("{run} --fail-if=read.p99>+10%")).assert_status(1).assert_prints(&["fiord compare"]);
    dir.run(&format!("{run} --fail-if=raed.p99>1s")).assert_status(1).assert_prints(&["is not a figure"]);
    let study = "check etcd --json --trust=off --repeat=1 --time 400ms";
    let ran = dir.run(&format!("{study} --fail-if=write.iops>0.1"));
    let document = ran.json();
    assert_eq!(document["conditions"][0]["decision"], "holds", "{ran:?}");
    assert_documented(&document, "check");
    ran.assert_status(if document["verdict"] == "FAIL" { 4 } else { 8 });
    dir.run(&format!("{study} --fail-if=nonsense")).assert_status(1);
}

/// Memory is no disk, so that no study there has a verdict; nor is anything trimmed.
#[test]
fn what_a_study_cannot_tell_has_the_status_that_its_user_wants() {
    let dir = Dir::new();
    let _mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let image = dir.write("tmpfs/image", vec![1; 16 << 20]).canonicalize().unwrap().display().to_string();
    let qualify = "qualify --test=throughput --class=client --rounds=1 --capacity=8M --time=20ms";
    for study in [
        "quick --time 1s --size 8M tmpfs".to_string(),
        "matrix --rw randread --bs 4k --time 100ms --repeat 1 --size 8M tmpfs".to_string(),
        "sweep --rw randread --over iodepth=1 --time 100ms --repeat 1 --size 8M --directory=tmpfs"
            .to_string(),
        format!("{qualify} --overwrite={image} {image}"),
    ] {
        let figure = "--trust=off --fail-if=trim.iops>1";
        let is_qualify = study.starts_with("qualify");
        for (options, of_verdict, of_condition) in
            [("", 6, 6), ("--undecided=tell", 6, 6), ("--undecided=pass", 0, 0), ("--undecided=fail", 4, 8)]
        {
            let ran = dir.run(&format!("{study} --trust=on --json {options}"));
            assert_eq!(ran.json()["verdict"], "CANNOT TELL", "{study} {options}");
            ran.assert_status(of_verdict);
            // Too few rounds to be steady are none that --trust is about.
            let status = if is_qualify { of_verdict } else { of_condition };
            let ran = dir.run(&format!("{study} --json {options} {figure}"));
            assert_eq!(ran.json()["conditions"][0]["decision"], "undecided", "{study} {options}");
            ran.assert_status(status);
            assert!(ran.stderr.contains("fiord: --fail-if \"trim.iops>1\": undecided: "), "{ran:?}");
        }
        dir.run(&format!("{study} --undecided=maybe")).assert_status(1).assert_prints(&["tell, pass, fail"]);
    }
}
