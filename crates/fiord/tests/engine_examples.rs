//! The examples of docs/engines.md, each run as it stands there.
//!
//! Invariant: an example counts as run only if its last run was on its engine and did I/O; all others are skips.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fiord_engine::registry::{self, ENGINES};
use fiord_plan::{EngineDescriptor, Example, Need};
use fiord_testing::skipped;
use serde_json::Value;

use crate::common::Dir;

/// Longer than any example takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A directory with nothing but a link to the program beside it.
struct Place {
    work: Dir,
    own: Dir,
}

/// A shell and what it started; all are killed on drop.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -s KILL -- -{} 2>/dev/null", self.0.id())])
            .status();
        let _ = self.0.wait();
    }
}

impl Place {
    fn new() -> Place {
        let place = Place { work: Dir::new(), own: Dir::new() };
        symlink(env!("CARGO_BIN_EXE_fiord"), place.own.join("fiord")).unwrap();
        place
    }

    /// Runs these commands as a process group, until the shell ends; returns its status and what it printed.
    fn shell(&self, commands: &str) -> (Option<ExitStatus>, String) {
        let log = self.own.join("log");
        let output = File::create(&log).unwrap();
        let path = format!("{}:{}", self.own.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-euc", commands]).current_dir(self.work.path()).process_group(0);
        command.env("PATH", path).env("XDG_STATE_HOME", self.own.join("state")).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let mut group = Group(command.spawn().unwrap());
        let end = Instant::now() + TIMEOUT;
        let status = loop {
            match group.0.try_wait().unwrap() {
                None if Instant::now() < end => std::thread::park_timeout(Duration::from_millis(5)),
                status => break status,
            }
        };
        drop(group);
        (status, fs::read_to_string(log).unwrap())
    }

    /// What is missing here.
    fn missing(&self, needs: &'static [Need]) -> Option<&'static str> {
        let is_there = |need: &&Need| self.shell(need.check).0.is_some_and(|status| status.success());
        needs.iter().find(|need| !is_there(need)).map(|need| need.what)
    }
}

/// Runs the example of an engine in an empty directory.
fn check(engine: &EngineDescriptor) -> Result<(), String> {
    let (name, place) = (engine.name, Place::new());
    let example = engine.example.ok_or_else(|| format!("{name}: its descriptor has no example"))?;
    if let Some(what) = place.missing(example.needs) {
        skipped(format!("{name}: its example needs {what}"));
        return Ok(());
    }
    let (status, printed) = place.shell(example.commands);
    if !status.is_some_and(|status| status.success()) {
        return Err(format!("{name}: {status:?}\n{printed}"));
    }
    let (_, shown) = place.shell("fiord show last --json");
    let report: Value = serde_json::from_str(&shown).map_err(|error| format!("{name}: {error}: {shown}"))?;
    let option = |of: &Value| of["ioengine"] == name.word();
    let sides = ["read", "write", "trim"];
    let is_good = |job: &&Value| {
        let ios: u64 = sides.iter().filter_map(|side| job[side]["total_ios"].as_u64()).sum();
        (option(&job["job options"]) || option(&report["global options"])) && job["error"] == 0 && ios > 0
    };
    match report["jobs"].as_array().and_then(|jobs| jobs.iter().find(is_good)) {
        Some(_) => Ok(()),
        None => Err(format!("{name}: no job of the last run did I/O on it\n{printed}")),
    }
}

#[test]
fn the_example_of_each_engine_runs() {
    let works = registry::probe().unwrap();
    let mut failures = Vec::new();
    for engine in ENGINES.0 {
        match works.iter().find(|probed| probed.engine.name == engine.name).unwrap().works {
            Err(why) => skipped(format!("{}: {why}", engine.name)),
            Ok(()) => failures.extend(check(engine).err()),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn examples_are_on_the_page_and_fit_it() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/engines.md")).unwrap();
    for engine in ENGINES.0 {
        let Some(Example { commands, .. }) = engine.example else { continue };
        assert!(page.contains(&format!("```sh\n{commands}\n```")), "{}: cargo x gen", engine.name);
        assert!(commands.lines().all(|line| line.chars().count() <= 120), "{}: {commands}", engine.name);
    }
}
