//! What stands out in an observation, in sentences.
//!
//! Invariant: a conclusion only where the evidence carries it: enough requests, few lost events, and a difference that no
//! ordinary disk shows. Nothing that stands out is no conclusion.

use fiord_profile::tracepoints::Operation;

pub use crate::evidence::Conclusion;
use crate::evidence::{
    CULPRIT_PERCENT, DEPTH_FULL, REQUESTS_MIN, busiest, is_lossy, limited, shown, slow_ns,
};
use crate::figures::{DeviceFigures, OperationFigures, ProbeFigures};
use crate::issuer::{IssuerKind, Party};
use crate::layers::{resync, slow_layer};
use crate::observation::{Observation, WatchedDevice};
use crate::tables::{Share, shares};
use crate::who::{culprit, first_of, most, who_fills};
use crate::workers::loop_above;

/// Requests needed before a thousandth of them is more than chance.
const REQUESTS_FOR_TAIL: u64 = 2000;
/// A queue of which this much is taken on average has no room.
const SLOTS_FULL: f64 = 0.9;
/// Of what the chosen had made, before it is said how long they waited.
const REQUESTS_OF_CHOSEN: u64 = 10;
/// What is swapped stands out if it is this much of what the device moves, in percent.
const SWAP_PERCENT: f64 = 20.0;
const SLOW_REMEDY: &str =
    "Look at its errors and its health (dmesg, smartctl), and at what it is made of (fiord devices).";
/// A device with fewer requests at a time has little to do.
const FEW: f64 = 2.0;
/// Reads of the probe needed before their median is more than chance.
const READS_OF_PROBE: u64 = 20;
/// A device with little to do that leaves a read unanswered so long is slow, in nanoseconds.
const SILENT_NS: u64 = 2_000_000_000;
/// The slowest thousandth stands out if it takes so many times the median, and this long, in nanoseconds.
const TAIL_TIMES: u64 = 30;
const TAIL_NS: u64 = 20_000_000;

/// What stands out, the surest first.
pub fn conclusions(observation: &Observation) -> Vec<Conclusion> {
    let mut found: Vec<Conclusion> = observation.limits.iter().filter_map(limited).collect();
    for device in &observation.devices {
        let of_probe = device.probe.as_ref().and_then(|probe| probed(observation, device, probe));
        found.extend(of_probe.clone());
        found.extend(slow_layer(observation, device));
        let Some(figures) = &device.figures else { continue };
        let completed = figures.requests();
        if completed < REQUESTS_MIN || is_lossy(observation, completed) {
            continue;
        }
        let shares = shares(observation, device);
        found.extend(
            swap(observation, device, figures, &shares).or_else(|| reclaim(observation, device, &shares)),
        );
        let resync = resync(device, observation, &shares);
        let is_resync = resync.as_ref().is_some_and(|(percent, _)| *percent >= CULPRIT_PERCENT);
        found.extend(resync.map(|(_, found)| found));
        found.extend(full(observation, device, figures, &shares).filter(|_| !is_resync));
        found.extend(MOSTLY.iter().filter_map(|mostly| mostly.found(observation, device, figures)));
        found.extend(slow(observation, device, figures).filter(|_| of_probe.is_none()));
        found.extend(tail(device, figures));
    }
    found
}

/// A sentence on all of it: the conclusions, or that nothing stands out.
pub fn verdict(observation: &Observation, found: &[Conclusion]) -> String {
    let all: u64 = observation.devices.iter().map(WatchedDevice::ios).sum();
    let seconds = observation.elapsed_ns as f64 / 1e9;
    let seconds = format!("{seconds:.0} s");
    if observation.devices.is_empty() {
        return "There is no block device to watch.".to_string();
    }
    if let Some(first) = found.first() {
        // A neighbor's sentence says it.
        let whose = if first.code == "neighbor" { String::new() } else { of_chosen(observation) };
        return format!("{} {}{whose}", first.sentence, first.remedy);
    }
    if all == 0 {
        let but = if observation.devices.iter().any(|device| device.probe.is_some()) {
            " but the probe's"
        } else {
            ""
        };
        return format!(
            "No request{but} reached these devices in {seconds}: what is slow now does not wait for them."
        );
    }
    if observation.devices.iter().all(|device| device.traced().is_none()) {
        let why = match observation.devices.iter().any(|device| device.figures.is_some()) {
            true => "The kernel traces no single requests of these devices, and without",
            false => "Without single requests",
        };
        return format!("{all} requests in {seconds}. {why} there is no conclusion.");
    }
    if is_lossy(observation, all) {
        return format!(
            "Too many events were lost for a conclusion: {} beside {all} requests.",
            observation.lost
        );
    }
    let whose = if observation.chosen.is_some() { of_chosen(observation) } else { culprit(observation) };
    format!("Nothing stands out in {all} requests of {seconds}.{whose}")
}

/// What part of the busiest device's time the chosen had, as a sentence that begins with a blank; empty if nobody was chosen.
fn of_chosen(observation: &Observation) -> String {
    let (Some(chosen), Some(device)) = (&observation.chosen, busiest(observation)) else {
        return String::new();
    };
    let Some(figures) = &device.figures else { return String::new() };
    if !figures.parties.keys().any(|(party, _)| *party == Party::Chosen) {
        return format!(
            " {} had none of the requests made: it waits for no disk, or for what the kernel does later.",
            capitalized(chosen)
        );
    }
    let parties =
        [Party::Others, Party::Kernel, Party::Ended].map(|party| (party, figures.party_percent(party)));
    let shown = parties.iter().filter(|(_, percent)| *percent >= 0.5);
    let shown: String = shown.map(|(party, percent)| format!(", {} {percent:.0} %", party.words())).collect();
    let own = figures.party_percent(Party::Chosen);
    format!(" {} had {own:.0} % of the time of {}{shown}.", capitalized(chosen), device.name)
}

fn capitalized(words: &str) -> String {
    let mut characters = words.chars();
    characters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(characters).collect()
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

/// The kernel swaps: most of its requests are of whoever has memory given or taken.
fn swap(
    observation: &Observation,
    device: &WatchedDevice,
    figures: &DeviceFigures,
    shares: &[Share],
) -> Option<Conclusion> {
    let moved: u64 = figures.operations.values().map(|of| of.bytes).sum();
    let percent = 100.0 * observation.swapped_bytes as f64 / moved.max(1) as f64;
    (device.is_swap && percent >= SWAP_PERCENT).then(|| Conclusion {
        code: "swap",
        sentence: format!(
            "Memory is short: {:.1} MiB a second are swapped to and from {}, {:.0} % of what it moves{}.",
            observation.per_s(observation.swapped_bytes) / f64::from(1 << 20),
            device.name,
            percent.min(100.0),
            most(observation, shares).map_or_else(String::new, |most| format!("; most of it is {most}")),
        ),
        remedy: "Look at who uses memory (free, /proc/pressure/memory, limits of control groups) before the disk.",
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
    // Without a slot a request is not even made, and how long whoever wants it waits is not seen.
    let slots = device.queue_slots as f64;
    let has_no_slot = slots > 1.0 && depth + waiting >= SLOTS_FULL * slots;
    if depth < DEPTH_FULL && !has_no_slot && (waiting < 1.0 || queue_ns < device_ns) {
        return None;
    }
    let load = format!("{depth:.1} requests at the device and {waiting:.1} waiting in the queue on average");
    let more = neighbor(observation, device, figures, shares, &load);
    let above = loop_above(observation, device, figures);
    let more = more.or_else(|| writeback(observation, device, shares, &load).filter(|_| above.is_none()));
    if more.is_some() {
        return more;
    }
    let who = match above {
        Some((above, percent)) => {
            let who = who_fills(observation, &self::shares(observation, above));
            let name = &above.name;
            format!(
                "workers of the kernel have {percent:.0} % of its time, for {name}, which moved as much; of {name} {who}"
            )
        }
        None => who_fills(observation, shares),
    };
    Some(Conclusion {
        code: "queue-full",
        sentence: format!("{} is full: {load}; {who}.", device.name),
        remedy: "Have it do less, limit it (io.max, ionice), or spread it over more devices.",
    })
}

/// Others than the chosen keep the device full.
fn neighbor(
    observation: &Observation,
    device: &WatchedDevice,
    figures: &DeviceFigures,
    shares: &[Share],
    load: &str,
) -> Option<Conclusion> {
    let chosen = observation.chosen.as_ref()?;
    let of_chosen = figures.parties.iter().filter(|((party, _), _)| *party == Party::Chosen);
    let (_, most) = of_chosen.max_by_key(|(_, of)| of.requests)?;
    let others = figures.party_percent(Party::Others);
    if others < CULPRIT_PERCENT || most.requests < REQUESTS_OF_CHOSEN {
        return None;
    }
    let is_other = |share: &&Share| {
        let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
        issuer.is_some_and(|issuer| issuer.party == Some(Party::Others))
    };
    let shares_of_others: Vec<Share> = shares.iter().filter(is_other).cloned().collect();
    let first = first_of(observation, &shares_of_others).map(|first| format!(", first of all {first}"));
    let (in_queue, at_device) =
        (most.queue.percentiles(&[50.0, 99.0]), most.device.percentiles(&[50.0, 99.0]));
    Some(Conclusion {
        code: "neighbor",
        sentence: format!(
            "Others than {chosen} keep {} full ({load}): they have {others:.0} % of its time{}; {:.0} % is of the chosen, \
             whose requests wait {} (P50) and {} (P99) in the queue and take {} and {} at the device.",
            device.name,
            first.unwrap_or_default(),
            figures.party_percent(Party::Chosen),
            shown(in_queue[0]),
            shown(in_queue[1]),
            shown(at_device[0]),
            shown(at_device[1]),
        ),
        remedy: "Limit the others (io.max, ionice), or give the chosen a disk of their own.",
    })
}

/// The kernel writes so much of the page cache that the device is full.
fn writeback(
    observation: &Observation,
    device: &WatchedDevice,
    shares: &[Share],
    load: &str,
) -> Option<Conclusion> {
    let writeback = shares.iter().find(|share| share.name == IssuerKind::WRITEBACK)?;
    if writeback.time_percent < CULPRIT_PERCENT {
        return None;
    }
    let all: u64 = observation.dirtiers.iter().map(|dirtier| dirtier.bytes).sum();
    let percent = |bytes: u64| 100.0 * bytes as f64 / all.max(1) as f64;
    let first = observation.dirtiers.first().filter(|first| percent(first.bytes) >= CULPRIT_PERCENT);
    let first = first.map(|first| {
        let (name, pid, percent) = (&first.name, first.pid, percent(first.bytes));
        format!("; of all that processes wrote meanwhile, to any disk, {percent:.0} % is of {name} ({pid})")
    });
    Some(Conclusion {
        code: "writeback",
        sentence: format!(
            "{} is full of writeback, {:.0} % of its time: {load}{}.",
            device.name,
            writeback.time_percent,
            first.unwrap_or_default()
        ),
        remedy: "Have whoever wrote that sync in small steps or write directly, or lower vm.dirty_background_bytes.",
    })
}

/// An operation that moves no data and has most of the time.
struct Mostly {
    operation: Operation,
    code: &'static str,
    remedy: &'static str,
}

const MOSTLY: [Mostly; 2] = [
    Mostly {
        operation: Operation::Flush,
        code: "flushes",
        remedy: "Have it sync less often (group commit), or use a disk with power-loss protection.",
    },
    Mostly {
        operation: Operation::Discard,
        code: "discards",
        remedy: "Discard at quiet times (fstrim.timer) instead of at once (mount option discard), and in larger pieces.",
    },
];

impl Mostly {
    fn found(
        &self,
        observation: &Observation,
        device: &WatchedDevice,
        figures: &DeviceFigures,
    ) -> Option<Conclusion> {
        let of = figures.operations.get(&self.operation)?;
        let (_, all_ns) = figures.waited_ns();
        let percent = 100.0 * of.device.running.sum as f64 / all_ns.max(1) as f64;
        if percent < 50.0 || of.requests < REQUESTS_MIN {
            return None;
        }
        let issuers = figures.issuers.iter().filter(|((_, operation), _)| *operation == self.operation);
        let most = issuers.max_by_key(|(_, of)| of.device_ns).map(|((issuer, _), _)| *issuer);
        let who =
            most.and_then(|most| observation.issuers.get(most)).map(|issuer| issuer.shown(self.operation));
        Some(Conclusion {
            code: self.code,
            sentence: format!(
                "{} spends {percent:.0} % of its time on {}: {:.0} a second, {} each (P50), most of them for {}.",
                device.name,
                self.code,
                observation.per_s(of.requests),
                shown(p(of, 50.0)),
                who.as_deref().unwrap_or("the kernel"),
            ),
            remedy: self.remedy,
        })
    }
}

/// The probe met errors, or waited long although the device has little to do.
fn probed(observation: &Observation, device: &WatchedDevice, probe: &ProbeFigures) -> Option<Conclusion> {
    let name = &device.name;
    let reads = probe.reads();
    if let Some(first) = &probe.first_failure {
        let all = probe.failed + reads.requests;
        return Some(Conclusion {
            code: "read-errors",
            sentence: format!(
                "{name} fails: {} of {all} reads of the probe, the first {first}.",
                probe.failed
            ),
            remedy: "Look at dmesg and at its health (smartctl), and copy what matters while it can be read.",
        });
    }
    let depth = device
        .figures
        .as_ref()
        .map_or(0.0, |figures| figures.waited_ns().1 as f64 / observation.elapsed_ns.max(1) as f64);
    let is_slow = reads.requests >= READS_OF_PROBE && p(&reads, 50.0) > slow_ns(device);
    let is_silent = probe.waiting_ns >= SILENT_NS;
    (depth < FEW && (is_slow || is_silent)).then(|| Conclusion {
        code: "slow-device",
        sentence: match is_silent {
            true => {
                let since = shown(probe.waiting_ns);
                format!("{name} has not answered a read of the probe for {since}, with {depth:.1} requests at a time.")
            }
            false => {
                let half = shown(p(&reads, 50.0));
                format!("{name} itself is slow: half of the probe's reads take {half} or longer, with {depth:.1} requests at a time.")
            }
        },
        remedy: SLOW_REMEDY,
    })
}

/// Slow, although it has little to do.
fn slow(observation: &Observation, device: &WatchedDevice, figures: &DeviceFigures) -> Option<Conclusion> {
    let limit_ns = slow_ns(device);
    let slow = [Operation::Read, Operation::Write].into_iter().find_map(|operation| {
        let of = figures.operations.get(&operation).filter(|of| of.requests >= REQUESTS_MIN)?;
        // Large requests take their time.
        let is_small = of.bytes / of.requests <= 128 << 10;
        (is_small && of.depth(observation.elapsed_ns) < FEW && p(of, 50.0) > limit_ns)
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
        remedy: SLOW_REMEDY,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issuer::Issuer;
    use crate::observation::{Dirtier, Limit};
    use Operation::{Discard, Flush, Read, Write};
    use fiord_profile::tracepoints::Completed;
    use fiord_stats::Latency;

    const MS: u64 = 1_000_000;

    /// Requests alike: operation, issuer, how many, time in the queue and at the device.
    type Alike = (Operation, usize, u64, u64, u64);

    /// Of `db`, kswapd, rsync and a worker that writes back.
    const PARTIES: [Option<Party>; 4] =
        [Some(Party::Chosen), Some(Party::Kernel), Some(Party::Others), Some(Party::Kernel)];

    fn issuers() -> Vec<Issuer> {
        let named = [("db", false), ("kswapd0", true), ("rsync", false), ("kworker/u8:1", true)];
        let issuer = |((name, is_kernel), party): ((&str, bool), Option<Party>)| Issuer {
            name: name.to_string(),
            pid: 7,
            is_kernel,
            party,
            ..Issuer::default()
        };
        named.into_iter().zip(PARTIES).map(issuer).collect()
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
                figures.add(&request, issuer, PARTIES[issuer]);
            }
        }
        Observation {
            elapsed_ns: 1000 * MS,
            devices: vec![WatchedDevice {
                name: "sda".to_string(),
                figures: Some(figures),
                ..WatchedDevice::default()
            }],
            issuers: issuers(),
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
        let mut short = second(&[(Read, 0, 950, 0, 4 * MS)]);
        assert_eq!(codes(&short), [""; 0]);
        short.devices[0].queue_slots = 4;
        assert_eq!(codes(&short), ["queue-full"], "no more are let in");
        short.devices[0].queue_slots = 5;
        assert_eq!(codes(&short), [""; 0]);
    }

    #[test]
    fn what_stands_out_is_told_from_what_does_not() {
        let flushes = second(&[(Write, 0, 300, 0, MS / 10), (Flush, 0, 300, 0, 2 * MS)]);
        assert_eq!(codes(&flushes), ["flushes"]);
        assert!(
            conclusions(&flushes)[0].sentence.ends_with("300 a second, 2ms each (P50), most of them for db.")
        );
        let discards = second(&[(Write, 0, 300, 0, MS / 10), (Discard, 2, 300, 0, MS)]);
        assert_eq!(codes(&discards), ["discards"]);
        assert!(conclusions(&discards)[0].sentence.ends_with("most of them for rsync."));
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
    fn a_neighbor_is_named_to_those_who_were_chosen() {
        let chosen =
            |all: &[Alike]| Observation { chosen: Some("process 7 (db)".to_string()), ..second(all) };
        let kept_full = chosen(&[(Read, 0, 300, 2 * MS, MS), (Write, 2, 9000, 0, MS)]);
        let found = conclusions(&kept_full);
        assert_eq!(codes(&kept_full), ["neighbor"]);
        for part in [
            "Others than process 7 (db) keep sda full",
            "97 % of its time, first of all rsync (7)",
            "3 % is of the chosen, whose requests wait 2ms (P50)",
        ] {
            assert!(found[0].sentence.contains(part), "{found:?}");
        }
        let calm = chosen(&[(Read, 0, 300, 0, MS), (Write, 2, 900, 0, MS)]);
        assert!(verdict(&calm, &[]).ends_with("Process 7 (db) had 25 % of the time of sda, others 75 %."));
        // Neither one's own load, nor a neighbor beside whom the device is not full, nor one of whom nothing was asked for.
        assert_eq!(codes(&chosen(&[(Read, 0, 9000, MS, MS), (Write, 2, 300, 0, MS)])), ["queue-full"]);
        assert_eq!(codes(&chosen(&[(Read, 0, 300, 0, MS / 10), (Write, 2, 3000, 0, MS)])), [""; 0]);
        let alone = chosen(&[(Write, 2, 9000, 0, MS)]);
        assert_eq!(codes(&alone), ["queue-full"]);
        assert!(
            verdict(&alone, &conclusions(&alone)).contains("Process 7 (db) had none of the requests made")
        );
        // The kernel's work may be that of the chosen.
        assert_eq!(
            codes(&chosen(&[(Read, 0, 300, 0, MS), (Read, 1, 9000, 0, MS)])),
            ["reclaim", "queue-full"]
        );
    }

    #[test]
    fn a_probe_shows_a_slow_or_failing_device_that_nobody_uses() {
        let idle = |took_ns: u64, change: &dyn Fn(&mut ProbeFigures)| {
            let mut probe = ProbeFigures { calls: Latency::with_histogram(), ..ProbeFigures::default() };
            for _ in 0..40 {
                probe.calls.record(took_ns);
            }
            change(&mut probe);
            let mut observation = second(&[]);
            observation.devices[0].probe = Some(probe);
            observation
        };
        let quick = idle(MS / 10, &|_| ());
        assert_eq!(codes(&quick), [""; 0]);
        assert!(verdict(&quick, &[]).starts_with("No request but the probe's reached"));
        let sentence = |observation: &Observation| conclusions(observation).remove(0).sentence;
        assert!(sentence(&idle(8 * MS, &|_| ())).contains("half of the probe's reads take 8"));
        assert!(
            sentence(&idle(MS, &|probe| probe.waiting_ns = 3000 * MS))
                .contains("not answered a read of the probe for 3s")
        );
        let failing = idle(MS, &|probe| {
            (probe.failed, probe.first_failure) = (2, Some("at byte 4096: Input/output error".to_string()));
        });
        assert_eq!(
            sentence(&failing),
            "sda fails: 2 of 42 reads of the probe, the first at byte 4096: Input/output error."
        );
        // What waits beside others says nothing of the device.
        let mut busy = idle(8 * MS, &|probe| probe.waiting_ns = 3000 * MS);
        busy.devices[0].figures = second(&[(Read, 0, 5000, 0, MS)]).devices.remove(0).figures;
        assert_eq!(codes(&busy), [""; 0]);
    }

    #[test]
    fn workers_are_busy_for_a_loop_device_that_moved_as_much() {
        let below = |above: &[Alike]| {
            let mut observation = second(&[(Write, 3, 9000, MS, MS), (Write, 2, 900, 0, MS)]);
            let mut above = second(above).devices.remove(0);
            (above.name, above.backed_by) = ("loop1".to_string(), vec!["sda".to_string()]);
            observation.devices.push(above);
            observation
        };
        let found = conclusions(&below(&[(Write, 0, 9000, MS, MS / 10)]));
        assert_eq!(found[0].code, "queue-full");
        for part in
            ["91 % of its time, for loop1, which moved as much", "of loop1 most of it is db (7), 100 %"]
        {
            assert!(found[0].sentence.contains(part), "{found:?}");
        }
        // One that moved less is a bystander.
        assert_eq!(codes(&below(&[(Write, 0, 900, 0, MS / 10)])), ["writeback"]);
    }

    #[test]
    fn writeback_and_swapping_are_named_only_where_they_fill_the_disk() {
        let burst = |all: &[Alike], bytes: [u64; 2]| {
            let dirtier = |(name, bytes): (&str, u64)| Dirtier { name: name.to_string(), pid: 9, bytes };
            Observation {
                dirtiers: ["dd", "sh"].into_iter().zip(bytes).map(dirtier).collect(),
                ..second(all)
            }
        };
        let full = [(Write, 3, 20_000, MS, MS)];
        let found = conclusions(&burst(&full, [900, 100]));
        assert_eq!(found[0].code, "writeback");
        assert!(found[0].sentence.ends_with("to any disk, 90 % is of dd (9)."), "{found:?}");
        let found = conclusions(&burst(&full, [500, 450]));
        assert!(
            found[0].sentence.ends_with("waiting in the queue on average."),
            "none wrote most: {found:?}"
        );
        assert_eq!(codes(&burst(&[(Write, 3, 300, 0, MS)], [900, 1])), [""; 0]);

        let mut swapping = second(&[(Write, 0, 300, 0, MS)]);
        swapping.swapped_bytes = 300 * 4096;
        assert_eq!(codes(&swapping), [""; 0], "to another device");
        swapping.devices[0].is_swap = true;
        let found = conclusions(&swapping);
        assert_eq!(codes(&swapping), ["swap"]);
        assert!(
            found[0].sentence.contains("1.2 MiB a second are swapped to and from sda, 100 %"),
            "{found:?}"
        );
        assert!(
            found[0].sentence.ends_with("most of it is db (7), 100 % of the device's time."),
            "{found:?}"
        );
        swapping.swapped_bytes = 30 * 4096;
        assert_eq!(codes(&swapping), [""; 0]);
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
