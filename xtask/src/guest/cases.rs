//! The stage `guest` of `cargo x ci`: the cases in `tests/guest`, in emulated machines.
//!
//! Invariant: each case runs in one of the machines. A machine whose emulator hung or aborted is booted again for the cases
//! that it had not come to; one in which a case hangs is not. The few that failed are run again, alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::hardware;
use super::kernel::{self, Kernel};
use super::power_cut;
use crate::repo;
use crate::stage::StageResult;
use crate::test_run::{self, TestRun};

/// The cases of the stage on the oldest kernel: few, because a boot and these take a minute.
const OF_OLDEST: [&str; 4] = [
    "nvme::a_queued_write_and_its_reading_back_agree_with_the_kernel",
    "passthrough::counts_are_those_of_fio_on_short_and_long_blocks",
    "passthrough::the_block_device_holds_what_was_written_and_trimmed",
    "trims::trims_and_syncs_are_queued_in_the_ring",
];

/// How long the cases may print nothing. The longest takes a minute, and some times as long on a machine that does other
/// work.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// `SILENCE_MAX` for the process that runs the machine, in seconds.
const SILENCE_VARIABLE: &str = "FIORD_GUEST_SILENCE";

/// The exit status of `cargo x guest` for a machine whose emulator failed.
pub const EMULATOR_STATUS: i32 = 75;

/// How often machines are booted for the same cases if their emulator fails.
const BOOTS_MAX: u32 = 3;

/// How long this machine's command may print nothing, if it is one that runs cases.
pub fn silence() -> Option<Duration> {
    std::env::var(SILENCE_VARIABLE).ok()?.parse().ok().map(Duration::from_secs)
}

/// The cases on the newest kernel, in two machines, and those that depend most on the kernel's version on the oldest; two
/// machines at a time.
pub fn stage(fiord: &Path) -> StageResult {
    let found = program().and_then(|program| Ok((listed(&program)?, program)));
    let (names, program) = match found {
        Ok(found) => found,
        Err(why) => return StageResult::of(Err(why)),
    };
    let on = |kernel: &'static Kernel, names: &[&str]| {
        if let Err(why) = kernel::Tools::find(kernel).and_then(|_| hardware::portable()) {
            return StageResult::Skipped(why);
        }
        let run = |names: &[&str], one_thread: bool| {
            let command = command(kernel, one_thread, fiord, &program, &[&["--exact"], names].concat())?;
            Ok(test_run::run(command))
        };
        boot(names, 1, &run).unwrap_or_else(|why| StageResult::of(Err(why)))
    };
    let [with_power_cut, others] = halves(&names);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| on(Kernel::DEFAULT, &with_power_cut));
        let result = on(Kernel::DEFAULT, &others).and(on(Kernel::OLDEST, &OF_OLDEST));
        let beside = beside.join();
        result.and(
            beside.unwrap_or_else(|_| StageResult::of(Err("a machine's thread has panicked".to_string()))),
        )
    })
}

/// Runs these cases in a machine, and those that it had not come to when its emulator failed in another, which has one thread:
/// it is the races of its threads that make it fail. That is counted as skipped, so that it is seen.
fn boot(
    names: &[&str],
    number: u32,
    run: &impl Fn(&[&str], bool) -> Result<TestRun, String>,
) -> Result<StageResult, String> {
    let one_thread = number > 1;
    let machine = run(names, one_thread)?;
    if machine.code() != Some(EMULATOR_STATUS) || number == BOOTS_MAX {
        return Ok(test_run::or_alone(machine, |name| run(&[name], one_thread)));
    }
    let is_left = |name: &&str| !machine.cut_off.iter().any(|ended| ended == name);
    let left: Vec<&str> = names.iter().copied().filter(is_left).collect();
    let why = format!(
        "the emulator failed after {} of {} cases, and was started again for the others",
        names.len() - left.len(),
        names.len()
    );
    println!("guest: {why}");
    let ended = match machine.tally.counts.failed {
        0 => StageResult::Passed(machine.tally),
        _ => machine.result(),
    };
    let ended = ended.and(StageResult::Skipped(why));
    // Without names it would run them all.
    if left.is_empty() { Ok(ended) } else { Ok(ended.and(boot(&left, number + 1, run)?)) }
}

/// The cases in two parts that take about as long. The first has the case about a power cut, which needs a second boot, as
/// the second part is followed by the boot of another kernel.
fn halves(names: &[String]) -> [Vec<&str>; 2] {
    let (mut first, mut second) = (vec![power_cut::CASE], Vec::new());
    for name in names.iter().map(String::as_str).filter(|name| *name != power_cut::CASE) {
        if first.len() <= second.len() { first.push(name) } else { second.push(name) }
    }
    [first, second]
}

/// The names of the cases.
fn listed(program: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]);
    let list = repo::output_of(command)?;
    Ok(list.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
}

/// A command that runs the cases whose names contain one of `names`, or all of them, in one boot. It comes after another
/// boot whose power is cut, if the case about that is among them.
pub fn command(
    kernel: &Kernel,
    one_thread: bool,
    fiord: &Path,
    program: &Path,
    names: &[&str],
) -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(["guest", "--kernel", kernel.series]);
    if one_thread {
        command.arg("--one-thread");
    }
    if names.is_empty() || names.iter().any(|name| power_cut::CASE.contains(name)) {
        command.args(["--power-cut", power_cut::LOAD]);
    }
    // One case at a time: they share the kernel's modules.
    command
        .arg(format!("{} --test-threads=1 {}", program.display(), names.join(" ")))
        .env("FIORD", fiord)
        .env(SILENCE_VARIABLE, SILENCE_MAX.as_secs().to_string());
    Ok(command)
}

/// The program of `tests/guest`, just built.
pub fn program() -> Result<PathBuf, String> {
    let args = ["test", "--quiet", "--workspace", "--test", "guest", "--no-run", "--message-format=json"];
    let messages = repo::output_of(repo::cargo(&args))?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["target"]["kind"][0] == "test";
        message["executable"].as_str().filter(|_| is_test).map(PathBuf::from)
    };
    messages.lines().find_map(executable).ok_or_else(|| "cargo built no test of fiord-guest".to_string())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::tally::Counts;

    #[test]
    fn each_case_runs_in_one_of_two_machines() {
        let mut names: Vec<String> = (0..9).map(|number| format!("a::case_{number}")).collect();
        names.push(power_cut::CASE.to_string());
        let [first, second] = halves(&names);
        assert!(first.contains(&power_cut::CASE));
        assert_eq!((first.len(), second.len()), (5, 5));
        let mut all = [first, second].concat();
        all.sort_unstable();
        assert_eq!(all, names);
    }

    /// What a machine prints that ends with this status.
    fn machine(status: i32, printed: &str) -> TestRun {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("printf '{printed}'; exit {status}")]);
        test_run::run(command)
    }

    #[test]
    fn a_machine_whose_emulator_failed_is_booted_again_with_one_thread_for_what_is_left() {
        let boots = RefCell::new(Vec::new());
        let result = boot(&["a", "b", "c"], 1, &|names, one_thread| {
            boots.borrow_mut().push((names.join(" "), one_thread));
            Ok(match boots.borrow().len() {
                1 => machine(EMULATOR_STATUS, "test a ... ok\ntest b ... "),
                2 => machine(EMULATOR_STATUS, "test b ... "),
                _ => machine(0, "test result: ok. 2 passed"),
            })
        });
        let Ok(StageResult::Passed(tally)) = result else { panic!("{result:?}") };
        let booted = boots.borrow();
        let booted: Vec<(&str, bool)> = booted.iter().map(|(names, one)| (names.as_str(), *one)).collect();
        assert_eq!(booted, [("a b c", false), ("b c", true), ("b c", true)]);
        assert_eq!(tally.counts, Counts { passed: 3, failed: 0, skipped: 2 });
        assert!(tally.reasons[0].contains("failed after 1 of 3 cases"), "{:?}", tally.reasons);
    }

    #[test]
    fn a_case_that_failed_runs_again_in_a_machine_of_its_own() {
        let result = boot(&["a", "b"], 1, &|names, _| {
            Ok(match names {
                ["a", "b"] => machine(
                    101,
                    "test a ... FAILED\ntest b ... ok\ntest result: FAILED. 1 passed; 1 failed\n",
                ),
                _ => machine(0, "test a ... ok\ntest result: ok. 1 passed\n"),
            })
        });
        let Ok(StageResult::Passed(tally)) = result else { panic!("{result:?}") };
        assert_eq!((tally.counts.passed, tally.counts.failed), (2, 0));
        assert_eq!(tally.unsteady, ["a"]);
    }

    #[test]
    fn a_machine_whose_emulator_failed_when_all_was_done_is_not_booted_again() {
        let boots = Cell::new(0);
        let result = boot(&["a"], 1, &|_, _| {
            boots.set(boots.get() + 1);
            Ok(machine(EMULATOR_STATUS, "test a ... ok\n"))
        });
        assert!(matches!(result, Ok(StageResult::Passed(_))) && boots.get() == 1, "{result:?}");
    }

    #[test]
    fn a_machine_whose_emulator_always_fails_or_whose_case_hangs_fails() {
        let boots = Cell::new(0);
        let failed = boot(&["a"], 1, &|_, _| {
            boots.set(boots.get() + 1);
            Ok(machine(EMULATOR_STATUS, "test a ... "))
        });
        assert!(matches!(failed, Ok(StageResult::Failed(..))) && boots.get() == BOOTS_MAX, "{failed:?}");
        let hangs = boot(&["a"], 1, &|_, _| Ok(machine(1, "test a ... ")));
        assert!(matches!(hangs, Ok(StageResult::Failed(..))), "{hangs:?}");
    }
}
