//! A server of agents, for clients that have its secret: a listener, and for each client a process of its own.
//!
//! Invariant: a client that has not proven to know the secret reaches nothing but the handshake; at most 32 of them are there
//! at a time. What a client's agent may do is in its [`Policy`]. When the server ends, its agents lose their controllers.

mod address;
mod handshake;
mod policy;
mod relay;
mod secret;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fiord_report::path::shown;
use fiord_stats::Capped;
use fiord_sys::errno::error_text;
use fiord_sys::poll::{self, Until};
use fiord_sys::spawn::spawn;
use fiord_sys::{clock, process, signal};
use rustls::ServerConfig;

pub use address::ServerAddress;
pub use policy::Policy;
pub use secret::{Secret, VARIABLE};

use crate::hello::SELF;

/// How many clients may be there that have not proven anything yet.
const UNPROVEN_MAX: usize = 32;

/// How long one that has proven nothing true is kept waiting, so that guessing takes time.
const DELAY: Duration = Duration::from_secs(1);

/// Stack of a thread with a client, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// How often the wish to stop is looked for.
const TICK: Duration = Duration::from_millis(500);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    clients: Arc<Clients>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What the threads with clients share.
struct Clients {
    config: Arc<ServerConfig>,
    /// What clients have to know; `None`: nothing.
    secret: Option<Secret>,
    policy: Policy,
    unproven: AtomicUsize,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Clients").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Takes lines about clients, for a log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

impl Server {
    /// Listens at this address. `secret`: what clients have to know, if anything.
    ///
    /// # Errors
    /// The address cannot be used, or the kernel cannot hold the policy.
    pub fn listen(address: &ServerAddress, secret: Option<Secret>, policy: Policy) -> Result<Server, String> {
        policy.check()?;
        let listener = match address {
            ServerAddress::Internet { .. } => address.listen().map(Listener::Tcp)?,
            ServerAddress::Unix(path) => listen_at(path).map(Listener::Unix)?,
        };
        let config = handshake::server_config().map_err(|error| error_text(&error))?;
        let clients = Clients { config, secret, policy, unproven: AtomicUsize::new(0) };
        Ok(Server { listener, clients: Arc::new(clients) })
    }

    /// The port, where there is one.
    pub fn port(&self) -> Option<u16> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(_) => None,
        }
    }

    /// Serves clients until a signal says to stop; its number.
    pub fn run(self, log: &Log) -> i32 {
        // Without its handlers a signal ends the server, and its agents find that out.
        let _ = signal::record_stop_requests();
        loop {
            if let Some(number) = signal::stop_requested() {
                return number;
            }
            let listener = match &self.listener {
                Listener::Tcp(listener) => listener.as_fd(),
                Listener::Unix(listener) => listener.as_fd(),
            };
            if !matches!(poll::wait(listener, Until::Readable, Some(TICK)), Ok(true)) {
                continue;
            }
            match self.accept() {
                Ok((client, name)) => self.take(client, name, log),
                Err(error) => {
                    log(&format!("a client cannot be accepted: {}", error_text(&error)));
                    // Too many open files, say: they become fewer with time.
                    pause(TICK);
                }
            }
        }
    }

    fn accept(&self) -> io::Result<(UnixStream, String)> {
        match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((UnixStream::from(OwnedFd::from(stream)), peer.to_string()))
            }
            Listener::Unix(listener) => Ok((listener.accept()?.0, "a local client".to_string())),
        }
    }

    /// Gives a client a thread.
    fn take(&self, client: UnixStream, name: String, log: &Log) {
        if self.clients.unproven.load(Ordering::Relaxed) >= UNPROVEN_MAX {
            return log(&format!("{name}: closed: {UNPROVEN_MAX} others have not proven who they are"));
        }
        self.clients.unproven.fetch_add(1, Ordering::Relaxed);
        let (clients, log_there) = (Arc::clone(&self.clients), Arc::clone(log));
        let started = spawn("client", STACK_BYTES, move || {
            signal::leave_to_other_threads();
            if let Err(why) = clients.serve(client, &name, &log_there) {
                log_there(&format!("{name}: {why}"));
            }
        });
        if let Err(error) = started {
            self.clients.unproven.fetch_sub(1, Ordering::Relaxed);
            log(&format!("a thread cannot be started: {}", error_text(&error)));
        }
    }
}

impl Clients {
    fn serve(&self, client: UnixStream, name: &str, log: &Log) -> Result<(), String> {
        let secured = handshake::serve(client, &self.config, self.secret.as_ref());
        if secured.is_err() {
            pause(DELAY);
        }
        self.unproven.fetch_sub(1, Ordering::Relaxed);
        let secured = secured?;
        let started = || {
            let (local, there) = UnixStream::pair()?;
            let mut command = Command::new(SELF);
            command.arg0("fiord").arg("agent").args(self.policy.arguments());
            command
                .stdin(Stdio::from(OwnedFd::from(there.try_clone()?)))
                .stdout(Stdio::from(OwnedFd::from(there)));
            // A group of its own: Ctrl-C is the server's, which closes its end.
            command.process_group(0);
            Ok((process::in_ordinary_state(&mut command).spawn()?, local))
        };
        let (mut agent, local) =
            started().map_err(|error: io::Error| format!("no agent: {}", error_text(&error)))?;
        log(&format!("{name}: agent {} begins", agent.id()));
        let relayed = relay::relay(secured, local);
        // It sees the end of its stream, reports, and leaves.
        let _ = agent.wait();
        let how = relayed.err().map_or_else(String::new, |error| format!(": {}", error_text(&error)));
        log(&format!("{name}: agent {} has ended{how}", agent.id()));
        Ok(())
    }
}

fn pause(time: Duration) {
    clock::sleep_until_ns(clock::monotonic_ns() + u64::capped(time.as_nanos()));
}

/// Listens at a path, which only this user can reach.
#[allow(clippy::disallowed_methods, reason = "a socket of the server's own, whose mode is set")]
fn listen_at(path: &std::path::Path) -> Result<UnixListener, String> {
    use std::os::unix::fs::PermissionsExt;
    let listen = || {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fiord_sys::socket::remove_stale(path)?;
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    listen().map_err(|error: io::Error| format!("{}: {}", shown(path.as_os_str()), error_text(&error)))
}

/// Connects to a server, and carries bytes between it and the socket that is standard input, until both have ended.
///
/// # Errors
/// Why there is no connection.
pub fn relay_to(address: &ServerAddress) -> Result<(), String> {
    if matches!(address, ServerAddress::Internet { host, .. } if host.is_empty()) {
        return Err("name the host of the server, as in --connect=db1".to_string());
    }
    let secret = match address {
        // Who reaches the socket is its owner.
        ServerAddress::Unix(_) => None,
        ServerAddress::Internet { .. } => Secret::find()?,
    };
    let socket = address.connect()?;
    let secured = handshake::connect(socket, secret.as_ref())?;
    let local = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let relayed = local.and_then(|local| relay::relay(secured, local));
    relayed.map_err(|error| format!("the connection broke: {}", error_text(&error)))
}
