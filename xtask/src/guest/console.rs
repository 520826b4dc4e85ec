//! The file that receives what the emulator and its helpers print.
//!
//! Invariant: every boot of a command appends to one file, and errors name it. It is left only by a command that failed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use crate::repo;

/// How many of its last lines an error has.
const LINES_MAX: usize = 20;

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
        let path = repo::target_dir().join(format!("guest-console-{}.log", std::process::id()));
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

    /// The last lines, with the place of the file.
    pub fn end(&self) -> String {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
        format!("the end of its console, {}:\n  {}", self.path.display(), last.join("\n  "))
    }

    /// The assertion by which the emulator aborted, if it did, such as that of qemu's `iotlb_to_section`.
    pub fn assertion(&self) -> Option<String> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        let found = lines.find(|line| line.starts_with("qemu-system-") && line.contains(": Assertion `"));
        found.map(str::to_string)
    }

    /// Removes the file.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn an_emulator_that_aborts_is_told_from_a_guest_that_ends() {
        let mut console = Console::create().unwrap();
        console.file.write_all(b"[    1.5] pci 0000:00:01.0: BAR 0 [io  0xc000-0xc03f]\n").unwrap();
        assert_eq!(console.assertion(), None);
        let line =
            "qemu-system-x86_64: system/physmem.c:2678: iotlb_to_section: Assertion `index < max' failed.";
        console.file.write_all(line.as_bytes()).unwrap();
        assert_eq!(console.assertion().as_deref(), Some(line));
        console.remove();
    }
}
