//! Target for check files.
//!
//! Invariant: every input is either accepted, with at least one limit, or refused with errors that have a place within it.

use std::ffi::OsStr;

use fiord_lab::check::read;
use fiord_options::Origin;

/// A check file.
pub fn check_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match read(OsStr::new("c.toml"), "c", &text) {
        Ok(check) => {
            assert!(check.seconds() > 0, "a check measures something");
            assert!(check.explained().contains("PASS"), "a check says what it requires");
            let again = read(OsStr::new("c.toml"), "c", &check.text);
            assert!(again.is_ok(), "what is shown can be read");
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal says why");
            let lines = text.split('\n').count();
            for problem in problems {
                let is_of_file = matches!(&problem.place.source, Origin::File(name) if **name == *"c.toml");
                assert!(!is_of_file || problem.place.line as usize <= lines, "{problem}");
            }
        }
    }
}
