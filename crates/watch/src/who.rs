//! Who has most of a device's time, in words: a process, or a container or control group whose processes together have.
//!
//! Invariant: a group is named only where it is known of each process that counts for it.

use std::collections::BTreeMap;

use fiord_stats::OrderBy;

use crate::evidence::{CULPRIT_PERCENT, busiest};
use crate::observation::Observation;
use crate::tables::{Share, shares};

/// Who keeps the busiest device busy, as a sentence that begins with a blank; empty if no one does.
pub(crate) fn culprit(observation: &Observation) -> String {
    let shares = busiest(observation).map(|device| shares(observation, device)).unwrap_or_default();
    most(observation, &shares).map_or_else(String::new, |most| format!(" Most of it is {most}."))
}

/// Who has most of the time, if one has.
pub(crate) fn most(observation: &Observation, shares: &[Share]) -> Option<String> {
    let is_most = |percent: f64| percent >= CULPRIT_PERCENT;
    let first = shares.first().filter(|share| is_most(share.time_percent));
    let group = || groups(observation, shares).into_iter().find(|group| is_most(group.time_percent));
    first.map(|share| named(observation, share)).or_else(|| group().map(|group| group.named()))
}

/// `most of it is fio (4711), 93 % of the device's time`.
pub(crate) fn who_fills(observation: &Observation, shares: &[Share]) -> String {
    if let Some(most) = most(observation, shares) {
        return format!("most of it is {most}");
    }
    let culprits = shares.iter().take_while(|share| share.time_percent >= 100.0 - CULPRIT_PERCENT);
    let culprits: Vec<String> = culprits.map(|share| named(observation, share)).collect();
    match culprits.as_slice() {
        [] => format!("{} have requests made, none most of them", shares.len()),
        some => format!("most of it is {}", some.join(" and ")),
    }
}

/// The process that has most of the time, or the group if that has much more; `None` if nobody has any.
pub(crate) fn first_of(observation: &Observation, shares: &[Share]) -> Option<String> {
    most(observation, shares).or_else(|| shares.first().map(|share| named(observation, share)))
}

/// `postgres (4711) in /system.slice/db.service, 93 % of the device's time`.
fn named(observation: &Observation, share: &Share) -> String {
    let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
    let pid = issuer.filter(|issuer| !issuer.is_kernel).map(|issuer| format!(" ({})", issuer.pid));
    let home = issuer.and_then(|issuer| issuer.home()).map(|home| format!(" in {home}"));
    let (pid, home) = (pid.unwrap_or_default(), home.unwrap_or_default());
    format!("{}{pid}{home}, {:.0} % of the device's time", share.name, share.time_percent)
}

/// Processes of one container or control group.
#[derive(Default)]
struct Group {
    home: String,
    processes: usize,
    time_percent: f64,
}

impl Group {
    fn named(&self) -> String {
        let Group { home, processes, time_percent } = self;
        format!("{processes} processes in {home}, {time_percent:.0} % of the device's time")
    }
}

/// The groups of several processes, that with most of the time first.
fn groups(observation: &Observation, shares: &[Share]) -> Vec<Group> {
    let mut by_home: BTreeMap<String, Group> = BTreeMap::new();
    for share in shares {
        let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
        let Some(home) = issuer.and_then(|issuer| issuer.home()) else { continue };
        let group = by_home.entry(home.clone()).or_default();
        group.home = home;
        group.processes += 1;
        group.time_percent += share.time_percent;
    }
    let mut groups: Vec<Group> = by_home.into_values().filter(|group| group.processes > 1).collect();
    groups.order_by(|one, other| other.time_percent.total_cmp(&one.time_percent));
    groups
}
