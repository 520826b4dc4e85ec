//! From events to requests: who had each made, and when it got where.
//!
//! Invariant: a request counts once, and only if its completion was seen. Memory is bounded: of requests whose end is not seen
//! only the newest are kept.

use super::event::{BlockEvent, Operation, Step};
use super::quick_map::QuickMap;

/// Requests under way at most; more than any device takes.
const UNDER_WAY_MAX: usize = 1 << 16;

/// A request that has not completed.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    thread: i32,
    thread_name: [u8; 16],
    made_ns: u64,
    issued_ns: Option<u64>,
    sectors: u32,
}

/// A request that the device completed. Times are in nanoseconds of the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// The device, as the kernel numbers it: major number from bit 20.
    pub device: u32,
    /// What it asked.
    pub operation: Operation,
    /// The first sector of 512 bytes; 0 of a flush.
    pub sector: u64,
    /// Sectors, those of requests that were merged with it included.
    pub sectors: u32,
    /// The thread that had it made.
    pub thread: i32,
    /// The name of that thread.
    pub thread_name: [u8; 16],
    /// When it was made.
    pub made_ns: u64,
    /// When it was given to the driver.
    pub issued_ns: u64,
    /// When the device completed it.
    pub completed_ns: u64,
}

impl Completed {
    /// Time in the queue.
    pub fn queue_ns(&self) -> u64 {
        self.issued_ns.saturating_sub(self.made_ns)
    }

    /// Time at the device.
    pub fn device_ns(&self) -> u64 {
        self.completed_ns.saturating_sub(self.issued_ns)
    }
}

/// The requests under way.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    under_way: QuickMap<(u32, u64, Operation), UnderWay>,
}

impl Matching {
    /// Takes the next event, in the order of time; returns the request that it completes.
    pub fn take(&mut self, event: &BlockEvent) -> Option<Completed> {
        let key = (event.device, event.sector, event.operation);
        let begun = UnderWay {
            thread: event.thread,
            thread_name: event.thread_name,
            made_ns: event.at_ns,
            issued_ns: None,
            sectors: event.sectors,
        };
        match event.step {
            Step::Made => {
                if self.under_way.len() >= UNDER_WAY_MAX {
                    self.under_way.clear();
                }
                // Of syncs that the kernel makes one flush of, the first is the one that waits longest.
                if event.operation != Operation::Flush || !self.under_way.contains_key(&key) {
                    self.under_way.insert(key, begun);
                }
                None
            }
            Step::Issued => {
                // The kernel's own flush, before a write that asks for one, is made by no one. One that the driver gave back is
                // issued again.
                let request = self.under_way.entry(key).or_insert(begun);
                request.issued_ns = Some(event.at_ns);
                // Others were merged with it in the meantime.
                request.sectors = event.sectors;
                None
            }
            Step::Completed => {
                let request = self.under_way.remove(&key)?;
                Some(Completed {
                    device: event.device,
                    operation: event.operation,
                    sector: event.sector,
                    sectors: request.sectors,
                    thread: request.thread,
                    thread_name: request.thread_name,
                    made_ns: request.made_ns,
                    // A sync without a write cache ends without a flush.
                    issued_ns: request.issued_ns?,
                    completed_ns: event.at_ns,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, step: Step, operation: Operation, sector: u64, thread: i32) -> BlockEvent {
        let sectors = if operation == Operation::Flush { 0 } else { 8 };
        BlockEvent { at_ns, step, device: 1, sector, sectors, operation, thread, thread_name: [0; 16] }
    }

    fn of(events: &[BlockEvent]) -> Vec<Completed> {
        let mut matching = Matching::default();
        events.iter().filter_map(|event| matching.take(event)).collect()
    }

    #[test]
    fn queue_and_device_are_apart_and_of_who_made_the_request() {
        use Operation::Read;
        let found = of(&[
            event(100, Step::Made, Read, 8, 5),
            event(110, Step::Issued, Read, 8, 6),
            event(120, Step::Made, Read, 16, 5),
            event(125, Step::Issued, Read, 16, 6),
            event(130, Step::Issued, Read, 16, 6),
            event(160, Step::Completed, Read, 8, 0),
            event(165, Step::Completed, Read, 16, 0),
            event(165, Step::Completed, Read, 99, 0),
        ]);
        let times = |request: &Completed| (request.thread, request.queue_ns(), request.device_ns());
        assert_eq!(found.iter().map(times).collect::<Vec<_>>(), [(5, 10, 50), (5, 10, 35)]);
    }

    #[test]
    fn a_flush_is_of_the_first_that_asked_for_it() {
        use Operation::Flush;
        let found = of(&[
            event(100, Step::Made, Flush, 0, 5),
            event(105, Step::Made, Flush, 0, 6),
            event(110, Step::Issued, Flush, 0, 9),
            event(150, Step::Completed, Flush, 0, 0),
            event(151, Step::Completed, Flush, 0, 0),
            event(200, Step::Issued, Flush, 0, 9),
            event(250, Step::Completed, Flush, 0, 0),
            event(300, Step::Made, Flush, 0, 5),
            event(310, Step::Completed, Flush, 0, 5),
        ]);
        assert_eq!(found.iter().map(|request| request.thread).collect::<Vec<_>>(), [5, 9]);
    }

    #[test]
    fn requests_without_an_end_do_not_fill_memory() {
        let mut matching = Matching::default();
        for sector in 0..3 * UNDER_WAY_MAX as u64 {
            assert_eq!(matching.take(&event(sector, Step::Made, Operation::Write, sector, 1)), None);
        }
        assert!(matching.under_way.len() <= UNDER_WAY_MAX);
    }

    proptest::proptest! {
        #[test]
        fn in_whatever_order_no_more_are_counted_than_completed(steps in proptest::collection::vec((0usize..3, 0u64..4, 0u64..100), 0..200)) {
            let event = |(step, sector, at_ns): &(usize, u64, u64)| event(*at_ns, Step::ALL[*step], Operation::Write, *sector, 1);
            let events: Vec<BlockEvent> = steps.iter().map(event).collect();
            let completed = events.iter().filter(|event| event.step == Step::Completed).count();
            proptest::prop_assert!(of(&events).len() <= completed);
        }
    }
}
