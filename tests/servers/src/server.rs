//! A server of a case: started, waited for, and killed.
//!
//! Invariant: a server that does not come up is an error that shows what it printed; one that is up is killed with all
//! processes it started.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::directory::Directory;

/// How long a server may take to come up.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// Time between two looks.
const POLL: Duration = Duration::from_millis(10);

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Its directory.
    pub directory: Directory,
}

impl Server {
    /// Starts a program in a directory, and waits until `is_up`. The program must stay in the foreground.
    ///
    /// # Errors
    /// What it printed, if it ends, or does not come up in time.
    pub fn start(
        directory: Directory,
        command: &Command,
        is_up: impl Fn(&Directory) -> bool,
    ) -> Result<Server, String> {
        let shown = format!("{command:?}");
        let log = File::create(directory.join("server.log")).map_err(|error| error.to_string())?;
        let other = log.try_clone().map_err(|error| error.to_string())?;
        // A group of its own, which is killed as a whole; and killed when the thread of the test ends.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(other)
            .process_group(0)
            .spawn()
            .map_err(|error| format!("setpriv: {error}"))?;
        let mut server = Server { child, directory };
        let began = Instant::now();
        while !is_up(&server.directory) {
            let ended = server.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || began.elapsed() > START_TIME_MAX {
                let printed = server.directory.read("server.log");
                return Err(format!("{shown}: not up after {:?} ({ended:?}): {printed}", began.elapsed()));
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    /// Stops it without ending it: its sockets stay open, and nothing answers.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn freeze(&self) -> Result<(), String> {
        self.signal("-STOP")
    }

    /// Kills it.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn kill(&mut self) -> Result<(), String> {
        self.signal("-KILL")?;
        self.child.wait().map(drop).map_err(|error| error.to_string())
    }

    fn signal(&self, signal: &str) -> Result<(), String> {
        let group = format!("-{}", self.child.id());
        let sent = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            sent => Err(format!("kill {signal} -- {group}: {sent:?}")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.kill();
        let _ = self.child.wait();
    }
}

/// A port of TCP on loopback that nothing listens on now.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, String> {
    let bound = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    bound.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// Whether something listens on this port.
pub fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// Whether something listens on this socket of the file system. A server makes it before it listens.
pub fn listens_on(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// Waits, for a while, until a condition holds that a server brings about in its own time; whether it does.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > START_TIME_MAX {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The path of a program.
///
/// # Errors
/// Which package has it, if it is not installed.
pub fn installed(program: &str, package: &str) -> Result<PathBuf, String> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&directories).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = all.map(|directory| directory.join(program)).find(|path| path.is_file());
    found.ok_or_else(|| {
        format!("{program} is not installed (apt-get install {package}, or cargo x servers --install)")
    })
}
