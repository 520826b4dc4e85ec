//! Addresses of NBD servers: `nbd://host:port/export` and its variants, as the NBD project specifies them.
//!
//! Invariant: an address that is accepted is used as a whole; a part that has no effect here is an error.

use std::fmt;
use std::path::PathBuf;

/// The port that servers listen on by default.
const PORT: u16 = 10809;

/// Where a server is, and which of its exports is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The machine, or the socket.
    pub host: Host,
    /// Whether the connection must be encrypted.
    pub tls: bool,
    /// The name of the export; empty for the default one.
    pub export: String,
    /// A directory with `ca-cert.pem`, and optionally `client-cert.pem` and `client-key.pem`.
    pub certificates: Option<PathBuf>,
}

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// TCP.
    Tcp {
        /// A name or a number, without brackets.
        name: String,
        /// The port.
        port: u16,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Tcp { name, port } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Host::Tcp { name, port } => write!(f, "{name}:{port}"),
            Host::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Text that is not an address of an NBD server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriError(String);

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for UriError {}

fn error<T>(text: impl Into<String>) -> Result<T, UriError> {
    Err(UriError(text.into()))
}

impl Address {
    /// From the text of a URI.
    ///
    /// # Errors
    /// What is wrong with it, and what it should look like.
    pub fn parse(text: &str) -> Result<Address, UriError> {
        const FORMS: &str = "nbd://HOST:PORT/EXPORT, nbds://HOST/EXPORT or nbd+unix:///EXPORT?socket=PATH";
        let Some((scheme, rest)) = text.split_once("://") else {
            return error(format!("is not a URI; use {FORMS}"));
        };
        let (is_unix, tls) = match scheme {
            "nbd" => (false, false),
            "nbds" => (false, true),
            "nbd+unix" => (true, false),
            "nbds+unix" => (true, true),
            "nbd+vsock" | "nbds+vsock" | "nbd+ssh" => {
                return error(format!("{scheme} is not supported; use {FORMS}"));
            }
            _ => return error(format!("begins with {scheme}, which is not an NBD scheme; use {FORMS}")),
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let query = Query::parse(query)?;
        let host = match (is_unix, query.socket) {
            (true, Some(_)) if !authority.is_empty() => {
                return error("has a host and a socket; a URI of a socket begins with nbd+unix:///");
            }
            (true, Some(socket)) => Host::Unix(socket),
            (true, None) => return error("has no socket; add ?socket=PATH"),
            (false, Some(_)) => {
                return error(
                    "names a socket, which belongs to nbd+unix:///; use that, or leave the socket out",
                );
            }
            (false, None) => tcp(authority)?,
        };
        if query.certificates.is_some() && !tls {
            return error("has certificates, but its scheme does not encrypt; use nbds:// or nbds+unix://");
        }
        Ok(Address { host, tls, export: decoded(path)?, certificates: query.certificates })
    }
}

/// The parameters behind the question mark.
#[derive(Default)]
struct Query {
    socket: Option<PathBuf>,
    certificates: Option<PathBuf>,
}

impl Query {
    fn parse(text: &str) -> Result<Query, UriError> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            match key {
                "socket" if !value.is_empty() => query.socket = Some(PathBuf::from(value)),
                "socket" => return error("names no socket: socket= needs a path"),
                "tls-certificates" => query.certificates = Some(PathBuf::from(value)),
                "tls-psk-file" => {
                    return error(
                        "asks for TLS with a pre-shared key, which is not supported; use certificates",
                    );
                }
                _ => {
                    return error(format!(
                        "has the parameter {key}, which is unknown; known are socket and tls-certificates"
                    ));
                }
            }
        }
        Ok(query)
    }
}

/// `[user@]host[:port]`, an IPv6 address in brackets.
fn tcp(authority: &str) -> Result<Host, UriError> {
    // A user name means something to servers' certificates only, and never goes over the network.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, "")) => (name, None),
            Some((name, after)) => (name, after.strip_prefix(':')),
            None => return error("has an IPv6 address without its closing bracket"),
        },
        None => match host.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let port = match port {
        None | Some("") => PORT,
        Some(text) => match text.parse() {
            Ok(port @ 1..) => port,
            Ok(0) | Err(_) => return error(format!("has the port {text}; a port is between 1 and 65535")),
        },
    };
    let name = decoded(if name.is_empty() { "localhost" } else { name })?;
    Ok(Host::Tcp { name, port })
}

/// Without `%XX`.
fn decoded(text: &str) -> Result<String, UriError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let Some(byte) = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()) else {
            return error("has a % that two hexadecimal digits do not follow; write %25 for a %");
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    String::from_utf8(bytes).or_else(|_| error("is not UTF-8 when its %XX are decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_of(text: &str) -> (String, u16, String) {
        let address = Address::parse(text).unwrap();
        match address.host {
            Host::Tcp { name, port } => (name, port, address.export),
            Host::Unix(path) => panic!("{path:?}"),
        }
    }

    #[test]
    fn hosts_ports_and_exports_are_read() {
        let expected = |name: &str, port, export: &str| (name.to_string(), port, export.to_string());
        assert_eq!(tcp_of("nbd://localhost"), expected("localhost", 10809, ""));
        assert_eq!(tcp_of("nbd://localhost:10810/disk"), expected("localhost", 10810, "disk"));
        assert_eq!(tcp_of("nbd://[::1]:7/a%20b/c"), expected("::1", 7, "a b/c"));
        assert_eq!(tcp_of("nbds://me@example.com/"), expected("example.com", 10809, ""));
        assert!(Address::parse("nbds://example.com").unwrap().tls);
    }

    #[test]
    fn sockets_are_named_by_a_parameter() {
        let address = Address::parse("nbd+unix:///disk?socket=/tmp/a%2Cb").unwrap();
        assert_eq!(address.host, Host::Unix("/tmp/a,b".into()));
        assert_eq!((address.export.as_str(), address.tls), ("disk", false));
        let address = Address::parse("nbds+unix:///?socket=s&tls-certificates=pki").unwrap();
        assert_eq!((address.tls, address.certificates), (true, Some("pki".into())));
    }

    #[test]
    fn what_would_be_ignored_is_an_error() {
        let wrong = [
            ("localhost:10809", "is not a URI"),
            ("http://localhost", "not an NBD scheme"),
            ("nbd+vsock://2", "not supported"),
            ("nbd+unix:///", "?socket=PATH"),
            ("nbd+unix:///?socket=", "needs a path"),
            ("nbd+unix://host/?socket=s", "a host and a socket"),
            ("nbd://host?socket=s", "nbd+unix"),
            ("nbd://host:0", "port"),
            ("nbd://host:x", "port"),
            ("nbd://[::1", "bracket"),
            ("nbd://host/%4", "hexadecimal"),
            ("nbd://host/%ff", "UTF-8"),
            ("nbd://host?speed=1", "unknown"),
            ("nbds://host?tls-psk-file=k", "pre-shared"),
            ("nbd://host?tls-certificates=d", "nbds"),
        ];
        for (text, word) in wrong {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
