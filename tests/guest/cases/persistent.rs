//! Persistent memory: a device that is mapped as a whole, and files on a file system mounted with DAX.
//!
//! Invariant: what one program wrote the other reads; counts are those of Debian's fio.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use fiord_guest::{Finished, Running, fio, fiord, start};
use serde_json::{Value, json};

use crate::compared::both;
use crate::guest;

const DEVICE: [&str; 3] = ["--name=d", "--ioengine=dev-dax", "--filename=/dev/dax1.0"];

/// A program that runs a job.
type Program = fn(&[&str]) -> Result<Finished, String>;

/// I/Os and bytes of each direction, syncs, and the error.
fn counts(run: &Finished) -> Value {
    let job = run.job().unwrap_or_default();
    let of = |direction: &str| json!([job[direction]["total_ios"], job[direction]["io_bytes"]]);
    json!([of("read"), of("write"), of("trim"), job["sync"]["total_ios"], job["error"], run.code])
}

/// A job that runs for a minute, once it does I/O.
fn running(args: &[&str]) -> Running {
    let running = start(&[args, &["--rw=randrw", "--bs=4k", "--time_based", "--runtime=60"]].concat());
    let (running, begun) = (running.expect("fiord runs"), Instant::now());
    // The job's thread exists.
    while running.threads() < 2 && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(2));
    running
}

/// What both programs write, the other one reads: a pattern in blocks that are no multiples of the processor's lines.
fn each_reads_what_the_other_wrote(target: &[&str]) {
    let write = ["--rw=write", "--bs=3000", "--size=2m", "--verify=pattern", "--do_verify=0"];
    let read = ["--rw=read", "--bs=4k", "--size=2m", "--io_size=256k", "--verify=pattern"];
    let programs: [Program; 2] = [fio, fiord];
    for (writer, pattern) in [(0, "0x3c"), (1, "0xc3")] {
        for (program, load) in [(programs[writer], &write[..]), (programs[1 - writer], &read)] {
            let pattern = format!("--verify_pattern={pattern}");
            let run = program(&[target, load, &[&pattern]].concat()).expect("it runs");
            assert_eq!(run.code, Some(0), "{load:?}: {run:?}");
        }
    }
}

#[test]
fn a_device_is_driven_as_by_fio_and_each_reads_what_the_other_wrote() {
    guest!();
    // fio maps multiples of 2 MiB only.
    for load in [
        &["--rw=randwrite", "--bs=4k", "--size=2m", "--io_size=1m", "--verify=crc32c", "--fsync=16"][..],
        &["--rw=write", "--bs=1000", "--size=2m", "--io_size=100000", "--end_fsync=1"],
        &["--rw=randread", "--bs=512", "--size=2m", "--io_size=256k"],
        // The size of the device.
        &["--rw=read", "--bs=1m"],
    ] {
        let [theirs, ours] = both(&[&DEVICE[..], load].concat());
        assert_eq!((counts(&ours), ours.code), (counts(&theirs), Some(0)), "{load:?}: {ours:?} {theirs:?}");
    }
    each_reads_what_the_other_wrote(&DEVICE);
}

// divergence: `direct=1`, or a `size` that is no multiple of the device's alignment
#[test]
fn any_part_of_a_device_can_be_used_and_it_is_always_direct() {
    guest!();
    for load in [["--size=64k", "--direct=0"], ["--size=2m", "--direct=1"]] {
        let [theirs, ours] = both(&[&DEVICE[..], &["--rw=randwrite", "--bs=4k"], &load].concat());
        assert!(theirs.code != Some(0) && ours.code == Some(0), "{load:?}: {ours:?} {theirs:?}");
    }
}

#[test]
fn a_device_that_another_program_has_mapped_is_read_only() {
    guest!();
    let job = running(&[&DEVICE[..], &["--size=16m"]].concat());
    let beside = |rw: &str| fiord(&[&DEVICE[..], &["--bs=4k", "--size=64k", rw]].concat()).unwrap();
    let (read, written) = (beside("--rw=read"), beside("--rw=write"));
    let ended = job.interrupt().unwrap();
    assert_eq!(read.code, Some(0), "{read:?}");
    assert!(written.code != Some(0) && written.stderr.contains("has mapped /dev/dax1.0"), "{written:?}");
    assert!(ended.job().unwrap()["write"]["total_ios"].as_u64() > Some(0), "{ended:?}");
}

#[test]
fn a_device_has_no_trims_and_nothing_else_is_one() {
    guest!();
    let trim = [&DEVICE[..], &["--rw=trim", "--bs=4k", "--size=2m"]].concat();
    let [theirs, ours] = both(&trim);
    assert_eq!((ours.code, theirs.code), (Some(1), Some(1)), "{ours:?} {theirs:?}");
    assert!(ours.stderr.contains("cannot be trimmed"), "{ours:?}");
    for (path, remedy) in [("/dev/pmem0", "/dev/daxN.M"), ("/dev/fiord-no-such", "ndctl create-namespace")] {
        let target = format!("--filename={path}");
        let ours = fiord(&["--name=d", "--ioengine=dev-dax", &target, "--rw=read", "--bs=4k"]).unwrap();
        assert!(ours.code != Some(0) && ours.stderr.contains(remedy), "{ours:?}");
    }
}

#[test]
fn a_device_that_is_taken_away_is_an_error() {
    guest!();
    let load = [&DEVICE[..], &["--size=16m"]].concat();
    let driver = |action: &str| fs::write(format!("/sys/bus/dax/drivers/device_dax/{action}"), "dax1.0");
    let job = running(&load);
    driver("unbind").expect("the driver is loaded");
    let ended = job.wait().unwrap();
    let again = driver("bind");
    assert!(ended.stderr.contains("the device is gone"), "{ended:?}");
    assert!(ended.code != Some(0) && ended.job().unwrap()["error"] != 0, "{ended:?}");
    again.expect("the device is back");
}

/// A file system with DAX, until dropped.
struct Mounted(&'static str);

impl Mounted {
    fn new() -> Mounted {
        let run = |program: &str, args: &[&str]| {
            Command::new(program).args(args).status().is_ok_and(|status| status.success())
        };
        let point = "/run/fiord-pmem";
        assert!(run("mkfs.ext4", &["-q", "-F", "-b", "4096", "/dev/pmem0"]));
        fs::create_dir_all(point).expect("a directory in memory");
        assert!(run("mount", &["-o", "dax", "/dev/pmem0", point]));
        Mounted(point)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn files_with_dax_are_driven_as_by_fio() {
    guest!();
    let mounted = Mounted::new();
    let file = format!("--filename={}/f", mounted.0);
    let target = ["--name=p", "--ioengine=libpmem", &file];
    for load in [
        &["--rw=randwrite", "--bs=4k", "--size=1m", "--verify=crc32c", "--fsync=16"][..],
        &["--rw=write", "--bs=1000", "--size=100000", "--direct=1", "--end_fsync=1"],
    ] {
        let [theirs, ours] = both(&[&target[..], load].concat());
        assert_eq!((counts(&ours), ours.code), (counts(&theirs), Some(0)), "{load:?}: {ours:?} {theirs:?}");
        assert!(!ours.stderr.contains("direct="), "{ours:?}");
    }
}

// divergence: trims with `libpmem`
#[test]
fn a_trim_of_a_file_with_dax_makes_a_hole() {
    guest!();
    let mounted = Mounted::new();
    let (path, file) = (format!("{}/f", mounted.0), format!("--filename={}/f", mounted.0));
    let target = ["--name=p", "--ioengine=libpmem", &file, "--bs=4k", "--size=64k"];
    let wrote = fiord(&[&target[..], &["--rw=write", "--buffer_pattern=0x77"]].concat()).unwrap();
    assert_eq!((wrote.code, fs::read(&path).unwrap()), (Some(0), vec![0x77; 64 << 10]), "{wrote:?}");
    let trim = [&target[..], &["--rw=trim"]].concat();
    let [theirs, ours] = both(&trim);
    assert_eq!(
        (theirs.job().unwrap()["error"].as_i64(), ours.code),
        (Some(22), Some(0)),
        "{ours:?} {theirs:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), vec![0; 64 << 10]);
}

#[test]
fn a_file_outside_persistent_memory_is_refused_with_what_to_do() {
    guest!();
    let load =
        ["--name=p", "--ioengine=libpmem", "--filename=/run/fiord-ordinary", "--rw=write", "--size=64k"];
    let [theirs, ours] = both(&load);
    let _ = fs::remove_file("/run/fiord-ordinary");
    assert_eq!(counts(&ours), counts(&theirs), "{ours:?} {theirs:?}");
    assert!(ours.stderr.contains("mounted with dax") && ours.stderr.contains("ioengine=mmap"), "{ours:?}");
}
