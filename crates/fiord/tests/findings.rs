//! Findings on real targets: in runs, in studies, and in exit statuses. `findings/table.rs` has a run that must raise each,
//! and a near neighbour that must not; `findings/withheld.rs` has verdicts that are withheld.
//!
//! Invariant: the machine and its disk may be busy with other tests, so that a test looks for its own codes alone, and
//! never for the absence of those that others' work raises.

mod clean;
mod direct;
mod made;
mod table;
mod withheld;

use std::fs;
use std::os::unix::fs::FileExt;

use fiord_testing::need;
use made::{private_device, run_as};
use serde_json::Value;

use crate::common::control_group::{ControlGroup, ReadLimit};
use crate::common::{Dir, LoopDevice, Mount, Ran, direct_works_in, helper};

/// The codes of the findings of a document, and their severities.
fn codes(document: &Value) -> Vec<(String, String)> {
    let all = document["findings"].as_array().cloned().unwrap_or_default();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_string();
    all.iter().map(|finding| (text(finding, "code"), text(finding, "severity"))).collect()
}

/// Whether a document has a finding of this code.
fn has(document: &Value, code: &str) -> bool {
    codes(document).iter().any(|(known, _)| known == code)
}

/// The document of a run as fio in a directory.
fn run(dir: &Dir, line: &str) -> Value {
    dir.run(&format!("--no-history --output-format=json {line}")).assert_success().json()
}

#[test]
fn memory_below_a_target_is_found_in_runs_and_studies_and_a_disk_is_not_memory() {
    let dir = Dir::new();
    let tmpfs = need!(Mount::tmpfs(&dir, "size=250m"));
    let line = "--name=a --rw=write --bs=64k --size=1m";
    assert!(has(&run(&dir, &format!("{line} --directory=tmpfs")), "in-memory"));
    assert!(!has(&run(&dir, line), "in-memory"));
    let here = tmpfs.path.to_string_lossy();
    for study in ["check etcd --time 600ms", "quick --time 700ms --size 8M", "matrix --time 700ms --size 8M"]
    {
        let ran = dir.run(&format!("{study} --no-history --trust=on --json {here}"));
        ran.assert_status(6);
        let document = ran.json();
        assert!(document["conclusion"].as_str().unwrap().starts_with("CANNOT TELL, because "), "{document}");
        assert!(has(&document, "in-memory"), "{document}");
        // Strict or not, a study runs to its end.
        let strict = dir.run(&format!("{study} --no-history --trust=strict --json {here}"));
        assert_eq!(strict.assert_status(3).stderr, "");
        let (strict, rows) = (strict.json(), |of: &Value| of["rows"].as_array().unwrap().len());
        assert_eq!((&strict["complete"], &strict["error"]), (&true.into(), &Value::Null), "{strict}");
        assert_eq!((&strict["verdict"], rows(&strict)), (&"CANNOT TELL".into(), rows(&document)), "{strict}");
        let verdicts = || strict["rows"].as_array().unwrap().iter().filter_map(|row| row.get("verdict"));
        assert!(verdicts().all(|verdict| *verdict == "CANNOT TELL"), "{strict}");
        let markdown = dir.run(&format!("{study} --no-history --trust=on --markdown {here}")).stdout;
        assert!(markdown.contains("\nCANNOT TELL, because "), "{markdown}");
        let mut rows = markdown.lines().filter(|line| line.starts_with('|')).skip(2);
        let has_verdict =
            |row: &str| ["PASS", "MARGINAL", "FAIL"].iter().any(|word| row.contains(&format!("| {word} |")));
        assert!(!rows.any(has_verdict), "{markdown}");
    }
    assert_eq!(dir.run(&format!("check etcd --time 600ms --json {here}")).json()["verdict"], "PASS");
}

/// Beside the holes of `findings/table.rs`: blocks that `fallocate` gave to the file and nobody wrote. Neither a file that was
/// written in them has the finding, nor one of which the writes have not reached the disk yet.
#[test]
fn blocks_that_were_allocated_and_never_written_are_found() {
    let dir = Dir::new();
    let (_tmpfs, device) = need!(private_device(&dir));
    let ext4 = need!(Mount::ext4(&dir, &device));
    let allocated = |name: &str| helper("fallocate", &["-l", "1m", &ext4.path.join(name).to_string_lossy()]);
    need!(["bare", "written", "cached"].map(allocated).into_iter().collect::<Result<Vec<_>, _>>());
    let write = |name: &str| {
        let file = fs::File::options().write(true).open(ext4.path.join(name)).unwrap();
        file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        file
    };
    write("written").sync_all().unwrap();
    let read = |name: &str| {
        let document = run(&dir, &format!("--name=a --rw=read --size=1m --bs=64k --filename=ext4/{name}"));
        let found = document["findings"].as_array().unwrap().iter().find(|one| one["code"] == "unwritten");
        let figures = found.map(|finding| finding["figures"].as_array().unwrap().clone());
        figures.map(|all| all.iter().find(|one| one["name"] == "unwritten_bytes").unwrap()["value"].as_u64())
    };
    write("cached");
    assert_eq!(read("cached"), None);
    assert_eq!(read("bare"), Some(Some(1 << 20)));
    assert_eq!(read("written"), None);
}

#[test]
fn a_void_finding_fails_a_run_only_if_trust_is_strict() {
    let dir = Dir::new();
    let _tmpfs = need!(Mount::tmpfs(&dir, "size=64m"));
    let line = "--no-history --name=a --rw=write --size=1m --directory=tmpfs";
    let findings = |ran: &Ran| ran.stdout.contains("\nFindings:\n  void: ");
    let on = dir.run(line);
    assert!(findings(on.assert_success()), "{on:?}");
    let strict = dir.run(&format!("{line} --trust=strict"));
    assert!(findings(strict.assert_status(3)), "{strict:?}");
    let off = dir.run(&format!("{line} --trust=off"));
    assert!(!off.assert_success().stdout.contains("Findings"), "{off:?}");
}

/// Whether the kernel counts what is moved to and from the disk below a directory.
fn counted(dir: &Dir) -> Result<(), String> {
    let document = run(dir, "--name=counted --rw=write --size=64k --end_fsync=1");
    match document["devices"].as_array() {
        Some(devices) if !devices.is_empty() => Ok(()),
        _ => Err("no disk below this directory has counters".to_string()),
    }
}

#[test]
fn a_limit_on_io_is_found_on_its_device_alone() {
    let dir = Dir::new();
    let tmpfs = need!(Mount::tmpfs(&dir, "size=64m"));
    let backing = tmpfs.path.join("backing");
    fs::File::create(&backing).unwrap().set_len(32 << 20).unwrap();
    let device = need!(LoopDevice::over(&backing));
    let group = need!(ControlGroup::for_io("limit"));
    need!(group.limit_reads(&need!(device.number()), ReadLimit::BytesPerSecond(100 << 20)));
    let in_group = |line: &str| run_as(&dir, |command| group.inside(command), line);
    let line = format!("--name=a --filename={} --rw=read --bs=64k --size=1m --direct=1", device.path);
    let limited = in_group(&line);
    assert!(has(&limited, "host-limits"), "{limited}");
    assert!(!has(&in_group("--name=b --rw=read --size=1m"), "host-limits"));
    assert!(!has(&run(&dir, &line), "host-limits"));
}

/// A depth that the engine does not have makes no curve, on a terminal or not.
#[test]
fn a_sweep_over_the_depth_of_a_synchronous_engine_has_no_knee() {
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    let sweep = |engine: &str| {
        let line = "--rw=randread --bs=4k --size=8M --direct=1 --over iodepth=1,2,4,8 --time 800ms";
        dir.run(&format!("sweep --no-history --trust=on --json {line} --ioengine={engine}")).json()
    };
    let document = sweep("psync");
    assert_eq!(document["knees"], serde_json::json!([]), "{document}");
    assert!(has(&document, "sync-engine-depth"), "{document}");
    assert!(!has(&sweep("libaio"), "sync-engine-depth"));
}

/// The page cache is faster than any disk, and no recommendation.
#[test]
fn a_sweep_does_not_recommend_the_page_cache() {
    let dir = Dir::new();
    need!(direct_works_in(dir.path()));
    need!(counted(&dir));
    let line = "--rw=randread --bs=1M --size=8M --invalidate=0 --over direct=0,1 --time 2s";
    let document = dir.run(&format!("sweep --no-history --trust=on --json {line}")).json();
    let conclusion = document["conclusion"].as_str().unwrap();
    let is_left_out = conclusion.contains("Left out: direct=0") || conclusion.starts_with("CANNOT TELL");
    assert!(is_left_out && has(&document, "cache-served"), "{document}");
    assert!(!conclusion.contains("with direct=0"), "{conclusion}");
}
