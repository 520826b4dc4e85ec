//! `fiord hosts --collect`: the reports of runs whose controller was lost.
//!
//! Invariant: nothing is removed there, and the status is 0 only if every host has what was asked for.

use std::process::ExitCode;

use fiord_fleet::render::render;
use fiord_fleet::{Fate, FleetReport, FleetSettings, Host, HostRun};
use fiord_remote::leftovers::{self, Task};
use fiord_report::json::Writer;
use fiord_report::table::{Cell, Column, Table};
use fiord_report::{Format, TerseVersion};
use fiord_wire::agent::digest;
use fiord_wire::{Collected, Kept, Sent, StudyReport};

use super::answers::{Answer, ask};
use crate::arguments::{self, CommandError, Form};
use crate::hosts::lines_of_fates;
use crate::layout::WIDTH;
use crate::output::say;
use crate::reach::Reach;
use crate::status;
use crate::study::on_hosts::Found;

/// Lists the reports on these hosts, or prints those of a run.
pub(super) fn collect(
    hosts: Vec<Host>,
    reach: &Reach,
    run: Option<String>,
    is_json: bool,
) -> Result<ExitCode, CommandError> {
    let (answers, interrupted) = ask(&hosts, reach, &Task::Collect(run.clone()))?;
    let status = match run {
        None => list(&hosts, &answers, is_json)?,
        Some(run) => {
            let left: Vec<Left> =
                hosts.into_iter().zip(answers).map(|(host, answer)| Left::of(host, answer, &run)).collect();
            lines_of_fates(left.iter().map(|one| (&one.host, &one.fate))).iter().for_each(|line| say(line));
            let is_study = !run.starts_with(|letter: char| letter.is_ascii_digit());
            if is_study { print_study(left, &run, is_json)? } else { print_run(left, is_json)? }
        }
    };
    Ok(ExitCode::from(interrupted.unwrap_or(status)))
}

fn list(hosts: &[Host], answers: &[Answer<Collected>], is_json: bool) -> Result<u8, CommandError> {
    let mut table = Table::new([
        Column::new("host", "HOST"),
        Column::new("run", "RUN"),
        Column::new("named", "NAMED"),
        Column::new("bytes", "BYTES"),
        Column::new("cause", "PROBLEM"),
    ]);
    let mut status = status::SUCCESS;
    for (host, answer) in hosts.iter().zip(answers) {
        let mut row = |report: [Cell; 3], problem: Option<&str>| {
            let [run, named, bytes] = report;
            table.rows.push(vec![
                Cell::text(Some(host.name.clone())),
                run,
                named,
                bytes,
                Cell::text(problem),
            ]);
        };
        let (reports, problem) = match answer {
            Ok(collected) => (&collected.reports[..], collected.problem.as_deref()),
            Err(why) => (&[][..], Some(why.as_str())),
        };
        for report in reports {
            let (run, named) = leftovers::run_and_host(&report.name);
            row([Cell::text(Some(run)), Cell::text(Some(named)), Cell::Bytes(report.size_bytes)], None);
        }
        if problem.is_some() {
            status = status::FAILED;
            row([Cell::None, Cell::None, Cell::None], problem);
        }
    }
    let page = match is_json {
        true => Writer::document(|json| table.write_json(json, "hosts")),
        false if table.rows.is_empty() => {
            "no host has a report of a run whose controller was lost\n".to_string()
        }
        false => table.text(WIDTH),
    };
    arguments::print_text(&page)?;
    Ok(status)
}

/// What a host has of a run.
struct Left {
    host: Host,
    fate: Fate,
    /// As it would have been sent; empty if there is none.
    report: Vec<u8>,
}

impl Left {
    fn of(host: Host, answer: Answer<Collected>, run: &str) -> Left {
        let collected = answer.unwrap_or_else(|why| Collected { problem: Some(why), ..Collected::default() });
        let (fate, report) = match leftovers::report_of(&collected.reports, run, &host.name) {
            None => {
                let none = || format!("no report of the run {run} is there");
                (Fate::Missing { cause: collected.problem.clone().unwrap_or_else(none) }, Vec::new())
            }
            Some(left) => match Kept::decode(&left.kept) {
                // An agent that has lost its controller ends its run by a signal.
                Ok(kept) if digest(&kept.report) == kept.end.digest => {
                    (kept.end.fate(kept.end.status >= status::SIGNALS), kept.report)
                }
                _ => (Fate::Lost { at_ms: 0, cause: "its report is damaged".to_string() }, Vec::new()),
            },
        };
        Left { host, fate, report }
    }

    /// Reads the report; one that cannot be read is lost.
    fn read<T, E: std::fmt::Display>(&mut self, decode: impl Fn(&[u8]) -> Result<T, E>) -> Option<T> {
        if self.report.is_empty() {
            return None;
        }
        let lost = |why: E| Fate::Lost { at_ms: 0, cause: format!("its report cannot be read: {why}") };
        decode(&self.report).map_err(|why| self.fate = lost(why)).ok()
    }
}

/// The status of what hosts have of a run.
fn status_of<'a>(runs: impl Iterator<Item = &'a HostRun>) -> u8 {
    let is_there = |run: &HostRun| matches!(run.fate, Fate::Complete | Fate::Stopped);
    if runs.into_iter().all(is_there) { status::SUCCESS } else { status::FAILED }
}

fn print_run(left: Vec<Left>, is_json: bool) -> Result<u8, CommandError> {
    let run = |mut one: Left| {
        let report = one.read(fiord_store::decode);
        HostRun { host: one.host, fate: one.fate, report, ..HostRun::default() }
    };
    let fleet = FleetReport::of(left.into_iter().map(run).collect(), FleetSettings::default());
    let format = if is_json { Format::Json } else { Format::Normal };
    if fleet.hosts.iter().any(HostRun::is_counted) {
        arguments::print(render(&fleet, &[format], TerseVersion::default()))?;
    }
    Ok(status_of(fleet.hosts.iter()))
}

fn print_study(left: Vec<Left>, run: &str, is_json: bool) -> Result<u8, CommandError> {
    let (mut runs, mut reports) = (Vec::new(), Vec::new());
    for mut one in left {
        reports.push(one.read(StudyReport::decode));
        runs.push(HostRun { host: one.host, fate: one.fate, ..HostRun::default() });
    }
    let name = run.split('-').next().unwrap_or_default().to_string();
    let found = Found { name, runs, reports };
    found.print(if is_json { Form::Json } else { Form::Text })?;
    Ok(status_of(found.runs.iter()))
}
