//! What a setting or a module of the kernel decides: io_uring forbidden to all, and connections between machines.
//!
//! Invariant: a setting that is changed is restored.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;

use fiord_guest::{Finished, Running, fiord, start};
use serde_json::Value;

use crate::{guest, needs_kernel};

const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// A setting of the kernel that is restored.
struct Setting(String);

impl Setting {
    fn new(value: &str) -> Setting {
        let before = fs::read_to_string(DISABLED).expect("this kernel has the setting");
        fs::write(DISABLED, value).unwrap();
        Setting(before)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = fs::write(DISABLED, &self.0);
    }
}

fn jobs(run: &Finished) -> Vec<Value> {
    run.report().unwrap()["jobs"].as_array().unwrap().clone()
}

#[test]
fn io_uring_that_is_forbidden_to_all_is_named_with_the_remedy() {
    guest!();
    needs_kernel!(6, 6, DISABLED);
    let ring = ["--bs=4k", "--size=64k", "--rw=write", "--name=ring", "--ioengine=io_uring"];
    let other = ["--name=other", "--ioengine=libaio"];
    let setting = Setting::new("2");
    let run = fiord(&[&ring[..], &other[..]].concat()).expect("fiord runs");
    drop(setting);
    assert_eq!(run.code, Some(1), "{run:?}");
    let all = format!("{}{}", run.stdout, run.stderr);
    for part in ["io_uring_setup", "EPERM", "/proc/sys/kernel/io_uring_disabled", "use ioengine=libaio"] {
        assert!(all.contains(part), "{part}: {run:?}");
    }
    let jobs = jobs(&run);
    assert_eq!((jobs[0]["error"].as_i64(), jobs[1]["error"].as_i64()), (Some(1), Some(0)), "{jobs:?}");
    assert_eq!(jobs[1]["write"]["io_bytes"], 64 << 10);
    let again = fiord(&ring).expect("fiord runs");
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
fn connections_over_vsock_are_verified() {
    guest!();
    let loaded = std::process::Command::new("modprobe").arg("vsock_loopback").status();
    assert!(loaded.is_ok_and(|status| status.success()), "vsock_loopback cannot be loaded");
    for engine in ["net", "netsplice"] {
        let of_engine = format!("--ioengine={engine}");
        let common =
            [&of_engine, "--protocol=vsock", "--port=7001", "--bs=16k", "--size=256k", "--verify=crc32c"];
        let reader = ["--name=reader", "--listen", "--rw=read"];
        // 1 is this machine.
        let writer = ["--name=writer", "--hostname=1", "--rw=write", "--do_verify=0"];
        let run = fiord(&[&common[..], &reader[..], &writer[..]].concat()).expect("fiord runs");
        assert_eq!(run.code, Some(0), "{engine}: {run:?}");
        let jobs = jobs(&run);
        let counted = |job: usize, side: &str| {
            (jobs[job][side]["total_ios"].as_u64(), jobs[job][side]["io_bytes"].as_u64())
        };
        let all = (Some(16), Some(256 << 10));
        assert_eq!((counted(0, "read"), counted(1, "write")), (all, all), "{engine}: {jobs:?}");
    }
}

#[test]
fn a_wait_on_vsock_ends_when_the_run_is_interrupted() {
    guest!();
    let waiting =
        ["--name=waits", "--ioengine=net", "--protocol=vsock", "--port=7002", "--listen", "--rw=read"];
    let running = start(&[&waiting[..], &["--size=64k"]].concat()).and_then(|running| running.begun("waits"));
    let run = running.and_then(Running::interrupt).expect("fiord ends");
    assert_eq!(run.code, Some(130), "{run:?}");
    let absent =
        ["--name=j", "--ioengine=net", "--protocol=vsock", "--port=7003", "--hostname=1", "--rw=write"];
    let refused = fiord(&[&absent[..], &["--size=64k"]].concat()).expect("fiord runs");
    assert_eq!(refused.code, Some(1), "{refused:?}");
}
