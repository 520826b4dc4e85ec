//! Events of several processors in the order of time.
//!
//! Invariant: an event is given out once, and those of a processor as they came, which is in the order of time.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::event::{BlockEvent, EventFormats, Step};
use super::matching::{Completed, Matching};
use super::ring::Page;

/// Events that were taken of each processor, and wait for older ones of others.
#[derive(Clone, Debug, Default)]
pub struct EventQueues {
    queues: Vec<VecDeque<BlockEvent>>,
    /// The first event of each queue: its place in time, and the queue's number.
    firsts: BinaryHeap<Reverse<((u64, Step), usize)>>,
}

fn place(event: &BlockEvent) -> (u64, Step) {
    (event.at_ns, event.step)
}

impl EventQueues {
    // What calls these is built for size, and so would be what is inlined there.

    /// Adds the events of the next page of a processor. Returns how many they are, and the time of the first.
    #[inline(never)]
    pub fn add_page(
        &mut self,
        processor: usize,
        page: Page<'_>,
        formats: &EventFormats,
    ) -> (u64, Option<u64>) {
        let (mut events, mut first_ns) = (0, None);
        for (at_ns, record) in page.records() {
            if let Some(event) = formats.event(at_ns, record) {
                events += 1;
                first_ns.get_or_insert(at_ns);
                self.add(processor, event);
            }
        }
        (events, first_ns)
    }

    /// The next request that completed up to this moment.
    #[inline(never)]
    pub fn next_completed(&mut self, until_ns: u64, matching: &mut Matching) -> Option<Completed> {
        std::iter::from_fn(|| self.next(until_ns)).find_map(|event| matching.take(&event))
    }

    /// Adds the next event of a processor.
    fn add(&mut self, processor: usize, event: BlockEvent) {
        if self.queues.len() <= processor {
            self.queues.resize_with(processor + 1, VecDeque::new);
        }
        if self.queues[processor].is_empty() {
            self.firsts.push(Reverse((place(&event), processor)));
        }
        self.queues[processor].push_back(event);
    }

    /// Takes the next event in the order of time, up to this moment; of one moment in the order of a request's steps.
    pub fn next(&mut self, until_ns: u64) -> Option<BlockEvent> {
        let mut first = self.firsts.peek_mut()?;
        let Reverse(((at_ns, _), processor)) = *first;
        if at_ns > until_ns {
            return None;
        }
        let queue = &mut self.queues[processor];
        let event = queue.pop_front();
        match queue.front() {
            Some(next) => first.0.0 = place(next),
            None => drop(PeekMut::pop(first)),
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_order_is_that_of_all_sorted(mut times in proptest::collection::vec((0_u64..50, 0_usize..4), 0..100), until_ns in 0_u64..60) {
            times.sort_unstable();
            let (mut queues, mut all, mut found) = (EventQueues::default(), Vec::new(), Vec::new());
            for (at, (at_ns, processor)) in times.into_iter().enumerate() {
                let event = BlockEvent { at_ns, sector: at as u64, ..BlockEvent::default() };
                queues.add(processor, event);
                all.push(event);
            }
            found.extend(std::iter::from_fn(|| queues.next(until_ns)));
            proptest::prop_assert_eq!(found.iter().filter(|event| event.at_ns > until_ns).count(), 0);
            found.extend(std::iter::from_fn(|| queues.next(u64::MAX)));
            let times = |events: &[BlockEvent]| events.iter().map(|event| event.at_ns).collect::<Vec<_>>();
            proptest::prop_assert_eq!(times(&found), times(&all));
            found.sort_by_key(|event| event.sector);
            proptest::prop_assert_eq!(found, all);
        }
    }
}
