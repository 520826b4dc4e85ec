//! How alike a trace and the operations of its model are: figure by figure, the deviation of each, and the worst named.
//!
//! Invariant: "close" is said only if no figure deviates by more than it may; what chance alone does to a figure is allowed
//! for beside its limit, and nothing else.

use fiord_report::table::{Cell, Column, Table};

use crate::measure::Measurement;
use crate::stream::{KINDS, SYNCS, Stream};

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    Bytes,
    Percent,
    Ns,
    Ratio,
}

impl Unit {
    fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Count => Cell::Count(value.round() as u64),
            Unit::Bytes => Cell::Bytes(value.round() as u64),
            Unit::Percent => Cell::Number(value, 1),
            Unit::Ns => Cell::Latency(value.round() as u64),
            Unit::Ratio => Cell::Number(value, 2),
        }
    }

    /// Whether deviations are differences, not shares of the trace's figure.
    fn is_difference(self) -> bool {
        matches!(self, Unit::Percent | Unit::Ratio)
    }
}

/// A figure of the trace and of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Which stream; empty for all.
    pub stream: String,
    /// What it is: `reads`, `p99 of write sizes`.
    pub name: String,
    /// In the trace.
    pub trace: f64,
    /// In the model.
    pub model: f64,
    /// How much it deviates: percent of the trace's, or the difference of percents and ratios.
    pub deviation: f64,
    /// How much it may.
    pub limit: f64,
    unit: Unit,
}

impl Figure {
    /// Whether it deviates by no more than it may.
    pub fn is_close(&self) -> bool {
        self.deviation <= self.limit
    }

    /// How far it is from what it may be: 1 is at the limit.
    fn strain(&self) -> f64 {
        self.deviation / self.limit.max(f64::MIN_POSITIVE)
    }

    fn shown_deviation(&self) -> String {
        match self.unit {
            Unit::Percent => format!("{:.1} points", self.deviation),
            Unit::Ratio => format!("{:.2}", self.deviation),
            _ => format!("{:.1} %", self.deviation),
        }
    }
}

/// Percents by which figures may deviate.
const COUNT_LIMIT: f64 = 5.0;
const SIZE_LIMIT: f64 = 5.0;
const SEQUENTIAL_POINTS: f64 = 5.0;
const BLOCKS_LIMIT: f64 = 10.0;
/// Known to a quarter of an octave only.
const REUSE_LIMIT: f64 = 35.0;
const GAP_LIMIT: f64 = 10.0;
/// Of bursts, whose I/Os take no time in the model.
const BURST_GAP_LIMIT: f64 = 35.0;
const VARIATION_LIMIT: f64 = 0.3;

/// The comparison of a trace with its model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fidelity {
    /// Its figures: those of all streams, then stream by stream.
    pub figures: Vec<Figure>,
}

impl Fidelity {
    /// Compares streams of the same positions; `names` are theirs.
    pub fn of(trace: &Measurement, model: &Measurement, names: &[String]) -> Fidelity {
        let mut figures = Figures::default();
        let pairs: Vec<(usize, &Stream, Option<&Stream>)> = trace
            .streams()
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.ios() > 0)
            .map(|(at, stream)| {
                (at, stream, model.streams().iter().find(|one| one.identity.file as usize == at))
            })
            .collect();
        for (kind, entry_kind) in KINDS.into_iter().enumerate() {
            let sum = |figure: &dyn Fn(&Stream) -> u64, all: &Measurement| {
                all.streams().iter().map(figure).sum::<u64>() as f64
            };
            let ios = |stream: &Stream| stream.tracks[kind].ios;
            let bytes = |stream: &Stream| stream.tracks[kind].bytes;
            let word = entry_kind.word();
            figures.count(&format!("{word}s"), sum(&ios, trace), sum(&ios, model));
            let noise = 200.0 / sum(&ios, trace).max(1.0).sqrt();
            figures.add(
                &format!("{word} bytes"),
                Unit::Bytes,
                sum(&bytes, trace),
                sum(&bytes, model),
                COUNT_LIMIT + noise,
            );
        }
        for (at, stream, modelled) in pairs {
            figures.stream = names.get(at).cloned().unwrap_or_default();
            let none = Stream::new(stream.identity);
            figures.of_stream((stream, trace), (modelled.unwrap_or(&none), model));
        }
        Fidelity { figures: figures.list }
    }

    /// Whether no figure deviates by more than it may.
    pub fn is_close(&self) -> bool {
        self.figures.iter().all(Figure::is_close)
    }

    /// The figure that deviates most, in proportion to what it may.
    pub fn worst(&self) -> Option<&Figure> {
        self.figures.iter().max_by(|left, right| left.strain().total_cmp(&right.strain()))
    }

    /// One sentence: close, or not and where.
    pub fn sentence(&self) -> String {
        let Some(worst) = self.worst() else { return "There is nothing to compare.".to_string() };
        let of = match worst.stream.as_str() {
            "" => String::new(),
            stream => format!(" of {stream}"),
        };
        let figures = format!(
            "{}{of}: {} in the trace, {} in the model ({})",
            worst.name,
            worst.unit.cell(worst.trace).shown(),
            worst.unit.cell(worst.model).shown(),
            worst.shown_deviation()
        );
        let far = self.figures.iter().filter(|figure| !figure.is_close()).count();
        match far {
            0 if worst.deviation == 0.0 => "Close: the model's operations have the same figures.".to_string(),
            0 => format!("Close: the largest deviation is in {figures}."),
            _ => {
                format!("Not close: {far} of {} figures deviate, most of all {figures}.", self.figures.len())
            }
        }
    }

    /// The figures as a table.
    pub fn table(&self) -> Table {
        let columns = [
            Column::new("stream", "STREAM"),
            Column::new("figure", "FIGURE"),
            Column::new("trace", "TRACE"),
            Column::new("model", "MODEL"),
            Column::new("deviation", "DEVIATION"),
            Column::new("limit", "MAY"),
            Column::new("close", "CLOSE"),
        ];
        let mut table = Table::new(columns);
        table.rows.extend(self.figures.iter().map(|figure| {
            let stream = if figure.stream.is_empty() { "all" } else { &figure.stream };
            vec![
                Cell::Text(stream.to_string()),
                Cell::Text(figure.name.clone()),
                figure.unit.cell(figure.trace),
                figure.unit.cell(figure.model),
                Cell::Formatted(figure.shown_deviation(), figure.deviation),
                Cell::Number(figure.limit, 1),
                Cell::Flag(figure.is_close()),
            ]
        }));
        table
    }
}

#[derive(Default)]
struct Figures {
    stream: String,
    list: Vec<Figure>,
}

impl Figures {
    fn add(&mut self, name: &str, unit: Unit, trace: f64, model: f64, limit: f64) {
        if trace == 0.0 && model == 0.0 {
            return;
        }
        let difference = (model - trace).abs();
        let deviation = match unit.is_difference() {
            true => difference,
            // Where there was nothing, one is as far off as anything.
            false => (difference * 100.0 / trace.max(1.0)).min(1e6),
        };
        let (stream, name) = (self.stream.clone(), name.to_string());
        self.list.push(Figure { stream, name, trace, model, deviation, limit, unit });
    }

    /// A count, which chance may change by two deviations; one more or less is none.
    fn count(&mut self, name: &str, trace: f64, model: f64) {
        let model = if (model - trace).abs() <= 1.0 && trace > 0.0 { trace } else { model };
        self.add(name, Unit::Count, trace, model, COUNT_LIMIT + 200.0 / trace.max(1.0).sqrt());
    }

    fn of_stream(
        &mut self,
        (trace, of_trace): (&Stream, &Measurement),
        (model, of_model): (&Stream, &Measurement),
    ) {
        for (kind, entry_kind) in KINDS.into_iter().enumerate() {
            let (left, right) = (&trace.tracks[kind], &model.tracks[kind]);
            if left.ios == 0 && right.ios == 0 {
                continue;
            }
            let word = entry_kind.word();
            self.count(&format!("{word}s"), left.ios as f64, right.ios as f64);
            for (percent, share) in [(50, 0.5), (99, 0.99)] {
                let size = |stream: &crate::track::Track| stream.lengths.quantile(share) as f64;
                self.add(
                    &format!("p{percent} of {word} sizes"),
                    Unit::Bytes,
                    size(left),
                    size(right),
                    SIZE_LIMIT,
                );
            }
            let (Some(was), Some(is)) = (left.sequential_share(), right.sequential_share()) else { continue };
            let chance = 200.0 * (was * (1.0 - was) / left.ios as f64).sqrt();
            self.add(
                &format!("sequential {word}s, %"),
                Unit::Percent,
                was * 100.0,
                is * 100.0,
                SEQUENTIAL_POINTS + chance,
            );
        }
        let unique = |stream: &Stream, of: &Measurement| stream.touched.unique(of.sampling());
        let (was, is) = (unique(trace, of_trace), unique(model, of_model));
        // The blocks of the other files of a compact section are not kept.
        if trace.files == 1 {
            self.add("blocks touched", Unit::Count, was, is, BLOCKS_LIMIT + 300.0 / was.max(1.0).sqrt());
            let (reused, modelled) = (trace.touched.reuse(), model.touched.reuse());
            // Reads and writes that each go through the file in order meet after any time.
            let in_order =
                |kind: usize| trace.tracks[kind].sequential_share().is_some_and(|share| share > 0.5);
            let is_chance = in_order(0) && in_order(1);
            if reused.total() >= 100 && modelled.total() >= 100 && !is_chance {
                let median = |counted: &crate::counted::Counted| counted.quantile(0.5) as f64;
                self.add(
                    "median I/Os until a block is reused",
                    Unit::Count,
                    median(reused),
                    median(modelled),
                    REUSE_LIMIT,
                );
            }
        }
        for ((kind, was), is) in SYNCS.into_iter().zip(&trace.syncs).zip(&model.syncs) {
            self.count(&format!("{} calls", kind.word()), was.count as f64, is.count as f64);
        }
        self.arrivals(trace, model);
    }

    /// Only where the model has times of its own: of others, the storage decides.
    fn arrivals(&mut self, trace: &Stream, model: &Stream) {
        let (was, is) = (&trace.all_arrivals, &model.all_arrivals);
        if is.mean_ns() <= 0.0 || was.gaps() < 2 {
            return;
        }
        let limit = if was.pauses().is_some() { BURST_GAP_LIMIT } else { GAP_LIMIT };
        self.add("mean time between I/Os", Unit::Ns, was.mean_ns(), is.mean_ns(), limit);
        let limit = VARIATION_LIMIT + was.variation() / 5.0;
        self.add("variation of time between I/Os", Unit::Ratio, was.variation(), is.variation(), limit);
    }
}
