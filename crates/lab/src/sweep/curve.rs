//! The runs of a sweep as curves: one for each combination of the options that are not the axis.
//!
//! Invariant: a curve's runs are in the order of their values, whatever the order they were run in.

use fiord_report::table::Cell;

use super::{Key, Measured, mib};
use crate::chart;
use crate::knee::{self, Found};

/// Noise is this many standard errors.
const ERRORS: f64 = 2.0;

/// Runs that differ in the axis alone.
pub(super) struct Curve {
    /// The other options, `rw=read ioengine=psync`; empty when there are none.
    pub name: String,
    pub runs: Vec<Run>,
    /// Peak and knee; `None` when there are no two runs.
    pub found: Option<Found>,
}

/// One run of a curve.
pub(super) struct Run {
    pub point: Vec<usize>,
    /// The axis' value, as typed and as the number it stands for.
    pub cell: Cell,
    pub text: String,
    pub value: f64,
    pub bytes_per_s: f64,
    pub mean_ns: u64,
    noise_bytes_per_s: f64,
}

impl Curve {
    /// The run at the knee, where it was reached.
    pub fn knee(&self) -> Option<&Run> {
        self.runs.get(self.found?.knee?)
    }

    /// Which values of all options it has.
    pub fn knee_run(&self) -> Option<&Vec<usize>> {
        self.knee().map(|run| &run.point)
    }

    /// The run of the highest throughput.
    pub fn peak(&self) -> Option<&Run> {
        self.runs.get(self.found?.peak)
    }

    /// As it is drawn.
    pub fn line(&self) -> chart::Line {
        let point = |run: &Run| chart::Point {
            x: run.value,
            label: run.text.clone(),
            mib_per_s: mib(run.bytes_per_s),
            latency_ms: run.mean_ns as f64 / 1e6,
        };
        chart::Line {
            name: self.name.clone(),
            points: self.runs.iter().map(point).collect(),
            knee: self.found.and_then(|found| found.knee),
        }
    }
}

/// The curves over `keys[axis]`, in the order in which their first runs were run.
pub(super) fn of(keys: &[Key], axis: usize, measured: &[Measured]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for run in measured {
        let name = name(keys, axis, &run.point);
        let at = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
            curves.push(Curve { name, runs: Vec::new(), found: None });
            curves.len() - 1
        });
        let value = &keys[axis].values[run.point[axis]];
        curves[at].runs.push(Run {
            point: run.point.clone(),
            cell: keys[axis].cell(run.point[axis]),
            text: value.text.clone(),
            value: value.number.unwrap_or(0.0),
            bytes_per_s: run.total.bytes_per_s,
            mean_ns: run.total.mean_ns,
            noise_bytes_per_s: ERRORS * run.error_bytes_per_s,
        });
    }
    for curve in &mut curves {
        curve.runs.sort_by(|one, other| one.value.total_cmp(&other.value));
        let points: Vec<knee::Point> = curve.runs.iter().map(point).collect();
        curve.found = knee::find(&points);
    }
    curves
}

fn point(run: &Run) -> knee::Point {
    knee::Point { value: run.value, throughput: run.bytes_per_s, noise: run.noise_bytes_per_s }
}

fn name(keys: &[Key], axis: usize, point: &[usize]) -> String {
    let others = keys.iter().zip(point).enumerate().filter(|(index, _)| *index != axis);
    let texts = others.map(|(_, (key, value))| format!("{}={}", key.name(), key.values[*value].text));
    texts.collect::<Vec<_>>().join(" ")
}
