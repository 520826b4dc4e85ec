//! The Python wheel, and the stage `install`: what people install fiord with, each in a place of its own.
//!
//! Invariant: nothing is installed into the system or asked of a network; what this machine lacks is skipped by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fiord_sys::errno::error_text;

use crate::repo;
use crate::stage::StageResult;
use crate::tally::{Counts, Tally};

/// Python's release from which on the module works.
const OLDEST_MINOR: u32 = 9;

/// The virtual environment below the target directory that has mypy.
pub const MYPY: &str = "mypy";

/// Tells the release of a Python 3 that can make environments, as a minor number.
const PROBE: &str =
    "import sys, venv, ensurepip; assert sys.version_info[0] == 3; print(sys.version_info[1])";

/// Builds the wheel of this binary, which is for a processor, in a directory.
///
/// # Errors
///
/// If there is no Python, or it cannot be written.
pub fn build(binary: &Path, directory: &Path, processor: &str) -> Result<PathBuf, String> {
    fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {}", directory.display(), error_text(&error)))?;
    let mut build = repo::command("python3", &["python/build_wheel.py"]);
    build.arg(binary).arg(directory).arg(processor);
    Ok(PathBuf::from(repo::output_of(build)?.trim()))
}

/// The stage of CI: the wheel in a clean environment of each Python that is found, with the module's tests, its types, and
/// the tests of the scripts in `packaging`.
pub fn stage(binary: &Path) -> StageResult {
    let pythons = pythons();
    if pythons.is_empty() {
        return StageResult::Skipped(format!("needs Python 3.{OLDEST_MINOR} or later with venv"));
    }
    let place = repo::target_dir().join("python");
    let wheel = match reproducible(binary, &place) {
        Ok(wheel) => wheel,
        Err(why) => return StageResult::of(Err(why)),
    };
    let mut result = types(&place);
    for (minor, python) in &pythons {
        result = result.and(counted(&format!("wheel in Python 3.{minor}"), tested(python, &wheel, &place)));
    }
    for (name, tests) in [("install.sh", "packaging/test_install.py"), ("ci/run.sh", "packaging/test_ci.py")]
    {
        let mut script = repo::command("python3", &[tests]);
        script.env("FIORD_BINARY", binary).env("PYTHONDONTWRITEBYTECODE", "1");
        result = result.and(unittest(name, script));
    }
    result
}

/// The wheel, which is the same if it is built twice.
fn reproducible(binary: &Path, place: &Path) -> Result<PathBuf, String> {
    let build = |name: &str| build(binary, &place.join(name), std::env::consts::ARCH);
    let wheels = [build("first")?, build("second")?];
    let [first, second] = wheels.each_ref().map(fs::read);
    match (first, second) {
        (Ok(first), Ok(second)) if first == second => {
            let [wheel, _] = wheels;
            Ok(wheel)
        }
        _ => Err(format!("{} differs when it is built again", wheels[0].display())),
    }
}

/// One Python of each release that is found: those of pyenv, and that of the path.
fn pythons() -> Vec<(u32, PathBuf)> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let mut candidates: Vec<PathBuf> = pyenv.map(|entry| entry.path().join("bin/python3")).collect();
    candidates.sort();
    candidates.push(PathBuf::from("python3"));
    for python in candidates {
        let mut probe = Command::new(&python);
        probe.args(["-c", PROBE]).stderr(Stdio::null());
        let Some(minor) = repo::output_of(probe).ok().and_then(|said| said.trim().parse().ok()) else {
            continue;
        };
        if minor >= OLDEST_MINOR && !found.iter().any(|(known, _)| *known == minor) {
            found.push((minor, python));
        }
    }
    found.sort();
    found
}

/// Installs the wheel into a new environment, and runs the tests there: the module and the program are those of the wheel.
fn tested(python: &Path, wheel: &Path, place: &Path) -> StageResult {
    let environment = place.join("environment");
    let mut make = Command::new(python);
    make.args(["-m", "venv", "--clear"]).arg(&environment);
    let inside = environment.join("bin/python");
    let mut install = Command::new(&inside);
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]);
    install.arg("--disable-pip-version-check").arg(wheel);
    if let Err(why) = repo::output_of(make).and_then(|_| repo::output_of(install)) {
        return StageResult::of(Err(why));
    }
    let mut tests = Command::new(&inside);
    tests.args(["-B", "-m", "unittest", "discover", "tests"]).current_dir(repo::root().join("python"));
    tests.env_remove("FIORD_BINARY").env_remove("PYTHONPATH");
    unittest("python/tests", tests)
}

/// The types of the module, by mypy.
fn types(place: &Path) -> StageResult {
    let program = repo::target_dir().join(MYPY).join("bin/mypy");
    if !program.exists() {
        return StageResult::Skipped(
            "types of the Python module: needs mypy: cargo x ci --install install".to_string(),
        );
    }
    let mut mypy = Command::new(&program);
    mypy.current_dir(repo::root().join("python")).arg("--cache-dir").arg(place.join("types"));
    counted("mypy", StageResult::of(repo::output_of(mypy).map(drop)))
}

/// Runs tests of Python's `unittest`, and counts them.
fn unittest(name: &str, mut tests: Command) -> StageResult {
    let shown = format!("{tests:?}");
    let (status, said) = match tests.output() {
        Ok(out) => (out.status, String::from_utf8_lossy(&out.stderr).into_owned()),
        Err(error) => return StageResult::of(Err(format!("{shown}: {}", error_text(&error)))),
    };
    let counts = counts(&said);
    match counts {
        Some(counts) if status.success() => {
            StageResult::Passed(Tally { counts, reasons: reasons(name, counts), ..Tally::default() })
        }
        _ => {
            println!("{said}");
            let failures = said.lines().map(String::from).collect();
            let tally = Tally { counts: counts.unwrap_or_default(), failures, ..Tally::default() };
            StageResult::Failed(tally, format!("{shown}: {status}"))
        }
    }
}

/// What stands for the tests that skipped themselves.
fn reasons(name: &str, counts: Counts) -> Vec<String> {
    match counts.skipped {
        0 => Vec::new(),
        skipped => vec![format!("{name}: {skipped} for a program that is not installed")],
    }
}

/// The counts at the end of what `unittest` says: `Ran 9 tests in 1.0s`, `OK (skipped=1)`, `FAILED (failures=1, errors=2)`.
fn counts(said: &str) -> Option<Counts> {
    let ran = said.lines().rev().find_map(|line| line.strip_prefix("Ran "))?;
    let ran: u64 = ran.split(' ').next()?.parse().ok()?;
    let last = said.lines().rev().find(|line| line.starts_with("OK") || line.starts_with("FAILED"))?;
    let of = |key: &str| {
        let words = last.split(['(', ')', ',', ' ']);
        let value = words.filter_map(|word| word.split_once('=')).find(|(name, _)| *name == key);
        value.and_then(|(_, value)| value.parse().ok()).unwrap_or(0_u64)
    };
    let (failed, skipped) = (of("failures") + of("errors"), of("skipped"));
    Some(Counts { passed: ran.saturating_sub(failed + skipped), failed, skipped })
}

/// A check without tests of its own counts as one.
fn counted(name: &str, result: StageResult) -> StageResult {
    match result {
        StageResult::Passed(mut tally) => {
            println!("{name}: passed");
            tally.counts.passed += 1;
            StageResult::Passed(tally)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unittest_says_is_counted() {
        let said = |end: &str| counts(&format!("...\n---\nRan 9 tests in 1.234s\n\n{end}\n"));
        let counts = |passed, failed, skipped| Some(Counts { passed, failed, skipped });
        assert_eq!(said("OK"), counts(9, 0, 0));
        assert_eq!(said("OK (skipped=2)"), counts(7, 0, 2));
        assert_eq!(said("FAILED (failures=1, errors=2, skipped=1)"), counts(5, 3, 1));
        assert_eq!(super::counts("Traceback"), None);
    }
}
