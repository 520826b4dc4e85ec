//! A volume of GlusterFS with one brick.
//!
//! Invariant: its daemons have an address of their own on loopback, because clients only know the port 24007, and see
//! neither the machine's other processes nor the directories of its own daemon.

use std::path::PathBuf;
use std::process::Command;

use crate::directory::Directory;
use crate::server::{Server, eventually, output_of};

/// A volume named `v`, whose brick is the directory `brick`.
#[derive(Debug)]
pub struct Volume {
    /// The daemon, which started the brick's.
    pub server: Server,
    /// Its address.
    pub address: String,
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
///
/// # Errors
/// Why not.
pub fn is_possible() -> Result<(), String> {
    let tried = Command::new("unshare").args(["--mount", "--pid", "--fork", "true"]).output();
    match tried {
        Ok(out) if out.status.success() => Ok(()),
        tried => Err(format!("a brick needs root, and unshare --mount --pid fails: {tried:?}")),
    }
}

impl Volume {
    /// Starts one.
    ///
    /// # Errors
    /// What a program of GlusterFS printed that failed.
    pub fn start() -> Result<Volume, String> {
        let directory = Directory::new()?;
        for name in ["state", "brick"] {
            let path = directory.join(name);
            std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let address = own_address();
        let text = CONFIGURATION
            .replace("DIR", &directory.path().display().to_string())
            .replace("ADDRESS", &address);
        directory.write("glusterd.vol", &text)?;
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
        let volume = Volume { server: Server::start(directory, &command, is_up)?, address };
        // It listens before it knows its commands.
        if !eventually(|| volume.gluster(&["volume", "list"]).is_ok()) {
            return Err(volume.server.directory.read("daemon.log"));
        }
        let brick = format!("{}:{}", volume.address, volume.server.directory.join("brick").display());
        volume.gluster(&["volume", "create", "v", &brick, "force"])?;
        volume.gluster(&["volume", "start", "v"])?;
        Ok(volume)
    }

    /// Runs `gluster`; its standard output.
    ///
    /// # Errors
    /// What it printed, if it failed.
    pub fn gluster(&self, args: &[&str]) -> Result<String, String> {
        // It takes paths in full only.
        let path = |name: &str| self.server.directory.join(name).display().to_string();
        let (socket, log) =
            (format!("--glusterd-sock={}", path("socket")), format!("--log-file={}", path("cli.log")));
        let all = [&["--mode=script", &socket, &log], args].concat();
        output_of(self.server.directory.path(), "gluster", &all)
    }

    /// A file of the brick.
    pub fn file(&self, name: &str) -> PathBuf {
        self.server.directory.join("brick").join(name)
    }
}
