//! The conclusion of a sweep, as a sentence.
//!
//! Invariant: a knee is only claimed if one was found; otherwise the sentence says why there is none.

use fiord_options::job;
use fiord_report::table::{Cell, Column, Table, wrapped};

use super::curve::{Curve, SweptRun};
use super::key::Key;
use super::measured::{Style, SweepRun};
use crate::knee::SHARE_MIN;

/// Up to this many curves are described one by one; of more, only the best run is.
pub(super) const CURVES_DESCRIBED_MAX: usize = 3;

/// A fall to less than this share of the peak is mentioned.
const FALL: f64 = 0.9;

/// Latency that grows by less than this factor counts as constant.
const LATENCY_GROWTH: f64 = 1.1;

/// The rule of the knee, in lines of at most `width` columns.
pub(super) fn rule(width: usize) -> String {
    let text = format!(
        "The knee is the smallest value that reaches {:.0} % of the highest throughput, after two standard errors \
         are subtracted from each run; there is none if throughput is still growing at the end, or if these errors \
         leave open which value it is.",
        SHARE_MIN * 100.0
    );
    wrapped(&text, width).join("\n") + "\n"
}

/// The knees as a table: a row a curve.
pub(super) fn knees(curves: &[Curve], style: &Style) -> Table {
    let mut table = Table::new([
        Column::new("curve", "CURVE"),
        Column::new("knee", "KNEE"),
        Column::new("knee_from", "FROM"),
        Column::new("knee_to", "TO"),
        Column::new("knee_mib_per_s", "KNEE(MiB/s)"),
        Column::new("peak", "PEAK"),
        Column::new("peak_mib_per_s", "PEAK(MiB/s)"),
        Column::new("share_percent", "SHARE(%)"),
    ]);
    let throughput = |run: &SweptRun| style.throughput(run.bytes_per_s);
    for curve in curves {
        let Some(peak) = curve.peak() else { continue };
        let (knee, hidden) = (curve.knee(), curve.hidden_knee());
        table.rows.push(vec![
            Cell::Text(curve.name.clone()),
            knee.map_or(Cell::None, |run| run.cell.clone()),
            hidden.map_or(Cell::None, |(from, _)| from.cell.clone()),
            hidden.and_then(|(_, to)| to).map_or(Cell::None, |to| to.cell.clone()),
            knee.map_or(Cell::None, throughput),
            peak.cell.clone(),
            throughput(peak),
            knee.map_or(Cell::None, |run| percent(run, peak)),
        ]);
    }
    table
}

fn share(run: &SweptRun, peak: &SweptRun) -> f64 {
    if peak.bytes_per_s > 0.0 { run.bytes_per_s / peak.bytes_per_s } else { 1.0 }
}

/// A run's share of the peak, in percent.
fn percent(run: &SweptRun, peak: &SweptRun) -> Cell {
    Cell::Number(share(run, peak) * 100.0, 0)
}

/// The one sentence; empty when nothing was measured.
pub(super) fn conclusion(
    keys: &[Key],
    axis: Option<usize>,
    curves: &[Curve],
    measured: &[SweepRun],
    style: &Style,
) -> String {
    let text = match (axis, curves) {
        (Some(axis), [only]) => of_curve(&keys[axis], only, style),
        (Some(axis), [_, ..]) if curves.len() <= CURVES_DESCRIBED_MAX => {
            let sentences =
                curves.iter().map(|curve| format!("{}: {}", curve.name, of_curve(&keys[axis], curve, style)));
            sentences.collect::<Vec<_>>().join("; ")
        }
        _ => highest(keys, measured, style).unwrap_or_default(),
    };
    let mut letters = text.chars();
    match letters.next() {
        // The name of an option keeps its case.
        Some(first) if !text.split(' ').next().is_some_and(|word| word.contains('=')) => {
            format!("{}{}.", first.to_uppercase(), letters.as_str())
        }
        Some(_) => format!("{text}."),
        None => text,
    }
}

/// The run with the highest throughput.
fn highest(keys: &[Key], measured: &[SweepRun], style: &Style) -> Option<String> {
    let best =
        measured.iter().max_by(|one, other| one.total.bytes_per_s.total_cmp(&other.total.bytes_per_s))?;
    Some(format!(
        "throughput is highest, {}, with {}",
        shown(style, best.total.bytes_per_s),
        point(keys, best)
    ))
}

/// The runs that nothing was concluded from, as a further sentence; empty if there are none.
pub(super) fn left_out(keys: &[Key], void: &[SweepRun]) -> String {
    let Some((run, why)) = void.first().and_then(|run| Some((run, run.void.as_ref()?))) else {
        return String::new();
    };
    let more = match void.len() {
        1 => String::new(),
        2 => " and 1 more run".to_string(),
        count => format!(" and {} more runs", count - 1),
    };
    format!(" Left out: {}{more}, because {why}.", point(keys, run))
}

/// The values of all options of a run.
fn point(keys: &[Key], run: &SweepRun) -> String {
    let options = keys.iter().zip(&run.point);
    let texts: Vec<String> =
        options.map(|(key, value)| format!("{}={}", key.name(), key.values[*value].text)).collect();
    texts.join(" ")
}

fn of_curve(axis: &Key, curve: &Curve, style: &Style) -> String {
    if curve.is_flat {
        return "the engine is synchronous: the queue depth stays at 1, and the runs differ by noise alone"
            .to_string();
    }
    let (Some(peak), Some(last)) = (curve.peak(), curve.runs.last()) else {
        let only = curve.runs.first();
        return only.map_or(String::new(), |run| {
            format!(
                "{} gave {}; a curve needs at least two runs",
                subject(axis, run),
                shown(style, run.bytes_per_s)
            )
        });
    };
    if let Some((from, to)) = curve.hidden_knee() {
        let to = to.map_or("beyond the range".to_string(), |to| subject(axis, to));
        return format!(
            "where throughput stops rising is uncertain, because the runs vary too much: it is somewhere from {} to \
             {to}; the peak is {}",
            subject(axis, from),
            shown(style, peak.bytes_per_s) + &spread(style, peak)
        );
    }
    let Some(knee) = curve.knee() else {
        return format!(
            "the knee is not reached within the range: throughput is still growing at {}, where it is {}",
            subject(axis, last),
            shown(style, peak.bytes_per_s) + &spread(style, peak)
        );
    };
    let already = if knee.point == curve.runs[0].point { " already" } else { "" };
    let verb = if is_plural(axis, knee) { "reach" } else { "reaches" };
    let share = match knee.point == peak.point {
        true => String::new(),
        false => format!(" {} % of", percent(knee, peak).shown()),
    };
    format!(
        "{}{already} {verb}{share} the peak of {}, and beyond that {}",
        subject(axis, knee),
        shown(style, peak.bytes_per_s) + &spread(style, peak),
        beyond(axis, knee, peak, last, style)
    )
}

/// What happens beyond the knee.
fn beyond(axis: &Key, knee: &SweptRun, peak: &SweptRun, last: &SweptRun, style: &Style) -> String {
    if share(last, peak) < FALL {
        let percent = percent(last, peak).shown();
        return format!("throughput falls, to {percent} % of it at {}", subject(axis, last));
    }
    if last.mean_ns as f64 > LATENCY_GROWTH * knee.mean_ns as f64 {
        let [from, to] = [knee, last].map(|run| style.latency(run.mean_ns).shown());
        return format!("only latency grows, from {from} to {to} ms at {}", subject(axis, last));
    }
    "nothing is gained".to_string()
}

fn subject(axis: &Key, run: &SweptRun) -> String {
    let is = |option| axis.spec == option;
    match &run.text {
        text if is_plural(axis, run) => format!("{text} threads"),
        text if is(job::General::numjobs) => format!("{text} thread"),
        text if is(job::Queue::iodepth) => format!("depth {text}"),
        text if is(job::Blocks::bs) => format!("block size {text}"),
        text => format!("{}={text}", axis.name()),
    }
}

fn is_plural(axis: &Key, run: &SweptRun) -> bool {
    axis.spec == job::General::numjobs && run.value != 1.0
}

/// How far the throughput of a run may be off: two standard errors; empty if it was not sampled.
fn spread(style: &Style, run: &SweptRun) -> String {
    if run.noise_bytes_per_s <= 0.0 {
        return String::new();
    }
    format!(" (± {})", style.throughput(run.noise_bytes_per_s).shown())
}

/// The throughput of a run, as the table shows it; for a run with several rows it is their sum.
fn shown(style: &Style, bytes_per_s: f64) -> String {
    let sum = if style.is_summed { " in total" } else { "" };
    format!("{} MiB/s{sum}", style.throughput(bytes_per_s).shown())
}
