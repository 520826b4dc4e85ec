//! `quick`: the portrait of a disk in half a minute.
//!
//! Invariant: without leave to write, the runs only read.

use fiord_report::table::{Cell, Column, Table, shown_latency};

use crate::bars::Bars;
use crate::figures::{Figures, READ, WRITE};
use crate::site::Site;
use crate::study::{Findings, Ran, Step, Study};

/// One row of the portrait.
struct Row {
    /// As the table shows it.
    name: &'static str,
    direction: usize,
    /// The options of its job, but for engine and file.
    options: &'static str,
    kind: Kind,
    /// Which use it is typical of.
    typical: &'static str,
}

/// How a row's I/O goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Through a queue.
    Queued,
    /// One after another.
    Single,
    /// One after another to a file that grows, each made durable: its latency is that of making it so.
    Synced,
}

/// The rows, in the order they are run and shown.
const ROWS: [Row; 7] = [
    Row {
        name: "sequential read 1M",
        direction: READ,
        options: "rw=read\nbs=1M\niodepth=8",
        kind: Kind::Queued,
        typical: "scans, backups, streaming",
    },
    Row {
        name: "sequential write 1M",
        direction: WRITE,
        options: "rw=write\nbs=1M\niodepth=8",
        kind: Kind::Queued,
        typical: "restores, loads, compaction",
    },
    Row {
        name: "random read 4k, depth 32",
        direction: READ,
        options: "rw=randread\nbs=4k\niodepth=32",
        kind: Kind::Queued,
        typical: "databases, many clients",
    },
    Row {
        name: "random write 4k, depth 32",
        direction: WRITE,
        options: "rw=randwrite\nbs=4k\niodepth=32",
        kind: Kind::Queued,
        typical: "checkpoints, many VMs",
    },
    Row {
        name: "random read 4k, depth 1",
        direction: READ,
        options: "rw=randread\nbs=4k",
        kind: Kind::Single,
        typical: "one query, starting programs",
    },
    Row {
        name: "random write 4k, depth 1",
        direction: WRITE,
        options: "rw=randwrite\nbs=4k",
        kind: Kind::Single,
        typical: "one writer, page by page",
    },
    Row {
        name: "synced 4k appends",
        direction: WRITE,
        options: "rw=write\nbs=4k\nfdatasync=1\nfallocate=none\ndirect=0",
        kind: Kind::Synced,
        typical: "commits: databases, etcd",
    },
];

/// The study.
pub struct Quick {
    site: Site,
    /// A row of the portrait for each step that is measured, with its number among the steps.
    rows: Vec<(usize, &'static Row)>,
    steps: Vec<Step>,
}

impl Quick {
    /// At this site, in about `seconds` in all.
    pub fn new(site: Site, seconds: u64) -> Quick {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| site.writable || row.direction == READ).collect();
        let each = (seconds / rows.len() as u64).max(1);
        let mut steps: Vec<Step> = site.writable.then(|| site.fill()).into_iter().collect();
        let first = steps.len();
        steps.extend(rows.iter().map(|row| step(row, &site, each)));
        let rows = rows.into_iter().enumerate().map(|(index, row)| (first + index, row)).collect();
        Quick { site, rows, steps }
    }
}

fn step(row: &Row, site: &Site, seconds: u64) -> Step {
    let engine = if row.kind == Kind::Queued { site.engine } else { "psync" };
    let own = match row.kind {
        Kind::Synced => format!("filename={}\n", site.beside("appends")),
        _ => String::new(),
    };
    let job = format!(
        "{}ioengine={engine}\n\n[{}]\nstonewall=1\ntime_based=1\nruntime={seconds}\n{}\n{own}",
        site.global(),
        row.name.replace(", ", "-").replace(' ', "-"),
        row.options,
    );
    Step::measure(row.name, job, seconds)
}

const COLUMNS: [Column; 9] = [
    Column::new("workload", "WORKLOAD"),
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "MiB/s"),
    Column::new("mean_ns", "MEAN"),
    Column::new("p50_ns", "P50"),
    Column::new("p99_ns", "P99"),
    Column::new("p99_9_ns", "P99.9"),
    Column::new("latency_of", "LATENCY OF"),
    Column::new("typical_of", "TYPICAL OF"),
];

/// The columns people get; the rest is told below.
const SHOWN: [&str; 7] = ["workload", "iops", "mib_per_s", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns"];

/// 0.1 to 10 000 MiB/s: from a slow card's commits to the fastest disks.
const BARS: Bars = Bars { from: -1, decades: 5, decade_width: 5 };

/// Columns that bars with their uses take.
const BARS_WIDTH: usize = 80;

/// A row with its figures.
type Measured = (&'static Row, Figures);

impl Study for Quick {
    fn name(&self) -> &'static str {
        "quick"
    }

    fn purpose(&self) -> String {
        let (runs, target) = (self.rows.len(), &self.site.target);
        match self.site.writable {
            true => format!("{runs} runs in {target}"),
            false => format!("{runs} runs that only read {target}"),
        }
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn findings(&self, ran: &[Ran], width: usize) -> Findings {
        let measured: Vec<Measured> = ran.iter().filter_map(|run| self.measured(run)).collect();
        let mut table = Table::new(COLUMNS);
        table.rows = measured.iter().map(cells).collect();
        Findings {
            text: table.select(&SHOWN).text(width) + &pictures(&measured, width),
            conclusion: conclusion(&self.site, &measured),
            table,
            ..Findings::default()
        }
    }
}

impl Quick {
    fn measured(&self, run: &Ran) -> Option<Measured> {
        let (_, row) = self.rows.iter().find(|(step, _)| *step == run.step)?;
        let figures = Figures::of(&run.report, row.direction)?;
        let figures = match Figures::of_syncs(&run.report) {
            // The rate counts appends with all they wait for; the latency is what they wait for.
            Some(syncs) if row.kind == Kind::Synced => {
                Figures { iops: figures.iops, bytes_per_s: figures.bytes_per_s, ..syncs }
            }
            _ => figures,
        };
        Some((row, figures))
    }
}

impl Row {
    fn latency_of(&self) -> &'static str {
        match (self.kind, self.direction) {
            (Kind::Synced, _) => "fdatasync",
            (_, READ) => "read",
            _ => "write",
        }
    }
}

fn cells((row, figures): &Measured) -> Vec<Cell> {
    vec![
        Cell::Text(row.name.to_string()),
        Cell::Count(figures.iops.round() as u64),
        Cell::Number(figures.mib_per_s(), 1),
        Cell::Latency(figures.mean_ns),
        Cell::Latency(figures.p50_ns),
        Cell::Latency(figures.p99_ns),
        Cell::Latency(figures.p999_ns),
        Cell::Text(row.latency_of().to_string()),
        Cell::Text(row.typical.to_string()),
    ]
}

/// A bar for each row, and what the row is typical of.
fn pictures(measured: &[Measured], width: usize) -> String {
    if measured.is_empty() {
        return String::new();
    }
    let names = ROWS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |name: &str, bar: &str, typical: &str| {
        let typical = if width < BARS_WIDTH { "" } else { typical };
        format!("{name:<names$}  {bar:<0$}  {typical}", BARS.width()).trim_end().to_string() + "\n"
    };
    let mut text = String::new();
    if measured.iter().any(|(row, _)| row.kind == Kind::Synced) {
        text += "The latency of synced appends is that of fdatasync.\n";
    }
    text += "\n";
    text += &line("MiB/s, x10 per mark", &BARS.axis(), "TYPICAL OF");
    for (row, figures) in measured {
        text += &line(row.name, &BARS.bar(figures.mib_per_s()), row.typical);
    }
    text
}

/// Commits a second that etcd wants at the least, and when heavily loaded; and the longest that 99 of 100 may take:
/// etcd's guidance on hardware and disks.
const ETCD_LEAST: f64 = 50.0;
const ETCD_LOADED: f64 = 500.0;
const ETCD_P99_NS: u64 = 10_000_000;

fn conclusion(site: &Site, measured: &[Measured]) -> String {
    let figures = |name: &str| measured.iter().find(|(row, _)| row.name == name).map(|(_, figures)| *figures);
    let mut parts = Vec::new();
    if let Some(syncs) = figures("synced 4k appends") {
        parts.push(format!(
            "makes {:.0} 4k appends a second durable, 99 of 100 within {}: {}",
            syncs.iops,
            shown_latency(syncs.p99_ns),
            suits(&syncs)
        ));
    }
    let (deep, single) = (figures("random read 4k, depth 32"), figures("random read 4k, depth 1"));
    if let (Some(deep), Some(single)) = (deep, single) {
        let times = deep.iops / single.iops;
        parts.push(format!("reads {times:.1} times as much with 32 requests at a time as with one"));
    }
    if parts.is_empty() {
        return String::new();
    }
    let what = match (site.in_memory, site.direct) {
        (true, _) => "There is no disk here: memory",
        (false, false) => "Without direct I/O, as the page cache has it, this place",
        (false, true) => "This disk",
    };
    parts.reverse();
    format!("{what} {}.", parts.join(", and "))
}

/// What commits at this rate are enough for.
fn suits(syncs: &Figures) -> &'static str {
    if syncs.p99_ns >= ETCD_P99_NS || syncs.iops < ETCD_LEAST {
        "too slow for etcd, which wants 10ms"
    } else if syncs.iops < ETCD_LOADED {
        "enough for a small etcd, not for a busy one"
    } else {
        "enough for a busy etcd"
    }
}
