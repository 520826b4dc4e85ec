//! `quick`: the portrait of a disk in half a minute.
//!
//! Invariant: without leave to write, the runs only read.

use fiord_report::table::{Cell, Column, Table};
use std::time::Duration;

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
    options: &'static [(&'static str, &'static str)],
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
        options: &[("rw", "read"), ("bs", "1M"), ("iodepth", "8")],
        kind: Kind::Queued,
        typical: "scans, backups, streaming",
    },
    Row {
        name: "sequential write 1M",
        direction: WRITE,
        options: &[("rw", "write"), ("bs", "1M"), ("iodepth", "8")],
        kind: Kind::Queued,
        typical: "restores, bulk loads",
    },
    Row {
        name: "random read 4k, depth 32",
        direction: READ,
        options: &[("rw", "randread"), ("bs", "4k"), ("iodepth", "32")],
        kind: Kind::Queued,
        typical: "databases, many clients",
    },
    Row {
        name: "random write 4k, depth 32",
        direction: WRITE,
        options: &[("rw", "randwrite"), ("bs", "4k"), ("iodepth", "32")],
        kind: Kind::Queued,
        typical: "checkpoints, many VMs",
    },
    Row {
        name: "random read 4k, depth 1",
        direction: READ,
        options: &[("rw", "randread"), ("bs", "4k")],
        kind: Kind::Single,
        typical: "one query, program starts",
    },
    Row {
        name: "random write 4k, depth 1",
        direction: WRITE,
        options: &[("rw", "randwrite"), ("bs", "4k")],
        kind: Kind::Single,
        typical: "one writer, page by page",
    },
    Row {
        name: "synced 4k appends",
        direction: WRITE,
        options: &[("rw", "write"), ("bs", "4k"), ("fdatasync", "1"), ("fallocate", "none"), ("direct", "0")],
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
    /// At this site, with this time for all rows together.
    pub fn new(site: Site, time: Duration) -> Quick {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| site.writable || row.direction == READ).collect();
        let each = time / rows.len() as u32;
        let mut steps: Vec<Step> = site.writable.then(|| site.fill()).into_iter().collect();
        let first = steps.len();
        steps.extend(rows.iter().map(|row| step(row, &site, each)));
        let rows = rows.into_iter().enumerate().map(|(index, row)| (first + index, row)).collect();
        Quick { site, rows, steps }
    }
}

fn step(row: &Row, site: &Site, time: Duration) -> Step {
    let engine = if row.kind == Kind::Queued { site.engine } else { "psync" };
    let step = site.run(row.name, engine, row.options, time);
    if row.kind == Kind::Synced { step.on(site.beside("appends")) } else { step }
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
        let (runs, target) = (self.rows.len(), self.site.shown());
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
            latency_p99_ns: syncs(&measured).map(|(row, figures)| (figures.p99_ns, row.latency_of())),
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
        figures.iops_cell(),
        figures.mib_per_s_cell(),
        Cell::Latency(figures.mean_ns),
        Cell::Latency(figures.p50_ns),
        p99(row, figures),
        Cell::Latency(figures.p999_ns),
        Cell::Text(row.latency_of().to_string()),
        Cell::Text(row.typical.to_string()),
    ]
}

/// The 99th percentile; that of synced appends is held against what etcd wants.
fn p99(row: &Row, figures: &Figures) -> Cell {
    match row.kind {
        Kind::Synced => Cell::latency_beside(figures.p99_ns, ETCD_P99_NS),
        _ => Cell::Latency(figures.p99_ns),
    }
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
    text += &line("MiB/s, each mark x10", &BARS.axis(), "TYPICAL OF");
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
    let found = |name: &str| measured.iter().find(|(row, _)| row.name == name);
    let (deep, single) = (found("random read 4k, depth 32"), found("random read 4k, depth 1"));
    let mut parts = Vec::new();
    if let (Some((_, deep)), Some((_, single))) = (deep, single) {
        let times = deep.iops / single.iops;
        parts.push(format!("reads {times:.1} times as much with 32 requests at a time as with one"));
    }
    if let Some((row, syncs)) = syncs(measured).filter(|_| !site.in_memory) {
        parts.push(format!(
            "syncs {} 4k appends a second, 99 of 100 within {}: {}",
            syncs.iops_cell().shown(),
            p99(row, syncs).shown(),
            suits(syncs)
        ));
    } else if site.in_memory {
        parts.push("loses what is written when the machine stops".to_string());
    }
    if measured.is_empty() || parts.is_empty() {
        return String::new();
    }
    format!("{} {}.", site.subject(), parts.join(", and "))
}

/// The synced appends, where they were run.
fn syncs(measured: &[Measured]) -> Option<&Measured> {
    measured.iter().find(|(row, _)| row.kind == Kind::Synced)
}

/// What commits at this rate, as it is shown, are enough for; where they are not, which figure falls short.
fn suits(syncs: &Figures) -> &'static str {
    let per_s = syncs.iops.round();
    match (per_s < ETCD_LEAST, syncs.p99_ns > ETCD_P99_NS) {
        (true, true) => "too slow for etcd, which wants 50 a second and 99 of 100 within 10ms",
        (true, false) => "too slow for etcd, which wants 50 a second",
        (false, true) => "too slow for etcd, which wants 99 of 100 within 10ms",
        _ if per_s < ETCD_LOADED => {
            "enough for a small etcd (50 a second, within 10ms), not for a busy one (500)"
        }
        _ => "enough for a busy etcd (500 a second, within 10ms)",
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::RunReport;

    use super::*;
    use crate::testing::{direction, report, settings, site, synced};

    /// What each row of a disk of middling speed would bring.
    fn made_up(row: &Row) -> RunReport {
        let block_bytes = if row.name.contains("1M") { 1 << 20 } else { 4096 };
        let ios = match (row.kind, block_bytes) {
            (Kind::Synced, _) => 400,
            (Kind::Single, _) => 2_000,
            (_, 4096) => 20_000,
            _ => 500,
        };
        let done = direction(ios, block_bytes, 64_000);
        let made = if row.direction == READ { report(Some(done), None) } else { report(None, Some(done)) };
        if row.kind == Kind::Synced { synced(made, 400, 2_000_000) } else { made }
    }

    fn ran(quick: &Quick, count: usize) -> Vec<Ran> {
        quick.rows.iter().take(count).map(|(step, row)| Ran { step: *step, report: made_up(row) }).collect()
    }

    fn quick(site: Site) -> Quick {
        Quick::new(site, Duration::from_secs(28))
    }

    #[test]
    fn the_file_is_filled_first_and_time_is_shared_evenly() {
        let quick = quick(site());
        assert_eq!((quick.steps().len(), quick.time()), (8, Duration::from_secs(28)));
        let prepares: Vec<bool> = quick.steps().iter().map(|step| step.prepares).collect();
        assert_eq!(prepares.iter().position(|prepares| *prepares), Some(0));
        assert_eq!(prepares.iter().filter(|prepares| **prepares).count(), 1);
        assert!(quick.steps()[1..].iter().all(|step| settings(step).contains("runtime=4000ms")));
    }

    #[test]
    fn without_leave_to_write_it_only_reads() {
        let quick = quick(Site { writable: false, ..site() });
        assert_eq!(quick.steps().len(), 3);
        for step in quick.steps() {
            let settings = settings(step) + " ";
            assert!(settings.contains(" rw=read ") || settings.contains(" rw=randread "), "{settings}");
        }
    }

    #[test]
    fn appends_go_to_a_file_of_their_own_and_are_synced_one_by_one() {
        let quick = quick(site());
        let last = &quick.steps()[7];
        let settings = settings(last);
        assert!(settings.ends_with("rw=write bs=4k fdatasync=1 fallocate=none direct=0"), "{settings}");
        assert_eq!(last.sections[0].files, [std::path::PathBuf::from("/data/own:1/appends")]);
        let others = &quick.steps()[..7];
        assert!(others.iter().all(|step| step.sections[0].files == [quick.site.file.clone()]));
    }

    #[test]
    fn the_page_shows_every_row_twice_and_fits() {
        let quick = quick(site());
        let findings = quick.findings(&ran(&quick, 7), 80);
        assert_eq!(findings.table.rows.len(), 7);
        for row in &ROWS {
            assert_eq!(findings.text.matches(row.name).count(), 2, "{}", findings.text);
            assert!(findings.text.contains(row.typical));
        }
        assert!(findings.text.lines().all(|line| line.chars().count() <= 80), "{}", findings.text);
        assert!(
            findings.text.contains("\nrandom read 4k, depth 32   20000   78.1  64us"),
            "{}",
            findings.text
        );
        let narrow = quick.findings(&ran(&quick, 7), 70).text;
        assert!(narrow.lines().skip(9).all(|line| line.chars().count() <= 70), "{narrow}");
    }

    #[test]
    fn appends_count_with_their_syncs_and_are_timed_by_them() {
        let quick = quick(site());
        let findings = quick.findings(&ran(&quick, 7), 80);
        assert_eq!(findings.latency_p99_ns, Some((2_000_000, "fdatasync")));
        let cell = |key: &str| {
            let column = findings.table.columns.iter().position(|column| column.key == key).unwrap();
            findings.table.rows[6][column].clone()
        };
        assert_eq!((cell("iops"), cell("mean_ns")), (Cell::Count(400), Cell::Latency(2_000_000)));
        assert_eq!(cell("latency_of"), Cell::Text("fdatasync".to_string()));
    }

    #[test]
    fn the_sentence_tells_depth_and_commits() {
        let quick = quick(site());
        assert_eq!(
            quick.findings(&ran(&quick, 7), 80).conclusion,
            "This disk reads 10.0 times as much with 32 requests at a time as with one, and syncs 400 4k appends a \
             second, 99 of 100 within 2ms: enough for a small etcd (50 a second, within 10ms), not for a busy one \
             (500)."
        );
        assert_eq!(quick.findings(&ran(&quick, 2), 80).conclusion, "");
        assert_eq!(quick.findings(&[], 80), Findings { table: Table::new(COLUMNS), ..Findings::default() });
    }

    /// A sentence shows a figure as its table does, halves and limits that are just missed among them.
    #[test]
    fn sentence_and_table_show_the_same_figure() {
        let quick = quick(site());
        let mut ran = ran(&quick, 7);
        let appends = &mut ran[6].report.jobs[0].stats;
        (appends.directions[WRITE].ios, appends.directions[WRITE].runtime_ms) = (1_017, 2000);
        appends.sync.latency = fiord_stats::Latency::with_histogram();
        appends.sync.latency.record(10_027_000);
        let findings = quick.findings(&ran, 80);
        let row = findings.text.lines().find(|line| line.starts_with("synced 4k appends")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let told = format!("syncs {} 4k appends a second, 99 of 100 within {}: too slow", cells[3], cells[7]);
        assert!(findings.conclusion.contains(&told), "{told}: {}", findings.conclusion);
        assert_ne!(cells[7], "10ms");
    }

    #[test]
    fn memory_is_not_said_to_sync_anything() {
        let quick = quick(Site { in_memory: true, ..site() });
        assert_eq!(
            quick.findings(&ran(&quick, 7), 80).conclusion,
            "There is no disk here: memory reads 10.0 times as much with 32 requests at a time as with one, and loses \
             what is written when the machine stops."
        );
        assert_eq!(quick.findings(&[], 80).conclusion, "");
    }

    #[test]
    fn the_verdict_on_commits_follows_etcds_guidance() {
        let suits = |iops: f64, p99_ns: u64| suits(&Figures { iops, p99_ns, ..Figures::default() });
        assert!(suits(499.4, 10_000_000).starts_with("enough for a small etcd"));
        assert!(suits(499.5, 10_000_000).starts_with("enough for a busy etcd"));
        // Each figure that falls short is named, and no other.
        assert_eq!(suits(1058.0, 10_000_001), "too slow for etcd, which wants 99 of 100 within 10ms");
        assert_eq!(suits(49.4, 10_000_000), "too slow for etcd, which wants 50 a second");
        assert_eq!(
            suits(49.4, 10_000_001),
            "too slow for etcd, which wants 50 a second and 99 of 100 within 10ms"
        );
    }
}
