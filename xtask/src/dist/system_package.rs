//! Packages for Debian's and Red Hat's package managers, made by their own tools.
//!
//! Invariant: both hold the same files, at the places that each system has for them; nothing in them is of the time or the
//! place where they are made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::{VERSION, directory, quietly};
use super::tree::{Tree, said};
use crate::{machine, repo};

/// Where a system looks for what accompanies a program.
struct Places {
    /// The name of the directory in which the files are gathered, beside the binary.
    name: &'static str,
    licences: &'static str,
    zsh: &'static str,
}

const DEBIAN: Places =
    Places { name: "deb", licences: "usr/share/doc/fiord", zsh: "usr/share/zsh/vendor-completions" };

const RED_HAT: Places =
    Places { name: "rpm", licences: "usr/share/licenses/fiord", zsh: "usr/share/zsh/site-functions" };

const COPYRIGHT: &str =
    "Copyright: the fiord developers\nLicence: MIT OR Apache-2.0, both of which are beside this file\n";

/// A Debian package.
pub fn deb(tree: &Tree) -> Result<PathBuf, String> {
    let architecture = tree.processor.debian;
    let path = directory()?.join(format!("fiord_{VERSION}_{architecture}.deb"));
    let root = gather(tree, &DEBIAN)?;
    write(&root.join(DEBIAN.licences).join("copyright"), COPYRIGHT)?;
    let mut size = Command::new("du");
    size.args(["--summarize", "--apparent-size", "--block-size=1K"]).arg(&root);
    let size = repo::output_of(size)?;
    let kibibytes = size.split_whitespace().next().unwrap_or_default();
    let control = filled("packaging/control")?.replace("@ARCHITECTURE@", architecture);
    let control = control.replace("@KIBIBYTES@", kibibytes);
    write(&root.join("DEBIAN/control"), &control)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).args([&root, &path]);
    made(build, path)
}

/// An RPM package.
pub fn rpm(tree: &Tree) -> Result<PathBuf, String> {
    let architecture = tree.processor.name;
    let packages = directory()?;
    let root = gather(tree, &RED_HAT)?;
    let specification = root.with_extension("spec");
    write(&specification, &filled("packaging/fiord.spec")?)?;
    let mut build = Command::new("rpmbuild");
    build.args(["--quiet", "-bb", "--target", &format!("{architecture}-linux")]).arg(specification);
    // Names of files are not written into what rpm parses.
    build.env("FILES", &root).env("PACKAGES", &packages).env("HOME", root.with_extension("home"));
    made(build, packages.join(format!("fiord-{VERSION}-1.{architecture}.rpm")))
}

/// The files of a package below a directory of their own, with their modes.
fn gather(tree: &Tree, places: &Places) -> Result<PathBuf, String> {
    let root = tree.binary.with_file_name(places.name);
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|error| said(&root, &error))?;
    }
    let pages = fs::read_dir(tree.directory.join("man")).map_err(|error| said(&tree.directory, &error))?;
    let pages = pages
        .flatten()
        .map(|page| page.path())
        .filter(|page| page.extension().is_some_and(|end| end == "gz"));
    let completions = tree.directory.join("completions");
    let completion = |path: &str| vec![completions.join(path)];
    let of_repository = |names: &[&str]| names.iter().map(|name| repo::root().join(name)).collect();
    let files: [(&str, &str, Vec<PathBuf>); 7] = [
        ("755", "usr/bin", vec![tree.binary.clone()]),
        ("644", "usr/share/man/man1", pages.collect()),
        ("644", "usr/share/bash-completion/completions", completion("bash/fiord")),
        ("644", places.zsh, completion("zsh/_fiord")),
        ("644", "usr/share/fish/vendor_completions.d", completion("fish/fiord.fish")),
        ("644", places.licences, of_repository(&["LICENSE-APACHE", "LICENSE-MIT"])),
        ("644", "usr/share/doc/fiord", of_repository(&["README.md"])),
    ];
    for (mode, place, files) in files {
        let mut install = Command::new("install");
        install.args(["-D", "--mode", mode, "--target-directory"]).arg(root.join(place)).args(files);
        quietly(install)?;
    }
    Ok(root)
}

/// A template with the version.
fn filled(template: &str) -> Result<String, String> {
    let text = repo::read(template).ok_or_else(|| format!("{template}: cannot be read"))?;
    Ok(text.replace("@VERSION@", VERSION))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).and_then(|()| fs::write(path, text)).map_err(|error| said(path, &error))
}

/// What this command makes, with the time of the commit.
fn made(mut build: Command, path: PathBuf) -> Result<PathBuf, String> {
    let time = machine::first_line(Path::new("git"), &["log", "-1", "--format=%ct"]);
    build.env("SOURCE_DATE_EPOCH", time);
    quietly(build)?;
    Ok(path)
}
