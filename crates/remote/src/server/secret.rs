//! The secret that a server and its clients share: 32 bytes in a file that only its owner can read.
//!
//! Invariant: a secret is in no argument, environment variable, log or report, and is not shown by `Debug`.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::process;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The variable that names the file; empty: there is none.
pub const VARIABLE: &str = "FIORD_SECRET_FILE";

/// Where it is otherwise.
const SYSTEM_WIDE: &str = "/etc/fiord/secret";

/// The digits of one.
const DIGITS: usize = 64;

/// A secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; DIGITS / 2]);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

/// Who proves to know the secret: the proof of one end is none of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// The length of a proof in bytes.
pub(super) const PROOF_BYTES: usize = 32;

impl Secret {
    /// The secret of this user: of the file that `FIORD_SECRET_FILE` names, or else of `$XDG_CONFIG_HOME/fiord/secret` or
    /// `/etc/fiord/secret`, whichever there is. `None` without one.
    ///
    /// # Errors
    /// A file that is there is none, or others can read it.
    pub fn find() -> Result<Option<Secret>, String> {
        match env::var_os(VARIABLE) {
            Some(named) if named.is_empty() => return Ok(None),
            Some(named) => return Secret::read(Path::new(&named)).map(Some),
            None => {}
        }
        let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let config = config.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")));
        let own = config.map(|directory| directory.join("fiord/secret"));
        let there = own.into_iter().chain([PathBuf::from(SYSTEM_WIDE)]).find(|path| path.exists());
        there.map(|path| Secret::read(&path)).transpose()
    }

    fn read(path: &Path) -> Result<Secret, String> {
        let wrong = |why: &str| format!("the secret {}: {why}", shown(path.as_os_str()));
        let unreadable = |error: io::Error| wrong(&error_text(&error));
        let mut file = File::open(path).map_err(unreadable)?;
        let facts = file.metadata().map_err(unreadable)?;
        if !facts.is_file() || facts.mode() & 0o077 != 0 {
            return Err(wrong("others can read it: give it mode 0600"));
        }
        if ![0, process::effective_user()].contains(&facts.uid()) {
            return Err(wrong("it belongs to another user: make it your own"));
        }
        let mut text = String::new();
        Read::take(&mut file, DIGITS as u64 + 2).read_to_string(&mut text).map_err(unreadable)?;
        Secret::of(text.trim_end()).ok_or_else(|| {
            wrong("it is not 64 hexadecimal digits: make one with fiord agent --new-secret=FILE")
        })
    }

    pub(super) fn of(text: &str) -> Option<Secret> {
        let mut bytes = [0; DIGITS / 2];
        let digits = Some(text.as_bytes()).filter(|digits| digits.len() == DIGITS)?;
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit =
                |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Secret(bytes))
    }

    /// Makes a new one, in a new file.
    ///
    /// # Errors
    /// The file is there, or cannot be written.
    #[allow(
        clippy::disallowed_methods,
        reason = "a new file, which replaces none, and goes again if it is not whole"
    )]
    pub fn create(path: &Path) -> Result<(), String> {
        let create = || {
            let digits: String = unpredictable()?.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
            writeln!(file, "{digits}").inspect_err(|_| drop(std::fs::remove_file(path)))
        };
        create().map_err(|error| format!("{}: {}", shown(path.as_os_str()), error_text(&error)))
    }

    /// What proves, on this connection alone, that this end knows the secret. `binding` is that of the connection.
    pub(super) fn proof(&self, role: Role, binding: &[u8]) -> [u8; PROOF_BYTES] {
        self.code(role, binding).finalize().into_bytes().into()
    }

    /// Whether this is the other end's proof. Takes as long for a wrong one as for the right one.
    pub(super) fn is_proven(&self, role: Role, binding: &[u8], proof: &[u8]) -> bool {
        self.code(role, binding).verify_slice(proof).is_ok()
    }

    fn code(&self, role: Role, binding: &[u8]) -> Hmac<Sha256> {
        // A key is filled up with zeros to the length of a block (RFC 2104).
        let mut key = [0; 64];
        key[..self.0.len()].copy_from_slice(&self.0);
        let mut code = <Hmac<Sha256> as KeyInit>::new(&key.into());
        code.update(match role {
            Role::Server => b"fiord server",
            Role::Client => b"fiord client",
        });
        code.update(binding);
        code
    }
}

/// Bytes that nobody can foresee.
pub(super) fn unpredictable() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_end_one_secret_and_one_connection() {
        let secret = Secret::of(&"ab".repeat(32)).unwrap();
        let other = Secret::of(&"ac".repeat(32)).unwrap();
        let proof = secret.proof(Role::Client, b"this");
        assert!(secret.is_proven(Role::Client, b"this", &proof));
        assert!(!secret.is_proven(Role::Server, b"this", &proof));
        assert!(!secret.is_proven(Role::Client, b"that", &proof));
        assert!(!other.is_proven(Role::Client, b"this", &proof));
        assert!(!secret.is_proven(Role::Client, b"this", &proof[..31]));
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn a_secret_is_64_digits_in_a_file_of_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("fiord-secret-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("secret");
        Secret::create(&path).unwrap();
        assert!(Secret::create(&path).unwrap_err().contains("exists"));
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        Secret::read(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Secret::read(&path).unwrap_err().contains("mode 0600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for wrong in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Secret::read(&path).unwrap_err().contains("64 hexadecimal digits"), "{wrong}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
