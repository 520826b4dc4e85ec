//! What the guest's kernel traces while a program runs: the entries of rings, and the commands that a driver sends.
//!
//! Invariant: each trace has buffers of its own, which go with its value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TRACEFS: &str = "/sys/kernel/tracing";

/// A trace that is being recorded.
#[derive(Debug)]
pub struct KernelTrace {
    dir: PathBuf,
}

impl KernelTrace {
    /// Traces these events, each `SYSTEM/EVENT`, or `SYSTEM/EVENT|OLDER` if earlier kernels call it otherwise.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn start(events: &[&str]) -> Result<KernelTrace, String> {
        let instances = Path::new(TRACEFS).join("instances");
        if !instances.exists() {
            let _ = Command::new("mount").args(["-t", "tracefs", "none", TRACEFS]).status();
        }
        let dir = instances.join(format!("fiord-guest-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let trace = KernelTrace { dir };
        trace.set("buffer_size_kb", "4096")?;
        for event in events {
            let (event, older) = event.split_once('|').unwrap_or((event, event));
            let (system, _) = event.split_once('/').unwrap_or_default();
            let file = format!("events/{event}/enable");
            let exists = trace.dir.join(&file).exists();
            trace.set(&if exists { file } else { format!("events/{system}/{older}/enable") }, "1")?;
        }
        Ok(trace)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.dir.join(file);
        fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Ends the recording; what was traced, one line for each event.
    ///
    /// # Errors
    /// If the kernel's buffer cannot be read.
    pub fn end(self) -> Result<Vec<String>, String> {
        self.set("tracing_on", "0")?;
        let path = self.dir.join("trace");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect())
    }
}

impl Drop for KernelTrace {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}
