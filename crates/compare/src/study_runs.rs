//! The runs of a study as a table of its JSON document, from which other results are compared with it: on another machine,
//! in CI, later.
//!
//! Invariant: what is written is read back as runs that compare in the same way, to the precision of the percentiles.

use fiord_import::{
    DirectionFigures, DirectionName, JobFigures, LatencyFigures, Percentile, Report, ReportFormat,
    ReportedFinding, StudyRows, StudyValue, WindowFigures,
};
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::{Capped, repeats::INTERVAL_VALUES_MIN};

use crate::aspect::workload;
use crate::estimate::{bytes_per_s, percentile};
use crate::side::{NamedRun, each_job};

/// The table's key in the document.
pub const KEY: &str = "runs";

/// How syncs are named beside the directions.
const SYNC: &str = "sync";

/// The percentiles that are written, each with its key.
const PERCENTILES: [(f64, &str); 8] = [
    (50.0, "p50_ns"),
    (90.0, "p90_ns"),
    (95.0, "p95_ns"),
    (99.0, "p99_ns"),
    (99.5, "p99_5_ns"),
    (99.9, "p99_9_ns"),
    (99.95, "p99_95_ns"),
    (99.99, "p99_99_ns"),
];

/// The options that tell workloads apart, in the order of their columns.
const OPTIONS: [&str; 5] = ["rw", "iodepth", "ioengine", "direct", "numjobs"];

/// A row for each run, job and direction.
pub fn table(runs: &[NamedRun]) -> Table {
    let keys = ["run", "of", "job", "direction"].into_iter().chain(OPTIONS);
    let keys =
        keys.chain(["ios", "iops", "bytes", "bytes_per_s", "mean_ns", "stddev_ns", "min_ns", "max_ns"]);
    let keys = keys.chain(PERCENTILES.map(|(_, key)| key)).chain(["window_s", "window_ios_per_s", "void"]);
    let mut table = Table::new(keys.map(|key| Column::new(key, "")));
    for (number, run) in runs.iter().enumerate() {
        // Repeated runs show by themselves how they vary.
        let repeats = runs.iter().filter(|other| other.name == run.name).count();
        let has_windows = repeats < INTERVAL_VALUES_MIN;
        for measured in each_job(&run.report) {
            let head = |direction: &str| {
                let mut cells = vec![
                    Cell::Count(number as u64),
                    Cell::Text(run.name.clone()),
                    Cell::Text(measured.job.name.clone()),
                    Cell::Text(direction.to_string()),
                ];
                cells.extend(workload(&measured).map(|(_, value)| Cell::text(value)));
                cells
            };
            for direction in measured.job.directions.iter().filter(|direction| direction.is_active()) {
                let windows = run.report.windows.iter().find(|windows| windows.name == direction.name);
                let windows = windows.filter(|_| has_windows && measured.is_alone_in(direction.name));
                let (clat, total) = (direction.clat.as_ref(), direction.lat.as_ref());
                let latency = clat.filter(|clat| clat.is_measured() && clat.mean_ns.is_some()).or(total);
                let mut cells = head(direction.name.name());
                cells.extend(rates(direction));
                cells.extend(figures(latency, windows, &run.report));
                table.rows.push(cells);
            }
            if let Some(latency) = measured.job.sync.lat.as_ref().filter(|latency| latency.is_measured()) {
                let mut cells = head(SYNC);
                cells.extend([Cell::count(measured.job.sync.ios), Cell::None, Cell::None, Cell::None]);
                cells.extend(figures(Some(latency), None, &run.report));
                table.rows.push(cells);
            }
        }
    }
    table
}

/// Counts and rates.
fn rates(direction: &DirectionFigures) -> [Cell; 4] {
    let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 3));
    let [ios, bytes] = [direction.ios, direction.bytes].map(Cell::count);
    [ios, number(direction.ios_per_s()), bytes, number(bytes_per_s(direction))]
}

/// Latencies and windows, and the findings that void them.
fn figures(latency: Option<&LatencyFigures>, windows: Option<&WindowFigures>, report: &Report) -> Vec<Cell> {
    let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 1));
    let ns = |value: Option<u64>| value.map_or(Cell::None, Cell::Latency);
    let of = |figure: fn(&LatencyFigures) -> Option<f64>| number(latency.and_then(figure));
    let mut cells = vec![of(|latency| latency.mean_ns), of(|latency| latency.stddev_ns)];
    cells.extend([
        ns(latency.and_then(|latency| latency.min_ns)),
        ns(latency.and_then(|latency| latency.max_ns)),
    ]);
    let at = |percent: f64| latency.and_then(|latency| percentile(latency, percent)).map(u64::capped);
    cells.extend(PERCENTILES.map(|(percent, _)| ns(at(percent))));
    cells.push(windows.map_or(Cell::None, |windows| Cell::Number(windows.window_s, 3)));
    let rates = |windows: &WindowFigures| windows.iops.iter().map(|rate| Cell::Number(*rate, 1)).collect();
    cells.push(windows.map_or(Cell::None, |windows| Cell::Figures(rates(windows))));
    let void = report.findings.iter().filter(|finding| finding.severity == "void");
    cells.push(Cell::List(void.map(|finding| finding.code.clone()).collect()));
    cells
}

/// The runs of a table that was read back.
pub fn read(rows: &StudyRows) -> Vec<NamedRun> {
    let mut runs: Vec<(Option<u64>, NamedRun)> = Vec::new();
    for cells in &rows.rows {
        let row = Row { columns: &rows.columns, cells };
        let number = row.count("run");
        if runs.last().is_none_or(|(known, _)| *known != number) {
            let report = Report { format: ReportFormat::Json, findings: row.void(), ..Report::default() };
            runs.push((number, NamedRun { name: row.text("of").unwrap_or_default(), report }));
        }
        if let Some((_, run)) = runs.last_mut() {
            row.add_to(&mut run.report);
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

/// A row that is read back.
struct Row<'r> {
    columns: &'r [String],
    cells: &'r [StudyValue],
}

impl Row<'_> {
    fn value(&self, key: &str) -> Option<&StudyValue> {
        let at = self.columns.iter().position(|column| column == key)?;
        self.cells.get(at)
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.value(key)? {
            StudyValue::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            StudyValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn count(&self, key: &str) -> Option<u64> {
        self.number(key).map(u64::capped)
    }

    fn list(&self, key: &str) -> &[StudyValue] {
        match self.value(key) {
            Some(StudyValue::List(items)) => items,
            _ => &[],
        }
    }

    /// The findings that void the figures of its run.
    fn void(&self) -> Vec<ReportedFinding> {
        let finding = |code: &StudyValue| match code {
            StudyValue::Text(code) => Some(ReportedFinding {
                code: code.clone(),
                severity: "void".to_string(),
                ..ReportedFinding::default()
            }),
            _ => None,
        };
        self.list("void").iter().filter_map(finding).collect()
    }

    /// Adds the direction to its job in the report of its run.
    fn add_to(&self, report: &mut Report) {
        let name = self.text("job").unwrap_or_default();
        let at = report.jobs.iter().position(|job| job.name == name).unwrap_or_else(|| {
            let options = OPTIONS.iter().filter_map(|key| Some(((*key).to_string(), self.text(key)?)));
            report.jobs.push(JobFigures { name, options: options.collect(), ..JobFigures::default() });
            report.jobs.len() - 1
        });
        let job = &mut report.jobs[at];
        let direction = self.text("direction").unwrap_or_default();
        let Some(name) = DirectionName::from_name(&direction) else {
            if direction == SYNC {
                (job.sync.ios, job.sync.lat) = (self.count("ios"), Some(self.latency()));
            }
            return;
        };
        let (ios, bytes) = (self.count("ios"), self.count("bytes"));
        job.directions.push(DirectionFigures {
            name,
            ios,
            bytes,
            iops: self.number("iops"),
            bandwidth: self.count("bytes_per_s"),
            clat: Some(self.latency()).filter(LatencyFigures::is_measured),
            ..DirectionFigures::default()
        });
        let rate = |value: &StudyValue| match value {
            StudyValue::Number(rate) => Some(*rate),
            _ => None,
        };
        let iops: Vec<f64> = self.list("window_ios_per_s").iter().filter_map(rate).collect();
        if let (Some(ios), Some(bytes), Some(window_s), false) =
            (ios, bytes, self.number("window_s"), iops.is_empty())
        {
            let block_bytes = bytes as f64 / ios.max(1) as f64;
            let bandwidth = iops.iter().map(|rate| rate * block_bytes).collect();
            report.windows.push(WindowFigures { name, window_s, iops, bandwidth });
        }
    }

    fn latency(&self) -> LatencyFigures {
        let percentile =
            |(percent, key): &(f64, &str)| Some(Percentile { percent: *percent, ns: self.count(key)? });
        LatencyFigures {
            mean_ns: self.number("mean_ns"),
            stddev_ns: self.number("stddev_ns"),
            min_ns: self.count("min_ns"),
            max_ns: self.count("max_ns"),
            count: self.count("ios"),
            percentiles: PERCENTILES.iter().filter_map(percentile).collect(),
            ..LatencyFigures::default()
        }
    }
}
