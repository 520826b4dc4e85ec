//! Addresses of servers, in the forms of fio's `--server` and `--client`.
//!
//! Invariant: an address is read here alone, and a name is looked up only where it is listened at or connected to.

use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use fiord_fleet::hosts::SERVER_PORT;
use fiord_sys::errno::error_text;

/// How long one address of a name may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A name or an address, and a port.
    Internet {
        /// As typed, without brackets; empty: all addresses of this machine.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a socket.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads `HOST`, `HOST,PORT`, `,PORT`, `ip:HOST,PORT`, `ip6:HOST,PORT`, `sock:PATH`; or nothing, which is any address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<ServerAddress, String> {
        if let Some(path) = text.strip_prefix("sock:") {
            return match path {
                "" => Err("sock: needs a path, as in sock:/run/fiord.sock".to_string()),
                path => Ok(ServerAddress::Unix(PathBuf::from(path))),
            };
        }
        let rest =
            ["ip6:", "ip4:", "ip:"].into_iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        let (host, port) = match rest.rsplit_once(',') {
            Some((host, port)) => (host, read_port(port)?),
            None => (rest, SERVER_PORT),
        };
        let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
        Ok(ServerAddress::Internet { host: host.to_string(), port })
    }

    /// The same address with the port that is listened at, where any was asked for.
    pub fn with_port(self, port: Option<u16>) -> ServerAddress {
        match (self, port) {
            (ServerAddress::Internet { host, .. }, Some(port)) => ServerAddress::Internet { host, port },
            (address, _) => address,
        }
    }

    /// The same, or of a host of a list, whose port may be missing.
    pub fn of_host(address: &str, port: Option<u16>) -> ServerAddress {
        match address.strip_prefix("sock:") {
            Some(path) => ServerAddress::Unix(PathBuf::from(path)),
            None => ServerAddress::Internet { host: address.to_string(), port: port.unwrap_or(SERVER_PORT) },
        }
    }

    /// Whether its owner alone can reach it.
    pub fn is_local(&self) -> bool {
        matches!(self, ServerAddress::Unix(_))
    }

    pub(super) fn listen(&self) -> Result<TcpListener, String> {
        let ServerAddress::Internet { host, port } = self else {
            return Err(self.failed(&io::ErrorKind::Unsupported.into()));
        };
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        TcpListener::bind((host, *port)).map_err(|error| self.failed(&error))
    }

    pub(super) fn connect(&self) -> Result<UnixStream, String> {
        let connected = match self {
            ServerAddress::Unix(path) => UnixStream::connect(path),
            ServerAddress::Internet { host, port } => {
                connect(host, *port).map(|stream| UnixStream::from(OwnedFd::from(stream)))
            }
        };
        connected.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("{self}: {}", error_text(error))
    }
}

/// Tries all addresses of a name.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn read_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a port: ports are numbers up to 65535"))
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Unix(path) => write!(out, "sock:{}", path.display()),
            ServerAddress::Internet { host, port } if host.is_empty() => write!(out, "any,{port}"),
            ServerAddress::Internet { host, port } => write!(out, "{host},{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_forms_of_fio() {
        let shown = |text: &str| ServerAddress::read(text).map(|address| address.to_string());
        for (text, expected) in [
            ("", "any,8765"),
            (",4444", "any,4444"),
            ("db1", "db1,8765"),
            ("ip:db1,4444", "db1,4444"),
            ("1.2.3.4", "1.2.3.4,8765"),
            ("ip6:::1,8770", "::1,8770"),
            ("[::1]", "::1,8765"),
            ("sock:/tmp/x,y", "sock:/tmp/x,y"),
        ] {
            assert_eq!(shown(text).unwrap(), expected, "{text}");
        }
        assert!(shown("db1,65536").is_err() && shown("db1,x").is_err() && shown("sock:").is_err());
        assert_eq!(ServerAddress::of_host("::1", None).to_string(), "::1,8765");
        assert_eq!(ServerAddress::of_host("sock:/x", Some(1)).to_string(), "sock:/x");
    }
}
