//! Direct I/O to files that another machine serves: these file systems do it, and no page is cached.
//!
//! Invariant: a server ends with its case.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fiord_guest::{NullBlk, fiord};

use crate::guest;

/// How long the server may take to start.
const START_WITHIN: Duration = Duration::from_secs(120);

/// Of nfs-ganesha.
const CONFIGURATION: &str = "NFS_CORE_PARAM { NFS_Port = 2049; Protocols = 4; Enable_UDP = false; Enable_NLM = false;
    Enable_RQUOTA = false; }
NFSV4 { Graceless = true; }
EXPORT { Export_Id = 1; Path = /run/served; Pseudo = /export; Access_Type = RW; Squash = No_Root_Squash; Protocols = 4;
    SecType = sys; FSAL { Name = VFS; } }
";

/// The directory that the server exports, and the same as its client sees it.
const SERVED: &str = "/run/served";
const MOUNTED: &str = "/run/mounted";

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let out = Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// A file system of this machine that it mounts over NFS.
struct Nfs {
    server: Child,
    _disk: NullBlk,
}

impl Nfs {
    fn mount() -> Result<Nfs, String> {
        let disk = NullBlk::new("served", 64, &[])?;
        for directory in [SERVED, MOUNTED, "/run/ganesha", "/var/run/ganesha"] {
            fs::create_dir_all(directory).map_err(|error| format!("{directory}: {error}"))?;
        }
        run("mkfs.ext4", &["-q", "-F", &disk.path()])?;
        run("mount", &[&disk.path(), SERVED])?;
        run("ip", &["link", "set", "lo", "up"])?;
        run("modprobe", &["nfsv4"])?;
        fs::write("/run/ganesha.conf", CONFIGURATION).map_err(|error| error.to_string())?;
        let mut server = Command::new("ganesha.nfsd");
        server.args(["-F", "-f", "/run/ganesha.conf", "-L", "/run/ganesha.log", "-p", "/run/ganesha.pid"]);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = server.map_err(|error| format!("ganesha.nfsd: {error}"))?;
        let nfs = Nfs { server, _disk: disk };
        let since = Instant::now();
        // Without mount.nfs, which is not installed everywhere.
        let options = "addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.1,port=2049,timeo=50,retrans=1";
        let mount = || run("mount", &["-i", "-t", "nfs4", "-o", options, "127.0.0.1:/export", MOUNTED]);
        while let Err(why) = mount() {
            if since.elapsed() > START_WITHIN {
                let log = fs::read_to_string("/run/ganesha.log").unwrap_or_default();
                return Err(format!("{why}\n{log}"));
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(nfs)
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        let _ = run("umount", &["--force", "--lazy", MOUNTED]);
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = run("umount", &[SERVED]);
    }
}

/// Runs on a file: direct ones have no finding about that, and leave nothing in the page cache.
fn assert_direct_is_honoured(directory: &Path) {
    let file = directory.join("direct-or-not");
    let target = format!("--filename={}", file.display());
    let common = ["--name=d", &target, "--bs=64k", "--size=4m", "--direct=1", "--end_fsync=1"];
    for rw in ["--rw=write", "--rw=read"] {
        let ran = fiord(&[&common[..], &[rw]].concat()).expect("fiord runs");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains("direct-not-honoured"), "{ran:?}");
        let cached =
            Command::new("fincore").args(["--bytes", "--noheadings", "--output=RES"]).arg(&file).output();
        let cached = String::from_utf8(cached.expect("fincore runs").stdout).unwrap();
        assert_eq!(cached.trim(), "0", "{}", file.display());
    }
    // The same through the page cache is no direct I/O that was not.
    let buffered = [&common[..4], &["--direct=0", "--rw=read", "--time_based", "--runtime=1s"]].concat();
    let ran = fiord(&buffered).expect("fiord runs");
    assert!(ran.code == Some(0) && !ran.stdout.contains("direct-not-honoured"), "{ran:?}");
    let _ = fs::remove_file(&file);
}

#[test]
fn direct_io_over_nfs_is_not_doubted() {
    guest!();
    if Command::new("ganesha.nfsd").arg("-v").output().is_err() {
        fiord_testing::skip!("nfs-ganesha is not installed; `cargo x servers --install` installs it");
    }
    let _nfs = Nfs::mount().unwrap();
    assert_direct_is_honoured(Path::new(MOUNTED));
}

/// The directory that the machine shares with the one outside.
#[test]
fn direct_io_over_9p_is_not_doubted() {
    guest!();
    let shared = std::env::var_os("FIORD_SHARED").expect("the machine shares a directory");
    assert_direct_is_honoured(Path::new(&shared));
}
