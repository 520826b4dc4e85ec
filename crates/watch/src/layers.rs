//! What devices above disks have to do with it: an array that is resynchronised, and a layer whose I/Os wait in it.
//!
//! Invariant: a layer is blamed only for time that its I/Os spent neither in the queues nor at the devices below it.

use fiord_profile::tracepoints::Operation;

use crate::evidence::{Conclusion, DEPTH_FULL, REQUESTS_MIN, is_lossy, limited, shown, slow_ns};
use crate::issuer::IssuerKind;
use crate::observation::{Observation, WatchedDevice};
use crate::tables::Share;

/// A resync that has less of a device's time is in nobody's way, in percent.
const RESYNC_PERCENT: f64 = 20.0;
/// I/Os of a layer take so many times those of the devices below before the layer itself is slow.
const LAYER_TIMES: u64 = 4;

/// The array that the device belongs to is resynchronised, and with which part of the device's time, in percent.
pub(crate) fn resync(
    device: &WatchedDevice,
    observation: &Observation,
    shares: &[Share],
) -> Option<(f64, Conclusion)> {
    let running = device.resync.as_ref();
    let kind = |share: &Share| {
        let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer))?;
        let is_of_it =
            |array: &String| issuer.name.strip_prefix(array).is_some_and(|rest| rest.starts_with('_'));
        match issuer.kind(Operation::Write) {
            IssuerKind::Array if running.is_none_or(|running| !is_of_it(&running.array)) => None,
            kind @ (IssuerKind::Resync | IssuerKind::Array) => Some(kind),
            _ => None,
        }
    };
    let of_array = || shares.iter().filter_map(|share| Some((kind(share)?, share.time_percent)));
    let percent: f64 = of_array().map(|(_, percent)| percent).sum();
    // The array's thread writes what the resync has read, and some of what others write to the array.
    let at_most = if of_array().any(|(kind, _)| kind == IssuerKind::Array) { "up to " } else { "" };
    let array = running.map_or("its array", |running| running.array.as_str());
    let action = running.map_or("resync", |running| running.action.as_str());
    let done = running.and_then(|running| running.done_percent);
    let done = done.map_or_else(String::new, |done| format!(", {done} % done"));
    let found = Conclusion {
        code: "resync",
        sentence: format!(
            "The {action} of {array}{done}, has {at_most}{percent:.0} % of the time of {}.",
            device.name
        ),
        remedy: "Wait for it, or slow it down (sync_speed_max in /sys/block/md*/md, in KiB/s).",
    };
    (percent >= RESYNC_PERCENT).then_some((percent, found))
}

/// How long reads of a device take on average, in nanoseconds; `None` if too few are known.
fn read_ns(device: &WatchedDevice) -> Option<u64> {
    let (ios, all_ns) = match device.traced() {
        Some(figures) => {
            let of = figures.operations.get(&Operation::Read)?;
            (of.requests, of.queue.running.sum + of.device.running.sum)
        }
        None => (device.counters.read_ios, u128::from(device.counters.read_ms) * 1_000_000),
    };
    (ios >= REQUESTS_MIN).then(|| u64::try_from(all_ns / u128::from(ios)).unwrap_or(u64::MAX))
}

/// Whether who wants a request of a device may have to wait for a slot, or for a limit: that is time above its queue as well.
fn may_hold_back(observation: &Observation, device: &WatchedDevice) -> bool {
    let at_limit =
        |name: &str| observation.limits.iter().any(|limit| limit.device == name && limited(limit).is_some());
    let under_way = device.traced().map_or(0.0, |figures| {
        let (queue_ns, device_ns) = figures.waited_ns();
        (queue_ns + device_ns) as f64 / observation.elapsed_ns.max(1) as f64
    });
    let slots = device.queue_slots as f64;
    under_way >= DEPTH_FULL || (slots > 1.0 && under_way >= slots / 2.0) || at_limit(&device.name)
}

/// Reads of a device without requests of its own take long, and those of the devices below do not.
pub(crate) fn slow_layer(observation: &Observation, device: &WatchedDevice) -> Option<Conclusion> {
    if device.traced().is_some() || device.below.is_empty() {
        return None;
    }
    let own_ns = read_ns(device).filter(|own_ns| *own_ns > slow_ns(device))?;
    let of_name = |name: &String| observation.devices.iter().find(|below| below.name == *name);
    let below: Vec<&WatchedDevice> = device.below.iter().map(of_name).collect::<Option<_>>()?;
    let is_unsure =
        |below: &&WatchedDevice| may_hold_back(observation, below) || is_lossy(observation, below.ios());
    if below.iter().any(is_unsure) || may_hold_back(observation, device) {
        return None;
    }
    let slowest_ns = below.iter().filter_map(|below| read_ns(below)).max()?;
    let (name, names) = (&device.name, device.below.join(" and "));
    (own_ns >= LAYER_TIMES * slowest_ns).then(|| Conclusion {
        code: "slow-layer",
        sentence: format!(
            "{name} itself is slow: its reads take {} on average, and those of {names} below it {}, queue and device \
             together; the rest of the time they wait in {name}, above that queue.",
            shown(own_ns),
            shown(slowest_ns)
        ),
        remedy: "Look at what it does with them (dmsetup table, dmsetup status; of an array /proc/mdstat).",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusion::{conclusions, verdict};
    use crate::figures::DeviceFigures;
    use crate::issuer::Issuer;
    use crate::observation::{Limit, Resync};
    use crate::tables;
    use fiord_device::DiskCounters;
    use fiord_profile::tracepoints::Completed;

    const MS: u64 = 1_000_000;

    /// A disk whose reads and writes, by the issuers in their order, took so long each: how many, and nanoseconds.
    fn disk(name: &str, of_issuers: &[(Operation, u64, u64)]) -> WatchedDevice {
        let mut figures = DeviceFigures::default();
        for (issuer, (operation, count, device_ns)) in of_issuers.iter().enumerate() {
            for _ in 0..*count {
                let (operation, completed_ns) = (*operation, *device_ns);
                figures.add(
                    &Completed { operation, sectors: 8, completed_ns, ..Completed::default() },
                    issuer,
                    None,
                );
            }
        }
        WatchedDevice { name: name.to_string(), figures: Some(figures), ..WatchedDevice::default() }
    }

    fn second(devices: Vec<WatchedDevice>) -> Observation {
        let named = [("db", false), ("md0_resync", true), ("md0_raid1", true)];
        let issuers =
            named.map(|(name, is_kernel)| Issuer { name: name.to_string(), is_kernel, ..Issuer::default() });
        Observation { elapsed_ns: 1000 * MS, devices, issuers: issuers.to_vec(), ..Observation::default() }
    }

    fn codes(observation: &Observation) -> Vec<&'static str> {
        conclusions(observation).iter().map(|found| found.code).collect()
    }

    #[test]
    fn a_resync_is_named_on_the_member_that_is_read_and_on_the_one_that_is_written() {
        use Operation::{Read, Write};
        let running =
            Resync { array: "md0".to_string(), action: "resync".to_string(), done_percent: Some(37) };
        let members = |resync: Option<Resync>| {
            let mut read = disk("sda", &[(Read, 200, MS), (Read, 800, MS)]);
            let mut written = disk("sdb", &[(Write, 200, MS), (Read, 0, 0), (Write, 800, MS)]);
            (read.resync, written.resync) = (resync.clone(), resync);
            second(vec![read, written])
        };
        let found = members(Some(running));
        assert_eq!(codes(&found), ["resync", "resync"]);
        assert_eq!(
            conclusions(&found)[1].sentence,
            "The resync of md0, 37 % done, has up to 80 % of the time of sdb."
        );
        // An array's thread also passes on what it is asked for.
        assert_eq!(codes(&members(None)), ["resync"], "sda, of which the resync has read");
        let busy = second(vec![disk("sda", &[(Read, 900, MS), (Read, 100, MS)])]);
        assert_eq!(codes(&busy), [""; 0], "a tenth");
    }

    #[test]
    fn a_layer_is_slow_only_if_the_devices_below_are_not() {
        let with = |read_ms: u64, below_ns: u64, change: &dyn Fn(&mut Observation)| {
            let above = WatchedDevice {
                name: "dm-0".to_string(),
                below: vec!["sda".to_string()],
                counters: DiskCounters { read_ios: 200, read_ms: 200 * read_ms, ..DiskCounters::default() },
                figures: Some(DeviceFigures::default()),
                ..WatchedDevice::default()
            };
            let mut observation = second(vec![above, disk("sda", &[(Operation::Read, 200, below_ns)])]);
            change(&mut observation);
            observation
        };
        let found = with(20, MS / 10, &|_| ());
        assert_eq!(codes(&found), ["slow-layer"]);
        let said = &conclusions(&found)[0].sentence;
        assert!(
            said.starts_with("dm-0 itself is slow: its reads take 20ms on average, and those of sda"),
            "{said}"
        );
        assert_eq!(tables::devices(&found).rows.len(), 2, "what it did is shown");
        assert_eq!(codes(&with(1, MS / 10, &|_| ())), [""; 0], "not slow");
        assert_eq!(codes(&with(20, 8 * MS, &|_| ())), ["slow-device"], "it is the disk");
        assert_eq!(codes(&with(20, MS / 10, &|one| one.devices[1].queue_slots = 0)), ["slow-layer"]);
        let is_full = with(40, 4 * MS, &|one| one.elapsed_ns = 90 * MS);
        assert_eq!(codes(&is_full), ["queue-full"], "they wait for a slot");
        let limit = Limit { device: "sda".to_string(), per_s: 1, done_per_s: 1.0, ..Limit::default() };
        let held_back = with(20, MS / 10, &|one| one.limits = vec![limit.clone()]);
        assert_eq!(codes(&held_back), ["limited"]);
    }

    #[test]
    fn what_a_device_without_requests_did_is_not_denied() {
        let counters = DiskCounters { read_ios: 7, ..DiskCounters::default() };
        let figures = Some(DeviceFigures::default());
        let memory = WatchedDevice { counters, figures, ..WatchedDevice::default() };
        let observation = second(vec![memory]);
        let said = verdict(&observation, &conclusions(&observation));
        assert!(said.starts_with("7 requests in 1 s. The kernel traces no single requests"), "{said}");
    }
}
