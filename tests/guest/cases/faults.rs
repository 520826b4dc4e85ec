//! Disks that fail, delay, or vanish under a job.
//!
//! Invariant: the job ends, what it measured is reported, and the exit status shows that it failed.

use std::fs;
use std::time::{Duration, Instant};

use fiord_guest::{DeviceMapper, NullBlk, ScsiDebug, fiord};
use serde_json::Value;

use crate::findings::{figure, findings};
use crate::guest;

const SECTORS: u64 = 16 << 11;

/// How long a job may take to begin.
const WRITES_WITHIN: Duration = Duration::from_secs(120);

#[test]
fn an_error_in_the_middle_of_a_disk_ends_the_job_with_its_report() {
    guest!();
    let disk = NullBlk::new("flaky", 16, &[]).unwrap();
    // The second half answers with EIO.
    let half = SECTORS / 2;
    let table = format!("0 {half} linear {} 0\n{half} {half} error\n", disk.path());
    let broken = DeviceMapper::new("half", &table).unwrap();
    let target = format!("--filename={}", broken.path());
    let args = ["--name=e", &target, "--rw=write", "--bs=64k", "--direct=1", "--size=100%"];
    let run = fiord(&args).expect("fiord runs");
    assert_eq!(run.code, Some(1), "{run:?}");
    let job = run.job().unwrap();
    assert_eq!(job["error"], 5, "EIO");
    assert_eq!(job["write"]["io_bytes"], 8 << 20, "what went before it is reported");
    assert!(run.stderr.contains("8388608"), "the offset is named: {}", run.stderr);
}

#[test]
fn errors_that_a_job_may_ignore_are_counted() {
    guest!();
    let disk = NullBlk::new("flaky", 16, &[]).unwrap();
    // Up for no time at all: every write fails.
    let table = format!("0 {SECTORS} flakey {} 0 0 60 1 error_writes\n", disk.path());
    let flakey = DeviceMapper::new("flakey", &table).unwrap();
    let target = format!("--filename={}", flakey.path());
    let args = ["--name=e", &target, "--rw=randwrite", "--bs=4k", "--direct=1", "--size=64k"];
    let run = fiord(&[&args[..], &["--continue_on_error=write"]].concat()).expect("fiord runs");
    let job = run.job().unwrap();
    assert_eq!(job["total_err"], 16, "{run:?}");
    assert_eq!(job["first_error"], 5, "EIO");
}

/// The same reads: of a disk with damaged sectors, and of one that answers with EIO there.
#[test]
fn an_error_of_the_medium_is_found_and_any_other_is_not() {
    guest!();
    let found = |path: &str| {
        let target = format!("--filename={path}");
        let reads = ["--name=m", &target, "--rw=read", "--bs=4k", "--size=2m", "--direct=1"];
        let ignoring = ["--ignore_error=ENODATA:EIO"];
        findings(&[&reads[..], &ignoring].concat())
    };
    let is_of = |code: &'static str| move |finding: &&Value| finding["code"] == code;
    // Two blocks of 4 KiB at 1 MiB.
    let damaged =
        ScsiDebug::new(&["dev_size_mb=16", "opts=2", "medium_error_start=2048", "medium_error_count=16"])
            .unwrap();
    let all = found(&damaged.path());
    let media = all.iter().find(is_of("media-errors")).unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(figure(media, "failed_ios"), Some(2.0), "{media}");
    drop(damaged);
    let disk = NullBlk::new("flaky", 16, &[]).unwrap();
    let rest = SECTORS - 2064;
    let table = format!("0 2048 linear {0} 0\n2048 16 error\n2064 {rest} linear {0} 2064\n", disk.path());
    let broken = DeviceMapper::new("broken", &table).unwrap();
    let all = found(&broken.path());
    assert!(all.iter().any(|finding| is_of("error-continued")(&finding)), "{all:?}");
    assert!(!all.iter().any(|finding| is_of("media-errors")(&finding)), "{all:?}");
}

#[test]
fn a_disk_that_vanishes_ends_the_job_with_its_report() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16"]).unwrap();
    let target = format!("--filename={}", disk.path());
    let stat = format!("/sys/block/{}/stat", disk.path().trim_start_matches("/dev/"));
    let delete = disk.delete_file();
    // Removed once the job has written something.
    let remover = std::thread::spawn(move || {
        let written = || {
            let text = fs::read_to_string(&stat).unwrap_or_default();
            text.split_whitespace().nth(4).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
        };
        let since = Instant::now();
        while written() < 20 && since.elapsed() < WRITES_WITHIN {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::write(delete, "1")
    });
    let args = ["--name=gone", &target, "--rw=randwrite", "--bs=4k", "--direct=1", "--time_based"];
    let run = fiord(&[&args[..], &["--runtime=300"]].concat()).expect("fiord runs");
    assert!(remover.join().expect("the remover ends").is_ok());
    assert_eq!(run.code, Some(1), "{run:?}");
    let job = run.job().unwrap();
    assert_ne!(job["error"], 0);
    assert!(job["write"]["total_ios"].as_u64() >= Some(20), "what it did before is reported: {job}");
}

#[test]
fn a_delay_below_the_disk_is_in_each_latency() {
    guest!();
    let disk = NullBlk::new("slow", 16, &[]).unwrap();
    let table = format!("0 {SECTORS} delay {} 0 30 {} 0 0\n", disk.path(), disk.path());
    let slow = DeviceMapper::new("slow", &table).unwrap();
    let target = format!("--filename={}", slow.path());
    let common = ["--name=d", &target, "--bs=4k", "--direct=1", "--number_ios=8"];
    let read = fiord(&[&common[..], &["--rw=read"]].concat()).expect("fiord runs");
    assert_eq!(read.code, Some(0), "{read:?}");
    let least = |direction: &str, run: &fiord_guest::Finished| {
        run.job().unwrap()[direction]["clat_ns"]["min"].as_u64().unwrap()
    };
    // The kernel counts in ticks, and may be one short.
    assert!(least("read", &read) >= 20_000_000, "{read:?}");
}
