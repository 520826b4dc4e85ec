//! Options about files, order and contents, tested by their effects on a disk.
//!
//! Invariant: an option is judged by files, system calls and counts, never by the program's messages.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use fiord_testing::{need, skip, skipped};
use serde_json::Value;

use crate::common::{Dir, LoopDevice, Mount, Ran, finish, fiord, helper, root, run, start};

const ENGINES: [&str; 8] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring"];

/// The first job of a run's report.
#[track_caller]
fn job(ran: &Ran) -> Value {
    ran.json()["jobs"][0].clone()
}

/// Runs one job successfully and returns its part of the report.
#[track_caller]
fn well(dir: &Dir, options: &str) -> Value {
    let ran = dir.run(&format!("--output-format=json --name=j {options}"));
    ran.assert_success();
    job(&ran)
}

/// I/Os and bytes of a direction.
fn moved(job: &Value, direction: &str) -> (u64, u64) {
    let count = |key: &str| job[direction][key].as_u64().unwrap();
    (count("total_ios"), count("io_bytes"))
}

/// A run under strace, without the calls of the history.
fn strace(dir: &Dir, args: &[&str], line: &str) -> Result<Ran, String> {
    helper("strace", &["-V"])?;
    let plain = fiord(dir.path(), line);
    let mut command = crate::common::with_own_history("strace");
    command.args(["-f", "-qq"]).args(args);
    command.arg(plain.get_program()).arg("--no-history").args(plain.get_args()).current_dir(dir.path());
    Ok(finish(start(command)))
}

/// A run under strace: its result, and the calls of these names on files of the directory and on loop devices, as
/// strace prints them.
fn traced(dir: &Dir, calls: &str, line: &str) -> Result<(Ran, Vec<String>), String> {
    let log = dir.path().with_extension("strace");
    let calls = format!("trace={calls}");
    let ran = strace(dir, &["-y", "-o", &log.to_string_lossy(), "-e", &calls], line)?;
    let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
    let _ = fs::remove_file(&log);
    let ours = |line: &str| line.contains(&*dir.path().to_string_lossy()) || line.contains("/dev/loop");
    let of_the_system = |call: &str| call.contains("\"/proc") || call.contains("\"/sys");
    let mut calls = whole_calls(&text);
    calls.retain(|call| ours(call) && !of_the_system(call));
    Ok((ran, calls))
}

/// The calls that strace printed, without the threads that made them. One during which another thread made a call is printed in
/// two parts, with what the kernel writes for a read in the second.
fn whole_calls(printed: &str) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    let mut begun: BTreeMap<&str, usize> = BTreeMap::new();
    for line in printed.lines() {
        let (thread, call) = line.split_at(line.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(0));
        let call = call.trim_start();
        let end = call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"));
        match (end, call.strip_suffix(" <unfinished ...>")) {
            (Some((_, end)), _) => {
                if let Some(index) = begun.remove(thread) {
                    calls[index] += end;
                }
            }
            (None, Some(start)) => {
                begun.insert(thread, calls.len());
                calls.push(start.to_string());
            }
            (None, None) => calls.push(call.to_string()),
        }
    }
    calls
}

#[test]
fn calls_that_strace_prints_in_two_parts_are_whole() {
    let printed = "12 fsync(4</d/f> <unfinished ...>\n13 pread64(4</d/f>,  <unfinished ...>\n12 <... fsync resumed>) = 0\n\
                   14 openat(AT_FDCWD, \"f\") = 5\n13 <... pread64 resumed>\"\\1\", 4096, 8192) = 4096\n";
    let whole =
        ["fsync(4</d/f>) = 0", "pread64(4</d/f>, \"\\1\", 4096, 8192) = 4096", "openat(AT_FDCWD, \"f\") = 5"];
    assert_eq!(whole_calls(printed), whole);
}

/// Number of these calls that contain all of the words.
fn count(calls: &[String], words: &[&str]) -> usize {
    calls.iter().filter(|call| words.iter().all(|word| call.contains(word))).count()
}

#[test]
fn a_full_quota_ends_fill_device_like_a_full_file_system() {
    let dir = Dir::new();
    for (options, status) in [("--fill_device=1", 0), ("", 1)] {
        let line =
            format!("--output-format=json --name=j --filename=f --rw=write --bs=64k --size=1m {options}");
        // The kernel of this machine may have no quotas, so strace injects the error.
        let fault = "inject=pwrite64:error=EDQUOT:when=5+";
        let ran = need!(strace(&dir, &["-e", fault, "-o", "/dev/null"], &line));
        assert_eq!((ran.status, moved(&job(&ran), "write")), (Some(status), (4, 256 << 10)), "{ran:?}");
        let _ = fs::remove_file(dir.path().join("f"));
    }
}

// divergence: the end of a pass, if others follow
#[test]
fn a_pass_starts_with_an_empty_page_cache() {
    let dir = Dir::new();
    dir.write("f", vec![1; 64 << 10]);
    let drops = |options: &str| {
        let line = format!("--name=j --filename=f --rw=read --size=64k {options}");
        let (ran, calls) = traced(&dir, "fadvise64", &line)?;
        ran.assert_success();
        Ok::<usize, String>(count(&calls, &["POSIX_FADV_DONTNEED"]))
    };
    assert_eq!(need!(drops("--loops=3")), 3);
    assert_eq!(need!(drops("--io_size=192k")), 3);
    assert_eq!(need!(drops("--loops=3 --ioengine=libaio --iodepth=4")), 3);
    // Mapped pages stay; the file is mapped again for each loop, but not for each pass of a time-based job.
    let line = "--name=j --filename=f --rw=read --size=64k --loops=3 --ioengine=mmap";
    let (_, calls) = need!(traced(&dir, "mmap", line));
    assert_eq!(count(&calls, &["= 0x"]), 3, "{calls:?}");
    assert_eq!(need!(drops("--loops=3 --invalidate=0")), 0);
    assert_eq!(need!(drops("--loops=3 --pre_read=1")), 0);
}

// divergence: `fsync_on_close` and `end_fsync` with `loops`
#[test]
fn each_loop_ends_with_its_syncs() {
    for engine in ["psync", "libaio"] {
        let dir = Dir::new();
        let line = format!(
            "--name=j --filename=f --rw=write --size=64k --loops=3 --fsync_on_close=1 --end_fsync=1 --ioengine={engine}"
        );
        let (ran, calls) = need!(traced(&dir, "fsync", &line));
        ran.assert_success();
        assert_eq!(count(&calls, &["fsync("]), 6, "{engine}: {calls:?}");
    }
}

#[test]
fn files_are_removed_between_loops() {
    for engine in ["psync", "libaio", "io_uring"] {
        let dir = Dir::new();
        let path = dir.write("f", vec![1; 64 << 10]);
        fs::hard_link(&path, dir.join("before")).unwrap();
        let options = format!(
            "--filename=f --rw=write --size=64k --loops=2 --unlink_each_loop=1 --ioengine={engine} --iodepth=4"
        );
        assert_eq!(moved(&well(&dir, &options), "write"), (32, 128 << 10), "{engine}");
        let inode = |name: &str| fs::metadata(dir.join(name)).unwrap().ino();
        assert_ne!(inode("f"), inode("before"), "{engine}: the file is still the first");
        assert_eq!(fs::metadata(&path).unwrap().len(), 64 << 10, "{engine}");
    }
    // A job that only reads does not create the file again.
    let dir = Dir::new();
    let ran = dir.run(
        "--output-format=json --name=j --filename=f --rw=read --size=64k --loops=2 --unlink_each_loop=1",
    );
    ran.assert_status(1).assert_prints(&["open", "ENOENT", "unlink_each_loop"]);
    assert_eq!(moved(&job(&ran), "read"), (16, 64 << 10));
}

#[test]
fn the_last_sync_is_part_of_the_run() {
    let dir = Dir::new();
    let line = "--output-format=json --name=j --filename=f --rw=write --size=64k --end_fsync=1";
    let slow = ["-e", "trace=fsync", "-e", "inject=fsync:delay_enter=300000", "-o", "/dev/null"];
    let ran = need!(strace(&dir, &slow, line));
    ran.assert_success();
    let runtime_ms = job(&ran)["write"]["runtime"].as_u64().unwrap();
    assert!(runtime_ms >= 300, "{runtime_ms} ms do not hold the 300 ms of the fsync");
}

#[test]
fn openfiles_limits_the_open_files() {
    for engine in ENGINES {
        let dir = Dir::new();
        let mut command = crate::common::with_own_history("sh");
        // Standard streams, the engine's own, and a few more.
        let script = "ulimit -n 20; exec \"$@\"";
        let plain = fiord(
            dir.path(),
            &format!(
                "--output-format=json --name=j --rw=randwrite --bs=4k --size=512k --nrfiles=32 --openfiles=3 --loops=2 \
                 --buffer_pattern=0xa5 --ioengine={engine} --iodepth=4 --file_service_type=random"
            ),
        );
        command
            .args(["-c", script, "sh"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(dir.path());
        let ran = finish(start(command));
        if engine == "io_uring" && ran.all_output().contains("set up engine") {
            skipped("the kernel refuses io_uring");
            continue;
        }
        ran.assert_success();
        assert_eq!(moved(&job(&ran), "write"), (256, 1 << 20), "{engine}");
        for number in 0..32 {
            assert!(dir.read(&format!("j.0.{number}")) == vec![0xa5; 16 << 10], "{engine}: file {number}");
        }
    }
}

#[test]
fn only_preallocation_extends_a_file_before_it_is_written() {
    for (how, length, blocks) in [
        ("none", 4096, 8),
        ("0", 4096, 8),
        ("native", 64 << 10, 128),
        ("posix", 64 << 10, 128),
        ("keep", 4096, 128),
        ("truncate", 64 << 10, 8),
    ] {
        let dir = Dir::new();
        well(
            &dir,
            &format!(
                "--filename=f --rw=write --bs=4k --size=64k --number_ios=1 --fallocate={how} --end_fsync=1"
            ),
        );
        let meta = fs::metadata(dir.join("f")).unwrap();
        assert_eq!(meta.len(), length, "fallocate={how}");
        assert!(
            meta.blocks() >= blocks && meta.blocks() < blocks + 100,
            "fallocate={how}: {} blocks",
            meta.blocks()
        );
    }
}

#[test]
fn a_mapping_is_laid_out_before_it_is_written() {
    let dir = Dir::new();
    well(
        &dir,
        "--filename=f --rw=write --bs=4k --size=64k --number_ios=1 --fallocate=none --ioengine=mmap --zero_buffers=0",
    );
    let bytes = dir.read("f");
    assert!(bytes.len() == 64 << 10 && bytes.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
}

/// A loop device of 1 MiB of which the second half cannot be read: its backing file is too short.
fn half_a_device(dir: &Dir) -> Result<LoopDevice, String> {
    let device = LoopDevice::new(dir, 1 << 20)?;
    let backing =
        fs::File::options().write(true).open(dir.join("backing")).map_err(|error| error.to_string())?;
    backing.set_len(512 << 10).map_err(|error| error.to_string())?;
    Ok(device)
}

#[test]
fn errors_are_ignored_by_type() {
    let dir = Dir::new();
    let device = need!(half_a_device(&dir));
    for engine in ["psync", "libaio", "mmap"] {
        let run = |options: &str| {
            dir.run(&format!(
                "--output-format=json --name=j --filename={} --rw=read --bs=4k --ioengine={engine} {options}",
                device.path
            ))
        };
        for passes in [
            "--continue_on_error=io",
            "--ignore_error=ENOSPC:EIO",
            "--continue_on_error=all --ignore_error=,28",
        ] {
            let ran = run(passes);
            ran.assert_success();
            let job = job(&ran);
            assert_eq!(
                (&job["total_err"], &job["first_error"]),
                (&128.into(), &5.into()),
                "{engine} {passes}"
            );
            assert_eq!(moved(&job, "read").1, 512 << 10, "{engine} {passes}");
            assert_eq!(job["read"]["clat_ns"]["N"], 128, "{engine} {passes}: a failed I/O has no latency");
        }
        // A given list replaces the default one; a list for writes does not affect reads.
        for stops in [
            "--continue_on_error=write",
            "--continue_on_error=all --ignore_error=ENOSPC",
            "--ignore_error=,EIO",
        ] {
            run(stops).assert_status(1).assert_prints(&["read", "offset 524288", "EIO"]);
        }
    }
    let ran = dir.run(&format!(
        "--output-format=json --name=j --filename={} --rw=read --bs=64k --direct=1 --continue_on_error=io --error_dump=1",
        device.path
    ));
    assert_eq!(ran.assert_status(0).stderr.lines().filter(|line| line.contains("EIO")).count(), 8, "{ran:?}");
}

#[test]
fn a_full_file_system_is_ignored_only_on_request() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=1m"));
    let line = "--output-format=json --name=j --filename=f --rw=write --bs=64k --size=2m --fallocate=none";
    let ran = run(&mount.path, &format!("{line} --continue_on_error=all --runtime=1h"));
    ran.assert_status(1).assert_prints(&["write", "f at offset 1048576", "ENOSPC"]);
    let ran = run(&mount.path, &format!("{line} --ignore_error=,ENOSPC"));
    ran.assert_success();
    assert_eq!(job(&ran)["total_err"], 16);
}

// divergence: an end of file with `continue_on_error`
#[test]
fn an_end_of_file_is_an_error_like_others() {
    for engine in ["psync", "libaio", "io_uring"] {
        let dir = Dir::new();
        dir.write("f", vec![1; 20_000]);
        let line = format!(
            "--output-format=json --name=j --filename=f --rw=read --bs=4k --size=64k --create_on_open=1 --ioengine={engine}"
        );
        let ran = dir.run(&line);
        ran.assert_status(1).assert_prints(&["read", "f at offset 20000", "end of file"]);
        let ran = dir.run(&format!("{line} --continue_on_error=read"));
        assert_eq!(job(ran.assert_status(0))["total_err"], 12, "{engine}");
    }
}

// divergence: `create_on_open` or `unlink_each_loop` with `mmap`
#[test]
fn files_that_are_created_on_opening_can_be_mapped() {
    for options in ["--create_on_open=1", "--create_on_open=1 --nrfiles=2", "--unlink_each_loop=1 --loops=2"]
    {
        for rw in ["write", "randwrite", "randrw"] {
            let dir = Dir::new();
            let line =
                "--name=j --size=256k --bs=4k --ioengine=mmap --verify=crc32c --filename_format=f.$filenum";
            dir.run(&format!("{line} --rw={rw} {options}")).assert_success();
            let bytes = dir.read("f.0").len();
            let wanted = if options.contains("nrfiles") { 128 << 10 } else { 256 << 10 };
            assert_eq!(bytes, wanted, "{rw} {options}");
        }
    }
}

#[test]
fn a_job_that_only_reads_does_not_create_its_file_on_opening() {
    let dir = Dir::new();
    let ran = dir.run("--name=j --filename=f --size=64k --bs=4k --rw=read --create_on_open=1");
    ran.assert_status(1).assert_prints(&["open f", "create_on_open=1", "ENOENT"]);
}

#[test]
fn an_io_that_takes_too_long_times_out() {
    let dir = Dir::new();
    dir.write("f", vec![1; 1 << 20]);
    // No disk reads this much in a microsecond.
    let ran = dir.run("--output-format=json --name=j --filename=f --rw=read --bs=1m --max_latency=1");
    ran.assert_status(1).assert_prints(&["ETIMEDOUT", "max_latency"]);
    assert_eq!(job(&ran)["error"], 110);
}

#[test]
fn a_file_system_fills_up_to_the_end_or_to_the_size_given() {
    let dir = Dir::new();
    let mount = need!(Mount::tmpfs(&dir, "size=1m"));
    let written = |options: &str, status: i32| {
        let ran = run(
            &mount.path,
            &format!("--output-format=json --name=j --filename=f:g --rw=write --bs=64k {options}"),
        );
        let bytes = moved(&job(ran.assert_status(status)), "write").1;
        for name in ["f", "g"] {
            fs::remove_file(mount.path.join(name)).unwrap();
        }
        bytes
    };
    assert_eq!(written("--fill_device=1", 0), 1 << 20);
    assert_eq!(written("--fill_device=1 --size=256k", 0), 256 << 10);
    assert_eq!(written("--fill_device=1 --size=4m", 0), 1 << 20);
    // If space cannot be reserved, the file is still written until the disk is full.
    assert_eq!(written("--size=4m --runtime=1h", 1), 1 << 20);
}

#[test]
fn opendir_uses_all_but_empty_files() {
    let dir = Dir::new();
    fs::create_dir_all(dir.join("d/below")).unwrap();
    dir.write("d/a", vec![1; 20_000]);
    dir.write("d/below/b", vec![1; 12_000]);
    dir.write("d/empty", "");
    let ran = dir.run("--output-format=json --name=j --opendir=d --rw=read --bs=4k");
    assert_eq!(moved(&job(ran.assert_status(0)), "read"), (6, 6 * 4096), "whole blocks of both");
    assert!(dir.read("d/empty").is_empty());
}

/// Huge pages reserved for a test; the previous number is restored afterwards.
struct HugePages {
    before: String,
}

impl HugePages {
    const FILE: &str = "/proc/sys/vm/nr_hugepages";

    fn reserve(count: u32) -> Result<HugePages, String> {
        root()?;
        let before = fs::read_to_string(HugePages::FILE).map_err(|error| error.to_string())?;
        fs::write(HugePages::FILE, count.to_string()).map_err(|error| error.to_string())?;
        let reserved = HugePages { before };
        let got = fs::read_to_string(HugePages::FILE).map_err(|error| error.to_string())?;
        match got.trim().parse::<u32>() {
            Ok(got) if got >= count => Ok(reserved),
            _ => Err(format!("the kernel reserved {} huge pages", got.trim())),
        }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = fs::write(HugePages::FILE, &self.before);
    }
}

#[test]
fn buffers_come_from_the_requested_memory() {
    let dir = Dir::new();
    dir.write("there", vec![7; 100]);
    let written = |memory: &str| {
        let options = format!(
            "--filename=f --rw=randwrite --bs=16k --size=256k --buffer_pattern=0x5a --iomem={memory} \
             --ioengine=libaio --iodepth=4"
        );
        well(&dir, &options);
        assert!(dir.read("f") == vec![0x5a; 256 << 10], "{memory}");
        fs::remove_file(dir.join("f")).unwrap();
    };
    for memory in ["malloc", "mmap", "mmapshared", "shm", "mmap:made", "mmapshared:made"] {
        written(memory);
        assert!(!dir.join("made").exists(), "{memory}: its file is still there");
    }
    written("mmap:there");
    assert_eq!(dir.read("there")[..100], [7; 100], "a private mapping changed its file");
    written("mmapshared:there");
    assert_eq!(dir.read("there")[..100], [0x5a; 100], "a shared mapping left its file alone");

    let ran = dir.run("--name=j --filename=f --rw=read --size=4k --iomem=mmap:gone/file");
    ran.assert_status(1).assert_prints(&["allocate buffers", "gone/file", "ENOENT"]);
}

#[test]
fn buffers_come_in_huge_pages() {
    let dir = Dir::new();
    {
        let _reserved = need!(HugePages::reserve(8));
        for memory in ["mmaphuge", "shmhuge"] {
            well(
                &dir,
                &format!(
                    "--filename=f --rw=write --bs=64k --size=256k --buffer_pattern=0x5a --iomem={memory}"
                ),
            );
            assert!(dir.read("f") == vec![0x5a; 256 << 10], "{memory}");
        }
        let ran = dir.run("--name=j --filename=f --rw=read --size=64k --iomem=mmaphuge --hugepage-size=64m");
        ran.assert_status(1).assert_prints(&["huge pages of this size"]);
        let ran = dir
            .run("--output-format=json --name=j --filename=f --rw=read --size=64k --bs=64m --iomem=mmaphuge");
        assert_ne!(ran.status, Some(0));
    }
}

#[test]
fn lockmem_pins_memory_besides_the_buffers() {
    let dir = Dir::new();
    well(&dir, "--filename=f --rw=read --size=16k --lockmem=1m");
    let ran = dir.run("--output-format=json --name=j --filename=f --rw=read --size=16k --lockmem=1000t");
    ran.assert_status(1).assert_prints(&["lockmem", "ENOMEM"]);
    assert_eq!(job(&ran)["error"], 12);
    let line = "--name=j --filename=f --rw=read --size=16k --lockmem=1m --numjobs=2";
    let said = need!(strace(&dir, &["-e", "trace=mlock"], line)).stderr;
    assert_eq!(said.matches("1048576").count(), 2, "each worker pins its own: {said}");
}

#[test]
fn buffers_are_aligned() {
    let dir = Dir::new();
    for align in [4096_u64, 65_536, 2 << 20] {
        let line = format!("--name=j --filename=f --rw=write --bs=4k --size=8k --iomem_align={align}");
        let said = need!(strace(&dir, &["-e", "trace=pwrite64", "-e", "raw=pwrite64"], &line)).stderr;
        let addresses: Vec<u64> = said
            .lines()
            .filter_map(|line| line.split("pwrite64(").nth(1)?.split(", ").nth(1)?.strip_prefix("0x"))
            .map(|digits| u64::from_str_radix(digits, 16).unwrap())
            .collect();
        assert_eq!(addresses.len(), 2, "{said}");
        assert!(addresses.iter().all(|address| address % align == 0), "{align}: {addresses:x?}");
    }
}

/// The calls of a job on its one file after it was laid out, in order and without their results: reads and writes as
/// `read 0+4096`, other calls with their arguments except for the file.
fn script(dir: &Dir, options: &str) -> Result<Vec<String>, String> {
    let calls = "openat,fsync,fdatasync,sync_file_range,fadvise64,fcntl,pread64,pwrite64";
    let line = format!("--name=j --filename=f --bs=4k --size=16k --ioengine=psync {options}");
    let (ran, calls) = traced(dir, calls, &line)?;
    ran.assert_success();
    let own = calls
        .iter()
        .rposition(|call| call.starts_with("openat") && call.contains("\"f\""))
        .ok_or("the file was not opened")?;
    let shown = |call: &String| {
        let (name, rest) = call.split_once('(')?;
        let (arguments, _) = rest.rsplit_once(") ")?;
        let arguments: Vec<&str> = arguments.split(", ").collect();
        let last: Vec<&str> = arguments.iter().rev().take(2).copied().collect();
        match name {
            // The flag has no effect on a machine of 64 bits; whether it is given depends on the library.
            "openat" => Some(format!("open {}", arguments.get(2)?.replace("|O_LARGEFILE", ""))),
            "pread64" | "pwrite64" => Some(format!("{} {}+{}", &name[1..name.len() - 2], last[0], last[1])),
            "fcntl" if !rest.contains("0x40c") && !rest.contains("F_SET_RW_HINT") => None,
            "fcntl" => Some("write hint".to_string()),
            _ => Some([&[name], &arguments[1..]].concat().join(" ")),
        }
    };
    let opened_once = |(index, call): &(usize, &String)| *index == 0 || !call.starts_with("openat");
    Ok(calls[own..].iter().enumerate().filter(opened_once).filter_map(|(_, call)| shown(call)).collect())
}

// divergence: `trim_backlog_batch`
#[test]
fn blocks_are_trimmed_in_batches() {
    let dir = Dir::new();
    let line = "--name=a --filename=f --size=256k --bs=4k --ioengine=psync --rw=write --fallocate=none \
                --verify=crc32c --trim_percentage=100 --trim_backlog=16 --trim_backlog_batch=4";
    let (ran, calls) = need!(traced(&dir, "pwrite64,fallocate", line));
    ran.assert_status(0);
    let order: String =
        calls.iter().map(|call| if call.starts_with("pwrite64") { 'w' } else { 't' }).collect();
    let first = ("w".repeat(16) + "tttt").repeat(4);
    assert_eq!(order, first + &"t".repeat(48), "at most 4 after 16 writes, the others at the end");
}

#[test]
fn the_calls_are_those_of_fio() {
    let dir = Dir::new();
    dir.write("f", vec![1; 16 << 10]);
    let [read, write] =
        ["read", "write"].map(|name| [0, 4096, 8192, 12_288].map(|at| format!("{name} {at}+4096")));
    let (read, write) = (read.join("; "), write.join("; "));
    let drop = "fadvise64 0 16384 POSIX_FADV_DONTNEED";
    let in_order = "fadvise64 0 16384 POSIX_FADV_SEQUENTIAL";
    let to_read = "open O_RDONLY|O_CLOEXEC";
    let to_write = |more: &str| format!("open O_RDWR|O_CREAT{more}|O_CLOEXEC");
    // The call is due after this many writes, and is made before the next one.
    let synced = |writes_before: usize, call: &str| {
        let mut calls: Vec<&str> = write.split("; ").collect();
        calls.insert(writes_before, call);
        format!("{}; {drop}; {in_order}; {}", to_write(""), calls.join("; "))
    };
    let cases = [
        ("--rw=read", format!("{to_read}; {drop}; {in_order}; {read}")),
        ("--rw=read --fadvise_hint=0", format!("{to_read}; {drop}; {read}")),
        (
            "--rw=read --fadvise_hint=random",
            format!("{to_read}; {drop}; fadvise64 0 16384 POSIX_FADV_RANDOM; {read}"),
        ),
        (
            "--rw=read --fadvise_hint=noreuse",
            format!("{to_read}; {drop}; fadvise64 0 16384 POSIX_FADV_NOREUSE; {read}"),
        ),
        ("--rw=read --invalidate=0", format!("{to_read}; {in_order}; {read}")),
        ("--rw=read --pre_read=1", format!("{to_read}; {in_order}; {read}")),
        ("--rw=write --sync=sync", format!("{}; {drop}; {in_order}; {write}", to_write("|O_SYNC"))),
        ("--rw=write --sync=dsync", format!("{}; {drop}; {in_order}; {write}", to_write("|O_DSYNC"))),
        (
            "--rw=write --write_hint=short",
            format!("{}; {drop}; {in_order}; write hint; {write}", to_write("")),
        ),
        ("--rw=write --end_fsync=1", format!("{}; {drop}; {in_order}; {write}; fsync", to_write(""))),
        ("--rw=write --fsync_on_close=1", format!("{}; {drop}; {in_order}; {write}; fsync", to_write(""))),
        ("--rw=write --write_barrier=2", format!("{}; {drop}; {in_order}; {write}", to_write(""))),
        ("--rw=write --fsync=2", synced(2, "fsync")),
        ("--rw=write --fdatasync=3", synced(3, "fdatasync")),
        ("--rw=write --sync_file_range=write:2", synced(2, "sync_file_range 0 8192 SYNC_FILE_RANGE_WRITE")),
        (
            "--rw=read:4k --number_ios=2",
            format!("{to_read}; {drop}; {in_order}; read 0+4096; read 8192+4096"),
        ),
        (
            "--rw=read --offset=8k --size=8k",
            format!(
                "{to_read}; fadvise64 8192 8192 POSIX_FADV_DONTNEED; fadvise64 8192 8192 POSIX_FADV_SEQUENTIAL; read 8192+4096; read 12288+4096"
            ),
        ),
    ];
    for (options, expected) in cases {
        assert_eq!(need!(script(&dir, options)).join("; "), expected, "{options}");
    }
    if let Err(why) = crate::common::direct_works_in(dir.path()) {
        skip!("{why}");
    }
    // Findings look at the page cache of a file that is read past it.
    for options in ["--rw=read --direct=1 --trust=off", "--rw=read --buffered=0 --trust=off"] {
        let calls = need!(script(&dir, options));
        assert_eq!(calls[0], "open O_RDONLY|O_DIRECT|O_CLOEXEC", "{options}");
    }
}

#[test]
fn laid_out_data_does_not_repeat() {
    let dir = Dir::new();
    well(&dir, "--rw=read --nrfiles=2 --size=4m --number_ios=1");
    let (first, second) = (dir.read("j.0.0"), dir.read("j.0.1"));
    let equal =
        |left: &[u8], right: &[u8]| left.iter().zip(right).filter(|(left, right)| left == right).count();
    // One byte in 256 is equal by chance.
    assert!(equal(&first, &second) < first.len() / 100, "two files");
    assert!(equal(&first[..1 << 20], &first[1 << 20..]) < first.len() / 100, "two parts of a file");
    fs::remove_file(dir.join("j.0.0")).unwrap();
    well(&dir, "--rw=read --size=1m --number_ios=1 --buffer_compress_percentage=75");
    let zeros = dir.read("j.0.0").iter().filter(|byte| **byte == 0).count();
    assert!((740 << 10..800 << 10).contains(&zeros), "{zeros} bytes of 1 MiB are zeros, 75% should be");
}
