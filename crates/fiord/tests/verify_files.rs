//! The files that verification leaves: saved states, and blocks that do not match.
//!
//! Invariant: what an interrupted run wrote is verified by a later run, and nothing more.

use std::os::unix::fs::FileExt;

use crate::common::{Dir, finish, fiord, signal, start, until, until_moved};

const JOB: &str = "--name=v --filename=f --size=1g --bs=4k --verify=crc32c --output-format=json";

const STATE: &str = "local-v-0-verify.state";

/// Writes some megabytes, in this order and with these options, until it is interrupted.
fn interrupted(dir: &Dir, options: &str) -> u64 {
    let running = start(fiord(dir.path(), &format!("{JOB} {options}")));
    until_moved(&running, 4 << 20);
    signal(running.0.id(), "INT");
    let ran = finish(running);
    ran.assert_status(130);
    let document = ran.json();
    document["jobs"][0]["write"]["total_ios"].as_u64().unwrap()
}

fn reads(dir: &Dir, options: &str) -> u64 {
    let ran = dir.run(&format!("{JOB} {options}"));
    ran.assert_success().json()["jobs"][0]["read"]["total_ios"].as_u64().unwrap()
}

#[test]
fn a_later_run_verifies_what_an_interrupted_one_wrote_and_nothing_more() {
    for (format, engine) in [("3.42", "--ioengine=pvsync"), ("3.33", "--ioengine=psync")] {
        for rw in ["write", "randwrite"] {
            let dir = Dir::new();
            let written = interrupted(&dir, &format!("--rw={rw} --verify_header_format={format} {engine}"));
            assert!(written > 1000, "{written}");
            let rw_read = rw.replace("write", "read");
            // Another seed than the job's: the order follows from the saved state.
            let load = format!("--verify_state_load=1 --randseed=5 {engine}");
            assert_eq!(reads(&dir, &format!("--rw={rw_read} {load}")), written, "{rw} {format}");
            assert_eq!(reads(&dir, &format!("--rw={rw} --verify_only {load}")), written, "{rw} {format}");
            // Without the state the next block is read as well, which was never written.
            let ran = dir.run(&format!("{JOB} --rw={rw} --verify_only {engine}"));
            ran.assert_status(1);
        }
    }
}

/// A later pass puts blocks of other lengths over those of an earlier one; only what is there at the end is verified.
#[test]
fn several_passes_of_blocks_of_different_lengths_are_verified_later() {
    for rw in [
        "write",
        "randwrite",
        "randrw --norandommap",
        "write --bs_unaligned=1 --bsrange=4k-9k",
        "write --bs=4k --trim_percentage=30",
        "randrw --bs=4k --trim_percentage=30",
    ] {
        let dir = Dir::new();
        let line = format!(
            "--output-format=json --name=v --filename=f --size=256k --bssplit=4k/50:8k --loops=3 --verify=crc32c --rw={rw}"
        );
        let writing = if rw.contains("trim") { "" } else { "--do_verify=0" };
        dir.run(&format!("{line} {writing}")).assert_success();
        let only = format!("{line} --verify_only=1");
        dir.run(&only).assert_success();
        let mut bytes = dir.read("f");
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        dir.write("f", bytes);
        dir.run(&only).assert_status(1);
    }
}

/// Each pass of the run that wrote began with a new file; what is there is of the last one, and stays.
#[test]
fn what_the_last_pass_wrote_to_a_new_file_is_verified_and_not_removed() {
    for rw in ["write", "randwrite --norandommap", "randwrite --bssplit=4k/50:8k"] {
        let dir = Dir::new();
        let line = format!(
            "--output-format=json --name=v --filename=f --size=256k --bs=4k --loops=3 --unlink_each_loop=1 \
             --verify=crc32c --rw={rw}"
        );
        dir.run(&line).assert_success();
        let written = dir.read("f");
        let only = format!("{line} --verify_only=1");
        let document = dir.run(&only).assert_success().json();
        let reads = document["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
        assert!((20..=64).contains(&reads), "{rw}: {reads} reads of one pass");
        assert_eq!(dir.read("f"), written);
        let damaged: Vec<u8> = written.iter().map(|byte| byte ^ 1).collect();
        dir.write("f", damaged);
        dir.run(&only).assert_status(1);
    }
}

/// Laying it out again would destroy what is left of it.
#[test]
fn a_file_that_has_become_shorter_is_not_written_to_by_verify_only() {
    for rw in ["write", "write --overwrite=1", "randrw", "randwrite --ioengine=mmap"] {
        let dir = Dir::new();
        let line = format!("--name=v --filename=f --size=256k --bs=4k --verify=crc32c --rw={rw}");
        dir.run(&line).assert_success();
        let half = dir.read("f")[..128 << 10].to_vec();
        dir.write("f", &half);
        dir.run(&format!("{line} --verify_only=1")).assert_status(1);
        assert_eq!(dir.read("f"), half, "{rw}");
    }
}

// divergence: `rw=randrw` with rates for reads and writes
/// Directions that a rate would choose depend on the time; a later run could not know which blocks were written.
#[test]
fn a_mix_with_rates_is_verified_later() {
    let dir = Dir::new();
    let line = "--name=v --filename=f --ioengine=psync --size=1m --bs=4k --rw=randrw --rate_iops=20000,500 --verify=crc32c";
    dir.run(&format!("{line} --do_verify=0")).assert_success();
    dir.run(&format!("{line} --verify_only")).assert_success();
}

// divergence: reads of `rw=randrw`
/// Nothing is read back but by the job's own reads, and the file is damaged while it runs.
#[test]
fn own_reads_of_a_mix_are_verified() {
    let dir = Dir::new();
    let line = "--name=v --filename=f --ioengine=psync --size=1m --bs=4k --rw=randrw --verify=crc32c --do_verify=0 \
                --time_based --runtime=50";
    let mut running = start(fiord(dir.path(), line));
    until_moved(&running, 8 << 20);
    let file = std::fs::File::options().write(true).open(dir.join("f")).unwrap();
    until("the damage is found", || {
        file.write_all_at(&[0; 1 << 20], 0).unwrap();
        running.0.try_wait().unwrap().is_some()
    });
    finish(running).assert_status(1).assert_prints(&["verify: bad magic header 0, wanted acca"]);
}

/// Also blocks of which two share a sector: with random lengths, or with a few bytes between them.
#[test]
fn every_block_that_is_written_once_is_read_back() {
    let dir = Dir::new();
    for options in [
        "--bs=4k --rw=write:2",
        "--bsrange=600-3000 --bs_unaligned --rw=write",
        "--bsrange=600-3000 --bs_unaligned --rw=write --ioengine=libaio --iodepth=8",
        "--bssplit=1000/50:1500 --rw=randwrite",
        "--bs=1k --blockalign=1000 --rw=write:24 --verify_backlog=7",
    ] {
        let line =
            format!("--output-format=json --name=v --filename=f --size=256k --verify=crc32c {options}");
        let job = dir.run(&line).assert_success().json()["jobs"][0].clone();
        let [read, written] = ["read", "write"].map(|which| job[which]["total_ios"].as_u64().unwrap());
        assert!(written > 50 && read == written, "{options}: {written} written, {read} read back");
    }
}

#[test]
fn damage_before_the_point_of_interruption_is_found() {
    let dir = Dir::new();
    interrupted(&dir, "--rw=write");
    let mut bytes = dir.read("f");
    bytes[9 * 4096 + 77] ^= 8;
    dir.write("f", bytes);
    let ran = dir.run(&format!("{JOB} --rw=read --verify_state_load=1"));
    ran.assert_status(1);
    assert!(ran.all_output().contains("offset 36864"), "{ran:?}");
}

// divergence: `verify_policy=fsynced`
#[test]
fn with_a_policy_of_syncs_only_synced_writes_count() {
    let dir = Dir::new();
    let job = "--name=v --filename=f --bs=4k --size=80k --rw=write --verify=md5 --do_verify=0 --verify_policy=fsynced";
    for (sync, counted) in [("--fsync=8", 16), ("", 0), ("--fdatasync=6", 18)] {
        dir.run(&format!("{job} {sync}")).assert_success();
        let ran = dir.run(
            "--name=v --filename=f --bs=4k --size=80k --rw=read --verify=md5 --verify_state_load=1 --output-format=json",
        );
        assert_eq!(ran.assert_success().json()["jobs"][0]["read"]["total_ios"], counted, "{sync}");
    }
}

#[test]
fn a_state_is_saved_where_it_is_wanted_and_one_that_is_missing_or_damaged_fails_the_job() {
    let dir = Dir::new();
    let job = "--name=v --filename=f --bs=4k --size=64k --verify=crc32c";
    std::fs::create_dir(dir.join("aux")).unwrap();
    dir.run(&format!("{job} --rw=write --verify_state_save=0")).assert_success();
    assert!(!dir.join(STATE).exists());
    dir.run(&format!("{job} --rw=write --aux-path=aux")).assert_success();
    assert!(!dir.join(STATE).exists() && dir.join("aux").join(STATE).exists());
    dir.run(&format!("{job} --rw=read --verify_state_load=1 --aux-path=aux")).assert_success();
    let ran = dir.run(&format!("{job} --rw=read --verify_state_load=1"));
    ran.assert_status(1);
    assert!(ran.all_output().contains(&format!("load the saved state {STATE}: ")), "{ran:?}");
    dir.write(STATE, &dir.read(&format!("aux/{STATE}"))[..100]);
    let ran = dir.run(&format!("{job} --rw=read --verify_state_load=1"));
    ran.assert_status(1);
    assert!(ran.all_output().contains("it has 100 bytes, and 176 are needed"), "{ran:?}");
    // A state that cannot be saved is no failure of what was written.
    let ran = dir.run(&format!("{job} --rw=write --aux-path=absent"));
    ran.assert_success();
    assert!(ran.stdout.contains("verify_state_save") && ran.stdout.contains("absent/local-v-0"), "{ran:?}");
}

// divergence: `verify_dump`
#[test]
fn blocks_that_do_not_match_are_dumped_as_read_and_as_written() {
    let forms: &[(&str, usize)] = &[
        ("--verify=crc32c", 4096),
        ("--verify=sha512 --verify_header_format=3.33", 4096),
        ("--verify=md5 --verify_interval=1k", 1024),
        ("--verify=sha256 --verify_offset=1000", 4096),
        ("--verify=pattern --verify_pattern=0xdeadbeef%o", 4096),
        ("--verify=pattern_hdr --verify_pattern=0xdeadbeef%o", 4096),
    ];
    for (form, piece_bytes) in forms {
        let dir = Dir::new();
        let job = format!("--name=v --filename=f --bs=4k --size=64k {form}");
        dir.run(&format!("{job} --rw=write --do_verify=0")).assert_success();
        let intact = dir.read("f");
        let mut bytes = intact.clone();
        bytes[2 * 4096 + 3000] ^= 8;
        dir.write("f", &bytes);
        let ran = dir.run(&format!("{job} --rw=read --verify_dump=1"));
        ran.assert_status(1);
        let at = (2 * 4096 + 3000) / piece_bytes * piece_bytes;
        let range = at..at + piece_bytes;
        assert_eq!(dir.read(&format!("f.{at}.received")), bytes[range.clone()], "{form}");
        assert_eq!(dir.read(&format!("f.{at}.expected")), intact[range], "{form}");
        let said = format!("received data dumped as f.{at}.received");
        assert!(ran.all_output().contains(&said), "{form}: {ran:?}");
    }
}

// divergence: `--trigger`
#[test]
fn a_trigger_saves_the_state_runs_its_command_and_ends_the_run() {
    for trigger in ["--trigger-file=fire", "--trigger-timeout=200ms"] {
        let dir = Dir::new();
        let mut command =
            fiord(dir.path(), &format!("{JOB} --rw=write --rate_iops=2000 --verify_state_save=0 {trigger}"));
        command.arg(format!("--trigger=ls {STATE} > seen; exit 3"));
        let running = start(command);
        if trigger.contains("file") {
            until_moved(&running, 1 << 16);
        }
        dir.write("fire", "");
        let ran = finish(running);
        let written = ran.assert_status(0).json()["jobs"][0]["write"]["total_ios"].as_u64().unwrap();
        assert_eq!(dir.text("seen").trim(), STATE, "the state was there before the command ran");
        assert!(ran.stderr.contains("ended with exit status: 3"), "{ran:?}");
        assert_eq!(dir.join("fire").exists(), trigger.contains("timeout"), "the file is removed, as by fio");
        assert_eq!(reads(&dir, "--rw=read --verify_state_load=1"), written);
    }
}

// divergence: `--trigger-remote` without hosts
#[test]
fn a_trigger_without_a_cause_is_a_warning_and_a_remote_one_needs_hosts() {
    let dir = Dir::new();
    let job = "--name=a --ioengine=null --size=64k --bs=4k";
    let ran = dir.run(&format!("{job} --trigger=true"));
    assert!(
        ran.assert_success().all_output().contains("give --trigger-file or --trigger-timeout"),
        "{ran:?}"
    );
    let ran = dir.run(&format!("{job} --trigger-remote=true --trigger-timeout=1"));
    ran.assert_status(1);
    assert!(ran.stderr.contains("give --client or --hosts"), "{ran:?}");
}

/// A job that only reads cannot know which of two overlapping blocks was written last; the job that wrote can.
// divergence: `rw=read` or `rw=randread` with `verify`, where blocks may overlap
#[test]
fn reads_that_may_cover_parts_of_blocks_are_not_compared() {
    for (kind, options) in [
        ("rand@", "--bs=8k --blockalign=4k"),
        ("rand@", "--bsrange=4k-16k --bs_unaligned --norandommap"),
        ("rand@", "--bsrange=4k-16k --bs_unaligned --loops=3"),
        ("rand@", "--bssplit=4k/50:12k/50 --verify=pattern_hdr --verify_pattern=0x112233 --norandommap"),
        ("rand@", "--bssplit=4k/50:12k --blockalign=2k --random_distribution=zipf:1.1"),
        ("@:-10k", "--bs=8k"),
        ("@", "--bsrange=4k-8k --bs_unaligned --loops=2"),
        ("rand@", "--bsrange=4k-16k --bs_unaligned --io_size=252k"),
    ] {
        let dir = Dir::new();
        let line = |mode: &str| {
            let rw = kind.replace('@', mode);
            format!("--name=v --filename=f --size=256k --verify=crc32c --rw={rw} {options}")
        };
        dir.run(&format!("{} --do_verify=0", line("write"))).assert_status(0);
        let ran = dir.run(&line("read"));
        ran.assert_status(0).assert_prints(&["may overlap", "verify_only=1"]);
        let only = format!("{} --verify_only=1", line("write"));
        dir.run(&only).assert_status(0);
        let mut bytes = dir.read("f");
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        dir.write("f", bytes);
        dir.run(&only).assert_status(1);
    }
}

/// What can be compared is, without a warning.
#[test]
fn reads_of_whole_blocks_are_compared() {
    for (kind, options) in [
        ("rand@", "--bs=8k --blockalign=8k"),
        ("rand@", "--bs=8k --blockalign=4k --verify_interval=4k"),
        ("rand@", "--bs=8k --norandommap"),
        ("rand@", "--bsrange=4k-16k --norandommap"),
        ("rand@", "--bsrange=4k-16k --bs_unaligned"),
        ("rand@", "--bssplit=4k/50:8k --loops=3"),
        ("@", "--bssplit=4k/50:8k --loops=2"),
        ("@:1000", "--bs=4k"),
        ("@", "--bs=8k --blockalign=4k"),
        ("@", "--bsrange=4k-8k --bs_unaligned --io_size=252k"),
        ("rand@", "--bs=8k --io_size=256k"),
    ] {
        let dir = Dir::new();
        let line = |mode: &str| {
            let rw = kind.replace('@', mode);
            format!("--name=v --filename=f --size=256k --verify=crc32c --rw={rw} {options}")
        };
        dir.run(&format!("{} --do_verify=0", line("write"))).assert_status(0);
        let ran = dir.run(&line("read"));
        let warned = ran.all_output().contains("may overlap");
        ran.assert_status(0);
        assert!(!warned, "{kind} {options}");
        let mut bytes = dir.read("f");
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        dir.write("f", bytes);
        dir.run(&line("read")).assert_status(1);
    }
}

/// Each job draws the sizes of its blocks for itself: those with a header for each part are compared all the same.
#[test]
fn blocks_whose_sizes_another_job_drew_are_compared_if_each_part_has_a_header() {
    for (options, is_found) in [("", true), ("--bs_unaligned", false)] {
        let dir = Dir::new();
        let common = format!("--filename=f --size=256k --verify=crc32c --bsrange=4k-16k {options}");
        let line = format!("{common} --rw=write --name=r --stonewall {common} --rw=read");
        dir.run(&format!("--name=w {line}")).assert_status(0);
        let mut bytes = dir.read("f");
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        dir.write("f", bytes);
        let line =
            format!("--name=w --filename=f --size=4k --rw=write --name=r --stonewall {common} --rw=read");
        dir.run(&line).assert_status(i32::from(is_found));
    }
}
