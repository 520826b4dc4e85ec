//! Many workers, and the time until the first I/O.
//!
//! Invariant: nothing here depends on durations; a limit of this system on threads is a skip.

use std::fs;

use fiord_testing::skip;

use crate::common::{Dir, Ran, finish, fiord, start};

/// Maximum number of threads of this process, if the system reports it.
fn threads_max() -> u64 {
    let number = |text: String| text.trim().parse().ok();
    let of_file = |path: &str| fs::read_to_string(path).ok().and_then(number);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let root = if controllers.is_empty() { "" } else { "/pids" };
        of_file(&format!("/sys/fs/cgroup{root}{path}/pids.max"))
    });
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let of_user = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max processes"))
        .and_then(|line| number(line.split_whitespace().next()?.to_string()));
    let kernel = [of_file("/proc/sys/kernel/threads-max"), of_file("/proc/sys/kernel/pid_max"), of_user];
    of_groups.chain(kernel.into_iter().flatten()).min().unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_workers_do_all_their_work() {
    const WORKERS: u64 = 10_000;
    // Other tests have threads as well.
    if threads_max() < WORKERS + 1000 {
        skip!("this system allows {} threads", threads_max());
    }
    let line = format!(
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=64k --numjobs={WORKERS} --group_reporting \
         --output-format=json"
    );
    let ran = Dir::new().run(&line);
    let json = ran.assert_success().json();
    let job = &json["jobs"][0];
    let sum = |figure: &str| job["read"][figure].as_u64().unwrap() + job["write"][figure].as_u64().unwrap();
    assert_eq!(json["jobs"].as_array().unwrap().len(), 1);
    assert_eq!((sum("total_ios"), sum("io_bytes")), (WORKERS * 16, WORKERS << 16));
    assert!(sum("total_ios") > job["read"]["total_ios"].as_u64().unwrap(), "all of it was read");
}

#[test]
fn each_of_a_thousand_workers_has_its_own_report() {
    if threads_max() < 2000 {
        skip!("this system allows {} threads", threads_max());
    }
    let line =
        "--name=a --ioengine=null --rw=randread --bs=4k --size=64k --numjobs=1000 --output-format=json";
    let json = Dir::new().run(line).assert_success().json();
    let jobs = json["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1000);
    for job in jobs {
        assert_eq!((job["read"]["total_ios"].as_u64(), job["error"].as_u64()), (Some(16), Some(0)), "{job}");
        assert_eq!(job["read"]["clat_ns"]["N"].as_u64(), Some(16), "{job}");
    }
}

/// Runs with a limited address space, in KiB.
fn limited(line: &str, kib: &str) -> Ran {
    let script = format!("ulimit -v {kib}; exec \"$0\" --no-history --output-format=json {line}");
    let dir = Dir::new();
    let mut command = crate::common::with_own_history("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_fiord")]).current_dir(dir.path());
    finish(start(command))
}

#[test]
fn a_shortage_of_memory_for_one_job_fails_only_that_job() {
    for options in ["--bs=64m --iodepth=64", "--bs=4k --lockmem=4g"] {
        let line = format!(
            "--name=large --ioengine=null --rw=read --size=64m {options} --name=small --ioengine=null --rw=read --bs=4k \
             --size=64k"
        );
        let ran = limited(&line, "1000000");
        let json = ran.assert_status(1).json();
        assert_eq!(json["jobs"][0]["error"], 12, "{options}: {ran:?}");
        assert_eq!(
            (&json["jobs"][1]["error"], &json["jobs"][1]["read"]["total_ios"]),
            (&0.into(), &16.into())
        );
        assert!(ran.stderr.contains("job large") && ran.stderr.contains("ENOMEM"), "{}", ran.stderr);
    }
}

/// Ten thousand jobs that inherit ten thousand settings: of one section, and of as many as there are jobs, each of which
/// adds one.
fn many_that_inherit() -> [String; 2] {
    const COUNT: usize = 10_000;
    let options = ["bs=4k", "size=64k", "rw=read", "iodepth=1", "numjobs=1", "runtime=5", "rate_min=0"];
    let setting = |number: usize| options[number % options.len()];
    let job = |number| format!("[j{number}]\nbs=,8k\n");
    let of_one: String = (0..COUNT).map(|number| format!("{}\n", setting(number))).collect();
    let jobs: String = (0..COUNT).map(job).collect();
    let of_many: String =
        (0..COUNT).map(|number| format!("[global]\n{}\n{}", setting(number), job(number))).collect();
    [
        "[global]\nioengine=null\n".to_string() + &of_one + &jobs,
        "[global]\nioengine=null\n".to_string() + &of_many,
    ]
}

/// A hundred million settings if each job had its own: what is inherited is kept once, and resolved once.
#[test]
fn ten_thousand_jobs_share_ten_thousand_global_settings() {
    let dir = Dir::new();
    for (number, text) in many_that_inherit().into_iter().enumerate() {
        let path = dir.join(&format!("{number}.fio"));
        fs::write(&path, text).unwrap();
        let path = path.display();
        limited(&format!("--parse-only {path}"), "300000").assert_success();
        // The plan is made of all jobs before the last one refuses it.
        let ran = limited(&format!("--max-jobs=9999 {path}"), "600000");
        ran.assert_status(1);
        let why = "10000 workers are more than --max-jobs=9999 allows";
        assert!(ran.stderr.contains(why) && ran.stderr.contains("job j9999"), "{}", ran.stderr);
    }
}

/// The least memory, in steps, with which a job of one worker runs: nearly all of it is the program itself, which grows.
fn least_for_a_worker_kib() -> u64 {
    let runs = |kib: &u64| {
        let ran = limited("--name=a --ioengine=null --rw=read --bs=4k --size=64k", &kib.to_string());
        ran.status == Some(0)
    };
    (10_000..200_000).step_by(5_000).find(runs).unwrap()
}

/// A limit below the number of threads: jobs without one fail by name, the others do their work.
#[test]
fn only_workers_that_cannot_be_started_fail() {
    const WORKERS: u64 = 400;
    let alone_kib = least_for_a_worker_kib();
    // Several limits, and each several times: which threads run short at the same moment differs.
    for more_kib in [80_000, 95_000, 110_000, 125_000].repeat(4) {
        let kib = (alone_kib + more_kib).to_string();
        let ran = limited("--name=a --ioengine=null --rw=read --bs=4k --size=64k --numjobs=400", &kib);
        let json = ran.assert_status(1).json();
        let jobs = json["jobs"].as_array().unwrap();
        assert_eq!(jobs.len() as u64, WORKERS);
        let (failed, well): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job["error"] != 0);
        assert!(!failed.is_empty() && !well.is_empty(), "{kib} KiB: {} failed", failed.len());
        assert!(
            well.iter().all(|job| job["read"]["total_ios"] == 16),
            "{kib} KiB: a worker that ran did not do its work"
        );
        assert!(ran.stderr.contains("start a thread") || ran.stderr.contains("ENOMEM"), "{}", ran.stderr);
    }
}

#[test]
fn a_trivial_job_does_not_sleep() {
    let dir = Dir::new();
    let trace = dir.join("trace");
    let traced = fiord(dir.path(), "--name=a --ioengine=null --size=4k");
    let mut strace = crate::common::with_own_history("strace");
    strace.args(["-f", "-e", "trace=nanosleep,clock_nanosleep,exit_group", "-o"]).arg(&trace);
    strace.arg(traced.get_program()).args(traced.get_args()).current_dir(dir.path());
    let calls = match strace.output() {
        Err(error) => skip!("no strace: {error}"),
        Ok(_) => fs::read_to_string(&trace).unwrap_or_default(),
    };
    if !calls.contains("exit_group") {
        skip!("strace may not trace here");
    }
    assert!(!calls.contains("nanosleep"), "{calls}");
}
