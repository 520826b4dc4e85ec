//! `fiord record`: programs with known calls, of which exactly these are in the recording.
//!
//! Invariant: files that must have their names are open before the program begins, or until it is recorded.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};

use fiord_testing::need;
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, public};
use crate::common::{Dir, Mount, Ran, assert_fits_terminal, finish, fiord, run, signal, start, until};

/// Whether calls can be recorded here.
fn recordable() -> Result<(), String> {
    let dir = Dir::new();
    let ran = run(dir.path(), "record -o r -- true");
    if ran.status == Some(0) { Ok(()) } else { Err(ran.stderr.clone()) }
}

/// Lines of an iolog about the file of this name: action, offset, length.
fn lines(iolog: &str, name: &str) -> Vec<String> {
    let of_file = iolog.lines().filter_map(|line| line.split_once(' ')?.1.rsplit_once(&format!("/{name} ")));
    of_file.map(|(_, action)| action.to_string()).filter(|action| action.contains(' ')).collect()
}

#[test]
fn what_dd_does_is_what_is_recorded() {
    need!(recordable());
    let dir = Dir::new();
    dir.write("a", vec![7; 50 * 4096 + 100]);
    let mut record = fiord(dir.path(), "record -o r --as iolog -- dd bs=4k conv=fsync,notrunc status=none");
    record.stdin(File::open(dir.join("a")).unwrap()).stdout(File::create(dir.join("b")).unwrap());
    let status = record.status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(fs::read(dir.join("a")).unwrap(), fs::read(dir.join("b")).unwrap());
    let iolog = fs::read_to_string(dir.join("r")).unwrap();
    let expected = |action: &str| {
        let blocks = (0..50).map(|block| format!("{action} {} 4096", block * 4096));
        blocks.chain([format!("{action} {} 100", 50 * 4096)]).collect::<Vec<String>>()
    };
    assert_eq!(lines(&iolog, "a"), expected("read"));
    let mut written = expected("write");
    written.push("sync 0 0".to_string());
    assert_eq!(lines(&iolog, "b"), written);
}

#[test]
fn the_counts_of_a_job_are_those_of_its_recording() {
    need!(recordable());
    let dir = Dir::new();
    dir.write("data", vec![1; 8 << 20]);
    let job = "--name=a --ioengine=psync --rw=randrw --bs=4k --filename=data --size=8m --fdatasync=8 \
               --output-format=json --output=report";
    let line = format!("record -o r --json -- {} {job}", env!("CARGO_BIN_EXE_fiord"));
    let recorded = run(dir.path(), &line).assert_success().json();
    assert_documented(&recorded, "record");
    assert_eq!(recorded["lost_events"], 0, "{recorded:#}");
    let report: Value = serde_json::from_slice(&fs::read(dir.join("report")).unwrap()).unwrap();
    let job = &report["jobs"][0];
    let model = run(dir.path(), "model r --json").assert_success().json();
    assert_documented(&model, "model");
    assert_eq!(model["form"], "recording");
    let sections = model["sections"].as_array().unwrap();
    let count = |section: &Value| {
        let about = section["about"].as_str().unwrap().to_string();
        let counted = |word: &str| {
            let before = about.split_once(&format!(" {word}s ("))?.0;
            before.rsplit(' ').next()?.parse::<u64>().ok()
        };
        (counted("read").unwrap_or(0), counted("write").unwrap_or(0))
    };
    // It may have been closed before its name could be read, on a busy machine.
    let most = sections.iter().max_by_key(|section| count(section).0).unwrap();
    let ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap();
    assert_eq!(count(most), (ios("read"), ios("write")), "{most:#}");
    let option = |name: &str| {
        let options = most["options"].as_array().unwrap();
        options.iter().find(|option| option["name"] == name).map(|option| option["value"].as_str().unwrap())
    };
    let found = ["ioengine", "direct", "sync", "rw", "bs", "fdatasync"].map(option);
    let expected = [Some("psync"), Some("0"), None, Some("randrw"), Some("4k"), Some("8")];
    assert_eq!(found, expected, "{most:#}");
    let syncs = recorded["calls"].as_array().unwrap().iter().find(|one| one["kind"] == "datasync").unwrap();
    assert_eq!(syncs["calls"], job["sync"]["total_ios"], "{recorded:#}");
}

#[test]
fn a_process_that_runs_is_recorded_from_where_it_is() {
    need!(recordable());
    let dir = Dir::new();
    let (mut log, table) = (File::create(dir.join("log")).unwrap(), File::create(dir.join("table")).unwrap());
    log.write_all(&[1; 1000]).unwrap();
    table.set_len(1 << 20).unwrap();
    let this = std::process::id();
    let running = start(fiord(dir.path(), &format!("record -o r --as iolog --json --pid {this},{this}")));
    until("the recording to begin", || dir.join("r").exists());
    table.write_all_at(&[2; 512], 4096).unwrap();
    log.write_all(&[1; 24]).unwrap();
    log.seek(SeekFrom::Start(8)).unwrap();
    log.write_all(&[1; 8]).unwrap();
    log.sync_data().unwrap();
    let mut back = File::open(dir.join("log")).unwrap();
    back.read_exact(&mut [0; 16]).unwrap();
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    let iolog = fs::read_to_string(dir.join("r")).unwrap();
    let of_log = lines(&iolog, "log");
    assert_eq!(&of_log[..3], ["write 1000 24", "write 8 8", "datasync 0 0"], "{of_log:?}");
    assert_eq!(lines(&iolog, "table"), ["write 4096 512"]);
    drop(back);
}

#[test]
fn files_that_are_closed_at_once_have_their_names() {
    need!(recordable());
    let dir = Dir::new();
    if !std::path::Path::new("/proc/sys/kernel/unprivileged_bpf_disabled").exists() {
        fiord_testing::skip!("the kernel has no BPF");
    }
    dir.write(
        "go",
        "mkdir d; i=0; while [ $i -lt 200 ]; do echo x > f$i; i=$((i+1)); done; cd d; echo y > g; rm g",
    );
    let ran = run(dir.path(), "record -o r --as iolog --json -- sh go").assert_success().json();
    // Where a name is not in memory when its file is opened, as at the start of a program, the kernel does not read it.
    assert!(ran["unnamed_files"].as_u64().unwrap() < 10, "{ran:#}");
    let iolog = fs::read_to_string(dir.join("r")).unwrap();
    for file in (0..200).map(|file| format!("f{file}")).chain(["d/g".to_string()]) {
        assert_eq!(lines(&iolog, &file), ["write 0 2"], "{file}: {iolog}");
    }
}

#[test]
fn names_are_replaced_and_the_recording_is_known_again() {
    need!(recordable());
    let dir = Dir::new();
    dir.write("secret", vec![7; 4096]);
    let mut record = fiord(dir.path(), "record -o r --anonymous -- dd bs=512 of=/dev/null status=none");
    record.stdin(File::open(dir.join("secret")).unwrap());
    assert!(record.status().unwrap().success());
    let bytes = fs::read(dir.join("r")).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("file-1") && !has("secret") && !has("status=none"));
    // It is replaced, and a file of someone else is not.
    run(dir.path(), "record -o r -- true").assert_success();
    dir.write("mine", "text");
    let refused = run(dir.path(), "record -o mine -- true");
    assert_eq!((refused.status, fs::read(dir.join("mine")).unwrap()), (Some(2), b"text".to_vec()));
    // One that is cut off has a model, and is not replayed.
    dir.write("cut", &bytes[..bytes.len() - 3]);
    let model = run(dir.path(), "model cut -o cut.fio");
    assert!(model.assert_success().stdout.contains("The recording is cut off: it has no end"), "{model:?}");
    let refused = run(dir.path(), "--name=a --ioengine=null --read_iolog=cut");
    assert!(refused.assert_status(1).stderr.contains("cut cannot be replayed: byte "), "{refused:?}");
}

#[test]
fn what_was_written_until_the_disk_was_full_is_a_recording() {
    need!(recordable());
    let dir = Dir::new();
    let full = need!(Mount::tmpfs(&dir, "size=64k"));
    dir.write("a", vec![7; 512 * 20_000]);
    for form in ["recording", "iolog"] {
        let line =
            format!("record -o tmpfs/{form} --as {form} --json --force -- dd bs=512 if=a of=b status=none");
        let ran = run(dir.path(), &line);
        assert_eq!(fs::read(dir.join("a")).unwrap(), fs::read(dir.join("b")).unwrap(), "dd went on");
        let stderr = &ran.assert_status(1).stderr;
        for part in [
            &format!("--output tmpfs/{form}: No space left on device (ENOSPC): the recording ends after"),
            "\n  free space there, or name a file on another file system with --output",
        ] {
            assert!(stderr.contains(part), "{stderr}");
        }
        let recorded: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_documented(&recorded, "record");
        let calls = recorded["calls"].as_array().unwrap().iter();
        let calls: u64 = calls.map(|one| one["calls"].as_u64().unwrap()).sum();
        assert!(recorded["complete"] == false && (100..40_000).contains(&calls), "{recorded:#}");
        // The model is of what is in it, all of it and no more.
        let model = run(dir.path(), &format!("model tmpfs/{form} --json")).assert_success().json();
        assert_eq!(model["operations"], calls, "{model:#}");
        let length = fs::metadata(full.path.join(form)).unwrap().len();
        assert_eq!(model["cut_at_byte"].as_u64(), (form == "recording").then_some(length));
        fs::remove_file(full.path.join(form)).unwrap();
    }
}

#[test]
fn what_reached_the_file_of_a_killed_recorder_is_a_recording() {
    need!(recordable());
    let dir = Dir::new();
    dir.write("a", vec![7; 100 * 4096]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "read go; dd if=a of=b bs=4k status=none; read end"]);
    shell.current_dir(dir.path()).stdin(Stdio::piped());
    let mut shell = start(shell);
    let mut running = start(fiord(dir.path(), &format!("record -o r --pid {}", shell.0.id())));
    until("the recording to begin", || dir.join("r").exists());
    let mut input = shell.0.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    let model = || run(dir.path(), "model r --json");
    let of_dd = |model: &Value| {
        let sections = model["sections"].as_array().unwrap().iter();
        let about = sections.map(|section| section["about"].as_str().unwrap().to_string());
        about.filter(|about| about.contains(": 100 writes (400KiB)")).count() == 1
    };
    until("the calls to be written", || {
        let ran = model();
        ran.status == Some(0) && of_dd(&ran.json())
    });
    signal(running.0.id(), "KILL");
    running.0.wait().unwrap();
    let model = model().assert_success().json();
    assert!(of_dd(&model) && model["cut_at_byte"].is_u64(), "{model:#}");
    let text = model["job_file"].as_str().unwrap();
    assert!(text.contains("The recording is cut off"), "{text}");
    // The next removes what it left in the kernel, and replaces the file.
    run(dir.path(), "record -o r -- true").assert_success();
    drop(input);
    shell.0.wait().unwrap();
}

#[test]
fn one_that_is_killed_early_leaves_no_event_on_in_the_kernel() {
    need!(recordable());
    let dir = Dir::new();
    let tracing = need!(Mount::new(&dir, "tracing", &["-t", "tracefs", "none"]));
    // What is on in the kernel's own trace, which is that of others.
    let switches = || fs::read_to_string(tracing.path.join("set_event")).unwrap();
    let before = switches();
    let instance = |process: u32| tracing.path.join(format!("instances/fiord-{process}"));
    let mut killed = Vec::new();
    // As soon as it has so many files open, or an event is on: before, while and after it tells the kernel what to record.
    for open in (0..40).step_by(5) {
        let mut running = start(fiord(dir.path(), "record -o r --force -- true"));
        let process = running.0.id();
        let count = || fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
        until("files to be open", || count() >= open || switches() != before || dir.join("r").exists());
        signal(process, "KILL");
        running.0.wait().unwrap();
        let _ = fs::remove_file(dir.join("r"));
        // Others may switch events on for a while.
        until("the events of the kernel's own trace to be as before", || switches() == before);
        killed.push(process);
    }
    run(dir.path(), "record -o r -- true").assert_success();
    let left: Vec<u32> = killed.into_iter().filter(|process| instance(*process).exists()).collect();
    assert!(left.is_empty(), "instances of killed processes {left:?}");
}

#[test]
fn how_the_command_ended_is_told() {
    need!(recordable());
    let dir = Dir::new();
    let failed: Ran = run(dir.path(), "record -o r --json -- false");
    assert_eq!(failed.assert_success().json()["exit_status"], "exit status: 1");
    let missing = run(dir.path(), "record -o r2 -- no-such-program");
    assert!(missing.assert_status(1).stderr.contains("no-such-program: No such file"), "{missing:?}");
    assert!(!dir.join("r2").exists());
    let nobody = run(dir.path(), "record -o r2 --pid 4194999");
    assert!(nobody.assert_status(1).stderr.contains("there is no such process"), "{nobody:?}");
    let left: BTreeMap<_, _> =
        fs::read_dir(dir.path()).unwrap().flatten().map(|one| (one.file_name(), ())).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_model_is_run_beside_its_recording_and_leaves_nothing() {
    need!(recordable());
    let dir = Dir::new();
    fs::create_dir(dir.join("place")).unwrap();
    dir.write("data", vec![1; 4 << 20]);
    // What is there of that name is not the model's.
    dir.write("place/data.model", "mine");
    let job =
        "--name=a --ioengine=psync --rw=randrw --bs=4k --filename=data --size=4m --fdatasync=8 --norandommap";
    let fiord = env!("CARGO_BIN_EXE_fiord");
    run(dir.path(), &format!("record -o r --json -- {fiord} {job} --output=report")).assert_success();
    let verified = run(dir.path(), "model r --verify=place --json").assert_success().json();
    assert_documented(&verified, "model");
    let figures = verified["as_run"].as_array().unwrap();
    let figure = |name: &str| {
        figures.iter().find(|one| one["figure"] == name).unwrap_or_else(|| panic!("{verified:#}"))
    };
    for name in ["reads", "writes", "read bytes", "write bytes", "datasync calls"] {
        let is = ["trace", "run", "model"].map(|side| figure(name)[side].as_f64().unwrap());
        assert!(is[1] > 0.0 && (is[1] - is[2]).abs() <= is[2] / 50.0 + 1.0, "{name}: {is:?}");
        assert_eq!(figure(name)["verdict"], "close", "{name}: {is:?}");
    }
    for name in ["reads a second", "p50 of write latency", "p99 of read latency", "p50 of datasync latency"] {
        assert!(figure(name)["run"].as_f64().unwrap() > 0.0 && figure(name)["model"].is_null(), "{name}");
    }
    let sentence = verified["as_run_sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Close: ") || sentence.contains("in the model as run ("), "{sentence}");
    let left: Vec<_> =
        fs::read_dir(dir.join("place")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["data.model"]);
    assert_eq!(fs::read(dir.join("place/data.model")).unwrap(), b"mine");
    let text = run(dir.path(), "model r -o app.fio --verify=place").assert_success().stdout.clone();
    assert_fits_terminal(&text);
    assert!(text.contains("AS RUN"), "{text}");
    let nowhere = run(dir.path(), "model r -o app.fio --verify=nowhere");
    assert_eq!(nowhere.status, Some(1), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("name a directory to run the model in"), "{}", nowhere.stderr);
}

#[test]
fn without_privileges_it_says_what_to_do() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, "record -o r -- true");
    assert!(ran.assert_status(1).stderr.contains("run as root"), "{ran:?}");
    assert_fits_terminal(&ran.stdout);
    // A model is then compared by calculation alone.
    dir.write("t", "fio version 3 iolog\n0 f add\n1 f read 0 4096\n2 f read 4096 4096\n");
    as_ordinary_user(&dir, &binary, "model t").assert_success();
    let ran = as_ordinary_user(&dir, &binary, "model t --verify=.");
    assert!(ran.assert_status(1).stderr.contains("or leave out --verify"), "{ran:?}");
}
