//! Blocks that several jobs write.
//!
//! Invariant: each line differs from one that is compared in what is named beside it.

use super::jobs;

/// Of each job: whether it compares what it reads back, and the numbers of writes.
fn compared(line: &str) -> Vec<(bool, bool)> {
    let common = "--ioengine=psync --filename=f --size=1m --verify=crc32c";
    let jobs = jobs(&line.replace("COMMON", common));
    let verifications = jobs.iter().filter_map(|job| job.verification.as_ref());
    verifications.map(|verification| (verification.checks, verification.checks_number)).collect()
}

const EXACTLY: (bool, bool) = (true, true);
/// Not the numbers.
const ROUGHLY: (bool, bool) = (true, false);

/// What is read is not compared.
fn is_uncompared(line: &str) -> bool {
    let compared = compared(line);
    assert!(!compared.is_empty(), "{line}");
    compared.iter().all(|(checks, _)| !checks)
}

// divergence: several jobs that write the same range
#[test]
fn whole_blocks_of_several_jobs_are_compared_but_for_their_numbers() {
    for same in [
        "",
        "--bs=64k",
        "--bs=64k --verify_interval=4k",
        "--bsrange=4k-16k --verify_interval=4k",
        "--bsrange=4k-16k",
        "--bsrange=8k-20k --verify_interval=8k",
        "--bssplit=4k/50:6k/50 --verify_interval=4k",
        "--bssplit=8k/50:16k/50 --verify_interval=4k --blockalign=8k",
        "--zonemode=strided --zonesize=64k --zoneskip=64k",
    ] {
        assert_eq!(
            compared(&format!("--name=a COMMON --rw=randwrite --numjobs=2 {same}")),
            [ROUGHLY; 2],
            "{same}"
        );
    }
    assert_eq!(compared("--name=a COMMON --rw=write --numjobs=2 --offset_increment=1m"), [EXACTLY; 2]);
    assert_eq!(compared("--name=a COMMON --rw=write --name=b COMMON --rw=write --offset=512k"), [ROUGHLY; 2]);
}

#[test]
fn nothing_is_compared_where_another_job_may_change_parts_of_a_block() {
    for other in [
        "--bsrange=4k-16k --bs_unaligned=1",
        "--bssplit=4k/50:16k/50 --blockalign=2k",
        "--bssplit=1000/50:1001/50",
        "--bsrange=4k-16k --bs_unaligned=1 --verify_interval=512",
        "--bs=8k --blockalign=4k",
        "--bs=8k --rw=write:4k",
        "--zonemode=strided --zonesize=10k --zoneskip=6k",
        "--trim_percentage=10",
        "--bsrange=4k-16k --verify_interval=4k --verify=pattern --verify_pattern=0x112233",
        "--bsrange=4k-16k --verify_interval=4k --verify=pattern_hdr --verify_pattern=0x112233",
    ] {
        let line = format!("--name=a COMMON --rw=randwrite --numjobs=2 {other}");
        assert!(is_uncompared(&line), "{other}");
        let apart = compared(&format!("{line} --offset_increment=1m"));
        assert_eq!(apart, [EXACTLY; 2], "{other}: each has its own range");
    }
    for other in ["--bs=8k", "--offset=2k", "--verify=md5", "--verify_interval=512"] {
        assert!(
            is_uncompared(&format!("--name=a COMMON --rw=write --name=b COMMON --rw=write {other}")),
            "{other}"
        );
    }
}

#[test]
fn what_others_write_at_another_time_is_not_in_the_way() {
    let plain = "--ioengine=psync --filename=f --size=1m --rw=write";
    let job = "--name=b COMMON --rw=randwrite";
    assert_eq!(compared(&format!("--name=a {plain} {job} --stonewall")), [ROUGHLY]);
    assert!(is_uncompared(&format!("--name=a {plain} {job}")), "it writes without headers, meanwhile");
    assert_eq!(compared(&format!("--name=a {} {job}", plain.replace("=f", "=g"))), [EXACTLY]);
    assert_eq!(compared(&format!("--name=a {plain} --rw=read {job}")), [EXACTLY]);
}

/// The bytes that a header of the job's covers.
fn piece_bytes(line: &str) -> usize {
    let common = "--name=a --ioengine=psync --filename=f --size=1m --verify=crc32c --rw=write";
    let jobs = jobs(&format!("{common} {line}"));
    jobs[0].verification.as_ref().map_or(0, |verification| verification.format.piece_bytes)
}

/// As fio 3.33 writes them.
#[test]
fn a_header_covers_what_divides_all_blocks() {
    for (line, bytes) in [
        ("--bs=4k", 4096),
        ("--bs=4k --verify_interval=512", 512),
        ("--bs=8k --verify_interval=16k", 8192),
        ("--bs=12k --verify_interval=5k", 12_288),
        ("--bs=16k --verify_interval=3000", 16_384),
        ("--bsrange=4k-16k", 4096),
        ("--bsrange=8k-20k", 4096),
        ("--bsrange=3k-7k", 1024),
        ("--bsrange=8k-20k --verify_interval=8k", 4096),
        ("--bssplit=8k/50:12k/50 --verify_interval=6k", 4096),
        ("--bssplit=8k/50:16k/50 --verify_interval=4k", 4096),
        ("--bssplit=8k/50:16k/50 --verify_interval=16k", 8192),
        ("--bs=8k,4k", 4096),
        ("--bs=4k,8k", 8192),
        ("--bsrange=4k-16k --bs_unaligned=1 --verify_interval=512", 0),
        ("--bs=8k --bs_unaligned=1 --verify_interval=4k", 0),
        // Where fio rounds 1001 down to 1000.
        ("--bssplit=1000/50:1001/50", 0),
    ] {
        assert_eq!(piece_bytes(line), bytes, "{line}");
    }
}
