//! `cargo x dist`: everything that is handed out, from one static binary.
//!
//! Invariant: each artefact has the same binary, manual pages and completions. Nothing is published or uploaded, and an
//! artefact that cannot be made on this machine is named with the reason, and is a failure of the chore.

mod artefact;
pub mod binary;
mod clean_root;
mod tree;

use std::path::PathBuf;
use std::time::Instant;

use crate::stage::StageResult;

use self::artefact::{ALL, Artefact, Made};

const HELP: &str = "cargo x dist [--quick] [ARTEFACT…]

Builds fiord for x86_64-unknown-linux-musl, and packages it in target/packages:

  archive   fiord-VERSION-x86_64-linux.tar.gz: the static binary, manual pages, completions, licences
  deb       a Debian package (needs cargo-deb)
  rpm       an RPM package (needs cargo-generate-rpm)
  image     a container image in an OCI archive, made without a daemon (needs buildah)

and SHA256SUMS of them. Without a name it makes all four; cargo x ci --install installs what they need.

  --quick   hardly optimises the binary, to save time: for trying the packages out
";

/// `cargo x dist [--quick] [ARTEFACT…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with('-'));
    if flags.iter().any(|flag| ["--help", "-h"].contains(&flag.as_str())) {
        print!("{HELP}");
        return Ok(());
    }
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--quick") {
        return Err(format!("{unknown}: unknown argument\n\n{HELP}"));
    }
    if let Some(unknown) =
        names.iter().find(|name| !ALL.iter().any(|artefact| artefact.name == name.as_str()))
    {
        return Err(format!("{unknown}: no such artefact\n\n{HELP}"));
    }
    let wanted = ALL.iter().filter(|one| names.is_empty() || names.iter().any(|name| *name == one.name));
    make(&wanted.collect::<Vec<_>>(), !flags.is_empty()).map(drop)
}

/// Builds, packages, and prints a table of what was made.
fn make(wanted: &[&Artefact], is_quick: bool) -> Result<Vec<PathBuf>, String> {
    let start = Instant::now();
    let binary = binary::build(is_quick)?;
    let mut table = vec![Made::of("binary", binary.clone(), start.elapsed())?];
    let tree = tree::write(&binary)?;
    let mut failures = Vec::new();
    for artefact in wanted {
        let start = Instant::now();
        match (artefact.make)(&tree) {
            Ok(path) => table.push(Made::of(artefact.name, path, start.elapsed())?),
            Err(why) => failures.push(format!("{}: {why}", artefact.name)),
        }
    }
    let paths: Vec<PathBuf> = table.iter().skip(1).map(|made| made.path.clone()).collect();
    artefact::write_sums(&paths)?;
    table.iter().for_each(|made| println!("{made}"));
    if failures.is_empty() { Ok(paths) } else { Err(failures.join("\n")) }
}

/// The stage of CI: the Debian package in a clean root, where `fiord quick` runs.
pub fn stage() -> StageResult {
    if let Err(why) = clean_root::is_possible()
        .and_then(|()| artefact::DEB.is_possible())
        .and_then(|()| binary::is_possible())
    {
        return StageResult::Skipped(why);
    }
    let installed = make(&[&artefact::DEB], true).and_then(|packages| match packages.first() {
        Some(package) => clean_root::install_and_run(package),
        None => Err("no package was made".to_string()),
    });
    StageResult::of(installed)
}
