//! nfs against nfs-ganesha, whose files are those of a directory. Debian's fio does not have the engine.
//!
//! Invariant: the case reads and writes the exported directory itself.

use std::process::Command;

use fiord_servers::{Directory, Place, Server, counts, eventually, free_port, listens, needs, number};
use fiord_testing::need;

use crate::engine::{Subject, repeats};

/// A server that exports the directories `export`, `export` again for reading alone, and `small` of 1 MiB, which only the
/// server sees.
struct Export {
    server: Server,
    port: u16,
    mount_port: u16,
}

/// Of nfs-ganesha, which clients ask by both ports.
const CONFIGURATION: &str = "NFS_CORE_PARAM {
    Bind_addr = 127.0.0.1;
    NFS_Port = %PORT%;
    MNT_Port = %MOUNT%;
    Protocols = 3;
    Enable_UDP = false;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    mount_path_pseudo = true;
}
EXPORT_DEFAULTS {
    Squash = No_Root_Squash;
    Protocols = 3;
    SecType = sys;
}
EXPORT { Export_Id = 1; Path = %DIR%/export; Pseudo = /export; Access_Type = RW; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = %DIR%/export; Pseudo = /ro; Tag = ro; Access_Type = RO; FSAL { Name = VFS; } }
EXPORT { Export_Id = 3; Path = %DIR%/small; Pseudo = /small; Access_Type = RW; FSAL { Name = VFS; } }
";

/// Starts the server, again if it is killed. It does not start without a portmapper, which is one of its own: on a socket and
/// on a network that nobody else sees.
const START: &str = "set -e
mount -t tmpfs none /run
mount -t tmpfs -o size=1m none small
setpriv --pdeathsig KILL unshare --net rpcbind -f &
until [ -S /run/rpcbind.sock ]; do sleep 0.05; done
while :; do
    setpriv --pdeathsig KILL ganesha.nfsd -F -f ganesha.conf -L STDERR -p ganesha.pid || [ $? = 137 ]
done
";

impl Export {
    fn start() -> Export {
        let directory = Directory::new().unwrap();
        for name in ["export", "small"] {
            std::fs::create_dir(directory.join(name)).unwrap();
        }
        let (port, mount_port) = (free_port().unwrap(), free_port().unwrap());
        let text = CONFIGURATION
            .replace("%PORT%", &port.to_string())
            .replace("%MOUNT%", &mount_port.to_string())
            .replace("%DIR%", &directory.path().display().to_string());
        directory.write("ganesha.conf", &text).unwrap();
        directory.write("start", START).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "start"]);
        let server = Server::start(directory, &command, |_| listens(port) && listens(mount_port)).unwrap();
        Export { server, port, mount_port }
    }

    /// The URL of an exported path.
    fn url(&self, path: &str, more: &str) -> String {
        let Export { port, mount_port, .. } = self;
        format!("--nfs_url=nfs://127.0.0.1/{path}?nfsport={port}&mountport={mount_port}{more}")
    }

    /// Calls this with the engine on the export.
    fn with<R>(&self, run: impl FnOnce(&Subject<'_>) -> R) -> R {
        let place = Place { directory: self.server.directory.path(), variables: &[] };
        run(&Subject { place, args: vec!["--ioengine=nfs".to_string(), self.url("export", "")] })
    }

    /// A file of the export.
    fn file(&self, name: &str) -> std::path::PathBuf {
        self.server.directory.join("export").join(name)
    }
}

/// Ends a case that lacks the server, the library, or the right to export.
macro_rules! needs_ganesha {
    () => {
        needs!("ganesha.nfsd" of "nfs-ganesha", "rpcbind" of "rpcbind");
        need!(is_root());
    };
}

/// Files are opened by their handles, which only root may.
fn is_root() -> Result<(), String> {
    let id = Command::new("id").arg("-u").output().map_err(|error| format!("id: {error}"))?;
    if id.stdout == b"0\n" {
        Ok(())
    } else {
        Err("nfs-ganesha needs root to open files by their handles".into())
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn counts_are_those_of_the_jobs() {
    // divergence: `ioengine=nfs`
    needs_ganesha!();
    let export = Export::start();
    let jobs = [
        ("--rw=write --bs=64k --size=4m --iodepth=16", [(0, 0), (64, 4 * MIB)], 0),
        ("--rw=read --bs=1m --size=4m --iodepth=4", [(4, 4 * MIB), (0, 0)], 0),
        ("--rw=randwrite --bs=4k --size=1m --iodepth=8 --nrfiles=4 --fsync=16", [(0, 0), (256, MIB)], 15),
        ("--rw=randread --bs=4k --offset=2m --size=2m --io_size=1m", [(256, MIB), (0, 0)], 0),
    ];
    for (words, expected, syncs) in jobs {
        let ran = export.with(|engine| engine.fiord(words));
        let job = ran.job().unwrap();
        assert_eq!((ran.code, &counts(&job)[..2]), (Some(0), &expected[..]), "{words}: {ran:?}");
        assert_eq!(number(&job, "sync", "total_ios"), syncs, "{words}: {ran:?}");
    }
}

#[test]
fn data_are_those_of_the_exported_file() {
    needs_ganesha!();
    let export = Export::start();
    let write = "--filename=file --rw=randwrite --bs=4k --size=1m --iodepth=16 --buffer_pattern=\"fiord!?\"";
    let ran = export.with(|engine| engine.fiord(write));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, MIB)), "{ran:?}");
    let bytes = std::fs::read(export.file("file")).unwrap();
    assert!(bytes.len() == 1 << 20 && repeats(&bytes, b"fiord!?"));
    std::fs::write(export.file("file"), [7; 1 << 20]).unwrap();
    let read =
        "--filename=file --rw=read --bs=64k --iodepth=4 --verify=pattern --verify_pattern=0x07 --size=1m";
    let ran = export.with(|engine| engine.fiord(read));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, MIB)), "{ran:?}");
    let verify = "--filename=file --bs=4k --size=1m --iodepth=16 --verify=crc32c --verify_state_save=0";
    let ran = export.with(|engine| engine.fiord(&format!("--rw=randwrite {verify}")));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (256, MIB)), "{ran:?}");
    let mut bytes = std::fs::read(export.file("file")).unwrap();
    bytes[123_456] ^= 1;
    std::fs::write(export.file("file"), bytes).unwrap();
    let ran = export.with(|engine| engine.fiord(&format!("--rw=read {verify}")));
    assert_eq!(ran.job().unwrap()["error"], 84, "{ran:?}");
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs_ganesha!();
    let export = Export::start();
    export.with(|engine| engine.loses_no_io_when_it_is_stopped("--iodepth=4"));
}

#[test]
fn a_server_that_has_stopped_does_not_hold_up_the_end() {
    needs_ganesha!();
    let export = Export::start();
    let (stop, go_on) = (|| export.server.freeze().unwrap(), || export.server.thaw().unwrap());
    let words = "--rw=randrw --bs=4k --size=1m --iodepth=16";
    export.with(|engine| engine.ends_although_the_server_has_stopped(words, stop, go_on));
}

#[test]
fn jobs_give_back_what_they_took() {
    needs_ganesha!();
    let export = Export::start();
    export.with(|engine| engine.gives_back_what_jobs_took("--rw=randrw --size=32m", 10));
}

#[test]
fn what_is_wrong_is_named_before_any_io() {
    needs_ganesha!();
    let export = Export::start();
    let refusal =
        |words: &str| export.with(|engine| engine.refusal(&format!("--rw=write --size=1m {words}")));
    let expected = [
        ("--nfs_url=localhost".to_string(), "localhost is not nfs://HOST/PATH"),
        ("--nfs_url=nfs://127.0.0.1/export?nfsport=1&mountport=1".to_string(), "set nfsport= and mountport="),
        ("--nfs_url=nfs://host.invalid/export".to_string(), "cannot be found"),
        (export.url("absent", ""), "showmount -e"),
        (export.url("export", "&uid=1234&gid=1234"), "squash and uid"),
        ("--filename=absent/file".to_string(), "create it"),
        ("--filename=.".to_string(), "not a regular file"),
        ("--rw=trim".to_string(), "the engine nfs has no trims"),
    ];
    for (words, part) in expected {
        let text = refusal(&words);
        assert!(text.contains(part), "{words}: {text}");
    }
    let place = Place { directory: export.server.directory.path(), variables: &[] };
    let without = Subject { place, args: vec!["--ioengine=nfs".to_string()] }.refusal("--rw=read --size=1m");
    assert!(without.contains("needs nfs_url="), "{without}");
}

#[test]
fn errors_of_the_server_have_its_reasons() {
    needs_ganesha!();
    let export = Export::start();
    let full = format!("--rw=write --bs=64k --size=4m --iodepth=4 {}", export.url("small", ""));
    let ran = export.with(|engine| engine.fiord(&full));
    let job = ran.job().unwrap();
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(28)), "{ran:?}");
    assert!((1..17).contains(&number(&job, "write", "total_ios")), "{ran:?}");
    assert!(format!("{ran:?}").contains("exports is full"), "{ran:?}");
    std::fs::write(export.file("a.0.0"), [7; 1 << 20]).unwrap();
    let read_only = export.url("ro", "");
    let ran = export.with(|engine| engine.fiord(&format!("--rw=read --bs=64k --size=1m {read_only}")));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, MIB)), "{ran:?}");
    let refused = export.with(|engine| engine.refusal(&format!("--rw=write --size=1m {read_only}")));
    assert!(refused.contains("for reading only"), "{refused}");
}

#[test]
fn a_file_that_was_cut_off_ends_in_a_short_read() {
    needs_ganesha!();
    let export = Export::start();
    // Nine blocks and a half are left, of which the last is asked for after nine seconds.
    let running = export.with(|engine| engine.start("--rw=read --bs=64k --size=1m --rate_iops=1"));
    let length_bytes = || std::fs::metadata(export.file("a.0.0")).map_or(0, |file| file.len());
    assert!(eventually(|| length_bytes() == MIB));
    let file = std::fs::File::options().write(true).open(export.file("a.0.0")).unwrap();
    file.set_len(608 << 10).unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    // What was read is counted; then nothing is left to read.
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(5)), "{ran:?}");
    assert_eq!((counts(&job)[0], number(&job, "read", "short_ios")), ((10, 608 << 10), 1), "{ran:?}");
    assert!(format!("{ran:?}").contains("at offset 622592, 32768 bytes: end of file"), "{ran:?}");
}

#[test]
fn a_server_that_is_gone_fails_or_is_waited_for() {
    needs_ganesha!();
    let mut export = Export::start();
    let words = "--rw=write --bs=4k --size=1m --iodepth=4 --rate_iops=40";
    let waits = export.url("export", "&autoreconnect=-1");
    let again = format!("{words} --verify=crc32c --verify_state_save=0 {waits}");
    let running = export.with(|engine| engine.start_at_work(&again));
    assert!(export.file("a.0.0").exists());
    let pid = || export.server.directory.read("ganesha.pid").trim().to_string();
    let first = pid();
    assert!(Command::new("kill").args(["-KILL", &first]).status().unwrap().success());
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    assert!(pid() != first, "the server was not restarted");
    let all = (256, MIB);
    assert_eq!((ran.code, counts(&job)), (Some(0), [all, all, (0, 0)]), "{ran:?}");
    // Without the word in the URL, the job fails.
    let running = export
        .with(|engine| engine.start_at_work(&format!("{words} --time_based --runtime=60 --filename=other")));
    assert!(export.file("other").exists());
    export.server.kill().unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(104)), "{ran:?}");
    assert!(number(&job, "write", "total_ios") > 0, "{ran:?}");
    assert!(format!("{ran:?}").contains("the connection is lost"), "{ran:?}");
}
