//! A cluster of Ceph: one monitor, and one daemon that keeps its objects in memory, or in a file.
//!
//! Invariant: it listens on loopback, and has its configuration, keys and logs in directories of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::directory::Directory;
use crate::server::{Server, free_port, listens, output_of};

/// A cluster with the pool `p`, and in it the image `image` of 64 MiB.
#[derive(Debug)]
pub struct Cluster {
    /// Its directory has the configuration, and the files that Ceph's programs write.
    pub monitor: Server,
    /// Keeps the objects.
    pub daemon: Server,
}

/// Keys in one file, one copy of everything, and nothing outside of its directory.
const CONFIGURATION: &str = "[global]
fsid = FSID
mon host = v2:127.0.0.1:PORT/0
run dir = DIR
crash dir = DIR
admin socket =
pid file =
keyring = DIR/keyring
log file = DIR/$name.log
mon data = DIR/mon
osd data = DIR/osd
mgr data = DIR/mgr
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
";

/// Objects are sets of pages: as lists of pieces, which each write copies, those of 64 MiB took 360 random writes of 4 KiB per
/// second instead of 20,000.
const IN_MEMORY: &str = "osd objectstore = memstore
memstore page set = true
memstore device bytes = 1G
";

/// BlueStore, which keeps objects, their metadata and its log in one file. Without its socket a daemon tells no counters.
const IN_A_FILE: &str = "osd objectstore = bluestore
bluestore block size = 1G
bluestore block preallocate file = true
osd memory target = 939524096
[osd]
admin socket = DIR/$name.asok
";

/// Options of ceph-authtool, who has the key, and what it opens beside the monitor.
const KEYS: [(Option<&str>, &str, &[&str]); 3] =
    [(Some("--create-keyring"), "mon.", &[]), (None, "client.admin", &["osd"]), (None, "osd.0", &["osd"])];

impl Cluster {
    /// Starts one that keeps its objects in memory, and waits until it stores objects.
    ///
    /// # Errors
    /// What a program of Ceph printed that failed.
    pub fn start() -> Result<Cluster, String> {
        Cluster::with(IN_MEMORY)
    }

    /// The same, with its objects in a file beside those of the monitor.
    ///
    /// # Errors
    /// What a program of Ceph printed that failed.
    pub fn in_a_file() -> Result<Cluster, String> {
        Cluster::with(IN_A_FILE)
    }

    fn with(store: &str) -> Result<Cluster, String> {
        let directory = Directory::new()?;
        let uuid = || {
            let path = "/proc/sys/kernel/random/uuid";
            std::fs::read_to_string(path)
                .map(|text| text.trim().to_string())
                .map_err(|error| format!("{path}: {error}"))
        };
        let (port, fsid, of_daemon) = (free_port()?, uuid()?, uuid()?);
        let root = directory.path().to_path_buf();
        prepare(&directory, port, &fsid, store)?;
        let run = |program: &str, args: &[&str]| output_of(&root, program, args).map(drop);
        let address = format!("[v2:127.0.0.1:{port}]");
        run("monmaptool", &["--create", "--fsid", &fsid, "--addv", "a", &address, "monmap"])?;
        run(
            "ceph-mon",
            &["-c", "ceph.conf", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring"],
        )?;
        let mut command = Command::new("ceph-mon");
        command.args(["-c", "ceph.conf", "-f", "-i", "a", "--public-addrv", &address]);
        let monitor = Server::start(directory, &command, |_| listens(port))?;
        run("ceph", &["-c", "ceph.conf", "osd", "new", &of_daemon])?;
        run("ceph-osd", &["-c", "ceph.conf", "-i", "0", "--mkfs", "--osd-uuid", &of_daemon])?;
        let mut command = Command::new("ceph-osd");
        command.arg("-c").arg(root.join("ceph.conf")).args(["-f", "-i", "0"]);
        let daemon = Server::start(Directory::new()?, &command, |_| true)?;
        run("ceph", &["-c", "ceph.conf", "osd", "pool", "create", "p", "1"])?;
        // Waits until the daemon has come up.
        run("rbd", &["-c", "ceph.conf", "create", "p/image", "--size", "64M"])?;
        Ok(Cluster { monitor, daemon })
    }

    /// The path of its configuration.
    pub fn configuration(&self) -> PathBuf {
        self.monitor.directory.join("ceph.conf")
    }

    /// Writes a configuration that has this line as well; its path.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn configuration_with(&self, line: &str) -> Result<PathBuf, String> {
        let path = self.monitor.directory.join("ceph-with-more.conf");
        let text = std::fs::read_to_string(self.configuration());
        let written = text.and_then(|text| std::fs::write(&path, format!("{text}{line}\n")));
        written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Runs one of Ceph's programs in the directory of the monitor; its standard output.
    ///
    /// # Errors
    /// What it printed, if it failed.
    pub fn ceph(&self, program: &str, words: &str) -> Result<String, String> {
        let mut args = vec!["-c", "ceph.conf"];
        args.extend(words.split_whitespace());
        output_of(self.monitor.directory.path(), program, &args)
    }
}

/// Writes the configuration, and makes the keys.
fn prepare(directory: &Directory, port: u16, fsid: &str, store: &str) -> Result<(), String> {
    let made =
        |path: &Path| std::fs::create_dir(path).map_err(|error| format!("{}: {error}", path.display()));
    ["mon", "osd", "mgr"].iter().try_for_each(|name| made(&directory.join(name)))?;
    let text = [CONFIGURATION, store]
        .concat()
        .replace("FSID", fsid)
        .replace("PORT", &port.to_string())
        .replace("DIR", &directory.path().display().to_string());
    directory.write("ceph.conf", &text)?;
    for (option, name, access) in KEYS {
        let mut args = vec!["keyring", "--gen-key", "-n", name, "--cap", "mon", "allow *"];
        args.extend(access.iter().flat_map(|kind| ["--cap", kind, "allow *"]));
        args.extend(option);
        output_of(directory.path(), "ceph-authtool", &args)?;
    }
    Ok(())
}
