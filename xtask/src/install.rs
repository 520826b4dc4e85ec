//! Installs what the tests need beside Rust.
//!
//! Invariant: what is already there is left alone, and what cannot be installed is named, not fatal: the tests that
//! need it say that they are skipped.

use std::process::{Command, Stdio};

use crate::{repo, stage};

/// A Debian package, and a program that shows it is there.
const PACKAGES: &[(&str, &str)] = &[
    ("fio", "/usr/bin/fio"),
    ("bc", "/usr/bin/bc"),
    ("xfsprogs", "/sbin/mkfs.xfs"),
    ("e2fsprogs", "/sbin/mkfs.ext4"),
    ("btrfs-progs", "/sbin/mkfs.btrfs"),
    ("util-linux", "/sbin/losetup"),
    ("etcd-server", "/usr/bin/etcd"),
    ("strace", "/usr/bin/strace"),
    ("valgrind", "/usr/bin/valgrind"),
    ("g++", "/usr/bin/c++"),
    ("python3", "/usr/bin/python3"),
    ("python3-venv", "/usr/share/doc/python3-venv"),
];

/// What the readers of fio's files import; they live in a virtual environment of their own.
const PYTHON_PACKAGES: &[&str] = &["fio-plot==1.1.21", "six", "numpy", "pandas"];

/// Installs packages (as root, or through sudo) and the readers' virtual environment.
pub fn run() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, sign)| !std::path::Path::new(sign).exists())
        .map(|(package, _)| *package)
        .collect();
    if !missing.is_empty() {
        apt_install(&missing);
    }
    readers();
    Ok(())
}

fn apt_install(packages: &[&str]) {
    let as_root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    let with_sudo = !as_root && quiet(Command::new("sudo").args(["-n", "true"]));
    if !(as_root || with_sudo) {
        println!(
            "install: not root, and no sudo; the tests would like: apt-get install {}",
            packages.join(" ")
        );
        return;
    }
    println!("install: {}", packages.join(" "));
    let apt_get = |args: &[&str]| {
        let mut command = Command::new(if with_sudo { "sudo" } else { "env" });
        command
            .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"])
            .args(args)
            .stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut install = vec!["install", "--no-install-recommends"];
    install.extend(packages);
    if !(apt_get(&["update"]) && apt_get(&install)) {
        println!("install: apt-get failed; tests that need these will be skipped");
    }
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The programs that read fio's files, in a virtual environment under the target directory.
fn readers() {
    let venv = repo::target_dir().join("readers");
    if venv.join("bin/fio-plot").exists() && venv.join("complete").exists() {
        return;
    }
    println!("install: {} into {}", PYTHON_PACKAGES.join(" "), venv.display());
    let mut create = Command::new("python3");
    create.args(["-m", "venv"]).arg(&venv);
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYTHON_PACKAGES);
    let done = stage::command(create)
        .and_then(|()| stage::command(pip))
        .and_then(|()| std::fs::write(venv.join("complete"), "").map_err(|error| error.to_string()));
    if let Err(why) = done {
        println!("install: {why}; tests of the readers will be skipped");
    }
}
