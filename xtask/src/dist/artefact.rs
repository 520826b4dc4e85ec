//! How each artefact is made from the tree.
//!
//! Invariant: an artefact replaces the one of the same version; a program that is missing is an error that says how to
//! install it.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::place::{directory, pack};
use super::tree::{Tree, said};
use super::{glibc, image, system_package};
use crate::wheel;

/// Something to make.
pub struct Artefact {
    pub name: &'static str,
    /// A command that succeeds if the program it needs is installed.
    probe: &'static [&'static str],
    /// How to install that program.
    install: &'static str,
    pub make: fn(&Tree) -> Result<PathBuf, String>,
}

pub static ALL: [Artefact; 6] = [
    Artefact {
        name: "archive",
        probe: &["tar", "--version"],
        install: "apt-get install tar",
        make: |tree| pack(tree, &tree.binary, "linux"),
    },
    Artefact {
        name: "deb",
        probe: &["dpkg-deb", "--version"],
        install: "apt-get install dpkg",
        make: system_package::deb,
    },
    Artefact {
        name: "rpm",
        probe: &["rpmbuild", "--version"],
        install: "apt-get install rpm",
        make: system_package::rpm,
    },
    Artefact {
        name: "image",
        probe: &["buildah", "--version"],
        install: "apt-get install buildah",
        make: image::make,
    },
    Artefact {
        name: "wheel",
        probe: &["python3", "--version"],
        install: "apt-get install python3",
        make: |tree| wheel::build(&tree.binary, &directory()?, tree.processor.name),
    },
    Artefact {
        name: "glibc",
        probe: &["readelf", "--version"],
        install: "apt-get install binutils",
        make: glibc::archive,
    },
];

/// The one of this name, which is in the list.
pub fn named(name: &str) -> &'static Artefact {
    ALL.iter().find(|artefact| artefact.name == name).expect("the name is in the list")
}

impl Artefact {
    /// Why it cannot be made here.
    pub fn is_possible(&self) -> Result<(), String> {
        let mut probe = Command::new(self.probe[0]);
        probe.args(&self.probe[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        match probe.status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("needs {}; install it: {}", self.probe.join(" "), self.install)),
        }
    }
}

/// Something made.
pub struct Made {
    pub name: &'static str,
    pub path: PathBuf,
    pub bytes: u64,
    pub took: Duration,
}

impl Made {
    pub fn of(name: &'static str, path: PathBuf, took: Duration) -> Result<Made, String> {
        let bytes = fs::metadata(&path).map_err(|error| said(&path, &error))?.len();
        Ok(Made { name, path, bytes, took })
    }

    pub fn file(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }
}

impl fmt::Display for Made {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file();
        let mib = self.bytes as f64 / f64::from(1 << 20);
        write!(out, "{:<8} {mib:>6.2} MiB {:>7.1} s  {file}", self.name, self.took.as_secs_f64())
    }
}
