//! Limits that a job meets: whatever may abort or end a job, a job within it passes.
//!
//! Invariant: each limit is so far from what the job does that no load of the machine breaks it.

use serde_json::Value;

use crate::common::Dir;

/// What jobs do: one direction, two, and both of a mix of which one has no share.
const ACCESS: [&str; 9] = [
    "rw=read",
    "rw=randread",
    "rw=write",
    "rw=randwrite",
    "rw=trim",
    "rw=trimwrite",
    "rw=randrw",
    "rw=rw --rwmixread=100",
    "rw=rw --rwmixread=0",
];

/// Limits of jobs that do 200 IOPS for three and a half seconds: two of grace before a rate is judged, and a cycle.
const OVER_TIME: [&str; 14] = [
    "rate_min=1",
    "rate_min=1k,2k,3k",
    "rate_iops_min=1",
    "rate_min=1 --rate_cycle=500",
    "rate_iops_min=1 --thinktime=1ms",
    "rate_min=1 --ramp_time=1",
    "max_latency=50s",
    "latency_target=50s --latency_percentile=99 --latency_window=1s --latency_run=1",
    "latency_target=50s --latency_window=1s --latency_run=1",
    "ss=iops:99% --ss_dur=100",
    "ss=bw_slope:99% --ss_dur=100",
    "ss=lat:99% --ss_dur=100",
    "continue_on_error=none --error_dump=1 --ignore_error=EIO",
    "rate_min=1 --exitall_on_error --exit_what=all",
];

/// Limits that end a job, which is no failure.
const ENDS: [&str; 17] = [
    "size=64k",
    "size=64k --io_size=8k",
    "size=64k --io_size=256k",
    "size=64k --number_ios=3",
    "size=64k --loops=2",
    "size=1g --runtime=50ms",
    "size=1g --runtime=50ms --time_based",
    "size=64k --runtime=50",
    "size=64k --ramp_size=8k",
    "size=64k --latency_target=50s --latency_percentile=99 --latency_window=10ms",
    "size=1g --ss=iops:99% --ss_dur=1 --ss_interval=500ms --time_based --runtime=9",
    "size=64k --rate_min=1k",
    "size=64k --max_latency=50s",
    "size=64k --fill_device=1",
    "size=64k --lockmem=4k",
    "size=64k --exitall_on_error",
    "size=64k --exitall --exit_what=group",
];

/// Limits that also end other jobs, or the run.
const ENDS_OTHERS: [&str; 6] = [
    "size=1g --timeout=1",
    "size=64k --exitall --name=b --ioengine=null --size=1g --rw=read --time_based --runtime=50",
    "size=64k --exitall_on_error --name=b --ioengine=null --size=64k --rw=read",
    "size=64k --exit_what=stonewall --exitall --name=b --stonewall --ioengine=null --size=64k --rw=read",
    "size=64k --trigger-timeout=50 --trigger=true",
    "size=64k --max-jobs=2",
];

fn assert_no_job_fails(line: &str) -> Value {
    let ran = Dir::new().run(&format!("--output-format=json {line}"));
    let document = ran.assert_success().json();
    for job in document["jobs"].as_array().unwrap() {
        assert_eq!(job["error"], 0, "{line}: {}", job["jobname"]);
    }
    document
}

#[test]
fn a_job_that_meets_its_limits_over_time_passes() {
    let mut line = "--ioengine=null --size=1g --rate_iops=200 --time_based --runtime=3500ms".to_string();
    for access in ACCESS {
        for limit in OVER_TIME {
            let name = format!("{access}/{limit}").replace(' ', "");
            line.push_str(&format!(" --name={name} --new_group --{access} --{limit}"));
        }
    }
    let document = assert_no_job_fails(&line);
    assert_eq!(document["jobs"].as_array().unwrap().len(), ACCESS.len() * OVER_TIME.len());
}

#[test]
fn a_limit_that_ends_a_job_is_no_failure() {
    let job = |access: &str, limit: &str| {
        format!(" --name={} --ioengine=null --{access} --{limit}", access.replace(' ', ""))
    };
    for limit in ENDS {
        let line: String = ACCESS.iter().map(|access| job(access, limit)).collect();
        assert_eq!(assert_no_job_fails(&line)["jobs"].as_array().unwrap().len(), ACCESS.len());
    }
    for access in ACCESS {
        ENDS_OTHERS.iter().for_each(|limit| drop(assert_no_job_fails(&job(access, limit))));
    }
}

#[test]
fn a_rate_gives_no_share_to_a_direction_that_has_none() {
    for (percent, none) in [(100, "write"), (0, "read")] {
        let job = "--name=a --ioengine=null --rw=rw --size=1g --time_based --runtime=200ms --rate=10m";
        let document = assert_no_job_fails(&format!("{job} --rwmixread={percent}"));
        assert_eq!(document["jobs"][0][none]["total_ios"], 0, "{percent} %");
    }
}

/// What ends a job in the middle of its I/O.
const CUTS: [&str; 6] = [
    "--runtime=50ms",
    "--runtime=20ms --ramp_time=20ms",
    "--runtime=30ms --rate_iops=3000",
    "--runtime=50ms --thinktime=3ms --thinktime_blocks=3",
    "--runtime=50 --name=b --ioengine=null --size=64k --rate_iops=200 --rw=read --exitall",
    "--runtime=50 --ss=iops:99% --ss_dur=1 --ss_interval=500ms",
];

// divergence: `rw=trimwrite` that a run time ends
/// A block that was trimmed is written, whatever ends the job: it would be left without contents.
#[test]
fn no_job_ends_between_a_trim_and_its_write() {
    for cut in CUTS {
        for queue in ["", "--iodepth=4", "--iodepth=8 --iodepth_batch=2", "--iodepth=5 --iodepth_batch=3"] {
            for rw in ["trimwrite", "randtrimwrite"] {
                let line = format!("--name=a --ioengine=null --size=1g --rw={rw} --time_based {queue} {cut}");
                let job = &assert_no_job_fails(&line)["jobs"][0];
                let ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap();
                assert!(ios("trim") > 0, "{line}");
                if !cut.contains("ramp") {
                    assert_eq!(ios("trim"), ios("write"), "{line}");
                }
            }
        }
    }
}
