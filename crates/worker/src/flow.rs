//! Flows: jobs whose numbers of I/Os are kept in proportion to their weights.
//!
//! Invariant: of the running members of a flow, the one that is furthest behind its share never waits, and no member
//! waits for one that has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use fiord_plan::{Flow, Plan};

/// A job may be ahead by this fraction of its share, so that jobs do not wait for each other at every I/O.
const AHEAD: u128 = 128;

/// The sums over the running members of a flow.
#[derive(Debug, Default)]
struct Sums {
    weights: AtomicU64,
    ios: AtomicU64,
}

/// One job's part in a flow. Its worker counts its I/Os; the coordinator may end it for a worker that hangs.
#[derive(Debug)]
pub(crate) struct FlowMember {
    sums: Arc<Sums>,
    flow: Flow,
    /// I/Os of this job, plus one while it is running: 0 is not running.
    ios_and_one: AtomicU64,
}

impl FlowMember {
    /// One for each job of the plan that takes part in a flow.
    pub(crate) fn all(plan: &Plan) -> Vec<Option<Arc<FlowMember>>> {
        let mut flows: BTreeMap<u32, Arc<Sums>> = BTreeMap::new();
        let mut member = |flow: Flow| {
            let sums = Arc::clone(flows.entry(flow.id).or_default());
            Arc::new(FlowMember { sums, flow, ios_and_one: AtomicU64::new(0) })
        };
        plan.jobs.iter().map(|job| job.pace.flow.map(&mut member)).collect()
    }

    /// Joins the flow, with no I/O yet, unless it has joined already.
    pub(crate) fn join(&self) {
        if self.ios_and_one.compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
            self.sums.weights.fetch_add(u64::from(self.flow.weight), SeqCst);
        }
    }

    /// Leaves the flow, and removes its I/Os from the sums.
    pub(crate) fn leave(&self) {
        if let Some(ios) = self.ios_and_one.swap(0, SeqCst).checked_sub(1) {
            self.sums.ios.fetch_sub(ios, SeqCst);
            self.sums.weights.fetch_sub(u64::from(self.flow.weight), SeqCst);
        }
    }

    /// Whether the job has issued more than its share allows.
    fn is_ahead(&self) -> bool {
        let wide = |number: &AtomicU64| u128::from(number.load(Relaxed));
        let ios = wide(&self.ios_and_one).saturating_sub(1);
        let share = wide(&self.sums.ios) * u128::from(self.flow.weight);
        ios * wide(&self.sums.weights) > share + share / AHEAD
    }

    /// How long to wait, in nanoseconds, before checking again whether an I/O may be issued; `None` if it may. If the
    /// time is 0, yields to other threads.
    pub(crate) fn wait_ns(&self) -> Option<u64> {
        if !self.is_ahead() {
            return None;
        }
        if self.flow.sleep_us == 0 {
            std::thread::yield_now();
        }
        Some(u64::from(self.flow.sleep_us) * 1000)
    }

    /// Counts an I/O that is issued.
    pub(crate) fn issued(&self) {
        // If the coordinator has ended the job for its hung worker, the worker no longer counts.
        let count = |ios_and_one: u64| (ios_and_one > 0).then_some(ios_and_one + 1);
        if self.ios_and_one.fetch_update(SeqCst, SeqCst, count).is_ok() {
            self.sums.ios.fetch_add(1, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of one flow with these weights, all running.
    fn members(weights: &[u32]) -> Vec<FlowMember> {
        let sums = Arc::new(Sums::default());
        let member = |weight: &u32| FlowMember {
            sums: Arc::clone(&sums),
            flow: Flow { id: 0, weight: *weight, sleep_us: 7 },
            ios_and_one: AtomicU64::new(0),
        };
        let members: Vec<FlowMember> = weights.iter().map(member).collect();
        members.iter().for_each(FlowMember::join);
        members
    }

    /// Lets each member in turn issue as many I/Os as it may, at most `at_once`, and returns how many each issued.
    fn issue(members: &[FlowMember], rounds: usize, at_once: usize) -> Vec<u64> {
        let mut counts = vec![0; members.len()];
        for round in 0..rounds {
            let turn = round % members.len();
            for _ in 0..at_once {
                if members[turn].wait_ns().is_none() {
                    members[turn].issued();
                    counts[turn] += 1;
                }
            }
        }
        counts
    }

    #[test]
    fn jobs_issue_in_proportion_to_their_weights() {
        for weights in [&[8, 1][..], &[1, 1], &[3, 2, 1], &[1000, 1, 1]] {
            let counts = issue(&members(weights), 100_000, 3);
            let shares: Vec<f64> = counts
                .iter()
                .zip(weights)
                .map(|(count, weight)| *count as f64 / f64::from(*weight))
                .collect();
            assert!(
                shares.iter().all(|share| (share / shares[0] - 1.0).abs() < 0.02),
                "{weights:?} {counts:?}"
            );
            assert!(counts.iter().sum::<u64>() > 30_000, "{counts:?}");
        }
    }

    #[test]
    fn a_job_that_is_ahead_waits_until_the_others_catch_up_or_end() {
        let flow = members(&[1, 1]);
        flow[0].issued();
        assert_eq!((flow[0].wait_ns(), flow[1].wait_ns()), (Some(7000), None));
        flow[1].issued();
        assert_eq!(flow[0].wait_ns(), None);
        flow[0].issued();
        assert_eq!(flow[0].wait_ns(), Some(7000));
        flow[1].leave();
        flow[1].leave();
        assert_eq!(flow[0].wait_ns(), None);
        flow[1].issued();
        assert_eq!(flow[0].wait_ns(), None, "one that ended does not count any more");
    }

    // divergence: `flow`: how far ahead
    #[test]
    fn a_job_may_be_ahead_by_a_part_of_its_share() {
        let flow = members(&[1, 1]);
        (0..1280).for_each(|_| flow.iter().for_each(FlowMember::issued));
        let mut ahead = 0;
        while flow[0].wait_ns().is_none() {
            flow[0].issued();
            ahead += 1;
        }
        // Its share grows by half of what it issues.
        assert_eq!(ahead, 1 + 2 * 1280 / AHEAD);
    }

    #[test]
    fn a_job_alone_in_its_flow_is_never_held() {
        assert_eq!(issue(&members(&[5]), 10, 10), [100]);
    }
}
