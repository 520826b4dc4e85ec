//! Each signal at each phase of a run, the engines in turn, and at each study: a complete report, the right exit
//! status, and nothing left behind.
//!
//! Invariant: a phase is seen to be reached (a file exists, bytes have moved) before the signal is sent. Every pair of
//! signal and phase is tried, and every engine in every phase; not every triple.

use std::fs;
use std::path::Path;

use fiord_testing::skipped;
use serde_json::Value;

use crate::common::{Dir, Ran, Running, finish, fiord, signal, start, until, until_moved};

/// The effect of a signal on a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It ends, with a report.
    Ends(i32),
    /// It prints a status and continues.
    Status,
    /// It continues.
    Nothing,
}

const SIGNALS: [(&str, Answer); 9] = [
    ("INT", Answer::Ends(2)),
    ("TERM", Answer::Ends(15)),
    ("HUP", Answer::Ends(1)),
    ("XCPU", Answer::Ends(24)),
    ("ALRM", Answer::Ends(14)),
    ("USR1", Answer::Status),
    ("PIPE", Answer::Nothing),
    ("XFSZ", Answer::Nothing),
    ("WINCH", Answer::Nothing),
];

const ENGINES: [&str; 9] =
    ["null", "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring"];

/// A phase of a run: additional lines of the job file, and how to see that it is reached.
struct Phase {
    name: &'static str,
    options: &'static str,
    reached: fn(&Dir, &Running),
}

const COMMAND: &str = "echo $$ > pid && sleep 1000";

const PHASES: [Phase; 6] = [
    Phase {
        name: "layout",
        options: "[lays]\nfilename=large\nrw=read\nsize=4g\nfallocate=none\n",
        reached: |_, running| until_moved(running, 4 << 20),
    },
    Phase { name: "prerun", options: "exec_prerun=COMMAND\n", reached: |dir, _| until_command_runs(dir) },
    Phase { name: "delay", options: "startdelay=100\n", reached: |_, running| until_moved(running, 1 << 20) },
    Phase { name: "ramp", options: "ramp_time=100\n", reached: |_, running| until_moved(running, 1 << 20) },
    Phase { name: "running", options: "", reached: |_, running| until_moved(running, 1 << 20) },
    Phase {
        name: "postrun",
        options: "runtime=1ms\nexec_postrun=COMMAND\n",
        reached: |dir, _| until_command_runs(dir),
    },
];

fn until_command_runs(dir: &Dir) {
    until("the command runs", || fs::read_to_string(dir.join("pid")).is_ok_and(|text| text.ends_with('\n')));
}

/// The job under test on this engine, and one whose bytes show that the run has begun.
fn job_file(phase: &Phase, engine: &str) -> String {
    let options = phase.options.replace("COMMAND", COMMAND);
    format!(
        "[global]\nbs=4k\nsize=1m\ntime_based\nruntime=60\n[counted]\nfilename=counted\nrw=write\nioengine=psync\n\
         [job]\nfilename=f\nrw=randrw\nioengine={engine}\niodepth=4\niomem=shm\n{options}"
    )
}

/// Segments of shared memory that a process has created.
fn segments_of(pid: u32) -> usize {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let creator = |line: &str| line.split_whitespace().nth(4).and_then(|word| word.parse::<u32>().ok());
    text.lines().skip(1).filter(|line| creator(line) == Some(pid)).count()
}

/// The consecutive documents in a report.
fn documents(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().unwrap_or_else(|error| {
        panic!("no JSON: {error}: {text}");
    })
}

#[track_caller]
fn assert_nothing_is_left(what: &str, dir: &Dir, pid: u32) {
    if let Ok(command) = fs::read_to_string(dir.join("pid")) {
        assert!(!Path::new("/proc").join(command.trim()).exists(), "{what}: the command is left");
    }
    assert_eq!(segments_of(pid), 0, "{what}: shared memory is left");
    const OWN: [&str; 9] =
        ["counted", "f", "job.fio", "job.postrun.txt", "job.prerun.txt", "large", "out", "pid", "state"];
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(OWN.contains(&name.as_str()), "{what}: {name} is left");
    }
}

/// Sends a signal at a phase; whether the engine works here.
fn tried(phase: &Phase, engine: &str, (name, answer): (&str, Answer)) -> bool {
    let what = format!("SIG{name} at {} with {engine}", phase.name);
    let dir = Dir::new();
    dir.write("job.fio", job_file(phase, engine));
    let mut command = fiord(dir.path(), "--output=out --output-format=json job.fio");
    command.env("XDG_STATE_HOME", dir.join("state"));
    let running = start(command);
    let pid = running.0.id();
    (phase.reached)(&dir, &running);
    signal(pid, name);
    let status = match answer {
        Answer::Ends(number) => 128 + number,
        Answer::Status => {
            until("the status is there", || dir.text("out").ends_with("}\n"));
            signal(pid, "TERM");
            143
        }
        Answer::Nothing => {
            signal(pid, "TERM");
            143
        }
    };
    if phase.name == "postrun" {
        // Otherwise the command has its grace period.
        signal(pid, "INT");
    }
    let ran: Ran = finish(running);
    let report = dir.text("out");
    if report.contains("set up engine") {
        skipped(format_args!("the kernel refuses {engine}"));
        return false;
    }
    // An INT that comes first counts as the one that ended it.
    let is_right = ran.status == Some(status) || (phase.name == "postrun" && ran.status == Some(130));
    assert!(is_right, "{what}: {status} was expected: {ran:?}");
    let documents = documents(&report);
    assert_eq!(documents.len(), if answer == Answer::Status { 2 } else { 1 }, "{what}: {report}");
    for document in &documents {
        let jobs = document["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), if phase.name == "layout" { 3 } else { 2 }, "{what}: {document}");
        assert!(jobs.iter().all(|job| job["error"] == 0), "{what}: {document}");
    }
    assert_nothing_is_left(&what, &dir, pid);
    true
}

/// Tries all pairs of signal and phase with the engines in turn, starting with phase `first`.
fn walk(phases: &[Phase], first: usize) {
    for (at, phase) in phases.iter().enumerate() {
        for (turn, signal) in SIGNALS.into_iter().enumerate() {
            tried(phase, ENGINES[(first + at + turn) % ENGINES.len()], signal);
        }
    }
}

#[test]
fn signals_before_the_first_io() {
    walk(&PHASES[..3], 0);
}

#[test]
fn signals_from_the_first_io_on() {
    walk(&PHASES[3..], 3);
}

/// Bytes of all files in a directory and those below it.
fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[test]
fn signals_at_each_study() {
    let lines = [
        "quick --time 60 --size 64M .",
        "matrix --time 60 --size 64M .",
        "check etcd --time 60 .",
        "sweep --over bs=4k,8k --filename=f --rw=randwrite --size=8m --time_based --runtime=60 --ioengine=psync",
    ];
    let ends = SIGNALS.into_iter().filter_map(|(name, answer)| match answer {
        Answer::Ends(number) => Some((name, number)),
        Answer::Status | Answer::Nothing => None,
    });
    let ends: Vec<(&str, i32)> = ends.collect();
    for (at, line) in lines.into_iter().enumerate() {
        for (name, number) in [ends[at % ends.len()], ends[(at + 2) % ends.len()]] {
            let dir = Dir::new();
            let running = start(fiord(dir.path(), &format!("{line} --no-history")));
            let pid = running.0.id();
            until("its files hold something", || bytes_below(dir.path()) > 0);
            // Studies print no status, and continue.
            signal(pid, "USR1");
            signal(pid, name);
            let ran = finish(running);
            assert_eq!(ran.status, Some(128 + number), "{line}: {name}: {ran:?}");
            assert!(ran.all_output().contains(&format!("ended by SIG{name}")), "{line}: {ran:?}");
            let left: Vec<_> =
                fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(left.iter().all(|name| name == "f"), "{line}: {name}: {left:?}");
        }
    }
}
