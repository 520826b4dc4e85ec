//! `fiord check`: whether a disk is fast enough for etcd, a RocksDB store or an OLTP database.
//!
//! Invariant: the profiles are those of `fiord_lab::check`; here is only their command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::check::{Check, PROFILES};
use fiord_report::table::{self, Cell, Column, Table};

use super::parse;
use crate::arguments::{self, CommandError, Form, Invocation};
use crate::subcommand::Subcommands;
use crate::{layout, study};

/// The word that requests the list of profiles.
const LIST: &str = "list";

/// Runs a known workload and compares the results with published limits: PASS,
/// MARGINAL (within the limits, but without headroom) or FAIL. The exit status is
/// 0, 0 or 4; with --strict 0, 5 or 4. It is 6 if the figures are inconclusive (a
/// busy disk or machine, a target in memory, rounds on both sides of a limit).
/// docs/profiles.md describes what each profile imitates and who set its limits.
#[derive(clap::Parser)]
#[command(name = "fiord check", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Workload to test for
    #[arg(default_value = LIST, value_parser = names())]
    profile: String,
    /// Directories to test; files are created below them and
    /// removed. Several are measured in turn and compared
    #[arg(value_name = "DIRECTORY", default_value = ".", verbatim_doc_comment)]
    directories: Vec<PathBuf>,
    /// Total time of all runs [default: the profile's own]
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// Size of the profile's large files; together at most an eighth of the
    /// free space
    #[arg(long, default_value = "1G", value_parser = parse::size)]
    size: u64,
    /// Exit with status 5 for MARGINAL: require headroom below the limits
    #[arg(long)]
    strict: bool,
    /// Print the profile's job file, which fio can run as well
    #[arg(long)]
    show_job: bool,
    #[command(flatten)]
    study: study::Options,
}

const EXAMPLES: &str = "\
Examples:
  fiord check                     the profiles
  fiord check etcd /var/lib/etcd
  fiord check --strict oltp /mnt  for scripts: status 5 without headroom
";

fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|profile| profile.name).chain([LIST]).collect()
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let Some(profile) = PROFILES.iter().find(|profile| profile.name == self.profile) else {
            return arguments::print(list(&self.study));
        };
        if self.show_job {
            return arguments::print(profile.job_file);
        }
        study::at_all(&self.directories, "check", profile.space_bytes(self.size), &self.study, |target| {
            let check = Check::new(profile, target, self.time, self.study.repeat);
            check.map(|check| check.strict(self.strict))
        })
    }
}

fn list(options: &study::Options) -> String {
    let mut table = Table::new([
        Column::new("profile", "PROFILE"),
        Column::new("runs", "RUNS"),
        Column::new("workload", "FAST ENOUGH FOR"),
        Column::new("seconds_max", "SECONDS"),
    ]);
    for profile in &PROFILES {
        table.rows.push(vec![
            Cell::Text(profile.name.to_string()),
            Cell::Text(profile.runs.to_string()),
            Cell::Text(profile.workload.to_string()),
            Cell::Count(profile.seconds()),
        ]);
    }
    match options.forms.chosen() {
        Form::Json => table::json(&[("profiles", &table)]),
        Form::Csv => table.csv(),
        Form::Markdown => table.markdown(),
        Form::Text => table.text(layout::width()) + "\nRun one with: fiord check PROFILE [DIRECTORY]\n",
    }
}
