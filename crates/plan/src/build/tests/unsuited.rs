//! Amounts that do not suit a job's files: blocks and gaps of zones, regions and caches of `sprandom`.
//!
//! Invariant: each line that is refused has a neighbour that is not.

use super::{jobs, refused};

/// The option that the only problem of this command line is about.
fn option_refused(line: &str) -> &'static str {
    let problems = refused(line, &[]).problems;
    assert_eq!(problems.len(), 1, "{line}: {problems:?}");
    problems[0].option.unwrap().name
}

#[test]
fn what_does_not_suit_zones_is_refused_and_neighbours_are_not() {
    let common = "--name=a --ioengine=psync --filename=f --zonemode=zbd --zonesize=64k --size=256k";
    for (option, wrong, right) in [
        ("bs", "--rw=write --bs=128k", "--rw=write --bs=64k"),
        ("bs", "--rw=randwrite --bsrange=4k-128k", "--rw=randwrite --bsrange=4k-64k"),
        ("bs", "--rw=write --bs=64k --zonecapacity=48k", "--rw=write --bs=48k --zonecapacity=48k"),
        ("bs", "--rw=read --bs=128k --read_beyond_wp=1", "--rw=read --bs=64k --read_beyond_wp=1"),
        ("zoneskip", "--rw=write --bs=4k --zoneskip=1", "--rw=write --bs=4k --zoneskip=64k"),
        ("zoneskip", "--rw=write --bs=4k --zoneskip=96k", "--rw=write --bs=4k --zoneskip=1z"),
        ("size", "--rw=write --bs=4k --size=64k --offset=16k", "--rw=write --bs=4k --size=112k --offset=16k"),
        (
            "size",
            "--rw=randread --bs=4k --size=64k --offset=16k",
            "--rw=read --bs=4k --size=64k --offset=16k",
        ),
    ] {
        assert_eq!(option_refused(&format!("{common} {wrong}")), option, "{wrong}");
        assert_eq!(jobs(&format!("{common} {right}")).len(), 1, "{right}");
    }
}

/// As in fio: `rounded up offset`, `rounded down io_size`.
#[test]
fn a_pass_is_as_long_as_the_zones_that_it_uses() {
    let pass = |line: &str| {
        let jobs =
            jobs(&format!("--name=a --ioengine=psync --filename=f --zonemode=zbd --zonesize=64k {line}"));
        (jobs[0].limits.pass_bytes, jobs[0].limits.loop_bytes)
    };
    assert_eq!(pass("--rw=randwrite --bs=16k --size=112k --offset=16k"), (65_536, 65_536));
    assert_eq!(pass("--rw=randwrite --bs=16k --size=3z --offset=1z"), (196_608, 196_608));
    assert_eq!(pass("--rw=read --bs=16k --size=64k --offset=16k"), (49_152, 49_152));
    assert_eq!(pass("--rw=write --bs=16k --size=2z --io_size=8z"), (131_072, 524_288));
}

// divergence: `spr_num_regions` with fewer
#[test]
fn regions_and_caches_that_sprandom_cannot_follow_are_refused() {
    let common = "--name=a --ioengine=psync --filename=f --sprandom=1 --rw=randwrite --bs=4k --size=32m";
    for (option, wrong, right) in [
        ("spr_num_regions", "--spr_num_regions=2000", "--spr_num_regions=256"),
        ("spr_cs", "--spr_cs=32m", "--spr_cs=16m"),
        ("norandommap", "--norandommap=0", "--norandommap=1"),
    ] {
        assert_eq!(option_refused(&format!("{common} {wrong}")), option, "{wrong}");
        assert_eq!(jobs(&format!("{common} {right}")).len(), 1, "{right}");
    }
}
