//! The stage `arm`: fiord on 64-bit ARM, and what it stores on a big-endian processor, under qemu's emulation of programs.
//!
//! Invariant: what is compared was made by both binaries in this run. An emulator orders memory as this machine does, so that
//! nothing here shows whether threads share memory well: the stage `address-sanitizer` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_sys::errno::error_text;

use crate::stage::StageResult;
use crate::tally::{Counts, Tally};
use crate::{packages, repo, targets, test_run};

/// A processor that qemu emulates for programs of this machine's kernel.
struct Emulated {
    target: &'static str,
    compiler: &'static str,
    qemu: &'static str,
    /// Where Debian has the C library for it.
    root: &'static str,
}

const ARM: Emulated = Emulated {
    target: targets::ARM,
    compiler: "aarch64-linux-gnu-gcc",
    qemu: "qemu-aarch64",
    root: "/usr/aarch64-linux-gnu",
};

const BIG_ENDIAN: Emulated = Emulated {
    target: "s390x-unknown-linux-gnu",
    compiler: "s390x-linux-gnu-gcc",
    qemu: "qemu-s390x",
    root: "/usr/s390x-linux-gnu",
};

/// The crates without system calls whose tests run on ARM.
const PURE: [&str; 10] = [
    "fiord-checksum",
    "fiord-options",
    "fiord-plan",
    "fiord-report",
    "fiord-stats",
    "fiord-store",
    "fiord-trace",
    "fiord-verify",
    "fiord-wire",
    "fiord-workload",
];

/// The crates whose bytes go to files and to other machines.
const STORED: [&str; 5] = ["fiord-checksum", "fiord-store", "fiord-trace", "fiord-verify", "fiord-wire"];

/// The tests that a processor could make fail: the unit tests, and those of what is stored and sent. The others are
/// mostly statistics of integer arithmetic, and take minutes under emulation.
const TESTS: [&str; 5] = ["--lib", "--test=fio_blocks", "--test=history", "--test=layout", "--test=reports"];

/// Verify methods that each binary writes and the other reads: by the processor's instructions where it has them, and not.
const METHODS: [&str; 6] = ["crc32c", "crc32", "md5", "sha1", "sha256", "xxhash"];

/// What the stage needs, each with a file that shows that it is installed.
pub const PACKAGES: &[(&str, &str)] = &[
    ("qemu-user", "/usr/bin/qemu-aarch64"),
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/include/stdlib.h"),
    ("gcc-s390x-linux-gnu", "/usr/bin/s390x-linux-gnu-gcc"),
    ("libc6-dev-s390x-cross", "/usr/s390x-linux-gnu/include/stdlib.h"),
];

/// Installs the packages, and the standard libraries.
pub fn install() {
    packages::install(PACKAGES);
    targets::add(&[ARM.target, BIG_ENDIAN.target]);
}

/// The stage of CI; `binary` is fiord for this machine.
pub fn stage(binary: &Path) -> StageResult {
    on_arm(binary).and(on_big_endian())
}

fn on_arm(binary: &Path) -> StageResult {
    if let Err(why) = ARM.needs() {
        return StageResult::Skipped(why);
    }
    let library = |alone: Option<&str>| ARM.tests(&PURE, &TESTS, alone);
    let clock = |alone: Option<&str>| ARM.tests(&["fiord-sys"], &["--lib"], alone.or(Some("clock::")));
    let tests = test_run::tests(library).and(test_run::tests(clock));
    let crossed = ARM.binary().and_then(|arm| Pair { here: binary.to_path_buf(), arm }.check());
    tests.and(match crossed {
        Ok(passed) => {
            StageResult::Passed(Tally { counts: Counts { passed, ..Counts::default() }, ..Tally::default() })
        }
        Err(why) => StageResult::of(Err(why)),
    })
}

fn on_big_endian() -> StageResult {
    match BIG_ENDIAN.needs() {
        Ok(()) => test_run::tests(|alone: Option<&str>| BIG_ENDIAN.tests(&STORED, &TESTS, alone)),
        Err(why) => StageResult::Skipped(why),
    }
}

impl Emulated {
    /// The error says what is missing and how to get it.
    fn needs(&self) -> Result<(), String> {
        targets::needs(self.target, self.compiler, PACKAGES)?;
        match repo::output_of(repo::command(self.qemu, &["--version"])) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("{} needs {}: apt-get install qemu-user", self.target, self.qemu)),
        }
    }

    /// A cargo that compiles for it and runs what it compiled. Nobody debugs these programs.
    fn cargo(&self, args: &[&str]) -> Command {
        let variable = self.target.replace('-', "_");
        let mut cargo = repo::cargo(args);
        cargo
            .args(["--target", self.target])
            .args(repo::UNOPTIMIZED_LOOPS)
            .env(format!("CC_{variable}"), self.compiler)
            .env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.compiler)
            .env(format!("CARGO_TARGET_{}_RUNNER", variable.to_uppercase()), self.qemu)
            .env(fiord_testing::EMULATOR, self.qemu)
            .env("QEMU_LD_PREFIX", self.root)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0")
            // As many as are worth it under emulation.
            .env("PROPTEST_CASES", "32");
        cargo
    }

    /// The tests of these packages, or one of them.
    fn tests(&self, packages: &[&str], which: &[&str], alone: Option<&str>) -> Command {
        let mut cargo = self.cargo(&["test", "--no-fail-fast"]);
        cargo.args(packages.iter().flat_map(|package| ["-p", package])).args(which);
        cargo.args(alone.iter().flat_map(|name| ["--", name]));
        cargo
    }

    /// fiord for it.
    fn binary(&self) -> Result<PathBuf, String> {
        crate::stage::command(self.cargo(&["build", "--quiet", "-p", "fiord"]))?;
        Ok(repo::target_dir().join(self.target).join("debug/fiord"))
    }
}

/// fiord for this machine and for ARM.
struct Pair {
    here: PathBuf,
    arm: PathBuf,
}

impl Pair {
    /// The number of checks, all of which passed; the error says which did not.
    fn check(&self) -> Result<u64, String> {
        let place = repo::target_dir().join("arm");
        let failed = |error| format!("{}: {}", place.display(), error_text(&error));
        if place.exists() {
            fs::remove_dir_all(&place).map_err(failed)?;
        }
        fs::create_dir_all(&place).map_err(failed)?;
        self.clock(&place)?;
        let mut checks = 1;
        for method in METHODS {
            self.verify(&place, method, &self.here, &self.arm)?;
            self.verify(&place, method, &self.arm, &self.here)?;
            checks += 2;
        }
        self.history(&place, &self.here)?;
        self.history(&place, &self.arm)?;
        self.studies(&place)?;
        Ok(checks + 3)
    }

    /// What this binary prints in a directory, with a history there.
    fn run(&self, place: &Path, binary: &Path, args: &[&str]) -> Result<String, String> {
        let is_arm = binary == self.arm;
        let mut command = Command::new(if is_arm { Path::new(ARM.qemu) } else { binary });
        if is_arm {
            command.arg(binary).env("QEMU_LD_PREFIX", ARM.root);
        }
        command.args(args).current_dir(place).env("XDG_STATE_HOME", place.join("state"));
        repo::output_of(command)
    }

    /// The loops have the generic timer as their clock.
    fn clock(&self, place: &Path) -> Result<(), String> {
        let said = self.run(place, &self.arm, &["--cpuclock-test"])?;
        let timer = ["cs: reliable_tsc: yes", "cs: the generic timer counts in steps of", "cs: Pass!"];
        match timer.iter().find(|line| !said.contains(**line)) {
            None => Ok(()),
            Some(line) => Err(format!("--cpuclock-test on ARM does not say {line:?}: {said}")),
        }
    }

    /// What one writes the other verifies.
    fn verify(&self, place: &Path, method: &str, writer: &Path, reader: &Path) -> Result<(), String> {
        let method = format!("--verify={method}");
        let job = ["--name=j", "--filename=f", "--ioengine=psync", "--bs=4k", "--size=256k", &method];
        let shared = |more: &[&'static str]| [&job[..], more].concat();
        self.run(place, writer, &shared(&["--rw=randwrite", "--do_verify=0"]))?;
        self.run(place, reader, &shared(&["--rw=randread"]))?;
        Ok(())
    }

    /// A history that this binary has written is the same for both, byte for byte.
    fn history(&self, place: &Path, writer: &Path) -> Result<(), String> {
        self.run(place, writer, &["--name=kept", "--ioengine=null", "--rw=randrw", "--size=4m"])?;
        let read = |args: &[&str]| -> Result<(), String> {
            match self.run(place, &self.here, args)? == self.run(place, &self.arm, args)? {
                true => Ok(()),
                false => Err(format!("both print something else for fiord {}", args.join(" "))),
            }
        };
        read(&["history", "--json"])?;
        read(&["explain", "last"])
    }

    /// A study runs on ARM.
    fn studies(&self, place: &Path) -> Result<(), String> {
        self.run(place, &self.arm, &["quick", "--time=1s", "--size=8m", "--undecided=pass", "."]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compiler_and_library_has_its_package() {
        for Emulated { compiler, root, .. } in [ARM, BIG_ENDIAN] {
            let has = |path: &str| PACKAGES.iter().any(|(_, sign)| sign.starts_with(path));
            assert!(has(&format!("/usr/bin/{compiler}")) && has(root), "{compiler}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let unknown = Emulated { target: "no-such-target", ..ARM };
        assert!(unknown.needs().unwrap_err().ends_with("rustup target add no-such-target"));
    }
}
