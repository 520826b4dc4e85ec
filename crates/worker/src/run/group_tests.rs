//! Rules of groups: on synthetic windows and a test clock, and in real runs.
//!
//! Invariant: no figure that a rule sees here depends on the speed of the machine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use fiord_plan::{Direction, Job, Pace, Pattern, Plan, SteadyCriterion, SteadyLimit, SteadyMeasure};

use super::aggregate_sampler::{AggregateSampler, RateSample};
use super::coordinator::run_under;
use super::group::{Group, GroupRule, Stop, Tick};
use super::rules::groups;
use super::window::WindowStart;
use crate::job::engines::ENGINES;
use crate::live::{State, StopReason};
use crate::report::{EndReason, WorkerReport, not_started};
use crate::run_state::RunState;
use crate::test_jobs::{CallCounter, null_job};

const SECOND_NS: u64 = 1_000_000_000;

/// Ends its group once three figures in a row are within a percent of each other.
struct Steady<F> {
    figure: F,
    last: Vec<f64>,
    due_ns: u64,
    every_ns: u64,
}

fn steady<F: FnMut(&Tick<'_>) -> Option<f64>>(every_ns: u64, figure: F) -> Steady<F> {
    Steady { figure, last: Vec::new(), due_ns: 0, every_ns }
}

impl<F: FnMut(&Tick<'_>) -> Option<f64>> GroupRule for Steady<F> {
    fn due_ns(&self) -> u64 {
        self.due_ns
    }

    fn look(&mut self, tick: &Tick<'_>) -> Vec<Stop> {
        self.due_ns = tick.now_ns + self.every_ns;
        self.last.extend((self.figure)(tick));
        let Some(last) = self.last.last_chunk::<3>() else { return Vec::new() };
        let (least, most) = last
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), figure| (least.min(*figure), most.max(*figure)));
        if most - least > most / 100.0 {
            return Vec::new();
        }
        // It has decided; its jobs end at their next check.
        self.due_ns = u64::MAX;
        let stop = |job: u32| Stop { job, reason: StopReason::Time, complaint: None };
        tick.jobs.iter().map(|job| stop(job.job.number)).collect()
    }
}

/// Null jobs, each in the group of this number.
fn plan(groups: &[u32]) -> Plan {
    let of = |(number, group_id): (usize, &u32)| Job {
        number: number as u32,
        group_id: *group_id,
        ..null_job(&format!("job{number}"))
    };
    Plan { jobs: groups.iter().enumerate().map(of).collect(), trigger: None }
}

/// A run state in which all jobs have been running since `since_ns`.
fn running(plan: Plan, since_ns: u64) -> RunState {
    let shared = RunState::new(Arc::new(plan));
    for live in &shared.live {
        live.set_state(State::Running);
        live.set_measured_since_ns(since_ns);
    }
    shared
}

#[test]
fn a_rule_ends_all_jobs_of_its_group_once_three_windows_agree_and_no_others() {
    let shared = running(plan(&[0, 1, 1]), 1);
    let mut window_start = WindowStart { at_ns: SECOND_NS, ..WindowStart::default() };
    let rule = steady(SECOND_NS / 2, move |tick: &Tick<'_>| {
        assert_eq!(tick.jobs.iter().map(|job| job.job.number).collect::<Vec<_>>(), [1, 2]);
        let window = window_start.advance(tick.now_ns, &tick.counters(), 1000)?;
        Some(window.ios[0] as f64 / window.seconds)
    });
    let mut group = Group::new(vec![1, 2], Box::new(rule));
    // I/Os of both jobs in each second. The counters of the other group's job do not matter.
    for (second, ios) in [(2, 800), (3, 1000), (4, 1004), (5, 996)] {
        shared.live[0].completed(Direction::Read, second * 77, 4096);
        shared.live[1].completed(Direction::Read, ios / 4, 4096);
        shared.live[2].completed(Direction::Read, ios - ios / 4, 4096);
        assert!(shared.live.iter().all(|live| !live.is_stop_requested()), "before second {second}");
        group.look(&shared, second * SECOND_NS - SECOND_NS / 2);
        group.look(&shared, second * SECOND_NS);
    }
    let stopped: Vec<bool> = shared.live.iter().map(|live| live.is_stop_requested()).collect();
    assert_eq!(stopped, [false, true, true]);
    assert_eq!(shared.live[2].stop_reason(), StopReason::Time);
}

#[test]
fn a_rule_ends_a_real_run_by_made_up_windows() {
    let mut plan = plan(&[0, 0, 1]);
    for job in &mut plan.jobs {
        (job.limits.time_based, job.limits.runtime_ns) = (true, Some(u64::MAX / 2));
    }
    let plan = Arc::new(plan);
    // The second group is stopped after the first has ended; it has no end of its own.
    let of_first = |tick: &Tick<'_>| tick.jobs.iter().all(|job| job.state == State::Running);
    let mut figures = [500.0, 700.0, 900.0, 1000.0, 1002.0, 998.0].into_iter();
    let first = steady(1_000_000, move |tick: &Tick<'_>| {
        of_first(tick).then(|| figures.next().expect("the rule was asked after three windows agreed"))
    });
    let first_has_ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&first_has_ended);
    let second = steady(1_000_000, move |_: &Tick<'_>| seen.load(SeqCst).then_some(1.0));
    let watch = steady(1_000_000, move |tick: &Tick<'_>| {
        first_has_ended.store(tick.jobs.iter().all(|job| job.state.is_over()), SeqCst);
        None
    });
    let groups: Vec<Group> = vec![
        Group::new(vec![0, 1], Box::new(first) as Box<dyn GroupRule>),
        Group::new(vec![0, 1], Box::new(watch) as Box<dyn GroupRule>),
        Group::new(vec![2], Box::new(second) as Box<dyn GroupRule>),
    ];
    let result = run_under(groups, &plan, ENGINES, &mut CallCounter::default());
    for worker in &result.workers {
        assert_eq!((worker.reason, &worker.failure), (EndReason::Time, &None));
        assert!(worker.stats.directions[0].ios > 0, "what it measured is in its report");
    }
}

#[test]
fn a_job_below_its_minimum_rate_fails_after_its_grace_and_the_others_of_its_group_go_on() {
    let mut plan = plan(&[0, 0]);
    for job in &mut plan.jobs {
        job.pace = Pace { min_ios_per_s: [Some(100), None, None], cycle_ms: 1000, ..Pace::default() };
    }
    let shared = running(plan, SECOND_NS);
    let mut groups = groups(&shared.plan);
    assert_eq!(groups.len(), 1, "one rule for the reporting group");
    let mut now_ns = SECOND_NS;
    let mut go = |seconds: u64, ios: [u64; 2]| {
        for _ in 0..seconds {
            now_ns += SECOND_NS;
            for (live, ios) in shared.live.iter().zip(ios) {
                live.completed(Direction::Read, ios, ios * 4096);
            }
            groups[0].look(&shared, now_ns);
        }
        shared.live.iter().map(|live| live.is_stop_requested()).collect::<Vec<_>>()
    };
    assert_eq!(go(2, [0, 0]), [false, false], "the grace of two seconds, and the beginning of a window");
    assert_eq!(go(3, [100, 150]), [false, false]);
    assert_eq!(go(1, [120, 99]), [false, true]);
    assert_eq!(shared.live[1].stop_reason(), StopReason::TooSlow);
    assert_eq!(shared.live[1].complaint(), "rate_iops_min=100 not met, got 99 IOPS");
}

/// What makes a job of a row from a plain one.
type ChangeJob<'a> = &'a dyn Fn(&mut Job);

/// Whether a job with a minimum of 100 IOPS in every direction, as one value of `rate_iops_min` gives it, is stopped after
/// windows in which it does this many I/Os.
fn is_stopped(change: impl Fn(&mut Job), ios: [u64; 3], read_back: bool) -> bool {
    let mut plan = plan(&[0]);
    plan.jobs[0].pace = Pace { min_ios_per_s: [Some(100); 3], cycle_ms: 1000, ..Pace::default() };
    change(&mut plan.jobs[0]);
    let shared = running(plan, SECOND_NS);
    let (live, mut groups) = (&shared.live[0], groups(&shared.plan));
    groups[0].look(&shared, 3 * SECOND_NS);
    live.set_reads_back(read_back, || 3 * SECOND_NS);
    for second in 4..8 {
        Direction::ALL.into_iter().for_each(|direction| {
            live.completed(direction, ios[direction.index()], 0);
        });
        groups[0].look(&shared, second * SECOND_NS);
    }
    live.is_stop_requested()
}

#[test]
fn only_directions_that_a_job_has_are_held_to_a_minimum() {
    let mixed = |read_percent| {
        move |job: &mut Job| {
            (job.access.pattern, job.access.read_percent) = (Pattern::Mixed, read_percent);
        }
    };
    let only = |direction| move |job: &mut Job| job.access.pattern = Pattern::Only(direction);
    let trim_write = |job: &mut Job| job.access.pattern = Pattern::TrimThenWrite;
    let table: [(ChangeJob<'_>, [u64; 3]); 7] = [
        (&only(Direction::Read), [100, 0, 0]),
        (&only(Direction::Write), [0, 100, 0]),
        (&only(Direction::Trim), [0, 0, 100]),
        (&mixed(50), [100, 100, 0]),
        (&mixed(100), [100, 0, 0]),
        (&mixed(0), [0, 100, 0]),
        (&trim_write, [0, 100, 100]),
    ];
    for (number, (change, ios)) in table.into_iter().enumerate() {
        assert!(!is_stopped(change, ios, false), "row {number}");
        for slow in (0..3).filter(|direction| ios[*direction] > 0) {
            let mut slower = ios;
            slower[slow] = 99;
            assert!(is_stopped(change, slower, false), "row {number}, direction {slow}");
        }
    }
}

#[test]
fn a_job_that_reads_back_what_it_wrote_is_not_held_to_its_rate_of_writes() {
    let write = |job: &mut Job| job.access.pattern = Pattern::Only(Direction::Write);
    assert!(!is_stopped(write, [500, 0, 0], true));
    assert!(is_stopped(write, [500, 0, 0], false), "it reads, but not back");
}

#[test]
fn a_group_without_minimum_rates_has_no_rule() {
    assert!(groups(&plan(&[0, 0, 1])).is_empty());
}

/// Null jobs in one reporting group, reported as one, that end once they are steady.
fn steady_plan(jobs: usize, steady: fiord_plan::Steady) -> Plan {
    let mut plan = plan(&vec![0; jobs]);
    for job in &mut plan.jobs {
        job.steady = Some(steady);
        job.presentation.group_reporting = true;
    }
    plan
}

const STEADY: fiord_plan::Steady = fiord_plan::Steady {
    criterion: SteadyCriterion {
        measure: SteadyMeasure::Iops,
        is_slope: false,
        limit: SteadyLimit::Percent(1.0),
    },
    duration_s: 3,
    ramp_ns: 0,
    interval_ns: SECOND_NS,
};

#[test]
fn jobs_reported_as_one_end_when_their_sum_is_steady_and_all_report_it() {
    let shared = running(steady_plan(2, STEADY), SECOND_NS);
    let mut groups = groups(&shared.plan);
    assert_eq!(groups.len(), 1, "one rule for both jobs");
    // The first tick comes late; the jobs began with empty counters.
    groups[0].look(&shared, SECOND_NS + 50_000_000);
    let per_second = [(700, 300), (500, 480), (400, 600), (450, 553), (997, 0)];
    for (second, (first, other)) in (2..).zip(per_second) {
        assert!(!shared.live[0].is_stop_requested(), "before second {second}");
        shared.live[0].completed(Direction::Read, first, first * 4096);
        shared.live[1].completed(Direction::Write, other, other * 4096);
        groups[0].look(&shared, second * SECOND_NS);
    }
    assert!(shared.live.iter().all(|live| live.stop_reason() == StopReason::Steady));
    let mut reports: Vec<WorkerReport> = shared.plan.jobs.iter().map(not_started).collect();
    groups[0].annotate(&mut reports);
    for report in reports {
        let steady = report.steady.expect("the rule adds it");
        assert!(steady.attained);
        assert_eq!(steady.samples.iter().map(|sample| sample.iops).collect::<Vec<_>>(), [1000, 1003, 997]);
        assert_eq!((steady.mean(|sample| sample.bytes_per_s), steady.max_deviation), (4_096_000, 3.0));
    }
}

// divergence: when measurements for a steady state begin
#[test]
fn measurements_begin_after_the_ramp_of_the_job_and_that_of_the_steady_state() {
    let mut plan = steady_plan(1, fiord_plan::Steady { ramp_ns: 2 * SECOND_NS, duration_s: 1, ..STEADY });
    plan.jobs[0].limits.ramp_ns = SECOND_NS;
    let shared = RunState::new(Arc::new(plan));
    let (live, mut groups) = (&shared.live[0], groups(&shared.plan));
    live.set_state(State::Ramping);
    live.completed(Direction::Read, 5000, 0);
    groups[0].look(&shared, SECOND_NS);
    live.set_state(State::Running);
    live.set_measured_since_ns(2 * SECOND_NS);
    groups[0].look(&shared, 3 * SECOND_NS);
    live.completed(Direction::Read, 5000, 0);
    groups[0].look(&shared, 4 * SECOND_NS);
    live.completed(Direction::Read, 70, 0);
    groups[0].look(&shared, 5 * SECOND_NS);
    let mut reports = vec![not_started(&shared.plan.jobs[0])];
    groups[0].annotate(&mut reports);
    let samples = reports.remove(0).steady.expect("the rule adds it").samples;
    assert_eq!(samples.iter().map(|sample| sample.iops).collect::<Vec<_>>(), [70]);
    assert!(live.is_stop_requested());
}

#[test]
fn the_latency_of_a_window_is_the_mean_over_its_ios() {
    let criterion = SteadyCriterion { measure: SteadyMeasure::Latency, ..STEADY.criterion };
    let shared =
        running(steady_plan(1, fiord_plan::Steady { criterion, duration_s: 2, ..STEADY }), SECOND_NS);
    let mut groups = groups(&shared.plan);
    groups[0].look(&shared, SECOND_NS);
    for (second, (ios, latency_ns)) in (2..).zip([(10, 5000), (100, 10_000), (10, 1005)]) {
        assert!(!shared.live[0].is_stop_requested(), "before second {second}");
        shared.live[0].completed(Direction::Read, ios, 0);
        shared.live[0].add_latencies(ios, latency_ns);
        groups[0].look(&shared, second * SECOND_NS);
    }
    assert!(shared.live[0].is_stop_requested(), "100 ns and 100.5 ns");
}

#[test]
fn a_queued_and_a_synchronous_job_show_their_latencies_to_the_rule() {
    let criterion = SteadyCriterion {
        measure: SteadyMeasure::Latency,
        is_slope: false,
        limit: SteadyLimit::Percent(f64::MAX),
    };
    for depth in [1, 4] {
        let steady = fiord_plan::Steady { criterion, duration_s: 1, interval_ns: SECOND_NS / 2, ..STEADY };
        let mut plan = steady_plan(1, steady);
        let job = &mut plan.jobs[0];
        (job.depth.max, job.depth.submit) = (depth, 1);
        // Without latencies it is never steady, and ends by its run time.
        (job.limits.time_based, job.limits.runtime_ns) = (true, Some(10 * SECOND_NS));
        let plan = Arc::new(plan);
        let result = run_under(groups(&plan), &plan, ENGINES, &mut CallCounter::default());
        let worker = &result.workers[0];
        assert_eq!((worker.reason, &worker.failure), (EndReason::Steady, &None), "depth {depth}");
        let steady = worker.steady.as_ref().expect("the rule adds it");
        assert!(steady.samples.iter().all(|sample| sample.latency_ns > 0 && sample.iops > 0));
    }
}

#[test]
fn all_jobs_are_summed_and_the_last_window_is_cut_short() {
    let shared = running(plan(&[0, 1]), 1);
    let mut all = Group::new(vec![0, 1], Box::new(AggregateSampler::new(0, 500)));
    let mut look = |now_ns: u64| {
        all.look(&shared, now_ns);
        all.rule.take()
    };
    shared.live.iter().for_each(|live| {
        live.completed(Direction::Write, 1, 1 << 20);
    });
    assert_eq!(look(400_000_000), None);
    assert_eq!(look(500_000_000), Some(RateSample { at_ms: 500, kib_per_s: [0, 4096, 0] }));
    shared.live[1].completed(Direction::Read, 1, 1 << 20);
    for expected in [Some(RateSample { at_ms: 750, kib_per_s: [4096, 0, 0] }), None] {
        let tick = all.tick(&shared, 750_000_000);
        all.rule.cut(&tick);
        assert_eq!(all.rule.take(), expected);
    }
}
