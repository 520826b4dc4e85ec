//! A small HTTP server: each connection gets one answer and is closed.
//!
//! Invariant: one thread, at most `CONNECTIONS_MAX` connections, each of which ends after `CONNECTION_MAX`, whatever the
//! other end does. Others wait in the kernel's queue.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use fiord_sys::poll::{self, Until};

/// Connections at a time.
const CONNECTIONS_MAX: usize = 32;

/// How long a connection may last.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long no connection is accepted after one that the kernel could not give.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// The part of a request that decides about its answer. A body is not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// `GET`.
    pub(super) method: String,
    /// What is asked for, without a query.
    pub(super) path: String,
    /// The media types that are accepted.
    pub(super) accept: String,
}

impl Request {
    /// Reads a head; `None` if it is not one of HTTP/1.
    fn parse(head: &[u8]) -> Option<Request> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_known = version.starts_with("HTTP/1.") && words.next().is_none();
        let headers = lines.filter_map(|line| line.split_once(':'));
        let accept = headers.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
        is_known.then(|| Request {
            method: method.to_string(),
            path: target.split('?').next().unwrap_or_default().to_string(),
            accept: accept.map(|(_, value)| value).collect(),
        })
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    /// `200 OK`.
    pub(super) status: &'static str,
    /// The media type of the body.
    pub(super) kind: &'static str,
    /// Another header, if there is one: `Allow: GET`.
    pub(super) header: Option<&'static str>,
    /// The body, which a request with `HEAD` does not get.
    pub(super) body: Vec<u8>,
}

impl Response {
    /// An answer in words.
    pub(super) fn text(status: &'static str, text: &str) -> Response {
        Response { status, kind: "text/plain; charset=utf-8", header: None, body: text.as_bytes().to_vec() }
    }

    fn bytes(self, with_body: bool) -> Vec<u8> {
        let Response { status, kind, header, body } = self;
        let header = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{header}\r\n"
        );
        let mut bytes = head.into_bytes();
        bytes.extend(if with_body { body } else { Vec::new() });
        bytes
    }
}

/// What a connection is doing.
enum State {
    /// Reading the head, of which this is there.
    Reading(Vec<u8>),
    /// Writing the rest of the answer.
    Writing(Vec<u8>),
    /// Waiting for the other end to close: closing before it has read the answer could lose that.
    Closing,
}

/// A client.
struct Connection {
    stream: TcpStream,
    ends: Instant,
    state: State,
}

impl Connection {
    fn accepted(listener: &TcpListener) -> io::Result<Connection> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, ends: Instant::now() + CONNECTION_MAX, state: State::Reading(Vec::new()) })
    }

    fn awaited(&self) -> Until {
        match self.state {
            State::Writing(_) => Until::ReadableOrWritable,
            State::Reading(_) | State::Closing => Until::Readable,
        }
    }

    /// Goes on until the other end has to; an error where the connection is over.
    fn go_on(&mut self, answer: &dyn Fn(&Request) -> Response) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut chunk = [0; 4096];
        loop {
            match &mut self.state {
                State::Reading(head) => {
                    let length = self.stream.read(&mut chunk)?;
                    if length == 0 {
                        return Err(closed());
                    }
                    head.extend_from_slice(&chunk[..length]);
                    if let Some(answer) = answered(head, answer) {
                        self.state = State::Writing(answer);
                    }
                }
                State::Writing(rest) => {
                    let length = self.stream.write(rest)?;
                    rest.drain(..length);
                    if rest.is_empty() {
                        self.stream.shutdown(Shutdown::Write)?;
                        self.state = State::Closing;
                    }
                }
                State::Closing => {
                    if self.stream.read(&mut chunk)? == 0 {
                        return Err(closed());
                    }
                }
            }
        }
    }
}

/// The answer to a request; `None` as long as its head is not complete.
fn answered(head: &[u8], answer: &dyn Fn(&Request) -> Response) -> Option<Vec<u8>> {
    let Some(end) = head.windows(4).position(|part| part == b"\r\n\r\n") else {
        let too_long = || Response::text("431 Request Header Fields Too Large", "").bytes(true);
        return (head.len() > HEAD_BYTES_MAX).then(too_long);
    };
    Some(match Request::parse(&head[..end]) {
        Some(request) => answer(&request).bytes(request.method != "HEAD"),
        None => Response::text("400 Bad Request", "").bytes(true),
    })
}

/// Answers those who connect to `listener`, until the other end of `over` is closed.
///
/// # Errors
/// The kernel does not let it wait.
pub(super) fn serve(
    listener: &TcpListener,
    over: &UnixStream,
    answer: &dyn Fn(&Request) -> Response,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut connections: Vec<Connection> = Vec::with_capacity(CONNECTIONS_MAX);
    let mut accepts_from = Instant::now();
    loop {
        let now = Instant::now();
        connections.retain(|connection| connection.ends > now);
        let accepts = connections.len() < CONNECTIONS_MAX && accepts_from <= now;
        let mut awaited = vec![(over.as_fd(), Until::Readable)];
        awaited
            .extend(connections.iter().map(|connection| (connection.stream.as_fd(), connection.awaited())));
        awaited.extend(accepts.then(|| (listener.as_fd(), Until::Readable)));
        let ends = connections.iter().map(|connection| connection.ends);
        let next = ends.chain((accepts_from > now).then_some(accepts_from)).min();
        let ready = match poll::wait_for_any(&awaited, next.map(|next| next - now)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            ready => ready?,
        };
        if ready[0] {
            return Ok(());
        }
        let has_new = accepts && ready.last() == Some(&true);
        let mut ready = ready.into_iter().skip(1);
        let is_blocked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        connections.retain_mut(|connection| {
            !ready.next().unwrap_or(false) || connection.go_on(answer).is_err_and(|error| is_blocked(&error))
        });
        if has_new {
            match Connection::accepted(listener) {
                Ok(connection) => connections.push(connection),
                Err(error) if is_blocked(&error) => {}
                Err(_) => accepts_from = now + ACCEPT_AGAIN,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_in_any_case_and_with_any_headers() {
        let request = |method: &str, path: &str, accept: &str| {
            let (method, path, accept) = (method.to_string(), path.to_string(), accept.to_string());
            Some(Request { method, path, accept })
        };
        let parse = |head: &str| Request::parse(head.as_bytes());
        assert_eq!(parse("GET /metrics?x=1 HTTP/1.1"), request("GET", "/metrics", ""));
        assert_eq!(parse("HEAD / HTTP/1.0\r\nHost: x\r\naCCept: a/b"), request("HEAD", "/", " a/b"));
        for wrong in ["", "GET", "GET /", "GET / HTTP/2", "GET / x HTTP/1.1", "\u{16}\u{3}"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Request::parse(b"GET /\xff HTTP/1.1"), None);
    }

    #[test]
    fn an_answer_waits_for_the_whole_head_but_not_for_ever() {
        let answer = |_: &Request| Response::text("200 OK", "body");
        let answered = |head: &[u8]| answered(head, &answer).map(|answer| String::from_utf8(answer).unwrap());
        assert_eq!(answered(b"GET / HTTP/1.1\r\n"), None);
        let whole = answered(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(whole.contains("Content-Length: 4\r\n") && whole.ends_with("\r\n\r\nbody"), "{whole}");
        let head = answered(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(answered(b"no request\r\n\r\n").unwrap().starts_with("HTTP/1.1 400 "));
        assert!(answered(&vec![b'x'; HEAD_BYTES_MAX + 1]).unwrap().starts_with("HTTP/1.1 431 "));
    }
}
