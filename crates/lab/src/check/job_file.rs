//! A check's job file, cut into the stages that are run one after another.
//!
//! Invariant: a job file is parsed once and contains no path of the user's; a placed stage differs from it only in its
//! files, times, sizes, direct I/O and stonewall.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use fiord_compare::figure::{DirectionName, Subject};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::toml::Source;
use fiord_options::value::{Bytes, EngineName, PerDirection, Reading, Seconds, Size, Value};
use fiord_options::{
    Place, Problem, ProblemKind, ProblemLevel, Section, Setting, Spec, change_settings, cli, engine, job,
};
use fiord_report::path;

use super::expression::Quantity;

/// Where a profile is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProfileTarget {
    /// The directory for its files.
    pub directory: PathBuf,
    /// Whether direct I/O works there.
    pub direct: bool,
    /// The size of its large files, in bytes.
    pub size_bytes: u64,
}

/// The size of large files as job files give it.
const LARGE: &str = "1g";

/// The space a profile's files take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Of files whose size is fixed, in bytes.
    pub fixed_bytes: u64,
    /// The number of files whose size the user may choose.
    pub files: u64,
    /// The largest block that is read from or written to one of these, in bytes.
    pub block_bytes: u64,
}

/// Jobs that run concurrently.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Its first job.
    pub name: String,
    /// Its jobs, with what they inherit.
    sections: Vec<Section>,
    /// What they can be asked for, in the same order.
    pub jobs: Vec<Job>,
    /// The most seconds it runs; 0 if it runs until everything is written.
    pub seconds: u64,
}

/// What a job does, as far as its figures depend on it.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub name: String,
    /// Whether it reads, writes and trims.
    directions: [bool; 3],
    syncs: bool,
    has_rate: bool,
    /// The name of its file, and whether that is removed when the job ends.
    file: (String, bool),
    /// Its largest block, in bytes.
    block_bytes: u64,
    /// The size of its file in bytes; `None` for the size that the user may choose.
    size_bytes: Option<u64>,
}

impl Job {
    /// Whether it does the I/O that the quantity is of.
    pub(super) fn can_measure(&self, quantity: Quantity) -> bool {
        let [reads, writes, trims] = self.directions;
        let does = match quantity.subject() {
            _ if quantity.is_count() => false,
            Subject::Direction(DirectionName::Read) => reads,
            Subject::Direction(DirectionName::Write) => writes,
            Subject::Direction(DirectionName::Trim) => trims,
            Subject::Direction(DirectionName::Mixed) | Subject::Energy | Subject::Job => false,
            Subject::Sync => self.syncs && writes,
        };
        does && (self.has_rate || !matches!(quantity, Quantity::ShareOfRate(_)))
    }
}

/// Most workers of all jobs together.
const WORKERS_MAX: u64 = 4096;

/// Most bytes of a file name on Linux.
const NAME_BYTES_MAX: usize = 255;

/// Options that name files elsewhere, start programs, change the machine or have many files: a check has its own files, and
/// nothing else.
const REFUSED: [&Spec; 16] = [
    engine::Exec::program,
    job::Files::ioscheduler,
    job::Files::directory,
    job::Files::filename_format,
    job::Files::opendir,
    job::Files::nrfiles,
    job::Amount::filesize,
    job::Replay::read_iolog,
    job::Replay::write_iolog,
    job::Measure::write_bw_log,
    job::Measure::write_lat_log,
    job::Measure::write_iops_log,
    job::Measure::write_hist_log,
    job::Process::exec_prerun,
    job::Process::exec_postrun,
    job::Replay::replay_redirect,
];

/// The stages of the job file at this place of a check file, which begin at the sections with a `stonewall`. What is wrong
/// with it is added to the problems, warnings included: a check that may mean something else than it says is none.
pub(super) fn read(source: &mut Source<'_>, jobs: &str, span: Range<usize>) -> Vec<Stage> {
    // Lines in front of it give each line the number that it has in the check file.
    let quotes = source.text.get(span.clone()).map_or(0, |raw| raw.find(jobs).unwrap_or(0));
    let lines = source.place(span.start + quotes).line.saturating_sub(1);
    let numbered = "\n".repeat(lines as usize) + jobs;
    let path = source.name.clone();
    let read_file = |name: &OsStr| match name == &*path {
        true => Ok(numbered.clone().into_bytes()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "a check file includes no other")),
    };
    let engines: Vec<EngineName> =
        EngineName::ALL.iter().copied().filter(|engine| engine.refusal().is_none()).collect();
    let environment = Environment {
        files: &read_file,
        variables: &|_| None,
        keywords: KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 4096 },
        engines: &engines,
    };
    let parsed = match cli::read(&[&*path], &environment) {
        Ok(parsed) => parsed,
        Err(problems) => {
            source.problems.extend(problems.into_iter().map(without_include));
            return Vec::new();
        }
    };
    for mut problem in parsed.warnings.iter().cloned().chain(cli::check(&parsed, &engines)) {
        problem.level = ProblemLevel::Error;
        source.problems.push(problem);
    }
    if parsed.sections.is_empty() {
        source.error(span.start, "jobs has no section", "add [job] and its options below it");
    }
    if is_too_many(source, &parsed.sections) {
        return Vec::new();
    }
    let mut stages: Vec<Stage> = Vec::new();
    for section in parsed.sections {
        let Some(job) = job_of(source, &section) else { continue };
        if stages.iter().flat_map(|stage| &stage.jobs).any(|known| known.name == job.name) {
            let what = format!("two jobs are called {:?}", job.name);
            refuse(source, &section.place, what, "give each a name of its own: figures are named by it");
        }
        let seconds = text(&section, job::Time::runtime).map_or(0, seconds);
        let begins = section.last(job::Process::stonewall).is_some();
        match stages.last_mut() {
            Some(stage) if !begins => {
                stage.sections.push(section);
                stage.jobs.push(job);
                stage.seconds = stage.seconds.max(seconds);
            }
            _ => stages.push(Stage {
                name: job.name.clone(),
                sections: vec![section],
                jobs: vec![job],
                seconds,
            }),
        }
    }
    if source.problems.is_empty() && stages.iter().all(|stage| stage.seconds == 0) {
        source.error(
            span.start,
            "no job has a time, so that none is measured",
            "add runtime=10 and time_based=1 to those that are",
        );
    }
    stages
}

/// The largest of the block sizes of reads, writes and trims, in bytes.
fn block_bytes(text: &str) -> u64 {
    let sizes = PerDirection::<Bytes>::parse(text, &mut Reading::default());
    sizes.map_or(0, |sizes| {
        [sizes.read, sizes.write, sizes.trim].into_iter().flatten().map(|size| size.0).max().unwrap_or(0)
    })
}

/// What to do about a file that cannot be included: a check is one file.
fn without_include(problem: Problem) -> Problem {
    match problem.kind {
        ProblemKind::Unreadable => {
            let remedy = "write the lines of that file in place of the include";
            Problem::error(problem.kind, problem.place.clone(), None, problem.message(), remedy)
        }
        _ => problem,
    }
}

/// Refuses jobs with so many workers that the machine would run out of memory before any of them did I/O.
fn is_too_many(source: &mut Source<'_>, sections: &[Section]) -> bool {
    let mut workers: u64 = 0;
    let is_beyond = |section: &&Section| {
        let clones =
            text(section, job::General::numjobs).map(|text| u32::parse(text, &mut Reading::default()));
        workers += clones.and_then(Result::ok).map_or(1, u64::from);
        workers > WORKERS_MAX
    };
    let Some(section) = sections.iter().find(is_beyond) else { return false };
    let place = section.last(job::General::numjobs).map_or(&section.place, |setting| &setting.value_place);
    let what = format!("the jobs have more than {WORKERS_MAX} workers");
    refuse(source, place, what, "lower numjobs, or write fewer jobs");
    true
}

/// A run time in seconds, at least one.
fn seconds(text: &str) -> u64 {
    let seconds = Seconds::parse(text, &mut Reading::default()).map_or(0, |seconds| seconds.us);
    seconds.div_ceil(1_000_000)
}

/// What a section does; `None` if it cannot be a job of a check.
fn job_of(source: &mut Source<'_>, section: &Section) -> Option<Job> {
    let mut is_refused = false;
    for setting in section.settings().filter(|setting| setting.spec.is_one_of(&REFUSED)) {
        is_refused = true;
        let what = format!(
            "{} cannot be used in a check, whose jobs have one file each in a directory of its own and change nothing else",
            setting.spec.name
        );
        refuse(source, &setting.place, what, "remove it");
    }
    let name = path::text(&section.name);
    let file = text(section, job::Files::filename).unwrap_or(&name).to_string();
    if file.contains(['/', ':', '\\']) || file.starts_with('.') || file.len() > NAME_BYTES_MAX {
        let place = section.last(job::Files::filename).map_or(&section.place, |setting| &setting.value_place);
        refuse(
            source,
            place,
            format!("{file:?} is not a plain file name"),
            "write a short one without / and :, such as filename=data",
        );
        is_refused = true;
    }
    let size = section.last(job::Amount::size);
    let size_bytes = match size.and_then(Setting::text) {
        Some(LARGE) => Some(None),
        Some(text) => match Size::parse(text, &mut Reading::default()) {
            Ok(Size::Bytes(bytes)) if bytes > 0 => Some(Some(bytes)),
            _ => None,
        },
        None => None,
    };
    if size_bytes.is_none() {
        let place = size.map_or(&section.place, |setting| &setting.value_place).clone();
        refuse(
            source,
            &place,
            format!("job {name}: a check needs the size of its files"),
            "write size=1g, which --size changes, or a fixed size such as size=22m",
        );
    }
    let pattern = text(section, job::Access::rw).unwrap_or("read");
    let pattern = pattern.split(':').next().unwrap_or_default();
    let both = matches!(pattern, "rw" | "readwrite" | "randrw");
    let directions =
        [both || pattern.ends_with("read"), both || pattern.ends_with("write"), pattern.contains("trim")];
    let is_set = |option| text(section, option).is_some_and(|value| value != "0");
    let syncs =
        [job::Access::fsync, job::Access::fdatasync, job::Access::sync_file_range].into_iter().any(is_set);
    let removed = section.last(job::Files::unlink).is_some_and(|setting| setting.text() != Some("0"));
    let has_rate = is_set(job::Pace::rate);
    (!is_refused).then_some(Job {
        name,
        directions,
        syncs,
        has_rate,
        file: (file, removed),
        block_bytes: text(section, job::Blocks::bs).map_or(0, block_bytes),
        size_bytes: size_bytes?,
    })
}

fn refuse(source: &mut Source<'_>, place: &Place, what: String, remedy: &str) {
    source.problems.push(Problem::error(ProblemKind::InvalidValue, place.clone(), None, what, remedy));
}

/// The space that the files of these stages take at the same time.
pub(super) fn space(stages: &[Stage]) -> Space {
    let mut kept: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    let mut removed_bytes = 0;
    let larger = |one: Option<u64>, other: Option<u64>| Some(one?.max(other?));
    for stage in stages {
        let mut removed: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for job in &stage.jobs {
            let (name, is_removed) = &job.file;
            // A file whose size may be chosen has a fixed part of the directory, removed or not.
            let files = if *is_removed && job.size_bytes.is_some() { &mut removed } else { &mut kept };
            let size = files.entry(name).or_insert(job.size_bytes);
            *size = larger(*size, job.size_bytes);
        }
        let bytes = removed.values().flatten().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        removed_bytes = bytes.max(removed_bytes);
    }
    let kept_bytes = kept.values().flatten().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let chosen = stages.iter().flat_map(|stage| &stage.jobs).filter(|job| job.size_bytes.is_none());
    Space {
        fixed_bytes: kept_bytes.saturating_add(removed_bytes),
        files: kept.values().filter(|size| size.is_none()).count() as u64,
        block_bytes: chosen.map(|job| job.block_bytes).max().unwrap_or(0),
    }
}

/// The value of an option in force.
fn text<'a>(section: &'a Section, option: &Spec) -> Option<&'a str> {
    section.last(option)?.text()
}

impl Stage {
    /// Its jobs with their files in this place and with this run time, after all earlier jobs.
    pub fn placed(&self, place: &ProfileTarget, time: Duration) -> Vec<Section> {
        let mut sections = self.sections.clone();
        for section in &mut sections {
            // The file of a job without `filename` has the job's name.
            let file = text(section, job::Files::filename).map_or(section.name.as_os_str(), OsStr::new);
            section.files = vec![place.directory.join(file)];
        }
        change_settings(&mut sections, |setting| placed(setting, place, time));
        if let Some(first) =
            sections.first_mut().filter(|first| first.last(job::Process::stonewall).is_none())
        {
            first.own.push(Setting::new(job::Process::stonewall, "1"));
        }
        sections
    }
}

/// A setting of a job in this place, with this run time; `None` for the name of a file elsewhere.
fn placed(setting: &Setting, place: &ProfileTarget, time: Duration) -> Option<Setting> {
    let is = |option, value| setting.spec == option && setting.text() == Some(value);
    let value = if setting.spec == job::Files::filename {
        return None;
    } else if is(job::Access::direct, "1") {
        u8::from(place.direct).to_string()
    } else if is(job::Amount::size, LARGE) {
        place.size_bytes.to_string()
    } else if setting.spec == job::Time::runtime {
        format!("{}ms", time.as_millis().max(1))
    } else {
        return Some(setting.clone());
    };
    Some(Setting { value: Some(value.into()), ..setting.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;
    use crate::testing::settings;

    const FILE: &str = "# Why\n[global]\nsize=1g\ndirect=1\n\n[a]\nruntime=3\n\n\
                        [b]\nstonewall=1\nruntime=4\nfilename=f\n[c]\nruntime=5\ndirect=0\n";

    fn stages(jobs: &str) -> Vec<Stage> {
        let mut source = Source::new(OsStr::new("a.toml"), jobs);
        let stages = read(&mut source, jobs, 0..jobs.len());
        assert!(source.problems.is_empty(), "{:?}", source.problems);
        stages
    }

    fn text(sections: &[Section]) -> String {
        settings(&Step::prepare("", sections.to_vec()))
    }

    #[test]
    fn a_stage_ends_before_the_next_stonewall() {
        let stages = stages(FILE);
        let found: Vec<_> = stages.iter().map(|stage| (stage.name.as_str(), stage.seconds)).collect();
        assert_eq!(found, [("a", 3), ("b", 5)]);
        assert_eq!(text(&stages[0].sections), "[a] size=1g direct=1 runtime=3");
        assert_eq!(
            text(&stages[1].sections),
            "[b] size=1g direct=1 stonewall=1 runtime=4 filename=f\n[c] size=1g direct=1 runtime=5 direct=0"
        );
    }

    #[test]
    fn a_place_changes_only_files_size_direct_and_time() {
        let place =
            ProfileTarget { directory: PathBuf::from("/a:b;#$ncpus"), direct: false, size_bytes: 4096 };
        let placed = |stage: usize| stages(FILE)[stage].placed(&place, Duration::from_millis(1500));
        assert_eq!(text(&placed(0)), "[a] size=4096 direct=0 runtime=1500ms stonewall=1");
        assert_eq!(placed(0)[0].files, [PathBuf::from("/a:b;#$ncpus/a")]);
        assert_eq!(
            text(&placed(1)),
            "[b] size=4096 direct=0 stonewall=1 runtime=1500ms\n[c] size=4096 direct=0 runtime=1500ms direct=0"
        );
        assert_eq!(placed(1)[0].files, [PathBuf::from("/a:b;#$ncpus/f")]);
    }
}
