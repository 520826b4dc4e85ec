//! Words and settings as they may be shown: the values of secret options are masked.
//!
//! Invariant: whatever is recorded of a command line or of a report that was read went through here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::bytes::find;
use crate::secret::{self, MASK};
use crate::table::{engine_specs, job_specs, program_specs};

/// The value of the option that a name may stand for, as it may be shown: for reports of other programs, whose options
/// are text.
pub fn of_name(name: &str, value: &str) -> String {
    match is_secret(name.as_bytes(), false) {
        true => MASK.to_string(),
        false => secret::in_urls_of(value),
    }
}

/// The words of a command line as they may be shown: `--http_pass=***`, also where the value is a word of its own, or a
/// list that a study varies (`--over http_pass=a,b`).
pub fn of_arguments<A: AsRef<OsStr>>(arguments: &[A]) -> Vec<OsString> {
    let mut is_value = false;
    let mut mask = |word: &OsStr| {
        let bytes = word.as_bytes();
        let name = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-")).unwrap_or(bytes);
        let is_option = name.len() < bytes.len();
        if std::mem::take(&mut is_value) {
            return OsString::from(MASK);
        }
        // An option that is given the setting of another, `--over=http_pass=a,b`, has a second equals sign.
        let mut from = 0;
        while let Some(equals) = find(&name[from..], b"=") {
            if is_secret(&name[from..from + equals], from == 0 && is_option) {
                let kept = bytes.len() - name.len() + from + equals + 1;
                return OsString::from_vec([&bytes[..kept], MASK.as_bytes()].concat());
            }
            from += equals + 1;
        }
        is_value = from == 0 && is_option && is_secret(name, true);
        secret::in_urls(word)
    };
    arguments.iter().map(|word| mask(word.as_ref())).collect()
}

/// Whether this is the name of a secret option; with `abbreviated`, or the beginning of one.
fn is_secret(name: &[u8], abbreviated: bool) -> bool {
    let Some(name) = std::str::from_utf8(name).ok().filter(|name| !name.is_empty()) else { return false };
    let specs = || program_specs().chain(job_specs()).chain(engine_specs());
    if let Some(spec) = specs().find(|spec| spec.names().any(|known| known == name)) {
        return spec.secret;
    }
    abbreviated && specs().any(|spec| spec.secret && spec.name.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_options_of_a_command_line_are_masked_however_they_are_spelt() {
        let given = [
            "--name=a",
            "--http_pass=x=y",
            "-http_s3_key=x",
            "--http_pass",
            "x",
            "--rw",
            "read",
            "--over",
            "http_pass=x,y",
            "--over=http_pass=x",
            "--http_swift_auth=x",
            "--http_s3_keyid=me",
            "--uri=nbd://x@h",
        ];
        let shown = [
            "--name=a",
            "--http_pass=***",
            "-http_s3_key=***",
            "--http_pass",
            "***",
            "--rw",
            "read",
            "--over",
            "http_pass=***",
            "--over=http_pass=***",
            "--http_swift_auth=***",
            "--http_s3_keyid=me",
            "--uri=nbd://***@h",
        ];
        assert_eq!(of_arguments(&given), shown);
        assert_eq!(
            (of_name("http_pass", "x"), of_name("rw", "read")),
            (MASK.to_string(), "read".to_string())
        );
    }
}
