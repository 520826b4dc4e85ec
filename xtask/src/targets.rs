//! `cargo x targets`: fiord compiles for the processors that no test runs on.
//!
//! Invariant: a target that cannot be checked on this machine is skipped with what is missing, and never passes.

use std::process::{Command, Stdio};

use crate::stage::{self, Share, StageResult, Stages};
use crate::{packages, repo, stage_times};

const HELP: &str = "cargo x targets [--install] [TARGET…]

Checks that fiord compiles for other processors: aarch64-unknown-linux-gnu, riscv64gc-unknown-linux-gnu,
powerpc64le-unknown-linux-gnu and armv7-unknown-linux-gnueabihf, or those named. It needs Rust's standard library for each,
and a C compiler (SQLite and ring are partly written in C); --install first installs both.
";

/// A target, and the C compiler that cargo's build scripts call for it.
type Target = (&'static str, &'static str);

/// What the stage `arm` builds and runs.
pub const ARM: &str = "aarch64-unknown-linux-gnu";

const TARGETS: [Target; 4] = [
    (ARM, "aarch64-linux-gnu-gcc"),
    ("riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu-gcc"),
    ("powerpc64le-unknown-linux-gnu", "powerpc64le-linux-gnu-gcc"),
    ("armv7-unknown-linux-gnueabihf", "arm-linux-gnueabihf-gcc"),
];

/// Debian's C compilers and headers, each with a file that shows that it is installed.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/include/stdlib.h"),
    ("gcc-riscv64-linux-gnu", "/usr/bin/riscv64-linux-gnu-gcc"),
    ("libc6-dev-riscv64-cross", "/usr/riscv64-linux-gnu/include/stdlib.h"),
    ("gcc-powerpc64le-linux-gnu", "/usr/bin/powerpc64le-linux-gnu-gcc"),
    ("libc6-dev-ppc64el-cross", "/usr/powerpc64le-linux-gnu/include/stdlib.h"),
    ("gcc-arm-linux-gnueabihf", "/usr/bin/arm-linux-gnueabihf-gcc"),
    ("libc6-dev-armhf-cross", "/usr/arm-linux-gnueabihf/include/stdlib.h"),
];

/// `cargo x targets [--install] [TARGET…]`
pub fn run(args: &[String]) -> Result<(), String> {
    let (flags, names): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| arg.starts_with('-'));
    for flag in flags {
        match flag.as_str() {
            "--install" => install(),
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("{other}: unknown argument\n\n{HELP}")),
        }
    }
    let is_known = |name: &&&String| TARGETS.iter().any(|(target, _)| target == *name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        return Err(format!("{unknown}: unknown target\n\n{HELP}"));
    }
    let stages = Stages::default();
    for (target, compiler) in TARGETS {
        if names.is_empty() || names.iter().any(|name| *name == target) {
            stages.run(target, || check(target, compiler));
        }
    }
    match stages.summary(&stage_times::recorded()) {
        true => Ok(()),
        false => Err("fiord does not compile for a target".to_string()),
    }
}

/// The stage of CI: the target of 32 bits, and one of the others by turns. The stage `arm` builds its own. One that is skipped
/// counts as a skipped test.
pub fn stage(share: Share) -> StageResult {
    let [_, by_turns @ .., of_32_bits] = TARGETS;
    let chosen = match share.choose(by_turns, by_turns.len()) {
        Ok(chosen) => chosen,
        Err(why) => return StageResult::of(Err(why)),
    };
    let results = chosen.into_iter().map(|(target, compiler)| check(target, compiler));
    results.fold(check(of_32_bits.0, of_32_bits.1), StageResult::and)
}

/// Installs the standard libraries, and the C compilers (as root, or through sudo).
pub fn install() {
    packages::install(PACKAGES);
    add(&TARGETS.map(|(target, _)| target));
}

/// Adds Rust's standard library for each target.
pub fn add(targets: &[&str]) {
    let added = stage::command(repo::command("rustup", &[&["target", "add"], targets].concat()));
    if let Err(why) = added {
        println!("install: {why}; the targets that are missing will be skipped");
    }
}

/// Compiles the crates of the product for a target, as far as a check does.
fn check(target: &str, compiler: &str) -> StageResult {
    if let Err(why) = needs(target, compiler, PACKAGES) {
        return StageResult::Skipped(why);
    }
    let mut cargo = repo::cargo(&["check", "--quiet", "-p", "fiord", "--target", target]);
    // Build scripts are compiled for this machine, and not concerned.
    cargo.env("RUSTFLAGS", "-D warnings");
    StageResult::of(stage::command(cargo))
}

/// What compiling for the target needs; the error says what is missing and how to get it: of these packages.
pub fn needs(target: &str, compiler: &str, packages: &[(&str, &str)]) -> Result<(), String> {
    let library = repo::output_of(repo::command("rustc", &["--print", "target-libdir", "--target", target]));
    if !library.is_ok_and(|directory| std::path::Path::new(directory.trim()).is_dir()) {
        return Err(format!("{target} needs Rust's standard library for it: rustup target add {target}"));
    }
    let mut trial = Command::new(compiler);
    trial.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !trial.status().is_ok_and(|status| status.success()) {
        let package = packages.iter().find(|(_, sign)| sign.ends_with(compiler));
        let package = package.map_or(compiler, |(package, _)| package);
        return Err(format!(
            "{target} needs {compiler}: apt-get install {package}, with the headers of its C library"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let unknown = needs("no-such-target", "cc", PACKAGES).unwrap_err();
        assert_eq!(
            unknown,
            "no-such-target needs Rust's standard library for it: rustup target add no-such-target"
        );
        let host = repo::host().unwrap();
        let uncompiled = needs(&host, "no-such-gcc", PACKAGES).unwrap_err();
        assert!(
            uncompiled.starts_with(&format!("{host} needs no-such-gcc: apt-get install ")),
            "{uncompiled}"
        );
        let StageResult::Skipped(why) = check("no-such-target", "cc") else { panic!("it cannot be checked") };
        assert_eq!(why, unknown);
    }

    #[test]
    fn each_compiler_has_its_package() {
        for (target, compiler) in TARGETS {
            assert!(PACKAGES.iter().any(|(_, sign)| sign.ends_with(compiler)), "{target}");
        }
    }
}
