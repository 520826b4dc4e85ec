//! What `fiord profile` observes of a run: the kernel's counters of the machine, the disks and the jobs' threads.
//!
//! Invariant: nothing is read in a worker; what may not be read is missing in the observation, with the reason.

mod machine;
mod page;
mod requests;
mod stacks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_host::DiskWatch;
use fiord_lab::profile::Profile;
use fiord_lab::{StepResult, StudyResult};
use fiord_profile::Observation;
use fiord_report::{Finding, RunReport};
use fiord_session::event::{Event, Intervals, Presenter};
use fiord_session::run::files::files;
use fiord_worker::WorkerReport;

use self::machine::MachineSampler;
use self::requests::RequestTracer;
use self::stacks::StackSampler;

/// Interval between two looks at the scheduler's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Observes the runs of a profile.
pub(crate) struct Profiler<'s> {
    study: &'s Profile,
    page: Option<&'s Path>,
    /// Whether the step in progress is measured, and not only prepares others.
    is_measured: bool,
    run: ObservedRun,
}

/// The run in progress.
#[derive(Default)]
struct ObservedRun {
    files: Vec<PathBuf>,
    machine: Option<MachineSampler>,
    tracer: Option<RequestTracer>,
    stacks: Option<StackSampler>,
    observation: Observation,
}

impl<'s> Profiler<'s> {
    /// Observes for this study, and makes a page of it if a path is given.
    pub(crate) fn new(study: &'s Profile, page: Option<&'s Path>) -> Profiler<'s> {
        Profiler { study, page, is_measured: false, run: ObservedRun::default() }
    }

    /// Files to be written of the whole study: path and contents.
    ///
    /// # Errors
    /// Why one cannot be made.
    pub(crate) fn files(
        &self,
        results: &[StepResult],
        result: &StudyResult,
        findings: &[Finding],
    ) -> Result<Vec<(PathBuf, String)>, String> {
        let Some(path) = self.page else { return Ok(Vec::new()) };
        Ok(vec![(path.to_path_buf(), page::of(self.study, results, result, findings)?)])
    }
}

impl Presenter for Profiler<'_> {
    fn intervals(&self) -> Intervals {
        Intervals { tick: self.is_measured.then_some(LOOK_EVERY), ..Intervals::default() }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Step { step, .. } => self.is_measured = !step.prepares,
            _ if !self.is_measured => {}
            Event::Planned { plan, .. } => {
                let files = files(plan).into_iter().map(Path::to_path_buf).collect();
                self.run = ObservedRun { files, ..ObservedRun::default() };
            }
            Event::Started => self.run.start(),
            Event::Tick(view) => {
                if let Some(machine) = &mut self.run.machine {
                    machine.look(view);
                }
            }
            Event::Report { report, workers } => self.run.finish(report, workers),
            Event::StepDone { is_result: true, .. } => {
                self.study.observe(std::mem::take(&mut self.run.observation));
            }
            _ => {}
        }
    }
}

impl ObservedRun {
    fn start(&mut self) {
        let ObservedRun { files, machine, tracer, stacks, observation } = self;
        let mut had = |lacking: String| observation.lacking.push(lacking);
        *stacks = StackSampler::start().map_err(&mut had).ok();
        *tracer = RequestTracer::start(&DiskWatch::start(files.iter()).so_far()).unwrap_or_else(|lacking| {
            had(lacking);
            None
        });
        *machine = Some(MachineSampler::start(files));
    }

    fn finish(&mut self, report: &RunReport, workers: &[WorkerReport]) {
        let ObservedRun { machine, tracer, stacks, observation, .. } = self;
        if let Some(machine) = machine.take() {
            machine.finish(report, workers, observation);
        }
        if let Some(tracer) = tracer.take() {
            tracer.finish(workers, observation);
        }
        if let Some(stacks) = stacks.take() {
            stacks.finish(workers, observation);
        }
    }
}
