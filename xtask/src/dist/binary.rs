//! The static binary that all artefacts have.
//!
//! Invariant: it needs no library of the system that it runs on.

use std::path::{Path, PathBuf};

use super::sizes;
use crate::{repo, stage};

/// What it is built for.
pub const TARGET: &str = "x86_64-unknown-linux-musl";

/// The profile of Cargo.toml that it is built with.
pub const PROFILE: &str = "dist";

/// Why it cannot be built here.
pub fn is_possible() -> Result<(), String> {
    let libraries = ["--print", "target-libdir", "--target", TARGET];
    let libraries = repo::output_of(repo::command("rustc", &libraries))?;
    if !Path::new(libraries.trim()).exists() {
        return Err(format!("needs Rust's libraries for {TARGET}: rustup target add {TARGET}"));
    }
    linker()?;
    repo::output_of(repo::command("musl-gcc", &["--version"]))
        .map(drop)
        .map_err(|_| "needs musl-gcc, for SQLite: apt-get install musl-tools".to_string())
}

/// Where it is built. The packagers find files there by paths that begin with `target/release/`.
pub fn path() -> PathBuf {
    repo::target_dir().join(TARGET).join(PROFILE).join("fiord")
}

/// The linker that comes with Rust, told to keep one of functions whose code is the same, which are 1 % of the binary.
fn linker() -> Result<[String; 3], String> {
    let sysroot = repo::output_of(repo::command("rustc", &["--print", "sysroot"]))?;
    let linker = Path::new(sysroot.trim()).join("lib/rustlib").join(repo::host()?).join("bin/gcc-ld");
    if !linker.join("ld.lld").exists() {
        let place = linker.display();
        return Err(format!(
            "needs the linker of Rust's own distribution in {place}: install Rust by rustup"
        ));
    }
    let place = format!("-B{}", linker.display());
    Ok([&place, "-fuse-ld=lld", "-Wl,--icf=all"].map(|flag| format!("-Clink-arg={flag}")))
}

/// Builds it; quickly means that it is optimised less, so that its size says nothing.
pub fn build(is_quick: bool, is_recorded: bool) -> Result<PathBuf, String> {
    is_possible()?;
    let args =
        ["rustc", "--quiet", "--profile", PROFILE, "--target", TARGET, "-p", "fiord", "--bin", "fiord"];
    let mut cargo = repo::cargo(&args);
    cargo.arg("--").args(linker()?);
    if is_quick {
        let quick = [("LTO", "off"), ("CODEGEN_UNITS", "16"), ("OPT_LEVEL", "1")];
        cargo.envs(quick.map(|(setting, value)| (format!("CARGO_PROFILE_DIST_{setting}"), value)));
    }
    // The symbols say what belongs to which crate. Cargo links the file here anew, with its symbols, only if it is not here.
    let binary = path();
    if binary.exists() {
        std::fs::remove_file(&binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    }
    cargo.env("CARGO_PROFILE_DIST_STRIP", "none");
    stage::command(cargo)?;
    let sizes = sizes::by_crate(&binary)?;
    sizes::strip(&binary)?;
    let bytes = std::fs::metadata(&binary).map_err(|error| format!("{}: {error}", binary.display()))?.len();
    if !is_quick {
        sizes::print(&sizes, bytes);
        if is_recorded {
            sizes::record(&sizes, bytes)?;
        }
        sizes::check(bytes)?;
    }
    Ok(binary)
}
