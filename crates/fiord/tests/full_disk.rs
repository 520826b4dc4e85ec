//! Every file that fiord writes, on a file system that is full, and every page that it prints, to a full device.
//!
//! Invariant: what could not be written is named with its path and reason, and the exit status is that of a failure.

use std::fs;
use std::process::Stdio;

use fiord_testing::need;

use crate::common::{Dir, Mount, finish, fiord, start};

const NULL: &str = "--name=a --ioengine=null --bs=4k --size=4m";
const REASON: &str = "No space left on device (ENOSPC)";

/// What is written to a file, and that file's name. `t` is the full file system, in which the program runs; `..` has the
/// files that it reads.
fn files() -> Vec<(String, &'static str)> {
    let null = |options: &str, name| (format!("{NULL} {options}"), name);
    let on_file = |options: &str, name| {
        (format!("--name=a --filename=../data --size=64k --verify=crc32c --do_verify=0 {options}"), name)
    };
    let study = |options: &str, name| {
        (
            format!("sweep --ioengine=null --size=8m --time=50ms --over=bs=4k,8k --directory=.. {options}"),
            name,
        )
    };
    vec![
        null("--write_iolog=log", "log"),
        null("--write_iolog=/dev/full", "/dev/full"),
        null("--write_bw_log=log", "log_bw.1.log"),
        null("--write_iops_log=log", "log_iops.1.log"),
        null("--write_lat_log=log --disable_slat=1", "log_clat.1.log"),
        null("--write_lat_log=log --log_store_compressed=1", "log_clat.1.log.fz"),
        null("--write_hist_log=log --log_hist_msec=10 --runtime=100ms --time_based", "log_clat_hist.1.log"),
        null("--bandwidth-log --bwavgtime=10 --runtime=100ms --time_based", "agg-read_bw.log"),
        null("--output=report", "report"),
        null("--output-format=json+ --output=report", "report"),
        null("--output-format=terse --output=/dev/full", "/dev/full"),
        null("--status-interval=10ms --runtime=50ms --time_based --output=report", "report"),
        null("--debug=io --size=64k --output=report", "report"),
        null("--metrics=file:metrics", "metrics"),
        null("--iomem=mmap:buffers", "buffers"),
        null("--iomem=mmapshared:buffers", "buffers"),
        null("--iomem=mmaphuge:buffers", "buffers"),
        ("--showcmd --output=line ../job.fio".into(), "line"),
        on_file("--rw=write --verify_state_save=1", "local-a-0-verify.state"),
        on_file("--rw=write --rate=16k --trigger-timeout=100ms --trigger=true", "local-a-0-verify.state"),
        (
            "--name=a --filename=../zeroes --rw=read --verify=crc32c --verify_dump=1".into(),
            "zeroes.0.hdr_fail",
        ),
        (
            "--name=a --read_iolog=../trace:../trace --merge_blktrace_file=merged --ioengine=null".into(),
            "merged",
        ),
        ("report ../report.json -o page.html".into(), "page.html"),
        ("--name=a --filename=target --rw=write --bs=4k --size=64k".into(), "target"),
        ("--name=a --filename=target --rw=read --bs=4k --size=64k".into(), "target"),
        study("--plot=chart.svg", "chart.svg"),
    ]
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_fails_the_run() {
    let dir = Dir::new();
    let full = need!(Mount::tmpfs(&dir, "size=16k"));
    dir.write("data", [0; 65_536]);
    dir.write("zeroes", [0; 65_536]);
    dir.write("job.fio", "[a]\nioengine=null\nsize=64k\n");
    dir.write(
        "trace",
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/compat/cases/blktrace.bin")).unwrap(),
    );
    dir.run(&format!("--output-format=json+ --output=report.json {NULL}")).assert_success();
    for (line, name) in files() {
        for entry in fs::read_dir(&full.path).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        full.write("fill", &[0; 16 << 10]);
        let ran = finish(start(fiord(&full.path, &line)));
        assert_eq!(ran.status, Some(1), "{line}: {ran:?}");
        let says_why = |line: &str| line.contains(REASON) || line.contains("there is no room for");
        let named = ran.stderr.lines().any(|line| says_why(line) && line.contains(name));
        assert!(named, "{line}: {ran:?}");
    }
}

/// A job whose output is lost is reported all the same.
#[test]
fn a_lost_file_loses_no_result() {
    let dir = Dir::new();
    let _full = need!(Mount::tmpfs(&dir, "size=16k"));
    let ran = dir.run(&format!("{NULL} --output-format=json --write_iolog=tmpfs/log"));
    ran.assert_status(1);
    let job = &ran.json()["jobs"][0];
    assert_eq!((&job["error"], &job["read"]["total_ios"]), (&0.into(), &1024.into()));
    assert!(ran.stderr.contains("job a: write_iolog: the iolog tmpfs/log is incomplete: "), "{ran:?}");
    assert!(ran.json()["findings"].to_string().contains("incomplete"), "{ran:?}");
}

/// What prints a page, a list or a document.
const PRINTS: &[&str] = &[
    "--help",
    "--version",
    "--enghelp",
    "--enghelp=libaio",
    "--cmdhelp",
    "--cmdhelp=bs",
    "--debug=help",
    "--showcmd job.fio",
    "--crctest=crc32c",
    "--crctest=help",
    "--memcpytest=memcpy",
    "--memcpytest=help",
    "--cpuclock-test",
    "--idle-prof=calibrate",
    "--inflate-log=log_bw.1.log.fz",
    "job.fio",
    "--output-format=json job.fio",
    "--output-format=terse job.fio",
    "--debug=io job.fio",
    "help",
    "help --json",
    "quick --help",
    "completions bash",
    "explain report.json",
    "compare report.json report.json",
    "report --help",
    "history",
    "history --csv",
    "history --json",
    "history --export=parquet",
    "history --export=line",
    "show last",
    "sweep --ioengine=null --size=8m --time=50ms --over=bs=4k,8k",
    "sweep --ioengine=null --size=8m --time=50ms --over=bs=4k,8k --json",
    "sweep --ioengine=null --size=8m --time=50ms --over=bs=4k,8k --dry-run",
];

#[test]
fn a_page_that_cannot_be_printed_is_a_failure() {
    let dir = Dir::new();
    dir.write("job.fio", "[a]\nioengine=null\nsize=64k\n");
    let command = |line: &str| {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", dir.join("state"));
        command
    };
    let log = "--output-format=json --output=report.json job.fio --write_bw_log=log --log_store_compressed=1";
    assert_eq!(command(log).stdout(Stdio::null()).status().unwrap().code(), Some(0));
    for line in PRINTS {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = command(line).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{line}: {told}");
        assert!(told.contains("standard output") && told.contains(REASON), "{line}: {told}");
    }
}
