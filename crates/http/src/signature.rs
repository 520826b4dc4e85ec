//! Signatures of Amazon S3, version 4, and the headers of keys that a client encrypts with.
//!
//! Invariant: what is signed is hashed as it is written; the request that is sent has the same headers in the same order.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::time::Timestamp;

/// Bytes of a key for AES-256.
const KEY_BYTES: usize = 32;

/// Who signs, and for which region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The identifier of the key.
    pub id: String,
    /// The secret key.
    pub secret: String,
    /// The region.
    pub region: String,
}

/// Signs requests; the key of a day is derived once.
#[derive(Debug)]
pub struct Signer {
    keys: Keys,
    derived: Option<(Timestamp, [u8; 32])>,
}

/// What a signature is made of, besides the keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signed<'a> {
    /// `GET`.
    pub method: &'a str,
    /// The encoded path.
    pub path: &'a str,
    /// Names and values of the headers, names in lower case and sorted.
    pub headers: &'a [(&'a str, &'a str)],
    /// The hash of the body, in hexadecimal digits, which is one of the headers too.
    pub body_hash: &'a str,
    /// The time, which is one of the headers too.
    pub time: Timestamp,
}

impl Signer {
    /// For these keys.
    pub fn new(keys: Keys) -> Signer {
        Signer { keys, derived: None }
    }

    /// Appends the value of `Authorization`.
    pub(crate) fn authorize(&mut self, signed: &Signed<'_>, into: &mut String) {
        let key = self.key(signed.time);
        let mut text = Hashed(mac(&key));
        let day = signed.time.day();
        let scope = Scope { day: &day, region: &self.keys.region };
        // Hashing and writing to a string do not fail.
        let _ = write!(text, "AWS4-HMAC-SHA256\n{}\n{scope}\n{}", signed.time, Hex(&signed.canonical_hash()));
        let signature = text.0.finalize().into_bytes();
        let _ = write!(into, "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders=", self.keys.id);
        let _ = write_names(signed.headers, into);
        let _ = write!(into, ",Signature={}", Hex(&signature));
    }

    /// The key of a day.
    fn key(&mut self, time: Timestamp) -> [u8; 32] {
        if let Some((_, key)) = self.derived.filter(|(day, _)| day.is_same_day(&time)) {
            return key;
        }
        let mut secret = Vec::from(*b"AWS4");
        secret.extend(self.keys.secret.as_bytes());
        let next = |key: &[u8], part: &dyn fmt::Display| {
            let mut hashed = Hashed(mac(key));
            let _ = write!(hashed, "{part}");
            <[u8; 32]>::from(hashed.0.finalize().into_bytes())
        };
        let parts: [&dyn fmt::Display; 3] = [&self.keys.region, &"s3", &"aws4_request"];
        let key = parts.into_iter().fold(next(&secret, &time.day()), |key, part| next(&key, part));
        self.derived = Some((time, key));
        key
    }
}

impl Signed<'_> {
    fn canonical_hash(&self) -> [u8; 32] {
        let mut text = Hashed(Sha256::new());
        let _ = self.write_canonical(&mut text);
        text.0.finalize().into()
    }

    fn write_canonical(&self, into: &mut impl Write) -> fmt::Result {
        write!(into, "{}\n{}\n\n", self.method, self.path)?;
        for (name, value) in self.headers {
            writeln!(into, "{name}:{value}")?;
        }
        into.write_char('\n')?;
        write_names(self.headers, into)?;
        write!(into, "\n{}", self.body_hash)
    }
}

fn write_names(headers: &[(&str, &str)], into: &mut impl Write) -> fmt::Result {
    headers.iter().enumerate().try_for_each(|(index, (name, _))| {
        into.write_str(if index > 0 { ";" } else { "" })?;
        into.write_str(name)
    })
}

struct Scope<'a> {
    day: &'a dyn fmt::Display,
    region: &'a str,
}

impl fmt::Display for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/s3/aws4_request", self.day, self.region)
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    let (mut block, long) = ([0; 64], Sha256::digest(key));
    // As the definition of the code says: a key longer than a block is hashed, one that is shorter is filled with zeroes.
    let key = if key.len() > block.len() { long.as_slice() } else { key };
    block[..key.len()].copy_from_slice(key);
    Hmac::new(&block.into())
}

/// Text that is hashed.
struct Hashed<H>(H);

impl<H: hmac::digest::Update> Write for Hashed<H> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        hmac::digest::Update::update(&mut self.0, text.as_bytes());
        Ok(())
    }
}

/// Bytes as hexadecimal digits.
pub(crate) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The key that a server encrypts objects with and does not keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKey {
    /// The algorithm.
    pub algorithm: String,
    /// The key, in base 64.
    pub key: String,
    /// The digest by which the server recognises a damaged key, in base 64.
    pub digest: String,
}

impl EncryptionKey {
    /// Of a key of 32 bytes, or of its 44 characters in base 64; `None` if it is neither.
    pub fn new(algorithm: &str, key: &[u8]) -> Option<EncryptionKey> {
        let decoded = STANDARD.decode(key).ok().filter(|decoded| decoded.len() == KEY_BYTES);
        let key = decoded.unwrap_or_else(|| key.to_vec());
        (key.len() == KEY_BYTES).then(|| EncryptionKey {
            algorithm: algorithm.to_string(),
            key: STANDARD.encode(&key),
            digest: STANDARD.encode(Md5::digest(&key)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of the examples that Amazon publishes.
    fn signer() -> Signer {
        Signer::new(Keys {
            id: "AKIAIOSFODNN7EXAMPLE".to_string(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_string(),
            region: "us-east-1".to_string(),
        })
    }

    const TIME: u64 = 1_369_353_600;
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn authorized(signed: &Signed<'_>) -> String {
        let mut text = String::new();
        signer().authorize(signed, &mut text);
        text
    }

    #[test]
    fn a_read_is_signed_as_in_amazons_first_example() {
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let time = Timestamp::of_unix(TIME);
        let signed = Signed { method: "GET", path: "/test.txt", headers: &headers, body_hash: EMPTY, time };
        assert_eq!(
            Hex(&signed.canonical_hash()).to_string(),
            "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972"
        );
        assert_eq!(
            authorized(&signed),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn a_write_is_signed_as_in_amazons_second_example() {
        let hash = Hex(&Sha256::digest("Welcome to Amazon S3.")).to_string();
        assert_eq!(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", &hash),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let (time, path) = (Timestamp::of_unix(TIME), "/test%24file.text");
        let signed = Signed { method: "PUT", path, headers: &headers, body_hash: &hash, time };
        let text = authorized(&signed);
        let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
        assert!(text.ends_with(&format!(",Signature={signature}")), "{text}");
    }

    #[test]
    fn the_key_of_another_day_is_another_one() {
        let mut signer = signer();
        let key = |signer: &mut Signer, seconds| signer.key(Timestamp::of_unix(seconds));
        let first = key(&mut signer, TIME);
        assert_eq!(key(&mut signer, TIME + 86399), first);
        assert_ne!(key(&mut signer, TIME + 86400), first);
        assert_eq!(key(&mut signer, TIME), first);
    }

    #[test]
    fn long_keys_are_hashed_first() {
        // Case 6 of RFC 4231.
        let mut hashed = mac(&[0xaa; 131]);
        hmac::digest::Update::update(&mut hashed, b"Test Using Larger Than Block-Size Key - Hash Key First");
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(Hex(&hashed.finalize().into_bytes()).to_string(), expected);
    }

    #[test]
    fn keys_of_encryption_are_given_as_bytes_or_in_base_64() {
        let raw = EncryptionKey::new("AES256", b"0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(raw.key, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
        assert_eq!(EncryptionKey::new("AES256", raw.key.as_bytes()), Some(raw.clone()));
        assert_eq!(raw.digest.len(), 24);
        assert_eq!(EncryptionKey::new("AES256", b"short"), None);
    }
}
