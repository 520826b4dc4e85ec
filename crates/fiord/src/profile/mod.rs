//! What `fiord profile` observes of a run: the kernel's counters of the machine, the disks and the jobs' threads.
//!
//! Invariant: nothing is read in a worker; what may not be read is missing in the observation, with the reason.

mod machine;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use fiord_lab::profile::Profile;
use fiord_plan::{FileKind, Plan};
use fiord_profile::Observation;
use fiord_report::RunReport;
use fiord_worker::{View, WorkerReport};

use self::machine::MachineSampler;
use crate::study::RunSampler;

/// Interval between two looks at the scheduler's counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Observes the runs of a profile.
pub(crate) struct Profiler<'s> {
    study: &'s Profile,
    state: RefCell<State>,
}

/// The run in progress.
#[derive(Default)]
struct State {
    files: Vec<PathBuf>,
    machine: Option<MachineSampler>,
    observation: Observation,
}

impl<'s> Profiler<'s> {
    /// Observes for this study.
    pub(crate) fn new(study: &'s Profile) -> Profiler<'s> {
        Profiler { study, state: RefCell::default() }
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
        state.machine = Some(MachineSampler::start(&state.files));
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
        if let Some(machine) = state.machine.take() {
            machine.finish(report, workers, &mut state.observation);
        }
    }

    fn measured(&self) {
        self.study.observe(std::mem::take(&mut self.state.borrow_mut().observation));
    }
}
