//! Cuts under synced writes: on disks that keep what they promised, and on disks that drop it.
//!
//! Invariant: the disk is read without what was cached above it.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fiord_guest::{DeviceMapper, NullBlk, nvme};

use crate::guest;

const SECTORS: u64 = 16 << 11;

/// Writes through a device of this table until some syncs have completed, cuts it off, and returns status and output of
/// the check.
fn cut(name: &str, table: impl Fn(&str) -> String) -> (Option<i32>, serde_json::Value) {
    let disk = NullBlk::new(name, 16, &[]).expect("a disk");
    let above = DeviceMapper::new(&format!("{name}-dm"), &table(&disk.path())).expect("a device");
    let journal = format!("/run/{name}.journal");
    // That of an earlier run has synced already.
    let _ = fs::remove_file(&journal);
    let fiord = std::env::var_os("FIORD").expect("FIORD names the binary");
    let mut run = Command::new(&fiord);
    run.args(["crash-test", "run", &above.path(), "--overwrite", "--journal", &journal, "--size", "4M"]);
    let mut running = run.stdout(Stdio::null()).spawn().expect("fiord runs");
    let since = Instant::now();
    let synced = || fs::read_to_string(&journal).is_ok_and(|text| text.contains("synced 20\n"));
    while !synced() && since.elapsed() < Duration::from_secs(120) {
        assert_eq!(running.try_wait().expect("it runs"), None, "it ended before the cut");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.kill().expect("it is killed");
    running.wait().expect("it ends");
    drop(above);
    check(&disk.path(), &journal)
}

/// Status and output of the check of a disk.
fn check(disk: &str, journal: &str) -> (Option<i32>, serde_json::Value) {
    let fiord = std::env::var_os("FIORD").expect("FIORD names the binary");
    let check = ["crash-test", "check", disk, "--journal", journal, "--json"];
    let out = Command::new(&fiord).args(check).output().expect("fiord runs");
    (out.status.code(), serde_json::from_slice(&out.stdout).expect("a document"))
}

/// An entry of the log that dm-log-writes keeps of a device.
struct Logged {
    offset_bytes: u64,
    data: Vec<u8>,
    is_flush: bool,
}

/// The entries of a log, in the order in which the writes were complete and flushed.
fn read_log(path: &str) -> Vec<Logged> {
    const SECTOR_BYTES: u64 = 512;
    const FLUSH: u64 = 1;
    const DISCARD_OR_MARK: u64 = 4 | 8;
    let bytes = fs::read(path).expect("the log is read");
    let word = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().expect("8 bytes"));
    assert_eq!(word(0), 0x006a_7366_7773_6872, "the magic of dm-log-writes");
    assert_eq!(word(24) & 0xffff_ffff, SECTOR_BYTES);
    let mut at = SECTOR_BYTES;
    (0..word(16))
        .map(|_| {
            let (sector, sectors, flags) = (word(at), word(at + 8), word(at + 16));
            let length = if flags & DISCARD_OR_MARK == 0 { sectors * SECTOR_BYTES } else { 0 };
            let data = bytes[(at + SECTOR_BYTES) as usize..][..length as usize].to_vec();
            at += SECTOR_BYTES + length;
            Logged { offset_bytes: sector * SECTOR_BYTES, data, is_flush: flags & FLUSH != 0 }
        })
        .collect()
}

/// Status and output of the check of a disk to which this part of a log came, after so many syncs were confirmed.
fn replayed<'a>(
    journal: &str,
    syncs: u64,
    log: impl Iterator<Item = &'a Logged>,
) -> (Option<i32>, serde_json::Value) {
    let disk = NullBlk::new("replayed", 16, &[]).expect("a disk");
    let file = fs::File::options().write(true).open(disk.path()).expect("it is opened");
    for entry in log {
        file.write_all_at(&entry.data, entry.offset_bytes).expect("it is written");
    }
    file.sync_all().expect("it is synced");
    let text = fs::read_to_string(journal).expect("the journal is read");
    let last = format!("begin {}\n", syncs + 1);
    let end = text.find(&last).expect("the sync is in the journal") + last.len();
    let cut = format!("{journal}.cut");
    fs::write(&cut, &text[..end]).expect("it is written");
    check(&disk.path(), &cut)
}

#[test]
fn a_disk_has_everything_at_each_cut_of_its_log_unless_it_ignored_flushes() {
    guest!();
    let [disk, log] = ["logged", "log"].map(|name| NullBlk::new(name, 16, &[]).expect("a disk"));
    let table = format!("0 {SECTORS} log-writes {} {}\n", disk.path(), log.path());
    let above = DeviceMapper::new("logged-dm", &table).expect("a device");
    let journal = "/run/logged.journal";
    let fiord = std::env::var_os("FIORD").expect("FIORD names the binary");
    let args = ["--overwrite", "--journal", journal, "--size", "1M", "--per-sync", "8", "--syncs", "12"];
    let out = Command::new(fiord)
        .args(["crash-test", "run", &above.path()])
        .args(args)
        .output()
        .expect("fiord runs");
    assert!(out.status.success(), "{out:?}");
    drop(above);
    let entries = read_log(&log.path());
    let flushes: Vec<usize> = (0..entries.len()).filter(|index| entries[*index].is_flush).collect();
    assert!(flushes.len() >= 12, "a flush for each sync: {} of {} entries", flushes.len(), entries.len());
    for syncs in [1, 2, 5, 8, 11] {
        let (synced, next) = (flushes[syncs - 1] + 1, flushes[syncs] + 1);
        // Right at the flush, and with some of the writes of the next round.
        for cut in [synced, synced.midpoint(next)] {
            let (code, document) = replayed(journal, syncs as u64, entries[..cut].iter());
            assert_eq!(
                (code, document["result"][0]["lost"].as_u64()),
                (Some(0), Some(0)),
                "cut at {cut}: {document}"
            );
        }
    }
    // A cache that ignores flushes has written back some blocks, and lost the others.
    let (code, document) = replayed(journal, 11, entries[..flushes[10]].iter().step_by(2));
    assert_eq!(code, Some(7), "{document}");
    assert!(document["result"][0]["lost"].as_u64() > Some(0), "{document}");
}

#[test]
fn an_honest_disk_has_everything_that_was_synced() {
    guest!();
    let (code, document) = cut("honest", |disk| format!("0 {SECTORS} linear {disk} 0\n"));
    assert_eq!((code, document["result"][0]["lost"].as_u64()), (Some(0), Some(0)), "{document}");
    assert!(document["result"][0]["syncs"].as_u64() >= Some(20), "{document}");
}

#[test]
fn a_disk_that_confirms_syncs_and_drops_writes_is_found() {
    guest!();
    let (code, document) = cut("lying", |disk| format!("0 {SECTORS} flakey {disk} 0 0 60 1 drop_writes\n"));
    let result = &document["result"][0];
    assert_eq!((code, result["lost"].as_u64()), (Some(7), result["blocks"].as_u64()), "{document}");
    assert_eq!(document["losses"][0]["kind"], "zero");
}

/// The machine that wrote to these disks lost its power before this one booted.
#[test]
fn after_a_power_cut_an_honest_disk_has_what_was_synced_and_a_lying_one_has_lost_it() {
    guest!();
    let (Some(honest), Some(lying)) = (nvme("honest"), nvme("lying")) else {
        fiord_testing::skip!(
            "no power was cut before; `cargo x ci guest` and `cargo x guest --power-cut` do so"
        );
    };
    let shared = std::env::var("FIORD_SHARED").expect("the directory that survives");
    let (code, document) = check(&honest, &format!("{shared}/honest.journal"));
    let result = &document["result"][0];
    assert_eq!((code, result["lost"].as_u64()), (Some(0), Some(0)), "{document}");
    assert!(result["syncs"].as_u64() >= Some(20), "{document}");
    let (code, document) = check(&lying, &format!("{shared}/lying.journal"));
    let result = &document["result"][0];
    assert_eq!(code, Some(7), "{document}");
    assert!(result["syncs"].as_u64() >= Some(20), "it confirmed them: {document}");
    assert_eq!(result["lost"].as_u64(), result["blocks"].as_u64(), "its cache was all it had: {document}");
    assert_eq!(document["losses"][0]["kind"], "zero");
}
