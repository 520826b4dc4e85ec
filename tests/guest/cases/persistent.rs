//! Persistent memory: a device that is mapped as a whole, and files on a file system mounted with DAX.
//!
//! Invariant: what one program wrote the other reads; counts are those of Debian's fio.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;

use fiord_guest::{Finished, PersistentFiles, Running, fio, fiord, start};
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

/// A job that runs for a minute, once it does I/O. Its name comes first.
fn running(args: &[&str]) -> Running {
    let job = args[0].strip_prefix("--name=").expect("a name");
    let running = start(&[args, &["--rw=randrw", "--bs=4k", "--time_based", "--runtime=60"]].concat());
    running.and_then(|running| running.at_work(job)).unwrap()
}

/// What one program writes, the other one reads: a pattern in blocks that are not multiples of the processor's lines.
fn one_reads_what_the_other_wrote(target: &[&str], pairs: &[[Program; 2]]) {
    let write = ["--rw=write", "--bs=3000", "--size=2m", "--verify=pattern", "--do_verify=0"];
    let read = ["--rw=read", "--bs=4k", "--size=2m", "--io_size=256k", "--verify=pattern"];
    for (pattern, [writer, reader]) in ["0x3c", "0xc3"].iter().zip(pairs) {
        for (program, load) in [(writer, &write[..]), (reader, &read)] {
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
    one_reads_what_the_other_wrote(&DEVICE, &[[fio, fiord], [fiord, fio]]);
}

// divergence: `direct=1`, or a `size` that is not a multiple of the device's alignment
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

/// A file system with DAX, the path of a file on it, and the option that names this file.
fn dax_file() -> (PersistentFiles, String, String) {
    let mounted = PersistentFiles::mount().unwrap();
    let path = mounted.path("f");
    let option = format!("--filename={path}");
    (mounted, path, option)
}

#[test]
fn files_with_dax_are_driven_as_by_fio() {
    guest!();
    let (_mounted, path, file) = dax_file();
    let target = ["--name=p", "--ioengine=libpmem", &file];
    for load in [
        &["--rw=write", "--bs=1000", "--size=100000", "--direct=1", "--end_fsync=1"][..],
        &["--rw=randread", "--bs=4k", "--size=1m", "--sync=1"],
        &["--rw=randwrite", "--bs=4k", "--size=1m", "--verify=crc32c", "--fsync=16"],
        &["--rw=randwrite", "--bs=3000", "--size=2m", "--norandommap", "--sync=1", "--direct=1"],
    ] {
        let runs = [fio, fiord].map(|program: Program| {
            // What one of them laid out is not for the other.
            let _ = fs::remove_file(&path);
            program(&[&target[..], load].concat()).expect("it runs")
        });
        let [theirs, ours] = &runs;
        assert_eq!((counts(ours), ours.code), (counts(theirs), Some(0)), "{load:?}: {ours:?} {theirs:?}");
        assert!(!ours.stderr.contains("direct="), "{ours:?}");
        let [theirs, ours] = runs.each_ref().map(|run| keys(&run.job().unwrap()));
        let missing: Vec<&String> = theirs.iter().filter(|key| !ours.contains(key)).collect();
        assert!(missing.is_empty(), "{load:?}: {missing:?}");
    }
}

/// The names in a part of a report and in those below it, percentiles and bins apart.
fn keys(part: &Value) -> Vec<String> {
    let entries = part.as_object().into_iter().flatten();
    let named = entries.filter(|(name, _)| !name.starts_with(|first: char| first.is_ascii_digit()));
    named
        .flat_map(|(name, below)| {
            let below = keys(below).into_iter().map(move |key| format!("{name}.{key}"));
            [name.clone()].into_iter().chain(below).collect::<Vec<_>>()
        })
        .collect()
}

// divergence: reads of an existing file with `libpmem`
#[test]
fn what_is_written_with_dax_is_in_the_file_and_what_is_in_the_file_is_read() {
    guest!();
    let (_mounted, path, file) = dax_file();
    let target = ["--name=p", "--ioengine=libpmem", &file];
    fs::write(&path, vec![0x5a; 1 << 20]).unwrap();
    let read = ["--rw=randread", "--bs=512", "--size=1m", "--verify=pattern", "--verify_pattern=0x5a"];
    let ran = fiord(&[&target[..], &read].concat()).unwrap();
    assert_eq!((ran.code, &ran.job().unwrap()["read"]["total_ios"]), (Some(0), &json!(2048)), "{ran:?}");
    for (direct, pattern) in [("--direct=0", 0x11), ("--direct=1", 0x22)] {
        let write = ["--rw=randwrite", "--bs=1000", "--size=1000000", direct];
        let buffers = format!("--buffer_pattern={pattern:#x}");
        let ran = fiord(&[&target[..], &write, &[&buffers]].concat()).unwrap();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        // Not from the page cache, of which such a file has none.
        let bytes = fs::read(&path).unwrap();
        let (written, beside) = bytes.split_at(1_000_000);
        assert!(written.iter().all(|&byte| byte == pattern), "{direct}");
        assert_eq!((beside.len(), beside.iter().all(|&byte| byte == 0x5a)), (48_576, true), "{direct}");
    }
    // fio reads nothing that it has not laid out itself.
    one_reads_what_the_other_wrote(&target, &[[fio, fiord]]);
    let read = fio(&[&target[..], &["--rw=read", "--bs=4k", "--size=2m"]].concat()).unwrap();
    assert_eq!((read.code, fs::read(&path).unwrap()[..4096] == [0x3c; 4096]), (Some(0), false), "{read:?}");
}

#[test]
fn damaged_memory_of_a_file_is_an_error_of_its_io() {
    guest!();
    let (mounted, path, file) = dax_file();
    fs::write(&path, vec![0x5a; 1 << 20]).unwrap();
    mounted.damage(&path, 100).unwrap();
    let target = ["--name=p", "--ioengine=libpmem", &file, "--rw=read", "--bs=4k", "--size=1m"];
    let run = |more: &[&str]| fiord(&[&target[..], more].concat()).unwrap();
    let figures = |run: &Finished| {
        let job = run.job().unwrap();
        (run.code, [&job["error"], &job["read"]["total_ios"], &job["total_err"]].map(Value::as_u64))
    };
    let ended = run(&[]);
    assert_eq!(figures(&ended), (Some(1), [Some(5), Some(100), None]), "{ended:?}");
    assert!(ended.stderr.contains("the memory is damaged"), "{ended:?}");
    let went_on = run(&["--continue_on_error=read"]);
    assert_eq!(figures(&went_on), (Some(0), [Some(5), Some(255), Some(1)]), "{went_on:?}");
}

#[test]
fn a_file_that_is_truncated_is_an_error() {
    guest!();
    let (_mounted, path, file) = dax_file();
    let job = running(&["--name=p", "--ioengine=libpmem", &file, "--size=16m"]);
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let ended = job.wait().unwrap();
    assert!(ended.stderr.contains("the file was truncated"), "{ended:?}");
    let report = ended.job().unwrap();
    assert_eq!((ended.code, &report["error"]), (Some(1), &json!(5)), "{ended:?}");
    assert!(report["write"]["total_ios"].as_u64() > Some(0), "{ended:?}");
}

// divergence: trims with `libpmem`
#[test]
fn a_trim_of_a_file_with_dax_makes_a_hole() {
    guest!();
    let (_mounted, path, file) = dax_file();
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
