//! How a test reports that it cannot run on this machine, and how `cargo x ci` reads these reports.
//!
//! Invariant: a skip is a record in the file that `FIORD_SKIPS` names; printed text is never parsed.
//!
//! Only tests and chores link this crate.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::Location;
use std::path::Path;

/// The variable that names the file skips are recorded in.
pub const RECORD: &str = "FIORD_SKIPS";

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

/// Records that the running test, or a part of it, cannot run here, and prints why for anyone who runs it by hand.
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
    #[allow(clippy::print_stdout, reason = "shows why a test run by hand did nothing")]
    {
        println!("skipped: {why}");
    }
    record(&test, why);
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

#[cfg(test)]
mod tests {
    use super::*;

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
