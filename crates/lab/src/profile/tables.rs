//! The tables of a profile: seconds, parts, variants.
//!
//! Invariant: text fits 80 columns for as many variants as a profile may have.

use fiord_profile::{Part, RequestTimes, Second, Source, TimeSplit};
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::Capped;

use super::variant::{VARIANTS_MAX, Variant};
use crate::figures::mib;

/// The letters of the variants, and the titles of their shares.
const LETTERS: [&str; VARIANTS_MAX] = ["A", "B", "C", "D", "E", "F"];
const SHARES: [&str; VARIANTS_MAX] = ["A %", "B %", "C %", "D %", "E %", "F %"];

/// Where time goes, in words, if it is known from this source.
pub(super) fn title(part: Part, source: Source) -> &'static str {
    match (part, source) {
        (Part::Own, _) => "fiord: between I/Os",
        (Part::Fiord, _) => "fiord: in I/Os",
        (Part::SystemCall, Source::Samples) => "system calls",
        (Part::SystemCall, _) => "system calls, file system",
        (Part::FileSystem, _) => "file system, page cache",
        (Part::BlockCode, _) => "block layer, driver",
        (Part::ProcessorWait, _) => "waiting: processor",
        (Part::Queue, _) => "waiting: block queue",
        (Part::Device, Source::DiskCounters) => "waiting: queue, device",
        (Part::Device, _) => "waiting: device",
        (Part::Pace, _) => "waiting: rate, pause",
        (Part::Other, _) => "waiting: other",
    }
}

/// All tables as text.
pub(super) fn text(variants: &[Variant], width: usize) -> String {
    if variants.is_empty() {
        return String::new();
    }
    let mut text = compared(variants).text(width);
    for (variant, letter) in variants.iter().zip(LETTERS) {
        let of = if variants.len() > 1 { format!(" of {letter}, {}", variant.name) } else { String::new() };
        text += &format!("\nProcessors and I/O over time{of}:\n");
        text += &over_time(variant).text(width);
    }
    text += "\nWhere the time of the jobs' threads goes, for each I/O:\n";
    text += &side_by_side(variants).text(width);
    let requests = requests(variants);
    if !requests.rows.is_empty() {
        text += "\nRequests at the disks, in the queue and at the device (tracepoints):\n";
        text += &requests.select(&SHOWN_OF_REQUESTS).text(width);
    }
    text
}

/// The columns of the requests in text.
const SHOWN_OF_REQUESTS: [&str; 7] =
    ["run", "requests", "queue_mean_ns", "queue_p99_ns", "device_mean_ns", "device_p50_ns", "device_p99_ns"];

/// The requests of the typical run of each variant, if they were traced.
pub(super) fn requests(variants: &[Variant]) -> Table {
    let mut table = Table::new([
        Column::new("run", "RUN"),
        Column::new("requests", "REQUESTS"),
        Column::new("queue_mean_ns", "QUEUE"),
        Column::new("queue_p50_ns", "p50"),
        Column::new("queue_p99_ns", "p99"),
        Column::new("device_mean_ns", "DEVICE"),
        Column::new("device_p50_ns", "p50"),
        Column::new("device_p99_ns", "p99"),
        Column::new("window_ms", "TRACED(ms)"),
    ]);
    for variant in variants {
        let Some(requests) = &variant.requests else { continue };
        let RequestTimes { queue_ns, device_ns, window_ns, .. } = requests;
        let times = |times: &[u64]| {
            let percentile = |percent| RequestTimes::percentile_ns(times, percent);
            let all = [RequestTimes::mean_ns(times), percentile(50.0), percentile(99.0)];
            all.map(|ns| if times.is_empty() { Cell::None } else { Cell::Latency(ns) })
        };
        let named = [Cell::Text(variant.name.clone()), Cell::Count(queue_ns.len() as u64)];
        let cells = named.into_iter().chain(times(queue_ns)).chain(times(device_ns));
        table.rows.push(cells.chain([Cell::Number(*window_ns as f64 / 1e6, 3)]).collect());
    }
    table
}

/// The stacks of each variant, in the form that flame graphs are made of; a row for each.
pub(super) fn stacks(variants: &[Variant]) -> Table {
    let columns = [Column::new("run", ""), Column::new("stack", ""), Column::new("samples", "")];
    let mut table = Table::new(columns);
    for variant in variants {
        let rows = variant.stacks.counts.iter().map(|(stack, count)| {
            vec![Cell::Text(variant.name.clone()), Cell::Text(stack.join(";")), Cell::Count(*count)]
        });
        table.rows.extend(rows);
    }
    table
}

/// The variants below each other, for readers.
pub(super) fn compared(variants: &[Variant]) -> Table {
    let letter = (variants.len() > 1).then_some(Column::new("letter", "ID"));
    let columns = [
        Column::new("run", "RUN"),
        Column::new("iops", "IOPS"),
        Column::new("mib_per_s", "BW(MiB/s)"),
        Column::new("disk_mib_per_s", "DISK(MiB/s)"),
        Column::new("mean_ns", "AvgLat"),
        Column::new("p99_ns", "P99"),
        Column::new("context_switches_per_io", "CSW/IO"),
    ];
    let mut table = Table::new(letter.into_iter().chain(columns));
    for (variant, letter) in variants.iter().zip(LETTERS) {
        let letter = (variants.len() > 1).then(|| Cell::Text(letter.to_string()));
        let cells = [
            Cell::Text(variant.name.clone()),
            variant.figures.iops_cell(),
            variant.figures.mib_per_s_cell(),
            disk_mib_per_s(variant.whole.as_ref()),
            Cell::Latency(variant.figures.mean_ns),
            Cell::Latency(variant.figures.p99_ns),
            Cell::Number(variant.context_switches as f64 / variant.ios as f64, 2),
        ];
        table.rows.push(letter.into_iter().chain(cells).collect());
    }
    table
}

/// What the disks read and wrote.
fn disk_mib_per_s(second: Option<&Second>) -> Cell {
    let moved =
        second.and_then(|second| Some(second.disk_read_bytes_per_s? + second.disk_write_bytes_per_s?));
    moved.map_or(Cell::None, |bytes| Cell::Number(mib(bytes), 1))
}

/// The windows of a run, for readers: as dstat prints them.
pub(super) fn over_time(variant: &Variant) -> Table {
    let columns =
        ["S", "IOPS", "MiB/s", "usr", "sys", "wai", "irq", "stl", "idl", "csw/s", "read", "writ", "busy"];
    let mut table = Table::new(columns.map(|title| Column::new("", title)));
    let row = |until: String, second: &Second| {
        let whole = |value: f64| Cell::Number(value, 0);
        let disk = |bytes: Option<f64>| bytes.map_or(Cell::None, |bytes| whole(mib(bytes)));
        vec![
            Cell::Formatted(until, second.until_s),
            whole(second.iops),
            whole(mib(second.bytes_per_s)),
            whole(second.user_percent),
            whole(second.system_percent),
            whole(second.io_wait_percent),
            whole(second.interrupt_percent),
            whole(second.steal_percent),
            whole(second.idle_percent),
            whole(second.context_switches_per_s),
            disk(second.disk_read_bytes_per_s),
            disk(second.disk_write_bytes_per_s),
            second.busy_percent.map_or(Cell::None, whole),
        ]
    };
    table.rows = variant.windows.iter().map(|second| row(format!("{:.1}", second.until_s), second)).collect();
    table.rows.extend(variant.whole.iter().map(|second| row("all".to_string(), second)));
    table
}

/// The parts of the time with a column for each variant, for readers.
pub(super) fn side_by_side(variants: &[Variant]) -> Table {
    let mut columns = vec![Column::new("part", "WHERE")];
    for number in 0..variants.len() {
        let (letter, share) =
            if variants.len() > 1 { (LETTERS[number], SHARES[number]) } else { ("TIME", "%") };
        if variants.len() <= 2 {
            columns.push(Column::new("ns_per_io", letter));
        }
        columns.push(Column::new("share_percent", share));
    }
    if variants.len() == 2 {
        columns.push(Column::new("change_percent", "CHANGE"));
    }
    columns.push(Column::new("source", "FROM"));
    let mut table = Table::new(columns);
    let known = |part: &Part| variants.iter().find_map(|variant| variant.split.get(*part));
    for part in Part::ALL {
        let Some((_, source)) = known(&part) else { continue };
        let time = |split: &TimeSplit| split.get(part).map(|(ns, _)| ns);
        table.rows.push(row(title(part, source), variants, source.word(), time));
    }
    table.rows.push(row("all", variants, "rusage", |split| Some(split.total_ns())));
    table
}

fn row(
    title: &str,
    variants: &[Variant],
    source: &str,
    time: impl Fn(&TimeSplit) -> Option<u64>,
) -> Vec<Cell> {
    let mut cells = vec![Cell::Text(title.to_string())];
    for variant in variants {
        let ns = time(&variant.split);
        if variants.len() <= 2 {
            cells.push(ns.map_or(Cell::None, |ns| Cell::Latency(u64::capped(variant.per_io_ns(ns).round()))));
        }
        let total_ns = variant.split.total_ns().max(1) as f64;
        cells.push(ns.map_or(Cell::None, |ns| Cell::Number(100.0 * ns as f64 / total_ns, 1)));
    }
    if let [first, second] = variants {
        let per_io = |variant: &Variant| Some(variant.per_io_ns(time(&variant.split)?));
        let both = per_io(first).zip(per_io(second));
        cells.push(both.map_or(Cell::None, |(from, to)| change(from, to)));
    }
    cells.push(Cell::Text(source.to_string()));
    cells
}

/// Beyond this ratio a change is a factor.
const FACTOR_FROM: f64 = 10.0;

/// `+40 %`, `x 35`, as a figure in percent; `Cell::None` if there is nothing to compare with.
pub(super) fn change(from: f64, to: f64) -> Cell {
    let ratio = to / from;
    let percent = 100.0 * (ratio - 1.0);
    match () {
        () if from < 1.0 || !ratio.is_finite() => Cell::None,
        () if ratio >= FACTOR_FROM => Cell::Formatted(format!("x {ratio:.0}"), percent),
        () => Cell::Formatted(format!("{percent:+.0} %"), percent),
    }
}

/// The parts of the time for programs: a row for each variant and part, and one for the whole.
pub(super) fn parts(variants: &[Variant]) -> Table {
    let mut table = Table::new([
        Column::new("run", "RUN"),
        Column::new("part", "WHERE"),
        Column::new("ns_per_io", "TIME"),
        Column::new("share_percent", "%"),
        Column::new("total_ms", "TOTAL(ms)"),
        Column::new("change_percent", "CHANGE"),
        Column::new("source", "FROM"),
    ]);
    for variant in variants {
        let first = &variants[0];
        let known = Part::ALL.into_iter().filter_map(|part| {
            let (ns, source) = variant.split.get(part)?;
            Some((part.key(), ns, source.word(), first.split.get(part).map(|(ns, _)| ns)))
        });
        let all = ("all", variant.split.total_ns(), "rusage", Some(first.split.total_ns()));
        for (key, ns, source, of_first) in known.chain([all]) {
            let from = of_first.map(|ns| first.per_io_ns(ns)).filter(|from| *from > 0.0);
            let change = from.map(|from| 100.0 * (variant.per_io_ns(ns) / from - 1.0));
            table.rows.push(vec![
                Cell::Text(variant.name.clone()),
                Cell::Text(key.to_string()),
                Cell::Number(variant.per_io_ns(ns), 1),
                Cell::Number(100.0 * ns as f64 / variant.split.total_ns().max(1) as f64, 2),
                Cell::Number(ns as f64 / 1e6, 3),
                change.map_or(Cell::None, |change| Cell::Number(change, 1)),
                Cell::Text(source.to_string()),
            ]);
        }
    }
    table
}

/// The figures of a window for programs.
const WINDOW: [Column; 13] = [
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "BW(MiB/s)"),
    Column::new("user_percent", "usr"),
    Column::new("system_percent", "sys"),
    Column::new("io_wait_percent", "wai"),
    Column::new("interrupt_percent", "irq"),
    Column::new("steal_percent", "stl"),
    Column::new("idle_percent", "idl"),
    Column::new("context_switches_per_s", "csw/s"),
    Column::new("interrupts_per_s", "int/s"),
    Column::new("disk_read_mib_per_s", "read"),
    Column::new("disk_write_mib_per_s", "writ"),
    Column::new("busy_percent", "busy"),
];

fn window(second: &Second) -> [Cell; 13] {
    let number = |value: f64| Cell::Number(value, 2);
    let disk = |bytes: Option<f64>| bytes.map_or(Cell::None, |bytes| number(mib(bytes)));
    [
        number(second.iops),
        number(mib(second.bytes_per_s)),
        number(second.user_percent),
        number(second.system_percent),
        number(second.io_wait_percent),
        number(second.interrupt_percent),
        number(second.steal_percent),
        number(second.idle_percent),
        number(second.context_switches_per_s),
        number(second.interrupts_per_s),
        disk(second.disk_read_bytes_per_s),
        disk(second.disk_write_bytes_per_s),
        second.busy_percent.map_or(Cell::None, number),
    ]
}

/// The windows of the typical run of each variant, for programs.
pub(super) fn seconds(variants: &[Variant]) -> Table {
    let columns = [Column::new("run", "RUN"), Column::new("until_s", "S"), Column::new("length_s", "")];
    let mut table = Table::new(columns.into_iter().chain(WINDOW));
    for variant in variants {
        for second in &variant.windows {
            let named = [
                Cell::Text(variant.name.clone()),
                Cell::Number(second.until_s, 3),
                Cell::Number(second.length_s, 3),
            ];
            table.rows.push(named.into_iter().chain(window(second)).collect());
        }
    }
    table
}

/// The typical run of each variant, for programs.
pub(super) fn variants(variants: &[Variant]) -> Table {
    let columns = [
        Column::new("run", "RUN"),
        Column::new("mean_ns", "AvgLat"),
        Column::new("p99_ns", "P99"),
        Column::new("ios", "I/Os"),
        Column::new("context_switches_per_io", "CSW/IO"),
        Column::new("read_from_disk_share", ""),
        Column::new("written_to_disk_share", ""),
    ];
    let mut table = Table::new(columns.into_iter().chain(WINDOW));
    for variant in variants {
        let share = |share: Option<f64>| share.map_or(Cell::None, |share| Cell::Number(share, 4));
        let named = [
            Cell::Text(variant.name.clone()),
            Cell::Latency(variant.figures.mean_ns),
            Cell::Latency(variant.figures.p99_ns),
            Cell::Count(variant.ios),
            Cell::Number(variant.context_switches as f64 / variant.ios as f64, 3),
            share(variant.read.share()),
            share(variant.written.share()),
        ];
        let mut cells = variant.whole.as_ref().map_or([const { Cell::None }; 13], window);
        // The jobs' own figures leave out what lies before their start and after their end.
        cells[0] = Cell::Number(variant.figures.iops, 2);
        cells[1] = Cell::Number(variant.figures.mib_per_s(), 2);
        table.rows.push(named.into_iter().chain(cells).collect());
    }
    table
}
