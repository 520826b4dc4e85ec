//! What stands out in an observation, in sentences.
//!
//! Invariant: a conclusion only where the evidence carries it: enough requests, few lost events, and a difference that no
//! ordinary disk shows. Nothing that stands out is no conclusion.

use fiord_profile::tracepoints::Operation;
use fiord_report::table::Cell;

use crate::figures::{DeviceFigures, OperationFigures};
use crate::issuer::IssuerKind;
use crate::observation::{Limit, Observation, WatchedDevice};
use crate::tables::{Share, shares};

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
const REQUESTS_MIN: u64 = 100;
/// Requests needed before a thousandth of them is more than chance.
const REQUESTS_FOR_TAIL: u64 = 2000;
/// Of events that may be lost, in percent of all.
const LOST_PERCENT_MAX: f64 = 1.0;
/// A group that does this much of its limit is held back by it, in percent.
const LIMIT_PERCENT: f64 = 90.0;
/// One that has this much of the time of a device is who keeps it busy, in percent.
const CULPRIT_PERCENT: f64 = 60.0;
/// A device with fewer requests at a time is not full.
const DEPTH_FULL: f64 = 8.0;
/// A median above this is slow for a device that has few requests at a time, in nanoseconds: with and without platters.
const SLOW_NS: [u64; 2] = [30_000_000, 5_000_000];
/// The slowest thousandth stands out if it takes so many times the median, and this long, in nanoseconds.
const TAIL_TIMES: u64 = 30;
const TAIL_NS: u64 = 20_000_000;

/// What stands out, the surest first.
pub fn conclusions(observation: &Observation) -> Vec<Conclusion> {
    let mut found: Vec<Conclusion> = observation.limits.iter().filter_map(limited).collect();
    for device in &observation.devices {
        let Some(figures) = &device.figures else { continue };
        let completed = figures.requests();
        if completed < REQUESTS_MIN || is_lossy(observation, completed) {
            continue;
        }
        let shares = shares(observation, device);
        found.extend(reclaim(observation, device, &shares));
        found.extend(full(observation, device, figures, &shares));
        found.extend(flushes(observation, device, figures));
        found.extend(slow(observation, device, figures));
        found.extend(tail(device, figures));
    }
    found
}

/// A sentence on all of it: the conclusions, or that nothing stands out.
pub fn verdict(observation: &Observation, found: &[Conclusion]) -> String {
    let requests = |device: &WatchedDevice| match &device.figures {
        Some(figures) => figures.requests(),
        None => {
            let counters = &device.counters;
            counters.read_ios + counters.write_ios + counters.discard_ios + counters.flush_ios
        }
    };
    let all: u64 = observation.devices.iter().map(requests).sum();
    let seconds = observation.elapsed_ns as f64 / 1e9;
    let seconds = format!("{seconds:.0} s");
    if observation.devices.is_empty() {
        return "There is no block device to watch.".to_string();
    }
    if let Some(first) = found.first() {
        return format!("{} {}", first.sentence, first.remedy);
    }
    if all == 0 {
        return format!(
            "No request reached these devices in {seconds}: what is slow now does not wait for them."
        );
    }
    if observation.devices.iter().all(|device| device.figures.is_none()) {
        return format!("{all} requests in {seconds}. Without single requests there is no conclusion.");
    }
    if is_lossy(observation, all) {
        return format!(
            "Too many events were lost for a conclusion: {} beside {all} requests.",
            observation.lost
        );
    }
    format!("Nothing stands out in {all} requests of {seconds}.{}", culprit(observation))
}

/// Whether too many events were lost beside these requests, of which each has three.
fn is_lossy(observation: &Observation, requests: u64) -> bool {
    100.0 * observation.lost as f64 / (3 * requests + observation.lost).max(1) as f64 > LOST_PERCENT_MAX
}

/// Who keeps the busiest device busy, as a sentence that begins with a blank; empty if no one does.
fn culprit(observation: &Observation) -> String {
    let busy = |device: &&WatchedDevice| device.figures.as_ref().map_or(0, |figures| figures.waited_ns().1);
    let busiest = observation.devices.iter().max_by_key(busy);
    let shares = busiest.map(|device| shares(observation, device)).unwrap_or_default();
    let first = shares.first().filter(|share| share.time_percent >= CULPRIT_PERCENT);
    first.map_or_else(String::new, |share| format!(" Most of it is {}.", named(observation, share)))
}

/// `postgres (4711), 93 % of the device's time`.
fn named(observation: &Observation, share: &Share) -> String {
    let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
    let pid = issuer.filter(|issuer| !issuer.is_kernel).map(|issuer| format!(" ({})", issuer.pid));
    format!("{}{}, {:.0} % of the device's time", share.name, pid.unwrap_or_default(), share.time_percent)
}

fn limited(limit: &Limit) -> Option<Conclusion> {
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

/// The kernel swaps, or drops pages that are needed again.
fn reclaim(observation: &Observation, device: &WatchedDevice, shares: &[Share]) -> Option<Conclusion> {
    let is_reclaim = |share: &&Share| {
        let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
        issuer.is_some_and(|issuer| issuer.kind(Operation::Write) == IssuerKind::Reclaim)
    };
    let percent: f64 = shares.iter().filter(is_reclaim).map(|share| share.time_percent).sum();
    (percent >= 20.0).then(|| Conclusion {
        code: "reclaim",
        sentence: format!(
            "Memory is short: the kernel making room has {percent:.0} % of the time of {}.",
            device.name
        ),
        remedy: "Look at who uses memory (free, /proc/pressure/memory) before the disk.",
    })
}

/// More requests at the device than it serves at a time, or more waiting than being served.
fn full(
    observation: &Observation,
    device: &WatchedDevice,
    figures: &DeviceFigures,
    shares: &[Share],
) -> Option<Conclusion> {
    let (queue_ns, device_ns) = figures.waited_ns();
    let depth = device_ns as f64 / observation.elapsed_ns.max(1) as f64;
    let waiting = queue_ns as f64 / observation.elapsed_ns.max(1) as f64;
    if depth < DEPTH_FULL && (waiting < 1.0 || queue_ns < device_ns) {
        return None;
    }
    let culprits: Vec<String> = shares
        .iter()
        .take_while(|share| share.time_percent >= 100.0 - CULPRIT_PERCENT)
        .map(|share| named(observation, share))
        .collect();
    let who = match culprits.as_slice() {
        [] => format!("{} have requests made, none most of them", shares.len()),
        some => format!("most of it is {}", some.join(" and ")),
    };
    Some(Conclusion {
        code: "queue-full",
        sentence: format!(
            "{} is full: {depth:.1} requests at the device and {waiting:.1} waiting in the queue on average; {who}.",
            device.name
        ),
        remedy: "Have it do less, limit it (io.max, ionice), or spread it over more devices.",
    })
}

/// Most of the time goes into making writes durable.
fn flushes(observation: &Observation, device: &WatchedDevice, figures: &DeviceFigures) -> Option<Conclusion> {
    let flushes = figures.operations.get(&Operation::Flush)?;
    let (_, all_ns) = figures.waited_ns();
    let percent = 100.0 * flushes.device.running.sum as f64 / all_ns.max(1) as f64;
    if percent < 50.0 || flushes.requests < REQUESTS_MIN {
        return None;
    }
    let of_flushes = figures.issuers.iter().filter(|((_, operation), _)| *operation == Operation::Flush);
    let most = of_flushes.max_by_key(|(_, of)| of.device_ns).map(|((issuer, _), _)| *issuer);
    let who =
        most.and_then(|most| observation.issuers.get(most)).map(|issuer| issuer.shown(Operation::Flush));
    Some(Conclusion {
        code: "flushes",
        sentence: format!(
            "{} spends {percent:.0} % of its time on flushes: {:.0} a second, {} each (P50), most of them for {}.",
            device.name,
            observation.per_s(flushes.requests),
            shown(p(flushes, 50.0)),
            who.as_deref().unwrap_or("the kernel"),
        ),
        remedy: "Have it sync less often (group commit), or use a disk with power-loss protection.",
    })
}

/// Slow, although it has little to do.
fn slow(observation: &Observation, device: &WatchedDevice, figures: &DeviceFigures) -> Option<Conclusion> {
    let limit_ns = SLOW_NS[usize::from(!device.rotational)];
    let slow = [Operation::Read, Operation::Write].into_iter().find_map(|operation| {
        let of = figures.operations.get(&operation).filter(|of| of.requests >= REQUESTS_MIN)?;
        // Large requests take their time.
        let is_small = of.bytes / of.requests <= 128 << 10;
        (is_small && of.depth(observation.elapsed_ns) < 2.0 && p(of, 50.0) > limit_ns)
            .then_some((operation, of))
    });
    let (operation, of) = slow?;
    Some(Conclusion {
        code: "slow-device",
        sentence: format!(
            "{} itself is slow: half of its {}s take {} or longer, with {:.1} of them at a time.",
            device.name,
            operation.name(),
            shown(p(of, 50.0)),
            of.depth(observation.elapsed_ns)
        ),
        remedy: "Look at its errors and its health (dmesg, smartctl), and at what it is made of (fiord devices).",
    })
}

/// A few are very slow.
fn tail(device: &WatchedDevice, figures: &DeviceFigures) -> Option<Conclusion> {
    let found = [Operation::Read, Operation::Write].into_iter().find_map(|operation| {
        let of = figures.operations.get(&operation).filter(|of| of.requests >= REQUESTS_FOR_TAIL)?;
        let (median, slowest) = (p(of, 50.0), p(of, 99.9));
        (slowest >= TAIL_NS && slowest >= TAIL_TIMES * median).then_some((operation, median, slowest))
    });
    let (operation, median, slowest) = found?;
    Some(Conclusion {
        code: "few-slow",
        sentence: format!(
            "Few {}s of {} are very slow: one in 1000 takes {} or longer, half of them {} or less.",
            operation.name(),
            device.name,
            shown(slowest),
            shown(median)
        ),
        remedy: "Look for what happens at these moments: writeback, discards, a neighbour on the same disk.",
    })
}

fn p(figures: &OperationFigures, percent: f64) -> u64 {
    figures.device.percentiles(&[percent])[0]
}

fn shown(ns: u64) -> String {
    Cell::Latency(ns).shown()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issuer::Issuer;
    use Operation::{Flush, Read, Write};
    use fiord_profile::tracepoints::Completed;

    const MS: u64 = 1_000_000;

    /// Requests alike: operation, issuer, how many, time in the queue and at the device.
    type Alike = (Operation, usize, u64, u64, u64);

    fn issuer(name: &str, is_kernel: bool) -> Issuer {
        Issuer { name: name.to_string(), pid: 7, is_kernel, ..Issuer::default() }
    }

    /// One second of a device.
    fn second(all: &[Alike]) -> Observation {
        let mut figures = DeviceFigures::default();
        for (operation, issuer, count, queue_ns, device_ns) in all {
            let (operation, issuer, queue_ns, device_ns) = (*operation, *issuer, *queue_ns, *device_ns);
            for sector in 0..*count {
                let sectors = if operation == Flush { 0 } else { 8 };
                let (issued_ns, completed_ns) = (queue_ns, queue_ns + device_ns);
                let request =
                    Completed { operation, sector, sectors, issued_ns, completed_ns, ..Completed::default() };
                figures.add(&request, issuer);
            }
        }
        Observation {
            elapsed_ns: 1000 * MS,
            devices: vec![WatchedDevice {
                name: "sda".to_string(),
                figures: Some(figures),
                ..WatchedDevice::default()
            }],
            issuers: vec![issuer("db", false), issuer("kswapd0", true), issuer("rsync", false)],
            ..Observation::default()
        }
    }

    fn codes(observation: &Observation) -> Vec<&'static str> {
        conclusions(observation).iter().map(|found| found.code).collect()
    }

    #[test]
    fn a_full_queue_names_whoever_fills_it() {
        let full = second(&[(Read, 0, 9000, MS, MS), (Write, 2, 9000, MS, MS)]);
        let found = conclusions(&full);
        assert_eq!(found[0].code, "queue-full");
        for part in ["18.0 requests at the device", "db (7), 50 %", "rsync (7), 50 %"] {
            assert!(found[0].sentence.contains(part), "{found:?}");
        }
        let waiting = second(&[(Read, 2, 700, 4 * MS, MS)]);
        assert_eq!(codes(&waiting), ["queue-full"], "little at the device, more before it");
        assert!(verdict(&waiting, &conclusions(&waiting)).contains("rsync (7), 100 %"));
    }

    #[test]
    fn what_stands_out_is_told_from_what_does_not() {
        let flushes = second(&[(Write, 0, 300, 0, MS / 10), (Flush, 0, 300, 0, 2 * MS)]);
        assert_eq!(codes(&flushes), ["flushes"]);
        assert!(
            conclusions(&flushes)[0].sentence.ends_with("300 a second, 2ms each (P50), most of them for db.")
        );
        assert_eq!(codes(&second(&[(Read, 0, 120, 0, 8 * MS)])), ["slow-device"]);
        assert_eq!(codes(&second(&[(Read, 0, 9990, 0, MS / 10), (Read, 0, 20, 0, 50 * MS)])), ["few-slow"]);
        assert_eq!(codes(&second(&[(Read, 0, 300, 0, MS), (Write, 1, 300, 0, MS)])), ["reclaim"]);
        for quiet in [
            &[][..],
            &[(Read, 0, 99, 0, 900 * MS)],
            &[(Read, 0, 5000, MS / 10, MS)],
            &[(Write, 0, 300, 0, MS), (Flush, 0, 300, 0, MS / 10)],
            &[(Read, 0, 9999, 0, MS / 10), (Read, 0, 5, 0, 50 * MS)],
        ] {
            assert_eq!(codes(&second(quiet)), [""; 0], "{quiet:?}");
        }
        let mut rotating = second(&[(Read, 0, 120, 0, 8 * MS)]);
        rotating.devices[0].rotational = true;
        assert_eq!(codes(&rotating), [""; 0], "a seek");
    }

    #[test]
    fn a_group_is_held_back_only_at_its_limit() {
        let limit = |done_per_s| Limit {
            group: "/db".to_string(),
            device: "sda".to_string(),
            what: "wbps".to_string(),
            per_s: 1000,
            done_per_s,
        };
        let observed = |limit| Observation { limits: vec![limit], ..second(&[]) };
        assert_eq!(codes(&observed(limit(980.0))), ["limited"]);
        assert_eq!(codes(&observed(limit(700.0))), [""; 0]);
    }

    #[test]
    fn where_events_were_lost_nothing_is_concluded() {
        let lossy = Observation { lost: 5000, ..second(&[(Read, 0, 9000, MS, 2 * MS)]) };
        assert_eq!(codes(&lossy), [""; 0]);
    }

    #[test]
    fn every_observation_has_a_verdict() {
        let of = |observation: &Observation| verdict(observation, &conclusions(observation));
        assert!(of(&Observation::default()).starts_with("There is no block device"));
        assert!(of(&second(&[])).starts_with("No request reached"));
        assert!(
            of(&second(&[(Read, 0, 500, 0, MS)]))
                .ends_with("Most of it is db (7), 100 % of the device's time.")
        );
        let mut counted = second(&[]);
        counted.devices[0].figures = None;
        counted.devices[0].counters.read_ios = 7;
        assert!(of(&counted).starts_with("7 requests in 1 s. Without single requests"));
    }
}
