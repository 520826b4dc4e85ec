//! What was measured of a device's requests.
//!
//! Invariant: a request is counted once, when the device completed it, with its time in the queue (from its being made until
//! it was given to the driver) and at the device (from then on).

use std::collections::BTreeMap;

use fiord_profile::tracepoints::{Completed, Operation};
use fiord_stats::Latency;

use crate::issuer::Party;

/// Bytes of a sector of the kernel.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Requests of one operation.
#[derive(Clone, Debug)]
pub struct OperationFigures {
    /// How many completed.
    pub requests: u64,
    /// What they moved, in bytes.
    pub bytes: u64,
    /// How many began where another of the latest ones ended.
    pub sequential: u64,
    /// Time in the queue, in nanoseconds.
    pub queue: Latency,
    /// Time at the device, in nanoseconds.
    pub device: Latency,
    /// Where the latest ones ended, in sectors: as many streams are told apart.
    ends: [u64; 16],
    next_end: usize,
}

impl Default for OperationFigures {
    fn default() -> Self {
        OperationFigures {
            requests: 0,
            bytes: 0,
            sequential: 0,
            queue: Latency::with_histogram(),
            device: Latency::with_histogram(),
            ends: [u64::MAX; 16],
            next_end: 0,
        }
    }
}

impl OperationFigures {
    /// Adds a request.
    pub fn add(&mut self, request: &Completed) {
        self.requests += 1;
        self.bytes += bytes_of(request);
        self.queue.record(request.queue_ns());
        self.device.record(request.device_ns());
        self.issue(request.sector, request.sectors);
    }

    /// A request was given to the driver.
    fn issue(&mut self, sector: u64, sectors: u32) {
        let end = sector.saturating_add(u64::from(sectors));
        match self.ends.iter().position(|known| *known == sector) {
            Some(stream) => {
                self.sequential += 1;
                self.ends[stream] = end;
            }
            None => {
                self.ends[self.next_end] = end;
                self.next_end = (self.next_end + 1) % self.ends.len();
            }
        }
    }

    /// What was counted since `earlier`, an earlier copy.
    pub(crate) fn since(&self, earlier: &OperationFigures) -> OperationFigures {
        let part = |now: &Latency, then| now.since(then).unwrap_or_else(|| now.clone());
        OperationFigures {
            requests: self.requests - earlier.requests,
            bytes: self.bytes - earlier.bytes,
            sequential: self.sequential - earlier.sequential,
            queue: part(&self.queue, &earlier.queue),
            device: part(&self.device, &earlier.device),
            ..self.clone()
        }
    }

    /// The mean number of requests at the device at a time.
    pub fn depth(&self, elapsed_ns: u64) -> f64 {
        self.device.running.sum as f64 / elapsed_ns.max(1) as f64
    }
}

/// What one issuer had a device do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssuerFigures {
    /// Requests completed.
    pub requests: u64,
    /// What they moved, in bytes.
    pub bytes: u64,
    /// Their time at the device together, in nanoseconds.
    pub device_ns: u64,
}

/// What a probe found: reads that watching itself made, which count for no one.
#[derive(Clone, Debug, Default)]
pub struct ProbeFigures {
    /// Its reads as the kernel traced them; `None` if it could not.
    pub traced: Option<OperationFigures>,
    /// How long its calls took, in nanoseconds.
    pub calls: Latency,
    /// Bytes of a read.
    pub read_bytes: u64,
    /// Reads that failed.
    pub failed: u64,
    /// Where and why the first failed: `at byte 4096: Input/output error`.
    pub first_failure: Option<String>,
    /// For how long the last one had been without an answer at the end, in nanoseconds.
    pub waiting_ns: u64,
}

impl ProbeFigures {
    /// What was found since `earlier`, an earlier copy.
    pub(crate) fn since(&self, earlier: &ProbeFigures) -> ProbeFigures {
        let traced = |now: &OperationFigures| match &earlier.traced {
            Some(then) => now.since(then),
            None => now.clone(),
        };
        let calls = self.calls.since(&earlier.calls).unwrap_or_else(|| self.calls.clone());
        ProbeFigures { traced: self.traced.as_ref().map(traced), calls, ..self.clone() }
    }

    /// Its reads; as the calls if they could not be traced, without time in the queue.
    pub fn reads(&self) -> OperationFigures {
        self.traced.clone().unwrap_or_else(|| {
            let requests = self.calls.running.count;
            let bytes = requests * self.read_bytes;
            OperationFigures { requests, bytes, device: self.calls.clone(), ..OperationFigures::default() }
        })
    }
}

/// What a device did.
#[derive(Clone, Debug, Default)]
pub struct DeviceFigures {
    /// By operation; those that did not occur are absent, or have no requests.
    pub operations: BTreeMap<Operation, OperationFigures>,
    /// By issuer (its place in the list of issuers) and operation.
    pub issuers: BTreeMap<(usize, Operation), IssuerFigures>,
    /// By whose they were, if some issuers were chosen, and operation.
    pub parties: BTreeMap<(Party, Operation), OperationFigures>,
}

impl DeviceFigures {
    /// Adds a request that this issuer had made, of this party.
    pub fn add(&mut self, request: &Completed, issuer: usize, party: Option<Party>) {
        self.operations.entry(request.operation).or_default().add(request);
        if let Some(party) = party {
            self.parties.entry((party, request.operation)).or_default().add(request);
        }
        let issuer = self.issuers.entry((issuer, request.operation)).or_default();
        issuer.requests += 1;
        issuer.bytes += bytes_of(request);
        issuer.device_ns += request.device_ns();
    }

    /// What was counted since `earlier`, an earlier copy; what did not occur since has no requests.
    pub(crate) fn since(&self, earlier: &DeviceFigures) -> DeviceFigures {
        let mut part = self.clone();
        for (key, now) in &mut part.issuers {
            let then = earlier.issuers.get(key).copied().unwrap_or_default();
            now.requests -= then.requests;
            now.bytes -= then.bytes;
            now.device_ns -= then.device_ns;
        }
        each_since(&mut part.operations, &earlier.operations);
        each_since(&mut part.parties, &earlier.parties);
        part
    }

    /// The time of a party's requests at the device, in percent of that of all.
    pub fn party_percent(&self, party: Party) -> f64 {
        let of = self.parties.iter().filter(|((whose, _), _)| *whose == party);
        let device_ns: u128 = of.map(|(_, figures)| figures.device.running.sum).sum();
        100.0 * device_ns as f64 / self.waited_ns().1.max(1) as f64
    }

    /// Requests of all operations.
    pub fn requests(&self) -> u64 {
        self.operations.values().map(|figures| figures.requests).sum()
    }

    /// The time of all requests in the queue, and at the device, in nanoseconds.
    pub fn waited_ns(&self) -> (u128, u128) {
        let all = self.operations.values();
        all.fold((0, 0), |(queue, device), figures| {
            (queue + figures.queue.running.sum, device + figures.device.running.sum)
        })
    }
}

fn each_since<K: Ord>(all: &mut BTreeMap<K, OperationFigures>, earlier: &BTreeMap<K, OperationFigures>) {
    for (key, now) in all {
        if let Some(then) = earlier.get(key) {
            *now = now.since(then);
        }
    }
}

fn bytes_of(request: &Completed) -> u64 {
    u64::from(request.sectors) * SECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sequential_streams_are_told_apart() {
        let mut figures = DeviceFigures::default();
        for at in 0..10 {
            for stream in 0..4 {
                let sector = stream * 1_000_000 + at * 8;
                let request =
                    Completed { sector, sectors: 8, issued_ns: 5, completed_ns: 50, ..Completed::default() };
                let party = if stream == 3 { Party::Chosen } else { Party::Others };
                figures.add(&request, stream as usize, Some(party));
            }
        }
        let read = &figures.operations[&Operation::Read];
        assert_eq!((read.requests, read.bytes, read.sequential), (40, 40 * 4096, 36));
        assert_eq!(figures.waited_ns(), (200, 1800));
        assert!((read.depth(3600) - 0.5).abs() < 1e-9);
        let one = IssuerFigures { requests: 10, bytes: 40_960, device_ns: 450 };
        assert_eq!(figures.issuers[&(3, Operation::Read)], one);
        let parties = [Party::Chosen, Party::Others, Party::Kernel].map(|party| figures.party_percent(party));
        assert_eq!(parties, [25.0, 75.0, 0.0]);
        assert_eq!(figures.parties[&(Party::Others, Operation::Read)].sequential, 27);
    }
}
