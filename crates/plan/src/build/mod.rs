//! Sections and facts to a plan: every clone of every section becomes a job, or all problems are reported.
//!
//! Invariant: no system call, no clock, no randomness but what is passed in; all problems are collected before
//! any of them stops the plan.

use fiord_stats::{Capped, Gather};

mod blocks;
mod buffers;
mod connection;
mod diagnostics;
mod logs;
mod measure;
mod names;
mod opening;
mod pace;
mod priority;
mod process;
mod queue;
mod replay;
mod rules;
mod schedule;
mod section;
mod size;
mod space;
mod sprandom;
mod steady;
mod stream;
mod target_limits;
mod targets;
#[cfg(test)]
mod tests;
mod verification;
mod writers;
mod written;
mod zoned;
mod zones;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use fiord_errno::Errno;
use fiord_options::job::JobOptions;
use fiord_options::shown::shown;
use fiord_options::{Given, Problem, ProblemKind, Resolver, Section, Spec, job, without_repeats};

pub use self::logs::log_path;

use self::diagnostics::Diagnostics;
use self::replay::Replayed;
use self::rules::conditions::{self, Judgements};
use self::schedule::Grouping;
use self::section::ResolvedSection;
use self::space::LaidOut;
use self::targets::PlannedWorker;
use crate::engine::{Engines, PlannedEngine};
use crate::facts::{Facts, GeometryNeed, Needs, RunSettings};
use crate::job::{Buffers, Job, Measure, Plan};
use crate::path_change::{self, Hook};
use crate::replay::TraceNeed;

/// Maximum number of workers of a run without `--max-jobs`, and of clones whose files `needs` lists: a typing error should not
/// cost gigabytes.
const WORKERS_MAX: u32 = 65_536;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Everything wrong, warnings included, in the order of the sections.
    pub problems: Vec<Problem>,
    /// Data would have been destroyed: a path to be written to is mounted or otherwise in use.
    pub unsafe_target: bool,
}

/// The facts about the host that `build` needs, in a program with these engines. Sections with errors contribute what
/// they can; `build` reports their errors.
pub fn needs(sections: &[Section], engines: Engines, run: &RunSettings) -> Needs {
    let mut paths = BTreeSet::new();
    let mut directories = BTreeSet::new();
    let mut contents = BTreeSet::new();
    let mut traces = BTreeSet::new();
    let mut geometries = Vec::new();
    let mut workers = 0;
    let mut resolver = Resolver::new(&engines.names());
    for parsed in sections {
        let (options, given, _) = resolver.job(parsed);
        let section = ResolvedSection { parsed, options: &options, given: &given, engines };
        contents.extend(buffers::pattern_files(&options));
        let naming = targets::naming(&section);
        paths.extend(naming.directories());
        paths.extend(outputs(&section, workers, run));
        let clones = options.general.numjobs.min(WORKERS_MAX);
        workers += clones;
        if options.replay.read_iolog.is_some() {
            traces.extend((0..clones).filter_map(|clone| replay::need(&section, clone).ok().flatten()));
            paths.extend(replay::redirect(&section).into_iter().flat_map(with_ancestors));
            continue;
        }
        if let Some(directory) = options.files.opendir.as_ref().filter(|_| naming.paths.is_empty()) {
            directories.insert(PathBuf::from(&directory.0));
            continue;
        }
        let engine = queue::engine(&section);
        for clone in 0..clones {
            let files = naming.files(clone);
            if let Some(engine) = &engine {
                add_geometries(&mut geometries, engine, &files);
            }
            // An engine that opens no file needs no facts about paths.
            if engine.as_ref().is_none_or(|engine| engine.descriptor.touches_files()) {
                for beside in files.chunk_by(|one, next| one.parent() == next.parent()) {
                    paths.extend(targets::ancestors(&beside[0]));
                    paths.extend(beside.iter().cloned());
                }
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
        traces: traces.into_iter().collect(),
        geometries,
    }
}

/// Adds those of the targets that only their engine can be asked about.
fn add_geometries(geometries: &mut Vec<GeometryNeed>, engine: &PlannedEngine, targets: &[PathBuf]) {
    if engine.descriptor.geometry.is_none() {
        return;
    }
    for target in targets {
        let need = GeometryNeed { engine: engine.clone(), target: target.clone() };
        if !geometries.contains(&need) {
            geometries.push(need);
        }
    }
}

/// The traces that these sections merge, for a run that does nothing else (`--merge-blktrace-only`).
///
/// # Errors
/// What is wrong with the options that merge.
pub fn merges(sections: &[Section], engines: Engines) -> Result<Vec<TraceNeed>, Vec<Problem>> {
    let mut traces = BTreeSet::new();
    let mut problems = Vec::new();
    let mut resolver = Resolver::new(&engines.names());
    for parsed in sections {
        let (options, given, _) = resolver.job(parsed);
        match replay::need(&ResolvedSection { parsed, options: &options, given: &given, engines }, 0) {
            Ok(need) => traces.extend(need.filter(|need| !need.parts.is_empty())),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(traces.into_iter().collect()) } else { Err(problems) }
}

/// A file and the directories above it, which may have to be created.
pub fn with_ancestors(file: PathBuf) -> impl Iterator<Item = PathBuf> {
    let above: Vec<PathBuf> = targets::ancestors(&file).collect();
    above.into_iter().chain([file])
}

/// Problems of sections that write or trim although `--readonly` is given. Needs no facts, so that it also works where
/// nothing is run.
pub fn forbidden_by_readonly(sections: &[Section]) -> Vec<Problem> {
    // Whether its engine is built in makes no difference to what it would do.
    let mut resolver = Resolver::new(&[]);
    let check = |parsed| {
        let (options, given, _) = resolver.job(parsed);
        modifies(&ResolvedSection { parsed, options: &options, given: &given, engines: Engines::default() })
    };
    sections.iter().filter_map(check).collect()
}

fn modifies(section: &ResolvedSection<'_>) -> Option<Problem> {
    let kind = section.options.access.rw.kind;
    stream::pattern(kind).modifies().then(|| {
        let message = format!("rw={} writes or trims, which --readonly forbids", kind.word());
        section.error(
            ProblemKind::Forbidden,
            job::Access::rw,
            message,
            "leave out --readonly, or use rw=read or rw=randread",
        )
    })
}

/// The files that the workers of a section create besides their targets. The first worker has the number `first`.
fn outputs(section: &ResolvedSection<'_>, first: u32, run: &RunSettings) -> BTreeSet<PathBuf> {
    let options = section.options;
    let memory = buffers::memory(options);
    let mut paths: BTreeSet<PathBuf> =
        path_change::buffer_file(&memory).map(PathBuf::from).into_iter().gather();
    paths.extend(replay::recording(section));
    paths.extend(replay::merged(section));
    let measure = measure::measure(section);
    for clone in 0..options.general.numjobs.min(WORKERS_MAX) {
        let name = names::worker_name(section.parsed, section.options, clone);
        let hooks = Hook::ALL.into_iter().filter(|hook| section.is_given(hook.option()));
        let outputs = hooks.map(|hook| hook.log(name));
        let number = first.saturating_add(clone);
        let logs = if run.sends_logs { Vec::new() } else { logs::files(section, name, number, &measure) };
        let state = verification::saved_state(section, name, number, run);
        let engine = queue::engine(section).map(|engine| engine.outputs(name)).unwrap_or_default();
        let before = paths.len();
        paths.extend(outputs.chain(logs.into_iter().map(|log| log.path)).chain(state));
        paths.extend(engine.into_iter().map(|output| output.path));
        // If the second clone adds no path, neither do those after it.
        if clone > 0 && paths.len() == before {
            break;
        }
    }
    paths
}

/// Builds the plan of a run, with warnings. `waiting` are the sections with an implied stonewall: the first of each job
/// file after the first.
///
/// An error in an option or an unsafe target refuses the whole run. Targets that do not meet a job's needs are an
/// error of that job alone, as in fio: it is in the plan as [`Unplannable`](crate::Unplannable), and the others run.
pub fn build(
    sections: &[Section],
    waiting: &[usize],
    facts: &Facts,
    run: &RunSettings,
) -> Result<(Plan, Vec<Problem>), Refusal> {
    let engines = facts.engines.names();
    let ahead = look_ahead(sections, facts.engines);
    let mut builder = Builder {
        facts,
        run,
        jobs: Vec::new(),
        diagnostics: Diagnostics::default(),
        grouping: Grouping::default(),
        laid_out: LaidOut::default(),
        counts_writes: run.trigger.is_none() && !ahead.spares_others,
        buffer_bytes: 0,
        names: Vec::new(),
        time_cpus: ahead.time_cpus.into_iter().collect(),
        judged: Judgements::default(),
    };
    let mut resolver = Resolver::new(&engines);
    for (number, parsed) in sections.iter().enumerate() {
        builder.section(u32::capped(number), parsed, resolver.job(parsed), waiting.contains(&number));
    }
    let Builder { mut jobs, mut diagnostics, judged, .. } = builder;
    diagnostics.problems.extend(judged.without_effect());
    buffers::share_working_sets(&mut jobs);
    writers::expect_other_writers(&mut jobs);
    pace::wake_early(&mut jobs, facts);
    match diagnostics.stops_all_since(0) {
        true => Err(Refusal {
            unsafe_target: diagnostics.unsafe_target,
            problems: without_repeats(diagnostics.problems),
        }),
        false => {
            Ok((Plan { jobs, trigger: run.trigger.clone() }, without_repeats(diagnostics.into_warnings())))
        }
    }
}

/// A section resolved: its options, what was given, and what is wrong with it.
type Resolved<'a> = (JobOptions, Given<'a>, Vec<Problem>);

/// The plan under construction.
struct Builder<'a> {
    facts: &'a Facts,
    run: &'a RunSettings,
    jobs: Vec<Job>,
    diagnostics: Diagnostics,
    grouping: Grouping,
    /// What the workers so far will have laid out and written.
    laid_out: LaidOut,
    /// Whether all that a worker writes is still there when the others write.
    counts_writes: bool,
    /// The buffers of the workers since the last stonewall.
    buffer_bytes: u64,
    /// Names of the first workers of the sections so far, for `wait_for`.
    names: Vec<OsString>,
    /// CPUs that keep the time for jobs: no job runs there.
    time_cpus: Vec<u32>,
    /// What options need that have an effect only beside others.
    judged: Judgements,
}

/// What the first worker depends on of all sections.
#[derive(Default)]
struct Ahead {
    /// The CPUs that keep the time for jobs.
    time_cpus: BTreeSet<u32>,
    /// Whether one may make room for others, or end them before they have written everything.
    spares_others: bool,
}

fn look_ahead(sections: &[Section], engines: Engines) -> Ahead {
    let mut resolver = Resolver::new(&engines.names());
    let mut ahead = Ahead::default();
    for parsed in sections {
        // What is wrong with the sections is found when each is built.
        let (options, given, _) = resolver.job(parsed);
        ahead.time_cpus.extend(options.time.gtod_cpu);
        let section = ResolvedSection { parsed, options: &options, given: &given, engines };
        ahead.spares_others |= written::may_spare_others(&section);
    }
    ahead
}

impl Builder<'_> {
    fn section(&mut self, number: u32, parsed: &Section, resolved: Resolved<'_>, waits: bool) {
        let (options, given, problems) = resolved;
        let engines = self.facts.engines;
        let section = ResolvedSection { parsed, options: &options, given: &given, engines };
        let before = self.diagnostics.problems.len();
        self.diagnostics.problems.extend(problems);
        self.diagnostics.problems.extend(rules::all(&section));
        self.judged.add(conditions::judge(&section));
        self.diagnostics.problems.extend(self.among_sections(&section));
        process::time_cpu(&section, self.facts, &mut self.diagnostics.problems);
        self.names.push(names::worker_name(section.parsed, section.options, 0).to_os_string());
        let mut before_clone = before;
        for clone in 0..options.general.numjobs {
            self.worker(&section, number, clone, waits);
            // What is wrong with one clone is wrong with all.
            if self.errors_since(before_clone) {
                break;
            }
            before_clone = self.diagnostics.problems.len();
        }
    }

    fn errors_since(&self, before: usize) -> bool {
        self.diagnostics.stops_all_since(before)
    }

    /// Rules between this section and the run or the sections before it.
    fn among_sections(&self, section: &ResolvedSection<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let options = section.options;
        if self.run.readonly {
            problems.extend(modifies(section));
        }
        if let Some(awaited) = options.process.wait_for.as_ref().map(|name| &name.0) {
            if *awaited == section.parsed.name {
                problems.push(section.error(
                    ProblemKind::Conflict,
                    job::Process::wait_for,
                    format!("a job cannot wait for itself ({})", shown(awaited)),
                    "",
                ));
            } else if !self.names.iter().any(|name| name == awaited) {
                let message = format!("there is no earlier job \"{}\" to wait for", shown(awaited));
                let remedy = match self.names.is_empty() {
                    true => "leave it out, or put that job before this one".to_string(),
                    false => {
                        let names: Vec<String> = self.names.iter().map(shown).collect();
                        format!("earlier jobs: {}", names.join(", "))
                    }
                };
                problems.push(section.error(
                    ProblemKind::UnknownName,
                    job::Process::wait_for,
                    message,
                    remedy,
                ));
            }
        }
        let workers = self.jobs.len() as u64 + u64::from(options.general.numjobs);
        let most = self.run.max_jobs.unwrap_or(WORKERS_MAX);
        if workers > u64::from(most) {
            let message = format!("{workers} workers are more than --max-jobs={most} allows");
            problems.push(section.error(
                ProblemKind::Forbidden,
                job::General::numjobs,
                message,
                "raise --max-jobs, or lower numjobs",
            ));
        }
        problems
    }

    /// The number of the next worker.
    fn next_number(&self) -> u32 {
        u32::capped(self.jobs.len())
    }

    fn worker(&mut self, section: &ResolvedSection<'_>, section_number: u32, clone: u32, waits: bool) {
        let options = section.options;
        let (name, number) = (names::worker_name(section.parsed, options, clone), self.next_number());
        let Some(engine) = queue::engine(section) else { return };
        let access = stream::access(section, number, self.run, &mut self.diagnostics.problems);
        let replay = replay::replayed(section, clone, self.facts, self.run.readonly);
        let Some(replay) = self.diagnostics.keep(replay) else { return };
        let worker = PlannedWorker {
            section,
            engine: &engine,
            access: &access,
            replay: replay.as_ref(),
            clone,
            facts: self.facts,
            readonly: self.run.readonly,
        };
        let targets = worker.targets(&mut self.laid_out, &mut self.diagnostics);
        let problems = &mut self.diagnostics.problems;
        let process = process::process(section, clone, &self.time_cpus, self.facts, problems);
        let (measure, log_cpus) = (measure::measure(section), logs::cpus(section, self.facts, problems));
        let memory_align_bytes = targets.as_ref().map_or(1, |targets| targets.memory_align_bytes);
        let longest_block = || buffers::longest_block(&access);
        let block_bytes_max = replay.as_ref().map_or_else(longest_block, Replayed::longest_bytes);
        let buffers = buffers::buffers(section, block_bytes_max, memory_align_bytes, self.facts, problems);
        let verification = verification::verification(
            (section, name, number),
            &access,
            &buffers.fill,
            &engine,
            (self.facts, self.run),
            problems,
        );
        let Some(targets) = targets else { return };
        problems.extend(sprandom::unsuited_files(section, &access, &targets.files));
        problems.extend(target_limits::problems(section, &access, &targets.files, self.facts));
        let stonewall = clone == 0 && (options.process.stonewall.0 || waits);
        let begins_group = stonewall || (clone == 0 && options.measure.new_group.0);
        let group_id = self.group(section, begins_group, &measure);
        self.agree_on_steady_state(section, group_id);
        let submission = queue::submission(options);
        let limits = schedule::limits(options, &targets, sprandom::loop_bytes(section, &access, &targets));
        let job = Job {
            name: name.to_os_string(),
            description: options.general.description.as_ref().map(|text| text.0.clone()),
            number,
            section: section_number,
            clone,
            group_id,
            unplannable: targets.unplannable,
            depth: queue::depth(wanted_depth(section), submission.offload || engine.descriptor.can_queue()),
            submission,
            files: targets.files,
            buffers: Buffers { dedupe: buffers::dedupe(options, &access, targets.pass_bytes), ..buffers },
            limits,
            pace: pace::pace(section),
            schedule: schedule::schedule(options, stonewall),
            errors: measure::errors(options, pace::latency_target(section)),
            // Recorded I/O is replayed as it is.
            verification: verification.filter(|_| replay.is_none()),
            logs: logs::logs(section, name, number, &measure, priority::own(&process), log_cpus, self.run),
            io_priorities: priority::io_priorities(section, engine.descriptor, &process),
            measure,
            process,
            presentation: measure::presentation(section, &access),
            engine,
            access,
            latency_target: pace::latency_target(section),
            steady: steady::steady(section),
            replay: replay.map(|replay| replay.plan()),
            record: replay::recording(section),
        };
        self.admit(section, job);
    }

    /// Adds a job to the plan; one that cannot run has no files.
    fn admit(&mut self, section: &ResolvedSection<'_>, mut job: Job) {
        self.refuse(section, &job);
        self.diagnostics.problems.extend(verification::compare_whole_blocks(section, &mut job));
        if let Some(problem) = self.no_memory(section, &job) {
            self.diagnostics.add_of_worker(problem, Errno::ENOMEM);
            job.unplannable = self.diagnostics.take_unplannable();
        }
        if let Some(problem) = self.no_room(section, &job) {
            self.diagnostics.add_of_worker(problem, Errno::ENOSPC);
            job.unplannable = self.diagnostics.take_unplannable();
        }
        if job.unplannable.is_some() {
            job.files.list.clear();
        }
        self.laid_out.end_worker(job.unplannable.is_none(), self.facts);
        self.jobs.push(job);
    }

    /// Why what a worker writes does not fit beside what the workers before it leave.
    fn no_room(&mut self, section: &ResolvedSection<'_>, job: &Job) -> Option<Problem> {
        if !self.counts_writes {
            return None;
        }
        let files = self.laid_out.add_written(job, self.facts, self.run.counts_timed_writes).into_iter();
        let remedy =
            "lower size=, free some space, name another directory=, or fill it on purpose (fill_device=1)";
        self.laid_out.no_room(section, files, self.facts, remedy)
    }

    /// Why the buffers of a worker do not fit beside those of the workers that run with it: the kernel would end the whole
    /// process, and with it all other jobs.
    fn no_memory(&mut self, section: &ResolvedSection<'_>, job: &Job) -> Option<Problem> {
        if job.schedule.stonewall {
            self.buffer_bytes = 0;
        }
        let left = self.facts.memory_left.filter(|_| job.unplannable.is_none())?;
        let all_bytes = self.buffer_bytes + buffers::certain_bytes(job);
        if all_bytes <= left.left_bytes {
            self.buffer_bytes = all_bytes;
            return None;
        }
        let message = format!(
            "the buffers of the jobs up to this one need {all_bytes} bytes, and the memory limit of the control group, {}, \
             leaves {}",
            left.limit_bytes, left.left_bytes
        );
        let remedy = "lower iodepth=, bs= or numjobs=, or raise the limit (memory.max)";
        Some(section.error(ProblemKind::Extent, job::Queue::iodepth, message, remedy))
    }

    /// The group of the next worker, which must agree with the worker that it is reported with.
    fn group(&mut self, section: &ResolvedSection<'_>, begins_group: bool, measure: &Measure) -> u32 {
        let (group_id, joins) = self.grouping.next(begins_group, section.options.measure.group_reporting.0);
        let differs = |last: &Job| last.measure.total_percentiles != measure.total_percentiles;
        if joins && self.jobs.last().is_some_and(differs) {
            let message = "lat_percentiles differs within a group, which is reported as one job";
            let remedy = "give it to all sections of the group, or begin a group with new_group or stonewall";
            self.diagnostics.problems.push(section.error(
                ProblemKind::Conflict,
                job::Measure::lat_percentiles,
                message,
                remedy,
            ));
        }
        group_id
    }

    /// A steady state is that of all jobs of a reporting group, as in fio.
    fn agree_on_steady_state(&mut self, section: &ResolvedSection<'_>, group_id: u32) {
        let differs = |last: &Job| last.group_id == group_id && last.steady != steady::steady(section);
        if self.jobs.last().is_some_and(differs) {
            let message = "the options of the steady state differ from those of another job of its group";
            let remedy = "give all jobs of the group the same, or begin a group with new_group or stonewall";
            let option = job::Steady::steadystate;
            self.diagnostics.problems.push(section.error(ProblemKind::Conflict, option, message, remedy));
        }
    }

    /// Refuses every path that the job must not touch as it would.
    fn refuse(&mut self, section: &ResolvedSection<'_>, job: &Job) {
        for change in path_change::path_changes(job) {
            let known = self.facts.path(&change.path);
            let allowed = job.files.allow_in_use;
            if let Some(refused) = path_change::refusal(&change.path, change.kind, &known, allowed) {
                self.diagnostics.unsafe_target |= refused.unsafe_target;
                let kind = if refused.unsafe_target { ProblemKind::InUse } else { ProblemKind::Target };
                let problem = section.error(kind, change.option, refused.message, refused.remedy);
                self.diagnostics.problems.push(problem.of_path(&change.path));
            }
        }
    }
}

fn wanted_depth(section: &ResolvedSection<'_>) -> queue::WantedDepth {
    let options = section.options;
    let given = |option: &Spec, number: u32| section.is_given(option).then_some(number);
    queue::WantedDepth {
        depth: options.queue.iodepth,
        submit: given(job::Queue::iodepth_batch, options.queue.iodepth_batch),
        complete_min: given(job::Queue::iodepth_batch_complete_min, options.queue.iodepth_batch_complete_min),
        complete_max: options.queue.iodepth_batch_complete_max,
        low: options.queue.iodepth_low,
    }
}
