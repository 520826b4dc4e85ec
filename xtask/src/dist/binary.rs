//! The static binary that all artefacts have.
//!
//! Invariant: it needs no library of the system that it runs on.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use fiord_sys::errno::error_text;

use super::processor::Processor;
use super::sizes;
use crate::{repo, stage};

/// The profile of Cargo.toml that it is built with: that of what is handed out, or the quicker one of `cargo build --release`.
pub fn profile(is_quick: bool) -> &'static str {
    if is_quick { "release" } else { "dist" }
}

/// Why it cannot be built here.
pub fn is_possible(processor: &Processor) -> Result<(), String> {
    linker()?;
    processor.is_possible()
}

/// Compiles it, with its symbols; quickly means that its size says nothing.
pub fn compile(processor: &Processor, is_quick: bool) -> Result<PathBuf, String> {
    is_possible(processor)?;
    let profile = profile(is_quick);
    let args = ["rustc", "--quiet", "--profile", profile, "-p", "fiord", "--bin", "fiord", "--target"];
    let mut cargo = repo::cargo(&args);
    cargo.arg(processor.target).arg("--").args(linker()?).env("CARGO_ENCODED_RUSTFLAGS", flags()?);
    processor.cross_compile(&mut cargo)?;
    // Cargo links the file here anew, with its symbols, only if it is not here.
    let binary = repo::target_dir().join(processor.target).join(profile).join("fiord");
    if binary.exists() {
        fs::remove_file(&binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    }
    cargo.env("CARGO_PROFILE_DIST_STRIP", "none");
    stage::command(cargo)?;
    Ok(binary)
}

/// Builds it as it is handed out, without symbols: they say what belongs to which crate.
pub fn build(processor: &Processor, is_quick: bool, is_recorded: bool) -> Result<PathBuf, String> {
    let binary = compile(processor, is_quick)?;
    let sizes = sizes::by_crate(&binary, processor)?;
    sizes::strip(&binary, processor)?;
    let bytes = fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()))?.len();
    if !is_quick {
        sizes::print(&sizes, bytes);
    }
    // The record is of the binary that this machine runs.
    if !is_quick && processor.emulator.is_none() {
        if is_recorded {
            sizes::record(&sizes, bytes)?;
        }
        sizes::check(bytes)?;
    }
    Ok(binary)
}

/// Flags for every crate, as cargo takes them from its environment: panics name files of other crates by crate and version, not
/// by where this machine has them, which is the same for everybody and shorter.
fn flags() -> Result<OsString, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default();
    let sources = home.join("registry/src");
    let registries = match fs::read_dir(&sources) {
        Ok(registries) => registries.collect::<io::Result<Vec<_>>>(),
        // All crates are beside the workspace (`cargo vendor`).
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let registries = registries.map_err(|error| format!("{}: {}", sources.display(), error_text(&error)))?;
    let remap = |registry: fs::DirEntry| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(registry.path());
        flag.push("=");
        flag
    };
    let flags: Vec<OsString> = registries.into_iter().map(remap).collect();
    Ok(flags.join(OsStr::new("\x1f")))
}

/// The linker that comes with Rust, told to keep one of functions whose code is the same, which are 1 % of the binary, and to
/// have the tables that a static program relocates itself by in a form that is a tenth as long.
fn linker() -> Result<[String; 4], String> {
    let sysroot = repo::output_of(repo::command("rustc", &["--print", "sysroot"]))?;
    let linker = Path::new(sysroot.trim()).join("lib/rustlib").join(repo::host()?).join("bin/gcc-ld");
    if !linker.join("ld.lld").exists() {
        let place = linker.display();
        return Err(format!(
            "needs the linker of Rust's own distribution in {place}: install Rust by rustup"
        ));
    }
    let place = format!("-B{}", linker.display());
    Ok([&place, "-fuse-ld=lld", "-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"]
        .map(|flag| format!("-Clink-arg={flag}")))
}
