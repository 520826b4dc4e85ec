//! Traces that the kernel recorded of a job, replayed by fio and by fiord.
//!
//! Invariant: the replays are compared by what the kernel recorded of them, and not by their own reports.

use fiord_guest::{END_SECTOR, NullBlk, Queued, fio, fiord, record};

use crate::guest;

/// Kind, sector and length of an I/O that was queued.
fn place(io: &Queued) -> (&str, u64, u64) {
    (io.kind.get(..1).unwrap_or(""), io.sector, io.bytes)
}

/// The same of the job's I/Os: without those of the recording itself, and of what reads whole 128 KiB when the device is
/// opened.
fn places(queued: &[Queued]) -> Vec<(&str, u64, u64)> {
    let of_job = |(_, sector, bytes): &(&str, u64, u64)| *sector < END_SECTOR && *bytes <= 64 << 10;
    queued.iter().map(place).filter(of_job).collect()
}

#[test]
fn a_trace_of_the_kernel_is_replayed_with_the_same_places_as_by_fio() {
    guest!();
    let disk = |name: &str| NullBlk::new(name, 16, &[("discard", "1")]).expect("a disk");
    let (source, target) = (disk("source"), disk("target"));
    let on_source = format!("--filename={}", source.path());
    let common = ["--name=t", &on_source, "--direct=1", "--ioengine=psync"];
    let jobs: [&[&str]; 2] = [
        &["--rw=randrw", "--bsrange=4k-32k", "--size=8m", "--number_ios=60"],
        &["--rw=randtrim", "--bs=64k", "--size=8m", "--number_ios=6"],
    ];
    let (trace, recorded) = record(&source.path(), "recorded", || {
        for job in jobs {
            let run = fiord(&[&common[..], job].concat()).expect("fiord runs");
            assert_eq!(run.code, Some(0), "{run:?}");
        }
    })
    .expect("the kernel records");
    let count = |kind: &str| recorded.iter().filter(|io| place(io).0 == kind).count();
    assert!(count("R") > 0 && count("W") > 0 && count("R") + count("W") >= 60, "{recorded:?}");
    assert_eq!(count("D"), 6, "{recorded:?}");

    let from = format!("--read_iolog={}", trace.display());
    let to = format!("--replay_redirect={}", target.path());
    let args = ["--name=r", &from, &to, "--replay_no_stall=1", "--direct=1", "--ioengine=psync"];
    for (name, program) in [("by-fio", fio as fn(&[&str]) -> _), ("by-fiord", fiord)] {
        let mut run = None;
        let (_, replayed) = record(&target.path(), name, || run = program(&args).ok()).expect("it records");
        let run = run.expect("it runs");
        assert_eq!(run.code, Some(0), "{run:?}");
        let job = run.job().expect("a report");
        let ios = |direction: &str| job[direction]["total_ios"].as_u64();
        let counted = ["read", "write", "trim"].map(ios);
        assert_eq!(counted, ["R", "W", "D"].map(|kind| Some(count(kind) as u64)), "{name}");
        // fio replays through the page cache, so that the kernel sees less of it.
        if name == "by-fiord" {
            assert_eq!(places(&replayed), places(&recorded));
        }
    }
}
