//! rados and rbd against a cluster of one monitor and one daemon that keeps its objects in memory, beside Debian's fio; and
//! `fiord check ceph-osd` beside a daemon that keeps them in a file.
//!
//! Invariant: what is in the cluster is read and written by Ceph's own `rados` and `rbd` as well.

use std::ffi::OsStr;

use fiord_servers::ceph::Cluster;
use fiord_servers::{Place, Server, counts, fiord, needs, number, output_of};
use fiord_testing::agreement::{Figures, assert_agree};
use fiord_testing::need;
use serde_json::Value;

use crate::engine::{Subject, repeats};

/// Calls this with an engine on the cluster.
fn with<R>(cluster: &Cluster, words: &str, run: impl FnOnce(&Subject<'_>) -> R) -> R {
    let configuration = cluster.configuration();
    let variables = [("CEPH_CONF", configuration.as_os_str()), ("CEPH_ARGS", OsStr::new(""))];
    let place = Place { directory: cluster.monitor.directory.path(), variables: &variables };
    let mut args: Vec<String> = words.split(' ').map(str::to_string).collect();
    if words.contains("rados") {
        // divergence: `ioengine=rados` without `conf`
        args.push(format!("--conf={}", configuration.display()));
    }
    run(&Subject { place, args })
}

/// Contents of a file in the directory of the monitor.
fn bytes(cluster: &Cluster, name: &str) -> Vec<u8> {
    std::fs::read(cluster.monitor.directory.join(name)).unwrap()
}

const RADOS: &str = "--ioengine=rados --pool=p";
const RBD: &str = "--ioengine=rbd --pool=p --rbdname=image";

/// Ends a case that lacks one of the programs.
macro_rules! needs_ceph {
    () => {
        needs!("ceph-mon" of "ceph-mon", "ceph-osd" of "ceph-osd", "rbd" of "ceph-common", "fio" of "fio");
    };
}

#[test]
fn counts_are_those_of_fio() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    with(&cluster, RADOS, |rados| {
        rados.counts_are_those_of_fio(&[
            "--rw=write --bs=64k --size=4m --iodepth=16",
            "--rw=read --bs=64k --size=4m --iodepth=16",
            "--rw=randwrite --bs=4k --size=1m --iodepth=8 --nrfiles=4",
            "--rw=randread --bs=4k --size=1m --iodepth=1 --nrfiles=4 --touch_objects=0",
            "--rw=randrw --rwmixread=100 --bs=8k --size=1m --iodepth=4",
            "--rw=trim --bs=64k --size=1m --iodepth=4",
        ]);
    });
    with(&cluster, RBD, |rbd| {
        rbd.counts_are_those_of_fio(&[
            "--rw=write --bs=1m --iodepth=4",
            "--rw=read --bs=1m --iodepth=4",
            "--rw=randwrite --bs=4k --size=1m --iodepth=16",
            "--rw=write --bs=16k --size=1m --iodepth=1 --fsync=16",
            "--rw=randread --bs=4k --size=1m --iodepth=1 --busy_poll=1",
            "--rw=randwrite --bs=4k --offset=8m --size=2m --io_size=1m --iodepth=8",
            "--rw=trim --bs=64k --size=4m --iodepth=4",
        ]);
    });
}

#[test]
fn syncs_and_the_end_of_the_image_are_those_of_the_job() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    // divergence: `fsync=N` or `fdatasync=N` with `rados`
    // divergence: `fsync=N` with `rbd` or `gfapi_async` and a queue
    // divergence: `fdatasync=N` with `rbd`, `gfapi` or `gfapi_async`
    let write = "--rw=write --bs=16k --size=1m --iodepth=8";
    for engine in [RADOS, RBD] {
        for sync in ["fsync", "fdatasync"] {
            let ran = with(&cluster, engine, |engine| engine.fiord(&format!("{write} --{sync}=16")));
            let job = ran.job().unwrap();
            assert_eq!((ran.code, counts(&job)[1]), (Some(0), (64, 1 << 20)), "{engine} {sync}: {ran:?}");
            assert_eq!(number(&job, "sync", "total_ios"), 3, "{engine} {sync}: {ran:?}");
        }
    }
    // divergence: `size` beyond the end of an image (`rbd`)
    let ran = with(&cluster, RBD, |rbd| rbd.fiord("--rw=write --bs=1m --offset=62m --size=4m"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (2, 2 << 20)), "{ran:?}");
    assert_eq!(cluster.ceph("rbd", "info p/image").unwrap().matches("size 64 MiB").count(), 1);
}

#[test]
fn data_are_what_cephs_programs_write_and_read() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    let root = &cluster.monitor.directory;
    let write = "--rw=randwrite --bs=4k --size=1m --iodepth=16 --buffer_pattern=\"fiord!?\"";
    let ran = with(&cluster, RADOS, |rados| rados.fiord(&format!("--filename=object {write}")));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, 1 << 20)), "{ran:?}");
    cluster.ceph("rados", "-p p get object copy").unwrap();
    assert!(bytes(&cluster, "copy").len() == 1 << 20 && repeats(&bytes(&cluster, "copy"), b"fiord!?"));
    let ran = with(&cluster, RBD, |rbd| rbd.fiord(&format!("--offset=2m {write}")));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, 1 << 20)), "{ran:?}");
    cluster.ceph("rbd", "export p/image exported").unwrap();
    let exported = bytes(&cluster, "exported");
    assert!(exported.len() == 64 << 20 && repeats(&exported[2 << 20..3 << 20], b"fiord!?"));
    assert!(exported[..2 << 20].iter().chain(&exported[3 << 20..]).all(|byte| *byte == 0));
    // A file with headers, put there by Ceph's programs; then one with a byte that has changed.
    let verify = "--bs=4k --size=1m --iodepth=16 --verify=crc32c --verify_state_save=0";
    let file = format!("--name=a --filename=made --rw=write --do_verify=0 {verify}");
    let made = fiord_servers::fiord(root.path(), &file.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!(made.code, Some(0), "{made:?}");
    for (change, error) in [(0, 0), (1, 84)] {
        let mut bytes = bytes(&cluster, "made");
        bytes[123_456] ^= change;
        std::fs::write(root.join("made"), bytes).unwrap();
        cluster.ceph("rados", "-p p put object made").unwrap();
        cluster.ceph("rbd", "rm p/image").unwrap();
        cluster.ceph("rbd", "import made p/image").unwrap();
        for (engine, name) in [(RADOS, "--filename=object"), (RBD, "")] {
            let ran = with(&cluster, engine, |engine| engine.fiord(&format!("{name} --rw=read {verify}")));
            assert_eq!(ran.job().unwrap()["error"], error, "{engine}: {ran:?}");
        }
    }
    // Each program verifies what the other wrote.
    with(&cluster, RBD, |rbd| {
        let wrote = rbd.fiord(&format!("--rw=randwrite --do_verify=0 {verify} --verify_header_format=3.33"));
        let read = rbd.fio(&format!("--rw=randread {verify}"));
        assert_eq!((wrote.code, read.code), (Some(0), Some(0)), "{wrote:?} {read:?}");
        let wrote = rbd.fio(&format!("--rw=randwrite --do_verify=0 {verify}"));
        let read = rbd.fiord(&format!("--rw=randread {verify}"));
        assert_eq!((wrote.code, read.code), (Some(0), Some(0)), "{wrote:?} {read:?}");
    });
}

#[test]
fn a_cluster_that_has_stopped_does_not_hold_up_the_end() {
    // divergence: SIGINT while the server of
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    let signal = |all: bool, signal: fn(&Server) -> Result<(), String>| {
        signal(&cluster.daemon).unwrap();
        if all {
            signal(&cluster.monitor).unwrap();
        }
    };
    for all in [false, true] {
        for engine in [RADOS, RBD] {
            let words = "--rw=randrw --bs=4k --size=1m --iodepth=16";
            let (stop, go_on) = (|| signal(all, Server::freeze), || signal(all, Server::thaw));
            with(&cluster, engine, |engine| engine.ends_although_the_server_has_stopped(words, stop, go_on));
        }
    }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    for engine in [RADOS, RBD] {
        with(&cluster, engine, |engine| engine.loses_no_io_when_it_is_stopped("--iodepth=4"));
    }
}

// divergence: writes to an image before the job's first sync (`rbd`)
#[test]
fn a_pool_that_is_removed_ends_the_job_with_its_error() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    let words = "--rw=randwrite --bs=4k --size=1m --iodepth=4 --time_based --runtime=60";
    let running = [RADOS, RBD].map(|engine| with(&cluster, engine, |engine| engine.start_at_work(words)));
    cluster.ceph("ceph", "osd pool rm p p --yes-i-really-really-mean-it").unwrap();
    for running in running {
        let ran = running.wait().unwrap();
        let job = ran.job().unwrap();
        // The daemon knows nothing of the pool that the client has rights to, or the client that there is no pool.
        let is_gone = matches!(job["error"].as_i64(), Some(1 | 2));
        assert!(ran.code == Some(1) && is_gone, "{ran:?}");
        assert!(number(&job, "write", "total_ios") > 0, "{ran:?}");
    }
}

// divergence: a write beyond `osd_max_object_size` with `rados`
#[test]
fn a_write_that_the_cluster_refuses_fails_the_job() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    const OBJECT_BYTES_MAX: u64 = 128 << 20;
    let words = "--rw=write --bs=32m --size=160m";
    let [fio, fiord] = with(&cluster, RADOS, |rados| [rados.fio(words), rados.fiord(words)])
        .map(|ran| (ran.code, ran.job(), ran));
    let written = |job: &serde_json::Value| (job["error"].as_i64(), counts(job)[1]);
    assert_eq!((fio.0, written(&fio.1.unwrap())), (Some(0), (Some(0), (5, 160 << 20))), "{:?}", fio.2);
    let efbig = Some(27);
    assert_eq!(
        (fiord.0, written(&fiord.1.unwrap())),
        (Some(1), (efbig, (4, OBJECT_BYTES_MAX))),
        "{:?}",
        fiord.2
    );
    let objects = cluster.ceph("rados", "-p p ls").unwrap();
    for object in objects.lines().filter(|name| !name.starts_with("rbd_")) {
        let found = cluster.ceph("rados", &format!("-p p stat {object}")).unwrap();
        assert!(found.trim_end().ends_with(&format!("size {OBJECT_BYTES_MAX}")), "{found}");
    }
}

#[test]
fn jobs_give_back_what_they_took() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    with(&cluster, RADOS, |rados| rados.gives_back_what_jobs_took("--rw=randrw --size=32m", 10));
    with(&cluster, RBD, |rbd| rbd.gives_back_what_jobs_took("--rw=randrw --size=32m", 10));
}

#[test]
fn what_is_missing_is_named_and_an_excluded_client_fails() {
    needs_ceph!();
    let cluster = Cluster::start().unwrap();
    let refusal = |engine: &str, words: &str| {
        with(&cluster, engine, |engine| engine.refusal(&format!("{words} --rw=read --size=1m")))
    };
    // divergence: a pool, image or configuration that does not exist, with `rados` or `rbd`
    let pool = refusal("--ioengine=rados --pool=absent", "");
    assert!(pool.contains("there is no pool absent"), "{pool}");
    let image = refusal("--ioengine=rbd --pool=p --rbdname=absent", "");
    assert!(
        image.contains("the pool p has no image absent") && image.contains("rbd create p/absent"),
        "{image}"
    );
    // divergence: `touch_objects=0` and an object that does not exist
    let object = refusal(RADOS, "--touch_objects=0");
    assert!(object.contains("there is no such object"), "{object}");
    let conf = refusal(RADOS, "--conf=/nonexistent");
    assert!(conf.contains("there is no configuration file"), "{conf}");
    let running =
        with(&cluster, RBD, |rbd| rbd.start("--rw=randwrite --bs=4k --iodepth=4 --time_based --runtime=60"));
    let watcher = || {
        let status = cluster.ceph("rbd", "status p/image").unwrap();
        Some(status.split_once("watcher=")?.1.split(' ').next()?.to_string())
    };
    assert!(fiord_servers::eventually(|| watcher().is_some()));
    cluster.ceph("ceph", &format!("osd blocklist add {}", watcher().unwrap())).unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(108)), "{ran:?}");
    assert!(
        number(&job, "write", "total_ios") > 0 && format!("{ran:?}").contains("excluded this client"),
        "{ran:?}"
    );
}

/// Seconds of each side of one comparison.
const SECONDS: u32 = 3;

/// The mean time of a write of the check's one writer, in seconds.
fn fiord_mean(cluster: &Cluster) -> f64 {
    let directory = &cluster.monitor.directory;
    let binary = std::env::var("FIORD").unwrap();
    let shown = output_of(directory.path(), &binary, &["check", "ceph-osd", "--show-job"]).unwrap();
    directory.write("check.fio", &shown).unwrap();
    let time = format!("--runtime={SECONDS}");
    let args = ["check.fio", "--section=one-writer", &time, "--size=256m", "--unlink=1"];
    let job = fiord(directory.path(), &args).unwrap().job().unwrap();
    job["write"]["lat_ns"]["mean"].as_f64().unwrap() / 1e9
}

/// The syncs of a BlueStore so far, and the seconds that they took. Each commit of its database syncs the file of the
/// database's log, and also the log in which BlueFS writes the length of that file, in blocks of 4 KiB.
fn syncs(cluster: &Cluster) -> (f64, f64) {
    let counters: Value =
        serde_json::from_str(&cluster.ceph("ceph", "tell osd.0 perf dump").unwrap()).unwrap();
    let commits = &counters["bluestore"]["kv_commit_lat"];
    let number = |value: &Value| value.as_f64().unwrap();
    let log_blocks = number(&counters["bluefs"]["logged_bytes"]) / 4096.0;
    (number(&commits["avgcount"]) + log_blocks, number(&commits["sum"]))
}

/// The syncs of a BlueStore while one client writes objects, and their mean time in seconds.
fn syncs_of_writes(cluster: &Cluster) -> (f64, f64) {
    let before = syncs(cluster);
    cluster.ceph("rados", &format!("-p p bench {SECONDS} write -b 4096 -t 1 --no-cleanup")).unwrap();
    let after = syncs(cluster);
    let count = after.0 - before.0;
    (count, (after.1 - before.1) / count)
}

#[test]
fn syncs_of_a_daemon_take_as_long_as_the_synced_writes_of_the_check() {
    needs_ceph!();
    need!(fiord_testing::idle_machine());
    let cluster = Cluster::in_a_file().unwrap();
    need!(assert_agree(|| {
        let fiord = fiord_mean(&cluster);
        let (count, theirs) = syncs_of_writes(&cluster);
        let text = format!(
            "ceph-osd {:.3} ms on average of {count} syncs, fiord {:.3} ms",
            theirs * 1e3,
            fiord * 1e3
        );
        Figures { theirs, fiord, theirs_least: 0.0, text }
    }));
}
