//! Disks and file systems that fail: a clear message, a written report, a non-zero status, and nothing else touched.
//!
//! Invariant: every fault is a real one of the kernel; if it cannot be produced, the test is skipped.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fiord_testing::{need, skipped};
use serde_json::Value;

use crate::common::study::program_in;
use crate::common::{Dir, LoopDevice, Mount, Ran, finish, fiord, helper, root, run, start, until_moved};

const ENOENT: i64 = 2;
const EIO: i64 = 5;
const ENOSPC: i64 = 28;

/// A job that is independent of the fault, and must not be affected.
const BYSTANDER: &str = "--name=bystander --ioengine=null --rw=read --bs=4k --size=1m";

/// The job of this name in the report of a run that failed, having failed with this errno.
#[track_caller]
fn failed_job(ran: &Ran, name: &str, errno: i64) -> Value {
    ran.assert_status(1);
    let job = job(ran, name);
    assert_eq!(job["error"].as_i64(), Some(errno), "{job}");
    job
}

#[track_caller]
fn job(ran: &Ran, name: &str) -> Value {
    let document = ran.json();
    let jobs = document["jobs"].as_array().unwrap();
    jobs.iter()
        .find(|job| job["jobname"] == name)
        .unwrap_or_else(|| panic!("no {name} in {document}"))
        .clone()
}

#[track_caller]
fn assert_bystander_went_on(ran: &Ran) {
    let job = job(ran, "bystander");
    assert_eq!((job["error"].as_i64(), job["read"]["io_bytes"].as_i64()), (Some(0), Some(1 << 20)), "{job}");
}

/// A command line with a JSON report, and the same with normal text.
fn both(directory: &Path, line: &str) -> (Ran, Ran) {
    (run(directory, &format!("--output-format=json {line}")), run(directory, line))
}

/// Runs on a file system of 16 MiB that contains another file, which must not change.
fn on_a_small_file_system(mount: &Mount) {
    mount.write("sentinel", &[0x5e; 4096]);
    // Its time might end it before the file system is full.
    let line = format!(
        "{BYSTANDER} --name=fills --filename=f --rw=write --bs=64k --size=32m --fallocate=none --ioengine=psync \
         --runtime=1h"
    );
    let (json, normal) = both(&mount.path, &line);
    let written = failed_job(&json, "fills", ENOSPC)["write"]["io_bytes"].as_u64().unwrap();
    assert!((8 << 20..16 << 20).contains(&written), "{written} bytes written before it was full");
    assert_bystander_went_on(&json);
    normal.assert_status(1).assert_prints(&[
        "write",
        "f at offset",
        "ENOSPC",
        "No space left on device",
        "READ: bw=",
    ]);
    fs::remove_file(mount.path.join("f")).unwrap();

    // What is known not to fit is refused, and nothing is made of it.
    for rw in ["read", "write", "randwrite"] {
        let line =
            format!("{BYSTANDER} --name=lays --filename=g --rw={rw} --bs=64k --size=32m --ioengine=psync");
        let ran = run(&mount.path, &format!("--output-format=json {line}"));
        failed_job(&ran, "lays", ENOSPC);
        assert_bystander_went_on(&ran);
        ran.assert_prints(&["there is no room for g", "needs 33554432 bytes", "free some space"]);
        assert!(!mount.path.join("g").exists(), "{rw}");
    }

    let line = "--output-format=json --name=to_the_brim --filename=h --rw=write --bs=64k --fill_device=1";
    let ran = run(&mount.path, line);
    let job = job(&ran, "to_the_brim");
    assert_eq!((ran.status, job["error"].as_i64()), (Some(0), Some(0)), "the regular end of fill_device");
    assert!(job["write"]["io_bytes"].as_u64() > Some(8 << 20), "{job}");
    assert_eq!(fs::read(mount.path.join("sentinel")).unwrap(), [0x5e; 4096]);
}

#[test]
fn a_full_file_system_in_memory() {
    let dir = Dir::new();
    on_a_small_file_system(&need!(Mount::tmpfs(&dir, "size=16m")));
}

#[test]
fn a_full_file_system_on_a_device() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 16 << 20));
    on_a_small_file_system(&need!(Mount::ext4(&dir, &device)));
}

#[test]
fn a_device_that_is_always_full() {
    let dir = Dir::new();
    let (json, normal) = both(
        dir.path(),
        &format!(
            "{BYSTANDER} --name=full --filename=/dev/full --rw=write --bs=4k --size=64k --ioengine=psync"
        ),
    );
    failed_job(&json, "full", ENOSPC);
    assert_bystander_went_on(&json);
    normal.assert_status(1).assert_prints(&["write", "/dev/full", "offset 0", "ENOSPC"]);
}

/// A loop device of which the second half cannot be read: its backing file is too short.
fn half_a_device(dir: &Dir) -> Result<LoopDevice, String> {
    let device = LoopDevice::new(dir, 1 << 20)?;
    let backing = File::options().write(true).open(dir.join("backing")).map_err(|error| error.to_string())?;
    backing.set_len(512 << 10).map_err(|error| error.to_string())?;
    Ok(device)
}

#[test]
fn a_device_that_cannot_be_read() {
    let dir = Dir::new();
    let device = need!(half_a_device(&dir));
    for (engine, direct) in [("psync", 1), ("psync", 0), ("libaio", 1), ("io_uring", 1), ("pvsync2", 1)] {
        let line = format!(
            "{BYSTANDER} --name=broken --filename={} --rw=read --bs=4k --size=1m --direct={direct} --ioengine={engine}",
            device.path
        );
        let (json, normal) = both(dir.path(), &line);
        if engine == "io_uring" && json.all_output().contains("set up engine") {
            skipped("the kernel refuses io_uring");
            continue;
        }
        let job = failed_job(&json, "broken", EIO);
        assert_eq!(job["read"]["io_bytes"], 512 << 10, "{engine}: {job}");
        assert_bystander_went_on(&json);
        normal.assert_status(1).assert_prints(&["read", &device.path, "offset 524288", "EIO"]);
    }
}

#[test]
fn ignored_errors_are_counted() {
    let dir = Dir::new();
    let device = need!(half_a_device(&dir));
    let line = format!(
        "--output-format=json --name=broken --filename={} --rw=randread --bs=4k --size=1m --direct=1 \
         --ioengine=psync --continue_on_error=read",
        device.path
    );
    let ran = run(dir.path(), &line);
    let job = job(ran.assert_success(), "broken");
    assert_eq!(job["total_err"], 128, "{job}");
    assert_eq!((&job["first_error"], &job["error"]), (&EIO.into(), &EIO.into()), "{job}");
    assert_eq!(job["read"]["io_bytes"], 512 << 10, "{job}");
}

// divergence: an end of file, or a device that cannot be read
#[test]
fn a_mapped_device_that_cannot_be_read_does_not_kill_the_program() {
    let dir = Dir::new();
    let device = need!(half_a_device(&dir));
    let line = format!(
        "--output-format=json {BYSTANDER} --name=broken --filename={} --rw=read --bs=4k --size=1m --ioengine=mmap",
        device.path
    );
    let ran = run(dir.path(), &line);
    failed_job(&ran, "broken", EIO);
    assert_bystander_went_on(&ran);
}

#[test]
fn a_file_that_shrinks_during_the_run() {
    for engine in ["psync", "mmap", "libaio"] {
        let dir = Dir::new();
        let path = dir.write("f", vec![1; 1 << 20]);
        // The second job's bytes show that the run has begun; those of a mapping are not counted by the kernel.
        let line = format!(
            "--output-format=json --name=reads --filename=f --rw=randread --bs=4k --size=1m --time_based --runtime=60 \
             --ioengine={engine} --exitall_on_error --name=counted --filename=other --rw=write --bs=4k --size=1m \
             --time_based --runtime=60 --exitall_on_error"
        );
        let running = start(fiord(dir.path(), &line));
        until_moved(&running, 4 << 20);
        File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        let ran = finish(running);
        failed_job(&ran, "reads", EIO);
        ran.assert_prints(&["read f at offset", if engine == "mmap" { "EIO" } else { "has shrunk" }]);
    }
}

/// More than fiord reads of a device to find out what is on it.
const MORE_THAN_PROBED: u64 = 16 << 20;

#[test]
fn a_device_that_shrinks_during_the_run() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 4 << 20));
    let line = format!(
        "--output-format=json --name=reads --filename={} --rw=randread --bs=4k --size=4m --time_based --runtime=60 --ioengine=psync",
        device.path
    );
    let running = start(fiord(dir.path(), &line));
    until_moved(&running, MORE_THAN_PROBED);
    File::options().write(true).open(dir.join("backing")).unwrap().set_len(4096).unwrap();
    need!(helper("losetup", &["--set-capacity", &device.path]));
    failed_job(&finish(running), "reads", EIO);
}

#[test]
fn targets_whose_names_vanish_are_used_to_the_end() {
    let dir = Dir::new();
    let path = dir.write("f", vec![1; 1 << 20]);
    let line = "--output-format=json --name=reads --filename=f --rw=randread --bs=4k --size=1m --time_based --runtime=1";
    let running = start(fiord(dir.path(), line));
    until_moved(&running, 1 << 20);
    fs::remove_file(path).unwrap();
    let ran = finish(running);
    ran.assert_success();
    assert_eq!(dir.contents(), [], "a file was made again");

    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 1 << 20));
    let line = format!(
        "--output-format=json --name=reads --filename={} --rw=read --bs=4k --size=1m --time_based --runtime=1",
        device.path
    );
    let running = start(fiord(dir.path(), &line));
    until_moved(&running, MORE_THAN_PROBED);
    need!(helper("losetup", &["--detach", &device.path]));
    finish(running).assert_success();
}

/// The binary where any user may run it, and how to run it as an unprivileged user.
fn as_nobody(dir: &Dir, line: &str) -> Result<Ran, String> {
    let mut command = fiord(dir.path(), line);
    if root().is_ok() {
        let own = program_in(dir)?;
        helper("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups", "true"])?;
        let binary = own.to_string_lossy().into_owned();
        helper("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups", &binary, "--version"])?;
        command = crate::common::with_own_history("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &binary]);
        command.args(line.split_whitespace()).current_dir(dir.path());
    }
    Ok(finish(start(command)))
}

#[test]
fn no_permission() {
    let dir = need!(Dir::under(&std::env::temp_dir()));
    let path = dir.write("secret", vec![1; 64 << 10]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    for mode in ["read", "write"] {
        let line = format!("--name=a --filename=secret --rw={mode} --bs=4k --size=64k");
        let ran = need!(as_nobody(&dir, &line));
        ran.assert_status(1).assert_prints(&["secret", "EACCES"]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(dir.read("secret") == vec![1; 64 << 10], "the file was changed");

    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let ran = as_nobody_again(&dir, "--name=a --filename=new --rw=write --bs=4k --size=64k");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    need!(ran).assert_status(1).assert_prints(&["new", "EACCES"]);
    assert!(!dir.join("new").exists());
}

/// As `as_nobody`, if the directory is not writable; root copies the binary nevertheless.
fn as_nobody_again(dir: &Dir, line: &str) -> Result<Ran, String> {
    as_nobody(dir, line)
}

#[test]
fn a_missing_directory() {
    let dir = Dir::new();
    dir.write("sentinel", "here");
    let before = dir.contents();
    for line in [
        "--name=a --directory=gone --rw=write --bs=4k --size=64k",
        "--name=a --directory=sentinel --rw=write --bs=4k --size=64k",
        "--name=a --filename=gone/f --rw=read --bs=4k --size=64k --allow_file_create=0",
    ] {
        let ran = dir.run(line);
        ran.assert_status(1);
        let word = if line.contains("sentinel") { "sentinel" } else { "gone" };
        ran.assert_prints(&[word]);
    }
    assert!(dir.contents() == before, "something was made");
}

#[test]
fn a_missing_file_that_must_not_be_created() {
    let dir = Dir::new();
    let ran = dir
        .run("--output-format=json --name=a --filename=f --rw=read --bs=4k --size=64k --allow_file_create=0");
    ran.assert_status(1).assert_prints(&["allow_file_create"]);
    if ran.stdout.starts_with('{') {
        failed_job(&ran, "a", ENOENT);
    }
    assert_eq!(dir.contents(), []);
}

#[test]
fn a_file_system_mounted_read_only() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=1m"));
    mount.write("f", &[9; 64 << 10]);
    let path = mount.path.to_string_lossy().into_owned();
    need!(helper("mount", &["-o", "remount,ro", &path]));
    run(&mount.path, "--name=a --filename=f --rw=read --bs=4k --size=64k").assert_success();
    for line in [
        "--name=a --filename=f --rw=write --bs=4k --size=64k",
        "--name=a --filename=new --rw=write --bs=4k --size=64k",
        "--name=a --filename=new --rw=read --bs=4k --size=64k",
    ] {
        let ran = run(&mount.path, line);
        ran.assert_status(1);
        let said = ran.all_output().to_lowercase();
        assert!(said.contains("read-only") || said.contains("erofs"), "{line}: {ran:?}");
    }
    assert_eq!(fs::read(mount.path.join("f")).unwrap(), [9; 64 << 10]);
}

// divergence: writing to a mounted device
#[test]
fn a_mounted_device_is_refused_and_untouched() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 16 << 20));
    let mount = need!(Mount::ext4(&dir, &device));
    mount.write("sentinel", b"precious");
    need!(helper("sync", &["-f", &mount.path.to_string_lossy()]));
    let mode = |mode: &str| format!("--name=a --filename={} --rw={mode} --bs=4k --size=1m", device.path);
    let before = fs::read(&device.path).unwrap();
    for changes in ["write", "randwrite", "randrw", "trim"] {
        // Another job of the same run is not started either.
        let ran = run(
            dir.path(),
            &format!("--name=first --filename=made --rw=write --bs=4k --size=64k {}", mode(changes)),
        );
        ran.assert_status(2).assert_prints(&[&device.path, "mounted", "allow_mounted_write"]);
        assert!(!dir.join("made").exists(), "a run that is refused did something");
    }
    assert!(fs::read(&device.path).unwrap() == before, "a mounted device was written to");
    assert_eq!(fs::read(mount.path.join("sentinel")).unwrap(), b"precious");
    run(dir.path(), &mode("read")).assert_success();
}

#[test]
fn a_report_that_cannot_be_written() {
    let dir = Dir::new();
    dir.write("sentinel", "here");
    let before = dir.contents();
    for format in ["normal", "json", "terse"] {
        let ran = dir.run(&format!("--output=/dev/full --output-format={format} {BYSTANDER}"));
        ran.assert_status(1).assert_prints(&["/dev/full", "No space left on device"]);
    }
    let ran = dir.run("--output=gone/report --name=a --filename=f --rw=write --bs=4k --size=64k");
    ran.assert_status(1).assert_prints(&["gone/report"]);
    assert!(dir.contents() == before, "a run that cannot report did something");
}

#[test]
fn a_standard_output_that_is_full() {
    let dir = Dir::new();
    let mut command = fiord(dir.path(), BYSTANDER);
    command.stdout(File::options().write(true).open("/dev/full").unwrap());
    let output = command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_report_on_a_disk_that_fills_up_during_the_run() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=64k"));
    File::create(mount.path.join("filler")).unwrap().write_all(&[0; 60 << 10]).unwrap();
    let ran = run(
        &mount.path,
        "--output=report --output-format=json+ --name=a --ioengine=null --rw=randrw --bs=4k --size=64m --group_reporting=0 --numjobs=4",
    );
    ran.assert_status(1).assert_prints(&["report", "No space left on device"]);
}
