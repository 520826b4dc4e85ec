//! What `fiord profile` observes of a run: the kernel's counters of the machine, the disks and the jobs' threads.
//!
//! Invariant: nothing is read in a worker; what may not be read is missing in the observation, with the reason.

mod machine;
mod page;
mod requests;
mod stacks;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_host::DiskWatch;
use fiord_lab::profile::Profile;
use fiord_lab::{StepResult, StudyResult};
use fiord_plan::{FileKind, Plan};
use fiord_profile::Observation;
use fiord_report::{Finding, RunReport};
use fiord_worker::{View, WorkerReport};

use self::machine::MachineSampler;
use self::requests::RequestTracer;
use self::stacks::StackSampler;
use crate::study::RunSampler;

/// Interval between two looks at the scheduler's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Observes the runs of a profile.
pub(crate) struct Profiler<'s> {
    study: &'s Profile,
    page: Option<&'s Path>,
    state: RefCell<State>,
}

/// The run in progress.
#[derive(Default)]
struct State {
    files: Vec<PathBuf>,
    machine: Option<MachineSampler>,
    tracer: Option<RequestTracer>,
    stacks: Option<StackSampler>,
    observation: Observation,
}

impl<'s> Profiler<'s> {
    /// Observes for this study, and makes a page of it if a path is given.
    pub(crate) fn new(study: &'s Profile, page: Option<&'s Path>) -> Profiler<'s> {
        Profiler { study, page, state: RefCell::default() }
    }
}

impl RunSampler for Profiler<'_> {
    fn prepare(&self, plan: &Plan) {
        let files = plan.jobs.iter().flat_map(|job| &job.files.list);
        let files = files.filter(|file| file.kind != FileKind::None).map(|file| file.path.clone());
        *self.state.borrow_mut() = State { files: files.collect(), ..State::default() };
    }

    fn started(&self) {
        let mut state = self.state.borrow_mut();
        let State { files, machine, tracer, stacks, observation } = &mut *state;
        let mut had = |lacking: String| observation.lacking.push(lacking);
        *stacks = StackSampler::start().map_err(&mut had).ok();
        *tracer = RequestTracer::start(&DiskWatch::start(files.iter()).so_far()).unwrap_or_else(|lacking| {
            had(lacking);
            None
        });
        *machine = Some(MachineSampler::start(files));
    }

    fn look_every(&self) -> Duration {
        LOOK_EVERY
    }

    fn look(&self, view: &View<'_>) {
        if let Some(machine) = &mut self.state.borrow_mut().machine {
            machine.look(view);
        }
    }

    fn ended(&self, report: &RunReport, workers: &[WorkerReport]) {
        let mut state = self.state.borrow_mut();
        let State { machine, tracer, stacks, observation, .. } = &mut *state;
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

    fn files(
        &self,
        results: &[StepResult],
        result: &StudyResult,
        findings: &[Finding],
    ) -> Result<Vec<(PathBuf, String)>, String> {
        let Some(path) = self.page else { return Ok(Vec::new()) };
        Ok(vec![(path.to_path_buf(), page::of(self.study, results, result, findings)?)])
    }

    fn measured(&self) {
        self.study.observe(std::mem::take(&mut self.state.borrow_mut().observation));
    }
}
