//! Every `rw` mode and its suffixes: counts and bytes of jobs that end at their size.
//!
//! Invariant: figures that are not random must be equal; random ones must have equal sums.

use fiord_compat::compare::{counts, files, issued, mix, shares, success};
use fiord_compat::{Case, case};

const PLAIN: &[&str] = &["read", "write", "randread", "randwrite"];
const TRIMS: &[&str] = &["trim", "randtrim"];
const MIXES: &[&str] = &["rw", "readwrite", "randrw"];
const TRIM_MIXES: &[&str] = &["trimwrite", "randtrimwrite"];

/// Modes without random choices, with suffixes and related options.
const EXACT: &[(&str, &str)] = &[
    ("read-every-4-blocks", "--rw=read:4"),
    ("read-with-holes", "--rw=read:4k"),
    ("write-with-holes", "--rw=write:8k"),
    ("holes-and-io_size-of-a-pass", "--rw=read:2k --size=1m --io_size=1m"),
    ("holes-and-io_size-of-two-loops", "--rw=read:2k --size=1m --io_size=1m --loops=2"),
    ("holes-and-io_size-in-percent", "--rw=read:2k --io_size=90%"),
    ("ends-of-files-and-io_size-of-a-pass", "--rw=read --size=66k --io_size=66k --nrfiles=3"),
    ("read-backwards", "--rw=read:-8k"),
    ("randread-8-in-a-row", "--rw=randread:8"),
    ("randwrite-8-in-a-row", "--rw=randwrite:8"),
    ("sequencer-identical", "--rw=randread:4 --rw_sequencer=identical --number_ios=64"),
    ("norandommap", "--rw=randread --norandommap"),
    ("softrandommap", "--rw=randread --softrandommap=1"),
    ("randrepeat-off", "--rw=randread --randrepeat=0"),
    ("allrandrepeat", "--rw=randwrite --allrandrepeat=1"),
    ("randseed", "--rw=randread --randseed=42"),
    ("generator-lfsr", "--rw=randread --random_generator=lfsr"),
    ("generator-lfsr-norandommap", "--rw=randread --random_generator=lfsr --norandommap"),
    ("generator-tausworthe64", "--rw=randread --random_generator=tausworthe64"),
    ("percentage_random", "--rw=randread --percentage_random=50"),
    ("percentage_random-0", "--rw=randread --percentage_random=0 --size=1026k"),
    ("percentage_random-0-of-whole-blocks", "--rw=randread --percentage_random=0 --size=1m --loops=2"),
    (
        "percentage_random-0-of-several-files",
        "--rw=randwrite --percentage_random=0 --size=66k --nrfiles=3 --loops=2",
    ),
];

const MIX_SHARES: &[(&str, &str)] = &[
    ("rwmixread-70", "--rw=randrw --rwmixread=70"),
    ("rwmixread-100", "--rw=randrw --rwmixread=100"),
    ("rwmixread-0", "--rw=randrw --rwmixread=0"),
    ("rwmixwrite-30", "--rw=randrw --rwmixwrite=30"),
    ("rwmixwrite-90-sequential", "--rw=rw --rwmixwrite=90"),
    ("both-mixes-last-wins", "--rw=randrw --rwmixread=20 --rwmixwrite=30"),
    ("mix-norandommap", "--rw=randrw --norandommap"),
];

/// Mixes of many short passes: each continues the draws of the last one.
const TIMED_SHARES: &[(&str, &str)] = &[
    ("time_based-60-of-32-blocks", "--rw=randrw --rwmixread=60 --bs=256k --size=8m"),
    ("time_based-50-of-16-blocks", "--rw=randrw --rwmixread=50 --bs=1m --size=16m"),
    ("time_based-70-of-1-block", "--rw=randrw --rwmixread=70 --bs=64k --size=64k"),
    ("time_based-70-of-3-blocks-in-order", "--rw=rw --rwmixread=70 --bs=64k --size=192k"),
    ("time_based-30-of-drawn-blocks", "--rw=randrw --rwmixread=30 --bs=64k --size=256k --norandommap"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let null = |name: &str, args: &str| {
        let args = format!("--output-format=json --name=a --ioengine=null --bs=4k --size=8m {args}");
        case(format!("modes/null/{name}"), args).check(success)
    };
    let file = |name: &str, args: &str| {
        let args = format!("--output-format=json --name=a --ioengine=psync --bs=4k --size=2m {args}");
        case(format!("modes/file/{name}"), args).check(success)
    };
    let mut cases = Vec::new();
    for mode in PLAIN.iter().chain(TRIMS) {
        cases.push(null(mode, &format!("--rw={mode}")).check(counts));
        let args = format!("--name=a --ioengine=null --bs=4k --size=1m --rw={mode}");
        cases.push(case(format!("modes/issued/{mode}"), args).check(success).check(issued));
    }
    // divergence: shares of a random mix
    for mode in MIXES {
        cases.push(null(mode, &format!("--rw={mode}")).check(mix));
        cases.push(file(mode, &format!("--rw={mode}")).check(mix).check(files));
    }
    for mode in TRIM_MIXES {
        cases.push(null(mode, &format!("--rw={mode}")).check(mix));
    }
    for mode in PLAIN {
        cases.push(file(mode, &format!("--rw={mode}")).check(counts).check(files));
    }
    for (name, args) in EXACT {
        cases.push(null(name, args).check(counts));
    }
    for (name, args) in MIX_SHARES {
        cases.push(null(name, args).check(mix));
    }
    for (name, args) in TIMED_SHARES {
        cases.push(null(name, &format!("{args} --time_based --runtime=500ms")).check(shares));
    }
    for mode in ["read", "write", "trim", "randtrim", "trimwrite", "randtrimwrite"] {
        let args = format!(
            "--output-format=json --name=a --filename={{device}} --bs=4k --size=4m --direct=1 --rw={mode}"
        );
        cases.push(
            case(format!("modes/loop/{mode}"), args).on_loop_device(8 << 20).check(success).check(counts),
        );
    }
    for unified in ["none", "mixed", "both", "1"] {
        let args = format!("--rw=randrw --unified_rw_reporting={unified}");
        let case = null(&format!("unified-{unified}"), &args);
        cases.push(case.check(fiord_compat::compare::json_shape));
    }
    cases
}
