//! Gathers the facts that findings are based on, before and during a run, and calls for the findings.
//!
//! Invariant: with `--trust=off` nothing is read, and nothing recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fiord_findings::{
    Ended, JobEvidence, Known, KnownTarget, Measurements, OwnCost, Suspension, detailed_logs, evidence, lint,
    log_directory, may_have_overhead, merge, steadiness,
};
use fiord_host::{
    DeviceUse, Health, HostReading, LayerKind, Limits, PageCacheUse, PageCacheWatch, PciDevice, PowerStates,
    Prober, StorageStack, System, health, memory_available_bytes,
};
use fiord_options::Problem;
use fiord_plan::{FileKind, Job, Plan};
use fiord_report::Finding;
use fiord_stats::{Gather, JobPart, PartLatencies, RunSteadiness};
use fiord_sys::clock::CounterClock;
use fiord_sys::library::{cuda, cufile};
use fiord_sys::sysfs::Sysfs;
use fiord_worker::{CacheGrowth, EndReason, WorkerReport};

use super::files::files;
use super::recording::Recording;
use super::{assemble, attended, calibration};

/// Number of files that are examined before a run; if there are more, these represent the others.
const FILES_MAX: usize = 16;

/// What is known of one run.
#[derive(Debug, Default)]
pub(super) struct Witness {
    known: Known,
    /// What the run has done so far.
    pub recording: Recording,
    /// For how long the run that is over was suspended.
    suspension: Option<Suspension>,
    /// The devices before the run, and once it is over.
    health: [Vec<Health>; 2],
    /// Whether a calibration is kept for later runs.
    keeps: bool,
}

impl Witness {
    /// Examines the files of a plan before anything is laid out. `keeps`: whether something may be kept for later runs.
    pub(super) fn before(plan: &Plan, keeps: bool) -> Witness {
        cufile::forget_ways();
        cuda::forget_addresses();
        let (prober, system) = (Prober::default(), System::read());
        let target = |path: &&Path| {
            let facts = prober.probe(path).ok()?;
            Some(KnownTarget { facts, stack: stack_below(path, &system) })
        };
        let known = Known {
            targets: files(plan).iter().take(FILES_MAX).filter_map(target).collect(),
            log_directories: log_directories(plan, &system),
            limits: Limits::read(),
            memory_available_bytes: memory_available_bytes(),
            gpus: Vec::new(),
        };
        Witness { known, keeps, ..Witness::default() }
    }

    /// The first workers of this plan are about to start.
    pub(super) fn start(&mut self, plan: &Plan) {
        self.health[0] = self.health_now();
        // The program or the machine that serves other files may not answer when they are opened.
        let has_device = |(_, stack): &(&Path, &StorageStack)| !stack.devices().is_empty();
        let files = self.past_the_cache(plan).filter(has_device);
        let page_cache = attended::during(|| PageCacheWatch::start(files.map(|(path, _)| path)));
        self.recording.start(plan, page_cache);
    }

    /// The regular files that jobs use past the page cache alone, of which memory is not the medium.
    fn past_the_cache<'w>(&'w self, plan: &'w Plan) -> impl Iterator<Item = (&'w Path, &'w StorageStack)> {
        let is_direct = |path: &Path| {
            let with_jobs =
                plan.jobs.iter().flat_map(|job| job.files.list.iter().map(move |file| (job, file)));
            let mut uses = with_jobs.filter(|(_, file)| file.path == path).peekable();
            // A job of a later stage lays its file out, or reads it in advance, during the run.
            uses.peek().is_some()
                && uses.all(|(Job { files, .. }, file)| {
                    let is_filled_before = files.create_serially || file.lay_out_bytes.is_none();
                    file.kind == FileKind::Regular && files.direct && is_filled_before && !files.pre_read
                })
        };
        let with_stack = move |target: &'w KnownTarget| {
            let stack = target.stack.as_ref()?;
            let in_memory = stack.layers.iter().any(|layer| layer.kind == LayerKind::Memory);
            (!in_memory && is_direct(&target.facts.path)).then_some((target.facts.path.as_path(), stack))
        };
        self.known.targets.iter().filter_map(with_stack)
    }

    /// What the page cache held of these files: at looks from outside during the run, and by the looks of the jobs.
    fn page_cache(&self, plan: &Plan, workers: &[WorkerReport]) -> Vec<PageCacheUse> {
        let mut grown: BTreeMap<&Path, &CacheGrowth> = BTreeMap::new();
        for worker in workers {
            let files = &plan.jobs[worker.number as usize].files.list;
            for growth in &worker.cache_growth {
                let most = grown.entry(&files[growth.file as usize].path).or_insert(growth);
                if growth.grown_bytes > most.grown_bytes {
                    *most = growth;
                }
            }
        }
        let watched = self.recording.page_cache();
        let seen = |(path, stack): (&Path, &StorageStack)| {
            let looks = watched.iter().find(|seen| seen.path == path);
            let growth = grown.get(path).map(|growth| (growth.looked_bytes, growth.grown_bytes));
            let (looked_bytes, grown_bytes) = growth.unwrap_or_default();
            PageCacheUse {
                path: path.to_path_buf(),
                file_system: stack
                    .file_systems()
                    .first()
                    .map_or_else(String::new, |facts| facts.type_name.clone()),
                looked_bytes,
                grown_bytes,
                ..looks.cloned().unwrap_or_default()
            }
        };
        self.past_the_cache(plan).map(seen).collect()
    }

    /// Of the devices below the files.
    fn health_now(&self) -> Vec<Health> {
        let stacks = self.known.targets.iter().filter_map(|target| target.stack.as_ref());
        let names: BTreeSet<&str> =
            stacks.flat_map(StorageStack::devices).map(|facts| facts.device.name.as_str()).gather();
        health(names)
    }

    /// Adds what devices tell of themselves: their power states at both ends of the run that is over, and how much was ever
    /// written to them.
    pub(super) fn add_own_figures(&self, devices: &mut [DeviceUse]) {
        let of = |health: &[Health], name: &str| health.iter().find(|own| own.device == name).cloned();
        for used in devices {
            let [start, end] = [0, 1].map(|moment| of(&self.health[moment], &used.device.name));
            used.lifetime_written_bytes = end.as_ref().and_then(|own| own.log.written_bytes);
            let power = start.and_then(|own| own.power).zip(end.and_then(|own| own.power));
            used.power = power.map(|(start, end)| PowerStates { start, end });
        }
    }

    /// Whether some file is on storage of which nothing is seen below its file systems.
    fn is_hidden(&self) -> bool {
        self.known.targets.iter().any(|target| target.stack.as_ref().is_some_and(StorageStack::is_hidden))
    }

    /// How steady the run was, if that can be judged.
    pub(super) fn steadiness(&self, plan: &Plan) -> Option<RunSteadiness> {
        steadiness(plan, self.recording.samples())
    }

    /// The latencies of the steady part, if they are known, and what the jobs of each name did in it, if there are several;
    /// nothing if that part is the whole run.
    pub(super) fn steady_part(
        &self,
        plan: &Plan,
        workers: &[WorkerReport],
    ) -> (Option<PartLatencies>, Vec<JobPart>) {
        let steadiness = self.steadiness(plan);
        let part = steadiness.as_ref().and_then(RunSteadiness::proper_part);
        part.map(|part| self.recording.part(part, workers)).unwrap_or_default()
    }

    /// The findings of a run that goes on: those that need neither its end, nor the health of devices, nor a calibration
    /// of fiord's own cost, which must not be measured meanwhile.
    pub(super) fn findings_so_far(
        &self,
        plan: &Plan,
        workers: &[WorkerReport],
        devices: &[DeviceUse],
        problems: &[Problem],
    ) -> Vec<Finding> {
        let host = self.recording.readings();
        let judged = self.judged(plan, workers, devices, &host, (&[], &[]), None);
        let problems = problems.iter().map(assemble::of_problem);
        merge(judged.chain(problems))
    }

    /// All findings of the run that is over; `problems` are the warnings about its options.
    pub(super) fn findings<'p>(
        &mut self,
        plan: &Plan,
        workers: &[WorkerReport],
        devices: &[DeviceUse],
        problems: impl Iterator<Item = &'p Problem>,
    ) -> Vec<Finding> {
        self.suspension = self.recording.end();
        self.known.gpus = gpus(plan);
        let mut host = self.recording.readings();
        host.extend(self.recording.last_reading());
        self.health[1] = self.health_now();
        let jobs: Vec<JobEvidence<'_>> = workers.iter().map(job).collect();
        let is_needed = may_have_overhead(plan, &jobs);
        // A cost that cannot be measured is not known, which is no failure of the run.
        let calibration = is_needed.then(|| calibration::get(self.keeps, false).ok()).flatten();
        let own_cost = calibration.as_ref().map(|calibration| &calibration.cost);
        let judged = self.judged(plan, workers, devices, &host, (&self.health[0], &self.health[1]), own_cost);
        let problems = problems.map(assemble::of_problem);
        merge(judged.chain(problems).chain(assemble::remarks(plan, workers)))
    }

    /// The findings from what was known before the run, and from what has been measured.
    fn judged(
        &self,
        plan: &Plan,
        workers: &[WorkerReport],
        devices: &[DeviceUse],
        host: &[HostReading],
        health: (&[Health], &[Health]),
        own_cost: Option<&OwnCost>,
    ) -> impl Iterator<Item = Finding> + use<> {
        let steadiness = self.steadiness(plan);
        let jobs: Vec<JobEvidence<'_>> = workers.iter().map(job).collect();
        let page_cache = self.page_cache(plan, workers);
        let measured = Measurements {
            jobs: &jobs,
            page_cache: &page_cache,
            devices,
            is_hidden: self.is_hidden(),
            host,
            samples: self.recording.samples(),
            steadiness: steadiness.as_ref(),
            suspension: self.suspension,
            health,
            own_cost,
            counter_step_ns: CounterClock::shared().ok().and_then(|clock| clock.coarse_step_ns()),
            gpu_ways: cufile::ways(),
        };
        lint(plan, &self.known, &jobs).into_iter().chain(evidence(plan, &measured))
    }
}

/// The directories of logs that have a line for each I/O, and what lies below them.
fn log_directories(plan: &Plan, system: &System) -> Vec<(PathBuf, StorageStack)> {
    let logs = plan.jobs.iter().flat_map(detailed_logs);
    let directories: BTreeSet<&Path> = logs.map(|(_, log)| log_directory(log)).gather();
    let with_stack = |path: &Path| Some((path.to_path_buf(), stack_below(path, system)?));
    directories.into_iter().take(FILES_MAX).filter_map(with_stack).collect()
}

/// What lies below a path; of a file that is not there yet, below the nearest directory that is.
fn stack_below(path: &Path, system: &System) -> Option<StorageStack> {
    let parts = path.ancestors().map(|part| if part.as_os_str().is_empty() { Path::new(".") } else { part });
    parts.into_iter().find_map(|part| StorageStack::of(part, system).ok())
}

/// The GPUs that jobs of the run used.
fn gpus(plan: &Plan) -> Vec<PciDevice> {
    if !plan.jobs.iter().any(Job::uses_gpu) {
        return Vec::new();
    }
    let sysfs = Sysfs::default();
    cuda::addresses().iter().filter_map(|address| PciDevice::at(address, &sysfs)).collect()
}

fn job(worker: &WorkerReport) -> JobEvidence<'_> {
    JobEvidence {
        ramp: worker.ramp,
        ended: match worker.reason {
            EndReason::Size | EndReason::DeviceFull => Ended::BySize,
            EndReason::Time
            | EndReason::Steady
            | EndReason::DepthFound
            | EndReason::Others
            | EndReason::Signal
            | EndReason::Trigger => Ended::Otherwise,
            EndReason::Running => Ended::NotYet,
            EndReason::Error | EndReason::NotStarted => Ended::Failed,
        },
        stats: &worker.stats,
        started_ms: worker.started_ms,
        elapsed_ms: worker.elapsed_ms,
    }
}
