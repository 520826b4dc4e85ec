//! The table of hosts.
//!
//! Invariant: every host has a row, in the order of the list; text shows the worst first, and of many hosts only some.

use fiord_report::table::{Cell, Column, Table};
use fiord_stats::Capped;

use crate::member::Member;
use crate::model::FleetReport;
use crate::outliers::spread;
use crate::run::HostRun;

/// Above this many hosts, text shows the worst, the median and the best.
const ROWS_MAX: usize = 20;

/// How many of the worst it shows then.
const WORST: usize = 10;

/// The columns of text, if every host is complete and no I/O failed.
const SHOWN: [&str; 9] =
    ["host", "start_ns", "iops", "bytes_per_s", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns", "max_ns"];

pub(super) const COLUMNS: [Column; 11] = [
    Column::new("host", "host"),
    Column::new("start_ns", "start"),
    Column::new("iops", "IOPS"),
    Column::new("bytes_per_s", "B/s"),
    Column::new("mean_ns", "mean"),
    Column::new("p50_ns", "p50"),
    Column::new("p99_ns", "p99"),
    Column::new("p99_9_ns", "p99.9"),
    Column::new("max_ns", "max"),
    Column::new("errors", "errors"),
    Column::new("fate", "fate"),
];

/// When a host started, on the controller's clock.
fn started_ns(run: &HostRun) -> Option<i64> {
    run.stages.first().and_then(|start| start.started_ns)
}

/// Every host, in the order of the list.
pub fn table(fleet: &FleetReport) -> Table {
    let mut table = Table::new(COLUMNS);
    let first_ns = fleet.hosts.iter().filter_map(started_ns).min();
    for (run, member) in fleet.hosts.iter().zip(&fleet.members) {
        let started = started_ns(run).zip(first_ns).map(|(start_ns, first_ns)| start_ns.abs_diff(first_ns));
        let started = started.map_or(Cell::None, Cell::Latency);
        table.rows.push(row(run.host.name.clone(), started, member.as_ref(), run.fate.word()));
    }
    table
}

/// The figures of a host, or of several as one.
pub(super) fn row(name: String, started: Cell, member: Option<&Member>, fate: &str) -> Vec<Cell> {
    let figure = |of: fn(&Member) -> Cell| member.map_or(Cell::None, of);
    let percentile = |index: usize| {
        member.and_then(|known| Some(known.percentiles_ns?[index])).map_or(Cell::None, Cell::Latency)
    };
    vec![
        Cell::Text(name),
        started,
        figure(|member| Cell::Number(member.iops, 0)),
        figure(|member| Cell::Bytes(u64::capped(member.bytes_per_s))),
        figure(|member| Cell::Latency(u64::capped(member.mean_ns))),
        percentile(0),
        percentile(1),
        percentile(2),
        figure(|member| Cell::Latency(member.max_ns)),
        figure(|member| Cell::Count(member.errors)),
        Cell::Text(fate.to_string()),
    ]
}

/// The hosts that people are shown, by their places in the list, the worst first.
pub(super) fn shown(fleet: &FleetReport) -> Vec<usize> {
    let order = worst_first(fleet);
    match order.len() {
        count if count > ROWS_MAX => {
            let best = order.last().copied();
            order.iter().copied().take(WORST).chain(order.get(count / 2).copied()).chain(best).collect()
        }
        _ => order,
    }
}

/// For people: these hosts, then the spread of each column; at most `width` columns of a terminal wide.
pub(super) fn text(fleet: &FleetReport, rows: &[usize], width: usize) -> String {
    let all = table(fleet);
    let mut keys = SHOWN.to_vec();
    if fleet.settings.order.rounds() > 1 {
        keys.retain(|key| *key != "start_ns");
    }
    if fleet.members.iter().flatten().any(|member| member.errors > 0) {
        keys.push("errors");
    }
    if fleet.hosts.iter().any(|run| run.fate != crate::Fate::Complete) {
        keys.push("fate");
    }
    let mut shown =
        Table { columns: all.columns.clone(), rows: rows.iter().map(|row| all.rows[*row].clone()).collect() };
    if fleet.counted().count() > 2 {
        shown.rows.extend(spreads(&all));
    }
    let key = fleet.settings.group_by.unwrap_or_default();
    for group in &fleet.groups {
        let value = if group.value.is_empty() { "unknown" } else { &group.value };
        shown.rows.push(row(
            format!("{key} {value} ({})", group.hosts),
            Cell::None,
            Some(&group.figures),
            "",
        ));
    }
    shown.select(&keys).text(width)
}

/// The hosts, those in no figure first, then those far from the others, then by throughput.
fn worst_first(fleet: &FleetReport) -> Vec<usize> {
    let mut order: Vec<usize> = (0..fleet.hosts.len()).collect();
    let iops = |host: usize| fleet.members[host].as_ref().map(|member| member.iops);
    let mut ranks = vec![usize::MAX; order.len()];
    fleet.outliers.iter().enumerate().rev().for_each(|(rank, outlier)| ranks[outlier.host] = rank);
    let rank = |host: usize| ranks[host];
    order.sort_by(|one, other| {
        let known = (iops(*one).is_some(), rank(*one)).cmp(&(iops(*other).is_some(), rank(*other)));
        known.then(iops(*one).unwrap_or(0.0).total_cmp(&iops(*other).unwrap_or(0.0)))
    });
    order
}

/// Rows of the minimum, the median, the maximum and the median absolute deviation of each column.
fn spreads(all: &Table) -> Vec<Vec<Cell>> {
    let columns: Vec<Option<([f64; 4], &Cell)>> = (0..all.columns.len())
        .map(|column| {
            let cells = all.rows.iter().map(|row| &row[column]);
            let figures: Vec<f64> = cells.clone().filter_map(Cell::figure).collect();
            let like = cells.into_iter().find(|cell| cell.figure().is_some())?;
            Some((spread(&figures)?, like))
        })
        .collect();
    let row = |(index, name): (usize, &str)| {
        let of = |known: &Option<([f64; 4], &Cell)>| match known {
            Some((values, Cell::Number(_, decimals))) => Cell::Number(values[index], *decimals),
            Some((values, Cell::Bytes(_))) => Cell::Bytes(u64::capped(values[index])),
            Some((values, Cell::Latency(_))) => Cell::Latency(u64::capped(values[index])),
            Some((values, Cell::Count(_))) => Cell::Count(u64::capped(values[index])),
            _ => Cell::None,
        };
        let mut cells: Vec<Cell> = columns.iter().map(of).collect();
        cells[0] = Cell::Text(name.to_string());
        cells
    };
    ["(min)", "(median)", "(max)", "(MAD)"].into_iter().enumerate().map(row).collect()
}
