//! The state shared by the workers of a run and its coordinator: progress through the stages, and reports.
//!
//! Invariant: no lock here is taken by more than one worker; after every change that a thread may wait for, and after
//! every request to stop, the waiting threads are woken.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fiord_plan::{ExitWhat, Job, Plan};
use fiord_sys::futex::EventCount;
use fiord_sys::{clock, thread_activity};

use crate::control_groups::ControlGroups;
use crate::debug::DebugLog;
use crate::files::locks::Locks;
use crate::files::target_opener::TargetOpener;
use crate::files::zones::ZoneTables;
use crate::flow::FlowMember;
use crate::live::{Live, PublishedLock, StopReason};
use crate::log_sink::LogSink;
use crate::report::WorkerReport;
use crate::timekeepers::Timekeepers;

/// Time between two looks at the page faults of other workers.
const FAULT_INTERVAL: Duration = Duration::from_millis(20);

/// A worker's report, which is stored and taken at most once.
#[derive(Debug, Default)]
enum ReportSlot {
    /// The worker has not ended.
    #[default]
    Empty,
    /// The worker has ended.
    Report(Box<WorkerReport>),
    /// Already taken; a later report is dropped.
    Taken,
}

/// Number of workers of a stage that have not reached a point yet.
#[derive(Debug, Default)]
struct Missing(AtomicUsize);

impl Missing {
    fn set(&self, count: usize) {
        self.0.store(count, SeqCst);
    }

    fn is_none(&self) -> bool {
        self.0.load(SeqCst) == 0
    }

    /// Counts one worker; `true` if it was the last. No worker is missing before the first stage begins.
    fn is_last(&self) -> bool {
        self.0.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) == Ok(1)
    }
}

/// A run in progress, owned jointly by its threads: a worker that hangs in the kernel keeps the state that it may
/// still access, even after the run continued without it.
///
/// Ten thousand workers may wait here at once. So no thread is woken without need (the coordinator when a whole stage
/// is ready or has ended, workers at the barrier when their stage is released, workers with `wait_for` at each end),
/// and there is no lock that all of them would queue for.
pub(crate) struct RunState {
    pub plan: Arc<Plan>,
    /// Workers that start together: ranges of job numbers, cut at the stonewalls.
    pub stages: Vec<std::ops::Range<usize>>,
    pub live: Vec<Live>,
    /// What the workers have published of their statistics, on request.
    pub published: Vec<PublishedLock>,
    /// Receivers of the jobs' logs, each taken once by its worker.
    pub log_sinks: Vec<Mutex<Option<Box<dyn LogSink>>>>,
    /// The lines of `--debug`, if any are printed.
    pub debug: Option<DebugLog>,
    /// Whether workers look at what the page cache has of their files.
    pub looks_at_caches: bool,
    /// Opens, checks and removes files.
    pub opener: TargetOpener,
    /// Locks on files.
    pub locks: Locks,
    /// The zones of zoned targets.
    pub zones: ZoneTables,
    /// The control groups of jobs.
    pub control_groups: ControlGroups,
    /// The threads that keep the time for jobs.
    pub timekeepers: Timekeepers,
    /// The jobs' parts in flows.
    flows: Vec<Option<Arc<FlowMember>>>,
    pub started_ns: u64,
    /// Reports of workers that have ended.
    reports: Vec<Mutex<ReportSlot>>,
    /// When a signal requested all workers to stop; 0 before.
    stopping_since_ns: AtomicU64,
    /// Whether a second signal has arrived since.
    is_urgent: AtomicBool,
    /// When the first stage was released; 0 before.
    released_since_ns: AtomicU64,
    /// Workers that wait at the barrier, or have ended.
    ready: Vec<AtomicBool>,
    /// Workers that have ended.
    ended: Vec<AtomicBool>,
    /// Workers of the current stage that are not ready yet.
    unready: Missing,
    /// Workers of the current stage that have not ended yet.
    unended: Missing,
    /// Number of stages released.
    stages_started: AtomicUsize,
    /// Notified when all workers of a stage are ready, and when all have ended.
    stage_changed: EventCount,
    /// Notified when a stage is released, and on every request to stop.
    stage_released: EventCount,
    /// Notified when a worker ends while others wait for ends, and on every request to stop.
    one_ended: EventCount,
    /// Number of workers that wait for others to end.
    waiting_for_ends: AtomicUsize,
    /// Whether a worker was abandoned that may hang in a page fault, and then holds a lock on the memory map.
    is_memory_map_held: AtomicBool,
}

impl RunState {
    pub(crate) fn new(plan: Arc<Plan>) -> RunState {
        let count = plan.jobs.len();
        let flags = || (0..count).map(|_| AtomicBool::new(false)).collect();
        RunState {
            opener: TargetOpener::of(&plan),
            locks: Locks::default(),
            zones: ZoneTables::of(&plan),
            stages: stages(&plan),
            control_groups: ControlGroups::of(&plan.jobs),
            timekeepers: Timekeepers::of(&plan.jobs),
            flows: FlowMember::all(&plan),
            plan,
            live: (0..count).map(|_| Live::default()).collect(),
            published: (0..count).map(|_| PublishedLock::default()).collect(),
            log_sinks: Vec::new(),
            debug: None,
            looks_at_caches: false,
            started_ns: clock::monotonic_ns(),
            reports: (0..count).map(|_| Mutex::default()).collect(),
            stopping_since_ns: AtomicU64::new(0),
            is_urgent: AtomicBool::new(false),
            released_since_ns: AtomicU64::new(0),
            ready: flags(),
            ended: flags(),
            unready: Missing::default(),
            unended: Missing::default(),
            stages_started: AtomicUsize::new(0),
            stage_changed: EventCount::default(),
            stage_released: EventCount::default(),
            one_ended: EventCount::default(),
            waiting_for_ends: AtomicUsize::new(0),
            is_memory_map_held: AtomicBool::new(false),
        }
    }

    /// Takes the receiver of a worker's logs, if it has one.
    pub(crate) fn take_log_sink(&self, number: usize) -> Option<Box<dyn LogSink>> {
        self.log_sinks.get(number)?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A worker's part in a flow, if it has one.
    pub(crate) fn flow_of(&self, number: usize) -> Option<&Arc<FlowMember>> {
        self.flows[number].as_ref()
    }

    fn report_slot(&self, number: usize) -> MutexGuard<'_, ReportSlot> {
        self.reports[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a worker's report, unless it has one already: an abandoned worker may still return.
    pub(crate) fn put_report(&self, report: WorkerReport) {
        let mut slot = self.report_slot(report.number as usize);
        if matches!(*slot, ReportSlot::Empty) {
            *slot = ReportSlot::Report(Box::new(report));
        }
    }

    /// A copy of this worker's report, if it has ended.
    pub(crate) fn report_of(&self, number: usize) -> Option<WorkerReport> {
        match &*self.report_slot(number) {
            ReportSlot::Report(report) => Some(WorkerReport::clone(report)),
            ReportSlot::Empty | ReportSlot::Taken => None,
        }
    }

    /// Takes this worker's report; reports stored later are dropped.
    pub(crate) fn take_report_of(&self, number: usize) -> Option<WorkerReport> {
        match std::mem::replace(&mut *self.report_slot(number), ReportSlot::Taken) {
            ReportSlot::Report(report) => Some(*report),
            ReportSlot::Empty | ReportSlot::Taken => None,
        }
    }

    /// Begins a stage: from now on its workers are counted.
    pub(crate) fn begin_stage(&self, stage: std::ops::Range<usize>) {
        self.opener.invalidate();
        for number in stage.clone() {
            let schedule = &self.plan.jobs[number].schedule;
            // One that starts later joins its flow when it does.
            let starts_with_stage = schedule.wait_for.is_none() && schedule.start_delay_ns.1 == 0;
            if let Some(flow) = self.flow_of(number).filter(|_| starts_with_stage && !self.is_ended(number)) {
                flow.join();
            }
        }
        let count = |flags: &[AtomicBool]| flags.iter().filter(|flag| !flag.load(SeqCst)).count();
        self.unready.set(count(&self.ready[stage.clone()]));
        self.unended.set(count(&self.ended[stage]));
    }

    /// Releases the workers of the current stage from the barrier.
    pub(crate) fn release_stage(&self) {
        let _ = self.released_since_ns.compare_exchange(0, clock::monotonic_ns(), Relaxed, Relaxed);
        self.stages_started.fetch_add(1, SeqCst);
        self.stage_released.notify_all();
    }

    /// Time since the first stage was released; 0 before.
    pub(crate) fn released_for_ns(&self, now_ns: u64) -> u64 {
        match self.released_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        }
    }

    /// Marks a worker as ready: the barrier no longer waits for it.
    pub(crate) fn mark_ready(&self, number: usize) {
        if !self.ready[number].swap(true, SeqCst) && self.unready.is_last() {
            self.stage_changed.notify_all();
        }
    }

    /// Marks a worker as ended.
    pub(crate) fn mark_ended(&self, number: usize) {
        self.mark_ready(number);
        if self.ended[number].swap(true, SeqCst) {
            return;
        }
        // An abandoned worker must not block the others of its flow.
        if let Some(flow) = self.flow_of(number) {
            flow.leave();
        }
        if self.unended.is_last() {
            self.stage_changed.notify_all();
        }
        if self.waiting_for_ends.load(SeqCst) > 0 {
            self.one_ended.notify_all();
        }
    }

    /// Whether this worker has ended.
    pub(crate) fn is_ended(&self, number: usize) -> bool {
        self.ended[number].load(SeqCst)
    }

    /// Whether all workers of the current stage are ready or have ended.
    pub(crate) fn are_all_ready(&self) -> bool {
        self.unready.is_none()
    }

    /// Whether all workers of the current stage have ended.
    pub(crate) fn have_all_ended(&self) -> bool {
        self.unended.is_none()
    }

    /// Notified when all workers of the current stage are ready, and when all have ended.
    pub(crate) fn stage_changed(&self) -> &EventCount {
        &self.stage_changed
    }

    /// Blocks a worker until stage number `stage` is released; `false` if it was requested to stop meanwhile.
    pub(crate) fn wait_for_stage(&self, live: &Live, stage: usize) -> bool {
        wait_until(&self.stage_released, live, || self.stages_started.load(SeqCst) > stage)
    }

    /// Blocks a worker until all these have ended; `false` if it was requested to stop meanwhile.
    pub(crate) fn wait_for_workers(&self, live: &Live, workers: &[usize]) -> bool {
        self.waiting_for_ends.fetch_add(1, SeqCst);
        let waited =
            wait_until(&self.one_ended, live, || workers.iter().all(|number| self.is_ended(*number)));
        self.waiting_for_ends.fetch_sub(1, SeqCst);
        waited
    }

    /// Records that a worker was abandoned that may hang in a page fault.
    pub(crate) fn hold_memory_map(&self) {
        self.is_memory_map_held.store(true, SeqCst);
    }

    /// Whether a worker was abandoned that may hang in a page fault: nothing must be mapped or unmapped any more.
    pub(crate) fn is_memory_map_held(&self) -> bool {
        self.is_memory_map_held.load(SeqCst)
    }

    /// Blocks a worker that has done its I/O while others of its stage wait in page faults, in which it could unmap nothing;
    /// `false` if one of these was abandoned.
    pub(crate) fn wait_for_page_faults(&self, number: usize) -> bool {
        let may_fault = |other: &usize| *other != number && self.plan.jobs[*other].touches_mapped_files();
        let waits = |other: usize| thread_activity::is_in_page_fault(self.live[other].thread_id());
        let completions = |other: usize| self.live[other].completions();
        let others = self.stages[self.stage_of(number)].clone().filter(may_fault);
        let mut waiting: Vec<(usize, u64)> =
            others.filter(|other| waits(*other)).map(|other| (other, completions(other))).collect();
        self.live[number].set_held_up(!waiting.is_empty());
        while !waiting.is_empty() && !self.is_memory_map_held() {
            self.stage_released.wait(self.stage_released.current(), Some(FAULT_INTERVAL));
            // The next page is another fault.
            waiting.retain(|(other, seen)| waits(*other) && completions(*other) == *seen);
        }
        self.live[number].set_held_up(false);
        !self.is_memory_map_held()
    }

    /// Blocks a worker until `deadline_ns`; `false` if it was requested to stop meanwhile.
    pub(crate) fn wait_until_ns(&self, live: &Live, deadline_ns: u64) -> bool {
        loop {
            let seen = self.stage_released.current();
            if live.is_stop_requested() {
                return false;
            }
            match deadline_ns.saturating_sub(clock::monotonic_ns()) {
                0 => return true,
                left_ns => self.stage_released.wait(seen, Some(Duration::from_nanos(left_ns))),
            }
        }
    }

    /// Wakes workers that were requested to stop, wherever they wait.
    fn wake_all(&self) {
        self.stage_released.notify_all();
        self.one_ended.notify_all();
    }

    /// The stage a worker belongs to.
    pub(crate) fn stage_of(&self, number: usize) -> usize {
        self.stages.iter().position(|stage| stage.contains(&number)).unwrap_or(0)
    }

    /// Requests all jobs that depend on `job`'s end to stop.
    fn stop_others(&self, job: &Job, why: StopReason) {
        let stage = self.stage_of(job.number as usize);
        for (number, other) in self.plan.jobs.iter().enumerate() {
            let concerned = match job.schedule.exit_what {
                ExitWhat::Group => other.group_id == job.group_id,
                ExitWhat::Stonewall => self.stages[stage].contains(&number),
                ExitWhat::All => true,
            };
            if concerned && number != job.number as usize {
                self.live[number].request_stop(why);
            }
        }
        self.wake_all();
    }

    /// Requests this job to stop, with a complaint if something is wrong with it.
    pub(crate) fn stop_job(&self, number: usize, reason: StopReason, complaint: Option<String>) {
        if let Some(complaint) = complaint {
            self.live[number].set_complaint(complaint);
        }
        self.live[number].request_stop(reason);
        self.wake_all();
    }

    /// Applies `exitall` and `exit_what` at the end of `job`.
    pub(crate) fn stop_dependents(&self, job: &Job, has_failed: bool) {
        if job.schedule.exit_all || (has_failed && job.schedule.exit_all_on_error) {
            self.stop_others(job, StopReason::Other);
        }
    }

    /// Stores the report of a worker at its end, and ends those that depend on it.
    pub(crate) fn end_worker(&self, job: &Job, report: WorkerReport) {
        self.stop_dependents(job, report.failure.is_some());
        self.put_report(report);
        self.mark_ended(job.number as usize);
    }

    /// Requests all workers to stop because of a signal.
    pub(crate) fn stop_all(&self, now_ns: u64) {
        self.stopping_since_ns.store(now_ns, Relaxed);
        self.live.iter().for_each(|live| live.request_stop(StopReason::Signal));
        self.wake_all();
    }

    /// Requests all workers to stop because the trigger of the run fired.
    pub(crate) fn stop_for_trigger(&self, now_ns: u64) {
        self.stopping_since_ns.store(now_ns, Relaxed);
        self.live.iter().for_each(|live| live.request_stop(StopReason::Trigger));
        self.wake_all();
    }

    /// Records that a second signal arrived.
    pub(crate) fn set_urgent(&self) {
        self.is_urgent.store(true, Relaxed);
    }

    /// Whether a second signal arrived: everything but the report is cut short.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent.load(Relaxed)
    }

    /// Time since a signal requested all workers to stop; 0 before.
    pub(crate) fn stopping_for_ns(&self, now_ns: u64) -> u64 {
        match self.stopping_since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        }
    }
}

/// Blocks a worker until `condition` holds, whose changes are all notified through `event`; `false` if it was
/// requested to stop meanwhile.
fn wait_until(event: &EventCount, live: &Live, condition: impl Fn() -> bool) -> bool {
    loop {
        // Read before the conditions: whatever makes one of them true notifies afterwards.
        let seen = event.current();
        if live.is_stop_requested() {
            return false;
        }
        if condition() {
            return true;
        }
        event.wait(seen, None);
    }
}

/// Splits the jobs into stages at each `stonewall`.
fn stages(plan: &Plan) -> Vec<std::ops::Range<usize>> {
    let mut stages = Vec::new();
    let mut first = 0;
    for (number, job) in plan.jobs.iter().enumerate() {
        if job.schedule.stonewall && job.clone == 0 && number > first {
            stages.push(first..number);
            first = number;
        }
    }
    if first < plan.jobs.len() {
        stages.push(first..plan.jobs.len());
    }
    stages
}
