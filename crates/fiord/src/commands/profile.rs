//! `fiord profile`: where the time of a job goes, as it is or in several variants side by side.
//!
//! Invariant: settings the user typed are never overridden; the variants are run in turn, so that a disk that changes
//! meanwhile affects all alike; only files the job names are written to, or a scratch file if it names none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use fiord_lab::profile::Profile;
use fiord_lab::{Repeat, Rounds, Study, StudyTarget};
use fiord_options::Problem;
use fiord_session::run::environment;
use fiord_session::study::scratch::ScratchFiles;
use fiord_stats::Capped;

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::output_file::{Force, OutputFile};
use crate::profile::Profiler;
use crate::study;
use crate::study::completed_job::{self, CompletedJob};
use crate::study::over;
use crate::study::typed_job::{self, TypedJob};
use crate::subcommand::Subcommands;

/// Runs a job and shows where its time goes: processors beside I/O over time, and
/// the time of an I/O in fiord, in the kernel, in queues and at the device; of
/// several variants side by side.
#[derive(clap::Parser)]
#[command(
    name = "fiord profile",
    verbatim_doc_comment,
    override_usage = "fiord profile [FIO OPTIONS | JOB FILE] [OPTIONS] [-- vary KEY=LIST...]",
    after_help = HELP
)]
pub(super) struct Options {
    /// Total time of all runs, if the job sets none
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// Write everything to this file as one page of HTML
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Job option to vary, and its values, as after `-- vary`
    #[arg(long, value_name = "KEY=LIST")]
    over: Vec<OsString>,
    #[command(flatten)]
    study: study::Options,
    /// Options of fio, and a job file
    #[arg(skip)]
    of_fio: Vec<OsString>,
    /// What follows the options, from `--` on
    #[arg(skip)]
    varied: Vec<OsString>,
}

/// Shown below the list of options.
const HELP: &str = "\
All other arguments are options of fio's, or one job file to start from.

LIST is a list (4k,16k) or a range that doubles (1..8); with several KEYs, every
combination is a variant. Variants are run in turn, three times by default; a
job that says when it ends, twice; without variants, once.

A job that names no file gets a scratch file in the current directory, which is
removed afterwards. docs/profile.md explains the figures.

Examples:
  fiord profile job.fio
  fiord profile job.fio -o page.html -- vary direct=0,1
  fiord profile -rw=write -bs=4k -size=1G -- vary direct=0,1
  fiord profile job.fio -- vary ioengine=libaio,io_uring iodepth=1,32";

/// Default time of a variant in all its runs, and the most that all runs take by default.
const VARIANT: Duration = Duration::from_secs(12);
const ALL: Duration = Duration::from_secs(120);

/// How often variants are run by default, and if the job has its own time.
const TIMES: usize = 3;
const TIMES_OF_ITS_OWN: usize = 2;

/// What follows `--`.
const VARY: &str = "vary";

impl Invocation for Options {
    fn read(arguments: &[OsString]) -> Result<Options, clap::Error> {
        let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
        let (arguments, varied) = arguments.split_at(end);
        let (mut own, of_fio) = typed_job::split(&Options::command(), arguments);
        own.extend(varied.iter().filter(|word| *word == "--help" || *word == "-h").cloned());
        Ok(Options { of_fio, varied: varied.to_vec(), ..arguments::parsed(&own)? })
    }

    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        if self.study.is_on_hosts() {
            let why = "a profile is of one machine; leave --hosts out, or run it on a host of interest";
            return Err(why.to_string().into());
        }
        // The scratch files live until everything has been printed.
        let prepared = prepare(&self)?;
        let own_target = prepared.scratch.as_ref().map(|(own_target, _)| own_target);
        let mut profiler = Profiler::new(&prepared.profile, prepared.page.as_ref().map(OutputFile::path));
        study::carry_out_profiled(
            &prepared.profile,
            own_target.as_slice(),
            &prepared.warnings,
            &self.study,
            prepared.page.as_slice(),
            Some(&mut profiler),
        )
    }
}

/// A profile that is ready to run.
struct Prepared {
    profile: Profile,
    /// Where its page is written, if one is wanted.
    page: Option<OutputFile>,
    /// The target and scratch files, if the job names no file.
    scratch: Option<(StudyTarget, ScratchFiles)>,
    /// Warnings about the job as typed.
    warnings: Vec<Problem>,
}

fn prepare(options: &Options) -> Result<Prepared, CommandError> {
    let machine = environment::machine()?;
    let typed = TypedJob::read("profile", &options.of_fio, &machine, &options.study)?;
    let page = |path| OutputFile::new("--output", path, Some(options.force));
    let page = options.output.as_deref().map(page).transpose()?;
    let keys = match lists(&options.varied)? {
        [] => over::keys("--over", &options.over, &typed)?,
        _ if !options.over.is_empty() => {
            return Err("write all keys after -- vary, or all with --over".to_string().into());
        }
        lists => over::keys(VARY, lists, &typed)?,
    };
    typed.engines_have_their_options(&keys)?;
    let variants = keys.iter().map(|key| u32::capped(key.values.len())).fold(1, u32::saturating_mul).max(1);
    let rounds = rounds(options.study.repeat, variants, completed_job::says_when_it_ends(&typed, &keys));
    let variant = options.time.map_or_else(|| (ALL / variants).min(VARIANT), |all| all / variants);
    let mut scratch = typed.own_target(&keys, options.study.dry_run)?;
    let own_target = scratch.as_ref().map(|(own_target, _)| own_target);
    let completed = CompletedJob::new(&typed, &keys, rounds.each(variant), own_target);
    let (heading, job) = (completed.heading(), completed.job());
    let profile = Profile::new(keys, &job, rounds, &typed_job::time)?.headed(heading);
    let profile = match own_target {
        Some(own_target) => profile.prepared_by(own_target.fill()),
        None => profile,
    };
    scratch.as_mut().map_or(Ok(()), |(_, scratch)| scratch.record_files_of(profile.steps()))?;
    Ok(Prepared { profile, page, scratch, warnings: typed.warnings })
}

/// The lists after `-- vary`; none if there is no `--`.
fn lists(varied: &[OsString]) -> Result<&[OsString], String> {
    match varied {
        [] => Ok(&[]),
        [_, word, lists @ ..] if word == VARY && !lists.is_empty() => Ok(lists),
        _ => Err(format!("write what to vary after --: fiord profile JOB -- {VARY} direct=0,1")),
    }
}

/// How often the variants are run.
fn rounds(repeat: Repeat, variants: u32, has_own_time: bool) -> Rounds {
    let times = match repeat {
        Repeat::Times(times) => times,
        Repeat::Auto if variants == 1 => 1,
        Repeat::Auto if has_own_time => TIMES_OF_ITS_OWN,
        Repeat::Auto => TIMES,
    };
    Rounds { min: times, max: times }
}
