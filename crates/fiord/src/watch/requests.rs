//! The requests of devices while they happen, and who had them made.
//!
//! Invariant: events are taken in the order of time over all processors; a thread is looked at once, when it is first seen.

use std::collections::BTreeMap;

use fiord_profile::tracepoints::quick_map::QuickMap;
use fiord_profile::tracepoints::{Completed, Matching, event};
use fiord_sys::stat::DeviceNumber;
use fiord_sys::{cgroup, clock, processes};
use fiord_watch::{DeviceFigures, Issuer, OperationFigures, Party};

use super::Chosen;
use crate::tracepoints::{Recorder, Taken};

/// Counts the requests of devices.
pub(super) struct RequestCounter {
    recorder: Recorder,
    matching: Matching,
    counted: Counted,
    issuers: Issuers,
    /// The threads of probes, whose requests count for no one.
    probes: Vec<i32>,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// By the kernel's number of the device; `None` if nothing could be recorded.
    pub(super) devices: Option<BTreeMap<u32, DeviceFigures>>,
    /// The same of the requests of probes.
    pub(super) probes: BTreeMap<u32, OperationFigures>,
    pub(super) lost: u64,
    /// What could not be observed, and what to do.
    pub(super) lacking: Option<String>,
}

/// Who had requests made, each thread looked at once.
#[derive(Debug, Default)]
struct Issuers {
    chosen: Option<Chosen>,
    all: Vec<Issuer>,
    by_thread: QuickMap<(i32, [u8; 16]), usize>,
}

impl Issuers {
    fn place(&mut self, request: &Completed) -> usize {
        let key = (request.thread, request.thread_name);
        if let Some(place) = self.by_thread.get(&key) {
            return *place;
        }
        let thread_name = event::name_text(request.thread_name);
        let issuer = match processes::of_thread(request.thread) {
            Ok(found) => Issuer {
                party: self.chosen.as_ref().map(|chosen| chosen.party(&found)),
                // A worker of the kernel is called by what it happens to do.
                name: if found.is_kernel { thread_name } else { found.name },
                pid: found.process,
                container: found.cgroup.as_deref().and_then(cgroup::container_of).map(str::to_owned),
                cgroup: found.cgroup,
                is_kernel: found.is_kernel,
            },
            // It has ended already.
            Err(_) => Issuer {
                name: thread_name,
                pid: request.thread,
                party: self.chosen.as_ref().map(|_| Party::Ended),
                ..Issuer::default()
            },
        };
        let known = self.all.iter().position(|known| *known == issuer);
        let place = known.unwrap_or_else(|| {
            self.all.push(issuer);
            self.all.len() - 1
        });
        self.by_thread.insert(key, place);
        place
    }
}

impl RequestCounter {
    /// Starts recording the requests of these devices, those of the chosen apart.
    ///
    /// # Errors
    /// What is lacking, and what to do.
    pub(super) fn start(devices: &[DeviceNumber], chosen: Option<&Chosen>) -> Result<RequestCounter, String> {
        Ok(RequestCounter {
            recorder: Recorder::start(devices)?,
            matching: Matching::default(),
            counted: Counted { devices: Some(BTreeMap::new()), ..Counted::default() },
            issuers: Issuers { chosen: chosen.cloned(), ..Issuers::default() },
            probes: Vec::new(),
        })
    }

    /// Counts what was recorded since the last call, by these threads of probes apart. Returns how many events that were.
    pub(super) fn read(&mut self, probes: Vec<i32>) -> u64 {
        self.probes = probes;
        // What is recorded from now on may be found on one processor and not on another that was read before.
        let until_ns = clock::monotonic_ns();
        let taken = self.recorder.take();
        self.count(taken, until_ns)
    }

    fn count(&mut self, taken: Result<Taken, String>, until_ns: u64) -> u64 {
        let Taken { events, lost, .. } = taken.unwrap_or_else(|why| {
            self.counted.lacking = Some(why);
            Taken::default()
        });
        self.counted.lost += lost;
        let devices = self.counted.devices.get_or_insert_default();
        // What is left may not be the next: another processor's may be older.
        while let Some(request) = self.recorder.taken.next_completed(until_ns, &mut self.matching) {
            if self.probes.contains(&request.thread) {
                self.counted.probes.entry(request.device).or_default().add(&request);
                continue;
            }
            let issuer = self.issuers.place(&request);
            let party = self.issuers.all[issuer].party;
            devices.entry(request.device).or_default().add(&request, issuer, party);
        }
        events
    }

    /// Stops recording.
    pub(super) fn stop(&mut self, probes: Vec<i32>) {
        self.probes = probes;
        let rest = self.recorder.finish();
        self.count(rest, u64::MAX);
    }

    /// What was counted so far, and the issuers that it names.
    pub(super) fn counted(&self) -> (Counted, Vec<Issuer>) {
        (self.counted.clone(), self.issuers.all.clone())
    }
}
