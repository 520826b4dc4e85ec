//! What ends a job: sizes, counts, loops, offsets.
//!
//! Invariant: every job here ends without a time limit, at the same count in both programs.

use fiord_compat::compare::{counts, equal, files, success};
use fiord_compat::{Case, Pair, case};

const NULL: &[(&str, &str)] = &[
    ("io_size-smaller", "--rw=read --size=4m --io_size=1m"),
    ("io_size-larger", "--rw=read --size=1m --io_size=4m"),
    ("io_size-larger-random", "--rw=randread --size=1m --io_size=4m"),
    ("io_size-not-a-block", "--rw=read --size=1m --io_size=10000"),
    ("number_ios", "--rw=read --size=1m --number_ios=17"),
    ("number_ios-larger-than-size", "--rw=randread --size=64k --number_ios=100"),
    ("loops", "--rw=read --size=256k --loops=3"),
    ("loops-random", "--rw=randwrite --size=256k --loops=3"),
    ("loops-io_size", "--rw=read --size=256k --io_size=128k --loops=2"),
    ("numjobs", "--rw=read --size=256k --numjobs=3"),
    ("numjobs-grouped", "--rw=read --size=256k --numjobs=3 --group_reporting"),
    ("stonewall-groups", "--rw=read --size=256k --name=b --stonewall --rw=write --size=128k"),
    ("new_group", "--rw=read --size=256k --name=b --new_group --rw=write --size=128k --group_reporting"),
    ("nrfiles", "--rw=read --size=1m --nrfiles=4"),
    ("nrfiles-random", "--rw=randread --size=1m --nrfiles=8"),
    ("nrfiles-uneven", "--rw=read --size=1m --nrfiles=3"),
    ("size-not-a-block", "--rw=read --size=10000"),
    ("size-of-one-block", "--rw=read --size=4k"),
    ("offset", "--rw=read --size=1m --offset=64k"),
    ("offset_increment", "--rw=read --size=256k --offset_increment=256k --numjobs=2"),
    ("offset-percent", "--rw=read --filesize=1m --size=512k --offset=50%"),
    ("fsync-4", "--rw=write --size=256k --fsync=4"),
    ("fdatasync-1", "--rw=write --size=256k --fdatasync=1"),
    ("fsync-grouped", "--rw=write --size=256k --fsync=8 --numjobs=2 --group_reporting"),
    ("iodepth", "--rw=randread --size=1m --iodepth=16"),
    ("runtime-longer-than-size", "--rw=read --size=256k --runtime=10"),
    ("ramp_time-longer-than-size", "--rw=read --size=256k --ramp_time=5"),
    ("rate_iops", "--rw=read --size=64k --rate_iops=200"),
    ("rate", "--rw=write --size=64k --rate=1m"),
    ("rate-of-a-mix-without-writes", "--rw=rw --rwmixread=100 --size=64k --rate=1m"),
    ("rate-of-a-mix-without-reads", "--rw=rw --rwmixread=0 --size=64k --rate=1m"),
    // Long enough for the rate to be judged.
    ("rate_min-read", "--rw=read --size=7m --rate=2m --rate_min=1k"),
    ("rate_min-write", "--rw=write --size=7m --rate=2m --rate_min=1k"),
    ("rate_iops_min-mix", "--rw=rw --rwmixread=100 --size=7m --rate_iops=500 --rate_iops_min=10"),
    ("thinktime", "--rw=read --size=64k --thinktime=1000"),
    ("thread", "--rw=read --size=256k --thread"),
    ("wait_for", "--rw=read --size=64k --name=b --wait_for=a --rw=read --size=64k"),
    ("startdelay", "--rw=read --size=64k --startdelay=100ms"),
    ("gtod_reduce", "--rw=read --size=256k --gtod_reduce=1"),
    ("clocksource", "--rw=read --size=256k --clocksource=clock_gettime"),
    (
        "disable_lat",
        "--rw=read --size=256k --disable_lat=1 --disable_clat=1 --disable_slat=1 --disable_bw_measurement=1",
    ),
    ("description", "--rw=read --size=64k '--description=a few words'"),
    ("exitall", "--rw=read --size=64k --exitall"),
];

const FILES: &[(&str, &str)] = &[
    ("file-size-percent", "--rw=read --filename=given --size=50%"),
    ("file-size-100-percent", "--rw=randread --filename=given --size=100%"),
    ("file-size-from-file", "--rw=read --filename=given"),
    ("file-shorter-than-size", "--rw=read --filename=given --size=2m"),
    ("file-size-percent-of-filesize", "--rw=read --filename=new --filesize=1m --size=25%"),
    (
        "file-size-percent-of-filesize-written",
        "--rw=randwrite --filename=new --filesize=1m --size=50% --offset=768k",
    ),
    ("file-size-percent-of-smaller-filesize", "--rw=read --filename=given --filesize=512k --size=25%"),
    ("file-offset", "--rw=read --filename=given --offset=256k"),
    ("file-offset-percent", "--rw=read --filename=given --offset=25%"),
    ("file-offset-and-size", "--rw=read --filename=given --offset=256k --size=128k"),
    ("file-offset-align", "--rw=read --filename=given --offset=30% --offset_align=64k --size=64k"),
    ("file-direct-unaligned-sizes", "--rw=read --filename=given --direct=1 --bs_unaligned=1"),
    ("file-odd-size", "--rw=read --filename=odd"),
    ("file-odd-size-random", "--rw=randread --filename=odd"),
    ("file-append", "--rw=write --filename=given --size=64k --file_append=1"),
    ("file-overwrite", "--rw=write --filename=given --size=1m --overwrite=1"),
    ("file-write-beyond-end", "--rw=write --filename=odd --size=1m"),
    ("file-loops", "--rw=read --filename=given --loops=2"),
    ("file-io_size-beyond-end", "--rw=read --filename=given --io_size=3m"),
    ("file-two-lists", "--rw=read --filename=given:odd"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let null = NULL.iter().map(|(name, args)| {
        let args = format!("--output-format=json --ioengine=null --bs=4k --name=a {args}");
        case(format!("limits/{name}"), args).check(success).check(counts)
    });
    let files = FILES.iter().map(|(name, args)| {
        let args = format!("--output-format=json --ioengine=psync --bs=4k --name=a {args}");
        let case = case(format!("limits/{name}"), args).bytes("given", 1 << 20).bytes("odd", 10_000);
        case.check(success).check(counts).check(files)
    });
    // divergence: a job with `stats=0`
    let unreported = case(
        "limits/stats-off",
        "--output-format=json --ioengine=null --size=64k --name=a --name=b --stats=0",
    );
    let unreported = unreported.check(success).check(|pair: &Pair| {
        // fio leaves an entry without a name and with group -1.
        let names: Vec<_> = pair.fiord.jobs()?.iter().map(|job| job["jobname"].as_str()).collect();
        equal("jobs reported", vec![Some("a")], names)
    });
    null.chain(files).chain([unreported]).collect()
}
