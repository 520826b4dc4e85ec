//! What the emulated machine consists of: an emulator, nbdkit, virtme-ng, and Debian's kernels, unpacked but not installed.
//!
//! Invariant: everything is outside the repository, in the user's cache, and a kernel is used only when complete.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::emulator::{self, Emulator};
use crate::cache::{cache, newest, unpack};
use crate::{packages, repo, stage};

/// A series of Debian's kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Its version, as `--kernel` names it.
    pub series: &'static str,
    /// The package that depends on its newest package.
    package: &'static str,
    /// Where it is unpacked, below the cache.
    directory: &'static str,
    download_mb: u32,
}

/// The kernels; the first boots unless `--kernel` names another.
const KERNELS: [Kernel; 2] = [
    Kernel { series: "6.12", package: "linux-image-6.12-amd64", directory: "kernel", download_mb: 110 },
    Kernel { series: "6.1", package: "linux-image-amd64", directory: "kernel-6.1", download_mb: 70 },
];

/// The package on PyPI that boots a kernel over this machine's root file system.
const VIRTME: &str = "virtme-ng==1.42";

/// Debian packages, and a program that shows that each is installed.
const PACKAGES: &[(&str, &str)] = &[
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    ("kmod", "/sbin/depmod"),
    ("busybox-static", "/bin/busybox"),
    ("cpio", "/usr/bin/cpio"),
    ("zstd", "/usr/bin/zstd"),
    ("util-linux", "/sbin/blkzone"),
    ("dmsetup", "/sbin/dmsetup"),
    ("nbdkit", "/usr/bin/nbdkit"),
    ("blktrace", "/usr/sbin/blktrace"),
    ("nvme-cli", "/usr/sbin/nvme"),
    ("rdma-core", "/usr/share/doc/rdma-core"),
    ("ibverbs-providers", "/etc/libibverbs.d/rxe.driver"),
    ("librdmacm1", "/usr/share/doc/librdmacm1"),
    ("libibverbs1", "/usr/share/doc/libibverbs1"),
    ("iproute2", "/usr/bin/rdma"),
    ("procps", "/usr/bin/pkill"),
    ("python3-venv", "/usr/share/doc/python3-venv"),
];

/// What it takes to boot.
#[derive(Debug)]
pub struct Tools {
    /// virtme-ng's program.
    pub vng: PathBuf,
    /// What it starts.
    pub emulator: Emulator,
    /// The kernel's image.
    pub image: PathBuf,
}

impl Kernel {
    /// The one that boots unless another is asked for.
    pub const DEFAULT: &'static Kernel = &KERNELS[0];

    /// The oldest one.
    pub const OLDEST: &'static Kernel = &KERNELS[KERNELS.len() - 1];

    /// The kernel of this series.
    ///
    /// # Errors
    /// Which ones there are.
    pub fn of_series(series: &str) -> Result<&'static Kernel, String> {
        let all: Vec<&str> = KERNELS.iter().map(|kernel| kernel.series).collect();
        let found = KERNELS.iter().find(|kernel| kernel.series == series);
        found.ok_or_else(|| format!("--kernel {series}: unknown series; there are {}", all.join(" and ")))
    }

    fn directory(&self) -> PathBuf {
        cache().join(self.directory)
    }

    /// Its image in the cache.
    fn image(&self) -> Option<PathBuf> {
        image_in(&self.directory())
    }
}

/// The image of the kernel that was unpacked into this directory.
pub fn image_in(directory: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(directory.join("boot")).ok()?.flatten().map(|entry| entry.path());
    files.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
}

impl Tools {
    /// What is there to boot this kernel.
    ///
    /// # Errors
    /// What is missing, and how to install it.
    pub fn find(kernel: &Kernel) -> Result<Tools, String> {
        let missing: Vec<&str> = PACKAGES
            .iter()
            .filter(|(_, sign)| !Path::new(sign).exists())
            .map(|(package, _)| *package)
            .collect();
        let how = format!(
            "`cargo x guest --install --kernel {}` installs it (`cargo x ci --install` too)",
            kernel.series
        );
        if !missing.is_empty() {
            return Err(format!("missing {}: {how}", missing.join(", ")));
        }
        let vng = venv().join("bin/vng");
        if !vng.exists() {
            return Err(format!("{}: missing: {how}", vng.display()));
        }
        let emulator = Emulator::find().ok_or_else(|| format!("no qemu of version 8 or newer: {how}"))?;
        let image = kernel.image();
        let image = image.ok_or_else(|| format!("no kernel in {}: {how}", kernel.directory().display()))?;
        Ok(Tools { vng, emulator, image })
    }

    /// Where programs are looked for: beside virtme-ng's first.
    pub fn path(&self) -> OsString {
        let mut path = OsString::from(self.vng.parent().unwrap_or(Path::new("/")));
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        path
    }
}

/// Installs what is missing to boot this kernel.
///
/// # Errors
/// The step that failed.
pub fn install(kernel: &Kernel) -> Result<(), String> {
    packages::install(PACKAGES);
    if !venv().join("bin/vng").exists() {
        println!("install: {VIRTME} into {}", venv().display());
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(venv());
        stage::command(create)?;
        let mut pip = Command::new(venv().join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", VIRTME]);
        stage::command(pip)?;
    }
    emulator::install()?;
    if kernel.image().is_none() {
        download(kernel)?;
    }
    Tools::find(kernel).map(drop)
}

/// Downloads the kernel's package and unpacks it.
fn download(kernel: &Kernel) -> Result<(), String> {
    let dir = kernel.directory();
    let depends = repo::output_of(repo::command("apt-cache", &["depends", kernel.package]))?;
    let package = newest(&depends).unwrap_or(kernel.package);
    println!("install: {package} into {} (downloads {} MB)", dir.display(), kernel.download_mb);
    unpack(&dir, |incomplete| {
        let mut download = repo::command("apt-get", &["-qq", "download", package]);
        download.current_dir(incomplete);
        repo::output_of(download).map(drop)
    })?;
    let version = package.trim_start_matches("linux-image-");
    let indexed = repo::output_of(repo::command("/sbin/depmod", &["-b", &dir.to_string_lossy(), version]));
    indexed.map(drop).inspect_err(|_| drop(fs::remove_dir_all(&dir)))
}

fn venv() -> PathBuf {
    cache().join("venv")
}
