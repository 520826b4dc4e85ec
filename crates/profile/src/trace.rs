//! The block layer's tracepoints as text (`trace` of tracefs), and how long requests took in the queue and at the device.
//!
//! Invariant: a request counts once, and only if its completion was seen; lines of other events are ignored.

use std::collections::BTreeMap;

/// Where a request got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was made or inserted into the queue (`block_getrq`, `block_rq_insert`).
    Queued,
    /// It was given to the driver (`block_rq_issue`).
    Issued,
    /// The device completed it (`block_rq_complete`).
    Completed,
}

/// A request at one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestEvent {
    /// The processor that recorded it.
    pub processor: u32,
    /// When, in nanoseconds of the trace's clock.
    pub at_ns: u64,
    /// The step.
    pub step: Step,
    /// The device, as `254,0`.
    pub device: String,
    /// The first sector.
    pub sector: u64,
}

/// The tracepoints that are read.
pub const TRACEPOINTS: [&str; 4] = ["block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete"];

impl RequestEvent {
    /// Of a line such as `dd-28241 [001] ...1. 15118.505399: block_rq_insert: 254,0 WS 4096 () 331147888 + 8 be,0,4 [dd]`.
    pub fn parse(line: &str) -> Option<RequestEvent> {
        let (before, event) = line.split_once(": block_")?;
        let (name, fields) = event.split_once(": ")?;
        let step = match name {
            "getrq" | "rq_insert" => Step::Queued,
            "rq_issue" => Step::Issued,
            "rq_complete" => Step::Completed,
            _ => return None,
        };
        let at_ns = nanoseconds(before.rsplit(' ').next()?)?;
        // The name of the thread may contain anything.
        let processor = before.rsplit_once('[')?.1.split_once(']')?.0.parse().ok()?;
        let device = fields.split(' ').next().filter(|device| device.contains(','))?.to_string();
        let sector = fields.split_once(" + ")?.0.rsplit(' ').next()?.parse().ok()?;
        Some(RequestEvent { processor, at_ns, step, device, sector })
    }
}

/// `15118.505399` seconds in nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let fraction: u64 = fraction.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction * 10u64.pow(9 - digits))
}

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
    /// From the text of a trace of a run that lasted `run_ns`, with this many threads; `None` if no request completed.
    pub fn of(text: &str, threads: u64, run_ns: u64) -> Option<RequestTimes> {
        let mut events: Vec<RequestEvent> = text.lines().filter_map(RequestEvent::parse).collect();
        events.sort_by_key(|event| event.at_ns);
        let end_ns = events.last()?.at_ns;
        let begin_ns = if is_complete(text) {
            end_ns.saturating_sub(run_ns).min(events.first()?.at_ns)
        } else {
            // Older events are overwritten on each processor apart.
            let mut first: BTreeMap<u32, u64> = BTreeMap::new();
            for event in &events {
                first.entry(event.processor).or_insert(event.at_ns);
            }
            first.into_values().max()?
        };
        events.retain(|event| event.at_ns >= begin_ns);
        let requests = requests(&events);
        let (queue_sum, device_sum) = at_a_time(&requests, threads);
        let window_ns = end_ns - begin_ns;
        let mean = |sum: u128| sum as f64 / window_ns.max(1) as f64;
        let sorted = |mut times: Vec<u64>| {
            times.sort_unstable();
            times
        };
        (!requests.is_empty()).then(|| RequestTimes {
            queue_ns: sorted(requests.iter().map(|request| request.issued_ns - request.queued_ns).collect()),
            device_ns: sorted(
                requests.iter().map(|request| request.completed_ns - request.issued_ns).collect(),
            ),
            queue_mean: mean(queue_sum),
            device_mean: mean(device_sum),
            window_ns,
        })
    }

    /// The mean of times, in nanoseconds; 0 for none.
    pub fn mean_ns(times: &[u64]) -> u64 {
        let sum: u128 = times.iter().map(|ns| u128::from(*ns)).sum();
        (sum / times.len().max(1) as u128) as u64
    }

    /// A percentile of ascending times; 0 for none.
    pub fn percentile_ns(times: &[u64], percent: f64) -> u64 {
        let rank = (percent / 100.0 * times.len() as f64).ceil().max(1.0) as usize;
        times.get(rank.min(times.len()).saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Whether no event was overwritten: `# entries-in-buffer/entries-written: 84/84   #P:2`.
fn is_complete(text: &str) -> bool {
    let counts = text.lines().take(8).find_map(|line| line.split_once("entries-written:"));
    let counts = counts.and_then(|(_, counts)| counts.split_whitespace().next()?.split_once('/'));
    counts.is_some_and(|(kept, written)| kept == written)
}

/// A request that was seen to its end.
struct Request {
    queued_ns: u64,
    issued_ns: u64,
    completed_ns: u64,
}

fn requests(events: &[RequestEvent]) -> Vec<Request> {
    let mut under_way: BTreeMap<(&str, u64), (u64, Option<u64>)> = BTreeMap::new();
    let mut requests = Vec::new();
    for event in events {
        let key = (event.device.as_str(), event.sector);
        match event.step {
            Step::Queued => {
                under_way.entry(key).or_insert((event.at_ns, None));
            }
            Step::Issued => {
                // One that goes to the driver at once is in no queue. One that is given back is issued again.
                under_way.entry(key).or_insert((event.at_ns, None)).1 = Some(event.at_ns);
            }
            Step::Completed => {
                if let Some((queued_ns, Some(issued_ns))) = under_way.remove(&key) {
                    requests.push(Request { queued_ns, issued_ns, completed_ns: event.at_ns });
                }
            }
        }
    }
    requests
}

/// The time of requests in the queue and at the device, counted at each moment for no more than `threads` of them.
fn at_a_time(requests: &[Request], threads: u64) -> (u128, u128) {
    let mut changes: Vec<(u64, i64, i64)> = Vec::new();
    for request in requests {
        changes.push((request.queued_ns, 1, 0));
        changes.push((request.issued_ns, -1, 1));
        changes.push((request.completed_ns, 0, -1));
    }
    changes.sort_unstable();
    let (mut queued, mut issued, mut since_ns) = (0i64, 0i64, 0u64);
    let (mut queue_sum, mut device_sum) = (0u128, 0u128);
    for (at_ns, to_queue, to_device) in changes {
        let length = u128::from(at_ns.saturating_sub(since_ns));
        let at_device = (issued.max(0) as u64).min(threads);
        let in_queue = (queued.max(0) as u64).min(threads - at_device);
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

    const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 12/12   #P:2
#
              dd-28241   [001] ..... 15118.505398: block_getrq: 254,0 WS 331147888 + 8 [dd]
              dd-28241   [001] ...1. 15118.505399: block_rq_insert: 254,0 WS 4096 () 331147888 + 8 be,0,4 [dd]
              dd-28241   [001] ..... 15118.505400: block_rq_issue: 254,0 WS 4096 () 331147888 + 8 be,0,4 [dd]
          <idle>-0       [000] d.h2. 15118.505460: block_rq_complete: 254,0 WS () 331147888 + 8 be,0,4 [0]
 kworker/0:1: a-77       [000] d.h2. 15118.505461: block_rq_merge: 254,0 WS () 331147888 + 8 be,0,4 [0]
       a [b] + 1-28241   [001] ..... 15118.505466: block_getrq: 254,0 WS 331147896 + 8 [a [b] + 1]
       a [b] + 1-28241   [001] ..... 15118.505476: block_rq_issue: 254,0 WS 4096 () 331147896 + 8 be,0,4 [a [b] + 1]
          <idle>-0       [000] d.h2. 15118.505498: block_rq_complete: 254,0 WS () 331147896 + 8 be,0,4 [0]
          <idle>-0       [000] d.h2. 15118.505500: block_rq_complete: 254,0 R () 99 + 8 be,0,4 [0]
";

    #[test]
    fn lines_of_the_kernel_are_read() {
        let events: Vec<RequestEvent> = TRACE.lines().filter_map(RequestEvent::parse).collect();
        assert_eq!(events.len(), 8, "no header, no merge");
        let expected = RequestEvent {
            processor: 1,
            at_ns: 15_118_505_476_000,
            step: Step::Issued,
            device: "254,0".to_string(),
            sector: 331_147_896,
        };
        assert_eq!(events[5], expected);
    }

    #[test]
    fn times_in_the_queue_and_at_the_device_are_of_the_same_request() {
        let times = RequestTimes::of(TRACE, 1, 200_000).unwrap();
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
        assert_eq!(RequestTimes::of("# nothing", 1, 1), None);
    }

    #[test]
    fn of_an_overwritten_trace_only_what_all_processors_kept_counts() {
        let text = TRACE.replace("12/12", "12/900");
        let times = RequestTimes::of(&text, 1, 200_000).unwrap();
        assert_eq!(
            (times.queue_ns.len(), times.window_ns),
            (1, 40_000),
            "the other began before processor 0's first"
        );
    }

    #[test]
    fn more_requests_than_threads_are_not_waited_for() {
        let request = |queued_ns, issued_ns, completed_ns| Request { queued_ns, issued_ns, completed_ns };
        let all = [request(0, 10, 100), request(0, 20, 100), request(5, 30, 100)];
        assert_eq!(at_a_time(&all, 1), (10, 90));
        assert_eq!(at_a_time(&all, 8), (10 + 20 + 25, 90 + 80 + 70));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*", threads in 0u64..9, run_ns in 0u64..1 << 40) {
            RequestEvent::parse(&text);
            RequestTimes::of(&text, threads, run_ns);
        }

        #[test]
        fn damaged_lines_are_no_panic(line in 0usize..13, at in 0usize..120, with in ".{0,3}", threads in 0u64..9) {
            let damaged: Vec<String> = TRACE.lines().enumerate().map(|(number, text)| match text.char_indices().nth(at) {
                Some((at, _)) if number == line => format!("{}{with}{}", &text[..at], &text[at + 1..]),
                _ => text.to_string(),
            }).collect();
            if let Some(times) = RequestTimes::of(&damaged.join("\n"), threads, 1 << 20) {
                proptest::prop_assert_eq!(times.queue_ns.len(), times.device_ns.len());
                proptest::prop_assert!(times.device_mean >= 0.0 && times.queue_mean + times.device_mean <= threads as f64 + 1e-6);
            }
        }
    }
}
