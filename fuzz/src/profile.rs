//! The target for what `fiord profile` and `fiord watch` read of the kernel and of perf: any bytes as pages of tracepoints, any
//! text as stacks and counters.
//!
//! Invariant: nothing is counted that the text does not have, and every picture is well-formed.

use fiord_profile::tracepoints::{EventFormats, Page, Step};
use fiord_profile::{DelayReading, RequestTimes, Stacks, flame};

/// The text after the first byte, which is the number of threads.
pub fn kernel_profile(data: &[u8]) {
    let Some((threads, text)) = data.split_first() else { return };
    requests(text, u64::from(*threads));
    let text = String::from_utf8_lossy(text);
    let _ = EventFormats::default().add(Step::Made, &text);
    let _ = DelayReading::parse(&text);
    stacks(&text);
}

/// A layout of records, the same for each step but for its number.
fn formats() -> EventFormats {
    const FIELDS: [&str; 5] = [
        "int common_pid;\toffset:4;\tsize:4;",
        "dev_t dev;\toffset:8;\tsize:4;",
        "sector_t sector;\toffset:12;\tsize:8;",
        "unsigned int nr_sector;\toffset:20;\tsize:4;",
        "char rwbs[2];\toffset:24;\tsize:2;",
    ];
    let mut formats = EventFormats::default();
    for (number, step) in Step::ALL.into_iter().enumerate() {
        let fields: String = FIELDS.iter().map(|field| format!("\tfield:{field}\tsigned:0;\n")).collect();
        formats.add(step, &format!("ID: {number}\n{fields}")).expect("every field is there");
    }
    formats
}

/// The bytes as a page of tracepoints of the block layer.
fn requests(bytes: &[u8], threads: u64) {
    let (page, formats) = (Page(bytes), formats());
    page.lost();
    let events: Vec<_> = page.records().filter_map(|(at, record)| formats.event(at, record)).collect();
    let completed = events.iter().filter(|event| event.step == Step::Completed).count();
    let Some(times) = RequestTimes::of(events, None, threads, 1 << 30) else { return };
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
