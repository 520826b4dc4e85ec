//! Job files, variables and sums, the command line, and values.

use super::row::Given::{Bytes, Text};
use super::row::Seen::{Accepted, File, Is, Job, Jobs, NoFile, Omits, Prints, Refused};
use super::row::{ROW, Row};
use fiord_compat::Ran;
use fiord_compat::compare::figure;

/// Rows of the section "Parsing".
pub const ROWS: &[Row] = &[
    // divergence: `[` alone
    Row {
        name: "header-without-a-name",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[\nrw=read\nsize=64k\n")],
        fio: &[Refused],
        fiord: &[Refused, Prints("name")],
        ..ROW
    },
    // divergence: `[global_x]`
    Row {
        name: "header-that-begins-with-global",
        args: "--output-format=json j.fio",
        files: &[Text("j.fio", "[global]\nioengine=null\nsize=64k\n[global_x]\nbs=8k\n[a]\n")],
        fio: &[Accepted, Jobs(&["a"]), Job("/read/total_ios", "8")],
        fiord: &[Accepted, Jobs(&["global_x", "a"]), Job("/read/total_ios", "8"), Prints("[global] section")],
        ..ROW
    },
    // divergence: bytes `EF BB BF` at the start
    Row {
        name: "byte-order-mark",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "\u{feff}[a]\nrw=read\nsize=64k\n")],
        fio: &[Refused],
        fiord: &[Accepted],
        ..ROW
    },
    // divergence: a NUL byte
    Row {
        name: "nul-byte",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nrw=read\0x\nsize=64k\n")],
        fio: &[Accepted],
        fiord: &[Refused, Prints("NUL byte")],
        ..ROW
    },
    // divergence: blanks at either end of `filename`
    Row {
        name: "filename-with-blanks",
        args: "--name=a --rw=write --size=64k '--filename=  f  '",
        fio: &[Accepted, File("f", 65_536)],
        fiord: &[Accepted, File("f", 65_536)],
        ..ROW
    },
    Row {
        name: "filename-with-a-comment-on-the-command-line",
        args: "--name=a --rw=write --size=64k --filename=f;g#h",
        fio: &[Accepted, File("f", 65_536)],
        fiord: &[Accepted, File("f", 65_536)],
        ..ROW
    },
    // divergence: a job name with `;`
    Row {
        name: "prerun-of-a-job-with-a-blank",
        args: "'--name=a b' --ioengine=null --size=64k '--exec_prerun=echo one'",
        fio: &[Accepted, NoFile("a b.prerun.txt")],
        fiord: &[Accepted, File("a b.prerun.txt", 4)],
        ..ROW
    },
    // divergence: a section in an included file
    Row {
        name: "included-section",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nsize=64k\ninclude inc.fio\n"), Text("inc.fio", "[b]\nsize=4k\n")],
        fio: &[Accepted],
        fiord: &[Refused, Prints("inc.fio:1:1: error: an included file cannot begin")],
        ..ROW
    },
    // divergence: `include  FILE` (two blanks)
    Row {
        name: "include-and-two-blanks",
        args: "--showcmd j.fio",
        files: &[Text("j.fio", "[a]\nsize=64k\ninclude  inc.fio\n"), Text("inc.fio", "bs=8k\n")],
        fio: &[Omits("--bs=8k")],
        fiord: &[Accepted, Prints("--bs=8k")],
        ..ROW
    },
    // divergence: where an included file is looked for
    Row {
        name: "include-is-looked-for-here-first",
        args: "--showcmd sub/j.fio",
        files: &[
            Text("sub/j.fio", "[a]\nsize=64k\ninclude inc.fio\ninclude other.fio\n"),
            Text("inc.fio", "bs=8k\n"),
            Text("sub/inc.fio", "bs=16k\n"),
            Text("sub/other.fio", "iodepth=3\n"),
        ],
        fio: &[Accepted, Prints("--bs=8k"), Prints("--iodepth=3")],
        fiord: &[Accepted, Prints("--bs=8k"), Prints("--iodepth=3")],
        ..ROW
    },
    // divergence: order of a section's settings
    Row {
        name: "order-of-settings",
        args: "--showcmd j.fio",
        files: &[Text(
            "j.fio",
            "[a]\nhipri\nfilename=f\nioengine=io_uring\nsize=1m\nlockfile=none\nunit_base=8\nloops=1\nkb_base=1000\n",
        )],
        fio: &[
            Accepted,
            Prints(
                "--unit_base=8 --kb_base=1000 --ioengine=io_uring --size=1m --loops=1 --filename=f --hipri",
            ),
        ],
        fiord: &[
            Accepted,
            Prints(
                "--unit_base=8 --kb_base=1000 --ioengine=io_uring --size=1m --loops=1 --filename=f --hipri",
            ),
        ],
        ..ROW
    },
    // divergence: `${VAR}` left of the `=`
    Row {
        name: "variable-as-a-name",
        args: "--output-format=json j.fio",
        files: &[Text("j.fio", "[a]\nioengine=null\n${COMPAT_KEY}=${COMPAT_COUNT}m\n")],
        fio: &[Accepted, Job("/read/io_bytes", "2097152")],
        fiord: &[Accepted, Job("/read/io_bytes", "2097152")],
        ..ROW
    },
    // divergence: `${VAR}` not set
    Row {
        name: "variable-not-set",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nsize=${COMPAT_UNSET}\n")],
        fio: &[Refused],
        fiord: &[Refused, Prints("COMPAT_UNSET")],
        ..ROW
    },
    Row {
        name: "variable-not-set-in-a-text",
        args: "j.fio",
        files: &[Text("j.fio", "[a]\nioengine=null\nsize=64k\ndescription=x${COMPAT_UNSET}y\n")],
        fio: &[Accepted, Prints("Description  : [xy]"), Omits("COMPAT_UNSET")],
        fiord: &[Accepted, Prints("Description  : [xy]"), Prints("COMPAT_UNSET")],
        ..ROW
    },
    // divergence: `$ncpus`, `$mb_memory`, `$pagesize` on the command line
    Row {
        name: "keyword-on-the-command-line",
        args: "--parse-only --name=a --size=64k --bs=$pagesize",
        fio: &[Refused],
        fiord: &[Accepted],
        ..ROW
    },
    // divergence: `0x10*$ncpus`
    Row {
        name: "sum-with-a-hexadecimal-number",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nsize=0x10*$pagesize\n")],
        fio: &[Refused],
        fiord: &[Refused, Prints("0x10")],
        ..ROW
    },
    Row {
        name: "sum-with-a-unit",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nsize=$pagesize*1024k\n")],
        fio: &[Refused],
        fiord: &[Refused, Prints("1024k")],
        ..ROW
    },
    // divergence: letters in sums
    Row {
        name: "sum-with-letters",
        args: "--parse-only j.fio",
        files: &[Text("j.fio", "[a]\nsize=FF*$pagesize\n")],
        fio: &[Accepted],
        fiord: &[Refused, Prints("FF")],
        ..ROW
    },
    // divergence: keywords in text and lists
    Row {
        name: "keyword-in-a-file-name",
        args: "j.fio",
        files: &[Text("j.fio", "[a]\nrw=write\nsize=64k\nfilename=d/$pagesize\n")],
        fio: &[NoFile("d/4096")],
        fiord: &[Accepted, File("d/4096", 65_536)],
        ..ROW
    },
    // divergence: `10*10`, without a keyword
    Row {
        name: "product-without-parentheses",
        args: "--output-format=json --name=a --ioengine=null --size=1m --number_ios=10*10",
        fio: &[Accepted, Job("/read/total_ios", "10")],
        fiord: &[Accepted, Job("/read/total_ios", "10"), Prints("10*10")],
        ..ROW
    },
    // divergence: options after a job file
    Row {
        name: "option-after-a-job-file",
        args: "--output-format=json j.fio --bs=8k",
        files: &[Text("j.fio", "[j]\nioengine=null\nsize=64k\n")],
        fio: &[Accepted, Jobs(&["j"]), Job("/read/total_ios", "8")],
        fiord: &[Accepted, Jobs(&["j"]), Job("/read/total_ios", "8")],
        ..ROW
    },
    Row {
        name: "option-after-a-name-and-a-job-file",
        args: "--output-format=json --name=a --ioengine=null --size=64k j.fio --bs=8k",
        files: &[Text("j.fio", "[j]\nioengine=null\nsize=64k\n")],
        fio: &[Accepted, Jobs(&["a", "j"]), Job("/read/total_ios", "8")],
        fiord: &[Accepted, Jobs(&["a", "j"]), Job("/read/total_ios", "8")],
        ..ROW
    },
    // divergence: several job files
    Row {
        name: "globals-of-the-command-line-and-two-job-files",
        args: "--output-format=json --bs=8k j.fio k.fio",
        files: &[
            Text("j.fio", "[global]\nioengine=null\nsize=64k\n[j]\n"),
            Text("k.fio", "[k]\nioengine=null\nsize=64k\n"),
        ],
        fio: &[Jobs(&["j", "k"]), Is("the first has larger blocks", |ran| Ok(reads(ran)? == [8, 16]))],
        fiord: &[
            Jobs(&["j", "k"]),
            Is("the first has larger blocks", |ran| Ok(reads(ran)? == [8, 16])),
            Prints("bs does not apply to k.fio"),
        ],
        ..ROW
    },
    // divergence: `"global options"` in JSON
    Row {
        name: "global-options-of-two-job-files",
        args: "--output-format=json j.fio k.fio",
        files: &[
            Text("j.fio", "[global]\nioengine=null\nsize=64k\n[j]\n"),
            Text("k.fio", "[global]\nioengine=null\nsize=128k\n[k]\n"),
        ],
        fio: &[Is("the globals of the last file", |ran| Ok(ran.json()?["global options"]["size"] == "128k"))],
        fiord: &[Is("the globals of the last file", |ran| {
            Ok(ran.json()?["global options"]["size"] == "128k")
        })],
        ..ROW
    },
    // divergence: an option given twice
    Row {
        name: "option-given-twice",
        args: "--output-format=json --name=a --ioengine=null --bs=4k --bs=8k --size=64k",
        fio: &[Prints("\"bs\" : \"4k\""), Prints("\"bs\" : \"8k\"")],
        fiord: &[Prints("\"bs\" : \"4k\""), Prints("\"bs\" : \"8k\"")],
        ..ROW
    },
    // divergence: flags without a value
    Row {
        name: "flag-in-the-echo",
        args: "--output-format=json --name=a --ioengine=null --size=64k --thread",
        fio: &[Job("/job options/thread", "null")],
        fiord: &[Job("/job options/thread", "\"\"")],
        ..ROW
    },
    // divergence: `--name=global_x`
    Row {
        name: "name-that-begins-with-global",
        args: "--output-format=json --ioengine=null --size=64k --name=global_x --bs=8k --name=a",
        fio: &[Accepted, Jobs(&["a"]), Job("/read/total_ios", "8")],
        fiord: &[Accepted, Jobs(&["global_x", "a"]), Job("/read/total_ios", "8")],
        ..ROW
    },
    // divergence: `--section=b --name=a --bs=4k`
    Row {
        name: "options-of-a-job-left-out",
        args: "--output-format=json --section=b --name=a --bs=8k j.fio",
        files: &[Text("j.fio", "[b]\nioengine=null\nsize=64k\n")],
        fio: &[Accepted, Jobs(&["b"]), Job("/read/total_ios", "8")],
        fiord: &[Accepted, Jobs(&["b"]), Job("/read/total_ios", "16")],
        ..ROW
    },
    // divergence: job files between wrong options
    Row {
        name: "wrong-options-around-a-job-file",
        args: "--name=a --bs=zz j.fio --rw=up",
        files: &[Text("j.fio", "[j]\niodepth=many\n")],
        fio: &[Refused, Prints("zz"), Omits("many"), Omits("=up")],
        fiord: &[Refused, Prints("zz"), Prints("many"), Prints("up")],
        ..ROW
    },
    // divergence: `--hipri` before `--ioengine=io_uring`
    Row {
        name: "option-of-an-engine-before-it",
        args: "--parse-only --name=a --size=64k --hipri --ioengine=io_uring",
        fio: &[Refused],
        fiord: &[Refused, Prints("hipri"), Prints("ioengine")],
        ..ROW
    },
    // divergence: `--readonly` after the options of a job
    Row {
        name: "readonly-after-a-job",
        args: "--parse-only --name=a --rw=write --size=64k --readonly",
        fio: &[Accepted],
        fiord: &[Refused, Prints("readonly")],
        ..ROW
    },
    // divergence: `runtime=10min`
    Row {
        name: "runtime-of-letters-that-are-no-unit",
        args: "--name=a --ioengine=null --size=1m --time_based --runtime=10min",
        fio: &[Accepted],
        fiord: &[Accepted, Prints("10min"), Prints("is read as 10us")],
        ..ROW
    },
    // divergence: `startdelay=5-10m`
    Row {
        name: "startdelay-with-one-unit",
        args: "--name=a --ioengine=null --size=64k --startdelay=80-100ms",
        fio: &[Accepted],
        fiord: &[Accepted],
        ..ROW
    },
    // divergence: `size=1m,64k`
    Row {
        name: "size-of-two-values",
        args: "--output-format=json --name=a --ioengine=null --size=1m,64k",
        fio: &[Accepted, Job("/read/io_bytes", "65536")],
        fiord: &[Accepted, Job("/read/io_bytes", "65536"), Prints("1m,64k")],
        ..ROW
    },
    // divergence: `profile=` in a job file
    Row {
        name: "profile-in-a-job-file",
        args: "--output-format=json j.fio",
        files: &[Text("j.fio", "[a]\nioengine=null\nsize=64k\nprofile=tiobench\n")],
        fio: &[Accepted, Jobs(&["a"])],
        fiord: &[Accepted, Jobs(&["a"]), Prints("profile")],
        ..ROW
    },
    // divergence: `--profile=tiobench` with `--size`
    Row {
        name: "tiobench-and-its-options",
        args: "--profile=tiobench --filesize=64k --io_size=64k --block=8k --output-format=json",
        fio: &[Accepted, Job("/write/total_ios", "16")],
        fiord: &[Accepted, Job("/write/total_ios", "8")],
        ..ROW
    },
    // divergence: `--profile=act`, `large-block-op-kbytes`
    Row {
        name: "act-of-small-large-blocks",
        args: "--profile=act --device-names=dev --large-block-op-kbytes=256 --test-duration=1",
        files: &[Bytes("dev", 1 << 20)],
        fio: &[Is("a division by zero", |ran| Ok(ran.status == 128 + 8))],
        fiord: &[Prints("act-write-dev: (g=0): rw=randwrite, bs=(R) 256B-256B, (W) 256B-256B")],
        ..ROW
    },
    Row {
        name: "act-of-too-large-blocks",
        args: "--profile=act --device-names=dev --large-block-op-kbytes=2000000 --test-duration=1",
        files: &[Bytes("dev", 1 << 20)],
        fiord: &[Refused, Prints("less than one write")],
        ..ROW
    },
    // divergence: `--profile=act`, while it runs
    Row {
        name: "act-as-it-runs",
        args: "--profile=act --device-names=dev --test-duration=1",
        files: &[Bytes("dev", 1 << 20)],
        fio: &[Prints("slice")],
        fiord: &[Accepted, Omits("slice")],
        ..ROW
    },
    // divergence: options that only modify another one
    Row {
        name: "option-that-only-modifies-another",
        args: "--output-format=json --name=a --ioengine=null --size=64k --replay_no_stall=1",
        fio: &[Accepted, Job("/read/total_ios", "16")],
        fiord: &[Accepted, Job("/read/total_ios", "16"), Prints("replay_no_stall")],
        ..ROW
    },
    // divergence: `write_barrier`, `unique_filename`
    Row {
        name: "options-without-effect-on-linux",
        args: "--output-format=json --name=a --ioengine=null --size=64k --unique_filename=1 --write_barrier=4",
        fio: &[Accepted],
        fiord: &[Accepted, Prints("unique_filename"), Prints("write_barrier")],
        ..ROW
    },
    // divergence: very long section names
    Row {
        name: "long-name",
        args: "--output-format=json j.fio",
        files: &[Text(
            "j.fio",
            "[global]\nioengine=null\nsize=64k\n[\
             nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
             nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
             nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn]\n",
        )],
        fio: &[
            Accepted,
            Is("cut off", |ran| Ok(ran.jobs()?[0]["jobname"].as_str().is_some_and(|name| name.len() < 256))),
        ],
        fiord: &[
            Accepted,
            Is("whole", |ran| Ok(ran.jobs()?[0]["jobname"].as_str().is_some_and(|name| name.len() == 300))),
        ],
        ..ROW
    },
];

/// The reads of each job.
fn reads(ran: &Ran) -> Result<Vec<u64>, String> {
    Ok(ran.jobs()?.iter().map(|job| figure(job, "read", "total_ios")).collect())
}
