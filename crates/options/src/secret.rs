//! Credentials in URLs, which are not shown.
//!
//! Invariant: everything but the credentials stays as it is. All paths and texts that are shown went through here (`shown.rs`).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::bytes::find;

/// What is shown in place of a secret.
pub const MASK: &str = "***";

/// Parts of the names of parameters of a URL whose values are secret.
const PARAMETERS: [&str; 8] = ["pass", "pwd", "secret", "token", "key", "auth", "sig", "cred"];

/// A text with the user information of its URLs masked, and the parameters of theirs that are secret by their names.
pub fn in_urls(text: &OsStr) -> OsString {
    OsString::from_vec(masked(text.as_bytes()).into_owned())
}

/// The same of what is text already.
pub fn in_urls_of(text: &str) -> String {
    // Only bytes of ASCII are replaced, by bytes of ASCII.
    String::from_utf8_lossy(&masked(text.as_bytes())).into_owned()
}

fn masked(text: &[u8]) -> Cow<'_, [u8]> {
    let mut rest = text;
    let mut masked = Vec::new();
    while let Some(at) = find(rest, b"://") {
        let (before, url) = rest.split_at(at + 3);
        masked.extend_from_slice(before);
        let end = url.iter().position(|byte| byte.is_ascii_whitespace() || b"\"'<>".contains(byte));
        let (url, after) = url.split_at(end.unwrap_or(url.len()));
        push_url(&mut masked, url);
        rest = after;
    }
    if masked.is_empty() {
        return Cow::Borrowed(text);
    }
    masked.extend_from_slice(rest);
    Cow::Owned(masked)
}

/// Adds what follows `://`.
fn push_url(masked: &mut Vec<u8>, url: &[u8]) {
    let (place, query) = url.split_at(url.iter().position(|byte| *byte == b'?').unwrap_or(url.len()));
    // A password may have slashes that are not escaped, so that the last @ of the first path counts.
    match place.iter().rposition(|byte| *byte == b'@') {
        Some(at) => {
            masked.extend_from_slice(MASK.as_bytes());
            masked.extend_from_slice(&place[at..]);
        }
        None => masked.extend_from_slice(place),
    }
    for (number, parameter) in query.split(|byte| *byte == b'&').enumerate() {
        if number > 0 {
            masked.push(b'&');
        }
        let equals = parameter.iter().position(|byte| *byte == b'=').unwrap_or(parameter.len());
        let name = parameter[..equals].to_ascii_lowercase();
        match PARAMETERS.iter().any(|part| find(&name, part.as_bytes()).is_some()) && equals < parameter.len()
        {
            true => {
                masked.extend_from_slice(&parameter[..=equals]);
                masked.extend_from_slice(MASK.as_bytes());
            }
            false => masked.extend_from_slice(parameter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_urls_are_masked_and_nothing_else() {
        for (given, shown) in [
            ("nbd://alice:hunter2@host:10809/disk", "nbd://***@host:10809/disk"),
            ("iscsi://u%p/w@127.0.0.1/iqn.x/1", "iscsi://***@127.0.0.1/iqn.x/1"),
            (
                "otlp:http://h/v1?token=abc&x=1 and http://a:b@c.",
                "otlp:http://h/v1?token=***&x=1 and http://***@c.",
            ),
            (
                "nbds://h/?tls-certificates=/etc/pki&Password=p",
                "nbds://h/?tls-certificates=/etc/pki&Password=***",
            ),
            ("\"uri=nbd://a:b@h\" is", "\"uri=nbd://***@h\" is"),
            ("nfs://h/p?nfsport=1", "nfs://h/p?nfsport=1"),
            ("/data/a@b", "/data/a@b"),
            ("", ""),
        ] {
            assert_eq!(in_urls_of(given), shown);
        }
    }
}
