//! The same runs on every engine, on a disk, in memory and on a block device, buffered and direct.
//!
//! Invariant: the body knows an engine only by its name; another engine is one word in `on_every_engine!`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fiord_engine::registry::ENGINES;
use fiord_plan::{EngineName, FileUse};
use fiord_testing::{need, skip};
use serde_json::Value;

use crate::common::{
    Dir, LoopDevice, Ran, assert_fits_terminal, direct_works_in, finish, fiord, helper, start,
};

const BYTES: u64 = 1 << 20;
const BLOCKS: u64 = BYTES / 4096;

/// A target of `BYTES` bytes.
struct Target {
    /// As typed.
    name: String,
    is_device: bool,
    direct: bool,
    // Detached before the directory with its backing file is removed.
    _device: Option<LoopDevice>,
    dir: Dir,
}

impl Target {
    fn file_under(parent: &Path, direct: bool) -> Result<Target, String> {
        let dir = Dir::under(parent)?;
        if direct {
            direct_works_in(dir.path())?;
        }
        Ok(Target { name: "data".to_string(), is_device: false, direct, _device: None, dir })
    }

    fn on_disk(direct: bool) -> Result<Target, String> {
        Target::file_under(Path::new(env!("CARGO_TARGET_TMPDIR")), direct)
    }

    fn in_memory(direct: bool) -> Result<Target, String> {
        Target::file_under(Path::new("/dev/shm"), direct)
    }

    fn on_a_device(direct: bool) -> Result<Target, String> {
        let dir = Dir::new();
        let device = LoopDevice::new(&dir, BYTES)?;
        Ok(Target { name: device.path.clone(), is_device: true, direct, _device: Some(device), dir })
    }

    fn run(&self, engine: &str, options: &str) -> Ran {
        let line = format!(
            "--output-format=json --name=job --filename={} --size={BYTES} --bs=4k --ioengine={engine} --iodepth=8 \
             --direct={} {options}",
            self.name,
            u8::from(self.direct)
        );
        self.dir.run(&line)
    }

    /// The contents, as another program sees them.
    fn bytes(&self) -> Vec<u8> {
        let path = if self.is_device { PathBuf::from(&self.name) } else { self.dir.join(&self.name) };
        fs::read(path).unwrap()
    }
}

/// The kernel's refusal of an engine; seccomp forbids io_uring in many containers.
fn refused(ran: &Ran) -> Result<(), String> {
    let said = ran.all_output();
    let refusal = ["ENOSYS", "EPERM"].iter().any(|errno| said.contains(errno));
    if ran.status == Some(1) && said.contains("set up engine") && refusal { Err(said) } else { Ok(()) }
}

#[track_caller]
fn assert_counts(ran: &Ran, expected: [u64; 3]) -> Value {
    ran.assert_success();
    let document = ran.json();
    let job = document["jobs"][0].clone();
    assert_eq!(job["error"], 0, "{job}");
    let count = |direction: &str| job[direction]["total_ios"].as_u64().unwrap();
    let counts = [count("read"), count("write"), count("trim")];
    assert_eq!(counts, expected, "reads, writes, trims");
    for direction in ["read", "write", "trim"] {
        let job = &job[direction];
        assert_eq!(job["io_bytes"].as_u64(), Some(count(direction) * 4096), "bytes of {direction}");
        if count(direction) > 0 {
            assert_eq!(job["lat_ns"]["N"].as_u64(), Some(count(direction)), "latencies of {direction}");
        }
    }
    job
}

/// Writes the whole target, in order and at random, reads it, does both at once, and discards it.
fn body(engine: &str, target: &Target) {
    let moves_bytes = engine != "null";
    let ran = target.run(engine, "--rw=randwrite --buffer_pattern=0xdeadbeef");
    need!(refused(&ran));
    assert_counts(&ran, [0, BLOCKS, 0]);
    if moves_bytes {
        let written = target.bytes();
        assert_eq!(written.len() as u64, BYTES);
        let wrong = written.chunks(4).position(|word| word != [0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(wrong, None, "a word that was not written");
    } else if !target.is_device {
        assert_eq!(target.dir.contents(), [], "an engine that moves nothing made a file");
    }
    assert_counts(&target.run(engine, "--rw=randread"), [BLOCKS, 0, 0]);
    assert_counts(&target.run(engine, "--rw=read --loops=2"), [2 * BLOCKS, 0, 0]);

    let ran = target.run(engine, "--rw=randrw --rwmixread=70");
    let reads = ran.json()["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert!((BLOCKS / 2..BLOCKS).contains(&reads), "{reads} of {BLOCKS} are reads, 70% should be");
    assert_counts(&ran, [reads, BLOCKS - reads, 0]);

    let job =
        assert_counts(&target.run(engine, "--rw=write --buffer_pattern=0x5a --fdatasync=16"), [0, BLOCKS, 0]);
    let syncs = job["sync"]["total_ios"].as_u64().unwrap();
    assert!((BLOCKS / 16 - 1..=BLOCKS / 16).contains(&syncs), "{syncs} syncs of {BLOCKS} writes");
    if moves_bytes {
        assert!(target.bytes().iter().all(|byte| *byte == 0x5a), "a byte that was not written");
    }
    if target.is_device {
        assert_counts(&target.run(engine, "--rw=randtrim"), [0, 0, BLOCKS]);
        if moves_bytes {
            assert!(target.bytes().iter().all(|byte| *byte == 0), "a byte that was not discarded");
        }
    }
}

macro_rules! on_every_engine {
    ($($engine:ident)+) => { $(
        mod $engine {
            use super::*;

            on_every_engine!(@at $engine:
                on_disk_buffered = Target::on_disk(false);
                on_disk_direct = Target::on_disk(true);
                in_memory_buffered = Target::in_memory(false);
                in_memory_direct = Target::in_memory(true);
                on_a_device_buffered = Target::on_a_device(false);
                on_a_device_direct = Target::on_a_device(true);
            );
        }
    )+ };
    (@at $engine:ident: $($test:ident = $target:expr;)+) => { $(
        #[test]
        fn $test() {
            body(stringify!($engine), &need!($target));
        }
    )+ };
}

on_every_engine!(null sync psync vsync pvsync pvsync2 splice mmap posixaio libaio io_uring);

/// The C library's threads serve all jobs of the process.
#[test]
fn jobs_on_posixaio_write_to_their_own_files() {
    let patterns = ["0x11", "0x22", "0x33", "0x44"];
    for between in ["", "--stonewall"] {
        let dir = Dir::new();
        let mut line =
            "--output-format=json --ioengine=posixaio --iodepth=4 --rw=randwrite --bs=4k --size=256k"
                .to_string();
        for (number, pattern) in patterns.iter().enumerate() {
            line +=
                &format!(" --name=job{number} --filename=file{number} --buffer_pattern={pattern} {between}");
        }
        let document = dir.run(&line).assert_success().json();
        assert_eq!(document["jobs"].as_array().map(Vec::len), Some(patterns.len()));
        for number in 0..patterns.len() {
            let bytes = dir.read(&format!("file{number}"));
            let own = 0x11 * (number as u8 + 1);
            assert!(
                bytes.len() == 256 << 10 && bytes.iter().all(|byte| *byte == own),
                "file{number} {between}"
            );
        }
    }
}

#[test]
fn engines_are_listed_in_a_table_that_fits_a_terminal() {
    let dir = Dir::new();
    let text = dir.run("engines").assert_success().stdout.clone();
    let listed: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    let offered = dir.run("--enghelp").assert_success().stdout.clone();
    assert_eq!(listed, offered.lines().skip(1).map(str::trim).collect::<Vec<_>>());
    assert_fits_terminal(&text);
    assert!(text.contains("\nfiord's own cost: ") && text.contains(" (queued, depth 32);\n"), "{text}");
    assert_eq!(dir.contents(), [], "a file was made");
    assert!(dir.run("engines --help").assert_success().stdout.contains("Usage: fiord engines"));
    dir.run("engines now").assert_status(1);
}

/// Each name that fio has and fiord has not: why, and what to use.
#[test]
fn an_engine_that_is_not_built_in_is_refused_with_the_reason_and_the_nearest_one() {
    let dir = Dir::new();
    let document = dir.run("engines --json").assert_success().json();
    let missing = document["missing_engines"].as_array().unwrap();
    assert_eq!(missing.len() + ENGINES.0.len(), EngineName::ALL.len());
    for engine in missing {
        let name = engine["name"].as_str().unwrap();
        let instead = engine["instead"].as_str().unwrap_or_else(|| panic!("{name}: nothing is near it"));
        let reason = engine["reason"].as_str().unwrap_or_else(|| panic!("{name}: no reason"));
        let path = if name == "external" { "external:/tmp/engine.so" } else { name };
        let ran = dir.run(&format!("--name=a --size=4k --ioengine={path}"));
        let message = format!("engine {name} not loadable");
        ran.assert_status(1).assert_prints(&[&message, reason, instead]);
        let is_named = instead.contains("ioengine=") || name == "external";
        assert!(is_named, "{name}: {instead}");
        // What is recommended is there.
        for word in instead.split("ioengine=").skip(1) {
            let word = word.split(|end: char| !end.is_alphanumeric() && end != '_').next().unwrap();
            assert!(ENGINES.0.iter().any(|engine| engine.name.word() == word), "{name}: {word}");
        }
    }
    assert_eq!(dir.contents(), []);
    let unknown = dir.run("--name=a --size=4k --ioengine=syslet-rw");
    unknown
        .assert_status(1)
        .assert_prints(&["neither fio nor fiord has an engine of this name", "allowed: "]);
}

#[test]
fn engines_reported_as_working_do_work() {
    let dir = Dir::new();
    let document = dir.run("engines --json").assert_success().json();
    for engine in document["engines"].as_array().unwrap() {
        let name = engine["name"].as_str().unwrap();
        // Those of servers, connections and devices have tests with real ones (tests/servers, connections.rs, tests/guest).
        let known = ENGINES.0.iter().find(|known| known.name.word() == name).unwrap();
        let is_elsewhere = matches!(
            known.files,
            FileUse::Named | FileUse::Connected(_) | FileUse::Device | FileUse::Persistent
        );
        if is_elsewhere {
            continue;
        }
        // e4defrag.rs has its own file system.
        let file_system = helper("stat", &["-f", "-c", "%T", &dir.path().to_string_lossy()]);
        if name == "e4defrag" && file_system.as_deref() != Ok("ext2/ext3") {
            continue;
        }
        // What does other work than I/O must know what.
        let own = match name {
            "cpuio" => "--cpuload=50 --number_ios=2",
            "exec" => "--program=true",
            "e4defrag" => "--donorname=donor --inplace=1",
            _ => "",
        };
        let ran = dir
            .run(&format!("--name={name} --ioengine={name} --rw=write --bs=4k --size=64k --iodepth=4 {own}"));
        assert_eq!(ran.status == Some(0), engine["works"] == true, "{engine} {ran:?}");
        assert_eq!(engine["works"] == true, engine["refusal"].is_null(), "{engine}");
    }
    let cost = &document["self_cost"];
    assert!(cost["sync_ns_per_io"].as_f64().unwrap() > 0.0 && cost["queued_depth"] == 32, "{cost}");
}

/// The paths of all keys: `a.b` in an object, `a[].b` in each object of a list.
fn key_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let dot = if path.is_empty() { "" } else { "." };
            object.iter().for_each(|(key, value)| key_paths(value, &format!("{path}{dot}{key}"), found));
        }
        Value::Array(items) => items.iter().for_each(|item| key_paths(item, &format!("{path}[]"), found)),
        _ => {
            found.insert(path.to_string());
        }
    }
}

#[test]
fn the_json_keys_are_those_of_the_documentation() {
    let document = Dir::new().run("engines --json").assert_success().json();
    if document["io_uring"] == Value::Array(Vec::new()) {
        skip!("no io_uring here");
    }
    let mut written = BTreeSet::new();
    key_paths(&document, "", &mut written);
    assert_eq!(written, documented("engines"));
}

/// The keys of a section of `docs/json.md`.
fn documented(section: &str) -> BTreeSet<String> {
    let page = include_str!("../../../docs/json.md");
    let section = page.split("\n## ").find(|text| text.starts_with(&format!("{section}\n"))).unwrap();
    let documented = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    documented.map(str::to_string).collect()
}

/// A command whose state directory is `state` in the test's own.
fn with_state(dir: &Dir, line: &str) -> Ran {
    let mut command = fiord(dir.path(), line);
    command.env("XDG_STATE_HOME", dir.join("state"));
    finish(start(command))
}

#[test]
fn a_calibration_is_kept_until_it_is_damaged_or_asked_for_again() {
    let dir = Dir::new();
    let file = dir.join("state/fiord/calibration");
    let is_new =
        |line: &str| with_state(&dir, line).assert_success().json()["measured_now"] == Value::Bool(true);
    assert!(is_new("calibrate --json"));
    let kept = fs::read(&file).unwrap();
    assert!(!is_new("calibrate --json"));
    assert_eq!(fs::read(&file).unwrap(), kept);
    assert!(is_new("calibrate --again --json"));
    for damaged in ["", "fiord calibration 1\nmachine 5\nend\n"] {
        fs::write(&file, damaged).unwrap();
        assert!(is_new("calibrate --json"), "{damaged:?}");
        assert!(!is_new("calibrate --json"));
    }
    let text = with_state(&dir, "calibrate").assert_success().stdout.clone();
    assert!(text.contains("verify=crc32c, per KiB") && text.contains("measured earlier, kept in"), "{text}");
    // A path is not broken.
    let mut sentences = text.lines().filter(|line| line.contains(' '));
    assert!(sentences.all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_calibration_that_cannot_be_kept_is_shown_and_said_to_be_lost() {
    let dir = Dir::new();
    fs::write(dir.join("state"), "not a directory").unwrap();
    let ran = with_state(&dir, "calibrate --json");
    let document = ran.assert_success().json();
    assert_eq!((&document["file"], &document["measured_now"]), (&Value::Null, &Value::Bool(true)));
    assert!(
        document["costs"].as_array().unwrap().iter().all(|cost| cost["ns"].as_f64() >= Some(0.0)),
        "{document}"
    );
}

/// Only what needs it is calibrated, only what is recorded keeps it, and nobody hears of it.
#[test]
fn a_run_calibrates_only_if_its_ios_are_fast() {
    let dir = Dir::new();
    let file = dir.join("state/fiord/calibration");
    let null = "--output-format=json --name=a --ioengine=null --size=1g --time_based";
    let ran = |line: &str| with_state(&dir, line).assert_success().json();
    ran(&format!("{null} --runtime=100ms"));
    assert!(!file.exists(), "too short");
    ran(&format!("{null} --runtime=600ms --rate_iops=500 --disable_lat=1 --disable_clat=1"));
    assert!(!file.exists(), "nothing is known of its latency, and its thread sleeps");
    ran(&format!("{null} --runtime=600ms --trust=off"));
    assert!(!file.exists(), "no findings are wanted");
    // A thread that others keep waiting for a tenth of a second has no fast I/Os on average: of several runs one has.
    const RUNS_MAX: usize = 20;
    let is_found = |_| {
        let found = ran(&format!("{null} --runtime=600ms --no-history"));
        assert!(!file.exists(), "nothing is recorded");
        found["findings"].to_string().contains("tool-overhead")
    };
    assert!((0..RUNS_MAX).any(is_found), "no run was fast");
    let is_recorded = |_| {
        ran(&format!("{null} --runtime=600ms"));
        file.exists()
    };
    assert!((0..RUNS_MAX).any(is_recorded), "no run was fast");
}

#[test]
fn the_keys_of_a_calibration_are_those_of_the_documentation() {
    let document = with_state(&Dir::new(), "calibrate --json").assert_success().json();
    let mut written = BTreeSet::new();
    key_paths(&document, "", &mut written);
    assert_eq!(written, documented("calibrate"));
}
