//! What a conclusion is, and the measures by which evidence carries one.
//!
//! Invariant: pure; all thresholds that several conclusions share are here.

use fiord_report::table::Cell;

use crate::observation::{Limit, Observation, WatchedDevice};

/// What stands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// What it is called in JSON.
    pub code: &'static str,
    /// What is so, with its figures.
    pub sentence: String,
    /// What to do about it, or where to look.
    pub remedy: &'static str,
}

/// Fewer requests say nothing of percentiles.
pub(crate) const REQUESTS_MIN: u64 = 100;
/// Of events that may be lost, in percent of all.
const LOST_PERCENT_MAX: f64 = 1.0;
/// A group that does this much of its limit is held back by it, in percent.
const LIMIT_PERCENT: f64 = 90.0;
/// One that has this much of the time of a device is who keeps it busy, in percent.
pub(crate) const CULPRIT_PERCENT: f64 = 60.0;
/// A device with fewer requests at a time is not full.
pub(crate) const DEPTH_FULL: f64 = 8.0;
/// A median above this is slow for a device that has few requests at a time, in nanoseconds: with and without platters.
const SLOW_NS: [u64; 2] = [30_000_000, 5_000_000];

/// The device with most time of requests.
pub(crate) fn busiest(observation: &Observation) -> Option<&WatchedDevice> {
    let busy = |device: &&WatchedDevice| device.figures.as_ref().map_or(0, |figures| figures.waited_ns().1);
    observation.devices.iter().max_by_key(busy)
}

/// Whether too many events were lost beside these requests, of which each has three.
pub(crate) fn is_lossy(observation: &Observation, requests: u64) -> bool {
    100.0 * observation.lost as f64 / (3 * requests + observation.lost).max(1) as f64 > LOST_PERCENT_MAX
}

pub(crate) fn limited(limit: &Limit) -> Option<Conclusion> {
    let percent = 100.0 * limit.done_per_s / limit.per_s.max(1) as f64;
    (percent >= LIMIT_PERCENT).then(|| {
        let Limit { group, device, what, per_s, done_per_s } = limit;
        Conclusion {
            code: "limited",
            sentence: format!(
                "The control group {group} is at its limit on {device}: {done_per_s:.0} of {what}={per_s} a second."
            ),
            remedy: "Raise io.max of that group, or have it do less.",
        }
    })
}

pub(crate) fn slow_ns(device: &WatchedDevice) -> u64 {
    SLOW_NS[usize::from(!device.rotational)]
}

pub(crate) fn shown(ns: u64) -> String {
    Cell::Latency(ns).shown()
}
