//! What `fiord watch` reads of the kernel: counters of disks, requests by tracepoints, who made them, limits of control groups.
//!
//! Invariant: nothing is written to a disk, and without a probe no device is opened; what the kernel was told to record is taken back at the end.

mod chosen;
mod layers;
mod probe;
mod requests;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_host::{DiskCounters, StorageStack, System};
use fiord_report::path;
use fiord_stats::{Capped, OrderBy};
use fiord_sys::cgroup::{self, LimitedGroup};
use fiord_sys::stat::DeviceNumber;
use fiord_sys::sysfs::BlockDevice;
use fiord_sys::{clock, processes, procfs, signal};
use fiord_watch::{Dirtier, Limit, Observation, ProbeFigures, WatchedDevice};

pub(crate) use self::chosen::Chosen;
pub(crate) use self::layers::without_disk;
use self::probe::{Opened, Probe};
use self::requests::{Counted, RequestCounter};
pub(crate) use self::view::{View, sentences, tables};
use crate::tracepoints::kernel_number;

/// How often the kernel's buffers are emptied.
const EVERY: Duration = Duration::from_millis(100);
/// How often they are at most, and how many events are waited for then: the buffer of a processor holds fifty thousand.
const EVERY_MIN: Duration = Duration::from_millis(5);
const EVENTS_WAITED_FOR: u64 = 10_000;

/// How to watch.
pub(crate) struct Settings {
    /// For how long.
    pub(crate) time: Duration,
    /// Whose requests are told apart.
    pub(crate) chosen: Option<Chosen>,
    /// How often a second a probe reads each device.
    pub(crate) probe_per_s: Option<u32>,
}

fn ns(time: Duration) -> u64 {
    u64::capped(time.as_nanos())
}

/// How long to wait for about [`EVENTS_WAITED_FOR`] more if so many were recorded in this time.
fn pause_ns(elapsed_ns: u64, events: u64) -> u64 {
    let pause_ns = elapsed_ns.saturating_mul(EVENTS_WAITED_FOR) / events.max(1);
    pause_ns.clamp(ns(EVERY_MIN), ns(EVERY))
}

/// Devices that are being watched.
pub(crate) struct Watch<'w> {
    devices: &'w [BlockDevice],
    chosen: Option<&'w Chosen>,
    before: Counters,
    counter: Option<RequestCounter>,
    probes: Vec<(String, Probe)>,
    /// What could not be observed, and what to do.
    lacking: Vec<String>,
    began_ns: u64,
    began_cpu_ns: u64,
    now_ns: u64,
    /// How long to wait until the kernel's buffers are emptied again.
    pause_ns: u64,
}

/// Watches these devices as long as it is to last, until a signal asks to stop, or `look` returns false, which is called ten
/// times a second.
pub(crate) fn observe(
    devices: &[BlockDevice],
    settings: &Settings,
    mut look: impl FnMut(&Watch<'_>) -> bool,
) -> Observation {
    let mut watch = Watch::start(devices, settings);
    let end_ns = watch.began_ns.saturating_add(ns(settings.time));
    while watch.now_ns < end_ns && signal::stop_requested().is_none() && look(&watch) {
        watch.read_until(end_ns.min(watch.now_ns + ns(EVERY)));
    }
    watch.stop();
    watch.so_far()
}

impl<'w> Watch<'w> {
    fn start(devices: &'w [BlockDevice], settings: &'w Settings) -> Watch<'w> {
        let began_cpu_ns = clock::thread_cpu_ns();
        let mut lacking = Vec::new();
        let numbers: Vec<DeviceNumber> = devices.iter().filter_map(BlockDevice::number).collect();
        let opened = settings.probe_per_s.map(|per_s| (per_s, open_for_probes(devices, &mut lacking)));
        let chosen = settings.chosen.as_ref();
        let counter = RequestCounter::start(&numbers, chosen).map_err(|why| lacking.push(why)).ok();
        let before = Counters::read(devices);
        if counter.is_none() && chosen.is_some() {
            lacking.push("whose requests are, which these times would come with".to_string());
        }
        let probes = start_probes(opened, &mut lacking);
        let now_ns = clock::monotonic_ns();
        let (began_ns, pause_ns) = (now_ns, ns(EVERY));
        Watch { devices, chosen, before, counter, probes, lacking, began_ns, began_cpu_ns, now_ns, pause_ns }
    }

    /// Counts what is recorded until then: more often, the more it is.
    fn read_until(&mut self, end_ns: u64) {
        while self.now_ns < end_ns {
            let before_ns = self.now_ns;
            clock::sleep_until_ns(end_ns.min(before_ns + self.pause_ns));
            self.now_ns = clock::monotonic_ns();
            let threads = self.probe_threads();
            if let Some(counter) = &mut self.counter {
                let events = counter.read(threads);
                self.pause_ns = pause_ns(self.now_ns - before_ns, events);
            }
        }
    }

    fn probe_threads(&self) -> Vec<i32> {
        self.probes.iter().map(|(_, probe)| probe.thread()).filter(|thread| *thread != 0).collect()
    }

    fn stop(&mut self) {
        self.probes.iter().for_each(|(_, probe)| probe.stop());
        let threads = self.probe_threads();
        if let Some(counter) = &mut self.counter {
            counter.stop(threads);
        }
    }

    /// For how long they have been watched.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now_ns - self.began_ns)
    }

    /// What was observed so far.
    pub(crate) fn so_far(&self) -> Observation {
        let elapsed_ns = self.now_ns - self.began_ns;
        let mut probed: Vec<(String, ProbeFigures)> =
            self.probes.iter().map(|(name, probe)| (name.clone(), probe.figures())).collect();
        let (before, after) = (&self.before, Counters::read(self.devices));
        let (mut counted, issuers) = self.counter.as_ref().map(RequestCounter::counted).unwrap_or_default();
        let system = System::read();
        let swap = swap_devices(&system);
        let counters = before.disks.iter().copied().zip(after.disks.iter().copied());
        let watched = |(device, both): (&BlockDevice, _)| {
            let place = probed.iter().position(|(name, _)| name == device.name());
            let probe = place.map(|place| probed.swap_remove(place).1);
            let is_swap = swap.contains(device);
            let below = backed_by(device, &system);
            let backed_by = below.iter().map(|disk| disk.name().to_owned()).collect();
            let (below, resync) = (layers::below(device), layers::resync(device));
            WatchedDevice { is_swap, backed_by, below, resync, ..watched(device, both, probe, &mut counted) }
        };
        let devices = self.devices.iter().zip(counters).map(watched).collect();
        Observation {
            elapsed_ns,
            devices,
            issuers,
            chosen: self.chosen.map(Chosen::words),
            limits: limits(self.devices, &before.groups, &after.groups, elapsed_ns),
            dirtiers: dirtiers(before, &after),
            swapped_bytes: after.swapped_bytes.saturating_sub(before.swapped_bytes),
            lost: counted.lost,
            own_ns: clock::thread_cpu_ns() - self.began_cpu_ns,
            lacking: self.lacking.iter().chain(&counted.lacking).cloned().collect(),
        }
    }
}

/// Opens those of these devices that are at the bottom: a read of one above is one of theirs as well.
fn open_for_probes(devices: &[BlockDevice], lacking: &mut Vec<String>) -> Vec<Opened> {
    let system = System::read();
    let is_bottom = |device: &&BlockDevice| {
        device.slaves().is_empty() && !backed_by(device, &system).iter().any(|disk| devices.contains(disk))
    };
    let opened = devices.iter().filter(is_bottom).map(Opened::new);
    opened.filter_map(|opened| opened.map_err(|why| lacking.push(why)).ok()).collect()
}

/// The whole disks below the file of a loop device.
fn backed_by(device: &BlockDevice, system: &System) -> Vec<BlockDevice> {
    let file = device.attribute("loop/backing_file").map(PathBuf::from);
    file.and_then(|file| whole_disks(&file, system).ok()).unwrap_or_default()
}

fn start_probes(opened: Option<(u32, Vec<Opened>)>, lacking: &mut Vec<String>) -> Vec<(String, Probe)> {
    let Some((per_s, opened)) = opened else { return Vec::new() };
    let start = |device: Opened| {
        let name = device.name.clone();
        Probe::start(device, per_s).map_err(|why| lacking.push(why)).ok().map(|probe| (name, probe))
    };
    opened.into_iter().filter_map(start).collect()
}

/// What the kernel counts, at one moment.
struct Counters {
    /// Of each device, in their order; `None` if it could not be read.
    disks: Vec<Option<DiskCounters>>,
    /// Number and name of each process, and what it wrote since it began, in bytes.
    written: Vec<(i32, String, u64)>,
    groups: Vec<LimitedGroup>,
    swapped_bytes: u64,
}

impl Counters {
    fn read(devices: &[BlockDevice]) -> Counters {
        Counters {
            disks: devices.iter().map(|device| device.counters().ok()).collect(),
            written: processes::written_bytes(),
            groups: cgroup::limited_groups(),
            swapped_bytes: procfs::swapped_bytes().unwrap_or(0),
        }
    }
}

/// The device with these counters before and after.
fn watched(
    device: &BlockDevice,
    counters: (Option<DiskCounters>, Option<DiskCounters>),
    mut probe: Option<ProbeFigures>,
    counted: &mut Counted,
) -> WatchedDevice {
    let (number, queue) = (device.number().map(kernel_number), device.queue());
    let figures = counted.devices.as_mut().zip(number);
    let figures = figures.map(|(all, number)| all.remove(&number).unwrap_or_default());
    let mut counters =
        counters.0.zip(counters.1).map(|(before, after)| after.since(&before)).unwrap_or_default();
    if let Some(probe) = &mut probe {
        let traced = figures.as_ref().and(number).and_then(|number| counted.probes.remove(&number));
        probe.traced = figures.as_ref().map(|_| traced.unwrap_or_default());
        let reads = &probe.calls.running;
        counters.read_ios = counters.read_ios.saturating_sub(reads.count);
        counters.read_sectors = counters.read_sectors.saturating_sub(reads.count * probe.read_bytes / 512);
        counters.read_ms =
            counters.read_ms.saturating_sub(u64::try_from(reads.sum / 1_000_000).unwrap_or(u64::MAX));
    }
    WatchedDevice {
        name: device.name().to_owned(),
        rotational: queue.rotational,
        queue_slots: queue.requests * queue.hardware_queues,
        counters,
        figures,
        probe,
        ..WatchedDevice::default()
    }
}

/// The whole disks below the only swap area; empty if there are several, of which the kernel does not count each, or none.
fn swap_devices(system: &System) -> Vec<BlockDevice> {
    let swaps = procfs::swaps().unwrap_or_default();
    let [only] = swaps.as_slice() else { return Vec::new() };
    whole_disks(only, system).unwrap_or_default()
}

/// The whole disks below a path, each once: requests are theirs.
///
/// # Errors
/// The path does not exist, or a device of it.
pub(crate) fn whole_disks(path: &Path, system: &System) -> io::Result<Vec<BlockDevice>> {
    let mut disks: Vec<BlockDevice> = Vec::new();
    for facts in StorageStack::of(path, system)?.devices() {
        let disk = system.sysfs.block_device(&facts.device.name)?.disk();
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    Ok(disks)
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
    dirtiers.order_by_key(|dirtier| std::cmp::Reverse(dirtier.bytes));
    // What hardly counts beside the first hides who does, and what the kernel's threads write is counted where it was made dirty.
    let least = dirtiers.first().map_or(0, |first| first.bytes / 100);
    dirtiers.retain(|dirtier| {
        dirtier.bytes > least && processes::of_thread(dirtier.pid).is_ok_and(|found| !found.is_kernel)
    });
    dirtiers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_emptied_the_more_often_the_more_is_recorded() {
        let pause_ms = |elapsed_ms: u64, events| pause_ns(elapsed_ms * 1_000_000, events) as f64 / 1e6;
        assert_eq!(
            [pause_ms(100, 0), pause_ms(100, 9_999)],
            [100.0, 100.0],
            "few do not have to be waited for"
        );
        assert_eq!([pause_ms(100, 20_000), pause_ms(50, 50_000)], [50.0, 10.0]);
        assert_eq!([pause_ms(5, 50_000), pause_ns(u64::MAX, 1) as f64 / 1e6], [5.0, 100.0]);
    }
}
