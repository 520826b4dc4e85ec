//! The stage `arm`: fiord on 64-bit ARM, and what it stores on a big-endian processor, under qemu's emulation of programs.
//!
//! Invariant: what is compared was made by both binaries in this run. An emulator orders memory as this machine does, so that
//! nothing here shows whether threads share memory well: the stage `address-sanitizer` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::ScopedJoinHandle;

use fiord_sys::errno::error_text;
use serde_json::Value;

use crate::stage::StageResult;
use crate::tally::{Counts, Tally};
use crate::{guest, packages, repo, targets, test_run};

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

/// What is compiled for ARM, always all of it: with fewer packages their dependencies would have other features, and would be
/// compiled again. Of `fiord-sys` the tests of the clock run, and in the machine those of persistent memory.
const COMPILED: [&str; 2] = ["fiord", "fiord-sys"];

/// Tests that do the same on every processor, and take most of the time of all: statistics,
/// searches through many values, and the sizes of files.
const SAME_EVERYWHERE: [&str; 10] = [
    "a_history_with_a_policy_does_not_grow_and_returns_its_space",
    "a_long_text_is_wrapped_in_time_of_its_length",
    "every_byte_of_a_name_reaches_its_file",
    "normal_is_a_normal_distribution_within_its_range",
    "pages_name_every_option",
    "printed_times_are_read_back",
    "the_error_of_a_mean_covers_it_although_neighbours_resemble_each_other",
    "the_interval_covers_the_mean_as_often_as_it_says",
    "the_write_ahead_log_is_emptied_now_and_then",
    "values_of_one_kind_are_rarely_taken_for_several",
];

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
    if let Err(why) = guest::arm::install() {
        println!("install: {why}; what runs in a machine of ARM will be skipped");
    }
}

/// The stage of CI; `binary` is fiord for this machine.
pub fn stage(binary: &Path) -> StageResult {
    match ARM.needs() {
        Ok(()) => on_arm(binary),
        Err(why) => StageResult::Skipped(why).and(on_big_endian()),
    }
}

/// All of the stage: tests run while the binary is compiled, and beside the machine of ARM, which one processor emulates.
fn on_arm(binary: &Path) -> StageResult {
    let packages = [&PURE[..], &COMPILED].concat();
    let programs = match ARM.programs(&packages) {
        Ok(programs) => programs,
        Err(why) => return StageResult::of(Err(why)),
    };
    std::thread::scope(|scope| {
        let tests = scope.spawn(|| ARM.tests(&programs));
        let others = match ARM.binary(&packages) {
            Ok(arm) => with_binary(&Pair { here: binary, arm: &arm }, &programs),
            Err(why) => StageResult::of(Err(why)),
        };
        others.and(joined(tests))
    })
}

fn with_binary(pair: &Pair<'_>, programs: &[TestProgram]) -> StageResult {
    std::thread::scope(|scope| {
        let in_guest = scope.spawn(|| in_guest(pair, programs));
        checks(pair.check()).and(on_big_endian()).and(joined(in_guest))
    })
}

fn joined(part: ScopedJoinHandle<'_, StageResult>) -> StageResult {
    part.join().unwrap_or_else(|_| StageResult::of(Err("a part of the stage has panicked".to_string())))
}

fn in_guest(pair: &Pair<'_>, programs: &[TestProgram]) -> StageResult {
    match guest::arm::needs() {
        Ok(image) => {
            let calls = programs.iter().filter(|program| program.makes_system_calls());
            let programs = calls.map(|program| ("tests", &*program.path)).chain([("fiord", pair.arm)]);
            checks(guest::arm::check(&image, pair.here, programs, Path::new(ARM.root)))
        }
        Err(why) => StageResult::Skipped(why),
    }
}

/// The result of checks that are no tests of a program: their number, or which did not pass.
fn checks(passed: Result<u64, String>) -> StageResult {
    match passed {
        Ok(passed) => {
            StageResult::Passed(Tally { counts: Counts { passed, ..Counts::default() }, ..Tally::default() })
        }
        Err(why) => StageResult::of(Err(why)),
    }
}

fn on_big_endian() -> StageResult {
    match BIG_ENDIAN.needs() {
        Ok(()) => match BIG_ENDIAN.programs(&STORED) {
            Ok(programs) => BIG_ENDIAN.tests(&programs),
            Err(why) => StageResult::of(Err(why)),
        },
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

    /// A cargo that compiles these packages for it. Nobody debugs these programs.
    fn cargo(&self, words: &[&str], packages: &[&str]) -> Command {
        let variable = self.target.replace('-', "_");
        let mut cargo = repo::cargo(words);
        cargo
            .args(["--quiet", "--target", self.target])
            .args(packages.iter().flat_map(|package| ["-p", package]))
            .args(repo::UNOPTIMIZED_LOOPS)
            .args(["--config", "profile.dev.package.libsqlite3-sys.opt-level=0"])
            .env(format!("CC_{variable}"), self.compiler)
            .env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.compiler)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0");
        cargo
    }

    /// A program of its processor.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.qemu);
        command.arg(program).env("QEMU_LD_PREFIX", self.root).env(fiord_testing::EMULATOR, self.qemu);
        command
    }

    /// The programs of the tests of these packages.
    fn programs(&self, packages: &[&str]) -> Result<Vec<TestProgram>, String> {
        let words = ["test", "--no-run", "--message-format=json-render-diagnostics"];
        let mut cargo = self.cargo(&words, packages);
        cargo.args(TESTS);
        Ok(repo::output_of(cargo)?.lines().filter_map(TestProgram::of).collect())
    }

    /// The tests of these programs.
    fn tests(&self, programs: &[TestProgram]) -> StageResult {
        let results = programs.iter().map(|program| {
            println!("{}", program.path.display());
            test_run::tests(|alone| program.command(self, alone))
        });
        let none = || StageResult::of(Err("cargo has built no tests".to_string()));
        results.reduce(StageResult::and).unwrap_or_else(none)
    }

    /// fiord for it, with the features that the tests of these packages have: cargo is given a file of tests for that.
    fn binary(&self, packages: &[&str]) -> Result<PathBuf, String> {
        let mut cargo = self.cargo(&["build"], packages);
        cargo.args(["--bin=fiord", TESTS[1]]);
        crate::stage::command(cargo)?;
        Ok(repo::target_dir().join(self.target).join("debug/fiord"))
    }
}

/// A program that cargo has built of tests.
struct TestProgram {
    path: PathBuf,
    /// Of its package, where it runs.
    directory: PathBuf,
}

impl TestProgram {
    /// The program that a message of cargo's is about.
    fn of(message: &str) -> Option<TestProgram> {
        let message: Value = serde_json::from_str(message).ok()?;
        let path = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
        let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(TestProgram { path: path.into(), directory: directory.to_path_buf() })
    }

    /// Runs those of its tests that say something about a processor, or one of them.
    fn command(&self, on: &Emulated, alone: Option<&str>) -> Command {
        let mut command = on.command(&self.path);
        // As many as are worth it under emulation.
        command.current_dir(&self.directory).env("PROPTEST_CASES", "32");
        match alone {
            Some(name) => command.args(["--exact", name]),
            None => command.args(SAME_EVERYWHERE.iter().flat_map(|name| ["--skip", name])),
        };
        if alone.is_none() && self.makes_system_calls() {
            command.arg("clock::");
        }
        command
    }

    /// Whether its crate is that of the system calls, of which an emulator of programs has not all.
    fn makes_system_calls(&self) -> bool {
        self.directory.ends_with("crates/sys")
    }
}

/// fiord for this machine and for ARM.
struct Pair<'a> {
    here: &'a Path,
    arm: &'a Path,
}

impl Pair<'_> {
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
            self.verify(&place, method, self.here, self.arm)?;
            self.verify(&place, method, self.arm, self.here)?;
            checks += 2;
        }
        self.history(&place, self.here)?;
        self.history(&place, self.arm)?;
        self.studies(&place)?;
        Ok(checks + 3)
    }

    /// What this binary prints in a directory, with a history there.
    fn run(&self, place: &Path, binary: &Path, args: &[&str]) -> Result<String, String> {
        let mut command = if binary == self.arm { ARM.command(binary) } else { Command::new(binary) };
        command.args(args).current_dir(place).env("XDG_STATE_HOME", place.join("state"));
        repo::output_of(command)
    }

    /// The loops have the generic timer as their clock.
    fn clock(&self, place: &Path) -> Result<(), String> {
        let said = self.run(place, self.arm, &["--cpuclock-test"])?;
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
            match self.run(place, self.here, args)? == self.run(place, self.arm, args)? {
                true => Ok(()),
                false => Err(format!("both print something else for fiord {}", args.join(" "))),
            }
        };
        read(&["history", "--json"])?;
        read(&["explain", "last"])
    }

    /// A study runs on ARM.
    fn studies(&self, place: &Path) -> Result<(), String> {
        self.run(place, self.arm, &["quick", "--time=1s", "--size=8m", "--undecided=pass", "."]).map(drop)
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
    fn what_is_left_out_exists() {
        let sources: String = (repo::files().unwrap().iter())
            .filter(|file| file.starts_with("crates/") && file.ends_with(".rs"))
            .filter_map(|file| repo::read(file))
            .collect();
        for name in SAME_EVERYWHERE {
            assert!(sources.contains(&format!("fn {name}()")), "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let unknown = Emulated { target: "no-such-target", ..ARM };
        assert!(unknown.needs().unwrap_err().ends_with("rustup target add no-such-target"));
    }
}
