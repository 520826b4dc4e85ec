//! How long the requests of a run took in the queue and at the device, and how many its threads waited for at a time.
//!
//! Invariant: a request counts once, and only if its completion was seen.

use fiord_stats::Capped;

use crate::tracepoints::event::put_in_order;
use crate::tracepoints::{BlockEvent, Completed, Matching};

/// How long requests took, from the events of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTimes {
    /// Time in the queue of each request, in nanoseconds, ascending.
    pub queue_ns: Vec<u64>,
    /// Time at the device of each request, in nanoseconds, ascending.
    pub device_ns: Vec<u64>,
    /// How many requests of a thread each were in the queue, or at the device, at a time on average: at each moment no more
    /// than there are threads, those at the device first.
    pub queue_mean: f64,
    /// Likewise at the device.
    pub device_mean: f64,
    /// The time that the events span, in nanoseconds.
    pub window_ns: u64,
}

impl RequestTimes {
    /// From the events of a run that lasted `run_ns`, with this many threads, in any order; older ones than `since_ns` are not
    /// all there. `None` if no request completed.
    pub fn of(
        mut events: Vec<BlockEvent>,
        since_ns: Option<u64>,
        threads: u64,
        run_ns: u64,
    ) -> Option<RequestTimes> {
        put_in_order(&mut events);
        let end_ns = events.last()?.at_ns;
        let first_ns = events.first()?.at_ns;
        let begin_ns = since_ns.unwrap_or_else(|| end_ns.saturating_sub(run_ns).min(first_ns));
        events.retain(|event| event.at_ns >= begin_ns);
        let mut matching = Matching::default();
        let requests: Vec<Completed> = events.iter().filter_map(|event| matching.take(event)).collect();
        let (queue_sum, device_sum) = at_a_time(&requests, threads);
        let window_ns = end_ns.saturating_sub(begin_ns);
        let mean = |sum: u128| sum as f64 / window_ns.max(1) as f64;
        let sorted = |mut times: Vec<u64>| {
            times.sort_unstable();
            times
        };
        (!requests.is_empty()).then(|| RequestTimes {
            queue_ns: sorted(requests.iter().map(Completed::queue_ns).collect()),
            device_ns: sorted(requests.iter().map(Completed::device_ns).collect()),
            queue_mean: mean(queue_sum),
            device_mean: mean(device_sum),
            window_ns,
        })
    }

    /// The mean of times, in nanoseconds; 0 for none.
    pub fn mean_ns(times: &[u64]) -> u64 {
        let sum: u128 = times.iter().map(|ns| u128::from(*ns)).sum();
        u64::capped(sum / times.len().max(1) as u128)
    }

    /// A percentile of ascending times; 0 for none.
    pub fn percentile_ns(times: &[u64], percent: f64) -> u64 {
        let rank = usize::capped((percent / 100.0 * times.len() as f64).ceil().max(1.0));
        times.get(rank.min(times.len()).saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// The time of requests in the queue and at the device, counted at each moment for no more than `threads` of them.
fn at_a_time(requests: &[Completed], threads: u64) -> (u128, u128) {
    let mut changes: Vec<(u64, i64, i64)> = Vec::new();
    for request in requests {
        changes.push((request.made_ns, 1, 0));
        changes.push((request.issued_ns, -1, 1));
        changes.push((request.completed_ns, 0, -1));
    }
    changes.sort_unstable();
    let (mut queued, mut issued, mut since_ns) = (0i64, 0i64, 0u64);
    let (mut queue_sum, mut device_sum) = (0u128, 0u128);
    for (at_ns, to_queue, to_device) in changes {
        let length = u128::from(at_ns.saturating_sub(since_ns));
        let at_device = u64::try_from(issued).unwrap_or(0).min(threads);
        let in_queue = u64::try_from(queued).unwrap_or(0).min(threads - at_device);
        if issued + queued > 0 {
            device_sum += length * u128::from(at_device);
            queue_sum += length * u128::from(in_queue);
        }
        (queued, issued, since_ns) = (queued + to_queue, issued + to_device, at_ns);
    }
    (queue_sum, device_sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracepoints::{Operation, Step};

    /// Two requests and the end of a third, in microseconds.
    fn events() -> Vec<BlockEvent> {
        let event = |at_us: u64, step, sector| BlockEvent {
            at_ns: at_us * 1000,
            step,
            device: 254 << 20,
            sector,
            sectors: 8,
            operation: Operation::Write,
            thread: 28_241,
            thread_name: *b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        vec![
            event(398, Step::Made, 888),
            event(460, Step::Completed, 888),
            event(498, Step::Completed, 896),
            event(500, Step::Completed, 99),
            event(400, Step::Issued, 888),
            event(466, Step::Made, 896),
            event(476, Step::Issued, 896),
        ]
    }

    #[test]
    fn times_in_the_queue_and_at_the_device_are_of_the_same_request() {
        let times = RequestTimes::of(events(), None, 1, 200_000).unwrap();
        assert_eq!(times.queue_ns, [2000, 10_000]);
        assert_eq!(times.device_ns, [22_000, 60_000]);
        // The run lasted longer than the events.
        assert_eq!(times.window_ns, 200_000);
        assert!(
            (times.device_mean - 82.0 / 200.0).abs() < 1e-9 && (times.queue_mean - 12.0 / 200.0).abs() < 1e-9
        );
        assert_eq!(RequestTimes::mean_ns(&times.queue_ns), 6000);
        assert_eq!(RequestTimes::percentile_ns(&times.device_ns, 50.0), 22_000);
        assert_eq!(RequestTimes::percentile_ns(&times.device_ns, 99.0), 60_000);
        assert_eq!((RequestTimes::percentile_ns(&[], 50.0), RequestTimes::mean_ns(&[])), (0, 0));
        assert_eq!(RequestTimes::of(Vec::new(), None, 1, 1), None);
    }

    #[test]
    fn of_an_overwritten_trace_only_what_all_processors_kept_counts() {
        let times = RequestTimes::of(events(), Some(460_000), 1, 200_000).unwrap();
        assert_eq!((times.queue_ns.len(), times.window_ns), (1, 40_000), "the other began before");
        assert_eq!(RequestTimes::of(events(), Some(u64::MAX), 1, 200_000), None);
    }

    #[test]
    fn more_requests_than_threads_are_not_waited_for() {
        let request = |made_ns, issued_ns, completed_ns| Completed {
            made_ns,
            issued_ns,
            completed_ns,
            ..Completed::default()
        };
        let all = [request(0, 10, 100), request(0, 20, 100), request(5, 30, 100)];
        assert_eq!(at_a_time(&all, 1), (10, 90));
        assert_eq!(at_a_time(&all, 8), (10 + 20 + 25, 90 + 80 + 70));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_recorded_no_more_is_waited_for_than_there_are_threads(
            times in proptest::collection::vec((0u64..400, 0usize..7), 0..40), threads in 0u64..9
        ) {
            let event = |(at_ns, one): &(u64, usize)| BlockEvent { at_ns: *at_ns, ..events()[*one] };
            if let Some(times) = RequestTimes::of(times.iter().map(event).collect(), None, threads, 1 << 20) {
                proptest::prop_assert_eq!(times.queue_ns.len(), times.device_ns.len());
                proptest::prop_assert!(times.queue_mean + times.device_mean <= threads as f64 + 1e-6);
            }
        }
    }
}
