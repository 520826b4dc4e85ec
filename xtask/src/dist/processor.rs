//! The processors that a static binary is handed out for, and what it takes to build one.
//!
//! Invariant: what differs between them is in the rows of `ALL` alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, cache};
use crate::{packages, repo, targets};

/// A processor that a binary is built for.
#[derive(Debug)]
pub struct Processor {
    /// Its name, as `uname -m` prints it.
    pub name: &'static str,
    /// Debian's name.
    pub debian: &'static str,
    /// What the binary is built for.
    pub target: &'static str,
    /// The compiler of its C parts, which also calls the linker.
    compiler: &'static str,
    /// What the names of its `ar`, `nm` and `strip` begin with.
    binutils: &'static str,
    /// What runs its programs here, if this machine does not.
    pub emulator: Option<&'static str>,
    /// The C library's headers, if the compiler has those of another.
    headers: Option<&'static str>,
    /// What building needs, each package with a file that shows that it is installed.
    packages: &'static [(&'static str, &'static str)],
}

/// The first is the processor of the machines that tests run on.
pub static ALL: [Processor; 2] = [
    Processor {
        name: "x86_64",
        debian: "amd64",
        target: "x86_64-unknown-linux-musl",
        compiler: "musl-gcc",
        binutils: "",
        emulator: None,
        headers: None,
        packages: &[("musl-tools", "/usr/bin/musl-gcc")],
    },
    Processor {
        name: "aarch64",
        debian: "arm64",
        target: "aarch64-unknown-linux-musl",
        compiler: "aarch64-linux-gnu-gcc",
        binutils: "aarch64-linux-gnu-",
        emulator: Some("qemu-aarch64"),
        headers: Some("usr/include/aarch64-linux-musl"),
        packages: &[
            ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
            ("qemu-user", "/usr/bin/qemu-aarch64"),
        ],
    },
];

impl Processor {
    /// Why the binary cannot be built here.
    pub fn is_possible(&self) -> Result<(), String> {
        targets::needs(self.target, self.compiler, self.packages)?;
        match self.headers() {
            Some(headers) if !headers.is_dir() => Err(format!(
                "{}: needs the headers of musl: cargo x dist --for {} --install",
                headers.display(),
                self.name
            )),
            _ => Ok(()),
        }
    }

    /// Installs what building needs.
    pub fn install(&self) -> Result<(), String> {
        packages::install(self.packages);
        targets::add(&[self.target]);
        match self.headers() {
            Some(headers) if !headers.is_dir() => {
                cache::debian(&self.unpacked(), "bookworm", Some(self.debian), &["musl-dev"])
            }
            _ => Ok(()),
        }
    }

    /// Where packages for it are unpacked.
    fn unpacked(&self) -> PathBuf {
        cache().join(format!("musl-{}", self.debian))
    }

    fn headers(&self) -> Option<PathBuf> {
        self.headers.map(|headers| self.unpacked().join(headers))
    }

    /// A command that runs the binary.
    pub fn command(&self, binary: &Path) -> Command {
        let Some(emulator) = self.emulator else { return Command::new(binary) };
        let mut command = Command::new(emulator);
        command.arg(binary);
        command
    }

    /// One of its binutils.
    pub fn binutil(&self, name: &str) -> Command {
        Command::new(format!("{}{name}", self.binutils))
    }

    /// Has cargo compile for it. The C parts take musl's headers instead of those that the compiler has; Rust brings the library itself.
    pub fn cross_compile(&self, cargo: &mut Command) -> Result<(), String> {
        let Some(headers) = self.headers() else { return Ok(()) };
        let own = repo::output_of(repo::command(self.compiler, &["-print-file-name=include"]))?;
        let flags = format!("-nostdinc -isystem {} -isystem {}", own.trim(), headers.display());
        let tables = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
        let variable = self.target.replace('-', "_");
        cargo
            .env(format!("CC_{variable}"), self.compiler)
            .env(format!("AR_{variable}"), format!("{}ar", self.binutils))
            .env(format!("CFLAGS_{variable}"), format!("{flags} {tables}"))
            .env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.compiler);
        Ok(())
    }
}
