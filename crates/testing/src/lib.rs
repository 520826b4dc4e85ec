//! How a test reports that it cannot run on this machine, and how `cargo x ci` reads these reports; and how a test program
//! starts itself.
//!
//! Invariant: a skip is a record in the file that `FIORD_SKIPS` names; printed text is never parsed.
//!
//! Only tests and chores link this crate.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod agreement;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::Location;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The variable that names the file skips are recorded in.
pub const RECORD: &str = "FIORD_SKIPS";

/// The variable that names the emulator which runs the tests of another processor. The kernel starts no such program itself.
pub const EMULATOR: &str = "FIORD_EMULATOR";

/// The running test program, to be started once more.
///
/// # Panics
/// If the kernel does not say where it is.
pub fn this_program() -> Command {
    let program = std::env::current_exe().expect("the kernel says where a program is");
    let Some(emulator) = std::env::var_os(EMULATOR) else { return Command::new(program) };
    let mut command = Command::new(emulator);
    command.arg(program);
    command
}

/// Whether the machine has nothing else to do, which only those know who run a test alone on it: `FIORD_IDLE=1` says so.
///
/// # Errors
/// Nobody says so.
pub fn idle_machine() -> Result<(), String> {
    match std::env::var_os("FIORD_IDLE") {
        Some(_) => Ok(()),
        None => Err("other tests run at the same time; FIORD_IDLE=1 says that none do".to_string()),
    }
}

/// A test that did not run, or not as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// The test program.
    pub program: String,
    /// The test; if it has no thread of its own, the source location of the skip.
    pub test: String,
    /// The reason.
    pub why: String,
}

/// Records that the running test, or a part of it, cannot run here. Without a record it says so on standard error, past the
/// test harness, which shows nothing of a test that passes.
///
/// # Panics
/// If the record cannot be written: a skip must not count as a test that ran.
#[track_caller]
pub fn skipped(why: impl Display) {
    let thread = std::thread::current();
    // With only one thread, libtest runs every test on the main thread.
    let test = match thread.name() {
        Some(name) if name != "main" => name.to_string(),
        _ => Location::caller().to_string(),
    };
    match std::env::var_os(RECORD) {
        Some(_) => record(&test, why),
        None => show(&test, why),
    }
}

/// Says that a test was skipped, and how many of its program were so far.
fn show(test: &str, why: impl Display) {
    static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    skipped.insert(test.to_string());
    // `eprintln!` would be captured. Who closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "skipped ({}): {test}: {why}", skipped.len());
}

/// `skipped` for a test whose name is known and whose harness prints why.
///
/// # Panics
/// As `skipped`.
pub fn record(test: &str, why: impl Display) {
    let why = why.to_string();
    let Some(path) = std::env::var_os(RECORD) else { return };
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().unwrap_or_default().to_string_lossy();
    let skip = Skip { program: program.into_owned(), test: test.to_string(), why };
    let written = append(Path::new(&path), &skip);
    assert!(written.is_ok(), "{}: cannot record a skip: {written:?}", Path::new(&path).display());
}

/// One line of a record, written in one call, so that the lines of several programs do not mix.
fn append(path: &Path, skip: &Skip) -> io::Result<()> {
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = [&skip.program, &skip.test, &skip.why].map(|field| on_one_line(field)).join("\t") + "\n";
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

/// The recorded skips, one entry per test; a test that skipped several parts has all its reasons.
///
/// # Errors
/// If the record exists and cannot be read.
pub fn recorded(path: &Path) -> io::Result<Vec<Skip>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let mut by_test: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        if let (Some(program), Some(test), Some(why)) = (fields.next(), fields.next(), fields.next()) {
            by_test.entry((program, test)).or_default().push(why);
        }
    }
    let skips = by_test.into_iter().map(|((program, test), mut reasons)| {
        reasons.dedup();
        Skip { program: program.to_string(), test: test.to_string(), why: reasons.join("; ") }
    });
    Ok(skips.collect())
}

/// Records why the test cannot run here, as `println!` would print it, and returns from it.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {
        return $crate::skipped(::std::format_args!($($why)+))
    };
}

/// Takes what a test needs out of a `Result`; the error is why the test is skipped.
#[macro_export]
macro_rules! need {
    ($what:expr) => {
        match $what {
            Ok(got) => got,
            Err(why) => $crate::skip!("{why}"),
        }
    };
}

/// Runs a test of what threads share without a lock so often that Miri, which chooses at random what each thread sees, shows
/// the orders that a processor may show: by `cargo x ci address-sanitizer`. Such tests are in modules named `memory_order`.
pub fn in_many_orders(once: impl Fn()) {
    (0..24).for_each(|_| once());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test that `without_a_record_skips_are_shown_with_their_number` runs alone.
    #[test]
    fn skips_if_asked() {
        for reason in std::env::var("SKIP_FOR").iter().flat_map(|reasons| reasons.split(',')) {
            skipped(reason);
        }
    }

    #[test]
    fn without_a_record_skips_are_shown_with_their_number() {
        let mut command = this_program();
        command.args(["--exact", "tests::skips_if_asked", "--test-threads=2"]);
        let ran = command.env_remove(RECORD).env("SKIP_FOR", "needs root,no disk").output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let test = "tests::skips_if_asked";
        assert_eq!(
            String::from_utf8(ran.stderr).unwrap(),
            format!("skipped (1): {test}: needs root\nskipped (1): {test}: no disk\n")
        );
    }

    #[test]
    fn recorded_skips_are_read_back_once_per_test() {
        let path = std::env::temp_dir().join(format!("fiord-skips-{}", std::process::id()));
        let skip = |program: &str, test: &str, why: &str| Skip {
            program: program.to_string(),
            test: test.to_string(),
            why: why.to_string(),
        };
        for (test, why) in [("b", "no loop device:\n\tdenied"), ("a", "no io_uring"), ("b", "no root")] {
            append(&path, &skip("it-1", test, why)).unwrap();
        }
        append(&path, &skip("other-2", "a", "no io_uring")).unwrap();
        let read = recorded(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(
            read.unwrap(),
            [
                skip("it-1", "a", "no io_uring"),
                skip("it-1", "b", "no loop device: denied; no root"),
                skip("other-2", "a", "no io_uring"),
            ]
        );
        assert_eq!(recorded(&path).unwrap(), []);
    }
}
