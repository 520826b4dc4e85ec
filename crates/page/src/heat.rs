//! The heat map of latencies over time.
//!
//! Invariant: a cell's colour is the logarithm of its count relative to the highest; one path per colour, so that the size
//! of the picture is bounded.

use fiord_stats::progress::COARSE_BINS;
use fiord_stats::{Capped, CoarseHistogram};
use fiord_svg::{Document, Element, Path};

use crate::axis::Axis;
use crate::chart::{Frame, cell};
use crate::figures;
use crate::over_time::OverTime;

/// Colours, from few I/Os to many.
pub(crate) const SHADES: usize = 7;

/// The most columns of a picture.
const COLUMNS_WIDE: usize = 150;
const COLUMNS_NARROW: usize = 75;

/// The colour of a strength from 0 to 1.
pub(crate) fn shade(strength: f64) -> usize {
    usize::capped(strength * SHADES as f64).min(SHADES - 1)
}

/// A heat map and its table of percentiles.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap<'a> {
    pub id: String,
    pub title: String,
    pub over_time: &'a OverTime,
    /// The first bin that counts anything, and the one after the last.
    bins: (usize, usize),
}

impl<'a> HeatMap<'a> {
    /// `None` if there are no latencies.
    pub(crate) fn new(id: String, title: String, over_time: &'a OverTime) -> Option<HeatMap<'a>> {
        let mut all = CoarseHistogram::default();
        over_time.windows.iter().for_each(|window| all.merge(&window.latencies));
        let first = all.counts.iter().position(|count| *count > 0)?;
        let last = all.counts.iter().rposition(|count| *count > 0)?;
        // Latencies below 64 ns share linear bins; the map begins with the logarithmic ones.
        let bins = (first.max(4).saturating_sub(1).max(4), (last + 2).min(COARSE_BINS));
        Some(HeatMap { id, title, over_time, bins })
    }

    pub(crate) fn description(&self) -> String {
        let (low, high) = self.range_ns();
        format!(
            "Each column is a part of the run, each row a range of latencies between {} and {} on a logarithmic scale; the \
             stronger the colour, the more I/Os took that long.",
            figures::time(low),
            figures::time(high)
        )
    }

    fn range_ns(&self) -> (f64, f64) {
        let at = |bin: usize| CoarseHistogram::floor_ns(bin) as f64;
        (at(self.bins.0), at(self.bins.1))
    }

    /// The axis of time.
    pub(crate) fn x(&self) -> Axis {
        Axis::linear(0.0, self.over_time.end_s())
    }

    /// The picture.
    pub(crate) fn draw(&self, frame: &Frame) -> String {
        let id = format!("{}-{}", self.id, frame.suffix);
        let mut svg = Document::inline((frame.width, frame.height), &id, &self.title, &self.description());
        let (low, high) = self.range_ns();
        let share = |ns: f64| (ns / low).ln() / (high / low).ln();
        let decades = (i32::capped(low.log10().ceil())..=i32::capped(high.log10().floor()))
            .map(|power| 10f64.powi(power));
        let y: Vec<(f64, String)> = decades.map(|ns| (share(ns), figures::time(ns))).collect();
        let x = self.x();
        let ticks = x.ticks(frame.x_labels, 1000.0).into_iter();
        let labels: Vec<(f64, String)> = ticks.map(|tick| (x.share(tick), figures::seconds(tick))).collect();
        let back = (frame.right() - frame.left, frame.row(0.0) - frame.row(1.0));
        svg.add(Element::rectangle((frame.left, frame.row(1.0)), back).class("heat-back"));
        for (shade, path) in self.cells(frame, &share).into_iter().enumerate() {
            if let Some(path) = path {
                svg.add(Element::path(&path).class(&format!("h{shade}")));
            }
        }
        frame.axes(&mut svg, &y, &labels, "Time since the start");
        svg.finish()
    }

    /// The cells of each colour.
    fn cells(&self, frame: &Frame, share: &impl Fn(f64) -> f64) -> Vec<Option<Path>> {
        let columns = if frame.suffix == "n" { COLUMNS_NARROW } else { COLUMNS_WIDE };
        let per = self.over_time.windows.len().div_ceil(columns).max(1);
        let x = self.x();
        // Counts per second, since the last column may be shorter.
        let columns: Vec<(f64, f64, Vec<f64>)> = self
            .over_time
            .windows
            .chunks(per)
            .map(|group| {
                let mut sum = CoarseHistogram::default();
                group.iter().for_each(|window| sum.merge(&window.latencies));
                let (from, to) = (group[0].from_s, group[group.len() - 1].to_s);
                let per_s = |count: u64| count as f64 / (to - from).max(1e-3);
                (x.share(from), x.share(to), sum.counts.iter().copied().map(per_s).collect())
            })
            .collect();
        let most = columns.iter().flat_map(|(.., counts)| counts).copied().fold(0.0, f64::max);
        let least = columns
            .iter()
            .flat_map(|(.., counts)| counts)
            .copied()
            .filter(|count| *count > 0.0)
            .fold(most, f64::min);
        let mut paths: Vec<Option<Path>> = vec![None; SHADES];
        for (from, to, counts) in &columns {
            let (left, right) = (frame.column(*from), frame.column(*to));
            for bin in (self.bins.0..self.bins.1).filter(|bin| counts[*bin] > 0.0) {
                let strength = ((counts[bin] / least).ln() / (most / least).ln().max(1e-9)).clamp(0.0, 1.0);
                let shade = shade(strength);
                let edge = |bin: usize| frame.row(share(CoarseHistogram::floor_ns(bin) as f64));
                let (top, bottom) = (edge(bin + 1), edge(bin));
                let path = paths[shade].take().unwrap_or_default();
                paths[shade] = Some(cell(path, (left, top), (right - left, bottom - top)));
            }
        }
        paths
    }

    /// Rows of percentiles: time as text and as a share of the axis, and the figures.
    pub(crate) fn rows(&self) -> Vec<(String, String, Vec<String>)> {
        let x = self.x();
        let row = |window: &crate::over_time::Window| {
            let middle = f64::midpoint(window.from_s, window.to_s);
            let at = |percent: f64| {
                let ns = window.latencies.percentile_ns(percent);
                ns.map_or_else(|| "–".to_string(), |ns| figures::time(ns as f64))
            };
            let cells = [50.0, 90.0, 99.0, 99.9, 100.0].map(at).into_iter();
            let cells = cells.chain([figures::grouped(window.latencies.total())]).collect();
            (figures::seconds(window.to_s), format!("{:.4}", x.share(middle)), cells)
        };
        self.over_time.windows.iter().map(row).collect()
    }
}
