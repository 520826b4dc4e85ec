//! Verification, and the states and triggers that belong to it.

use super::row::Given::{Bytes, Text};
use super::row::Seen::{Accepted, Is, Job, NoFile, Omits, Prints, Refused};
use super::row::{ROW, Row, bytes};
use fiord_compat::Ran;
use fiord_compat::compare::figure;

/// Rows of the section "Verification".
pub const ROWS: &[Row] = &[
    // divergence: an interval that does not divide the block
    Row {
        name: "interval-that-does-not-divide-the-block",
        args: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --verify_interval=3000",
        fio: &[
            Accepted,
            Omits("verify_interval"),
            Is("a header for each block", has_a_header_for_each_block),
        ],
        fiord: &[
            Accepted,
            Prints("3000 bytes do not divide all blocks: each header covers 4096 bytes"),
            Is("a header for each block", has_a_header_for_each_block),
        ],
        ..ROW
    },
    Row {
        name: "damage-beyond-an-interval-that-does-not-divide-the-block",
        args: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --verify_interval=3000 --do_verify=0",
        then: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=read --verify_interval=3000 '--exec_prerun=printf X | dd of=f bs=1 seek=3900 conv=notrunc status=none'",
        fio: &[Refused, Prints("crc32c: verify failed at file f offset 0, length 4096")],
        fiord: &[Refused, Prints("crc32c: verify failed at file f offset 0, length 4096")],
        ..ROW
    },
    // divergence: `verify_offset` inside the header
    Row {
        name: "offset-inside-the-header",
        args: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --verify_offset=41",
        fio: &[Refused, Prints("crc32c: verify failed at file f offset 0")],
        fiord: &[Refused, Prints("verify_offset: 41 is below 48")],
        ..ROW
    },
    Row {
        name: "offset-beyond-the-block",
        args: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --verify_offset=4096",
        fio: &[Prints("got signal=6")],
        fiord: &[Refused, Prints("allowed here: 52 to 4044")],
        ..ROW
    },
    // divergence: `verify=pattern` without
    Row {
        name: "pattern-without-a-pattern",
        args: "--name=v --filename=f --rw=write --size=64k --bs=4k --verify=pattern",
        fio: &[Prints("Assertion")],
        fiord: &[Refused, Prints("verify_pattern"), Omits("Assertion")],
        ..ROW
    },
    // divergence: `number_ios` with `verify_backlog`
    Row {
        name: "number-with-a-backlog",
        args: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --number_ios=6 --verify_backlog=4",
        fio: &[Accepted, Job("/write/total_ios", "4")],
        fiord: &[Accepted, Job("/write/total_ios", "6"), Job("/read/total_ios", "6")],
        ..ROW
    },
    // divergence: `number_ios` with `verify_backlog`
    Row {
        name: "io_size-with-a-backlog",
        args: "--output-format=json --name=v --filename=f --rw=write --size=16k --io_size=40k --bs=2k --verify=crc32c --verify_backlog=2",
        fio: &[Accepted, Job("/write/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "20"), Job("/read/total_ios", "20")],
        ..ROW
    },
    // divergence: `loops` with `experimental_verify`
    Row {
        name: "loops-with-experimental_verify",
        args: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --loops=2 --experimental_verify=1",
        fio: &[Accepted, Job("/write/total_ios", "16"), Job("/read/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "32"), Job("/read/total_ios", "32")],
        ..ROW
    },
    Row {
        name: "loops-with-experimental_verify-and-a-backlog",
        args: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --loops=3 --experimental_verify=1 --verify_backlog=4",
        fio: &[Accepted, Job("/write/total_ios", "32"), Job("/read/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "48"), Job("/read/total_ios", "48")],
        ..ROW
    },
    // divergence: `verify_only` with `time_based`
    Row {
        name: "verify_only-of-a-time",
        args: "--name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --do_verify=0",
        then: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --verify_only --time_based --runtime=1",
        fio: &[Accepted, Job("/read/total_ios", "16")],
        fiord: &[Refused, Prints("does not know which writes the earlier run did")],
        ..ROW
    },
    // divergence: `verify_only` with `do_verify=0`
    Row {
        name: "verify_only-without-do_verify",
        args: "--name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --do_verify=0",
        then: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --verify_only --do_verify=0",
        fio: &[Accepted, Job("/read/total_ios", "0")],
        fiord: &[Accepted, Job("/write/total_ios", "0"), Job("/read/total_ios", "16")],
        ..ROW
    },
    // divergence: `verify_only` with writes
    Row {
        name: "verify_only",
        args: "--name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --do_verify=0",
        then: "--output-format=json --name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --verify_only",
        fio: &[Accepted, Job("/write/total_ios", "16"), Job("/read/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "0"), Job("/read/total_ios", "16")],
        ..ROW
    },
    // divergence: `verify_fatal=1` with
    Row {
        name: "fatal-and-passed-over",
        args: "--output-format=json --name=v --filename=f --rw=read --size=64k --bs=4k --verify=md5 --verify_fatal=1 --continue_on_error=verify",
        files: &[Bytes("f", 65_536)],
        fio: &[Accepted, Job("/read/total_ios", "16")],
        fiord: &[Refused, Job("/read/total_ios", "1")],
        ..ROW
    },
    Row {
        name: "fatal-and-passed-over-while-reading-back",
        args: "--name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --do_verify=0",
        then: "--output-format=json --name=v --filename=f --size=64k --bs=4k --verify=crc32c --rw=write --verify_only --verify_fatal=1 --continue_on_error=verify '--exec_prerun=printf X | dd of=f bs=1 seek=100 conv=notrunc status=none'",
        fio: &[Accepted, Job("/read/total_ios", "1")],
        fiord: &[Refused, Job("/read/total_ios", "1")],
        ..ROW
    },
    // divergence: `io_size` larger than the files
    Row {
        name: "io_size-of-two-passes",
        args: "--output-format=json --name=v --filename=f --rw=write --size=64k --io_size=128k --bs=4k --verify=crc32c",
        fio: &[Accepted, Job("/write/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "32"), Job("/read/total_ios", "32")],
        ..ROW
    },
    Row {
        name: "loops-of-a-reader",
        args: "--name=v --filename=f --rw=write --size=64k --bs=4k --verify=crc32c --do_verify=0",
        then: "--output-format=json --name=v --filename=f --rw=read --size=64k --bs=4k --verify=crc32c --loops=2",
        fio: &[Accepted, Job("/read/total_ios", "16")],
        fiord: &[Accepted, Job("/read/total_ios", "32")],
        ..ROW
    },
    // divergence: `--trigger-file`, a job without `verify`
    Row {
        name: "trigger-without-verify",
        args: "--name=a --filename=f --rw=write --size=64m --bs=4k --ioengine=psync --rate_iops=1000 --trigger-file=fire",
        files: &[Text("fire", "")],
        fio: &[Is("a state is saved", |ran| {
            Ok(ran.files()?.iter().any(|(name, _)| name == "local-a-0-verify.state"))
        })],
        fiord: &[NoFile("local-a-0-verify.state"), NoFile("fire")],
        ..ROW
    },
    // divergence: `--trigger-file` that exists before
    Row {
        name: "trigger-that-is-there",
        args: "--output-format=json --name=v --filename=f --rw=write --size=64m --bs=4k --ioengine=psync --rate_iops=1000 --verify=crc32c --trigger-file=fire",
        files: &[Text("fire", "")],
        fio: &[],
        fiord: &[
            Is("it fires after the first I/O", |ran| Ok(figure(&ran.jobs()?[0], "write", "total_ios") > 0)),
            Is("and before the last", |ran| Ok(figure(&ran.jobs()?[0], "write", "total_ios") < 16_384)),
            Is("a state is saved", |ran| {
                Ok(ran.files()?.iter().any(|(name, _)| name == "local-v-0-verify.state"))
            }),
        ],
        ..ROW
    },
];

/// Whether each block of 4 KiB of the file has a header of its whole length.
fn has_a_header_for_each_block(ran: &Ran) -> Result<bool, String> {
    let bytes = bytes(ran, "f")?;
    let begins = |block: &[u8]| block[..2] == [0xca, 0xac] && block[4..8] == [0, 0x10, 0, 0];
    Ok(bytes.len() == 65_536 && bytes.chunks(4096).all(begins))
}
