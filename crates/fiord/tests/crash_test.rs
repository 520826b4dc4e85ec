//! `fiord crash-test`: the run, its journal, and the verdict.
//!
//! Invariant: only what was synced is demanded back, and what is not there is named.

use std::process::Stdio;

use fiord_testing::need;

use crate::common::schema::assert_documented;
use crate::common::{Dir, LoopDevice, Mount, Ran, finish, fiord, signal, start, until};

const RUN: &str = "crash-test run data --journal - --size 1M --per-sync 16 --syncs 40";

const DATA: &str = "data/fiord-crash-test.data";

/// A directory in which a test has run, with its journal.
fn ran() -> Dir {
    let dir = Dir::new();
    std::fs::create_dir(dir.join("data")).unwrap();
    let ran = dir.run(RUN);
    let journal = ran.assert_success().stdout.clone();
    dir.write("journal", journal);
    dir
}

fn check(dir: &Dir) -> Ran {
    dir.run("crash-test check data --journal journal --json")
}

#[test]
fn pages_and_errors_name_the_whole_command() {
    let dir = Dir::new();
    let help = dir.run("crash-test run --help").assert_success().stdout.clone();
    assert!(help.contains("Usage: fiord crash-test run "), "{help}");
    let wrong = dir.run("crash-test check data");
    assert!(wrong.assert_status(1).stderr.contains("Usage: fiord crash-test check "), "{wrong:?}");
}

#[test]
fn what_was_synced_is_there() {
    let dir = ran();
    let ran = dir.run("crash-test check data --journal journal");
    assert!(ran.assert_success().stdout.contains("all are there"), "{ran:?}");
    let document = check(&dir).assert_success().json();
    assert_eq!(
        (document["result"][0]["syncs"].as_u64(), document["result"][0]["lost"].as_u64()),
        (Some(40), Some(0))
    );
    assert!(document["result"][0]["blocks"].as_u64() > Some(200), "640 writes to 256 blocks: {document}");
}

#[test]
fn what_was_synced_and_is_lost_is_named_with_its_kind() {
    let dir = ran();
    let blocks = check(&dir).json()["result"][0]["blocks"].as_u64().unwrap();
    let whole = dir.read(DATA);
    let losses = |bytes: &[u8]| {
        dir.write(DATA, bytes);
        let ran = check(&dir);
        ran.assert_status(7);
        assert_documented(&ran.json(), "crash-test");
        ran.json()["losses"].as_array().unwrap().clone()
    };
    let all = losses(&[]);
    assert_eq!(all.len() as u64, blocks, "a file that was cut off has lost everything");
    assert!(all.iter().all(|loss| loss["kind"] == "zero"));
    let (first, second) = (&all[0]["offset_bytes"], &all[1]["offset_bytes"]);
    let [at, other] = [first, second].map(|offset| offset.as_u64().unwrap() as usize);
    let mut moved = whole.clone();
    moved.copy_within(other..other + 4096, at);
    let found = losses(&moved);
    assert_eq!((found.len(), &found[0]["kind"]), (1, &"misplaced".into()));
    assert_eq!(found[0]["found_offset_bytes"].as_u64(), Some(other as u64));
    let mut torn = whole.clone();
    torn[at + 2048..at + 4096].fill(0);
    let found = losses(&torn);
    assert_eq!((found.len(), &found[0]["kind"], &found[0]["offset_bytes"]), (1, &"torn".into(), first));
    let ran = dir.run("crash-test check data --journal journal");
    ran.assert_status(7).assert_prints(&["1 LOST", "torn"]);
}

#[test]
fn a_truncated_journal_requires_only_what_it_contains() {
    let dir = ran();
    let journal = dir.text("journal");
    let cut = journal.split("synced 1\n").next().unwrap();
    dir.write("journal", cut);
    dir.write(DATA, [0; 4096]);
    assert_eq!(check(&dir).assert_success().json()["result"][0]["blocks"].as_u64(), Some(0));
    dir.write("journal", "something else\n");
    let ran = check(&dir);
    ran.assert_status(1);
    assert!(ran.stderr.contains("not a journal"), "{ran:?}");
}

#[test]
fn json_of_a_run_says_what_was_written_and_what_ended_it() {
    let dir = Dir::new();
    // The journal is on another file system than the target.
    let _other = need!(Mount::tmpfs(&dir, "size=4m"));
    std::fs::create_dir(dir.join("data")).unwrap();
    let line = "crash-test run data --json --size 1M --per-sync 16";
    let dry = dir.run(&format!("{line} --journal - --dry-run")).assert_success().json();
    assert_eq!((&dry["syncs"], &dry["size_bytes"]), (&serde_json::Value::Null, &(1 << 20).into()));
    let document = dir.run(&format!("{line} --journal tmpfs/journal --syncs 3")).assert_success().json();
    assert_documented(&document, "crash-test-run");
    assert_eq!((&document["syncs"], &document["ended_by"]), (&3.into(), &serde_json::Value::Null));
    std::fs::remove_file(dir.join(DATA)).unwrap();
    let running = start(fiord(dir.path(), &format!("{line} --journal tmpfs/another")));
    until("a sync", || {
        std::fs::read_to_string(dir.join("tmpfs/another")).is_ok_and(|text| text.contains("synced"))
    });
    signal(running.0.id(), "INT");
    let ended = finish(running).assert_status(130).json();
    assert!(ended["ended_by"] == "SIGINT" && ended["syncs"].as_u64() > Some(0), "{ended}");
    dir.run(&format!("{line} --journal -")).assert_status(1).assert_prints(&["--journal=-"]);
}

/// What is written after the journal has ended could not be judged.
#[test]
fn a_run_ends_with_its_journal() {
    for (full, why) in [(true, "No space left on device (ENOSPC)"), (false, "Broken pipe (EPIPE)")] {
        let dir = Dir::new();
        std::fs::create_dir(dir.join("data")).unwrap();
        let mut command = fiord(dir.path(), "crash-test run data --journal - --size 1M --time 1m");
        let stdout = match full {
            true => Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap()),
            // Nobody reads it.
            false => std::io::pipe().unwrap().1.into(),
        };
        let ran = command.stdout(stdout).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(stderr, format!("fiord crash-test: standard output: no journal: {why}\n"));
        assert_eq!(ran.status.code(), Some(1));
    }
}

#[test]
fn nothing_is_written_that_was_not_meant() {
    let dir = ran();
    let again = dir.run(RUN);
    again.assert_status(1);
    assert!(again.stderr.contains("left by an earlier test"), "{again:?}");
    std::fs::create_dir(dir.join("new")).unwrap();
    let beside = dir.run("crash-test run new --journal j --syncs 1");
    beside.assert_status(1);
    assert!(beside.stderr.contains("name a file on another disk"), "{beside:?}");
    let dry = dir.run("crash-test run new --journal - --dry-run");
    assert!(dry.assert_success().stdout.contains("would write"), "{dry:?}");
    assert!(!dir.join("new/fiord-crash-test.data").exists() && !dir.join("j").exists());
    dir.write("file", "mine");
    let file = dir.run("crash-test run file --journal - --overwrite --syncs 1");
    file.assert_status(1);
    assert_eq!(dir.text("file"), "mine");
}

#[test]
fn a_device_in_use_is_refused() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    let line = format!("crash-test run {} --journal - --syncs 1", device.path);
    dir.run(&line).assert_status(2).assert_prints(&[&device.path, "--overwrite allows it"]);
    let _mount = need!(Mount::ext4(&dir, &device));
    for dry in ["", " --dry-run"] {
        let ran = dir.run(&format!("{line} --overwrite{dry}"));
        ran.assert_status(2).assert_prints(&[&device.path, "in use", "mounted"]);
    }
}
