//! Groups of jobs, and rules that stop jobs of a group depending on the group's counters.
//!
//! Invariant: a rule sees only its own jobs and acts on them only through requests; it never waits for a worker.

use fiord_plan::Job;

use crate::debug::DebugLog;
use crate::live::{Counters, State, StopReason};
use crate::report::WorkerReport;
use crate::run_state::RunState;

/// Minimum time between two evaluations of a rule.
const CHECK_INTERVAL_NS: u64 = 1_000_000;

/// The state of one job at a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobTick<'a> {
    pub job: &'a Job,
    pub state: State,
    /// When measuring began, on the monotonic clock; 0 before.
    pub measured_since_ns: u64,
    /// Its totals so far, including the ramp.
    pub counters: Counters,
    /// Time that it has spent reading back what it wrote.
    pub read_back_ns: u64,
}

impl JobTick<'_> {
    /// Whether its I/Os are measured now.
    pub(super) fn is_measured(&self) -> bool {
        self.state.does_io() && self.measured_since_ns > 0
    }
}

/// The state of a group at a tick, from which a rule forms windows, per job or for the whole group.
#[derive(Clone)]
pub(super) struct Tick<'a> {
    /// On the monotonic clock.
    pub now_ns: u64,
    /// The jobs of the group, always in the same order.
    pub jobs: Vec<JobTick<'a>>,
    /// Where what a rule measured is printed, if anywhere.
    pub debug: Option<&'a DebugLog>,
}

impl Tick<'_> {
    /// The sum of its jobs' counters.
    pub(super) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for one in self.jobs.iter().map(|job| &job.counters) {
            for direction in 0..3 {
                sum.ios[direction] += one.ios[direction];
                sum.bytes[direction] += one.bytes[direction];
            }
            sum.latencies += one.latencies;
            sum.latency_ns += one.latency_ns;
        }
        sum
    }
}

/// A rule's decision to stop one job of its group. A rule that stops the whole group returns one for each job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    /// The job's number.
    pub job: u32,
    pub reason: StopReason,
    /// What is wrong with the job, when the reason is a failure.
    pub complaint: Option<String>,
}

/// A rule over the jobs of a group, such as minimum rates or a steady state.
pub(super) trait GroupRule {
    /// When it is to be evaluated next, on the monotonic clock.
    fn due_ns(&self) -> u64;

    /// Evaluates the rule.
    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop>;

    /// Adds what it has found to the report of a job of its group.
    fn annotate(&self, report: &mut WorkerReport) {
        let _ = report;
    }
}

/// Jobs and the rule that applies to them.
pub(super) struct Group<R: ?Sized = dyn GroupRule> {
    members: Vec<usize>,
    checked_ns: u64,
    pub rule: Box<R>,
}

impl<R: GroupRule + ?Sized> Group<R> {
    /// A group of these jobs, given by number.
    pub(super) fn new(members: Vec<usize>, rule: Box<R>) -> Group<R> {
        Group { members, checked_ns: 0, rule }
    }

    /// When its rule is to be evaluated next.
    pub(super) fn due_ns(&self) -> u64 {
        self.rule.due_ns().max(self.checked_ns + CHECK_INTERVAL_NS)
    }

    /// Evaluates the rule if it is due, and requests the stops it returns.
    pub(super) fn look(&mut self, shared: &RunState, now_ns: u64) {
        if now_ns < self.due_ns() {
            return;
        }
        self.checked_ns = now_ns;
        for Stop { job, reason, complaint } in self.rule.look(&self.tick(shared, now_ns)) {
            shared.stop_job(job as usize, reason, complaint);
        }
    }

    /// Adds what its rule has found to the reports of its jobs; `reports` holds one per job of the run, in order.
    pub(super) fn annotate(&self, reports: &mut [WorkerReport]) {
        self.members.iter().for_each(|number| self.rule.annotate(&mut reports[*number]));
    }

    /// The current state of the group.
    pub(super) fn tick<'a>(&self, shared: &'a RunState, now_ns: u64) -> Tick<'a> {
        let of = |number: &usize| {
            let live = &shared.live[*number];
            JobTick {
                job: &shared.plan.jobs[*number],
                state: live.state(),
                measured_since_ns: live.measured_since_ns(),
                counters: live.counters(),
                read_back_ns: live.read_back_ns(now_ns),
            }
        };
        Tick { now_ns, jobs: self.members.iter().map(of).collect(), debug: shared.debug.as_ref() }
    }
}
