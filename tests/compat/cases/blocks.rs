//! Every form of block size.
//!
//! Invariant: random sizes are compared by their total bytes.

use fiord_compat::compare::{bytes_within, counts, ios_within, mix, success};
use fiord_compat::{Case, case};

/// Forms without random choices.
const EXACT: &[(&str, &str)] = &[
    ("bs-512", "--rw=read --bs=512"),
    ("bs-1k", "--rw=write --bs=1k"),
    ("bs-2300", "--rw=write --bs=2300"),
    ("bs-1m", "--rw=read --bs=1m"),
    ("bs-not-dividing-size", "--rw=read --bs=48k"),
    ("bs-read-only-given", "--rw=read --bs=8k,16k"),
    ("bs-write-of-two", "--rw=write --bs=8k,16k"),
    ("bs-trim-of-three", "--rw=trim --bs=8k,16k,32k"),
    ("bs-gap", "--rw=write --bs=,16k"),
    ("blockalign", "--rw=randread --bs=4k --blockalign=16k"),
    ("ba-alias", "--rw=randread --bs=4k --ba=8k"),
    ("bs-random-unaligned-size", "--rw=randread --bs=4k --size=1000k"),
    ("bs-is-seq-rand", "--rw=randread --norandommap --bs=16k,4k --bs_is_seq_rand=1"),
    ("bs-is-seq-rand-sequential", "--rw=read --bs=4k,64k --bs_is_seq_rand=1"),
];

/// Forms with random sizes: arguments, the largest block, the share by which counts may differ.
const DRAWN: &[(&str, &str, u64, f64)] = &[
    ("bsrange", "--rw=randread --bsrange=4k-16k", 16 << 10, 0.15),
    ("bsrange-sequential", "--rw=read --bsrange=1k-8k", 8 << 10, 0.15),
    ("bsrange-512-2048", "--rw=randread --bsrange=512-2048", 2048, 0.15),
    ("bssplit", "--rw=randwrite --bssplit=4k/50:8k/30:16k/20", 16 << 10, 0.15),
    ("bssplit-open-shares", "--rw=randread --bssplit=4k/50:8k/:16k/", 16 << 10, 0.15),
    ("bssplit-of-one", "--rw=read --bssplit=8k/100", 8 << 10, 0.0),
    ("bssplit-write-half", "--rw=write --bssplit=4k/100,16k/100", 16 << 10, 0.0),
    ("bs_unaligned", "--rw=randread --bsrange=1k-8k --bs_unaligned=1 --norandommap", 8 << 10, 0.15),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let null = |name: &str, args: &str| {
        let args = format!("--output-format=json --name=a --ioengine=null --size=4m {args}");
        case(format!("blocks/{name}"), args).check(success)
    };
    let exact = EXACT.iter().map(|(name, args)| null(name, args).check(counts));
    let drawn = DRAWN.iter().map(|&(name, args, block, share)| {
        null(name, args).check(bytes_within(block)).check(ios_within(share))
    });
    let mixed = [("mix-same-bs", "--rw=randrw --bs=8k"), ("mix-sequential", "--rw=rw --bs=64k --size=16m")];
    exact.chain(drawn).chain(mixed.iter().map(|(name, args)| null(name, args).check(mix))).collect()
}
