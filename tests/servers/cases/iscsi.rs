//! libiscsi against tgt. Debian's fio does not have the engine, so the numbers are those that tgt has counted.
//!
//! Invariant: the unit is a file, which the case reads and writes itself.

use std::process::Command;

use fiord_servers::{Directory, Place, Server, counts, free_port, listens, needs, number, output_of};

use crate::engine::{Subject, repeats};

const NAME: &str = "iqn.2026-11.fiord:disk";

/// A target with the unit 1, the file `disk`.
struct Target {
    server: Server,
    port: u16,
}

impl Target {
    fn start(disk: &[u8]) -> Target {
        let directory = Directory::new().unwrap();
        std::fs::write(directory.join("disk"), disk).unwrap();
        let port = free_port().unwrap();
        let mut command = Command::new("tgtd");
        command.args(["-f", "--iscsi", &format!("portal=127.0.0.1:{port}")]);
        command.env("TGT_IPC_SOCKET", directory.join("ipc"));
        let server = Server::start(directory, &command, |_| listens(port)).unwrap();
        let target = Target { server, port };
        let backing = target.server.directory.join("disk");
        target.admin(&format!("--op new --mode target --tid 1 -T {NAME}"));
        target.admin(&format!("--op new --mode logicalunit --tid 1 --lun 1 -b {}", backing.display()));
        target.admin("--op update --mode logicalunit --tid 1 --lun 1 --params thin_provisioning=1");
        target.admin("--op bind --mode target --tid 1 -I ALL");
        target
    }

    fn admin(&self, words: &str) -> String {
        let socket = format!("TGT_IPC_SOCKET={}", self.server.directory.join("ipc").display());
        let args: Vec<&str> =
            [socket.as_str(), "tgtadm", "--lld", "iscsi"].into_iter().chain(words.split(' ')).collect();
        output_of(self.server.directory.path(), "env", &args).unwrap()
    }

    /// Calls this with the engine on the unit.
    fn with<R>(&self, run: impl FnOnce(&Subject<'_>) -> R) -> R {
        let place = Place { directory: self.server.directory.path(), variables: &[] };
        let url = format!("iscsi://127.0.0.1:{}/{NAME}/1", self.port).replace(':', "\\:");
        run(&Subject { place, args: vec!["--ioengine=libiscsi".into(), format!("--filename={url}")] })
    }
}

/// Ends a case that lacks the server, or the library, which its programs come with.
macro_rules! needs_tgt {
    () => {
        needs!("tgtd" of "tgt", "iscsi-inq" of "libiscsi-bin");
    };
}

const MIB: u64 = 1 << 20;

#[test]
fn counts_are_those_of_the_jobs_and_of_the_target() {
    // divergence: `ioengine=libiscsi`
    needs_tgt!();
    let target = Target::start(&[0; 8 << 20]);
    let jobs = [
        ("--rw=write --bs=64k --iodepth=16", [(0, 0), (128, 8 * MIB), (0, 0)], 0),
        ("--rw=read --bs=1m --iodepth=4", [(8, 8 * MIB), (0, 0), (0, 0)], 0),
        ("--rw=randwrite --bs=4k --size=1m --iodepth=8 --fsync=16", [(0, 0), (256, MIB), (0, 0)], 15),
        ("--rw=randread --bs=4k --offset=2m --size=2m --io_size=1m", [(256, MIB), (0, 0), (0, 0)], 0),
        ("--rw=trim --bs=64k --size=4m --iodepth=4", [(0, 0), (0, 0), (64, 4 * MIB)], 0),
    ];
    for (words, expected, syncs) in jobs {
        let ran = target.with(|unit| unit.fiord(words));
        let job = ran.job().unwrap();
        assert_eq!((ran.code, counts(&job)), (Some(0), expected), "{words}: {ran:?}");
        assert_eq!(number(&job, "sync", "total_ios"), syncs, "{words}: {ran:?}");
    }
    // tgt counts by session, so that it has to be asked before the job ends: in the pause after 64 I/Os.
    let pause = "--rw=randread --bs=4k --iodepth=4 --thinktime=600s --thinktime_blocks=64";
    let running = target.with(|unit| unit.start(pause));
    let read = || -> Vec<String> {
        let answer = target.admin("--op stat --mode target --tid 1");
        // `TARGET UNIT SESSION`, then bytes and commands that were submitted, and those that were done.
        let lines =
            answer.lines().map(|line| line.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        lines
            .filter(|words| words.get(1).is_some_and(|unit| unit == "1"))
            .flat_map(|words| words[5..7].to_vec())
            .collect()
    };
    // 64 blocks, and 32 bytes that say how many the unit has.
    let counted = fiord_servers::eventually(|| read() == ["262176", "65"]);
    let ran = running.interrupt().unwrap();
    assert!(counted, "{:?}: {ran:?}", read());
    assert_eq!(counts(&ran.job().unwrap())[0], (64, 262_144), "{ran:?}");
}

#[test]
fn data_are_those_of_the_file_behind_the_unit() {
    needs_tgt!();
    let target = Target::start(&[7; 2 << 20]);
    let disk = target.server.directory.join("disk");
    let write = "--rw=randwrite --bs=4k --size=1m --iodepth=16 --end_fsync=1 --buffer_pattern=\"fiord!?\"";
    let ran = target.with(|unit| unit.fiord(write));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, MIB)), "{ran:?}");
    let bytes = std::fs::read(&disk).unwrap();
    assert!(
        bytes.len() == 2 << 20 && repeats(&bytes[..1 << 20], b"fiord!?") && repeats(&bytes[1 << 20..], &[7])
    );
    let ran = target.with(|unit| unit.fiord("--rw=trim --bs=64k --size=512k --iodepth=4"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bytes = std::fs::read(&disk).unwrap();
    assert!(repeats(&bytes[..512 << 10], &[0]) && repeats(&bytes[512 << 10..1 << 20], b"fiord!?"));
    // What fiord verifies, and what a byte that has changed behind its back does.
    let verify = "--bs=4k --iodepth=16 --verify=crc32c --verify_state_save=0";
    let ran = target.with(|unit| unit.fiord(&format!("--rw=randwrite {verify}")));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (512, 2 * MIB)), "{ran:?}");
    let mut bytes = std::fs::read(&disk).unwrap();
    bytes[123_456] ^= 1;
    std::fs::write(&disk, bytes).unwrap();
    let ran = target.with(|unit| unit.fiord(&format!("--rw=read {verify}")));
    assert_eq!(ran.job().unwrap()["error"], 84, "{ran:?}");
}

#[test]
fn a_target_that_has_stopped_does_not_hold_up_the_end() {
    needs_tgt!();
    let target = Target::start(&[0; 8 << 20]);
    let (stop, go_on) = (|| target.server.freeze().unwrap(), || target.server.thaw().unwrap());
    let words = "--rw=randrw --bs=4k --iodepth=16";
    target.with(|unit| unit.ends_although_the_server_has_stopped(words, stop, go_on));
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs_tgt!();
    let target = Target::start(&[0; 1 << 20]);
    target.with(|unit| unit.loses_no_io_when_it_is_stopped("--iodepth=4"));
}

#[test]
fn jobs_give_back_what_they_took() {
    needs_tgt!();
    let target = Target::start(&[0; 32 << 20]);
    target.with(|unit| unit.gives_back_what_jobs_took("--rw=randrw", 10));
}

#[test]
fn what_is_wrong_is_named_and_a_target_that_is_gone_fails() {
    needs_tgt!();
    let mut target = Target::start(&[0; 8 << 20]);
    let refusal = |words: &str| target.with(|unit| unit.refusal(&format!("--rw=read {words}")));
    let url = refusal("--filename=disk");
    assert!(url.contains("not the URL of a unit"), "{url}");
    let address = format!("iscsi\\://127.0.0.1\\:{}", target.port);
    let absent = refusal(&format!("--filename={address}/iqn.2026-11.fiord\\:absent/1"));
    assert!(absent.contains("cannot be logged in to"), "{absent}");
    let unaligned = refusal("--bs=100");
    assert!(unaligned.contains("512"), "{unaligned}");
    let running =
        target.with(|unit| unit.start_at_work("--rw=randread --bs=4k --iodepth=4 --time_based --runtime=60"));
    target.server.kill().unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(104)), "{ran:?}");
    assert!(
        number(&job, "read", "total_ios") > 0 && format!("{ran:?}").contains("closed the connection"),
        "{ran:?}"
    );
}
