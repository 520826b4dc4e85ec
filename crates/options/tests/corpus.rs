//! Job files and command lines that people really use: fiord must give each the verdict fio gives it.
//!
//! Invariant: where fio accepts and fiord refuses, every reason fiord gives names something it has not built yet.
//! The files are not part of the project; the tests say so and pass where they, or fio, are absent.

#![allow(
    clippy::print_stdout,
    reason = "figures, and what was skipped, are printed for whoever runs the tests"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fiord_engine::registry::NAMES;
use fiord_options::cli::{self, Parsed};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::job::Queue;
use fiord_options::{Problem, ProblemKind, ProblemLevel, showcmd};
use fiord_testing::need;

/// Options fio 3.42 has and the fio at hand (3.33) has not.
const NEWER_THAN_THE_ORACLE: [&str; 1] = ["steadystate_check_interval"];

/// Names the oracle (3.33) prints, and what fio 3.42 calls these options.
const RENAMED: [(&str, &str); 2] =
    [("--allrandrepeat=", "--randrepeat="), ("--log_max_value=", "--log_window_value=")];

/// The directory of the corpus; the error says that there is none.
fn corpus() -> Result<PathBuf, &'static str> {
    let beside_workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = std::env::var_os("FIORD_CORPUS").map_or(beside_workspace, PathBuf::from);
    if folder.join("jobfiles.tsv").is_file() { Ok(folder) } else { Err("no corpus") }
}

/// Whether the oracle is installed.
fn oracle() -> Result<(), &'static str> {
    let found = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if found { Ok(()) } else { Err("no fio") }
}

/// One line of `jobfiles.tsv`.
struct JobFile {
    name: String,
    accepted_by_fio: bool,
    message_of_fio: String,
    variables: HashMap<String, String>,
}

fn job_files(folder: &Path) -> Vec<JobFile> {
    let table = std::fs::read_to_string(folder.join("jobfiles.tsv")).expect("the corpus has its table");
    let rows = table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<&str>>());
    rows.filter(|row| !row[0].starts_with('('))
        .map(|row| JobFile {
            name: format!("{}.fio", row[0]),
            accepted_by_fio: row[1] == "ok",
            message_of_fio: row.get(2).unwrap_or(&"").to_string(),
            variables: row
                .get(3)
                .unwrap_or(&"")
                .split(' ')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        })
        .collect()
}

/// What fiord makes of a command line; `Err` holds the errors.
fn verdict(args: &[String], environment: &Environment<'_>) -> Result<Parsed, Vec<Problem>> {
    let errors = |problems: Vec<Problem>| {
        problems.into_iter().filter(|problem| problem.level == ProblemLevel::Error).collect::<Vec<Problem>>()
    };
    let parsed = cli::read(args, environment).map_err(errors)?;
    let problems = errors(cli::check(&parsed, environment.engines));
    if problems.is_empty() { Ok(parsed) } else { Err(problems) }
}

/// The machine the tests run on, as fio sees it: some files multiply memory by numbers.
fn keywords() -> KeywordValues {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().split(' ').next()?.parse().ok());
    KeywordValues { cpus, memory_mib: kib.unwrap_or(0u64) / 1024, page_bytes: 4096 }
}

/// Whether fiord lacks what the problem is about. An engine it does not know may be an external one, and fio finds out
/// only when a job starts.
fn not_built(problem: &Problem) -> bool {
    problem.kind == ProblemKind::NotBuilt || problem.option == Some(Queue::ioengine)
}

/// How fiord's verdicts compare with fio's.
#[derive(Default)]
struct Tally {
    both_accept: usize,
    both_refuse: usize,
    not_built: usize,
    disagreements: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: &str, fio: Result<(), &str>, fiord: Result<(), &[Problem]>) {
        let texts =
            |problems: &[Problem]| problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n");
        match (fio, fiord) {
            (Ok(()), Ok(())) => self.both_accept += 1,
            (Err(_), Err(_)) => self.both_refuse += 1,
            (Ok(()), Err(problems)) if problems.iter().all(not_built) => {
                self.not_built += 1;
                println!("{what}: fio accepts; {}", texts(problems));
            }
            (Ok(()), Err(problems)) => {
                self.disagreements.push(format!("{what}: fio accepts\n{}", texts(problems)));
            }
            (Err(why), Ok(())) if NEWER_THAN_THE_ORACLE.iter().any(|option| why.contains(option)) => {
                self.both_accept += 1;
            }
            (Err(why), Ok(())) => self.disagreements.push(format!("{what}: fiord accepts; fio says {why}")),
        }
    }

    /// Prints the figures and fails on any disagreement.
    fn finish(self, what: &str) {
        println!(
            "{what}: {} accepted by both, {} refused by both, {} refused by fiord as not built yet, {} disagreements",
            self.both_accept,
            self.both_refuse,
            self.not_built,
            self.disagreements.len()
        );
        assert!(self.disagreements.is_empty(), "{}", self.disagreements.join("\n\n"));
    }
}

#[test]
fn every_job_file_gets_fios_verdict() {
    let folder = need!(corpus());
    let mut tally = Tally::default();
    for file in job_files(&folder) {
        let read = |name: &OsStr| std::fs::read(folder.join("jobfiles").join(name));
        let variable = |name: &OsStr| Some(file.variables.get(name.to_str()?)?.into());
        let environment =
            Environment { files: &read, variables: &variable, keywords: keywords(), engines: NAMES };
        let ours = verdict(std::slice::from_ref(&file.name), &environment);
        let fio = if file.accepted_by_fio { Ok(()) } else { Err(file.message_of_fio.as_str()) };
        tally.count(&file.name, fio, ours.as_ref().map(|_| ()).map_err(Vec::as_slice));
    }
    tally.finish("job files");
}

#[test]
fn every_job_file_is_shown_as_fio_shows_it() {
    let folder = need!(corpus());
    need!(oracle());
    let folder = folder.join("jobfiles");
    let (mut equal, mut different) = (0, Vec::new());
    for file in job_files(&folder.join("..")).into_iter().filter(|file| file.accepted_by_fio) {
        let read = |name: &OsStr| std::fs::read(folder.join(name));
        let variable = |name: &OsStr| Some(file.variables.get(name.to_str()?)?.into());
        let environment =
            Environment { files: &read, variables: &variable, keywords: keywords(), engines: NAMES };
        let ours = match cli::read(std::slice::from_ref(&file.name), &environment) {
            Ok(parsed) => String::from_utf8_lossy(&showcmd::print(&parsed)).into_owned(),
            Err(problems) => format!("{problems:?}"),
        };
        let mut fio = Command::new("fio");
        fio.args(["--parse-only", "--showcmd", &file.name]).current_dir(&folder).envs(&file.variables);
        let output = fio.stdin(Stdio::null()).output().expect("fio runs");
        let mut theirs = String::from_utf8_lossy(&output.stdout).into_owned();
        for (old, new) in RENAMED {
            theirs = theirs.replace(old, new);
        }
        if theirs == ours {
            equal += 1;
        } else {
            different.push(format!("{}\n  fio:   {theirs}  fiord: {ours}", file.name));
        }
    }
    println!("showcmd: {equal} equal, {} different", different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Splits a command as a shell would: blanks, quotes and backslashes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// The arguments with every job file replaced by `job` and the report's file by one beside it, so that both
/// programs judge the options and not what this machine has.
fn with_stubs(args: Vec<String>, job: &Path) -> Vec<String> {
    let asked = RefCell::new(Vec::new());
    let read = |name: &OsStr| -> io::Result<Vec<u8>> {
        asked.borrow_mut().extend(name.to_str().map(str::to_string));
        Ok(b"[job]\n".to_vec())
    };
    let environment =
        Environment { files: &read, variables: &|_| None, keywords: keywords(), engines: NAMES };
    let _ = cli::read(&args, &environment);
    let asked = asked.into_inner();
    let mut previous = String::new();
    args.into_iter()
        .map(|arg| {
            let after = std::mem::replace(&mut previous, arg.clone());
            match arg.trim_start_matches('-').split_once('=') {
                Some(("output", _)) => "--output=/dev/null".to_string(),
                _ if after == "--output" => "/dev/null".to_string(),
                _ if asked.contains(&arg) => job.to_string_lossy().into_owned(),
                _ => arg,
            }
        })
        .collect()
}

#[test]
fn every_command_line_gets_fios_verdict() {
    let folder = need!(corpus());
    need!(oracle());
    let empty = std::env::temp_dir().join(format!("fiord-commands-{}", std::process::id()));
    std::fs::create_dir_all(&empty).expect("the temporary directory can be written");
    let job = empty.join("job.fio");
    std::fs::write(&job, "[job]\n").expect("the temporary directory can be written");
    let mut tally = Tally::default();
    for command in
        std::fs::read_to_string(folder.join("commands.txt")).expect("the corpus has commands").lines()
    {
        let args = with_stubs(words(command).split_off(1), &job);
        let environment = Environment {
            files: &|name| std::fs::read(name),
            variables: &|_| None,
            keywords: keywords(),
            engines: NAMES,
        };
        let ours = verdict(&args, &environment);
        // These would look for other hosts. fiord refuses them by name.
        let on_the_network = ["client", "server", "daemonize"];
        let fio =
            if args.iter().any(|arg| on_the_network.iter().any(|option| arg.contains(&format!("-{option}"))))
            {
                Ok(())
            } else {
                let mut fio = Command::new("fio");
                let output =
                    fio.arg("--parse-only").args(&args).current_dir(&empty).stdin(Stdio::null()).output();
                let output = output.expect("fio runs");
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                if output.status.success() { Ok(()) } else { Err(message) }
            };
        let fio = fio.as_ref().map(|_| ()).map_err(String::as_str);
        tally.count(command, fio, ours.as_ref().map(|_| ()).map_err(Vec::as_slice));
    }
    std::fs::remove_dir_all(&empty).expect("the temporary directory can be removed");
    tally.finish("command lines");
}
