//! Where a server is, and the paths of objects.
//!
//! Invariant: a path is encoded once, in the form that both the request line and a signature have.

use std::fmt::{self, Write};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name or number, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What `Host` says: the port only if it is not the default one.
    pub authority: String,
}

/// Text that names no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError(&'static str);

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for EndpointError {}

impl Endpoint {
    /// `HOST` or `HOST:PORT`, an IPv6 address in brackets if a port follows.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, tls: bool) -> Result<Endpoint, EndpointError> {
        const FORM: EndpointError = EndpointError("is not HOST or HOST:PORT");
        if text.contains("://") {
            return Err(EndpointError("begins with a scheme; leave it out, and set https=on for TLS"));
        }
        if text.contains(['/', '?', '#', ' ', '\r', '\n']) {
            return Err(EndpointError("has a path; leave it out, and put it into filename="));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']').ok_or(FORM)? {
                (host, "") => (host, None),
                (host, after) => (host, Some(after.strip_prefix(':').ok_or(FORM)?)),
            },
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.contains(['[', ']']) {
            return Err(FORM);
        }
        let default = if tls { 443 } else { 80 };
        let port = match port {
            None => default,
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(FORM)?,
        };
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let authority = if port == default { shown } else { format!("{shown}:{port}") };
        Ok(Endpoint { host: host.to_string(), port, authority })
    }
}

/// An object: a path, and the part of the job's data that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    /// The path that the job names.
    pub path: &'a [u8],
    /// If each block is an object: the block's start and end, which are part of the object's name.
    pub block: Option<(u64, u64)>,
}

impl Object<'_> {
    /// Appends its path, encoded: everything but letters, digits and `-._~/`.
    pub fn encode(&self, into: &mut String) {
        if self.path.first() != Some(&b'/') {
            into.push('/');
        }
        for byte in self.path {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    into.push(char::from(*byte));
                }
                // Writing to a string does not fail.
                byte => {
                    let _ = write!(into, "%{byte:02X}");
                }
            }
        }
        if let Some((start, end)) = self.block {
            let _ = write!(into, "_{start}_{end}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_port_of_their_scheme() {
        let parsed = |text, tls| {
            let Endpoint { host, port, authority } = Endpoint::parse(text, tls).unwrap();
            (host, port, authority)
        };
        let expected = |host: &str, port, authority: &str| (host.to_string(), port, authority.to_string());
        assert_eq!(parsed("localhost", false), expected("localhost", 80, "localhost"));
        assert_eq!(parsed("localhost", true), expected("localhost", 443, "localhost"));
        assert_eq!(parsed("a.b:9000", true), expected("a.b", 9000, "a.b:9000"));
        assert_eq!(parsed("::1", false), expected("::1", 80, "[::1]"));
        assert_eq!(parsed("[::1]:81", false), expected("::1", 81, "[::1]:81"));
        for wrong in [
            "",
            ":80",
            "a:",
            "a:x",
            "a:0",
            "a:70000",
            "[::1",
            "[::1]x",
            "::1]:80",
            "http://a",
            "a/b",
            "a b",
            "a\r\nX: y",
        ] {
            assert!(Endpoint::parse(wrong, false).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn paths_are_encoded_once() {
        let encoded = |path: &[u8], block| {
            let mut text = String::new();
            Object { path, block }.encode(&mut text);
            text
        };
        assert_eq!(encoded(b"/bucket/a b", None), "/bucket/a%20b");
        assert_eq!(encoded(b"a$\xff%?", Some((4096, 8192))), "/a%24%FF%25%3F_4096_8192");
    }
}
