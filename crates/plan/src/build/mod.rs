//! Sections and facts to a plan: every clone of every section becomes a job, or everything wrong is told.
//!
//! Invariant: no system call, no clock, no randomness but what is passed in; all problems are collected before
//! any of them stops the plan.

pub(crate) mod blocks;
mod buffers;
mod logs;
mod measure;
mod names;
mod pace;
mod process;
mod queue;
mod schedule;
mod size;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod targets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fiord_options::job;
use fiord_options::{Problem, Section};

use crate::engine::EngineSettings;
use crate::facts::{Facts, Needs, RunSettings};
use crate::job::{Job, Plan};
use crate::rules;
use crate::touch;
use schedule::Grouping;
use source::Source;
use targets::{Trouble, Worker};

/// Clones whose files `needs` asks about: no run has more, and a slip of the keyboard should not cost gigabytes.
const CLONES_ASKED_MAX: u32 = 65_536;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Everything wrong, warnings included, in the order of the sections.
    pub problems: Vec<Problem>,
    /// Something would have been destroyed: a path to be written to is mounted or otherwise in use.
    pub unsafe_target: bool,
}

/// The name a clone is reported, logged and waited for by. A section's own `name` is the first clone's alone; the
/// others, and the files of all, go by the section (as fio 3.33 has it). One that is inherited says nothing.
fn worker_name<'a>(source: &Source<'a>, clone: u32) -> &'a str {
    let named = source.section.own.iter().any(|setting| setting.spec.name == "name");
    match &source.options.name {
        Some(name) if named && clone == 0 => name.as_str(),
        _ => &source.section.name,
    }
}

/// What the host must be asked before `build`. Sections that are wrong ask for what they still can; `build` says
/// what is wrong with them.
pub fn needs(sections: &[Section]) -> Needs {
    let mut paths = BTreeSet::new();
    let mut directories = BTreeSet::new();
    let mut contents = BTreeSet::new();
    let mut workers = 0;
    for section in sections {
        let (options, given, _) = job::resolve(section);
        let source = Source { section, options: &options, given: &given };
        contents.extend(buffers::pattern_files(&options));
        let naming = targets::naming(&source);
        paths.extend(naming.directories().into_iter().map(PathBuf::from));
        paths.extend(outputs(&source, workers));
        workers += options.numjobs.min(CLONES_ASKED_MAX);
        if let Some(directory) = options.opendir.as_ref().filter(|_| naming.paths.is_empty()) {
            directories.insert(PathBuf::from(directory.as_str()));
            continue;
        }
        // An engine that touches no file need not know what is there.
        if queue::engine(&options) == Some(EngineSettings::Null) {
            continue;
        }
        for clone in 0..options.numjobs.min(CLONES_ASKED_MAX) {
            for file in naming.files(clone) {
                paths.extend(targets::ancestors(&file));
                paths.insert(file);
            }
            if naming.is_shared() {
                break;
            }
        }
    }
    Needs {
        paths: paths.into_iter().collect(),
        directories: directories.into_iter().collect(),
        contents: contents.into_iter().collect(),
    }
}

/// What is wrong with sections that write or trim when nothing may be (`--readonly`). Asks no facts, so that it can be
/// said where nothing is run.
pub fn forbidden_by_readonly(sections: &[Section]) -> Vec<Problem> {
    let check = |section: &Section| {
        let (options, given, _) = job::resolve(section);
        modifies(&Source { section, options: &options, given: &given })
    };
    sections.iter().filter_map(check).collect()
}

fn modifies(source: &Source<'_>) -> Option<Problem> {
    let kind = source.options.rw.kind;
    stream::pattern(kind).modifies().then(|| {
        let message = format!("rw={} writes or trims, which --readonly forbids", kind.word());
        source.error("rw", message, "leave out --readonly, or use rw=read or rw=randread")
    })
}

/// What the workers of a section make beside their files. The first of them has the number `first`.
fn outputs(source: &Source<'_>, first: u32) -> BTreeSet<PathBuf> {
    let options = source.options;
    let memory = buffers::memory(options);
    let mut paths: BTreeSet<PathBuf> = touch::buffer_file(&memory).map(PathBuf::from).into_iter().collect();
    let measure = measure::measure(source);
    for clone in 0..options.numjobs.min(CLONES_ASKED_MAX) {
        let name = worker_name(source, clone);
        let commands = ["exec_prerun", "exec_postrun"].into_iter().filter(|option| source.is_given(option));
        let outputs = commands.map(|option| touch::exec_log(name, option));
        let logs = logs::files(source, name, first.saturating_add(clone), &measure);
        let before = paths.len();
        paths.extend(outputs.chain(logs.into_iter().map(|log| log.path)));
        // The clones behind the second make nothing that is called otherwise.
        if clone > 0 && paths.len() == before {
            break;
        }
    }
    paths
}

/// Makes the plan of a run, and says what is odd about it. `waiting` are the sections that begin a stonewall
/// without saying so: the first of each job file after the first.
///
/// What is wrong with the options, and what endangers data, refuses the whole run. Targets that are not what a job needs
/// are that job's error, as in fio: it is in the plan as [`Unplannable`](crate::Unplannable), and the others run.
pub fn build(
    sections: &[Section],
    waiting: &[usize],
    facts: &Facts,
    run: &RunSettings,
) -> Result<(Plan, Vec<Problem>), Refusal> {
    let mut builder = Builder {
        facts,
        run,
        jobs: Vec::new(),
        trouble: Trouble::default(),
        grouping: Grouping::default(),
        laid_out: BTreeMap::new(),
        names: Vec::new(),
    };
    for (number, section) in sections.iter().enumerate() {
        builder.section(number as u32, section, waiting.contains(&number));
    }
    let Builder { jobs, trouble, .. } = builder;
    match trouble.stops_all_since(0) {
        true => {
            Err(Refusal { unsafe_target: trouble.endangers, problems: without_repeats(trouble.problems) })
        }
        false => Ok((Plan { jobs }, without_repeats(trouble.into_warnings()))),
    }
}

/// Clones say the same thing, and sections inherit the same mistake: once is enough.
fn without_repeats(problems: Vec<Problem>) -> Vec<Problem> {
    let mut unique: Vec<Problem> = Vec::with_capacity(problems.len());
    for problem in problems {
        if !unique.contains(&problem) {
            unique.push(problem);
        }
    }
    unique
}

/// The plan as far as it has come.
struct Builder<'a> {
    facts: &'a Facts,
    run: &'a RunSettings,
    jobs: Vec<Job>,
    trouble: Trouble,
    grouping: Grouping,
    /// What the workers so far will have made of each path, in bytes.
    laid_out: BTreeMap<PathBuf, u64>,
    /// Names of the first workers of the sections so far, for `wait_for`.
    names: Vec<String>,
}

impl Builder<'_> {
    fn section(&mut self, number: u32, section: &Section, waits: bool) {
        let (options, given, problems) = job::resolve(section);
        let source = Source { section, options: &options, given: &given };
        let before = self.trouble.problems.len();
        self.trouble.problems.extend(problems);
        self.trouble.problems.extend(rules::all(&source));
        self.trouble.problems.extend(self.among_sections(&source));
        self.names.push(worker_name(&source, 0).to_string());
        let mut before_clone = before;
        for clone in 0..options.numjobs {
            self.worker(&source, number, clone, waits);
            // What is wrong with one clone is wrong with all.
            if self.errors_since(before_clone) {
                break;
            }
            before_clone = self.trouble.problems.len();
        }
    }

    fn errors_since(&self, before: usize) -> bool {
        self.trouble.stops_all_since(before)
    }

    /// Rules between this section and the run or the sections before it.
    fn among_sections(&self, source: &Source<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let options = source.options;
        if self.run.readonly {
            problems.extend(modifies(source));
        }
        if let Some(awaited) = options.wait_for.as_ref().map(|name| name.as_str()) {
            if awaited == source.section.name {
                problems.push(source.error(
                    "wait_for",
                    format!("a job cannot wait for itself ({awaited})"),
                    "",
                ));
            } else if !self.names.iter().any(|name| name == awaited) {
                let message = format!("there is no job {awaited:?} before it to wait for");
                let remedy = match self.names.is_empty() {
                    true => String::new(),
                    false => format!("jobs before it: {}", self.names.join(", ")),
                };
                problems.push(source.error("wait_for", message, remedy));
            }
        }
        let workers = self.jobs.len() as u64 + u64::from(options.numjobs);
        if let Some(most) = self.run.max_jobs.filter(|most| workers > u64::from(*most)) {
            let message = format!("{workers} workers are more than the {most} allowed");
            problems.push(source.error("numjobs", message, "raise --max-jobs, or lower numjobs"));
        }
        problems
    }

    fn worker(&mut self, source: &Source<'_>, section: u32, clone: u32, waits: bool) {
        let options = source.options;
        let number = self.jobs.len() as u32;
        let name = worker_name(source, clone);
        let Some(engine) = queue::engine(options) else { return };
        let access = stream::access(source, number, self.run, &mut self.trouble.problems);
        let readonly = self.run.readonly;
        let worker = Worker { source, engine: &engine, access: &access, clone, facts: self.facts, readonly };
        let targets = worker.targets(&mut self.laid_out, &mut self.trouble);
        let problems = &mut self.trouble.problems;
        let process = process::process(source, clone, self.facts, problems);
        let measure = measure::measure(source);
        let memory_align_bytes = targets.as_ref().map_or(1, |targets| targets.memory_align_bytes);
        let buffers = buffers::buffers(source, &access, memory_align_bytes, self.facts, problems);
        let Some(targets) = targets else { return };
        let stonewall = clone == 0 && (options.stonewall.0 || waits);
        let begins_group = stonewall || (clone == 0 && options.new_group.0);
        let (group_id, joins) = self.grouping.next(begins_group, options.group_reporting.0);
        let differs = |last: &Job| last.measure.total_percentiles != measure.total_percentiles;
        if joins && self.jobs.last().is_some_and(differs) {
            let message = "lat_percentiles differs within a group, which is reported as one job";
            let remedy = "give it to all sections of the group, or begin a group with new_group or stonewall";
            self.trouble.problems.push(source.error("lat_percentiles", message, remedy));
        }
        let mut job = Job {
            name: name.to_string(),
            description: options.description.as_ref().map(|text| text.as_str().to_string()),
            number,
            section,
            clone,
            group_id,
            unplannable: targets.unplannable,
            depth: queue::depth(wanted_depth(source), is_queued(&engine)),
            files: targets.files,
            buffers,
            limits: schedule::limits(options, targets.pass_bytes, targets.loop_bytes),
            pace: pace::pace(source, &access),
            schedule: schedule::schedule(options, stonewall),
            errors: measure::errors(options),
            logs: logs::logs(source, name, number, &measure, &process),
            measure,
            process,
            presentation: measure::presentation(source, &access),
            engine,
            access,
        };
        self.refuse(source, &job);
        if job.unplannable.is_some() {
            job.files.list.clear();
        }
        self.jobs.push(job);
    }

    /// Tells of every path that the job must not touch as it would.
    fn refuse(&mut self, source: &Source<'_>, job: &Job) {
        for touch in touch::touches(job) {
            let known = self.facts.path(&touch.path);
            let allowed = job.files.allow_in_use;
            if let Some(refused) = touch::refusal(&touch.path, touch.deed, &known, allowed) {
                self.trouble.endangers |= refused.endangers;
                self.trouble.problems.push(source.error(touch.option, refused.message, refused.remedy));
            }
        }
    }
}

/// Whether the engine keeps several I/Os in flight.
fn is_queued(engine: &EngineSettings) -> bool {
    matches!(engine, EngineSettings::Libaio(_) | EngineSettings::IoUring(_) | EngineSettings::Null)
}

fn wanted_depth(source: &Source<'_>) -> queue::WantedDepth {
    let options = source.options;
    let given = |name: &str, number: u32| source.is_given(name).then_some(number);
    queue::WantedDepth {
        depth: options.iodepth,
        submit: given("iodepth_batch", options.iodepth_batch),
        complete_min: given("iodepth_batch_complete_min", options.iodepth_batch_complete_min),
        complete_max: options.iodepth_batch_complete_max,
        low: options.iodepth_low,
    }
}
