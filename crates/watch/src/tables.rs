//! An observation as tables.
//!
//! Invariant: one row for each device and operation, and one for each of those who had most requests made.

use std::collections::BTreeMap;

use fiord_profile::tracepoints::Operation;
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::OrderBy;

use crate::figures::{IssuerFigures, OperationFigures, SECTOR_BYTES};
use crate::issuer::IssuerKind;
use crate::observation::{Observation, WatchedDevice};

/// Who is shown at most; the others are one row.
const ISSUERS_MAX: usize = 8;
/// Who has less of a device's time is one of the others, in percent.
const TIME_PERCENT_MIN: f64 = 0.5;

const MIB: f64 = (1 << 20) as f64;

/// What is told of requests, behind whose they are.
const FIGURES: [Column; 13] = [
    Column::new("operation", "OP"),
    Column::new("requests", "REQUESTS"),
    Column::new("iops", "IOPS"),
    Column::new("bandwidth_mib_s", "MiB/s"),
    Column::new("size_bytes", "SIZE"),
    Column::new("sequential_percent", "SEQ %"),
    Column::new("depth", "DEPTH"),
    Column::new("queue_p50_ns", "QUEUE P50"),
    Column::new("queue_p99_ns", "QUEUE"),
    Column::new("device_p50_ns", "P50"),
    Column::new("device_p99_ns", "P99"),
    Column::new("device_p99_9_ns", "P99.9"),
    Column::new("device_max_ns", "MAX"),
];

/// The devices by operation.
pub fn devices(observation: &Observation) -> Table {
    let mut table = Table::new([Column::new("device", "DEVICE")].into_iter().chain(FIGURES));
    for device in &observation.devices {
        let named = |figures: Vec<Cell>| [vec![Cell::Text(device.name.clone())], figures].concat();
        let rows: Vec<Vec<Cell>> = match device.traced() {
            Some(figures) => {
                let rows = figures.operations.iter().filter(|(_, of)| of.requests > 0);
                rows.map(|(operation, of)| named(traced(observation, *operation, of))).collect()
            }
            None => counted(observation, device).into_iter().map(named).collect(),
        };
        if rows.is_empty() {
            table.rows.push(idle(device, table.columns.len()));
        }
        table.rows.extend(rows);
    }
    table
}

/// The devices by whose the requests were: of the chosen, of others, of those of whom that cannot be told, and of the probe.
pub fn parties(observation: &Observation) -> Table {
    let whose = [
        Column::new("device", "DEVICE"),
        Column::new("party", "WHOSE"),
        Column::new("time_percent", "TIME %"),
    ];
    let mut table = Table::new(whose.into_iter().chain(FIGURES));
    for device in &observation.devices {
        let whose = |party: &str, time_percent: Cell| {
            vec![Cell::Text(device.name.clone()), Cell::Text(party.to_string()), time_percent]
        };
        let parties = device.figures.iter().flat_map(|figures| &figures.parties);
        let parties = parties.filter(|(_, of)| of.requests > 0);
        let all_ns = device.figures.as_ref().map_or(1, |figures| figures.waited_ns().1.max(1)) as f64;
        table.rows.extend(parties.map(|((party, operation), of)| {
            let time_percent = Cell::Number(100.0 * of.device.running.sum as f64 / all_ns, 0);
            [whose(party.name(), time_percent), traced(observation, *operation, of)].concat()
        }));
        let reads = device.probe.as_ref().map(|probe| (probe, probe.reads()));
        if let Some((probe, reads)) = reads.filter(|(_, reads)| reads.requests > 0) {
            let mut row = [whose("probe", Cell::None), traced(observation, Operation::Read, &reads)].concat();
            if probe.traced.is_none() {
                // Calls say nothing of where they waited.
                let is_of_queue = |column: &Column| column.key.starts_with("queue_");
                let cells = table.columns.iter().zip(&mut row).filter(|(column, _)| is_of_queue(column));
                cells.for_each(|(_, cell)| *cell = Cell::None);
            }
            table.rows.push(row);
        }
    }
    table
}

/// A device that did nothing.
fn idle(device: &WatchedDevice, columns: usize) -> Vec<Cell> {
    let mut row = vec![Cell::None; columns];
    row[0] = Cell::Text(device.name.clone());
    row[2] = Cell::Count(0);
    row[3] = Cell::Number(0.0, 0);
    row
}

/// The columns of [`devices`] that fit a terminal.
pub const DEVICES_SHOWN: [&str; 10] = [
    "device",
    "operation",
    "iops",
    "bandwidth_mib_s",
    "size_bytes",
    "sequential_percent",
    "depth",
    "queue_p99_ns",
    "device_p50_ns",
    "device_p99_ns",
];

/// The columns of [`devices`] in a view that goes on.
pub const DEVICES_LIVE: [&str; 9] = [
    "device",
    "operation",
    "iops",
    "bandwidth_mib_s",
    "depth",
    "queue_p50_ns",
    "queue_p99_ns",
    "device_p50_ns",
    "device_p99_ns",
];

/// The columns of [`parties`] that fit a terminal; the first is left out for a single device.
pub const PARTIES_SHOWN: [&str; 10] = [
    "device",
    "party",
    "operation",
    "iops",
    "bandwidth_mib_s",
    "size_bytes",
    "time_percent",
    "queue_p99_ns",
    "device_p50_ns",
    "device_p99_ns",
];

/// The columns of [`issuers`] that fit a terminal; the first is left out for a single device.
pub const ISSUERS_SHOWN: [&str; 7] =
    ["device", "issuer", "pid", "iops", "bandwidth_mib_s", "time_percent", "cgroup"];

fn traced(observation: &Observation, operation: Operation, figures: &OperationFigures) -> Vec<Cell> {
    let at_device = figures.device.percentiles(&[50.0, 99.0, 99.9]).into_iter().map(Cell::Latency);
    let in_queue = figures.queue.percentiles(&[50.0, 99.0]).into_iter().map(Cell::Latency);
    let moves_data = operation != Operation::Flush;
    let if_data = |cell: Cell| if moves_data { cell } else { Cell::None };
    let mut row = vec![
        Cell::Text(operation.name().to_string()),
        Cell::Count(figures.requests),
        Cell::Number(observation.per_s(figures.requests), 0),
        if_data(Cell::Number(observation.per_s(figures.bytes) / MIB, 1)),
        if_data(Cell::Bytes(figures.bytes / figures.requests.max(1))),
        if_data(Cell::Number(100.0 * figures.sequential as f64 / figures.requests.max(1) as f64, 0)),
        Cell::Number(figures.depth(observation.elapsed_ns), 2),
    ];
    row.extend(in_queue.chain(at_device).chain([Cell::Latency(figures.device.running.max)]));
    row
}

/// From counters alone: rates and sizes, no percentiles.
fn counted(observation: &Observation, device: &WatchedDevice) -> Vec<Vec<Cell>> {
    let counters = &device.counters;
    let rows = [
        (Operation::Read, counters.read_ios, counters.read_sectors, Some(counters.read_ms)),
        (Operation::Write, counters.write_ios, counters.write_sectors, Some(counters.write_ms)),
        (Operation::Flush, counters.flush_ios, 0, None),
        (Operation::Discard, counters.discard_ios, counters.discard_sectors, None),
    ];
    let rows = rows.into_iter().filter(|(_, requests, ..)| *requests > 0);
    let row = |(operation, requests, sectors, busy_ms): (Operation, u64, u64, Option<u64>)| {
        let moves_data = operation != Operation::Flush;
        let if_data = |cell: Cell| if moves_data { cell } else { Cell::None };
        let bytes = sectors * SECTOR_BYTES;
        let depth = busy_ms.map(|ms| Cell::Number(ms as f64 * 1e6 / observation.elapsed_ns.max(1) as f64, 2));
        let mut row = vec![
            Cell::Text(operation.name().to_string()),
            Cell::Count(requests),
            Cell::Number(observation.per_s(requests), 0),
            if_data(Cell::Number(observation.per_s(bytes) / MIB, 1)),
            if_data(Cell::Bytes(bytes / requests)),
            Cell::None,
            depth.unwrap_or(Cell::None),
        ];
        // No percentiles.
        row.extend(std::iter::repeat_n(Cell::None, 6));
        row
    };
    rows.map(row).collect()
}

/// Who had requests made, by device, those first that kept it longest.
pub fn issuers(observation: &Observation) -> Table {
    let mut table = Table::new([
        Column::new("device", "DEVICE"),
        Column::new("issuer", "WHO"),
        Column::new("pid", "PID"),
        Column::new("iops", "IOPS"),
        Column::new("bandwidth_mib_s", "MiB/s"),
        Column::new("time_percent", "TIME %"),
        Column::new("cgroup", "CGROUP"),
        Column::new("party", "WHOSE"),
    ]);
    for device in &observation.devices {
        let shares = shares(observation, device);
        let counts = |share: &Share| share.time_percent >= TIME_PERCENT_MIN;
        let shown = shares.iter().take(ISSUERS_MAX).take_while(|share| counts(share)).count();
        // A row for one other would say less than its own.
        let (shown, others) = shares.split_at(if shown + 1 == shares.len() { shown + 1 } else { shown });
        for share in shown {
            table.rows.push(row(observation, device, share));
        }
        let rest = others.iter().fold(Share::default(), |sum, one| Share {
            issuer: None,
            name: format!("{} others", others.len()),
            figures: added(sum.figures, one.figures),
            time_percent: sum.time_percent + one.time_percent,
        });
        if !others.is_empty() {
            table.rows.push(row(observation, device, &rest));
        }
    }
    table
}

fn row(observation: &Observation, device: &WatchedDevice, share: &Share) -> Vec<Cell> {
    let issuer = share.issuer.and_then(|issuer| observation.issuers.get(issuer));
    vec![
        Cell::Text(device.name.clone()),
        Cell::Text(share.name.clone()),
        Cell::count(issuer.map(|issuer| issuer.pid.unsigned_abs().into())),
        Cell::Number(observation.per_s(share.figures.requests), 0),
        Cell::Number(observation.per_s(share.figures.bytes) / MIB, 1),
        Cell::Number(share.time_percent, 0),
        Cell::text(issuer.and_then(|issuer| issuer.cgroup.clone())),
        Cell::text(issuer.and_then(|issuer| issuer.party).map(|party| party.name().to_string())),
    ]
}

/// What one had of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// Its place in the list of issuers; `None` of several, and of the kernel's workers.
    pub issuer: Option<usize>,
    /// What people call it.
    pub name: String,
    /// What was done for it.
    pub figures: IssuerFigures,
    /// Its part of the time of all requests at the device, in percent.
    pub time_percent: f64,
}

fn added(one: IssuerFigures, other: IssuerFigures) -> IssuerFigures {
    IssuerFigures {
        requests: one.requests + other.requests,
        bytes: one.bytes + other.bytes,
        device_ns: one.device_ns + other.device_ns,
    }
}

/// Who had requests made of a device, those first that kept it longest. A kernel's thread has a row for each kind of its work.
pub(crate) fn shares(observation: &Observation, device: &WatchedDevice) -> Vec<Share> {
    let Some(figures) = &device.figures else { return Vec::new() };
    let mut by_name: BTreeMap<(String, Option<usize>), IssuerFigures> = BTreeMap::new();
    for ((issuer, operation), of) in figures.issuers.iter().filter(|(_, of)| of.requests > 0) {
        let Some(known) = observation.issuers.get(*issuer) else { continue };
        let is_any_worker = known.kind(*operation) == IssuerKind::Writeback;
        let key = (known.shown(*operation), (!is_any_worker).then_some(*issuer));
        let sum = by_name.entry(key).or_default();
        *sum = added(*sum, *of);
    }
    let all_ns: u64 = by_name.values().map(|figures| figures.device_ns).sum();
    let share = |((name, issuer), figures): ((String, Option<usize>), IssuerFigures)| Share {
        issuer,
        name,
        figures,
        time_percent: 100.0 * figures.device_ns as f64 / all_ns.max(1) as f64,
    };
    let mut shares: Vec<Share> = by_name.into_iter().map(share).collect();
    shares.order_by_key(|share| std::cmp::Reverse(share.figures.device_ns));
    shares
}

/// The processes that wrote most: through the page cache, or around it.
pub fn dirtiers(observation: &Observation) -> Table {
    let mut table = Table::new([
        Column::new("process", "WRITING PROCESS"),
        Column::new("pid", "PID"),
        Column::new("bandwidth_mib_s", "MiB/s"),
    ]);
    let shown = observation.dirtiers.iter().take(ISSUERS_MAX);
    table.rows.extend(shown.map(|dirtier| {
        vec![
            Cell::Text(dirtier.name.clone()),
            Cell::Count(dirtier.pid.unsigned_abs().into()),
            Cell::Number(observation.per_s(dirtier.bytes) / MIB, 1),
        ]
    }));
    table
}
