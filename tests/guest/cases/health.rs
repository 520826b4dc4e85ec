//! The health of SCSI disks: the log pages of scsi_debug, which can be made to predict a failure.
//!
//! Invariant: what a disk is made to report is gone with the case, because scsi_debug is loaded again by the next.

use std::process::Command;

use fiord_guest::ScsiDebug;

use crate::findings::{HEALTH, figure, findings};
use crate::guest;

/// Sends MODE SELECT with the TEST bit of the page of informational exceptions (1Ch): from then on the disk predicts its
/// failure, as a test of those who watch it.
const PREDICT_FAILURE: &str = r#"
    open(my $disk, "+<", $ARGV[0]) or die "$ARGV[0]: $!";
    my $command = pack("C6", 0x15, 0x10, 0, 0, 16, 0);
    my $page = pack("x4 C3 x9", 0x1c, 0x0a, 0x04);
    my $sense = "\0" x 32;
    my $request = pack("i i C C S I P P P I I i x4 Q C C C C S S i I I",
        0x53, -2, 6, 32, 0, 16, $page, $command, $sense, 5000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    ioctl($disk, 0x2285, $request) or die "SG_IO: $!";
    my $status = unpack("x64 C", $request);
    die "status $status" if $status;
"#;

#[test]
fn a_scsi_disk_that_predicts_its_failure_is_found_and_a_healthy_one_is_not() {
    guest!();
    let disk = ScsiDebug::new(&["dev_size_mb=16"]).unwrap();
    let target = format!("--filename={}", disk.path());
    let found = || findings(&["--name=h", &target, "--rw=read", "--bs=64k", "--size=1m", "--direct=1"]);
    let healthy = found();
    assert!(!healthy.iter().any(|finding| HEALTH.iter().any(|code| finding["code"] == *code)), "{healthy:?}");
    let sent = Command::new("perl").args(["-e", PREDICT_FAILURE, &disk.path()]).output().expect("perl runs");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let failing = found();
    let worn = failing.iter().find(|finding| finding["code"] == "device-worn").expect("it is found");
    assert_eq!(figure(worn, "additional_sense"), Some(f64::from(0x5dff)), "{worn}");
}
