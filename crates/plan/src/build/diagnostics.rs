//! The problems found while a plan is built, and which jobs they stop.
//!
//! Invariant: every problem is kept, in the order found; a problem of one worker stops no other.

use std::collections::BTreeSet;

use fiord_errno::Errno;
use fiord_options::{Problem, ProblemLevel};

use crate::job::Unplannable;

/// The problems found while a plan is built, and which jobs they stop.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    /// In the order found.
    pub problems: Vec<Problem>,
    /// Indices of those that stop only the current worker, each with its errno.
    current: Vec<(usize, Errno)>,
    /// Indices of those that stopped only an earlier worker.
    earlier: BTreeSet<usize>,
    /// One of them is a path in use, whose contents would be destroyed.
    pub unsafe_target: bool,
}

impl Diagnostics {
    /// What was resolved, or `None` with its problem kept.
    pub fn keep<T>(&mut self, resolved: Result<T, Problem>) -> Option<T> {
        resolved.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Adds a problem that stops only the current worker.
    pub fn add_of_worker(&mut self, problem: Problem, errno: Errno) {
        self.current.push((self.problems.len(), errno));
        self.problems.push(problem);
    }

    /// The problems that stop only the current worker, which becomes an earlier one.
    pub fn take_unplannable(&mut self) -> Option<Unplannable> {
        let found = std::mem::take(&mut self.current);
        let errno = found.first()?.1;
        let problems = found.iter().map(|(index, _)| self.problems[*index].clone()).collect();
        self.earlier.extend(found.into_iter().map(|(index, _)| index));
        Some(Unplannable { errno, problems })
    }

    /// Whether a problem stops the current worker, and no other.
    pub fn stops_worker(&self) -> bool {
        !self.current.is_empty()
    }

    /// Makes the warnings after the first `before` problems errors that stop the current worker.
    pub fn stop_worker_since(&mut self, before: usize, errno: Errno) {
        for (index, problem) in self.problems.iter_mut().enumerate().skip(before) {
            problem.level = ProblemLevel::Error;
            self.current.push((index, errno));
        }
    }

    /// Leaves out the current worker, because the whole run is stopped.
    pub fn drop_worker(&mut self) {
        self.current.clear();
    }

    /// Whether one of the problems after the first `before` stops the whole run.
    pub fn stops_all_since(&self, before: usize) -> bool {
        let of_one = |index: usize| {
            self.earlier.contains(&index) || self.current.iter().any(|(current, _)| *current == index)
        };
        let found = self.problems.iter().enumerate().skip(before);
        found.into_iter().any(|(index, problem)| problem.level == ProblemLevel::Error && !of_one(index))
    }

    /// The warnings of a run that nothing stops.
    pub fn into_warnings(self) -> Vec<Problem> {
        let Diagnostics { problems, earlier, .. } = self;
        let of_run = problems.into_iter().enumerate().filter(|(index, _)| !earlier.contains(index));
        of_run.map(|(_, problem)| problem).collect()
    }
}
