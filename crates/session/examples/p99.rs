//! Runs a job as fio would, from options or a job file, and prints the 99th percentile of each direction's latency:
//!
//!     cargo run -p fiord-session --example p99 -- --name=a --rw=randrw --size=16m --filename=/tmp/a
//!
//! Invariant: it needs nothing that another program does not have, and all that is printed is printed here.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fiord_options::{Problem, cli};
use fiord_plan::facts::RunSettings;
use fiord_session::Ending;
use fiord_session::event::{Event, Intervals, Presenter};
use fiord_session::run::drive::{Run, drive};
use fiord_session::run::{environment, facts};
use fiord_stats::job::DIRECTIONS;

/// Shows that the run goes on.
struct Clock;

impl Presenter for Clock {
    fn intervals(&self) -> Intervals {
        Intervals { tick: Some(Duration::from_secs(1)), ..Intervals::default() }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::Tick(view) = event {
            eprintln!("{} s", view.elapsed_ns / 1_000_000_000);
        }
    }
}

/// A line for each job and direction.
fn p99s(arguments: &[OsString]) -> Result<Vec<String>, String> {
    let lines =
        |problems: Vec<Problem>| problems.iter().map(|problem| format!("{problem}\n")).collect::<String>();
    let machine = environment::machine()?;
    let parsed = cli::read(arguments, &environment::of(&machine)).map_err(lines)?;
    let planned = facts::plan(&parsed.sections, &parsed.waiting, &machine, &RunSettings::default());
    let (plan, warnings) = planned.map_err(|refusal| lines(refusal.problems))?;
    let outcome = drive(Run::of(&Arc::new(plan), &warnings), &mut Clock);
    if outcome.ending != Ending::Complete {
        return Err(outcome.errors.concat());
    }
    let mut p99s = Vec::new();
    for job in &outcome.report.jobs {
        for (direction, stats) in DIRECTIONS.iter().zip(&job.stats.directions) {
            let p99_ns = stats.completion.percentiles(&[99.0]).first().copied();
            p99s.extend(
                p99_ns.filter(|_| stats.ios > 0).map(|ns| format!("{} {direction}: {ns} ns", job.name)),
            );
        }
    }
    Ok(p99s)
}

fn main() -> ExitCode {
    match p99s(&std::env::args_os().skip(1).collect::<Vec<_>>()) {
        Ok(lines) => lines.iter().for_each(|line| println!("{line}")),
        Err(why) => {
            eprint!("{why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_a_p99_in_each_direction_and_a_wrong_one_says_what_is_wrong() {
        let of = |line: &str| p99s(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        let lines =
            of("--name=a --ioengine=null --rw=randrw --size=1m --name=b --ioengine=null --size=1m").unwrap();
        let starts: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(starts, ["a read", "a write", "b read"]);
        let p99_ns = |line: &String| line.strip_suffix(" ns")?.rsplit(' ').next()?.parse().ok();
        assert!(lines.iter().all(|line| p99_ns(line).is_some_and(|ns: u64| ns > 0)), "{lines:?}");
        let wrong = of("--name=a --rw=raed --size=1m").unwrap_err();
        assert!(wrong.contains("rw") && wrong.contains("raed"), "{wrong}");
    }
}
