//! Debian packages, installed with apt.
//!
//! Invariant: a package whose sign is there is not touched, and what cannot be installed is said and not fatal.

use std::process::{Command, Stdio};

use crate::repo;

/// A Debian package, and a file whose presence shows that it is installed.
pub type Package = (&'static str, &'static str);

/// Installs those of these Debian packages whose sign is missing.
pub fn install(packages: &[Package]) {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, sign)| !std::path::Path::new(sign).exists())
        .map(|(package, _)| *package)
        .collect();
    if !missing.is_empty() {
        apt_install(&missing);
    }
}

fn apt_install(packages: &[&str]) {
    let as_root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    let with_sudo = !as_root && quiet(Command::new("sudo").args(["-n", "true"]));
    if !(as_root || with_sudo) {
        println!("install: not root, and no sudo; the tests need: apt-get install {}", packages.join(" "));
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

/// Whether a command succeeds, whose output is of no interest.
pub fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Whether these programs can be run, each with its package; the error is how to install one that cannot.
pub fn have_programs(programs: &[(&str, &str)]) -> Result<(), String> {
    for (program, package) in programs {
        repo::output_of(repo::command(program, &["--version"]))
            .map_err(|_| format!("needs {program}: apt-get install {package}"))?;
    }
    Ok(())
}
