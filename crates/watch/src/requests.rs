//! From events to requests: which were made by whom, and how long they took.
//!
//! Invariant: memory is bounded: of requests whose end is not seen only the newest are kept.

use std::collections::{BTreeMap, HashMap};

use crate::event::{BlockEvent, Operation, Step};
use crate::figures::{Completed, DeviceFigures};

/// Requests under way at most; more than any device takes.
const UNDER_WAY_MAX: usize = 1 << 16;

/// A request that has not completed.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    issuer: usize,
    made_ns: u64,
    issued_ns: Option<u64>,
    sector: u64,
    sectors: u32,
}

/// The requests of all devices so far.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    under_way: HashMap<(u32, u64, Operation), UnderWay>,
    /// What each device did, by its number as the kernel's events have it.
    pub devices: BTreeMap<u32, DeviceFigures>,
}

impl Requests {
    /// Takes the next event, in the order of time; `issuer` finds the place in the caller's list of the thread that it is of.
    pub fn take(&mut self, event: &BlockEvent, mut issuer: impl FnMut(&BlockEvent) -> usize) {
        let key = (event.device, event.sector, event.operation);
        let mut begin = |issued_ns| UnderWay {
            issuer: issuer(event),
            made_ns: event.at_ns,
            issued_ns,
            sector: event.sector,
            sectors: event.sectors,
        };
        match event.step {
            Step::Made => {
                if self.under_way.len() >= UNDER_WAY_MAX {
                    self.under_way.clear();
                }
                // Of syncs that the kernel makes one flush of, the first is the one that waits longest.
                if event.operation != Operation::Flush || !self.under_way.contains_key(&key) {
                    self.under_way.insert(key, begin(None));
                }
            }
            Step::Issued => {
                // The kernel's own flush, before a write that asks for one, is made by no one.
                let request = self.under_way.entry(key).or_insert_with(|| begin(Some(event.at_ns)));
                request.issued_ns = Some(event.at_ns);
                // Others were merged with it in the meantime.
                request.sectors = event.sectors;
            }
            Step::Completed => {
                let Some(request) = self.under_way.remove(&key) else { return };
                // A sync without a write cache ends without a flush.
                let Some(issued_ns) = request.issued_ns else { return };
                self.devices.entry(event.device).or_default().add(Completed {
                    operation: event.operation,
                    issuer: request.issuer,
                    sector: request.sector,
                    sectors: request.sectors,
                    queue_ns: issued_ns.saturating_sub(request.made_ns),
                    device_ns: event.at_ns.saturating_sub(issued_ns),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, step: Step, operation: Operation, sector: u64, thread: i32) -> BlockEvent {
        let sectors = if operation == Operation::Flush { 0 } else { 8 };
        let thread_name = [0; 16];
        BlockEvent { at_ns, step, device: 1, sector, sectors, operation, thread, thread_name }
    }

    fn of(events: &[BlockEvent]) -> DeviceFigures {
        let mut requests = Requests::default();
        events.iter().for_each(|event| requests.take(event, |event| event.thread as usize));
        requests.devices.remove(&1).unwrap_or_default()
    }

    #[test]
    fn queue_and_device_are_apart_and_of_who_made_the_request() {
        use Operation::Read;
        let figures = of(&[
            event(100, Step::Made, Read, 8, 5),
            event(110, Step::Issued, Read, 8, 6),
            event(120, Step::Made, Read, 16, 5),
            event(125, Step::Issued, Read, 16, 6),
            event(160, Step::Completed, Read, 8, 0),
            event(165, Step::Completed, Read, 16, 0),
            event(165, Step::Completed, Read, 99, 0),
        ]);
        let read = &figures.operations[&Read];
        assert_eq!((read.requests, read.bytes, read.sequential), (2, 8192, 1));
        assert_eq!((read.queue.running.max, read.device.running.max), (10, 50));
        assert_eq!(figures.waited_ns(), (15, 90));
        let both = crate::figures::IssuerFigures { requests: 2, bytes: 8192, device_ns: 90 };
        assert_eq!(figures.issuers, BTreeMap::from([((5, Read), both)]));
        assert!((read.depth(180) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_flush_is_of_the_first_that_asked_for_it() {
        use Operation::Flush;
        let figures = of(&[
            event(100, Step::Made, Flush, 0, 5),
            event(105, Step::Made, Flush, 0, 6),
            event(110, Step::Issued, Flush, 0, 9),
            event(150, Step::Completed, Flush, 0, 0),
            event(151, Step::Completed, Flush, 0, 0),
            event(200, Step::Issued, Flush, 0, 9),
            event(250, Step::Completed, Flush, 0, 0),
        ]);
        assert_eq!(figures.requests(), 2);
        let issuers: Vec<usize> = figures.issuers.keys().map(|(issuer, _)| *issuer).collect();
        assert_eq!(issuers, [5, 9]);
    }

    #[test]
    fn requests_without_an_end_do_not_fill_memory() {
        let mut requests = Requests::default();
        for sector in 0..3 * UNDER_WAY_MAX as u64 {
            requests.take(&event(sector, Step::Made, Operation::Write, sector, 1), |_| 0);
        }
        assert!(requests.under_way.len() <= UNDER_WAY_MAX && requests.devices.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn whatever_order_every_request_is_counted_once(steps in proptest::collection::vec((0usize..3, 0u64..4, 0u64..100), 0..200)) {
            let events: Vec<BlockEvent> = steps.iter().map(|(step, sector, at_ns)| event(*at_ns, Step::ALL[*step], Operation::Write, *sector, 1)).collect();
            let completed = events.iter().filter(|event| event.step == Step::Completed).count() as u64;
            proptest::prop_assert!(of(&events).requests() <= completed);
        }
    }
}
