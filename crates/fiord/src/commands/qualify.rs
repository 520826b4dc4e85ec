//! `fiord qualify`: what a device does in steady state, by SNIA's specification.
//!
//! Invariant: writes only to devices and files that `--overwrite` identifies, and to scratch files.

mod preconditioned;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use fiord_lab::qualify::{Class, Qualify, Settings, Test};
use fiord_lab::{Repeat, Several, Study, StudyTarget};
use fiord_report::table::shown_bytes;
use fiord_session::study::overwrite::{Overwrite, overwritten};
use fiord_session::study::scratch::ScratchFiles;
use fiord_session::study::target::{self, Space};
use fiord_stats::{Capped, OrderBy};
use fiord_store::KeptRun;

use super::parse;
use crate::arguments::{CommandError, Invocation};
use crate::study::{self, resume};
use crate::subcommand::Subcommands;

/// Measures what a device does once it is no longer fresh, by the tests of SNIA's
/// Performance Test Specification 2.0: writes twice its capacity, then repeats
/// rounds until five of them are steady. Everything on the device is destroyed
/// (docs/qualify.md).
#[derive(clap::Parser)]
#[command(name = "fiord qualify", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Devices or files to overwrite, or directories to
    /// test in; several are tested in turn and compared
    #[arg(value_name = "DEVICE", required = true)]
    devices: Vec<PathBuf>,
    /// Tests: iops, throughput, latency, saturation,
    /// cross-stimulus, idle-recovery
    #[arg(
        long,
        default_value = "iops,throughput,latency",
        value_delimiter = ',',
        value_name = "LIST",
        value_parser = test
    )]
    test: Vec<Test>,
    /// The kind of device: enterprise or client
    #[arg(long, default_value = "enterprise", value_parser = class)]
    class: Class,
    #[command(flatten)]
    overwriting: study::Overwriting,
    /// How much of it to use: 10%, or a size [default:
    /// 100% of a device, 75% with --class=client, 1G
    /// in a directory]
    #[arg(long, value_name = "SHARE", value_parser = capacity)]
    capacity: Option<Capacity>,
    /// Time of each measurement [default: 1m]
    #[arg(long, value_parser = parse::positive_duration)]
    time: Option<Duration>,
    /// Rounds after which a test ends without being
    /// steady [default: 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Go on after a test is steady until it is confirmed
    /// that it drifts by at most 10 %
    #[arg(long)]
    confirmed: bool,
    /// In about an hour: a tenth of the device, 2 s for
    /// each measurement, at most 10 rounds
    #[arg(long)]
    quick: bool,
    /// Do not repeat preconditioning that evidence shows
    /// to have been done (docs/qualify.md)
    #[arg(long)]
    keep_preconditioning: bool,
    /// Before iops and latency write once in the order of
    /// sprandom, for flash of this share beyond what is
    /// used, instead of twice in sequence: for a purged
    /// SSD, and not by the specification [default if
    /// empty: 0.15]
    #[arg(
        long,
        value_name = "SHARE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "keep_preconditioning",
        value_parser = spare_share
    )]
    sprandom: Option<Option<f64>>,
    /// Continue where the same command was interrupted
    #[arg(long, conflicts_with_all = ["dry_run", "no_history"])]
    resume: bool,
    #[command(flatten)]
    study: study::Options,
}

const EXAMPLES: &str = "\
Examples:
  fiord qualify --overwrite=S5GXNX0T123456 /dev/nvme0n1
  fiord qualify --overwrite=S5GXNX0T123456 --resume /dev/nvme0n1
  fiord qualify --quick --test=iops --overwrite=S5GXNX0T123456 /dev/nvme0n1
";

/// What a directory is tested with by default.
const IN_DIRECTORY_BYTES: u64 = 1 << 30;

/// A part of a device.
#[derive(Clone, Copy, Debug)]
enum Capacity {
    Percent(f64),
    Bytes(u64),
}

impl Capacity {
    /// In bytes, of so many.
    fn of(self, all_bytes: u64) -> u64 {
        match self {
            Capacity::Percent(percent) => u64::capped(all_bytes as f64 * percent / 100.0),
            Capacity::Bytes(bytes) => bytes,
        }
    }
}

fn capacity(text: &str) -> Result<Capacity, String> {
    let Some(number) = text.strip_suffix('%') else { return parse::size(text).map(Capacity::Bytes) };
    let percent = number.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(Capacity::Percent).ok_or_else(|| format!("{text:?} is no share; write 1% to 100%"))
}

fn spare_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| *share > 0.0 && *share <= 100.0)
        .ok_or_else(|| format!("{text:?} is no share of flash to spare; write 7%, or 0.07"))
}

fn test(text: &str) -> Result<Test, String> {
    Test::ALL.into_iter().find(|test| test.word() == text).ok_or_else(|| {
        let words = Test::ALL.map(Test::word).join(", ");
        format!("{text:?} is not one of {words}")
    })
}

fn class(text: &str) -> Result<Class, String> {
    let both = [Class::Enterprise, Class::Client];
    both.into_iter()
        .find(|class| class.word() == text)
        .ok_or_else(|| format!("{text:?} is not enterprise or client"))
}

impl Invocation for Options {
    fn run(mut self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        if self.study.is_on_hosts() {
            let why = "a qualification is of the devices of this machine; leave --hosts out, and run it on each host";
            return Err(why.to_string().into());
        }
        if self.study.repeat != Repeat::Auto {
            return Err(
                "--repeat: the rounds of a qualification end by the specification; --rounds limits them"
                    .to_string()
                    .into(),
            );
        }
        // The scratch files live until everything has been printed.
        let places: Vec<&Path> = self.devices.iter().map(PathBuf::as_path).collect();
        let mut targets = target::all(&places, |path| self.target(path))?;
        let mut studies: Vec<(String, Qualify)> = Vec::new();
        for (target, scratch) in &mut targets {
            self.knows_spare_flash(target)?;
            let study = Qualify::new(target.clone(), self.settings())?;
            let keeps = self.keep_preconditioning && !self.resume;
            let blocks = if keeps { study.precondition_blocks() } else { Vec::new() };
            let study = study.keeping(&preconditioned::found(target, &blocks));
            let study = if self.study.dry_run { study.with_all_steps() } else { study };
            scratch.as_mut().map_or(Ok(()), |scratch| scratch.record_files_of(study.steps()))?;
            studies.push((target.shown(), study));
        }
        let targets: Vec<&StudyTarget> = targets.iter().map(|(target, _)| target).collect();
        if targets.len() > 1 && !self.study.dry_run {
            studies = studies.into_iter().map(|(name, study)| (name, study.beside_others())).collect();
        }
        if self.resume && self.keep_preconditioning {
            studies = still_kept(studies, &targets)?;
        }
        if self.resume {
            studies = self.resumed(studies, &targets)?;
        }
        self.study.kept_runs = kept_runs(&studies);
        study::carry_out(&*whole(studies)?, &targets, &[], &self.study, &[])
    }
}

/// The study of all targets, by the name and study of each.
fn whole(studies: Vec<(String, Qualify)>) -> Result<Box<dyn Study>, String> {
    let mut boxed: Vec<(String, Box<dyn Study>)> = Vec::new();
    boxed.extend(studies.into_iter().map(|(name, study)| (name, Box::new(study) as Box<dyn Study>)));
    match boxed.len() {
        1 => Ok(boxed.remove(0).1),
        _ => Ok(Box::new(Several::new(boxed)?)),
    }
}

/// The runs whose preconditioning these studies keep.
fn kept_runs(studies: &[(String, Qualify)]) -> Vec<KeptRun> {
    let of = |(target, (_, study)): (usize, &(String, Qualify))| {
        let kept = study.kept_runs().into_iter();
        kept.map(move |(block_bytes, run)| KeptRun { target, block_bytes, run })
    };
    studies.iter().enumerate().flat_map(of).collect()
}

/// The studies with the preconditioning that they kept before they were interrupted.
fn still_kept(
    studies: Vec<(String, Qualify)>,
    targets: &[&StudyTarget],
) -> Result<Vec<(String, Qualify)>, String> {
    let kept = preconditioned::kept_by_newest(&*whole(studies.clone())?, targets)?;
    let Some(kept) = kept else { return Ok(studies) };
    let mut still = Vec::new();
    for (number, ((name, study), target)) in studies.into_iter().zip(targets).enumerate() {
        let own = kept.iter().filter(|kept| kept.target == number);
        let own: Vec<_> = own.map(|kept| (kept.block_bytes, kept.run)).collect();
        let found = preconditioned::still(target, &study.precondition_blocks(), &own)?;
        still.push((name, study.keeping(&found)));
    }
    Ok(still)
}

impl Options {
    fn target(&self, path: &Path) -> Result<(StudyTarget, Option<ScratchFiles>), CommandError> {
        let active = if self.quick { 10 } else { self.class.active_percent() };
        if !path.is_dir() {
            let used = |all_bytes| self.capacity.unwrap_or(Capacity::Percent(active.into())).of(all_bytes);
            let allowed = Overwrite { in_sequence: true, ..self.overwriting.allowed() };
            return Ok((overwritten(path, allowed, used)?, None));
        }
        let bytes = match self.capacity {
            Some(Capacity::Percent(_)) => {
                return Err("--capacity: a directory has none; write a size, such as 1G".to_string().into());
            }
            Some(Capacity::Bytes(bytes)) => bytes,
            None => IN_DIRECTORY_BYTES,
        };
        if self.resume {
            return Err("--resume: the files of a test in a directory were removed; begin anew"
                .to_string()
                .into());
        }
        Ok(target::at(path, "qualify", Space::AtMost(bytes), self.study.dry_run)?)
    }

    fn settings(&self) -> Settings {
        let mut tests = self.test.clone();
        tests.order_by(Ord::cmp);
        tests.dedup();
        let (time, rounds) = match self.quick {
            true => (Duration::from_secs(2), 10),
            false => (Settings::TIME, Settings::ROUNDS_MAX),
        };
        Settings {
            tests,
            class: self.class,
            time: self.time.unwrap_or(time),
            rounds_max: self.rounds.map_or(rounds, |rounds| rounds as usize),
            confirmed: self.confirmed,
            sprandom: self.sprandom.map(|share| share.unwrap_or(Settings::SPARE_SHARE)),
        }
    }

    /// What is not used of a device is flash to spare as well, so that the default is that of a whole one.
    fn knows_spare_flash(&self, target: &StudyTarget) -> Result<(), String> {
        let StudyTarget { size_bytes, device_bytes, .. } = *target;
        if self.sprandom != Some(None) || size_bytes >= device_bytes >> 20 << 20 {
            return Ok(());
        }
        let share = device_bytes as f64 * (1.0 + Settings::SPARE_SHARE) / size_bytes as f64 - 1.0;
        let [used, all] = [size_bytes, device_bytes].map(shown_bytes);
        Err(format!(
            "--sprandom: {}: {used} of {all} are used, and the flash of all the rest is to spare; write --sprandom={share:.2}, \
             or --capacity=100%",
            target.shown()
        ))
    }

    /// The studies with what is recorded of them.
    fn resumed(
        &mut self,
        studies: Vec<(String, Qualify)>,
        targets: &[&StudyTarget],
    ) -> Result<Vec<(String, Qualify)>, CommandError> {
        let name_after =
            |target: usize, results: &[_], breaks: &[_]| studies[target].1.name_after(results, breaks);
        let kept = kept_runs(&studies);
        let resumed = resume::newest(&*whole(studies.clone())?, targets, &kept, name_after)?;
        let broken = studies.into_iter().zip(resumed.breaks.clone());
        let studies = broken.map(|((name, study), breaks)| (name, study.interrupted_before(breaks)));
        let studies = studies.collect();
        self.study.resumed = Some(Rc::new(resumed));
        Ok(studies)
    }
}
