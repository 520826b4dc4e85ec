//! Atomic writes on a SCSI disk that offers them.
//!
//! Invariant: what the plan accepts the kernel accepts, and what it refuses names the limits of the device.

use fiord_guest::{ScsiDebug, fiord};

use crate::{guest, needs_kernel};

#[test]
fn atomic_writes_within_the_limits_of_the_device_are_done() {
    guest!();
    needs_kernel!(6, 11, "atomic writes");
    let disk = ScsiDebug::new(&["dev_size_mb=64", "atomic_wr=1"]).unwrap();
    let target = format!("--filename={}", disk.path());
    let common = ["--name=a", &target, "--rw=randrw", "--size=1m", "--atomic=1"];
    for engine in ["--ioengine=io_uring", "--ioengine=libaio", "--ioengine=pvsync2"] {
        let run = fiord(&[&common[..], &["--bs=16k", engine]].concat()).expect("fiord runs");
        assert_eq!(run.code, Some(0), "{engine}: {run:?}");
        let job = run.job().unwrap();
        let ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap();
        assert_eq!(ios("read") + ios("write"), 64);
        assert!(ios("write") > 0);
    }
    let long = fiord(&[&common[..], &["--bs=1m", "--ioengine=pvsync2"]].concat()).expect("fiord runs");
    assert_eq!(long.code, Some(1), "{long:?}");
    assert!(long.stderr.contains("supports atomic writes of"), "{}", long.stderr);
}
