//! Recording in iologs and replaying them: each program's own, and each other's.
//!
//! Invariant: a replay is compared by its counts and bytes; times are compared only as far as a trace makes them pass.

use std::path::Path;
use std::process::Command;

use fiord_compat::compare::{counts, debug_io, equal, exit, figure, files, success};
use fiord_compat::program::{Pair, Ran, finish};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, case};

/// An iolog of each version that touches two files. fio 3.33 takes the pauses of version 2 for milliseconds.
const V2: &str = "fio version 2 iolog\nf add\ng add\nf open\ng open\nf read 0 4096\nf wait 100 0\nf write 8192 4096\n\
    g read 4096 8192\nf sync 0 0\ng write 0 512\nf close\ng close\n";
const V3: &str = "fio version 3 iolog\n10 f add\n20 f open\n1000 f read 0 4096\n1200 f write 4096 8192\n1300 f sync 0 0\n\
    2000 f read 12288 4096\n300000 f write 0 512\n300100 f close\n";

/// What the kernel recorded on a loop device of 1 MiB: random reads and writes of 4 to 64 KiB with a sync after every
/// fourth write, what `blkdiscard` read first, and its discard of 64 KiB at 512 KiB. (Recorded with the tracer `blk` of
/// tracefs, whose binary form is that of blktrace's own files, and made one trace by `blkparse -d`.)
const RECORDED_BLKTRACE: &[u8] = include_bytes!("blktrace.bin");

/// How the traces are replayed.
const REPLAYS: &[(&str, &str, &str)] = &[
    ("v2", V2, "--ioengine=psync"),
    ("v3", V3, "--ioengine=psync"),
    ("v3-pvsync2", V3, "--ioengine=pvsync2"),
    ("v3-libaio", V3, "--ioengine=libaio --iodepth=4"),
    ("v3-io_uring", V3, "--ioengine=io_uring --iodepth=4"),
    ("v3-null", V3, "--ioengine=null"),
    ("v3-ignores-bs", V3, "--ioengine=psync --bs=512 --rw=randwrite --size=16k"),
    ("v3-no_stall", V3, "--ioengine=psync --replay_no_stall=1"),
    ("v3-slower", V3, "--ioengine=psync --replay_time_scale=50"),
    ("v3-faster", V3, "--ioengine=psync --replay_time_scale=1000"),
    ("v3-loops", V3, "--ioengine=psync --loops=2"),
    ("v3-number_ios", V3, "--ioengine=psync --number_ios=1"),
    ("v3-redirect", V3, "--ioengine=psync --replay_redirect=g"),
    ("v3-chunked", V3, "--ioengine=psync --read_iolog_chunked=1"),
    ("v3-numjobs", V3, "--ioengine=psync --numjobs=2 --group_reporting"),
];

/// Jobs that are recorded.
const RECORDED: &[(&str, &str)] = &[
    ("write", "--rw=write"),
    ("read", "--rw=read"),
    ("bs", "--rw=write --bs=16k"),
    ("two-files", "--rw=write --nrfiles=2"),
    ("loops", "--rw=read --loops=2"),
    ("openfiles", "--rw=read --nrfiles=4 --openfiles=2"),
    ("openfiles-sequential", "--rw=read --nrfiles=4 --openfiles=2 --file_service_type=sequential"),
    (
        "openfiles-two-in-a-row",
        "--rw=read --size=48k --nrfiles=4 --openfiles=2 --file_service_type=roundrobin:2",
    ),
    ("holes", "--rw=read:2k --io_size=64k"),
    ("holes-in-two-files", "--rw=write:2k --nrfiles=2 --io_size=64k"),
    ("io_uring", "--rw=read --ioengine=io_uring --iodepth=4"),
    ("libaio", "--rw=write --ioengine=libaio --iodepth=4"),
    ("randwrite", "--rw=randwrite"),
    ("mixed", "--rw=randrw"),
    ("fsync", "--rw=write --fsync=4"),
    ("fdatasync", "--rw=write --fdatasync=4"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let replayed = REPLAYS.iter().map(|(name, trace, args)| {
        let replay = case(
            format!("traces/replay-{name}"),
            format!("--output-format=json --name=r --read_iolog=t {args}"),
        )
        .text("t", *trace)
        .bytes("f", 65_536)
        .bytes("g", 65_536)
        .check(success)
        .check(files)
        .check(takes_as_long);
        replay.check(if args.contains("iodepth") { issued_ios } else { counts })
    });
    let recorded = RECORDED.iter().map(|(name, args)| {
        let line = format!(
            "--output-format=json --name=r --ioengine=psync --bs=4k --size=64k --write_iolog=log {args}"
        );
        let in_order = args.contains("=write") || args.contains("=read");
        let case = case(format!("traces/record-{name}"), line).check(success);
        let case = if in_order { case.check(same_lines) } else { case };
        case.check(each_replays_the_others)
    });
    let wrong = [
        ("missing", None),
        ("version-1", Some("0, 4096, 4096\n")),
        ("no-trace", Some("root:x:0:0\n")),
        ("unknown-action", Some("fio version 3 iolog\n1 f add\n2 f open\n3 f bogus 0 1\n")),
    ]
    .map(|(name, trace)| {
        let case = case(format!("traces/wrong-{name}"), "--output-format=json --name=r --read_iolog=t");
        let case = case.bytes("f", 65_536);
        let case = if let Some(trace) = trace { case.text("t", trace) } else { case };
        case.check(exit)
    });
    let overridden = case(
        "traces/replay-overrides-record",
        "--output-format=json --name=r --read_iolog=t --write_iolog=u",
    )
    .text("t", V3)
    .bytes("f", 65_536)
    .check(success)
    .check(counts)
    .check(files);
    // fio 3.33 reads a FIFO twice; a socket needs a server.
    let from_stdin =
        case("traces/replay-stdin", "--output-format=json --name=r --ioengine=psync --read_iolog=-")
            .stdin(V3)
            .bytes("f", 65_536)
            .check(success)
            .check(counts)
            .check(files)
            .check(takes_as_long);
    let from_kernel = case(
        "traces/replay-kernel-blktrace",
        "--output-format=terse --debug=io --name=r --ioengine=psync --read_iolog=t --replay_redirect={device}",
    )
    .binary("t", RECORDED_BLKTRACE)
    .on_loop_device(1 << 20)
    .check(success)
    .check(same_order);
    let replayed = replayed.chain([from_stdin, from_kernel]);
    replayed.chain(recorded).chain(wrong).chain([overridden]).collect()
}

/// Equal counts of I/Os; at the end of a trace fio 3.33 forgets the bytes of what is in flight.
fn issued_ios(pair: &Pair) -> Verdict {
    let (fio, fiord) = (&pair.fio.jobs()?[0], &pair.fiord.jobs()?[0]);
    ["read", "write"].iter().try_for_each(|direction| {
        equal(direction, figure(fio, direction, "total_ios"), figure(fiord, direction, "total_ios"))
    })
}

/// Both complete the same I/Os in the same order, as `--debug=io` prints them.
fn same_order(pair: &Pair) -> Verdict {
    let completed = |text: &str| -> Vec<String> {
        let completed = debug_io(text).into_iter().filter(|line| line.starts_with("complete"));
        // Each has a device of its own.
        completed.filter_map(|line| Some(line.split_once(",file=")?.0.to_string())).collect()
    };
    let (fio, fiord) = (completed(&pair.fio.stdout), completed(&pair.fiord.stdout));
    equal("queued requests of the trace", 30, fio.len())?;
    equal(
        "the discard is last",
        Some("complete 0x80000,len=0x10000,ddir=2"),
        fio.last().map(String::as_str),
    )?;
    equal("I/Os in order", fio, fiord)
}

/// Neither replay takes less time than the trace leaves it: that of the last entry, at its speed.
fn takes_as_long(pair: &Pair) -> Verdict {
    let least_ms = |ran: &Ran| -> Result<u64, String> {
        let jobs = ran.jobs()?;
        let runtime_ms = |job| figure(job, "read", "runtime").max(figure(job, "write", "runtime"));
        Ok(jobs.iter().map(runtime_ms).max().unwrap_or(0))
    };
    let (fio, fiord) = (least_ms(&pair.fio)?, least_ms(&pair.fiord)?);
    // Both waited for the trace, or neither did.
    equal("waits for the trace", fio >= 290, fiord >= 290)
}

/// The lines of an iolog without their times; how often files are opened and closed is each program's own affair.
fn lines(ran: &Ran) -> Result<Vec<String>, String> {
    let text = ran.file("log")?;
    let without_time = |line: &str| line.split_once(' ').map(|(_, rest)| rest.to_string());
    let is_io = |line: &String| !["add", "open", "close"].iter().any(|word| line.ends_with(word));
    let mut lines: Vec<String> = text.lines().skip(1).filter_map(without_time).filter(is_io).collect();
    for line in &mut lines {
        // fio writes the offset of the last I/O with a synchronization, which has none.
        if let Some((before, _)) = line.split_once("sync ") {
            *line = format!("{before}sync");
        }
    }
    Ok(lines)
}

/// Equal iologs but for the times.
fn same_lines(pair: &Pair) -> Verdict {
    equal("lines of the iolog", lines(&pair.fio)?, lines(&pair.fiord)?)
}

/// fio replays what fiord recorded, fiord replays what fio recorded, and each does what was recorded.
fn each_replays_the_others(pair: &Pair) -> Verdict {
    let replayed = |program: &Path, of: &Ran, name: &str| -> Result<Ran, String> {
        let mut command = Command::new(program);
        let log = of.dir.join("log");
        command
            .args(["--output-format=json", "--name=r", "--ioengine=psync"])
            .arg(format!("--read_iolog={}", log.display()));
        command.env("XDG_STATE_HOME", pair.beside("state")).current_dir(&of.dir);
        finish(command, "", &pair.beside(name))
    };
    let by_fio = replayed(Path::new("fio"), &pair.fiord, "by-fio")?;
    let by_fiord = replayed(&pair.fiord_itself, &pair.fio, "by-fiord")?;
    for (recorded, replay) in [(&pair.fiord, &by_fio), (&pair.fio, &by_fiord)] {
        equal("exit status of the replay", 0, replay.status)
            .map_err(|why| format!("{why}\n{}", replay.output()))?;
        let (recorded, replay) = (&recorded.jobs()?[0], &replay.jobs()?[0]);
        for direction in ["read", "write"] {
            for key in ["total_ios", "io_bytes"] {
                let what = format!("replayed {direction} {key}");
                equal(&what, figure(recorded, direction, key), figure(replay, direction, key))?;
            }
        }
    }
    Ok(())
}
