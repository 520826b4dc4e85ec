//! Layouts and writes beside the free space of their file systems.
//!
//! Invariant: what would fit is never refused.

use fiord_errno::Errno;

use super::*;
use crate::facts::{Quota, Space};

const FREE: u64 = 10 * MIB;

fn space(may_shrink: bool) -> Option<Space> {
    Some(Space { file_system: (8, 1), free_bytes: FREE, may_shrink, frees_later: false, quota: None })
}

/// The numbers of the jobs without room, among files on one file system.
fn without_room(line: &str, may_shrink: bool) -> Vec<usize> {
    without_room_of(line, may_shrink, &RunSettings::default())
}

fn without_room_of(line: &str, may_shrink: bool, run: &RunSettings) -> Vec<usize> {
    let absent = PathFacts { space: space(may_shrink), ..PathFacts::absent() };
    let half =
        PathFacts { allocated_bytes: 6 * MIB, space: space(may_shrink), ..PathFacts::regular(6 * MIB) };
    let sparse = PathFacts { allocated_bytes: 0, ..half.clone() };
    let elsewhere = Space { file_system: (8, 2), ..space(may_shrink).unwrap() };
    let other = PathFacts { space: Some(elsewhere), ..PathFacts::absent() };
    let facts = machine(&[
        ("a", absent.clone()),
        ("b", absent),
        ("half", half),
        ("sparse", sparse),
        ("other", other),
        ("unknown", PathFacts::absent()),
    ]);
    let (plan, _) = build(&sections(line), &[], &facts, run).unwrap();
    let refused = plan.jobs.iter().enumerate().filter(|(_, job)| {
        job.unplannable.as_ref().is_some_and(|unplannable| unplannable.errno == Errno::ENOSPC)
    });
    refused.map(|(number, _)| number).collect()
}

// divergence: a layout that is larger than the free space
#[test]
fn only_what_is_certainly_written_and_not_there_yet_needs_room() {
    let cases: [(&str, &[usize]); 16] = [
        ("--name=j --filename=a --size=10m", &[]),
        ("--name=j --filename=a --size=11m", &[0]),
        ("--name=j --filename=a --size=11m --rw=randrw", &[0]),
        ("--name=j --filename=a --size=11m --rw=write --overwrite=1", &[0]),
        ("--name=j --filename=a:b --size=22m", &[0]),
        ("--name=j --filename=a:b:half --filesize=8191p", &[0]),
        ("--name=j --filename=half --size=16m", &[]),
        ("--name=j --filename=half --size=17m", &[0]),
        ("--name=j --filename=sparse --size=16m", &[0]),
        ("--name=j --filename=other:a --size=20m", &[]),
        ("--name=j --filename=unknown --size=1t", &[]),
        ("--name=j --filename=a --size=6m --name=k --filename=b --size=6m", &[1]),
        // The one that is refused takes no room.
        ("--name=j --filename=a --size=60m --name=k --filename=b --size=6m", &[0]),
        ("--name=j --filename=a --size=6m --name=k --filename=a --size=8m", &[]),
        ("--name=j --filename=a --size=6m --unlink=1 --name=k --filename=b --size=6m", &[1]),
        (
            "--name=j --filename=a --size=6m --unlink=1 --create_serialize=0 --name=k --filename=b --size=6m",
            &[],
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(without_room(line, false), expected, "{line}");
        assert_eq!(without_room(line, true), expected, "{line}");
    }
    for contents in ["--zero_buffers=1", "--dedupe_percentage=50", "--buffer_compress_percentage=50"] {
        let line = format!("--name=j --filename=a --size=11m {contents}");
        assert_eq!(without_room(&line, false), [0], "{line}");
        assert_eq!(without_room(&line, true), [], "{line}");
    }
}

// divergence: writes that certainly need more than the free space
#[test]
fn what_jobs_certainly_write_needs_room_as_well() {
    let cases: &[(&str, &[usize])] = &[
        ("--name=j --filename=a --size=10m --rw=write", &[]),
        ("--name=j --filename=a --size=11m --rw=write", &[0]),
        ("--name=j --filename=a --size=11m --rw=write --create_on_open=1", &[0]),
        ("--name=j --filename=a --size=11m --rw=write --file_append=1", &[0]),
        ("--name=j --filename=a --size=11m --rw=randwrite", &[0]),
        ("--name=j --filename=a --size=11m --rw=write --bsrange=4k-64k", &[0]),
        ("--name=j --filename=a --size=10300k --rw=write --bsrange=4k-64k", &[]),
        // Part of a file, in one piece or anywhere.
        ("--name=j --filename=a --size=20m --io_size=11m --rw=write", &[0]),
        ("--name=j --filename=a --size=20m --io_size=11m --rw=randwrite", &[0]),
        ("--name=j --filename=a --size=20m --io_size=10m --rw=write", &[]),
        ("--name=j --filename=a --size=20m --number_ios=2560 --rw=write", &[]),
        ("--name=j --filename=a --size=20m --number_ios=2561 --rw=write", &[0]),
        ("--name=j --filename=a --offset=20m --size=10m --rw=write", &[]),
        // Several files, jobs and clones; one file of several jobs counts once.
        ("--name=j --filename=a:b --size=22m --rw=write", &[0]),
        ("--name=j --filename=a --size=6m --rw=write --name=k --filename=b --size=6m --rw=write", &[1]),
        ("--name=j --filename=a --size=6m --rw=write --name=k --filename=b --size=6m", &[1]),
        ("--name=j --filename=a --size=6m --rw=write --numjobs=3", &[]),
        ("--name=j --filename=a --size=6m --rw=write --offset_increment=4m --numjobs=3", &[2]),
        ("--name=j --filename=a --size=6m --rw=write --offset_increment=7m --numjobs=2", &[1]),
        ("--name=j --filename=a --size=60m --rw=write --name=k --filename=b --size=6m --rw=write", &[0]),
        // What is there already.
        ("--name=j --filename=half --size=16m --rw=write", &[]),
        ("--name=j --filename=half --size=17m --rw=write", &[0]),
        ("--name=j --filename=other --size=10m --rw=write --name=k --filename=b --size=6m --rw=write", &[]),
        ("--name=j --filename=unknown --size=1t --rw=write", &[]),
    ];
    for (line, expected) in cases {
        assert_eq!(without_room(line, false), *expected, "{line}");
    }
}

/// A job of 11 MiB where 10 are free, which these options may keep from writing all of it.
#[test]
fn a_job_that_may_write_less_is_not_refused() {
    let job = "--name=j --filename=a --size=11m --rw=write";
    assert_eq!(without_room(job, false), [0]);
    assert_eq!(without_room(job, true), [0; 0], "it may be compressed or shared");
    for option in [
        "--runtime=10",
        "--runtime=10 --time_based",
        "--fill_device=1",
        "--create_only=1",
        "--unlink=1",
        "--unlink_each_loop=1",
        "--io_size=1m",
        "--rw=write:4k",
        "--rw=randwrite --norandommap",
        "--rw=randwrite --random_distribution=zipf:1.1",
        "--rw=randwrite --percentage_random=50",
        "--rw=randwrite --bsrange=4k-64k",
        "--zonemode=strided --zonesize=64k --zoneskip=64k",
        "--ignore_error=,ENOSPC",
        "--verify=crc32c --verify_only",
        "--verify=crc32c --trim_percentage=50",
        "--exec_prerun=true",
        "--steadystate=iops:1% --steadystate_duration=1",
        "--max_latency=1s",
        "--filename=a:b --size=30m --io_size=11m",
        "--name=k --filename=b --size=4k --unlink=1",
        "--name=k --filename=b --size=4k --exitall",
        "--name=k --filename=b --size=64k --rw=trim",
    ] {
        assert_eq!(without_room(&format!("{job} {option}"), false), [0; 0], "{option}");
    }
}

/// The user did not say that only a part is to be written.
#[test]
fn a_time_that_a_study_chose_does_not_end_its_writes() {
    let run = RunSettings { counts_timed_writes: true, ..RunSettings::default() };
    let timed = "--name=j --filename=a --rw=write --runtime=10 --time_based";
    for (options, expected) in [
        ("--size=11m", &[0][..]),
        ("--size=11m --rw=randwrite", &[0]),
        ("--size=10m", &[]),
        ("--size=11m --fill_device=1", &[]),
        ("--size=11m --io_size=1m", &[]),
    ] {
        assert_eq!(without_room_of(&format!("{timed} {options}"), false, &run), *expected, "{options}");
    }
}

/// Of 10 MiB that are free a quota leaves 4, and another, of another directory, 6.
#[test]
fn a_quota_that_leaves_less_than_is_free_counts_by_itself() {
    let of = |id, left| {
        let quota = Some(Quota { of: ("project", id), left_bytes: left });
        PathFacts { space: Some(Space { quota, ..space(false).unwrap() }), ..PathFacts::absent() }
    };
    let paths =
        [("a", of(7, 4 * MIB)), ("b", of(7, 4 * MIB)), ("other", of(8, 6 * MIB)), ("large", of(9, 1 << 40))];
    let fits = |line: &str| attempt(line, &machine(&paths)).is_ok();
    let both = |one: &str, two: &str| {
        format!(
            "--name=j --filename={one} --size=3m --rw=write --name=k --filename={two} --size=3m --rw=write"
        )
    };
    assert!(fits("--name=j --filename=a --size=4m --rw=write"));
    assert!(fits(&both("a", "other")) && !fits(&both("a", "b")));
    assert!(!fits("--name=j --filename=large --size=11m --rw=write"), "the file system has 10 MiB");
    let said = messages("--name=j --filename=a --size=5m --rw=write", &paths);
    assert!(said.contains("needs 5242880 bytes, and the quota of project 7 leaves 4194304"), "{said}");
}

#[test]
fn both_figures_are_said() {
    let facts = [("a", PathFacts { space: space(false), ..PathFacts::absent() })];
    let said = messages("--name=j --filename=a --size=1g", &facts);
    for part in ["room for a:", "1073741824", "10485760"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_a_job_that_cannot_run_would_have_laid_out_is_not_there_for_others() {
    let facts = machine(&[("dir", directory())]);
    let line = "--name=bad --filename=f:dir --size=2m --name=b --filename=f --size=1m";
    let (plan, _) = build(&sections(line), &[], &facts, &RunSettings::default()).unwrap();
    assert!(plan.jobs[0].unplannable.is_some());
    assert_eq!(plan.jobs[1].files.list[0].length_bytes, MIB);
    let alone = "--name=bad --filename=f:dir --size=2m --name=b --filename=f --size=0";
    let (plan, _) = build(&sections(alone), &[], &facts, &RunSettings::default()).unwrap();
    assert!(plan.jobs[1].unplannable.is_some(), "nobody makes it");
}

#[test]
fn buffers_that_a_control_group_leaves_no_memory_for_stop_their_job_alone() {
    let left = crate::facts::MemoryLeft { left_bytes: 10 * MIB, limit_bytes: 16 * MIB };
    let facts = Facts { memory_left: Some(left), ..machine(&[]) };
    let refused = |line: &str| {
        let (plan, _) = build(&sections(line), &[], &facts, &RunSettings::default()).unwrap();
        let refused = plan.jobs.iter().map(|job| job.unplannable.as_ref().map(|refused| refused.errno));
        refused.map(|errno| errno == Some(Errno::ENOMEM)).collect::<Vec<bool>>()
    };
    let job = |depth: u32| format!("--ioengine=io_uring --bs=1m --size=64m --iodepth={depth}");
    assert_eq!(refused(&format!("--name=a {}", job(10))), [false]);
    assert_eq!(refused(&format!("--name=a {} --name=b --size=1m", job(11))), [true, false]);
    assert_eq!(refused(&format!("--name=a --numjobs=3 {}", job(5))), [false, false, true]);
    assert_eq!(refused(&format!("--name=a {} --name=b --stonewall {}", job(8), job(8))), [false, false]);
    // It never has that many in flight, or never touches them.
    assert_eq!(refused(&format!("--name=a {} --size=2m", job(64))), [false]);
    assert_eq!(refused("--name=a --ioengine=null --bs=1m --size=64m --iodepth=64"), [false]);
}
