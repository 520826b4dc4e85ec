//! The files of a job: their names, their sizes, and which of them remain.
//!
//! Invariant: names and sizes of all files left in the directory are equal.

use fiord_compat::compare::{counts, equal, files, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};

const JOBS: &[(&str, &str)] = &[
    ("default-name", "--rw=write --size=64k"),
    ("layout-before-read", "--rw=read --size=64k"),
    ("numjobs-names", "--rw=write --size=64k --numjobs=2"),
    ("nrfiles-names", "--rw=write --size=64k --nrfiles=3"),
    ("filename", "--rw=write --size=64k --filename=f"),
    ("filename-shared", "--rw=write --size=64k --filename=f --numjobs=2"),
    ("filename-list", "--rw=write --size=64k --filename=f:g"),
    ("filename-escaped-colon", "--rw=write --size=64k '--filename=f\\:g'"),
    ("filename_format", "--rw=write --size=64k --nrfiles=2 --filename_format=x.$jobname.$jobnum.$filenum"),
    ("filename_format-no-number", "--rw=write --size=64k --filename_format=x.$jobname"),
    ("filesize", "--rw=write --filesize=16k --nrfiles=4 --size=64k"),
    ("filesize-alone", "--rw=write --filesize=32k"),
    ("filesize-larger-than-io", "--rw=write --filesize=128k --io_size=64k --nrfiles=1"),
    ("directory", "--rw=write --size=64k --directory=sub"),
    ("directory-list", "--rw=write --size=64k --directory=sub:other --numjobs=2"),
    ("file-in-new-directory", "--rw=write --size=64k --filename=new/f"),
    ("file-in-directory", "--rw=write --size=64k --filename=sub/f"),
    ("unlink", "--rw=write --size=64k --unlink=1"),
    ("unlink_each_loop", "--rw=write --size=64k --loops=2 --unlink_each_loop=1"),
    ("create_only", "--rw=read --size=64k --create_only=1"),
    ("create_on_open", "--rw=write --size=64k --create_on_open=1"),
    ("create_serialize-off", "--rw=write --size=64k --create_serialize=0 --numjobs=2"),
    ("create_fsync-off", "--rw=write --size=64k --create_fsync=0"),
    ("openfiles", "--rw=randwrite --size=64k --nrfiles=4 --openfiles=2"),
    ("service-roundrobin", "--rw=write --size=64k --nrfiles=4 --file_service_type=roundrobin"),
    ("service-sequential", "--rw=write --size=64k --nrfiles=4 --file_service_type=sequential"),
    ("service-random", "--rw=write --size=64k --nrfiles=4 --file_service_type=random"),
    ("service-random-4", "--rw=write --size=64k --nrfiles=4 --file_service_type=random:4"),
    ("fallocate-none", "--rw=write --size=64k --fallocate=none"),
    ("fallocate-posix", "--rw=write --size=64k --fallocate=posix"),
    ("fallocate-keep", "--rw=write --size=64k --fallocate=keep"),
    ("fallocate-truncate", "--rw=write --size=64k --fallocate=truncate"),
    ("pre_read", "--rw=read --size=64k --pre_read=1"),
    ("fadvise-off", "--rw=randread --size=64k --fadvise_hint=0"),
    ("fadvise-random", "--rw=randread --size=64k --fadvise_hint=random"),
    ("invalidate-off", "--rw=read --size=64k --invalidate=0"),
    ("end_fsync", "--rw=write --size=64k --end_fsync=1"),
    ("fsync_on_close", "--rw=write --size=64k --fsync_on_close=1"),
    ("sync-1", "--rw=write --size=64k --sync=1"),
    ("sync-dsync", "--rw=write --size=64k --sync=dsync"),
    ("sync_file_range", "--rw=write --size=64k --sync_file_range=write:4"),
    ("overwrite", "--rw=randwrite --size=64k --overwrite=1"),
    ("zero_buffers", "--rw=write --size=64k --zero_buffers"),
    ("refill_buffers", "--rw=write --size=64k --refill_buffers"),
    ("buffer_pattern", "--rw=write --size=64k --buffer_pattern=0xdeadbeef"),
    ("buffer_compress", "--rw=write --size=64k --buffer_compress_percentage=50 --refill_buffers"),
    ("iomem-mmap", "--rw=write --size=64k --iomem=mmap"),
    ("iomem-shm", "--rw=write --size=64k --iomem=shm"),
    ("iomem_align", "--rw=write --size=64k --iomem_align=16k"),
    ("opendir", "--rw=read --opendir=full"),
    ("exec-prerun", "--rw=write --size=64k '--exec_prerun=touch ran'"),
    ("nice", "--rw=write --size=64k --nice=5"),
    ("prio", "--rw=write --size=64k --prio=4 --prioclass=2"),
    ("cpus_allowed", "--rw=write --size=64k --cpus_allowed=0"),
    ("cpumask", "--rw=write --size=64k --cpumask=1"),
    ("lockfile-exclusive", "--rw=write --size=64k --filename=f --numjobs=2 --lockfile=exclusive"),
    ("lockfile-readwrite", "--rw=randread --size=64k --filename=f --numjobs=2 --lockfile=readwrite"),
    (
        "lockfile-queued",
        "--rw=write --size=64k --numjobs=2 --lockfile=readwrite --ioengine=libaio --iodepth=4",
    ),
    ("write_hint", "--rw=write --size=64k --write_hint=short"),
];

/// Job files with `name` in sections, and logs.
const NAMED: &[(&str, &str)] = &[
    // divergence: `[a]` with `name=b`
    ("clones", "[a]\nname=b\nnumjobs=2\n"),
    ("grouped", "[a]\nname=b\nnumjobs=3\ngroup_reporting\n[c]\nname=d\n"),
    ("format", "[a]\nname=b\nnumjobs=2\nfilename_format=$jobname-$jobnum\n"),
    ("commands", "[a]\nname=b\nnumjobs=2\nexec_prerun=true\n"),
    // divergence: `name=` in `[global]`
    ("in-globals", "[global]\nname=g\n[a]\nnumjobs=2\n[b]\n"),
    ("twice", "[a]\nname=b\nname=c\nnumjobs=2\n"),
    ("awaited", "[a]\nname=b\nnumjobs=2\n[c]\nwait_for=b\n"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let of = |&(name, args): &(&str, &str)| {
        let args = format!("--output-format=json --ioengine=psync --bs=4k --name=a {args}");
        let case = case(format!("files/{name}"), args)
            .bytes("sub/.keep", 1)
            .bytes("other/.keep", 1)
            .bytes("full/one", 20_000)
            .bytes("full/two", 40_960);
        case.check(success).check(counts).check(files)
    };
    let named = |&(name, text): &(&str, &str)| {
        let case = case(format!("files/named-{name}"), "--output-format=json job.fio");
        let globals = "[global]\nrw=write\nsize=64k\nbs=4k\nwrite_iops_log=x\nlog_avg_msec=1000\n";
        case.text("job.fio", format!("{globals}{text}")).check(success).check(counts).check(names)
    };
    JOBS.iter().map(of).chain(NAMED.iter().map(named)).collect()
}

/// Equal names of the remaining files; logs differ in their figures.
fn names(pair: &Pair) -> Verdict {
    let names = |files: Vec<(String, u64)>| files.into_iter().map(|(name, _)| name).collect::<Vec<String>>();
    equal("files left", names(pair.fio.files()?), names(pair.fiord.files()?))
}
