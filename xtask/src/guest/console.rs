//! The file that receives what the emulator and its helpers print.
//!
//! Invariant: every boot of a command appends to one file, and errors name it.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use crate::repo;

/// The console of the machine.
#[derive(Debug)]
pub struct Console {
    path: PathBuf,
    file: File,
}

impl Console {
    /// An empty one.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create() -> Result<Console, String> {
        let path = repo::target_dir().join("guest-console.log");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.and_then(|file| file.set_len(0).map(|()| file));
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Console { path, file })
    }

    /// Both outputs of a command go to the console.
    ///
    /// # Errors
    /// If the file cannot be shared with it.
    pub fn receive(&self, command: &mut Command) -> Result<(), String> {
        let clone = || self.file.try_clone().map_err(|error| format!("{}: {error}", self.path.display()));
        command.stdout(clone()?).stderr(clone()?);
        Ok(())
    }

    /// An error, with the place of the console.
    pub fn named(&self, why: &str) -> String {
        format!("{why}; its console is in {}", self.path.display())
    }
}
