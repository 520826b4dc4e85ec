//! `fiord quick` on directories on a disk, in memory and on loop devices; on devices and files; interrupted and
//! failing; as root and as an ordinary user.
//!
//! Invariant: however a run ends, existing files are unchanged, and no others remain.

use std::fs;

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, assert_fits, column, fio_takes, is_empty, masked, public};
use crate::common::{Dir, LoopDevice, Mount, finish, fiord, in_one_line, signal, start, until_at};

/// Every row for a tenth of a second, on small files.
const SHORT: &str = "--time 700ms --size 8M";

const ROWS: [&str; 7] = [
    "sequential read 1M",
    "sequential write 1M",
    "random read 4k, depth 32",
    "random write 4k, depth 32",
    "random read 4k, depth 1",
    "random write 4k, depth 1",
    "synced 4k appends",
];

#[track_caller]
fn assert_measured(document: &Value, rows: &[&str]) {
    assert_eq!(column(document, "workload"), rows);
    for row in document["rows"].as_array().unwrap() {
        for key in ["iops", "mib_per_s", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns"] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{key} of {row}");
        }
    }
}

#[test]
fn a_directory_is_profiled_and_left_unchanged() {
    let dir = Dir::new();
    let ran = dir.run(&format!("quick {SHORT}"));
    assert_fits(&ran);
    assert!(is_empty(dir.path()));
    let text = masked(&ran.stdout);
    assert!(in_one_line(&text).starts_with("fiord quick: # runs in /"), "{text}");
    let table = text.split("\n\n").nth(1).unwrap();
    let row = |name: &&str| format!("{name} # # # # # #");
    let expected = ["WORKLOAD IOPS MiB/s MEAN P50 P99 P99.9".to_string()];
    let expected: Vec<String> = expected.into_iter().chain(ROWS.iter().map(row)).collect();
    let note = "The latency of synced appends is that of write and fdatasync together.";
    assert_eq!(
        table.lines().map(numbers_in_names).collect::<Vec<_>>(),
        [expected.iter().map(|line| numbers_in_names(line)).collect(), vec![note.to_string()]].concat()
    );
    let bars = text.split("\n\n").nth(2).unwrap();
    assert!(
        bars.starts_with("MiB/s, log scale # # # # 1k TYPICAL OF\nsequential read 1M = scans, "),
        "{bars}"
    );
    assert_eq!(bars.lines().count(), 1 + ROWS.len());
    assert_eq!(ran.stdout.matches("\u{1b}").count(), 0, "colours where there is no terminal");
}

/// The numbers in names, such as the depth of a queue, which look like figures.
fn numbers_in_names(line: &str) -> String {
    line.replace("depth 32", "depth #").replace("depth 1", "depth #")
}

#[test]
fn json_has_the_documented_keys_and_every_row() {
    let dir = Dir::new();
    let ran = dir.run(&format!("quick --json {SHORT} ."));
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, "quick");
    assert_measured(&document, &ROWS);
    assert_eq!((&document["study"], &document["complete"]), (&"quick".into(), &true.into()));
    let target = &document["target"];
    assert_eq!(target["path"], fs::canonicalize(dir.path()).unwrap().to_str().unwrap());
    assert_eq!((&target["writable"], &target["size_bytes"]), (&true.into(), &(8 << 20).into()));
    assert_eq!(document["rows"][6]["latency_of"], "write + fdatasync");
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), &jobs[6]["run"], &jobs[6]["direct"]), (7, &ROWS[6].into(), &false.into()));
    let depths: Vec<_> = jobs.iter().map(|job| job["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [8, 8, 32, 32, 1, 1, 1]);
    assert_eq!(target["engine"], Value::Null, "there are several");
}

#[test]
fn csv_and_markdown_have_a_line_for_every_row() {
    let dir = Dir::new();
    let csv = dir.run(&format!("quick --csv {SHORT}"));
    csv.assert_success();
    assert!(
        csv.stdout
            .starts_with("workload,iops,mib_per_s,mean_ns,p50_ns,p99_ns,p99_9_ns,latency_of,typical_of\r\n")
    );
    assert_eq!(csv.stdout.lines().count(), 1 + ROWS.len());
    let markdown = dir.run(&format!("quick --markdown {SHORT}"));
    markdown.assert_success();
    let lines: Vec<&str> = markdown.stdout.lines().collect();
    assert!(lines[1 + ROWS.len()].starts_with('|') && lines[2 + ROWS.len()].is_empty(), "{markdown:?}");
    assert!(lines[3 + ROWS.len()].starts_with("This disk serves "), "{markdown:?}");
    assert!(is_empty(dir.path()));
}

#[test]
fn in_memory_it_reports_that_there_is_no_disk() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let ran = dir.run(&format!("quick {SHORT} tmpfs"));
    assert_fits(&ran);
    ran.assert_prints(&["Device  memory (no disk)\n", "This target is memory, not a disk"]);
    assert!(in_one_line(&ran.stdout).contains(": tmpfs, "), "{ran:?}");
    let document = dir.run(&format!("quick --json {SHORT} tmpfs")).json();
    assert_documented(&document, "quick");
    assert_eq!(
        (&document["target"]["in_memory"], &document["target"]["devices"]),
        (&true.into(), &Value::Array(vec![]))
    );
    assert!(is_empty(&mount.path));
}

#[test]
fn a_loop_device_is_listed_before_its_backing_device() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 128 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    let before = fs::read_dir(&mount.path).unwrap().count();
    let ran = dir.run(&format!("quick {SHORT} ext4"));
    assert_fits(&ran);
    let name = device.path.trim_start_matches("/dev/");
    // Where the lines break depends on the length of the path.
    let text = in_one_line(&ran.stdout);
    assert!(text.contains(&format!("Device {name}: loop, 128MiB, ")) && text.contains(": ext4, "), "{text}");
    assert_measured(&dir.run(&format!("quick --json {SHORT} ext4")).json(), &ROWS);
    assert_eq!(fs::read_dir(&mount.path).unwrap().count(), before);
}

#[test]
fn a_device_is_only_read_even_if_in_use() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let before = dir.contents();
    let document = dir.run(&format!("quick --json {SHORT} {}", device.path)).json();
    assert_documented(&document, "quick");
    assert_measured(&document, &[ROWS[0], ROWS[2], ROWS[4]]);
    assert_eq!(document["target"]["writable"], false);
    assert!(dir.contents() == before, "a device that is not the study's own was written to");
    let mount = need!(Mount::ext4(&dir, &device));
    let ran = dir.run(&format!("quick {SHORT} {}", device.path));
    assert_fits(&ran);
    let text = in_one_line(&ran.stdout);
    assert!(text.contains(&format!("Note {} is mounted at {}", device.path, mount.path.display())), "{text}");
}

#[test]
fn a_file_is_only_read() {
    let dir = Dir::new();
    dir.write("file", vec![7u8; 8 << 20]);
    let before = dir.contents();
    let document = dir.run("quick --json --time 300ms file").json();
    assert_measured(&document, &[ROWS[0], ROWS[2], ROWS[4]]);
    assert!(dir.contents() == before);
}

#[test]
fn an_ordinary_user_gets_the_same_in_a_writable_directory() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, &format!("quick --json {SHORT}"));
    ran.assert_success();
    assert_measured(&ran.json(), &ROWS);
    crate::common::helper("chmod", &["755", &dir.path().to_string_lossy()]).unwrap();
    let ran = as_ordinary_user(&dir, &binary, "quick");
    ran.assert_status(1).assert_prints(&[
        "fiord quick: ",
        "Permission denied",
        "name a directory you may write to",
    ]);
    assert_eq!(ran.stdout, "");
}

#[test]
fn an_interrupted_study_prints_its_rows_and_leaves_nothing() {
    for (name, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for format in ["", "--json"] {
            let dir = Dir::new();
            let running = start(fiord(dir.path(), &format!("quick {format} --time 7s --size 8M")));
            until_at(&running, "sequential-writ");
            signal(running.0.id(), name);
            let ran = finish(running);
            ran.assert_status(status);
            assert!(ran.stderr.starts_with("fiord quick: after ") && ran.stderr.contains(name), "{ran:?}");
            assert!(is_empty(dir.path()));
            if format.is_empty() {
                let (_, found) = ran.stdout.split_once("\n\n").unwrap();
                assert!(found.contains(ROWS[0]) && !found.contains(ROWS[6]), "{ran:?}");
            } else {
                let document = ran.json();
                assert_documented(&document, "quick");
                assert!(
                    column(&document, "workload").starts_with(&ROWS[..1])
                        && column(&document, "workload").len() < 7
                );
                assert_eq!(document["complete"], false);
                assert!(document["error"].as_str().unwrap().contains(name), "{document}");
            }
        }
    }
}

#[test]
fn under_nohup_it_continues_when_its_terminal_is_closed() {
    let dir = Dir::new();
    let line = format!(
        "trap '' HUP; exec {} quick --trust=off --json --time 3500ms --size 8M",
        env!("CARGO_BIN_EXE_fiord")
    );
    let mut command = crate::common::with_own_history("sh");
    command.args(["-c", &line]).current_dir(dir.path());
    let running = start(command);
    until_at(&running, "sequential-writ");
    signal(running.0.id(), "HUP");
    let ran = finish(running);
    ran.assert_success();
    assert_measured(&ran.json(), &ROWS);
}

#[test]
fn it_can_be_interrupted_while_filling() {
    let dir = Dir::new();
    let running = start(fiord(dir.path(), "quick --time 7s --size 4G"));
    until_at(&running, "fill");
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130).assert_prints(&["after 0 of 7 runs: ended by SIGINT"]);
    assert!(is_empty(dir.path()));
}

#[test]
fn a_full_disk_ends_it_with_the_rows_so_far() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let running = start(fiord(dir.path(), "quick --time 3500ms --size 8M tmpfs"));
    until_at(&running, "sequential-writ");
    // All the space left; only the appends need more.
    let _ = fs::write(mount.path.join("others"), vec![0u8; 80 << 20]);
    let ran = finish(running);
    ran.assert_status(1).assert_prints(&[ROWS[5], "after 6 of 7 runs: ", "its file system has 0 free"]);
    let (_, found) = ran.stdout.split_once("\n\n").unwrap();
    assert!(found.contains(ROWS[5]) && !found.contains(ROWS[6]), "{ran:?}");
    let left: Vec<_> = fs::read_dir(&mount.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["others"]);
}

#[test]
fn a_dry_run_prints_job_files_that_fio_accepts_and_help_fits() {
    let dir = Dir::new();
    assert_fits(&dir.run("quick --help"));
    let ran = dir.run("quick --dry-run");
    ran.assert_success();
    assert_eq!(ran.stdout.matches("# run ").count(), 1 + ROWS.len());
    assert!(is_empty(dir.path()));
    need!(fio_takes(&dir, &ran.stdout));
}

/// The units that fiord prints can be typed, and the time announced is the time requested.
#[test]
fn sizes_and_times_are_read_as_they_are_printed() {
    let dir = Dir::new();
    let ran = dir.run("quick --size 8MiB --time 2s");
    assert_fits(&ran);
    let text = in_one_line(&ran.stdout);
    assert!(text.contains("about 2 s after") && text.contains("; 8MiB in scratch files"), "{text}");
    for line in [
        "quick --size 1GiB --dry-run",
        "quick --size 0.5GiB --time 1min --dry-run",
        "matrix --size 64MiB --bs 4KiB,1.5k --time 1500ms --dry-run",
        "check oltp --size 8MiB --time 2min --dry-run",
        "sweep --over bs=4k --time 90s --dry-run",
        "history rm --older-than 2h",
    ] {
        dir.run(line).assert_success();
    }
    assert_eq!(dir.run("matrix --bs 4KiB --size 64MiB --dry-run").stdout.matches("bs=4096").count(), 5);
    dir.run("history rm --older-than 30days").assert_status(1).assert_prints(&["30days"]);
}

#[test]
fn targets_that_cannot_be_measured_are_refused_with_a_remedy() {
    let dir = Dir::new();
    dir.write("empty", b"");
    for (line, parts) in [
        ("quick nowhere", ["nowhere", "no such directory, file or device"]),
        ("quick empty", ["empty", "name a directory"]),
        ("quick /dev/null", ["/dev/null", "neither a directory nor a file nor a block device"]),
        ("quick --time 0", ["--time", "write 30, 30s or 2m"]),
        ("quick --size 1M", ["1MiB", "8MiB"]),
        ("quick --size 1GiX", ["1GiX", "write 4096, 512M or 1.5GiB"]),
        ("quick --time 5parsecs", ["5parsecs", "write 30, 1500ms or 2m"]),
        ("quick --json --csv", ["--json", "--csv"]),
    ] {
        let ran = dir.run(line);
        ran.assert_status(1).assert_prints(&parts);
        assert_eq!(ran.stdout, "", "{line}");
    }
}
