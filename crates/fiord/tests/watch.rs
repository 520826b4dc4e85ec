//! `fiord watch`: that every request is counted, of whom it is, and what is concluded from it.
//!
//! Invariant: what is watched is a loop device of the test, on which nobody else works.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fiord_testing::{need, skip};
use serde_json::{Value, json};

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::fuse::{Asked, Fuse, Reply};
use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, public};
use crate::common::{
    Dir, LoopDevice, Mount, Running, assert_fits_terminal, bytes_from_devices, finish, fiord, helper,
    in_one_line, signal, start, until, until_working,
};

/// A device that nobody uses, over a file in memory: a disk below the file would be watched as well, and others use it.
pub(crate) fn device() -> Result<(Dir, Mount, LoopDevice), String> {
    let dir = Dir::new();
    let memory = Mount::tmpfs(&dir, "size=20m")?;
    memory.write("image", &vec![0; 16 << 20]);
    let device = LoopDevice::over(&memory.path.join("image"))?;
    Ok((dir, memory, device))
}

/// Begins to watch, and returns once the kernel records.
pub(crate) fn watching(dir: &Dir, device: &LoopDevice, form: &str) -> Running {
    let running = start(fiord(dir.path(), &format!("watch {} --for 1h {form}", device.path)));
    let events = format!("fiord-{}", running.0.id());
    // The instance is seen where tracefs is mounted, and in the process's own descriptors where it is not.
    until("the kernel to record", || {
        let descriptors = format!("/proc/{}/fd", running.0.id());
        let links = fs::read_dir(descriptors).into_iter().flatten().flatten();
        links.filter_map(|link| fs::read_link(link.path()).ok()).any(|to| {
            let to = to.to_string_lossy().into_owned();
            to.contains(&events) && to.ends_with("trace_pipe_raw")
        })
    });
    running
}

/// A device whose reads and writes take a millisecond or longer, one after the other, however fast the machine is.
pub(crate) struct SlowDevice {
    pub(crate) device: LoopDevice,
    _file: Fuse,
}

impl SlowDevice {
    fn new(dir: &Dir, bytes: u64, reply: Reply) -> Result<SlowDevice, String> {
        SlowDevice::answering(dir, bytes, move |_| reply)
    }

    /// One whose reads and writes take as long as is answered.
    pub(crate) fn answering(
        dir: &Dir,
        bytes: u64,
        answer: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Result<SlowDevice, String> {
        let file = Fuse::mount(dir, "slow", bytes, false, answer)?;
        let device = LoopDevice::over(&file.path.join("data"))?;
        // Requests reach the file as they are, not page by page.
        helper("losetup", &["--direct-io=on", &device.path])?;
        Ok(SlowDevice { device, _file: file })
    }
}

pub(crate) const MILLISECOND: Reply = Reply::After(Duration::from_millis(1));

/// Fields of a device's `stat`.
#[derive(Clone, Copy)]
pub(crate) enum Completed {
    Reads = 0,
    Writes = 4,
    Discards = 11,
}

/// How many of these a device has completed.
fn completed(device: &LoopDevice, what: Completed) -> u64 {
    let stat = format!("/sys/block/{}/stat", device.path.trim_start_matches("/dev/"));
    let stat = fs::read_to_string(stat).unwrap();
    stat.split_whitespace().nth(what as usize).unwrap().parse().unwrap()
}

/// Waits until a device has completed so many more of these.
pub(crate) fn until_completed(device: &LoopDevice, what: Completed, more: u64) {
    let before = completed(device, what);
    until("the device has worked", || completed(device, what) >= before + more);
}

pub(crate) fn until_read(device: &LoopDevice, more: u64) {
    until_completed(device, Completed::Reads, more);
}

/// A job that works on a device until it is ended.
pub(crate) fn endless(device: &LoopDevice, depth: u32, rw: &str) -> String {
    format!(
        "--name=a --filename={} --direct=1 --ioengine=libaio --iodepth={depth} --rw={rw} --bs=4k --size=16m \
         --norandommap --runtime=1h --time_based",
        device.path
    )
}

pub(crate) fn reader(device: &LoopDevice, depth: u32) -> String {
    endless(device, depth, "randread")
}

fn end(running: Running) {
    signal(running.0.id(), "INT");
    finish(running);
}

/// What was concluded, without what the slowness of a machine at work alone may make so.
pub(crate) fn codes(document: &Value) -> Vec<&str> {
    let conclusions = document["conclusions"].as_array().unwrap().iter();
    let codes = conclusions.map(|one| one["code"].as_str().unwrap());
    codes.filter(|code| !matches!(*code, "slow-device" | "few-slow")).collect()
}

pub(crate) fn sentence<'d>(document: &'d Value, code: &str) -> &'d str {
    row(document, "conclusions", "code", &json!(code))["sentence"].as_str().unwrap()
}

pub(crate) fn stopped(running: Running) -> Value {
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    ran.json()
}

pub(crate) fn row<'d>(document: &'d Value, table: &str, key: &str, is: &Value) -> &'d Value {
    let rows = document[table].as_array().unwrap();
    rows.iter().find(|row| row[key] == *is).unwrap_or_else(|| panic!("no {is}: {document:#}"))
}

#[test]
fn every_request_is_counted_and_of_whom_it_is() {
    let (dir, _memory, device) = need!(device());
    let running = watching(&dir, &device, "--json");
    let job = format!("--name=a --filename={} --direct=1 --ioengine=libaio --iodepth=4", device.path);
    let reads = format!("{job} --rw=randread --bs=8k --number_ios=500 --size=16m --norandommap");
    let reads = start(fiord(dir.path(), &reads));
    let reader = reads.0.id();
    finish(reads).assert_success();
    finish(start(fiord(dir.path(), &format!("{job} --rw=write --bs=64k --size=4m")))).assert_success();
    let document = stopped(running);
    assert_documented(&document, "watch");
    assert_eq!((&document["lacking"], &document["lost_events"]), (&json!([]), &json!(0)), "{document:#}");
    let write = row(&document, "devices", "operation", &json!("write"));
    assert_eq!((&write["requests"], &write["size_bytes"]), (&json!(64), &json!(65_536)), "{document:#}");
    let read = row(&document, "devices", "operation", &json!("read"));
    // The kernel may look for partitions on a device that was open for writing.
    assert!(read["requests"].as_u64() >= Some(500), "{document:#}");
    assert!(read["device_p99_ns"].as_u64() <= read["device_max_ns"].as_u64());
    let of_reads = row(&document, "issuers", "pid", &json!(reader));
    assert_eq!(of_reads["issuer"], "fiord", "{document:#}");
}

#[test]
fn a_neighbor_is_told_from_the_chosen_and_from_their_children() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::new(&dir, 16 << 20, MILLISECOND));
    // The shell does nothing itself: its child is one of the chosen as well.
    let job = fiord(dir.path(), &reader(&slow.device, 1));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "\"$@\"; exit", "sh"])
        .arg(job.get_program())
        .args(job.get_args())
        .current_dir(dir.path());
    let own = start(shell);
    let pid = own.0.id();
    until_read(&slow.device, 1);

    let running = watching(&dir, &slow.device, &format!("--json --pid {pid}"));
    until_read(&slow.device, 200);
    let quiet = stopped(running);
    assert_documented(&quiet, "watch");
    assert_eq!(codes(&quiet), [""; 0], "{quiet:#}");
    assert!(
        quiet["verdict"].as_str().unwrap().contains(&format!("rocess {pid} (sh) had 100 % of the time")),
        "{quiet:#}"
    );

    let other = start(fiord(dir.path(), &endless(&slow.device, 32, "randwrite")));
    until_working(&other, "a");
    let running = watching(&dir, &slow.device, &format!("--json --pid {pid}"));
    until_read(&slow.device, 30);
    until_completed(&slow.device, Completed::Writes, 500);
    let document = stopped(running);
    assert_eq!(codes(&document), ["neighbor"], "{document:#}");
    let said = sentence(&document, "neighbor");
    let named = format!("first of all fiord ({})", other.0.id());
    assert!(
        said.contains(&format!("Others than process {pid} (sh) keep")) && said.contains(&named),
        "{said}"
    );
    let (chosen, others) = (
        row(&document, "parties", "party", &json!("chosen")),
        row(&document, "parties", "party", &json!("others")),
    );
    assert!(chosen["iops"].as_f64().unwrap() < others["iops"].as_f64().unwrap(), "{document:#}");
    assert_eq!((&chosen["operation"], &chosen["size_bytes"]), (&json!("read"), &json!(4096)));
    assert_eq!(row(&document, "issuers", "pid", &json!(other.0.id()))["party"], "others");

    // Whoever keeps the device full is not told of a neighbor.
    let running = watching(&dir, &slow.device, &format!("--json --pid {}", other.0.id()));
    until_completed(&slow.device, Completed::Writes, 500);
    let own_fault = stopped(running);
    assert_eq!(codes(&own_fault), ["queue-full"], "{own_fault:#}");
    assert!(sentence(&own_fault, "queue-full").contains(&format!("most of it is fiord ({})", other.0.id())));
    let text = watching(&dir, &slow.device, &format!("--pid {pid},{}", other.0.id()));
    until_completed(&slow.device, Completed::Writes, 100);
    signal(text.0.id(), "INT");
    let text = finish(text);
    text.assert_prints(&["WHOSE", "chosen"]);
    assert_fits_terminal(&text.stdout);
    end(other);
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().for_each(|child| signal(child.parse().unwrap(), "INT"));
    finish(own);
}

#[test]
fn a_control_group_is_chosen_by_name_by_directory_and_by_its_container() {
    let (dir, _memory, device) = need!(device());
    let id = format!("{:012x}", std::process::id());
    let group = need!(ControlGroup::for_io(&id));
    let inside = start(group.inside(&fiord(dir.path(), &reader(&device, 1))));
    let outside = start(fiord(dir.path(), &reader(&device, 1)));
    until_working(&inside, "a");
    until_working(&outside, "a");
    let directory = group.path().to_string_lossy().into_owned();
    let name = format!("/{}", group.path().file_name().unwrap().to_string_lossy());
    for choice in [format!("--cgroup {name}"), format!("--cgroup {directory}"), format!("--container {id}")] {
        let running = watching(&dir, &device, &format!("--json {choice}"));
        until_read(&device, 500);
        for reader in [&inside, &outside] {
            let before = bytes_from_devices(reader);
            until("it has read", || bytes_from_devices(reader) > before);
        }
        let document = stopped(running);
        assert_eq!(document["chosen"], json!(format!("control group {name}")), "{choice}");
        let party =
            |running: &Running| row(&document, "issuers", "pid", &json!(running.0.id()))["party"].clone();
        assert_eq!((party(&inside), party(&outside)), (json!("chosen"), json!("others")), "{document:#}");
    }
    end(inside);
    end(outside);
}

#[test]
fn whom_nobody_knows_is_refused_with_what_to_name() {
    let dir = Dir::new();
    for (choice, why) in [
        ("--pid 2147483647", "pgrep NAME finds it"),
        ("--cgroup /fiord/no/such/group", "name one as /proc/PID/cgroup does"),
        ("--cgroup /../etc", "name one as /proc/PID/cgroup does"),
        ("--container deadbeefdeadbeef", "that docker ps"),
        ("--container x", "that docker ps"),
        ("--pid 1 --cgroup /", "cannot be used with"),
        ("--probe=0", "0 is not in 1..=100"),
    ] {
        let ran = dir.run(&format!("watch {choice} --for 1h"));
        assert!(ran.assert_status(1).stderr.contains(why), "{choice}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_full_queue_is_named_with_who_fills_it() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::new(&dir, 16 << 20, MILLISECOND));
    let job = start(fiord(dir.path(), &reader(&slow.device, 32)));
    until_working(&job, "a");
    let running = watching(&dir, &slow.device, "--json");
    until_read(&slow.device, 500);
    let document = stopped(running);
    assert_eq!(codes(&document), ["queue-full"], "{document:#}");
    assert!(sentence(&document, "queue-full").contains(&format!("most of it is fiord ({})", job.0.id())));
    assert_eq!(document["parties"], json!([]), "nobody was chosen");
    end(job);
}

#[test]
fn a_probe_is_read_from_a_device_that_nobody_uses_and_counts_for_no_one() {
    let (dir, _memory, device) = need!(device());
    let running = watching(&dir, &device, "--json --probe=50");
    until_read(&device, 25);
    let document = stopped(running);
    assert_documented(&document, "watch");
    assert_eq!(
        row(&document, "devices", "device", &json!(device.path.trim_start_matches("/dev/")))["requests"],
        0
    );
    assert_eq!((&document["issuers"], codes(&document)), (&json!([]), vec![]), "{document:#}");
    let probe = row(&document, "parties", "party", &json!("probe"));
    assert!(
        probe["requests"].as_u64() >= Some(24) && probe["device_p50_ns"].as_u64() > Some(0),
        "{document:#}"
    );
    assert_eq!((&probe["size_bytes"], &probe["time_percent"]), (&json!(4096), &json!(null)), "{document:#}");
    assert!(document["verdict"].as_str().unwrap().starts_with("No request but the probe's"), "{document:#}");

    // Without it there is no I/O.
    let before = completed(&device, Completed::Reads);
    let ran = dir.run(&format!("watch {} --for 500ms", device.path)).assert_success().stdout.clone();
    assert!(!ran.contains("probe") && completed(&device, Completed::Reads) == before, "{ran}");
}

#[test]
fn a_probe_finds_a_device_that_is_slow_or_fails_although_nobody_uses_it() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::new(&dir, 16 << 20, Reply::After(Duration::from_millis(10))));
    let running = watching(&dir, &slow.device, "--json --probe=100");
    until_read(&slow.device, 30);
    let document = stopped(running);
    assert!(sentence(&document, "slow-device").contains("half of the probe's reads take 1"), "{document:#}");
    drop(slow);

    let dir = Dir::new();
    let failing = need!(SlowDevice::new(&dir, 16 << 20, Reply::Error(5)));
    let running = watching(&dir, &failing.device, "--json --probe=50");
    until_read(&failing.device, 10);
    let document = stopped(running);
    assert!(sentence(&document, "read-errors").contains("Input/output error"), "{document:#}");
}

#[test]
fn flushes_and_discards_are_named_with_whose_they_are() {
    let (dir, _memory, device) = need!(device());
    let running = watching(&dir, &device, "--json");
    let open = fs::File::options().write(true).open(&device.path).unwrap();
    (0..500).for_each(|_| open.sync_all().unwrap());
    let document = stopped(running);
    assert_eq!(codes(&document), ["flushes"], "{document:#}");
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    assert!(
        sentence(&document, "flushes").ends_with(&format!("most of them for {}.", own.trim())),
        "{document:#}"
    );

    let running = watching(&dir, &device, "--json");
    let job = "--rw=randtrim --bs=16k --size=16m --norandommap --runtime=1h --time_based";
    let job = start(fiord(dir.path(), &format!("--name=a --filename={} {job}", device.path)));
    until_completed(&device, Completed::Discards, 500);
    let document = stopped(running);
    end(job);
    assert_eq!(codes(&document), ["discards"], "{document:#}");
    assert!(sentence(&document, "discards").ends_with("most of them for fiord."), "{document:#}");

    // A few of either beside other work are ordinary.
    let running = watching(&dir, &device, "--json");
    let job = format!(
        "--name=a --filename={} --direct=1 --rw=write --bs=256k --size=16m --loops=5 --fsync=32",
        device.path
    );
    finish(start(fiord(dir.path(), &job))).assert_success();
    let document = stopped(running);
    assert_eq!(codes(&document), [""; 0], "{document:#}");
    assert!(row(&document, "devices", "operation", &json!("flush"))["requests"].as_u64() > Some(0));
}

#[test]
fn a_burst_of_writeback_is_named_and_blamed_on_no_bystander() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::new(&dir, 256 << 20, MILLISECOND));
    need!(helper("mkfs.ext4", &["-q", "-E", "lazy_itable_init=1", &slow.device.path]));
    let mount = need!(Mount::new(&dir, "written", &[&slow.device.path]));
    let running = watching(&dir, &slow.device, "--json");
    let mut file = fs::File::create(mount.path.join("file")).unwrap();
    // Pieces apart are requests apart.
    for piece in 0..1024 {
        file.write_all_at(&[1; 4096], piece * 16384).unwrap();
    }
    file.flush().unwrap();
    helper("sync", &["--file-system", &mount.path.to_string_lossy()]).unwrap();
    let document = stopped(running);
    assert_eq!(codes(&document), ["writeback"], "{document:#}");
    row(&document, "issuers", "issuer", &json!("writeback"));
}

#[test]
fn whoever_works_on_a_loop_device_is_named_for_the_disk_below_its_file() {
    let dir = Dir::new();
    let slow = need!(SlowDevice::new(&dir, 64 << 20, MILLISECOND));
    need!(helper("mkfs.ext4", &["-q", "-E", "lazy_itable_init=1", &slow.device.path]));
    let mount = need!(Mount::new(&dir, "below", &[&slow.device.path]));
    mount.write("image", &vec![1; 16 << 20]);
    need!(helper("sync", &["--file-system", &mount.path.to_string_lossy()]));
    let above = need!(LoopDevice::over(&mount.path.join("image")));
    need!(helper("losetup", &["--direct-io=on", &above.path]));
    let job = start(fiord(dir.path(), &reader(&above, 32)));
    until_working(&job, "a");
    let running = watching(&dir, &above, "--json");
    until_read(&slow.device, 500);
    let document = stopped(running);
    end(job);
    let name = slow.device.path.trim_start_matches("/dev/");
    let said =
        document["conclusions"].as_array().unwrap().iter().map(|one| one["sentence"].as_str().unwrap());
    let below = said.clone().find(|said| said.starts_with(&format!("{name} is full")));
    let depth = row(&document, "devices", "device", &json!(name))["depth"].as_f64().unwrap();
    if depth < 8.0 && below.is_none() {
        skip!(
            "the workers of this kernel keep {depth:.1} requests at a time there, which do not fill a disk"
        );
    }
    let below = below.unwrap_or_else(|| panic!("{document:#}"));
    let who = format!("of {} most of it is fiord (", above.path.trim_start_matches("/dev/"));
    assert!(below.contains("workers of the kernel have") && below.contains(&who), "{below}");
}

/// A swap area, which is taken out of use on drop.
struct Swap<'d>(&'d LoopDevice);

impl Drop for Swap<'_> {
    fn drop(&mut self) {
        let _ = helper("swapoff", &[&self.0.path]);
    }
}

#[test]
fn swapping_is_named_and_not_before_it_happens() {
    let dir = Dir::new();
    fs::write(dir.join("swap"), vec![0; 96 << 20]).unwrap();
    let device = need!(LoopDevice::over(&dir.join("swap")));
    need!(helper("losetup", &["--direct-io=on", &device.path]));
    let group = need!(ControlGroup::new("memory", "swapping"));
    need!(group.set("memory.limit_in_bytes", "16777216"));
    need!(helper("mkswap", &[&device.path]));
    need!(helper("swapon", &[&device.path]));
    let swap = Swap(&device);
    let is_only = || fs::read_to_string("/proc/swaps").unwrap().lines().count() == 2;

    let running = watching(&dir, &device, "--json");
    let reads = format!(
        "--name=a --filename={} --direct=1 --rw=randread --bs=4k --size=16m --norandommap --number_ios=300",
        device.path
    );
    finish(start(fiord(dir.path(), &reads))).assert_success();
    let quiet = stopped(running);
    let running = watching(&dir, &device, "--json");
    // Pages of zeros would not be written.
    let mut hog = Command::new("sh");
    hog.args(["-c", "head -c 64m /dev/urandom | tail -c 48m | wc -c"]);
    let hog = finish(start(group.inside(&hog)));
    let document = stopped(running);
    let was_only = is_only();
    drop(swap);
    hog.assert_success().assert_prints(&["50331648"]);
    // The disk below its file has others' work as well.
    let name = device.path.trim_start_matches("/dev/");
    let said = quiet["conclusions"].as_array().unwrap().iter().map(|one| one["sentence"].as_str().unwrap());
    assert!(said.clone().all(|said| !said.contains(name)), "{quiet:#}");
    if !was_only {
        skip!("another swap area was in use meanwhile");
    }
    assert!(sentence(&document, "swap").starts_with("Memory is short"), "{document:#}");
    assert!(sentence(&document, "swap").contains("most of it is tail ("), "{document:#}");
}

#[test]
fn a_limit_of_a_control_group_is_named() {
    let (dir, _memory, device) = need!(device());
    let group = need!(ControlGroup::for_io("fiord-watched"));
    need!(group.limit_reads(&need!(device.number()), ReadLimit::IosPerSecond(50)));
    let job = format!("--name=a --filename={} --direct=1 --rw=randread --bs=4k", device.path);
    let limited =
        start(group.inside(&fiord(dir.path(), &format!("{job} --runtime=1h --time_based --size=16m"))));
    until_working(&limited, "a");
    let document = dir.run(&format!("watch {} --for 1s --json", device.path)).assert_success().json();
    let wide = ReadLimit::IosPerSecond(1_000_000_000);
    need!(group.limit_reads(&need!(device.number()), wide));
    let quiet = dir.run(&format!("watch {} --for 1s --json", device.path)).assert_success().json();
    end(limited);
    assert!(sentence(&document, "limited").contains("fiord-watched is at its limit"), "{document:#}");
    assert!(!codes(&quiet).contains(&"limited"), "{quiet:#}");
}

#[test]
fn an_idle_device_is_said_to_be_idle() {
    let (dir, _memory, device) = need!(device());
    let ran = dir.run(&format!("watch {} --for 200ms", device.path));
    ran.assert_success().assert_prints(&["No request reached these devices in 0 s"]);
    assert_fits_terminal(&ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn without_privileges_the_counters_remain() {
    let (dir, binary) = need!(public(&std::env::temp_dir()));
    let ran = as_ordinary_user(&dir, &binary, "watch --for 100ms");
    ran.assert_success();
    assert_fits_terminal(&ran.stdout);
    assert!(!ran.stdout.contains("WHO"), "{ran:?}");
    // No disk of the machine's may be read, and what cannot be told is said.
    let ran = as_ordinary_user(&dir, &binary, "watch --for 100ms --probe --pid 1");
    let said = in_one_line(&ran.assert_success().stdout);
    assert!(said.contains("leave out --probe") && said.contains("whose requests are"), "{said}");
    assert_fits_terminal(&ran.stdout);
}

#[test]
fn what_has_no_disk_is_refused_with_what_to_name() {
    let dir = Dir::new();
    let ran = dir.run("watch /nowhere/at/all");
    assert!(ran.assert_status(1).stderr.contains("name a file, directory or device that exists"), "{ran:?}");
    let ran = dir.run("watch /proc");
    assert!(ran.assert_status(1).stderr.contains("no block device is below it: it is proc\n"), "{ran:?}");
}

/// A row of the table of costs in docs/watch.md, of a workload of `bench/watch_cost.py`.
fn cost_row(title: &str, workload: &Value) -> String {
    let spread = |key: &str, digits: usize| {
        let [median, smallest, largest] =
            ["median", "smallest", "largest"].map(|part| workload[key][part].as_f64().unwrap());
        format!("{median:.digits$} ({smallest:.digits$} to {largest:.digits$})")
    };
    let pairs = workload["pairs"].as_array().unwrap();
    let of_pairs = |key: &str| -> Vec<u64> {
        pairs.iter().filter_map(|pair| pair.pointer(key).and_then(Value::as_u64)).collect()
    };
    let mut rates = of_pairs("/with/iops");
    rates.sort_unstable();
    let rate = rates[rates.len() / 2];
    // A terminal is not told a number.
    let lost = of_pairs("/with/watch/lost");
    let lost = if lost.is_empty() { "-".to_string() } else { lost.iter().sum::<u64>().to_string() };
    format!(
        "| {title} | {rate} | {} | {} | {lost} |",
        spread("cpu_percent", 2),
        spread("ratio_cpu_us_per_io", 2)
    )
}

#[test]
fn what_watching_costs_is_what_was_measured() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let measured: Value = serde_json::from_str(&text("bench/runs/2026-12-01-vm-watch.json")).unwrap();
    let page = text("docs/watch.md");
    for (title, name) in [
        ("10,000 a second", "10000_a_second"),
        ("the same, on a terminal", "10000_a_second_on_a_terminal"),
        ("one at a time", "one_at_a_time"),
        ("32 at a time", "as_fast_as_it_goes"),
    ] {
        let row = cost_row(title, &measured["after"]["workloads"][name]);
        assert!(page.contains(&row), "docs/watch.md lacks\n{row}");
    }
}
