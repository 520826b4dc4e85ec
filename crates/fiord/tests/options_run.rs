//! Options of time, order, rates and reports, from the command line to the behaviour and output of a run.
//!
//! Invariant: a run's pace is judged by counts that its options bound from above, never by the speed of the machine.

use std::fs;
use std::ops::RangeInclusive;

use fiord_testing::{need, skip, skipped};
use serde_json::Value;

use crate::common::{Dir, Ran, finish, fiord, signal, start, until};

/// A job that moves no bytes, for as long as its `runtime`.
const NULL: &str = "--ioengine=null --size=1g --bs=4k --time_based";

fn json(line: &str) -> Value {
    Dir::new().run(&format!("--output-format=json {line}")).assert_success().json()
}

fn jobs(document: &Value) -> &[Value] {
    document["jobs"].as_array().unwrap()
}

fn ios(job: &Value, direction: &str) -> u64 {
    job[direction]["total_ios"].as_u64().unwrap()
}

// divergence: a rate for one direction of a mix
#[test]
fn a_limited_direction_does_not_delay_the_other_one() {
    let document = json(&format!("{NULL} --name=a --rw=randrw --rate=,1m --runtime=300ms"));
    let (reads, writes) = (ios(&jobs(&document)[0], "read"), ios(&jobs(&document)[0], "write"));
    assert!(writes <= 256 / 3 + 20, "{writes} writes of 4 KiB at 1 MiB/s in 0.3 s");
    assert!(reads > 10 * writes, "{reads} reads beside {writes} writes");
    let document =
        json(&format!("{NULL} --name=a --rw=rw --rwmixread=90 --rate_iops=1000,500 --runtime=300ms"));
    let (reads, writes) = (ios(&jobs(&document)[0], "read"), ios(&jobs(&document)[0], "write"));
    assert!(reads <= 320 && writes <= 170, "{reads} reads, {writes} writes");
    assert!(writes * 3 > reads, "{reads} reads, {writes} writes: the mix decides instead of the rates");
}

// divergence: `thinktime_blocks` with a deep queue
#[test]
fn think_time_comes_after_the_given_number_of_ios_at_any_depth() {
    for (options, per_pause) in [
        ("", 1),
        ("--iodepth=16", 1),
        ("--iodepth=16 --thinktime_blocks=8", 8),
        ("--iodepth=16 --thinktime_blocks=8 --thinktime_blocks_type=issue", 8),
        ("--iodepth=4 --thinktime_blocks=40 --thinktime_spin=1ms", 40),
        ("--thinktime_iotime=10s --thinktime_blocks=5", 5),
    ] {
        let document = json(&format!("{NULL} --name=a --rw=read --runtime=200ms --thinktime=10ms {options}"));
        let done = ios(&jobs(&document)[0], "read");
        // Twenty pauses fit; a late end adds a few.
        assert!(done >= per_pause && done <= 24 * per_pause, "{options}: {done} I/Os");
    }
}

// divergence: `rate_min`, `rate_iops_min`
#[test]
fn a_job_below_its_minimum_rate_fails_after_fios_grace_period() {
    let line = format!(
        "{NULL} --name=a --rw=read --rate_iops_min=1000 --thinktime=20ms --rate_cycle=100 --runtime=60"
    );
    let ran = Dir::new().run(&format!("--output-format=json {line}"));
    ran.assert_status(1).assert_prints(&["rate_iops_min=1000 not met, got "]);
    let job = &ran.json()["jobs"][0];
    assert_eq!(job["error"], 5);
    assert!(job["job_runtime"].as_u64() >= Some(2000), "{}", job["job_runtime"]);
}

/// The share of `bucket` in one of the tables of depths of a job's only section.
#[track_caller]
fn share(options: &str, table: &str, bucket: &str) -> f64 {
    let document = json(&format!("--name=a --filename=f --rw=randread --bs=4k --size=16m {options}"));
    jobs(&document)[0][table][bucket].as_f64().unwrap()
}

#[test]
fn ios_that_complete_at_once_are_never_in_flight_together() {
    for options in ["--iodepth=16", "--iodepth=64 --iodepth_low=8", "--iodepth=32 --iodepth_batch_complete=4"]
    {
        let options = format!("--ioengine=null {options}");
        for (table, bucket) in [("iodepth_level", "1"), ("iodepth_submit", "4"), ("iodepth_complete", "4")] {
            assert_eq!(share(&options, table, bucket), 100.0, "{options}: {table}");
        }
    }
    for (table, bucket) in [("iodepth_level", "16"), ("iodepth_submit", "16"), ("iodepth_complete", "16")] {
        assert_eq!(share("--ioengine=null --iodepth=64 --iodepth_batch=16", table, bucket), 100.0, "{table}");
    }
}

#[test]
fn the_depth_of_a_full_queue_is_reported() {
    for (depth, bucket) in [(1, "1"), (4, "4"), (16, "16"), (32, "32"), (64, ">=64"), (128, ">=64")] {
        let options = format!("--ioengine=libaio --iodepth={depth}");
        // Except for the first filling: 4096 I/Os.
        assert!(share(&options, "iodepth_level", bucket) > 96.0, "depth {depth}");
        assert_eq!(share(&options, "iodepth_submit", "4"), 100.0, "depth {depth}");
        assert!(share(&options, "iodepth_complete", "4") > 96.0, "depth {depth}");
    }
    let batched = "--ioengine=libaio --iodepth=32 --iodepth_batch=8";
    assert!(share(batched, "iodepth_level", "32") > 99.0);
}

#[test]
fn a_workers_thread_is_named_by_the_job_or_by_comm() {
    for (option, expected) in [("", "somejob"), ("comm=other", "other")] {
        let dir = Dir::new();
        let command = "exec_prerun=cat /proc/$PPID/task/*/comm >names || true";
        dir.write("job.fio", format!("[somejob]\nioengine=null\nsize=4k\n{command}\n{option}\n"));
        dir.run("job.fio").assert_success();
        let names = dir.text("names");
        assert!(names.lines().any(|name| name == expected), "{expected}: {names}");
    }
}

/// `(name, CPUs)` of each thread of fiord while the job prepares, and the CPUs of the job itself.
fn threads_of(job: &str) -> (Vec<(String, String)>, String) {
    let dir = Dir::new();
    // A thread that has ended since the shell listed it cannot be read.
    let command = "exec_prerun=cat /proc/$PPID/task/*/status >threads || true && cat /proc/self/status >own";
    dir.write("job.fio", format!("[somejob]\nioengine=null\nsize=64k\n{command}\n{job}\n"));
    dir.run("job.fio").assert_success();
    let values = |name: &str, field: &str| -> Vec<String> {
        let text = dir.text(name);
        text.lines().filter_map(|line| Some(line.strip_prefix(field)?.trim().to_string())).collect()
    };
    let cpus = values("threads", "Cpus_allowed_list:");
    let own = values("own", "Cpus_allowed_list:").remove(0);
    (values("threads", "Name:").into_iter().zip(cpus).collect(), own)
}

// divergence: `gtod_cpu` in one job
#[test]
fn a_thread_on_gtod_cpu_keeps_the_time_and_no_job_runs_there() {
    let allowed = fiord_sys::thread::affinity().unwrap();
    let [first, .., last] = allowed[..] else { skip!("one CPU: none would be left for a job") };
    let (threads, own) = threads_of(&format!("gtod_cpu={last}\nnumjobs=2"));
    assert_eq!(
        threads.iter().filter(|(name, cpus)| name == "fiord-clock" && *cpus == last.to_string()).count(),
        1
    );
    let is_off = |cpus: &str| !cpus.split([',', '-']).any(|cpu| cpu == last.to_string());
    assert!(is_off(&own), "{own}");
    // A job that reads a clock itself keeps off that CPU as well.
    let line =
        format!("--ioengine=null --size=64k --name=a --gtod_cpu={last} --name=b --cpus_allowed={last}");
    Dir::new().run(&line).assert_status(1).assert_prints(&["no CPU is left for the job", "gtod_cpu"]);
    let document =
        json(&format!("--name=a --ioengine=null --rw=read --size=4m --gtod_cpu={first} --write_lat_log=l"));
    let job = &jobs(&document)[0];
    assert_eq!((job["error"].as_i64(), job["read"]["total_ios"].as_u64()), (Some(0), Some(1024)));
    assert_eq!(job["read"]["clat_ns"]["N"], 1024);
    Dir::new()
        .run("--name=a --ioengine=null --size=4k --gtod_cpu=8191")
        .assert_status(1)
        .assert_prints(&["this machine has no CPU 8191"]);
}

// divergence: `log_compression_cpus`
#[test]
fn logs_are_written_on_the_cpus_of_log_compression_cpus() {
    let last = *fiord_sys::thread::affinity().unwrap().last().unwrap();
    let wanted = ("fiord-logs".to_string(), last.to_string());
    // The thread moves to its CPUs as it starts, which may be after the threads were listed.
    let found: Vec<_> = (0..20)
        .map(|_| threads_of(&format!("write_lat_log=l\nlog_compression=1k\nlog_compression_cpus={last}")).0)
        .take_while(|threads| !threads.contains(&wanted))
        .collect();
    assert!(found.len() < 20, "{found:?}");
}

#[test]
fn the_start_of_a_job_is_read_from_the_given_clock() {
    let start_ms = |options: &str| {
        let document = json(&format!("--name=a --ioengine=null --size=4k {options}"));
        jobs(&document)[0]["job_start"].as_u64().unwrap()
    };
    let uptime_s = || {
        let text = fs::read_to_string("/proc/uptime").unwrap();
        text.split('.').next().unwrap().parse::<u64>().unwrap()
    };
    let before_s = uptime_s();
    let boot_s = start_ms("--job_start_clock_id=7") / 1000;
    assert!((before_s..=uptime_s()).contains(&boot_s), "{before_s} {boot_s}");
    assert!(start_ms("") > 1_700_000_000_000);
}

#[test]
fn the_depth_of_a_draining_queue_is_reported() {
    let options = "--ioengine=libaio --iodepth=32 --iodepth_low=8";
    // 9 to 15, 16 to 31 and 32 of the 24 I/Os that refill the queue.
    for (bucket, share_of_24) in [("8", 7.0), ("16", 16.0), ("32", 1.0)] {
        let found = share(options, "iodepth_level", bucket);
        assert!((found - 100.0 * share_of_24 / 24.0).abs() < 1.5, "{bucket}: {found}");
    }
}

#[test]
fn empty_reaps_and_submissions_are_not_counted() {
    let polled =
        "--ioengine=libaio --iodepth=16 --iodepth_batch_complete_min=0 --iodepth_batch_complete_max=8";
    assert_eq!(share(polled, "iodepth_complete", "0"), 0.0);
    // libaio syncs by itself.
    let synced = "--ioengine=libaio --iodepth=8 --rw=randwrite --fsync=8 --size=1m";
    assert_eq!(share(synced, "iodepth_submit", "0"), 0.0);
}

// divergence: `exec_prerun`, `exec_postrun` that fail
#[test]
fn prerun_and_postrun_commands_log_their_output_and_stop_nothing() {
    let dir = Dir::new();
    dir.write(
        "job.fio",
        "[a]\nioengine=null\nsize=64k\nexec_prerun=echo before && exit 3\nexec_postrun=echo after\n",
    );
    let ran = dir.run("job.fio");
    ran.assert_success().assert_prints(&["Findings:\n  caution: job a: exec_prerun: ", "a.prerun.txt"]);
    assert!(!ran.stdout.contains("exec_postrun"), "{ran:?}");
    assert_eq!(
        (dir.text("a.prerun.txt").as_str(), dir.text("a.postrun.txt").as_str()),
        ("before\n", "after\n")
    );
}

// divergence: warnings
#[test]
fn findings_follow_fios_text_and_have_a_list_in_json() {
    let dir = Dir::new();
    let line = "--name=a --rw=read --size=64k --bs=4k --iodepth=8";
    let text = dir.run(line).assert_success().stdout.clone();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text}"));
    assert!(at("Run status group 0") < at("\nFindings:\n") && text.ends_with('\n'));
    let of_option = |document: &Value| {
        let all = document["findings"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|one| one["option"] == "iodepth").collect::<Vec<_>>()
    };
    let document = json(line);
    let findings = of_option(&document);
    let [finding] = findings.as_slice() else { panic!("{document}") };
    assert_eq!((&finding["code"], &finding["severity"]), (&"sync-engine-depth".into(), &"caution".into()));
    assert!(finding["subject"].as_str().unwrap().starts_with("command line:1:"), "{finding}");
    assert!(finding["sentence"].as_str().unwrap().contains("queue depth stays at 1"), "{finding}");
    assert_eq!(finding["figures"][0], serde_json::json!({"name": "iodepth", "value": 8}), "{finding}");
    let document = json("--name=a --rw=read --size=64k --bs=4k");
    assert_eq!(of_option(&document), [Value::Null; 0], "nothing to warn of: {document}");
    let document = json(&format!("{line} --trust=off"));
    assert!(document.get("findings").is_none(), "{document}");
}

// divergence: `--warnings-fatal`
#[test]
fn fatal_warnings_are_those_of_fio() {
    let dir = Dir::new();
    let line = "--name=a --rw=read --bs=4k";
    // fio 3.33 with --warnings-fatal runs all of these except the last.
    for fiords in
        ["--iodepth=8", "--bs=4k,8k,16k,32k", "--bs=4KiB", "--size=64k10", "--percentile_list=1:2:x"]
    {
        let job = format!("{line} --size=64k {fiords}");
        dir.run(&format!("--warnings-fatal {job}")).assert_success();
        let word = fiords[2..].split('=').next().unwrap();
        dir.run(&format!("--strict {job}")).assert_status(1).assert_prints(&["warning: ", word]);
    }
    for switch in ["--warnings-fatal", "--strict"] {
        let job = format!("{switch} {line} --size=64k --time_based");
        dir.run(&job).assert_status(1).assert_prints(&["time_based"]);
        dir.run(&format!("{switch} {line} --size=64k")).assert_success();
    }
}

// divergence: without `--max-jobs`
#[test]
fn jobs_are_limited_only_if_max_jobs_is_given() {
    let line = "--name=a --ioengine=null --size=4k --rw=read --group_reporting --output-format=json";
    let dir = Dir::new();
    dir.run(&format!("--max-jobs=3 {line} --numjobs=4")).assert_status(1).assert_prints(&["max-jobs"]);
    dir.run(&format!("--max-jobs=4 {line} --numjobs=4")).assert_success();
    // fio's own limit is 4096.
    let document = dir.run(&format!("{line} --numjobs=4100")).assert_success().json();
    assert_eq!(ios(&jobs(&document)[0], "read"), 4100);
}

// divergence: `--idle-prof`
#[test]
fn the_processors_idleness_follows_the_report() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=read --runtime=100ms");
    let ran: Ran = dir.run(&format!("--idle-prof=percpu {line}"));
    ran.assert_success().assert_prints(&[
        "\nCPU idleness:\n  system: ",
        "\n  percpu: ",
        "\n  unit work: mean=",
    ]);
    let document = json(&format!("--idle-prof=percpu {line}"));
    let idleness = &document["cpu_idleness"];
    for key in ["system", "cpu-0", "unit_mean", "unit_stddev"] {
        assert!(idleness[key].is_f64(), "{key} in {idleness}");
    }
    assert!((0.0..=100.0).contains(&idleness["system"].as_f64().unwrap()), "{idleness}");
    let document = json(&format!("--idle-prof=system {line}"));
    assert!(document["cpu_idleness"].get("cpu-0").is_none());
    let ran = dir.run("--idle-prof=calibrate");
    assert!(ran.assert_success().stdout.starts_with("CPU idleness:\n  unit work: mean="), "{ran:?}");
}

// divergence: `ioscheduler` after the run
#[test]
fn a_scheduler_is_set_on_the_disk_under_the_job() {
    let dir = Dir::new();
    let device = need!(crate::common::LoopDevice::new(&dir, 1 << 20));
    let queue = format!("/sys/block/{}/queue/scheduler", device.path.trim_start_matches("/dev/"));
    let before = need!(std::fs::read_to_string(&queue).map_err(|error| error.to_string()));
    if !before.contains("mq-deadline") {
        skip!("the kernel has no scheduler mq-deadline");
    }
    let other = if before.contains("[mq-deadline]") { "none" } else { "mq-deadline" };
    let line = format!("--name=a --filename={} --rw=read --size=64k --ioscheduler", device.path);
    dir.run(&format!("{line}={other}")).assert_success();
    let after = std::fs::read_to_string(&queue).unwrap();
    assert!(after.contains(&format!("[{other}]")), "{after}");
    let ran = dir.run(&format!("{line}=no-such-one"));
    ran.assert_status(1).assert_prints(&["ioscheduler=no-such-one", "EINVAL", "mq-deadline"]);
    // A file in memory is not on a disk.
    let memory = need!(Dir::under(std::path::Path::new("/dev/shm")));
    memory.run("--name=a --filename=f --rw=read --size=64k --ioscheduler=no-such-one").assert_success();
}

// divergence: bandwidth samples under `disable_bw_measurement`
#[test]
fn bandwidth_is_sampled_at_its_interval_unless_disabled() {
    let run = |options: &str| {
        let document = json(&format!("{NULL} --name=a --rw=read --runtime=400ms {options}"));
        jobs(&document)[0]["read"].clone()
    };
    let read = run("--bwavgtime=100 --iopsavgtime=200");
    let samples = |read: &Value, kind: &str| read[kind].as_u64().unwrap();
    assert!((3..=5).contains(&samples(&read, "bw_samples")), "{read}");
    assert!((1..=3).contains(&samples(&read, "iops_samples")), "{read}");
    let read = run("--disable_bw_measurement=1 --bwavgtime=100 --iopsavgtime=100");
    assert_eq!((samples(&read, "bw_samples"), samples(&read, "iops_samples")), (0, 0));
    // Samples need no clock of the worker.
    let read = run("--gtod_reduce=1 --bwavgtime=100 --ramp_time=100ms");
    assert!(samples(&read, "bw_samples") >= 2 && read["clat_ns"]["N"] == 0, "{read}");
}

/// The fields of `stat` and lines of `status` of the thread with this name, during a run.
fn thread(pid: u32, name: &str) -> Option<(Vec<String>, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let named = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let path = tasks.filter_map(|entry| Some(entry.ok()?.path())).find(named)?;
    let stat = std::fs::read_to_string(path.join("stat")).ok()?;
    let fields = stat.split_once(") ")?.1.split(' ').map(str::to_string).collect();
    Some((fields, std::fs::read_to_string(path.join("status")).ok()?))
}

#[test]
fn a_worker_has_the_identity_of_its_options() {
    let dir = Dir::new();
    let line = format!(
        "{NULL} --rw=read --runtime=60 --thinktime=1ms --name=polite --nice=19 --cpus_allowed=0 --prioclass=2 --prio=3 \
         --name=masked --cpumask=1 --numa_mem_policy=local"
    );
    let running = start(fiord(dir.path(), &line));
    let pid = running.0.id();
    // The niceness is the 17th field after the name.
    let nice = |name: &str| thread(pid, name).and_then(|(fields, _)| fields.get(16).cloned());
    until("the polite one is nice", || nice("polite").as_deref() == Some("19"));
    until("the masked one is on its CPU", || {
        thread(pid, "masked").is_some_and(|(_, status)| status.contains("Cpus_allowed_list:\t0\n"))
    });
    assert_eq!(nice("masked"), nice("fiord"), "only one was to be nice");
    let (_, status) = thread(pid, "polite").unwrap();
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    signal(pid, "INT");
    finish(running).assert_status(130);
}

#[test]
fn a_worker_becomes_another_user() {
    need!(crate::common::root());
    let dir = Dir::new();
    let line = format!("{NULL} --rw=read --runtime=60 --thinktime=1ms --name=nobody --uid=65534 --gid=65533");
    let running = start(fiord(dir.path(), &line));
    let pid = running.0.id();
    let is = |status: &str, key: &str, id: &str| {
        status.lines().any(|line| line.starts_with(key) && line.split('\t').nth(2) == Some(id))
    };
    until("it is somebody else", || {
        thread(pid, "nobody")
            .is_some_and(|(_, status)| is(&status, "Uid:", "65534") && is(&status, "Gid:", "65533"))
    });
    signal(pid, "INT");
    finish(running).assert_status(130);
}

#[test]
fn exitall_ends_the_jobs_it_concerns() {
    let dir = Dir::new();
    // Unless another ends it, a job runs for a minute, and the test times out.
    let endless = "--runtime=60 --exitall=0";
    let run = |first: &str, others: &str| {
        let line = format!("{NULL} --rw=read --name=first --runtime=100ms --exitall {first} {others}");
        dir.run(&format!("--output-format=json {line}")).assert_success().json()
    };
    let moved =
        |document: &Value| -> Vec<bool> { jobs(document).iter().map(|job| ios(job, "read") > 0).collect() };
    assert_eq!(moved(&run("", &format!("--name=b {endless}"))), [true, true]);
    let apart = format!("--name=b --new_group {endless}");
    assert_eq!(moved(&run("--exit_what=stonewall", &apart)), [true, true]);
    let next = format!("{apart} --name=c --stonewall {endless}");
    assert_eq!(moved(&run("--exit_what=all", &next)), [true, true, false]);
    let document = run("--exit_what=group", "--name=b --new_group --exitall=0 --runtime=400ms");
    assert!(jobs(&document)[1]["job_runtime"].as_u64() >= Some(390), "another group goes on: {document}");
    let document = run("", "--name=b --stonewall --exitall=0 --runtime=100ms");
    assert_eq!(moved(&document), [true, true], "whoever comes behind a stonewall still comes");
}

#[test]
fn exit_on_error_ends_other_jobs() {
    let dir = Dir::new();
    let failing =
        "--name=fails --ioengine=psync --filename=f --size=64k --bs=4k --rw=read --create_on_open=1";
    dir.write("f", [1; 5000]);
    let line = format!("{failing} --exitall_on_error --name=b {NULL} --rw=read --runtime=60 --filename=g");
    let ran = dir.run(&format!("--output-format=json {line}"));
    ran.assert_status(1).assert_prints(&["fails"]);
    assert_eq!(ran.json()["jobs"][1]["error"], 0);
}

#[test]
fn jobs_wait_for_stonewalls_and_for_each_other() {
    let start_ms = |job: &Value| job["job_start"].as_u64().unwrap();
    let line = format!(
        "{NULL} --rw=read --runtime=100ms --name=a --name=b --wait_for=a --name=c --stonewall --name=d --startdelay=200ms \
         --name=e --startdelay=50ms-150ms"
    );
    let document = json(&line);
    let starts: Vec<u64> = jobs(&document).iter().map(start_ms).collect();
    // Starts are times of the wall clock, rounded down to milliseconds.
    assert!(starts[1] >= starts[0] + 99, "b waits for a: {starts:?}");
    assert!(starts[2] >= starts[1] + 99, "c waits for both: {starts:?}");
    assert!(starts[3] >= starts[2] + 199 - 20, "d starts later: {starts:?}");
    assert!(starts[4] >= starts[2] + 49 - 20, "e starts later: {starts:?}");
    let groups: Vec<u64> = jobs(&document).iter().map(|job| job["groupid"].as_u64().unwrap()).collect();
    assert_eq!(groups, [0, 0, 1, 1, 1]);
}

#[test]
fn each_job_file_waits_for_the_one_before() {
    let dir = Dir::new();
    let text = |name: &str| format!("[{name}]\nioengine=null\nsize=1g\ntime_based\nruntime=100ms\n");
    dir.write("a.fio", text("a"));
    dir.write("b.fio", text("b"));
    let document = dir.run("--output-format=json a.fio b.fio").assert_success().json();
    let start_ms: Vec<u64> = jobs(&document).iter().map(|job| job["job_start"].as_u64().unwrap()).collect();
    assert!(start_ms[1] >= start_ms[0] + 99, "{start_ms:?}");
    assert_eq!(jobs(&document)[1]["groupid"], 1);
}

// divergence: reads of 0 bytes from a character device
#[test]
fn reading_dev_null_gives_nothing_on_queued_engines_and_an_end_of_file_on_others() {
    for (engine, reads, error) in [("libaio", 16, 0), ("io_uring", 16, 0), ("psync", 0, 5)] {
        let line = format!("--name=a --filename=/dev/null --rw=read --bs=4k --size=64k --ioengine={engine}");
        let ran = Dir::new().run(&format!("--output-format=json --iodepth=4 {line}"));
        let job = &jobs(&ran.json())[0].clone();
        let read = (ios(job, "read"), job["read"]["io_bytes"].as_u64(), job["error"].as_i64());
        assert_eq!(read, (reads, Some(0), Some(error)), "{engine}");
        assert_eq!(job["read"]["lat_ns"]["N"].as_u64(), Some(reads), "{engine}");
    }
}

#[test]
fn logs_without_a_number_are_appended_to() {
    let dir = Dir::new();
    let lines = |options: &str, log: &str| {
        dir.run(&format!("--name=a --ioengine=null --size=16k --numjobs=2 --write_bw_log=l {options}"))
            .assert_success();
        fs::read_to_string(dir.path().join(log)).unwrap().lines().count()
    };
    assert_eq!([lines("--per_job_logs=0", "l_bw.log"), lines("--per_job_logs=0", "l_bw.log")], [8, 16]);
    assert_eq!(
        [lines("", "l_bw.2.log"), lines("", "l_bw.2.log")],
        [4, 4],
        "with a number they are written anew"
    );
}

#[test]
fn a_group_takes_percentiles_from_its_last_section() {
    let sections = "--name=a --percentile_list=50 --name=b --percentile_list=90:99";
    let document = json(&format!("--ioengine=null --size=64k --group_reporting {sections}"));
    assert_eq!(jobs(&document).len(), 1);
    let listed: Vec<&String> =
        jobs(&document)[0]["read"]["clat_ns"]["percentile"].as_object().unwrap().keys().collect();
    assert_eq!(listed, ["90.000000", "99.000000"]);
}

#[test]
fn status_reports_are_separate_documents() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=read --runtime=700ms --status-interval=200ms");
    // For two seconds: the kernel counts a processor's time in ticks, of which a thread may have none in 200 ms.
    let text = dir.run(&format!("--output-format=json {line} --runtime=2s")).assert_success().stdout.clone();
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().unwrap();
    assert!((2..=12).contains(&documents.len()), "{} documents", documents.len());
    assert_eq!(text.matches("}\n{\n").count(), documents.len() - 1);
    let counts: Vec<u64> = documents.iter().map(|document| ios(&jobs(document)[0], "read")).collect();
    let before_the_end = documents.len() - 1;
    // The first may be of a job whose thread has had no processor yet.
    assert!(counts[before_the_end - 1] > 0 && counts.is_sorted(), "{counts:?}");
    let used_a_processor = |document: &Value| jobs(document)[0]["usr_cpu"].as_f64() > Some(0.0);
    assert!(documents[..before_the_end].iter().any(used_a_processor), "{text}");
    let ran = dir.run(&line);
    assert!(ran.assert_success().stdout.matches("Run status group 0").count() >= 2, "{ran:?}");
    let lines = dir.run(&format!("--minimal {line}")).assert_success().stdout.lines().count();
    assert!((2..=9).contains(&lines), "{lines} terse lines");
}

#[test]
fn a_ramp_is_excluded_from_the_figures() {
    let document = json("--name=a --ioengine=null --rw=read --bs=64k --size=8m --ramp_size=2m");
    assert_eq!(ios(&jobs(&document)[0], "read"), 96, "what comes behind the ramp: {document}");
    let document =
        json(&format!("{NULL} --name=a --rw=read --rate_iops=1000 --ramp_time=300ms --runtime=200ms"));
    let done = ios(&jobs(&document)[0], "read");
    assert!((100..=230).contains(&done), "{done} I/Os at 1000 a second in 0.2 s");
    // Too short for its ramp: reported as a whole, with a warning.
    let document =
        json("--name=a --ioengine=null --rw=read --bs=64k --size=1m --ramp_time=10 --rate_iops=100");
    let read = &jobs(&document)[0]["read"];
    assert_eq!(read["total_ios"], 16);
    assert!(read["runtime"].as_u64() >= Some(140), "15 I/Os at 100 a second took {}", read["runtime"]);
    assert_eq!(document["findings"][0]["code"], "ended-in-ramp", "{document}");
}

// divergence: a job that ends together with its ramp
// divergence: a job that ends within its ramp
/// A run that ends within its ramp has a warning, for each kind of ramp and of end, in each format that has warnings;
/// clones of one job have it once.
#[test]
fn a_run_that_is_all_ramp_has_a_warning() {
    let dir = Dir::new();
    let job = "--ioengine=null --rw=read --bs=64k --size=1m";
    for (ramp, code) in [
        ("--ramp_time=1h", "ended-in-ramp"),
        ("--ramp_time=1h --gtod_reduce=1", "ended-in-ramp"),
        ("--ramp_time=1h --number_ios=3", "ended-in-ramp"),
        ("--ramp_size=8m", "ended-in-ramp"),
        ("--ramp_size=1m", "nothing-measured"),
        ("--ramp_size=1m --ioengine=libaio --filename=f --rw=write --iodepth=4", "nothing-measured"),
    ] {
        for more in ["", "--group_reporting --numjobs=3", "--numjobs=2 --name=b --ioengine=null --size=64k"] {
            let line = format!("--name=a {job} {ramp} {more}");
            let document = dir.run(&format!("--output-format=json {line}")).assert_success().json();
            let codes: Vec<&str> = document["findings"].as_array().map_or_else(Vec::new, |findings| {
                findings.iter().filter_map(|finding| finding["code"].as_str()).collect()
            });
            assert_eq!(codes.iter().filter(|found| **found == code).count(), 1, "{line}: {document}");
            let text = dir.run(&line).assert_success().stdout.clone();
            assert_eq!(
                text.matches(&format!("\n  void: job a: {code}: the job ended ")).count(),
                1,
                "{line}: {text}"
            );
        }
    }
    let measured = json(&format!("--name=a {job} --ramp_size=512k"));
    assert!(!measured.to_string().contains("ramp\""), "{measured}");
}

#[test]
fn a_job_that_only_lays_out_files_reports_no_depth() {
    let keys =
        ["latency_depth", "latency_target", "latency_target_ns", "latency_percentile", "latency_window"];
    let has = |job: &Value| keys.map(|key| job.get(key).is_some());
    let document = json("--size=64k --name=a --create_only=1 --name=b");
    assert_eq!((has(&jobs(&document)[0]), has(&jobs(&document)[1])), ([false; 5], [true; 5]), "{document}");
    let document = json("--size=64k --group_reporting --name=a --create_only=1 --name=b");
    assert_eq!(has(&jobs(&document)[0]), [true; 5], "one of the group ran: {document}");
}

// divergence: `--eta=always`
/// As in fio: no progress where a program reads the report.
#[test]
fn the_live_line_stays_out_of_documents_and_files() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=read --runtime=700ms --eta=always --eta-interval=250ms");
    let jobs = |text: &str| text.matches("Jobs: 1 (f=").count();
    for format in ["json", "json+", "json,normal"] {
        let ran = dir.run(&format!("--output-format={format} {line}"));
        assert_eq!(jobs(&ran.assert_success().stdout), 0, "{ran:?}");
    }
    assert_eq!(jobs(&dir.run(&format!("--minimal {line}")).assert_success().stdout), 0);
    assert!(jobs(&dir.run(&line).assert_success().stdout) > 0);
    for format in ["normal", "json", "terse"] {
        let ran = dir.run(&format!("--output=out --output-format={format} {line}"));
        assert!(jobs(&ran.assert_success().stdout) > 0, "{ran:?}");
        let written = fs::read_to_string(dir.path().join("out")).unwrap();
        assert!(!written.is_empty() && jobs(&written) == 0, "{written}");
        // Only the line, each redrawn over the previous one, and an end.
        assert!(ran.stdout.ends_with("\r\n") && ran.stdout.starts_with("Jobs: "), "{ran:?}");
    }
}

// divergence: `eta` in JSON
#[test]
fn the_time_left_counts_down_in_status_documents() {
    let dir = Dir::new();
    let line = format!("{NULL} --name=a --rw=read --rate=10m --runtime=5 --status-interval=500ms");
    let text = dir.run(&format!("--output-format=json {line}")).assert_success().stdout.clone();
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<_, _>>().unwrap();
    let etas: Vec<u64> = documents.iter().map(|one| jobs(one)[0]["eta"].as_u64().unwrap()).collect();
    let known = etas.iter().position(|eta| *eta != i32::MAX as u64).expect("the time left is never known");
    assert!(etas[known..].iter().all(|eta| *eta <= 4), "{etas:?}");
    assert!(etas[known..].is_sorted_by(|before, after| before >= after), "{etas:?}");
    assert_eq!(etas.last(), Some(&0), "{etas:?}");
    let short = json("--name=a --ioengine=null --size=64k");
    assert_eq!(jobs(&short)[0]["eta"], i32::MAX, "fio has no estimate so soon");
}

// divergence: `job options` under `group_reporting`
#[test]
fn a_section_without_options_echoes_none() {
    let dir = Dir::new();
    dir.write("j.fio", "[global]\nioengine=null\nsize=64k\n[a]\n[b]\nbs=8k\n[c]\nstonewall\n");
    let document = dir.run("--output-format=json j.fio").assert_success().json();
    let echoed = |number: usize| jobs(&document)[number].get("job options").map(ToString::to_string);
    assert_eq!(echoed(0), None);
    assert_eq!(echoed(1).as_deref(), Some(r#"{"bs":"8k"}"#));
    assert_eq!(echoed(2).as_deref(), Some(r#"{"stonewall":""}"#));
    // For a group, those of the last section that has any.
    let document = dir.run("--group_reporting --output-format=json j.fio").assert_success().json();
    assert_eq!(jobs(&document)[0]["job options"], serde_json::json!({ "bs": "8k" }));
}

#[test]
fn engines_accept_their_own_options() {
    let dir = Dir::new();
    dir.write("f", vec![0; 1 << 20]);
    for (engine, options) in [
        ("io_uring", "--fixedbufs"),
        ("io_uring", "--registerfiles"),
        ("io_uring", "--sqthread_poll --sqthread_poll_cpu=0 --fixedbufs --registerfiles"),
        ("io_uring", "--nonvectored=0 --force_async=4"),
        ("io_uring", "--nonvectored=1 --nowait=0"),
        ("libaio", "--userspace_reap"),
        ("libaio", "--nowait=0 --libaio_vectored=1"),
        ("pvsync2", "--hipri --hipri_percentage=30"),
        ("pvsync2", "--nowait=0 --uncached=0"),
        ("mmap", "--thp=1"),
    ] {
        for mode in ["randread", "randwrite"] {
            let line =
                format!("--name=a --filename=f --size=1m --bs=4k --iodepth=4 --ioengine={engine} {options}");
            let ran = dir.run(&format!("--output-format=json {line} --rw={mode}"));
            if ran.status == Some(1) && ran.all_output().contains("set up engine") {
                // If the kernel refuses it, the call, its errno, the cause and an alternative are reported.
                ran.assert_prints(&[engine, " failed: ", "(E"]);
                skipped(format_args!("{engine} {options}: {}", ran.stderr));
                continue;
            }
            let document = ran.assert_success().json();
            let job = &jobs(&document)[0];
            assert_eq!(ios(job, "read") + ios(job, "write"), 256, "{engine} {options} {mode}");
        }
    }
    let ran = dir
        .run("--name=a --filename=f --size=4k --ioengine=io_uring --sqthread_poll --sqthread_poll_cpu=9999");
    ran.assert_status(1).assert_prints(&["set up engine io_uring", "(EINVAL)"]);
}

#[test]
fn latencies_and_percentiles_are_those_requested() {
    let kinds = ["slat_ns", "clat_ns", "lat_ns"];
    let run = |options: &str| {
        let line = format!("--name=a --ioengine=null --iodepth=4 --rw=read --size=1m --bs=4k {options}");
        jobs(&json(&line))[0]["read"].clone()
    };
    let counted = |read: &Value| kinds.map(|kind| read[kind]["N"] == 256);
    let listed = |read: &Value| kinds.map(|kind| read[kind].get("percentile").is_some());
    let read = run("");
    assert_eq!((counted(&read), listed(&read)), ([true; 3], [false, true, false]));
    for (option, expected) in [
        ("--disable_slat=1", [false, true, true]),
        ("--disable_clat=1", [true, false, true]),
        ("--disable_lat=1", [true, true, false]),
        ("--gtod_reduce=1", [false; 3]),
    ] {
        assert_eq!(counted(&run(option)), expected, "{option}");
    }
    let read = run("--slat_percentiles=1 --clat_percentiles=0 --lat_percentiles=1 --percentile_list=50:99.9");
    assert_eq!(listed(&read), [true, false, true]);
    let keys: Vec<&String> = read["lat_ns"]["percentile"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["50.000000", "99.900000"]);
}

#[test]
fn every_clock_measures() {
    for clock in ["gettimeofday", "clock_gettime", "cpu"] {
        let document = json(&format!("{NULL} --name=a --rw=read --runtime=100ms --clocksource={clock}"));
        let read = &jobs(&document)[0]["read"];
        assert_eq!(read["clat_ns"]["N"], read["total_ios"], "{clock}");
        assert!(read["runtime"].as_u64() >= Some(99), "{clock}: {}", read["runtime"]);
    }
}

#[test]
fn directions_and_groups_are_reported_as_requested() {
    let line = "--ioengine=null --size=64k --bs=4k --rw=rw --numjobs=2";
    let document = json(&format!("{line} --name=a --unified_rw_reporting=mixed --group_reporting"));
    let job = &jobs(&document)[0];
    assert_eq!((jobs(&document).len(), &job["mixed"]["total_ios"]), (1, &Value::from(32)));
    assert!(job.get("read").is_none());
    let document = json(&format!("{line} --name=a --unified_rw_reporting=both"));
    let job = &jobs(&document)[1];
    assert_eq!(ios(job, "read") + ios(job, "write"), ios(job, "mixed"));
    let document = json(&format!("{line} --name=a --stats=0 --name=b --new_group --description=words"));
    let names: Vec<&str> = jobs(&document).iter().map(|job| job["jobname"].as_str().unwrap()).collect();
    assert_eq!(names, ["b", "b"], "stats=0 keeps a job out of the report");
    assert_eq!(
        (&jobs(&document)[0]["groupid"], &jobs(&document)[0]["desc"]),
        (&Value::from(1), &"words".into())
    );
    let dir = Dir::new();
    let ran = dir.run(&format!(
        "{line} --name=a --kb_base=1000 --unit_base=1 --significant_figures=6 --description=words"
    ));
    ran.assert_success().assert_prints(&["  Description  : [words]", "kbit/s ("]);
}

#[test]
fn rates_are_kept_in_every_form() {
    let kept = |expected: RangeInclusive<u64>, options: &str| {
        let line = format!("{NULL} --name=a --rw=randread --runtime=500ms {options}");
        one_of_three(&line, |document| match ios(&jobs(document)[0], "read") {
            done if expected.contains(&done) => Ok(()),
            done => Err(format!("{options}: {done} I/Os, {expected:?} expected")),
        });
    };
    // 4 KiB at 1 MiB/s.
    kept(100..=135, "--rate=1m");
    kept(200..=270, "--rate_iops=500 --iodepth=4");
    kept(350..=650, "--rate_iops=1000 --rate_process=poisson");
    kept(400..=520, "--rate_iops=1000 --bsrange=4k-64k --randseed=3");
    // A pause of 300 ms after 50 I/Os, with or without catching up.
    let pauses = "--rate_iops=500 --thinktime=300ms --thinktime_blocks=50";
    kept(50..=105, &format!("{pauses} --rate_ignore_thinktime=1"));
    kept(100..=150, pauses);
}

/// Runs up to three times what must hold on a machine that lets the run have its time.
fn one_of_three(line: &str, holds: impl Fn(&Value) -> Result<(), String>) {
    let failures: Vec<String> = (0..3).map_while(|_| holds(&json(line)).err()).collect();
    assert!(failures.len() < 3, "{failures:?}");
}

#[test]
fn a_prerun_command_does_not_delay_the_end() {
    let dir = Dir::new();
    dir.write("job.fio", "[a]\nioengine=null\nsize=64k\nexec_prerun=touch started && sleep 1000 && true\n");
    let running = start(fiord(dir.path(), "job.fio"));
    until("the command runs", || dir.join("started").exists());
    signal(running.0.id(), "TERM");
    finish(running).assert_status(143).assert_prints(&["Run status group 0"]);
}

#[test]
fn disk_statistics_start_with_the_first_io_unless_disabled() {
    let dir = Dir::new();
    let device = need!(crate::common::LoopDevice::new(&dir, 4 << 20));
    let line = format!(
        "--output-format=json --name=a --filename={} --rw=write --bs=4k --size=1m --direct=1",
        device.path
    );
    let document = dir.run(&line).assert_success().json();
    let disk = &document["disk_util"][0];
    assert_eq!(
        (&disk["name"], &disk["write_sectors"]),
        (&device.path[5..].into(), &Value::from(2048)),
        "{disk}"
    );
    let document = dir.run(&format!("{line} --disk_util=0")).assert_success().json();
    assert!(document.get("disk_util").is_none());
}
