//! The targets for traces: any bytes as an iolog or a binary blktrace, and as binary traces that are merged.
//!
//! Invariant: every entry that is read lies within what the summary of the trace says, whatever changes it; a merged
//! trace has the entries of its parts at their times, in order.

use std::io::{Cursor, Read};

use fiord_trace::{Entry, EntryKind, FileName, MergeInput, MergedTrace, Reader, Transform, summarize};

/// Reads the bytes as a trace, changed as their first two say.
pub fn trace(data: &[u8]) {
    let Some((first, trace)) = data.split_first_chunk::<2>() else { return };
    let transform = Transform {
        speed_percent: u32::from(first[0]),
        no_stall: first[1] & 1 == 1,
        divisor: u64::from(first[1] >> 5),
        align_bytes: 1 << (first[1] & 0xf),
        skip: EntryKind::ALL.into_iter().filter(|kind| first[0] >> *kind as u8 & 1 == 1).collect(),
    };
    let Ok(summary) = summarize(trace, transform) else { return };
    let mut reader = Reader::new(trace, transform).expect("it was read before");
    let mut entries = [0; EntryKind::ALL.len()];
    while let Some(entry) = reader.next_entry().expect("it was read before") {
        let Entry { at_ns, file, kind, offset_bytes, length_bytes } = entry;
        let file = &summary.files[file as usize];
        assert!(!transform.skip.contains(kind), "{entry:?}");
        assert!(offset_bytes + length_bytes <= file.end_bytes, "{entry:?}");
        // Others need no buffer.
        let has_data = matches!(kind, EntryKind::Read | EntryKind::Write);
        assert!(!has_data || length_bytes <= summary.length_bytes_max, "{entry:?}");
        assert!(offset_bytes % transform.align_bytes == 0 && at_ns <= summary.length_ns, "{entry:?}");
        assert!(kind != EntryKind::Read || offset_bytes + length_bytes <= file.read_end_bytes, "{entry:?}");
        entries[kind as usize] += 1;
    }
    assert_eq!(entries, EntryKind::ALL.map(|kind| summary.entries(kind)));
}

/// What each trace of a merge is given in the bytes before it: repetitions, speed, and its length in two bytes.
const HEAD_BYTES: usize = 4;
/// Traces of one merge.
const PARTS_MAX: usize = 4;

struct Part<'a> {
    iterations: u64,
    time_scale_ppm: u64,
    trace: &'a [u8],
}

/// One entry of a merge, in the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Merged {
    at_ns: u64,
    device: FileName,
    kind: EntryKind,
    offset_bytes: u64,
    length_bytes: u64,
}

/// Merges the parts of the bytes, each as its first bytes say.
pub fn merged_trace(data: &[u8]) {
    let parts = parts(data);
    let inputs = parts.iter().map(|part| MergeInput {
        name: "t".to_string(),
        input: Cursor::new(part.trace),
        time_scale_ppm: part.time_scale_ppm,
        iterations: part.iterations,
    });
    let mut bytes = Vec::new();
    let merged = MergedTrace::new(inputs.collect()).and_then(|mut merged| merged.read_to_end(&mut bytes));
    let expected: Option<Vec<Vec<Merged>>> = parts.iter().map(repeated).collect();
    assert_eq!(merged.is_ok(), expected.is_some(), "{merged:?}");
    let (Ok(_), Some(expected)) = (merged, expected) else { return };
    let mut expected: Vec<Merged> = expected.into_iter().flatten().collect();
    // A merge has no events but I/Os, and is read from the first of them on.
    let first_ns = expected.iter().map(|entry| entry.at_ns).min().unwrap_or(0);
    expected.iter_mut().for_each(|entry| entry.at_ns -= first_ns);
    let mut found = if bytes.is_empty() { Vec::new() } else { entries(&bytes).expect("it was merged").0 };
    assert!(found.is_sorted_by_key(|entry| entry.at_ns), "{found:?}");
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

fn parts(data: &[u8]) -> Vec<Part<'_>> {
    let mut rest = data;
    let mut parts = Vec::new();
    while let (true, Some((head, after))) = (parts.len() < PARTS_MAX, rest.split_first_chunk::<HEAD_BYTES>())
    {
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (trace, after) = after.split_at(length.min(after.len()));
        let (iterations, time_scale_ppm) = (u64::from(head[0] % 5), u64::from(head[1]) * 50_000);
        parts.push(Part { iterations, time_scale_ppm, trace });
        rest = after;
    }
    parts
}

/// The entries of a binary trace, and the time of its last event; `None` if it is not one.
fn entries(trace: &[u8]) -> Option<(Vec<Merged>, u64)> {
    // The magic number in either byte order.
    if trace.get(1..4) != Some(b"tae") && trace.get(..3) != Some(b"eat") {
        return None;
    }
    let mut reader = Reader::new(trace, Transform::default()).ok()?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().ok()? {
        let device = reader.files()[entry.file as usize].clone();
        let Entry { at_ns, kind, offset_bytes, length_bytes, .. } = entry;
        entries.push(Merged { at_ns, device, kind, offset_bytes, length_bytes });
    }
    Some((entries, reader.now_ns()))
}

/// The entries of all repetitions of a part, each of which begins when the one before ends.
fn repeated(part: &Part<'_>) -> Option<Vec<Merged>> {
    let mut all = Vec::new();
    let mut began_ns = 0_u64;
    for _ in 0..part.iterations.max(1) {
        let (once, length_ns) = entries(part.trace)?;
        let at_ns = |ns: u64| {
            let scaled = u128::from(ns) * u128::from(part.time_scale_ppm) / 1_000_000;
            began_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        let end_ns = at_ns(length_ns);
        all.extend(once.into_iter().map(|entry| Merged { at_ns: at_ns(entry.at_ns), ..entry }));
        began_ns = end_ns;
    }
    Some(all)
}
