//! `fiord check`: whether a disk is fast enough for a workload, by the limits of a check file: one of its own, or the user's.
//!
//! Invariant: checks are those of `fiord_lab::check`; here is only their command line.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fiord_lab::check::{Check, PROFILES, Profile, SCHEMA, read};
use fiord_options::suggest::nearest;
use fiord_options::value::Trust;
use fiord_report::path::shown;
use fiord_report::table::{self, Cell, Column, Table};
use fiord_session::study::target::{self, Space};
use fiord_sys::errno::error_text;

use super::parse;
use crate::arguments::{self, CommandError, Form, Invocation};
use crate::study::job_file::joined;
use crate::subcommand::Subcommands;
use crate::{layout, study};

/// The word that requests the list of checks.
const LIST: &str = "list";

/// The largest check file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Runs a known workload and compares the results with published limits: PASS,
/// MARGINAL (within the limits, but without headroom) or FAIL. The exit status is
/// 0, 0 or 4; with --strict 0, 5 or 4. It is 6 if the figures are inconclusive (a
/// busy disk or machine, a target in memory, rounds on both sides of a limit).
/// A workload and its limits are a file: one that fiord brings along, or your own
/// (docs/checks.md). docs/profiles.md says who set the limits of fiord's.
#[derive(clap::Parser)]
#[command(name = "fiord check", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Check to run: a name of the list, or a file that ends in
    /// .toml or is named with a slash
    #[arg(default_value = LIST, value_name = "CHECK", verbatim_doc_comment)]
    check: OsString,
    /// Directories to test; files are created below them and
    /// removed. Several are measured in turn and compared
    #[arg(value_name = "DIRECTORY", default_value = ".", verbatim_doc_comment)]
    directories: Vec<PathBuf>,
    /// Total time of all runs [default: the check's own]
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// Size of the check's large files; together at most an eighth of the
    /// free space
    #[arg(long, default_value = "1G", value_parser = parse::size)]
    size: u64,
    /// Read into and write from memory of a GPU, by cuFile (docs/gpu.md)
    #[arg(long)]
    gpu: bool,
    /// Exit with status 5 for MARGINAL: require headroom below the limits
    #[arg(long)]
    strict: bool,
    /// Print the check file, to be changed and run as one's own
    #[arg(long, group = "instead")]
    show: bool,
    /// Print what the check runs and requires, in words
    #[arg(long, group = "instead")]
    explain: bool,
    /// Print the check's job file, which fio can run as well
    #[arg(long, group = "instead")]
    show_job: bool,
    /// Print the JSON schema of check files, for editors
    #[arg(long, group = "instead")]
    schema: bool,
    #[command(flatten)]
    study: study::Options,
}

const EXAMPLES: &str = "\
Examples:
  fiord check                     the checks
  fiord check etcd /var/lib/etcd
  fiord check --strict oltp /mnt  for scripts: status 5 without headroom
  fiord check ai-training --gpu /mnt
  fiord check --show etcd > mine.toml
  fiord check mine.toml /mnt
";

impl study::OnHosts for Options {
    fn options(&mut self) -> &mut study::Options {
        &mut self.study
    }
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        if self.schema {
            return arguments::print(SCHEMA);
        }
        if self.check == LIST {
            return arguments::print(list(&self.study));
        }
        let mut profile = profile(&self.check, &self.study)?;
        if let Cow::Owned(own) = &profile {
            self.study.sources.keep(&self.check, own.text.clone().into_bytes());
        }
        if self.gpu {
            profile = Cow::Owned(on_gpu(&profile)?);
        }
        if self.show {
            return arguments::print(&profile.text);
        }
        if self.explain {
            let text = profile.explained();
            let lines = text.lines().map(|line| match line.strip_prefix("    ") {
                Some(_) => layout::folded(line, layout::width(), 4),
                None if line.is_empty() => "\n".to_string(),
                None => layout::folded(line, layout::width(), 0),
            });
            return arguments::print(lines.collect::<String>());
        }
        if self.show_job {
            return arguments::print(&profile.job_file);
        }
        if self.study.trust == Trust::Off && profile.forbids_findings() {
            let why = format!(
                "{} fails with certain findings, which --trust=off does not look for; say --trust=on",
                profile.name
            );
            return Err(why.into());
        }
        let bytes = profile.space_bytes(self.size);
        // Files whose size is fixed are not cut to a part of what is free.
        let space = match profile.space.files {
            0 => Space::Exactly(bytes.max(target::SIZE_MIN_BYTES)),
            _ => Space::AtMost(bytes),
        };
        study::at_all(
            &self.directories,
            "check",
            space,
            &study::Overwriting::default(),
            &self.study,
            |target| {
                let check = Check::new(&profile, target, self.time, self.study.repeat);
                check.map(|check| check.strict(self.strict))
            },
        )
    }
}

/// The check of this name, or of this file.
fn profile(named: &OsStr, options: &study::Options) -> Result<Cow<'static, Profile>, String> {
    if let Some(profile) = PROFILES.iter().find(|profile| named == profile.name.as_str()) {
        return Ok(Cow::Borrowed(profile));
    }
    let path = Path::new(named);
    if path.extension().is_none_or(|extension| extension != "toml") && path.components().count() < 2 {
        let names = || PROFILES.iter().map(|profile| profile.name.as_str());
        let meant = match nearest(&named.to_string_lossy(), names()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {};", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(format!(
            "no check is called {:?}; {meant} name a file of your own with .toml at its end",
            shown(named)
        ));
    }
    let text = match options.sources.file(named) {
        Some(text) => String::from_utf8_lossy(&text).into_owned(),
        None => contents(path).map_err(|why| format!("{}: {why}", shown(path)))?,
    };
    let name = path.file_stem().map_or_else(String::new, shown);
    let profile = read(named, &name, &text).map_err(|problems| joined(&problems))?;
    Ok(Cow::Owned(profile))
}

/// The same check of samples that end in memory of a GPU.
fn on_gpu(profile: &Profile) -> Result<Profile, String> {
    const ENGINE: &str = "ioengine=psync\n";
    let text = profile.text.replace(ENGINE, "ioengine=libcufile\n");
    if text == profile.text {
        return Err(format!(
            "{} has no line ioengine=psync, which --gpu replaces; leave --gpu out, or change a copy of its file (--show)",
            profile.name
        ));
    }
    read(profile.name.as_ref(), &profile.name, &text).map_err(|problems| joined(&problems))
}

/// The text of a file.
fn contents(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    let remedy = |error: &io::Error| {
        format!("{}; name a check file, or a check of `fiord check list`", error_text(error))
    };
    read.map_err(|error| remedy(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("longer than 1 MiB; a check file is a few lines of TOML".to_string());
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("not UTF-8 at byte {}; a check file is text", error.utf8_error().valid_up_to())
    })
}

fn list(options: &study::Options) -> String {
    let mut table = Table::new([
        Column::new("profile", "PROFILE"),
        Column::new("runs", "RUNS"),
        Column::new("workload", "FAST ENOUGH FOR"),
        Column::new("seconds_max", "SECONDS"),
    ]);
    for profile in PROFILES.iter() {
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
