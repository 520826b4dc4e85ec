//! `cargo x dist`: everything that is handed out, from one static binary.
//!
//! Invariant: each artefact has the same binary, manual pages and completions. Nothing is published or uploaded, and an
//! artefact that cannot be made on this machine is named with the reason, and is a failure of the chore.

mod artefact;
mod bare_root;
mod binary;
mod chroot;
mod clean_root;
mod glibc;
mod image;
mod place;
mod processor;
mod recipes;
mod record;
mod repositories;
mod signature;
mod sizes;
mod system_package;
mod tree;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::stage::{Share, StageResult};
use crate::{install, repo};

use self::artefact::{ALL, Artefact, Made};
use self::processor::Processor;

pub use self::glibc::ENVIRONMENT as ZIG;

const HELP: &str = "cargo x dist [--for PROCESSOR] [--install] [--quick] [--record] [--recipes] [--index] [--repo]
             [--sign KEY] [--try[=ROOT]] [ARTEFACT…]

Builds fiord as a static binary, and packages it in target/packages:

  archive   fiord-VERSION-PROCESSOR-linux.tar.gz: the static binary, manual pages, completions, licences
  deb       a Debian package (needs dpkg-deb)
  rpm       an RPM package (needs rpmbuild)
  image     a container image in an OCI archive, made without a daemon (needs buildah)
  wheel     a Python package with the binary and the module of python/ (needs python3)
  glibc     fiord-VERSION-PROCESSOR-linux-glibc.tar.gz: as the archive, with a binary that needs glibc 2.28 or later, and opens
            the C libraries of engines such as rbd (needs cargo-zigbuild)

and SHA256SUMS of them. Without a name it makes all six; cargo x ci --install installs what they need.

  --for PROCESSOR
                x86_64 (the default) or aarch64, whose binary runs here under qemu's emulation of programs
  --install     first installs what building for this processor needs
  --quick       optimises the binary as cargo build --release does, to save time: for trying the packages out
  --record      writes sizes and times of everything to docs/install.md, and the bytes by crate to bench/binary.json
  --recipes     also writes what other package managers install the archives by, of both processors: fiord.rb (Homebrew),
                PKGBUILD and .SRCINFO (AUR), flake.nix (Nix)
  --index       also makes fiord-VERSION-image.tar, one image of the images of both processors
  --repo        also writes what makes the directory a repository for apt and for dnf (needs apt-utils and createrepo-c)
  --sign KEY    also signs SHA256SUMS with this private key (openssl ecparam -genkey -name prime256v1 -noout), and puts
                install.sh beside it, which then refuses what is not signed by it
  --try[=ROOT]  also runs the binary, by chroot, in a root file system that has nothing but /proc and /sys, or in ROOT,
                such as that of Alpine Linux: a job, two studies and the page of a run
";

/// `cargo x dist [--for PROCESSOR] [--install] [--quick] [--record] [--recipes] [--index] [--repo] [--sign KEY] [--try[=ROOT]]
/// [ARTEFACT…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut is_quick, mut is_recorded, mut installs) = (false, false, false);
    let (mut after, mut key, mut tried) = (Vec::<fn(&Path) -> Result<(), String>>::new(), None, None);
    let (mut processor, mut names) = (&processor::ALL[0], Vec::new());
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match (arg, arg.strip_prefix("--try=")) {
            ("--help" | "-h", _) => {
                print!("{HELP}");
                return Ok(());
            }
            ("--for", _) => processor = processor_named(args.next().unwrap_or_default())?,
            ("--install", _) => installs = true,
            ("--quick", _) => is_quick = true,
            ("--record", _) => is_recorded = true,
            ("--recipes", _) => after.push(recipes::write),
            ("--index", _) => after.push(image::write_index),
            ("--repo", _) => after.push(repositories::write),
            ("--sign", _) => key = Some(args.next().ok_or("--sign: needs the file of a private key")?),
            ("--try", _) => tried = Some(None),
            (_, Some(root)) => tried = Some(Some(Path::new(root))),
            (unknown, None) if unknown.starts_with('-') => {
                return Err(format!("{unknown}: unknown argument\n\n{HELP}"));
            }
            (name, None) => names.push(name),
        }
    }
    if let Some(unknown) = names.iter().find(|name| !ALL.iter().any(|artefact| artefact.name == **name)) {
        return Err(format!("{unknown}: no such artefact\n\n{HELP}"));
    }
    if is_recorded && (is_quick || !names.is_empty() || processor.name != processor::ALL[0].name) {
        return Err("--record: needs every artefact as it is handed out; give it alone".to_string());
    }
    if installs {
        processor.install()?;
        install::environments(&["dist"]);
    }
    let wanted = ALL.iter().filter(|one| names.is_empty() || names.contains(&one.name));
    let made = make(processor, &wanted.collect::<Vec<_>>(), is_quick, is_recorded)?;
    if is_recorded {
        record::write(&made)?;
    }
    let directory = place::directory()?;
    after.iter().try_for_each(|write| write(&directory))?;
    if let Some(key) = key {
        signature::write(&directory, Path::new(key))?;
    }
    tried.map_or(Ok(()), |root| bare_root::run(&made[0].path, root))
}

fn processor_named(name: &str) -> Result<&'static Processor, String> {
    let found = processor::ALL.iter().find(|processor| processor.name == name);
    found.ok_or_else(|| format!("--for {name}: no binary is built for it\n\n{HELP}"))
}

/// Installs what the stage needs.
pub fn install() {
    if let Err(why) = processor::ALL[0].install() {
        println!("install: {why}; what needs its static binary will be skipped");
    }
}

/// The static binary of this machine's processor, optimised as by `cargo build --release`, for what counts its instructions.
pub fn compiled() -> Result<PathBuf, String> {
    binary::compile(&processor::ALL[0], true)
}

/// Builds, packages, and prints a table of what was made: the binary first.
fn make(
    processor: &'static Processor,
    wanted: &[&Artefact],
    is_quick: bool,
    is_recorded: bool,
) -> Result<Vec<Made>, String> {
    let start = Instant::now();
    let binary = binary::build(processor, is_quick, is_recorded)?;
    let mut table = vec![Made::of("binary", binary.clone(), start.elapsed())?];
    let tree = tree::write(&binary, processor, is_quick)?;
    let mut failures = Vec::new();
    for artefact in wanted {
        let start = Instant::now();
        match artefact.is_possible().and_then(|()| (artefact.make)(&tree)) {
            Ok(path) => table.push(Made::of(artefact.name, path, start.elapsed())?),
            Err(why) => failures.push(format!("{}: {why}", artefact.name)),
        }
    }
    let paths: Vec<PathBuf> = table.iter().skip(1).map(|made| made.path.clone()).collect();
    place::write_sums(&paths)?;
    table.iter().for_each(|made| println!("{made}"));
    if failures.is_empty() { Ok(table) } else { Err(failures.join("\n")) }
}

/// The stage of CI: the packages from a repository, by apt and by rpm in roots of their own, where `fiord quick` runs, one made
/// by makepkg likewise, the binary in an empty root, and the image in podman.
pub fn stage(share: Share) -> StageResult {
    let processor = &processor::ALL[0];
    let packages = ["archive", "deb", "rpm", "image"].map(artefact::named);
    if let Err(why) = clean_root::is_possible()
        .and_then(|()| packages.iter().try_for_each(|package| package.is_possible()))
        .and_then(|()| repositories::is_possible())
        .and_then(|()| image::is_possible())
        .and_then(|()| recipes::is_possible())
        .and_then(|()| binary::is_possible(processor))
    {
        return StageResult::Skipped(why);
    }
    let installed = make(processor, &packages, true, false).and_then(|made| {
        let made_image =
            made.iter().find(|made| made.name == "image").expect("the image is among the packages");
        image::check(&made_image.path)?;
        let directory = place::directory()?;
        repositories::write(&directory)?;
        signature::check(&directory, &repo::target_dir().join("signed"))?;
        clean_root::by_apt(&directory)?;
        clean_root::by_rpm(&directory)?;
        let (package, _workshop) = recipes::check(&directory)?;
        clean_root::by_tar(&package)?;
        bare_root::run(&made[0].path, None)
    });
    StageResult::of(installed).and(on_glibc(processor, share))
}

/// Of eight commits one builds fiord for older systems, since that compiles everything once more, and runs it on the oldest
/// Debian that its mirrors have.
fn on_glibc(processor: &Processor, share: Share) -> StageResult {
    match glibc::is_possible().and_then(|()| share.choose([processor], 8)) {
        Err(why) => StageResult::Skipped(why),
        Ok(chosen) => StageResult::of(chosen.into_iter().try_for_each(|processor| {
            glibc::build(processor, true).and_then(|binary| clean_root::of_oldest(&binary))
        })),
    }
}
