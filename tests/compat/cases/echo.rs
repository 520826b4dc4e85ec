//! The echo of options in JSON: as typed, where typed (C8, C9).
//!
//! Invariant: every job here is a short one on the null engine.

use fiord_compat::compare::{echo, success};
use fiord_compat::{Case, case};

const LINES: &[(&str, &str)] = &[
    ("own", "--name=a --ioengine=null --rw=randread --bs=4k --size=64k"),
    ("global-and-own", "--ioengine=null --size=64k --bs=4k --name=a --rw=read --name=b --rw=write --bs=8k"),
    ("as-typed", "--name=a --ioengine=null --rw=read --bs=4KIB --size=0x10000 --runtime=2s"),
    ("alias", "--name=a --ioengine=null --readwrite=read --blocksize=4k --size=64k"),
    ("abbreviated", "--name=a --ioeng=null --rw=read --bs=4k --size=64k"),
    ("flags", "--name=a --ioengine=null --rw=read --bs=4k --size=64k --thread --norandommap"),
    (
        "flag-with-value",
        "--name=a --ioengine=null --rw=read --bs=4k --size=64k --thread=1 --group_reporting=1",
    ),
    ("numjobs", "--name=a --ioengine=null --rw=read --bs=4k --size=64k --numjobs=2"),
    (
        "group_reporting",
        "--name=a --ioengine=null --rw=read --bs=4k --size=64k --numjobs=2 --group_reporting",
    ),
    ("iodepth", "--name=a --ioengine=null --rw=read --bs=4k --size=64k --iodepth=8"),
    ("per-direction", "--name=a --ioengine=null --rw=randrw --bs=4k,8k --size=64k --rwmixread=70"),
    ("bssplit", "--name=a --ioengine=null --rw=randrw --bssplit=4k/50:8k/50 --size=64k"),
    ("description", "--name=a '--description=Two words' --ioengine=null --rw=read --size=64k"),
    ("twice", "--name=a --ioengine=null --rw=read --bs=4k --bs=8k --size=64k"),
    ("separate-words", "-name a -ioengine null -rw read -bs 4k -size 64k"),
    ("percentile_list", "--name=a --ioengine=null --rw=read --size=64k --percentile_list=50:99:99.9"),
];

const FILES: &[(&str, &str)] = &[
    ("file", "[global]\nioengine=null\nsize=64k\n[a]\nrw=read\nbs=4k\n[b]\nrw=randwrite\n"),
    ("file-bare", "[global]\nioengine=null\nsize=64k\nthread\n[a]\nstonewall\nrw=read\n"),
    ("file-variable", "[a]\nioengine=null\nsize=${COMPAT_SIZE}\nrw=read\n"),
    ("file-arithmetic", "[a]\nioengine=null\nsize=16*$pagesize\nrw=read\n"),
    ("file-keyword", "[a]\nioengine=null\nsize=64k\nbs=$pagesize\nrw=read\n"),
    ("file-jobname", "[a]\nioengine=null\nsize=64k\nrw=read\nfilename=x.$jobname\n"),
    ("file-quoted", "[a]\nioengine=null\nsize=64k\nrw=read\nname=\"a name\"\n"),
    ("file-spaces", "[a]\nioengine=null\n  size=64k\nrw =read\n"),
    ("file-two-globals", "[global]\nioengine=null\nsize=64k\n[a]\nrw=read\n[global]\nbs=8k\n[b]\nrw=write\n"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let lines =
        LINES.iter().map(|(name, line)| case(format!("echo/{name}"), format!("--output-format=json {line}")));
    let files = FILES.iter().map(|(name, text)| {
        case(format!("echo/{name}"), "--output-format=json job.fio")
            .text("job.fio", *text)
            .env("COMPAT_SIZE", "64k")
    });
    lines.chain(files).map(|case| case.check(success).check(echo)).collect()
}
