//! `fiord sweep`: a job as for fio, run at several values of its options.
//!
//! Invariant: settings the user typed are never overridden; every value goes through its option's own parser before
//! anything runs; only files the job names are written to, or a scratch file or the device that `--overwrite` identifies if
//! it names none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use fiord_lab::sweep::{Key, Pictures, Sweep};
use fiord_lab::{Repeat, Rounds, Study, StudyTarget};
use fiord_options::value::{Bytes, Reading, Value};
use fiord_options::{Problem, Setting, job};
use fiord_report::path::shown;
use fiord_session::run::environment;
use fiord_session::study::scratch::ScratchFiles;
use fiord_session::study::target::Space;
use fiord_stats::Capped;

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::output_file::{Force, OutputFile};
use crate::study::completed_job::{self, CompletedJob};
use crate::study::over;
use crate::study::typed_job::{self, SIZE_BYTES, TypedJob};
use crate::subcommand::Subcommands;
use crate::{layout, study};

/// Runs a job at several values of its options and finds where throughput stops
/// growing.
#[derive(clap::Parser)]
#[command(
    name = "fiord sweep",
    verbatim_doc_comment,
    override_usage = "fiord sweep [FIO OPTIONS | JOB FILE] --over KEY=LIST [OPTIONS] [DEVICE]",
    after_help = HELP
)]
pub(super) struct Options {
    /// Job option to vary, and its values
    #[arg(long, required = true, value_name = "KEY=LIST")]
    over: Vec<OsString>,
    /// Write the chart to this file as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    overwriting: study::Overwriting,
    /// Total time of all runs, if the job sets none
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    #[command(flatten)]
    study: study::Options,
    /// Options of fio, and a job file
    #[arg(skip)]
    of_fio: Vec<OsString>,
    /// The device to test, if one is named
    #[arg(skip)]
    device: Option<PathBuf>,
}

/// Shown below the list of options.
const HELP: &str = "\
All other arguments are options of fio's, or one job file to start from.

LIST is a list (4k,16k,64k), a range that doubles (1..120 is 1,2,4,...,64,120),
or both. With several --over, every combination is run; the values of the last
one change fastest.

A job that names no file runs on DEVICE, which is only read unless --overwrite
identifies it. Without one, it gets a scratch file in the current directory,
which is removed afterwards. A job that does not say when to end runs for 10 s per point,
or less if all points together would take more than 2 minutes.

Examples:
  fiord sweep --rw=read --over bs=4k..1M
  fiord sweep -rw=randread -bs=4k --over numjobs=1..64 --plot threads.svg
  fiord sweep job.fio --over rw=read,write --over bs=4k,64k,1M";

/// Default time of one run, the most that all runs take by default, and the least for one run.
const RUN: Duration = Duration::from_secs(10);
const ALL: Duration = Duration::from_secs(120);
const RUN_MIN: Duration = Duration::from_secs(1);

impl study::OnHosts for Options {
    fn options(&mut self) -> &mut study::Options {
        &mut self.study
    }
}

impl Invocation for Options {
    fn read(arguments: &[OsString]) -> Result<Options, clap::Error> {
        let (own, of_fio) = typed_job::split(&Options::command(), arguments);
        Ok(Options { of_fio, ..arguments::parsed(&own)? })
    }

    fn run(mut self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        if !self.study.is_on_hosts() && self.study.agent.is_none() {
            self.device = typed_job::take_device(&mut self.of_fio)?;
        }
        if self.device.is_none() && !self.overwriting.overwrite.is_empty() {
            let why = match self.study.is_on_hosts() {
                true => "a sweep on hosts overwrites no device; leave --hosts out, and run it on each host",
                false => "name the device as well, one of this machine, such as /dev/nvme0n1",
            };
            return Err(format!("--overwrite: {why}").into());
        }
        let machine = environment::machine()?;
        let typed = TypedJob::read("sweep", &self.of_fio, &machine, &self.study)?;
        if let Some(status) = study::at_hosts("sweep", &self.study)? {
            return Ok(status);
        }
        // The scratch files live until everything has been printed.
        let prepared = prepare(&self, typed)?;
        let own_target = prepared.target.as_ref().map(|(own_target, _)| own_target);
        let plot = prepared.plot.as_slice();
        study::carry_out(&prepared.sweep, own_target.as_slice(), &prepared.warnings, &self.study, plot)
    }
}

/// A target, and its scratch files if it has any.
type Target = (StudyTarget, Option<ScratchFiles>);

/// The device, or a scratch file; `None` if the job names its files.
fn target(options: &Options, typed: &TypedJob, keys: &[Key]) -> Result<Option<Target>, CommandError> {
    let Some(device) = &options.device else {
        let own = typed.own_target(keys, options.study.dry_run)?;
        return Ok(own.map(|(target, scratch)| (target, Some(scratch))));
    };
    if let Some(option) = typed.names_files(keys) {
        let why = format!("{}: {} names other files; leave one of both out", shown(device), option.name);
        return Err(why.into());
    }
    let swept = keys.iter().filter(|key| key.spec == job::Amount::size).flat_map(|key| &key.values);
    let typed = typed.settings().filter(|setting| setting.spec == job::Amount::size);
    let sizes = typed.filter_map(Setting::text).chain(swept.map(|value| value.text.as_str()));
    let sizes = sizes.filter_map(|text| Bytes::parse(text, &mut Reading::default()).ok());
    let size_bytes = sizes.map(|Bytes(bytes)| bytes).max().unwrap_or(SIZE_BYTES);
    // In whole MiB, as targets are used.
    let size_bytes = size_bytes.saturating_add((1 << 20) - 1);
    options.overwriting.target(device, "sweep", Space::AtMost(size_bytes), options.study.dry_run).map(Some)
}

/// A sweep that is ready to run.
struct Prepared {
    sweep: Sweep,
    /// Where its chart is written, if one is wanted.
    plot: Option<OutputFile>,
    /// The target, and its scratch files if it has any, if the job names no file.
    target: Option<Target>,
    /// Warnings about the job as typed.
    warnings: Vec<Problem>,
}

fn prepare(options: &Options, typed: TypedJob) -> Result<Prepared, CommandError> {
    let keys = over::keys("--over", &options.over, &typed)?;
    typed.engines_have_their_options(&keys)?;
    let plot = |path| OutputFile::new("--plot", path, Some(options.force));
    let plot = options.plot.as_deref().map(plot).transpose()?;
    let runs = keys.iter().map(|key| u32::capped(key.values.len())).fold(1, u32::saturating_mul);
    let each = options.time.map_or_else(|| (ALL / runs).clamp(RUN_MIN, RUN), |all| all / runs);
    let rounds = match options.study.repeat {
        // The job has its own time, which is not divided.
        Repeat::Auto if completed_job::says_when_it_ends(&typed, &keys) => Rounds::ONE,
        repeat => Rounds::of(repeat, each),
    };
    let each = rounds.each(each);
    let mut target = target(options, &typed, &keys)?;
    let own_target = target.as_ref().map(|(own_target, _)| own_target);
    let completed = CompletedJob::new(&typed, &keys, each, own_target);
    let (heading, job) = (completed.heading(), completed.job());
    let pictures = Pictures { colour: layout::is_coloured(), plot: options.plot.clone() };
    let sweep = Sweep::new(keys, job, pictures, &typed_job::time)?.headed(heading).repeated(rounds);
    let sweep = match own_target.filter(|own_target| own_target.writable) {
        Some(own_target) => sweep.prepared_by(own_target.fill()),
        None => sweep,
    };
    if let Some((_, Some(scratch))) = &mut target {
        scratch.record_files_of(sweep.steps())?;
    }
    Ok(Prepared { sweep, plot, target, warnings: typed.warnings })
}
