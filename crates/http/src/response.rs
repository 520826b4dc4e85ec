//! Responses: their heads, and how their bodies end.
//!
//! Invariant: a response that does not follow the protocol is an error, after which the connection is of no use.

use std::fmt;

/// The most headers that a response may have.
const HEADERS_MAX: usize = 64;

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    /// Its status.
    pub status: u16,
    /// How its body ends.
    pub body: Body,
    /// Whether the connection takes another request afterwards.
    pub keeps_alive: bool,
}

/// How the body of a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// After this many bytes.
    Length(u64),
    /// In chunks, the last of which is empty.
    Chunked,
    /// With the connection.
    UntilClosed,
}

/// Bytes that are not a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseError(&'static str);

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ResponseError {}

impl ResponseHead {
    /// From the beginning of what was received: the head and its length, or `None` if more must be received.
    ///
    /// # Errors
    /// If it is not a response.
    pub fn parse(bytes: &[u8]) -> Result<Option<(ResponseHead, usize)>, ResponseError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(ResponseError("the response has too many headers"));
            }
            Err(_) => return Err(ResponseError("what the server sent is not an HTTP/1.1 response")),
        };
        let (Some(status), Some(minor)) = (head.code, head.version) else {
            return Err(ResponseError("the response has no status"));
        };
        let mut response = ResponseHead { status, body: Body::UntilClosed, keeps_alive: minor > 0 };
        let mut given_length = None;
        for header in head.headers.iter() {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let text = std::str::from_utf8(header.value).unwrap_or_default().trim();
                let bytes = text
                    .parse()
                    .map_err(|_| ResponseError("the response's Content-Length is not a number"))?;
                if given_length.is_some_and(|given| given != bytes) {
                    return Err(ResponseError("the response has two lengths"));
                }
                given_length = Some(bytes);
            } else if is("transfer-encoding") {
                if !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(ResponseError("the response has a transfer encoding other than chunked"));
                }
                response.body = Body::Chunked;
            } else if is("connection") {
                response.keeps_alive = match header.value {
                    value if value.eq_ignore_ascii_case(b"close") => false,
                    value if value.eq_ignore_ascii_case(b"keep-alive") => true,
                    _ => response.keeps_alive,
                };
            }
        }
        match (response.body, given_length) {
            _ if status < 200 || status == 204 || status == 304 => response.body = Body::Length(0),
            (Body::UntilClosed, Some(bytes)) => response.body = Body::Length(bytes),
            (Body::UntilClosed, None) => response.keeps_alive = false,
            (Body::Chunked | Body::Length(_), _) => {}
        }
        Ok(Some((response, length)))
    }
}

/// What comes next in a body in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The length of a chunk, of which these digits were read.
    Size { bytes: u64, has_digits: bool },
    /// Extensions, to the end of the line.
    Extension { bytes: u64 },
    /// The rest of a chunk.
    Data { bytes: u64 },
    /// The end of the line after a chunk.
    DataEnd,
    /// A line after the last chunk, which is empty so far or not.
    Trailer { is_empty: bool },
    /// Nothing.
    End,
}

/// A body in chunks, as it is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks(Next);

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks(Next::Size { bytes: 0, has_digits: false })
    }
}

impl Chunks {
    /// Whether the body has ended.
    pub fn is_ended(&self) -> bool {
        self.0 == Next::End
    }

    /// Takes the beginning of what was received: how many bytes, and how many of them, the last ones, are data.
    ///
    /// # Errors
    /// If they are not chunks.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, usize), ResponseError> {
        const WRONG: ResponseError = ResponseError("the body of the response is not in valid chunks");
        for (index, byte) in bytes.iter().enumerate() {
            self.0 = match (self.0, byte) {
                (Next::Data { bytes: left }, _) => {
                    let data = (bytes.len() - index).min(usize::try_from(left).unwrap_or(usize::MAX));
                    let left = left - data as u64;
                    self.0 = if left == 0 { Next::DataEnd } else { Next::Data { bytes: left } };
                    return Ok((index + data, data));
                }
                (Next::End, _) => return Ok((index, 0)),
                (Next::Size { has_digits: true, bytes } | Next::Extension { bytes }, b'\n') => match bytes {
                    0 => Next::Trailer { is_empty: true },
                    bytes => Next::Data { bytes },
                },
                (Next::Size { has_digits: true, bytes }, b'\r' | b';' | b' ') => Next::Extension { bytes },
                (Next::Size { bytes, .. }, digit) => {
                    let digit = char::from(*digit).to_digit(16).ok_or(WRONG)?;
                    let bytes = bytes.checked_mul(16).ok_or(WRONG)? + u64::from(digit);
                    Next::Size { bytes, has_digits: true }
                }
                (Next::Extension { bytes }, _) => Next::Extension { bytes },
                (Next::DataEnd, b'\r') => Next::DataEnd,
                (Next::DataEnd, b'\n') => Next::Size { bytes: 0, has_digits: false },
                (Next::DataEnd, _) => return Err(WRONG),
                (Next::Trailer { is_empty: true }, b'\n') => Next::End,
                (Next::Trailer { is_empty: false }, b'\n') => Next::Trailer { is_empty: true },
                (Next::Trailer { is_empty }, byte) => Next::Trailer { is_empty: is_empty && *byte == b'\r' },
            };
        }
        Ok((bytes.len(), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ResponseHead {
        let (response, length) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(length, text.find("\r\n\r\n").unwrap() + 4);
        response
    }

    #[test]
    fn heads_say_how_bodies_end() {
        let response = |status, body, keeps_alive| ResponseHead { status, body, keeps_alive };
        let whole = parsed("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nhello");
        assert_eq!(whole, response(200, Body::Length(12), true));
        let chunked =
            parsed("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n");
        assert_eq!(chunked, response(201, Body::Chunked, true));
        assert_eq!(parsed("HTTP/1.1 204 No Content\r\n\r\n"), response(204, Body::Length(0), true));
        assert_eq!(parsed("HTTP/1.1 404 x\r\n\r\n"), response(404, Body::UntilClosed, false));
        let closed = parsed("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(closed, response(200, Body::Length(0), false));
        assert!(!parsed("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keeps_alive);
        assert_eq!(ResponseHead::parse(b"HTTP/1.1 200 OK\r\nContent-"), Ok(None));
    }

    #[test]
    fn what_is_not_a_response_is_an_error() {
        let wrong = [
            "NBDMAGIC\r\n\r\n".to_string(),
            "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n".to_string(),
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_string(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_string(),
            format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(65)),
        ];
        for text in wrong {
            assert!(ResponseHead::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    /// The data of a body that is received in pieces of this length.
    fn data(body: &str, piece: usize) -> Result<(String, bool), ResponseError> {
        let (mut chunks, mut data) = (Chunks::default(), Vec::new());
        for mut bytes in body.as_bytes().chunks(piece) {
            while !bytes.is_empty() && !chunks.is_ended() {
                let (taken, last) = chunks.take(bytes)?;
                data.extend(&bytes[taken - last..taken]);
                bytes = &bytes[taken..];
            }
        }
        Ok((String::from_utf8(data).unwrap(), chunks.is_ended()))
    }

    #[test]
    fn chunks_are_put_together_however_they_are_received() {
        let body = "5\r\nhello\r\n00B;x=y\r\n, chunked w\r\n4\r\norld\r\n0\r\nA: b\r\n\r\nnext";
        for piece in 1..=body.len() {
            assert_eq!(data(body, piece), Ok(("hello, chunked world".to_string(), true)), "{piece}");
        }
        assert_eq!(data("0\r\n\r\n", 2), Ok((String::new(), true)));
        assert_eq!(data("3\r\nab", 9), Ok(("ab".to_string(), false)));
        for wrong in ["x\r\n", "\r\n", "1\r\nab\r\n", "fffffffffffffffff\r\n"] {
            assert!(data(wrong, 99).is_err(), "{wrong:?}");
        }
    }
}
