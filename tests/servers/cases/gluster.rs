//! gfapi and gfapi_async against a volume of one brick, beside Debian's fio.
//!
//! Invariant: the volume's daemons have an address of their own on loopback, because clients only know the port 24007, and
//! see neither the machine's other processes nor the directories of its own daemon.

use std::process::Command;

use fiord_servers::{Directory, Place, Server, counts, eventually, needs, number, output_of};
use fiord_testing::need;

use crate::engine::{Subject, repeats};

/// A volume named `v`, whose brick is the directory `brick`.
struct Volume {
    server: Server,
    address: String,
}

/// Of glusterd.
const CONFIGURATION: &str = "volume management
    type mgmt/glusterd
    option working-directory DIR/state
    option run-directory DIR/state
    option transport-type socket
    option transport.socket.bind-address ADDRESS
    option transport.socket.read-fail-log off
    option ping-timeout 0
    option max-port 60999
    option glusterd-sockfile DIR/socket
end-volume
";

/// Starts glusterd where its directories below /var are those of the case, and its process is the first of all it can see,
/// so that with it all that it starts ends.
const ISOLATED: &str = "set -e
for place in lib/glusterd log/glusterfs run/gluster; do
    mkdir -p $place /var/$place
    mount --bind $place /var/$place
done
exec glusterd -N -f $PWD/glusterd.vol -p $PWD/glusterd.pid -l $PWD/daemon.log
";

/// An address of loopback that no other case has.
fn own_address() -> String {
    use std::sync::atomic::{AtomicU8, Ordering};
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{high}.{low}", 100 + COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Whether processes and mounts can be separated from the machine's, and files get trusted attributes.
fn is_root() -> Result<(), String> {
    let tried = Command::new("unshare").args(["--mount", "--pid", "--fork", "true"]).output();
    match tried {
        Ok(out) if out.status.success() => Ok(()),
        tried => Err(format!("a brick needs root, and unshare --mount --pid fails: {tried:?}")),
    }
}

impl Volume {
    fn start() -> Volume {
        let directory = Directory::new().unwrap();
        for name in ["state", "brick"] {
            std::fs::create_dir(directory.join(name)).unwrap();
        }
        let address = own_address();
        let text = CONFIGURATION
            .replace("DIR", &directory.path().display().to_string())
            .replace("ADDRESS", &address);
        directory.write("glusterd.vol", &text).unwrap();
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child=KILL",
            "sh",
            "-c",
            ISOLATED,
        ]);
        let place = (address.clone(), 24007);
        let is_up = |_: &Directory| std::net::TcpStream::connect((place.0.as_str(), place.1)).is_ok();
        let volume = Volume { server: Server::start(directory, &command, is_up).unwrap(), address };
        // It listens before it knows its commands.
        assert!(
            eventually(|| volume.try_gluster(&["volume", "list"]).is_ok()),
            "{}",
            volume.server.directory.read("daemon.log")
        );
        let brick = format!("{}:{}", volume.address, volume.server.directory.join("brick").display());
        volume.gluster(&["volume", "create", "v", &brick, "force"]);
        volume.gluster(&["volume", "start", "v"]);
        volume
    }

    fn gluster(&self, args: &[&str]) -> String {
        self.try_gluster(args).unwrap()
    }

    fn try_gluster(&self, args: &[&str]) -> Result<String, String> {
        // It takes paths in full only.
        let path = |name: &str| self.server.directory.join(name).display().to_string();
        let (socket, log) =
            (format!("--glusterd-sock={}", path("socket")), format!("--log-file={}", path("cli.log")));
        let all = [&["--mode=script", &socket, &log], args].concat();
        output_of(self.server.directory.path(), "gluster", &all)
    }

    /// Calls this with an engine on the volume.
    fn with<R>(&self, name: &str, run: impl FnOnce(&Subject<'_>) -> R) -> R {
        let place = Place { directory: self.server.directory.path(), variables: &[] };
        let args = [format!("--ioengine={name}"), "--volume=v".into(), format!("--brick={}", self.address)];
        run(&Subject { place, args: args.to_vec() })
    }

    /// A file of the brick.
    fn file(&self, name: &str) -> std::path::PathBuf {
        self.server.directory.join("brick").join(name)
    }
}

const ENGINES: [&str; 2] = ["gfapi", "gfapi_async"];

/// Ends a case that lacks one of the programs, or the right to start them.
macro_rules! needs_gluster {
    () => {
        needs!("glusterd" of "glusterfs-server", "gluster" of "glusterfs-cli", "fio" of "fio");
        need!(is_root());
    };
}

#[test]
fn counts_are_those_of_fio() {
    needs_gluster!();
    let volume = Volume::start();
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
                scope.spawn(move || volume.with(engine, |engine| engine.counts_are_those_of_fio(&[&words])));
            }
        }
    });
}

#[test]
fn syncs_and_trims_reach_every_file() {
    needs_gluster!();
    let volume = Volume::start();
    // divergence: trims with `gfapi` or `gfapi_async`
    // divergence: `nrfiles` with `gfapi` or `gfapi_async`
    for engine in ENGINES {
        for (sync, count) in [("fsync", 15), ("fdatasync", 15)] {
            let words = format!("--rw=randwrite --bs=4k --size=1m --iodepth=8 --nrfiles=4 --{sync}=16");
            let ran = volume.with(engine, |engine| engine.fiord(&words));
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
            volume.with(engine, |engine| engine.fiord("--filename=a.0.0 --rw=trim --bs=64k --size=128k"));
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
    let volume = Volume::start();
    for engine in ENGINES {
        let name = format!("file-{engine}");
        let write = "--rw=randwrite --bs=4k --size=1m --iodepth=16 --buffer_pattern=\"fiord!?\"";
        let ran = volume.with(engine, |engine| engine.fiord(&format!("--filename={name} {write}")));
        assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, 1 << 20)), "{ran:?}");
        let bytes = std::fs::read(volume.file(&name)).unwrap();
        assert!(bytes.len() == 1 << 20 && repeats(&bytes, b"fiord!?"), "{engine}");
        // Each program verifies what the other wrote; then a byte of the brick's file changes.
        let verify =
            format!("--filename={name} --bs=4k --size=1m --iodepth=16 --verify=crc32c --verify_state_save=0");
        volume.with(engine, |engine| {
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
        let read = volume.with(engine, |engine| engine.fiord(&format!("--rw=read {verify}")));
        assert_eq!(read.job().unwrap()["error"], 84, "{read:?}");
    }
}

#[test]
fn a_brick_that_has_stopped_does_not_hold_up_the_end() {
    needs_gluster!();
    let volume = Volume::start();
    for engine in ENGINES {
        let words = "--rw=randrw --bs=4k --size=1m --iodepth=16";
        let (stop, go_on) = (|| volume.server.freeze().unwrap(), || volume.server.thaw().unwrap());
        volume.with(engine, |engine| engine.ends_although_the_server_has_stopped(words, stop, go_on));
    }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs_gluster!();
    let volume = Volume::start();
    for engine in ENGINES {
        volume.with(engine, |engine| engine.loses_no_io_when_it_is_stopped("--iodepth=4"));
    }
}

#[test]
fn jobs_give_back_what_they_took() {
    needs_gluster!();
    let volume = Volume::start();
    // The library takes ten seconds to leave the volume after each job.
    std::thread::scope(|scope| {
        for engine in ENGINES {
            let volume = &volume;
            scope.spawn(move || {
                volume.with(engine, |engine| engine.gives_back_what_jobs_took("--rw=write --size=32m", 4));
            });
        }
    });
}

#[test]
fn what_is_missing_is_named_and_a_brick_that_is_gone_fails() {
    needs_gluster!();
    let volume = Volume::start();
    let size = "--rw=write --bs=4k --size=1m";
    let absent = volume.with("gfapi", |gfapi| gfapi.refusal(&format!("{size} --volume=absent")));
    assert!(absent.contains("has no volume absent"), "{absent}");
    let directory = volume.with("gfapi", |gfapi| gfapi.refusal(&format!("{size} --filename=absent/a")));
    assert!(directory.contains("directory does not exist"), "{directory}");
    let running = ENGINES.map(|engine| {
        let words = format!("{size} --filename={engine} --iodepth=4 --time_based --runtime=60");
        volume.with(engine, |engine| engine.start(&words))
    });
    assert!(eventually(|| ENGINES.iter().all(|engine| volume.file(engine).exists())));
    std::thread::sleep(std::time::Duration::from_secs(2));
    volume.gluster(&["volume", "stop", "v", "force"]);
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
