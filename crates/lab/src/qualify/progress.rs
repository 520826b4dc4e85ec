//! How far a qualification is: which results belong to which round, and what comes next.
//!
//! Invariant: it follows from the results alone, in the order in which they were measured. A window never has rounds from
//! before and after an interruption.

use fiord_stats::DirectionStats;

use super::phase::{End, Measure, Phase};
use super::window::{WINDOW_ROUNDS, Window};
use crate::figures::whole_run;
use crate::step::{Step, StepResult};

/// What a phase has measured.
pub(super) struct PhaseRuns<'r> {
    pub phase: &'r Phase,
    pub precondition: Option<&'r StepResult>,
    /// By round, each with a result of each point in order, but for the last if it is not complete.
    pub rounds: Vec<&'r [StepResult]>,
    /// The first round that is whole and comes after the last interruption.
    pub continuous_from: usize,
    /// What all rounds have written, if that ends the phase.
    pub moved_bytes: u64,
    pub is_over: bool,
    /// The whole rounds up to the end of the window that counts, if that is not the last one.
    judged_to: Option<usize>,
}

/// The figure of a run that may have to become steady.
pub(super) fn figure(run: &StepResult, measure: Measure) -> f64 {
    let DirectionStats { ios, bytes, runtime_ms, completion, .. } = whole_run(&run.report);
    let seconds = runtime_ms.max(1) as f64 / 1000.0;
    match measure {
        Measure::Iops => ios as f64 / seconds,
        Measure::MibPerS => bytes as f64 / f64::from(1 << 20) / seconds,
        Measure::MeanNs => completion.running.mean(),
    }
}

impl<'r> PhaseRuns<'r> {
    /// Takes the results of a phase from the first ones of these; returns how many they are. `breaks` are the numbers of
    /// results before which the study was interrupted, counted from the first of these.
    fn take(phase: &'r Phase, results: &'r [StepResult], breaks: &[usize]) -> (PhaseRuns<'r>, usize) {
        let first = usize::from(phase.precondition.is_some());
        let precondition = results.first().filter(|_| first == 1);
        let mut runs = PhaseRuns {
            phase,
            precondition,
            rounds: Vec::new(),
            continuous_from: 0,
            moved_bytes: 0,
            is_over: false,
            judged_to: None,
        };
        let mut at = first;
        while at < results.len() && !runs.is_over {
            let end = (at + phase.points.len()).min(results.len());
            // One within the round counts, whatever was before it.
            if breaks.iter().any(|broken| (at + 1..end).contains(broken)) {
                runs.continuous_from = runs.rounds.len() + 1;
            } else if breaks.contains(&at) {
                runs.continuous_from = runs.rounds.len();
            }
            runs.rounds.push(&results[at..end]);
            if matches!(phase.end, End::Written { .. }) {
                runs.moved_bytes +=
                    results[at..end].iter().map(|run| whole_run(&run.report).bytes).sum::<u64>();
            }
            at = end;
            runs.is_over = runs.is_complete() && runs.has_ended();
        }
        if runs.is_over && !runs.is_confirmed() {
            // By the specification the first steady window counts, which may not be the last.
            let mut ends = runs.continuous_from + WINDOW_ROUNDS..=runs.whole_rounds().len();
            let first = ends.find(|end| {
                runs.judged_to = Some(*end);
                runs.is_steady()
            });
            runs.judged_to = first;
        }
        (runs, at.min(results.len()))
    }

    /// Whether it is a state of a recovery test, which is over after a number of runs.
    pub(super) fn is_state(&self) -> bool {
        matches!(self.phase.end, End::Rounds(_))
    }

    /// Whether the last round is whole.
    fn is_complete(&self) -> bool {
        self.rounds.last().is_some_and(|round| round.len() == self.phase.points.len())
    }

    fn has_ended(&self) -> bool {
        match self.phase.end {
            End::Steady { rounds_max, confirmed } => {
                (if confirmed { self.is_confirmed() } else { self.is_steady() })
                    || self.continuous() >= rounds_max
            }
            End::Written { bytes, rounds_max } => {
                self.moved_bytes >= bytes || self.rounds.len() >= rounds_max
            }
            End::Rounds(rounds) => self.rounds.len() >= rounds,
        }
    }

    /// Rounds since the last interruption.
    fn continuous(&self) -> usize {
        self.whole_rounds().len().saturating_sub(self.continuous_from)
    }

    /// The rounds that are whole.
    pub(super) fn whole_rounds(&self) -> &[&'r [StepResult]] {
        &self.rounds[..self.rounds.len() - usize::from(!self.rounds.is_empty() && !self.is_complete())]
    }

    /// The points that have to become steady: their numbers.
    pub(super) fn tracked(&self) -> impl Iterator<Item = usize> {
        let points = self.phase.points.iter().enumerate();
        points.filter(|(_, point)| point.is_tracked).map(|(number, _)| number)
    }

    /// The figure of a point in each whole round.
    pub(super) fn series(&self, point: usize) -> Vec<f64> {
        self.whole_rounds().iter().map(|round| figure(&round[point], self.phase.measure)).collect()
    }

    /// The whole rounds up to the end of the window that counts: the last one, but for a test that went on until it was
    /// confirmed, and was not.
    pub(super) fn judged_rounds(&self) -> &[&'r [StepResult]] {
        let whole = self.whole_rounds();
        &whole[..self.judged_to.unwrap_or(whole.len())]
    }

    /// The window that counts of a point, if there are enough rounds since the last interruption.
    pub(super) fn window(&self, point: usize) -> Option<Window> {
        Window::last_of(self.series(point).get(self.continuous_from..self.judged_rounds().len())?)
    }

    /// Whether this is so of the window of all that has to be steady.
    fn all_windows(&self, is_so: fn(&Window) -> bool) -> bool {
        let mut tracked = self.tracked().peekable();
        tracked.peek().is_some() && tracked.all(|point| self.window(point).as_ref().is_some_and(is_so))
    }

    /// Whether all that has to be steady is.
    pub(super) fn is_steady(&self) -> bool {
        self.all_windows(Window::is_steady)
    }

    /// Whether that is so and drift is confirmed to be small.
    pub(super) fn is_confirmed(&self) -> bool {
        self.all_windows(|window| window.is_steady() && window.is_confirmed())
    }

    /// The rounds of the window that counts.
    pub(super) fn window_rounds(&self) -> &[&'r [StepResult]] {
        let judged = self.judged_rounds();
        &judged[judged.len().saturating_sub(WINDOW_ROUNDS)..]
    }

    /// The run that follows.
    fn next(&self) -> Option<Step> {
        if self.is_over {
            return None;
        }
        if let Some(step) = &self.phase.precondition
            && self.precondition.is_none()
        {
            return Some(step.clone());
        }
        let (round, number) = match self.rounds.last() {
            Some(last) if last.len() < self.phase.points.len() => (self.rounds.len(), last.len()),
            _ => (self.rounds.len() + 1, 0),
        };
        let step = self.phase.points.get(number)?.step.clone();
        Some(match round {
            1 => step,
            _ => Step { name: format!("{}, round {round}", step.name), ..step },
        })
    }
}

/// What each phase that has begun has measured, and the run that follows.
pub(super) fn walk<'r>(
    phases: &'r [Phase],
    results: &'r [StepResult],
    breaks: &[usize],
) -> (Vec<PhaseRuns<'r>>, Option<Step>) {
    let (mut all, mut at) = (Vec::new(), 0);
    for phase in phases {
        let own: Vec<usize> = breaks.iter().filter_map(|broken| broken.checked_sub(at)).collect();
        let (runs, taken) = PhaseRuns::take(phase, &results[at..], &own);
        at += taken;
        if let Some(step) = runs.next() {
            all.push(runs);
            return (all, Some(step));
        }
        all.push(runs);
    }
    (all, None)
}
