//! fiord for systems with glibc, from 2.28 on (RHEL 8, Debian 10), which can open C libraries such as librbd as the static
//! binary cannot. zig links it with the symbols that glibc had then.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::binary;
use super::place;
use super::processor::Processor;
use super::tree::Tree;
use crate::{repo, stage};

/// The virtual environment below the target directory that has cargo-zigbuild and zig.
pub const ENVIRONMENT: &str = "zig";

/// glibc's release, after `2.`.
const OLDEST_MINOR: u32 = 28;

/// Why it cannot be built here.
pub fn is_possible() -> Result<(), String> {
    if repo::target_dir().join(ENVIRONMENT).join("complete").exists() {
        return Ok(());
    }
    Err("glibc: needs cargo-zigbuild and zig: cargo x ci --install dist".to_string())
}

/// The archive of it, with the tree's pages.
pub fn archive(tree: &Tree) -> Result<PathBuf, String> {
    let binary = build(tree.processor, tree.is_quick)?;
    place::pack(tree, &binary, "linux-glibc")
}

/// Builds it.
pub fn build(processor: &Processor, is_quick: bool) -> Result<PathBuf, String> {
    is_possible()?;
    let target = processor.target.replace("musl", "gnu");
    let profile = binary::profile(is_quick);
    let mut cargo =
        repo::cargo(&["zigbuild", "--quiet", "--profile", profile, "-p", "fiord", "--bin", "fiord"]);
    cargo.args(["--target", &format!("{target}.2.{OLDEST_MINOR}")]);
    let mut path = OsString::from(repo::target_dir().join(ENVIRONMENT).join("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    cargo.env("PATH", path);
    stage::command(cargo)?;
    let binary = repo::target_dir().join(target).join(profile).join("fiord");
    let newest = newest_symbol(&binary)?;
    if newest > OLDEST_MINOR {
        return Err(format!("{}: needs glibc 2.{newest}, not 2.{OLDEST_MINOR}", binary.display()));
    }
    Ok(binary)
}

/// The newest release of glibc that a symbol of the binary is of, after `2.`.
fn newest_symbol(binary: &Path) -> Result<u32, String> {
    let mut readelf = repo::command("readelf", &["--wide", "--dyn-syms"]);
    readelf.arg(binary);
    let symbols = repo::output_of(readelf)?;
    let releases = symbols.split("@GLIBC_2.").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    });
    releases.max().ok_or_else(|| format!("{}: has no symbols of glibc", binary.display()))
}
