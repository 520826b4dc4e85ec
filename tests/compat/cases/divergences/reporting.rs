//! Reports, in every format, and programs beside the run.

use super::row::Given::Bytes;
use super::row::Seen::{Accepted, Is, Job, Omits, Prints, Refused};
use super::row::{ROW, Row};
use fiord_compat::Ran;
use fiord_compat::compare::figure;

/// Rows of the section "Reporting".
pub const ROWS: &[Row] = &[
    // divergence: `latency_target` of clones
    Row {
        name: "latency-target-of-clones",
        args: "--output-format=json --name=a --numjobs=3 --rw=randread --filename=f --size=64k --ioengine=libaio --iodepth=4 --latency_target=1s --latency_window=50ms --latency_percentile=50 --time_based --runtime=1",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted, Is("multiplied", |ran| Ok(latency_targets(ran)? == [1, 1000, 1000]))],
        fiord: &[Accepted, Is("as given", |ran| Ok(latency_targets(ran)? == [1, 1, 1]))],
        ..ROW
    },
    // divergence: `latency_target` with `gtod_reduce`
    Row {
        name: "latency-target-without-a-clock",
        args: "--name=a --filename=f --size=64k --ioengine=libaio --iodepth=4 --latency_target=1s --gtod_reduce=1",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted],
        fiord: &[Refused, Prints("gtod_reduce")],
        ..ROW
    },
    // divergence: `latency_window`, `latency_percentile` without
    Row {
        name: "latency-window-alone",
        args: "--output-format=json --name=a --ioengine=null --size=64k --latency_window=50ms --latency_percentile=50",
        fio: &[Accepted, Job("/latency_window", "50000"), Job("/latency_percentile", "50.0")],
        fiord: &[Accepted, Job("/latency_window", "0"), Job("/latency_percentile", "100.0")],
        ..ROW
    },
    // divergence: `iodepth` of io_uring that is not a power
    Row {
        name: "depth-of-io_uring",
        args: "--output-format=json --name=a --rw=randread --ioengine=io_uring --iodepth=5 --size=64k",
        fio: &[Accepted, Job("/latency_depth", "8")],
        fiord: &[Accepted, Job("/latency_depth", "5")],
        ..ROW
    },
    // divergence: a steady state, in text
    Row {
        name: "steady-state-in-two-units",
        args: "--name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=500 --time_based --runtime=5 --ss=bw:90% --ss_dur=2",
        fio: &[
            Accepted,
            Is("the figure is repeated", |ran| Ok(steady_figures(ran)?.0 == steady_figures(ran)?.1)),
        ],
        fiord: &[
            Accepted,
            Is("the figure is converted", |ran| Ok(steady_figures(ran)?.0 < steady_figures(ran)?.1)),
        ],
        ..ROW
    },
    // divergence: a steady state before its window is full
    Row {
        name: "steady-state-of-a-window-in-part",
        args: "--output-format=json --name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=100 --time_based --runtime=3 --ss=iops:50% --ss_dur=9",
        fio: &[Accepted, Is("the mean of the window", |ran| Ok(steady_mean(ran)? < 50.0))],
        fiord: &[Accepted, Is("the mean of what was measured", |ran| Ok(steady_mean(ran)? > 60.0))],
        ..ROW
    },
    // divergence: `steadystate` with a slope and one measurement
    Row {
        name: "slope-of-one-measurement",
        args: "--output-format=json --name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=100 --time_based --runtime=3 --ss=iops_slope:5 --ss_dur=1",
        fio: &[Prints("nan")],
        fiord: &[Accepted, Omits("nan"), Prints("\"criterion\" : \"0")],
        ..ROW
    },
    // divergence: `block_error_percentiles` with more than one block
    Row {
        name: "lifetimes-of-two-blocks",
        args: "--output-format=json --name=a --ioengine=null --rw=trim --bs=1m --size=2m --block_error_percentiles=1",
        fio: &[Refused, Prints("Assertion")],
        fiord: &[Accepted, Job("/block/states/trimmed", "2")],
        ..ROW
    },
    // divergence: `block_error_percentiles` with `group_reporting`
    Row {
        name: "lifetimes-of-a-group",
        args: "--output-format=json --name=a --numjobs=3 --group_reporting --ioengine=null --rw=trim --bs=1m --size=1m --block_error_percentiles=1",
        fio: &[Accepted, Job("/block/states/trimmed", "1")],
        fiord: &[Accepted, Job("/block/states/trimmed", "3")],
        ..ROW
    },
    // divergence: `block_error_percentiles` in a job that does not trim
    Row {
        name: "lifetimes-without-trims",
        args: "--name=a --ioengine=null --rw=read --bs=1m --size=1m --block_error_percentiles=1",
        fio: &[Accepted, Prints("lifetime")],
        fiord: &[Accepted, Omits("lifetime")],
        ..ROW
    },
    // divergence: `steadystate=lat`
    Row {
        name: "steady-latency",
        args: "--output-format=json --name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=100 --time_based --runtime=4 --ss=lat:500% --ss_dur=2 --ss_interval=500ms",
        fio: &[Refused],
        fiord: &[Accepted, Prints("lat_mean")],
        ..ROW
    },
    // divergence: bandwidth samples with `kb_base=1000`
    Row {
        name: "samples-in-kb",
        args: "--name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=500 --time_based --runtime=2 --kb_base=1000",
        fio: &[Accepted, Is("KiB", |ran| Ok((1970.0..2030.0).contains(&samples_mean(ran)?)))],
        fiord: &[Accepted, Is("kB", |ran| Ok((2030.0..2080.0).contains(&samples_mean(ran)?)))],
        ..ROW
    },
    // divergence: `unified_rw_reporting=both`, line `mixed:`
    Row {
        name: "mixed-line-of-both",
        args: "--name=a --ioengine=null --size=1m --rw=rw --bs=4k --unified_rw_reporting=both",
        fio: &[Accepted, Prints("mixed: IOPS=0")],
        fiord: &[Accepted, Prints("mixed: IOPS="), Omits("mixed: IOPS=0,")],
        ..ROW
    },
    // divergence: `unified_rw_reporting=mixed` in some jobs
    Row {
        name: "mixed-in-some-jobs",
        args: "--ioengine=null --size=1m --rw=rw --bs=4k --name=a --unified_rw_reporting=mixed --name=b",
        fio: &[Is("all lines are MIXED", |ran| Ok(group_lines(ran) == ["MIXED", "MIXED"]))],
        fiord: &[Is("only the first is MIXED", |ran| Ok(group_lines(ran) == ["READ", "WRITE", "MIXED"]))],
        ..ROW
    },
    // divergence: `fsync=N` with `disable_clat=1`
    Row {
        name: "latencies-of-syncs",
        args: "--output-format=json --name=a --filename=f --rw=write --size=64k --bs=4k --fsync=4 --disable_clat=1",
        fio: &[Accepted, Job("/sync/lat_ns/N", "0")],
        fiord: &[Accepted, Job("/sync/lat_ns/N", "3")],
        ..ROW
    },
    // divergence: `--append-terse=0`
    Row {
        name: "append-terse-off",
        args: "--append-terse=0 --name=a --ioengine=null --size=64k",
        fio: &[Accepted, Prints("3;fio-3.33;a;")],
        fiord: &[Accepted, Omits("3;fio-")],
        ..ROW
    },
    // divergence: line `Starting ...`
    Row {
        name: "processes-or-threads",
        args: "--name=a --ioengine=null --size=64k",
        fio: &[Accepted, Prints("Starting 1 process\n")],
        fiord: &[Accepted, Prints("Starting 1 thread\n")],
        ..ROW
    },
    // divergence: `clat` and `lat` of synchronous engines
    Row {
        name: "total-latency-of-synchronous-engines",
        args: "--output-format=json --name=a --rw=write --size=4m --bs=4k --ioengine=psync",
        fio: &[Accepted, Is("they differ", |ran| Ok(latencies(ran)?.0 != latencies(ran)?.1))],
        fiord: &[Accepted, Is("they are equal", |ran| Ok(latencies(ran)?.0 == latencies(ran)?.1))],
        ..ROW
    },
    // divergence: `--crctest`
    Row {
        name: "crctest-of-what-is-not-used",
        args: "--crctest=murmur3",
        fio: &[Accepted],
        fiord: &[Refused, Prints("murmur3")],
        ..ROW
    },
    // divergence: bandwidth samples under `gtod_reduce`
    Row {
        name: "samples-without-a-clock",
        args: "--output-format=json --name=a --ioengine=null --size=1m --rw=read --bs=4k --rate_iops=500 --time_based --runtime=2 --gtod_reduce=1",
        fio: &[Accepted, Is("samples", |ran| Ok(figure(&ran.jobs()?[0], "read", "bw_samples") > 0))],
        fiord: &[Accepted, Is("samples", |ran| Ok(figure(&ran.jobs()?[0], "read", "bw_samples") > 0))],
        ..ROW
    },
    // divergence: a job with `create_only` in the normal text
    Row {
        name: "create_only-in-text",
        args: "--name=a --size=64k --create_only=1",
        fio: &[Accepted, Omits("(groupid=")],
        fiord: &[Accepted, Prints("(groupid=")],
        ..ROW
    },
    // divergence: disk statistics of very short jobs
    Row {
        name: "disk-of-a-short-job",
        args: "--output-format=json --name=a --filename={device} --rw=write --size=64k --bs=4k --direct=1",
        fio: &[Accepted, Is("zeros", |ran| Ok(ran.json()?["disk_util"][0]["write_ios"] == 0))],
        fiord: &[Accepted, Is("all writes", |ran| Ok(ran.json()?["disk_util"][0]["write_ios"] == 16))],
        ..ROW
    },
    // divergence: submission latency in a batch
    Row {
        name: "submission-latency-of-a-batch",
        args: "--name=a --filename=f --rw=randread --size=1m --bs=4k --ioengine=libaio --direct=1 --iodepth=8 --iodepth_batch=8 --iodepth_batch_complete_min=8 --write_lat_log=l",
        files: &[Bytes("f", 1 << 20)],
        fio: &[Accepted, Is("each its own", |ran| Ok(!is_equal_in_batches(ran)?))],
        fiord: &[Accepted, Is("equal in each batch", is_equal_in_batches)],
        ..ROW
    },
];

/// The targets of all jobs in seconds.
fn latency_targets(ran: &Ran) -> Result<Vec<u64>, String> {
    let target = |job: &serde_json::Value| job["latency_target"].as_u64().map(|ns| ns / 1_000_000_000);
    ran.jobs()?.iter().map(target).collect::<Option<_>>().ok_or_else(|| "no target".to_string())
}

/// The two bandwidths on the line of the steady state.
fn steady_figures(ran: &Ran) -> Result<(String, String), String> {
    let line = ran.stdout.lines().find(|line| line.starts_with("  steadystate  :")).ok_or("no line")?;
    let figures = line.split("bw=").nth(1).ok_or("no bandwidth")?;
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let (first, second) = figures.split_once(" (").ok_or("no second unit")?;
    Ok((digits(first), digits(second)))
}

fn steady_mean(ran: &Ran) -> Result<f64, String> {
    ran.jobs()?[0]["steadystate"]["data"]["iops_mean"].as_f64().ok_or_else(|| "no mean".to_string())
}

fn latencies(ran: &Ran) -> Result<(f64, f64), String> {
    let write = &ran.jobs()?[0]["write"];
    let mean = |key: &str| write[key]["mean"].as_f64().ok_or_else(|| format!("no {key}"));
    Ok((mean("clat_ns")?, mean("lat_ns")?))
}

/// Whether each 8 I/Os that were submitted together have one submission latency.
fn is_equal_in_batches(ran: &Ran) -> Result<bool, String> {
    let log = ran.file("l_slat.1.log")?;
    let latencies: Vec<&str> = log.lines().filter_map(|line| line.split(", ").nth(1)).collect();
    Ok(latencies.len() == 256 && latencies.chunks(8).all(|batch| batch.iter().all(|one| *one == batch[0])))
}

/// The mean of the bandwidth samples, which are labelled kB/s.
fn samples_mean(ran: &Ran) -> Result<f64, String> {
    let line = ran.stdout.lines().find(|line| line.starts_with("   bw (   kB/s):")).ok_or("no line")?;
    let mean = line.split("avg=").nth(1).and_then(|rest| rest.split(',').next()).ok_or("no mean")?;
    mean.trim().parse().map_err(|error| format!("{mean}: {error}"))
}

/// The names of the lines of the group.
fn group_lines(ran: &Ran) -> Vec<&str> {
    let lines = ran.stdout.lines().skip_while(|line| !line.starts_with("Run status group"));
    lines.filter_map(|line| Some(line.split_once(": bw=")?.0.trim())).collect()
}
