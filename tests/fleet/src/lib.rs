//! Hosts that are processes of this machine, and what is left of them.
//!
//! Invariant: each case has programs and a state directory of its own, by whose path its processes are told from all
//! others; it waits for what it needs and never for a time.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use fiord_servers::{Directory, eventually};
use serde_json::Value;

/// A directory with a program `fiord` and a list of hosts whose agents are that program.
#[derive(Debug)]
pub struct Fleet {
    /// The directory.
    pub directory: Directory,
}

impl Fleet {
    /// These hosts, reached by running the agent.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn new(hosts: &[&str]) -> Result<Fleet, String> {
        let directory = Directory::new()?;
        let fiord = std::env::var_os("FIORD").ok_or("FIORD names no binary")?;
        let own = directory.join("fiord");
        std::os::unix::fs::symlink(fiord, &own).map_err(|error| error.to_string())?;
        let sections = hosts.iter().map(|host| format!("[{host}]\nagent={}\n", own.display()));
        directory.write("hosts", &sections.collect::<String>())?;
        Ok(Fleet { directory })
    }

    /// fiord with these arguments (words), and a report in JSON.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(self.fiord());
        command.args(["--no-history", "--output-format=json"]).args(words.split_whitespace());
        command.arg(format!("--hosts={}", self.directory.join("hosts").display()));
        self.placed(&mut command);
        command
    }

    /// The program.
    pub fn fiord(&self) -> PathBuf {
        self.directory.join("fiord")
    }

    /// Runs a command in the directory, with its state there.
    pub fn placed(&self, command: &mut Command) {
        command.current_dir(self.directory.path()).env("XDG_STATE_HOME", self.directory.join("state"));
        command.env("XDG_CACHE_HOME", self.directory.join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, words: &str) -> Result<Output, String> {
        self.command(words).output().map_err(|error| error.to_string())
    }

    /// fiord with this command line alone.
    pub fn local(&self, words: &str) -> Command {
        let mut command = Command::new(self.fiord());
        command.args(words.split_whitespace());
        self.placed(&mut command);
        command
    }

    /// Starts it, and waits until so many agents run jobs.
    ///
    /// # Errors
    /// If it cannot be started, or they do not begin.
    pub fn start(&self, words: &str, agents: usize) -> Result<Child, String> {
        let child = self.command(words).spawn().map_err(|error| error.to_string())?;
        if self.are_at_work(agents) { Ok(child) } else { Err("the agents do not begin".to_string()) }
    }

    /// Whether so many agents begin to run jobs.
    pub fn are_at_work(&self, agents: usize) -> bool {
        eventually(|| self.agents().iter().filter(|id| runs_a_job(**id)).count() == agents)
    }

    /// The agents of this directory that run.
    pub fn agents(&self) -> Vec<u32> {
        let own = self.fiord().into_os_string().into_encoded_bytes();
        let is_agent = |id: &u32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next() == Some(&own) && words.next() == Some(b"agent")
        };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(is_agent).collect()
    }

    /// Whether all agents end.
    pub fn all_leave(&self) -> bool {
        eventually(|| self.agents().is_empty())
    }

    /// How many reports lost controllers have left.
    pub fn spooled(&self) -> usize {
        std::fs::read_dir(self.directory.join("state/fiord/spool")).map_or(0, Iterator::count)
    }
}

/// Whether a thread named `job` of a process has used processor time: one that waits for its start has used none.
pub fn runs_a_job(id: u32) -> bool {
    const TICKS_MIN: u64 = 3;
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let has_worked = |task: std::fs::DirEntry| {
        let line = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The user time is the 14th field; the name is the second, in brackets.
        let ticks = || line.rsplit_once(") ")?.1.split(' ').nth(11)?.parse().ok();
        line.contains(" (job) ") && ticks().is_some_and(|ticks: u64| ticks >= TICKS_MIN)
    };
    tasks.into_iter().any(has_worked)
}

/// Sends a signal to a process.
pub fn kill(signal: &str, id: u32) {
    let _ = Command::new("kill").args([signal, &id.to_string()]).status();
}

/// The report of a command that has ended.
///
/// # Errors
/// Both streams, if there is none.
pub fn report(output: &Output) -> Result<Value, String> {
    let errors = || format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", errors()))
}

/// Writes a program of this text.
///
/// # Panics
/// If it cannot be written.
pub fn executable(directory: &Directory, name: &str, text: &str) {
    let path = directory.write(name, text).expect("a file of the test");
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a file of the test");
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fate of each host.
pub fn fates(report: &Value) -> Vec<String> {
    let hosts = report["fleet"]["hosts"].as_array().cloned().unwrap_or_default();
    hosts.iter().map(|host| host["fate"].as_str().unwrap_or("none").to_string()).collect()
}

/// The sum over all hosts of their jobs' reads, and that of all clients as one.
pub fn reads(report: &Value) -> [u64; 2] {
    let entries = report["client_stats"].as_array().cloned().unwrap_or_default();
    let of = |all: bool| {
        let wanted = entries.iter().filter(|entry| (entry["jobname"] == "All clients") == all);
        wanted.filter_map(|entry| entry["read"]["total_ios"].as_u64()).sum()
    };
    [of(false), of(true)]
}
