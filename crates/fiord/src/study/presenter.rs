//! What is shown of a study while it runs, and what is kept of it.
//!
//! Invariant: after the first run that cannot be recorded no further run is, and the study goes on.

use fiord_lab::{Step, Study};
use fiord_plan::Plan;
use fiord_report::RunReport;
use fiord_session::Ending;
use fiord_session::event::{Event, Intervals, Presenter};

use super::progress::Progress;
use crate::keep::{StudyKeeper, say_not_kept};
use crate::live::LiveMode;
use crate::output::say;
use crate::profile::Profiler;
use crate::status;

/// Shows a study, records its runs, and observes them if it needs more than their reports.
pub(super) struct StudyPresenter<'a, 's> {
    progress: Progress,
    keeper: Option<StudyKeeper>,
    profiler: Option<&'a mut Profiler<'s>>,
}

impl<'a, 's> StudyPresenter<'a, 's> {
    pub(super) fn new(
        study: &dyn Study,
        live: LiveMode,
        keeper: Option<StudyKeeper>,
        profiler: Option<&'a mut Profiler<'s>>,
    ) -> StudyPresenter<'a, 's> {
        let progress = Progress::new(study.steps(), study.time(), live);
        StudyPresenter { progress, keeper, profiler }
    }

    /// Ends the progress; returns what the result is recorded with and made of.
    pub(super) fn finish(mut self) -> (Option<StudyKeeper>, Option<&'a mut Profiler<'s>>) {
        self.progress.clear();
        (self.keeper, self.profiler)
    }

    fn keep(&mut self, step: &Step, plan: &Plan, report: &RunReport, ending: Ending) {
        let status = match ending {
            Ending::Signal(signal) => status::of_signal(signal),
            // Void figures are a matter of the study.
            _ => status::SUCCESS,
        };
        let Some(keeper) = &mut self.keeper else { return };
        if let Err(why) = keeper.keep(&step.name, plan, report, status) {
            say_not_kept("run", &why);
            self.keeper = None;
        }
    }
}

impl Presenter for StudyPresenter<'_, '_> {
    fn intervals(&self) -> Intervals {
        let shown = self.progress.intervals();
        let observed = self.profiler.as_ref().and_then(|profiler| profiler.intervals().tick);
        Intervals { tick: shown.tick.into_iter().chain(observed).min(), ..shown }
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Event::StepDone { errors, .. } = event {
            errors.iter().for_each(|line| say(line));
        }
        if let Some(profiler) = &mut self.profiler {
            profiler.event(event);
        }
        self.progress.event(event);
        if let Event::StepDone { step, plan, report, ending, .. } = event
            && !step.prepares
        {
            self.keep(step, plan, report, *ending);
        }
    }
}
