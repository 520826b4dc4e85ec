//! Installs the programs that tests need in addition to Rust.
//!
//! Invariant: installed programs are not touched, and failures are reported but not fatal: the tests that need a
//! missing program are skipped.

use std::process::Command;

use crate::packages::{self, Package, quiet};
use crate::{arm, dist, guest, repo, site, stage, targets, wheel};

/// Packages, by the stages that need them.
const PACKAGES: &[(&[&str], &[Package])] = &[
    (
        &["test", "quiet", "compat", "guest", "servers"],
        &[
            ("fio", "/usr/bin/fio"),
            ("bc", "/usr/bin/bc"),
            ("xfsprogs", "/sbin/mkfs.xfs"),
            ("e2fsprogs", "/sbin/mkfs.ext4"),
            ("btrfs-progs", "/sbin/mkfs.btrfs"),
            ("util-linux", "/sbin/losetup"),
            ("python3", "/usr/bin/python3"),
            ("python3-venv", "/usr/share/doc/python3-venv"),
            ("zstd", "/usr/bin/zstd"),
        ],
    ),
    (
        &["test", "quiet"],
        &[
            ("etcd-server", "/usr/bin/etcd"),
            ("postgresql", "/usr/bin/pgbench"),
            ("mariadb-server", "/usr/sbin/mariadbd"),
            ("strace", "/usr/bin/strace"),
            ("tmux", "/usr/bin/tmux"),
            ("sysstat", "/usr/bin/iostat"),
            ("bpftrace", "/usr/bin/bpftrace"),
            ("runc", "/usr/sbin/runc"),
            ("mandoc", "/usr/bin/mandoc"),
        ],
    ),
    (
        &["install"],
        &[
            ("python3", "/usr/bin/python3"),
            ("python3-venv", "/usr/share/doc/python3-venv"),
            ("busybox", "/usr/bin/busybox"),
            ("curl", "/usr/bin/curl"),
        ],
    ),
    (&["site"], &[("python3", "/usr/bin/python3"), ("python3-venv", "/usr/share/doc/python3-venv")]),
    (&["servers"], SERVERS),
    (&["fleet"], FLEET),
    (&["instructions"], &[("valgrind", "/usr/bin/valgrind")]),
    (
        &["browser"],
        &[("chromium", "/usr/bin/chromium"), ("nodejs", "/usr/bin/node"), ("npm", "/usr/bin/npm")],
    ),
    (&["fuzz"], &[("g++", "/usr/bin/c++")]),
    (
        &["dist"],
        &[
            ("mmdebstrap", "/usr/bin/mmdebstrap"),
            ("buildah", "/usr/bin/buildah"),
            ("podman", "/usr/bin/podman"),
            ("runc", "/usr/sbin/runc"),
            ("apt-utils", "/usr/bin/apt-ftparchive"),
            ("createrepo-c", "/usr/bin/createrepo_c"),
            ("dnf", "/usr/bin/dnf"),
            ("rpm", "/usr/bin/rpm"),
            ("rpm", "/usr/bin/rpmbuild"),
            ("makepkg", "/usr/bin/makepkg"),
            ("libarchive-tools", "/usr/bin/bsdtar"),
            ("fakeroot", "/usr/bin/fakeroot"),
            ("openssl", "/usr/bin/openssl"),
            ("curl", "/usr/bin/curl"),
            ("binutils", "/usr/bin/readelf"),
            ("ruby", "/usr/bin/ruby"),
            ("nix-bin", "/usr/bin/nix-instantiate"),
        ],
    ),
];

/// How hosts are reached (`cargo x fleet`).
pub const FLEET: &[Package] = &[
    ("openssh-server", "/usr/sbin/sshd"),
    ("openssh-client", "/usr/bin/ssh"),
    ("iproute2", "/usr/sbin/ip"),
    ("slurm-wlm", "/usr/bin/srun"),
    ("munge", "/usr/sbin/munged"),
    ("sudo", "/usr/bin/sudo"),
];

/// Servers that engines talk to (`cargo x servers`), and programs that the tests look at them with.
pub const SERVERS: &[Package] = &[
    ("nbdkit", "/usr/bin/nbdkit"),
    ("qemu-utils", "/usr/bin/qemu-nbd"),
    ("libnbd-bin", "/usr/bin/nbdcopy"),
    ("openssl", "/usr/bin/openssl"),
    ("nginx-light", "/usr/sbin/nginx"),
    ("ceph-mon", "/usr/bin/ceph-mon"),
    ("ceph-osd", "/usr/bin/ceph-osd"),
    ("ceph-common", "/usr/bin/rbd"),
    ("radosgw", "/usr/bin/radosgw"),
    ("glusterfs-server", "/usr/sbin/glusterd"),
    ("glusterfs-cli", "/usr/sbin/gluster"),
    ("tgt", "/usr/sbin/tgtd"),
    ("libiscsi-bin", "/usr/bin/iscsi-inq"),
    ("nfs-ganesha", "/usr/bin/ganesha.nfsd"),
    ("nfs-ganesha-vfs", "/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so"),
    ("libnfs13", "/usr/lib/x86_64-linux-gnu/libnfs.so.13"),
    ("rpcbind", "/sbin/rpcbind"),
];

/// Virtual environments of Python below the target directory, by the stage that needs them, with their packages: what
/// readers of fio's files import, what makes the site, what checks types, and what links for an old glibc.
const ENVIRONMENTS: &[(&str, &str, &[&str])] = &[
    ("compat", "readers", &["fio-plot==1.1.21", "six", "numpy", "pandas"]),
    ("site", site::ENVIRONMENT, &["mkdocs==1.6.1"]),
    ("install", wheel::MYPY, &["mypy==2.4.1"]),
    ("dist", dist::ZIG, &["cargo-zigbuild==0.24.1", "ziglang==0.13.0"]),
];

/// Subcommands of cargo, by the stage that needs them. No registry that is reached here has them built.
const CARGO_SUBCOMMANDS: &[(&str, &str, &str)] = &[("mutants", "mutants", "cargo-mutants@27.1.0")];

/// Installs what these stages need: packages (as root, or through sudo), virtual environments, compilers. Each is named
/// before.
pub fn run(stages: &[&str]) {
    let is_chosen = |stage: &str| stages.contains(&stage);
    let needed = PACKAGES.iter().filter(|(of, _)| of.iter().any(|stage| is_chosen(stage)));
    packages::install(&needed.flat_map(|(_, packages)| *packages).copied().collect::<Vec<_>>());
    environments(stages);
    if is_chosen("address-sanitizer") {
        nightly();
    }
    if is_chosen("dist") || is_chosen("instructions") {
        dist::install();
    }
    if is_chosen("arm") {
        arm::install();
    }
    if is_chosen("targets") {
        targets::install();
    }
    CARGO_SUBCOMMANDS.iter().filter(|(stage, ..)| is_chosen(stage)).for_each(|(_, name, package)| {
        cargo_subcommand(name, package);
    });
    if is_chosen("guest")
        && let Err(why) = guest::install()
    {
        println!("install: {why}; the cases in the guest will be skipped");
    }
}

/// Makes the virtual environments that these stages need.
pub fn environments(stages: &[&str]) {
    let needed = ENVIRONMENTS.iter().filter(|(stage, ..)| stages.contains(stage));
    needed.for_each(|(stage, name, packages)| environment(stage, name, packages));
}

/// The compiler with AddressSanitizer, and Miri.
fn nightly() {
    if quiet(Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"])) {
        return;
    }
    println!("install: a nightly compiler with Miri");
    let toolchain = ["toolchain", "install", "nightly", "--profile", "minimal"];
    let components = ["component", "add", "--toolchain", "nightly", "miri", "rust-src"];
    // Miri is missing from the nightly compilers that it does not build with.
    for (words, skipped) in [(&toolchain[..], "AddressSanitizer"), (&components, "Miri")] {
        if !quiet(Command::new("rustup").args(words)) {
            println!("install: rustup {} failed; {skipped} will be skipped", words.join(" "));
        }
    }
}

/// Builds a subcommand of cargo from source, not optimised: it runs for seconds, and would compile for minutes.
fn cargo_subcommand(name: &str, package: &str) {
    if quiet(&mut repo::cargo(&[name, "--version"])) {
        return;
    }
    println!("install: {package}");
    let mut cargo = repo::cargo(&["install", "--quiet", "--locked", "--debug", package]);
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    if let Err(why) = stage::command(cargo) {
        println!("install: {why}; what needs cargo {name} will be skipped");
    }
}

/// Python packages in a virtual environment of this name.
fn environment(stage: &str, name: &str, packages: &[&str]) {
    let venv = repo::target_dir().join(name);
    if venv.join("complete").exists() {
        return;
    }
    println!("install: {} into {}", packages.join(" "), venv.display());
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&venv);
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
    let done = stage::command(create)
        .and_then(|()| stage::command(pip))
        .and_then(|()| std::fs::write(venv.join("complete"), "").map_err(|error| error.to_string()));
    if let Err(why) = done {
        println!("install: {why}; what {stage} needs of it will be skipped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine has on which this is compiled, with git, rustup and Debian's essential packages.
    const ALREADY_THERE: &[&str] = &[
        "apt-cache",
        "apt-get",
        "cp",
        "dpkg",
        "dpkg-deb",
        "du",
        "git",
        "gzip",
        "id",
        "install",
        "kill",
        "losetup",
        "mount",
        "nsenter",
        "rustc",
        "rustfmt",
        "rustup",
        "sh",
        "sha256sum",
        "sleep",
        "sudo",
        "tar",
        "umount",
        "unshare",
    ];

    #[test]
    fn every_program_that_a_stage_runs_is_installed() {
        let files = repo::files().unwrap();
        let is_source = |file: &&String| file.starts_with("xtask/src/") && file.ends_with(".rs");
        let texts: Vec<(&String, String)> =
            files.iter().filter(is_source).map(|file| (file, repo::read(file).unwrap())).collect();
        // A package is beside the path of a program of its own.
        let words = |text: &str, before: &str| -> Vec<String> {
            text.split(before).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_string())).collect()
        };
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
        let paths = texts.iter().flat_map(|(_, text)| words(text, "\", \"/"));
        let subcommands = CARGO_SUBCOMMANDS.iter().map(|(_, name, _)| format!("cargo-{name}"));
        let there = ALREADY_THERE.iter().map(ToString::to_string);
        let installed: Vec<String> = paths.map(|path| name(&path)).chain(subcommands).chain(there).collect();
        let mut found = 0;
        for (file, text) in &texts {
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            for program in ["Command::new(\"", "command(\""].iter().flat_map(|call| words(product, call)) {
                assert!(installed.contains(&name(&program)), "{file}: no stage installs {program}");
                found += 1;
            }
        }
        assert!(found > 30, "found only {found} programs");
    }
}
