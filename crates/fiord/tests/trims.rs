//! Trims of a device with few requests, of which a queue is full.
//!
//! Invariant: a trim that is counted was done, and a job whose trims are not queued says so.

use std::fs;

use fiord_testing::need;

use crate::common::{Dir, LoopDevice};

/// Gives a device as few requests as the kernel allows.
fn shorten_queue(device: &LoopDevice) -> Result<(), String> {
    let name = device.path.trim_start_matches("/dev/");
    let file = format!("/sys/block/{name}/queue/nr_requests");
    fs::write(&file, "4").map_err(|error| format!("{file}: {error}"))
}

/// Linux 6.17 and newer read the entry of a discard again if the device has no free request; 6.18 lost a quarter of them
/// where the ring did not keep it.
#[test]
fn no_queued_trim_is_lost_where_the_device_has_few_requests() {
    let dir = Dir::new();
    let device = need!(LoopDevice::new(&dir, 32 << 20));
    need!(shorten_queue(&device));
    let size: usize = 16 << 20;
    let job = format!("--name=a --filename={} --size={size} --direct=1", device.path);
    let deep = "--ioengine=io_uring --bs=4k --iodepth=64 --iodepth_batch=64 --output-format=json";
    for round in 0..3 {
        dir.run(&format!("{job} --rw=write --bs=1m --buffer_pattern=0xa5")).assert_success();
        let ran = dir.run(&format!("{job} --rw=randtrim {deep} --randseed={round}"));
        let json = ran.assert_success().json();
        assert_eq!(json["jobs"][0]["trim"]["total_ios"], size / 4096);
        let left = fs::read(&device.path).unwrap();
        let lost = left[..size].chunks(4096).filter(|block| block[0] != 0).count();
        assert_eq!(lost, 0, "of {} trims", size / 4096);
    }
}
