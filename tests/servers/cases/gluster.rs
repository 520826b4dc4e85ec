//! gfapi and gfapi_async against a volume of one brick, beside Debian's fio.
//!
//! Invariant: what is in a file of the volume is read and written in the brick's directory as well.

use fiord_servers::gluster::{self, Volume};
use fiord_servers::{Place, counts, needs, number};
use fiord_testing::need;

use crate::engine::{Subject, repeats};

/// Calls this with an engine on the volume.
fn with<R>(volume: &Volume, name: &str, run: impl FnOnce(&Subject<'_>) -> R) -> R {
    let place = Place { directory: volume.server.directory.path(), variables: &[] };
    let args = [format!("--ioengine={name}"), "--volume=v".into(), format!("--brick={}", volume.address)];
    run(&Subject { place, args: args.to_vec() })
}

const ENGINES: [&str; 2] = ["gfapi", "gfapi_async"];

/// Ends a case that lacks one of the programs, or the right to start them.
macro_rules! needs_gluster {
    () => {
        needs!("glusterd" of "glusterfs-server", "gluster" of "glusterfs-cli", "fio" of "fio");
        need!(gluster::is_possible());
    };
}

#[test]
fn counts_are_those_of_fio() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    let jobs = [
        "--rw=write --bs=64k --size=4m --iodepth=16",
        "--rw=read --bs=64k --size=4m --iodepth=16",
        "--rw=write --bs=4k --size=1m --fsync=16",
        "--rw=randread --bs=4k --size=1m --nrfiles=4 --single-instance=1",
        "--rw=randwrite --bs=4k --offset=1m --size=2m --io_size=1m --iodepth=8",
    ];
    // All at once, on files of their own: the library takes ten seconds to leave a volume, in both programs.
    std::thread::scope(|scope| {
        for (number, words) in jobs.into_iter().enumerate() {
            for engine in ENGINES {
                let words = format!("{words} --filename_format=file-{number}-{engine}-$filenum");
                let volume = &volume;
                scope.spawn(move || with(volume, engine, |engine| engine.counts_are_those_of_fio(&[&words])));
            }
        }
    });
}

#[test]
fn syncs_and_trims_reach_every_file() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    // divergence: trims with `gfapi` or `gfapi_async`
    // divergence: `nrfiles` with `gfapi` or `gfapi_async`
    for engine in ENGINES {
        for (sync, count) in [("fsync", 15), ("fdatasync", 15)] {
            let words = format!("--rw=randwrite --bs=4k --size=1m --iodepth=8 --nrfiles=4 --{sync}=16");
            let ran = with(&volume, engine, |engine| engine.fiord(&words));
            let job = ran.job().unwrap();
            assert_eq!((ran.code, counts(&job)[1]), (Some(0), (256, 1 << 20)), "{words}: {ran:?}");
            assert_eq!(number(&job, "sync", "total_ios"), count, "{words}: {ran:?}");
        }
        for file in 0..4 {
            let bytes = std::fs::read(volume.file(&format!("a.0.{file}"))).unwrap();
            assert!(
                bytes.len() == 256 << 10
                    && !bytes.chunks(4096).any(|block| block.iter().all(|byte| *byte == 0))
            );
        }
        let ran =
            with(&volume, engine, |engine| engine.fiord("--filename=a.0.0 --rw=trim --bs=64k --size=128k"));
        assert_eq!((ran.code, counts(&ran.job().unwrap())[2]), (Some(0), (2, 128 << 10)), "{ran:?}");
        let bytes = std::fs::read(volume.file("a.0.0")).unwrap();
        assert!(
            bytes.len() == 256 << 10
                && repeats(&bytes[..128 << 10], &[0])
                && !repeats(&bytes[128 << 10..], &[0])
        );
    }
}

#[test]
fn data_are_those_of_the_bricks_file() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    for engine in ENGINES {
        let name = format!("file-{engine}");
        let write = "--rw=randwrite --bs=4k --size=1m --iodepth=16 --buffer_pattern=\"fiord!?\"";
        let ran = with(&volume, engine, |engine| engine.fiord(&format!("--filename={name} {write}")));
        assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, 1 << 20)), "{ran:?}");
        let bytes = std::fs::read(volume.file(&name)).unwrap();
        assert!(bytes.len() == 1 << 20 && repeats(&bytes, b"fiord!?"), "{engine}");
        // Each program verifies what the other wrote; then a byte of the brick's file changes.
        let verify =
            format!("--filename={name} --bs=4k --size=1m --iodepth=16 --verify=crc32c --verify_state_save=0");
        with(&volume, engine, |engine| {
            let wrote =
                engine.fiord(&format!("--rw=randwrite --do_verify=0 {verify} --verify_header_format=3.33"));
            let read = engine.fio(&format!("--rw=randread {verify}"));
            assert_eq!((wrote.code, read.code), (Some(0), Some(0)), "{wrote:?} {read:?}");
            let wrote = engine.fio(&format!("--rw=randwrite --do_verify=0 {verify}"));
            let read = engine.fiord(&format!("--rw=randread {verify}"));
            assert_eq!((wrote.code, read.code), (Some(0), Some(0)), "{wrote:?} {read:?}");
        });
        let mut bytes = std::fs::read(volume.file(&name)).unwrap();
        bytes[123_456] ^= 1;
        std::fs::write(volume.file(&name), bytes).unwrap();
        let read = with(&volume, engine, |engine| engine.fiord(&format!("--rw=read {verify}")));
        assert_eq!(read.job().unwrap()["error"], 84, "{read:?}");
    }
}

#[test]
fn a_brick_that_has_stopped_does_not_hold_up_the_end() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    for engine in ENGINES {
        let words = "--rw=randrw --bs=4k --size=1m --iodepth=16";
        let (stop, go_on) = (|| volume.server.freeze().unwrap(), || volume.server.thaw().unwrap());
        with(&volume, engine, |engine| engine.ends_although_the_server_has_stopped(words, stop, go_on));
    }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    for engine in ENGINES {
        with(&volume, engine, |engine| engine.loses_no_io_when_it_is_stopped("--iodepth=4"));
    }
}

#[test]
fn jobs_give_back_what_they_took() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    // The library takes ten seconds to leave the volume after each job.
    std::thread::scope(|scope| {
        for engine in ENGINES {
            let volume = &volume;
            scope.spawn(move || {
                with(volume, engine, |engine| engine.gives_back_what_jobs_took("--rw=write --size=32m", 4));
            });
        }
    });
}

#[test]
fn what_is_missing_is_named_and_a_brick_that_is_gone_fails() {
    needs_gluster!();
    let volume = Volume::start().unwrap();
    let size = "--rw=write --bs=4k --size=1m";
    let absent = with(&volume, "gfapi", |gfapi| gfapi.refusal(&format!("{size} --volume=absent")));
    assert!(absent.contains("has no volume absent"), "{absent}");
    let directory = with(&volume, "gfapi", |gfapi| gfapi.refusal(&format!("{size} --filename=absent/a")));
    assert!(directory.contains("directory does not exist"), "{directory}");
    let running = ENGINES.map(|engine| {
        let words = format!("{size} --filename={engine} --iodepth=4 --time_based --runtime=60");
        with(&volume, engine, |engine| engine.start_at_work(&words))
    });
    assert!(ENGINES.iter().all(|engine| volume.file(engine).exists()));
    volume.gluster(&["volume", "stop", "v", "force"]).unwrap();
    for running in running {
        let ran = running.wait().unwrap();
        let job = ran.job().unwrap();
        assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(107)), "{ran:?}");
        assert!(
            number(&job, "write", "total_ios") > 0 && format!("{ran:?}").contains("brick is gone"),
            "{ran:?}"
        );
    }
}
