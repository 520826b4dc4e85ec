//! Mutations of the pure crates that no test detects, found by cargo-mutants, a share per run.
//!
//! Invariant: a surviving mutation of changed code is listed in tests/mutants.txt or fails the stage; so does a listed
//! one that is caught or no longer exists. Survivors in the share of the remaining code are printed, for a test or for
//! the list, but do not fail an unrelated change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::repo;
use crate::stage::{Share, StageResult};
use crate::tally::{Counts, Tally};

const PACKAGES: [&str; 4] = ["options", "plan", "stats", "workload"];
const SURVIVORS: &str = "tests/mutants.txt";

/// Trying all mutations takes hours; each run of the stage tries one share, chosen by the commit.
const SHARES: u64 = 100;
const TIME_MAX: Duration = Duration::from_secs(100);

/// The time for all of them.
const TIME_OF_ALL: Duration = Duration::from_secs(24 * 3600);

/// The results of the mutations tried, by their names.
#[derive(Debug, Default)]
struct Tried {
    caught: BTreeMap<String, usize>,
    survived: BTreeSet<String>,
    /// Those of `survived` in changed code.
    survived_in_change: BTreeSet<String>,
}

/// Tries mutations of code changed since the last commit, then the share of this one, within `TIME_MAX`.
pub fn stage(share: Share) -> StageResult {
    if !Command::new("cargo-mutants")
        .args(["mutants", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return StageResult::Skipped("no cargo-mutants; `cargo x ci --install` installs it".to_string());
    }
    match run(share) {
        Ok((tried, _)) if tried.caught.is_empty() && tried.survived.is_empty() => {
            StageResult::Skipped(format!("no mutation was tried within {} s", TIME_MAX.as_secs()))
        }
        Ok((tried, findings)) => {
            let passed = tried.caught.values().sum::<usize>() as u64;
            let counts = Counts { passed, failed: findings.len() as u64, skipped: 0 };
            println!("{passed} caught, {} survived", tried.survived.len());
            let tally = Tally { counts, ..Tally::default() };
            if findings.is_empty() {
                StageResult::Passed(tally)
            } else {
                StageResult::Failed(tally, findings.join("\n"))
            }
        }
        Err(why) => StageResult::of(Err(why)),
    }
}

fn run(share: Share) -> Result<(Tried, Vec<String>), String> {
    let place = repo::target_dir().join("mutants");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let end = match share {
        Share::OfCommit => Instant::now() + TIME_MAX,
        Share::All => Instant::now() + TIME_OF_ALL,
    };
    let listed = repo::output_of(command(&place, &["--list", "--line-col=false"]))?;
    let known = repo::read(SURVIVORS).unwrap_or_default();

    let mut tried = Tried::default();
    if let Some(diff) = changes(&place)? {
        tried.add(&place, &["--in-diff", &diff], end)?;
        tried.survived_in_change = tried.survived.clone();
    }
    match share {
        Share::OfCommit => {
            let share = format!("{}/{SHARES}", repo::commit_number()? % SHARES);
            tried.add(&place, &["--shard", &share, "--sharding", "round-robin"], end)?;
        }
        Share::All => tried.add(&place, &[], end)?,
    }
    tried.unlisted(&known).for_each(|name| println!("no test detects: {name}"));
    let findings = tried.findings(&listed, &known);
    Ok((tried, findings))
}

/// cargo-mutants on the packages, with its output under `place`. Most of its time is compiling, so that nothing is
/// optimised; and the code without a mutation is not tested again, because the stage `test` has done that.
fn command(place: &Path, args: &[&str]) -> Command {
    let mut command = repo::cargo(&["mutants"]);
    command
        .args(PACKAGES.iter().flat_map(|name| ["-p".to_string(), format!("fiord-{name}")]))
        .args(["--colors", "never", "--baseline", "skip", "--timeout", "60", "--output"])
        .arg(place)
        .args(args)
        .envs(["CARGO_PROFILE_DEV_OPT_LEVEL", "CARGO_PROFILE_TEST_OPT_LEVEL"].map(|name| (name, "0")))
        .envs(["CARGO_PROFILE_DEV_DEBUG", "CARGO_PROFILE_TEST_DEBUG"].map(|name| (name, "0")))
        .env("CARGO_TARGET_DIR", place.join("target"))
        .env("TMPDIR", place);
    command
}

/// A file with the changes of the packages since the previous commit; `None` without changes.
fn changes(place: &Path) -> Result<Option<String>, String> {
    let mut git = repo::command("git", &["diff", "HEAD^", "--"]);
    git.args(PACKAGES.map(|name| format!("crates/{name}/src")));
    // A repository with one commit has no changes.
    let diff = repo::output_of(git).unwrap_or_default();
    let path = place.join("changes.diff");
    fs::write(&path, &diff).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((!diff.is_empty()).then(|| path.to_string_lossy().into_owned()))
}

/// Runs a command, and interrupts it at `end`; its output until then counts.
fn within(mut command: Command, end: Instant) -> Result<(), String> {
    if Instant::now() >= end {
        return Ok(());
    }
    let shown = format!("{command:?}");
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let mut child: Child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            // 2: mutations survived; 3: some timed out, which counts as caught.
            return match status.code() {
                Some(0 | 2 | 3) => Ok(()),
                _ => Err(format!("{shown}: {status}")),
            };
        }
        if Instant::now() >= end {
            let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            interrupted.map_err(failed)?;
            child.wait().map_err(failed)?;
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Tried {
    /// Tries the mutations that these arguments choose, until `end`, and adds the results. Where there are none to try,
    /// cargo-mutants leaves the results of an earlier call as they are.
    fn add(&mut self, place: &Path, args: &[&str], end: Instant) -> Result<(), String> {
        let results = place.join("mutants.out");
        match fs::remove_dir_all(&results) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", results.display()));
            }
            _ => {}
        }
        within(command(place, args), end)?;
        self.read(place)
    }

    /// Adds the results that cargo-mutants wrote.
    fn read(&mut self, place: &Path) -> Result<(), String> {
        let outcomes = |name: &str| -> Result<Vec<String>, String> {
            let path: PathBuf = place.join("mutants.out").join(name);
            match fs::read_to_string(&path) {
                Ok(text) => Ok(text.lines().map(without_place).collect()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(format!("{}: {error}", path.display())),
            }
        };
        for name in outcomes("caught.txt")?.into_iter().chain(outcomes("timeout.txt")?) {
            *self.caught.entry(name).or_default() += 1;
        }
        self.survived.extend(outcomes("missed.txt")?);
        Ok(())
    }

    /// Survivors that are not listed.
    fn unlisted(&self, known: &str) -> impl Iterator<Item = &String> {
        let known = names(known);
        self.survived.iter().filter(move |name| !known.contains(name.as_str()))
    }

    /// Differences from the list of survivors. `listed` are all existing mutations.
    fn findings(&self, listed: &str, known: &str) -> Vec<String> {
        let unlisted = self.unlisted(known).filter(|name| self.survived_in_change.contains(*name));
        let new = unlisted.map(|name| format!("no test detects: {name}"));
        let known = names(known);
        let mut total: BTreeMap<&str, usize> = BTreeMap::new();
        for name in listed.lines() {
            *total.entry(name).or_default() += 1;
        }
        let gone = known.iter().filter(|name| !total.contains_key(*name));
        let gone = gone.map(|name| format!("{SURVIVORS}: no such mutation any more: {name}"));
        let is_caught = |name: &&&str| {
            let caught = self.caught.get(**name).copied().unwrap_or(0);
            caught > 0 && !self.survived.contains(**name) && total.get(**name) == Some(&caught)
        };
        let caught = known.iter().filter(is_caught);
        let caught = caught.map(|name| format!("{SURVIVORS}: now detected by tests: {name}"));
        new.chain(gone).chain(caught).collect()
    }
}

/// The mutations that the list of survivors names.
fn names(list: &str) -> BTreeSet<&str> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// A mutation's name without line and column, which change with everything above it.
fn without_place(line: &str) -> String {
    let Some((place, what)) = line.split_once(": ") else { return line.to_string() };
    let file = place.trim_end_matches(|char: char| char.is_ascii_digit() || char == ':');
    format!("{file}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_interrupted() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap 'exit 130' INT; while :; do sleep 0.01; done"]);
        let end = Instant::now() + Duration::from_millis(200);
        assert_eq!(within(command, end), Ok(()));
        assert!(Instant::now() >= end);
    }

    fn tried(caught: &[&str], survived: &[&str]) -> Tried {
        let mut tried = Tried::default();
        for name in caught {
            *tried.caught.entry(name.to_string()).or_default() += 1;
        }
        tried.survived.extend(survived.iter().map(|name| name.to_string()));
        tried
    }

    #[test]
    fn a_mutation_is_identified_by_its_file_and_change() {
        let line = "crates/stats/src/a.rs:46:57: replace > with == in A::distance";
        assert_eq!(without_place(line), "crates/stats/src/a.rs: replace > with == in A::distance");
    }

    #[test]
    fn a_survivor_in_changed_code_is_listed_or_reported() {
        let listed = "a.rs: x\na.rs: y\na.rs: y\n";
        let mut tried = tried(&["a.rs: x"], &["a.rs: y"]);
        assert_eq!(tried.unlisted("").collect::<Vec<_>>(), ["a.rs: y"]);
        assert_eq!(tried.findings(listed, ""), [""; 0], "unchanged code");
        tried.survived_in_change = tried.survived.clone();
        assert_eq!(tried.findings(listed, ""), ["no test detects: a.rs: y"]);
        assert_eq!(tried.findings(listed, "# why\na.rs: y\n"), [""; 0]);
    }

    #[test]
    fn the_list_only_shrinks() {
        let listed = "a.rs: x\na.rs: y\na.rs: y\n";
        let findings = |caught: &[&str], known| tried(caught, &[]).findings(listed, known).len();
        assert_eq!(findings(&["a.rs: x"], "a.rs: x"), 1, "caught");
        assert_eq!(findings(&["a.rs: y"], "a.rs: y"), 0, "one of two was tried");
        assert_eq!(findings(&["a.rs: y", "a.rs: y"], "a.rs: y"), 1, "both were");
        assert_eq!(findings(&[], "a.rs: z"), 1, "gone");
    }
}
