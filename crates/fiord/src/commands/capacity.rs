//! `fiord capacity`: the highest rate whose response latency stays within a bound.
//!
//! Invariant: writes only to scratch files, and to the files that a job of the user's names; a file or device given as a
//! target is only read.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fiord_host::Machine;
use fiord_lab::Study;
use fiord_lab::StudyTarget;
use fiord_lab::capacity::{Bound, Capacity, Load, Settings, Workload};
use fiord_options::Problem;
use fiord_report::path::shown;
use fiord_session::run::environment;
use fiord_session::study::scratch::ScratchFiles;
use fiord_session::study::target::{self, Space};

use super::parse;
use super::space::SizedStudy;
use crate::arguments::{CommandError, Invocation};
use crate::output_file::{Force, OutputFile};
use crate::study;
use crate::study::job_file::JobFile;
use crate::subcommand::Subcommands;

/// Finds the highest rate at which a percentile of the response latency stays
/// within a bound: of one pattern, or of a job as for fio, on one target or on
/// several, which are then compared. I/Os arrive at random whatever the device
/// does, and their latency is measured from their arrival, so that waiting for
/// others is part of it. Each rate runs for about a fifteenth of --time; the
/// highest rate within the bound and the lowest one beyond it are run three times.
#[derive(clap::Parser)]
#[command(
    name = "fiord capacity",
    verbatim_doc_comment,
    override_usage = "fiord capacity --p99=TIME [OPTIONS] [JOB] [TARGET]...",
    after_help = HELP
)]
#[command(group(clap::ArgGroup::new("limit").required(true).args(["p50", "p99", "p999", "bound"])))]
pub(super) struct Options {
    /// A job file (less than 8 MiB), and directories to test in, or files or
    /// devices to read from
    #[arg(value_name = "JOB|TARGET")]
    places: Vec<PathBuf>,
    /// Longest median of the response latency
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p50: Option<Duration>,
    /// Longest 99th percentile of the response latency
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p99: Option<Duration>,
    /// Longest 99.9th percentile of the response latency
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p999: Option<Duration>,
    /// Any percentile and its limit: p99.95=20ms
    #[arg(long, value_name = "pN=TIME", value_parser = bound)]
    bound: Option<Bound>,
    /// Access pattern, without a job: randread (the default), randwrite, read
    /// or write
    #[arg(long)]
    rw: Option<String>,
    /// Block size, without a job [default: 4k]
    #[arg(long, value_parser = parse::size)]
    bs: Option<u64>,
    /// Maximum number of I/Os in flight, without a job; others wait
    /// [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    depth: Option<u32>,
    /// Let I/Os arrive at even intervals instead of at random
    #[arg(long)]
    even: bool,
    /// Total time of all runs of one target
    #[arg(long, default_value = "1m", value_parser = parse::positive_duration)]
    time: Duration,
    /// Write the chart to this file as SVG
    #[arg(long, value_name = "FILE", conflicts_with = "hosts")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    study: SizedStudy,
}

/// Shown below the list of options.
const HELP: &str = "\
A job keeps its mix, block sizes, engine and depth; its run time is replaced.
Several targets are measured in turn, never together. If a finding voids the
figures of one, nothing is concluded about that one alone.

The exit status is 0 if a rate was found, 4 if not even a low rate stays within
the bound, and 6 if the figures are inconclusive (a busy disk or machine, a
target in memory, runs that disagree, targets whose runs overlap).

Examples:
  fiord capacity --p99=10ms
  fiord capacity --p99=10ms oltp.fio
  fiord capacity --p99=10ms oltp.fio /mnt/a /mnt/b
  fiord capacity --p999=50ms --rw=randwrite --bs=16k /data
  fiord capacity --bound=p99.95=20ms --depth=16 --plot=sda.svg /dev/sda";

/// A latency: `10ms`, `250us`, `1s`. A number alone is refused: it would be seconds, and milliseconds are meant.
fn latency(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let read = |(unit, seconds): (&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    };
    match units.into_iter().find_map(read) {
        Some(Duration::ZERO) | None => {
            Err("not a latency with its unit; write 10ms, 250us or 1s".to_string())
        }
        Some(latency) => Ok(latency),
    }
}

/// `p99.9=10ms`.
fn bound(text: &str) -> Result<Bound, String> {
    let wrong = || "write a percentile and a latency: p99.9=10ms".to_string();
    let (percentile, limit) = text.split_once('=').ok_or_else(wrong)?;
    let percentile: f64 = percentile.strip_prefix('p').and_then(|p| p.parse().ok()).ok_or_else(wrong)?;
    if !(percentile > 0.0 && percentile <= 100.0) {
        return Err("a percentile is above 0 and at most 100".to_string());
    }
    Ok(Bound { percentile, limit: latency(limit)? })
}

impl study::OnHosts for Options {
    fn options(&mut self) -> &mut study::Options {
        &mut self.study.options
    }
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let machine = environment::machine()?;
        let job_and_targets = self.job_and_targets(&machine)?;
        if let Some(status) = study::at_hosts("capacity", &self.study.options)? {
            return Ok(status);
        }
        // The scratch files live until everything has been printed.
        let Prepared { study, plot, targets, scratch: _scratch, warnings } = prepare(&self, job_and_targets)?;
        let targets: Vec<&StudyTarget> = targets.iter().collect();
        study::carry_out(&study, &targets, &warnings, &self.study.options, plot.as_slice())
    }
}

/// A study that is ready to run.
struct Prepared {
    study: Capacity,
    /// Where its chart is written, if one is wanted.
    plot: Option<OutputFile>,
    targets: Vec<StudyTarget>,
    scratch: Vec<ScratchFiles>,
    /// Warnings about the job as typed.
    warnings: Vec<Problem>,
}

fn prepare(
    options: &Options,
    (job, places): (Option<JobFile>, Vec<&Path>),
) -> Result<Prepared, CommandError> {
    let plot = |path| OutputFile::new("--plot", path, Some(options.force));
    let plot = options.plot.as_deref().map(plot).transpose()?;
    let space = match job.as_ref().and_then(JobFile::size_bytes) {
        // A smaller job uses a part of the file.
        Some(bytes) => Space::Exactly(bytes.max(target::SIZE_MIN_BYTES)),
        None => Space::AtMost(options.study.size),
    };
    let found =
        target::all(&places, |path| target::at(path, "capacity", space, options.study.options.dry_run))?;
    let (targets, scratch): (Vec<StudyTarget>, Vec<Option<ScratchFiles>>) = found.into_iter().unzip();
    let mut scratch: Vec<ScratchFiles> = scratch.into_iter().flatten().collect();
    let settings = Settings {
        bound: options.bound().ok_or_else(|| "name a bound: --p99=10ms".to_string())?,
        even: options.even,
        time: options.time,
        plot: options.plot.clone(),
    };
    let (load, heading, warnings) = match job {
        Some(job) => {
            let heading = job.heading();
            (Load::Job(job.sections), heading, job.warnings)
        }
        None => (Load::Pattern(options.workload()), Vec::new(), Vec::new()),
    };
    let study = Capacity::new(targets.clone(), load, settings)?.headed(heading);
    scratch.iter_mut().try_for_each(|files: &mut ScratchFiles| files.record_files_of(study.steps()))?;
    Ok(Prepared { study, plot, targets, scratch, warnings })
}

impl Options {
    /// The bound that is given.
    fn bound(&self) -> Option<Bound> {
        let named = [(50.0, self.p50), (99.0, self.p99), (99.9, self.p999)];
        let named =
            named.into_iter().find_map(|(percentile, limit)| Some(Bound { percentile, limit: limit? }));
        self.bound.or(named)
    }

    fn workload(&self) -> Workload {
        Workload {
            pattern: self.rw.clone().unwrap_or_else(|| "randread".to_string()),
            block_bytes: self.bs.unwrap_or(4096),
            depth: self.depth.unwrap_or(64),
        }
    }

    /// Whether a path is a job file: a regular file that is too small to be read from, of the controller if there is one.
    fn is_job_file(&self, path: &Path) -> bool {
        let is_small = |found: std::fs::Metadata| found.is_file() && found.len() < target::SIZE_MIN_BYTES;
        match self.study.options.agent {
            Some(_) => self.study.options.sources.file(path.as_os_str()).is_some(),
            None => std::fs::metadata(path).is_ok_and(is_small),
        }
    }

    /// The job, if there is one, and the targets; none if the job names its files itself.
    fn job_and_targets(&self, machine: &Machine) -> Result<(Option<JobFile>, Vec<&Path>), String> {
        let (jobs, targets): (Vec<&Path>, Vec<&Path>) =
            self.places.iter().map(PathBuf::as_path).partition(|path| self.is_job_file(path));
        let here = Path::new(".");
        let job = match jobs.as_slice() {
            [] => return Ok((None, if targets.is_empty() { vec![here] } else { targets })),
            [only] => JobFile::read(only, machine, &self.study.options)?,
            [_, second, ..] => return Err(format!("{}: a second job file; name only one", shown(second))),
        };
        let given = [("rw", self.rw.is_some()), ("bs", self.bs.is_some()), ("depth", self.depth.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("--{name}: the job has its own; leave out one of them"));
        }
        match (job.names_files(), targets.is_empty()) {
            (Some(_), true) => Ok((Some(job), targets)),
            (Some(setting), false) => Err(format!(
                "{} of the job names its files; leave that out, or name no target beside the job",
                setting.spec.name
            )),
            (None, true) => Ok((Some(job), vec![here])),
            (None, false) => Ok((Some(job), targets)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_units() {
        let ms = |text| latency(text).map(|latency| latency.as_secs_f64() * 1000.0);
        assert_eq!([ms("10ms"), ms("250us"), ms("1.5s")], [10.0, 0.25, 1500.0].map(Ok));
        for wrong in ["", "2", "ms", "0ms", "-1ms", "10m", "1e999s"] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_name_a_percentile() {
        let bound = |text| super::bound(text).map(|bound| (bound.percentile, bound.limit.as_micros()));
        assert_eq!(bound("p99.95=20ms"), Ok((99.95, 20_000)));
        for wrong in ["99=20ms", "p=20ms", "p0=1s", "p101=1s", "pNaN=1s", "p99", "p99=0"] {
            assert!(bound(wrong).is_err(), "{wrong}");
        }
    }
}
