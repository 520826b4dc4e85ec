//! Traces that come from elsewhere than a file, long ones, and several that are merged.
//!
//! Invariant: a replay is compared by its counts; that memory does not grow is seen at two lengths of a trace.

#![allow(clippy::print_stderr, reason = "how late replays were is the result that people read")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::thread;

use fiord_testing::need;

use crate::common::{
    Dir, LoopDevice, Ran, Running, finish, fiord, helper, run_with_input, signal, start, until, until_moved,
};

const TRACE: &str = "fio version 3 iolog\n0 f add\n0 f open\n10 f read 0 4096\n20 f write 4096 8192\n\
    30 f read 12288 4096\n40 f close\n";
const REPLAY: &str = "--name=r --ioengine=psync --output-format=json --read_iolog=";

fn with_target() -> Dir {
    let dir = Dir::new();
    dir.write("f", vec![0; 65_536]);
    dir
}

/// The reads and writes of each job.
fn counts(ran: &Ran) -> Vec<[u64; 2]> {
    ran.assert_success();
    let json = ran.json();
    let of =
        |job: &serde_json::Value| ["read", "write"].map(|which| job[which]["total_ios"].as_u64().unwrap());
    json["jobs"].as_array().unwrap().iter().map(of).collect()
}

/// Late by no less than nothing, and by no more than the whole run; with `replay_no_stall` there is nothing to be late for.
#[test]
fn a_replay_in_its_own_time_reports_how_late_it_was() {
    let dir = with_target();
    dir.write("t", TRACE);
    let timed = dir.run(&format!("{REPLAY}t --percentile_list=50:99"));
    let job = timed.assert_success().json()["jobs"][0].clone();
    let lateness = &job["replay"]["lateness_ns"];
    let figure = |value: &serde_json::Value| value.as_u64().unwrap();
    assert_eq!(figure(&lateness["N"]), 3, "{lateness}");
    let [median, p99] = ["50.000000", "99.000000"].map(|key| figure(&lateness["percentile"][key]));
    let (min, max) = (figure(&lateness["min"]), figure(&lateness["max"]));
    assert!(min <= median && median <= p99 && p99 <= max && max > 0, "{lateness}");
    assert_eq!(job.as_object().unwrap().keys().next_back().map(String::as_str), Some("replay"));
    let text = dir.run("--name=r --ioengine=psync --read_iolog=t").assert_success().stdout.clone();
    assert!(text.contains("\nReplay lateness, from the times in the trace:\n  r:\n    lateness ("), "{text}");
    let untimed = dir.run(&format!("{REPLAY}t --replay_no_stall=1"));
    assert!(untimed.assert_success().json()["jobs"][0]["replay"].is_null());
    let text = dir
        .run("--name=r --ioengine=psync --read_iolog=t --replay_no_stall=1")
        .assert_success()
        .stdout
        .clone();
    assert!(!text.contains("Replay lateness"), "{text}");
}

/// `FIORD_IDLE=1 cargo test -p fiord --test it half_of` on a machine with nothing else to do. On a clock that nothing
/// disturbs, `a_replay_is_on_time` of `fiord-worker` is the same.
#[test]
fn half_of_the_ios_of_a_replay_are_less_than_20_us_late() {
    need!(fiord_testing::idle_machine());
    let dir = with_target();
    let ios: String = (1..=4000).map(|io| format!("{} f read {} 4096\n", io * 500, io % 16 * 4096)).collect();
    dir.write("t", format!("fio version 3 iolog\n0 f add\n0 f open\n{ios}"));
    for engine in ["psync", "libaio", "io_uring"] {
        let ran = dir.run(&format!("{REPLAY}t --ioengine={engine} --iodepth=8 --percentile_list=50:99"));
        let lateness = ran.assert_success().json()["jobs"][0]["replay"]["lateness_ns"].clone();
        assert_eq!(lateness["N"], 4000);
        let median_ns = lateness["percentile"]["50.000000"].as_u64().unwrap();
        eprintln!("{engine}: {median_ns} ns at the median");
        assert!(median_ns < 20_000, "{engine}: {lateness}");
    }
}

#[test]
fn a_trace_may_come_from_standard_input() {
    let dir = with_target();
    for name in ["-", "/dev/stdin"] {
        assert_eq!(
            counts(&run_with_input(dir.path(), &format!("{REPLAY}{name}"), TRACE)),
            [[2, 1]],
            "{name}"
        );
    }
    // It is read once, however many replay it.
    let both = run_with_input(dir.path(), &format!("{REPLAY}- --numjobs=2"), TRACE);
    assert_eq!(counts(&both), [[2, 1], [2, 1]]);
}

// divergence: a trace from a pipe
#[test]
fn a_trace_may_come_from_a_pipe_or_a_socket_and_leaves_nothing_behind() {
    let dir = with_target();
    fs::create_dir(dir.join("kept")).unwrap();
    let pipe = dir.join("pipe");
    helper("mkfifo", &[&pipe.to_string_lossy()]).unwrap();
    let replay = |name: &str| {
        let mut command = fiord(dir.path(), &format!("{REPLAY}{name}"));
        command.env("TMPDIR", dir.join("kept"));
        start(command)
    };
    let running = replay("pipe");
    OpenOptions::new().write(true).open(&pipe).unwrap().write_all(TRACE.as_bytes()).unwrap();
    assert_eq!(counts(&finish(running)), [[2, 1]]);
    let listener = UnixListener::bind(dir.join("socket")).unwrap();
    let sender = thread::spawn(move || listener.accept().unwrap().0.write_all(TRACE.as_bytes()).unwrap());
    assert_eq!(counts(&finish(replay("socket"))), [[2, 1]]);
    sender.join().unwrap();
    assert_eq!(fs::read_dir(dir.join("kept")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_a_trace_is_refused() {
    let dir = with_target();
    fs::create_dir(dir.join("d")).unwrap();
    let refused = |line: &str| crate::common::run(dir.path(), line).assert_status(1).all_output();
    assert!(refused(&format!("{REPLAY}d")).contains("neither a file nor a pipe nor a socket"));
    let mut command = fiord(dir.path(), &format!("{REPLAY}-"));
    command.env("TMPDIR", dir.join("absent")).stdin(File::open(dir.join("f")).unwrap());
    finish(start(command)).assert_status(1).assert_prints(&[
        "- cannot be replayed",
        "cannot be kept in",
        "absent",
    ]);
}

/// Peak memory, in KiB, of a replay of this many reads that come through a pipe.
fn peak_kib(dir: &Dir, ios: usize) -> u64 {
    let pipe = dir.join(&format!("pipe{ios}"));
    helper("mkfifo", &[&pipe.to_string_lossy()]).unwrap();
    let line = format!("--name=r --ioengine=psync --read_iolog=pipe{ios}");
    let mut command = fiord(dir.path(), &line);
    command.env("TMPDIR", dir.path());
    let running: Running = start(command);
    let mut pipe = OpenOptions::new().write(true).open(&pipe).unwrap();
    let reads = "0 f read 0 4096\n".repeat(ios);
    // The last one is due after the end of the run.
    write!(pipe, "fio version 3 iolog\n0 f add\n0 f open\n{reads}900000000 f read 0 4096\n").unwrap();
    drop(pipe);
    until_moved(&running, ios as u64 * 4096);
    let mut peak_kib = 0;
    until("the peak is known", || {
        let status = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak_kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        peak_kib > 0
    });
    signal(running.0.id(), "INT");
    assert_eq!(finish(running).status, Some(128 + 2));
    peak_kib
}

#[test]
fn memory_does_not_grow_with_the_length_of_a_trace() {
    let dir = with_target();
    // The longer trace has 3 MB of text, or 8 MB of operations.
    let (short_kib, long_kib) = (peak_kib(&dir, 20_000), peak_kib(&dir, 200_000));
    assert!(long_kib < short_kib + 2048, "{short_kib} KiB, and {long_kib} KiB for ten times the length");
}

/// A read of 4096 bytes in a binary trace, of the device 7:`minor`.
fn event(at_ns: u64, sector: u64, minor: u32) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let head = words(&[0x6561_7407, 1]);
    let tail = words(&[4096, 1 << 16 | 1, 77, 7 << 20 | minor, 0, 0]);
    [head, at_ns.to_le_bytes().to_vec(), sector.to_le_bytes().to_vec(), tail].concat()
}

/// Times, sectors and minor numbers of the events of a binary trace.
fn events(trace: &[u8]) -> Vec<(u64, u64, u32)> {
    let u64_at = |event: &[u8], at: usize| u64::from_le_bytes(event[at..at + 8].try_into().unwrap());
    let minor = |event: &[u8]| u32::from_le_bytes(event[36..40].try_into().unwrap()) & 0xf_ffff;
    trace.chunks(48).map(|event| (u64_at(event, 8), u64_at(event, 16), minor(event))).collect()
}

fn with_traces() -> Dir {
    let dir = with_target();
    dir.write("a", [event(500, 0, 0), event(700, 8, 0)].concat());
    dir.write("b", [event(100, 16, 1), event(250, 24, 1), event(1100, 32, 1)].concat());
    dir
}

// divergence: `merge_blktrace_file`
#[test]
fn traces_are_merged_in_the_order_of_their_scaled_and_repeated_times() {
    let dir = with_traces();
    let merge = "--name=r --merge-blktrace-only --read_iolog=a:b --merge_blktrace_file=both";
    assert_eq!(dir.run(merge).assert_success().stdout, "");
    assert_eq!(events(&dir.read("both")), [(0, 0, 0), (0, 16, 1), (150, 24, 1), (200, 8, 0), (1000, 32, 1)]);
    // What was in the file is gone.
    dir.run(&format!("{merge} --merge_blktrace_scalars=50:12.5 --merge_blktrace_iters=2:1")).assert_success();
    let merged = [(0, 0, 0), (0, 16, 1), (18, 24, 1), (100, 8, 0), (100, 0, 0), (125, 32, 1), (200, 8, 0)];
    assert_eq!(events(&dir.read("both")), merged);
}

#[test]
fn what_was_merged_is_replayed() {
    let dir = with_traces();
    let replay = "--name=r --ioengine=psync --output-format=json --read_iolog=a:b --merge_blktrace_file=both \
                  --replay_redirect=f";
    assert_eq!(counts(&dir.run(replay)), [[5, 0]]);
    assert_eq!(events(&dir.read("both")).len(), 5);
    assert_eq!(counts(&dir.run(&format!("{replay} --numjobs=2"))), [[5, 0], [5, 0]]);
    // Parts may come from anywhere.
    let mut command = fiord(dir.path(), &replay.replace("a:b", "-:b"));
    command.stdin(File::open(dir.join("a")).unwrap());
    assert_eq!(counts(&finish(start(command))), [[5, 0]]);
}

// divergence: lists of `merge_blktrace_scalars`
#[test]
fn what_cannot_be_merged_is_refused_and_nothing_is_written() {
    let dir = with_traces();
    dir.write("iolog", TRACE);
    for (line, why) in [
        (
            "--read_iolog=a:b --merge_blktrace_file=both --merge_blktrace_scalars=50",
            "1 number(s) for the 2 trace(s)",
        ),
        (
            "--read_iolog=a --merge_blktrace_file=both --merge_blktrace_iters=1:2",
            "2 number(s) for the 1 trace(s)",
        ),
        ("--read_iolog=a --merge_blktrace_file=both --merge_blktrace_iters=1.5", "1.5 is not a whole number"),
        ("--read_iolog=a:iolog --merge_blktrace_file=both", "iolog: it is not a binary trace"),
        ("--read_iolog=a:absent --merge_blktrace_file=both", "absent: No such file"),
    ] {
        for only in ["", "--merge-blktrace-only"] {
            let ran = dir.run(&format!("--name=r --replay_redirect=f {only} {line}"));
            ran.assert_status(1).assert_prints(&[why]);
            assert!(!dir.join("both").exists(), "{line}");
        }
    }
}

#[test]
fn traces_are_not_merged_over_what_the_command_reads_nor_onto_a_device() {
    let dir = with_traces();
    dir.write("job.fio", "[m]\nfilename=f\nsize=4k\n");
    symlink("job.fio", dir.join("link")).unwrap();
    let device = need!(LoopDevice::new(&dir, 1 << 20));
    let before = dir.contents();
    for output in ["b", "job.fio", "link", &device.path] {
        let line =
            format!("job.fio --name=r --read_iolog=a:b --replay_redirect=f --merge_blktrace_file={output}");
        for only in ["", "--merge-blktrace-only"] {
            let ran = dir.run(&format!("{line} {only}"));
            ran.assert_status(2).assert_prints(&["name"]);
        }
    }
    assert!(dir.contents() == before);
}

/// Lines of an iolog without their times.
fn lines_of(iolog: &str) -> Vec<String> {
    let lines = iolog.lines().skip(1).filter_map(|line| line.split_once(' '));
    lines.map(|(_, line)| line.to_string()).collect()
}

#[test]
fn an_iolog_shows_which_files_were_open_when() {
    let dir = Dir::new();
    let job = "--name=a --ioengine=psync --nrfiles=3 --size=24k --rw=write --bs=4k --filename_format=h.$filenum \
        --file_service_type=sequential";
    dir.run(&format!("{job} --openfiles=1 --write_iolog=one")).assert_success();
    let of = |file: usize| {
        ["open", "write 0 4096", "write 4096 4096", "close"].map(|what| format!("h.{file} {what}"))
    };
    let added = (0..3).map(|file| format!("h.{file} add"));
    let expected: Vec<String> = added.clone().chain((0..3).flat_map(of)).collect();
    assert_eq!(lines_of(&fs::read_to_string(dir.join("one")).unwrap()), expected);
    dir.run(&format!("{job} --write_iolog=all")).assert_success();
    let all = lines_of(&fs::read_to_string(dir.join("all")).unwrap());
    let opened = (0..3).map(|file| format!("h.{file} open"));
    assert_eq!(all[..6], added.chain(opened).collect::<Vec<String>>());
    assert_eq!(all.iter().filter(|line| line.ends_with("close")).count(), 3);
    dir.run(&format!("{REPLAY}one")).assert_success();
}

// divergence: `sync_file_range` in an iolog
#[test]
fn syncs_are_recorded_and_replayed_with_their_percentiles() {
    let dir = Dir::new();
    let job = "--name=a --ioengine=psync --filename=f --size=16k --rw=write --bs=4k";
    dir.run(&format!("{job} --sync_file_range=write:2 --fdatasync=3 --write_iolog=t")).assert_success();
    let lines = lines_of(&fs::read_to_string(dir.join("t")).unwrap());
    assert!(lines.iter().any(|line| line == "f sync_file_range 0 8192"), "{lines:?}");
    assert!(lines.iter().any(|line| line == "f datasync 0 0"), "{lines:?}");
    let ran = dir.run(&format!("{REPLAY}t"));
    let sync = ran.assert_success().json()["jobs"][0]["sync"].clone();
    let recorded = lines.iter().filter(|line| line.contains("sync")).count();
    assert_eq!(sync["total_ios"], recorded, "{sync}");
    assert!(sync["lat_ns"]["percentile"]["99.000000"].as_u64() > Some(0), "{sync}");
}
