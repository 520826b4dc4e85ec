//! What `fiord watch` reads of the kernel: counters of disks, requests by tracepoints, who made them, limits of control groups.
//!
//! Invariant: nothing is written to a disk and no device is opened; what the kernel was told to record is taken back at the end.

mod requests;

use std::time::Duration;

use fiord_host::DiskCounters;
use fiord_report::path;
use fiord_sys::cgroup::{self, LimitedGroup};
use fiord_sys::stat::DeviceNumber;
use fiord_sys::sysfs::BlockDevice;
use fiord_sys::{clock, processes, signal};
use fiord_watch::{Dirtier, Limit, Observation, WatchedDevice};

use self::requests::{Counted, RequestCounter};
use crate::tracepoints::kernel_number;

/// How often the kernel's buffers are emptied: a processor's holds fifty thousand events.
const EVERY: Duration = Duration::from_millis(100);

/// Watches these devices for this long, or until a signal asks to stop; `progress` is told the seconds that have passed.
pub(crate) fn observe(
    devices: &[BlockDevice],
    time: Duration,
    mut progress: impl FnMut(Duration),
) -> Observation {
    let began_cpu_ns = clock::thread_cpu_ns();
    let mut lacking = Vec::new();
    let numbers: Vec<DeviceNumber> = devices.iter().filter_map(BlockDevice::number).collect();
    let mut counter = RequestCounter::start(&numbers).map_err(|why| lacking.push(why)).ok();
    let before = Counters::read(devices);
    let began_ns = clock::monotonic_ns();
    let end_ns = began_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let mut now_ns = began_ns;
    while now_ns < end_ns && signal::stop_requested().is_none() {
        clock::sleep_until_ns(end_ns.min(now_ns + EVERY.as_nanos() as u64));
        now_ns = clock::monotonic_ns();
        if let Some(counter) = &mut counter {
            counter.read();
        }
        progress(Duration::from_nanos(now_ns - began_ns));
    }
    let elapsed_ns = now_ns - began_ns;
    let after = Counters::read(devices);
    let mut counted = counter.map(RequestCounter::finish).unwrap_or_default();
    lacking.extend(counted.lacking.take());
    let counters = before.disks.iter().copied().zip(after.disks.iter().copied());
    let devices_watched = devices.iter().zip(counters);
    Observation {
        elapsed_ns,
        devices: devices_watched.map(|(device, both)| watched(device, both, &mut counted)).collect(),
        issuers: counted.issuers,
        limits: limits(devices, &before.groups, &after.groups, elapsed_ns),
        dirtiers: dirtiers(&before, &after),
        lost: counted.lost,
        own_ns: clock::thread_cpu_ns() - began_cpu_ns,
        lacking,
    }
}

/// What the kernel counts, at one moment.
struct Counters {
    /// Of each device, in their order; `None` if it could not be read.
    disks: Vec<Option<DiskCounters>>,
    /// Number and name of each process, and what it wrote since it began, in bytes.
    written: Vec<(i32, String, u64)>,
    groups: Vec<LimitedGroup>,
}

impl Counters {
    fn read(devices: &[BlockDevice]) -> Counters {
        Counters {
            disks: devices.iter().map(|device| device.counters().ok()).collect(),
            written: processes::written_bytes(),
            groups: cgroup::limited_groups(),
        }
    }
}

/// The device with these counters before and after.
fn watched(
    device: &BlockDevice,
    counters: (Option<DiskCounters>, Option<DiskCounters>),
    counted: &mut Counted,
) -> WatchedDevice {
    let figures = counted.devices.as_mut().zip(device.number());
    let figures = figures.map(|(all, number)| all.remove(&kernel_number(number)).unwrap_or_default());
    WatchedDevice {
        name: device.name().to_owned(),
        rotational: device.queue().rotational,
        counters: counters.0.zip(counters.1).map(|(before, after)| after.since(&before)).unwrap_or_default(),
        figures,
    }
}

fn limits(
    devices: &[BlockDevice],
    before: &[LimitedGroup],
    after: &[LimitedGroup],
    elapsed_ns: u64,
) -> Vec<Limit> {
    let limit = |now: &LimitedGroup| {
        let is_same = |then: &&LimitedGroup| (&then.group, &then.limit) == (&now.group, &now.limit);
        let then = before.iter().find(is_same)?;
        let device = devices.iter().find(|device| device.number() == Some(now.limit.device))?;
        Some(Limit {
            group: path::text(&now.group),
            device: device.name().to_owned(),
            what: now.limit.what.clone(),
            per_s: now.limit.per_s,
            done_per_s: now.done.saturating_sub(then.done) as f64 * 1e9 / elapsed_ns.max(1) as f64,
        })
    };
    after.iter().filter_map(limit).collect()
}

/// Who wrote most meanwhile.
fn dirtiers(before: &Counters, after: &Counters) -> Vec<Dirtier> {
    let wrote = |(pid, name, now): &(i32, String, u64)| {
        let then = before.written.iter().find(|(known, called, _)| (known, called) == (pid, name));
        let bytes = now.saturating_sub(then.map_or(0, |(.., then)| *then));
        (bytes > 0).then(|| Dirtier { name: name.clone(), pid: *pid, bytes })
    };
    let mut dirtiers: Vec<Dirtier> = after.written.iter().filter_map(wrote).collect();
    dirtiers.sort_unstable_by_key(|dirtier| std::cmp::Reverse(dirtier.bytes));
    // What hardly counts beside the first hides who does, and what the kernel's threads write is counted where it was made dirty.
    let least = dirtiers.first().map_or(0, |first| first.bytes / 100);
    dirtiers.retain(|dirtier| {
        dirtier.bytes > least && processes::of_thread(dirtier.pid).is_ok_and(|found| !found.is_kernel)
    });
    dirtiers
}
