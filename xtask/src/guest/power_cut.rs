//! Disks that lose what is in their caches when the power is cut: one that is honest about flushes, and one that lies.
//!
//! Invariant: what is on a disk after the cut is what its server wrote to the image before it was killed. The server
//! (nbdkit with its cache filter) writes only when it is flushed; that of the lying disk confirms flushes and never
//! writes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::console::Console;

/// The load whose power the stage cuts.
pub const LOAD: &str = include_str!("power_cut.sh");

/// The case that looks at what is left after it.
pub const CASE: &str =
    "crash::after_a_power_cut_an_honest_disk_has_what_was_synced_and_a_lying_one_has_lost_it";

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(20);

/// A disk with a volatile cache.
#[derive(Debug)]
pub struct CachedDisk {
    /// Its serial number in the guest.
    pub serial: &'static str,
    /// The mode of nbdkit's cache: `writeback` writes at a flush, `unsafe` never.
    cache: &'static str,
}

/// The disks that a power cut is about.
pub const DISKS: [CachedDisk; 2] =
    [CachedDisk { serial: "honest", cache: "writeback" }, CachedDisk { serial: "lying", cache: "unsafe" }];

/// The server of a disk, which holds its cache.
#[derive(Debug)]
pub struct DiskServer {
    /// The disk's serial number.
    pub serial: &'static str,
    socket: PathBuf,
    child: Child,
}

impl DiskServer {
    /// Serves this image on a socket in a directory.
    ///
    /// # Errors
    /// If nbdkit cannot be started, or does not serve the disk.
    pub fn start(
        disk: &CachedDisk,
        dir: &Path,
        image: &Path,
        console: &Console,
    ) -> Result<DiskServer, String> {
        let socket = dir.join(disk.serial).with_extension("socket");
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.arg("--foreground").arg("--unix").arg(&socket);
        nbdkit.args(["--filter=cache", "file"]).arg(image).arg(format!("cache={}", disk.cache));
        nbdkit.stdin(Stdio::null());
        console.receive(&mut nbdkit)?;
        let child = nbdkit.spawn().map_err(|error| format!("nbdkit: {error}"))?;
        let mut server = DiskServer { serial: disk.serial, socket, child };
        let start = Instant::now();
        while !server.socket.exists() {
            let ended = server.child.try_wait().map_err(|error| format!("nbdkit: {error}"))?;
            if ended.is_some() || start.elapsed() > START_MAX {
                return Err(format!("nbdkit does not serve {}", image.display()));
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    /// Where the emulator finds it.
    pub fn address(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// Ends it with its cache.
    pub fn cut_power(self) {
        drop(self);
    }
}

impl Drop for DiskServer {
    fn drop(&mut self) {
        // SIGKILL: nothing is written back.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
