//! Targets, sizes and combinations of options, before anything runs.

use super::row::Given::{Bytes, Text};
use super::row::Seen::{Accepted, File, Is, Job, Omits, Prints, Refused};
use super::row::{ROW, Row, bytes};

/// Rows of the section "Planning".
pub const ROWS: &[Row] = &[
    // divergence: `filename` in `[global]` and in a job
    Row {
        name: "filename-twice",
        args: "--output-format=json j.fio",
        files: &[Text("j.fio", "[global]\nfilename=f\n[a]\nrw=write\nsize=128k\nfilename=g\n")],
        fio: &[Accepted, File("f", 65_536), File("g", 65_536)],
        fiord: &[Accepted, File("f", 65_536), File("g", 65_536), Prints("filename")],
        ..ROW
    },
    // divergence: `directory` with an absolute `filename`
    Row {
        name: "directory-and-absolute-filename",
        args: "--name=a --rw=write --size=64k --directory=sub --filename=/x/y",
        files: &[Text("sub/.keep", "")],
        fio: &[Accepted, File("sub/x/y", 65_536)],
        fiord: &[Accepted, File("sub/x/y", 65_536)],
        ..ROW
    },
    // divergence: `opendir` on an empty directory
    Row {
        name: "opendir-of-nothing",
        args: "--name=a --rw=read --opendir=.",
        fio: &[Refused, Prints("size")],
        fiord: &[Refused, Prints("holds no files")],
        ..ROW
    },
    // divergence: `bssplit` with sizes that are not multiples
    Row {
        name: "bssplit-of-other-multiples",
        args: "--output-format=json --name=a --ioengine=null --size=1200k --bssplit=4k/50:6k/50",
        fio: &[Accepted, Job("/read/total_ios", "300")],
        fiord: &[
            Accepted,
            Is("some are longer", |ran| {
                Ok(ran.jobs()?[0]["read"]["total_ios"].as_u64().is_some_and(|ios| (220..280).contains(&ios)))
            }),
        ],
        ..ROW
    },
    // divergence: trims on a regular file
    Row {
        name: "trim-of-a-file",
        args: "--name=a --rw=trim --size=64k --filename=f",
        files: &[Bytes("f", 65_536)],
        fio: &[Refused, Prints("Inappropriate ioctl for device")],
        fiord: &[Accepted, Is("a hole", |ran| Ok(bytes(ran, "f")? == [0; 65_536]))],
        ..ROW
    },
    Row {
        name: "trim-of-a-file-that-is-not-there",
        args: "--output-format=json --name=a --rw=trim --size=64k --filename=f",
        fio: &[],
        fiord: &[Accepted, File("f", 65_536), Job("/trim/total_ios", "16")],
        ..ROW
    },
    // divergence: `size=-1m`
    Row {
        name: "negative-size",
        args: "--parse-only --name=a --ioengine=null --size=-1m",
        fio: &[Accepted],
        fiord: &[Refused, Prints("is negative")],
        ..ROW
    },
    Row {
        name: "negative-offset",
        args: "--parse-only --name=a --ioengine=null --size=1m --offset=-1",
        fio: &[Accepted],
        fiord: &[Refused, Prints("-1")],
        ..ROW
    },
    // divergence: `runtime=100sec`
    Row {
        name: "runtime-in-sec",
        args: "--output-format=json --name=a --ioengine=null --size=64k --rate_iops=100 --runtime=100sec",
        fio: &[
            Accepted,
            Is("it ends at once", |ran| Ok(ran.jobs()?[0]["read"]["total_ios"].as_u64() < Some(8))),
        ],
        fiord: &[Accepted, Job("/read/total_ios", "16")],
        ..ROW
    },
    // divergence: `size=150%`
    Row {
        name: "size-of-more-than-all",
        args: "--parse-only --name=a --filename=f --size=150%",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted],
        fiord: &[Refused, Prints("150%")],
        ..ROW
    },
    // divergence: `cpus_allowed=foo`
    Row {
        name: "processors-that-are-no-number",
        args: "--parse-only --name=a --ioengine=null --size=64k --cpus_allowed=foo",
        fio: &[Accepted],
        fiord: &[Refused, Prints("foo")],
        ..ROW
    },
    // divergence: an engine that does not exist
    Row {
        name: "engine-and-other-problems",
        args: "--name=a --ioengine=warp --size=64k --name=b --bs=zz",
        fio: &[Refused],
        fiord: &[Refused, Prints("warp"), Prints("zz")],
        ..ROW
    },
    // divergence: combinations that have no effect
    Row {
        name: "options-without-effect",
        args: "--name=a --ioengine=null --size=64k --log_offset=1 --zoneskip=4k --random_distribution=zipf:1.2 --thinktime_blocks=4",
        fio: &[
            Accepted,
            Omits("log_offset"),
            Omits("zoneskip"),
            Omits("random_distribution"),
            Omits("thinktime_blocks"),
        ],
        fiord: &[
            Accepted,
            Prints("log_offset"),
            Prints("zoneskip"),
            Prints("random_distribution"),
            Prints("thinktime_blocks"),
        ],
        ..ROW
    },
];
