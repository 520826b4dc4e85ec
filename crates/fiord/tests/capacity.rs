//! `fiord capacity` on a directory on a disk, and what it refuses.
//!
//! Invariant: however a run ends, no file remains. The machine may be busy, so that no rate is expected of it.

use std::path::Path;

use fiord_testing::{need, skip};
use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::study::{fio_takes, is_empty};
use crate::common::{Dir, Mount, assert_fits_terminal, direct_works_in, finish, fiord, signal, start, until};

/// Every run for a tenth of a second, on a small file.
const SHORT: &str = "--no-history --time 100ms --size 8M";

/// A bound that every disk meets: the search ends at its last run, or when more I/Os arrive than the disk takes.
#[test]
fn the_search_ends_and_its_document_has_the_documented_keys() {
    let dir = Dir::new();
    let ran = dir.run(&format!("capacity --p50=30s --depth=4 {SHORT} --json --plot chart.svg"));
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, "capacity");
    assert_eq!((&document["study"], &document["complete"]), (&"capacity".into(), &true.into()));
    assert_eq!(document["bound_percentile"], Value::from(50.0));
    let rows = document["rows"].as_array().unwrap();
    let rates: Vec<u64> = rows.iter().map(|row| row["rate_iops"].as_u64().unwrap()).collect();
    assert!(rates.is_sorted() && rows.len() > 2, "{rates:?}");
    let met: Vec<&Value> = rows.iter().filter(|row| row["meets"] == "yes").collect();
    assert!(document["capacity_iops"].as_u64().is_some_and(|rate| rates.contains(&rate)), "{document}");
    assert!(met.iter().all(|row| row["response_ns"].as_u64().is_some_and(|ns| ns > 0)), "{document}");
    assert!(dir.text("chart.svg").starts_with("<svg"));
    std::fs::remove_file(dir.join("chart.svg")).unwrap();
    assert!(is_empty(dir.path()));
}

#[test]
fn a_bound_below_any_latency_is_a_failure() {
    let dir = Dir::new();
    let ran = dir.run(&format!("capacity --bound=p99.9=1us {SHORT}"));
    ran.assert_status(4);
    assert_fits_terminal(&ran.stdout);
    assert!(ran.stdout.contains("Not even "), "{ran:?}");
    assert!(is_empty(dir.path()));
}

#[test]
fn its_first_run_is_a_job_that_fio_takes() {
    let dir = Dir::new();
    let ran = dir.run(&format!("capacity --p99=10ms {SHORT} --dry-run"));
    assert!(ran.assert_success().stdout.contains("rw=randread"), "{ran:?}");
    need!(fio_takes(&dir, &ran.stdout));
}

#[test]
fn what_is_wrong_on_the_command_line_is_said() {
    let dir = Dir::new();
    dir.write("job.fio", "[a]\nrw=randread\n");
    dir.write("paced.fio", "[paced]\nrate_iops=5\n");
    dir.write("named.fio", "[a]\nfilename=f\n");
    dir.write("wrong.fio", "[a]\nrw=raed\n");
    dir.write("empty.fio", "");
    for (line, expected) in [
        ("capacity", "--p99"),
        ("capacity --p99=10ms --p50=1ms", "cannot be used with"),
        ("capacity --p99=soon", "write 10ms"),
        ("capacity --bound=99=10ms", "p99.9=10ms"),
        ("capacity --p99=10ms --rw=randrw", "is not one of randread, randwrite, read, write"),
        ("capacity --p99=10ms job.fio --bs=8k", "--bs: the job has its own"),
        ("capacity --p99=10ms job.fio job.fio", "a second job file"),
        ("capacity --p99=10ms paced.fio", "job paced: rate_iops does not go with a search"),
        ("capacity --p99=10ms named.fio .", "filename of the job names its files"),
        ("capacity --p99=10ms wrong.fio", "wrong.fio:2:"),
        ("capacity --p99=10ms empty.fio", "has no section"),
        ("capacity --p99=10ms . ./", "named twice"),
        ("capacity --p99=10ms nowhere", "nowhere: no such directory"),
    ] {
        dir.run(line).assert_status(1).assert_prints(&[expected]);
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_some_and(|extension| extension == "fio")), "{left:?}");
}

/// The mix, the block sizes, the engine and the number of jobs stay; at a rate, reads and writes are jobs of their own.
#[test]
fn a_job_file_is_searched_as_it_is() {
    let dir = Dir::new();
    dir.write(
        "mix.fio",
        "[mix]\nrw=randrw\nrwmixread=75\nbs=8k,16k\nioengine=psync\nnumjobs=2\nsize=8m\nruntime=1h\ntime_based\n",
    );
    let ran = dir.run("capacity --p50=30s mix.fio --no-history --time 100ms --json");
    let document = ran.assert_success().json();
    assert_documented(&document, "capacity");
    assert!(document["rows"].as_array().unwrap().len() > 2, "{document}");
    assert!(document["targets"][0]["capacity_iops"].as_u64() == document["capacity_iops"].as_u64());
    let first = &document["jobs"][0];
    assert_eq!((&first["job"], &first["engine"]), (&"mix".into(), &"psync".into()), "{document}");
    let text = dir.run("capacity --p99=10ms mix.fio --time 100ms --dry-run").assert_success().stdout.clone();
    for kept in ["rw=randrw", "rwmixread=75", "bs=8k,16k", "numjobs=2", "runtime=100ms"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains("runtime=1h"), "{text}");
    std::fs::remove_file(dir.join("mix.fio")).unwrap();
    assert!(is_empty(dir.path()));
}

/// A job that names its files runs on these, and leaves them.
#[test]
fn a_job_that_names_its_files_has_no_target() {
    let dir = Dir::new();
    dir.write("own.fio", "[own]\nrw=randread\nfilename=own\nsize=1m\n");
    let ran = dir.run("capacity --p50=30s own.fio --no-history --time 100ms --json");
    let document = ran.assert_success().json();
    assert_eq!((&document["target"], &document["targets"][0]["target"]), (&Value::Null, &Value::Null));
    assert!(document["conclusion"].as_str().unwrap().starts_with("This job sustains "), "{document}");
    assert_eq!(std::fs::metadata(dir.join("own")).unwrap().len(), 1 << 20);
}

#[test]
fn several_targets_are_compared_in_one_table() {
    let dir = Dir::new();
    for name in ["one", "two"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    let line = "capacity --p50=30s --depth=4 one two --no-history --time 100ms --size 8M";
    let ran = dir.run(&format!("{line} --json --plot chart.svg"));
    assert!([Some(0), Some(6)].contains(&ran.status), "one carries more, or nobody can tell: {ran:?}");
    let document = ran.json();
    assert_eq!((&document["target"], &document["capacity_iops"]), (&Value::Null, &Value::Null));
    let targets = document["targets"].as_array().unwrap();
    let names: Vec<String> =
        ["one", "two"].map(|name| dir.join(name).to_string_lossy().into_owned()).to_vec();
    assert_eq!(targets.iter().map(|target| target["target"].as_str().unwrap()).collect::<Vec<_>>(), names);
    assert!(targets.iter().all(|target| target["capacity_iops"].as_u64() > Some(0)), "{document}");
    let is_decided = document["carries_most"].is_string();
    assert_eq!(ran.status, Some(if is_decided { 0 } else { 6 }), "{document}");
    for (name, target) in names.iter().zip(targets) {
        let rows = document["rows"].as_array().unwrap().iter().filter(|row| row["target"] == *name);
        assert_eq!(Some(rows.count() as u64), target["runs"].as_u64());
        assert!(is_empty(Path::new(name)));
    }
    assert!(dir.text("chart.svg").contains("<path"), "{}", dir.text("chart.svg"));
    let ran = dir.run(line);
    assert_fits_terminal(&ran.stdout);
    assert!(ran.stdout.contains("CAPACITY") && ran.stdout.contains("2 targets"), "{ran:?}");
}

/// What voids the figures of one target says nothing about the other; what a disk of both says, does.
#[test]
fn a_target_in_memory_is_left_out_and_the_other_has_its_capacity() {
    let dir = Dir::new();
    let tmpfs = need!(Mount::tmpfs(&dir, "size=100m"));
    need!(direct_works_in(dir.path()));
    std::fs::create_dir(dir.join("disk")).unwrap();
    let line = format!("capacity --trust=on --p50=30s --depth=4 disk {}", tmpfs.path.display());
    let ran = dir.run(&format!("{line} {SHORT} --json"));
    ran.assert_status(6);
    let document = ran.json();
    let [disk, memory] = [0, 1].map(|index| document["targets"][index].clone());
    assert_eq!(
        (&memory["withheld"], &memory["capacity_iops"]),
        (&"in-memory".into(), &Value::Null),
        "{document}"
    );
    assert_eq!(document["carries_most"], Value::Null);
    let conclusion = document["conclusion"].as_str().unwrap();
    let withheld = format!("CANNOT TELL what {} carries, because ", tmpfs.path.display());
    assert!(conclusion.contains(&withheld), "{conclusion}");
    // Others' work on this disk may void its figures too.
    if disk["withheld"].is_null() {
        assert!(disk["capacity_iops"].as_u64() > Some(0), "{document}");
        assert!(conclusion.contains("/disk sustains "), "{conclusion}");
    }
}

#[test]
fn two_directories_on_one_disk_are_said_to_be() {
    let dir = Dir::new();
    for name in ["one", "two"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    let document = dir.run(&format!("capacity --p50=30s --depth=4 one two {SHORT} --json")).json();
    let disks = &document["targets"][0]["disks"];
    if disks.as_array().unwrap().is_empty() {
        skip!("no disk below this directory has counters");
    }
    assert_eq!(disks, &document["targets"][1]["disks"]);
    let conclusion = document["conclusion"].as_str().unwrap();
    assert!(conclusion.contains("/one and ") && conclusion.contains("are on the same disk"), "{conclusion}");
}

/// What was measured until a signal is printed, and no conclusion is drawn from it.
#[test]
fn an_interrupted_search_prints_what_it_has() {
    let dir = Dir::new();
    for name in ["one", "two"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    // Each run begins with a line in this file; one would take forty seconds.
    dir.write("job.fio", "[a]\nrw=randread\nexec_prerun=echo>>runs\n");
    let line = "capacity --p50=30s job.fio one two --no-history --time 10m --size 8M --json";
    let running = start(fiord(dir.path(), line));
    until("the first run has begun", || std::fs::read(dir.join("runs")).is_ok_and(|text| !text.is_empty()));
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    let document = ran.json();
    assert_eq!((&document["complete"], &document["conclusion"]), (&false.into(), &Value::Null), "{document}");
    assert_eq!(document["error"], "ended by SIGINT");
    assert!(is_empty(&dir.join("one")) && is_empty(&dir.join("two")));
}
