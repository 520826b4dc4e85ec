//! The runs of a sweep as curves: one for each combination of the options that are not the axis.
//!
//! Invariant: a curve's runs are in the order of their values, in whatever order they were run.

use fiord_report::table::Cell;
use fiord_stats::OrderBy;

use super::key::Key;
use super::measured::SweepRun;
use crate::chart;
use crate::figures::mib;
use crate::knee::{self, CurveShape, Knee};

/// Noise is this many standard errors.
pub(super) const ERRORS: f64 = 2.0;

/// Runs that differ only in the axis.
pub(super) struct Curve {
    /// The other options, `rw=read ioengine=psync`; empty if there are none.
    pub name: String,
    pub runs: Vec<SweptRun>,
    /// Peak and knee; `None` if there are fewer than two runs, or if they do not differ.
    pub found: Option<CurveShape>,
    /// Whether its runs do not differ: it is over the queue depth of an engine without a queue.
    pub is_flat: bool,
}

/// One run of a curve.
pub(super) struct SweptRun {
    pub point: Vec<usize>,
    /// The axis' value, as typed and as a number.
    pub cell: Cell,
    pub text: String,
    pub value: f64,
    pub bytes_per_s: f64,
    pub mean_ns: u64,
    /// How far the throughput may be off.
    pub noise_bytes_per_s: f64,
    ignores_depth: bool,
}

impl Curve {
    /// The run at the knee, if it was reached.
    pub fn knee(&self) -> Option<&SweptRun> {
        self.runs.get(self.found?.knee.index()?)
    }

    /// The runs between which the knee is, if noise hides where; it may be beyond the last if there is no second.
    pub fn hidden_knee(&self) -> Option<(&SweptRun, Option<&SweptRun>)> {
        match self.found?.knee {
            Knee::Between(from, to) => Some((self.runs.get(from)?, to.and_then(|to| self.runs.get(to)))),
            Knee::At(_) | Knee::NotReached => None,
        }
    }

    /// The values of all options at the knee.
    pub fn knee_run(&self) -> Option<&Vec<usize>> {
        self.knee().map(|run| &run.point)
    }

    /// The run of the highest throughput.
    pub fn peak(&self) -> Option<&SweptRun> {
        self.runs.get(self.found?.peak)
    }

    /// The line to draw.
    pub fn line(&self) -> chart::Line {
        let point = |run: &SweptRun| chart::Point {
            x: run.value,
            label: run.text.clone(),
            mib_per_s: mib(run.bytes_per_s),
            latency_ms: run.mean_ns as f64 / 1e6,
        };
        chart::Line {
            name: self.name.clone(),
            points: self.runs.iter().map(point).collect(),
            knee: self.found.and_then(|found| found.knee.index()),
        }
    }
}

/// The curves over `keys[axis]`, in the order in which their first runs were run.
pub(super) fn of(keys: &[Key], axis: usize, measured: &[SweepRun]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for run in measured {
        let name = name(keys, axis, &run.point);
        let at = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
            curves.push(Curve { name, runs: Vec::new(), found: None, is_flat: false });
            curves.len() - 1
        });
        let value = &keys[axis].values[run.point[axis]];
        curves[at].runs.push(SweptRun {
            point: run.point.clone(),
            cell: keys[axis].cell(run.point[axis]),
            text: value.text.clone(),
            value: value.number.unwrap_or(0.0),
            bytes_per_s: run.total.bytes_per_s,
            mean_ns: run.total.mean_ns,
            noise_bytes_per_s: ERRORS * run.error_bytes_per_s,
            ignores_depth: run.ignores_depth,
        });
    }
    for curve in &mut curves {
        curve.runs.order_by(|one, other| one.value.total_cmp(&other.value));
        let points: Vec<knee::CurvePoint> = curve.runs.iter().map(point).collect();
        curve.is_flat = keys[axis].name() == "iodepth" && curve.runs.iter().any(|run| run.ignores_depth);
        curve.found = if curve.is_flat { None } else { knee::find(&points) };
    }
    curves
}

fn point(run: &SweptRun) -> knee::CurvePoint {
    knee::CurvePoint { value: run.value, throughput: run.bytes_per_s, noise: run.noise_bytes_per_s }
}

fn name(keys: &[Key], axis: usize, point: &[usize]) -> String {
    let others = keys.iter().zip(point).enumerate().filter(|(index, _)| *index != axis);
    let texts = others.map(|(_, (key, value))| format!("{}={}", key.name(), key.values[*value].text));
    texts.collect::<Vec<_>>().join(" ")
}
