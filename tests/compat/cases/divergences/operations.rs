//! What a job does: offsets, directions, syncs, zones and passes; how fast, and beside which others.

use super::row::Given::Bytes;
use super::row::Seen::{Accepted, File, Is, Job, NoFile, Omits, Prints, Refused};
use super::row::{ROW, Row, bytes};
use fiord_compat::Ran;
use fiord_compat::compare::figure;

fn total_bytes(ran: &Ran) -> Result<u64, String> {
    let job = &ran.jobs()?[0];
    Ok(figure(job, "read", "io_bytes") + figure(job, "write", "io_bytes"))
}

/// Whether the first blocks of the first two zones of 16 KiB were overwritten with zeroes.
fn is_zeroed(ran: &Ran, name: &str, expected: [bool; 2]) -> Result<bool, String> {
    let bytes = bytes(ran, name)?;
    Ok([0, 16_384].map(|at| bytes[at..at + 4096] == [0; 4096]) == expected)
}

/// Rows of the sections "Operations" and "Pace, order and identity".
pub const ROWS: &[Row] = &[
    // divergence: a distribution for each direction
    Row {
        name: "zones-of-each-direction",
        args: "--parse-only --name=a --ioengine=null --rw=randrw --size=1m --random_distribution=zoned:60/10:40/90,50/50:50/50",
        fio: &[Refused],
        fiord: &[Accepted],
        ..ROW
    },
    Row {
        name: "zipf-of-each-direction",
        args: "--parse-only --name=a --ioengine=null --rw=randrw --size=1m --random_distribution=zipf:1.2,0.8",
        fio: &[Refused],
        fiord: &[Accepted],
        ..ROW
    },
    // divergence: `zonemode=zbd` at random on a file that is shorter
    Row {
        name: "zones-of-a-shorter-file",
        args: "--output-format=json --name=a --filename=f --rw=randwrite --bs=4k --zonemode=zbd --zonesize=16k --size=5z",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted, Job("/write/total_ios", "16"), File("f", 81_920)],
        fiord: &[Accepted, Job("/write/total_ios", "20"), File("f", 81_920)],
        ..ROW
    },
    // divergence: `zonemode=strided` with `io_size` above `size`
    Row {
        name: "strided-zones-of-a-queued-job",
        args: "--name=a --filename=f --rw=write --bs=4k --size=64k --io_size=128k --ioengine=libaio --zonemode=strided --zonesize=12k --zonerange=16k --zoneskip=4k --buffer_pattern=0",
        files: &[Bytes("f", 163_840)],
        fio: &[Accepted, Is("the zone at 120 KiB is as it was", |ran| Ok(bytes(ran, "f")?[122_880] != 0))],
        fiord: &[Accepted, Is("the zone at 120 KiB is written", |ran| Ok(bytes(ran, "f")?[122_880] == 0))],
        ..ROW
    },
    // divergence: `zonemode=strided` at random, where blocks do not divide
    Row {
        name: "blocks-that-do-not-divide-a-strided-zone",
        args: "--output-format=json --name=a --filename=f --rw=randwrite --bs=3k --size=24k --zonemode=strided --zonesize=8k --zonerange=8k",
        files: &[Bytes("f", 131_072)],
        fio: &[Accepted, Job("/write/total_ios", "2")],
        fiord: &[Accepted, Job("/write/total_ios", "8")],
        ..ROW
    },
    // divergence: `size=8z`, `offset=8z` and the like
    Row {
        name: "zones-without-zonemode",
        args: "--output-format=json --name=a --filename=f --rw=write --size=4z --offset=2z",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted, Job("/write/io_bytes", "65536")],
        fiord: &[
            Refused,
            Prints("size=4z counts zones"),
            Is("the file is as it was", |ran| Ok(!bytes(ran, "f")?.contains(&0))),
        ],
        ..ROW
    },
    // divergence: negative `zipf`
    Row {
        name: "negative-zipf",
        args: "--parse-only --name=a --ioengine=null --rw=randread --size=1m --random_distribution=zipf:-1.2",
        fio: &[Accepted],
        fiord: &[Refused, Prints("zipf")],
        ..ROW
    },
    // divergence: `zonemode=zbd` where a zone has no room
    Row {
        name: "zone-without-room",
        args: "--name=a --filename=f --rw=write --size=64k --bs=6k --zonemode=zbd --zonesize=16k --buffer_pattern=0",
        files: &[Bytes("f", 65_536)],
        fio: &[
            Prints("; 5 zone resets"),
            Is("the first zone alone", |ran| is_zeroed(ran, "f", [true, false])),
        ],
        fiord: &[Prints("; 0 zone resets"), Is("all zones", |ran| is_zeroed(ran, "f", [true, true]))],
        ..ROW
    },
    // divergence: `zonemode=zbd` at random, where
    Row {
        name: "zones-of-less-capacity-at-random",
        args: "--output-format=json --name=a --filename=f --rw=randwrite --size=256k --bs=16k --zonemode=zbd --zonesize=64k --zonecapacity=48k",
        files: &[Bytes("f", 262_144)],
        fio: &[Accepted, Job("/write/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "12")],
        ..ROW
    },
    // divergence: `zonemode=zbd` with `bs` longer
    Row {
        name: "blocks-longer-than-zones",
        args: "--name=a --filename=f --rw=read --size=256k --bs=128k --zonemode=zbd --zonesize=64k --read_beyond_wp=1",
        files: &[Bytes("f", 262_144)],
        fio: &[Accepted],
        fiord: &[Refused, Prints("longer than a zone")],
        ..ROW
    },
    // divergence: `zone_reset_threshold=.4:.6`
    Row {
        name: "two-thresholds-of-resets",
        args: "--name=a --filename=f --rw=write --size=256k --bs=16k --zonemode=zbd --zonesize=64k --zone_reset_threshold=.4:.6",
        files: &[Bytes("f", 262_144)],
        fio: &[Accepted],
        fiord: &[Refused, Prints("is one number")],
        ..ROW
    },
    // divergence: `zonemode=zbd` with trims shorter
    Row {
        name: "trims-of-parts-of-zones",
        args: "--output-format=json --name=a --filename={device} --rw=trim --size=64k --bs=4k --zonemode=zbd --zonesize=16k",
        fio: &[
            Refused,
            Job("/trim/total_ios", "0"),
            Job("/error", "0"),
            Is("without a message", |ran| Ok(ran.stderr.is_empty())),
        ],
        fiord: &[Refused, Prints("is not the zone size")],
        ..ROW
    },
    // divergence: `zonemode=strided` with several files
    Row {
        name: "strided-zones-of-two-files",
        args: "--name=a --filename=f:g --rw=write --size=128k --bs=4k --zonemode=strided --zonesize=8k --zonerange=16k --buffer_pattern=0",
        files: &[Bytes("f", 65_536), Bytes("g", 65_536)],
        fio: &[Is("g has no zones", |ran| Ok(bytes(ran, "g")?[..16_384] == [0; 16_384]))],
        fiord: &[
            Is("zones of f", |ran| is_zeroed(ran, "f", [true, true])),
            Is("zones of g", |ran| is_zeroed(ran, "g", [true, true])),
            Is(
                "half of each",
                |ran| Ok(bytes(ran, "g")?.iter().filter(|byte| **byte == 0).count() == 32_768),
            ),
        ],
        ..ROW
    },
    // divergence: `randrw` with a block size for each direction
    Row {
        name: "mix-with-two-block-sizes",
        args: "--output-format=json --name=a --filename=f --rw=randrw --size=1m --bs=4k,8k",
        files: &[Bytes("f", 1 << 20)],
        fio: &[Accepted, Is("it stops short", |ran| Ok(total_bytes(ran)? < 1 << 20))],
        fiord: &[Accepted, Is("all is transferred", |ran| Ok(total_bytes(ran)? >= 1 << 20))],
        ..ROW
    },
    // divergence: `fsync=N`, `fdatasync=N` in a mix
    Row {
        name: "syncs-of-a-mix",
        args: "--output-format=json --name=a --filename=f --rw=randrw --rwmixread=90 --size=1m --bs=4k --fsync=4",
        files: &[Bytes("f", 1 << 20)],
        fio: &[
            Accepted,
            Is("more than one after 8 writes", |ran| {
                let job = &ran.jobs()?[0];
                Ok(job["sync"]["lat_ns"]["N"].as_u64() > Some(figure(job, "write", "total_ios") / 2))
            }),
        ],
        fiord: &[
            Accepted,
            Is("one after 4 writes", |ran| {
                let job = &ran.jobs()?[0];
                Ok(figure(job, "sync", "total_ios").abs_diff(figure(job, "write", "total_ios") / 4) <= 1)
            }),
        ],
        ..ROW
    },
    // divergence: `fsync=N` with `trimwrite`
    Row {
        name: "syncs-of-trims-and-writes",
        args: "--output-format=json --name=a --ioengine=null --rw=trimwrite --size=64k --bs=4k --fsync=4",
        fio: &[Accepted, Job("/write/total_ios", "16"), Job("/sync/lat_ns/N", "0")],
        fiord: &[Accepted, Job("/write/total_ios", "16"), Job("/sync/lat_ns/N", "3")],
        ..ROW
    },
    // divergence: `randtrimwrite` with an `offset`
    Row {
        name: "random-trims-and-writes-behind-an-offset",
        args: "--output-format=json --name=a --ioengine=null --rw=randtrimwrite --size=64k --offset=4k --bs=4k",
        fio: &[Accepted, Job("/write/total_ios", "16"), Job("/trim/total_ios", "1")],
        fiord: &[Accepted, Job("/write/total_ios", "16"), Job("/trim/total_ios", "16")],
        ..ROW
    },
    // divergence: `trimwrite` with a block size for writes
    Row {
        name: "writes-as-long-as-trims",
        args: "--output-format=json --name=a --ioengine=null --rw=trimwrite --size=64k --bs=4k,8k,16k",
        fio: &[
            Accepted,
            Is("as many writes as trims", |ran| {
                let job = &ran.jobs()?[0];
                Ok(figure(job, "write", "io_bytes") != figure(job, "trim", "io_bytes"))
            }),
        ],
        fiord: &[
            Accepted,
            Job("/trim/io_bytes", "65536"),
            Job("/write/io_bytes", "65536"),
            Job("/write/total_ios", "4"),
        ],
        ..ROW
    },
    // divergence: `trim_percentage` with any `rw` but trims
    Row {
        name: "trims-of-a-writer",
        args: "--output-format=json --name=a --filename={device} --rw=write --size=256k --bs=4k --verify=crc32c --trim_percentage=100 --trim_backlog=16",
        fio: &[Prints("Assertion")],
        fiord: &[Accepted, Job("/trim/total_ios", "64")],
        ..ROW
    },
    // divergence: `trim_percentage`, blocks written since
    Row {
        name: "trims-of-fewer-than-the-backlog",
        args: "--output-format=json --name=a --filename={device} --rw=trimwrite --size=256k --bs=4k --verify=crc32c --trim_percentage=100 --trim_backlog=0",
        fio: &[Prints("trim entries leaked?")],
        fiord: &[Accepted, Omits("leaked")],
        ..ROW
    },
    // divergence: `fsync=N` with `loops`
    Row {
        name: "syncs-between-passes",
        args: "--output-format=json --name=a --ioengine=null --rw=write --size=64k --bs=4k --fsync=4 --loops=3",
        fio: &[Accepted, Job("/sync/lat_ns/N", "13")],
        fiord: &[Accepted, Job("/sync/lat_ns/N", "11")],
        ..ROW
    },
    // divergence: a sync in a job with several files
    Row {
        name: "syncs-of-two-files",
        args: "--name=a --filename=f:g --rw=write --size=64k --bs=4k --fsync=1 --write_iolog=log",
        fio: &[],
        fiord: &[
            Accepted,
            Is("each sync follows a write of its file", |ran| {
                let log = ran.file("log")?;
                let lines: Vec<&str> =
                    log.lines().filter(|line| line.contains("write") || line.contains("sync")).collect();
                let file = |line: &str| line.split(' ').nth(1).map(str::to_string);
                let syncs = lines.windows(2).filter(|pair| pair[1].contains("sync"));
                Ok(!lines.is_empty()
                    && syncs.clone().count() > 8
                    && syncs.into_iter().all(|pair| file(pair[0]) == file(pair[1])))
            }),
        ],
        ..ROW
    },
    // divergence: `rw=write:4k` with an `offset`
    Row {
        name: "stride-with-an-offset",
        args: "--output-format=json --name=a --ioengine=null --rw=write:4k --size=64k --offset=64k --bs=4k",
        fio: &[Accepted, Job("/write/total_ios", "8")],
        fiord: &[Accepted, Job("/write/total_ios", "16")],
        ..ROW
    },
    Row {
        name: "stride-without-an-offset",
        args: "--output-format=json --name=a --ioengine=null --rw=write:4k --size=64k --bs=4k",
        fio: &[Accepted, Job("/write/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "16")],
        ..ROW
    },
    // divergence: `rw=randread:8` of a file that is not a multiple
    Row {
        name: "several-in-a-row-before-a-rest",
        args: "--output-format=json --name=a --ioengine=null --rw=randread:8 --size=1026k --bs=4k",
        fio: &[Accepted, Job("/read/total_ios", "204")],
        fiord: &[Accepted, Job("/read/total_ios", "257")],
        ..ROW
    },
    // divergence: `file_append` with `loops` or `io_size`
    Row {
        name: "file_append-with-loops",
        args: "--output-format=json --name=a --filename=f --rw=write --size=64k --bs=4k --file_append=1 --loops=2",
        fio: &[Accepted, Job("/write/total_ios", "16"), File("f", 65_536)],
        fiord: &[Accepted, Job("/write/total_ios", "32"), File("f", 65_536)],
        ..ROW
    },
    // divergence: `unlink_each_loop` with loops that end within a file
    Row {
        name: "unlink_each_loop-within-a-file",
        args: "--output-format=json --name=a --filename=f --rw=write --size=64k --bs=4k --number_ios=7 --loops=2 \
               --unlink_each_loop=1",
        fio: &[Accepted, Job("/write/total_ios", "14"), NoFile("f")],
        fiord: &[Accepted, Job("/write/total_ios", "14"), File("f", 65_536)],
        ..ROW
    },
    // divergence: `verify_only` with `unlink_each_loop`
    Row {
        name: "verify_only-with-unlink_each_loop",
        args: "--output-format=json --name=a --filename=f --rw=write --size=64k --bs=4k --loops=2 --verify=null \
               --verify_only=1 --unlink_each_loop=1",
        files: &[Bytes("f", 65_536)],
        fio: &[Refused, Job("/error", "5"), Is("the file is empty", |ran| Ok(bytes(ran, "f")?.is_empty()))],
        fiord: &[
            Accepted,
            Job("/read/total_ios", "16"),
            Is("the file is there", |ran| Ok(bytes(ran, "f")?.len() == 65_536)),
        ],
        ..ROW
    },
    // divergence: a failed I/O
    Row {
        name: "failed-io",
        args: "--output-format=json --name=a --filename=/dev/full --rw=write --bs=4k --size=64k --continue_on_error=write",
        fio: &[
            Job("/write/total_ios", "1"),
            Job("/write/io_bytes", "0"),
            Job("/write/clat_ns/N", "0"),
            Job("/total_err", "1"),
        ],
        fiord: &[
            Job("/write/total_ios", "0"),
            Job("/write/io_bytes", "0"),
            Job("/write/clat_ns/N", "0"),
            Job("/total_err", "1"),
        ],
        ..ROW
    },
    // divergence: a shorter file of the same name
    Row {
        name: "shorter-file",
        args: "--name=a --filename=f --rw=write --size=64k --io_size=4k --bs=4k",
        files: &[Bytes("f", 32_768)],
        fio: &[
            Accepted,
            Is("a new file", |ran| Ok(bytes(ran, "f")?.iter().skip(4096).all(|byte| *byte == 0))),
        ],
        fiord: &[
            Accepted,
            Is("the same file", |ran| Ok(bytes(ran, "f")?[4096..32_768].iter().all(|byte| *byte > 0))),
        ],
        ..ROW
    },
    // divergence: `number_ios` with `time_based`
    Row {
        name: "number-with-a-runtime",
        args: "--output-format=json --name=a --ioengine=null --size=1m --number_ios=7 --rate_iops=100 --time_based --runtime=300ms",
        fio: &[Accepted, Is("it continues", |ran| Ok(figure(&ran.jobs()?[0], "read", "total_ios") > 7))],
        fiord: &[Accepted, Job("/read/total_ios", "7")],
        ..ROW
    },
    // divergence: `iodepth_batch_complete_min=0` alone
    Row {
        name: "completions-are-polled",
        args: "--output-format=json --name=a --ioengine=libaio --direct=1 --iodepth=8 --iodepth_batch_complete_min=0 --rw=randread --bs=4k --size=1m",
        fio: &[
            Accepted,
            Is("a depth of 1", |ran| Ok(ran.jobs()?[0]["iodepth_level"]["1"].as_f64() > Some(90.0))),
        ],
        fiord: &[
            Accepted,
            Is("a depth of 8", |ran| Ok(ran.jobs()?[0]["iodepth_level"]["8"].as_f64() > Some(50.0))),
        ],
        ..ROW
    },
    // divergence: `runtime` that expires during a pause
    Row {
        name: "runtime-ends-in-a-pause",
        args: "--output-format=json --name=a --ioengine=null --size=1m --thinktime=4s --time_based --runtime=200ms",
        fio: &[
            Accepted,
            Is("it ends with the pause", |ran| Ok(ran.jobs()?[0]["job_runtime"].as_u64() >= Some(3900))),
        ],
        fiord: &[
            Accepted,
            Is("it ends on time", |ran| Ok(ran.jobs()?[0]["job_runtime"].as_u64() < Some(2500))),
        ],
        ..ROW
    },
    // divergence: `cpus_allowed` and `numa_cpu_nodes`
    Row {
        name: "processors-and-nodes",
        args: "--name=a --ioengine=null --size=64k --cpus_allowed=0 --numa_cpu_nodes=0 '--exec_prerun=grep Cpus_allowed_list /proc/self/status'",
        fio: &[Accepted, Is("those of the node", runs_on_the_node)],
        fiord: &[Accepted, Is("those of the node", runs_on_the_node)],
        ..ROW
    },
    // divergence: `zonemode=zbd` with `verify_only`
    Row {
        name: "zones-verified-by-a-writer",
        args: "--output-format=json --name=a --filename=data --rw=write --size=64k --bs=4k --zonemode=zbd --zonesize=16k --verify=crc32c --verify_only",
        files: &[Bytes("data", 65_536)],
        fio: &[Job("/read/total_ios", "1")],
        fiord: &[Refused, Prints("verify_only")],
        ..ROW
    },
    Row {
        name: "zones-verified-by-a-state",
        args: "--name=a --filename=data --rw=read --size=64k --bs=4k --zonemode=zbd --zonesize=16k --verify=crc32c --verify_state_load=1",
        files: &[Bytes("data", 65_536)],
        fiord: &[Refused, Prints("verify_state_load")],
        ..ROW
    },
    Row {
        name: "zones-verified-with-trims",
        args: "--name=a --filename=data --rw=write --size=64k --bs=4k --zonemode=zbd --zonesize=16k --verify=crc32c --trim_percentage=5",
        files: &[Bytes("data", 65_536)],
        fiord: &[Refused, Prints("trim_percentage")],
        ..ROW
    },
    // divergence: `trim_percentage` with `verify_backlog`
    Row {
        name: "trims-before-a-backlog",
        args: "--output-format=json --name=a --filename={device} --rw=trimwrite --size=256k --bs=4k --verify=crc32c --verify_backlog=8 --trim_percentage=100 --trim_backlog=32",
        fio: &[Accepted, Job("/trim/total_ios", "64")],
        fiord: &[Accepted, Job("/trim/total_ios", "128")],
        ..ROW
    },
];

/// Whether a command of the job ran on all processors of the first node.
fn runs_on_the_node(ran: &Ran) -> Result<bool, String> {
    let node = "/sys/devices/system/node/node0/cpulist";
    let processors = std::fs::read_to_string(node).map_err(|error| format!("{node}: {error}"))?;
    Ok(ran.file("a.prerun.txt")?.trim_end().ends_with(&format!(":\t{}", processors.trim())))
}
