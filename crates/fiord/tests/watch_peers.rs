//! `fiord watch` beside other programs in the same seconds: iostat, and what biolatency measures.
//!
//! Invariant: both have begun before the first request and end after the last, so that they count the same requests.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use fiord_testing::{need, skip};
use serde_json::Value;

use crate::common::fuse::Reply;
use crate::common::{Dir, LoopDevice, Running, finish, fiord, helper, root, signal, start, until};
use crate::metrics::sum;
use crate::watch::{SlowDevice, device, stopped, watching};

/// Requests and bytes of all operations but flushes.
fn counted(document: &Value) -> (f64, f64) {
    let rows = document["devices"].as_array().unwrap().iter();
    rows.filter(|row| row["operation"] != "flush").fold((0.0, 0.0), |(requests, bytes), row| {
        let number = |key: &str| row[key].as_f64().unwrap_or(0.0);
        (requests + number("requests"), bytes + number("requests") * number("size_bytes"))
    })
}

fn assert_close(what: &str, ours: f64, theirs: f64, context: &str) {
    assert!((ours / theirs - 1.0).abs() < 0.02, "{what}: {ours} and {theirs}: {context}");
}

/// The I/Os and KiB that iostat counted in all of its intervals but the first, which is the time since the machine started.
fn of_iostat(text: &str) -> (f64, f64) {
    let document: Value = serde_json::from_str(text).unwrap();
    let intervals = document["sysstat"]["hosts"][0]["statistics"].as_array().unwrap();
    intervals[1..].iter().fold((0.0, 0.0), |(ios, kib), interval| {
        let number = |key: &str| interval["disk"][0][key].as_f64().unwrap();
        let moved = number("kB_read") + number("kB_wrtn");
        let moved_per_s = number("kB_read/s") + number("kB_wrtn/s");
        // It says no interval, but that follows from totals and rates.
        let seconds = if moved_per_s > 0.0 { moved / moved_per_s } else { 0.0 };
        (ios + number("tps") * seconds, kib + moved)
    })
}

#[test]
fn iostat_counts_as_much() {
    need!(helper("iostat", &["-V"]));
    let (dir, _memory, device) = need!(device());
    let running = watching(&dir, &device, "--json");
    let mut iostat = Command::new("iostat");
    iostat.args(["-d", "-k", "-o", "JSON", &device.path, "1"]).env("LC_ALL", "C");
    let out = fs::File::create(dir.join("iostat")).unwrap();
    let mut iostat = iostat.stdout(out).spawn().unwrap();
    let reports = || dir.text("iostat").matches("disk_device").count();
    let until_reports = |more: usize| {
        let before = reports();
        until("iostat has reported", || reports() >= before + more);
    };
    until("iostat has begun", || reports() > 0);
    let line = format!(
        "--name=a --filename={} --direct=1 --ioengine=libaio --iodepth=4 --rw=randrw --bs=8k --number_ios=20000 --io_size=1g \
         --size=16m --norandommap",
        device.path
    );
    finish(start(fiord(dir.path(), &line))).assert_success();
    // The first may have begun before the job ended.
    until_reports(2);
    signal(iostat.id(), "INT");
    iostat.wait().unwrap();
    let document = stopped(running);
    assert_eq!(document["lost_events"], 0, "{document:#}");
    let (ios, bytes) = counted(&document);
    let kib = bytes / 1024.0;
    // Neighbors may have been merged, and a mean size is whole bytes.
    assert!(kib > 0.999 * 8.0 * 20_000.0, "{document:#}");
    let (ios_of_iostat, kib_of_iostat) = of_iostat(&dir.text("iostat"));
    let context = format!("{document:#} {}", dir.text("iostat"));
    assert_close("I/Os", ios, ios_of_iostat, &context);
    assert_close("KiB", kib, kib_of_iostat, &context);
}

/// What biolatency measures, from the tracepoints of the block layer: Debian's biolatency (bpfcc-tools, bpftrace) attaches to
/// functions of the kernel, for which many kernels are not built (`CONFIG_KPROBES`).
const BIOLATENCY: &str = "
tracepoint:block:block_rq_issue /args->dev == DEVICE && args->nr_sector > 0/ { @began[args->sector] = nsecs; }
tracepoint:block:block_rq_complete /args->dev == DEVICE && @began[args->sector]/ {
    $ns = nsecs - @began[args->sector];
    delete(@began[args->sector]);
    @requests = count(); @bytes = sum(args->nr_sector * 512); @total_ns = sum($ns);
    WITHIN
}
END { clear(@began); }";

/// Up to which latencies both count, in seconds, as metrics have them.
const BOUNDS_S: [&str; 7] = ["0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02"];

/// The variable of that program that counts them.
fn within(bound: &str) -> String {
    format!("@within_{}", bound.replace('.', "_"))
}

/// bpftrace with that program, which has begun.
fn biolatency(dir: &Dir, device: &LoopDevice) -> Result<Running, String> {
    root()?;
    helper("bpftrace", &["--version"])?;
    let number = device.number()?;
    let (major, minor) = number.split_once(':').ok_or("a device without a number")?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
    let count = |bound: &str| {
        let ns = bound.parse::<f64>().unwrap() * 1e9;
        format!("{} = sum($ns <= {ns:.0});", within(bound))
    };
    let program = BIOLATENCY.replace("DEVICE", &(number(major)? << 20 | number(minor)?).to_string());
    let program = program.replace("WITHIN", &BOUNDS_S.map(count).join(" "));
    let out = |name: &str| fs::File::create(dir.join(name)).map_err(|error| error.to_string());
    let mut bpftrace = Command::new("unshare");
    bpftrace
        .args([
            "-m",
            "sh",
            "-c",
            "mount -t tracefs none /sys/kernel/tracing; exec bpftrace -B line -f json -e \"$1\"",
            "sh",
        ])
        .arg(program)
        .env("__BPFTRACE_NOTIFY_PROBES_ATTACHED", "1")
        .stdin(Stdio::null())
        .stdout(out("biolatency")?)
        .stderr(out("biolatency.errors")?);
    let mut running = Running(bpftrace.spawn().map_err(|error| format!("unshare: {error}"))?);
    let mut has_ended = false;
    until("bpftrace has begun", || {
        has_ended = running.0.try_wait().unwrap().is_some();
        has_ended || dir.text("biolatency.errors").contains("PROBES_ATTACHED")
    });
    match has_ended {
        true => Err(format!("bpftrace does not run here: {}", dir.text("biolatency.errors").trim())),
        false => Ok(running),
    }
}

/// The value of a map that bpftrace printed.
fn map(text: &str, name: &str) -> Value {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.map(|line| line["data"][name].clone()).find(|value| !value.is_null());
    found.unwrap_or_else(|| panic!("no {name}: {text}"))
}

#[test]
fn biolatency_measures_the_same_distribution() {
    let dir = Dir::new();
    // Reads and writes that take from what the machine needs to six milliseconds, and none a bound.
    let delays = [0, 1200, 300, 6000, 2500];
    let slow = need!(SlowDevice::answering(&dir, 16 << 20, move |asked| {
        Reply::After(Duration::from_micros(delays[asked.number as usize % delays.len()]))
    }));
    let device = &slow.device;
    let peer = match biolatency(&dir, device) {
        Ok(peer) => peer,
        Err(why) => skip!("{why}"),
    };
    let running = watching(&dir, device, "--json --metrics=file:watch.prom");
    let line = format!(
        "--name=a --filename={} --direct=1 --ioengine=libaio --iodepth=4 --rw=randrw --bs=8k --number_ios=1000 --io_size=1g \
         --size=16m --norandommap",
        device.path
    );
    finish(start(fiord(dir.path(), &line))).assert_success();
    let document = stopped(running);
    signal(peer.0.id(), "INT");
    let mut peer = peer;
    peer.0.wait().unwrap();

    let (theirs, text) = (dir.text("biolatency"), dir.text("watch.prom"));
    let context = format!("{document:#} {theirs} {text}");
    assert_eq!(document["lost_events"], 0, "{context}");
    let (requests, bytes) = counted(&document);
    assert!(requests >= 900.0, "{context}");
    let number = |name: &str| map(&theirs, name).as_f64().unwrap();
    assert_close("requests", requests, number("@requests"), &context);
    assert_close("bytes", bytes, number("@bytes"), &context);
    let of = |operation: &str| format!("operation=\"{operation}\",kind=\"device\"");
    let both = |metric: &str, more: &str| {
        ["read", "write"].iter().map(|one| sum(&text, metric, &(of(one) + more))).sum::<f64>()
    };
    let total_ns = both("fiord_device_latency_seconds_sum", "") * 1e9;
    assert_close("time", total_ns, number("@total_ns"), &context);

    for bound in BOUNDS_S {
        let ours = both("fiord_device_latency_seconds_bucket", &format!(",le=\"{bound}\""));
        let theirs = number(&within(bound));
        assert!((ours - theirs).abs() < 0.02 * requests, "{bound} s: {ours} and {theirs}: {context}");
    }
}
