//! `fiord explain`: recorded runs, files in every format, single lines, and what is wrong.
//!
//! Invariant: what docs/explain.md shows is what the program prints.

use std::path::Path;
use std::process::Command;

use fiord_testing::need;

use crate::common::schema::assert_documented;
use crate::common::{
    Dir, Mount, Ran, assert_fits_terminal, finish, fiord, in_one_line, run_with_input, start, until_working,
};

/// A job whose depth is not what it seems.
const JOB: &str = "--name=deep --filename=data --rw=write --bs=4k --size=64k --ioengine=psync --iodepth=32";

/// `fiord explain` with this argument, which may have blanks.
fn explain(dir: &Dir, option: &str, argument: &str) -> Ran {
    let mut command = fiord(dir.path(), "explain");
    command.arg(option).arg(argument);
    finish(start(command))
}

#[test]
fn a_recorded_run_is_explained_with_its_own_findings() {
    let dir = Dir::new();
    let with_history = |line: &str| -> Command {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", dir.join("state"));
        command
    };
    finish(start(with_history(JOB))).assert_success();
    let shown = finish(start(with_history("show last --json"))).json();
    let recorded: Vec<&str> = shown["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    let explained = finish(start(with_history("explain --json")));
    let explained = explained.assert_success().json();
    assert_documented(&explained, "explain");
    let said: Vec<&str> = explained["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert_eq!(said, recorded);
    assert!(said.contains(&"sync-engine-depth"), "{said:?}");
    let text = finish(start(with_history("explain last")));
    text.assert_success().assert_prints(&["Job deep", "16 writes in", "Completion latency", "\nNext\n"]);
    assert_fits_terminal(&text.stdout);
    assert_eq!(finish(start(with_history("explain 1"))).stdout, text.stdout);
    finish(start(with_history("explain 99"))).assert_status(1).assert_prints(&["there is no run 99"]);
}

#[test]
fn every_format_of_a_file_is_explained() {
    let dir = Dir::new();
    let formats = [
        "normal",
        "json",
        "json+",
        "terse",
        "terse --terse-version=2",
        "terse --terse-version=5",
        "json,normal,terse",
    ];
    for format in formats {
        let report = dir
            .run(&format!("--no-history --trust=off {JOB} --output-format={format}"))
            .assert_success()
            .stdout
            .clone();
        dir.write("report", &report);
        let explained = dir.run("explain report");
        explained.assert_success().assert_prints(&["Job deep", "Completion latency", "IO depths"]);
        // Terse lines do not contain the requested depth.
        assert_eq!(explained.stdout.contains("sync-engine-depth"), !format.starts_with("terse"), "{format}");
        assert_eq!(run_with_input(dir.path(), "explain -", &report).stdout, explained.stdout);
    }
}

#[test]
fn a_study_is_explained_with_its_conclusion_and_its_figures() {
    let dir = Dir::new();
    let _small = need!(Mount::tmpfs(&dir, "size=256k"));
    let with_history = |line: &str| -> Ran {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", dir.join("state"));
        finish(start(command))
    };
    let sweep =
        "sweep --rw=read --size=64k --directory=tmpfs --over bs=4k,8k --time=1s --repeat=2 --json --trust=on";
    let document = with_history(sweep).json();
    let text = with_history("explain").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    let text = in_one_line(&text);
    assert!(
        text.starts_with("Study 1 of ") && text.contains("`fiord explain 2` explains one of its runs"),
        "{text}"
    );
    assert!(text.contains(document["conclusion"].as_str().unwrap()), "{text}");
    let explained = with_history("explain last --json").assert_success().json();
    assert_documented(&explained, "explain-study");
    let rows = explained["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{explained}");
    for (row, of) in rows.iter().zip(document["rows"].as_array().unwrap()) {
        let iops = of["iops"].as_f64().unwrap();
        let grouped = row["text"].as_str().unwrap().replace(',', "");
        assert!(grouped.contains(&format!("{iops:.0} I/Os per second")), "{row} {of}");
    }
    let codes = |document: &serde_json::Value| -> Vec<String> {
        let all = document["findings"].as_array().unwrap();
        all.iter().map(|finding| finding["code"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(codes(&explained), codes(&document));
    assert!(codes(&document).contains(&"in-memory".to_string()), "{document}");
    // The same from a file.
    dir.write("study.json", document.to_string());
    let from_file = dir.run("explain study.json --json").assert_success().json();
    assert_eq!(from_file["rows"], explained["rows"]);
    with_history("sweep --rw=read --size=1m --directory=tmpfs --over bs=4k,8k --time=1s").assert_status(1);
    with_history("explain").assert_success().assert_prints(&["Nothing was concluded.", "It is incomplete: "]);
    with_history("report").assert_success();
    assert!(
        dir.text("report.html").contains("Nothing was measured")
            || dir.text("report.html").contains("incomplete")
    );
}

/// What is recorded of a study that was killed.
#[test]
fn a_study_that_did_not_end_is_named_with_its_runs() {
    let dir = Dir::new();
    let with_history = |line: &str| {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", dir.join("state"));
        command
    };
    let running = start(with_history("matrix --bs=4k --rw=randread --size=8M --time=100s --repeat=1"));
    until_working(&running, "4k-randread");
    drop(running);
    for line in ["explain last", "report last"] {
        let refused = finish(start(with_history(line)));
        refused.assert_status(1).assert_prints(&["study 1 did not end", "and has no run"]);
    }
}

#[test]
fn wrong_input_is_named_with_its_place() {
    let dir = Dir::new();
    dir.write("cut.json", "{\n  \"jobs\" : [");
    dir.run("explain cut.json").assert_status(1).assert_prints(&["fiord explain: cut.json:2:", "not JSON"]);
    dir.write("log", "1000, 4096, 0, 0, 0\n");
    dir.run("explain log").assert_status(1).assert_prints(&["log:1:1: there is no report of fio here"]);
    dir.run("explain depth-not-reachd")
        .assert_status(1)
        .assert_prints(&["did you mean the finding depth-not-reached?"]);
    explain(&dir, "--line", "nonsense").assert_status(1).assert_prints(&["paste a line"]);
}

#[test]
fn one_thing_is_explained() {
    let dir = Dir::new();
    explain(&dir, "--line", "clat percentiles").assert_success().assert_prints(&["percentiles\n"]);
    explain(&dir, "--line", "clat_ns.percentile").assert_success().assert_prints(&["percentiles\n"]);
    explain(&dir, "--line", "IO depths").assert_success().assert_prints(&["IO depths\n"]);
    explain(&dir, "--line", "v5 38").assert_success().assert_prints(&["total latency, lowest"]);
    let code = dir.run("explain depth-not-reached --json").assert_success().json();
    assert_eq!(code["name"], "depth-not-reached (caution)");
    assert!(code["here"][1].as_str().unwrap().starts_with("To do: "), "{code}");
}

/// Two runs of fio 2 in one file, each with its own heading, the second with a damaged line.
const OLD_TEXT: &str = "\
one: (g=0): rw=write, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32
fio-2.16
Starting 1 process

one: (groupid=0, jobs=1): err= 0: pid=6080: Thu Nov 26 22:46:38 2026
  write: io=80000KB, bw=4000.0KB/s, iops=1000, runt= 20000msec
    clat (usec): min=23, max=52970, avg=3100.00, stdev=960.82
     lat (usec): min=23, max=52970, avg=3100.00, stdev=960.74
     issued    : total=r=0/w=20000/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=80000KB, aggrb=4000KB/s, minb=4000KB/s, maxb=4000KB/s, mint=20000msec, maxt=20000msec
two: (g=0): rw=randread, bs=8K-8K/8K-8K/8K-8K, ioengine=psync, iodepth=1
fio-2.21
Starting 1 process

two: (groupid=0, jobs=1): err= 0: pid=6081: Thu Nov 26 22:50:00 2026
  read : io=160000KB, bw=8000.0KB/s, iops=1000, runt= 20000mse
    clat (usec): min=21, max=2980000, avg=990.00, stdev=1023.96
    bw (KB  /s): min=  100, max=16000, per=100.00%, avg=8000.00, stdev=4960.00
     issued    : total=r=20000/w=0/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
   READ: io=160000KB, aggrb=8000KB/s, minb=8000KB/s, maxb=8000KB/s, mint=20000msec, maxt=20000msec

Disk stats (read/write):
  sda: ios=20/48482, merge=0/0, ticks=10/20, in_queue=30, util=90.00%
";

#[test]
fn old_text_is_explained_with_what_is_damaged_and_what_was_not_checked() {
    let dir = Dir::new();
    let (first, second) = OLD_TEXT.split_at(OLD_TEXT.find("two: (g=0)").unwrap());
    dir.write("first", first);
    let text = dir.run("explain first").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    let text = in_one_line(&text);
    for part in [
        "Report of fio-2.16, Thu",
        "rw=write, ioengine=libaio, iodepth=32",
        "20,000 writes in 20s: 1,000 per second",
        "depth-not-reached: 3.1 I/Os were in flight on average, of the 32",
        "Not checked:",
        "caches, other programs on the disks (the report has no counters of disks)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("reason to doubt"), "{text}");
    dir.write("both", OLD_TEXT);
    let text = in_one_line(&dir.run("explain both").assert_success().stdout.clone());
    for part in [
        "Report of fio-2.21,",
        "This is the last of 2 reports in the file; the others begin at line 5.",
        "Line 18, column 55: runt: \"20000mse\" is not a figure.",
        "rw=randread, ioengine=psync",
        "1,000 reads per second (IOPS).",
        "slow-io: the longest read took 2.98s",
        "the run time of a job is missing",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Without the damage, samples and disks are judged as well.
    dir.write("second", second.replace("20000mse\n", "20000msec\n"));
    let json = dir.run("explain second --json").assert_success().json();
    assert_documented(&json, "explain");
    let codes: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["cache-served", "not-steady", "slow-io"], "{json}");
    dir.run("report second -o page.html").assert_success();
    let page = dir.text("page.html");
    assert!(page.contains("class=\"conclusion void\"") && page.contains("slow-io"), "{page}");
    dir.run("report both -o page.html").assert_success();
    assert!(dir.text("page.html").contains("Line 18, column 55"));
}

/// As many jobs as a report of a fleet has: each is looked at once.
#[test]
fn reports_of_many_jobs_are_explained_compared_and_shown() {
    const JOBS: usize = 12_000;
    let dir = Dir::new();
    let job = |number: usize| {
        format!(
            "{{ \"jobname\" : \"job{number}\", \"groupid\" : {number}, \"error\" : 0, \"read\" : {{ \"io_bytes\" : \
             4096000, \"iops\" : 1000, \"runtime\" : 1000, \"total_ios\" : 1000, \"clat_ns\" : {{ \"min\" : 1, \"max\" : \
             9, \"mean\" : 5, \"stddev\" : 1, \"N\" : 1000, \"percentile\" : {{ \"99.900000\" : 8 }} }} }} }}"
        )
    };
    let jobs: Vec<String> = (0..JOBS).map(job).collect();
    dir.write(
        "many.json",
        format!("{{\n\"fio version\" : \"fio-3.42\", \"jobs\" : [\n{}\n] }}\n", jobs.join(",\n")),
    );
    let text = dir.run("explain many.json").assert_success().stdout.clone();
    assert!(text.contains("11996 more jobs have the same parts"), "{text}");
    assert!(in_one_line(&text).contains("(and 11999 more jobs)"), "{text}");
    dir.run("report many.json -o page.html").assert_success();
    assert!(dir.text("page.html").contains("11000 more jobs are not on this page"));
    let compared = dir.run("compare many.json many.json --json").json();
    assert!(compared["rows"].as_array().unwrap().len() >= JOBS);
}

/// The block of the page after this mark, and where it is.
fn block(page: &str, mark: &str) -> std::ops::Range<usize> {
    let start = page.find(mark).unwrap() + mark.len();
    let start = start + page[start..].find("```text\n").unwrap() + "```text\n".len();
    start..start + page[start..].find("```").unwrap()
}

#[test]
fn the_page_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    let dir = Dir::new();
    let report = page[block(&page, "The report:")].to_string();
    let slat = "    slat (nsec): min=1475, max=99137, avg=3287.19, stdev=3284.74";
    let line =
        format!("$ fiord explain --line '{slat}'\n{}", explain(&dir, "--line", slat).assert_success().stdout);
    let explanation = run_with_input(dir.path(), "explain -", &report).assert_success().stdout.clone();
    for (mark, printed) in [("<!-- line:", line), ("<!-- explanation:", explanation)] {
        let place = block(&page, mark);
        if std::env::var_os("FIORD_BLESS").is_some() {
            page.replace_range(place, &printed);
            std::fs::write(&path, &page).unwrap();
        } else {
            assert_eq!(
                page[place], printed,
                "update the page: FIORD_BLESS=1 cargo test -p fiord --test it explain"
            );
        }
    }
}
