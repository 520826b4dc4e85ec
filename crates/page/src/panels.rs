//! The charts over time: throughput, latency, depth, processors, devices, temperature.
//!
//! Invariant: all have the same axis of time; a chart without figures is left out.

use fiord_import::DirectionName;

use crate::axis::Axis;
use crate::chart::{Chart, LINES_MAX, Line};
use crate::figures;
use crate::over_time::{JobOverTime, Window, device_samples, device_temperatures};
use crate::run_view::{RunView, prefix};

/// Devices with a line of their own.
const DEVICES_MAX: usize = 4;

type Points = Vec<(f64, Option<f64>)>;

/// All charts over time of these runs.
pub(crate) fn all(runs: &[RunView]) -> Vec<Chart> {
    let end_s = runs.iter().filter_map(|run| run.over_time.as_ref()).map(|over| over.end_s());
    let end_s = end_s.chain(runs.iter().flat_map(device_end)).fold(0.0, f64::max);
    let panels = [of_directions(runs), of_jobs(runs), of_machine(runs)].into_iter().flatten();
    let stalls: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| run.over_time.as_ref()).flat_map(|over| over.stalls()).collect();
    let charts = panels.map(|panel| panel.chart(end_s, &stalls, runs.len() == 1));
    charts.filter(|chart| !chart.is_empty()).collect()
}

fn device_end(run: &RunView) -> Option<f64> {
    run.devices
        .iter()
        .filter_map(|used| used.samples.last())
        .map(|sample| sample.elapsed_ns as f64 / 1e9)
        .reduce(f64::max)
}

/// What the figures of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Count,
    Time,
    Percent,
    Celsius,
}

/// A chart to be.
struct Panel {
    id: &'static str,
    title: &'static str,
    unit: Unit,
    description: &'static str,
    lines: Vec<Line>,
}

fn panel(
    id: &'static str,
    title: &'static str,
    unit: Unit,
    description: &'static str,
    lines: Vec<Line>,
) -> Panel {
    Panel { id, title, unit, description, lines }
}

fn of_directions(runs: &[RunView]) -> Vec<Panel> {
    vec![
        panel(
            "bandwidth",
            "Throughput",
            Unit::Bytes,
            "Bytes per second in each direction.",
            figures_of_rate(runs, |w| w.bytes_per_s),
        ),
        panel(
            "iops",
            "I/Os per second",
            Unit::Count,
            "I/Os completed per second in each direction.",
            figures_of_rate(runs, |w| w.ios_per_s),
        ),
        panel(
            "latency",
            "Latency",
            Unit::Time,
            "Latency of the I/Os that completed in each part of the run, on a logarithmic scale.",
            latency(runs),
        ),
        panel(
            "latency-directions",
            "Latency by direction",
            Unit::Time,
            "Latency of reads, writes and trims one by one, on a logarithmic scale.",
            latency_by_direction(runs),
        ),
    ]
}

fn of_jobs(runs: &[RunView]) -> Vec<Panel> {
    let bandwidths = rates_of_jobs(runs, |job| &job.bytes_per_s);
    // Lines of the same form, for which a page has no room.
    let rates = if bandwidths.is_empty() { rates_of_jobs(runs, |job| &job.ios_per_s) } else { Vec::new() };
    vec![
        panel(
            "bandwidth-jobs",
            "Throughput of each job",
            Unit::Bytes,
            "Bytes per second of each job: in each direction, or in all of them where there would be too many lines.",
            bandwidths,
        ),
        panel(
            "iops-jobs",
            "I/Os per second of each job",
            Unit::Count,
            "I/Os completed per second by each job: in each direction, or in all of them where there would be too many lines.",
            rates,
        ),
        panel(
            "latency-jobs",
            "Mean latency of each job",
            Unit::Time,
            "Mean latency of each job's I/Os, on a logarithmic scale.",
            of_each_job(runs, |job| vec![(String::new(), job.mean_ns.clone())]),
        ),
    ]
}

fn of_machine(runs: &[RunView]) -> Vec<Panel> {
    vec![
        panel(
            "depth",
            "I/Os in flight",
            Unit::Count,
            "How many I/Os of the jobs, and requests of the devices, were in progress on average.",
            depth(runs),
        ),
        panel(
            "processors",
            "Processors",
            Unit::Percent,
            "How the processors that the run may use were used, by any program.",
            processors(runs),
        ),
        panel(
            "devices",
            "Busy devices",
            Unit::Percent,
            "The share of the time in which a device had at least one request.",
            busy(runs),
        ),
        panel(
            "temperature",
            "Temperature",
            Unit::Celsius,
            "The highest temperature of the machine's zones, and those of the devices that show it.",
            temperature(runs),
        ),
    ]
}

impl Panel {
    fn chart(self, end_s: f64, stalls: &[(f64, f64)], marks_stalls: bool) -> Chart {
        let Panel { id, title, unit, description, lines } = self;
        let figures: Vec<f64> = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y)| *y).collect();
        let (base, y_text): (f64, fn(f64) -> String) = match unit {
            Unit::Bytes => (1024.0, |bytes| format!("{}/s", figures::size(bytes))),
            Unit::Time => (1000.0, figures::time),
            Unit::Percent => (1000.0, |percent| format!("{percent:.0}\u{a0}%")),
            Unit::Celsius => (1000.0, |celsius| format!("{celsius:.0}\u{a0}°C")),
            Unit::Count => (1000.0, figures::count),
        };
        let y = match unit {
            Unit::Time => Axis::decades(figures.iter().copied()),
            Unit::Percent => Axis::linear(0.0, 100.0),
            Unit::Bytes | Unit::Celsius | Unit::Count => Axis::from_zero(figures.iter().copied(), base),
        };
        let bands = if marks_stalls { stalls.to_vec() } else { Vec::new() };
        Chart {
            id: id.to_string(),
            title: title.to_string(),
            description: description.to_string() + if bands.is_empty() { "" } else { " Stalls are marked." },
            x_title: "Time since the start".to_string(),
            x: Axis::linear(0.0, end_s),
            y,
            y_base: base,
            x_text: figures::seconds,
            y_text,
            x_ticks: None,
            lines,
            bands,
        }
    }
}

/// A figure of each window of a run.
fn points(run: &RunView, figure: impl Fn(&Window) -> Option<f64>) -> Points {
    let windows = run.over_time.iter().flat_map(|over| &over.windows);
    windows.map(|window| (f64::midpoint(window.from_s, window.to_s), figure(window))).collect()
}

/// Lines that have any figure.
fn with_figures(lines: impl IntoIterator<Item = (String, Points)>) -> Vec<Line> {
    let lines = lines.into_iter().map(|(name, points)| Line { name, points });
    lines.filter(|line| line.points.iter().any(|(_, y)| y.is_some_and(|y| y.is_finite()))).collect()
}

fn figures_of_rate(runs: &[RunView], rates: fn(&Window) -> Option<[f64; 3]>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (index, direction) in DirectionName::ALL.iter().take(3).enumerate() {
            let points = points(run, |window| Some(rates(window)?[index]));
            if points.iter().any(|(_, rate)| rate.is_some_and(|rate| rate > 0.0)) {
                lines.push((format!("{}{}", prefix(runs, number), direction.name()), points));
            }
        }
    }
    with_figures(lines)
}

fn latency(runs: &[RunView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let prefix = prefix(runs, number);
        lines.push((format!("{prefix}mean"), points(run, |window| window.mean_ns)));
        let percentiles: &[(f64, &str)] = if runs.len() > 1 {
            &[(99.0, "99 %")]
        } else {
            &[(50.0, "median"), (99.0, "99 %"), (99.9, "99.9 %"), (100.0, "longest")]
        };
        for (percent, name) in percentiles {
            let of = |window: &Window| Some(window.latencies.percentile_ns(*percent)? as f64);
            lines.push((format!("{prefix}{name}"), points(run, of)));
        }
    }
    with_figures(lines)
}

/// Of runs with more than one direction.
fn latency_by_direction(runs: &[RunView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let has = |direction: usize| {
            let windows = run.over_time.iter().flat_map(|over| &over.windows);
            windows.map(|window| window.by_direction[direction].total()).sum::<u64>() > 0
        };
        let directions: Vec<usize> = (0..3).filter(|direction| has(*direction)).collect();
        if directions.len() < 2 {
            continue;
        }
        for direction in directions {
            let name = format!("{}{}", prefix(runs, number), DirectionName::ALL[direction].name());
            for (percent, shown) in [(50.0, "median"), (99.0, "99 %")] {
                let of =
                    |window: &Window| Some(window.by_direction[direction].percentile_ns(percent)? as f64);
                lines.push((format!("{name} {shown}"), points(run, of)));
            }
        }
    }
    with_figures(lines)
}

/// The rates of each job in each direction in which it did anything; in all directions together if there are too many
/// lines.
fn rates_of_jobs(runs: &[RunView], rates: fn(&JobOverTime) -> &[Option<[f64; 3]>]) -> Vec<Line> {
    let by_direction = of_each_job(runs, |job| {
        let of = |index: usize| {
            let figures: Vec<Option<f64>> = rates(job).iter().map(|rates| Some((*rates)?[index])).collect();
            let is_active = figures.iter().flatten().any(|rate| *rate > 0.0);
            is_active.then(|| (format!(", {}", DirectionName::ALL[index].name()), figures))
        };
        (0..3).filter_map(of).collect()
    });
    if by_direction.len() <= LINES_MAX {
        return by_direction;
    }
    of_each_job(runs, |job| {
        let sum = |rates: &Option<[f64; 3]>| rates.map(|rates| rates.iter().sum());
        vec![(String::new(), rates(job).iter().map(sum).collect())]
    })
}

/// Of runs whose jobs are known one by one, if there are several: lines of each job, with what is added to its name.
fn of_each_job(
    runs: &[RunView],
    figures: impl Fn(&JobOverTime) -> Vec<(String, Vec<Option<f64>>)>,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let Some(over_time) = run.over_time.as_ref().filter(|over| over.jobs.len() > 1) else { continue };
        for job in &over_time.jobs {
            for (what, figures) in figures(job) {
                let points = job.at_s.iter().copied().zip(figures).collect();
                lines.push((format!("{}{}{what}", prefix(runs, number), job.name), points));
            }
        }
    }
    with_figures(lines)
}

fn depth(runs: &[RunView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let prefix = prefix(runs, number);
        lines.push((format!("{prefix}jobs"), points(run, |window| window.depth)));
        for used in run.devices.iter().take(DEVICES_MAX) {
            let points = device_samples(used).into_iter().map(|(at_s, _, depth)| (at_s, Some(depth)));
            lines.push((format!("{prefix}{}", used.device.name), points.collect()));
        }
    }
    with_figures(lines)
}

fn processors(runs: &[RunView]) -> Vec<Line> {
    let names = ["programs", "kernel", "waiting for I/O", "stolen by the host"];
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (index, name) in names.iter().enumerate() {
            let points = points(run, |window| Some(window.processors?[index]));
            // What is always zero is left out.
            if points.iter().any(|(_, share)| share.is_some_and(|share| share >= 0.5)) {
                lines.push((format!("{}{name}", prefix(runs, number)), points));
            }
        }
    }
    with_figures(lines)
}

fn busy(runs: &[RunView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for used in run.devices.iter().take(DEVICES_MAX) {
            let points = device_samples(used).into_iter().map(|(at_s, busy, _)| (at_s, Some(busy)));
            lines.push((format!("{}{}", prefix(runs, number), used.device.name), points.collect()));
        }
    }
    with_figures(lines)
}

fn temperature(runs: &[RunView]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let prefix = prefix(runs, number);
        lines.push((format!("{prefix}machine"), points(run, |window| window.temperature_celsius)));
        for used in run.devices.iter().take(DEVICES_MAX) {
            lines.push((format!("{prefix}{}", used.device.name), device_temperatures(used)));
        }
    }
    with_figures(lines)
}
