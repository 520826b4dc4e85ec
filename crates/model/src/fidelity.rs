//! How alike a trace and the operations of its model are: figure by figure, the deviation of each, and the worst named.
//!
//! Invariant: "close" is said only if no figure deviates by more than it may. What chance alone may do to a figure never makes
//! it close: beyond its limit it is then one that so few I/Os do not tell.

use fiord_report::table::{Cell, Column, Table};
use fiord_stats::Capped;

use crate::counted::Counted;
use crate::measure::Measurement;
use crate::stream::{KINDS, SYNCS, Stream};

/// What a figure is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    Bytes,
    Rate,
    Percent,
    Ns,
    Ratio,
}

impl Unit {
    fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Count => Cell::Count(u64::capped(value.round())),
            Unit::Bytes => Cell::Bytes(u64::capped(value.round())),
            Unit::Percent | Unit::Rate => Cell::Number(value, 1),
            Unit::Ns => Cell::Latency(u64::capped(value.round())),
            Unit::Ratio => Cell::Number(value, 2),
        }
    }

    /// Whether deviations are differences, not shares of the trace's figure.
    fn is_difference(self) -> bool {
        matches!(self, Unit::Percent | Unit::Ratio)
    }
}

/// What can be said of a figure of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It deviates by no more than it may.
    Close,
    /// It deviates by more, which chance alone may do to so few I/Os.
    TooFew,
    /// It deviates by more than chance does.
    Far,
}

impl Verdict {
    /// Its name in tables.
    fn name(self) -> &'static str {
        match self {
            Verdict::Close => "close",
            Verdict::TooFew => "too few",
            Verdict::Far => "far",
        }
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
    /// In the model, or the model as run.
    pub model: f64,
    /// Of a figure of the model as run: that of its operations, where these tell it.
    pub calculated: Option<f64>,
    /// How much it deviates: percent of the trace's, or the difference of percents and ratios; of latencies, by how many
    /// percent the longer is longer.
    pub deviation: f64,
    /// How much it may.
    pub limit: f64,
    /// By how much more it may by chance alone, of so few I/Os.
    chance: f64,
    unit: Unit,
}

impl Figure {
    /// Whether it deviates by no more than it may.
    pub fn verdict(&self) -> Verdict {
        let is_missing = self.unit == Unit::Count && self.model == 0.0 && self.trace > 0.0;
        match self.deviation {
            deviation if deviation <= self.limit => Verdict::Close,
            deviation if deviation <= self.limit + self.chance && !is_missing => Verdict::TooFew,
            _ => Verdict::Far,
        }
    }

    /// How far it is from what it may be: what is far before what so few I/Os do not tell; 1 is at the limit.
    fn strain(&self) -> (bool, f64) {
        (self.verdict() == Verdict::Far, self.deviation / self.limit.max(f64::MIN_POSITIVE))
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
const RATE_LIMIT: f64 = 10.0;
/// Of latencies, a quantile is compared with its limit if there are so many of them.
const LATENCIES: [(&str, f64, f64, u64); 2] = [("p50", 0.5, 25.0, 10), ("p99", 0.99, 50.0, 200)];

/// The comparison of a trace with its model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fidelity {
    /// Its figures: those of all streams, then stream by stream.
    pub figures: Vec<Figure>,
    /// Whether the model as run is compared with the trace.
    is_run: bool,
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
            let chance = 200.0 / sum(&ios, trace).max(1.0).sqrt();
            let name = format!("{word} bytes");
            let moved = (sum(&bytes, trace), sum(&bytes, model));
            figures.add(&name, Unit::Bytes, moved, COUNT_LIMIT, chance);
        }
        for (sync, kind) in SYNCS.into_iter().enumerate() {
            let sum =
                |all: &Measurement| all.streams().iter().map(|stream| stream.syncs[sync].count).sum::<u64>();
            figures.count(&format!("{} calls", kind.word()), sum(trace) as f64, sum(model) as f64);
        }
        for (at, stream, modelled) in pairs {
            figures.stream = names.get(at).cloned().unwrap_or_default();
            let none = Stream::new(stream.identity);
            figures.of_stream((stream, trace), (modelled.unwrap_or(&none), model));
        }
        Fidelity { figures: figures.list, is_run: false }
    }

    /// Compares a trace with the recording of its model, as far as both tell it, beside the model's operations.
    pub fn as_run(trace: &Measurement, model: &Measurement, run: &Measurement) -> Fidelity {
        let mut figures = Figures::default();
        let (run, model) = (observed(run), observed(model));
        for ((was, is), calculated) in observed(trace).into_iter().zip(&run).zip(&model) {
            // Nothing of a kind is a figure, unlike a latency that one does not tell.
            let nothing = Some(0.0).filter(|_| was.unit != Unit::Ns);
            let (Some(before), Some(now)) = (was.value, is.value.or(nothing)) else { continue };
            figures.add(&was.name, was.unit, (before, now), was.limit, 0.0);
            let Some(figure) = figures.list.last_mut().filter(|figure| figure.name == was.name) else {
                continue;
            };
            // Rates and latencies of operations that are not run are none.
            figure.calculated = calculated.value.filter(|_| !was.is_timed);
            if was.unit == Unit::Ns {
                figure.deviation = ((before.max(now) / before.min(now).max(1.0) - 1.0) * 100.0).min(1e6);
            }
        }
        Fidelity { figures: figures.list, is_run: true }
    }

    fn what(&self) -> &'static str {
        if self.is_run { "model as run" } else { "model" }
    }

    /// Whether no figure deviates by more than it may.
    pub fn is_close(&self) -> bool {
        self.figures.iter().all(|figure| figure.verdict() == Verdict::Close)
    }

    /// The figure that deviates most, in proportion to what it may.
    pub fn worst(&self) -> Option<&Figure> {
        self.figures.iter().max_by(|left, right| {
            let ((left_far, left), (right_far, right)) = (left.strain(), right.strain());
            left_far.cmp(&right_far).then(left.total_cmp(&right))
        })
    }

    /// One sentence: close, or not and where, or that it cannot be told.
    pub fn sentence(&self) -> String {
        let Some(worst) = self.worst() else { return "There is nothing to compare.".to_string() };
        let of = match worst.stream.as_str() {
            "" => String::new(),
            stream => format!(" of {stream}"),
        };
        let figures = format!(
            "{}{of}: {} in the trace, {} in the {} ({})",
            worst.name,
            worst.unit.cell(worst.trace).shown(),
            worst.unit.cell(worst.model).shown(),
            self.what(),
            worst.shown_deviation()
        );
        let all = self.figures.len();
        let count = |verdict| self.figures.iter().filter(|figure| figure.verdict() == verdict).count();
        match (count(Verdict::Far), count(Verdict::TooFew)) {
            (0, 0) if worst.deviation == 0.0 => {
                format!("Close: the {} has the same figures.", self.what())
            }
            (0, 0) => format!("Close: the largest deviation is in {figures}."),
            (0, few) => format!(
                "Cannot tell whether it is close: {few} of {all} figures deviate, as chance alone may do to so few I/Os, most \
                 of all {figures}. Record for longer."
            ),
            (far, _) => format!("Not close: {far} of {all} figures deviate, most of all {figures}."),
        }
    }

    /// The figures as a table; of a run also the model's operations.
    pub fn table(&self) -> Table {
        let (stream, model) = match self.is_run {
            true => (Column::new("model", "MODEL"), Column::new("run", "AS RUN")),
            false => (Column::new("stream", "STREAM"), Column::new("model", "MODEL")),
        };
        let columns = [
            stream,
            Column::new("figure", "FIGURE"),
            Column::new("trace", "TRACE"),
            model,
            Column::new("deviation", "DEVIATION"),
            Column::new("limit", "MAY"),
            Column::new("close", "CLOSE"),
            Column::new("verdict", "VERDICT"),
        ];
        let mut table = Table::new(columns);
        table.rows.extend(self.figures.iter().map(|figure| {
            let stream = if figure.stream.is_empty() { "all" } else { &figure.stream };
            let first = match self.is_run {
                true => figure.calculated.map_or(Cell::None, |calculated| figure.unit.cell(calculated)),
                false => Cell::Text(stream.to_string()),
            };
            vec![
                first,
                Cell::Text(figure.name.clone()),
                figure.unit.cell(figure.trace),
                figure.unit.cell(figure.model),
                Cell::Formatted(figure.shown_deviation(), figure.deviation),
                Cell::Number(figure.limit, 1),
                Cell::Flag(figure.verdict() == Verdict::Close),
                Cell::Text(figure.verdict().name().to_string()),
            ]
        }));
        table
    }
}

/// What is seen of all streams together, whether they are of a trace or of a run.
struct Observed {
    name: String,
    unit: Unit,
    limit: f64,
    /// Whether it is of times.
    is_timed: bool,
    value: Option<f64>,
}

/// The figures of all kinds, in an order that is always the same.
fn observed(of: &Measurement) -> Vec<Observed> {
    let mut all = Vec::new();
    let mut add = |name: String, unit, limit, is_timed, value: Option<f64>| {
        all.push(Observed { name, unit, limit, is_timed, value });
    };
    let (mut begin_ns, mut end_ns) = (u64::MAX, 0);
    for stream in of.streams().iter().filter(|stream| stream.ios() > 0) {
        let first_ns = stream.all_arrivals.first_ns();
        begin_ns = begin_ns.min(first_ns);
        end_ns = end_ns.max(first_ns.saturating_add(stream.all_arrivals.span_ns()));
    }
    let span_s = end_ns.saturating_sub(begin_ns) as f64 / 1e9;
    for (at, kind) in KINDS.into_iter().chain(SYNCS).enumerate() {
        let word = kind.word();
        let mut durations = Counted::default();
        let (mut ios, mut bytes, mut calls, mut followed, mut in_order) = (0, 0, 0, 0, 0.0);
        for stream in of.streams() {
            durations.absorb(&stream.durations[at]);
            match stream.tracks.get(at) {
                Some(track) => {
                    ios += track.ios;
                    bytes += track.bytes;
                    let after_another = track.ios.saturating_sub(1);
                    followed += after_another;
                    in_order += track.sequential_share().unwrap_or(0.0) * after_another as f64;
                }
                None => calls += stream.syncs[at - KINDS.len()].count,
            }
        }
        if at < KINDS.len() {
            add(format!("{word}s"), Unit::Count, COUNT_LIMIT, false, Some(ios as f64));
            add(format!("{word} bytes"), Unit::Bytes, COUNT_LIMIT, false, Some(bytes as f64));
            let rate = (ios > 1 && span_s > 0.0).then(|| ios as f64 / span_s);
            add(format!("{word}s a second"), Unit::Rate, RATE_LIMIT, true, rate);
            let percent = (followed > 0).then(|| in_order * 100.0 / followed as f64);
            add(format!("sequential {word}s, %"), Unit::Percent, SEQUENTIAL_POINTS, false, percent);
        } else {
            add(format!("{word} calls"), Unit::Count, COUNT_LIMIT, false, Some(calls as f64));
        }
        for (quantile, share, limit, needed) in LATENCIES {
            let ns = (durations.total() >= needed).then(|| durations.quantile(share) as f64);
            add(format!("{quantile} of {word} latency"), Unit::Ns, limit, true, ns.filter(|ns| *ns > 0.0));
        }
    }
    all
}

#[derive(Default)]
struct Figures {
    stream: String,
    list: Vec<Figure>,
}

impl Figures {
    /// Adds a figure of the trace and of the model.
    fn add(&mut self, name: &str, unit: Unit, (trace, model): (f64, f64), limit: f64, chance: f64) {
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
        let calculated = None;
        self.list.push(Figure { stream, name, trace, model, calculated, deviation, limit, chance, unit });
    }

    /// A count, which chance may change by two deviations.
    fn count(&mut self, name: &str, trace: f64, model: f64) {
        self.add(name, Unit::Count, (trace, model), COUNT_LIMIT, 200.0 / trace.max(1.0).sqrt());
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
                let name = format!("p{percent} of {word} sizes");
                self.add(&name, Unit::Bytes, (size(left), size(right)), SIZE_LIMIT, 0.0);
            }
            let (Some(was), Some(is)) = (left.sequential_share(), right.sequential_share()) else { continue };
            let chance = 200.0 * (was * (1.0 - was) / left.ios as f64).sqrt();
            let name = format!("sequential {word}s, %");
            self.add(&name, Unit::Percent, (was * 100.0, is * 100.0), SEQUENTIAL_POINTS, chance);
        }
        let unique = |stream: &Stream, of: &Measurement| stream.touched.unique(of.sampling());
        let (was, is) = (unique(trace, of_trace), unique(model, of_model));
        // The blocks of the other files of a compact section are not kept.
        if trace.files == 1 {
            let chance = 300.0 / was.max(1.0).sqrt();
            self.add("blocks touched", Unit::Count, (was, is), BLOCKS_LIMIT, chance);
            let (reused, modelled) = (trace.touched.reuse(), model.touched.reuse());
            // Reads and writes that each go through the file in order meet after any time.
            let in_order =
                |kind: usize| trace.tracks[kind].sequential_share().is_some_and(|share| share > 0.5);
            let is_chance = in_order(0) && in_order(1);
            if reused.total() >= 100 && modelled.total() >= 100 && !is_chance {
                let median = |counted: &crate::counted::Counted| counted.quantile(0.5) as f64;
                let name = "median I/Os until a block is reused";
                self.add(name, Unit::Count, (median(reused), median(modelled)), REUSE_LIMIT, 0.0);
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
        // Of bursts the model has the pauses, and its calls take no time here.
        let (mean_ns, limit) = match was.pauses() {
            Some(_) => (trace.idle_ns().unwrap_or(was.mean_ns()), BURST_GAP_LIMIT),
            None => (was.mean_ns(), GAP_LIMIT),
        };
        self.add("mean time between I/Os", Unit::Ns, (mean_ns, is.mean_ns()), limit, 0.0);
        let limit = VARIATION_LIMIT + was.variation() / 5.0;
        let variations = (was.variation(), is.variation());
        self.add("variation of time between I/Os", Unit::Ratio, variations, limit, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(of: &[(Unit, f64, f64, f64)]) -> Fidelity {
        let mut figures = Figures::default();
        for (unit, trace, model, chance) in of {
            figures.add("reads", *unit, (*trace, *model), COUNT_LIMIT, *chance);
        }
        Fidelity { figures: figures.list, is_run: false }
    }

    #[test]
    fn what_is_out_of_bounds_is_never_close_however_few_there_were() {
        let few = figures(&[(Unit::Bytes, 606_921.0, 304_388.0, 100.0), (Unit::Count, 4.0, 4.0, 100.0)]);
        assert_eq!(few.figures[0].verdict(), Verdict::TooFew);
        assert!(!few.is_close());
        let sentence = few.sentence();
        assert!(sentence.starts_with("Cannot tell whether it is close: 1 of 2 figures"), "{sentence}");
        assert!(sentence.ends_with("Record for longer."), "{sentence}");
        // Near neighbours: one that chance does not explain, and one within its limit.
        let far = figures(&[(Unit::Bytes, 606_921.0, 304_388.0, 44.0), (Unit::Bytes, 4.0, 6.0, 100.0)]);
        assert_eq!(far.figures[0].verdict(), Verdict::Far);
        assert!(far.sentence().starts_with("Not close: 1 of 2 figures deviate, most of all"), "{far:?}");
        assert!(figures(&[(Unit::Bytes, 606_921.0, 590_000.0, 100.0)]).is_close());
    }

    #[test]
    fn calls_that_are_missing_altogether_are_no_chance() {
        let missing = figures(&[(Unit::Count, 1.0, 0.0, 200.0), (Unit::Count, 3.0, 2.0, 120.0)]);
        let verdicts: Vec<Verdict> = missing.figures.iter().map(Figure::verdict).collect();
        assert_eq!(verdicts, [Verdict::Far, Verdict::TooFew]);
        assert_eq!(missing.worst(), Some(&missing.figures[0]));
    }

    #[test]
    fn a_run_is_compared_by_what_was_seen_of_both() {
        use fiord_trace::{CallKind, Entry, EntryKind, OpenFlags};
        let measured = |every_ns: u64, duration_ns: u64, ios: u64| {
            let mut measured = Measurement::default();
            for number in 0..ios {
                let (kind, length_bytes) = (EntryKind::Read, 4096);
                let entry = Entry {
                    at_ns: number * every_ns,
                    file: 0,
                    kind,
                    offset_bytes: number * 4096,
                    length_bytes,
                };
                let call = Some((CallKind::Pread, OpenFlags::default())).filter(|_| duration_ns > 0);
                measured.add(&entry, &crate::stream::Told { duration_ns, call, ..Default::default() });
            }
            measured
        };
        let (trace, model) = (measured(1_000_000, 90_000, 1000), measured(0, 0, 1000));
        let near = Fidelity::as_run(&trace, &model, &measured(1_050_000, 80_000, 1000));
        assert!(near.is_close(), "{near:?}");
        let far = Fidelity::as_run(&trace, &model, &measured(1_200_000, 200_000, 1000));
        let names: Vec<&str> = far
            .figures
            .iter()
            .filter(|one| one.verdict() == Verdict::Far)
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["reads a second", "p50 of read latency", "p99 of read latency"]);
        assert_eq!(far.worst().map(|worst| worst.name.as_str()), Some("p50 of read latency"));
        assert!(far.sentence().contains("in the model as run"), "{}", far.sentence());
        let calculated =
            |name: &str| far.figures.iter().find(|one| one.name == name).and_then(|one| one.calculated);
        assert_eq!((calculated("reads"), calculated("reads a second")), (Some(1000.0), None));
    }
}
