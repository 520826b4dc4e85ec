//! `fiord check`: whether a disk carries etcd, a RocksDB store or an OLTP database.
//!
//! Invariant: profiles are those of `fiord_lab::check`; here is only how they are asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::check::{Check, PROFILES};
use fiord_report::table::{self, Cell, Column, Table};

use crate::subcommand::{self, Form};
use crate::{amount, study};

/// The word that asks for the list of profiles.
const LIST: &str = "list";

/// Runs a known workload and holds what it measures against known limits: PASS,
/// MARGINAL (holds without reserve) or FAIL, with exit status 0, 0 or 4; with
/// --strict 0, 5 or 4.
/// docs/profiles.md tells what each profile imitates and who set its limits.
#[derive(clap::Parser)]
#[command(name = "fiord check", verbatim_doc_comment)]
struct Options {
    /// What the disk is to carry
    #[arg(default_value = LIST, value_parser = names())]
    profile: String,
    /// The directory to judge; files are made below it and removed
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Time for all runs together [default: the profile's own]
    #[arg(long, value_parser = amount::time_to_take)]
    time: Option<Duration>,
    /// How large the profile's large files are: together an eighth of what is
    /// free at most
    #[arg(long, default_value = "1G", value_parser = amount::size, verbatim_doc_comment)]
    size: u64,
    /// End with status 5 for MARGINAL, too: what holds must hold with reserve
    #[arg(long)]
    strict: bool,
    /// Print the profile's job file, which fio runs, too
    #[arg(long)]
    show_job: bool,
    #[command(flatten)]
    study: study::Options,
}

fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|profile| profile.name).chain([LIST]).collect()
}

/// Runs the study, or tells of the profiles.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let options: Options = match subcommand::read(arguments) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let Some(profile) = PROFILES.iter().find(|profile| profile.name == options.profile) else {
        return subcommand::print(Ok(list(&options.study)));
    };
    if options.show_job {
        return subcommand::print(Ok(profile.job_file.to_string()));
    }
    study::at(&options.directory, "check", profile.space_bytes(options.size), &options.study, |site| {
        Check::new(profile, site, options.time).map(|check| check.strict(options.strict))
    })
}

fn list(options: &study::Options) -> String {
    let mut table = Table::new([
        Column::new("profile", "PROFILE"),
        Column::new("runs", "RUNS"),
        Column::new("carries", "WHETHER THE DISK CARRIES"),
        Column::new("seconds_max", "SECONDS"),
    ]);
    for profile in &PROFILES {
        table.rows.push(vec![
            Cell::Text(profile.name.to_string()),
            Cell::Text(profile.runs.to_string()),
            Cell::Text(profile.carries.to_string()),
            Cell::Count(profile.seconds()),
        ]);
    }
    match options.forms.chosen() {
        Form::Json => table::json(&[("profiles", &table)]),
        Form::Csv => table.csv(),
        Form::Markdown => table.markdown(),
        Form::Text => table.text(subcommand::width()) + "\nRun one with: fiord check PROFILE [DIRECTORY]\n",
    }
}
