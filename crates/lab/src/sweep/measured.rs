//! The measurements of a sweep, and how its figures are shown.
//!
//! Invariant: a figure is shown with the same digits in the table and in the sentence.

use fiord_report::table::Cell;

use super::job::Done;
use crate::figures::{Figures, mib};

/// The measurements of one run.
#[derive(Clone, Debug)]
pub(super) struct SweepRun {
    pub point: Vec<usize>,
    /// The figures of each job, in each direction in which it did I/O.
    pub rows: Vec<Done>,
    /// All jobs and directions together.
    pub total: Figures,
    pub error_bytes_per_s: f64,
    pub util_percent: Option<f64>,
    /// Why its figures are void, in the middle of a sentence, if they are.
    pub void: Option<String>,
    /// Whether its queue depth is 1, whatever `iodepth` says.
    pub ignores_depth: bool,
}

/// How the figures of a sweep are shown: in its table, and with the same cells in its sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Decimals of MiB/s.
    mib_decimals: usize,
    /// Decimals of milliseconds.
    ms_decimals: usize,
    /// Whether a run has several rows, so that the table has no figures of whole runs.
    pub is_summed: bool,
}

/// Throughput below this is shown to hundredths.
const LOW_MIB_PER_S: f64 = 10.0;

impl Style {
    /// Enough decimals for two significant digits of the shortest mean and the lowest throughput.
    pub(super) fn of(measured: &[SweepRun]) -> Style {
        let rows = || measured.iter().flat_map(|run| &run.rows).map(|done| &done.figures);
        let ms_decimals = match rows().map(|figures| figures.mean_ns).min() {
            Some(0..10_000) => 4,
            Some(10_000..10_000_000) => 3,
            _ => 1,
        };
        let is_low = rows().any(|figures| figures.mib_per_s() < LOW_MIB_PER_S);
        let is_summed = measured.iter().any(|run| run.rows.len() > 1);
        Style { mib_decimals: if is_low { 2 } else { 1 }, ms_decimals, is_summed }
    }

    pub(super) fn throughput(&self, bytes_per_s: f64) -> Cell {
        Cell::Number(mib(bytes_per_s), self.mib_decimals)
    }

    pub(super) fn latency(&self, ns: u64) -> Cell {
        Cell::Number(ns as f64 / 1e6, self.ms_decimals)
    }
}
