//! Traces that are replayed, and logs over time.

use super::row::Given::{Bytes, Text};
use super::row::Seen::{Accepted, File, Is, Job, NoFile, Prints, Refused};
use super::row::{ROW, Row, bytes};
use fiord_compat::Ran;
use fiord_compat::compare::figure;

/// Rows of the sections "Recording and replaying" and "Log files".
pub const ROWS: &[Row] = &[
    // divergence: `wait` in an iolog of version 2
    Row {
        name: "wait-of-version-2",
        args: "--output-format=json --name=r --ioengine=psync --read_iolog=t",
        files: &[
            Text(
                "t",
                "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 4000 0\nf read 4096 4096\nf close\n",
            ),
            Bytes("f", 8192),
        ],
        fio: &[
            Accepted,
            Is("it waits for seconds", |ran| Ok(ran.jobs()?[0]["job_runtime"].as_u64() >= Some(3500))),
        ],
        fiord: &[
            Accepted,
            Is("it waits for milliseconds", |ran| Ok(ran.jobs()?[0]["job_runtime"].as_u64() < Some(3000))),
        ],
        ..ROW
    },
    // divergence: a read or write of an iolog longer
    Row {
        name: "trace-with-a-write-of-4-gib",
        args: "--output-format=json --name=r --ioengine=null --read_iolog=t",
        files: &[Text("t", "fio version 2 iolog\nf add\nf open\nf write 0 4294967296\nf close\n")],
        fio: &[Is("nothing is written", |ran| Ok(figure(&ran.jobs()?[0], "write", "total_ios") == 0))],
        fiord: &[Refused, Prints("no call of Linux transfers more")],
        ..ROW
    },
    // divergence: a file that a trace reads from
    Row {
        name: "trace-that-reads-what-is-not-there",
        args: "--name=r --ioengine=psync --read_iolog=t",
        files: &[Text("t", "fio version 2 iolog\nf add\nf open\nf read 8192 4096\nf close\n")],
        fio: &[Refused, NoFile("f"), Prints("No such file or directory")],
        fiord: &[Accepted, File("f", 12_288)],
        ..ROW
    },
    Row {
        name: "trace-that-reads-beyond-the-end",
        args: "--name=r --ioengine=psync --read_iolog=t",
        files: &[
            Text("t", "fio version 2 iolog\nf add\nf open\nf read 8192 4096\nf close\n"),
            Bytes("f", 4096),
        ],
        fio: &[Refused, File("f", 4096), Prints("Input/output error")],
        fiord: &[Accepted, File("f", 12_288)],
        ..ROW
    },
    // divergence: `replay_skip` with an iolog
    Row {
        name: "iolog-without-its-writes",
        args: "--output-format=json --name=r --ioengine=psync --read_iolog=t --replay_skip=write",
        files: &[
            Text("t", "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf read 0 4096\nf close\n"),
            Bytes("f", 4096),
        ],
        fio: &[Accepted, Job("/write/total_ios", "1"), Job("/read/total_ios", "1")],
        fiord: &[Accepted, Job("/write/total_ios", "0"), Job("/read/total_ios", "1")],
        ..ROW
    },
    Row {
        name: "scaled-iolog",
        args: "--name=r --ioengine=psync --read_iolog=t --replay_scale=2",
        files: &[Text("t", "fio version 2 iolog\nf add\nf open\nf write 16384 4096\nf close\n")],
        fio: &[Accepted, File("f", 12_288)],
        fiord: &[Accepted, File("f", 12_288)],
        ..ROW
    },
    Row {
        name: "aligned-iolog",
        args: "--name=r --ioengine=psync --read_iolog=t --replay_align=16k",
        files: &[Text("t", "fio version 2 iolog\nf add\nf open\nf write 20480 4096\nf close\n")],
        fio: &[Accepted, File("f", 20_480)],
        fiord: &[Accepted, File("f", 20_480)],
        ..ROW
    },
    // divergence: a file that was not opened in the trace
    Row {
        name: "trace-that-does-not-open",
        args: "--output-format=json --name=r --ioengine=psync --read_iolog=t",
        files: &[Text("t", "fio version 2 iolog\nf add\nf read 0 4096\n"), Bytes("f", 4096)],
        fio: &[Prints("Assertion")],
        fiord: &[Accepted, Job("/read/total_ios", "1")],
        ..ROW
    },
    // divergence: `--readonly` and a trace that writes
    Row {
        name: "trace-that-may-not-write",
        args: "--output-format=json --readonly --name=r --ioengine=psync --read_iolog=t",
        files: &[
            Text("t", "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf read 0 4096\nf close\n"),
            Bytes("f", 4096),
        ],
        fio: &[Accepted, Job("/write/total_ios", "0"), Job("/read/total_ios", "1")],
        fiord: &[Refused, Prints("readonly")],
        ..ROW
    },
    Row {
        name: "trace-that-would-write-and-skips-it",
        args: "--output-format=json --readonly --name=r --ioengine=psync --read_iolog=t --replay_skip=write",
        files: &[
            Text("t", "fio version 2 iolog\nf add\nf open\nf write 0 4096\nf read 0 4096\nf close\n"),
            Bytes("f", 4096),
        ],
        fio: &[Accepted],
        fiord: &[Accepted, Job("/write/total_ios", "0"), Job("/read/total_ios", "1")],
        ..ROW
    },
    // divergence: trims of a regular file in a trace
    Row {
        name: "trims-of-a-trace",
        args: "--output-format=json --name=r --ioengine=psync --read_iolog=t",
        files: &[
            Text("t", "fio version 2 iolog\nf add\nf open\nf trim 0 4096\nf read 0 4096\nf close\n"),
            Bytes("f", 8192),
        ],
        fio: &[Prints("bad ddir"), Job("/trim/total_ios", "0")],
        fiord: &[
            Accepted,
            Job("/trim/total_ios", "1"),
            Is("a hole", |ran| Ok(bytes(ran, "f")?[..4096] == [0; 4096])),
        ],
        ..ROW
    },
    // divergence: bytes of I/Os in flight when the trace ends
    Row {
        name: "bytes-in-flight-at-the-end",
        args: "--output-format=json --name=r --ioengine=libaio --direct=1 --iodepth=8 --read_iolog=t",
        files: &[
            Text(
                "t",
                "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf read 4096 4096\nf read 8192 4096\nf read 12288 4096\nf close\n",
            ),
            Bytes("f", 16_384),
        ],
        fio: &[
            Accepted,
            Is("some are missing", |ran| Ok(figure(&ran.jobs()?[0], "read", "io_bytes") < 16_384)),
        ],
        fiord: &[Accepted, Job("/read/io_bytes", "16384")],
        ..ROW
    },
    // divergence: bandwidth of a single I/O
    Row {
        name: "bandwidth-of-one-io",
        args: "--name=a --filename=f --rw=read --size=1m --bs=64k --ioengine=psync --write_bw_log=l --write_lat_log=l",
        files: &[Bytes("f", 1 << 20)],
        fio: &[Accepted, Is("by 1000", |ran| Ok((unit_of_bandwidth(ran)? - 1000.0).abs() < 8.0))],
        fiord: &[Accepted, Is("by 1024", |ran| Ok((unit_of_bandwidth(ran)? - 1024.0).abs() < 8.0))],
        ..ROW
    },
    // divergence: time of a window's line
    Row {
        name: "times-of-windows",
        args: "--name=a --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=17 --time_based --runtime=2 --write_lat_log=l --log_avg_msec=200",
        fio: &[Accepted],
        fiord: &[
            Accepted,
            Is("ends of windows", |ran| {
                let log = ran.file("l_lat.1.log")?;
                let mut times = log.lines().filter_map(|line| line.split(',').next()?.parse::<u64>().ok());
                Ok(log.lines().count() > 3 && times.all(|time| time % 200 == 0))
            }),
        ],
        ..ROW
    },
    // divergence: samples in the report
    Row {
        name: "samples-of-a-job-with-a-log",
        args: "--output-format=json --name=a --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=100 --time_based --runtime=2 --write_bw_log=l --log_avg_msec=100",
        fio: &[
            Accepted,
            Is("every 100 ms", |ran| Ok((15..=21).contains(&figure(&ran.jobs()?[0], "read", "bw_samples")))),
        ],
        fiord: &[
            Accepted,
            Is("every 100 ms", |ran| Ok((15..=21).contains(&figure(&ran.jobs()?[0], "read", "bw_samples")))),
        ],
        ..ROW
    },
    Row {
        name: "samples-of-a-job-with-a-log-and-bwavgtime",
        args: "--output-format=json --name=a --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=100 --time_based --runtime=2 --write_bw_log=l --log_avg_msec=100 --bwavgtime=500",
        fio: &[
            Accepted,
            Is("every 500 ms", |ran| Ok((2..=5).contains(&figure(&ran.jobs()?[0], "read", "bw_samples")))),
        ],
        fiord: &[
            Accepted,
            Is("every 500 ms", |ran| Ok((2..=5).contains(&figure(&ran.jobs()?[0], "read", "bw_samples")))),
        ],
        ..ROW
    },
    Row {
        name: "samples-of-a-job-with-a-log-of-each-io",
        args: "--output-format=json --name=a --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=100 --time_based --runtime=2 --write_bw_log=l",
        fio: &[Accepted, Is("every I/O", |ran| Ok(figure(&ran.jobs()?[0], "read", "bw_samples") > 100))],
        fiord: &[
            Accepted,
            Is("every 500 ms", |ran| Ok((2..=5).contains(&figure(&ran.jobs()?[0], "read", "bw_samples")))),
        ],
        ..ROW
    },
    // divergence: submission latencies of single I/Os
    Row {
        name: "order-of-submission-latencies",
        args: "--name=a --filename=f --rw=randread --size=1m --bs=4k --ioengine=libaio --direct=1 --iodepth=8 --write_lat_log=l --log_offset=1",
        files: &[Bytes("f", 1 << 20)],
        fio: &[Accepted],
        fiord: &[
            Accepted,
            Is("in the order of completion", |ran| {
                let places = |name: &str| -> Result<Vec<(String, String)>, String> {
                    let log = ran.file(name)?;
                    let place = |line: &str| {
                        Some((line.split(", ").next()?.to_string(), line.split(", ").nth(4)?.to_string()))
                    };
                    Ok(log.lines().filter_map(place).collect())
                };
                let completed = places("l_clat.1.log")?;
                Ok(completed.len() == 256 && completed == places("l_slat.1.log")?)
            }),
        ],
        ..ROW
    },
    // divergence: `log_store_compressed` with histograms
    Row {
        name: "compressed-histograms",
        args: "--name=a --ioengine=null --size=1g --rw=read --bs=4k --rate_iops=100 --time_based --runtime=1 --write_hist_log=l --log_hist_msec=200 --log_store_compressed=1 --log_compression=4096",
        fio: &[NoFile("l_clat_hist.1.log")],
        fiord: &[
            Accepted,
            Is("text", |ran| Ok(ran.file("l_clat_hist.1.log")?.starts_with("200, 0, 4096, "))),
        ],
        ..ROW
    },
    // divergence: a job name with `/` as the prefix
    Row {
        name: "log-of-a-job-with-a-slash",
        args: "j.fio",
        files: &[Text("j.fio", "[a/b]\nioengine=null\nsize=64k\nwrite_lat_log\n")],
        fio: &[NoFile("a_b_lat.1.log")],
        fiord: &[
            Accepted,
            Is("the log is there", |ran| Ok(ran.files()?.iter().any(|(name, _)| name == "a_b_lat.1.log"))),
        ],
        ..ROW
    },
    // divergence: `log_store_compressed` with `log_window_value=both`
    Row {
        name: "compressed-log-of-two-values",
        args: "--name=a --ioengine=null --size=64k --write_lat_log=l --log_avg_msec=9 --log_store_compressed=1 --log_window_value=both",
        fio: &[Refused, Prints("log_window_value")],
        fiord: &[Refused, Prints("log_store_compressed"), Prints("a second value")],
        ..ROW
    },
    Row {
        name: "compressed-log-of-times-of-issue",
        args: "--name=a --ioengine=null --size=64k --write_lat_log=l --log_offset=1 --log_issue_time=1 --log_store_compressed=1",
        fio: &[Refused, Prints("log_issue_time")],
        fiord: &[Refused, Prints("log_store_compressed"), Prints("times of issue")],
        ..ROW
    },
];

/// What the bytes of a second are divided by in the log of bandwidth, if the log of latencies is right: the median of all
/// I/Os.
fn unit_of_bandwidth(ran: &Ran) -> Result<f64, String> {
    let values = |name: &str| -> Result<Vec<f64>, String> {
        let value = |line: &str| line.split(", ").nth(1)?.parse().ok();
        Ok(ran.file(name)?.lines().filter_map(value).collect())
    };
    let bandwidths = values("l_bw.1.log")?.into_iter();
    let pairs = bandwidths.zip(values("l_clat.1.log")?);
    let mut units: Vec<f64> = pairs.map(|(rate, latency_ns)| 65_536.0 * 1e9 / latency_ns / rate).collect();
    units.sort_by(f64::total_cmp);
    units.get(units.len() / 2).copied().ok_or_else(|| "an empty log".to_string())
}
