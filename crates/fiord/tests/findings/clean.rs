//! Runs of common jobs on an idle machine: nothing is said against them, and little at all.
//!
//! Invariant: a machine that is not idle, before or during the runs, is a skip; and so is every run of all tests, because
//! others run at the same time.

use std::fs;

use fiord_testing::{need, skip};

use crate::common::{Dir, direct_works_in};
use crate::made::busy_during;
use crate::run;

/// Lines of text that a clean run may end with.
const LINES_MAX: usize = 3;

/// More of the processors' time in use before a run, and more bytes to and from disks, are no idle machine.
const BUSY_MAX: f64 = 0.1;
const SECTORS_MAX: u64 = 512;

/// What people run, shortened: a file of 16 MiB, direct unless it says otherwise.
const JOBS: [&str; 20] = [
    "--rw=randread --bs=4k --ioengine=libaio --iodepth=32",
    "--rw=randread --bs=4k --ioengine=io_uring --iodepth=16",
    "--rw=randread --bs=4k --ioengine=psync",
    "--rw=randread --bs=8k --ioengine=libaio --iodepth=8 --numjobs=2 --group_reporting",
    "--rw=randread --bs=16k --ioengine=io_uring --iodepth=4 --norandommap",
    "--rw=read --bs=1m --ioengine=libaio --iodepth=4",
    "--rw=read --bs=128k --ioengine=io_uring --iodepth=8",
    "--rw=read --bs=64k --ioengine=psync",
    "--rw=write --bs=1m --ioengine=libaio --iodepth=4 --end_fsync=1",
    "--rw=write --bs=128k --ioengine=io_uring --iodepth=8 --end_fsync=1",
    "--rw=write --bs=64k --ioengine=psync --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=io_uring --iodepth=16 --end_fsync=1",
    "--rw=randwrite --bs=8k --ioengine=psync --end_fsync=1",
    "--rw=randrw --rwmixread=70 --bs=4k --ioengine=libaio --iodepth=16 --end_fsync=1",
    "--rw=randrw --rwmixread=90 --bs=8k --ioengine=io_uring --iodepth=8 --end_fsync=1",
    "--rw=rw --bs=64k --ioengine=libaio --iodepth=4 --end_fsync=1",
    "--rw=randwrite --bs=4k --ioengine=psync --fdatasync=1",
    "--rw=write --bs=2300 --ioengine=psync --fdatasync=1 --direct=0",
    "--rw=randread --bs=4k --ioengine=libaio --iodepth=4 --randrepeat=0 --lat_percentiles=1",
];

/// Sectors that whole machine's disks have read and written.
fn sectors() -> u64 {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let of = |line: &str| -> u64 {
        let fields: Vec<u64> =
            line.split_whitespace().skip(3).filter_map(|field| field.parse().ok()).collect();
        fields.get(2).unwrap_or(&0) + fields.get(6).unwrap_or(&0)
    };
    text.lines().map(of).sum()
}

/// Whether nothing else runs, as far as a quarter of a second shows.
fn idle() -> Result<(), String> {
    let before = sectors();
    let ((), busy) = busy_during(|| std::thread::sleep(std::time::Duration::from_millis(250)));
    let moved = sectors() - before;
    if busy > BUSY_MAX || moved > SECTORS_MAX {
        return Err(format!("the machine is not idle: {:.0} % busy, {moved} sectors", 100.0 * busy));
    }
    Ok(())
}

/// `FIORD_IDLE=1 cargo test -p fiord --test findings clean` on a machine with nothing else to do.
#[test]
fn common_jobs_on_an_idle_machine_are_clean() {
    if std::env::var_os("FIORD_IDLE").is_none() {
        skip!("other tests run at the same time; FIORD_IDLE=1 says that none do");
    }
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    for job in JOBS {
        need!(idle());
        let line = format!("--name=a --filename=f --direct=1 {job} --size=16m --time_based --runtime=500ms");
        let document = run(&dir, &line);
        // What the hypervisor takes away is true, and nothing that runs here causes it.
        let found = document["findings"].as_array().into_iter().flatten();
        let found: Vec<_> = found.filter(|finding| finding["code"] != "stolen-cpu").collect();
        let lines: usize = found.iter().map(|finding| if finding["remedy"] == "" { 1 } else { 2 }).sum();
        let is_clean = found.iter().all(|finding| finding["severity"] == "note") && lines <= LINES_MAX;
        if !is_clean && let Err(why) = idle() {
            skip!("{why}");
        }
        assert!(is_clean, "{job}: {}", document["findings"]);
    }
}
