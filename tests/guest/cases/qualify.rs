//! Qualification of an NVMe disk by its serial number.
//!
//! Invariant: no other disk of the machine is written.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fiord_guest::nvme;
use serde_json::Value;

use crate::guest;
use crate::nvme::{disk, sectors};

/// Eight of its 64 MiB, which are written twice before rounds of two measurements follow.
const LINE: [&str; 13] = [
    "qualify",
    "--trust=off",
    "--test",
    "throughput",
    "--class",
    "client",
    "--capacity",
    "8M",
    "--time",
    "50ms",
    "--rounds",
    "5",
    "--json",
];
const PRECONDITIONING_SECTORS: u64 = 2 * (8 << 11);

/// With more arguments, and a history of this case's own.
fn qualify(more: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("FIORD").expect("FIORD names the binary"));
    command.args(LINE).args(more).arg(disk()).env("XDG_STATE_HOME", "/run/qualify-state");
    command
}

fn ran(more: &[&str]) -> Output {
    qualify(more).output().expect("fiord runs")
}

/// Checksums of the other NVMe disks that can be read, or why they cannot.
fn others() -> Vec<String> {
    let serials = ["zoned", "worn", "wide", "guarded", "placed"];
    let paths = serials.map(|serial| nvme(serial).expect("the machine has it"));
    let read = Command::new("cksum").args(&paths).output().expect("cksum runs");
    let (sums, errors) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    sums.lines().chain(errors.lines()).map(str::to_string).collect()
}

#[test]
fn a_disk_is_qualified_by_its_serial_number_and_goes_on_after_a_kill() {
    guest!();
    let _ = fs::remove_dir_all("/run/qualify-state");
    let (before, written) = (others(), sectors()[1]);
    let refused = ran(&["--overwrite=worn"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--overwrite=worn is another device") && said.contains("plain"), "{said}");
    assert_eq!(sectors()[1], written);
    let mut first = qualify(&["--overwrite=plain"]).stdout(Stdio::null()).spawn().expect("fiord runs");
    let since = Instant::now();
    // The first round has begun to write.
    while sectors()[1] - written < PRECONDITIONING_SECTORS + 8 {
        assert!(
            since.elapsed() < Duration::from_secs(120) && first.try_wait().is_ok_and(|end| end.is_none())
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("it is killed");
    first.wait().expect("it ends");
    let resumed = ran(&["--overwrite=plain", "--resume"]);
    let document: Value = serde_json::from_slice(&resumed.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&resumed.stderr)));
    assert_eq!(
        (&document["complete"], &document["target"]["overwritten"]),
        (&true.into(), &"plain".into()),
        "{document}"
    );
    let tests = document["tests"].as_array().expect("a list");
    assert_eq!(tests.len(), 2);
    for test in tests {
        let counts_from = test["interrupted_before_round"].as_u64();
        assert!(counts_from >= Some(2) && test["window_from"].as_u64() >= counts_from, "{test}");
    }
    let rounds = document["rounds"].as_array().expect("a list");
    assert!(rounds.iter().all(|round| round["value"].as_f64() > Some(0.0)), "{document}");
    assert_eq!(others(), before);
}
