//! The other end of a row's connections: a server of its own, started before the row's runs and killed after them.
//!
//! Invariant: the processor time of a peer is known only if it is one process, which uses one processor at most; how much
//! of it was used during a run says whether the peer was what limited the run.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fiord_servers::ceph::Cluster;
use fiord_servers::gluster::{self, Volume};
use fiord_servers::installed;

/// The name of the chore that runs xtask as a sink.
pub const SINK_CHORE: &str = "bench-sink";

/// What stands for the peer's address in a row's arguments.
pub const PLACEHOLDER: &str = "PEER";

/// Bytes that a sink reads at once.
const SINK_BYTES: usize = 1 << 20;

/// How long a peer may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// Which program is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Reads all that is sent to a port of TCP, one connection after another. The address is the port.
    Sink,
    /// nbdkit with a disk in memory, in one thread. The address is a socket in the file system.
    Nbdkit,
    /// nginx, one process, with the files of the row's directory. The address is the port.
    Nginx,
    /// A cluster of Ceph that keeps its objects in memory. The address is the path of its configuration.
    Ceph,
    /// A volume of GlusterFS. The address is that of its daemon.
    Gluster,
}

/// A peer that runs.
#[derive(Debug)]
pub struct Running {
    server: Server,
    /// What replaces `PLACEHOLDER`.
    pub address: String,
    /// Variables of the environment by which programs find it.
    pub variables: Vec<(&'static str, OsString)>,
}

/// What ends when it is dropped.
#[derive(Debug)]
enum Server {
    Process(Child),
    Ceph { _cluster: Cluster },
    Gluster { _volume: Volume },
}

impl Peer {
    /// Starts it, with its files in a directory.
    ///
    /// The error says why it cannot run on this machine.
    pub fn start(self, directory: &Path) -> Result<Running, String> {
        match self {
            Peer::Sink => sink(),
            Peer::Nbdkit => {
                let socket = directory.join("peer.socket");
                let _ = fs::remove_file(&socket);
                let mut command = Command::new("nbdkit");
                command.arg("-f").arg("-t").arg("1").arg("-U").arg(&socket).args(["memory", "64M"]);
                let running = Running::of(command, socket.to_string_lossy().into_owned(), "nbdkit")?;
                running.when(|| UnixStream::connect(&socket).is_ok())
            }
            Peer::Nginx => nginx(directory),
            Peer::Ceph => ceph(),
            Peer::Gluster => gluster(),
        }
    }
}

impl Running {
    fn of(mut command: Command, address: String, package: &str) -> Result<Running, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = command.get_program().to_string_lossy().into_owned();
        match command.spawn() {
            Ok(child) => Ok(Running { server: Server::Process(child), address, variables: Vec::new() }),
            Err(error) => Err(format!("{program}: {error}; apt-get install {package}")),
        }
    }

    /// Waits until it is up.
    fn when(mut self, is_up: impl Fn() -> bool) -> Result<Running, String> {
        let began = Instant::now();
        while !is_up() {
            let ended = match &mut self.server {
                Server::Process(child) => child.try_wait().map_err(|error| error.to_string())?,
                Server::Ceph { .. } | Server::Gluster { .. } => None,
            };
            if ended.is_some() || began.elapsed() > START_TIME_MAX {
                return Err(format!("the server at {} did not start: {ended:?}", self.address));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(self)
    }

    /// Processor time that it has used so far; `None` if it has ended, or is several processes.
    pub fn cpu_s(&self) -> Option<f64> {
        let Server::Process(child) = &self.server else { return None };
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
        used_s(&stat)
    }
}

/// User and system time of a line of `/proc/PID/stat`, in which the name may contain anything.
pub(super) fn used_s(stat: &str) -> Option<f64> {
    // What Linux has on all architectures that have other programs' figures in it.
    const TICKS_PER_S: f64 = 100.0;
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || after_name.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_S)
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Server::Process(child) = self {
            // Fails if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ceph() -> Result<Running, String> {
    for (program, package) in [("ceph-mon", "ceph-mon"), ("ceph-osd", "ceph-osd"), ("rbd", "ceph-common")] {
        installed(program, package)?;
    }
    let cluster = Cluster::start()?;
    // fio flushes an image when it opens it, after which writes end in librbd's cache: both are to wait for the cluster.
    let configuration = cluster.configuration_with("rbd cache = false")?;
    Ok(Running {
        address: configuration.to_string_lossy().into_owned(),
        variables: vec![("CEPH_CONF", configuration.into()), ("CEPH_ARGS", OsString::new())],
        server: Server::Ceph { _cluster: cluster },
    })
}

fn gluster() -> Result<Running, String> {
    installed("glusterd", "glusterfs-server")?;
    installed("gluster", "glusterfs-cli")?;
    gluster::is_possible()?;
    let volume = Volume::start()?;
    let address = volume.address.clone();
    Ok(Running { server: Server::Gluster { _volume: volume }, address, variables: Vec::new() })
}

fn sink() -> Result<Running, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.arg(SINK_CHORE).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{SINK_CHORE}: {error}"))?;
    let mut port = String::new();
    let read = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut port));
    let address = port.trim().to_string();
    let running = Running { server: Server::Process(child), address, variables: Vec::new() };
    match read {
        Some(Ok(1..)) => Ok(running),
        other => Err(format!("{SINK_CHORE}: no port: {other:?}")),
    }
}

/// `xtask bench-sink`: prints a port, and reads what is sent there until it is killed.
pub fn run_sink() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{SINK_CHORE}: {error}");
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(failed)?;
    println!("{}", listener.local_addr().map_err(failed)?.port());
    let mut buffer = vec![0; SINK_BYTES];
    loop {
        let (mut stream, _) = listener.accept().map_err(failed)?;
        // A connection that is reset has ended as well.
        while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
    }
}

fn nginx(directory: &Path) -> Result<Running, String> {
    const CONFIGURATION: &str = "daemon off; master_process off; pid DIR/nginx.pid; error_log /dev/null;
events {}
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path DIR/nginx; proxy_temp_path DIR/nginx; fastcgi_temp_path DIR/nginx;
    uwsgi_temp_path DIR/nginx; scgi_temp_path DIR/nginx;
    server { listen 127.0.0.1:PORT; root DIR; }
}
";
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = listener.map_err(|error| format!("no free port: {error}"))?.port();
    let text = CONFIGURATION.replace("DIR", &directory.to_string_lossy()).replace("PORT", &port.to_string());
    let path = directory.join("nginx.conf");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(directory).args(["-e", "/dev/null", "-c"]).arg(path);
    Running::of(command, port.to_string(), "nginx-light")?
        .when(|| TcpStream::connect(("127.0.0.1", port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_time_is_that_of_user_and_system() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0";
        assert_eq!(used_s(stat), Some(3.0));
        assert_eq!(used_s("12 (a) S 1"), None);
    }

    #[test]
    fn a_peer_that_runs_has_used_time() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let running = Running::of(command, String::new(), "coreutils").unwrap();
        assert!(running.cpu_s().is_some());
        let missing = Running::of(Command::new("is-not-there"), String::new(), "a-package").unwrap_err();
        assert!(missing.contains("apt-get install a-package"), "{missing}");
    }
}
