//! `fiord compare`: every way of naming a result, every format that is read and written, every exit status.
//!
//! Invariant: what is judged here are written reports, whose figures do not depend on this machine.

use std::fmt::Write;
use std::process::Command;

use crate::common::schema::assert_documented;
use crate::common::{Dir, Ran, assert_fits_terminal, finish, fiord, in_one_line, run_with_input, start};

const JOB: &str = "--name=job --ioengine=null --rw=randread --bs=4k --size=4m";

/// A working directory with its own history.
struct Home {
    dir: Dir,
}

impl Home {
    fn new() -> Home {
        Home { dir: Dir::new() }
    }

    fn command(&self, line: &str, more: &[&str]) -> Command {
        let mut command = fiord(self.dir.path(), line);
        command.args(more).env("XDG_STATE_HOME", self.dir.join("state"));
        command
    }

    fn run(&self, line: &str) -> Ran {
        finish(start(self.command(line, &[])))
    }

    /// With a condition, which contains blanks.
    fn fails_if(&self, line: &str, condition: &str) -> Ran {
        finish(start(self.command(line, &["--fail-if", condition])))
    }

    fn write(&self, name: &str, text: &str) {
        self.dir.write(name, text.as_bytes());
    }
}

/// A report in JSON of reads at this rate, with windows that vary by about a hundredth if there are any.
fn report(iops: u32, p99_us: u32, has_windows: bool, options: &str) -> String {
    let mut windows = String::new();
    if has_windows {
        let rate = |index: u32| f64::from(iops) * (1.0 + 0.01 * f64::from(index * 7 % 5) - 0.02);
        let list = |scale: f64| {
            (0..40).map(|index| (rate(index) * scale).round().to_string()).collect::<Vec<_>>().join(", ")
        };
        let _ = write!(
            windows,
            ", \"windows\": {{\"window_s\": 0.25, \"read_ios_per_s\": [{}], \"read_bytes_per_s\": [{}]}}",
            list(1.0),
            list(4096.0)
        );
    }
    let (ios, mean_ns) = (iops * 10, 1_000_000 * 8 / iops * 1000);
    let bytes = u64::from(ios) * 4096;
    let p50 = mean_ns;
    let p99 = p99_us * 1000;
    format!(
        "{{\"fio version\": \"fio-3.42\", \"jobs\": [{{\"jobname\": \"job\", \"error\": 0, \"job options\": \
         {{\"rw\": \"randread\", \"iodepth\": \"8\"{options}}}, \"read\": {{\"io_bytes\": {bytes}, \"bw_bytes\": {}, \
         \"iops\": {iops}.0, \"runtime\": 10000, \"total_ios\": {ios}, \"clat_ns\": {{\"min\": 1000, \"max\": {}, \"mean\": \
         {mean_ns}.0, \"stddev\": 20000.0, \"N\": {ios}, \"percentile\": {{\"50.000000\": {p50}, \"90.000000\": {}, \
         \"95.000000\": {}, \"99.000000\": {p99}, \"99.500000\": {}, \"99.900000\": {}, \"99.950000\": {}}}}}}}}}]{windows}}}\n",
        bytes / 10,
        p99 * 4,
        p50 * 2,
        p99 - 1000,
        p99 + 1000,
        p99 + 3000,
        p99 + 4000,
    )
}

#[test]
fn conditions_decide_the_exit_status() {
    let home = Home::new();
    home.write("fast.json", &report(20_000, 900, true, ""));
    home.write("again.json", &report(20_050, 905, true, ""));
    home.write("slow.json", &report(16_000, 1800, true, ""));
    home.write("bare.json", &report(16_000, 1800, false, ""));
    home.write("deep.json", &report(16_000, 1800, true, ", \"ioengine\": \"libaio\""));
    let slow = "compare fast.json slow.json";
    home.run(slow).assert_success().assert_prints(&["slow.json is slower than fast.json: read.iops -20.0 %"]);
    for (line, condition, status, printed) in [
        (slow, "read.iops < -10%", 8, "holds: read.iops < -10%"),
        (slow, "read.p99 > +10%", 8, "holds: read.p99 > +10%"),
        (slow, "job: read.p99 > 1ms", 8, "holds: job: read.p99 > 1ms"),
        (slow, "read.iops < -30%", 0, "ok: read.iops < -30%"),
        (slow, "write.iops < -30%", 6, "undecided: write.iops < -30%"),
        ("compare fast.json again.json", "read.p99 > +0.1%", 6, "undecided: read.p99 > +0.1%"),
        ("compare fast.json again.json", "read.p99 > +10%", 0, "ok: read.p99 > +10%"),
        ("compare fast.json bare.json", "read.iops < -10%", 6, "is noise is not known"),
        ("compare fast.json deep.json", "read.iops < -10%", 6, "are not comparable"),
        ("compare fast.json deep.json --across engine,host", "read.iops < -10%", 8, "holds:"),
        ("compare --baseline fast.json slow.json", "read.iops < -10%", 8, "holds:"),
    ] {
        let ran = home.fails_if(line, condition);
        ran.assert_status(status).assert_prints(&[]);
        assert_eq!(ran.stderr, "", "{line}");
        let text = ran.stdout.replace('\n', " ");
        assert!(text.contains(printed), "{line} {condition}: {text}");
        assert_fits_terminal(&ran.stdout);
    }
    home.run("compare fast.json deep.json")
        .assert_success()
        .assert_prints(&["deep.json is not comparable with fast.json, because the engine differs (psync,"]);
    home.run("compare fast.json bare.json")
        .assert_success()
        .assert_prints(&["Cannot tell whether bare.json differs"]);
}

#[test]
fn what_cannot_be_compared_is_an_error_that_names_it() {
    let home = Home::new();
    home.write("fast.json", &report(20_000, 900, true, ""));
    home.write("broken.json", "{\"jobs\": [}");
    for (line, part) in [
        ("compare", "required arguments were not provided"),
        ("compare fast.json", "name two results or more"),
        ("compare fast.json nowhere.json", "\"nowhere.json\": no such file, nor a run in the history"),
        ("compare fast.json broken.json", "broken.json:1:11: this is not JSON"),
        ("compare last last~1", "nor a run in the history"),
        ("compare fast.json fast.json --across colour", "is not one of pattern, block-size"),
        (
            "compare fast.json fast.json --fail-if=read.p98.iops>5%",
            "column 1: \"read.p98.iops\" is not a figure",
        ),
        ("compare fast.json fast.json --junit --json", "cannot be used with"),
    ] {
        let ran = home.run(line);
        ran.assert_status(1);
        assert!(ran.stderr.contains(part) && ran.stdout.is_empty(), "{line}: {ran:?}");
    }
    for tag in ["last", "7", "a/b", "a,b"] {
        home.run(&format!("{JOB} --tag={tag}")).assert_status(1).assert_prints(&["error: tag: "]);
    }
    home.run(&format!("{JOB} --tag=x --no-history")).assert_status(1);
}

#[test]
fn runs_are_named_by_number_place_tag_and_file_in_every_format() {
    let home = Home::new();
    home.run(&format!("{JOB} --tag=before")).assert_success();
    // A tag is often the name of the directory that was measured.
    std::fs::create_dir(home.dir.join("before")).unwrap();
    home.run("explain before").assert_success();
    home.run("report before -o page.html").assert_success();
    std::fs::create_dir(home.dir.join("other")).unwrap();
    for line in ["compare before other", "explain other", "report other -o page.html"] {
        home.run(line).assert_status(1).assert_prints(&["other", ": a directory, nor "]);
    }
    home.run(&format!("{JOB} --output=normal.txt")).assert_success();
    home.run(&format!("{JOB} --output-format=json --output=plain.json")).assert_success();
    home.run(&format!("{JOB} --output-format=json+ --output=plus.json")).assert_success();
    home.run(&format!("{JOB} --output-format=terse --output=terse.txt")).assert_success();
    for names in
        ["last~1 last", "1 2", "before last", "normal.txt plain.json", "plus.json terse.txt", "1 plain.json"]
    {
        let ran = home.run(&format!("compare {names}"));
        ran.assert_success().assert_prints(&["A  ", "B  ", "FIGURE", "read.iops", "read.p99"]);
        assert_fits_terminal(&ran.stdout);
        assert!(!ran.stdout.contains("differs ("), "the same job: {}", ran.stdout);
    }
    home.run("compare --baseline before")
        .assert_success()
        .assert_prints(&["A  before: run 1", "B  last: run 5"]);
    home.run("compare 1,2,3 4,5,last").assert_success().assert_prints(&["3 results as one", "3 runs"]);
    home.run("compare 1 2 3 4 5").assert_success().assert_prints(&["E  5: run 5"]);
    let plain = std::fs::read_to_string(home.dir.join("plain.json")).unwrap();
    let ran = run_with_input(home.dir.path(), "compare - plus.json", &plain);
    ran.assert_success().assert_prints(&["A  standard input"]);
    home.run("history").assert_success().assert_prints(&["[before] job"]);
    let runs = home.run("history --json").json();
    assert_eq!(
        (&runs["runs"][4]["tag"], &runs["runs"][0]["tag"]),
        (&"before".into(), &serde_json::Value::Null)
    );
    assert!(runs["runs"][0]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));
}

#[test]
fn a_tag_is_nothing_of_fio() {
    let home = Home::new();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fiord"), home.dir.join("fio")).unwrap();
    let mut command = Command::new(home.dir.join("fio"));
    command.args(JOB.split(' ')).arg("--tag=x").current_dir(home.dir.path());
    let ran = finish(start(command));
    ran.assert_status(1);
    assert!(ran.stderr.contains("tag: ") && ran.stderr.contains("not recorded"), "{ran:?}");
}

#[test]
fn studies_are_compared_row_by_row() {
    let home = Home::new();
    home.dir.write("data", vec![7; 16 << 20]);
    for tag in ["one", "two"] {
        home.run(&format!(
            "matrix data --time=1s --bs=4k,64k --rw=read,randread --size=8M --repeat=2 --tag={tag}"
        ))
        .assert_success();
    }
    let ran = home.run("compare one two");
    ran.assert_success().assert_prints(&[
        "4k read",
        "64k randread",
        "read.iops",
        "read.p99",
        "Of 4 rows, two is",
    ]);
    assert_fits_terminal(&ran.stdout);
    let document = home.run("compare one two --json").assert_success().json();
    assert_documented(&document, "compare");
    assert_eq!(document["rows"][0]["row"], "4k read");
}

/// What a study printed is compared as the study that the history has, and on another machine.
#[test]
fn documents_of_studies_are_compared_across_machines() {
    let home = Home::new();
    home.dir.write("data", vec![7; 16 << 20]);
    let line = "matrix data --time=1s --bs=4k,64k --rw=read,randread --size=8M --repeat=3 --json";
    let document = |tag: &str, line: &str| home.run(&format!("{line} --tag={tag}")).assert_success().json();
    let (one, mut other) =
        (document("one", line), document("other", &line.replace("--repeat=3", "--repeat=1")));
    for (document, tag) in [(&one, "one"), (&other, "other")] {
        assert_eq!(document["tag"], tag);
        for key in ["fiord_version", "host", "kernel", "started"] {
            assert!(document[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {document}");
        }
        assert!(document["command"].as_str().unwrap().contains("data --time=1s"), "{document}");
        assert!(document["devices"].is_array());
    }
    assert_eq!(one["runs"].as_array().unwrap().len(), 12);
    home.write("one.json", &one.to_string());
    home.write("other.json", &other.to_string());
    let ran = home.run("compare one.json other.json");
    let host = one["host"].as_str().unwrap();
    ran.assert_success().assert_prints(&[
        "A  one.json: matrix, one, of ",
        "64k randread",
        "Of 4 rows, other.json is",
    ]);
    assert!(in_one_line(&ran.stdout).contains(&format!("on {host}, fiord ")), "{}", ran.stdout);
    assert_fits_terminal(&ran.stdout);
    // The same figures as the history has.
    let rows = |line: &str| home.run(line).assert_success().json()["rows"].clone();
    let (by_file, by_tag) = (rows("compare one.json other.json --json"), rows("compare one other --json"));
    let value = |rows: &serde_json::Value, row: usize| rows[row]["from_value"].as_f64().unwrap();
    assert_eq!(by_file.as_array().unwrap().len(), by_tag.as_array().unwrap().len());
    assert!((value(&by_file, 0) / value(&by_tag, 0) - 1.0).abs() < 0.01, "{by_file} {by_tag}");
    // From another machine.
    other["host"] = "elsewhere".into();
    home.write("other.json", &other.to_string());
    let text = in_one_line(&home.run("compare one.json other.json").assert_success().stdout);
    assert!(
        text.contains("not comparable in 4, because the host differs (") && text.contains(", elsewhere)"),
        "{text}"
    );
    let across = home.run("compare one.json other.json --across host");
    assert!(!across.assert_success().stdout.contains("not comparable"), "{}", across.stdout);
    // Of an earlier version.
    other["runs"] = serde_json::Value::Null;
    home.write("other.json", &other.to_string());
    home.run("compare one.json other.json")
        .assert_status(1)
        .assert_prints(&["other.json: the document of a study without its runs; measure it again"]);
}

#[test]
fn every_form_has_the_same_figures() {
    let home = Home::new();
    home.write("fast.json", &report(20_000, 900, true, ""));
    home.write("slow.json", &report(16_000, 1800, true, ""));
    let line = "compare fast.json slow.json";
    let document = home.run(&format!("{line} --json --fail-if=read.iops<-50%")).assert_success().json();
    assert_documented(&document, "compare");
    let change = document["rows"][0]["change_percent"].as_f64().unwrap();
    assert!((change + 20.0).abs() < 1e-6, "{change}");
    assert_eq!(document["rows"][0]["verdict"], "worse");
    home.run(&format!("{line} --csv"))
        .assert_success()
        .assert_prints(&["job,read.iops,fast.json,slow.json,20000,16000,-"]);
    home.run(&format!("{line} --markdown"))
        .assert_success()
        .assert_prints(&["| read.iops | 20000 | 16000 | -20.0 % |"]);
    let junit = home.run(&format!("{line} --junit --fail-if=read.iops<-10% --fail-if=write.bw<1"));
    junit.assert_status(8);
    let parsed = Command::new("python3")
        .args(["-c", "import sys, xml.dom.minidom as m; d = m.parseString(sys.argv[1]); s = d.getElementsByTagName('testsuite')[0]; \
                print(s.getAttribute('tests'), s.getAttribute('failures'), s.getAttribute('skipped'), \
                len(d.getElementsByTagName('failure')))"])
        .arg(&junit.stdout)
        .output();
    let Ok(parsed) = parsed else { fiord_testing::skip!("no python3, which parses XML here") };
    assert_eq!(String::from_utf8_lossy(&parsed.stdout).trim(), "2 1 1 1", "{}", junit.stdout);
}

#[test]
fn several_targets_are_measured_in_turn_and_compared() {
    let home = Home::new();
    ["a", "b", "c"].iter().for_each(|name| std::fs::create_dir(home.dir.join(name)).unwrap());
    let line = "matrix a b c --time=1s --bs=4k --rw=randread,randwrite --size=8M --repeat=2";
    let ran = home.run(&format!("{line} --tag=disks"));
    ran.assert_success().assert_prints(&["A  ", "B  ", "C  ", "4k randread", "Of 2 rows,"]);
    assert_fits_terminal(&ran.stdout);
    let document = home.run(&format!("{line} --json")).assert_success().json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert!(rows[5]["target"].as_str().unwrap().ends_with("/c"), "{}", rows[5]);
    assert_eq!(document["targets"].as_array().unwrap().len(), 3);
    assert_eq!(document["comparison"][0]["figure"], "read.iops");
    home.run("show disks").assert_success().assert_prints(&["Of 2 rows,"]);
    home.run("show last").assert_success().assert_prints(&["Of 2 rows,"]);
    let dry = home.run(&format!("{line} --dry-run"));
    dry.assert_success().assert_prints(&["/a: 4k randread", "/c: 4k randwrite"]);
    home.run("matrix a a").assert_status(1).assert_prints(&["named twice"]);
    home.dir.write("data", vec![7; 16 << 20]);
    home.run("matrix a data").assert_status(1).assert_prints(&["allow different runs"]);
    assert!(["a", "b", "c"].iter().all(|name| home.dir.join(name).read_dir().unwrap().next().is_none()));
    let quick =
        home.run("quick a b --time=100ms --size=8M --repeat=1 --trust=off").assert_success().stdout.clone();
    let words = in_one_line(&quick);
    let is_direct = words.contains(": direct I/O") || words.contains(", direct I/O");
    let buffered = words.matches("direct I/O, except synced 4k appends; 8MiB in scratch").count();
    assert_eq!(buffered, if is_direct { 2 } else { 0 }, "{quick}");
}

/// The table as it is, on a terminal of 80 columns.
#[test]
fn the_table_of_two_results() {
    let home = Home::new();
    home.write("fast.json", &report(20_000, 900, true, ""));
    home.write("slow.json", &report(16_000, 1800, true, ""));
    let ran = home.run("compare fast.json slow.json");
    assert_eq!(ran.stdout, TWO, "\n{}", ran.stdout);
}

const TWO: &str = "\
A  fast.json: report, fio-3.42
B  slow.json: report, fio-3.42

FIGURE              A          B    CHANGE    INTERVAL, %  VERDICT
read.iops       20000      16000   -20.0 %   -24.5..-15.3  worse
read.bw     78.1MiB/s  62.5MiB/s   -20.0 %   -24.5..-15.3  worse
read.mean       400us      500us   +25.0 %   +18.1..+32.3  worse
read.p50        400us      500us   +25.0 %   +11.6..+40.0  worse
read.p99        900us      1.8ms  +100.0 %  +48.0..+170.3  worse
read.p99.9      903us      1.8ms   +99.7 %  +27.1..+213.7  worse
INTERVAL is the 95 % interval of the change, of all figures of a row together.
Noise is estimated from 40 windows of a run.

slow.json is slower than fast.json: read.iops -20.0 % (-24.5 to -15.3 %),
read.bw -20.0 % (-24.5 to -15.3 %), read.mean +25.0 % (+18.1 to +32.3 %), and 3
more figures.
";

/// Energy as a machine with RAPL tells it: compared and on the page, but nothing is concluded from single runs.
#[test]
fn energy_is_compared_and_on_the_page() {
    let home = Home::new();
    let with = |watts: u32| {
        let energy = format!(
            "{{\"energy\": [{{\"source\": \"package-0\", \"joules\": {}, \"watts\": {watts}, \"idle_watts\": 5, \
             \"iops_per_watt\": {}, \"bytes_per_joule\": null}}],",
            watts * 10,
            20_000 / (watts - 5)
        );
        report(20_000, 900, true, "").replacen('{', &energy, 1)
    };
    home.write("before.json", &with(25));
    home.write("after.json", &with(15));
    let ran = home.run("compare before.json after.json");
    assert_fits_terminal(&ran.assert_success().stdout);
    ran.assert_prints(&["energy.watts", "25.0 W", "15.0 W", "-40.0 %", "energy.iops_per_watt", "+100.0 %"]);
    let text = in_one_line(&ran.stdout);
    assert!(text.contains("after.json is the same as before.json"), "{text}");
    assert!(text.contains("How much of the energy is noise is known from three runs of each on."), "{text}");
    home.fails_if("compare before.json after.json", "energy.watts > +5%").assert_status(0);
    home.fails_if("compare before.json after.json", "energy.watts < -5%").assert_status(6);
    let repeats = "compare before.json,before.json,before.json after.json,after.json,after.json";
    home.fails_if(repeats, "energy.watts < -5%").assert_status(8);
    home.run("report before.json -o page.html").assert_success();
    let page = home.dir.text("page.html");
    assert!(page.contains("Table of energy") && page.contains("25\u{a0}W"), "{page}");
}

/// The report of two hosts, in the shape of fio's client mode, with what they did together beside them.
fn of_hosts() -> String {
    let entry = |name: &str, host: &str, ios: u32| {
        format!(
            "{{\"jobname\": \"{name}\", \"groupid\": 0, \"job_start\": 5, \"error\": 0, \"read\": {{\"io_bytes\": {}, \"runtime\": \
             10000, \"total_ios\": {ios}}}, \"hostname\": \"{host}\", \"port\": 8765}}",
            ios * 4096
        )
    };
    format!(
        "{{\"fio version\": \"fio-3.42\", \"global options\": {{\"rw\": \"read\"}}, \"client_stats\": [{}, {}, {}, {}]}}\n",
        entry("job", "db1", 10_000),
        entry("job", "db2", 50_000),
        entry("job", "db2", 200_000),
        entry("All clients", "db2", 210_000)
    )
}

#[test]
fn hosts_of_one_report_are_compared_with_each_other() {
    let home = Home::new();
    home.write("run.json", &of_hosts());
    let ran = home.run("compare run.json@db1 run.json@db2 --csv");
    ran.assert_success().assert_prints(&["1000", "20000"]);
    let whole = home.run("compare run.json run.json --csv");
    // The entry of an earlier status report is not added up, and neither is the sum.
    whole.assert_success().assert_prints(&["job@db1", "job@db2", "All clients", "20000", "21000"]);
    assert!(!whole.stdout.contains("25000"), "{}", whole.stdout);
    let missing = home.run("compare run.json@db1 run.json@db3");
    missing.assert_status(1);
    assert!(missing.stderr.contains("run.json has no host db3; it has db1, db2"), "{}", missing.stderr);
    let explained = home.run("explain run.json");
    explained.assert_success().assert_prints(&["2 hosts", "Job job@db2", "an entry of an earlier"]);
}
