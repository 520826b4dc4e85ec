//! Processes that run, and what each of their threads waits for.
//!
//! Invariant: what has ended meanwhile is left out; nothing here fails.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A process.
#[derive(Debug)]
pub struct Process {
    number: u32,
    parent: u32,
    /// A line for each thread.
    threads: Vec<String>,
    arguments: String,
}

impl Process {
    fn of(number: u32) -> Option<Process> {
        let directory = PathBuf::from(format!("/proc/{number}"));
        let parent = field(&directory.join("status"), "PPid:")?.parse().ok()?;
        let arguments = fs::read(directory.join("cmdline")).ok()?;
        let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
        let threads = numbers_in(&directory.join("task"));
        let threads = threads.filter_map(|thread| thread_line(&directory.join(format!("task/{thread}"))));
        Some(Process { number, parent, threads: threads.collect(), arguments })
    }
}

impl Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: String = self.arguments.chars().take(160).collect();
        write!(f, "{} {}: {}", self.number, arguments.trim_end(), self.threads.join(", "))
    }
}

/// A process, its children, their children and so on.
pub fn descendants(root: u32) -> Vec<Process> {
    let mut all: Vec<Process> = numbers_in(Path::new("/proc")).filter_map(Process::of).collect();
    let mut found: Vec<Process> = all.extract_if(.., |process| process.number == root).collect();
    let mut parents = 0;
    while let Some(parent) = found.get(parents).map(|process| process.number) {
        found.extend(all.extract_if(.., |process| process.parent == parent));
        parents += 1;
    }
    found
}

/// Kills them.
pub fn kill(processes: &[Process]) {
    let numbers = processes.iter().map(|process| process.number.to_string());
    let _ = Command::new("kill").arg("-KILL").args(numbers).status();
}

fn numbers_in(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter()
}

/// `name state function`: what a thread does in the kernel; the function is `0` if it waits for nothing there.
fn thread_line(directory: &Path) -> Option<String> {
    let status = directory.join("status");
    let state = field(&status, "State:")?;
    let waits_in = fs::read_to_string(directory.join("wchan")).unwrap_or_default();
    Some(format!("{} {} {waits_in}", field(&status, "Name:")?, state.chars().next()?))
}

/// The value of a line in a file of `/proc`.
fn field(file: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_started_is_found_and_killed() {
        let mut shell = Command::new("sh").args(["-c", "sleep 1000 & sleep 1001"]).spawn().unwrap();
        let both = || {
            let found = descendants(shell.id());
            (found.len() == 3).then_some(found)
        };
        let since = std::time::Instant::now();
        let found = loop {
            if let Some(found) = both() {
                break found;
            }
            assert!(since.elapsed().as_secs() < 60, "the shell starts two programs");
        };
        let shown: Vec<String> = found.iter().map(Process::to_string).collect();
        assert!(shown[0].contains("sh -c sleep 1000 &"), "{shown:?}");
        assert!(shown.iter().any(|line| line.contains("sleep 1001: sleep S")), "{shown:?}");
        kill(&found);
        assert!(!shell.wait().unwrap().success());
    }
}
