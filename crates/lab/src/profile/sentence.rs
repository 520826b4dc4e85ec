//! What a profile says in words.
//!
//! Invariant: a figure in a sentence is that of the tables, with fewer digits.

use fiord_profile::{Part, Source, TimeSplit};
use fiord_report::table::Cell;
use fiord_stats::Capped;
use fiord_stats::OrderBy;

use super::variant::{Moved, Variant};

/// A second part is named if it has this share of the time.
const NAMED_PERCENT: f64 = 15.0;

/// Less than this share of the jobs' bytes on the disks is worth a sentence.
const REACHED: f64 = 0.9;

/// The conclusion; empty without variants.
pub(super) fn conclusion(variants: &[Variant]) -> String {
    let mut sentences: Vec<String> =
        variants.iter().map(|variant| time(variant, variants.len() > 1)).collect();
    if let [first, others @ ..] = variants {
        sentences.extend(others.iter().map(|other| compared(first, other)));
    }
    sentences.extend(variants.iter().flat_map(|variant| cached(variant, variants.len() > 1)));
    sentences.join(" ")
}

/// `direct=1: a thread spends 97us on an I/O, 85 % of it waiting for the device.`
fn time(variant: &Variant, is_named: bool) -> String {
    let named = if is_named { format!("{}: ", variant.name) } else { String::new() };
    let mut shares: Vec<(Part, Source, f64)> = variant
        .split
        .parts
        .iter()
        .map(|(part, _, source)| (*part, *source, variant.split.percent(*part)))
        .collect();
    shares.order_by(|one, other| other.2.total_cmp(&one.2));
    let listed =
        shares.iter().enumerate().filter(|(number, (.., percent))| *number == 0 || *percent >= NAMED_PERCENT);
    let listed: Vec<String> = listed
        .take(3)
        .map(|(_, (part, source, percent))| format!("{percent:.0} % {}", words(*part, *source)))
        .collect();
    format!("{named}a thread spends {} on an I/O: {}.", shown(variant, &variant.split), listed.join(", "))
}

fn shown(variant: &Variant, split: &TimeSplit) -> String {
    Cell::Latency(u64::capped(variant.per_io_ns(split.total_ns()).round())).shown()
}

/// Where a share of the time goes.
fn words(part: Part, source: Source) -> &'static str {
    match (part, source) {
        (Part::Own, _) => "in fiord's own work between I/Os",
        (Part::Fiord, _) => "in fiord's engine",
        (Part::SystemCall, Source::Samples) => "in system calls",
        (Part::SystemCall, _) => "in the kernel's code (system calls, page cache, file system)",
        (Part::FileSystem, _) => "in copying, the page cache and the file system",
        (Part::BlockCode, _) => "in the code of block layer and driver",
        (Part::ProcessorWait, _) => "waiting for a processor",
        (Part::Queue, _) => "waiting in the queue of the block layer",
        (Part::Device, Source::DiskCounters) => "waiting for the block layer's queue and the device",
        (Part::Device, _) => "waiting for the device",
        (Part::Pace, _) => "waiting for its rate or the end of a pause",
        (Part::Other, _) => "waiting for something else (locks, journal, being woken)",
    }
}

/// `direct=1 takes 12 times as long as direct=0; the largest difference is waiting for the device, +90us.`
fn compared(first: &Variant, other: &Variant) -> String {
    let per_io = |variant: &Variant| variant.per_io_ns(variant.split.total_ns());
    let ratio = per_io(other) / per_io(first).max(1.0);
    let verdict = match ratio {
        2.0.. => format!("takes {ratio:.1} times as long as {}", first.name),
        1.05..2.0 => format!("takes {:.0} % longer than {}", 100.0 * (ratio - 1.0), first.name),
        0.95..1.05 => format!("takes as long as {}, within 5 %", first.name),
        _ => format!("takes {:.0} % less time than {}", 100.0 * (1.0 - ratio), first.name),
    };
    let differences = Part::ALL.into_iter().filter_map(|part| {
        let of =
            |variant: &Variant| variant.split.get(part).map(|(ns, source)| (variant.per_io_ns(ns), source));
        let (from, to) = (of(first), of(other));
        let source = to.or(from)?.1;
        Some((part, source, to.map_or(0.0, |(ns, _)| ns) - from.map_or(0.0, |(ns, _)| ns)))
    });
    let largest = differences.max_by(|one, other| one.2.abs().total_cmp(&other.2.abs()));
    match largest {
        Some((part, source, ns)) if ns.abs() >= 1.0 => {
            let sign = if ns < 0.0 { '-' } else { '+' };
            let shown = Cell::Latency(u64::capped(ns.abs().round())).shown();
            format!(
                "{} {verdict}; the largest difference is time {}, {sign}{shown}.",
                other.name,
                words(part, source)
            )
        }
        _ => format!("{} {verdict}.", other.name),
    }
}

/// That the disks did less than the jobs, if they did.
fn cached(variant: &Variant, is_named: bool) -> Option<String> {
    let of = |moved: &Moved, verb: &str, done: &str| {
        let share = moved.share().filter(|share| *share < REACHED)?;
        let bytes = Cell::Bytes(moved.by_jobs).shown();
        Some(format!("of {bytes} {verb}, {:.0} % {done}", 100.0 * share))
    };
    let parts = [
        of(&variant.read, "read", "came from the disk"),
        of(&variant.written, "written", "had reached the disk at the end"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    let named = if is_named { format!("{}: ", variant.name) } else { String::new() };
    Some(format!("{named}{}; its speed is that of the page cache.", parts.join(", and ")))
}
