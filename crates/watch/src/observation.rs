//! What was observed of the devices in a stretch of time.
//!
//! Invariant: what could not be observed is absent and said, never zero.

use fiord_device::DiskCounters;

use crate::figures::{DeviceFigures, ProbeFigures};
use crate::issuer::{Issuer, Party};

/// A device that was watched.
#[derive(Clone, Debug, Default)]
pub struct WatchedDevice {
    /// The kernel's name, `vda`.
    pub name: String,
    /// Whether it has rotating platters.
    pub rotational: bool,
    /// Of a loop device: the disks below its file.
    pub backed_by: Vec<String>,
    /// Of an array or a mapped device: the whole disks directly below.
    pub below: Vec<String>,
    /// What the array does that it is a member of, if that is resynchronised, checked or rebuilt.
    pub resync: Option<Resync>,
    /// Requests that its queues have room for; 0 if that is not known.
    pub queue_slots: u64,
    /// Whether all that is swapped on this machine goes to it.
    pub is_swap: bool,
    /// What its counters counted meanwhile.
    pub counters: DiskCounters,
    /// Its requests, one by one; `None` if they could not be traced.
    pub figures: Option<DeviceFigures>,
    /// What a probe of it found; `None` without one.
    pub probe: Option<ProbeFigures>,
}

impl WatchedDevice {
    /// Its requests, if any were traced: the kernel makes none for arrays, mapped devices and memory.
    pub fn traced(&self) -> Option<&DeviceFigures> {
        self.figures.as_ref().filter(|figures| figures.requests() > 0)
    }

    /// What it was asked for: requests, or what its counters counted.
    pub(crate) fn ios(&self) -> u64 {
        let counters = &self.counters;
        let counted = counters.read_ios + counters.write_ios + counters.discard_ios + counters.flush_ios;
        self.traced().map_or(counted, DeviceFigures::requests)
    }
}

/// An array that is resynchronised, checked or rebuilt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resync {
    /// The kernel's name, `md0`.
    pub array: String,
    /// In the kernel's words: `resync`, `recover`, `check`, `repair`, `reshape`.
    pub action: String,
    /// How far it is, in percent; `None` if the kernel does not tell.
    pub done_percent: Option<u64>,
}

/// A limit of a control group on a device, and what the group did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limit {
    /// The group, as the kernel names it: `/system.slice/db.service`.
    pub group: String,
    /// The device it is for.
    pub device: String,
    /// What is limited, in the kernel's words: `rbps`, `wbps`, `riops`, `wiops`.
    pub what: String,
    /// The limit, per second.
    pub per_s: u64,
    /// What the group did, per second.
    pub done_per_s: f64,
}

/// A process that made pages dirty in the page cache, or wrote around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirtier {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: i32,
    /// Bytes.
    pub bytes: u64,
}

/// All that was observed.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// For how long, in nanoseconds.
    pub elapsed_ns: u64,
    /// The devices, in the order asked for.
    pub devices: Vec<WatchedDevice>,
    /// Who had requests made; figures name them by their place here.
    pub issuers: Vec<Issuer>,
    /// The processes that were chosen, in words: `process 4711 (postgres)`; `None` if nobody was.
    pub chosen: Option<String>,
    /// The limits of control groups on these devices.
    pub limits: Vec<Limit>,
    /// The processes that wrote the most, that first; empty if the kernel does not tell.
    pub dirtiers: Vec<Dirtier>,
    /// What the kernel moved to and from swap, in bytes.
    pub swapped_bytes: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Processor time that watching took, in nanoseconds.
    pub own_ns: u64,
    /// What could not be observed, and what to do: a sentence each, without a full stop.
    pub lacking: Vec<String>,
}

impl Observation {
    /// Leaves out the devices that the chosen did not use, unless they used none.
    pub fn keep_used(&mut self) {
        let is_used = |device: &WatchedDevice| {
            let figures = device.figures.iter().flat_map(|figures| figures.parties.keys());
            figures.map(|(party, _)| *party).any(|party| party == Party::Chosen)
        };
        if self.devices.iter().any(is_used) {
            self.devices.retain(is_used);
        }
    }

    /// What the devices did since `earlier`, which was observed of the same devices; what was concluded from other counters
    /// is left out.
    #[must_use]
    pub fn since(&self, earlier: &Observation) -> Observation {
        let device = |(now, then): (&WatchedDevice, &WatchedDevice)| WatchedDevice {
            counters: now.counters.since(&then.counters),
            figures: now.figures.as_ref().zip(then.figures.as_ref()).map(|(now, then)| now.since(then)),
            probe: now.probe.as_ref().zip(then.probe.as_ref()).map(|(now, then)| now.since(then)),
            name: now.name.clone(),
            ..WatchedDevice::default()
        };
        Observation {
            elapsed_ns: self.elapsed_ns - earlier.elapsed_ns,
            devices: self.devices.iter().zip(&earlier.devices).map(device).collect(),
            issuers: self.issuers.clone(),
            ..Observation::default()
        }
    }

    /// Per second.
    pub fn per_s(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use fiord_profile::tracepoints::{Completed, Operation};

    use super::*;
    use crate::tables;

    fn read(device_ns: u64) -> Completed {
        Completed { sectors: 8, issued_ns: 5, completed_ns: 5 + device_ns, ..Completed::default() }
    }

    #[test]
    fn a_second_has_its_own_requests_and_latencies() {
        let mut figures = DeviceFigures::default();
        (0..100).for_each(|_| figures.add(&read(1_000_000), 0, Some(Party::Others)));
        figures.add(&Completed { operation: Operation::Write, ..read(7) }, 1, Some(Party::Chosen));
        let observed = |elapsed_ns, figures: &DeviceFigures| {
            let device = WatchedDevice { figures: Some(figures.clone()), ..WatchedDevice::default() };
            let named = |name: &str| Issuer { name: name.to_string(), ..Issuer::default() };
            let issuers = ["a", "b", "c"].map(named).to_vec();
            Observation { elapsed_ns, devices: vec![device], issuers, ..Observation::default() }
        };
        let before = observed(5_000_000_000, &figures);
        (0..10).for_each(|_| figures.add(&read(1000), 2, Some(Party::Others)));
        let second = observed(6_000_000_000, &figures).since(&before);
        let last = second.devices[0].figures.as_ref().unwrap();
        let of = &last.operations[&Operation::Read];
        assert_eq!((of.requests, of.bytes, of.device.running.sum), (10, 10 * 4096, 10_000));
        assert!(of.device.percentiles(&[100.0])[0] < 1100, "{:?}", of.device.percentiles(&[100.0]));
        let of_issuers = last.issuers.iter().map(|((issuer, _), of)| (*issuer, of.requests));
        assert_eq!(of_issuers.collect::<Vec<_>>(), [(0, 0), (1, 0), (2, 10)]);
        assert_eq!(tables::devices(&second).rows.len(), 1, "nothing was written");
        assert_eq!(tables::parties(&second).rows.len(), 1, "the chosen did nothing");
        let shares = tables::shares(&second, &second.devices[0]);
        assert_eq!(shares.into_iter().map(|share| share.name).collect::<Vec<_>>(), ["c"]);
        assert!((second.per_s(of.requests) - 10.0).abs() < 1e-9);
        let same = before.since(&before);
        assert_eq!(same.devices[0].figures.as_ref().map(DeviceFigures::requests), Some(0));
    }
}
