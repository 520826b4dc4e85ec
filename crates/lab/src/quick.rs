//! `quick`: the portrait of a disk in half a minute.
//!
//! Invariant: without leave to write, the runs only read.

use std::fmt::Write;

use fiord_report::table::{Cell, Column, Table};

use crate::figures::{Figures, READ, WRITE};
use crate::site::Site;
use crate::study::{Findings, Ran, Step, Study};

/// One row of the portrait.
struct Portrait {
    /// As the table shows it.
    name: &'static str,
    direction: usize,
    /// The options of its job, but for the engine.
    options: &'static str,
    /// Through the kernel's queue, or one after another.
    queued: bool,
    /// Which use it is typical of.
    typical: &'static str,
}

/// The rows, in the order they are run and shown.
const ROWS: [Portrait; 7] = [
    Portrait {
        name: "sequential write 1M, depth 8",
        direction: WRITE,
        options: "rw=write\nbs=1M\niodepth=8",
        queued: true,
        typical: "backups, bulk loads, compaction",
    },
    Portrait {
        name: "sequential read 1M, depth 8",
        direction: READ,
        options: "rw=read\nbs=1M\niodepth=8",
        queued: true,
        typical: "scans, restores, streaming",
    },
    Portrait {
        name: "random read 4k, depth 32",
        direction: READ,
        options: "rw=randread\nbs=4k\niodepth=32",
        queued: true,
        typical: "busy databases, many clients",
    },
    Portrait {
        name: "random write 4k, depth 32",
        direction: WRITE,
        options: "rw=randwrite\nbs=4k\niodepth=32",
        queued: true,
        typical: "checkpoints, page flushing",
    },
    Portrait {
        name: "random read 4k, depth 1",
        direction: READ,
        options: "rw=randread\nbs=4k",
        queued: false,
        typical: "one query waiting for a page",
    },
    Portrait {
        name: "random write 4k, depth 1",
        direction: WRITE,
        options: "rw=randwrite\nbs=4k",
        queued: false,
        typical: "one writer at a time",
    },
    Portrait {
        name: "synced 4k appends",
        direction: WRITE,
        options: "rw=write\nbs=4k\nfdatasync=1\ndirect=0",
        queued: false,
        typical: "commits: etcd, WALs, mail",
    },
];

/// The study.
pub struct Quick {
    site: Site,
    /// Of [`ROWS`], those that are run here; the same order as the steps.
    rows: Vec<&'static Portrait>,
    steps: Vec<Step>,
}

impl Quick {
    /// At this site, in about `seconds` in all.
    pub fn new(site: Site, seconds: u64) -> Quick {
        let rows: Vec<&Portrait> = ROWS.iter().filter(|row| site.writable || row.direction == READ).collect();
        let each = (seconds / rows.len() as u64).max(1);
        let steps = rows.iter().map(|row| step(row, &site, each)).collect();
        Quick { site, rows, steps }
    }
}

fn step(row: &Portrait, site: &Site, seconds: u64) -> Step {
    let engine = if row.queued { site.engine } else { "psync" };
    let job = format!(
        "{}ioengine={engine}\ntime_based=1\nruntime={seconds}\n\n[{}]\n{}\n",
        site.global(),
        row.name.replace([' ', ','], "-").replace("--", "-"),
        row.options
    );
    Step { name: row.name.to_string(), job, seconds }
}

const COLUMNS: [Column; 8] = [
    Column::new("workload", "WORKLOAD"),
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "MiB/s"),
    Column::new("mean_ns", "MEAN"),
    Column::new("p50_ns", "P50"),
    Column::new("p99_ns", "P99"),
    Column::new("p99_9_ns", "P99.9"),
    Column::new("typical_of", "TYPICAL OF"),
];

impl Study for Quick {
    fn name(&self) -> &'static str {
        "quick"
    }

    fn purpose(&self) -> String {
        let writes = if self.site.writable { "" } else { ", reading only" };
        format!("{} runs on {}{writes}", self.steps.len(), self.site.file)
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn findings(&self, ran: &[Ran], width: usize) -> Findings {
        let mut table = Table::new(COLUMNS);
        let mut measured = Vec::new();
        for run in ran {
            let row = self.rows[run.step];
            let Some(figures) = Figures::of(&run.report, row.direction) else { continue };
            table.rows.push(cells(row, &figures));
            measured.push((row, figures));
        }
        let text = table
            .select(&["workload", "iops", "mib_per_s", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns"])
            .text(width);
        Findings {
            text: text + &bars(&measured, width),
            conclusion: conclusion(&measured),
            table,
            ..Findings::default()
        }
    }
}

fn cells(row: &Portrait, figures: &Figures) -> Vec<Cell> {
    vec![
        Cell::Text(row.name.to_string()),
        Cell::Count(figures.iops.round() as u64),
        Cell::Number(figures.bytes_per_s / f64::from(1 << 20), 1),
        Cell::Latency(figures.mean_ns),
        Cell::Latency(figures.p50_ns),
        Cell::Latency(figures.p99_ns),
        Cell::Latency(figures.p999_ns),
        Cell::Text(row.typical.to_string()),
    ]
}

/// TODO by the study's author.
fn bars(_measured: &[(&Portrait, Figures)], _width: usize) -> String {
    String::new()
}

fn conclusion(measured: &[(&Portrait, Figures)]) -> String {
    let mut text = String::new();
    for (row, figures) in measured {
        let _ = write!(text, "{} {:.0} ", row.name, figures.iops);
    }
    text
}
