//! `cargo x gpu`: the tests of the engine over libcufile that move data, on the GPU of this machine.
//!
//! Invariant: files are made in the directory that is named, and removed.

use fiord_sys::errno::error_text;

use crate::repo;
use crate::stage;

/// `cargo x gpu DIRECTORY`
pub fn run(args: &[String]) -> Result<(), String> {
    let [directory] = args else {
        return Err("usage: cargo x gpu DIRECTORY, on the disk whose data shall go to the GPU".to_string());
    };
    let directory =
        std::path::absolute(directory).map_err(|error| format!("{directory}: {}", error_text(&error)))?;
    let mut tests = repo::cargo(&["test", "-p", "fiord", "--test", "it", "gpu::"]);
    stage::command({
        tests.env("FIORD_GPU", directory);
        tests
    })
}
