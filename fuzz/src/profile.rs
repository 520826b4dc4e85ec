//! The target for what `fiord profile` reads of the kernel and of perf: any text as tracepoints, stacks and counters.
//!
//! Invariant: nothing is counted that the text does not have, and every picture is well-formed.

use fiord_profile::{DelayReading, RequestTimes, Stacks, flame};

/// The text after the first byte, which is the number of threads.
pub fn kernel_profile(data: &[u8]) {
    let Some((threads, text)) = data.split_first() else { return };
    let (threads, text) = (u64::from(*threads), String::from_utf8_lossy(text));
    let _ = DelayReading::parse(&text);
    requests(&text, threads);
    stacks(&text);
}

/// The text as tracepoints of the block layer.
fn requests(text: &str, threads: u64) {
    let Some(times) = RequestTimes::of(text, threads, 1 << 30) else { return };
    let completed = text.lines().filter(|line| line.contains(": block_rq_complete: ")).count();
    assert!((1..=completed).contains(&times.device_ns.len()), "{completed} completed: {times:?}");
    assert_eq!(times.queue_ns.len(), times.device_ns.len());
    for sorted in [&times.queue_ns, &times.device_ns] {
        let median_ns = RequestTimes::percentile_ns(sorted, 50.0);
        assert!(
            sorted.is_sorted() && (sorted[0]..=sorted[sorted.len() - 1]).contains(&median_ns),
            "{times:?}"
        );
    }
    let in_all = times.queue_mean + times.device_mean;
    assert!(in_all >= 0.0 && in_all <= threads as f64 + 1e-6, "{in_all} of {threads}");
}

/// The text as samples of `perf script`.
fn stacks(text: &str) {
    let stacks = Stacks::parse(text, &[]);
    assert!(stacks.samples() <= text.lines().count() as u64);
    if let Some(shares) = stacks.kernel_shares() {
        let sum = shares.system_call + shares.file_system + shares.block_code;
        assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
    }
    let twice = stacks.clone().plus(&stacks);
    assert_eq!(twice.samples(), 2 * stacks.samples());
    for picture in [flame::graph("a", "a", &stacks), flame::difference("a", "a", &stacks, &twice)] {
        // Names of functions are escaped, so that every bracket is the picture's own.
        assert_eq!(picture.matches('<').count(), picture.matches('>').count(), "{picture}");
    }
}
