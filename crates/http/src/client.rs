//! Requests: what is sent for an object, by the interface of the store.
//!
//! Invariant: the headers of a request are listed once; what is signed is what is sent.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::signature::{EncryptionKey, Hex, Signed, Signer};
use crate::target::Object;
use crate::time::Timestamp;

/// The most headers that a request has.
const HEADERS: usize = 10;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// It is read.
    Get,
    /// It is written.
    Put,
    /// It is deleted.
    Delete,
}

impl Method {
    fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// A part of an object: the offsets of its first byte and of the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Of the first.
    pub start_bytes: u64,
    /// Behind the last.
    pub end_bytes: u64,
}

/// The interface of a store, with what identifies its user.
#[derive(Debug)]
pub enum Access {
    /// WebDAV; a user and password, if it asks for them.
    WebDav(Option<(String, String)>),
    /// Amazon S3.
    S3(Box<S3>),
    /// OpenStack Swift, by a token.
    Swift(String),
}

/// What requests of S3 need.
#[derive(Debug)]
pub struct S3 {
    /// Who signs.
    pub signer: Signer,
    /// The token of a session.
    pub token: Option<String>,
    /// The key that the server encrypts objects with.
    pub encryption: Option<EncryptionKey>,
    /// The class of storage of objects that are written.
    pub storage_class: String,
}

/// Writes requests, one at a time.
#[derive(Debug)]
pub struct Client {
    authority: String,
    access: Access,
    /// The value of `Authorization` that is the same for all requests.
    basic: Option<String>,
    path: String,
    range: String,
    hash: String,
    date: String,
    authorization: String,
    head: String,
}

impl Client {
    /// Of this server (the value of `Host`).
    pub fn new(authority: String, access: Access) -> Client {
        let basic = match &access {
            Access::WebDav(Some((user, password))) => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            Access::WebDav(None) | Access::S3(_) | Access::Swift(_) => None,
        };
        let empty = || String::with_capacity(256);
        Client {
            authority,
            access,
            basic,
            path: empty(),
            range: empty(),
            hash: empty(),
            date: empty(),
            authorization: empty(),
            head: String::with_capacity(2048),
        }
    }

    /// The head of a request for an object, or for a part of it; a body follows it.
    pub fn head(
        &mut self,
        method: Method,
        object: &Object<'_>,
        part: Option<Part>,
        body: &[u8],
        seconds_of_unix: u64,
    ) -> &[u8] {
        let Client { authority, access, basic, path, range, hash, date, authorization, head } = self;
        path.clear();
        object.encode(path);
        range.clear();
        if let Some(Part { start_bytes, end_bytes }) = part {
            // Writing to a string does not fail.
            let _ = write!(range, "bytes={start_bytes}-{}", end_bytes.saturating_sub(1));
        }
        head.clear();
        let _ = write!(head, "{} {path} HTTP/1.1\r\n", method.word());
        let mut headers = Headers::new();
        headers.add("host", authority);
        if part.is_some() {
            headers.add("range", range);
        }
        match access {
            Access::WebDav(_) => {
                if let Some(basic) = basic {
                    headers.add("authorization", basic);
                }
            }
            Access::Swift(token) => headers.add("x-auth-token", token),
            Access::S3(s3) => {
                let S3 { signer, token, encryption, storage_class } = &mut **s3;
                let time = Timestamp::of_unix(seconds_of_unix);
                hash.clear();
                let _ = write!(hash, "{}", Hex(&Sha256::digest(body)));
                date.clear();
                let _ = write!(date, "{time}");
                // In the order of their names, as they are signed.
                headers.add("x-amz-content-sha256", hash);
                headers.add("x-amz-date", date);
                if let Some(token) = token {
                    headers.add("x-amz-security-token", token);
                }
                if let Some(EncryptionKey { algorithm, key, digest }) =
                    encryption.as_ref().filter(|_| method != Method::Delete)
                {
                    headers.add("x-amz-server-side-encryption-customer-algorithm", algorithm);
                    headers.add("x-amz-server-side-encryption-customer-key", key);
                    headers.add("x-amz-server-side-encryption-customer-key-md5", digest);
                }
                if method == Method::Put {
                    headers.add("x-amz-storage-class", storage_class);
                }
                let headers = headers.list();
                let signed = Signed { method: method.word(), path, headers, body_hash: hash, time };
                authorization.clear();
                signer.authorize(&signed, authorization);
                let _ = write!(head, "authorization: {authorization}\r\n");
            }
        }
        for (name, value) in headers.list() {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if method == Method::Put {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        head.as_bytes()
    }
}

/// Names and values.
struct Headers<'a> {
    list: [(&'static str, &'a str); HEADERS],
    count: usize,
}

impl<'a> Headers<'a> {
    fn new() -> Headers<'a> {
        Headers { list: [("", ""); HEADERS], count: 0 }
    }

    fn add(&mut self, name: &'static str, value: &'a str) {
        self.list[self.count] = (name, value);
        self.count += 1;
    }

    fn list(&self) -> &[(&'static str, &'a str)] {
        &self.list[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Keys;

    const OBJECT: Object<'_> = Object { path: b"/bucket/a", block: Some((0, 5)) };

    fn sent(client: &mut Client, method: Method, part: Option<Part>, body: &[u8]) -> String {
        String::from_utf8(client.head(method, &OBJECT, part, body, 1_369_353_600).to_vec()).unwrap()
    }

    #[test]
    fn webdav_and_swift_need_few_headers() {
        let mut dav = Client::new("h:81".to_string(), Access::WebDav(Some(("me".into(), "secret".into()))));
        assert_eq!(
            sent(&mut dav, Method::Put, None, b"hello"),
            "PUT /bucket/a_0_5 HTTP/1.1\r\nhost: h:81\r\nauthorization: Basic bWU6c2VjcmV0\r\ncontent-length: 5\r\n\r\n"
        );
        let part = Some(Part { start_bytes: 10, end_bytes: 20 });
        let mut swift = Client::new("h".to_string(), Access::Swift("token".into()));
        assert_eq!(
            sent(&mut swift, Method::Get, part, b""),
            "GET /bucket/a_0_5 HTTP/1.1\r\nhost: h\r\nrange: bytes=10-19\r\nx-auth-token: token\r\n\r\n"
        );
        let mut open = Client::new("h".to_string(), Access::WebDav(None));
        assert_eq!(
            sent(&mut open, Method::Delete, None, b""),
            "DELETE /bucket/a_0_5 HTTP/1.1\r\nhost: h\r\n\r\n"
        );
    }

    #[test]
    fn every_header_of_s3_is_signed_and_in_order() {
        let keys = Keys { id: "id".into(), secret: "secret".into(), region: "r".into() };
        let s3 = S3 {
            signer: Signer::new(keys),
            token: Some("session".into()),
            encryption: EncryptionKey::new("AES256", &[7; 32]),
            storage_class: "STANDARD".into(),
        };
        let mut client = Client::new("h".to_string(), Access::S3(Box::new(s3)));
        for (method, part) in [
            (Method::Put, None),
            (Method::Get, Some(Part { start_bytes: 0, end_bytes: 1 })),
            (Method::Delete, None),
        ] {
            let head = sent(&mut client, method, part, b"x");
            let names: Vec<&str> =
                head.lines().skip(2).filter_map(|line| Some(line.split_once(": ")?.0)).collect();
            let signed: Vec<&str> = names.iter().copied().filter(|name| *name != "content-length").collect();
            assert!(signed.is_sorted(), "{head}");
            let (_, list) = head.split_once("SignedHeaders=").unwrap();
            assert_eq!(list.split_once(',').unwrap().0, signed.join(";"));
            assert_eq!(head.contains("storage-class"), method == Method::Put);
            assert_eq!(head.contains("encryption"), method != Method::Delete);
        }
    }
}
