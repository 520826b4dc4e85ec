//! What is searched: a pattern given by options, or a job as typed; and the same at a rate.
//!
//! Invariant: at a rate the mix of directions and the shares of jobs are those of the run without one.

use std::time::Duration;

use fiord_options::{Section, Setting, Spec, change_settings, job};
use fiord_report::{RunReport, path};
use fiord_stats::Capped;

use crate::step::Step;
use crate::study_target::StudyTarget;

/// I/O of one pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// fio's word for the pattern: `randread`.
    pub pattern: String,
    /// Length of an I/O.
    pub block_bytes: u64,
    /// I/Os in flight, at most.
    pub depth: u32,
}

/// The I/O whose rate is searched.
#[derive(Clone, Debug)]
pub enum Load {
    /// I/O of one pattern.
    Pattern(Workload),
    /// A job as typed, which may have several sections.
    Job(Vec<Section>),
}

/// Mixed patterns, and what reads and writes in them.
const MIXES: [(&str, [&str; 2]); 3] =
    [("rw", ["read", "write"]), ("readwrite", ["read", "write"]), ("randrw", ["randread", "randwrite"])];

/// The patterns of one direction that jobs may have, by fio's names, with the index of the direction.
const PATTERNS: [(&str, usize); 6] =
    [("read", 0), ("randread", 0), ("write", 1), ("randwrite", 1), ("trim", 2), ("randtrim", 2)];

/// The patterns that can be named by an option.
const NAMED: [&str; 4] = ["randread", "randwrite", "read", "write"];

/// Options that hold a job back, or bind the order of its I/Os, so that its rate cannot be searched.
const BINDING: [&Spec; 12] = [
    job::Pace::rate,
    job::Pace::rate_iops,
    job::Pace::rate_min,
    job::Pace::rate_iops_min,
    job::Pace::rate_process,
    job::Pace::rate_arrivals,
    job::Pace::thinktime,
    job::Process::flow,
    job::Pace::latency_target,
    job::Process::wait_for,
    job::Replay::read_iolog,
    job::Verification::verify,
];

/// Options that say when a job ends; the search has a time of its own for each run.
const ENDS: [&Spec; 6] = [
    job::Time::runtime,
    job::Time::time_based,
    job::Amount::io_size,
    job::Access::number_ios,
    job::General::loops,
    job::Amount::fill_device,
];

impl Load {
    /// Checks that a rate can be searched for it.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Load::Pattern(Workload { pattern, .. }) if !NAMED.contains(&pattern.as_str()) => {
                Err(format!("--rw: {pattern:?} is not one of {}", NAMED.join(", ")))
            }
            Load::Pattern(_) => Ok(()),
            Load::Job(sections) => sections.iter().enumerate().try_for_each(|(index, section)| {
                check(section, index > 0)
                    .map_err(|why| format!("job {}: {why}", path::shown(&section.name)))?;
                match sections[..index].iter().any(|other| other.name == section.name) {
                    true => Err(format!("two jobs are called {}; rename one", path::shown(&section.name))),
                    false => Ok(()),
                }
            }),
        }
    }

    /// Whether it writes or trims.
    pub(super) fn modifies(&self) -> bool {
        match self {
            Load::Pattern(Workload { pattern, .. }) => pattern.contains("write"),
            Load::Job(sections) => sections.iter().any(|section| !pattern(section).0.ends_with("read")),
        }
    }

    /// In one phrase: `randread 4KiB at depth 64 or less`.
    pub(super) fn purpose(&self) -> String {
        match self {
            Load::Pattern(Workload { pattern, block_bytes, depth }) => {
                let bytes = fiord_report::table::shown_bytes(*block_bytes);
                format!("{pattern} {bytes} at depth {depth} or less")
            }
            Load::Job(sections) => {
                let names: Vec<String> = sections.iter().map(|section| path::shown(&section.name)).collect();
                format!("job {}", names.join(", "))
            }
        }
    }

    /// A run as fast as possible.
    pub(super) fn unpaced(&self, name: &str, target: Option<&StudyTarget>, time: Duration) -> Step {
        match (self, target) {
            (Load::Pattern(workload), Some(target)) => workload.step(name, target, &[], time),
            (Load::Pattern(_), None) => Step::measure(name, Vec::new(), time),
            (Load::Job(sections), _) => {
                first_waits(Step::measure(name, bounded(sections.clone(), target, time), time))
            }
        }
    }

    /// A run at this many I/Os per second, which arrive whatever the device does, evenly or at random; `unpaced` is the
    /// report of the run without a rate.
    pub(super) fn at(
        &self,
        rate: u64,
        (name, is_even): (&str, bool),
        target: Option<&StudyTarget>,
        time: Duration,
        unpaced: &RunReport,
    ) -> Step {
        let process = if is_even { "linear" } else { "poisson" };
        let arrivals = [(job::Pace::rate_process, process), (job::Pace::rate_arrivals, "open")];
        let step = match (self, target) {
            (Load::Pattern(workload), Some(target)) => {
                let rate = rate.to_string();
                let paced =
                    [[(job::Pace::rate_iops, rate.as_str())].as_slice(), arrivals.as_slice()].concat();
                workload.step(name, target, &paced, time)
            }
            (Load::Pattern(_), None) => Step::measure(name, Vec::new(), time),
            (Load::Job(sections), _) => {
                let sections = sections.iter().flat_map(|section| at_rate(section, rate, unpaced));
                let sections = sections.map(|section| section.with(arrivals)).collect();
                Step::measure(name, bounded(sections, target, time), time)
            }
        };
        first_waits(step)
    }
}

impl Workload {
    fn step(
        &self,
        name: &str,
        target: &StudyTarget,
        paced: &[(&'static Spec, &str)],
        time: Duration,
    ) -> Step {
        let Workload { pattern, block_bytes, depth } = self;
        let (bytes, depth) = (block_bytes.to_string(), depth.to_string());
        let options = [
            (job::Access::rw, pattern.as_str()),
            (job::Blocks::bs, bytes.as_str()),
            (job::Queue::iodepth, depth.as_str()),
        ];
        target.run(name, target.engine, &[options.as_slice(), paced].concat(), time)
    }
}

/// The pattern of a section without its suffix, and that suffix: `randread`, `:8`.
fn pattern(section: &Section) -> (String, String) {
    let rw = section.last(job::Access::rw).and_then(Setting::text).unwrap_or(job::Access::rw.default);
    let at = rw.find(':').unwrap_or(rw.len());
    (rw[..at].to_string(), rw[at..].to_string())
}

fn check(section: &Section, is_later: bool) -> Result<(), String> {
    if let Some(setting) = section.settings().find(|setting| setting.spec.is_one_of(&BINDING)) {
        return Err(format!("{} does not go with a search for the rate; remove it", setting.spec.name));
    }
    let waits = [job::Process::stonewall, job::Time::startdelay];
    if let Some(setting) = section.settings().find(|setting| is_later && setting.spec.is_one_of(&waits)) {
        let name = setting.spec.name;
        return Err(format!("with {name} jobs do not run together, and have no rate in common; remove it"));
    }
    let (rw, _) = pattern(section);
    let is_known = PATTERNS.iter().any(|(name, _)| *name == rw) || MIXES.iter().any(|(name, _)| *name == rw);
    if !is_known {
        let known = PATTERNS.iter().map(|(name, _)| *name).chain(MIXES.iter().map(|(name, _)| *name));
        return Err(format!("rw={rw} is not one of {}", known.collect::<Vec<_>>().join(", ")));
    }
    Ok(())
}

/// Sections that run for this time, on the target if there is one.
fn bounded(mut sections: Vec<Section>, target: Option<&StudyTarget>, time: Duration) -> Vec<Section> {
    let is_kept = |setting: &Setting| setting.spec != job::General::name && !setting.spec.is_one_of(&ENDS);
    change_settings(&mut sections, |setting| is_kept(setting).then(|| setting.clone()));
    sections.into_iter().map(|section| with_end(section, target, time)).collect()
}

/// With what ends the section after this time.
fn with_end(mut section: Section, target: Option<&StudyTarget>, time: Duration) -> Section {
    let is_given = |options: &[&Spec]| section.settings().any(|setting| setting.spec.is_one_of(options));
    let mut added = vec![
        (job::Time::time_based, "1".to_string()),
        (job::Time::runtime, format!("{}ms", time.as_millis().max(1))),
        // Each job has a rate of its own, by what it did without.
        (job::Measure::group_reporting, "0".to_string()),
    ];
    if let Some(target) = target {
        if !is_given(&[job::Amount::size]) {
            added.push((job::Amount::size, target.size_bytes.to_string()));
        }
        if !is_given(&[job::Access::direct, job::Access::buffered]) {
            added.push((job::Access::direct, u8::from(target.direct).to_string()));
        }
        section.files = vec![target.file.clone()];
    }
    section.with(added)
}

/// In one job file with all runs, as a dry run prints it, each run waits for the one before.
fn first_waits(mut step: Step) -> Step {
    let has_it = |section: &Section| section.last(job::Process::stonewall).is_some();
    if let Some(first) = step.sections.first_mut().filter(|first| !has_it(first)) {
        first.own.push(Setting::new(job::Process::stonewall, "1"));
    }
    step
}

/// A section at its share of a rate. One that mixes reads and writes becomes two, since the arrivals of either do not wait
/// for those of the other.
fn at_rate(section: &Section, rate: u64, unpaced: &RunReport) -> Vec<Section> {
    let (rw, suffix) = pattern(section);
    let name = path::text(&section.name);
    let mix = MIXES.iter().find(|(mix, _)| *mix == rw);
    let parts: Vec<&str> = match mix {
        Some((_, parts)) => parts.to_vec(),
        None => vec![rw.as_str()],
    };
    let of = |part: &str| {
        let direction =
            PATTERNS.iter().find(|(name, _)| *name == part).map_or(0, |(_, direction)| *direction);
        let rate = per_worker(unpaced, &name, direction, rate);
        let mut section = section.clone();
        if mix.is_some() {
            section.name.push(format!("-{part}"));
        }
        section.with([(job::Access::rw, format!("{part}{suffix}")), (job::Pace::rate_iops, rate.to_string())])
    };
    parts.into_iter().map(of).collect()
}

/// The rate of one of the workers with this name, by what they did of everything in the run without a rate.
fn per_worker(unpaced: &RunReport, name: &str, direction: usize, rate: u64) -> u64 {
    let all: u64 = unpaced.jobs.iter().flat_map(|job| &job.stats.directions).map(|of| of.ios).sum();
    let workers = || unpaced.jobs.iter().filter(|job| job.name == name);
    let own: u64 = workers().map(|job| job.stats.directions[direction].ios).sum();
    let share = own as f64 / all.max(1) as f64 / workers().count().max(1) as f64;
    u64::capped((rate as f64 * share).round()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{direction, report, settings, target};

    fn section(name: &str, options: &[(&'static Spec, &str)]) -> Section {
        Section::new(name).with(options.iter().copied())
    }

    fn checked(sections: Vec<Section>) -> String {
        Load::Job(sections).check().err().unwrap_or_default()
    }

    #[test]
    fn a_mix_becomes_two_jobs_at_their_shares() {
        let mut unpaced = report(Some(direction(6000, 8192, 1000)), Some(direction(2000, 8192, 1000)));
        unpaced.jobs[0].name = "mix".to_string();
        unpaced.jobs.push(unpaced.jobs[0].clone());
        unpaced.jobs.extend(report(Some(direction(4000, 4096, 1000)), None).jobs);
        unpaced.jobs[2].name = "reader".to_string();
        let job = Load::Job(vec![
            section(
                "mix",
                &[(job::Access::rw, "randrw"), (job::Blocks::bs, "8k"), (job::Time::runtime, "9")],
            ),
            section("reader", &[(job::Access::rw, "read:4"), (job::Amount::size, "1m")]),
        ]);
        let second = Duration::from_secs(1);
        let step = job.at(1000, ("1000", false), Some(&target()), second, &unpaced);
        let common = "rate_process=poisson rate_arrivals=open time_based=1 runtime=1000ms group_reporting=0";
        let own = "size=1073741824 direct=1";
        assert_eq!(
            settings(&step),
            format!(
                "[mix-randread] rw=randrw bs=8k rw=randread rate_iops=300 {common} {own} stonewall=1\n\
                 [mix-randwrite] rw=randrw bs=8k rw=randwrite rate_iops=100 {common} {own}\n\
                 [reader] rw=read:4 size=1m rw=read:4 rate_iops=200 {common} direct=1"
            )
        );
        assert!(step.sections.iter().all(|section| section.files == [target().file]));
        let own_files = job.at(1, ("1", true), None, second, &unpaced);
        assert!(own_files.sections.iter().all(|section| section.files.is_empty()));
        assert!(settings(&own_files).contains("rate_iops=1 rate_process=linear"), "never without a rate");
    }

    #[test]
    fn a_job_whose_rate_cannot_be_searched_is_refused() {
        assert_eq!(checked(vec![section("a", &[]), section("b", &[(job::Access::rw, "randrw")])]), "");
        let paced = checked(vec![section("a", &[(job::Pace::rate_iops, "5")])]);
        assert_eq!(paced, "job a: rate_iops does not go with a search for the rate; remove it");
        let staged = checked(vec![section("a", &[]), section("b", &[(job::Process::stonewall, "1")])]);
        assert!(staged.starts_with("job b: with stonewall jobs do not run together"), "{staged}");
        assert_eq!(
            checked(vec![section("a", &[(job::Process::stonewall, "1")])]),
            "",
            "nothing is before it"
        );
        assert!(
            checked(vec![section("a", &[(job::Access::rw, "trimwrite")])]).contains("is not one of read,")
        );
        assert_eq!(checked(vec![section("a", &[]), section("a", &[])]), "two jobs are called a; rename one");
    }

    #[test]
    fn a_job_modifies_what_any_of_its_sections_writes() {
        let modifies = |rw| Load::Job(vec![section("a", &[(job::Access::rw, rw)])]).modifies();
        assert!(!modifies("randread:8") && modifies("randrw") && modifies("write") && modifies("trim"));
    }
}
