//! Who made the artefacts: `SHA256SUMS.sig`, and install.sh with the public key that it asks for.
//!
//! The private key is read by openssl alone, and nothing of it is printed.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::tree::said;
use crate::repo;

/// The line of install.sh that says who signs.
const UNSIGNED: &str = "SIGNER=${FIORD_SIGNER:-}\n";

/// Signs `SHA256SUMS` in the directory, and puts install.sh beside it.
///
/// # Errors
///
/// If there are no sums, or openssl cannot sign with the key.
pub fn write(directory: &Path, key: &Path) -> Result<(), String> {
    sign(directory, key)?;
    let mut public = Command::new("openssl");
    public.args(["pkey", "-pubout", "-in"]).arg(key);
    let public = repo::output_of(public)?;
    let signer: String = public.lines().filter(|line| !line.starts_with("-----")).collect();
    // It becomes a part of a script.
    if signer.is_empty() || !signer.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
    {
        return Err(format!("openssl printed no public key for {}", key.display()));
    }
    let script = repo::read("packaging/install.sh").unwrap_or_default();
    if !script.contains(UNSIGNED) {
        return Err(format!("packaging/install.sh: has no line {UNSIGNED:?}"));
    }
    let signed = script.replace(UNSIGNED, &format!("SIGNER=${{FIORD_SIGNER:-{signer}}}\n"));
    let path = directory.join("install.sh");
    fs::write(&path, signed).map_err(|error| said(&path, &error))
}

fn sign(directory: &Path, key: &Path) -> Result<(), String> {
    let mut sign = Command::new("openssl");
    sign.args(["dgst", "-sha256", "-sign"]).arg(key).arg("-out").arg(directory.join("SHA256SUMS.sig"));
    sign.arg(directory.join("SHA256SUMS"));
    repo::output_of(sign).map(drop)
}

/// Signs with a key made for this, and installs below `place` by the script, as somebody does who downloads it; what another
/// key has signed is refused.
///
/// # Errors
///
/// If one of these fails.
pub fn check(directory: &Path, place: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).map_err(|error| said(place, &error))?;
    let key = |name: &str| {
        let path = place.join(name);
        let mut make = Command::new("openssl");
        make.args(["ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out"]).arg(&path);
        repo::output_of(make).map(|_| path)
    };
    let install = || {
        let mut script = Command::new("sh");
        script.arg(directory.join("install.sh")).arg("--prefix").arg(place.join("prefix"));
        script.env("FIORD_BASE_URL", format!("file://{}", directory.display()));
        repo::output_of(script)
    };
    write(directory, &key("key")?)?;
    let said = install()?;
    if !said.contains("installed fiord") {
        return Err(format!("install.sh printed {said:?}"));
    }
    sign(directory, &key("other")?)?;
    match install() {
        Err(why) if why.contains("is not signed by") => Ok(()),
        other => Err(format!("install.sh took what another had signed: {other:?}")),
    }
}
