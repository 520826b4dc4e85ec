//! fio commands from engineers' articles, with smaller sizes, times and other paths.
//!
//! Invariant: each runs in normal text, terse and JSON, and options are as they were typed.

use fiord_compat::compare::{counts, echo, files, json_shape, mix, normal, success, terse};
use fiord_compat::{Case, case};

/// An LSM store: large synced writes together with block-sized reads.
const LSM: &str = "[global]
ioengine=psync
fdatasync=1
thread=1
runtime=60

[write128]
rw=write
bs=128k
size=2M
filename=PingCAP-write128
name=\"PingCAP-write-128\"

[randread128]
rw=randread
bs=128k
size=2M
filename=PingCAP-randread128
name=\"PingCAP-randread-128\"

[write256]
rw=write
bs=256k
size=2M
filename=PingCAP-write256
name=\"PingCAP-write-256\"

[randread256]
rw=randread
bs=256k
size=2M
filename=PingCAP-randread256
name=\"PingCAP-randread-256\"
";

/// Commands; `DIRECT` becomes 1 or 0 and yields two cases.
const COMMANDS: &[(&str, &str)] = &[
    (
        "node-4k-randrw",
        "-filename=disk -direct=DIRECT -ioengine=libaio -iodepth=32 -bs=4k -size=4m -readwrite=randrw -numjobs=1 \
         -runtime=30 -name=4k_randrw_test -group_reporting",
    ),
    (
        "node-4k-randread",
        "-filename=disk -direct=DIRECT -ioengine=libaio -iodepth=32 -bs=4k -size=4m -readwrite=randread -numjobs=1 \
         -runtime=30 -name=4k_randread_test -group_reporting",
    ),
    (
        "node-64k-randwrite",
        "-filename=disk -direct=DIRECT -ioengine=libaio -iodepth=32 -bs=64k -size=4m -readwrite=randwrite -numjobs=1 \
         -runtime=30 -name=64k_randwrite_test -group_reporting",
    ),
    (
        "node-1m-read",
        "-filename=disk -direct=DIRECT -ioengine=libaio -iodepth=32 -bs=1M -size=4m -readwrite=read -numjobs=1 \
         -runtime=30 -name=1M_read_test -group_reporting",
    ),
    (
        "node-1m-write",
        "-filename=disk -direct=DIRECT -ioengine=libaio -iodepth=32 -bs=1M -size=4m -readwrite=write -numjobs=1 \
         -runtime=30 -name=1M_write_test -group_reporting",
    ),
    (
        "node-rwmixwrite",
        "-filename=disk -direct=DIRECT -rw=randrw -rwmixwrite=30 -bs=4k -size=4m -name=mix -zero_buffers",
    ),
    (
        "node-nrfiles",
        "-directory=. -direct=DIRECT -rw=randwrite -nrfiles=8 -bs=4k -size=1m -name=files -lockmem=1m",
    ),
    ("node-two-disks", "--filename=disk:other --direct=DIRECT --rw=randread --bs=4k --size=2m --name=two"),
    (
        "etcd",
        "--rw=write --ioengine=sync --fdatasync=1 --directory=test-data --size=230k --bs=2300 --name=mytest",
    ),
    (
        "rotating-seqwrite",
        "--name=seqwrite --rw=write --bs=1M --size=4M --numjobs=4 --iodepth=32 --direct=DIRECT --runtime=60 --group_reporting",
    ),
    (
        "rotating-randread",
        "--name=randread --rw=randread --bs=4k --size=1M --numjobs=4 --iodepth=64 --direct=DIRECT --runtime=60 --group_reporting",
    ),
    (
        "rotating-mixrw",
        "--name=mixrw --rw=randrw --rwmixread=70 --bs=4k --size=1M --numjobs=4 --iodepth=32 --direct=DIRECT --runtime=60 \
         --group_reporting",
    ),
    ("rotating-io_uring", "--name=test --ioengine=io_uring --rw=write --size=4M --bs=1M"),
    (
        "oracle-randread",
        "-filename=1_16_889610461.dbf -direct=DIRECT -iodepth 1 -thread -rw=randread -ioengine=psync -bs=16k -size=1M \
         -numjobs=10 -runtime=100 -group_reporting -name=mytest",
    ),
    (
        "oracle-randwrite",
        "-filename=1_16_889610461.dbf -direct=DIRECT -iodepth 1 -thread -rw=randwrite -ioengine=psync -bs=16k -size=1M \
         -numjobs=10 -runtime=100 -group_reporting -name=mytest",
    ),
    (
        "oracle-randrw",
        "-filename=1_16_889610461.dbf -direct=DIRECT -iodepth 1 -thread -rw=randrw -ioengine=psync -bs=16k -size=1M \
         -numjobs=10 -runtime=100 -group_reporting -name=mytest",
    ),
    (
        "oracle-read",
        "-filename=1_16_889610461.dbf -direct=DIRECT -iodepth 1 -thread -rw=read -ioengine=psync -bs=16k -size=1M \
         -numjobs=10 -runtime=100 -group_reporting -name=mytest",
    ),
    (
        "oracle-write",
        "-filename=1_16_889610461.dbf -direct=DIRECT -iodepth 1 -thread -rw=write -ioengine=psync -bs=16k -size=1M \
         -numjobs=10 -runtime=100 -group_reporting -name=mytest",
    ),
];

/// The three outputs of one command.
fn outputs(name: &str, args: &str) -> Vec<Case> {
    let of = |kind: &str, format: &str| {
        case(format!("workloads/{name}/{kind}"), format!("{format} {args}"))
            .text("lsm.fio", LSM)
            .text("test-data/.keep", "")
            .check(success)
    };
    let json = of("json", "--output-format=json").check(json_shape).check(echo).check(files);
    let json = if args.contains("randrw") { json.check(mix) } else { json.check(counts) };
    vec![of("normal", "").check(normal), of("terse", "--minimal").check(terse), json]
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let mut cases = outputs("lsm", "lsm.fio");
    cases.extend(outputs("lsm-direct", "--direct=1 lsm.fio"));
    for (name, line) in COMMANDS {
        if line.contains("DIRECT") {
            cases.extend(outputs(&format!("{name}-direct"), &line.replace("DIRECT", "1")));
        }
        cases.extend(outputs(name, &line.replace("DIRECT", "0")));
    }
    for block in ["4k", "64k", "1M", "16M"] {
        let line = format!("--name=bs --filename=disk --rw=read --bs={block} --size=16M --direct=1");
        cases.extend(outputs(&format!("sweep-bs-{block}"), &line));
    }
    for threads in [1, 2, 8, 32] {
        let line = format!(
            "--name=t --filename=disk --rw=write --bs=64k --size=1M --numjobs={threads} --group_reporting --thread"
        );
        cases.extend(outputs(&format!("sweep-threads-{threads}"), &line));
    }
    cases
}
