//! Qualification of an NVMe disk by its serial number, and of a disk whose zones are written in sequence.
//!
//! Invariant: no other disk of the machine is written.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fiord_guest::{NullBlk, ScsiDebug, nvme};
use serde_json::Value;

use crate::guest;
use crate::nvme::{disk, sectors};
use crate::zones::zones;

/// Eight of its 64 MiB, which are written twice before rounds of two measurements follow.
const LINE: [&str; 10] =
    ["qualify", "--test", "throughput", "--class", "client", "--capacity", "8M", "--time", "50ms", "--json"];
const PRECONDITIONING_SECTORS: u64 = 2 * (8 << 11);

/// Of the case that is about rounds.
const ROUNDS: [&str; 2] = ["--trust=off", "--rounds=5"];

/// fiord with these arguments, and a history of these cases' own.
fn fiord(arguments: &[&str]) -> Output {
    let mut command = Command::new(std::env::var_os("FIORD").expect("FIORD names the binary"));
    command.args(arguments).env("XDG_STATE_HOME", "/run/qualify-state").output().expect("fiord runs")
}

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
    let mut first = qualify(&[&ROUNDS[..], &["--overwrite=plain"]].concat())
        .stdout(Stdio::null())
        .spawn()
        .expect("fiord runs");
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
    let resumed = ran(&[&ROUNDS[..], &["--overwrite=plain", "--resume"]].concat());
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

/// The option that identifies this device, as a refusal without it says.
fn overwrite(path: &str) -> String {
    let refused = fiord(&["qualify", "--test=iops", path]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let word = said.split("--overwrite=\"").nth(1).and_then(|rest| rest.split('"').next());
    format!("--overwrite={}", word.unwrap_or_else(|| panic!("{said}")))
}

/// Whether nothing was written to a zone since it was reset.
fn is_empty(zone: &String) -> bool {
    zone.contains("zcond: 1(em)") || zone.contains("zcond: 0(nw)")
}

#[test]
fn zoned_disks_of_nvme_and_scsi_are_qualified_in_rounds_within_their_capacity() {
    guest!();
    let scsi =
        ScsiDebug::new(&["dev_size_mb=32", "zbc=managed", "zone_size_mb=4", "zone_nr_conv=1"]).unwrap();
    // Two zones of each, the conventional one among them.
    for (path, test, figures, capacity, written) in [
        (nvme("zoned").expect("the machine has it"), "throughput", 2, 16 << 20, 0),
        (scsi.path(), "latency", 1, 8 << 20, 1),
    ] {
        if written == 0 {
            crate::zones::reset(&path);
        }
        let untouched = sectors()[1];
        let size = format!("--capacity={capacity}");
        let line = ["qualify", "--test", test, "--class=client", "--time=40ms", "--rounds=5", "--trust=off"];
        let ran = fiord(&[&line[..], &["--json", &size, &overwrite(&path), &path]].concat());
        let document: Value = serde_json::from_slice(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&ran.stderr)));
        assert_eq!(
            (&document["complete"], &document["target"]["size_bytes"]),
            (&true.into(), &capacity.into()),
            "{document}"
        );
        let tests = document["tests"].as_array().expect("a list");
        assert_eq!(tests.len(), figures, "{document}");
        for test in tests {
            assert_eq!([&test["rounds"], &test["window_from"], &test["window_to"]], [5, 1, 5], "{test}");
            assert!(test["mean"].as_f64() > Some(0.0), "{test}");
        }
        let zones = zones(&path);
        assert!(!is_empty(&zones[written]) && zones[2..].iter().all(is_empty), "{zones:?}");
        assert_eq!(sectors()[1], untouched, "another disk was written");
    }
}

#[test]
fn a_zoned_disk_gets_what_its_zones_take_and_the_rest_is_left_out_by_name() {
    guest!();
    let attributes = [("zoned", "1"), ("zone_size", "4"), ("zone_capacity", "3"), ("zone_max_open", "3")];
    let conventional = [&attributes[..], &[("zone_nr_conv", "1")]].concat();
    let (disk, other) = (
        NullBlk::new("qualified", 36, &conventional).expect("it is made"),
        NullBlk::new("beside", 16, &attributes).expect("it is made"),
    );
    let path = disk.path();
    let overwrite = overwrite(&path);
    for (arguments, why) in [
        (&["quick", "--size=16M"][..], "or use fiord qualify on the whole device"),
        (&["qualify", "--test=idle-recovery,cross-stimulus"], "add iops, throughput"),
        (&["qualify", "--test=iops", "--sprandom"], "written in sequence only, in no other order"),
        (&["qualify", "--capacity=3M"], "the minimum is 8MiB"),
    ] {
        let refused = fiord(&[arguments, &[&overwrite, &path]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && said.contains(why), "{why}: {said}");
    }
    assert!(zones(&path).iter().all(is_empty), "nothing was written: {:?}", zones(&path));
    let all = ["qualify", "--test=saturation,iops,throughput,latency,cross-stimulus", "--class=client"];
    // The last zone is beyond what is used.
    let short = ["--capacity=34M", "--time=200ms", "--rounds=1", "--json", &overwrite, &path];
    let ran = fiord(&[&all[..], &short].concat());
    let document: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&ran.stderr)));
    assert_eq!(
        (&document["complete"], &document["target"]["size_bytes"]),
        (&true.into(), &(32 << 20).into())
    );
    let list = |key: &str| document[key].as_array().expect("a list").clone();
    let words = |key: &str| list("left_out").iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(words("test"), ["saturation", "iops", "latency", "cross-stimulus"], "{document}");
    for test in list("tests") {
        let reads =
            if ["iops", "latency"].contains(&test["test"].as_str().unwrap_or_default()) { 100 } else { 0 };
        assert!(test["read_percent"].as_u64() >= Some(reads), "{test}");
    }
    assert_eq!(list("tests").len(), 1 + 1 + 2 + 1, "{document}");
    for round in list("rounds") {
        assert!(round["value"].as_f64() > Some(0.0), "{round}");
    }
    let after = zones(&path);
    assert!(!after[1..8].iter().any(is_empty) && is_empty(&after[8]), "{after:?}");
    assert!(zones(&other.path()).iter().all(is_empty));
    let beside =
        ["qualify", "--test=iops", "--dry-run", &overwrite, "--overwrite=plain", &path, &self::disk()];
    let ran = fiord(&beside);
    let jobs = String::from_utf8_lossy(&ran.stdout).into_owned();
    let runs = |path: &str| jobs.matches(&format!(": {path}: iops")).count();
    assert!(ran.status.success() && runs(&path) > 1 && runs(&self::disk()) > runs(&path), "{ran:?}");
    let again =
        fiord(&["qualify", "--test=latency", "--keep-preconditioning", "--dry-run", &overwrite, &path]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("loops=2"), "{again:?}");
}

/// The boot of the machine, as if it had been started anew.
struct Boot;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl Boot {
    fn anew() -> Boot {
        let mut file = fs::File::create("/run/boot-id").expect("it is made");
        file.write_all(b"00000000-1111-4222-8333-444444444444\n").expect("it is written");
        let mount = Command::new("mount").args(["--bind", "/run/boot-id", BOOT_ID]).status();
        assert!(mount.expect("mount runs").success());
        Boot
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(BOOT_ID).status();
    }
}

/// Writes behind what the tests use.
fn written_by_others(bytes: usize) {
    let file = fs::File::options().write(true).open(disk()).expect("it is opened");
    file.write_all_at(&vec![1; bytes], 32 << 20).expect("it is written");
    file.sync_all().expect("it is written back");
}

#[test]
fn preconditioning_is_kept_over_a_restart_as_far_as_the_count_of_the_disk_shows() {
    guest!();
    let _ = fs::remove_dir_all("/run/qualify-state");
    // The count is part of the health that a run without --trust=off looks at.
    let test = |more: &[&str]| {
        let all = [&["--rounds=1", "--overwrite=plain"], more].concat();
        let output = ran(&all);
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        document["tests"][0].clone()
    };
    assert!(test(&[])["kept_run"].is_null());
    let keeps = ["--keep-preconditioning"];
    let within_a_boot = test(&keeps);
    assert_eq!(
        (&within_a_boot["kept_run"], &within_a_boot["written_since_counted_by"]),
        (&2.into(), &"kernel".into())
    );
    {
        let _boot = Boot::anew();
        let kept = test(&keeps);
        assert_eq!(
            (&kept["kept_run"], &kept["written_since_counted_by"]),
            (&2.into(), &"disk".into()),
            "{kept}"
        );
        assert_eq!(kept["unrecorded_bytes"], 0, "{kept}");
        // The disk counts in units of 512,000 bytes, which two studies have written more than.
        let written = kept["written_since_bytes"].as_u64().expect("it is counted");
        assert!(written > 0 && written.is_multiple_of(512_000), "{kept}");
    }
    written_by_others(2 << 20);
    let _boot = Boot::anew();
    let anew = test(&keeps);
    let why = anew["not_kept_because"].as_str().unwrap_or_default();
    assert!(
        anew["kept_run"].is_null() && why.contains("were written since run 2 by no run of the history"),
        "{anew}"
    );
}
