//! Log files of runs: written while the jobs run, in bounded memory, complete and in order.
//!
//! Invariant: nothing is concluded from a duration; what a test waits for is a state of the process.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::common::{Dir, finish, fiord, helper, signal, start, until};

/// I/Os of a job whose log would take 144 MB if it stayed in memory.
const MANY_IOS: usize = 3_000_000;

/// A value of a file of `/proc` with lines of the form `KEY: VALUE`.
fn status(path: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim_start_matches(':').split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Whether a thread of this name has waited at least this often.
fn has_waited(pid: u32, thread: &str, times: u64) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| {
        tasks.flatten().any(|task| {
            let is_it = fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == thread);
            is_it && status(&task.path().join("status"), "voluntary_ctxt_switches") >= times
        })
    })
}

// divergence: logs of every I/O
#[test]
fn a_job_faster_than_its_log_waits_in_bounded_memory_and_the_report_says_so() {
    let dir = Dir::new();
    let log = dir.path().join("l_bw.1.log");
    helper("mkfifo", &[&log.to_string_lossy()]).unwrap();
    let line = format!(
        "--name=j --ioengine=null --rw=read --bs=4k --size=16g --number_ios={MANY_IOS} --write_bw_log=l"
    );
    let running = start(fiord(dir.path(), &line));
    let mut reader = fs::File::open(&log).unwrap();
    let pid = running.0.id();
    // A null job never sleeps, unless all its blocks wait to be written.
    until("the job waits for its log", || has_waited(pid, "j", 50));
    let mut text = String::new();
    let peak_kib = status(Path::new(&format!("/proc/{pid}/status")), "VmHWM");
    reader.read_to_string(&mut text).unwrap();
    let ran = finish(running);
    ran.assert_success();
    assert!((50_000..115_000).contains(&peak_kib), "{peak_kib} KiB");
    assert_eq!(text.lines().count(), MANY_IOS);
    assert!(text.ends_with('\n'));
    ran.assert_prints(&["the job issued no I/O for", "because its logs could not be written as fast"]);
}

#[test]
fn logs_are_written_while_the_job_runs_and_are_complete_when_it_is_stopped() {
    let dir = Dir::new();
    let line = "--name=j --ioengine=null --rw=randrw --size=1g --time_based --runtime=600 --output-format=json \
                --write_lat_log=l --thinktime=1ms --thinktime_blocks=2000";
    let running = start(fiord(dir.path(), line));
    let log = dir.path().join("l_clat.1.log");
    until("the log has lines", || fs::metadata(&log).is_ok_and(|log| log.len() > 0));
    signal(running.0.id(), "INT");
    let ran = finish(running);
    let json = ran.stdout.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let done = |direction: &str| json["jobs"][0][direction]["total_ios"].as_u64().unwrap() as usize;
    let text = fs::read_to_string(log).unwrap();
    assert_eq!(text.lines().count(), done("read") + done("write"));
    let reads = text.lines().filter(|line| line.split(", ").nth(2) == Some("0")).count();
    assert_eq!(reads, done("read"));
}

#[test]
fn jobs_that_share_a_log_stand_in_it_one_after_another() {
    let dir = Dir::new();
    let line = "--name=j --ioengine=null --rw=read --size=64m --bs=4k --numjobs=3 --write_iops_log=l --per_job_logs=0";
    dir.run(line).assert_success();
    let text = fs::read_to_string(dir.path().join("l_iops.log")).unwrap();
    assert_eq!(text.lines().count(), 3 * 16_384);
    let times: Vec<u64> =
        text.lines().map(|line| line.split(", ").next().unwrap().parse().unwrap()).collect();
    assert!(times.chunks(16_384).all(<[u64]>::is_sorted));
    // A second run appends.
    dir.run(line).assert_success();
    assert_eq!(fs::read_to_string(dir.path().join("l_iops.log")).unwrap().lines().count(), 6 * 16_384);
}

// divergence: a log that cannot be written
#[test]
fn a_log_that_cannot_be_written_loses_neither_the_others_nor_the_report() {
    let dir = Dir::new();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("l_clat.1.log")).unwrap();
    let ran = dir.run("--name=j --ioengine=null --rw=read --size=64m --bs=4k --write_lat_log=l");
    ran.assert_status(1);
    ran.assert_prints(&["job j: log l_clat.1.log:", "No space left on device", "READ: bw="]);
    assert_eq!(fs::read_to_string(dir.path().join("l_lat.1.log")).unwrap().lines().count(), 16_384);
}

#[test]
fn compressed_logs_hold_the_lines_of_plain_ones_for_each_of_the_jobs_that_share_them() {
    let dir = Dir::new();
    let line = "--name=j --ioengine=null --rw=write --size=64m --bs=4k --numjobs=2 --write_iops_log=l --log_offset=1 \
                --per_job_logs=0 --log_store_compressed=1";
    dir.run(line).assert_success();
    let compressed = fs::metadata(dir.path().join("l_iops.log.fz")).unwrap().len();
    let ran = dir.run("--inflate-log=l_iops.log.fz");
    ran.assert_success();
    let offsets: Vec<u64> =
        ran.stdout.lines().map(|line| line.split(", ").nth(4).unwrap().parse().unwrap()).collect();
    let expected = (0..2 * 16_384).map(|io| io % 16_384 * 4096);
    assert!(offsets.iter().copied().eq(expected));
    assert!(compressed < ran.stdout.len() as u64 / 2, "{compressed} bytes");
}

// divergence: `log_compression`
#[test]
fn logs_kept_in_memory_are_the_same_in_the_end() {
    let dir = Dir::new();
    let line = "--name=j --ioengine=null --rw=write --size=16m --bs=4k --numjobs=2 --write_iops_log=l --log_offset=1 \
                --log_compression=1k";
    dir.run(line).assert_success();
    dir.run(&format!("{line} --write_iops_log=s --per_job_logs=0")).assert_success();
    dir.run(&format!("{line} --write_iops_log=c --log_store_compressed=1")).assert_success();
    let offsets = |text: &str| -> Vec<u64> {
        text.lines().map(|line| line.split(", ").nth(4).unwrap().parse().unwrap()).collect()
    };
    let of_job: Vec<u64> = (0..4096).map(|io| io * 4096).collect();
    assert_eq!(offsets(&dir.text("l_iops.1.log")), of_job);
    assert_eq!(offsets(&dir.text("l_iops.2.log")), of_job);
    assert_eq!(offsets(&dir.text("s_iops.log")), [of_job.clone(), of_job.clone()].concat());
    assert_eq!(offsets(&dir.run("--inflate-log=c_iops.2.log.fz").stdout), of_job);
}

#[test]
fn times_of_issue_are_between_the_start_and_the_completion() {
    let dir = Dir::new();
    let line = "--name=j --ioengine=null --iodepth=4 --rw=randread --size=4m --bs=4k --write_lat_log=l --log_offset=1 \
                --log_issue_time=1";
    dir.run(line).assert_success();
    let text = fs::read_to_string(dir.path().join("l_clat.1.log")).unwrap();
    assert_eq!(text.lines().count(), 1024);
    for line in text.lines() {
        let columns: Vec<u64> = line.split(", ").map(|column| column.parse().unwrap()).collect();
        assert_eq!(columns.len(), 7, "{line}");
        let (end_ms, latency_ns, issued_ns) = (columns[0], columns[1], columns[6]);
        assert!(
            issued_ns <= (end_ms + 1) * 1_000_000 && issued_ns + latency_ns >= end_ms * 1_000_000,
            "{line}"
        );
    }
    let refused = dir.run("--name=j --ioengine=null --size=4m --write_lat_log=l --log_issue_time=1");
    refused.assert_status(1).assert_prints(&["log_issue_time needs write_lat_log and log_offset"]);
}

/// The columns of the lines of a log.
fn columns(text: &str) -> Vec<Vec<u64>> {
    text.lines().map(|line| line.split(", ").map(|column| column.parse().unwrap()).collect()).collect()
}

/// Mean and maximum of a log's values, rounded down.
fn mean_and_maximum(lines: &[Vec<u64>]) -> (u64, u64) {
    let values = || lines.iter().map(|columns| columns[1]);
    (values().sum::<u64>() / lines.len() as u64, values().max().unwrap())
}

// divergence: latency of a job with a rate
#[test]
fn response_latencies_are_logged_as_they_are_reported_with_every_engine() {
    let dir = Dir::new();
    dir.write("f", vec![1; 1 << 20]);
    let job = "--name=j --filename=f --size=1m --rw=randread --bs=4k --number_ios=40 --time_based --runtime=60 --rate_iops=4000 \
               --write_lat_log=l --output-format=json";
    let engines = ["null", "sync", "psync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring"];
    for (engine, open) in engines.iter().flat_map(|engine| [(engine, ""), (engine, "--rate_arrivals=open")]) {
        let ran = dir.run(&format!("{job} --ioengine={engine} --iodepth=4 {open}"));
        ran.assert_success();
        let json = ran.json();
        let reported = &json["jobs"][0]["response"]["read"]["lat_ns"];
        let lines = columns(&dir.text("l_resp.1.log"));
        assert_eq!(lines.len(), 40, "{engine} {open}");
        let (mean_ns, max_ns) = mean_and_maximum(&lines);
        assert_eq!(reported["N"].as_u64(), Some(40), "{engine} {open}");
        assert_eq!(reported["max"].as_u64(), Some(max_ns), "{engine} {open}");
        assert_eq!(reported["mean"].as_f64().unwrap() as u64, mean_ns, "{engine} {open}");
        // An I/O ends once: in the log of total latencies at the same time.
        let total = columns(&dir.text("l_lat.1.log"));
        assert!(lines.iter().zip(&total).all(|(one, other)| one[0] == other[0] && one[1] >= other[1]));
    }
}

#[test]
fn logs_of_responses_take_the_options_of_the_other_logs() {
    let dir = Dir::new();
    let job = "--name=j --ioengine=null --filename=f --size=1m --rw=randrw --bs=4k --number_ios=200 --rate_iops=20000,0";
    let ran = dir.run(&format!("{job} --write_lat_log=s --log_store_compressed=1 --output-format=json"));
    ran.assert_success();
    let json = ran.json();
    let responses = |json: &serde_json::Value| json["jobs"][0]["response"]["read"]["lat_ns"]["N"].as_u64();
    let lines = columns(&dir.run("--inflate-log=s_resp.1.log.fz").stdout);
    assert_eq!(Some(lines.len() as u64), responses(&json));
    assert!(lines.len() < 200 && lines.iter().all(|columns| columns[2] == 0), "writes have no rate");

    dir.run(&format!("{job} --write_lat_log=m --log_compression=1k --log_offset=1 --per_job_logs=0"))
        .assert_success();
    assert!(columns(&dir.text("m_resp.log")).iter().all(|columns| columns.len() == 6));

    let windows = "--log_avg_msec=2 --log_window_value=both --write_hist_log=h --log_hist_msec=2";
    let ran = dir.run(&format!("{job} --write_lat_log=w {windows} --output-format=json"));
    ran.assert_success();
    let windows = columns(&dir.text("w_resp.1.log"));
    assert!(!windows.is_empty() && windows.iter().all(|columns| columns[2] >= columns[1]), "{windows:?}");
    let histograms = columns(&dir.text("h_resp_hist.1.log"));
    let counted: u64 = histograms.iter().flat_map(|columns| &columns[3..]).sum();
    assert_eq!(Some(counted), responses(&ran.json()));
}

// divergence: `--bandwidth-log`
#[test]
fn the_total_bandwidth_is_logged() {
    let dir = Dir::new();
    let line = "--ioengine=null --size=1g --bs=4k --time_based --name=a --rw=rw --runtime=300ms --numjobs=2 \
                --bwavgtime=100 --bandwidth-log";
    dir.run(line).assert_success();
    for (name, direction) in [("read", "0"), ("write", "1")] {
        let text = dir.text(&format!("agg-{name}_bw.log"));
        assert!(text.lines().count() >= 2, "{text}");
        for line in text.lines() {
            let columns: Vec<&str> = line.split(", ").collect();
            assert_eq!(
                (columns.len(), columns[2], columns[3], columns[4]),
                (5, direction, "0", "0"),
                "{line}"
            );
        }
        let value = |line: &str| line.split(", ").nth(1).unwrap().parse::<u64>().unwrap();
        assert!(text.lines().any(|line| value(line) > 0), "{text}");
    }
    assert_eq!(dir.text("agg-trim_bw.log"), "");
    fs::create_dir(dir.join("away")).unwrap();
    fs::create_dir(dir.join("away/agg-read_bw.log")).unwrap();
    let ran = crate::common::run(&dir.join("away"), line);
    ran.assert_status(1).assert_prints(&["agg-read_bw.log"]);
}
