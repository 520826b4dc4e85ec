//! What a sweep comes to, in words.
//!
//! Invariant: a knee is only claimed where one was found; everything else is said to be otherwise.

use fiord_report::table::{Cell, Column, Table, wrapped};

use super::curve::{Curve, Run};
use super::{Key, Measured, Style};
use crate::knee::SHARE_MIN;

/// Curves that are told one by one; of more, the best alone.
pub(super) const CURVES_TOLD: usize = 3;

/// A fall to less than this share of the peak is told.
const FALL: f64 = 0.9;

/// Latency that grows by less than this factor does not.
const LATENCY_GROWTH: f64 = 1.1;

/// The rule of the knee, in lines of at most `width` columns.
pub(super) fn rule(width: usize) -> String {
    let text = format!(
        "The knee is the smallest value that reaches {:.0} % of the highest throughput, after two standard errors \
         are taken off each run; there is none where throughput still grows at the end.",
        SHARE_MIN * 100.0
    );
    wrapped(&text, width).join("\n") + "\n"
}

/// The knees as a table: a row a curve.
pub(super) fn knees(curves: &[Curve], style: &Style) -> Table {
    let mut table = Table::new([
        Column::new("curve", "CURVE"),
        Column::new("knee", "KNEE"),
        Column::new("knee_mib_per_s", "KNEE(MiB/s)"),
        Column::new("peak", "PEAK"),
        Column::new("peak_mib_per_s", "PEAK(MiB/s)"),
        Column::new("share_percent", "SHARE(%)"),
    ]);
    let throughput = |run: &Run| style.throughput(run.bytes_per_s);
    for curve in curves {
        let Some(peak) = curve.peak() else { continue };
        let knee = curve.knee();
        table.rows.push(vec![
            Cell::Text(curve.name.clone()),
            knee.map_or(Cell::None, |run| run.cell.clone()),
            knee.map_or(Cell::None, throughput),
            peak.cell.clone(),
            throughput(peak),
            knee.map_or(Cell::None, |run| percent(run, peak)),
        ]);
    }
    table
}

fn share(run: &Run, peak: &Run) -> f64 {
    if peak.bytes_per_s > 0.0 { run.bytes_per_s / peak.bytes_per_s } else { 1.0 }
}

/// A run's share of the peak, of a hundred.
fn percent(run: &Run, peak: &Run) -> Cell {
    Cell::Number(share(run, peak) * 100.0, 0)
}

/// The one sentence; empty when nothing was measured.
pub(super) fn conclusion(
    keys: &[Key],
    axis: Option<usize>,
    curves: &[Curve],
    measured: &[Measured],
    style: &Style,
) -> String {
    let text = match (axis, curves) {
        (Some(axis), [only]) => of_curve(&keys[axis], only, style),
        (Some(axis), [_, ..]) if curves.len() <= CURVES_TOLD => {
            let told =
                curves.iter().map(|curve| format!("{}: {}", curve.name, of_curve(&keys[axis], curve, style)));
            told.collect::<Vec<_>>().join("; ")
        }
        _ => highest(keys, measured, style).unwrap_or_default(),
    };
    let mut letters = text.chars();
    match letters.next() {
        // An option's name stays as it is written.
        Some(first) if !text.split(' ').next().is_some_and(|word| word.contains('=')) => {
            format!("{}{}.", first.to_uppercase(), letters.as_str())
        }
        Some(_) => format!("{text}."),
        None => text,
    }
}

/// Where throughput was highest.
fn highest(keys: &[Key], measured: &[Measured], style: &Style) -> Option<String> {
    let best =
        measured.iter().max_by(|one, other| one.total.bytes_per_s.total_cmp(&other.total.bytes_per_s))?;
    let options = keys.iter().zip(&best.point);
    let texts: Vec<String> =
        options.map(|(key, value)| format!("{}={}", key.name(), key.values[*value].text)).collect();
    Some(format!("throughput is highest, {}, with {}", shown(style, best.total.bytes_per_s), texts.join(" ")))
}

fn of_curve(axis: &Key, curve: &Curve, style: &Style) -> String {
    let (Some(peak), Some(last)) = (curve.peak(), curve.runs.last()) else {
        let only = curve.runs.first();
        return only.map_or(String::new(), |run| {
            format!("{} gave {}; one run makes no curve", subject(axis, run), shown(style, run.bytes_per_s))
        });
    };
    let Some(knee) = curve.knee() else {
        return format!(
            "the knee is not reached within the range: throughput still grows at {}, to {}",
            subject(axis, last),
            shown(style, peak.bytes_per_s)
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
        shown(style, peak.bytes_per_s),
        beyond(axis, knee, peak, last, style)
    )
}

/// What happens right of the knee.
fn beyond(axis: &Key, knee: &Run, peak: &Run, last: &Run, style: &Style) -> String {
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

fn subject(axis: &Key, run: &Run) -> String {
    match axis.name() {
        "numjobs" if is_plural(axis, run) => format!("{} threads", run.text),
        "numjobs" => format!("{} thread", run.text),
        "iodepth" => format!("depth {}", run.text),
        "bs" => format!("block size {}", run.text),
        name => format!("{name}={}", run.text),
    }
}

fn is_plural(axis: &Key, run: &Run) -> bool {
    axis.name() == "numjobs" && run.value != 1.0
}

/// The throughput of a run, as the table shows it; of one with several rows it is their sum.
fn shown(style: &Style, bytes_per_s: f64) -> String {
    let sum = if style.is_summed { " in all" } else { "" };
    format!("{} MiB/s{sum}", style.throughput(bytes_per_s).shown())
}
