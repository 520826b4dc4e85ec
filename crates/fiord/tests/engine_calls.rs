//! Engines that do other work than I/O: calls on the names of files and directories, work for a processor, a program.
//!
//! Invariant: what a job does not name is the same afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::common::{Dir, Ran, finish, fiord, signal, start, until};

/// Files and directories left in a directory, with those in it.
fn left(dir: &Dir) -> Vec<String> {
    let relative = |path: &Path| path.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned();
    dir.contents().iter().map(|(path, _)| relative(path)).collect()
}

fn job(ran: &Ran) -> Value {
    ran.assert_success();
    ran.json()["jobs"][0].clone()
}

fn run(dir: &Dir, line: &str) -> Ran {
    dir.run(&format!("--output-format=json --name=a {line}"))
}

/// (I/Os, bytes, completion latencies) of all directions.
fn counted(job: &Value) -> (u64, u64, u64) {
    let sum = |of: &dyn Fn(&Value) -> &Value| {
        ["read", "write", "trim"].iter().map(|side| of(&job[side]).as_u64().unwrap()).sum::<u64>()
    };
    (sum(&|side| &side["total_ios"]), sum(&|side| &side["io_bytes"]), sum(&|side| &side["clat_ns"]["N"]))
}

// divergence: the direction of the latencies of `filecreate`
// divergence: `dircreate`, `dirstat`, `dirdelete`
#[test]
fn each_name_is_called_once_in_each_pass_and_each_block_counts() {
    let three = ["a.0.0", "a.0.1", "a.0.2"];
    for (engine, loops, expected) in [
        ("filecreate", 2, &three[..]),
        ("filestat", 2, &three),
        ("filedelete", 1, &[]),
        ("dircreate", 1, &three),
        ("dirstat", 2, &three),
        ("dirdelete", 1, &[]),
    ] {
        for rw in ["read", "randrw", "trim"] {
            let dir = Dir::new();
            dir.write("other", "contents");
            let line = format!("--ioengine={engine} --filesize=16k --nrfiles=3 --loops={loops} --rw={rw}");
            let job = job(&run(&dir, &line));
            assert_eq!(counted(&job), (12 * loops, 48 * 1024 * loops, 3 * loops), "{engine} {rw}");
            assert_eq!(left(&dir), [expected, &["other"]].concat(), "{engine} {rw}");
            assert_eq!(dir.read("other"), b"contents");
        }
    }
}

#[test]
fn time_based_jobs_call_the_names_again_in_each_pass() {
    let dir = Dir::new();
    let line = "--ioengine=filecreate --filesize=8k --nrfiles=4 --time_based --runtime=200ms --unlink_each_loop=1 \
                --unlink=1";
    let (ios, _, calls) = counted(&job(&run(&dir, line)));
    assert!(calls > 8 && calls.abs_diff(ios / 2) <= 4, "{ios} I/Os, {calls} calls");
    assert_eq!(left(&dir), [""; 0]);
}

// divergence: a call on a name (`filecreate`, `filedelete` …)
#[test]
fn only_regular_files_and_empty_directories_are_removed() {
    let dir = Dir::new();
    std::os::unix::fs::symlink("/dev/null", dir.join("device")).unwrap();
    dir.write("file", "contents");
    fs::create_dir(dir.join("full")).unwrap();
    dir.write("full/inside", "contents");
    let refused = |line: &str, why: &str| {
        let ran = run(&dir, line);
        ran.assert_status(1).assert_prints(&[why]);
        assert_eq!(left(&dir), ["device", "file", "full", "full/inside"], "{line}");
    };
    refused("--ioengine=filedelete --filesize=4k --filename=device", "filedelete is for regular files");
    refused("--ioengine=filedelete --filesize=4k --filename=full", "full is a directory");
    refused("--ioengine=dirdelete --filesize=4k --filename=full", "ENOTEMPTY");
    refused("--ioengine=dirdelete --filesize=4k --filename=file", "file is not a directory");
    refused("--ioengine=dircreate --filesize=4k --filename=full", "EEXIST");
    for engine in ["filecreate", "filedelete", "dircreate", "dirdelete", "dirstat"] {
        refused(&format!("--readonly --ioengine={engine} --filesize=4k --filename=new"), "--readonly");
    }
    let again = run(&dir, "--ioengine=filedelete --filesize=8 --bs=8 --filename=file --loops=2");
    again.assert_status(1).assert_prints(&["remove file: No such file or directory (ENOENT)"]);
    assert_eq!(left(&dir), ["device", "full", "full/inside"]);
}

/// What is in the way of the last name, or removes it, comes while the job runs.
#[test]
fn a_call_that_fails_ends_the_job_and_no_other() {
    const BYSTANDER: &str = "--name=bystander --ioengine=null --rw=read --bs=4k --size=1m";
    for (engine, errno) in [
        ("filecreate", "EISDIR"),
        ("dircreate", "EEXIST"),
        ("filedelete", "ENOENT"),
        ("dirdelete", "ENOTEMPTY"),
        ("filestat", "ENOENT"),
        ("dirstat", "ENOENT"),
    ] {
        let dir = Dir::new();
        let line = format!(
            "--output-format=json --name=a --ioengine={engine} --filesize=4k --bs=4k --nrfiles=50 --rate_iops=10 \
             {BYSTANDER}"
        );
        let running = start(fiord(dir.path(), &line));
        let (first, last) = (dir.join("a.0.0"), dir.join("a.0.49"));
        if engine.ends_with("create") {
            until("the first is made", || first.exists());
            fs::create_dir(&last).unwrap();
        } else {
            until("all are made", || last.exists());
            match engine {
                "dirdelete" => fs::write(last.join("inside"), "contents"),
                "dirstat" => fs::remove_dir(&last),
                _ => fs::remove_file(&last),
            }
            .unwrap();
        }
        let ran = finish(running);
        ran.assert_status(1).assert_prints(&["a.0.49", errno]);
        let jobs = ran.json()["jobs"].clone();
        let (calls, others) = (&jobs[0], &jobs[1]);
        assert!(calls["error"].as_i64() > Some(0) && counted(calls).2 == 49, "{engine}: {calls}");
        assert_eq!((others["error"].as_i64(), counted(others).0), (Some(0), 256), "{engine}");
    }
}

// divergence: directories above a name that `filecreate` creates
#[test]
fn parents_of_names_are_made() {
    let dir = Dir::new();
    for (engine, above) in [("filecreate", "files"), ("dircreate", "directories")] {
        job(&run(&dir, &format!("--ioengine={engine} --filesize=4k --filename={above}/x")));
        assert!(dir.join(above).join("x").exists());
    }
}

#[test]
fn a_processor_is_used_in_bursts_and_no_file_is_made() {
    let dir = Dir::new();
    for mode in ["noop", "qsort"] {
        let line = format!(
            "--ioengine=cpuio --cpuload=50 --cpuchunks=3000 --cpumode={mode} --number_ios=4 --rw=write"
        );
        let job = job(&run(&dir, &line));
        assert_eq!(counted(&job), (4, 0, 4), "{mode}");
        assert!(job["read"]["clat_ns"]["min"].as_u64().unwrap() >= 3_000_000, "{job}");
        assert_eq!(job["read"]["runtime"], 0);
    }
    run(&dir, "--ioengine=cpuio --runtime=1s").assert_status(1).assert_prints(&["for example cpuload=50"]);
    assert_eq!(left(&dir), [""; 0]);
}

#[test]
fn work_for_a_processor_ends_with_the_io_of_other_jobs() {
    let dir = Dir::new();
    let ran = dir.run(
        "--output-format=json --name=load --ioengine=cpuio --cpuload=20 --cpuchunks=1000 --exit_on_io_done=1 \
         --name=reads --ioengine=null --rw=read --size=1m --rate_iops=1k",
    );
    let jobs = ran.assert_success().json()["jobs"].clone();
    assert_eq!(jobs[1]["read"]["total_ios"], 256);
    assert!(jobs[0]["read"]["total_ios"].as_u64().unwrap() > 0, "{jobs}");
}

/// A script that a job can run.
fn script(dir: &Dir, name: &str, text: &str) {
    let path = dir.write(name, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

// divergence: `ioengine=exec` without `runtime`
#[test]
fn a_program_is_given_its_arguments_as_they_are_and_ends_its_job() {
    let dir = Dir::new();
    script(&dir, "show", "for word; do echo \"<$word>\"; done; echo problem >&2");
    let mut command = fiord(dir.path(), "--output-format=json --name=a --ioengine=exec --program=./show");
    command.arg("--arguments=%n  %r \"x y\" $HOME;ls *");
    let job = job(&finish(start(command)));
    assert_eq!((job["error"].clone(), job["read"]["io_bytes"].clone()), (0.into(), 0.into()));
    assert_eq!(dir.text("a.stdout"), "<a>\n<0>\n<\"x>\n<y\">\n<$HOME;ls>\n<*>\n");
    assert_eq!(dir.text("a.stderr"), "problem\n");
}

// divergence: a program of `ioengine=exec` that cannot be started
#[test]
fn a_program_that_cannot_be_started_fails_its_job() {
    let dir = Dir::new();
    dir.write("text", "no program");
    for (program, why) in [("./absent", "found in PATH"), ("./text", "chmod +x")] {
        let ran = run(&dir, &format!("--ioengine=exec --program={program} --runtime=30s"));
        ran.assert_status(1).assert_prints(&[why]);
    }
    run(&dir, "--ioengine=exec --runtime=1s").assert_status(1).assert_prints(&["needs a program"]);
}

// divergence: `grace_time` of a program that ends
#[test]
fn a_program_is_asked_to_end_and_then_killed() {
    let dir = Dir::new();
    script(&dir, "polite", "trap 'echo asked; exit' TERM; echo $$ > pid; while :; do sleep 0.02; done");
    script(&dir, "deaf", "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done");
    for (program, grace, said) in [("polite", 20, "asked\n"), ("deaf", 0, "")] {
        let line = format!("--ioengine=exec --program=./{program} --runtime=500ms --grace_time={grace}");
        job(&run(&dir, &line));
        assert_eq!(dir.text("a.stdout"), said);
        assert!(!Path::new(&format!("/proc/{}", dir.text("pid").trim())).exists(), "{program} is left");
    }
}

#[test]
fn an_interrupted_run_leaves_no_program_behind() {
    let dir = Dir::new();
    script(&dir, "deaf", "trap '' TERM INT; echo $$ > pid; while :; do sleep 0.02; done");
    let line = "--name=a --ioengine=exec --program=./deaf --runtime=600s --grace_time=600";
    let running = start(fiord(dir.path(), line));
    until("the program runs", || fs::read_to_string(dir.join("pid")).is_ok_and(|pid| pid.ends_with('\n')));
    signal(running.0.id(), "INT");
    finish(running).assert_status(130);
    assert!(!Path::new(&format!("/proc/{}", dir.text("pid").trim())).exists(), "it is left");
}

#[test]
fn new_memory_is_written_by_page_faults_and_verified() {
    let dir = Dir::new();
    let faults = |line: &str| {
        let job = job(&run(&dir, line));
        (counted(&job), job["minf"].as_u64().unwrap())
    };
    // At times a run has a few of other causes, so that several are compared.
    let several = |line: &str| (0..5).map(|_| faults(line)).collect::<Vec<_>>();
    let touched = several("--ioengine=page_fault --rw=write --bs=4k --size=8m");
    assert!(touched.iter().all(|(counted, _)| *counted == (2048, 8 << 20, 2048)), "{touched:?}");
    let untouched = several("--ioengine=null --rw=write --bs=4k --size=8m");
    let none = untouched.iter().map(|(_, faults)| *faults).min().unwrap();
    let [first, most] =
        [Iterator::min, Iterator::max].map(|of| of(touched.iter().map(|(_, faults)| *faults)).unwrap());
    // One for each page, unless the kernel maps huge ones.
    let huge = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let least = if huge.contains("[always]") { 4 } else { 2048 };
    assert!(first >= least && most >= none + least, "{first} to {most} page faults, {none} without memory");
    // Memory that was touched causes none.
    let (_, twice) = faults("--ioengine=page_fault --rw=write --bs=4k --size=8m --loops=2");
    assert!(twice < first + 1024, "{first} page faults, {twice} in two passes");
    let verified = job(&run(
        &dir,
        "--ioengine=page_fault --rw=randwrite --bs=4k --size=1m --verify=crc32c --verify_state_save=0",
    ));
    assert_eq!((verified["error"].clone(), verified["read"]["total_ios"].clone()), (0.into(), 256.into()));
    run(&dir, "--ioengine=page_fault --rw=trim --size=64k").assert_status(1).assert_prints(&["EINVAL"]);
    run(&dir, "--ioengine=page_fault --rw=write --size=100000t")
        .assert_status(1)
        .assert_prints(&["smaller size="]);
    assert_eq!(left(&dir), [""; 0]);
}

/// The signals that a program of a job, and of the run, starts with.
#[test]
fn programs_start_with_no_signal_blocked_or_ignored_on_fiords_account() {
    let dir = Dir::new();
    script(&dir, "show", "grep -E 'Sig(Blk|Ign)' /proc/self/status > \"$1\"");
    dir.write(
        "job.fio",
        "[a]\nioengine=exec\nprogram=./show\narguments=by-exec\nexec_prerun=./show before\nexec_postrun=./show after && touch now\n\
         [b]\nioengine=null\nsize=1g\nrate_iops=10\ntime_based\nruntime=600\n",
    );
    let mut command = fiord(dir.path(), "--output-format=json --trigger-file=now job.fio");
    command.arg("--trigger=./show by-trigger");
    finish(start(command)).assert_status(0);
    // What this test ignores, its children ignore as well.
    script(&dir, "show-ours", "./show ours");
    assert!(
        std::process::Command::new(dir.join("show-ours")).current_dir(dir.path()).status().unwrap().success()
    );
    // The blocked and the ignored ones, without the real-time signals, two of which the C library uses itself.
    let sets = |name: &str| -> Vec<u64> {
        let words = dir.text(name);
        let sets = words.lines().filter_map(|line| line.split_whitespace().nth(1));
        sets.map(|set| u64::from_str_radix(set, 16).unwrap() & 0x7fff_ffff).collect()
    };
    let signal_bit = |number: u32| 1 << (number - 1);
    let mut ours = sets("ours");
    assert_eq!(ours.len(), 2);
    // SIGINT and SIGTERM fiord takes even if they were ignored, as they are in the background of a script.
    ours[1] &= !(signal_bit(2) | signal_bit(15));
    for name in ["by-exec", "before", "after", "by-trigger"] {
        assert_eq!(sets(name), ours, "{name}");
    }
}
