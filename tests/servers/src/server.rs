//! A server of a case: started, waited for, and killed.
//!
//! Invariant: a server that does not come up is an error that shows what it printed; one that is up is killed with all
//! processes it started.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
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

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it without ending it: its sockets stay open, and nothing answers.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn freeze(&self) -> Result<(), String> {
        self.signal("-STOP")
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn thaw(&self) -> Result<(), String> {
        self.signal("-CONT")
    }

    /// Kills it.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn kill(&mut self) -> Result<(), String> {
        // Some may have ended by themselves when their turn comes.
        let _ = self.signal("-KILL");
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// To its group, and to processes it started that have left the group.
    fn signal(&self, signal: &str) -> Result<(), String> {
        let mut targets = vec![format!("-{}", self.child.id())];
        targets.extend(descendants(self.child.id()).iter().map(u32::to_string));
        let sent = Command::new("kill").args([signal, "--"]).args(&targets).stderr(Stdio::null()).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            sent => Err(format!("kill {signal} -- {}: {sent:?}", targets.join(" "))),
        }
    }
}

/// All processes that this one, or one of these, has started.
fn descendants(of: u32) -> Vec<u32> {
    let parent = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // `ID (NAME) STATE PARENT …`, where the name may contain anything.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![of];
    let mut index = 0;
    while let Some(id) = found.get(index).copied() {
        found.extend(all.iter().filter(|(_, parent)| *parent == id).map(|(child, _)| *child));
        index += 1;
    }
    found.split_off(1)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.kill();
        let _ = self.child.wait();
    }
}

/// Ports that the kernel does not give to clients, which could have one between this look and the server's start.
const PORTS: Range<u16> = 16_384..32_768;

/// A port of TCP on loopback that nothing listens on now, and that this process has not had before.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, String> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start;
    // Another process begins elsewhere.
    let first = (std::process::id() % u32::from(count)) as u16;
    let mut ports = (0..count).map(|_| {
        let next = first.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % count;
        PORTS.start + next
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).ok_or_else(|| format!("no port of {PORTS:?} is free"))
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

/// Runs a program in a directory to its end, for a while at most; its standard output.
///
/// # Errors
/// What it printed, if it fails or does not end.
pub fn output_of(directory: &Path, program: &str, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", program]).args(args).current_dir(directory).stdin(Stdio::null());
    let out = command.output().map_err(|error| format!("timeout: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match out.status.success() {
        true => Ok(text(&out.stdout)),
        false => {
            let said = format!("{}{}", text(&out.stdout), text(&out.stderr));
            Err(format!("{program} {}: {}: {said}", args.join(" "), out.status))
        }
    }
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
