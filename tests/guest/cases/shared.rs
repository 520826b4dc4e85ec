//! What every engine that sends commands to devices is put to: one body for all of them.
//!
//! Invariant: an engine is known by its arguments alone.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::time::{Duration, Instant};

use fiord_guest::{
    Finished, Flash, NvmeLoop, PersistentFiles, Running, ScsiDebug, fiord, resources_after, start,
};
use serde_json::Value;

use crate::guest;

/// An engine and its device, which goes with it.
struct Subject<Device> {
    device: Device,
    args: Vec<String>,
}

impl<Device> Subject<Device> {
    fn new(engine: &str, path: &str, device: Device) -> Subject<Device> {
        Subject { device, args: vec![format!("--ioengine={engine}"), format!("--filename={path}")] }
    }

    /// A job of these words.
    fn job(&self, words: &str) -> Vec<String> {
        let words = words.split(' ').map(str::to_string);
        ["--name=a".to_string()].into_iter().chain(self.args.iter().cloned()).chain(words).collect()
    }

    /// Starts a job, and waits until it is at work.
    fn start(&self, words: &str) -> Running {
        let args = self.job(words);
        start(&strings(&args)).and_then(|running| running.at_work("a")).unwrap()
    }

    fn run(&self, words: &str) -> Finished {
        fiord(&strings(&self.job(words))).expect("fiord runs")
    }
}

fn strings(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

fn sg() -> Subject<ScsiDebug> {
    let disk = ScsiDebug::new(&["dev_size_mb=16"]).unwrap();
    Subject::new("sg", &disk.character_device().unwrap(), disk)
}

fn io_uring_cmd() -> Subject<NvmeLoop> {
    let disk = NvmeLoop::new("looped", 16).unwrap();
    Subject::new("io_uring_cmd", &disk.character_device().unwrap(), disk)
}

/// On flash whose fourth block is bad.
fn mtd() -> Subject<Flash> {
    let flash = Flash::nand(&["badblocks=3"]).unwrap();
    Subject::new("mtd", &flash.path(), flash)
}

/// The machine's own device.
fn dev_dax() -> Subject<()> {
    Subject::new("dev-dax", "/dev/dax1.0", ())
}

fn libpmem() -> Subject<PersistentFiles> {
    let files = PersistentFiles::mount().unwrap();
    Subject::new("libpmem", &files.path("f"), files)
}

const LONG: &str = "--rw=randread --bs=4k --size=1m --iodepth=4 --time_based --runtime=600";

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    guest!();
    stopped(&sg());
    stopped(&io_uring_cmd());
    stopped(&dev_dax());
    stopped(&libpmem());
}

fn stopped<Device>(subject: &Subject<Device>) {
    let words =
        "--rw=write --bs=4k --size=1m --iodepth=4 --verify=crc32c --verify_state_save=0 --rate_iops=50";
    let running = subject.start(words);
    running.stop_and_continue().unwrap();
    let run = running.wait().unwrap();
    let job = run.job().unwrap();
    let figures =
        ["read", "write"].map(|side| (job[side]["total_ios"].as_u64(), job[side]["io_bytes"].as_u64()));
    let all = (Some(256), Some(1 << 20));
    assert_eq!((run.code, figures, job["error"].as_i64()), (Some(0), [all, all], Some(0)), "{run:?}");
}

#[test]
fn jobs_give_back_what_they_took() {
    guest!();
    gives_back(&sg(), "--rw=randread --bs=64k --size=1m --iodepth=16");
    gives_back(&io_uring_cmd(), "--rw=randread --bs=64k --size=1m --iodepth=16");
    gives_back(&mtd(), "--rw=read --bs=16k --size=32k");
    gives_back(&dev_dax(), "--rw=randrw --bs=64k --size=16m");
    gives_back(&libpmem(), "--rw=randrw --bs=64k --size=16m");
}

fn gives_back<Device>(subject: &Subject<Device>, words: &str) {
    let after =
        |jobs: usize| resources_after(&vec![subject.job(words); jobs], &format!("shared-{jobs}")).unwrap();
    let (few, many) = (after(2), after(12));
    assert_eq!((few.descriptors, few.threads), (many.descriptors, many.threads), "{:?}", subject.args);
    // Each job has buffers of 16 KiB to 1 MiB.
    assert!(many.memory_bytes < few.memory_bytes + (3 << 20), "{:?}: {few:?} and {many:?}", subject.args);
}

#[test]
fn a_disk_that_is_taken_away_ends_the_job() {
    guest!();
    gone(&sg(), |disk| std::fs::write(disk.delete_file(), "1").unwrap());
    gone(&io_uring_cmd(), |disk| disk.disconnect().unwrap());
}

fn gone<Device>(subject: &Subject<Device>, take_away: impl FnOnce(&Device)) {
    let running = subject.start(LONG);
    take_away(&subject.device);
    let run = running.wait().unwrap();
    let job = run.job().unwrap();
    assert!(run.code == Some(1) && job["error"].as_i64() > Some(0), "{run:?}");
    assert!(job["read"]["total_ios"].as_u64() > Some(0), "what it did before is reported: {run:?}");
}

#[test]
fn commands_that_are_never_answered_do_not_hold_up_the_end() {
    guest!();
    stuck(&sg(), |disk, stops| disk.ignore_commands(stops).unwrap());
    stuck(&io_uring_cmd(), |disk, stops| disk.suspend(stops).unwrap());
}

fn stuck<Device>(subject: &Subject<Device>, stop: impl Fn(&Device, bool)) {
    let running = subject.start(LONG);
    stop(&subject.device, true);
    std::thread::sleep(Duration::from_millis(500));
    let asked = Instant::now();
    let run = running.interrupt().unwrap();
    let took = asked.elapsed();
    stop(&subject.device, false);
    // The drivers give up after 30 and 60 seconds.
    assert!(took < Duration::from_secs(20), "{:?}: {took:?}: {run:?}", subject.args);
    let job = run.job().unwrap();
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(job["read"]["total_ios"].as_u64() > Some(0), "{run:?}");
}

#[test]
fn a_command_that_fails_is_an_error_of_its_io() {
    guest!();
    let subject = io_uring_cmd();
    subject.device.fail_from_mib(8).unwrap();
    let run = subject.run("--rw=read --bs=64k --size=16m --iodepth=4");
    let job = run.job().unwrap();
    assert_eq!((run.code, job["error"].as_i64()), (Some(1), Some(5)), "{run:?}");
    let bytes = job["read"]["io_bytes"].as_u64().unwrap_or_default();
    assert!(((8 << 20) - (256 << 10)..=8 << 20).contains(&bytes), "{bytes}: {run:?}");
}

#[test]
fn a_bad_block_of_flash_ends_the_job_or_is_skipped() {
    guest!();
    let subject = mtd();
    let erased = |words: &str| {
        let run = subject.run(&format!("--rw=trim --bs=16k --size=128k {words}"));
        let job = run.job().unwrap();
        (run.code, [&job["error"], &job["trim"]["total_ios"]].map(Value::as_u64))
    };
    assert_eq!(erased("--skip_bad=0"), (Some(1), [Some(5), Some(3)]));
    assert_eq!(erased("--skip_bad=1"), (Some(0), [Some(0), Some(8)]));
}
