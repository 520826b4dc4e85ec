//! `fiord watch`: that every request is counted, of whom it is, and what is concluded from it.
//!
//! Invariant: what is watched is a loop device of the test, on which nobody else works.

use std::fs;

use fiord_testing::need;
use serde_json::{Value, json};

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::schema::assert_documented;
use crate::common::study::{as_ordinary_user, public};
use crate::common::{
    Dir, LoopDevice, Mount, Running, assert_fits_terminal, finish, fiord, signal, start, until, until_working,
};

/// A device that nobody uses, over a file in memory: a disk below the file would be watched as well, and others use it.
fn device() -> Result<(Dir, Mount, LoopDevice), String> {
    let dir = Dir::new();
    let memory = Mount::tmpfs(&dir, "size=20m")?;
    memory.write("image", &vec![0; 16 << 20]);
    let device = LoopDevice::over(&memory.path.join("image"))?;
    Ok((dir, memory, device))
}

/// Begins to watch, and returns once the kernel records.
fn watching(dir: &Dir, device: &LoopDevice, form: &str) -> Running {
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

fn stopped(running: Running) -> Value {
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    ran.json()
}

fn row<'d>(document: &'d Value, table: &str, key: &str, is: &Value) -> &'d Value {
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
fn a_limit_of_a_control_group_is_named() {
    let (dir, _memory, device) = need!(device());
    let group = need!(ControlGroup::for_io("fiord-watched"));
    need!(group.limit_reads(&need!(device.number()), ReadLimit::IosPerSecond(50)));
    let job = format!("--name=a --filename={} --direct=1 --rw=randread --bs=4k", device.path);
    let limited =
        start(group.inside(&fiord(dir.path(), &format!("{job} --runtime=1h --time_based --size=16m"))));
    until_working(&limited, "a");
    let document = dir.run(&format!("watch {} --for 1s --json", device.path)).assert_success().json();
    signal(limited.0.id(), "INT");
    finish(limited);
    let found = row(&document, "conclusions", "code", &json!("limited"));
    assert!(found["sentence"].as_str().unwrap().contains("fiord-watched is at its limit"), "{document:#}");
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
}

#[test]
fn what_has_no_disk_is_refused_with_what_to_name() {
    let dir = Dir::new();
    let ran = dir.run("watch /nowhere/at/all");
    assert!(ran.assert_status(1).stderr.contains("name a file, directory or device that exists"), "{ran:?}");
    let ran = dir.run("watch /proc");
    assert!(ran.assert_status(1).stderr.contains("no block device is below it"), "{ran:?}");
}
