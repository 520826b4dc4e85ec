//! Every engine of fiord: the same counts as fio's, buffered and direct, and its private options.
//!
//! Invariant: a job that fio's engine can run, fiord's can run.

use fiord_compat::compare::{bytes_within, counts, equal, figure, files, mix, refused, success, verdict};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};
use serde_json::Value;

const ENGINES: &[&str] = &[
    "null", "sync", "psync", "vsync", "pvsync", "pvsync2", "splice", "mmap", "posixaio", "libaio", "io_uring",
];

/// Private options and depths.
const PRIVATE: &[(&str, &str)] = &[
    ("libaio-depth-32", "--ioengine=libaio --iodepth=32 --rw=randread"),
    (
        "libaio-batches",
        "--ioengine=libaio --iodepth=32 --iodepth_batch=8 --iodepth_batch_complete=8 --iodepth_low=16 --rw=randread",
    ),
    (
        "libaio-batch-max",
        "--ioengine=libaio --iodepth=16 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=16 --rw=randwrite",
    ),
    ("libaio-userspace_reap", "--ioengine=libaio --iodepth=8 --userspace_reap --rw=randread"),
    ("libaio-nowait", "--ioengine=libaio --iodepth=4 --nowait=0 --rw=randread"),
    ("libaio-fsync", "--ioengine=libaio --iodepth=8 --fsync=16 --rw=write"),
    ("io_uring-depth-32", "--ioengine=io_uring --iodepth=32 --rw=randread"),
    ("io_uring-fixedbufs", "--ioengine=io_uring --iodepth=16 --fixedbufs --rw=randwrite"),
    ("io_uring-registerfiles", "--ioengine=io_uring --iodepth=16 --registerfiles --rw=randread"),
    ("io_uring-sqthread", "--ioengine=io_uring --iodepth=16 --sqthread_poll --rw=randread"),
    ("io_uring-vectored", "--ioengine=io_uring --iodepth=4 --nonvectored=0 --rw=randread"),
    ("io_uring-nonvectored", "--ioengine=io_uring --iodepth=4 --nonvectored=1 --rw=randread"),
    ("io_uring-force_async", "--ioengine=io_uring --iodepth=8 --force_async=4 --rw=randread"),
    ("io_uring-nowait", "--ioengine=io_uring --iodepth=4 --nowait=0 --rw=randread"),
    (
        "io_uring-batches",
        "--ioengine=io_uring --iodepth=32 --iodepth_batch=16 --iodepth_batch_complete=16 --rw=randread",
    ),
    ("io_uring-nrfiles", "--ioengine=io_uring --iodepth=16 --nrfiles=4 --registerfiles --rw=randwrite"),
    ("pvsync2-nowait", "--ioengine=pvsync2 --nowait=0 --rw=randread"),
    ("psync-depth-is-one", "--ioengine=psync --iodepth=16 --rw=randread"),
    ("mmap-loops", "--ioengine=mmap --loops=2 --rw=read"),
    // More than a pipe holds.
    ("splice-large-blocks", "--ioengine=splice --bs=256k --rw=read"),
    ("splice-large-blocks-written", "--ioengine=splice --bs=256k --rw=randwrite"),
    ("posixaio-depth-32", "--ioengine=posixaio --iodepth=32 --rw=randread"),
    ("falloc-read", "--ioengine=falloc --rw=read"),
    ("falloc-write", "--ioengine=falloc --rw=write"),
    ("falloc-randwrite", "--ioengine=falloc --rw=randwrite"),
    ("falloc-randtrim", "--ioengine=falloc --rw=randtrim"),
    ("e4defrag-write", "--ioengine=e4defrag --donorname=donor --inplace=1 --bs=64k --rw=write"),
    ("e4defrag-randwrite", "--ioengine=e4defrag --donorname=donor --inplace=1 --bs=16k --rw=randwrite"),
    ("ftruncate-write", "--ioengine=ftruncate --rw=write"),
    ("ftruncate-randwrite", "--ioengine=ftruncate --rw=randwrite"),
];

/// Engines that do other work than I/O, with all of their arguments.
const OTHER_WORK: &[(&str, &str)] = &[
    ("filecreate-read", "--ioengine=filecreate --filesize=16k --bs=4k --nrfiles=3"),
    ("filecreate-write", "--ioengine=filecreate --filesize=16k --bs=4k --nrfiles=3 --rw=write"),
    ("filecreate-without-size", "--ioengine=filecreate --bs=8k --nrfiles=3"),
    ("filecreate-size", "--ioengine=filecreate --size=64k --bs=8k --nrfiles=3"),
    ("filecreate-loops", "--ioengine=filecreate --filesize=8k --nrfiles=3 --loops=3 --unlink=1"),
    ("filecreate-openfiles", "--ioengine=filecreate --filesize=8k --nrfiles=10 --openfiles=2"),
    ("filecreate-number_ios", "--ioengine=filecreate --filesize=16k --nrfiles=4 --number_ios=6"),
    (
        "filecreate-direct",
        "--ioengine=filecreate --filesize=16k --nrfiles=4 --rw=write --direct=1 --end_fsync=1",
    ),
    ("filestat", "--ioengine=filestat --filesize=16k --nrfiles=3"),
    ("filestat-lstat", "--ioengine=filestat --filesize=16k --nrfiles=3 --stat_type=lstat --loops=2"),
    ("filestat-statx", "--ioengine=filestat --filesize=16k --nrfiles=3 --stat_type=statx --rw=write"),
    ("filestat-unlink", "--ioengine=filestat --filesize=16k --nrfiles=3 --unlink=1"),
    ("filestat-numjobs", "--ioengine=filestat --filesize=16k --filename=x --numjobs=2"),
    ("filedelete", "--ioengine=filedelete --filesize=16k --nrfiles=3"),
    ("filedelete-randwrite", "--ioengine=filedelete --filesize=16k --nrfiles=3 --rw=randwrite"),
    ("cpuio", "--ioengine=cpuio --cpuload=50 --cpuchunks=2000 --number_ios=5"),
    (
        "cpuio-write",
        "--ioengine=cpuio --cpuload=100 --cpuchunks=2000 --number_ios=5 --rw=write --rate_iops=1",
    ),
];

/// Those that both programs refuse.
const REFUSED_WORK: &[(&str, &str)] = &[
    ("filestat-without-size", "--ioengine=filestat --nrfiles=3"),
    ("filestat-stat_type", "--ioengine=filestat --filesize=16k --stat_type=fstat"),
    ("filestat-not-laid-out", "--ioengine=filestat --filesize=16k --create_on_open=1"),
    ("filedelete-twice", "--ioengine=filedelete --filesize=16k --nrfiles=3 --loops=2"),
    ("cpuio-without-load", "--ioengine=cpuio --runtime=1"),
    ("cpuio-mode", "--ioengine=cpuio --cpuload=50 --cpumode=x --runtime=1"),
    ("e4defrag-without-donor", "--ioengine=e4defrag --inplace=1 --rw=write --size=64k"),
    ("exec-without-program", "--ioengine=exec --runtime=1"),
];

/// Equal numbers of completion latencies, and of total ones.
fn samples(pair: &Pair) -> Verdict {
    for (fio, fiord) in pair.fio.jobs()?.iter().zip(pair.fiord.jobs()?) {
        for direction in ["read", "write", "trim"] {
            for latency in ["clat_ns", "lat_ns"] {
                let count = |job: &Value| job[direction][latency]["N"].as_u64();
                equal(&format!("samples of {direction} {latency}"), count(fio), count(fiord))?;
            }
        }
    }
    Ok(())
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let job = |name: String, args: String| {
        let args = format!("--output-format=json --name=a --bs=4k --size=1m {args}");
        case(format!("engines/{name}"), args).check(success)
    };
    for engine in ENGINES {
        for mode in ["read", "write", "randread", "randwrite"] {
            let case = job(format!("{engine}/{mode}"), format!("--ioengine={engine} --rw={mode}"));
            cases.push(case.check(counts).check(files));
        }
        cases.push(job(format!("{engine}/randrw"), format!("--ioengine={engine} --rw=randrw")).check(mix));
        if *engine != "mmap" {
            for mode in ["randread", "write"] {
                // fio's vsync loses the I/Os of its last vector if more than one may be queued.
                let depth = if *engine == "vsync" { 1 } else { 4 };
                let args = format!("--ioengine={engine} --rw={mode} --direct=1 --iodepth={depth}");
                cases.push(job(format!("{engine}/direct-{mode}"), args).check(counts));
            }
        }
    }
    cases.extend(PRIVATE.iter().map(|(name, args)| job(name.to_string(), args.to_string()).check(counts)));
    // fio counts the syncs of asynchronous engines several times, with varying results.
    for engine in ["io_uring", "posixaio"] {
        let args = format!("--ioengine={engine} --iodepth=8 --fdatasync=8 --rw=randwrite");
        let synced = job(format!("{engine}-fdatasync"), args);
        cases.push(synced.check(bytes_within(0)).check(|pair: &Pair| {
            equal("syncs", 31, figure(pair.fiord.jobs()?.first().ok_or("no job")?, "sync", "total_ios"))
        }));
    }
    let deep = job("vsync-depth".to_string(), "--ioengine=vsync --iodepth=8 --rw=write".to_string());
    cases.push(deep.check(|pair: &Pair| {
        // fio loses up to a vector at the end, here.
        equal("bytes", 1 << 20, figure(pair.fiord.jobs()?.first().ok_or("no job")?, "write", "io_bytes"))
    }));
    for (engine, check) in [("libaio", true), ("io_uring", true), ("psync", false)] {
        let args = format!(
            "--output-format=json --name=a --filename=/dev/null --rw=read --size=64k --ioengine={engine}"
        );
        let case = case(format!("engines/{engine}-read-of-nothing"), args);
        cases.push(if check { case.check(success).check(counts) } else { case.check(refused) });
    }
    // Jobs whose engine has threads that serve all of them read back what they wrote.
    for engine in ["posixaio", "libaio", "io_uring"] {
        let args = format!("--ioengine={engine} --iodepth=4 --rw=randwrite --numjobs=4 --verify=crc32c");
        cases.push(job(format!("{engine}-numjobs"), args).check(counts));
    }
    for (name, args) in OTHER_WORK {
        let case = case(format!("engines/{name}"), format!("--output-format=json --name=a {args}"));
        cases.push(case.check(success).check(counts).check(samples).check(files));
    }
    for (name, args) in REFUSED_WORK {
        let case = case(format!("engines/{name}"), format!("--output-format=json --name=a {args}"));
        cases.push(case.check(refused));
    }
    let hipri = "--name=a --bs=4k --size=64k --ioengine=pvsync2 --hipri --rw=read --direct=1";
    cases.push(case("engines/pvsync2-hipri", hipri).check(verdict));
    cases
}
