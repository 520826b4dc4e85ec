//! One cell of a table: a value, and its text for people and for programs.
//!
//! Invariant: text for people has a unit; programs get a bare figure, whose unit is in the column's key.

use fiord_device::nested;
use fiord_stats::Capped;
use serde::{Deserialize, Serialize};

use crate::json::Writer;

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Several words or names.
    List(Vec<String>),
    /// Yes or no.
    Flag(bool),
    /// A count.
    Count(u64),
    /// A figure, and its number of decimals in text for people.
    Number(f64, usize),
    /// Bytes.
    Bytes(u64),
    /// A duration, in nanoseconds.
    Latency(u64),
    /// A figure with its text for people: as it was typed (`64k`), or with more digits than usual.
    Formatted(String, f64),
    /// Several figures.
    Figures(#[serde(deserialize_with = "nested::deserialize")] Vec<Cell>),
    /// Unknown, or not applicable.
    None,
}

impl Cell {
    /// Text, or nothing.
    pub fn text(text: Option<impl Into<String>>) -> Cell {
        text.map_or(Cell::None, |text| Cell::Text(text.into()))
    }

    /// A count, or nothing.
    pub fn count(count: Option<u64>) -> Cell {
        count.map_or(Cell::None, Cell::Count)
    }

    /// Bytes, or nothing.
    pub fn bytes(bytes: Option<u64>) -> Cell {
        bytes.map_or(Cell::None, Cell::Bytes)
    }

    /// A duration, with enough digits to distinguish it from a limit.
    pub fn latency_beside(ns: u64, limit_ns: u64) -> Cell {
        if ns == limit_ns || shown_latency(ns) != shown_latency(limit_ns) {
            return Cell::Latency(ns);
        }
        let digits = (FIGURES..).find(|digits| latency_to(ns, *digits) != latency_to(limit_ns, *digits));
        Cell::Formatted(digits.map_or_else(String::new, |digits| latency_to(ns, digits)), ns as f64)
    }

    pub(super) fn is_figure(&self) -> bool {
        matches!(
            self,
            Cell::Count(_) | Cell::Number(..) | Cell::Bytes(_) | Cell::Latency(_) | Cell::Formatted(..)
        )
    }

    /// The figure without its unit; `None` if it is not a figure.
    pub fn figure(&self) -> Option<f64> {
        match self {
            Cell::Count(figure) | Cell::Bytes(figure) | Cell::Latency(figure) => Some(*figure as f64),
            Cell::Number(figure, _) | Cell::Formatted(_, figure) => Some(*figure),
            _ => None,
        }
    }

    /// The text for people; `-` for nothing.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::List(items) if items.is_empty() => "-".to_owned(),
            Cell::List(items) => items.join(", "),
            Cell::Flag(true) => "yes".to_owned(),
            Cell::Flag(false) => "no".to_owned(),
            Cell::Count(count) => count.to_string(),
            Cell::Number(value, decimals) => shown_number(*value, *decimals),
            Cell::Bytes(bytes) => shown_bytes(*bytes),
            Cell::Latency(ns) => shown_latency(*ns),
            Cell::Formatted(text, _) => text.clone(),
            Cell::Figures(figures) if figures.is_empty() => "-".to_owned(),
            Cell::Figures(figures) => figures.iter().map(Cell::shown).collect::<Vec<_>>().join(", "),
            Cell::None => "-".to_owned(),
        }
    }

    /// The field for CSV: no unit, empty for nothing.
    pub(super) fn bare(&self) -> String {
        match self {
            Cell::Bytes(figure) | Cell::Latency(figure) => figure.to_string(),
            Cell::Number(value, _) | Cell::Formatted(_, value) => value.to_string(),
            Cell::Figures(figures) => figures.iter().map(Cell::bare).collect::<Vec<_>>().join(", "),
            Cell::None => String::new(),
            Cell::List(items) => items.join(", "),
            Cell::Flag(flag) => flag.to_string(),
            other => other.shown(),
        }
    }

    /// As a member of a JSON object.
    pub fn write(&self, json: &mut Writer, key: &str) {
        match self {
            Cell::Text(text) => json.string(key, text),
            Cell::List(items) => json.strings(key, items),
            Cell::Flag(flag) => json.boolean(key, *flag),
            Cell::Count(figure) | Cell::Bytes(figure) | Cell::Latency(figure) => json.integer(key, figure),
            Cell::Number(value, _) => json.float(key, *value),
            Cell::Formatted(_, value) => json.number(key, *value),
            Cell::Figures(figures) => json.numbers(key, figures.iter().filter_map(Cell::figure)),
            Cell::None => json.null(key),
        }
    }
}

/// Bytes in the largest binary unit of which there is at least one, to three figures: `512B`, `4KiB`, `79.7GiB`.
pub fn shown_bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.checked_ilog2().unwrap_or(0) / 10) as usize;
    to_figures(bytes as f64 / (1u64 << (10 * power)) as f64, UNITS[power], FIGURES)
}

/// A number with this many decimals. Halves are rounded up, as when a rate becomes a count, so that a figure is
/// the same everywhere.
fn shown_number(value: f64, decimals: usize) -> String {
    let scale = 10f64.powi(i32::capped(decimals));
    let rounded = (value * scale).round() / scale;
    format!("{:.decimals$}", if rounded.is_finite() { rounded } else { value })
}

/// Nanoseconds in the largest unit of which there is at least one, to three figures: `850ns`, `12.3us`, `1.07s`.
fn shown_latency(ns: u64) -> String {
    latency_to(ns, FIGURES)
}

fn latency_to(ns: u64, digits: usize) -> String {
    let (divisor, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    to_figures(ns as f64 / divisor, unit, digits)
}

/// Digits of sizes and durations.
const FIGURES: usize = 3;

/// This many figures, without trailing zeros of a decimal fraction.
fn to_figures(value: f64, unit: &str, digits: usize) -> String {
    let whole = if value < 10.0 { 1 } else { 2 + usize::from(value >= 100.0) };
    let decimals = digits.saturating_sub(whole);
    let figure = format!("{value:.decimals$}");
    let figure = if decimals > 0 { figure.trim_end_matches('0').trim_end_matches('.') } else { &figure };
    format!("{figure}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_their_unit() {
        for (bytes, shown) in [
            (0, "0B"),
            (512, "512B"),
            (4096, "4KiB"),
            (1536, "1.5KiB"),
            (256 << 30, "256GiB"),
            (85_589_446_656, "79.7GiB"),
            (2_000_398_934_016, "1.82TiB"),
            (u64::MAX, "16EiB"),
        ] {
            assert_eq!(Cell::Bytes(bytes).shown(), shown);
        }
        for (ns, shown) in [
            (0, "0ns"),
            (850, "850ns"),
            (12_340, "12.3us"),
            (2_000_000, "2ms"),
            (100_400_000, "100ms"),
            (1_070_000_000, "1.07s"),
        ] {
            assert_eq!(Cell::Latency(ns).shown(), shown);
        }
        assert_eq!(Cell::Number(2.345, 1).shown(), "2.3");
        for half in [0.5, 1.5, 2.5, 1126.5, 84172.5] {
            assert_eq!(Cell::Number(half, 0).shown(), Cell::Count(half.round() as u64).shown());
        }
        assert_eq!(Cell::Number(f64::INFINITY, 0).shown(), "inf");
        assert_eq!(Cell::Count(0).shown(), "0");
    }

    #[test]
    fn a_duration_is_distinguished_from_a_limit_it_exceeds() {
        let shown = |ns| Cell::latency_beside(ns, 10_000_000).shown();
        assert_eq!([9_900_000, 10_000_000, 10_100_000].map(shown), ["9.9ms", "10ms", "10.1ms"]);
        assert_eq!([9_999_000, 10_027_008, 10_000_001].map(shown), ["9.999ms", "10.03ms", "10.000001ms"]);
    }
}
