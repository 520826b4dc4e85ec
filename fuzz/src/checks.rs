//! Targets for files in TOML: check files, and the config file.
//!
//! Invariant: every input is either accepted or refused with errors that have a place within it; a check has a limit.

use std::ffi::OsStr;

use fiord_lab::check::read;
use fiord_options::{Origin, Problem, config};

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
        Err(problems) => assert_placed(&text, problems),
    }
}

/// A config file. No list of hosts in it can be read as one that says how hosts are reached.
pub fn config_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match config::read(OsStr::new("c.toml"), &text) {
        Ok(config) => {
            for host in config.hosts.values().flatten() {
                assert!(!host.starts_with('[') && !host.contains(['/', '\n']), "{host:?}");
            }
        }
        Err(problems) => assert_placed(&text, problems),
    }
}

fn assert_placed(text: &str, problems: Vec<Problem>) {
    assert!(!problems.is_empty(), "a refusal says why");
    let lines = text.split('\n').count();
    for problem in problems {
        let is_of_file = matches!(&problem.place.source, Origin::File(name) if **name == *"c.toml");
        assert!(!is_of_file || problem.place.line as usize <= lines, "{problem}");
    }
}
