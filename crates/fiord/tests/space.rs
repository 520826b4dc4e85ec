//! Layouts on file systems that are too small for them.
//!
//! Invariant: a layout that fails leaves as much free space as it found.

use std::fs;

use fiord_testing::need;

use crate::common::study::assert_fits;
use crate::common::{Dir, LoopDevice, Mount, finish, fiord, helper, run, signal, start, until_moved};

const MIB: u64 = 1 << 20;

fn names(mount: &Mount) -> Vec<String> {
    let entries = fs::read_dir(&mount.path).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_layout_that_does_not_fit_is_refused_before_it_begins() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=4m"));
    let line = "--output-format=json --name=big --size=10t --rw=read --bs=64k --name=fits --size=1m";
    let ran = run(&mount.path, line);
    ran.assert_status(1).assert_prints(&["big.0.0", "10995116277760", "4194304", "free some space"]);
    let jobs = ran.json()["jobs"].clone();
    assert_eq!((&jobs[0]["error"], &jobs[1]["error"]), (&28.into(), &0.into()), "{jobs}");
    assert_eq!(jobs[1]["read"]["io_bytes"], MIB);
    assert_eq!(names(&mount), ["fits.0.0"]);
    // What is there already needs no room.
    run(&mount.path, "--name=j --filename=fits.0.0 --size=4m --rw=read").assert_status(0);
    run(&mount.path, "--name=j --filename=fits.0.0 --size=4m --rw=read").assert_status(0);
    let ran = run(&mount.path, "--name=j --filename=fits.0.0 --size=4097k --rw=read");
    ran.assert_status(1).assert_prints(&["needs 1024 bytes", "has 0 free"]);
    assert_eq!(fs::metadata(mount.path.join("fits.0.0")).unwrap().len(), 4 * MIB);
}

/// These file systems free a file's blocks some time after it was removed.
#[test]
fn what_was_removed_a_moment_ago_makes_room() {
    for kind in ["xfs", "btrfs"] {
        let dir = Dir::new();
        let device = need!(LoopDevice::new(&dir, 384 << 20));
        need!(helper(&format!("mkfs.{kind}"), &["-q", &device.path]));
        let mount = need!(Mount::new(&dir, kind, &[&device.path]));
        let old = mount.path.join("old");
        need!(helper("fallocate", &["--length=200M", &old.to_string_lossy()]));
        fs::File::open(&old).unwrap().sync_all().unwrap();
        fs::remove_file(&old).unwrap();
        let line = "--name=j --filename=new --rw=read --create_only=1";
        run(&mount.path, &format!("{line} --size=200m")).assert_status(0);
        run(&mount.path, &format!("{line} --size=2g")).assert_status(1).assert_prints(&["no room for new"]);
    }
}

/// Nothing is written, not even by the jobs that would have come first.
#[test]
fn writes_that_do_not_fit_are_refused_before_they_begin() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=4m"));
    let line = "--output-format=json --rw=write --bs=64k";
    let ran = run(&mount.path, &format!("{line} --name=big --size=8m --name=fits --size=1m"));
    let needs = "needs 8388608 bytes, and its file system has 4194304 free";
    ran.assert_status(1).assert_prints(&["room for big.0.0", needs, "lower size=", "fill_device=1"]);
    assert_eq!(names(&mount), ["fits.0.0"]);
    // Three of these fit beside what is there, and the fourth does not.
    let ran = run(&mount.path, &format!("{line} --name=clones --size=1m --numjobs=4"));
    ran.assert_status(1).assert_prints(&["room for clones.3.0", "needs 4194304 bytes", "has 3145728 free"]);
    assert_eq!(names(&mount), ["clones.0.0", "clones.1.0", "clones.2.0", "fits.0.0"]);
    // All are there now: to write them again needs no room, nor does one file that all write.
    run(&mount.path, &format!("{line} --name=clones --size=1m --numjobs=3 --fsync=16")).assert_status(0);
    run(&mount.path, &format!("{line} --name=j --filename=fits.0.0 --size=1m --numjobs=4")).assert_status(0);
    // The disk fills up for another reason, and what was written until then is reported.
    fs::remove_file(mount.path.join("clones.2.0")).unwrap();
    let filler =
        "--name=filler --filename=filler --fill_device=1 --name=late --stonewall --size=1m --fallocate=none";
    let ran = run(&mount.path, &format!("{line} {filler}"));
    ran.assert_status(1).assert_prints(&["late.0.0", "No space left on device"]);
    assert_eq!(ran.json()["jobs"][0]["write"]["io_bytes"], MIB);
}

/// How much these write is not known before: some of them end first, and the others say what filled the file system.
// divergence: writes that certainly need more than the free space
#[test]
fn writes_that_may_end_before_the_file_system_is_full_are_not_refused() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=4m"));
    let empty = || names(&mount).iter().for_each(|name| fs::remove_file(mount.path.join(name)).unwrap());
    let line = "--trust=off --fallocate=none --name=j --rw=write --bs=64k";
    for fits in [
        "--size=8m --runtime=1 --rate=64k",
        "--size=8m --runtime=100 --number_ios=8",
        "--size=1m --file_append=1 --loops=10",
        "--size=1m --io_size=20m",
        "--size=1m --time_based --runtime=1",
    ] {
        run(&mount.path, &format!("{line} {fits}")).assert_status(0);
        empty();
    }
    for fills in [
        "--size=8m --runtime=100",
        "--size=8m --runtime=100 --time_based",
        "--size=1m --numjobs=8 --runtime=100",
        "--size=8m --nrfiles=8 --file_service_type=random",
        "--size=16m --rw=randwrite --norandommap",
        "--size=16m --rw=write:64k",
    ] {
        let ran = run(&mount.path, &format!("{line} {fills}"));
        ran.assert_status(1).assert_prints(&["job j: write", "No space left on device", "is full"]);
        empty();
    }
    // Nor is the length of a log known.
    let ran = run(
        &mount.path,
        "--trust=off --name=j --rw=write --bs=512 --size=512k --loops=400 --write_iolog=log",
    );
    ran.assert_status(1).assert_prints(&["the iolog log is incomplete", "No space left on device"]);
}

/// Files that are removed when their jobs end need not fit beside each other, and these do not.
#[test]
fn a_layout_that_fails_is_taken_back() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=4m"));
    fs::write(mount.path.join("short"), vec![7; 1 << 20]).unwrap();
    for fallocate in ["none", "native"] {
        let line = format!(
            "--output-format=json --fallocate={fallocate} --create_serialize=0 --unlink=1 --rw=read --bs=64k"
        );
        for files in
            ["--filename=new --size=10m", "--filename=a:b:c:new --size=10m", "--filename=short --size=10m"]
        {
            let ran = run(&mount.path, &format!("{line} --name=j {files}"));
            ran.assert_status(1).assert_prints(&["lay out", "ENOSPC", "removed again"]);
            assert_eq!(names(&mount), ["short"], "{fallocate} {files}");
            let short = fs::metadata(mount.path.join("short")).unwrap();
            assert_eq!(short.len(), MIB, "{fallocate} {files}");
        }
    }
}

/// A new file is removed, and one that was there has its length again.
#[test]
fn a_layout_that_is_interrupted_is_taken_back() {
    let dir = Dir::new();
    dir.write("short", [7; 4096]);
    for name in ["new", "short"] {
        let line =
            format!("--name=j --filename={name} --size=1900m --rw=read --invalidate=0 --fallocate=none");
        let running = start(fiord(dir.path(), &line));
        until_moved(&running, 4 << 20);
        signal(running.0.id(), "INT");
        finish(running).assert_status(130);
        assert!(!dir.join("new").exists(), "{name}");
        assert_eq!(dir.read("short").len(), 4096, "{name}");
    }
}

#[test]
fn a_sweep_announces_the_size_of_its_job() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let line = "sweep --rw=read --bs=64k --over iodepth=1,2 --time=300ms";
    let ran = run(&mount.path, &format!("{line} --size=40m"));
    assert_fits(&ran);
    ran.assert_prints(&["size=40m"]);
    let announced = run(&mount.path, &format!("{line} --size=40m --json")).json();
    assert_eq!(announced["target"]["size_bytes"], 40 * MIB, "{announced}");
    let ran = run(&mount.path, &format!("{line} --size=200m"));
    ran.assert_status(1).assert_prints(&["only 80MiB are free", "200MiB"]);
    // So are files of the job's own, although its runs end before all of it is written.
    for rw in ["write", "randwrite"] {
        let line = format!("sweep --rw={rw} --directory=. --size=200m --over iodepth=1,2 --time=300ms");
        run(&mount.path, &line)
            .assert_status(1)
            .assert_prints(&["needs 209715200 bytes", "has 83886080 free"]);
    }
    assert_eq!(names(&mount), [""; 0]);
}

/// A check's files of a fixed size are not cut to a part of the free space, and nothing says that they were; others are, down
/// to a block.
#[test]
fn files_of_a_fixed_size_are_used_as_they_are_or_refused() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=30m"));
    let ran = run(&mount.path, "check etcd --repeat=1 --time=600ms");
    assert!(matches!(ran.status, Some(0 | 4 | 6)), "{ran:?}");
    ran.assert_prints(&["22MiB in scratch files"]);
    assert!(!ran.stdout.contains("instead of"), "{}", ran.stdout);
    fs::write(mount.path.join("other"), vec![1; 10 << 20]).unwrap();
    run(&mount.path, "check etcd").assert_status(1).assert_prints(&["only 20MiB are free", "22MiB"]);
    assert_eq!(names(&mount), ["other"]);
    drop(mount);
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=100m"));
    let ran = run(&mount.path, "check ai-checkpoint");
    ran.assert_status(1)
        .assert_prints(&["12MiB can be used", "4 files of ai-checkpoint needs at least 4MiB"]);
    assert_eq!(names(&mount), [""; 0]);
}

#[test]
fn a_study_says_that_it_uses_less_than_was_asked_for() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=80m"));
    let ran = run(&mount.path, "quick --size=2G --time=1s");
    assert_fits(&ran);
    ran.assert_prints(&["10MiB are used instead of 2GiB", "an eighth of the 80MiB"]);
    let ran = run(&mount.path, "quick --size=8M --time=1s");
    assert!(!ran.stdout.contains("instead of"), "{}", ran.stdout);
}
