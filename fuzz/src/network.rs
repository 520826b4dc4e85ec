//! The targets for what comes over the network: any bytes as an HTTP response and the chunks after it, as what a server of
//! NBD says, and as addresses of either.
//!
//! Invariant: no more bytes are taken than were received, and nothing is taken after an error.

use std::io::{self, Cursor, Read, Write};

use fiord_http::{Body, Chunks, Endpoint, ResponseHead};
use fiord_nbd::{Address, Negotiation, REPLY_BYTES, Reply};

/// Reads the bytes as a response and its body.
pub fn http_response(data: &[u8]) {
    let Ok(Some((response, head_bytes))) = ResponseHead::parse(data) else { return };
    assert!(head_bytes <= data.len());
    if response.body != Body::Chunked {
        return;
    }
    let (mut chunks, mut rest) = (Chunks::default(), &data[head_bytes..]);
    while !chunks.is_ended() && !rest.is_empty() {
        let Ok((taken, of_body)) = chunks.take(rest) else { return };
        assert!(taken <= rest.len() && of_body <= taken);
        if taken == 0 {
            return;
        }
        rest = &rest[taken..];
    }
}

/// A server that says these bytes, and listens to everything.
struct Server<'a>(Cursor<&'a [u8]>);

impl Read for Server<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Server<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the bytes as what a server says until it has opened an export, and as its reply after that.
pub fn nbd_server(data: &[u8]) {
    let opened =
        Negotiation::begin(Server(Cursor::new(data))).and_then(|negotiation| negotiation.go("export"));
    let Ok((mut server, _)) = opened else { return };
    let mut reply = [0; REPLY_BYTES];
    if server.read_exact(&mut reply).is_ok() {
        let _ = Reply::decode(&reply);
    }
}

/// Reads the bytes as the URI of an export, and as the host of a store.
pub fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(why) = Address::parse(&text) {
        assert!(!why.to_string().is_empty());
    }
    for tls in [false, true] {
        if let Ok(endpoint) = Endpoint::parse(&text, tls) {
            assert!(endpoint.port > 0 && !endpoint.host.is_empty());
            assert_eq!(Endpoint::parse(&endpoint.authority, tls).map(|again| again.port), Ok(endpoint.port));
        }
    }
}
